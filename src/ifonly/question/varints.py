"""Whole numbers as bytes, small ones as few: seven bits a byte, the lowest first, and a last byte below 128."""

from __future__ import annotations

import numpy as np

from ifonly.arrays import IntArray

__all__ = ["MOST", "folded", "read_varints", "unfolded", "varints"]

_BYTES = 5  # of one number, at most
MOST = 2 ** (7 * _BYTES)  # numbers are below this


def varints(numbers: IntArray) -> bytes:
    """Return numbers that are not negative as bytes.

    Examples
    --------
    >>> varints(np.array([5, 300])).hex()
    '05ac02'
    """
    out = bytearray()
    for number in numbers.tolist():
        left = number
        while left >= 128:
            out.append(left % 128 + 128)
            left //= 128
        out.append(left)
    return bytes(out)


def read_varints(data: bytes) -> IntArray | None:
    """Return the numbers in some bytes; None: they end in the middle of one, or one of them is too long.

    Examples
    --------
    >>> read_varints(bytes.fromhex("05ac02")).tolist()
    [5, 300]
    """
    digits = np.frombuffer(data, dtype=np.uint8).astype(np.int64)
    last = np.flatnonzero(digits < 128)
    if not last.size:
        return None if digits.size else np.empty(0, dtype=np.int64)
    first = np.concatenate(([0], last[:-1] + 1))
    if last[-1] != len(digits) - 1 or int((last - first).max()) >= _BYTES:
        return None
    number = np.zeros(len(last), dtype=np.int64)
    for i in range(_BYTES):
        there = first + i <= last
        number[there] += (digits[first[there] + i] % 128) << (7 * i)
    return number


def folded(numbers: IntArray) -> IntArray:
    """Return whole numbers as ones that are not negative: 0, -1, 1, -2, 2 become 0, 1, 2, 3, 4."""
    return np.where(numbers >= 0, 2 * numbers, -2 * numbers - 1)


def unfolded(numbers: IntArray) -> IntArray:
    """Return what was folded."""
    return np.where(numbers % 2 == 0, numbers // 2, -(numbers // 2) - 1)
