"""The compiled kernel of the cell search, where it was built: the tables that it is given, and the runs between two looks.

`_kernel.c` follows the rules of `splitting.py` part by part, some ten to fifty times as fast. It is optional: without a
compiler the package is installed without it, and the NumPy search serves. ``IFONLY_KERNEL=numpy`` turns it off.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from types import ModuleType
from typing import Protocol

import numpy as np

from ifonly.arrays import IntArray
from ifonly.runtime.kernels import Said, in_words, is_on
from ifonly.runtime.tuning import CellSearch
from ifonly.search.cells.cost_tables import CellCosts
from ifonly.search.cells.grids import Grid, Part
from ifonly.search.cells.split_prices import Method
from ifonly.search.cells.sums import Sums
from ifonly.tolerances import DUST

__all__ = ["Kernel", "Offer", "Run", "Said", "compiled", "kernel_in_use"]

try:
    from ifonly.search.cells import _kernel
except ImportError:  # no compiler when the package was installed
    _built: ModuleType | None = None
else:
    _built = _kernel


def compiled() -> bool:
    """Whether the compiled kernel is there, and was not turned off."""
    return is_on(_built)


def kernel_in_use() -> str:
    """Return the name of the kernel that searches cells: "compiled" or "NumPy"."""
    return in_words(compiled=compiled())


class Offer(IntEnum):
    """Fate of a point that was offered as incumbent."""

    REFUSED = 0
    TAKEN = 1
    DEAD = 2  # refused by its scores, and so is every other point in which the same leaves meet


@dataclass(frozen=True, slots=True)
class Run:
    """Account of a run: how it ended, all parts so far, the share of the whole that is closed, new events of the trail.

    With prices, no point within the budget costs less than `bound`.
    """

    said: Said
    parts: int
    done: float
    bound: float
    trail: bytes


class Tables(Protocol):
    """Tables of one cell search."""

    @property
    def grid(self) -> Grid:
        """Cells and levels."""
        ...

    @property
    def tuning(self) -> CellSearch:
        """Numbers of the search."""
        ...

    @property
    def sums(self) -> Sums:
        """Values of leaves, and what the goal needs of them."""
        ...


class Kernel:
    """One search of a grid by the compiled kernel.

    Parameters
    ----------
    tables
        Grid, values and goals.
    order
        The leaves that can be reached, by tree and falling value.
    most
        How many features may change.
    keeps_trail
        Whether the parts are written down.
    method
        How prices are improved; None: a search without prices.
    names
        Names of the splits whose prices are written down; None: no prices are.
    """

    def __init__(
        self,
        tables: Tables,
        order: IntArray,
        most: int,
        *,
        keeps_trail: bool = False,
        method: Method | None = None,
        names: IntArray | None = None,
    ) -> None:
        assert _built is not None
        tuning = tables.tuning
        self._grid, self._work = tables.grid, tuning.kernel_work
        grid, sums = self._grid, tables.sums
        listed: list[object] = [_as(np.int64, table) for table in (grid.first, grid.size, grid.unchanged)]
        listed.append(_as(np.float64, grid.highest))
        listed += [_as(np.int64, table) for table in (grid.numbers, grid.entry_first, grid.categories)]
        listed += [_as(np.bool_, table) for table in (grid.home, grid.open)]
        listed += [_as(np.int32, grid.begin), _as(np.int32, grid.end)]
        listed += [_as(np.bool_, grid.holds), _as(np.int64, order), _as(np.int64, sums.tree[order])]
        listed += [_as(np.float64, sums.values[order]), _as(np.float64, sums.need)]
        count = int(grid.changed_elsewhere)
        prices: tuple[object, ...] = () if method is None else (tuple(method),)
        if method is not None and names is not None:
            prices += (_as(np.int64, names),)
        costs = [_listed(table) for table in grid.tables]
        sure = None if sums.sure is None else _as(np.float64, sums.sure)
        lattice = sums.lattice
        on_grid = None if lattice is None else _as(np.bool_, lattice.holds[order])
        grid_need = 0.0 if lattice is None else lattice.need
        self._search = _built.opened(
            listed, costs, sure, on_grid, grid_need, DUST, count, int(most), keeps_trail, tuning.kernel_bytes, *prices
        )

    def run(self, budget: float, met: Offer, most_parts: int) -> Run:
        """Go on for so many parts, or for some milliseconds; `met`: what became of the last point that was offered."""
        assert _built is not None
        said, parts, done, bound, trail = _built.run(self._search, budget, met, most_parts, self._work)
        return Run(Said(said), parts, done, bound, trail)

    def meeting(self) -> Part:
        """Return the part in which the best leaves meet, after `Said.OFFER`."""
        assert _built is not None
        grid = self._grid
        low, high = (np.zeros(len(grid.numbers), dtype=np.int64) for _ in range(2))
        allowed = np.zeros(len(grid.entries), dtype=np.bool_)
        _built.meeting(self._search, low, high, allowed)
        return Part(low, high, allowed)


def _listed(table: CellCosts) -> list[object]:
    """Return the arrays of a table of costs, in the order in which the kernel takes them."""
    ends = np.append(table.up_first, len(table.up)), np.append(table.down_first, len(table.down))
    listed = [_as(np.int64, array) for array in (table.cheapest, *ends)]
    real = (table.cost, table.dearest, table.up, table.down, table.level_cost, [table.elsewhere])
    return listed + [_as(np.float64, array) for array in real]


def _as(dtype: type, table: object) -> object:
    return np.ascontiguousarray(np.asarray(table, dtype=dtype))
