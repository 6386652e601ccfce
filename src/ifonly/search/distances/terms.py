"""Terms of a covering problem: costs and rows that are sums over single features, piece by piece.

    min sum_j c_j(x_j)   subject to   sum_j g_ij(x_j) >= b_i  for every row i,   x in a box.

A row is a distance that is to be kept, a number of changes, or a linear score. Between two neighbouring breakpoints of a
number (its factual value, the values of the points that a distance is kept from, the knots of its costs) all ``g_ij`` are
linear and ``c_j`` is linear or a convex square; a level is a point, and so is the factual value, where no change is paid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric, Schema
from ifonly.question.costs import Costs
from ifonly.question.separation import Separation

__all__ = ["Row", "Terms"]

BoolArray = npt.NDArray[np.bool_]
_DOUBLE = np.dtype("float64")


@dataclass(frozen=True, eq=False)
class Row:
    """A covering row: ``sum_j rate_j |x_j - at_j| + slope_j (x_j - hat_j) + change [x_j != hat_j] + levels >= least``.

    Attributes
    ----------
    rate, at, slope
        Per feature.
    levels
        Per entry of the canonical vector.
    change
        What every change of a number adds.
    size
        Of the terms that `least` was summed from.
    """

    rate: FloatArray
    at: FloatArray
    slope: FloatArray
    levels: FloatArray
    least: float
    change: float = 0.0
    size: float = 0.0

    @classmethod
    def apart(cls, schema: Schema, separation: Separation) -> Row:
        """Return the row of a distance that is to be kept."""
        at = separation.point[np.asarray(schema.starts)]
        rate = np.where(np.isnan(at), 0.0, separation.rate)  # what is missing stays missing
        return cls(rate, np.nan_to_num(at), np.zeros(len(schema)), separation.levels, separation.least)

    @classmethod
    def count(cls, schema: Schema, factual: FloatArray, most: int) -> Row:
        """Return the row of at most so many changes: each of them takes one."""
        none, levels = np.zeros(len(schema)), -(factual == 0.0).astype(np.float64)
        levels[schema.number_starts] = 0.0
        return cls(none, none, none, levels, -float(most), change=-1.0)

    @classmethod
    def linear(cls, schema: Schema, factual: FloatArray, slope: FloatArray, constant: float) -> Row:
        """Return the row ``slope @ u + constant >= 0``."""
        none, own, levels = np.zeros(len(schema)), np.zeros(len(schema)), slope.copy()
        places, numbers = schema.number_starts, schema.numeric
        own[numbers], levels[places] = slope[places], 0.0
        parts = slope[places] * factual[places]
        size = float(np.abs(parts).sum() + abs(constant))
        return cls(none, none, own, levels, -float(parts.sum() + constant), size=size)


class Terms:
    """Costs and rows over the features that count in some row, in tables.

    Attributes
    ----------
    numbers, categories
        The features that count.
    steps, coarse
        Of the numbers' grids, infinity if there is none; whether a column without one holds fewer digits than a float64.
    rate, at, slope
        Of the rows, shape (rows, numbers).
    change, least, size
        Per row.
    counts
        Whether a row is one of whole numbers, which no rounding blurs.
    squares
        Whether some number has a cost with a square.
    breaks
        Breakpoints of each number, the first one again where there are fewer; shape (numbers, breakpoints).
    entry, level_cost, level_rows
        Entries of each category (-1: none), their costs, and what they add to rows; shapes (categories, width) and
        (rows, categories, width).
    width
        Columns of a table with all candidates of a feature.
    """

    def __init__(
        self, schema: Schema, factual: FloatArray, costs: Costs, rows: Sequence[Row], missing: BoolArray
    ) -> None:
        self.schema, self.n_rows = schema, len(rows)
        self.change, self.least, self.size = (
            np.array([getattr(row, name) for row in rows]) for name in ("change", "least", "size")
        )
        self.counts = np.array([row.change != 0.0 and not (row.rate.any() or row.slope.any()) for row in rows])
        is_number = np.array([isinstance(feature, Numeric) for feature in schema.features])
        looks = np.any([(row.rate != 0.0) | (row.slope != 0.0) | (row.change != 0.0) for row in rows], axis=0)
        self.numbers: IntArray = np.flatnonzero(looks & is_number & ~missing)
        told = np.any([row.levels != 0.0 for row in rows], axis=0)
        some = np.logical_or.reduceat(told, schema.starts)
        self.categories: IntArray = np.flatnonzero(some & ~is_number & ~missing)
        self._tabulate_numbers(factual, costs, rows)
        widest = max((schema.features[j].width for j in self.categories), default=0)
        self.width = max(self.breaks.shape[1] + 3, widest)
        self._tabulate_levels(factual, costs, rows)

    def _tabulate_numbers(self, factual: FloatArray, costs: Costs, rows: Sequence[Row]) -> None:
        own = self.numbers
        self.starts = np.asarray(self.schema.starts)[own]
        self.hat = factual[self.starts]
        features = [self.schema.features[int(j)] for j in own]
        kinds = [feature.dtype for feature in features if isinstance(feature, Numeric)]
        # infinity without a grid: every value is a multiple of it
        self.steps = np.array([self.schema.steps[int(j)] or np.inf for j in own])
        self.coarse = np.isinf(self.steps) & np.array([kind != _DOUBLE for kind in kinds], dtype=np.bool_)
        self.rate, self.at, self.slope = (
            np.array([getattr(row, name)[own] for row in rows]).reshape(len(rows), len(own))
            for name in ("rate", "at", "slope")
        )
        self.linear, self.square, self.price = (part[own] for part in (costs.linear, costs.square, costs.price))
        self.squares = bool((self.square > 0.0).any())
        self.curves = {k: costs.curves[int(j)] for k, j in enumerate(own) if int(j) in costs.curves}
        breaks = []
        for k, hat in enumerate(self.hat):
            knots = self.curves[k].at + hat if k in self.curves else np.empty(0)
            breaks.append(np.concatenate([[hat], self.at[self.rate[:, k] != 0.0, k], knots]))
        most = max((len(b) for b in breaks), default=1)
        filled = [np.concatenate([b, np.full(most - len(b), b[0])]) for b in breaks]
        self.breaks = np.array(filled).reshape(len(own), most)

    def _tabulate_levels(self, factual: FloatArray, costs: Costs, rows: Sequence[Row]) -> None:
        shape = len(self.categories), self.width
        self.entry = np.full(shape, -1)
        self.level_cost = np.full(shape, np.inf)
        self.level_rows = np.zeros((self.n_rows, *shape))
        for c, j in enumerate(self.categories):
            part = self.schema.slice(int(j))
            n = part.stop - part.start
            self.entry[c, :n] = np.arange(part.start, part.stop)
            self.level_cost[c, :n] = costs.level_costs(self.schema, int(j), factual)
            self.level_rows[:, c, :n] = [row.levels[part] for row in rows]

    # -- numbers ------------------------------------------------------------------------------------------------
    def moved_cost(self, x: FloatArray, which: IntArray | slice = slice(None)) -> FloatArray:
        """Return the cost of values of numbers, shape (numbers, values), as changes: the price of one is part of it."""
        moved = x - self.hat[which, None]
        size = np.abs(moved)
        costs = self.linear[which, None] * size + self.square[which, None] * size**2 + self.price[which, None]
        for at, k in enumerate(np.arange(len(self.numbers))[which]):
            if k in self.curves:
                costs[at] += self.curves[k](moved[at])
        return np.asarray(costs)

    def moved_rows(self, x: FloatArray, which: IntArray | slice = slice(None)) -> FloatArray:
        """Return what these values add to each row, as changes; shape (rows, numbers, values)."""
        away = self.rate[:, which, None] * np.abs(x[None] - self.at[:, which, None])
        along = self.slope[:, which, None] * (x - self.hat[which, None])[None]
        return np.asarray(away + along + self.change[:, None, None])

    @property
    def home_rows(self) -> FloatArray:
        """Amounts that factual values add to each row, shape (rows, numbers)."""
        return np.asarray(self.rate * np.abs(self.hat - self.at))
