"""Numbers in messages: short, and rounded to the side that is asked for."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from math import inf
from typing import Literal

import numpy as np

__all__ = ["interval_text", "number"]


def number(value: float, towards: Literal["nearest", "up", "down"] = "nearest") -> str:
    """Print a number in a message: short, whole when it is whole, rounded to the side that is asked for.

    A loosening is printed away from what is demanded, so that what is read off the message is enough.
    """
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    if towards == "nearest" or not np.isfinite(value):
        return f"{value:.6g}"
    context = Context(prec=6, rounding=ROUND_CEILING if towards == "up" else ROUND_FLOOR)
    # The shortest decimal that is this float: the digits of its binary expansion would make 0.900001 of 0.9.
    return f"{float(context.create_decimal(repr(float(value)))):.6g}"


def interval_text(low: float, high: float) -> str:
    """Print an interval in a message."""
    left = "-inf" if low == -inf else number(low)
    right = "inf" if high == inf else number(high)
    return f"({left}, {right})"
