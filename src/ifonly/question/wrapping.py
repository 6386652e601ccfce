"""Abilities around a search: demands that wrap it, embed forms or enclose a ball, and criteria that say ranges."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.models.form import Form
from ifonly.program.box import Box
from ifonly.question.abilities import Ability
from ifonly.question.criterion import Criterion
from ifonly.question.demand import Demand
from ifonly.question.found import Found
from ifonly.question.goal import Goal
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline
from ifonly.solvers.backend import Backend, Limits
from ifonly.tolerances import BROKEN_OF_ROOM, PASSES_OF_ROOM

__all__ = ["Embeds", "Enclosed", "Encloses", "Ranges", "Search", "Sought", "Wraps"]


class Sought(NamedTuple):
    """Result of a search, and the statement with all that was demanded in the end."""

    found: Found
    statement: Statement


Search = Callable[[Statement, Limits, Deadline], Sought]


class Wraps(Demand, Ability):
    """A demand that no single program can state: it wraps the search, which then asks again until the demand is met.

    A statement may hold several demands of one kind. One wrapper serves them all: `wrapped` returns a search that is
    already wrapped by its own kind as it is.
    """

    @abstractmethod
    def wrapped(self, search: Search, backend: Backend) -> Search:
        """Return a search whose answers are proven to meet this demand; the search itself where a program can state it."""

    @abstractmethod
    def withstands(self, u: FloatArray, backend: Backend, limits: Limits, deadline: Deadline) -> bool:
        """Whether a point, as it will be returned, is proven to meet this demand."""


class Embeds(Demand, Ability):
    """A demand whose rows hold whole forms, beside the one of the goal."""

    @abstractmethod
    def embedded(self, query: Query) -> list[Form]:
        """Return these forms, one for each time that it is embedded."""


class Enclosed(NamedTuple):
    """Lead that is demanded all over a ball.

    Attributes
    ----------
    goal, form
        What must hold, and the scores that it is said of.
    enough, room
        The lead at which a point counts as safe; and what is asked for beyond the margin, half of which solvers may miss.
    reach, norm
        The half-axes of the ball, feature by feature, and its shape.
    limits
        Where values end.
    """

    goal: Goal
    form: Form
    enough: float
    room: float
    reach: FloatArray
    norm: Literal["linf", "l2"]
    limits: Box

    @property
    def broken(self) -> float:
        """The lead below which an attack has broken a point; what it takes less is left to the solver that looks for it."""
        return self.enough - BROKEN_OF_ROOM * self.room

    @property
    def passes(self) -> float:
        """By how much a lead may stay behind what is enough where a point is attacked: half of what an attack lets pass."""
        return PASSES_OF_ROOM * self.room

    def box(self, u: FloatArray) -> Box:
        """Return the box of all points that no feature by itself takes out of the ball around `u`."""
        schema, box = self.limits.schema, self.limits.copy()
        for j, feature in enumerate(schema.features):
            part = u[schema.slice(j)]
            if isinstance(feature, Numeric):
                box.missing[j] = bool(np.isnan(part[0]))
                if not box.missing[j]:
                    box.narrow(j, float(part[0] - self.reach[j]), float(part[0] + self.reach[j]))
                    box.lower[j], box.upper[j] = min(box.lower[j], part[0]), max(box.upper[j], part[0])
            else:
                box.missing[j] = not part.any()
                box.keep_levels(j, part > 0.5)
        return box


class Encloses(Demand, Ability):
    """A demand on all points of a ball around the answer, and nothing else."""

    @abstractmethod
    def enclosed(self) -> Enclosed | None:
        """Return what is demanded of the ball; None where there is no ball, or more is demanded than that."""


class Ranges(Criterion, Ability):
    """A criterion that says how far the numbers of an answer may go."""

    @abstractmethod
    def ranges(
        self, statement: Statement, u: FloatArray, backend: Backend, deadline: Deadline
    ) -> dict[str, tuple[float, float]]:
        """Return, per changed numeric feature, the lowest and highest value that keeps the outcome."""
