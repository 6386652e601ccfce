"""Fitting: a family's model behind random preprocessing, on the table of a small world."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

from benchmarks.battery.families import Family, Rng, either
from benchmarks.battery.worlds import Data

__all__ = ["fit"]


def _scaler(rng: Rng, family: Family) -> Any:
    trees = family.steps
    options: list[Any] = [StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler()]
    if trees:
        options += ["passthrough"] * 6
        options += [PowerTransformer(), QuantileTransformer(n_quantiles=10), FunctionTransformer(np.arcsinh)]
        options += [KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf")]
    else:
        options += [
            StandardScaler(),
            StandardScaler(),
            "passthrough",
            KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"),
        ]
    return options[int(rng.integers(len(options)))]


def _splits_on_levels(family: Family, data: Data, model: Any) -> bool:
    """Whether a model can be told to split on levels itself; if so, it is told."""
    if any(c.kind in ("category", "order") and c.dtype != "category" for c in data.columns):
        return False
    if family.name == "xgboost":
        model.set_params(enable_categorical=True, tree_method="hist")
    return family.name in ("hist boosting", "lightgbm", "xgboost")


def fit(family: Family, rng: Rng, data: Data, k: int) -> tuple[Any, Any, list[str]]:
    """Return a fitted model, its training outcomes, and words for both."""
    latent = data.latent
    if not k:
        y: Any = np.round(latent, 3) if rng.random() < 0.5 else latent * 10.0 ** float(rng.choice([0, 3, -3]))
        if family.positive:
            y = np.exp(0.5 * latent)
    else:
        names = either(rng, ["no", "yes"], ["a", "b"], [0, 1]) if k == 2 else either(rng, ["a", "b", "c"], [0, 1, 2])
        if family.name == "xgboost":
            names = list(range(k))
        ends = np.quantile(latent, np.linspace(0, 1, k + 1)[1:-1] + rng.uniform(-0.1, 0.1))
        y = np.array(names)[np.searchsorted(ends, latent)]
    scaler = _scaler(rng, family)
    needs = bool(data.gaps) and not (family.missing and scaler == "passthrough")
    if needs:
        fill = SimpleImputer(strategy=either(rng, "mean", "median"), add_indicator=bool(rng.random() < 0.3))
        scaler = fill if scaler == "passthrough" else make_pipeline(fill, scaler)
    encoder = either(
        rng,
        OneHotEncoder(sparse_output=False),
        OneHotEncoder(drop="if_binary", sparse_output=False),
        OneHotEncoder(sparse_output=False),
    )
    if family.steps and rng.random() < 0.4:
        encoder = OrdinalEncoder()
    elif rng.random() < 0.05 and k != 3:
        encoder = TargetEncoder(cv=3, random_state=0)
    text = [c.name for c in data.columns if c.kind in ("category", "order")]
    flags = [c.name for c in data.columns if c.kind == "flag"]
    parts: list[tuple[str, Any, list[str]]] = [("numbers", scaler, data.numbers)]
    if flags:
        parts.append(("flags", "passthrough", flags))
    if text:
        parts.append(("text", encoder, text))
    last = family.make(rng, k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if family.adapt is not None:
            columns = ColumnTransformer(parts).fit(data.X, y)
            model = family.adapt(last.fit(np.asarray(columns.transform(data.X), dtype=np.float64), y), columns, k)
        elif (
            scaler == "passthrough" and not text and rng.random() < 0.5  # nothing to prepare
        ) or (_splits_on_levels(family, data, last) and rng.random() < 0.5):
            model = last.fit(data.X, y)
        else:
            model = Pipeline([("columns", ColumnTransformer(parts)), ("model", last)]).fit(data.X, y)
    words = [f"{type(last).__name__} {_short(last)}", f"numbers by {_short(scaler)}"]
    return model, pd.Series(y), words


def _short(thing: Any) -> str:
    return " ".join(str(thing).split())[:160]
