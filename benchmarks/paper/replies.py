"""Reply of a method for one factual, and the interface by which a method is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from benchmarks.peers.encoding import FloatArray

__all__ = ["Reply", "Session", "Unsupported"]


class Unsupported(Exception):
    """The method does not take this kind of model, or does not give so many answers."""


def _none() -> FloatArray:
    return np.zeros((0, 0))


@dataclass(frozen=True, eq=False)
class Reply:
    """Coded rows (none if there is no answer), what happened, and how long it took: on the wall, and of the processor."""

    status: str
    seconds: float
    rows: FloatArray = field(default_factory=_none)
    proven: bool = False
    note: str = ""
    cpu: float = np.nan


class Session(Protocol):
    """A method that was opened on a model."""

    def explain(self, position: int, seconds: float) -> Reply:
        """Explain one row of the test part."""
        ...

    def close(self) -> None:
        """Free what was taken."""
        ...
