"""Additive piecewise-constant models as trees of few features each: a table over cells and levels per term.

``scores = base + sum_t table_t[cells of its features]``. As trees, tables of one feature bound each other exactly: over a
box, the best cell of every feature is reached at one and the same point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema
from ifonly.models.forms.trees import Nodes, Trees

__all__ = ["Axis", "Table", "additive"]


@dataclass(frozen=True, eq=False)
class Axis:
    """A feature along which a table runs.

    Attributes
    ----------
    feature
        The feature.
    cuts
        The sorted last values of all cells of a number but the last one; nothing for a category.
    """

    feature: int
    cuts: FloatArray


@dataclass(frozen=True, eq=False)
class Table:
    """A term: the values that it adds to the scores.

    Attributes
    ----------
    axes
        Its features.
    values
        One dimension per axis, with an entry per cell (or level) and a last one for a missing value; then the outputs.
    """

    axes: tuple[Axis, ...]
    values: FloatArray


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

    def tree(self, axes: tuple[Axis, ...], values: FloatArray) -> int:
        """Add a tree for a table, axis by axis: first the missing values, then cells by halves, or levels."""
        if not axes:
            return self.leaf(values)
        axis, j = axes[0], axes[0].feature
        is_number = isinstance(self.schema.features[j], Numeric)
        present = self._cells(axes, values, 0, len(axis.cuts)) if is_number else self._levels(axes, values)
        cut, mask = (-np.inf, -1) if is_number else (np.inf, self._mask(np.empty(0, dtype=np.int64)))
        return self.node(j, cut, mask, True, self.tree(axes[1:], values[-1]), present)

    def _cells(self, axes: tuple[Axis, ...], values: FloatArray, first: int, last: int) -> int:
        """Add the cells from `first` to `last` as a balanced tree."""
        if first == last:
            return self.tree(axes[1:], values[first])
        middle = (first + last) // 2
        left, right = self._cells(axes, values, first, middle), self._cells(axes, values, middle + 1, last)
        return self.node(axes[0].feature, float(axes[0].cuts[middle]), -1, False, left, right)

    def _levels(self, axes: tuple[Axis, ...], values: FloatArray) -> int:
        """Add a subtree per distinct value, with the levels that have it."""
        levels = values[:-1]
        distinct, which = np.unique(levels.reshape(len(levels), -1), axis=0, return_inverse=True)
        below = [self.tree(axes[1:], part.reshape(values.shape[1:])) for part in distinct]
        at = below[-1]
        for k in range(len(below) - 2, -1, -1):
            mask = self._mask(np.flatnonzero(which.reshape(-1) == k))
            at = self.node(axes[0].feature, np.inf, mask, False, below[k], at)
        return at

    def _mask(self, levels: npt.NDArray[np.int64]) -> int:
        width = max(f.width for f in self.schema.features)
        self.masks.append(np.isin(np.arange(width), levels))
        return len(self.masks) - 1


def additive(schema: Schema, tables: Iterable[Table], base: FloatArray) -> Trees:
    """Return the sum of tables as a form."""
    base = np.asarray(base, dtype=np.float64)
    builder = _Builder(schema, len(base))
    merged = [_merged(schema, table) for table in tables if table.values.any()]
    builder.roots = [builder.tree(table.axes, table.values) for table in merged]
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


def _merged(schema: Schema, table: Table) -> Table:
    """Return the table with neighbouring cells as one that are equal all along the other axes.

    What is left is a full grid: its leaves' intervals are the same for every cell of the other axes.
    """
    axes, values = [], table.values
    for k, axis in enumerate(table.axes):
        if isinstance(schema.features[axis.feature], Numeric):
            along = np.moveaxis(values, k, 0)
            cells = along[:-1].reshape(len(along) - 1, -1)
            jump = (cells[1:] != cells[:-1]).any(axis=1)
            values = np.delete(values, np.flatnonzero(~jump), axis=k)
            axes.append(Axis(axis.feature, axis.cuts[jump]))
        else:
            axes.append(axis)
    return Table(tuple(axes), values)
