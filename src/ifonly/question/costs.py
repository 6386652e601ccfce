"""Separable costs: the part of the objective that belongs to single features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Schema
from ifonly.question.query import Query

__all__ = ["Costs"]


@dataclass(frozen=True, eq=False)
class Costs:
    """The separable part of the objective: what each feature costs by itself.

    ``sum_j linear[j] |x_j - xhat_j| + square[j] (x_j - xhat_j)^2 + price[j] [x_j != xhat_j] + levels[level of j]``
    """

    linear: FloatArray
    square: FloatArray
    price: FloatArray
    levels: FloatArray

    @classmethod
    def none(cls, schema: Schema) -> Costs:
        """Return costs of zero."""
        n = len(schema)
        return cls(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(schema.width))

    def __add__(self, other: Costs) -> Costs:
        return Costs(
            self.linear + other.linear,
            self.square + other.square,
            self.price + other.price,
            self.levels + other.levels,
        )

    def free(self) -> bool:
        """Whether nothing costs anything."""
        return not any(part.any() for part in (self.linear, self.square, self.price, self.levels))

    def numeric(self, j: int | Sequence[int] | IntArray, deviation: FloatArray) -> FloatArray:
        """Return the cost of moving numeric feature `j`, or one feature for each amount, by these amounts."""
        moved = np.abs(deviation)
        return np.asarray(self.linear[j] * moved + self.square[j] * moved**2 + self.price[j] * (moved != 0))

    def level_costs(self, schema: Schema, j: int, factual: FloatArray) -> FloatArray:
        """Return the cost of each level of categorical feature `j`."""
        return self.entries(schema, factual, schema.slice(j))

    def entries(self, schema: Schema, factual: FloatArray, which: slice | IntArray) -> FloatArray:
        """Return the cost of the levels that some entries of the canonical vector stand for."""
        return np.asarray(self.levels[which] + self.price[schema.owner[which]] * (factual[which] == 0))

    def without(self, schema: Schema, features: frozenset[int]) -> Costs:
        """Return the costs with those of some features set to zero."""
        if not features:
            return self
        keep = np.array([j not in features for j in range(len(schema))])
        levels = keep[schema.owner]
        return Costs(self.linear * keep, self.square * keep, self.price * keep, self.levels * levels)

    def per_feature(self, query: Query, U: FloatArray) -> FloatArray:
        """Return the cost of each feature of each row; a value in place of a missing one costs only its price."""
        schema, factual = query.schema, query.factual
        numeric = schema.numeric
        at = [schema.starts[j] for j in numeric]
        hat, absent = factual[at], np.isnan(factual[at])
        costs = self.numeric(numeric, U[:, at] - hat)
        costs[:, absent] = np.where(np.isnan(U[:, at]), 0.0, self.price[numeric])[:, absent]
        entries = U * self.entries(schema, factual, slice(None))
        entries[:, at] = costs
        return np.asarray(np.add.reduceat(entries, schema.starts, axis=1))
