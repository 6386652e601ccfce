"""Demands that keep a further answer apart from earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ifonly.criteria import Demand, Query
from ifonly.mip import Affine, FloatArray

if TYPE_CHECKING:
    from ifonly.problem import Problem

__all__ = ["OtherFeatures"]

_LEAST_MOVE = 1e-4  # of the training range: less than that is not another answer


@dataclass(frozen=True, eq=False)
class OtherFeatures(Demand):
    """The set of changed features must not be this one: ``sum_{j in S} (1 - z_j) + sum_{j not in S} z_j >= 1``."""

    changed: npt.NDArray[np.bool_]

    @classmethod
    def than(cls, query: Query, changed: npt.NDArray[np.bool_]) -> OtherFeatures:
        """Return the demand for another set than the given one."""
        names = ", ".join(query.schema.names[j] for j in np.flatnonzero(changed))
        return cls(f"change another set of features than {names}", changed)

    def apply(self, problem: Problem) -> None:
        """Exclude this set: one of its features stays, or one outside of it surely moves."""
        ranges = problem.query.training.range
        terms = [
            1.0 - problem.x.changed(j)
            if self.changed[j]
            else problem.x.surely_changed(j, _LEAST_MOVE * max(float(ranges[j]), 1e-12))
            for j in problem.moving()
        ]
        problem.mip.row(Affine.total(terms), lower=1.0)

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows change another set."""
        return np.asarray((query.changed(U) != self.changed).any(axis=1))
