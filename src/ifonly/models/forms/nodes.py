"""Nodes of all trees in one table, and the order in which a framework adds up their leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.runtime.memo import Lean, cached_property

__all__ = ["Addition", "Nodes"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Nodes(Lean):
    """All nodes of all trees in one table, in raw units; a leaf points to itself.

    Attributes
    ----------
    feature
        The schema feature a node splits on, -1 at a leaf.
    cut
        Numeric split: left iff ``x <= cut``.
    mask
        Categorical split: a row of `masks`, left iff the level is in it; -1 otherwise.
    missing_left
        Where a missing value goes.
    left, right
        Children.
    value
        Scores at leaves, shape (nodes, outputs).
    roots
        The root of each tree.
    """

    feature: IntArray
    cut: FloatArray
    mask: IntArray
    masks: BoolArray
    missing_left: BoolArray
    left: IntArray
    right: IntArray
    value: FloatArray
    roots: IntArray

    @cached_property
    def depth(self) -> int:
        """The longest path from a root to a leaf."""
        level, depth = self.roots, 0
        while level.size:
            level = level[self.feature[level] >= 0]
            depth += bool(level.size)
            level = np.unique(np.concatenate([self.left[level], self.right[level]]))
        return depth


@dataclass(frozen=True, eq=False)
class Addition:
    """Order and precision in which the framework sums the leaves of a row, to the last float, so that its ties are ours.

    ``scores = (base + value[leaf of tree 1] + value[leaf of tree 2] + ...) / over``, in this order and in `dtype`.
    """

    value: FloatArray
    base: FloatArray
    over: float = 1.0
    dtype: npt.DTypeLike = np.float64

    @property
    def precision(self) -> float:
        """The unit of rounding of these floats."""
        return float(np.finfo(np.dtype(self.dtype)).eps)

    def __call__(self, leaf: IntArray) -> FloatArray:
        """Return the scores of rows that fall into these leaves, shape (rows, trees)."""
        value = self.value[leaf].astype(self.dtype)
        value[:, 0] += self.base.astype(self.dtype)
        # NumPy's sum adds in pairs, no framework does; an accumulation goes from left to right.
        total = np.add.accumulate(value, axis=1, dtype=self.dtype)[:, -1]
        return np.asarray(total, dtype=np.float64) / self.over
