"""The rows that span hulls: in scaled coordinates, by cluster, and by the combination of categories they share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.criteria.manifold.hull import Hull
from ifonly.data.schema import Numeric, Schema
from ifonly.question.query import Query
from ifonly.runtime.memo import cached_property
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


@dataclass(frozen=True, eq=False)
class Shape:
    """A cloud as seen by one question: only the features that the factual has, only rows that have them too.

    Attributes
    ----------
    schema
        The features.
    U, cluster
        The complete rows and their clusters.
    features
        The features that take part.
    units
        What each entry of the canonical vector is divided by: the range in training, or 1 for a category.
    """

    schema: Schema
    U: FloatArray
    cluster: IntArray
    features: tuple[int, ...]
    units: FloatArray
    origin: FloatArray
    tuning: Tuning = DEFAULT

    @classmethod
    def of(cls, query: Query, cloud: Cloud) -> Shape:
        """Return the shape of a cloud for one question; a feature missing in the factual takes no part."""
        schema = query.schema
        present = ~_absent(schema, query.factual[None, :])[0]
        complete = ~(_absent(schema, cloud.U)[:, present]).any(axis=1)
        units, origin = np.ones(schema.width), np.zeros(schema.width)
        for j, spread in enumerate(query.training.range):
            feature, at = schema.features[j], schema.starts[j]
            if isinstance(feature, Numeric):
                units[at] = spread if spread > 0 else 1.0
                origin[at] = feature.snap(float(query.factual[at])) if present[j] else 0.0
        features = tuple(int(j) for j in np.flatnonzero(present))
        if complete.all():
            return cls(schema, cloud.U, cloud.cluster, features, units, origin, query.tuning)
        _, cluster = np.unique(cloud.cluster[complete], return_inverse=True)
        return cls(schema, cloud.U[complete], cluster, features, units, origin, query.tuning)

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """The numeric features that take part."""
        return tuple(j for j in self.features if isinstance(self.schema.features[j], Numeric))

    @cached_property
    def categorical(self) -> tuple[int, ...]:
        """The categorical features that take part."""
        return tuple(j for j in self.features if not isinstance(self.schema.features[j], Numeric))

    def hull(self, rows: npt.NDArray[np.int64] | slice, *, numbers_only: bool = False) -> Hull:
        """Return the hull of some rows, in all coordinates or in the numeric ones."""
        features = self.numeric if numbers_only else self.features
        entries = [e for j in features for e in range(*self.schema.slice(j).indices(self.schema.width))]
        at = np.array(entries, dtype=np.int64)
        unit, origin = self.units[at], self.origin[at]
        return Hull(np.ascontiguousarray((self.U[rows][:, at] - origin) / unit), at, unit, origin, self.tuning)

    @cached_property
    def hulls(self) -> tuple[Hull, ...]:
        """The hull of each cluster, in all coordinates."""
        n = int(self.cluster.max(initial=-1)) + 1
        return tuple(self.hull(np.flatnonzero(self.cluster == k)) for k in range(n))

    def only(self, k: int) -> Shape:
        """Return the shape of cluster `k` alone."""
        rows = self.cluster == k
        return replace(self, U=self.U[rows], cluster=np.zeros(int(rows.sum()), dtype=np.int64))

    @cached_property
    def groups(self) -> Groups:
        """The rows by cluster and combination of categories."""
        codes = [self.U[:, self.schema.slice(j)].argmax(axis=1) for j in self.categorical]
        signature = np.column_stack([self.cluster, *codes])
        kinds, which = np.unique(signature, axis=0, return_inverse=True)
        order = np.argsort(which.reshape(-1), kind="stable")
        first = np.searchsorted(which.reshape(-1)[order], np.arange(len(kinds)))
        values = self.U[order][:, [self.schema.starts[j] for j in self.numeric]]
        if values.size:
            lowest, highest = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
        else:
            lowest = highest = np.empty((len(kinds), 0))
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


def _absent(schema: Schema, U: FloatArray) -> npt.NDArray[np.bool_]:
    """Return, per row and feature, whether the value is missing."""
    out = np.zeros((len(U), len(schema)), dtype=np.bool_)
    for j, feature in enumerate(schema.features):
        part = U[:, schema.slice(j)]
        out[:, j] = np.isnan(part[:, 0]) if isinstance(feature, Numeric) else ~part.any(axis=1)
    return out
