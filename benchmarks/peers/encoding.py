"""The numeric encoding that all methods share: raw numbers as they are, one 0/1 column per level of a category.

Workers import this file from their own environments, so it needs nothing but NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Encoding", "Field", "FloatArray", "Norm"]

FloatArray = npt.NDArray[np.float64]
Kind = Literal["number", "integer", "category"]
Norm = Literal["l1", "l2", "linf", "mahalanobis"]
_WHOLE = 1e-9


@dataclass(frozen=True)
class Field:
    """One feature: what it is, where it lives in the matrix, and what it may be."""

    name: str
    kind: Kind
    columns: tuple[int, ...]
    low: float = 0.0
    high: float = 1.0
    levels: tuple[str, ...] = ()

    @property
    def span(self) -> float:
        """Divisor of a change."""
        return self.high - self.low if self.kind != "category" and self.high > self.low else 1.0


@dataclass(frozen=True)
class Encoding:
    """All features. A row has a matrix form (one 0/1 column per level) and a code form (one column per feature)."""

    fields: tuple[Field, ...]

    @property
    def width(self) -> int:
        """Number of matrix columns."""
        return sum(len(f.columns) for f in self.fields)

    def matrix(self, codes: FloatArray) -> FloatArray:
        """Return coded rows in matrix form."""
        out = np.zeros((len(codes), self.width))
        for j, field in enumerate(self.fields):
            if field.kind == "category":
                out[np.arange(len(codes)), np.asarray(field.columns)[codes[:, j].astype(int)]] = 1.0
            else:
                out[:, field.columns[0]] = codes[:, j]
        return out

    def codes(self, matrix: FloatArray) -> FloatArray:
        """Return matrix rows in code form: the number, or the position of the level."""
        out = np.zeros((len(matrix), len(self.fields)))
        for j, field in enumerate(self.fields):
            part = matrix[:, list(field.columns)]
            out[:, j] = part.argmax(axis=1) if field.kind == "category" else part[:, 0]
        return out

    def distance(self, row: FloatArray, other: FloatArray, norm: Norm = "l1") -> float:
        """Return the distance of two matrix rows.

        The sum of |dx| / range and 1 per switched category (l1), the sum of their squares (l2), the largest (linf); NaN
        for one that needs more than the two rows.
        """
        a, b = self.codes(row[None, :])[0], self.codes(other[None, :])[0]
        parts = [
            float(a[j] != b[j]) if field.kind == "category" else abs(a[j] - b[j]) / field.span
            for j, field in enumerate(self.fields)
        ]
        if norm == "mahalanobis":
            return float("nan")
        return float(max(parts) if norm == "linf" else sum(p * p for p in parts) if norm == "l2" else sum(parts))

    def coherent(self, row: FloatArray, factual: FloatArray) -> bool:
        """Whether whole numbers are whole, each category has one level, and changed numbers keep to their range."""
        for field in self.fields:
            part, before = row[list(field.columns)], factual[list(field.columns)]
            if field.kind == "category":
                if not (np.isin(part, (0.0, 1.0)).all() and part.sum() == 1.0):
                    return False
            elif part[0] != before[0]:
                slack = _WHOLE * max(1.0, abs(field.low), abs(field.high))
                whole = field.kind == "number" or abs(part[0] - round(part[0])) <= _WHOLE
                if not whole or not field.low - slack <= part[0] <= field.high + slack:
                    return False
        return True

    def to_json(self) -> list[dict[str, Any]]:
        """Return plain values."""
        return [asdict(f) for f in self.fields]

    @classmethod
    def from_json(cls, data: Sequence[dict[str, Any]]) -> Encoding:
        """Return the encoding that `to_json` described."""
        return cls(tuple(Field(**{k: tuple(v) if isinstance(v, list) else v for k, v in f.items()}) for f in data))
