"""Proximity: how far the answer is from the factual, in l1, squared l2, l-infinity or Mahalanobis distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Ordinal
from ifonly.errors import CriterionError
from ifonly.program.mip import Affine, Square
from ifonly.question.costs import Costs
from ifonly.question.criterion import Couples, Criterion
from ifonly.question.program import Program
from ifonly.question.query import Query

__all__ = ["Proximity"]

Norm = Literal["l1", "l2", "linf", "mahalanobis"]
Scale = Literal["range", "mad", "std", "none"]


@dataclass(frozen=True)
class Proximity(Couples, Criterion):
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
        standard deviation ``"std"``, or ``"none"``; or a mapping feature -> own scale (others by range).
    weights
        Feature -> weight, 1 for those not named.
    """

    norm: Norm = "l1"
    scale: Scale | Mapping[str, float] = "range"
    weights: Mapping[str, float] = field(default_factory=dict)

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
        for name, value in self.weights.items():
            if not (np.isfinite(value) and value >= 0):
                raise CriterionError(
                    f"The weight of {name!r} must not be negative, got {value!r}. A weight of 0 makes changes free; to "
                    "forbid them use Actionability(frozen=[...])."
                )

    def check(self, query: Query) -> None:
        """Every named feature must be known."""
        own = () if isinstance(self.scale, str) else tuple(self.scale)
        for name in (*self.weights, *own):
            query.schema.index(name)

    def _weights(self, query: Query) -> FloatArray:
        out = np.ones(len(query.schema))
        for name, value in self.weights.items():
            out[query.schema.index(name)] = value
        out[sorted(query.exempt)] = 0.0
        return out

    def _scales(self, query: Query) -> FloatArray:
        """Return the scale of each feature (1 for categorical ones)."""
        t = query.training
        by = {"mad": t.mad, "std": t.std, "none": np.ones(len(query.schema))}
        scales = by.get(self.scale, t.range).copy() if isinstance(self.scale, str) else t.range.copy()
        if not isinstance(self.scale, str):
            for name, value in self.scale.items():
                scales[query.schema.index(name)] = value
        for j, feature in enumerate(query.schema.features):
            if not isinstance(feature, Numeric):
                scales[j] = 1.0
            elif scales[j] <= 0:
                hat = query.factual[query.schema.starts[j]]
                if min(feature.lower, hat) < max(feature.upper, hat):
                    raise CriterionError(
                        f"{feature.name!r} is constant in the training data, so a change of it has no scale. Give one: "
                        f"Proximity(scale={{{feature.name!r}: 1.0}}), or keep to its training range."
                    )
                scales[j] = 1.0
        return scales

    def _levels(self, query: Query, power: float = 1.0) -> FloatArray:
        """Return the cost of each level of each categorical feature."""
        weights = self._weights(query)
        out = np.zeros(query.schema.width)
        for j, feature in enumerate(query.schema.features):
            if isinstance(feature, Numeric):
                continue
            part = query.factual[query.schema.slice(j)]
            distance = (part == 0).astype(float)
            if isinstance(feature, Ordinal) and part.any() and feature.width > 1:
                distance = np.abs(np.arange(feature.width) - int(part.argmax())) / (feature.width - 1)
            out[query.schema.slice(j)] = (weights[j] * distance) ** power
        return out

    def costs(self, query: Query) -> Costs | None:
        """Return the separable costs: all of l1 and l2, the categories of Mahalanobis, none of l-infinity."""
        scale = self.scale if isinstance(self.scale, str) else tuple(self.scale.items())
        key = (self.norm, scale, tuple(self.weights.items()), id(query.schema), query.factual.tobytes(), query.exempt)
        return query.training.memo.get("costs", key, lambda: self._costs(query), keep=query.schema)

    def _costs(self, query: Query) -> Costs | None:
        none = Costs.none(query.schema)
        if self.norm == "linf":
            return None
        if self.norm == "mahalanobis":
            return Costs(none.linear, none.square, none.price, self._levels(query))
        numeric = np.array([isinstance(f, Numeric) for f in query.schema.features])
        rate = np.where(numeric, self._weights(query) / self._scales(query), 0.0)
        if self.norm == "l1":
            return Costs(rate, none.square, none.price, self._levels(query))
        return Costs(none.linear, rate**2, none.price, self._levels(query, 2.0))

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

    def _whitening(self, query: Query) -> FloatArray:
        """Return ``F`` with ``F'F`` the inverse covariance of the coupled features, weights included."""
        t = query.training
        keep = [t.numeric.index(j) for j in sorted(self.couples(query))]
        weights = self._weights(query)[sorted(self.couples(query))]
        return np.asarray(np.linalg.cholesky(t.precision[np.ix_(keep, keep)]).T * weights)

    def _add_largest(self, problem: Program) -> None:
        query, x = problem.query, problem.x
        rates = self._weights(query) / self._scales(query)
        levels = self._levels(query)
        deviations = []
        for j in problem.moving():
            if not isinstance(query.schema.features[j], Numeric):
                deviations.append(x.level_table(j, levels[query.schema.slice(j)]))
            elif not np.isnan(query.factual[query.schema.starts[j]]):
                deviations.append(problem.distance(j) * float(rates[j]))
        most = max((problem.mip.bounds(d)[1] for d in deviations), default=0.0)
        top = problem.mip.column(0.0, max(most, 0.0), name="largest")
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
        return Proximity("l1", self.scale, self.weights).costs(query) if self.norm == "linf" else None

    def is_largest(self) -> bool:
        """For l-infinity: it is no more than that."""
        return self.norm == "linf"

    def _per_feature(self, query: Query, U: FloatArray) -> FloatArray:
        costs = Proximity("l1", self.scale, self.weights).costs(query)
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
