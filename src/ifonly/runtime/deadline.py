"""Deadline: the moment at which a call must have ended; one value, made once, that every search is given."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf

__all__ = ["FOREVER", "Deadline"]

FOREVER = 1e9  # seconds that stand for no time limit: SCIP refuses infinity


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock.

    Attributes
    ----------
    at
        The moment, by `time.perf_counter`; infinity means never.

    Examples
    --------
    >>> Deadline.after(0.0).passed, Deadline.never().passed
    (True, False)
    >>> Deadline.never().within(2.0).left() <= 2.0
    True
    """

    at: float = inf

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline that many seconds from now."""
        return cls(time.perf_counter() + seconds)

    @classmethod
    def never(cls) -> Deadline:
        """Return the deadline that does not come."""
        return cls(inf)

    def left(self) -> float:
        """Return the seconds that are left, at least 0."""
        return max(self.at - time.perf_counter(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether the moment has come."""
        return time.perf_counter() >= self.at

    def within(self, seconds: float) -> Deadline:
        """Return the earlier one of this deadline and that many seconds from now."""
        return Deadline(min(self.at, time.perf_counter() + seconds))

    def earlier(self, seconds: float) -> Deadline:
        """Return the deadline moved forward by that many seconds, which are kept for what comes after."""
        return Deadline(self.at - seconds)
