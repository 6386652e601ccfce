"""Events of a search, as `on_event` hears them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Built", "Event", "Finished", "Incumbent", "OnEvent"]


@dataclass(frozen=True, slots=True)
class Built:
    """A program was built."""

    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A better answer was found; `bound` is what is proven so far."""

    objective: float
    bound: float


@dataclass(frozen=True, slots=True)
class Finished:
    """The search ended; `status` is that of the explanation."""

    status: str
    seconds: float


Event = Built | Incumbent | Finished
OnEvent = Callable[[Event], None]
