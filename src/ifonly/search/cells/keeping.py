"""Prices of splits that are kept for a proof: multiples of a unit, named as the model's own splits are.

Any prices give a bound that holds, so those of a proof may be rounded, as long as nothing is closed but by rounded ones. The
prices of a part are kept as changes of those around it, in a unit (a power of two, a share of the largest value of a leaf):
few of them change by more than some units. A part that closes is tried with rougher ones first.

The rounding is the twin of `_prices_keeping.h`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.forms.leaves import Leaves
from ifonly.question.split_names import split_names
from ifonly.question.trail import MOST_OF_PRICES, Ledger
from ifonly.question.trail import Prices as Event
from ifonly.question.varints import MOST
from ifonly.search.cells.split_prices import Prices, PriceTables

__all__ = ["ROUGHEST", "Keeping", "names_of"]

ROUGHEST = 8  # units by which the prices of a part that closes are rounded first, then by half as many
_LARGEST = 2.0**30  # units of one price
_LONGEST = 20  # bytes of the two changes of a split, with their names


@dataclass(frozen=True, eq=False)
class Keeping:
    """Prices of one search as events of its trail: in a unit, by the names of its splits."""

    ledger: Ledger
    unit: float
    names: IntArray

    def rounded(self, prices: Prices, base: Prices, by: int) -> Prices:
        """Return prices that differ from those of the part around by multiples of `by` units, where they can."""
        below, above = (self._rounded(*pair, by) for pair in ((prices.below, base.below), (prices.above, base.above)))
        return Prices(_upper_half(prices.mu), prices.weights, prices.split, below, above)

    def _rounded(self, price: FloatArray, base: FloatArray, by: int) -> FloatArray:
        units = base / self.unit + by * np.rint((price - base) / (by * self.unit))
        return np.asarray(np.minimum(np.maximum(units, 0.0), _LARGEST) * self.unit)

    def note(self, prices: Prices, base: Prices) -> None:
        """Note rounded prices, as changes of those of the part around."""
        changes = np.stack([prices.below - base.below, prices.above - base.above], axis=1).ravel() / self.unit
        names = 2 * np.repeat(self.names[prices.split], 2) + np.tile([0, 1], len(prices.split))
        some = np.flatnonzero(changes)
        exponent = frexp(self.unit)[1] - 1
        self.ledger.prices(Event(exponent, prices.mu, names[some], changes[some].astype(np.int64)))


def _upper_half(number: float) -> float:
    """Return a number with the upper half of its bits."""
    return float((np.array([number]).view(np.uint64) >> np.uint64(32) << np.uint64(32)).view(np.float64)[0])


def names_of(tables: PriceTables, leaves: Leaves, tree: IntArray) -> IntArray | None:
    """Return the name of each split of a grid, given all leaves of the model, and the tree of each leaf of the grid.

    None: one has none, or they are too many to be kept.
    """
    grid, names, trees = tables.grid, split_names(leaves), np.unique(tree[tables.tree_of >= 0])
    if len(tables.split_tree) > MOST_OF_PRICES // _LONGEST or 2 * len(names.tree) >= MOST:
        return None
    wide, n = int(grid.size.max(initial=0)) + 1, len(grid.numbers)
    number, cell = np.full(len(names.tree), -1), np.full(len(names.tree), -1)
    for k, j in enumerate(grid.numbers):
        own = np.flatnonzero(names.feature == j)
        first = int(grid.first[k])
        cuts = leaves.cuts[j][names.place[own]]
        number[own], cell[own] = k, np.searchsorted(grid.highest[first : first + int(grid.size[k])], cuts, "right") - 1
    place = np.minimum(np.searchsorted(trees, names.tree), len(trees) - 1)
    there = np.flatnonzero((trees[place] == names.tree) & (number >= 0))
    keys = (place[there] * n + number[there]) * wide + cell[there] + 1
    wanted = (tables.split_tree * n + tables.split_number) * wide + tables.split_cell + 1
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    if len(wanted) and (not len(keys) or (keys[at] != wanted).any()):
        return None
    return there[at] if len(wanted) else np.empty(0, dtype=np.int64)
