"""Demand: one atomic constraint on the answer, said to the optimiser and to NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.program.box import Box
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.tolerances import EDGE

__all__ = ["BoxDemand", "Demand", "Outcome"]


@dataclass(frozen=True, eq=False)
class Demand:
    """One atomic demand on the answer. Subclasses fill in what they need; the defaults demand nothing.

    What else a demand can do (propose points, bound costs, be loosened by a measured amount) is declared by inheriting
    abilities: see `ifonly.question.abilities` and `ifonly.question.guidance`.
    """

    text: str

    def narrow(self, query: Query, box: Box) -> None:
        """Shrink the box, for a demand on single features."""

    def cuts(self, query: Query) -> Mapping[int, FloatArray]:  # noqa: ARG002 - for subclasses
        """Return the raw thresholds this demand asks for."""
        return {}

    def raw(self, query: Query) -> frozenset[int]:  # noqa: ARG002 - for subclasses
        """Return the numeric features whose raw value this demand couples."""
        return frozenset()

    def features(self, query: Query) -> frozenset[int]:
        """Return the features that the rows of `apply` can move, whether or not the model looks at them."""
        return self.raw(query) | frozenset(self.cuts(query))

    def apply(self, problem: Program) -> None:
        """Add rows to the program."""

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, per canonical row, whether the demand is met: the NumPy twin of `narrow` and `apply`."""
        box = Box.of(query.schema, query.factual)
        self.narrow(query, box)
        return box.contains(U, EDGE)


@dataclass(frozen=True, eq=False)
class Outcome(Demand):
    """The demand on what the model says: rows on its scores. `ifonly.question.goal.Goal` is all of it."""


@dataclass(frozen=True, eq=False)
class BoxDemand(Demand):
    """A demand of which `narrow` says all there is: it has no rows, so it never couples features.

    A question whose demands are all of this kind, besides its goal and a count of changes, needs no solver for many models.
    """

    def __init_subclass__(cls) -> None:
        if "apply" in vars(cls):
            raise TypeError(
                f"{cls.__name__} adds rows, so it is not a BoxDemand, of which the box says it all: inherit Demand."
            )
        super().__init_subclass__()

    @final
    def apply(self, problem: Program) -> None:
        """Add nothing: the box says it all."""
