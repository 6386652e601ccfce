"""Found: the result of a search, how it ended and what is known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from ifonly.arrays import FloatArray

__all__ = ["EXACTLY", "NO_SOLVER", "Ended", "Found"]

NO_SOLVER = "no solver needed"
EXACTLY = "and again by SCIP in rational arithmetic"


class Ended(Enum):
    """End of a search; it says nothing about what was found on the way.

    Attributes
    ----------
    CLOSED
        The box was searched to its end: what is known is optimal within the gap, or proven not to be there.
    LIMIT
        A limit, mostly that of time, came first.
    INTERRUPTED
        Ctrl-C came first.
    TOO_LARGE
        A program was not built: it would not fit into memory, or not be solved in the time left.
    GAVE_UP
        The engine is not the right one after all; the next one takes over.
    """

    CLOSED = auto()
    LIMIT = auto()
    INTERRUPTED = auto()
    TOO_LARGE = auto()
    GAVE_UP = auto()


@dataclass(frozen=True)
class Found:
    """Result of a search: how it `ended`, and separately what is known.

    Attributes
    ----------
    ended
        Why the search is over.
    u
        The best point in canonical form; None: none is known.
    bound
        A proven lower bound on the cost of every point in question.
    pool
        Points that meet all demands and were met on the way.
    solver
        Who closed it, in words for people.
    trail
        The parts of the search, where they were asked for and no solver closed any (see `ifonly.question.trail`).
    """

    ended: Ended
    u: FloatArray | None = None
    bound: float = -np.inf
    pool: tuple[FloatArray, ...] = ()
    solver: str = ""
    trail: bytes = b""

    @classmethod
    def nothing(cls, solver: str = "", bound: float = np.inf) -> Found:
        """Return the proof that there is no point below the cut-off; beyond `bound` nobody looked."""
        return cls(Ended.CLOSED, bound=bound, solver=solver)

    @property
    def infeasible(self) -> bool:
        """Whether it is proven that there is no point."""
        return self.ended is Ended.CLOSED and self.u is None

    @property
    def optimal(self) -> bool:
        """Whether `u` is proven optimal within the gap."""
        return self.ended is Ended.CLOSED and self.u is not None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search."""
        return self.ended is Ended.INTERRUPTED
