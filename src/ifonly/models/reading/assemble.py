"""Assembly of the tree form from a framework's trees: every threshold pulled back to raw units through the transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.errors import UnsupportedModel
from ifonly.models.forms.trees import Addition, Nodes, Trees
from ifonly.models.reading.pullback import Below, Split, pull_back
from ifonly.models.reading.source import Source

__all__ = ["Below", "RawTree", "assemble", "float32_at_most", "float32_below", "float64_at_most"]


def _as_float32(z: FloatArray) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):  # a value beyond float32 is infinite there
        return z.astype(np.float32)


def float32_at_most(z: FloatArray, threshold: FloatArray) -> npt.NDArray[np.bool_]:
    """Compare as scikit-learn's trees do: the input as float32, the threshold as float64."""
    return np.asarray(_as_float32(z).astype(np.float64) <= threshold)


def float32_below(z: FloatArray, threshold: FloatArray) -> npt.NDArray[np.bool_]:
    """Compare as XGBoost does: both as float32, strictly."""
    return np.asarray(_as_float32(z) < _as_float32(threshold))


def float64_at_most(z: FloatArray, threshold: FloatArray) -> npt.NDArray[np.bool_]:
    """Compare as LightGBM and histogram boosting do: both as float64."""
    return np.asarray(z <= threshold)


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

    @classmethod
    def leaf(cls, value: FloatArray) -> RawTree:
        """Return a tree that is one leaf."""
        zero = np.zeros(1, dtype=np.int64)
        return cls(zero - 1, np.zeros(1), zero, zero, value[None, :])


def assemble(
    source: Source,
    trees: Sequence[RawTree],
    base: FloatArray,
    below: Below = float32_at_most,
    over: float = 1.0,
    dtype: npt.DTypeLike = np.float64,
) -> Trees:
    """Return the form of an ensemble: `base` plus the sum of the trees' leaf values, divided by `over`.

    The framework adds in `dtype`, tree by tree, and divides at the end; so does the form.
    """
    base = np.asarray(base, dtype=np.float64)
    trees = trees or [RawTree.leaf(np.zeros(len(base)))]
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
    table = _Table(source, missing)
    table.categorical(column, native)
    table.thresholds(column, threshold, np.array(sorted(native), dtype=np.int64), below)
    swap, missing = table.swap, table.missing
    value = np.concatenate([t.value for t in trees]).astype(np.float64)
    left, right = np.where(swap, right, left), np.where(swap, left, right)
    nodes = Nodes(
        feature=np.where(leaf, -1, table.feature),
        cut=np.where(leaf, np.inf, table.cut),
        mask=np.where(leaf, -1, table.mask),
        masks=table.stacked_masks(),
        missing_left=np.where(swap, ~missing, missing),
        left=np.where(leaf, own, left),
        right=np.where(leaf, own, right),
        value=value / over,
        roots=offsets[:-1],
    )
    nodes = _chained(nodes, table.further)
    value = np.concatenate([value, np.zeros((len(nodes.feature) - len(value), value.shape[1]))])
    return Trees(source.schema, _spliced(nodes), base / over, Addition(value, base, over, dtype))


def _chained(nodes: Nodes, further: Mapping[int, tuple[float, ...]]) -> Nodes:
    """Return the table with a chain of nodes for each one that turns at further cuts; children are shared.

    A node that goes left on every other interval asks for the intervals one by one, from below.
    """
    if not further:
        return nodes
    n = len(nodes.feature)
    cut, left, right = list(nodes.cut), list(nodes.left), list(nodes.right)
    missing, feature = list(nodes.missing_left), list(nodes.feature)
    for i, turns in further.items():
        sides, at = (int(left[i]), int(right[i])), i
        for k, turn in enumerate(turns):
            right[at] = len(cut)
            at = len(cut)
            # The next interval belongs to the side that the one before it did not; a missing value ends on its own side.
            last = k == len(turns) - 1
            cut.append(turn)
            feature.append(int(nodes.feature[i]))
            left.append(sides[(k + 1) % 2])
            right.append(sides[k % 2] if last else -1)
            missing.append(k % 2 == 0)
    extra = len(cut) - n
    return replace(
        nodes,
        feature=np.array(feature, dtype=np.int64),
        cut=np.array(cut, dtype=np.float64),
        mask=np.concatenate([nodes.mask, np.full(extra, -1, dtype=np.int64)]),
        missing_left=np.array(missing, dtype=np.bool_),
        left=np.array(left, dtype=np.int64),
        right=np.array(right, dtype=np.int64),
        value=np.concatenate([nodes.value, np.zeros((extra, nodes.value.shape[1]))]),
    )


def _spliced(nodes: Nodes) -> Nodes:
    """Leave out the nodes that send everything one way: they would be splits on a feature they do not look at."""
    onwards = nodes.cut > 0
    idle = (nodes.feature >= 0) & (nodes.mask < 0) & np.isinf(nodes.cut) & (nodes.missing_left == onwards)
    target = np.where(idle, np.where(onwards, nodes.left, nodes.right), np.arange(len(idle)))
    while bool((target != target[target]).any()):
        target = target[target]
    nodes = replace(nodes, left=target[nodes.left], right=target[nodes.right], roots=target[nodes.roots])
    reached, level = np.zeros(len(idle), dtype=np.bool_), nodes.roots
    while level.size:
        reached[level] = True
        level = level[nodes.feature[level] >= 0]
        level = np.unique(np.concatenate([nodes.left[level], nodes.right[level]]))
    return replace(nodes, feature=np.where(reached, nodes.feature, -1))


class _Table:
    """Raw splits of all nodes, filled in column by column."""

    def __init__(self, source: Source, missing: npt.NDArray[np.bool_]) -> None:
        n = len(missing)
        self.source = source
        self.missing = missing.copy()
        self.feature = np.zeros(n, dtype=np.int64)
        self.cut = np.full(n, np.inf)
        self.mask = np.full(n, -1, dtype=np.int64)
        self.swap = np.zeros(n, dtype=np.bool_)
        self.masks: list[npt.NDArray[np.bool_]] = []
        self.further: dict[int, tuple[float, ...]] = {}

    def thresholds(self, column: IntArray, threshold: FloatArray, native: IntArray, below: Below) -> None:
        """Pull back every ordinary threshold, once per distinct value."""
        ordinary = column >= 0
        ordinary[native] = False
        for c in np.unique(column[ordinary]):
            nodes = np.flatnonzero(ordinary & (column == c))
            distinct, which = np.unique(threshold[nodes], return_inverse=True)
            splits = pull_back(self.source, int(c), distinct, below)
            self.feature[nodes] = np.array([s.feature for s in splits])[which]
            self.cut[nodes] = np.array([_cut(s) for s in splits])[which]
            self.swap[nodes] = np.array([s.swap for s in splits])[which]
            for side in (False, True):
                where = np.array([self._remember(s, side) for s in splits])
                self.mask[nodes] = np.where(self.missing[nodes] == side, where[which], self.mask[nodes])
            self.further |= {int(n): splits[w].further for n, w in zip(nodes, which, strict=True) if splits[w].further}
            given = np.array([-1 if s.missing is None else s.missing for s in splits])[which]
            self.missing[nodes] = np.where(given < 0, self.missing[nodes], given > 0)

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
            inside = np.isin(values, list(left_set))
            self.masks.append(np.where(np.isnan(values), self.missing[node], inside))
            filled = self.source.when_missing(j, c)
            if not np.isnan(filled):
                self.missing[node] = filled in left_set

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
        return j, source.at_levels(j, c)

    def _remember(self, split: Split, missing_left: bool) -> int:
        """Keep the levels that go left; a level that reaches the estimator as a missing value goes where those go."""
        if split.left_levels is None:
            return -1
        absent = np.zeros_like(split.left_levels) if split.absent_levels is None else split.absent_levels
        self.masks.append(np.where(absent, missing_left, split.left_levels))
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
