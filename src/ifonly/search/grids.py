"""Grid of a box: the cells and levels left of each feature, all in flat tables, and the cells at which each leaf ends.

Between two cuts that some leaf still uses, nothing changes but the cost; so a numeric feature is a row of cells, each worth
its point nearest to the factual, and costs rise to both sides of the cheapest cell. A categorical feature is a set of
levels. A part of the box is then a range of cells per number and a set of levels per category.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.models.forms.leaves import Leaves
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.question.trail import Ledger
from ifonly.search.reduce import Reducer
from ifonly.tolerances import DUST as _DUST

__all__ = ["Grid", "Part"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the box: per number the first and the last cell, per entry of a category whether it is allowed."""

    low: IntArray
    high: IntArray
    allowed: BoolArray

    def numbers(self, k: int, low: int, high: int) -> Part:
        """Return the part with another range for one number."""
        lows, highs = self.low.copy(), self.high.copy()
        lows[k], highs[k] = low, high
        return replace(self, low=lows, high=highs)

    def levels(self, entries: BoolArray) -> Part:
        """Return the part with fewer levels."""
        return replace(self, allowed=self.allowed & entries)


class Grid:
    """Flat tables of one question: numbers one after the other, cell by cell; categories entry by entry.

    Attributes
    ----------
    leaves
        What the box leaves open.
    numbers, categories
        The features that open leaves tell apart.
    first
        Offsets of the cells of each number in `cost`, `value` and `highest` (their last admissible values).
    begin, end
        The first and the last cell that a leaf allows, shape (numbers, leaves).
    holds
        Whether a leaf allows a level, shape (entries, leaves).
    elsewhere, changed_elsewhere
        What all other features must cost, and how many of them must change, because the box demands it.
    """

    def __init__(self, reducer: Reducer, box: Box, leaves: Leaves) -> None:
        self.schema, self.leaves = reducer.schema, leaves
        self.factual = reducer.query.factual
        self.numbers = [j for j in leaves.features if leaves.is_numeric[j]]
        self.categories = [j for j in leaves.features if not leaves.is_numeric[j]]
        self._tabulate_numbers(reducer, box)
        self._tabulate_levels(reducer, box)
        others = [j for j in range(len(self.schema)) if j not in leaves.features]
        self.elsewhere = float(sum(reducer.forced_one(box, j) for j in others))
        self.changed_elsewhere = sum(not box.contains_at(j, self.factual[None, :])[0] for j in others)

    # -- tables -------------------------------------------------------------------------------------------------
    def _tabulate_numbers(self, reducer: Reducer, box: Box) -> None:
        leaves, n = self.leaves, len(self.numbers)
        costs, values, ends = [], [], []
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
            ends.append(cells.high)
            same = np.flatnonzero(nearest == hat)
            if same.size:
                self.unchanged[k] = same[0]
        self.size = np.array([len(c) for c in costs], dtype=np.int64)
        self.first = _starts(costs)
        self.cost, self.value, self.highest = _joined(costs), _joined(values), _joined(ends)
        # Staying is never dearer; where a change costs nothing, it still is a change.
        self.cheapest = np.where(self.unchanged >= 0, self.unchanged, [int(c.argmin()) for c in costs]).astype(np.int64)
        self.number_of = np.repeat(np.arange(n), self.size)
        # Concatenate the per-feature cost curves, normalised and offset by 2k, so that one `searchsorted` serves all.
        self.dearest = np.array([c.max() or 1.0 for c in costs])
        shares = [2.0 * k + c / dearest for k, (c, dearest) in enumerate(zip(costs, self.dearest, strict=True))]
        up = [share[h:] for share, h in zip(shares, self.cheapest, strict=True)]
        down = [share[h::-1] for share, h in zip(shares, self.cheapest, strict=True)]
        self.up, self.down = _joined(up), _joined(down)
        self.up_first, self.down_first = _starts(up), _starts(down)

    def _tabulate_levels(self, reducer: Reducer, box: Box) -> None:
        every = np.arange(self.schema.width)
        spans = [every[self.schema.slice(j)] for j in self.categories]
        self.entries = _joined(spans).astype(np.int64)
        self.entry_first = _starts(spans)
        self.owner = np.repeat(np.arange(len(spans)), [len(span) for span in spans])
        self.home = self.factual[self.entries] > 0
        self.level_cost = reducer.separable.entries(self.schema, self.factual, self.entries)
        self.holds = np.ascontiguousarray(self.leaves.levels[:, self.entries].T)
        self.open = box.allowed[self.entries]

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

    def whole(self) -> Part:
        """Return all of it."""
        return Part(np.zeros(len(self.numbers), dtype=np.int64), self.size - 1, self.open.copy())

    # -- costs --------------------------------------------------------------------------------------------------
    def least(self, part: Part) -> tuple[FloatArray, FloatArray]:
        """Return the least that each number and each category must cost (infinity: nothing is left of a category)."""
        at = np.minimum(np.maximum(self.cheapest, part.low), part.high)
        levels = np.where(part.allowed, self.level_cost, np.inf)
        return self.cost[self.first + at], np.minimum.reduceat(levels, self.entry_first) if levels.size else levels

    def within(self, part: Part, left: tuple[FloatArray, FloatArray]) -> Part:
        """Return the part in which each number and each category costs at most what is left for it."""
        most = 2.0 * np.arange(len(self.numbers)) + np.minimum(left[0] / self.dearest + _DUST, 1.5)
        up = self.up.searchsorted(most, side="right") - self.up_first
        down = self.down.searchsorted(most, side="right") - self.down_first
        low = np.maximum(part.low, self.cheapest - down + 1)
        high = np.minimum(part.high, self.cheapest + up - 1)
        allowed = part.allowed
        if self.entries.size:
            enough = left[1] + _DUST * np.abs(left[1])
            allowed = allowed & (self.level_cost <= enough[self.owner])
        return Part(low, high, allowed)

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
        numbers, levels = self.least(part)
        spare = budget - self.elsewhere - float(numbers.sum() + levels.sum())
        if not spare >= 0.0:
            return None
        return part if spare == np.inf else self.within(part, (numbers + spare, levels + spare))

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


def _joined(parts: Sequence[FloatArray] | Sequence[IntArray]) -> FloatArray:
    """Return arrays one after the other, and an empty one for none."""
    return np.concatenate(parts) if parts else np.empty(0)


def _starts(parts: Sequence[FloatArray] | Sequence[IntArray]) -> IntArray:
    """Return where each of the joined arrays begins."""
    return np.cumsum([0, *(len(part) for part in parts)])[:-1].astype(np.int64)
