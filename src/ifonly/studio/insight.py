"""Insight around an answer, by the model itself: the score that each change buys, and the range of each number.

Both are measured by putting rows to the user's own model, in the worker, after the answer was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ifonly import Counterfactual, Explainer, Explanation, Target
from ifonly.runtime.warning_filters import silenced
from ifonly.studio.library import Numeric, in_one_pass

__all__ = ["Insight", "Reach", "forecasts", "insights"]

Array = npt.NDArray[np.float64]
_MOST_SUBSETS = 7  # changes whose every subset is put to the model
_MOST_VALUES = 4_000  # of one feature


@dataclass(frozen=True)
class Reach:
    """The values of one changed number, the others as they are, with which the outcome holds.

    `exact`: every value of the feature's grid in between was put to the model; otherwise values at even distances were.
    """

    low: float
    high: float
    exact: bool


@dataclass(frozen=True)
class Insight:
    """Measurements around one answer.

    Attributes
    ----------
    before, after
        The score of the wanted outcome of the factual and of the answer.
    label
        The wanted outcome; of several, the one that the answer has.
    buys
        Feature -> its share of the difference: the mean over all orders in which the changes can be made (Shapley).
    reach
        Feature -> how far it may go.
    """

    before: float | None = None
    after: float | None = None
    label: Any = None
    buys: Mapping[str, float] = field(default_factory=dict)
    reach: Mapping[str, Reach] = field(default_factory=dict)


def forecasts(explainer: Explainer, frame: pd.DataFrame) -> tuple[npt.NDArray[Any], Array]:
    """Return the model's own outcomes and scores (one column per class, one for a regression, or none)."""
    model, schema = explainer.model, explainer.schema
    classes = model.read.classes
    with silenced():
        U = schema.encode(frame, missing=model.read.accepts_missing)
        if not classes:
            outcomes = np.asarray(model.predict(U), dtype=object)
            return outcomes, outcomes.astype(np.float64)[:, None]
        outcomes, scores = in_one_pass(model, U) or (np.asarray(model.predict(U), object), model.predict_proba(U))
        if scores is None:
            decide = getattr(model.estimator, "decision_function", None)
            scores = np.empty((len(U), 0)) if decide is None else np.asarray(decide(model.prepare(U)), np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    return outcomes, scores


def insights(explainer: Explainer, explanation: Explanation, want: Any) -> list[Insight]:
    """Return what the model says around each answer."""
    wanted = want if isinstance(want, list) else [want.label if isinstance(want, Target) else want]
    classes = list(explainer.model.read.classes)
    found = []
    for way in explanation:
        label = way.prediction if len(wanted) > 1 else wanted[0]
        column = classes.index(label) if label in classes else 0
        met = _met(want, wanted, column)
        found.append(replace(_insight(explainer, explanation.factual, way, column, met), label=label))
    return found


def _met(want: Any, wanted: list[Any], column: int) -> Callable[[npt.NDArray[Any], Array], npt.NDArray[np.bool_]]:
    """Return what says of outcomes and scores whether they are as wanted."""

    def met(outcomes: npt.NDArray[Any], scores: Array) -> npt.NDArray[np.bool_]:
        if not isinstance(want, Target):
            return _among(outcomes, wanted)
        good = np.ones(len(outcomes), dtype=np.bool_)
        if want.label is not None:
            good &= _among(outcomes, wanted)
        if want.probability is not None and scores.shape[1]:
            good &= scores[:, column] >= want.probability
        if want.at_least is not None:
            good &= outcomes.astype(np.float64) >= want.at_least
        if want.at_most is not None:
            good &= outcomes.astype(np.float64) <= want.at_most
        return good

    return met


def _among(outcomes: npt.NDArray[Any], wanted: list[Any]) -> npt.NDArray[np.bool_]:
    return np.asarray([any(outcome == label for label in wanted) for outcome in outcomes], dtype=np.bool_)


def _insight(
    explainer: Explainer,
    factual: pd.DataFrame,
    way: Counterfactual,
    column: int,
    met: Callable[[npt.NDArray[Any], Array], npt.NDArray[np.bool_]],
) -> Insight:
    names = [change.feature for change in way.changes]
    ends = pd.concat([factual, way.row], ignore_index=True)
    _, scores = forecasts(explainer, ends)
    reach = {}
    for name in names:
        feature = explainer.schema[name]
        if isinstance(feature, Numeric) and np.isfinite(float(way.row[name].iloc[0])):
            found = _reach(explainer, way.row, name, met)
            if found is not None:
                reach[name] = found
    if not scores.shape[1]:
        return Insight(reach=reach)
    buys = _buys(explainer, factual, way.row, names, column)
    return Insight(float(scores[0, column]), float(scores[1, column]), buys=buys, reach=reach)


def _buys(
    explainer: Explainer, factual: pd.DataFrame, after: pd.DataFrame, names: Sequence[str], column: int
) -> dict[str, float]:
    """Return the Shapley value of each change; with many changes, what each adds when they are made in their order."""
    k = len(names)
    if k > _MOST_SUBSETS:
        sets = [tuple(range(i)) for i in range(k + 1)]
    else:
        sets = [s for size in range(k + 1) for s in combinations(range(k), size)]
    rows = pd.concat([_mixed(factual, after, [names[i] for i in s]) for s in sets], ignore_index=True)
    scores = dict(zip(sets, forecasts(explainer, rows)[1][:, column], strict=True))
    if k > _MOST_SUBSETS:
        return {names[i]: float(scores[sets[i + 1]] - scores[sets[i]]) for i in range(k)}
    out = {}
    for i in range(k):
        total = 0.0
        for s in sets:
            if i not in s:
                share = factorial(len(s)) * factorial(k - len(s) - 1) / factorial(k)
                total += share * float(scores[tuple(sorted((*s, i)))] - scores[s])
        out[names[i]] = total
    return out


def _mixed(factual: pd.DataFrame, after: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    row = factual.reset_index(drop=True).copy()
    for name in names:
        row[name] = after[name].to_numpy() if not hasattr(after[name].dtype, "categories") else after[name].array
    return row


def _reach(
    explainer: Explainer,
    row: pd.DataFrame,
    name: str,
    met: Callable[[npt.NDArray[Any], Array], npt.NDArray[np.bool_]],
) -> Reach | None:
    """Return the interval around a value in which the outcome was found to hold."""
    feature = explainer.schema[name]
    assert isinstance(feature, Numeric)
    here = float(row[name].iloc[0])
    low, high = min(feature.lower, here), max(feature.upper, here)
    step = feature.step
    every = step is not None and (high - low) / step <= _MOST_VALUES
    if every and step is not None:
        values = np.unique(np.round(np.arange(round((high - low) / step) + 1) * step + low, feature.precision or 0))
    else:
        spread = np.linspace(low, high, _MOST_VALUES // 8)
        values = np.unique([feature.snap(float(v)) for v in (*spread, here)])
    rows = pd.concat([row] * len(values), ignore_index=True)
    rows[name] = pd.Series(values).astype(rows[name].dtype)
    good = met(*forecasts(explainer, rows))
    at = int(np.argmin(np.abs(values - here)))
    if not good[at]:
        return None
    bad = np.flatnonzero(~good)
    first = int(bad[bad < at].max() + 1) if (bad < at).any() else 0
    last = int(bad[bad > at].min() - 1) if (bad > at).any() else len(values) - 1
    return Reach(float(values[first]), float(values[last]), every)
