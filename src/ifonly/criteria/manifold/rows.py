"""The rows that span hulls: in scaled coordinates, by cluster, and by the combination of categories they share.

Many rows are tabulated once for all questions: what depends on the factual is only which features take part.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.criteria.manifold.hull import Hull
from ifonly.data.schema import Numeric, Schema
from ifonly.question.query import Query
from ifonly.runtime.memo import Memo, cached_property
from ifonly.runtime.tuning import DEFAULT, Tuning

__all__ = ["Cloud", "Shape"]


@dataclass(frozen=True, eq=False)
class Cloud:
    """Canonical rows, the cluster of each, and what to call them.

    Attributes
    ----------
    U
        The rows.
    cluster
        The cluster of each row, counted from 0 without gaps.
    words
        What the rows are, e.g. "the 700 training rows labelled 'good'".
    """

    U: FloatArray
    cluster: IntArray
    words: str

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.cluster.max()) + 1

    def absent(self, schema: Schema) -> npt.NDArray[np.bool_]:
        """Return, per row and feature, whether the value is missing."""
        return _absent(schema, self.U)


@dataclass(frozen=True, eq=False)
class Shape:
    """A cloud as seen by questions in which the same features are there: only these, only rows that have them all.

    Attributes
    ----------
    schema
        The features.
    U, cluster
        The complete rows and their clusters.
    features
        The features that take part.
    units, origin
        What each entry of the canonical vector is divided by: the range in training, or 1 for a category; and what it
        is counted from: its value in the first row.
    cloud
        All rows, the others included.
    memo
        Hulls of groups of rows.
    """

    schema: Schema
    U: FloatArray
    cluster: IntArray
    features: tuple[int, ...]
    units: FloatArray
    origin: FloatArray
    cloud: Cloud
    tuning: Tuning = DEFAULT
    memo: Memo = field(default_factory=Memo, repr=False)

    @classmethod
    def of(cls, query: Query, cloud: Cloud) -> Shape:
        """Return the shape of a cloud for one question; a feature missing in the factual takes no part.

        The last one is kept for the next question.
        """
        present = np.flatnonzero(~_absent(query.schema, query.factual[None, :])[0])
        features, memo = tuple(int(j) for j in present), query.training.memo
        known = memo.get("shapes", id(cloud), lambda: cls._made(query, cloud, features))
        if known.features != features or _grids(known.schema) != _grids(query.schema):
            known = cls._made(query, cloud, features)
            memo.put("shapes", id(cloud), known)
        return known

    @classmethod
    def _made(cls, query: Query, cloud: Cloud, features: tuple[int, ...]) -> Shape:
        schema = query.schema
        lacks = cloud.absent(schema)[:, list(features)].any(axis=1) if features else np.zeros(len(cloud.U), np.bool_)
        U, cluster = cloud.U, cloud.cluster
        if lacks.any():
            U, cluster = U[~lacks], np.unique(cluster[~lacks], return_inverse=True)[1]
        units, origin = np.ones(schema.width), np.zeros(schema.width)
        for j, spread in enumerate(query.training.range):
            feature, at = schema.features[j], schema.starts[j]
            if isinstance(feature, Numeric):
                units[at] = spread if spread > 0 else 1.0
                origin[at] = feature.snap(float(U[0, at])) if j in features and len(U) else 0.0
        return cls(schema, U, cluster, features, units, origin, cloud, query.tuning)

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """The numeric features that take part."""
        return tuple(j for j in self.features if isinstance(self.schema.features[j], Numeric))

    @cached_property
    def categorical(self) -> tuple[int, ...]:
        """The categorical features that take part."""
        return tuple(j for j in self.features if not isinstance(self.schema.features[j], Numeric))

    def part(self, rows: IntArray) -> FloatArray:
        """Return some rows, or all of them without a copy."""
        return self.U if len(rows) == len(self.U) else self.U[rows]

    def hull(self, rows: IntArray, *, numbers_only: bool = False) -> Hull:
        """Return the hull of some rows, in all coordinates or in the numeric ones."""
        features = self.numeric if numbers_only else self.features
        entries = [e for j in features for e in range(*self.schema.slice(j).indices(self.schema.width))]
        at = np.array(entries, dtype=np.int64)
        unit, origin = self.units[at], self.origin[at]
        points = np.empty((len(rows), len(at)))
        step = self.tuning.hulls.rows_in_memory
        for first in range(0, len(rows), step):  # without another copy of all rows
            points[first : first + step] = (self.U[rows[first : first + step]][:, at] - origin) / unit
        return Hull(points, at, unit, origin, self.tuning)

    @cached_property
    def hulls(self) -> tuple[Hull, ...]:
        """The hull of each cluster, in all coordinates."""
        n = int(self.cluster.max(initial=-1)) + 1
        return tuple(self.hull(np.flatnonzero(self.cluster == k)) for k in range(n))

    def numbers_of(self, g: int) -> Hull:
        """Return the hull of a group of rows in their numbers."""
        rows = self.groups.rows(g)
        if len(rows) == len(self.U) and not self.categorical:
            return self.hulls[0]
        return self.memo.get("group", g, lambda: self.hull(rows, numbers_only=True))

    def only(self, k: int) -> Shape:
        """Return the shape of cluster `k` alone."""
        rows = self.cluster == k
        return replace(self, U=self.U[rows], cluster=np.zeros(int(rows.sum()), dtype=np.int64), memo=Memo())

    @cached_property
    def groups(self) -> Groups:
        """The rows by cluster and combination of categories."""
        codes = [self.U[:, self.schema.slice(j)].argmax(axis=1) for j in self.categorical]
        which, kinds = np.zeros(len(self.U), dtype=np.int64), np.zeros((1, 0), dtype=np.int64)
        for code in (self.cluster, *codes):  # column by column: a sort of whole rows takes long when they are many
            pairs, which = np.unique(which * (int(code.max(initial=0)) + 1) + code, return_inverse=True)
            known, new = np.divmod(pairs, int(code.max(initial=0)) + 1)
            kinds = np.column_stack([kinds[known], new])
        order = np.argsort(which, kind="stable")
        first = np.searchsorted(which[order], np.arange(len(kinds)))
        lowest, highest = (np.empty((len(kinds), len(self.numeric))) for _ in range(2))
        for k, j in enumerate(self.numeric):
            values = self.U[order, self.schema.starts[j]]
            lowest[:, k], highest[:, k] = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
        return Groups(kinds[:, 0], kinds[:, 1:], lowest, highest, order, np.append(first, len(order)))


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows that share cluster and categories.

    Attributes
    ----------
    cluster, levels
        What the rows of a group share: the cluster, and the level of each categorical feature.
    lowest, highest
        The smallest and largest value of each numeric feature.
    order, first
        Group ``g`` is made of the rows ``order[first[g]:first[g + 1]]``.
    """

    cluster: IntArray
    levels: IntArray
    lowest: FloatArray
    highest: FloatArray
    order: IntArray
    first: IntArray

    def __len__(self) -> int:
        return len(self.cluster)

    def rows(self, g: int) -> IntArray:
        """Return the rows of a group."""
        return self.order[self.first[g] : self.first[g + 1]]

    @cached_property
    def are_points(self) -> npt.NDArray[np.bool_]:
        """Whether all rows of a group are the same, for each group."""
        return np.asarray((self.lowest == self.highest).all(axis=1))


def _grids(schema: Schema) -> tuple[int | None, ...]:
    """Return the decimals of each number of a schema, by which values are snapped."""
    return tuple(f.precision for f in schema.features if isinstance(f, Numeric))


def _absent(schema: Schema, U: FloatArray) -> npt.NDArray[np.bool_]:
    """Return, per row and feature, whether the value is missing."""
    out = np.zeros((len(U), len(schema)), dtype=np.bool_)
    for j, feature in enumerate(schema.features):
        part = U[:, schema.slice(j)]
        out[:, j] = np.isnan(part[:, 0]) if isinstance(feature, Numeric) else ~part.any(axis=1)
    return out
