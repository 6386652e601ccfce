"""Grid of a box: the cells and levels left of each feature, all in flat tables, and the cells at which each leaf ends.

Between two cuts that some leaf still uses, nothing changes but the cost; so a numeric feature is a row of cells, each worth
its point nearest to the factual, and costs rise to both sides of the cheapest cell. A categorical feature is a set of
levels. A part of the box is then a range of cells per number and a set of levels per category.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.models.forms.leaves import Leaves
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.question.trail import Ledger
from ifonly.search.cells.cost_tables import CellCosts, Layout, Part, joined, starts
from ifonly.search.reduce import Reducer
from ifonly.tolerances import DUST as _DUST

__all__ = ["Grid", "Part"]

BoolArray = npt.NDArray[np.bool_]


class Grid:
    """Flat tables of one question: numbers one after the other, cell by cell; categories entry by entry.

    Attributes
    ----------
    leaves
        What the box leaves open.
    numbers, categories
        The features that open leaves tell apart.
    first
        Offsets of the cells of each number in `cost`, `value`, `lowest` and `highest` (first and last admissible values).
    begin, end
        The first and the last cell that a leaf allows, shape (numbers, leaves).
    holds
        Whether a leaf allows a level, shape (entries, leaves).
    changed_elsewhere
        How many of all other features must change, because the box demands it.
    costs, surrogates
        What cells and levels cost; and other tables in which no answer may exceed the budget either.
    """

    def __init__(self, reducer: Reducer, box: Box, leaves: Leaves) -> None:
        self.schema, self.leaves = reducer.schema, leaves
        self.factual = reducer.query.factual
        self.numbers = [j for j in leaves.features if leaves.is_numeric[j]]
        self.categories = [j for j in leaves.features if not leaves.is_numeric[j]]
        cells, levels = self._tabulate_numbers(reducer, box), self._tabulate_levels(reducer, box)
        others = [j for j in range(len(self.schema)) if j not in leaves.features]
        elsewhere = float(sum(reducer.forced_one(box, j) for j in others))
        self.changed_elsewhere = sum(not box.contains_at(j, self.factual[None, :])[0] for j in others)
        # Staying is never dearer; where a change costs nothing, it still is a change.
        cheapest = np.where(self.unchanged >= 0, self.unchanged, [int(c.argmin()) for c in cells]).astype(np.int64)
        self.layout = Layout(self.first, self.entry_first, self.owner)
        self.costs = CellCosts(self.layout, cells, cheapest, levels, elsewhere)
        self.surrogates: tuple[CellCosts, ...] = ()

    # -- tables -------------------------------------------------------------------------------------------------
    def _tabulate_numbers(self, reducer: Reducer, box: Box) -> list[FloatArray]:
        """Tabulate cells, and return what the cells of each number cost."""
        leaves, n = self.leaves, len(self.numbers)
        costs, values, begins, ends = [], [], [], []
        self.begin = np.zeros((n, len(leaves.node)), dtype=np.int32)
        self.end = np.zeros((n, len(leaves.node)), dtype=np.int32)
        self.unchanged = np.full(n, -1)
        for k, j in enumerate(self.numbers):
            feature = self.schema.features[j]
            assert isinstance(feature, Numeric)
            hat = float(self.factual[self.schema.starts[j]])
            cells = Cells.of(feature, float(box.lower[j]), float(box.upper[j]), leaves.cuts[j])
            nearest = cells.nearest(hat)
            position = leaves.cuts[j].searchsorted(nearest, side="left")
            self.begin[k] = position.searchsorted(leaves.low_of[j], side="right")
            self.end[k] = position.searchsorted(leaves.high_of[j], side="right") - 1
            costs.append(reducer.separable.numeric(j, nearest - hat))
            values.append(nearest)
            begins.append(cells.low)
            ends.append(cells.high)
            same = np.flatnonzero(nearest == hat)
            if same.size:
                self.unchanged[k] = same[0]
        self.size = np.array([len(c) for c in costs], dtype=np.int64)
        self.first = starts(costs)
        self.value, self.highest, self.lowest = joined(values), joined(ends), joined(begins)
        self.number_of = np.repeat(np.arange(n), self.size)
        return costs

    def _tabulate_levels(self, reducer: Reducer, box: Box) -> FloatArray:
        """Tabulate entries, and return what they cost."""
        every = np.arange(self.schema.width)
        spans = [every[self.schema.slice(j)] for j in self.categories]
        self.entries = joined(spans).astype(np.int64)
        self.entry_first = starts(spans)
        self.owner = np.repeat(np.arange(len(spans)), [len(span) for span in spans])
        self.home = self.factual[self.entries] > 0
        self.holds = np.ascontiguousarray(self.leaves.levels[:, self.entries].T)
        self.open = box.allowed[self.entries]
        return reducer.separable.entries(self.schema, self.factual, self.entries)

    def span(self, c: int) -> slice:
        """Return where the entries of a category are."""
        first = int(self.entry_first[c])
        return slice(first, first + self.schema.features[self.categories[c]].width)

    def alive(self, part: Part, around: Part, leaves: IntArray) -> IntArray:
        """Return the leaves that are open in a part, of those in the part around it; only what is smaller is looked at."""
        for k in np.flatnonzero((part.low != around.low) | (part.high != around.high)):
            leaves = leaves[(self.begin[k][leaves] <= part.high[k]) & (self.end[k][leaves] >= part.low[k])]
        fewer = part.allowed != around.allowed
        for c in np.unique(self.owner[fewer]) if fewer.any() else ():
            span = self.span(int(c))
            leaves = leaves[self.holds[span][part.allowed[span]][:, leaves].any(axis=0)]
        return leaves

    def inhabited(self) -> BoolArray:
        """Whether some admissible value of each feature reaches a leaf."""
        some = np.asarray((self.begin <= self.end).all(axis=0))
        if self.entries.size:
            some &= np.logical_or.reduceat(self.holds & self.open[:, None], self.entry_first, axis=0).all(axis=0)
        return some

    def reached(self, part: Part, leaves: IntArray, most: int, budget: float) -> IntArray:
        """Return the leaves of a part in which some point costs no more than a budget and changes few enough features.

        Each leaf by itself: what its ranges cost beyond what the part costs anyway, and the numbers that cannot stay in it.
        """
        away, far = self.changed(part)
        room = most - self.changed_elsewhere
        if (budget == np.inf or not self.cost.any()) and room >= len(away) + len(far):
            return leaves  # of l-infinity, too: there cells cost nothing, and what the radius leaves out has no cells
        numbers, levels = self.least(part)
        paid = (self.elsewhere + float(numbers.sum())) + float(levels.sum())
        more, changes = np.zeros(len(leaves)), np.zeros(len(leaves), dtype=np.int64)
        for k in range(len(self.numbers)):
            low = np.maximum(self.begin[k][leaves], part.low[k])
            high = np.minimum(self.end[k][leaves], part.high[k])
            at = np.minimum(np.maximum(self.cheapest[k], low), high)
            more += self.cost[int(self.first[k]) + at] - numbers[k]
            if not away[k]:
                changes += (self.unchanged[k] < low) | (self.unchanged[k] > high)
        near = more <= budget - paid + _DUST * (abs(budget) + abs(paid))
        return leaves[near & (changes <= room - int(away.sum()) - int(far.sum()))]

    def whole(self) -> Part:
        """Return all of it."""
        return Part(np.zeros(len(self.numbers), dtype=np.int64), self.size - 1, self.open.copy())

    # -- costs --------------------------------------------------------------------------------------------------
    @property
    def cost(self) -> FloatArray:
        """Cost of each cell: that of its point nearest to the factual."""
        return self.costs.cost

    @property
    def cheapest(self) -> IntArray:
        """Cheapest cell of each number."""
        return self.costs.cheapest

    @property
    def level_cost(self) -> FloatArray:
        """Cost of each level."""
        return self.costs.level_cost

    @property
    def elsewhere(self) -> float:
        """Least cost of all features that open leaves do not tell apart."""
        return self.costs.elsewhere

    @property
    def tables(self) -> tuple[CellCosts, ...]:
        """The table of the objective, and those of surrogates: no answer within the budget exceeds it in any of them."""
        return (self.costs, *self.surrogates)

    def least(self, part: Part) -> tuple[FloatArray, FloatArray]:
        """Return the least that each number and each category must cost (infinity: nothing is left of a category)."""
        return self.costs.least(part)

    def changed(self, part: Part) -> tuple[BoolArray, BoolArray]:
        """Return the numbers and the categories that cannot stay as they are."""
        away = (self.unchanged < part.low) | (self.unchanged > part.high)
        if not self.entries.size:
            return away, np.empty(0, dtype=np.bool_)
        return away, ~np.logical_or.reduceat(part.allowed & self.home, self.entry_first)

    def reduced(self, part: Part, most: int, budget: float) -> Part | None:
        """Return what a budget and a number of changes leave of a part; None: nothing."""
        if most < len(self.numbers) + len(self.categories) + self.changed_elsewhere:
            away = self.changed(part)
            count = int(away[0].sum() + away[1].sum()) + self.changed_elsewhere
            if count > most:
                return None
            if count == most:
                part = self.staying(part, away)
        for table in self.tables:
            left = table.reduced(part, budget)
            if left is None:
                return None
            part = left
        return part

    def staying(self, part: Part, away: tuple[BoolArray, BoolArray]) -> Part:
        """Return the part in which everything but what is `away` already stays as it is."""
        low, high = (np.where(away[0], end, self.unchanged) for end in (part.low, part.high))
        allowed = part.allowed & (away[1][self.owner] | self.home) if self.entries.size else part.allowed
        return Part(low, high, allowed)

    def around(self, part: Part, hole: Part) -> list[Part]:
        """Return what is left of a part around another one inside it, as boxes that do not overlap."""
        boxes = []
        for k in range(len(self.numbers)):
            first, last = int(hole.low[k]), int(hole.high[k])
            if first > part.low[k]:
                boxes.append(part.numbers(k, int(part.low[k]), first - 1))
            if last < part.high[k]:
                boxes.append(part.numbers(k, last + 1, int(part.high[k])))
            part = part.numbers(k, first, last)
        for c in range(len(self.categories)):
            here = self.owner == c
            if (part.allowed & here & ~hole.allowed).any():
                boxes.append(part.levels(~(here & hole.allowed)))
            part = part.levels(~here | hole.allowed)
        return boxes

    def note_halves(self, ledger: Ledger, first: Part, second: Part) -> None:
        """Note the split of a part into two, of which the first one comes next."""
        apart = np.flatnonzero((first.low != second.low) | (first.high != second.high))
        if apart.size:
            k = int(apart[0])
            last = min(int(first.high[k]), int(second.high[k]))
            ledger.cut(self.numbers[k], float(self.highest[self.first[k] + last]), bool(first.low[k] > last))
        else:
            c = int(self.owner[np.flatnonzero(first.allowed != second.allowed)[0]])
            ledger.levels(self.categories[c], first.allowed[self.span(c)])

    def note_around(self, ledger: Ledger, part: Part, hole: Part) -> None:
        """Note these boxes, each split off what comes next: the hole is the first part, and the last box the second."""
        for k, j in enumerate(self.numbers):
            first, last, ends = int(hole.low[k]), int(hole.high[k]), self.highest[int(self.first[k]) :]
            if first > part.low[k]:
                ledger.cut(j, float(ends[first - 1]), second_first=True)
            if last < part.high[k]:
                ledger.cut(j, float(ends[last]))
        for c, j in enumerate(self.categories):
            span = self.span(c)
            if (part.allowed[span] & ~hole.allowed[span]).any():
                ledger.levels(j, hole.allowed[span])
        ledger.leaf()

    # -- points -------------------------------------------------------------------------------------------------
    def point(self, part: Part, start: FloatArray) -> FloatArray:
        """Return the cheapest point of a part, other features as in `start`."""
        u = start.copy()
        at = np.minimum(np.maximum(self.cheapest, part.low), part.high)
        u[[self.schema.starts[j] for j in self.numbers]] = self.value[self.first + at]
        levels = np.where(part.allowed, np.where(self.home, -1.0, self.level_cost), np.inf)
        for c, j in enumerate(self.categories):
            u[self.schema.slice(j)] = 0.0
            u[self.schema.starts[j] + int(levels[self.span(c)].argmin())] = 1.0
        return u
