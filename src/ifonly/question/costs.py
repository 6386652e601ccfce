"""Separable costs: the part of the objective that belongs to single features, as tables for all factuals and at one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Schema
from ifonly.question.curves import CostCurve
from ifonly.question.query import Query

__all__ = ["CostTable", "Costs"]


@dataclass(frozen=True, eq=False)
class Costs:
    """The separable part of the objective: what each feature costs by itself.

    ``sum_j linear[j] |x_j - xhat_j| + square[j] (x_j - xhat_j)^2 + price[j] [x_j != xhat_j] + levels[level of j]``, and
    ``curves[j](x_j - xhat_j)`` for the numbers whose cost is a table.
    """

    linear: FloatArray
    square: FloatArray
    price: FloatArray
    levels: FloatArray
    curves: Mapping[int, CostCurve] = field(default_factory=dict)

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
            _added(self.curves, other.curves),
        )

    @property
    def minorant(self) -> FloatArray:
        """Rates ``r`` such that each number costs at least ``r_j |x_j - xhat_j|`` by its linear part and its table."""
        out = self.linear.copy()
        for j, curve in self.curves.items():
            out[j] += curve.rate
        return out

    def free(self) -> bool:
        """Whether nothing costs anything."""
        return not self.curves and not any(p.any() for p in (self.linear, self.square, self.price, self.levels))

    def numeric(self, j: int | Sequence[int] | IntArray, deviation: FloatArray) -> FloatArray:
        """Return the cost of moving numeric feature `j`, or one feature for each amount, by these amounts."""
        moved = np.abs(deviation)
        costs = np.asarray(self.linear[j] * moved + self.square[j] * moved**2 + self.price[j] * (moved != 0))
        if not self.curves:
            return costs
        which = np.broadcast_to(np.asarray(j), costs.shape)
        signed = np.broadcast_to(np.asarray(deviation, dtype=np.float64), costs.shape)
        for k, curve in self.curves.items():
            at = which == k
            costs[at] += curve(signed[at])
        return costs

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
        curves = {j: curve for j, curve in self.curves.items() if j not in features}
        return Costs(self.linear * keep, self.square * keep, self.price * keep, self.levels * levels, curves)

    def per_feature(self, query: Query, U: FloatArray) -> FloatArray:
        """Return the cost of each feature of each row; a value in place of a missing one costs only its price."""
        schema, factual = query.schema, query.factual
        numeric, at = schema.numeric, schema.number_starts
        hat = factual[at]
        absent = np.isnan(hat)
        costs = self.numeric(numeric, U[:, at] - hat)
        if absent.any():
            costs[:, absent] = np.where(np.isnan(U[:, at]), 0.0, self.price[numeric])[:, absent]
        entries = U * self.entries(schema, factual, slice(None))
        entries[:, at] = costs
        return np.asarray(np.add.reduceat(entries, schema.starts, axis=1))


@dataclass(frozen=True, eq=False)
class CostTable:
    """Separable costs at every factual of a schema: made once, and shifted to the factual of each question.

    Attributes
    ----------
    linear, square, price
        As of `Costs`: they do not depend on the factual.
    switch
        Per entry of the canonical vector: the cost of that level at a factual of another one; 0 for numbers.
    steps
        Categorical feature -> costs from one of its levels (a row) to another one (a column), where more than the new level
        counts: the levels of ordinal features.
    """

    linear: FloatArray
    square: FloatArray
    price: FloatArray
    switch: FloatArray
    steps: Mapping[int, FloatArray] = field(default_factory=dict)

    @classmethod
    def none(cls, schema: Schema) -> CostTable:
        """Return costs of zero."""
        n = len(schema)
        return cls(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(schema.width))

    def plus(self, other: CostTable, schema: Schema) -> CostTable:
        """Return the sum of two tables of one schema."""
        levels = {j: self._between(j, schema) + other._between(j, schema) for j in (*self.steps, *other.steps)}
        parts = ((self.linear, other.linear), (self.square, other.square), (self.price, other.price))
        linear, square, price = (one + two for one, two in parts)
        return CostTable(linear, square, price, self.switch + other.switch, levels)

    def _between(self, j: int, schema: Schema) -> FloatArray:
        """Return the costs from each level of a categorical feature to each."""
        if j in self.steps:
            return self.steps[j]
        return np.asarray(self.switch[schema.slice(j)] * (1.0 - np.eye(schema.features[j].width)))

    def at(self, schema: Schema, factual: FloatArray) -> Costs:
        """Return the costs at a factual; one without a level pays for any as for another."""
        levels = self.switch * (factual == 0.0)
        for j, costs in self.steps.items():
            part = schema.slice(j)
            if factual[part].any():
                levels[part] = costs[int(factual[part].argmax())]
        return Costs(self.linear, self.square, self.price, levels)


def _added(one: Mapping[int, CostCurve], other: Mapping[int, CostCurve]) -> dict[int, CostCurve]:
    """Return the sums of curves, feature by feature."""
    out = dict(one)
    for j, curve in other.items():
        out[j] = out[j] + curve if j in out else curve
    return out
