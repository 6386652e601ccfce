"""The demand to leave a box: some feature lies below it, above it, or has a level that it does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.models.form import Form
from ifonly.program.box import Box
from ifonly.program.leaving import apart, ends, leaving
from ifonly.question.demand import Demand
from ifonly.question.program import Program
from ifonly.question.query import Query

__all__ = ["Outside"]


@dataclass(frozen=True, eq=False)
class Outside(Demand):
    """``sum_j [x_j < low_j] + [x_j > high_j] + sum_j [level of j not held] >= 1``, over some features.

    Attributes
    ----------
    box
        What is ruled out.
    limits
        Where features can lie at all: an end of the box at a limit is no way out.
    among
        The features by which one can leave.
    by
        The form of the further model that refuses the box; None: the explained model does.
    """

    text: str = field(default="differ from a point that the model refuses", init=False)
    box: Box
    limits: Box
    among: frozenset[int]
    by: Form | None = None

    def _numbers(self) -> list[int]:
        """Return the numeric features by which one can leave the box."""
        inside = (self.box.lower > self.limits.lower) | (self.box.upper < self.limits.upper)
        return [j for j in apart(self.box, self.among)[0] if inside[j]]

    def cuts(self, query: Query) -> Mapping[int, FloatArray]:
        """Return the ends of the box, below and above which one is outside."""
        del query
        return ends(self.box, self._numbers())

    def features(self, query: Query) -> frozenset[int]:
        """Return the features by which one can leave the box."""
        del query
        return self.among

    def apply(self, problem: Program) -> None:
        """Demand that at least one feature leaves the box."""
        _, levels = apart(self.box, self.among)
        # some feature lies outside the box
        problem.mip.row(leaving(problem.x, self.box, self._numbers(), levels), lower=1.0)

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows lie outside the box."""
        del query
        inside = np.ones(len(U), dtype=np.bool_)
        for j in self.among:
            inside &= self.box.contains_at(j, U)
        return ~inside
