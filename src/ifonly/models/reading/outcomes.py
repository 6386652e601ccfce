"""Outcomes of a read model as forms that can be put together: probabilities, votes, decision scores and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import UnsupportedModel
from ifonly.models.form import Form
from ifonly.models.forms.bends import Bend
from ifonly.models.forms.compose import combine
from ifonly.models.forms.votes import Votes
from ifonly.models.links import Identity
from ifonly.models.read import Read
from ifonly.models.rules import Sign
from ifonly.runtime.warning_filters import silenced

__all__ = ["Bent", "Function", "least", "missing_for_all", "one_score", "probabilities", "values", "votes"]

Function = Callable[[FloatArray], FloatArray]

_FAR = 1e18


# -- monotone functions ----------------------------------------------------------------------------------------------
def least(function: Function, value: float, start: float = 0.0) -> float:
    """Return the least float at which an increasing function is at least `value`, by bisection over all floats.

    Minus infinity when it always is, infinity when it never is. The function is looked at as far from `start` as it is
    finite.
    """

    def enough(s: float) -> bool:
        return bool(_quiet(function, s) >= value)

    low, high = _edge(function, start, -1.0), _edge(function, start, 1.0)
    if enough(low):
        return -np.inf
    if not enough(high):
        return np.inf
    left, right = _rank(low), _rank(high)
    while right > left + 1:
        middle = (left + right) // 2
        left, right = (left, middle) if enough(_unrank(middle)) else (middle, right)
    return _unrank(right)


def _quiet(function: Function, s: float) -> float:
    with np.errstate(all="ignore"), silenced():
        return float(np.asarray(function(np.array([s])))[0])


def _edge(function: Function, start: float, direction: float) -> float:
    """Return how far in one direction a function has values at all."""
    step, known = 1.0, start
    while step < _FAR:
        if np.isnan(_quiet(function, start + direction * step)):
            return _last_defined(function, known, start + direction * step)
        known = start + direction * step
        step *= 4.0
    return known


def _last_defined(function: Function, inside: float, outside: float) -> float:
    while True:
        middle = 0.5 * (inside + outside)
        if middle in (inside, outside):
            return inside
        inside, outside = (inside, middle) if np.isnan(_quiet(function, middle)) else (middle, outside)


def _rank(s: float) -> int:
    """Number the floats in their order."""
    bits = int(np.float64(s + 0.0).view(np.int64))
    return bits if bits >= 0 else -(2**63) - bits


def _unrank(rank: int) -> float:
    return float(np.int64(rank if rank >= 0 else -(2**63) - rank).view(np.float64))


@dataclass(frozen=True, eq=False)
class Bent:
    """The link of a score that `function` takes to the second class's probability, or to a regression's value.

    `bend` is the same function as a chain can hold it, where there is one.
    """

    function: Function
    classes: bool
    bend: Bend | None = None

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (or values, one column) from scores."""
        y = self.function(scores[:, 0])
        return np.column_stack([1.0 - y, y]) if self.classes else np.asarray(y).reshape(-1, 1)

    def inverse(self, value: float) -> float:
        """Return the least score that gives at least this value."""
        return least(self.function, value)


# -- what a read model says ------------------------------------------------------------------------------------------
def probabilities(read: Read, who: str) -> Form:
    """Return the form of a classifier's probabilities, one score per class."""
    form = read.link.form(read.form)
    if form is not None:
        return form
    raise UnsupportedModel(
        f"{who} enters by its class probabilities, and {read.link.why_no_form}, which cannot be added up exactly. Members "
        "whose probabilities can: LogisticRegression, forests, gradient boosting, or CalibratedClassifierCV of two classes."
    )


def votes(read: Read) -> Form:
    """Return the form of a classifier's decision: 1 for the class it predicts, 0 for the others."""
    return Votes(read)


def missing_for_all(members: Iterable[Read]) -> frozenset[int]:
    """Return the features that may be missing for every one of several models."""
    return frozenset.intersection(*(read.accepts_missing for read in members))


def one_score(read: Read, who: str) -> Read:
    """Return a two-class model as one score with a threshold; probabilities of both classes become the second's."""
    if isinstance(read.rule, Sign):
        return read
    if len(read.classes) != 2 or not isinstance(read.link, Identity):
        raise UnsupportedModel(
            f"{who} has {len(read.classes)} scores, where one is needed. Use a model of two classes with one decision "
            "score or with exact probabilities."
        )
    form = combine(read.form, np.array([[0.0, 1.0]]))
    return Read(form, read.classes, "sign", "identity", 0.5, True, read.piecewise_constant, read.accepts_missing)


def values(read: Read, who: str) -> Form:
    """Return the form of a regression model's predictions."""
    form = read.link.value_form(read.form)
    if form is None:
        raise UnsupportedModel(
            f"{who} bends its score by a function of unknown curvature, so its prediction cannot be added to others. "
            "It can be read alone; in a sum, transform its target by log or log1p."
        )
    return form
