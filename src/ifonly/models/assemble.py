"""From a framework's trees to the tree form: every threshold pulled back to raw units through the user's transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ifonly.errors import UnsupportedModel
from ifonly.mip import FloatArray, IntArray
from ifonly.models.source import Source, Split
from ifonly.models.trees import Nodes, Trees
from ifonly.schema import Numeric

__all__ = ["Below", "RawTree", "assemble", "float32_at_most"]

Below = Callable[[FloatArray, FloatArray], npt.NDArray[np.bool_]]


def float32_at_most(z: FloatArray, threshold: FloatArray) -> npt.NDArray[np.bool_]:
    """Compare as scikit-learn's trees do: the input as float32, the threshold as float64."""
    return np.asarray(z.astype(np.float32).astype(np.float64) <= threshold)


@dataclass(frozen=True, eq=False)
class RawTree:
    """A tree as its framework stores it.

    Attributes
    ----------
    column
        The source column a node splits on, -1 at a leaf.
    threshold
        Goes left iff the framework's comparison of the column with this holds.
    left, right
        Children.
    value
        Contribution of each leaf to each score, shape (nodes, outputs).
    missing_left
        Where a missing value goes; None: a missing value compares like any float (never below).
    categories
        Node -> the column values (category codes) that go left, for native categorical splits.
    """

    column: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray
    missing_left: npt.NDArray[np.bool_] | None = None
    categories: Mapping[int, frozenset[float]] = field(default_factory=dict)


def assemble(source: Source, trees: Sequence[RawTree], base: FloatArray, below: Below = float32_at_most) -> Trees:
    """Return the form of an ensemble whose scores are `base` plus the sum of the trees' leaf values."""
    sizes = [len(t.column) for t in trees]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    column = np.concatenate([t.column for t in trees]).astype(np.int64)
    threshold = np.concatenate([t.threshold for t in trees]).astype(np.float64)
    leaf = column < 0
    own = np.arange(offsets[-1])
    left = np.concatenate([t.left + o for t, o in zip(trees, offsets[:-1], strict=True)]).astype(np.int64)
    right = np.concatenate([t.right + o for t, o in zip(trees, offsets[:-1], strict=True)]).astype(np.int64)
    missing = np.concatenate(
        [np.zeros(len(t.column), dtype=np.bool_) if t.missing_left is None else t.missing_left for t in trees]
    )
    native = {
        int(o) + node: left_set
        for t, o in zip(trees, offsets[:-1], strict=True)
        for node, left_set in t.categories.items()
    }
    table = _Table(source, len(column))
    table.categorical(column, native)
    table.thresholds(column, threshold, np.array(sorted(native), dtype=np.int64), below)
    swap = table.swap
    left, right = np.where(swap, right, left), np.where(swap, left, right)
    nodes = Nodes(
        feature=np.where(leaf, -1, table.feature),
        cut=np.where(leaf, np.inf, table.cut),
        mask=np.where(leaf, -1, table.mask),
        masks=table.stacked_masks(),
        missing_left=np.where(swap, ~missing, missing),
        left=np.where(leaf, own, left),
        right=np.where(leaf, own, right),
        value=np.concatenate([t.value for t in trees]).astype(np.float64),
        roots=offsets[:-1],
    )
    return Trees(source.schema, nodes, np.asarray(base, dtype=np.float64))


class _Table:
    """Raw splits of all nodes, filled in column by column."""

    def __init__(self, source: Source, n: int) -> None:
        self.source = source
        self.feature = np.zeros(n, dtype=np.int64)
        self.cut = np.full(n, np.inf)
        self.mask = np.full(n, -1, dtype=np.int64)
        self.swap = np.zeros(n, dtype=np.bool_)
        self.masks: list[npt.NDArray[np.bool_]] = []

    def thresholds(self, column: IntArray, threshold: FloatArray, native: IntArray, below: Below) -> None:
        """Pull back every ordinary threshold, once per distinct value."""
        ordinary = column >= 0
        ordinary[native] = False
        for c in np.unique(column[ordinary]):
            nodes = np.flatnonzero(ordinary & (column == c))
            distinct, which = np.unique(threshold[nodes], return_inverse=True)
            splits = self.source.splits(int(c), distinct, below)
            where = [self._remember(split) for split in splits]
            self.feature[nodes] = np.array([s.feature for s in splits])[which]
            self.cut[nodes] = np.array([_cut(s) for s in splits])[which]
            self.swap[nodes] = np.array([s.swap for s in splits])[which]
            self.mask[nodes] = np.array(where)[which]

    def categorical(self, column: IntArray, native: Mapping[int, frozenset[float]]) -> None:
        """Read native categorical splits: which levels have a code in the left set."""
        codes: dict[int, tuple[int, FloatArray]] = {}
        for node, left_set in native.items():
            c = int(column[node])
            if c not in codes:
                codes[c] = self._codes(c)
            j, values = codes[c]
            self.feature[node] = j
            self.mask[node] = len(self.masks)
            self.masks.append(np.isin(values, list(left_set)))

    def _codes(self, c: int) -> tuple[int, FloatArray]:
        """Return the feature of a source column and the code of each of its levels."""
        source, column = self.source, self.source.columns[c]
        if len(column.features) != 1 or isinstance(source.schema.features[next(iter(column.features))], Numeric):
            raise UnsupportedModel(
                f"{source.where}a categorical split on column {column.name!r}, whose feature is not categorical in the "
                f"schema. Say so: Schema.infer(X, categorical=[{column.name!r}])."
            )
        (j,) = column.features
        if column.labels:
            return j, np.arange(source.schema.features[j].width, dtype=np.float64)
        return j, source.dense(source.vary_levels(j))[:, c]

    def _remember(self, split: Split) -> int:
        if split.left_levels is None:
            return -1
        self.masks.append(np.asarray(split.left_levels, dtype=np.bool_))
        return len(self.masks) - 1

    def stacked_masks(self) -> npt.NDArray[np.bool_]:
        """Return all level masks as one table."""
        width = max((len(m) for m in self.masks), default=1)
        table = np.zeros((max(len(self.masks), 1), width), dtype=np.bool_)
        for i, m in enumerate(self.masks):
            table[i, : len(m)] = m
        return table


def _cut(split: Split) -> float:
    if split.constant is not None:
        return np.inf if split.constant else -np.inf
    return split.cut if split.left_levels is None else np.inf
