"""The leaves of all trees as boxes, kept feature by feature, so that questions about all of them are a few comparisons.

Numeric intervals are positions in the sorted cuts of their feature: the value ``x`` stands at ``searchsorted(cuts, x)``,
and a leaf holds it iff ``low < position <= high``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric, Schema
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.runtime.memo import Lean, cached_property

__all__ = ["CellTable", "Leaves"]

BoolArray = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int32]
_NO_END = 2**30


@dataclass(frozen=True, eq=False)
class CellTable:
    """All cells of all numeric features, one after the other: the feature, the admissible interval, the position."""

    feature: IntArray
    low: FloatArray
    high: FloatArray
    position: IntArray


@dataclass(frozen=True, eq=False)
class Leaves(Lean):
    """Every leaf as a box.

    Attributes
    ----------
    features
        The features that some tree splits on, in order.
    cuts
        The sorted thresholds per numeric feature among them.
    node, tree
        Which node and which tree a leaf is of; trees come one after the other.
    low, high
        Numeric intervals as positions, shape (leaves, features of the schema).
    levels
        The levels that a leaf allows, shape (leaves, entries of the canonical vector).
    when_missing
        Whether a leaf takes rows in which a feature is missing.
    """

    schema: Schema
    features: tuple[int, ...]
    cuts: Mapping[int, FloatArray]
    node: IntArray
    tree: IntArray
    low: Positions
    high: Positions
    levels: BoolArray
    when_missing: BoolArray

    # -- one feature after the other ----------------------------------------------------------------------------
    @cached_property
    def low_of(self) -> Positions:
        """The lower ends, one row per feature."""
        return np.ascontiguousarray(self.low.T)

    @cached_property
    def high_of(self) -> Positions:
        """The upper ends, one row per feature."""
        return np.ascontiguousarray(self.high.T)

    @cached_property
    def level_of(self) -> BoolArray:
        """Incidence of levels and leaves: which leaves allow a level, one row per entry of the canonical vector."""
        return np.ascontiguousarray(self.levels.T)

    @cached_property
    def missing_of(self) -> BoolArray:
        """Incidence of missing values and leaves, one row per feature."""
        return np.ascontiguousarray(self.when_missing.T)

    @cached_property
    def first(self) -> IntArray:
        """The first leaf of each tree."""
        return np.flatnonzero(np.diff(self.tree, prepend=-1)).astype(np.int64)

    @cached_property
    def n_cuts(self) -> IntArray:
        """Number of different thresholds and levels of each tree: few in a table of cells, one per split in a tree."""
        count = np.zeros(len(self.first), dtype=np.int64)
        which = np.cumsum(np.diff(self.tree, prepend=-1) != 0) - 1
        for j in self.features:
            if self.is_numeric[j]:
                places = self.cuts[j].size + 2
                ends = np.zeros(len(count) * places, dtype=np.bool_)
                ends[which * places + self.low_of[j] + 1] = True
                count += ends.reshape(len(count), places).sum(axis=1) - 1
            else:
                part = self.levels[:, self.schema.slice(j)]
                count += part.shape[1] * np.logical_or.reduceat(~part.all(axis=1), self.first)
        return count

    @cached_property
    def cells(self) -> CellTable:
        """The cells that the cuts make, the outermost ones without an end."""
        return self.cells_in(self.schema)

    def cells_in(self, schema: Schema) -> CellTable:
        """Return the cells that the cuts make in a schema of the same features, which may be on other grids."""
        feature, low, high, position = [], [], [], []
        for j, cuts in self.cuts.items():
            number = schema.features[j]
            assert isinstance(number, Numeric)
            cells = Cells.of(number, -np.inf, np.inf, cuts)
            inner = np.where(np.isfinite(cells.low), cells.low, cells.high)
            feature.append(np.full(len(inner), j))
            low.append(cells.low)
            high.append(cells.high)
            position.append(np.searchsorted(cuts, inner, side="left"))
        if not feature:
            return CellTable(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0, np.int64))
        whole = (np.concatenate(part).astype(np.int64) for part in (feature, position))
        return CellTable(next(whole), np.concatenate(low), np.concatenate(high), next(whole))

    @cached_property
    def is_numeric(self) -> BoolArray:
        """Per feature of the schema: whether it has positions (otherwise it has levels)."""
        return np.array([isinstance(feature, Numeric) for feature in self.schema.features])

    @cached_property
    def entry_feature(self) -> IntArray:
        """The feature of each entry of the canonical vector."""
        return self.schema.owner

    @cached_property
    def last(self) -> IntArray:
        """The last position of each numeric feature."""
        return np.array([self.cuts[j].size if j in self.cuts else 0 for j in range(len(self.schema))])

    @cached_property
    def offset(self) -> IntArray:
        """Offsets of the positions of each numeric feature in one concatenated row, one place left free after each."""
        sizes = np.where([j in self.cuts for j in range(len(self.schema))], self.last + 2, 0)
        return np.concatenate([[0], np.cumsum(sizes)[:-1]])

    @cached_property
    def n_places(self) -> int:
        """Length of the concatenated row of positions."""
        return int(sum(cuts.size + 2 for cuts in self.cuts.values())) + 1

    # -- questions ----------------------------------------------------------------------------------------------
    def outside(self, j: int, position: int) -> BoolArray:
        """Return the leaves that do not hold a value of feature `j`: a position or a level, -1 when it is missing."""
        if position < 0:
            return np.asarray(~self.missing_of[j])
        if isinstance(self.schema.features[j], Numeric):
            return np.asarray((self.low_of[j] >= position) | (self.high_of[j] < position))
        return np.asarray(~self.level_of[self.schema.starts[j] + position])

    def position(self, j: int, part: FloatArray) -> int:
        """Return where a value of feature `j` (its canonical part) stands, -1 when it is missing."""
        if not isinstance(self.schema.features[j], Numeric):
            return int(part.argmax()) if part.any() else -1
        return -1 if np.isnan(part[0]) else int(np.searchsorted(self.cuts[j], part[0], side="left"))

    @cached_property
    def _by_value(self) -> dict[int, BoolArray]:
        """Per feature that has leaves which only a missing value reaches: the other leaves."""
        found = {}
        for j in self.features:
            if self.is_numeric[j]:
                some = self.low_of[j] < np.minimum(self.high_of[j], self.cuts[j].size)
            else:
                some = self.level_of[self.schema.slice(j)].any(axis=0)
            if not some.all():
                found[j] = some
        return found

    def alive(self, box: Box) -> BoolArray:
        """Return the leaves that some point of the box can reach."""
        alive = np.ones(len(self.node), dtype=np.bool_)
        for j, some in self._by_value.items():
            if not box.missing[j]:
                alive &= some
        for j in self.features:
            if box.missing[j]:
                alive &= self.missing_of[j]
            elif isinstance(self.schema.features[j], Numeric):
                cuts = self.cuts[j]
                first, last = cuts.searchsorted((box.lower[j], box.upper[j]), side="left")
                if last < cuts.size:
                    alive &= self.low_of[j] < last
                if first > 0:
                    alive &= self.high_of[j] >= first
            else:
                part = self.schema.slice(j)
                allowed = box.allowed[part]
                if not allowed.all():
                    alive &= np.logical_or.reduce(self.level_of[part][allowed], axis=0)
        return alive

    def within(self, box: Box) -> Leaves:
        """Return the leaves that a box leaves open, with the cuts that still tell them apart and no others.

        The only leaf left of a tree asks for nothing any more: every point of the box is in it.
        """
        kept = np.flatnonzero(self.alive(box))
        tree = self.tree[kept]
        low = np.full((len(kept), len(self.schema)), -1, dtype=np.int32)
        high = np.full((len(kept), len(self.schema)), _NO_END, dtype=np.int32)
        levels = self.levels[kept]
        undecided = np.bincount(tree, minlength=int(self.tree[-1]) + 1)[tree] > 1
        levels[~undecided] = True
        rows = kept[undecided]
        cuts, features = {}, []
        for j in self.features:
            if box.missing[j]:
                continue
            if not self.is_numeric[j]:
                part = self.schema.slice(j)
                if not levels[:, part][:, box.allowed[part]].all():
                    features.append(j)
                continue
            first, last = self.cuts[j].searchsorted((box.lower[j], box.upper[j]), side="left")
            begins, ends = self.low_of[j][rows], self.high_of[j][rows]
            has_low, has_high = begins >= first, ends < last
            used = np.unique(np.concatenate([begins[has_low], ends[has_high]]))
            if used.size:
                low[undecided, j] = np.where(has_low, used.searchsorted(begins), -1)
                high[undecided, j] = np.where(has_high, used.searchsorted(ends), _NO_END)
                cuts[j] = self.cuts[j][used]
                features.append(j)
        missing = self.when_missing[kept]
        return Leaves(self.schema, tuple(features), cuts, self.node[kept], tree, low, high, levels, missing)
