"""Proximity: how far the answer is from the factual, in l1, squared l2, l-infinity or Mahalanobis distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Ordinal, Schema
from ifonly.errors import CriterionError
from ifonly.program.mip import Affine, Square
from ifonly.question.costs import Costs, CostTable
from ifonly.question.criterion import Couples, Criterion, Remarks, Tabulates
from ifonly.question.curves import CostCurve
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.training import Training
from ifonly.question.words import number
from ifonly.runtime.fixed import Fixed
from ifonly.tolerances import OUTLIERS_RULE

__all__ = ["Proximity"]

Norm = Literal["l1", "l2", "linf", "mahalanobis"]
Scale = Literal["auto", "range", "mad", "std", "percentile", "none"]


@dataclass(frozen=True)
class Proximity(Couples, Remarks, Tabulates, Criterion):
    r"""Stay close to the factual.

    With ``d_j = w_j |x_j - xhat_j| / s_j`` for a numeric feature, ``d_j = w_j`` for a switched category and
    ``d_j = w_j |step| / (levels - 1)`` for an ordinal one, the cost is

    * ``l1``: the sum of ``d_j``;
    * ``l2``: the sum of ``d_j^2`` (the square of the norm, as in the paper);
    * ``linf``: the largest ``d_j``;
    * ``mahalanobis``: ``(x - xhat)' S^-1 (x - xhat)`` over the numeric features, ``S`` their covariance in training,
      plus ``w_j`` per switched category.

    Parameters
    ----------
    norm
        One of the four.
    scale
        What a numeric change is divided by: the training ``"range"``, the median absolute deviation ``"mad"``, the
        standard deviation ``"std"``, or ``"none"``; or a mapping feature -> own scale (others by range). ``"auto"`` is the
        range, and where outliers rule it the width of the middle nine tenths of the rows; the answer says so.
        ``"percentile"`` (for l1 and linf): ``d_j = w_j |F_j(x_j) - F_j(xhat_j)|`` with ``F_j`` the share of training rows
        below a value, as in Ustun, Spangher and Liu (2019): how many people one passes.
    weights
        Feature -> weight, 1 for those not named.
    tables
        Feature -> own costs, for l1 and linf, times its weight. Of a number: change -> cost, linear between the entries
        and beyond them; entries of one sign hold for both. Of a category: level -> cost of changing to it.
    """

    norm: Norm = "l1"
    scale: Scale | Mapping[str, float] = "auto"
    weights: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, Mapping[Any, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.norm not in get_args(Norm):
            raise CriterionError(
                f"The 'norm' of Proximity must be one of {', '.join(get_args(Norm))}. Got {self.norm!r}."
            )
        if isinstance(self.scale, str) and self.scale not in get_args(Scale):
            raise CriterionError(
                f"The 'scale' of Proximity must be one of {', '.join(get_args(Scale))} or a mapping. Got {self.scale!r}."
            )
        own = {} if isinstance(self.scale, str) else self.scale
        for name, value in own.items():
            if not (np.isfinite(value) and value > 0):
                raise CriterionError(f"The scale of {name!r} must be a positive number, got {value!r}.")
        if self.norm not in ("l1", "linf") and (self.tables or self.scale == "percentile"):
            what = "tables" if self.tables else "scale='percentile'"
            raise CriterionError(
                f"A Proximity with {what} has costs that are added up or compared, not squared. Use norm='l1' or "
                f"norm='linf', not {self.norm!r}."
            )
        for name, table in self.tables.items():
            _check_table(name, table)
        for name, value in self.weights.items():
            if not (np.isfinite(value) and value >= 0):
                raise CriterionError(
                    f"The weight of {name!r} must not be negative, got {value!r}. A weight of 0 makes changes free; to "
                    "forbid them use Actionability(frozen=[...])."
                )
        # tables of costs are shared by questions: what was given may be changed later, and must not change them
        object.__setattr__(self, "weights", Fixed.of(self.weights))
        object.__setattr__(self, "tables", Fixed.of(self.tables))
        if not isinstance(self.scale, str):
            object.__setattr__(self, "scale", Fixed.of(self.scale))

    def check(self, query: Query) -> None:
        """Every named feature must be known."""
        own = () if isinstance(self.scale, str) else tuple(self.scale)
        for name in (*self.weights, *own, *self.tables):
            query.schema.index(name)
        for name, table in self.tables.items():
            feature = query.schema[name]
            if isinstance(feature, Numeric):
                _knots(name, table)
            else:
                for level in table:
                    feature.position(level)

    def _weights(self, schema: Schema) -> FloatArray:
        out = np.ones(len(schema))
        for name, value in self.weights.items():
            out[schema.index(name)] = value
        return out

    def _scales(self, schema: Schema, training: Training) -> FloatArray:
        """Return the scale of each feature (1 for categorical ones)."""
        t = training
        by = {"mad": t.mad, "std": t.std, "none": np.ones(len(schema))}
        by["auto"] = np.where(_ruled(t), t.middle, t.range)
        scales = by.get(self.scale, t.range).copy() if isinstance(self.scale, str) else t.range.copy()
        if not isinstance(self.scale, str):
            for name, value in self.scale.items():
                scales[schema.index(name)] = value
        for j, feature in enumerate(schema.features):
            if not isinstance(feature, Numeric):
                scales[j] = 1.0
            elif scales[j] <= 0:
                if feature.lower < feature.upper:
                    raise CriterionError(
                        f"{feature.name!r} is constant in the training data, so a change of it has no scale. Give one: "
                        f"Proximity(scale={{{feature.name!r}: 1.0}}), or keep to its training range."
                    )
                scales[j] = 1.0
        return scales

    def _switches(self, schema: Schema, j: int) -> FloatArray:
        """Return the distance of each level of a categorical feature from another one, none of them its neighbour."""
        feature = schema.features[j]
        assert not isinstance(feature, Numeric)
        out = np.ones(feature.width)
        for level, cost in self.tables.get(feature.name, {}).items():
            out[feature.position(level)] = float(cost)
        return out

    def _steps(self, schema: Schema, j: int) -> FloatArray:
        """Return the distances between the levels of an ordinal feature, from rows to columns."""
        feature, places = schema.features[j], np.arange(schema.features[j].width)
        out: FloatArray = np.abs(places - places[:, None]) / (len(places) - 1.0)
        if feature.name in self.tables:
            named = [feature.position(level) for level in self.tables[feature.name]]  # type: ignore[union-attr]
            out[:, named] = self._switches(schema, j)[named]
        np.fill_diagonal(out, 0.0)
        return out

    def _curves(self, query: Query) -> dict[int, CostCurve]:
        """Return the costs of the numbers that have a table, or a percentile in place of a scale."""
        if not self.tables and self.scale != "percentile":
            return {}
        weights, out = self._weights(query.schema), {}
        for j, feature in enumerate(query.schema.features):
            hat = float(query.factual[query.schema.starts[j]])
            if not isinstance(feature, Numeric) or np.isnan(hat) or weights[j] == 0.0:
                continue
            if feature.name in self.tables:
                out[j] = CostCurve.through(*_knots(feature.name, self.tables[feature.name])).times(float(weights[j]))
            elif self.scale == "percentile" and query.training.range[j] > 0.0:
                at, share = query.training.shares(j)
                here = float(np.interp(hat, at, share))
                beyond = query.training.range[j] * np.array([-1.0, 1.0])  # one range further costs one more
                knots = np.concatenate([[at[0] + beyond[0]], at, [at[-1] + beyond[1]]])
                shares = np.concatenate([[share[0] - 1.0], share, [share[-1] + 1.0]])
                if not at[0] <= hat <= at[-1]:
                    here = float(np.interp(hat, knots, shares))
                out[j] = CostCurve.through(knots - hat, np.abs(shares - here)).times(float(weights[j]))
        return out

    def costs(self, query: Query) -> Costs | None:
        """Return the separable costs: all of l1 and l2, the categories of Mahalanobis, none of l-infinity."""
        if self.norm == "linf":
            return None
        costs, curves = self._table(query.schema, query.training).at(query.schema, query.factual), {}
        if self.norm == "l1" and (curves := self._curves(query)):
            linear = costs.linear.copy()
            linear[list(curves)] = 0.0
            costs = replace(costs, linear=linear, curves=curves)
        return costs.without(query.schema, query.exempt)

    def table(self, schema: Schema, training: Training) -> CostTable | None:
        """Return the separable costs at all factuals; None where costs of numbers are curves, which begin at the factual."""
        numbers = (name for name in self.tables if isinstance(schema[name], Numeric))
        if self.scale == "percentile" or next(numbers, None) is not None:
            return None
        return CostTable.none(schema) if self.norm == "linf" else self._table(schema, training)

    def _table(self, schema: Schema, training: Training) -> CostTable:
        """Return the costs at all factuals, but for curves; remembered, as many parts of a question ask for them."""
        scale = self.scale if isinstance(self.scale, str) else tuple(self.scale.items())
        own = tuple((name, tuple(table.items())) for name, table in self.tables.items())
        key = (self.norm, scale, tuple(self.weights.items()), own, id(schema))
        return training.memo.get("costs", key, lambda: self._computed(schema, training), keep=schema)

    def _computed(self, schema: Schema, training: Training) -> CostTable:
        none, weights, power = CostTable.none(schema), self._weights(schema), 2.0 if self.norm == "l2" else 1.0
        switch, rate, numeric = none.switch, none.linear, schema.numeric
        for j in schema.categorical:
            switch[schema.slice(j)] = (weights[j] * self._switches(schema, j)) ** power
        ordinal = [j for j in schema.categorical if isinstance(f := schema.features[j], Ordinal) and f.width > 1]
        steps = {j: (weights[j] * self._steps(schema, j)) ** power for j in ordinal}
        if self.norm != "mahalanobis":
            rate[numeric] = (weights / self._scales(schema, training))[numeric]
        if self.norm == "l2":
            return CostTable(none.square, rate**2, none.price, switch, steps)
        return CostTable(rate, none.square, none.price, switch, steps)

    def separable(self) -> bool:
        """The sums are, the largest deviation and the Mahalanobis distance are not."""
        return self.norm in ("l1", "l2")

    def couples(self, query: Query) -> frozenset[int]:
        """Mahalanobis couples every numeric feature that has a value."""
        if self.norm != "mahalanobis":
            return frozenset()
        t = query.training
        return frozenset(j for j in t.numeric if not np.isnan(query.factual[query.schema.starts[j]]))

    def add_cost(self, problem: Program) -> None:
        """Add the largest deviation (l-infinity) or the squares of the whitened deviation (Mahalanobis)."""
        if self.norm == "linf":
            self._add_largest(problem)
        elif self.norm == "mahalanobis":
            factor = self._whitening(problem.query)
            numeric = sorted(self.couples(problem.query))
            hats = [float(problem.query.factual[problem.query.schema.starts[j]]) for j in numeric]
            moves = [problem.x.raw(j) - hat for j, hat in zip(numeric, hats, strict=True)]
            for row in factor:
                inner = Affine.total(m * float(a) for m, a in zip(moves, row, strict=True) if a != 0.0)
                problem.mip.minimise_square(Square(inner, 1.0))

    def factor(self, query: Query) -> FloatArray | None:
        """For Mahalanobis: the whitening of the features that have a value."""
        return self._whitening(query) if self.norm == "mahalanobis" else None

    def _whitening(self, query: Query) -> FloatArray:
        """Return ``F`` with ``F'F`` the inverse covariance of the coupled features, weights included."""
        t, coupled = query.training, sorted(self.couples(query))
        weights = self._weights(query.schema)[coupled] * [j not in query.exempt for j in coupled]

        def whitening() -> FloatArray:
            keep = [t.numeric.index(j) for j in coupled]
            return np.asarray(np.linalg.cholesky(t.precision[np.ix_(keep, keep)]).T * weights)

        return t.memo.get("whitening", (tuple(coupled), weights.tobytes()), whitening)

    def _add_largest(self, problem: Program) -> None:
        query, x = problem.query, problem.x
        costs = replace(self, norm="l1").costs(query)
        assert costs is not None
        levels, curves = costs.levels, costs.curves
        deviations = []
        for j in problem.moving():
            if not isinstance(query.schema.features[j], Numeric):
                deviations.append(x.level_table(j, levels[query.schema.slice(j)]))
            elif j in curves:
                deviations.append(curves[j].expression(problem, j))
            elif not np.isnan(query.factual[query.schema.starts[j]]):
                deviations.append(problem.distance(j) * float(costs.linear[j]))
        most = max((problem.mip.bounds(d)[1] for d in deviations), default=0.0)
        top = problem.mip.epigraph(max(most, 0.0), name="largest")
        for deviation in deviations:
            # the largest deviation is no less than any of them
            problem.mip.row(top - deviation, lower=0.0)
        problem.mip.minimise(top)

    def coupled_cost(self, query: Query, U: FloatArray) -> FloatArray:
        """Return what `add_cost` adds, measured on rows."""
        if self.norm == "linf":
            return np.asarray(self._per_feature(query, U).max(axis=1))
        if self.norm == "mahalanobis":
            numeric = [query.schema.starts[j] for j in sorted(self.couples(query))]
            moves = (U[:, numeric] - query.factual[numeric]) @ self._whitening(query).T
            return np.asarray((moves**2).sum(axis=1))
        return np.zeros(len(U))

    def coupled_bound(self, query: Query) -> Costs | None:
        """For l-infinity: each feature's own deviation bounds the largest one from below."""
        return replace(self, norm="l1").costs(query) if self.norm == "linf" else None

    def is_largest(self) -> bool:
        """For l-infinity: it is no more than that."""
        return self.norm == "linf"

    def _per_feature(self, query: Query, U: FloatArray) -> FloatArray:
        costs = replace(self, norm="l1").costs(query)
        assert costs is not None
        return costs.per_feature(query, U)

    def distance(self, query: Query, U: FloatArray) -> FloatArray:
        """Return the distance of each row to the factual: the NumPy twin of the whole criterion."""
        total = self.coupled_cost(query, U)
        costs = self.costs(query)
        return total if costs is None else total + costs.per_feature(query, U).sum(axis=1)

    def measure(self, query: Query, U: FloatArray) -> dict[str, FloatArray]:
        """Return the distance."""
        return {"distance": self.distance(query, U)}

    def remarks(self, query: Query, U: FloatArray) -> list[str]:
        """Say of which changed numbers the range was not used, and why."""
        if self.scale != "auto" or self.norm == "mahalanobis":
            return []
        t, changed = query.training, query.changed(U).any(axis=0)
        return [
            f"outliers rule the range of {query.schema.names[j]} ({number(t.range[j])}): its change is counted by the middle "
            f"nine tenths of the rows ({number(t.middle[j])})"
            for j in map(int, np.flatnonzero(_ruled(t) & changed))
            if query.schema.names[j] not in self.tables
        ]


def _ruled(training: Training) -> Any:
    """Say which numbers have a range that outliers rule, as ``"auto"`` sees it."""
    return (training.middle > 0.0) & (training.range > OUTLIERS_RULE * training.middle)


def _check_table(name: str, table: Any) -> None:
    if not isinstance(table, Mapping) or not table:
        raise CriterionError(
            f"The table of {name!r} must map changes (of a number) or levels (of a category) to costs, got {table!r}. Write "
            f"e.g. tables={{{name!r}: {{-12: 1.0, 12: 3.0}}}}."
        )
    for entry, cost in table.items():
        if not (isinstance(cost, int | float) and np.isfinite(cost) and cost >= 0):
            raise CriterionError(f"The cost of {entry!r} in the table of {name!r} must not be negative, got {cost!r}.")


def _knots(name: str, table: Mapping[Any, float]) -> tuple[FloatArray, FloatArray]:
    """Return the changes of a table and their costs, on both sides of 0."""
    if not all(isinstance(d, int | float) and np.isfinite(d) for d in table):
        raise CriterionError(f"The table of {name!r}, a number, must map changes to costs. Got {dict(table)!r}.")
    known = {float(d): float(cost) for d, cost in table.items()}
    if known.get(0.0, 0.0) != 0.0:
        raise CriterionError(f"No change costs nothing: take 0 out of the table of {name!r}, or let it cost 0.")
    known.pop(0.0, None)
    if not known:
        raise CriterionError(f"The table of {name!r} names no change. Add one, e.g. {{12: 1.0}}.")
    for sign in (-1.0, 1.0):
        if not any(d * sign > 0 for d in known):
            known |= {-d: cost for d, cost in known.items()}
        side = [cost for _, cost in sorted((abs(d), cost) for d, cost in known.items() if d * sign > 0)]
        if any(later < before for before, later in pairwise(side)):
            raise CriterionError(
                f"The table of {name!r} charges less for more change in the same direction. Costs must not fall away from 0."
            )
    return np.array(list(known)), np.array(list(known.values()))
