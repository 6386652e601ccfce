"""Learning: readable models of a black box's leads, and the choice among them by agreement on answers held out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema
from ifonly.models.read import Read
from ifonly.models.reading.source import Column, Source
from ifonly.models.registry import read_estimator
from ifonly.runtime.tuning import Learning
from ifonly.runtime.warning_filters import silenced

__all__ = ["LEARNERS", "Learned", "learn"]


@dataclass(frozen=True)
class Learned:
    """A surrogate: its scores as a form, its name, and the share of held-out rows on whose side it agrees."""

    read: Read
    name: str
    agreement: float
    seconds: float


def _boosting(seed: int, missing: bool, tuning: Learning) -> Any:
    from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor  # noqa: PLC0415 - heavy

    shape = {"max_depth": tuning.depth, "learning_rate": tuning.rate, "random_state": seed}
    if missing:
        return HistGradientBoostingRegressor(max_iter=tuning.trees, early_stopping=False, **shape)
    return GradientBoostingRegressor(n_estimators=tuning.trees, **shape)


def _linear(seed: int, missing: bool, tuning: Learning) -> Any:
    from sklearn.linear_model import Ridge  # noqa: PLC0415 - heavy
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    del seed
    return None if missing else make_pipeline(StandardScaler(), Ridge(alpha=tuning.ridge))


def _network(seed: int, missing: bool, tuning: Learning) -> Any:
    from sklearn.neural_network import MLPRegressor  # noqa: PLC0415 - heavy
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    shape = {"hidden_layer_sizes": (tuning.units,), "alpha": tuning.decay, "max_iter": tuning.steps}
    net = MLPRegressor(solver="lbfgs", random_state=seed, **shape)
    return None if missing else make_pipeline(StandardScaler(), net)


LEARNERS: dict[str, Callable[[int, bool, Learning], Any]] = {
    "gradient boosting": _boosting,
    "linear": _linear,
    "ReLU network": _network,
}


def learn(
    name: str, schema: Schema, base: FloatArray, rows: FloatArray, leads: FloatArray, seed: int, tuning: Learning
) -> Learned | None:
    """Return a surrogate fitted to labelled rows, or None when this learner cannot take them.

    It is fitted twice: without a part of the rows, on which its agreement is measured, and with all of them.

    Parameters
    ----------
    schema, base
        The features, and a canonical row with no missing value.
    rows, leads
        Canonical rows, and by how much the black box gives them the wanted outcome.
    """
    began = time.perf_counter()
    maker, missing = LEARNERS[name], bool(np.isnan(rows).any())
    estimator = maker(seed, missing, tuning)
    if estimator is None:
        return None
    rng = np.random.default_rng(seed)
    held = rng.uniform(size=len(rows)) < tuning.held_out
    with silenced():
        estimator.fit(rows[~held], leads[~held])
        agreement = float(np.mean((estimator.predict(rows[held]) > 0) == (leads[held] > 0))) if held.any() else 0.0
        estimator = maker(seed, missing, tuning)
        estimator.fit(rows, leads)
        read = read_estimator(estimator, _entries(schema, base))
    return Learned(read, name, agreement, time.perf_counter() - began)


def _entries(schema: Schema, base: FloatArray) -> Source:
    """Return the source of an estimator that receives canonical rows: one column per number and per level."""
    columns = []
    for entry, j in enumerate(schema.owner.tolist()):
        weights = np.zeros(schema.width)
        weights[entry] = 1.0
        numeric = isinstance(schema.features[j], Numeric)
        columns.append(Column(f"{schema.names[j]}[{entry}]", frozenset({j}), weights, identity=numeric))
    return Source(schema, tuple(columns), _as_it_is, base)


def _as_it_is(U: FloatArray) -> FloatArray:
    return U
