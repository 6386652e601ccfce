"""The common unit of some numbers: the largest one of which all are whole multiples, if there is one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.tolerances import MOST_COUNTS, MULTIPLE, UNIT_PARTS

__all__ = ["add_exactly", "are_digits", "common_unit"]


def common_unit(values: FloatArray) -> float:
    """Return the unit of some numbers, 0 if none is found.

    Trees grown to the end vote with 0 or 1, divided by their number; then ties are common, and next to them is nothing.

    Examples
    --------
    >>> common_unit(np.array([0.25, 0.75, 0.0, -0.5])), common_unit(np.array([0.3141, 0.2718]))
    (0.25, 0.0)
    """
    sizes = np.unique(np.abs(values))
    sizes = sizes[sizes > 0.0]
    if not sizes.size:
        return 0.0
    for parts in range(1, UNIT_PARTS + 1):
        counts = sizes * (parts / sizes[0])
        if counts[-1] < MOST_COUNTS and bool((np.abs(counts - np.round(counts)) <= MULTIPLE * counts).all()):
            return float(sizes[0] / parts)
    return 0.0


def add_exactly(values: FloatArray, largest: float, dtype: npt.DTypeLike) -> bool:
    """Say whether sums of these numbers, up to a largest one, are exact in floats of a dtype, in whatever order.

    They are if all are whole multiples of a power of two that is among the digits of the largest sum.

    Examples
    --------
    >>> add_exactly(np.array([0.5, 0.75]), 100.0, np.float32), add_exactly(np.array([0.1, 0.2]), 1.0, np.float64)
    (True, False)
    """
    return bool(are_digits(values, largest, dtype).all())


def are_digits(values: FloatArray, largest: float, dtype: npt.DTypeLike) -> npt.NDArray[np.bool_]:
    """Say which numbers are whole multiples of the last digit of a largest sum in floats of a dtype."""
    _, exponent = np.frexp(largest)
    digits = np.ldexp(values, np.finfo(np.dtype(dtype)).nmant - int(exponent))
    return np.asarray((values.astype(dtype) == values) & (digits == np.rint(digits)))
