"""Sparsity: how many features change, as a bound or as a price."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Schema
from ifonly.errors import CriterionError, Relaxation
from ifonly.program.mip import Affine
from ifonly.question.abilities import Counts, Loosens
from ifonly.question.costs import Costs, CostTable
from ifonly.question.criterion import Criterion, Tabulates
from ifonly.question.demand import Demand
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.training import Training

__all__ = ["Sparsity"]


@dataclass(frozen=True)
class Sparsity(Tabulates, Criterion):
    """Change few features.

    Parameters
    ----------
    at_most
        A hard bound on the number of changed features (a category counts once).
    price
        What each changed feature costs in the objective, on top of its distance.
    """

    at_most: int | None = None
    price: float | None = None

    def __post_init__(self) -> None:
        if self.at_most is not None and (int(self.at_most) != self.at_most or self.at_most < 1):
            raise CriterionError(
                f"The 'at_most' of Sparsity must be a whole number of at least 1, got {self.at_most!r}: with no change "
                "at all the outcome stays what it is."
            )
        if self.price is not None and not (np.isfinite(self.price) and self.price >= 0):
            raise CriterionError(f"The 'price' of Sparsity must not be negative, got {self.price!r}.")
        if self.at_most is None and self.price is None:
            raise CriterionError("Sparsity needs at_most= (a bound) or price= (a cost per changed feature).")

    def demands(self, query: Query) -> list[Demand]:
        """Return the bound, if there is one."""
        del query
        if self.at_most is None:
            return []
        plural = "s" * (self.at_most > 1)
        return [_AtMost(f"change at most {self.at_most} feature{plural}", int(self.at_most))]

    def costs(self, query: Query) -> Costs | None:
        """Return the price per changed feature."""
        return self.table(query.schema, query.training).at(query.schema, query.factual) if self.price else None

    def table(self, schema: Schema, training: Training) -> CostTable:
        """Return the price per changed feature, the same for all."""
        del training
        return replace(CostTable.none(schema), price=np.full(len(schema), float(self.price or 0.0)))

    def measure(self, query: Query, U: FloatArray) -> dict[str, FloatArray]:
        """Return the number of changed features that count."""
        return {"changed": query.counted(U).sum(axis=1).astype(np.float64)}


@dataclass(frozen=True, eq=False)
class _AtMost(Counts, Loosens, Demand):
    """``sum_j z_j <= K`` with ``z_j >= [x_j != xhat_j]``."""

    most: int

    def _count(self, problem: Program) -> Affine:
        counted = [j for j in problem.moving() if j not in problem.exempt]
        return Affine.total(problem.x.changed(j) for j in counted)

    def at_most(self) -> int:
        return self.most

    def apply(self, problem: Program) -> None:
        # sum_j z_j <= K
        problem.mip.row(self._count(problem), upper=float(self.most))

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        return np.asarray(query.counted(U).sum(axis=1) <= self.most)

    def excess(self, problem: Program) -> Affine:
        return self._count(problem)

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        needed = int(query.counted(u[None, :]).sum())
        return Relaxation(self.text, f"at_most {self.most} -> {needed}", float(needed - self.most))
