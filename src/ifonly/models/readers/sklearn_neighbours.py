"""Readers of scikit-learn's k-nearest-neighbour models."""

from __future__ import annotations

from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import UnsupportedModel
from ifonly.models.form import Form
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.nearest import Nearest
from ifonly.models.forms.steps import Lift
from ifonly.models.read import Read
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.reading.on_grids import on_grids
from ifonly.models.reading.source import Source
from ifonly.models.registry import reads
from ifonly.tolerances import LONG_SUM

__all__: list[str] = []


@reads("sklearn", "KNeighborsClassifier")
def read_classifier(estimator: Any, source: Source) -> Read:
    """The share of the neighbours that have each class; of equal shares, the first class wins."""
    _refuse(estimator, source)
    values = np.eye(len(estimator.classes_))[np.asarray(estimator._y, dtype=np.int64).reshape(-1)]
    form, classes = _nearest(estimator, source, values), labels_of(estimator)
    missing = source.may_miss(False)
    return Read(form, classes, "argmax", "identity", piecewise_constant=True, accepts_missing=missing)


@reads("sklearn", "KNeighborsRegressor")
def read_regressor(estimator: Any, source: Source) -> Read:
    """The mean of the neighbours' values."""
    _refuse(estimator, source)
    values = np.asarray(estimator._y, dtype=np.float64).reshape(-1, 1)
    form = _nearest(estimator, source, values)
    return Read(form, piecewise_constant=True, accepts_missing=source.may_miss(False))


def _refuse(estimator: Any, source: Source) -> None:
    """Refuse what is not a plain mean over the rows at the least Euclidean distance, or has too many rows."""
    who = f"{source.where}{type(estimator).__name__}"
    if np.ndim(estimator._y) > 1 and np.shape(estimator._y)[1] > 1:
        raise UnsupportedModel(
            f"{who} predicts {np.shape(estimator._y)[1]} outputs at once. Fit one model per output and explain the one you "
            "ask about."
        )
    if estimator.weights not in ("uniform", None):
        raise UnsupportedModel(
            f"{who} with weights={estimator.weights!r} weighs its neighbours by their distance, which has no exact "
            "mixed-integer form. " + _way_out("weights='uniform'")
        )
    metric, given = estimator.effective_metric_, estimator.effective_metric_params_ or {}
    if metric != "euclidean" or given.get("w") is not None:
        shown = "weights of its columns" if given.get("w") is not None else f"the metric {metric!r}"
        raise UnsupportedModel(
            f"{who} measures distances by {shown}; only the Euclidean distance makes the comparison of two rows linear. "
            + _way_out("metric='euclidean'")
        )
    n, most = int(estimator.n_samples_fit_), source.tuning.most_rows
    if n > most:
        raise UnsupportedModel(f"{who} keeps {n:,} rows; up to {most:,} are read exactly. " + _way_out("fewer rows"))


def _way_out(what: str) -> str:
    return f"Fit it with {what} to have it read."  # that it can be observed is said of every refusal


def _nearest(estimator: Any, source: Source, values: FloatArray) -> Form:
    """Return the mean of `values` over the nearest rows, whose scores count from the middle of all rows."""
    kept = estimator._fit_X
    rows = np.asarray(kept.toarray() if hasattr(kept, "toarray") else kept, dtype=np.float64)
    middle = rows.mean(axis=0)
    source = on_grids(source)
    lift = Lift.of(source)
    longer = lift.source(source)
    # |x - c|^2 - |x - x_i|^2 = 2 (x_i - c) @ x - (x_i - c) @ (x_i + c)
    moved = rows - middle
    scores = longer.linear(2.0 * moved, -np.einsum("ij,ij->i", moved, rows + middle), type(estimator).__name__)
    # brute force multiplies |x|^2 - 2 x_i @ x + |x_i|^2 out, trees of rows add up squares of differences
    size = float(np.square(rows if estimator._fit_method == "brute" else moved).max(axis=0, initial=0.0).sum())
    return lift.around(
        Nearest(Linear(longer.schema, *scores), values, int(estimator.n_neighbors), 4.0 * LONG_SUM * size)
    )
