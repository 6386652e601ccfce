"""Compiled kernels: optional extensions, and the states in which a run of one returns.

Without a compiler the package is installed without them, and NumPy serves. ``IFONLY_KERNEL=numpy`` turns them off.
"""

from __future__ import annotations

import os
from enum import IntEnum
from types import ModuleType

__all__ = ["Said", "in_words", "is_on"]


class Said(IntEnum):
    """State in which a kernel returns."""

    CLOSED = 0  # nothing is left open that may hold a better point
    PAUSED = 1  # a share of the work is done
    OFFER = 2  # a point is to be offered, and the next run told what became of it
    FULL = 3  # the memory that it may use is not enough
    BROKEN = 4  # a tree without an open leaf, which there cannot be


def is_on(built: ModuleType | None) -> bool:
    """Whether a kernel is there, and was not turned off."""
    return built is not None and os.environ.get("IFONLY_KERNEL", "").strip().lower() != "numpy"


def in_words(*, compiled: bool) -> str:
    """Name what serves: "compiled" or "NumPy"."""
    return "compiled" if compiled else "NumPy"
