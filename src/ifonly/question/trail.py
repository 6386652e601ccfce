"""Trail of a search: the parts into which it divided the box, as the leaves of a binary tree written in pre-order.

A split divides all points into two sides, so whatever the splits are, the leaves below them cover the box. A leaf holds no
reason: whoever reads the trail computes for himself why no better answer lies in it. Only the multipliers of Lagrangian
bounds are written beside a leaf or before a split, because finding them again would be a search.

Bytes, little-endian, one event after the other:

    0                                   a leaf
    1  multiplier (float64)             a leaf with the multiplier of its bound
    2 + s  feature (uint32)  value (float64)                 x <= value, or x > value
    4 + s  feature (uint32)  width (uint16)  mask            level in the mask, or not (one bit a level)
    6 + s  feature (uint32)                                  unchanged, or changed

    8  alternative (uint32)             what follows, up to the next of these, is the whole trail of one alternative
    9  rows (uint32)  n (uint32)  n times row (uint32) and dual (float64)   the box as one linear program
    10  exponent (int16)  mu (uint32)  n (uint32)  n bytes    prices of splits, for the part at hand and all parts of it

The first side named comes first where s is 0, the second where s is 1. Prices are those of the part around, changed: the n
bytes are `varints` of the splits whose prices change (twice their name, plus 1 for the price of lying above; each less the
one before and 1) and, after them, as many of the changes in units of 2^exponent. `mu`, the price of the budget, is the upper
half of a float64; it is no change. Alternatives are the classes of a wish for any of
several. A linear program is always the only event: its duals bound the cost from below, or prove that there is no point.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import IntArray
from ifonly.errors import SchemaError
from ifonly.question.varints import folded, read_varints, unfolded, varints

__all__ = [
    "MOST_OF_PRICES",
    "Alternative",
    "Duals",
    "Event",
    "Leaf",
    "Ledger",
    "Prices",
    "Split",
    "alternatives",
    "events",
    "has_prices",
]

BoolArray = npt.NDArray[np.bool_]
_LEAF, _PRICED, _CUT, _LEVELS, _STAYS, _ALTERNATIVE, _DUALS, _PRICES = 0, 1, 2, 4, 6, 8, 9, 10
_PRICE, _AT, _MASK, _FEATURE = struct.Struct("<d"), struct.Struct("<Id"), struct.Struct("<IH"), struct.Struct("<I")
_SIZES, _DUAL = struct.Struct("<II"), np.dtype([("row", "<u4"), ("dual", "<f8")])
_OF_PRICES, MOST_OF_PRICES = struct.Struct("<hII"), 2**21  # bytes of the prices of one part: they are unpacked at once


@dataclass(frozen=True, slots=True)
class Leaf:
    """A part that is closed, with the multiplier of its bound where there is one."""

    price: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A division of a part by one feature.

    Attributes
    ----------
    feature
        The feature.
    value
        First side: at most this; second side: more.
    levels
        First side: one of these; second side: another one.
    second_first
        Whether the second side is the one that comes next. Without a value and levels the sides are "unchanged" and
        "changed".
    """

    feature: int
    value: float | None = None
    levels: BoolArray | None = None
    second_first: bool = False


@dataclass(frozen=True, slots=True)
class Alternative:
    """Beginning of the trail of one alternative."""

    name: int


@dataclass(frozen=True, slots=True, eq=False)
class Duals:
    """Duals of a linear program with so many rows: those that are not 0, by their rows."""

    n_rows: int
    row: npt.NDArray[np.int64]
    dual: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Prices of splits, as changes of those of the part around.

    Attributes
    ----------
    exponent
        Changes are in units of 2 to the power of this.
    mu
        The price of the budget.
    split
        Twice the name of each split whose price of lying below it changes; plus 1, of lying above it.
    change
        By how much.
    """

    exponent: int
    mu: float
    split: IntArray
    change: IntArray


Event = Leaf | Split | Alternative | Duals | Prices


class Ledger:
    """Writer of a trail.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.cut(3, 12.5), ledger.leaf(), ledger.leaf(0.25)
    (None, None, None)
    >>> [type(event).__name__ for event in events(bytes(ledger.data))]
    ['Split', 'Leaf', 'Leaf']
    """

    def __init__(self) -> None:
        self.data = bytearray()

    def clear(self) -> None:
        """Forget a search that was given up."""
        self.data.clear()

    def leaf(self, price: float | None = None) -> None:
        """Note a closed part."""
        self.data += bytes([_LEAF]) if price is None else bytes([_PRICED]) + _PRICE.pack(price)

    def cut(self, j: int, value: float, second_first: bool = False) -> None:
        """Note a split of a number: at most `value`, or more."""
        self.data += bytes([_CUT + second_first]) + _AT.pack(j, value)

    def levels(self, j: int, mask: BoolArray, second_first: bool = False) -> None:
        """Note a split of a category: one of these levels, or another."""
        self.data += bytes([_LEVELS + second_first]) + _MASK.pack(j, len(mask)) + np.packbits(mask).tobytes()

    def stays(self, j: int, second_first: bool = False) -> None:
        """Note a split into "unchanged" and "changed"."""
        self.data += bytes([_STAYS + second_first]) + _FEATURE.pack(j)

    def duals(self, values: npt.NDArray[np.float64]) -> None:
        """Note the duals of the rows of a linear program."""
        rows = np.flatnonzero(values)
        table = np.empty(len(rows), dtype=_DUAL)
        table["row"], table["dual"] = rows, values[rows]
        self.data += bytes([_DUALS]) + _SIZES.pack(len(values), len(rows)) + table.tobytes()

    def prices(self, prices: Prices) -> None:
        """Note prices of splits; of `mu` only the upper half is kept."""
        upper = struct.unpack("<Q", _PRICE.pack(prices.mu))[0] >> 32
        block = varints(np.diff(prices.split, prepend=-1) - 1) + varints(folded(prices.change))
        self.data += bytes([_PRICES]) + _OF_PRICES.pack(prices.exponent, upper, len(block)) + block


def has_prices(trail: bytes) -> bool:
    """Whether a trail has prices of splits, before anything in it that is no event."""
    try:
        return any(isinstance(event, Prices) for event in events(trail))
    except SchemaError:
        return False


def alternatives(trails: Mapping[int | None, bytes]) -> bytes:
    """Return the trails of all alternatives as one; none where one of them has none."""
    if not trails or None in trails or not all(trails.values()):
        return b""
    return b"".join(bytes([_ALTERNATIVE]) + _FEATURE.pack(name) + trail for name, trail in trails.items())


def events(data: bytes) -> Iterator[Event]:
    """Yield the events of a trail one by one.

    Raises
    ------
    SchemaError
        When the bytes are no events.
    """
    at, end = 0, len(data)
    while at < end:
        kind, at = data[at], at + 1
        try:
            if kind == _LEAF:
                yield Leaf()
            elif kind == _PRICED:
                yield Leaf(_PRICE.unpack_from(data, at)[0])
                at += _PRICE.size
            elif kind - kind % 2 == _CUT:
                feature, value = _AT.unpack_from(data, at)
                at += _AT.size
                yield Split(feature, value=value, second_first=bool(kind % 2))
            elif kind - kind % 2 == _LEVELS:
                feature, width = _MASK.unpack_from(data, at)
                at += _MASK.size
                packed = data[at : at + (width + 7) // 8]
                at += (width + 7) // 8
                mask = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=width).astype(np.bool_)
                if at > end:
                    raise SchemaError("The proof ends in the middle of a part.")
                yield Split(feature, levels=mask, second_first=bool(kind % 2))
            elif kind - kind % 2 == _STAYS:
                yield Split(_FEATURE.unpack_from(data, at)[0], second_first=bool(kind % 2))
                at += _FEATURE.size
            elif kind == _ALTERNATIVE:
                yield Alternative(_FEATURE.unpack_from(data, at)[0])
                at += _FEATURE.size
            elif kind == _DUALS:
                event, at = _read_duals(data, at)
                yield event
            elif kind == _PRICES:
                prices, at = _read_prices(data, at)
                yield prices
            else:
                raise SchemaError(f"The proof has an event of kind {kind}, which there is not.")
        except struct.error:
            raise SchemaError("The proof ends in the middle of a part.") from None


def _read_duals(data: bytes, at: int) -> tuple[Duals, int]:
    n_rows, n = _SIZES.unpack_from(data, at)
    at += _SIZES.size
    if n > n_rows or n > (len(data) - at) // _DUAL.itemsize:
        raise SchemaError("The proof ends in the middle of its duals.")
    table = np.frombuffer(data, dtype=_DUAL, count=n, offset=at)
    row, dual = table["row"].astype(np.int64), table["dual"].astype(np.float64)
    if (np.diff(row, prepend=-1) <= 0).any() or (row >= n_rows).any():
        raise SchemaError("The duals of the proof are not in the order of their rows.")
    if not np.isfinite(dual).all():
        raise SchemaError("A dual of the proof is no number.")
    return Duals(n_rows, row, dual), at + n * _DUAL.itemsize


def _read_prices(data: bytes, at: int) -> tuple[Prices, int]:
    exponent, upper, size = _OF_PRICES.unpack_from(data, at)
    at += _OF_PRICES.size
    if size > len(data) - at:
        raise SchemaError("The proof ends in the middle of its prices.")
    if size > MOST_OF_PRICES:
        raise SchemaError(f"The proof has more than {MOST_OF_PRICES:,} bytes of prices for one part.")
    mu = float(_PRICE.unpack(struct.pack("<Q", upper << 32))[0])
    numbers = read_varints(data[at : at + size])
    if numbers is None or len(numbers) % 2 or not 0.0 <= mu < np.inf:
        raise SchemaError("The prices of the proof are no numbers.")
    gaps, changes = np.split(numbers, 2)
    split = np.cumsum(gaps + 1) - 1
    return Prices(exponent, mu, split, unfolded(changes)), at + size
