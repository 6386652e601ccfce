"""Surrogates of distances that are to be kept: tables of costs, cell by cell, in which no answer exceeds its own cost.

With any multipliers ``y >= 0`` of rows ``g_i(x) >= b_i``, every point that meets them has

    sum_j (c_j - sum_i y_i g_ij)(x_j) + sum_i y_i b_i  <=  sum_j c_j(x_j),

and the left side is a sum over single features, too. Near an earlier answer the objective says nothing: the answer itself is
the cheapest point there. Its surrogate charges for every step back to it. With a metric that is counted as the cost is, a
multiplier of 1 is often tight: going on by the distance costs as much as it gains, and going back costs twice.
"""

from __future__ import annotations

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.program.box import Box
from ifonly.search.cells.cost_tables import CellCosts
from ifonly.search.cells.grids import Grid
from ifonly.search.distances.candidates import Candidates, Region, least_on_pieces
from ifonly.search.distances.simplex import relaxed
from ifonly.search.distances.terms import Terms
from ifonly.search.reduce import Reducer
from ifonly.tolerances import ROUNDING, SHORT_SUM

__all__ = ["going_on", "tables"]


def going_on(terms: Terms, region: Region, row: int, dear: float, steps: int) -> FloatArray:
    """Return multipliers of one row, a distance from a point: its price where no change of that point is taken back."""
    at, far = terms.at[row], terms.rate[row] != 0.0
    low = np.where(far & (at > terms.hat), np.clip(at, region.low, region.high), region.low)
    high = np.where(far & (at < terms.hat), np.clip(at, region.low, region.high), region.high)
    allowed = region.allowed.copy()
    for c in range(len(terms.categories)):
        own, gains = terms.entry[c] >= 0, terms.level_rows[row, c]
        there = own & (gains == gains[own].min())
        if not terms.level_cost[c][there].min(initial=0.0) <= 0.0 and allowed[terms.entry[c][there]].any():
            allowed[terms.entry[c][own & ~there]] = False
    found = Candidates(terms, Region(low, high, allowed))
    y = np.zeros(terms.n_rows)
    if found.empty:
        return y
    top = float(found.costs[np.isfinite(found.costs)].max(initial=0.0)) or 1.0
    reach = float(np.abs(found.rows[row]).max(initial=0.0)) or 1.0
    own = slice(row, row + 1)
    mix = relaxed(found.costs, found.rows[own], terms.least[own], np.array([dear * top / reach]), steps)
    y[row] = mix.y[0] if mix.met else 0.0
    return y


def tables(terms: Terms, grid: Grid, box: Box, reducer: Reducer, multipliers: FloatArray) -> tuple[CellCosts, ...]:
    """Return a table per set of multipliers, shape (tables, rows)."""
    if not len(multipliers):
        return ()
    made = _Tabulating(terms, multipliers)
    place = {int(j): k for k, j in enumerate(terms.numbers)}
    cells: list[FloatArray] = []
    for k, j in enumerate(grid.numbers):
        here = slice(int(grid.first[k]), int(grid.first[k] + grid.size[k]))
        if j in place:
            cells.append(made.number(place[j], grid.lowest[here], grid.highest[here]))
        else:
            cells.append(np.repeat(grid.cost[None, here], len(multipliers), axis=0))
    levels = np.repeat(grid.level_cost[None], len(multipliers), axis=0)
    category = {int(j): c for c, j in enumerate(terms.categories)}
    for c, j in enumerate(grid.categories):
        if j in category:
            levels[:, grid.span(c)] = made.category(category[j])
    inside = {*grid.numbers, *grid.categories}
    for j in range(len(grid.schema)):
        if j in inside:
            continue
        if j in place:
            made.elsewhere += made.number(place[j], box.lower[[j]], box.upper[[j]])[:, 0]
        elif j in category:
            allowed = box.allowed[grid.schema.slice(j)]
            made.elsewhere += np.where(allowed, made.category(category[j]), np.inf).min(axis=1)
        else:
            made.elsewhere += reducer.forced_one(box, j)
    return tuple(_table(grid, [own[i] for own in cells], levels[i], float(made.total[i])) for i in range(len(levels)))


class _Tabulating:
    """Lagrangians of single features, for several sets of multipliers at once."""

    def __init__(self, terms: Terms, multipliers: FloatArray) -> None:
        self.terms, self.y = terms, multipliers
        self.elsewhere = multipliers @ terms.least
        self.size = multipliers @ np.abs(terms.least)

    @property
    def total(self) -> FloatArray:
        """Everything that belongs to no cell, lowered by what all sums may be off by."""
        return np.asarray(self.elsewhere - ROUNDING * self.size - SHORT_SUM * (self.y @ self.terms.size))

    def number(self, k: int, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the least of a number in each of some intervals, shape (multipliers, intervals)."""
        terms, ends = self.terms, np.stack([low, high], axis=1)
        x = np.concatenate([np.clip(terms.breaks[k], low[:, None], high[:, None]), ends], axis=1)
        x.sort(axis=1)
        which = np.array([k])
        flat = x.reshape(1, -1)
        cost = terms.moved_cost(flat, which).reshape(x.shape)
        rows = terms.moved_rows(flat, which).reshape(terms.n_rows, *x.shape)
        worth = cost[None] - np.tensordot(self.y, rows, axes=1)
        least = worth.min(axis=2)
        if terms.square[k] > 0.0:
            square = np.full((len(x), 1), terms.square[k])
            least = np.minimum(least, [least_on_pieces(own, x, square)[0] for own in worth])
        home = -(self.y @ terms.home_rows[:, k])
        inside = (low <= terms.hat[k]) & (terms.hat[k] <= high)
        stays = inside & (low == high)
        self.size = self.size + np.abs(cost).max() + self.y @ np.abs(rows).max(axis=(1, 2))
        least = np.where(inside, np.minimum(least, home[:, None]), least)
        return np.asarray(np.where(stays, home[:, None], least))

    def category(self, c: int) -> FloatArray:
        """Return the Lagrangian of each level of a category, shape (multipliers, levels)."""
        terms = self.terms
        own = terms.entry[c] >= 0
        cost, rows = terms.level_cost[c][own], terms.level_rows[:, c][:, own]
        self.size = self.size + np.abs(cost).max() + self.y @ np.abs(rows).max(axis=1)
        return np.asarray(cost[None] - self.y @ rows)


def _table(grid: Grid, cells: list[FloatArray], levels: FloatArray, elsewhere: float) -> CellCosts:
    """Return a table of what rises to both sides of the least cell and is nowhere above, and of what is never below 0."""
    risen, cheapest = [], []
    for own in cells:
        at = int(own.argmin())
        up = np.minimum.accumulate(own[at:][::-1])[::-1]
        down = np.minimum.accumulate(own[: at + 1])[:-1]
        risen.append(np.concatenate([down, up]) - own[at])
        cheapest.append(at)
        elsewhere += float(own[at])
    levels = levels.copy()
    for c in range(len(grid.categories)):
        least = float(levels[grid.span(c)].min())
        levels[grid.span(c)] -= least
        elsewhere += least
    return CellCosts(grid.layout, risen, np.array(cheapest, dtype=np.int64), levels, elsewhere)
