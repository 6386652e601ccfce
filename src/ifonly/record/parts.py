"""Parts of a question, as the checker of proofs sees them, and its two ways to say no."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from ifonly.question.trail import Split

__all__ = ["EmptyParts", "NotReplayable", "Part", "Parts", "Refused"]


class Refused(Exception):
    """The proof does not prove the bound."""


class NotReplayable(Exception):
    """The question, or its proof, is of a kind that this checker does not know."""


class Part(NamedTuple):
    """One part: the state of each feature, the number that its leaf names, if any, and what prices left around it."""

    states: list[Any]
    price: float | None
    left: Any = None


class Parts(Protocol):
    """The parts of one question: the state of each feature, its two sides, and the test of parts, so many `at_once`."""

    @property
    def bound(self) -> float | Fraction | None:
        """The cost that no answer may be below; None or infinite: there must be none at all."""
        ...

    @property
    def at_once(self) -> int:
        """Number of parts that are looked at together."""
        ...

    def whole(self) -> list[Any]:
        """Return the state of each feature in the whole box; None: nothing to decide."""
        ...

    def sides(self, state: Any, split: Split) -> tuple[Any, Any]:
        """Return what a split makes of the state of its feature."""
        ...

    def closed(self, parts: Sequence[Part]) -> list[bool]:
        """Whether no better answer lies in each of some parts."""
        ...


class EmptyParts:
    """The parts of a box without a point: one, with nothing to split."""

    bound, at_once = None, 1

    def whole(self) -> list[Any]:
        """Return no feature."""
        return []

    def sides(self, state: Any, split: Split) -> tuple[Any, Any]:
        """Refuse every split."""
        del state, split
        raise Refused("it splits a box in which there is nothing")

    def closed(self, parts: Sequence[Part]) -> list[bool]:
        """Close it."""
        return [True] * len(parts)
