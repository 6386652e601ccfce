"""Links that a model brings as functions: a classifier's own probabilities, a regression model's own scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.form import Form
from ifonly.models.forms.bends import EXP, EXPM1, SIGMOID, SQUARE, Bend
from ifonly.models.forms.compose import combine
from ifonly.models.forms.curves import Curve
from ifonly.models.links import Function, Link, NoLink
from ifonly.tolerances import SAME_POINT

__all__ = ["OwnLink", "ValueLink"]

_COMPARED = np.linspace(-3.0, 3.0, 25)  # scores at which a link is compared with a sigmoid
_BENDS: dict[object, Bend] = {np.exp: EXP, np.expm1: EXPM1, np.square: SQUARE}


@runtime_checkable
class Bending(Protocol):
    """A function of scores that may know its curve as a chain can hold it."""

    @property
    def bend(self) -> Bend | None:
        """The curve; None where there is none."""
        ...


@dataclass(frozen=True)
class OwnLink(Link):
    """A classifier's own function from scores to class probabilities.

    Attributes
    ----------
    forward
        Scores -> class probabilities, one column per class.
    back
        The least score at which the second class's probability is at least a given value; None when there is none.
    name
        The link it takes the place of.
    """

    forward: Function
    back: Callable[[float], float] | None
    name: str = "own"
    askable: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "askable", self.back is not None)

    def probabilities(self, scores: FloatArray) -> FloatArray | None:
        """Return the class probabilities."""
        return self.forward(scores)

    def score_at(self, p: float, i: int) -> float:
        """Return the least score for the second class; the first has at least `p` below the least that is too much."""
        assert self.back is not None
        return self.back(p if i == 1 else float(np.nextafter(1.0 - p, np.inf)))

    def second_form(self, score: Form) -> Form | None:
        """Return the curve of a bend that is known, or of a sigmoid of another slope."""
        bend = _bend_of(self.forward)
        if bend is not None:
            return Curve(score, (bend,))
        slope = _sigmoid_slope(self.forward)
        return None if slope is None else Curve(combine(score, np.array([[slope]])), (SIGMOID,))

    def refusal(self, n_classes: int) -> str:
        """Say that the scores are bent one by one."""
        if self.askable:
            return super().refusal(n_classes)
        return f"bends the scores of its {n_classes} classes one by one: no threshold on them is a probability."


@dataclass(frozen=True)
class ValueLink(NoLink):
    """An increasing function from the score of a regression model to its prediction.

    Attributes
    ----------
    forward
        Scores -> predictions, one column.
    back
        The least score at which the prediction is at least a given value; None: the interval is one of the score.
    """

    forward: Function
    back: Callable[[float], float] | None

    def value(self, scores: FloatArray) -> FloatArray:
        """Return the prediction."""
        return self.forward(scores)[:, 0]

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """Return from the least score that is enough to the least that is too much."""
        if self.back is None:
            return low, high
        first = self.back(low) if np.isfinite(low) else -np.inf
        return first, self.back(float(np.nextafter(high, np.inf))) if np.isfinite(high) else np.inf

    def value_form(self, score: Form) -> Form | None:
        """Return the curve, where its curvature is known."""
        bend = _BENDS.get(self.forward) or _bend_of(self.forward)
        return None if bend is None else Curve(score, (bend,))


def _bend_of(function: object) -> Bend | None:
    return function.bend if isinstance(function, Bending) else None


def _sigmoid_slope(link: Function) -> float | None:
    """Return ``a`` when a link is ``1 / (1 + exp(-a s))``, judged by its values."""
    s = _COMPARED
    p = link(s[:, None])[:, 1]
    a = float(np.log(p[-1]) - np.log1p(-p[-1])) / s[-1] if 0.0 < p[-1] < 1.0 else np.nan
    return a if np.allclose(p, SIGMOID(a * s), **SAME_POINT) else None
