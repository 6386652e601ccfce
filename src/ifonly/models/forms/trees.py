"""The tree-ensemble form: leaves as boxes in raw units, one literal per cut, no big-M.

Every leaf is a box: an interval ``(low_j, high_j]`` per numeric feature and a set of levels per categorical one. With
order literals ``b[j,v] <=> x_j <= t[j,v]`` (see `ifonly.program.variables`) and ``y[l] >= 0`` for the leaves of tree ``t``:

    sum_l y[l] = 1                                                  for each tree
    sum {y[l] : high_j(l) <= t[j,v]}      <=     b[j,v]             for each tree, feature and cut
    sum {y[l] : low_j(l)  >= t[j,v]}      <= 1 - b[j,v]             for each tree, feature and cut
    sum {y[l] : level not allowed in l}   <= 1 - q[j,level]         for each tree, feature and level

The sums are cumulative over all leaves of a tree that imply the literal, not only those below one node, which is
tighter than the node-wise rows of Misic (2020) at the same number of rows. Leaves outside the box are never built.

Two trees with three cuts. The first goes by ``age <= 30`` to -1, else by ``debt <= 5`` to 2 or 1; the second by
``age <= 40`` to 0 or 3. Nodes are numbered tree by tree, and a leaf (feature -1) points to itself:

>>> import pandas as pd
>>> schema = Schema.infer(pd.DataFrame({"age": [20.5, 60.5], "debt": [0.5, 9.5]}))
>>> at_leaf = np.inf
>>> nodes = Nodes(
...     feature=np.array([0, -1, 1, -1, -1, 0, -1, -1]),
...     cut=np.array([30, at_leaf, 5, at_leaf, at_leaf, 40, at_leaf, at_leaf]),
...     mask=np.full(8, -1),
...     masks=np.zeros((0, 1), bool),
...     missing_left=np.zeros(8, bool),
...     left=np.array([1, 1, 3, 3, 4, 6, 6, 7]),
...     right=np.array([2, 1, 4, 3, 4, 7, 6, 7]),
...     value=np.array([[0.0], [-1], [0], [2], [1], [0], [0], [3]]),
...     roots=np.array([0, 5]),
... )
>>> from ifonly.program.variables import Variables
>>> form, u, mip = Trees(schema, nodes, base=np.zeros(1)), np.array([25.5, 3.5]), Mip()
>>> (score,) = form.embed(mip, Variables(mip, Box.of(schema, u), u, form.cuts(), form.raw()))

Columns are the five leaves ``y``, the literals of both cuts of age and of the one of debt. Nine rows come out:

>>> program = mip.arrays()
>>> for row, upper in zip(program.matrix.toarray(), program.row_upper):
...     print("".join(f"{int(a):3}" if a else "  ." for a in row), " <=", int(upper))
  1  1  1  .  .  .  .  .  <= 1
  .  .  .  1  1  .  .  .  <= 1
  .  .  .  .  .  1 -1  .  <= 0
  1  .  .  .  . -1  .  .  <= 0
  .  .  .  1  .  . -1  .  <= 0
  .  1  1  .  .  1  .  .  <= 1
  .  .  .  .  1  .  1  .  <= 1
  .  1  .  .  .  .  . -1  <= 0
  .  .  1  .  .  .  .  1  <= 1

The first two are equations: one leaf of each tree. The third orders the literals: at most 30 is at most 40. Then, for age,
the leaf below 30 needs its literal and so does the one below 40, the leaves above 30 (both in one row) and above 40 need
that it is off; the last two say the same of debt, at 5. With the literals fixed, one leaf of each tree is left:

>>> score.values.tolist(), form(u[None, :]).tolist()  # at age 25.5: -1 + 0
([-1.0, 2.0, 1.0, 0.0, 3.0], [[-1.0]])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric, Schema
from ifonly.models.forms.leaf_rows import add_rows, cumulative, near_zero, partition_rows
from ifonly.models.forms.leaves import Leaves
from ifonly.models.forms.nodes import Addition, Nodes
from ifonly.models.forms.units import add_exactly, are_digits, common_unit
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip
from ifonly.runtime.memo import Lean, cached_property
from ifonly.runtime.tuning import DEFAULT

__all__ = ["Addition", "Nodes", "Trees"]

BoolArray = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Trees(Lean):
    """``scores = base + sum over trees of the value of the leaf that the input falls into``.

    `addition` is the same sum as the framework computes it; by default tree by tree in double precision. `left_over` are
    the leaves that a box has left, for points of that box only; None: all leaves. `rows_at_once` fall through the trees
    together.
    """

    schema: Schema
    nodes: Nodes
    base: FloatArray
    addition: Addition | None = None
    left_over: Leaves | None = None
    rows_at_once: int = DEFAULT.forms.rows_at_once

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return len(self.base)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.nodes.roots)

    # -- NumPy's side -------------------------------------------------------------------------------------------
    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores of canonical rows."""
        out = np.empty((len(U), self.n_outputs))
        for start in range(0, len(U), self.rows_at_once):
            part = U[start : start + self.rows_at_once]
            out[start : start + len(part)] = self.added(self.leaf_of(part))
        return out

    def added(self, leaf: IntArray) -> FloatArray:
        """Return the scores of rows that fall into these leaves, added up as the framework does."""
        return self.sums(leaf)

    @cached_property
    def sums(self) -> Addition:
        """The sum as the framework computes it."""
        return self.addition or Addition(self.nodes.value, self.base)

    def leaf_values(self, node: IntArray) -> FloatArray:
        """Return what leaf nodes add to the scores."""
        return np.asarray(self.nodes.value[node])

    def leaf_of(self, U: FloatArray) -> IntArray:
        """Return the leaf node of each row in each tree, shape (rows, trees)."""
        n = self.nodes
        values, codes = self._columns(U)
        at = np.broadcast_to(n.roots, (len(U), self.n_trees)).copy()
        row = np.arange(len(U))[:, None]
        categorical = bool((n.mask >= 0).any())
        for _ in range(n.depth):
            feature = n.feature[at]
            x = values[row, feature]
            left = x <= n.cut[at]
            missing = np.isnan(x)
            if categorical:
                mask = n.mask[at]
                by_level = mask >= 0
                code = np.where(by_level, codes[row, feature], 0)
                left = np.where(by_level, n.masks[mask, code], left)
                missing = np.where(by_level, code < 0, missing)
            left = np.where(missing, n.missing_left[at], left)
            at = np.where(left, n.left[at], n.right[at])
        return at

    def _columns(self, U: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return numeric values and level positions per feature; the last column serves the leaves' feature -1."""
        values = np.zeros((len(U), len(self.schema) + 1))
        codes = np.zeros((len(U), len(self.schema) + 1), dtype=np.int64)
        for j in sorted(self.features()):
            part = U[:, self.schema.slice(j)]
            if isinstance(self.schema.features[j], Numeric):
                values[:, j] = part[:, 0]
            else:
                codes[:, j] = np.where(part.any(axis=1), part.argmax(axis=1), -1)
        return values, codes

    def cuts(self) -> Mapping[int, FloatArray]:
        """Return the raw thresholds per numeric feature."""
        return self._cuts

    @cached_property
    def _cuts(self) -> dict[int, FloatArray]:
        if self.left_over is not None:
            return dict(self.left_over.cuts)
        n = self.nodes
        out = {}
        for j in sorted(self.features()):
            if isinstance(self.schema.features[j], Numeric):
                cuts = n.cut[(n.feature == j) & np.isfinite(n.cut)]
                out[j] = np.unique(cuts)
        return out

    def raw(self) -> frozenset[int]:
        """Trees never need raw values."""
        return frozenset()

    def features(self) -> frozenset[int]:
        """Return the features that some tree splits on."""
        return self._features

    @cached_property
    def _features(self) -> frozenset[int]:
        if self.left_over is not None:
            return frozenset(self.left_over.features)
        return frozenset(int(j) for j in np.unique(self.nodes.feature) if j >= 0)

    def refined(self, u: FloatArray) -> None:
        """Trees are exact."""

    def magnitude(self, box: Box, *, centred: bool = False) -> FloatArray:  # noqa: ARG002 - the same in every box
        """Return the sum of the largest leaf of each tree, in absolute terms, for each score."""
        largest = np.maximum.reduceat(np.abs(self.nodes.value[self.leaves.node]), self.leaves.first, axis=0)
        return np.asarray(largest.sum(axis=0) + np.abs(self.base))

    @property
    def precision(self) -> float:
        """The unit of rounding of the floats in which leaves are added up."""
        return float(np.finfo(np.float64).eps) if self.addition is None else self.addition.precision

    @cached_property
    def spacing(self) -> float:
        """The unit of which all leaf values are whole multiples; else 0. On paper, no two scores are nearer."""
        values = self.nodes.value[self.nodes.feature < 0]
        return common_unit(np.append(values.ravel(), self.base))

    @cached_property
    def adds_exactly(self) -> bool:
        """Whether no sum of leaves is rounded by the framework, so that a tie on paper is a tie to it."""
        add = self.sums
        if self.n_trees == 1 and not add.base.any():
            return True
        values = np.append(add.value[self.nodes.feature < 0].ravel(), add.base)
        return add_exactly(values, self._largest_sum, add.dtype)

    @cached_property
    def _largest_sum(self) -> float:
        add = self.sums
        largest = np.maximum.reduceat(np.abs(add.value[self.leaves.node]), self.leaves.first, axis=0).sum(axis=0)
        return float((largest + np.abs(add.base)).max())

    def adds_exactly_at(self, node: IntArray) -> BoolArray:
        """Say of which leaf nodes sums are exact, in whatever order, as long as all leaves are among them."""
        add = self.sums
        if not add_exactly(add.base, self._largest_sum, add.dtype):
            return np.zeros(len(node), dtype=np.bool_)
        return np.asarray(are_digits(add.value[node], self._largest_sum, add.dtype).all(axis=1))

    @cached_property
    def resolution(self) -> float:
        """The least absolute score other than 0 that there can be; 0 if it is not known."""
        if self.n_trees > 1:
            return self.spacing
        values = np.abs(self.nodes.value[self.nodes.feature < 0] + self.base)
        return float(values[values > 0.0].min(initial=np.inf)) if bool((values > 0.0).any()) else 0.0

    def plateau(self, box: Box, u: FloatArray) -> Box:
        """Return the part of a box in which every tree stays in the leaf it has at `u`."""
        leaves, part = self.leaves, box.copy()
        at = np.flatnonzero(np.isin(leaves.node, self.leaf_of(u[None, :])[0]))
        low, high = leaves.low[at].max(axis=0), leaves.high[at].min(axis=0)
        for j in leaves.features:
            if part.missing[j]:
                continue
            if not isinstance(self.schema.features[j], Numeric):
                part.keep_levels(j, np.asarray(leaves.levels[at][:, self.schema.slice(j)].all(axis=0)))
                continue
            feature, cuts = box.schema.features[j], self._cuts[j]  # on the grid of the question, where it has one
            assert isinstance(feature, Numeric)
            ends = [cuts[k] for k in (low[j], high[j]) if 0 <= k < len(cuts)]
            cells = Cells.of(feature, float(box.lower[j]), float(box.upper[j]), np.array(ends, dtype=np.float64))
            k = int(cells.index(u[self.schema.starts[j]]))
            part.lower[j], part.upper[j] = cells.low[k], cells.high[k]
        return part

    # -- leaves as boxes ----------------------------------------------------------------------------------------
    @cached_property
    def leaves(self) -> Leaves:
        """Every leaf as a box, computed level by level for all trees at once."""
        if self.left_over is not None:
            return self.left_over
        n, m = self.nodes, len(self.schema)
        node: IntArray = n.roots
        tree: IntArray = np.arange(self.n_trees, dtype=np.int64)
        low: Positions = np.full((len(node), m), -1, dtype=np.int32)
        high: Positions = np.full((len(node), m), 2**30, dtype=np.int32)
        levels: BoolArray = np.ones((len(node), self.schema.width), dtype=np.bool_)
        missing: BoolArray = np.ones((len(node), m), dtype=np.bool_)
        done: list[tuple[npt.NDArray[Any], ...]] = []
        while node.size:
            leaf = n.feature[node] < 0
            done.append((node[leaf], tree[leaf], low[leaf], high[leaf], levels[leaf], missing[leaf]))
            node, tree, low, high = node[~leaf], tree[~leaf], low[~leaf], high[~leaf]
            levels, missing = levels[~leaf], missing[~leaf]
            if node.size:
                left = self._child(node, low, high, levels, missing, go_left=True)
                right = self._child(node, low, high, levels, missing, go_left=False)
                both = [np.concatenate(pair) for pair in zip(left, right, strict=True)]
                some = self._inhabited(np.concatenate([n.feature[node], n.feature[node]]), *both)
                low, high, levels, missing = (part[some] for part in both)
                node = np.concatenate([n.left[node], n.right[node]])[some]
                tree = np.concatenate([tree, tree])[some]
        parts = [np.concatenate(p) for p in zip(*done, strict=True)]
        order = np.argsort(parts[1], kind="stable")
        return Leaves(self.schema, tuple(sorted(self.features())), self._cuts, *(p[order] for p in parts))

    def within(self, box: Box) -> Trees:
        """Return the same trees for points of a box: leaves and cuts that it rules out are never built."""
        return replace(self, left_over=self.leaves.within(box))

    def _child(
        self,
        node: IntArray,
        low: Positions,
        high: Positions,
        levels: BoolArray,
        missing: BoolArray,
        *,
        go_left: bool,
    ) -> tuple[Positions, Positions, BoolArray, BoolArray]:
        """Return the boxes of the left or right children."""
        n = self.nodes
        low, high, levels, missing = low.copy(), high.copy(), levels.copy(), missing.copy()
        feature, rows = n.feature[node], np.arange(len(node))
        numeric = n.mask[node] < 0
        position = self._cut_position(feature, n.cut[node])
        at, by = rows[numeric], feature[numeric]
        if go_left:
            high[at, by] = np.minimum(high[at, by], position[numeric])
        else:
            low[at, by] = np.maximum(low[at, by], position[numeric])
        missing[rows, feature] &= n.missing_left[node] == go_left
        for j in np.unique(feature[~numeric]):
            at = rows[~numeric & (feature == j)]
            width = self.schema.features[int(j)].width
            inside = n.masks[n.mask[node[at]], :width]
            levels[at, self.schema.slice(int(j))] &= inside if go_left else ~inside
        return low, high, levels, missing

    def _inhabited(
        self, feature: IntArray, low: Positions, high: Positions, levels: BoolArray, missing: BoolArray
    ) -> BoolArray:
        """Return which boxes some value of the feature just split on lies in: paths that share nodes contradict."""
        rows = np.arange(len(feature))
        some: BoolArray = (low[rows, feature] < high[rows, feature]) | missing[rows, feature]
        for j in np.unique(feature):
            if not isinstance(self.schema.features[int(j)], Numeric):
                at = feature == j
                some[at] = levels[at][:, self.schema.slice(int(j))].any(axis=1) | missing[at, j]
        return some

    def _cut_position(self, feature: IntArray, cut: FloatArray) -> Positions:
        """Return where each cut stands among the sorted cuts of its feature; -1 is never, 2**30 is always."""
        out = np.where(cut > 0, 2**30, -1).astype(np.int32)
        finite = np.isfinite(cut)
        for j in np.unique(feature[finite]):
            at = finite & (feature == j)
            out[at] = np.searchsorted(self._cuts.get(int(j), np.empty(0)), cut[at])
        return out

    # -- the optimiser's side -----------------------------------------------------------------------------------
    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Add the leaves that the box leaves open, and their rows."""
        leaves = self.leaves
        low, high, alive = self._place(x)
        tree, node = leaves.tree[alive], leaves.node[alive]
        low, high, levels = low[alive], high[alive], leaves.levels[alive]
        count = np.bincount(tree, minlength=self.n_trees)
        several = count[tree] > 1
        constant = self.nodes.value[node[~several]].sum(axis=0) + self.base
        tree, node = tree[several], node[several]
        y = mip.columns(len(node), 0.0, 1.0, name="leaf")
        if len(node):
            used, group = np.unique(tree, return_inverse=True)
            # sum_l y[l] = 1 for each tree
            mip.rows(group.astype(np.int64), y, np.ones(len(y)), 1.0, 1.0, len(used))
            self._numeric_rows(mip, x, y, group, low[several], high[several])
            self._level_rows(mip, x, y, group, levels[several])
        values, constant = near_zero(self.nodes.value[node], tree, constant)
        return [Affine(y, np.ascontiguousarray(values[:, k]), float(constant[k])) for k in range(self.n_outputs)]

    def _place(self, x: Inputs) -> tuple[Positions, Positions, BoolArray]:
        """Return the cells each leaf spans per feature, ``low..high`` inclusive, and which leaves are reachable."""
        leaves = self.leaves
        alive = np.ones(len(leaves.node), dtype=np.bool_)
        low = np.zeros_like(leaves.low)
        high = np.zeros_like(leaves.high)
        for j in sorted(self.features()):
            if x.box.missing[j]:
                alive &= leaves.when_missing[:, j]
                continue
            if not isinstance(self.schema.features[j], Numeric):
                part = self.schema.slice(j)
                alive &= (leaves.levels[:, part] & x.box.allowed[part]).any(axis=1)
                continue
            last = x.cells(j).cuts.size
            table = np.concatenate([x.literal_index(j, self._cuts[j]), [last, -1]])
            low[:, j] = table[np.minimum(leaves.low[:, j], len(table) - 2)] + 1
            high[:, j] = table[np.minimum(leaves.high[:, j], len(table) - 2)]
            alive &= low[:, j] <= high[:, j]
        return low, high, alive

    def _numeric_rows(self, mip: Mip, x: Inputs, y: IntArray, tree: IntArray, low: Positions, high: Positions) -> None:
        for j in sorted(self.features()):
            if x.box.missing[j] or not isinstance(self.schema.features[j], Numeric):
                continue
            last = x.cells(j).cuts.size
            if not ((low[:, j] > 0) | (high[:, j] < last)).any():
                continue
            left = ~partition_rows(mip, x.literals(j), y, tree, low[:, j], high[:, j], last)
            bounded = np.flatnonzero(left & (high[:, j] < last))
            if bounded.size:
                b = x.literals(j)
                row, column, key, n = cumulative(tree[bounded], high[bounded, j], y[bounded], ascending=True)
                # sum {y[l] : high_j(l) <= t[j,v]} - b[j,v] <= 0, per tree and cut
                add_rows(mip, row, column, np.arange(n), b[key], -1.0, 0.0, n)
            bounded = np.flatnonzero(left & (low[:, j] > 0))
            if bounded.size:
                b = x.literals(j)
                row, column, key, n = cumulative(tree[bounded], low[bounded, j], y[bounded], ascending=False)
                # sum {y[l] : low_j(l) >= t[j,v]} + b[j,v] <= 1, per tree and cut
                add_rows(mip, row, column, np.arange(n), b[key - 1], 1.0, 1.0, n)

    def _level_rows(self, mip: Mip, x: Inputs, y: IntArray, tree: IntArray, levels: BoolArray) -> None:
        for j in sorted(self.features()):
            if isinstance(self.schema.features[j], Numeric) or x.box.is_fixed(j):
                continue
            start = self.schema.starts[j]
            for level in np.flatnonzero(x.box.allowed[self.schema.slice(j)]):
                outside = np.flatnonzero(~levels[:, start + level])
                if not outside.size:
                    continue
                q = x.level_in(j, np.arange(self.schema.features[j].width) == level)
                used, row = np.unique(tree[outside], return_inverse=True)
                n = len(used)
                column = np.repeat(q.columns, n)
                # sum {y[l] : level not allowed in l} + q[j,level] <= 1, per tree
                add_rows(mip, row.astype(np.int64), y[outside], np.arange(n), column, 1.0, 1.0, n)
