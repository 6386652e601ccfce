"""Inside: the search of a part of a grid in which the goal is reached, where more than that is asked of an answer."""

from __future__ import annotations

from typing import Protocol

from ifonly.arrays import FloatArray
from ifonly.program.box import Box
from ifonly.runtime.deadline import Deadline
from ifonly.search.cells.cost_tables import CellCosts
from ifonly.search.cells.grids import Grid, Part

__all__ = ["Inside"]


class Inside(Protocol):
    """Search of such parts, and what is known of them beforehand."""

    def surrogates(self, grid: Grid, box: Box) -> tuple[CellCosts, ...]:
        """Return tables of costs by which no answer is dearer than by the objective."""
        ...

    def search(self, grid: Grid, box: Box, part: Part, start: FloatArray, deadline: Deadline) -> bool:
        """Offer the best points of a part all of which reach the goal; say whether one became the incumbent.

        `start` is the cheapest point of the part, with all other features.
        """
        ...
