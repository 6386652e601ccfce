"""Distances from ties, level by level: none at first, so that no point is lost; more once the model refused one near it."""

from __future__ import annotations

from ifonly.tolerances import BEYOND_A_TIE

__all__ = ["AwayFromTies"]


class AwayFromTies:
    """A form whose program keeps, relative to the range of a score, a distance from ties of that score: that of its `level`.

    The farthest distance is more than solvers can overlook.
    """

    level: int

    @property
    def away(self) -> float:
        """Share of a range by which the program keeps away from ties."""
        return BEYOND_A_TIE[self.level]

    def next_level(self, near: bool) -> int:
        """Return the level after a refusal: the next one if the point was near a tie, as long as there is one."""
        return min(self.level + near, len(BEYOND_A_TIE) - 1)
