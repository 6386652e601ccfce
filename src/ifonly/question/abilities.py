"""Abilities of demands that need no more than the query: to be loosened, refined, verified, tightened or counted.

An ability is a small abstract class of demands, and a demand inherits as many as it has. As with those of `collections.abc`,
a class that defines all its methods has it, too. Callers ask ``isinstance(demand, Loosens)``. (Runtime-checkable protocols
would say the same, but an `isinstance` of one takes 10 to 20 microseconds in Python 3.11, one of these less than half of
one.)

Those that guide a search see the whole statement; they are in `ifonly.question.guidance`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.errors import Relaxation
from ifonly.models.form import Form
from ifonly.program.box import Box
from ifonly.program.mip import Affine
from ifonly.question.demand import Demand
from ifonly.question.program import Program
from ifonly.question.query import Query

__all__ = [
    "Ability",
    "Counts",
    "Loosens",
    "Refines",
    "Remains",
    "Shrinks",
    "Tightens",
    "Verifies",
    "dropped",
    "verified",
]


class Ability(ABC):  # noqa: B024 - its subclasses have the abstract methods
    """Base of abilities: a class has one if it inherits it, or defines all of its public methods."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        """Accept a class that defines every method of an ability, and refuse one that defines only some of them.

        Half an ability would otherwise be passed over without a word, a cost as well as a hint.
        """
        if Ability not in cls.__bases__ or cls in other.__mro__:
            return NotImplemented
        methods = [name for name in vars(cls) if not name.startswith("_")]
        lacks = [name for name in methods if not any(callable(vars(base).get(name)) for base in other.__mro__)]
        if lacks and len(lacks) < len(methods):
            has = ", ".join(repr(name) for name in methods if name not in lacks)
            place = "ifonly.extend" if cls.__module__.startswith("ifonly.") else cls.__module__
            raise TypeError(
                f"{other.__name__} defines {has} but not {', '.join(map(repr, lacks))}: all of these together are the "
                f"ability {cls.__name__!r}. Inherit {place}.{cls.__name__}, and define what it has no default for."
            )
        return not lacks or NotImplemented


class Loosens(Demand, Ability):
    """A demand whose violation has a size: it can be loosened by the least amount, where others can only be dropped."""

    @abstractmethod
    def excess(self, problem: Program) -> Affine | None:
        """Return an expression of how far the demand is broken, or None: then it can only be dropped."""

    def excess_raw(self, query: Query) -> frozenset[int]:
        """Return the numeric features whose raw value `excess` needs."""
        return self.raw(query)

    def excess_features(self, query: Query) -> frozenset[int]:
        """Return the features that `excess` can move."""
        return self.features(query)

    @abstractmethod
    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Return the loosening that lets the row `u` through."""


class Shrinks(Demand, Ability):
    """A demand all over a set, such as a ball, that can be asked of a part of the set."""

    @abstractmethod
    def shrunk(self, share: float) -> Demand | None:
        """Return the demand of the set made smaller by a factor, or None: it is the demand of a single point."""

    @abstractmethod
    def shrinking(self, share: float) -> Relaxation:
        """Return the loosening that this is."""


class Remains(Demand, Ability):
    """A demand of which something stays however far it is loosened."""

    @abstractmethod
    def loosest(self, query: Query) -> Demand | None:
        """Return the part that stays, or None: then nothing does."""


class Refines(Demand, Ability):
    """A demand whose rows are a relaxation, which can be made exact at a point."""

    @abstractmethod
    def refined(self, u: FloatArray) -> Demand | None:
        """Return a demand whose rows are exact at `u`, or None when they are exact everywhere."""


class Counts(Demand, Ability):
    """A demand that bounds the number of changed features, and says nothing else."""

    @abstractmethod
    def at_most(self) -> int:
        """Return how many features may change."""


class Tightens(Demand, Ability):
    """A demand that carries bounds from one feature to another."""

    @abstractmethod
    def tighten(self, query: Query, box: Box) -> None:
        """Shrink the box once more when a budget has made it smaller."""


class Verifies(Demand, Ability):
    """A demand on which the user's own models have the last word."""

    @abstractmethod
    def verified(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, per canonical row, whether the demand is met by the word of the user's own models."""

    def refusing(self, query: Query, u: FloatArray) -> Form | None:
        """Return the form of a model that refuses `u` by its own word, and with it all points of the same scores."""
        del query, u
        return None

    def asks_for(self, form: Form) -> bool:
        """Whether `refusing` can return this form: without the demand, what that model refuses does not matter."""
        del form
        return False


def verified(demand: Demand, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
    """Say, per canonical row, whether a demand is met, by the word of the user's own models where it has any."""
    return demand.verified(query, U) if isinstance(demand, Verifies) else demand.holds(query, U)


def dropped(demand: Demand) -> Relaxation:
    """Return the loosening of a demand that has no size: without it."""
    return Relaxation(demand.text, f"drop: {demand.text}", 1.0)
