"""Pace of a search part by part: when it is looked at, and when it is given up."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Pace"]


@dataclass
class Pace:
    """Parts after which the progress of a search is judged next, and the share that must be closed by then.

    Attributes
    ----------
    more
        Times that share that must be closed by each further look.
    ends
        Numbers of parts after which it is over in any case.
    judged
        Whether it is given up where next to nothing is closed.
    most
        Parts after which it is given up where it is judged, and looked at where nothing else is said.
    """

    look: int
    least: float
    more: float
    ends: tuple[int, ...]
    judged: bool
    most: int

    def next_look(self, parts: int, due: int | None = None) -> int:
        """Return the number of parts at which the search may be given up, or at which something else is due."""
        looks = (*self.ends, self.look if self.judged else None, due)
        return min((look for look in looks if look is not None), default=parts + self.most)

    def gives_up(self, parts: int, done: float) -> bool:
        """Whether the parts that are allowed are used up, or next to nothing was closed by them."""
        if any(parts >= end for end in self.ends):
            return True
        if not self.judged or parts < self.look:
            return False
        if done < self.least or parts >= self.most:
            return True
        self.look, self.least = 2 * self.look, self.more * self.least
        return False
