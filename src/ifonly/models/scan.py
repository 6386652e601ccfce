"""What changes of one or two features do to a linear function of the scores of trees, for all values at once.

For a point, count per leaf how many features exclude it. A leaf excluded by no feature is where the point is; a leaf
excluded by feature `j` alone is one that changing only `j` can reach. So the scores of all values of `j` need only
those leaves: a small matrix product instead of a walk through every tree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ifonly.box import Box
from ifonly.mip import FloatArray, IntArray
from ifonly.models.trees import Trees
from ifonly.schema import Numeric

__all__ = ["Brackets", "TreeScan", "inside"]

BoolArray = npt.NDArray[np.bool_]


def inside(trees: Trees, j: int, parts: FloatArray, leaves: IntArray | slice) -> BoolArray:
    """Return, per value of feature `j` (rows of its canonical part) and leaf, whether the leaf allows it."""
    schema, table = trees.schema, trees.leaves
    if not isinstance(schema.features[j], Numeric):
        allowed = np.asarray(table.levels[leaves, schema.slice(j)])
        known: BoolArray = np.asarray(parts.any(axis=1))
        code = parts.argmax(axis=1)
        absent = np.asarray(table.when_missing[leaves, j]).reshape(1, -1)
        return np.asarray(np.where(known[:, None], allowed[:, code].T, absent))
    x = parts[:, 0]
    position = np.searchsorted(trees.cuts()[j], x, side="left")[:, None]
    found: BoolArray = np.asarray((position > table.low[leaves, j]) & (position <= table.high[leaves, j]))
    missing = np.isnan(x)
    if missing.any():
        found[missing] = table.when_missing[leaves, j]
    return found


class Brackets:
    """Linear functions ``G s + c`` of the scores: their leaf values, and how large they can get within a box.

    Parameters
    ----------
    trees
        The form.
    G, c
        One row per function.
    """

    def __init__(self, trees: Trees, G: FloatArray, c: FloatArray) -> None:
        self.trees = trees
        self.leaves = trees.leaves
        self.values: FloatArray = trees.nodes.value[self.leaves.node] @ G.T
        self.constant: FloatArray = G @ trees.base + c
        self.first_leaf = np.searchsorted(self.leaves.tree, np.arange(trees.n_trees))

    def alive(self, box: Box) -> BoolArray:
        """Return the leaves that some point of the box can reach."""
        trees, leaves = self.trees, self.leaves
        alive = np.ones(len(leaves.node), dtype=np.bool_)
        for j in trees.features():
            if box.missing[j]:
                alive &= leaves.when_missing[:, j]
            elif isinstance(trees.schema.features[j], Numeric):
                first, last = np.searchsorted(trees.cuts()[j], [box.lower[j], box.upper[j]], side="left")
                alive &= (leaves.low[:, j] < last) & (leaves.high[:, j] >= first)
            else:
                part = trees.schema.slice(j)
                alive &= (leaves.levels[:, part] & box.allowed[part]).any(axis=1)
        return alive

    def most(self, alive: BoolArray) -> FloatArray:
        """Return an upper bound of each function: every tree at its best leaf still alive."""
        held = np.where(alive[:, None], self.values, -np.inf)
        return np.asarray(np.maximum.reduceat(held, self.first_leaf, axis=0).sum(axis=0) + self.constant)

    def open_leaves(self, alive: BoolArray) -> int:
        """Return how many leaves are alive in trees that are not decided: the size of the program."""
        count = np.add.reduceat(alive.astype(np.int64), self.first_leaf)
        return int(count[count > 1].sum())


class TreeScan:
    """Values of the bracketed functions along single features and pairs, from a point that can be moved."""

    def __init__(self, brackets: Brackets, u: FloatArray) -> None:
        self.brackets = brackets
        self.trees = brackets.trees
        self.leaves = brackets.leaves
        features = sorted(self.trees.features())
        self._column = {j: k for k, j in enumerate(features)}
        self.excluded = np.empty((len(features), len(self.leaves.node)), dtype=np.bool_)
        for k, j in enumerate(features):
            self.excluded[k] = ~self._inside(j, u[None, self.trees.schema.slice(j)], slice(None))[0]
        self.count = self.excluded.sum(axis=0, dtype=np.int16)

    def move(self, j: int, part: FloatArray) -> None:
        """Change one feature of the point."""
        k = self._column[j]
        now = ~self._inside(j, part[None, :], slice(None))[0]
        self.count += now.astype(np.int16) - self.excluded[k]
        self.excluded[k] = now

    def _inside(self, j: int, parts: FloatArray, leaves: IntArray | slice) -> BoolArray:
        return inside(self.trees, j, parts, leaves)

    def along(self, j: int, parts: FloatArray) -> FloatArray:
        """Return the functions when only feature `j` changes, shape (values, functions)."""
        near = np.flatnonzero(self.count == self.excluded[self._column[j]])
        inside = self._inside(j, parts, near)
        return np.asarray(inside.astype(np.float64) @ self.brackets.values[near] + self.brackets.constant)

    def along_pair(self, i: int, j: int, parts_i: FloatArray, parts_j: FloatArray) -> FloatArray:
        """Return the functions when features `i` and `j` change, shape (values of i, values of j, functions)."""
        by = self.excluded[self._column[i]].astype(np.int16) + self.excluded[self._column[j]]
        near = np.flatnonzero(self.count == by)
        first = self._inside(i, parts_i, near).astype(np.float64)
        second = self._inside(j, parts_j, near).astype(np.float64).T
        values = self.brackets.values[near]
        parts = [(first * values[:, k]) @ second for k in range(values.shape[1])]
        return np.stack(parts, axis=-1) + self.brackets.constant
