"""Binned columns: literals ``[x_j <= cut]`` as further entries of the canonical vector.

A column that a discretiser made of a numeric feature is constant between its bin edges, hence a constant plus a weight
per edge on "x is below it". With these literals appended to ``u`` the column is affine again, so that linear models and
networks are read over the longer vector; in a program the literals are those of the feature's cells, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.box import Box
from ifonly.mip import Affine, FloatArray, IntArray, Mip
from ifonly.models import Form
from ifonly.models.compose import for_budget, score_bounds
from ifonly.models.linear import Linear
from ifonly.models.propagate import Bounds, Budget
from ifonly.models.source import Column, Source
from ifonly.schema import Integer, Schema
from ifonly.variables import Variables

__all__ = ["Lift", "Stepped", "linear_form"]


@dataclass(frozen=True, eq=False)
class Lift:
    """The literals that are appended to the canonical vector: ``[x_feature[i] <= cut[i]]``."""

    schema: Schema
    feature: IntArray
    cut: FloatArray

    @classmethod
    def of(cls, source: Source) -> Lift:
        """Return the literals that the columns of a source need."""
        keys = sorted({key for c in source.columns for key in c.steps})
        feature = np.array([j for j, _ in keys], dtype=np.int64)
        return cls(source.schema, feature, np.array([cut for _, cut in keys], dtype=np.float64))

    @property
    def longer(self) -> Schema:
        """The features, and one of value 0 or 1 per literal."""
        literals = [Integer(f"step {i}", 0.0, 1.0) for i in range(len(self.cut))]
        return Schema((*self.schema.features, *literals))

    def source(self, source: Source) -> Source:
        """Return the source over the longer vector: its columns are affine where they were stepped."""
        keys = list(zip(self.feature.tolist(), self.cut.tolist(), strict=True))

        def lifted(c: Column) -> Column:
            if c.weights is None:
                return c
            own = np.array([c.steps.get(key, 0.0) for key in keys])
            return replace(c, weights=np.concatenate([c.weights, own]), steps={})

        return replace(
            source,
            schema=self.longer,
            columns=tuple(lifted(c) for c in source.columns),
            evaluate=lambda V: source.evaluate(V[:, : self.schema.width]),
            base=self.rows(source.base[None, :])[0],
        )

    def rows(self, U: FloatArray) -> FloatArray:
        """Return canonical rows with their literals."""
        x = U[:, np.asarray(self.schema.starts)[self.feature]]
        return np.hstack([U, (x <= self.cut).astype(np.float64)])

    def box(self, box: Box) -> Box:
        """Return the box of the longer vector."""
        n = len(self.cut)
        low, high = box.lower[self.feature], box.upper[self.feature]
        return Box(
            self.longer,
            np.concatenate([box.lower, (high <= self.cut).astype(np.float64)]),
            np.concatenate([box.upper, (low <= self.cut).astype(np.float64)]),
            np.concatenate([box.allowed, np.ones(n, dtype=np.bool_)]),
            np.concatenate([box.missing, box.missing[self.feature]]),
        )

    def budget(self, budget: Budget) -> Budget:
        """Return the budget of the longer vector, in which literals change for nothing."""
        none = np.zeros(len(self.cut))
        return replace(
            budget,
            factual=self.rows(budget.factual[None, :])[0],
            rate=np.concatenate([budget.rate, none]),
            fixed=None if budget.fixed is None else np.concatenate([budget.fixed, none]),
        )


class _Longer(Variables):
    """The variables of the longer vector: the raw value of a literal's feature is the literal."""

    def __init__(self, x: Variables, lift: Lift) -> None:
        super().__init__(x.mip, lift.box(x.box), lift.rows(x.factual[None, :])[0], {}, ())
        self._short, self._lift = x, lift

    def raw(self, j: int) -> Affine:
        """Return the raw value of a numeric feature, or a literal."""
        i = j - len(self._lift.schema)
        if i < 0:
            return self._short.raw(j)
        return self._short.at_most(int(self._lift.feature[i]), float(self._lift.cut[i]))

    def level_table(self, j: int, values: FloatArray) -> Affine:
        """Return the table of a categorical feature."""
        return self._short.level_table(j, values)


@dataclass(frozen=True, eq=False)
class Stepped:
    """A form of the longer vector, as a form of the canonical one."""

    inner: Form
    lift: Lift

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return self.inner.n_outputs

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores of canonical rows."""
        return self.inner(self.lift.rows(U))

    def cuts(self) -> Mapping[int, FloatArray]:
        """Return the bin edges per numeric feature."""
        return {int(j): np.unique(self.lift.cut[self.lift.feature == j]) for j in np.unique(self.lift.feature)}

    def raw(self) -> frozenset[int]:
        """Return the numeric features whose raw value enters beside their steps."""
        return frozenset(j for j in self.inner.raw() if j < len(self.lift.schema))

    def features(self) -> frozenset[int]:
        """Return the features that enter by value, level or step."""
        n = len(self.lift.schema)
        return frozenset(j if j < n else int(self.lift.feature[j - n]) for j in self.inner.features())

    def embed(self, mip: Mip, x: Variables) -> list[Affine]:
        """Embed the inner form over raw values, levels and literals."""
        return self.inner.embed(mip, _Longer(x, self.lift))

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return bounds of the scores over a box, and within a budget."""
        return score_bounds(self.inner, self.lift.box(box), None if budget is None else self.lift.budget(budget))

    def for_budget(self, box: Box, budget: Budget) -> Stepped:
        """Return the form with bounds that hold within the budget."""
        return replace(self, inner=for_budget(self.inner, self.lift.box(box), self.lift.budget(budget)))

    def refined(self, u: FloatArray) -> Stepped | None:
        """Refine the inner form."""
        inner = self.inner.refined(self.lift.rows(u[None, :])[0])
        return None if inner is None else replace(self, inner=inner)


def linear_form(source: Source, coefficients: npt.ArrayLike, intercept: npt.ArrayLike, who: str) -> Form:
    """Return the form of ``z @ C' + b0`` over the columns of a source, binned ones included."""
    lift = Lift.of(source)
    if not lift.cut.size:
        return Linear(source.schema, *source.linear(coefficients, intercept, who))
    longer = lift.source(source)
    return Stepped(Linear(longer.schema, *longer.linear(coefficients, intercept, who)), lift)
