"""Branching of a cell search: where the best leaves of the trees lie apart, where they meet, and the two halves of a part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import IntArray
from ifonly.search.cells.cost_tables import CellCosts
from ifonly.search.cells.grids import Grid, Part
from ifonly.search.cells.improving import Improved

__all__ = ["Best", "Branching"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Best:
    """Best leaf of each tree within a node, as a box: cells from `begin` to `end`, the levels that each `holds`."""

    begin: IntArray
    end: IntArray
    holds: BoolArray

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.holds.shape[1])


class Branching:
    """Splits of parts of one grid."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid

    def best(self, part: Part, leaves: IntArray) -> Best:
        """Return a leaf of each tree as boxes, inside a part."""
        grid = self.grid
        begin = np.maximum(grid.begin[:, leaves], part.low[:, None])
        end = np.minimum(grid.end[:, leaves], part.high[:, None])
        return Best(begin, end, grid.holds[:, leaves] & part.allowed[:, None])

    # -- best leaves that lie apart -----------------------------------------------------------------------------
    def between(self, part: Part, best: Best) -> list[Part] | None:
        """Split where most best leaves lie on either side, along a number or between one level and the others."""
        along, cell = self.apart(best)
        among, entry = self.at_odds(part, best)
        if along >= among and along > 0:
            k = int(self.grid.number_of[cell])
            return self.halves(part, k, cell - int(self.grid.first[k]))
        if among > 0:
            return self.one_level(part, entry)
        return None

    def between_priced(self, got: Improved) -> list[Part] | None:
        """Split where most best leaves of the last steps lie on either side; None: they are nowhere apart."""
        along, k, cell = self._priced_apart(got)
        among, entry = self.at_odds(got.part, self.best(got.part, got.best))
        among *= got.counted
        if along >= among and along > 0:
            return self.halves(got.part, k, cell)
        if among > 0:
            return self.one_level(got.part, entry)
        return None

    def _priced_apart(self, got: Improved) -> tuple[int, int, int]:
        """Return how many of them end at or before a cell, while no fewer begin behind it, which number and which cell."""
        most, number, at = 0, 0, 0
        for k in range(len(self.grid.numbers)):
            first, low, high = int(self.grid.first[k]), int(got.part.low[k]), int(got.part.high[k])
            if low == high:
                continue
            ended, begun = (counts[first + low : first + high + 1] for counts in got.apart)
            score = np.minimum(ended[:-1].cumsum(), begun[:0:-1].cumsum()[::-1])
            cell = int(score.argmax())
            if score[cell] > most:
                most, number, at = int(score[cell]), k, low + cell
        return most, number, at

    def apart(self, best: Best) -> tuple[int, int]:
        """Return how many best leaves end at or before a cell, while no fewer begin behind it, and at which cell."""
        grid, trees = self.grid, best.n_trees
        if not grid.numbers:
            return 0, 0
        n = len(grid.cost)
        before = trees * grid.number_of
        ended = np.bincount((best.end + grid.first[:, None]).ravel(), minlength=n).cumsum() - before
        begun = np.bincount((best.begin + grid.first[:, None]).ravel(), minlength=n).cumsum() - before
        score = np.minimum(ended, trees - begun)
        cell = int(score.argmax())
        return int(score[cell]), cell

    def at_odds(self, part: Part, best: Best) -> tuple[int, int]:
        """Return how many best leaves want a level and no other one, while no fewer rule it out, and which level."""
        grid = self.grid
        if not grid.categories:
            return 0, 0
        wide = np.add.reduceat(best.holds, grid.entry_first, axis=0, dtype=np.int64)
        only = (best.holds & (wide[grid.owner] == 1)).sum(axis=1)
        hold = best.holds.sum(axis=1)
        score = np.where(part.allowed, np.minimum(only, best.n_trees - hold), 0)
        entry = int(score.argmax())
        if score[entry] == 0:
            # Sets can meet two by two and still have nothing in common.
            apart = ~np.logical_or.reduceat(hold == best.n_trees, grid.entry_first)
            if not apart.any():
                return 0, 0
            score = np.where(part.allowed & apart[grid.owner], np.minimum(hold, best.n_trees - hold), 0)
            entry = int(score.argmax())
        return int(score[entry]), entry

    def halves(self, part: Part, k: int, cell: int) -> list[Part]:
        """Split a number behind a cell; the side of the cheapest value comes last."""
        below = part.numbers(k, int(part.low[k]), cell)
        above = part.numbers(k, cell + 1, int(part.high[k]))
        return [above, below] if self.grid.cheapest[k] <= cell else [below, above]

    def one_level(self, part: Part, entry: int) -> list[Part]:
        """Split a category into one level and the others; the side of what it is now comes last."""
        grid = self.grid
        others = grid.owner != grid.owner[entry]
        this = np.arange(len(grid.entries)) == entry
        only, rest = part.levels(others | this), part.levels(~this)
        return [rest, only] if grid.home[entry] else [only, rest]

    def meeting(self, part: Part, best: Best) -> Part:
        """Return the part that all best leaves have in common."""
        common = np.asarray(best.holds.all(axis=1))
        if not self.grid.numbers:
            return Part(part.low, part.high, common)
        return Part(best.begin.max(axis=1), best.end.min(axis=1), common)

    def cheaper(self, table: CellCosts, part: Part, meeting: Part, *, taken: bool) -> list[Part]:
        """Branch so that points which are cheaper than the intersection, by one table of costs, lie in the other child.

        `taken`: its cheapest point is the incumbent.
        """
        grid, here, there = self.grid, table.least(part), table.least(meeting)
        dearer = np.concatenate([there[0] - here[0], there[1] - here[1]])
        k = int(dearer.argmax()) if dearer.size else -1
        if k < 0 or dearer[k] <= 0.0:
            return [] if taken else self.anywhere(part)
        if k >= len(grid.numbers):
            span = np.zeros(len(grid.entries), dtype=np.bool_)
            span[grid.span(k - len(grid.numbers))] = True
            return [part.levels(~span | meeting.allowed), part.levels(~(span & meeting.allowed))]
        at = int(min(max(table.cheapest[k], meeting.low[k]), meeting.high[k]))
        return self.halves(part, k, at - 1 if at > table.cheapest[k] else at)

    def anywhere(self, part: Part) -> list[Part]:
        """Split a part whose cheapest point was refused by the last digits of a sum, or by the number of changes."""
        width = part.high - part.low
        if width.size and width.max() > 0:
            k = int(width.argmax())
            return self.halves(part, k, int(part.low[k] + width[k] // 2))
        if self.grid.entries.size:
            left = np.add.reduceat(part.allowed, self.grid.entry_first, dtype=np.int64)
            open_ = np.flatnonzero(part.allowed & (left > 1)[self.grid.owner])
            if open_.size:
                return self.one_level(part, int(open_[0]))
        return []
