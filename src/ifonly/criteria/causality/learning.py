"""Learning what causes what: for each effect, the regression of its parents that predicts best on rows held out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ifonly.criteria.causality.causes import Cause
from ifonly.data.schema import Numeric, Schema
from ifonly.data.tables import as_frame
from ifonly.errors import CriterionError, did_you_mean
from ifonly.runtime.tuning import DEFAULT, Regressions
from ifonly.runtime.warning_filters import silenced

__all__ = ["learn_causes"]


def learn_causes(
    X: Any, graph: Mapping[str, Sequence[str]], models: Iterable[Any] | None, cv: int, random_state: int
) -> dict[str, Cause]:
    """Return a fitted cause per effect; see `Causality.learn`."""
    frame = as_frame(X)
    candidates = _candidates(random_state, DEFAULT.regressions) if models is None else list(models)
    if not candidates:
        raise CriterionError("Causality.learn needs at least one model to choose from.")
    return {name: _learned(frame, name, parents, candidates, cv, random_state) for name, parents in graph.items()}


def _candidates(seed: int, numbers: Regressions) -> list[Any]:
    from sklearn.compose import TransformedTargetRegressor  # noqa: PLC0415 - loaded only to learn
    from sklearn.ensemble import GradientBoostingRegressor  # noqa: PLC0415
    from sklearn.linear_model import Ridge  # noqa: PLC0415
    from sklearn.neural_network import MLPRegressor  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    network = MLPRegressor(
        hidden_layer_sizes=(numbers.units,),
        alpha=numbers.decay,
        solver="lbfgs",
        max_iter=numbers.steps,
        random_state=seed,
    )
    return [
        Ridge(),
        GradientBoostingRegressor(n_estimators=numbers.trees, max_depth=numbers.depth, random_state=seed),
        TransformedTargetRegressor(network, transformer=StandardScaler()),
    ]


def _learned(
    frame: pd.DataFrame, name: str, parents: Sequence[str], candidates: Sequence[Any], cv: int, seed: int
) -> Cause:
    from sklearn.base import clone  # noqa: PLC0415 - loaded only to learn
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.model_selection import KFold, cross_val_score  # noqa: PLC0415

    parents = list(Cause(parents, coefficients=dict.fromkeys(parents, 0.0)).parents)  # checks the list
    for column in (name, *parents):
        if column not in frame.columns:
            near = did_you_mean(column, frame.columns)
            raise CriterionError(f"Unknown feature {column!r} in the causal graph.{near}")
    rows = frame[[name, *parents]].dropna()
    schema = Schema.infer(rows)
    if not isinstance(schema[name], Numeric):
        raise CriterionError(f"{name!r} is {schema[name].kind}: only numeric features can be caused.")
    if len(rows) < cv:
        raise CriterionError(f"{len(rows)} complete rows are too few to learn the cause of {name!r} in {cv} folds.")
    X, y = rows[parents], rows[name].to_numpy(dtype=np.float64)
    folds = KFold(cv, shuffle=True, random_state=seed)
    pipelines = [_pipeline(clone(model), schema, parents) for model in candidates]
    scores = []
    for pipeline in pipelines:
        with silenced(ConvergenceWarning):
            scores.append(float(cross_val_score(pipeline, X, y, cv=folds, scoring="r2").mean()))
    best = int(np.argmax(scores))
    with silenced(ConvergenceWarning):
        return Cause(parents, model=pipelines[best].fit(X, y), r2=scores[best])


def _pipeline(model: Any, schema: Schema, parents: Sequence[str]) -> Any:
    from sklearn.compose import ColumnTransformer  # noqa: PLC0415 - loaded only to learn
    from sklearn.pipeline import Pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: PLC0415

    numbers = [p for p in parents if isinstance(schema[p], Numeric)]
    levels = [p for p in parents if p not in numbers]
    known = [list(schema[p].levels) for p in levels]  # type: ignore[union-attr]
    steps = [
        ("number", StandardScaler(), numbers),
        ("level", OneHotEncoder(categories=known, sparse_output=False), levels),
    ]
    encode = ColumnTransformer([step for step in steps if step[2]])
    return Pipeline([("encode", encode), ("model", model)])
