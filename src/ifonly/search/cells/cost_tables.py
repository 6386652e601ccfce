"""Cost tables of a grid: what its cells and levels cost, and what a budget leaves of a part of it.

A table is a lower bound on what is to be paid: of the objective itself, or of a surrogate that no answer can exceed the
objective by (`ifonly.search.distances`). Each of them prunes parts, and takes cells and levels away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.tolerances import DUST as _DUST

__all__ = ["CellCosts", "Layout", "Part", "joined", "starts"]

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


class Layout(NamedTuple):
    """Places of numbers and categories in flat tables: where each begins, and the category of each entry."""

    first: IntArray
    entry_first: IntArray
    owner: IntArray


class CellCosts:
    """Costs of cells and levels, none of them negative, rising to both sides of the cheapest cell of each number.

    Attributes
    ----------
    cost, level_cost
        Of cells, number after number, and of entries.
    cheapest
        The cell of each number from which costs rise.
    elsewhere
        What all other features cost at least; of a surrogate, everything else that belongs to it.
    """

    def __init__(
        self, layout: Layout, cells: Sequence[FloatArray], cheapest: IntArray, levels: FloatArray, elsewhere: float
    ) -> None:
        self.layout, self.level_cost, self.cheapest, self.elsewhere = layout, levels, cheapest, elsewhere
        self.cost = joined(cells)
        # Concatenate the per-feature cost curves, normalised and offset by 2k, so that one `searchsorted` serves all.
        self.dearest = np.array([c.max() or 1.0 for c in cells])
        shares = [2.0 * k + c / dearest for k, (c, dearest) in enumerate(zip(cells, self.dearest, strict=True))]
        up = [share[h:] for share, h in zip(shares, cheapest, strict=True)]
        down = [share[h::-1] for share, h in zip(shares, cheapest, strict=True)]
        self.up, self.down = joined(up), joined(down)
        self.up_first, self.down_first = starts(up), starts(down)

    def least(self, part: Part) -> tuple[FloatArray, FloatArray]:
        """Return the least that each number and each category must cost (infinity: nothing is left of a category)."""
        at = np.minimum(np.maximum(self.cheapest, part.low), part.high)
        levels = np.where(part.allowed, self.level_cost, np.inf)
        categories = np.minimum.reduceat(levels, self.layout.entry_first) if levels.size else levels
        return self.cost[self.layout.first + at], categories

    def bound(self, part: Part) -> float:
        """Return the least that a point of a part must cost."""
        numbers, levels = self.least(part)
        return self.elsewhere + float(numbers.sum() + levels.sum())

    def reduced(self, part: Part, budget: float) -> Part | None:
        """Return what a budget leaves of a part; None: nothing."""
        numbers, levels = self.least(part)
        spare = budget - self.elsewhere - float(numbers.sum() + levels.sum())
        if not spare >= 0.0:
            return None
        return part if spare == np.inf else self._within(part, (numbers + spare, levels + spare))

    def _within(self, part: Part, left: tuple[FloatArray, FloatArray]) -> Part:
        """Return the part in which each number and each category costs at most what is left for it."""
        most = 2.0 * np.arange(len(self.dearest)) + np.minimum(left[0] / self.dearest + _DUST, 1.5)
        up = self.up.searchsorted(most, side="right") - self.up_first
        down = self.down.searchsorted(most, side="right") - self.down_first
        low = np.maximum(part.low, self.cheapest - down + 1)
        high = np.minimum(part.high, self.cheapest + up - 1)
        allowed = part.allowed
        if allowed.size:
            enough = left[1] + _DUST * np.abs(left[1])
            allowed = allowed & (self.level_cost <= enough[self.layout.owner])
        return Part(low, high, allowed)


def joined(parts: Sequence[FloatArray] | Sequence[IntArray]) -> FloatArray:
    """Return arrays one after the other, and an empty one for none."""
    return np.concatenate(parts) if parts else np.empty(0)


def starts(parts: Sequence[FloatArray] | Sequence[IntArray]) -> IntArray:
    """Return where each of the joined arrays begins."""
    return np.cumsum([0, *(len(part) for part in parts)])[:-1].astype(np.int64)
