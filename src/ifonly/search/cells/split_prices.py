"""Lagrangian bound of the relaxation of a forest over cells: prices of splits, by which trees and features come apart.

In the relaxation of a forest (Misic 2020) each tree picks a leaf and each feature a cell, and a row per split of a tree says
that a leaf below (above) its cut needs a cell below (above) it. With a price for each of these rows, and a price ``mu`` for
the budget, the rows move into the objective: a leaf pays the prices of the splits that it lies below or above of, a cell
receives them, and what is left falls apart into trees and features. For any prices that are not negative,

    mu (budget - elsewhere) + sum over trees max (value of a leaf - what it pays)
                            + sum over features max (what a cell receives - mu cost)

is at least the score of any point of the part that costs at most the budget; with all prices 0 it is the bound that
`splitting` begins with. Where at most so many features may change, the second sum takes the largest gains of so many changes.
Several goals, one per rival of a class, are weighed: with weights that are not negative, whoever meets all goals meets the
weighted sum of them, so the value of a leaf is the weighted sum of its values, and what it must reach that of the needs.
Prices and weights are improved by a subgradient method (`improving`); those of a part are the first ones of its children.

A sum of floats is off by at most its number of roundings times the sizes of its terms. Each payment is a sum of at most
the cells of a number, added up over numbers; each receipt one of at most the trees and twice the cells; these are added up
over trees and features; and weighing takes a product and a sum per goal, of weights that add up to 1. The sizes are those of
the values and, where goals are weighed, of the needs, four times the prices (each is paid and received, and received once
more in the gain of a change), and twice the costs. `Method.error` is twice that number of roundings, so a bound that misses
the goal by more than its `rounding` proves that the goal is missed.

This is the twin of `_prices_bound.h`: the same operations in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, ldexp
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.runtime.tuning import PriceSearch
from ifonly.search.cells.cost_tables import CellCosts
from ifonly.search.cells.grids import Grid, Part
from ifonly.search.cells.sums import Sums
from ifonly.tolerances import PRICE_ROUNDINGS, SPACING

__all__ = ["Bound", "Method", "PriceTables", "Prices"]

BoolArray = npt.NDArray[np.bool_]


class Method(NamedTuple):
    """Numbers of the subgradient method, and of its arithmetic."""

    first_steps: int  # for the whole
    steps: int  # for a part
    at_once: int  # of them, before the clock is looked at
    patience: int  # steps without progress after which they become shorter
    round_every: int  # steps between two points that are looked at
    tries: int  # points that are tried on the way home of one of them
    counted: int  # last steps whose best leaves tell where to split, at most
    momentum: float  # share of the direction before
    stretch: float  # of a step beyond where the goal would be missed if the bound were linear
    shorter: float  # the factor by which steps become shorter
    error: float  # of a sum, as a share of the size of all terms
    beyond: float  # by how much the goal should be missed
    unit: float  # of prices that are kept for a proof
    weight_unit: float  # of the weights of goals, in which all of them weigh about as much as all trees

    @classmethod
    def of(cls, tuning: PriceSearch, grid: Grid, values: FloatArray, tree: IntArray) -> Method:
        """Return the method for a grid, and the values and trees of the leaves that are open in it."""
        heads = np.flatnonzero(np.diff(tree, prepend=-1))
        trees, goals = len(heads), values.shape[1]
        longest = int(grid.size.max(initial=0))
        roundings = trees + 2 * longest + 2 * (len(grid.numbers) + len(grid.categories)) + PRICE_ROUNDINGS
        roundings += goals + 2 if goals > 1 else 0
        leaves = max(len(tree), 1)
        at_once = int(min(max(tuning.work_at_once // leaves, tuning.least_at_once), tuning.first_steps))
        first = int(min(max(tuning.first_work // leaves, at_once), tuning.first_steps))
        largest = float(np.abs(values).max(initial=0.0))
        spread = tuning.weight_share * float(np.maximum.reduceat(np.abs(values).max(axis=1), heads).sum())
        square = spread * spread
        return cls(
            first_steps=first,
            steps=tuning.steps,
            at_once=at_once,
            patience=tuning.patience,
            round_every=tuning.round_every,
            tries=max(tuning.round_work // max(trees, 1), 1),
            counted=tuning.counted,
            momentum=tuning.momentum,
            stretch=tuning.stretch,
            shorter=tuning.shorter,
            error=2.0 * roundings * 0.5 * SPACING,
            beyond=tuning.beyond * largest * trees,
            unit=ldexp(1.0, frexp(tuning.kept_unit * largest)[1] - 1),
            weight_unit=1.0 / square if square > 0.0 else 1.0,
        )


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of the active splits of a part, and of its budget, and the weights of goals."""

    mu: float
    weights: FloatArray
    split: IntArray
    below: FloatArray
    above: FloatArray


@dataclass(frozen=True, eq=False)
class Bound:
    """Bound of the score of a part, with what it is made of.

    Attributes
    ----------
    value, rounding
        The bound, and by how much it may be off.
    need
        What it must reach: the weighted sum of the goals.
    worth
        Worth of each leaf of the list.
    tops, best
        Per tree: the largest of these, and its leaf.
    cells
        Worth of each cell.
    base, taken
        Per feature, numbers first: worth of staying (of the best change, where it cannot stay), and the gain of a change.
    least_taken, next_gain
        Where no more may change: the least gain that was taken; the largest that was not.
    chosen
        Per feature: the cell or entry that this takes.
    is_missed
        Whether this proves that no point of the part reaches the goal.
    """

    value: float
    rounding: float
    need: float
    worth: FloatArray
    tops: FloatArray
    best: IntArray
    cells: FloatArray
    base: FloatArray
    taken: FloatArray
    least_taken: float
    next_gain: float
    chosen: IntArray
    is_missed: bool


class PriceTables:
    """Splits of all trees in the order of tree, number and cell, and those that each leaf begins and ends at."""

    def __init__(
        self,
        grid: Grid,
        sums: Sums,
        order: IntArray,
        most: int,
        error: float,
    ) -> None:
        tree, need = sums.tree, sums.need
        self.grid, self.values, self.need, self.most, self.error = grid, sums.values, need, most, error
        self.lattice = sums.lattice
        self.tree_of = np.full(len(tree), -1)
        self.tree_of[order] = np.cumsum(np.diff(tree[order], prepend=-1) != 0) - 1
        self.n_trees = int(self.tree_of.max()) + 1
        self._tabulate_splits(order)
        heads = np.flatnonzero(np.diff(self.tree_of[order], prepend=-1))
        self.size_of_values = float(np.maximum.reduceat(np.abs(self.values[order]).max(axis=1), heads).sum())
        self.size_of_needs = float(np.abs(need).max()) if len(need) > 1 else 0.0
        self.charged, self.size_of_costs = grid.costs, _size_of(grid.costs)

    def charge_most(self, part: Part) -> None:
        """Charge by the table by which a part costs most at least: it is the one that is likely to close it."""
        tables = self.grid.tables
        if len(tables) > 1:
            self.charged = max(tables, key=lambda table: table.bound(part))
            self.size_of_costs = _size_of(self.charged)

    def _tabulate_splits(self, order: IntArray) -> None:
        grid, n = self.grid, len(self.grid.cost)
        begin, end = grid.begin[:, order], grid.end[:, order]
        ends, begins = end < (grid.size - 1)[:, None], begin > 0
        asks = ends | begins
        at, k = np.nonzero(asks.T)
        # The numbers that most leaves of a tree ask for come first: there its leaves have most in common.
        tree = self.tree_of[order]
        count = np.add.reduceat(asks, np.flatnonzero(np.diff(tree, prepend=-1)), axis=1, dtype=np.int64)
        turn = np.lexsort((k, -count[k, tree[at]], at))
        at, k = at[turn], k[turn]
        keys = self.tree_of[order[at]] * n + grid.first[k]
        pairs = np.stack(
            [np.where(ends[k, at], keys + end[k, at], -1), np.where(begins[k, at], keys + begin[k, at] - 1, -1)]
        )
        known = np.unique(pairs)
        known = known[known >= 0]
        self.split_tree, cell = known // max(n, 1), known % max(n, 1)
        self.split_number = grid.number_of[cell]
        self.split_cell = cell - grid.first[self.split_number]
        # Per leaf, number by number: the split at which it ends, then the one at which it begins; the last of all: none.
        places = np.where(pairs >= 0, np.searchsorted(known, pairs), len(known))
        self.entry = places.T.ravel()
        count = np.zeros(len(self.tree_of), dtype=np.int64)
        np.add.at(count, order[at], 2)
        self.entry_count = count
        first = np.zeros(len(self.tree_of), dtype=np.int64)
        first[order] = np.cumsum(count[order]) - count[order]
        self.entry_first = first
        self.is_end = np.tile([True, False], len(at))

    def whole(self) -> Prices:
        """Return all splits at a price of 0, and goals that weigh the same."""
        n, goals = len(self.split_tree), len(self.need)
        return Prices(0.0, np.full(goals, 1.0 / goals), np.arange(n), np.zeros(n), np.zeros(n))

    def active(self, prices: Prices, part: Part, leaves: IntArray, *, every: bool = False) -> Prices:
        """Return the prices of splits inside the ranges of a part, of trees that are not decided.

        Unless `every` one is asked for, prices of splits at which no open leaf ends or begins move on, `below` to the next
        split below and `above` to the next one above: the same leaves pay them there, and fewer cells receive them.
        """
        k, cell = self.split_number[prices.split], self.split_cell[prices.split]
        count = np.bincount(self.tree_of[leaves], minlength=self.n_trees)
        keep = (cell >= part.low[k]) & (cell < part.high[k]) & (count[self.split_tree[prices.split]] > 1)
        split, below, above = prices.split[keep], prices.below[keep], prices.above[keep]
        if every:
            return Prices(prices.mu, prices.weights, split, below, above)
        met = self._met(leaves)[split]
        kept, before = np.flatnonzero(met), np.cumsum(met)
        key = self.split_tree[split] * (len(self.grid.numbers) + 1) + self.split_number[split]
        below = _moved(below, before - 1, key, key[kept])
        above = _moved(above, before - met, key, key[kept])
        return Prices(prices.mu, prices.weights, split[kept], below, above)

    def _met(self, leaves: IntArray) -> BoolArray:
        """Return the splits at which some of these leaves end or begin."""
        met = np.zeros(len(self.split_tree) + 1, dtype=np.bool_)
        met[self.entry[self._entries(leaves)]] = True
        return met[:-1]

    def _entries(self, leaves: IntArray) -> IntArray:
        """Return the entries of leaves, one leaf after the other."""
        count = self.entry_count[leaves]
        ends = np.cumsum(count)
        return np.asarray(np.repeat(self.entry_first[leaves] - (ends - count), count) + np.arange(int(ends[-1])))

    # -- the bound ----------------------------------------------------------------------------------------------
    def bound(self, part: Part, leaves: IntArray, prices: Prices, allowance: float) -> Bound:
        """Return the bound of a part in which these leaves are open; `allowance`: of the budget, 0 if there is none."""
        cells, base, gain, chosen, other = self._features(part, prices)
        taken, chosen, least_taken, next_gain = self._gains(part, gain, chosen, other)
        worth = _weighted(prices.weights, self.values[leaves]) - self._paid(prices, leaves)
        tree = self.tree_of[leaves]
        heads = np.flatnonzero(np.diff(tree, prepend=-1))
        tops = np.maximum.reduceat(worth, heads)
        hits = np.flatnonzero(worth == np.repeat(tops, np.diff(heads, append=len(leaves))))
        best = leaves[hits[np.diff(tree[hits], prepend=-1) != 0]]
        total = float(prices.below.sum()) + float(prices.above.sum())
        size = (
            (self.size_of_values + self.size_of_needs)
            + 4.0 * total
            + 2.0 * (prices.mu * (self.size_of_costs + abs(allowance)))
        )
        value = float(base.sum()) + float(taken.sum()) + float(tops.sum()) + prices.mu * allowance
        error, need = self.error * size, float(_weighted(prices.weights, self.need[None, :])[0])
        missed = value < need - error
        if self.lattice is not None:
            behind = self.lattice.behind(np.repeat(tops, np.diff(heads, append=len(leaves))), worth, leaves)
            missed = missed or self.lattice.is_missed(value, behind, need, error)
        return Bound(value, error, need, worth, tops, best, cells, base, taken, least_taken, next_gain, chosen, missed)

    def _paid(self, prices: Prices, leaves: IntArray) -> FloatArray:
        """Return what each leaf pays: running sums of prices along each number of each tree, added up over the numbers."""
        n = len(self.split_tree)
        below, above = np.zeros(n + 1), np.zeros(n + 1)
        if len(prices.split):
            key = self.split_tree[prices.split] * (len(self.grid.numbers) + 1) + self.split_number[prices.split]
            heads = np.flatnonzero(np.diff(key, prepend=-1))
            length = np.diff(heads, append=len(key))
            row = np.repeat(np.arange(len(heads)), length)
            column = np.arange(len(key)) - heads[row]
            table = np.zeros((len(heads), int(length.max())))
            table[row, column] = prices.above
            above[prices.split] = table.cumsum(axis=1)[row, column]
            table[:] = 0.0
            back = length[row] - 1 - column
            table[row, back] = prices.below
            below[prices.split] = table.cumsum(axis=1)[row, back]
        count, at = self.entry_count[leaves], self._entries(leaves)
        pays = np.where(self.is_end[at], below[self.entry[at]], above[self.entry[at]])
        return np.bincount(np.repeat(np.arange(len(leaves)), count), pays, len(leaves)).astype(np.float64, copy=False)

    def _features(self, part: Part, prices: Prices) -> tuple[FloatArray, FloatArray, FloatArray, IntArray, IntArray]:
        """Return the worth of cells and, per feature: of staying, the gain of a change, and what these take."""
        grid = self.grid
        at = grid.first[self.split_number[prices.split]] + self.split_cell[prices.split]
        below = np.bincount(at, prices.below, len(grid.cost))
        above = np.bincount(at, prices.above, len(grid.cost))
        cells = np.zeros(len(grid.cost))
        n = len(grid.numbers) + len(grid.categories)
        base, gain = np.zeros(n), np.zeros(n)
        chosen, other = np.full(n, -1), np.full(n, -1)
        for k in range(len(grid.numbers)):
            here = slice(int(grid.first[k] + part.low[k]), int(grid.first[k] + part.high[k]) + 1)
            worth = below[here][::-1].cumsum()[::-1] - prices.mu * self.charged.cost[here]
            worth[1:] += above[here].cumsum()[:-1]
            cells[here] = worth
            home = int(grid.unchanged[k] - part.low[k])
            stays = 0 <= home < len(worth)
            changes = worth.copy()
            if stays:
                changes[home] = -np.inf
            best = int(changes.argmax()) if (changes > -np.inf).any() else -1
            top = changes[best] if best >= 0 else -np.inf
            other[k] = best + part.low[k] if best >= 0 else -1
            chosen[k] = grid.unchanged[k] if stays else other[k]
            base[k] = worth[home] if stays else top
            gain[k] = top - worth[home] if stays and top > worth[home] else 0.0
        levels = np.where(part.allowed, -(prices.mu * self.charged.level_cost), -np.inf)
        for c in range(len(grid.categories)):
            span, f = grid.span(c), len(grid.numbers) + c
            own = np.flatnonzero(grid.home[span] & part.allowed[span])
            changes = np.where(grid.home[span], -np.inf, levels[span])
            best = int(changes.argmax()) if (changes > -np.inf).any() else -1
            top = changes[best] if best >= 0 else -np.inf
            other[f] = best + span.start if best >= 0 else -1
            chosen[f] = own[-1] + span.start if own.size else other[f]
            base[f] = levels[chosen[f]] if own.size else top
            gain[f] = top - base[f] if own.size and top > base[f] else 0.0
        return cells, base, gain, chosen, other

    def _gains(
        self, part: Part, gain: FloatArray, chosen: IntArray, other: IntArray
    ) -> tuple[FloatArray, IntArray, float, float]:
        """Return the gains that are taken, the largest ones if only so many features may change, and what that takes."""
        away = np.concatenate(self.grid.changed(part))
        room = self.most - self.grid.changed_elsewhere - int(away.sum())
        if int((gain > 0.0).sum()) <= room:
            return gain.copy(), np.where(gain > 0.0, other, chosen), 0.0, 0.0
        first = np.argsort(-gain, kind="stable")[:room]
        taken, chosen = np.zeros(len(gain)), chosen.copy()
        taken[first], chosen[first] = gain[first], other[first]
        left = np.where(taken == 0.0, gain, 0.0)
        return taken, chosen, float(taken[first].min(initial=np.inf)) if room > 0 else 0.0, float(left.max())

    # -- one step -----------------------------------------------------------------------------------------------
    def ways(self, prices: Prices, bound: Bound) -> tuple[IntArray, IntArray]:
        """Return against which way each price should go: a leaf below a cut and a cell above it make `below` grow."""
        k, cell = self.split_number[prices.split], self.split_cell[prices.split]
        leaf = bound.best[self.split_tree[prices.split]]
        is_below, is_above = self.grid.end[k, leaf] <= cell, self.grid.begin[k, leaf] > cell
        here = bound.chosen[k] <= cell
        return is_below.astype(np.int64) - here, is_above.astype(np.int64) - ~here

    def slacks(self, bound: Bound) -> FloatArray:
        """Return by how much the best leaves clear each of several goals."""
        return np.asarray(self.values[bound.best].sum(axis=0) - self.need)

    def costs(self, chosen: IntArray) -> float:
        """Return the cost of cells and levels by the table that is charged."""
        return self.costs_by(self.charged, chosen)

    def costs_by(self, table: CellCosts, chosen: IntArray) -> float:
        """Return the cost of cells and levels by any table."""
        n = len(self.grid.numbers)
        return float(np.concatenate([table.cost[self.grid.first + chosen[:n]], table.level_cost[chosen[n:]]]).sum())


def _moved(prices: FloatArray, to: IntArray, key: IntArray, kept: IntArray) -> FloatArray:
    """Return the prices of splits that are kept, with those that move to them; those that find none of their own are lost."""
    fine = (to >= 0) & (to < len(kept))
    fine[fine] = kept[to[fine]] == key[fine]
    return np.bincount(to[fine], prices[fine], len(kept)).astype(np.float64, copy=False)


def _size_of(table: CellCosts) -> float:
    """Return the largest costs of a table, added up one after the other."""
    total = 0.0
    for size in (*table.dearest.tolist(), *table.level_cost.tolist()):
        total += size
    return total


def _weighted(weights: FloatArray, of_goals: FloatArray) -> FloatArray:
    """Return weighted sums over the last axis, added up goal by goal."""
    if len(weights) == 1:
        return np.asarray(of_goals[:, 0])
    out = np.zeros(len(of_goals))
    for g, weight in enumerate(weights.tolist()):
        out += weight * of_goals[:, g]
    return out
