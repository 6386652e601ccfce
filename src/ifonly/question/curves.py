"""Cost curves: what a change of one number costs, linear between the knots of a table."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.forms.bends import Broken, chain
from ifonly.program.mip import Affine
from ifonly.question.program import Program
from ifonly.tolerances import CHAINED_ROUNDING, DUST, ROUNDING

__all__ = ["CostCurve"]


@dataclass(frozen=True, eq=False)
class CostCurve:
    """A piecewise-linear cost of the change ``d = x_j - xhat_j``: 0 at 0, and never less for more in the same direction.

    Attributes
    ----------
    at, value
        The knots, ascending, 0 among them; beyond the outer ones the last slopes go on.
    """

    at: FloatArray
    value: FloatArray

    @classmethod
    def through(cls, at: FloatArray, value: FloatArray) -> CostCurve:
        """Return the curve through points in any order; 0 costs nothing."""
        table = dict(zip(map(float, at), map(float, value), strict=True)) | {0.0: 0.0}
        knots = np.array(sorted(table))
        return cls(knots, np.array([table[float(d)] for d in knots]))

    def __call__(self, change: FloatArray) -> FloatArray:
        """Return the cost of changes."""
        d = np.asarray(change, dtype=np.float64)
        below, above = self._tails()
        inside = np.interp(d, self.at, self.value)
        return np.asarray(inside + below * np.maximum(self.at[0] - d, 0.0) + above * np.maximum(d - self.at[-1], 0.0))

    def _tails(self) -> tuple[float, float]:
        """Return the cost of a unit beyond the outer knots, down and up; 0 on a side that has none."""
        slopes = np.abs(np.diff(self.value) / np.diff(self.at))
        return (float(slopes[0]) if self.at[0] < 0 else 0.0), (float(slopes[-1]) if self.at[-1] > 0 else 0.0)

    def __add__(self, other: CostCurve) -> CostCurve:
        at = np.union1d(self.at, other.at)
        return CostCurve(at, self(at) + other(at))

    def times(self, factor: float) -> CostCurve:
        """Return the curve with all costs multiplied."""
        return CostCurve(self.at, self.value * factor)

    def reach(self, budget: float) -> tuple[float, float]:
        """Return how far down and up a number can move for this much; infinity where nothing stops it."""
        below, above = self._tails()
        down = _inverse(-self.at[self.at <= 0][::-1], self.value[self.at <= 0][::-1], below, budget)
        return down, _inverse(self.at[self.at >= 0], self.value[self.at >= 0], above, budget)

    @property
    def rate(self) -> float:
        """The largest ``r`` with ``cost(d) >= r |d|`` for all changes: a linear bound from below."""
        moved = self.at != 0.0
        sides = [s for s, there in zip(self._tails(), (self.at[0] < 0, self.at[-1] > 0), strict=True) if there]
        one_sided = len(sides) < 2
        ratios = self.value[moved] / np.abs(self.at[moved])
        return 0.0 if one_sided or not ratios.size else float(min(ratios.min(), *sides)) * (1.0 - ROUNDING)

    # -- the program --------------------------------------------------------------------------------------------
    def expression(self, problem: Program, j: int) -> Affine:
        """Return an expression that is the cost of feature `j` at the optimum, and never less than it."""
        x, hat = problem.x, float(problem.query.factual[problem.query.schema.starts[j]])
        if not x.is_raw(j):
            return x.cell_table(j, self(x.cells(j).nearest(hat) - hat))
        low, high = float(problem.box.lower[j]) - hat, float(problem.box.upper[j]) - hat
        at = np.unique([low, high, *self.at[(self.at > low) & (self.at < high)]])
        if len(at) == 1:
            return Affine(constant=float(self(at)[0]))
        value, moved = self(at), x.raw(j) - hat
        slopes = np.diff(value) / np.diff(at)
        if (np.diff(slopes) >= 0.0).all():
            # Far from 0 a row ``slope x >= ...`` is off by the rounding of ``slope xhat``: the bound leaves room for it.
            room = DUST * float(value.max()) + CHAINED_ROUNDING * float(np.abs(slopes).max()) * abs(hat)
            cost = problem.mip.epigraph(float(value.max()) + room, name="cost")
            for (a, _), slope, v in zip(pairwise(at), slopes, value[:-1], strict=True):
                # cost >= v_i + slope_i (d - a_i): a convex curve lies above its pieces
                problem.mip.row(cost - moved * float(slope), lower=float(v - slope * a))
            return cost
        return chain(problem.mip, moved, Broken(at, value), at, name="cost")


def _inverse(away: FloatArray, value: FloatArray, tail: float, budget: float) -> float:
    """Return the largest ``t >= 0`` with a cost of at most `budget`, for knots ``away >= 0`` on one side."""
    if budget < 0.0:
        return -1.0
    k = int(np.searchsorted(value, budget, side="right"))
    if k == len(value):
        left = budget - float(value[-1])
        return float(away[-1]) + left / tail if tail > 0.0 else np.inf
    return float(np.interp(budget, value[k - 1 : k + 1], away[k - 1 : k + 1]))
