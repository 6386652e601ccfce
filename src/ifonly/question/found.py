"""Found: the outcome of one search, the best point and its bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.solvers.backend import Status

__all__ = ["Found"]


@dataclass(frozen=True)
class Found:
    """The outcome of one search: the best point in canonical form, and what is proven."""

    status: Status
    u: FloatArray | None = None
    bound: float = -np.inf
    pool: tuple[FloatArray, ...] = ()
    interrupted: bool = False
    solver: str = ""
