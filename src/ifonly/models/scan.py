"""What single-feature changes do to the scores of trees, for all values of a feature at once.

For a point, count per leaf how many features exclude it. A leaf excluded by no feature is where the point is; a leaf
excluded by feature `j` alone is one that changing only `j` can reach. So the scores of all values of `j` need only
those leaves: a small matrix product instead of a walk through every tree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ifonly.mip import FloatArray, IntArray
from ifonly.models.trees import Trees
from ifonly.schema import Numeric

__all__ = ["TreeScan"]


class TreeScan:
    """Scores along single features (and pairs) from one point."""

    def __init__(self, trees: Trees, u: FloatArray) -> None:
        self.trees = trees
        self.leaves = trees.leaves
        self.features = sorted(trees.features())
        self._column = {j: k for k, j in enumerate(self.features)}
        excluded = np.empty((len(self.features), len(self.leaves.node)), dtype=np.bool_)
        for k, j in enumerate(self.features):
            excluded[k] = ~self.inside(j, u[None, trees.schema.slice(j)], slice(None))[0]
        self.excluded = excluded
        self.count = excluded.sum(axis=0)

    def inside(self, j: int, parts: FloatArray, leaves: IntArray | slice) -> npt.NDArray[np.bool_]:
        """Return, per value of feature `j` (rows of its canonical part) and leaf, whether the leaf allows it."""
        schema, table = self.trees.schema, self.leaves
        if not isinstance(schema.features[j], Numeric):
            allowed = table.levels[leaves, schema.slice(j)]
            known = parts.any(axis=1)
            code = parts.argmax(axis=1)
            return np.where(known[:, None], allowed[:, code].T, table.when_missing[leaves, j][None, :])
        x = parts[:, 0]
        position = np.searchsorted(self.trees.cuts()[j], x, side="left")[:, None]
        low, high = table.low[leaves, j], table.high[leaves, j]
        found = (position > low) & (position <= high)
        missing = np.isnan(x)
        if missing.any():
            found[missing] = table.when_missing[leaves, j]
        return np.asarray(found)

    def along(self, j: int, parts: FloatArray) -> FloatArray:
        """Return the scores when only feature `j` changes, to each of the given canonical parts."""
        near = np.flatnonzero((self.count == 0) | ((self.count == 1) & self.excluded[self._column[j]]))
        inside = self.inside(j, parts, near)
        values = self.trees.nodes.value[self.leaves.node[near]]
        return np.asarray(inside.astype(np.float64) @ values + self.trees.base)

    def along_pair(self, i: int, j: int, parts_i: FloatArray, parts_j: FloatArray) -> FloatArray:
        """Return the scores when features `i` and `j` change, shape (values of i, values of j, outputs)."""
        by = self.excluded[self._column[i]].astype(np.int8) + self.excluded[self._column[j]]
        near = np.flatnonzero(self.count == by)
        first = self.inside(i, parts_i, near).astype(np.float64)
        second = self.inside(j, parts_j, near).astype(np.float64)
        values = self.trees.nodes.value[self.leaves.node[near]]
        scores = [(first * values[:, k]) @ second.T for k in range(values.shape[1])]
        return np.stack(scores, axis=-1) + self.trees.base
