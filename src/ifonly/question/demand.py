"""Demand: one atomic constraint on the answer, said to the optimiser and to NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.deadline import Deadline
from ifonly.errors import Relaxation
from ifonly.program.box import Box
from ifonly.program.mip import Affine
from ifonly.tolerances import EDGE

if TYPE_CHECKING:
    from ifonly.question.problem import Problem
    from ifonly.question.statement import Statement
from ifonly.question.query import Query

__all__ = ["Branch", "Demand"]


@dataclass(frozen=True, eq=False)
class Branch:
    """One of several alternatives of a demand: no point of it costs less than `bound`.

    Attributes
    ----------
    bound
        A lower bound on the objective within this alternative.
    box
        The part of the box it lives in.
    demand
        What replaces the demand there.
    """

    bound: float
    box: Box
    demand: Demand


@dataclass(frozen=True, eq=False)
class Demand:
    """One atomic demand on the answer. Subclasses fill in what they need; the defaults demand nothing."""

    text: str

    def narrow(self, query: Query, box: Box) -> None:
        """Shrink the box, for a demand on single features."""

    def tighten(self, query: Query, box: Box) -> None:
        """Shrink the box once more when a budget has made it smaller, for a demand that carries bounds further."""

    def cuts(self, query: Query) -> Mapping[int, FloatArray]:  # noqa: ARG002 - for subclasses
        """Return the raw thresholds this demand asks for."""
        return {}

    def raw(self, query: Query) -> frozenset[int]:  # noqa: ARG002 - for subclasses
        """Return the numeric features whose raw value this demand couples."""
        return frozenset()

    def features(self, query: Query) -> frozenset[int]:
        """Return the features that the rows of `apply` can move, whether or not the model looks at them."""
        return self.raw(query) | frozenset(self.cuts(query))

    def apply(self, problem: Problem) -> None:
        """Add rows to the program."""

    def within_box(self) -> bool:
        """Whether `narrow` says all there is to this demand."""
        return type(self).apply is Demand.apply and type(self).branches is Demand.branches

    def at_most(self) -> int | None:
        """Return how many features may change, for a demand that says just that."""
        return None

    def branches(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[Branch] | None:  # noqa: ARG002
        """Split the question into alternatives, cheapest bound first, or return None when it is one piece.

        Once the deadline has passed, bounds may be looser, but no alternative may be left out.
        """
        return None

    def candidates(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[FloatArray]:  # noqa: ARG002
        """Return points worth trying as incumbents: this demand knows how to meet itself cheaply.

        None have to be returned, and none should be once the deadline has passed.
        """
        return ()

    def lower_bound(self, statement: Statement, box: Box, deadline: Deadline) -> float:  # noqa: ARG002
        """Return a bound on the objective in a box that this demand alone implies, if it can tell (see `squeeze`)."""
        return -np.inf

    def squeeze(self, statement: Statement, box: Box, budget: float, deadline: Deadline) -> Box:  # noqa: ARG002
        """Return the part of a box in which this demand can be met for at most `budget`; it may be empty."""
        return box

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, per canonical row, whether the demand is met: the NumPy twin of `narrow` and `apply`."""
        box = Box.of(query.schema, query.factual)
        self.narrow(query, box)
        return box.contains(U, EDGE)

    def verified(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, per canonical row, whether the demand is met by the word of the user's own models, where it has any."""
        return self.holds(query, U)

    def refined(self, u: FloatArray) -> Demand | None:  # noqa: ARG002 - for subclasses
        """Return a demand whose rows are exact at `u`, or None when they are exact everywhere."""
        return None

    def loosest(self, query: Query) -> Demand | None:  # noqa: ARG002 - for subclasses
        """Return what of this demand stays however far it is loosened, or None: then nothing does."""
        return None

    def excess(self, problem: Problem) -> Affine | None:  # noqa: ARG002 - for subclasses
        """Return an expression of how far the demand is broken, or None: then it can only be dropped."""
        return None

    def excess_raw(self, query: Query) -> frozenset[int]:
        """Return the numeric features whose raw value `excess` needs."""
        return self.raw(query)

    def excess_features(self, query: Query) -> frozenset[int]:
        """Return the features that `excess` can move."""
        return self.features(query)

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:  # noqa: ARG002 - for subclasses
        """Return the loosening that lets the row `u` through."""
        return Relaxation(self.text, f"drop: {self.text}", 1.0)
