"""The median form: the weighted median of the scores of a form."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.forms.around import Around
from ifonly.models.forms.compose import for_budget, score_bounds
from ifonly.models.forms.propagate import Bounds, Budget
from ifonly.models.forms.ties import AwayFromTies
from ifonly.program.box import Box
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip
from ifonly.tolerances import near_a_tie

__all__ = ["Median"]


@dataclass(frozen=True, eq=False)
class Median(AwayFromTies, Around):
    """``m``, the least score with ``sum_i w_i [s_i <= m] >= 1/2``, for weights that sum to 1.

    Then also ``sum_i w_i [s_i >= m] > 1/2``, and no other number has both: a number between two scores has weights on
    its sides that sum to 1. So the program needs no order of the scores, only 0/1 columns ``a_i, c_i`` with

        a_i = 1  =>  s_i >= m,        c_i = 1  =>  s_i <= m,        sum w_i a_i > 1/2,        sum w_i c_i >= 1/2,

    each implication one row, whose constant comes from the bounds of ``s_i`` and of ``m``.

    Attributes
    ----------
    inner
        The scores.
    weights
        One positive weight per score.
    level
        Which of the distances from ties is used; see `refined`.
    budget
        What all changes may cost in the program it is embedded in.
    """

    weights: FloatArray
    level: int = 0
    budget: Budget | None = None

    @property
    def n_outputs(self) -> int:
        """One."""
        return 1

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the medians of canonical rows."""
        return self.of_scores(self.inner(U))

    def of_scores(self, scores: FloatArray) -> FloatArray:
        """Return the medians of rows of scores."""
        order = np.argsort(scores, axis=1)
        reached = np.cumsum(self.weights[order], axis=1)
        middle = (reached >= 0.5 * reached[:, -1:]).argmax(axis=1)
        rows = np.arange(len(scores))
        return np.asarray(scores[rows, order[rows, middle]][:, None])

    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Add the median as a column, and for each score that may lie on either side of it, two 0/1 columns."""
        scores = self.inner.embed(mip, x)
        known = np.array([mip.bounds(score) for score in scores])
        low, high = score_bounds(self.inner, x.box, self.budget)
        low, high = np.maximum(low, known[:, 0]), np.minimum(high, known[:, 1])
        least, most = (float(self.of_scores(ends[None, :])[0, 0]) for ends in (low, high))
        median = mip.column(least, most, name="median")
        share = self.weights / self.weights.sum()
        above, below = Affine(), Affine()
        for score, a, b, w in zip(scores, low, high, share, strict=True):
            up = _implied(mip, score - median, float(a - most), float(b - least))
            down = _implied(mip, median - score, float(least - b), float(most - a))
            above, below = above + up * float(w), below + down * float(w)
        away = self.away
        # of equal weights, a sum above one half is half a weight above it: half of that is left to the solver
        beyond = max(away, 0.5 * (0.5 * float(share[0]))) if bool((share == share[0]).all()) else away
        # scores at or above the median have more than half of the weight
        mip.row(above, lower=0.5 + beyond)
        # scores at or below the median have at least half of the weight
        mip.row(below, lower=0.5 + away)
        return [median]

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return the medians of the bounds: a median never falls when a score rises."""
        low, high = score_bounds(self.inner, box, budget)
        return self.of_scores(low[None, :])[0], self.of_scores(high[None, :])[0]

    def for_budget(self, box: Box, budget: Budget) -> Median:
        """Return the median with bounds that hold within the budget."""
        return replace(self, inner=for_budget(self.inner, box, budget), budget=budget)

    def refined(self, u: FloatArray) -> Median | None:
        """Keep a greater distance from ties if `u` lies at one, and refine the inner form."""
        inner = self.inner.refined(u)
        scores, share = self.inner(u[None, :])[0], self.weights / self.weights.sum()
        middle = self.of_scores(scores[None, :])[0, 0]
        sides = np.array([share[scores < middle].sum(), share[scores <= middle].sum()])
        near = bool((np.abs(sides - 0.5) <= near_a_tie(self.away)).any())
        # Scores that are constant around a point are told apart by ruling the point out, which loses no other.
        level = self.next_level(near) if self.raw() else self.level
        if inner is None and level == self.level:
            return None
        return replace(self, inner=inner or self.inner, level=level)


def _implied(mip: Mip, gap: Affine, low: float, high: float) -> Affine:
    """Return a 0/1 expression that is 1 only if ``gap >= 0``, for a gap within ``[low, high]``."""
    if low >= 0.0:
        return Affine(constant=1.0)
    if high < 0.0:
        return Affine()
    side = mip.column(integer=True, name="side")
    # gap >= low (1 - side): at least 0 where side is 1
    mip.row(gap + side * low, lower=low)
    return side
