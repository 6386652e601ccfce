"""Group of tuned numbers: the base of all parts of a `Tuning`."""

from __future__ import annotations

from dataclasses import fields
from math import inf

import numpy as np

__all__ = ["Group"]


class Group:
    """Group of numbers; each must be finite and not negative, and whole where the tuned one is."""

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            kind = (int, np.integer) if isinstance(one.default, int) else (int, float, np.integer, np.floating)
            numbers = value if isinstance(one.default, tuple) and isinstance(value, tuple) else (value,)
            if any(not isinstance(v, kind) or isinstance(v, bool) or not 0 <= v < inf for v in numbers):
                what = "a whole number" if isinstance(one.default, int) else "a finite number"
                raise ValueError(
                    f"{type(self).__name__}.{one.name} must be {what} of at least 0, got {value!r}. "
                    f"Leave it out for the tuned one, {one.default!r}."
                )

    def _below_one(self, name: str) -> None:
        """Refuse a share of nothing or of all: a search would not end by it."""
        if not 0.0 < (value := getattr(self, name)) < 1.0:
            raise ValueError(f"{type(self).__name__}.{name} must lie between 0 and 1, got {value!r}.")
