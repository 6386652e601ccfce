"""Further answers: the ability of a criterion to say what makes one another one, and the demand that it then states."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from ifonly.arrays import FloatArray
from ifonly.program.box import Box
from ifonly.question.abilities import Ability
from ifonly.question.criterion import Criterion
from ifonly.question.demand import Demand
from ifonly.question.guidance import Proposes
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.later import Later
from ifonly.runtime.memo import Memo

__all__ = ["Clustered", "Diversifies", "Further", "Way"]


class Way(Enum):
    """Way to further answers: a search for each, the points that one search met, or a search in each cluster."""

    AGAIN = auto()
    MET = auto()
    CLUSTERS = auto()


@dataclass(frozen=True, eq=False)
class Further(Proposes, Demand):
    """A demand for another answer, with points that are worth a try.

    Attributes
    ----------
    known
        The points, found when they are first asked for.
    solved
        Optima of boxes that searches for earlier answers have found: a cache that the search for several answers owns, and
        lends to the demands of one question.
    """

    known: Later[tuple[FloatArray, ...]] = field(default_factory=lambda: Later.there(()))
    solved: Memo | None = field(default=None, repr=False)

    def candidates(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[FloatArray]:
        """Return the points worth a try."""
        del statement, box, deadline
        return self.known.get()


class Diversifies(Criterion, Ability):
    """A criterion that says what makes a further answer another answer; of several, the last one is heard."""

    @abstractmethod
    def way(self) -> Way:
        """Return how further answers are looked for."""

    @abstractmethod
    def another(self, query: Query, criteria: Sequence[Criterion], demands: Sequence[Demand], u: FloatArray) -> Further:
        """Return the demand for an answer other than `u`, which meets these criteria and demands."""

    @abstractmethod
    def apart(self) -> float:
        """Return how far one number of an answer must move for another answer, as a share of its range; 0: that is not it."""

    @abstractmethod
    def none_left(self) -> str:
        """Return the sentence that says there is no further answer."""


class Clustered(Demand, Ability):
    """A demand that is met in any one of several clusters."""

    @abstractmethod
    def clusters(self, query: Query) -> Sequence[Demand]:
        """Return one demand per cluster, each of which implies this one."""
