"""A sparse row: the weights of one column of an estimator's input, most of which are 0.

A column that a scaler made of one number has one weight that is not 0. As dense rows, the columns of 10,000 numbers would
take 800 MB, and again as much behind every step of a pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray

__all__ = ["SparseRow", "matrix_product", "transposed"]


@dataclass(frozen=True, eq=False)
class SparseRow:
    """A vector of `width` numbers that is 0 but for ``values`` at the places ``at``, each of them named once.

    Where NumPy is given one, it sees the dense vector.
    """

    width: int
    at: IntArray
    values: FloatArray

    @classmethod
    def unit(cls, width: int, at: int) -> SparseRow:
        """Return the unit vector of a place."""
        return cls(width, np.array([at], dtype=np.int64), np.ones(1))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        """Return the dense vector; it is a new one each time."""
        del copy
        dense = np.zeros(self.width)
        dense[self.at] = self.values
        return dense if dtype is None else dense.astype(dtype)

    def __len__(self) -> int:
        return self.width

    def __mul__(self, factor: float) -> SparseRow:
        return SparseRow(self.width, self.at, self.values * factor)

    __rmul__ = __mul__

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def any(self) -> bool:
        """Whether a number is not 0."""
        return bool(self.values.any())

    def within(self, part: slice) -> FloatArray:
        """Return the numbers of a part between two places."""
        dense = np.zeros(part.stop - part.start)
        inside = (self.at >= part.start) & (self.at < part.stop)
        dense[self.at[inside] - part.start] = self.values[inside]
        return dense

    @classmethod
    def of(cls, dense: FloatArray) -> SparseRow:
        """Return a dense vector as a sparse one."""
        at = np.flatnonzero(dense)
        return cls(len(dense), at, dense[at])

    def longer(self, *more: SparseRow) -> SparseRow:
        """Return the vector with others appended."""
        parts, first, places = (self, *more), 0, []
        for part in parts:
            places.append(part.at + first)
            first += part.width
        return SparseRow(first, np.concatenate(places), np.concatenate([part.values for part in parts]))


def matrix_product(C: FloatArray, rows: Sequence[FloatArray | SparseRow | None], width: int) -> FloatArray:
    """Return ``C @ A`` for the matrix ``A`` of some rows, which is not built: of sparse ones, only the entries are taken."""
    out = np.zeros((len(C), width))
    sparse = [(k, row) for k, row in enumerate(rows) if isinstance(row, SparseRow)]
    if sparse:
        at = np.concatenate([row.at for _, row in sparse])
        values = np.concatenate([row.values for _, row in sparse])
        row_of = np.repeat([k for k, _ in sparse], [len(row.at) for _, row in sparse])
        for k, c in enumerate(C):
            out[k] += np.bincount(at, weights=c[row_of] * values, minlength=width)
    dense = [k for k, row in enumerate(rows) if not isinstance(row, SparseRow)]
    if dense:
        out += C[:, dense] @ np.array([_dense(rows[k]) for k in dense]).reshape(len(dense), width)
    return out


def transposed(rows: Sequence[SparseRow], width: int) -> tuple[SparseRow, ...]:
    """Return the columns of a matrix of sparse rows as sparse rows."""
    at = np.concatenate([row.at for row in rows])
    values = np.concatenate([row.values for row in rows])
    row_of = np.repeat(np.arange(len(rows)), [len(row.at) for row in rows])
    order = np.argsort(at, kind="stable")
    ends = np.cumsum(np.bincount(at, minlength=width))[:-1]
    places, numbers = np.split(row_of[order], ends), np.split(values[order], ends)
    return tuple(SparseRow(len(rows), p, v) for p, v in zip(places, numbers, strict=True))


def _dense(row: FloatArray | SparseRow | None) -> npt.ArrayLike:
    assert row is not None
    return np.asarray(row)
