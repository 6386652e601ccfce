"""Criterion: a declaration by the user, which yields demands and costs for one query; and what some criteria also do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ifonly.arrays import FloatArray
from ifonly.data.schema import Schema
from ifonly.question.abilities import Ability
from ifonly.question.costs import Costs, CostTable
from ifonly.question.demand import Demand
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.training import Training

__all__ = ["ChecksTogether", "Couples", "Criterion", "HasConsequences", "Remarks", "Tabulates", "is_tabulated"]


@dataclass(frozen=True)
class Criterion:
    """Criterion as the user writes it; subclasses are the public criteria.

    Whatever else a criterion can do is declared by inheriting the abilities below.
    """

    def check(self, query: Query) -> None:
        """Raise `CriterionError` when the criterion is ill-posed for this schema; warn when the factual breaks it."""

    def demands(self, query: Query) -> Sequence[Demand]:  # noqa: ARG002 - for subclasses
        """Return the atomic demands."""
        return ()

    def costs(self, query: Query) -> Costs | None:  # noqa: ARG002 - for subclasses
        """Return the separable costs, if any."""
        return None

    def measure(self, query: Query, U: FloatArray) -> dict[str, FloatArray]:  # noqa: ARG002 - for subclasses
        """Return named numbers about each row, in the words of this criterion."""
        return {}


class Tabulates(Criterion, Ability):
    """A criterion that is the same in every question about a schema, but for the place of the factual.

    Its costs are a table that is shifted to the factual; what `check` and `demands` say depends on the features alone. So it
    is asked once, and not again for every question. So it must not change: mappings that it is given are copied
    (`ifonly.runtime.fixed`).
    """

    @abstractmethod
    def table(self, schema: Schema, training: Training) -> CostTable | None:
        """Return the separable costs at all factuals; None: with the options at hand there is no such table."""


def is_tabulated(criterion: Criterion) -> bool:
    """Whether a criterion's own class says that it is the same in every question; a subclass has to say so again."""
    return isinstance(criterion, Tabulates) and "table" in vars(type(criterion))


class Couples(Criterion, Ability):
    """A criterion with a cost that is no sum over single features."""

    def separable(self) -> bool:
        """Whether, with the options at hand, it has no such cost after all."""
        return False

    @abstractmethod
    def couples(self, query: Query) -> frozenset[int]:
        """Return the numeric features whose raw value the cost needs."""

    @abstractmethod
    def add_cost(self, problem: Program) -> None:
        """Add the cost to the program."""

    @abstractmethod
    def coupled_cost(self, query: Query, U: FloatArray) -> FloatArray:
        """Return the cost of each row: the NumPy twin of `add_cost`."""

    def coupled_bound(self, query: Query) -> Costs | None:  # noqa: ARG002 - for subclasses
        """Return separable costs whose largest entry bounds the coupled cost from below, for reduction."""
        return None

    def factor(self, query: Query) -> FloatArray | None:  # noqa: ARG002 - for subclasses
        """Return ``F`` where the coupled cost is ``|F d|^2``, of the moves ``d`` of what it couples, in order; else None."""
        return None

    def is_largest(self) -> bool:
        """Whether, with the options at hand, the coupled cost is that largest entry, so that its balls are boxes."""
        return False


class HasConsequences(Criterion, Ability):
    """A criterion by which some features follow from others."""

    @abstractmethod
    def exempt(self, query: Query) -> frozenset[int]:
        """Return features whose change is a consequence, not an action: neither counted nor charged."""

    @abstractmethod
    def with_consequences(self, query: Query, U: FloatArray, *, by_model: bool = False) -> FloatArray:
        """Return the rows with what follows from the rest computed anew: by forms, or by the user's own models."""


class Remarks(Criterion, Ability):
    """A criterion that has something to say about the answers."""

    @abstractmethod
    def remarks(self, query: Query, U: FloatArray) -> list[str]:
        """Return sentences to be printed below the answers."""


class ChecksTogether(Criterion, Ability):
    """A criterion that can contradict the demands of others."""

    @abstractmethod
    def check_together(self, query: Query, demands: Sequence[Demand]) -> None:
        """Raise `CriterionError` when the demands of all criteria contradict this one before anything is solved."""
