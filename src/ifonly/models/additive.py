"""Additive piecewise-constant models as trees of one feature each: a table over cells or levels per feature.

``scores = base + sum_j table_j[cell of x_j]``. As trees the tables bound each other exactly: over a box, the best cell of
every feature is reached at one and the same point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.mip import FloatArray
from ifonly.models.trees import Nodes, Trees
from ifonly.schema import Numeric, Schema

__all__ = ["Table", "additive"]


@dataclass(frozen=True, eq=False)
class Table:
    """What one feature adds to each score.

    Attributes
    ----------
    feature
        The feature.
    cuts
        The sorted last values of all cells of a number but the last one; nothing for a category.
    values
        One row per cell, or per level.
    missing
        What it adds when the feature is missing.
    """

    feature: int
    cuts: FloatArray
    values: FloatArray
    missing: FloatArray

    @property
    def is_zero(self) -> bool:
        """Whether the feature adds nothing, present or missing."""
        return not (self.values.any() or self.missing.any())


class _Builder:
    """A table of nodes that grows tree by tree."""

    def __init__(self, schema: Schema, outputs: int) -> None:
        self.schema, self.outputs = schema, outputs
        self.rows: list[tuple[int, float, int, bool, int, int]] = []
        self.values: list[FloatArray] = []
        self.masks: list[npt.NDArray[np.bool_]] = []
        self.roots: list[int] = []

    def leaf(self, value: FloatArray) -> int:
        """Add a leaf."""
        i = len(self.rows)
        self.rows.append((-1, np.inf, -1, False, i, i))
        self.values.append(value)
        return i

    def node(self, j: int, cut: float, mask: int, missing_left: bool, left: int, right: int) -> int:
        """Add a split."""
        self.rows.append((j, cut, mask, missing_left, left, right))
        self.values.append(np.zeros(self.outputs))
        return len(self.rows) - 1

    def tree(self, table: Table) -> None:
        """Add a tree for a table: first the missing values, then cells by halves, or levels of equal values."""
        j, is_number = table.feature, isinstance(self.schema.features[table.feature], Numeric)
        present = self._cells(table, 0, len(table.cuts)) if is_number else self._levels(table)
        cut, mask = (-np.inf, -1) if is_number else (np.inf, self._mask(np.empty(0, dtype=np.int64)))
        self.roots.append(self.node(j, cut, mask, True, self.leaf(table.missing), present))

    def _cells(self, table: Table, first: int, last: int) -> int:
        """Add the cells from `first` to `last` as a balanced tree; equal neighbours are one leaf."""
        if (table.values[first : last + 1] == table.values[first]).all():
            return self.leaf(table.values[first])
        middle = (first + last) // 2
        left, right = self._cells(table, first, middle), self._cells(table, middle + 1, last)
        return self.node(table.feature, float(table.cuts[middle]), -1, False, left, right)

    def _levels(self, table: Table) -> int:
        """Add a leaf per value, with the levels that have it."""
        distinct, which = np.unique(table.values, axis=0, return_inverse=True)
        at = self.leaf(distinct[-1])
        for k in range(len(distinct) - 2, -1, -1):
            mask = self._mask(np.flatnonzero(which.reshape(-1) == k))
            at = self.node(table.feature, np.inf, mask, False, self.leaf(distinct[k]), at)
        return at

    def _mask(self, levels: npt.NDArray[np.int64]) -> int:
        width = max(f.width for f in self.schema.features)
        self.masks.append(np.isin(np.arange(width), levels))
        return len(self.masks) - 1


def additive(schema: Schema, tables: Iterable[Table], base: FloatArray) -> Trees:
    """Return the sum of tables as a form."""
    base = np.asarray(base, dtype=np.float64)
    builder = _Builder(schema, len(base))
    for table in tables:
        if not table.is_zero:
            builder.tree(table)
    if not builder.roots:
        builder.roots.append(builder.leaf(np.zeros(len(base))))
    feature, cut, mask, missing, left, right = (np.array(part) for part in zip(*builder.rows, strict=True))
    masks = np.array(builder.masks, dtype=np.bool_) if builder.masks else np.zeros((1, 1), dtype=np.bool_)
    nodes = Nodes(
        feature=feature.astype(np.int64),
        cut=cut.astype(np.float64),
        mask=mask.astype(np.int64),
        masks=masks,
        missing_left=missing.astype(np.bool_),
        left=left.astype(np.int64),
        right=right.astype(np.int64),
        value=np.array(builder.values),
        roots=np.array(builder.roots, dtype=np.int64),
    )
    return Trees(schema, nodes, base)
