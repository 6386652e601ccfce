"""Candidates of a covering problem in a box: the points of each feature at which its Lagrangian can be least.

For any multipliers ``y >= 0`` of the rows, no point of the box that meets all of them costs less than

    sum_i y_i b_i + sum_j min over the box of (c_j - sum_i y_i g_ij),

and each minimum is taken at an end of a piece (or, where costs are squares, at the vertex of a parabola inside one): at the
ends of the box, at breakpoints, at the factual value, at a level. The sum is lowered by a bound of its rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.search.distances.terms import Terms
from ifonly.tolerances import ROUNDING, SHORT_SUM

__all__ = ["Candidates", "Region", "least_on_pieces"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Region:
    """A box of the features that count: ends of the numbers, and allowed entries of the canonical vector."""

    low: FloatArray
    high: FloatArray
    allowed: BoolArray

    def between(self, k: int, low: float | None = None, high: float | None = None) -> Region:
        """Return the part in which a number lies between other ends."""
        lows, highs = self.low.copy(), self.high.copy()
        lows[k] = self.low[k] if low is None else low
        highs[k] = self.high[k] if high is None else high
        return replace(self, low=lows, high=highs)

    def without(self, entries: BoolArray) -> Region:
        """Return the part without some entries."""
        return replace(self, allowed=self.allowed & ~entries)


class Candidates:
    """Candidates of all features in a region, what they cost and what they add to the rows.

    Attributes
    ----------
    values
        Of numbers, shape (numbers, columns): breakpoints and ends in their order, the factual value in the last column.
    costs
        Shape (features, columns), numbers before categories; infinity where there is no candidate.
    rows
        What they add, shape (rows, features, columns).
    """

    def __init__(self, terms: Terms, region: Region) -> None:
        self.terms, self.region = terms, region
        low, high = region.low[:, None], region.high[:, None]
        inner = terms.breaks.shape[1]
        values = np.empty((len(terms.numbers), terms.width))
        values[:, :inner], values[:, inner : inner + 1] = np.clip(terms.breaks, low, high), low
        values[:, inner + 1 :] = high
        values.sort(axis=1)
        costs, rows = terms.moved_cost(values), terms.moved_rows(values)
        home = (region.low <= terms.hat) & (terms.hat <= region.high)
        values[:, -1] = np.where(home, terms.hat, region.high)
        costs[:, -1] = np.where(home, 0.0, np.inf)
        rows[:, :, -1] = terms.home_rows
        costs[home & (region.low == region.high), :-1] = np.inf  # it stays
        levels = np.where((terms.entry >= 0) & region.allowed[terms.entry], terms.level_cost, np.inf)
        self.values = values
        self.costs = np.concatenate([costs, levels])
        self.rows = np.concatenate([rows, terms.level_rows], axis=1)
        self.pieces = terms.width - 1  # columns of numbers that are ends of pieces, in their order

    @property
    def empty(self) -> bool:
        """Whether a feature has no candidate, or some row cannot be met by the best candidates for it."""
        if not np.isfinite(self.costs).any(axis=1).all():
            return True
        most = np.where(np.isfinite(self.costs), self.rows, -np.inf).max(axis=2)
        room = ROUNDING * (np.abs(most).sum(axis=1) + np.abs(self.terms.least)) + SHORT_SUM * self.terms.size
        return bool((most.sum(axis=1) < self.terms.least - room).any())

    def worth(self, y: FloatArray) -> FloatArray:
        """Return the Lagrangian of each candidate."""
        return np.asarray(self.costs - np.tensordot(y, self.rows, axes=1))

    def least(self, y: FloatArray) -> FloatArray:
        """Return the least of each feature's Lagrangian in the region."""
        terms, worth = self.terms, self.worth(y)
        least = worth.min(axis=1)
        n = len(terms.numbers)
        if terms.squares:
            own = worth[:n, : self.pieces], self.values[:, : self.pieces], terms.square[:, None]
            least[:n] = np.minimum(least[:n], least_on_pieces(*own)[0])
        return np.asarray(least)

    def bound(self, y: FloatArray) -> float:
        """Return the Lagrangian bound of the region, safe in floating point."""
        held = np.where(np.isfinite(self.costs), np.abs(self.costs), 0.0).max(axis=1).sum()
        return float(self.least(y).sum() + y @ self.terms.least) - ROUNDING * float(held) - self._lost(y)

    def _lost(self, y: FloatArray) -> float:
        """Return by how much sums of rows may be off; counts are whole, and only multiplied by their price."""
        terms, finite = self.terms, np.isfinite(self.costs)
        lost = y * np.where(terms.counts, SHORT_SUM, ROUNDING)
        held = np.where(finite, np.tensordot(lost, np.abs(self.rows), axes=1), 0.0).max(axis=1).sum()
        return float(held + lost @ np.abs(terms.least) + SHORT_SUM * (y @ terms.size))

    def unmeetable(self, y: FloatArray) -> bool:
        """Whether multipliers prove that no point of the region meets all rows (Farkas): not even if it cost nothing."""
        worth = np.where(np.isfinite(self.costs), -np.tensordot(y, self.rows, axes=1), np.inf)
        return float(worth.min(axis=1).sum() + y @ self.terms.least) > self._lost(y)

    def add_vertices(self, y: FloatArray) -> None:
        """Add the least points inside of pieces as candidates, where costs are squares."""
        terms, n = self.terms, len(self.terms.numbers)
        own = self.worth(y)[:n, : self.pieces], self.values[:, : self.pieces], terms.square[:, None]
        x = least_on_pieces(*own)[1][:, None]
        stays = ~np.isfinite(self.costs[:n, :-1]).any(axis=1)
        costs = np.full((len(self.costs), 1), np.inf)
        rows = np.zeros((terms.n_rows, len(self.costs), 1))
        costs[:n], rows[:, :n] = terms.moved_cost(x), terms.moved_rows(x)
        costs[:n][stays] = np.inf
        self.values = np.concatenate([self.values, x], axis=1)
        self.costs = np.concatenate([self.costs, costs], axis=1)
        self.rows = np.concatenate([self.rows, rows], axis=2)


def least_on_pieces(worth: FloatArray, x: FloatArray, square: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least of functions that are parabolas between neighbouring points, and where: rows of two tables.

    With a second derivative of ``2 s``, the function on a piece ``[a, b]`` is its chord minus ``s (x - a) (b - x)``.
    """
    a, b, start = x[:, :-1], x[:, 1:], worth[:, :-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (worth[:, 1:] - start) / (b - a)
        at = np.clip(0.5 * (a + b) - slope / (2.0 * square), a, b)
        value = start + slope * (at - a) - square * (at - a) * (b - at)
    value = np.where(np.isfinite(value), value, np.inf)
    best = value.argmin(axis=1)[:, None]
    least, where = np.take_along_axis(value, best, 1)[:, 0], np.take_along_axis(at, best, 1)[:, 0]
    return least, np.where(np.isfinite(least), where, x[:, 0])
