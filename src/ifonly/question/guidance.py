"""Abilities of demands that guide a search: to propose points, to branch, to be met in boxes, to bound costs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ifonly.arrays import FloatArray
from ifonly.program.box import Box
from ifonly.question.abilities import Ability
from ifonly.question.demand import Demand
from ifonly.question.query import Query
from ifonly.question.separation import Separation
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline

__all__ = ["Branch", "Branches", "KeepsDistance", "Proposes", "Squeezes", "UnionOfBoxes"]


class Proposes(Demand, Ability):
    """A demand that knows how to meet itself cheaply."""

    @abstractmethod
    def candidates(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[FloatArray]:
        """Return points worth trying as incumbents.

        None have to be returned, and none should be once the deadline has passed.
        """


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
    by_solver
        Whether a solver had a part in the bound.
    name
        The number by which a proof calls this alternative, where all of them together are the demand; None: it has none.
    """

    bound: float
    box: Box
    demand: Demand
    by_solver: bool = True
    name: int | None = None


class Branches(Demand, Ability):
    """A demand that is a union of alternatives, each a smaller question."""

    @abstractmethod
    def branches(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[Branch] | None:
        """Split the question into alternatives, cheapest bound first, or return None when it is one piece.

        Once the deadline has passed, bounds may be looser, but no alternative may be left out.
        """


class UnionOfBoxes(Demand, Ability):
    """A demand that is met in each of a few boxes, and nowhere else: without it, a question may be of single features."""

    @abstractmethod
    def pieces(self, query: Query, box: Box) -> Sequence[Box]:
        """Return boxes, some of them perhaps empty, whose union is what of `box` meets the demand."""


class KeepsDistance(Demand, Ability):
    """A demand for a least distance from a point, counted feature by feature."""

    @abstractmethod
    def separation(self, query: Query) -> Separation:
        """Return the point and the distance; a row meets the demand if and only if it is that far away."""


class Squeezes(Demand, Ability):
    """A demand that bounds the objective by itself, and with it the box."""

    @abstractmethod
    def lower_bound(self, statement: Statement, box: Box, deadline: Deadline) -> float:
        """Return a bound on the objective in a box that this demand alone implies; minus infinity if it cannot tell."""

    @abstractmethod
    def squeeze(self, statement: Statement, box: Box, budget: float, deadline: Deadline) -> Box:
        """Return the part of a box in which this demand can be met for at most `budget`; it may be empty."""
