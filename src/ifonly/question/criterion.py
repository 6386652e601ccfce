"""Criterion: a declaration by the user, which yields demands and costs for one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ifonly.arrays import FloatArray

if TYPE_CHECKING:
    from ifonly.question.problem import Problem
from ifonly.question.costs import Costs
from ifonly.question.demand import Demand
from ifonly.question.query import Query

__all__ = ["Criterion"]


@dataclass(frozen=True)
class Criterion:
    """Criterion as the user writes it; subclasses are the public criteria."""

    def check(self, query: Query) -> None:
        """Raise `CriterionError` when the criterion is ill-posed for this schema; warn when the factual breaks it."""

    def check_together(self, query: Query, demands: Sequence[Demand]) -> None:
        """Raise `CriterionError` when the demands of all criteria contradict this one before anything is solved."""

    def demands(self, query: Query) -> Sequence[Demand]:  # noqa: ARG002 - for subclasses
        """Return the atomic demands."""
        return ()

    def costs(self, query: Query) -> Costs | None:  # noqa: ARG002 - for subclasses
        """Return the separable costs, if any."""
        return None

    def couples(self, query: Query) -> frozenset[int]:  # noqa: ARG002 - for subclasses
        """Return the numeric features whose raw value a non-separable cost needs."""
        return frozenset()

    def exempt(self, query: Query) -> frozenset[int]:  # noqa: ARG002 - for subclasses
        """Return features whose change is a consequence, not an action: neither counted nor charged."""
        return frozenset()

    def separable(self) -> bool:
        """Whether all that this criterion costs belongs to single features, and nothing follows from a change."""
        kind = type(self)
        return kind.add_cost is Criterion.add_cost and kind.settle is Criterion.settle

    def add_cost(self, problem: Problem) -> None:
        """Add a non-separable cost to the program."""

    def coupled_cost(self, query: Query, U: FloatArray) -> FloatArray:  # noqa: ARG002 - for subclasses
        """Return the non-separable cost of each row: the NumPy twin of `add_cost`."""
        return np.zeros(len(U))

    def coupled_bound(self, query: Query) -> Costs | None:  # noqa: ARG002 - for subclasses
        """Return separable costs whose largest entry bounds the coupled cost from below, for reduction."""
        return None

    def settle(self, query: Query, U: FloatArray, *, by_model: bool = False) -> FloatArray:  # noqa: ARG002
        """Return the rows with what follows from the rest computed anew: by forms, or by the user's own models."""
        return U

    def remarks(self, query: Query, U: FloatArray) -> list[str]:  # noqa: ARG002 - for subclasses
        """Return sentences to be printed below the answers."""
        return []

    def measure(self, query: Query, U: FloatArray) -> dict[str, FloatArray]:  # noqa: ARG002 - for subclasses
        """Return named numbers about each row, in the words of this criterion."""
        return {}
