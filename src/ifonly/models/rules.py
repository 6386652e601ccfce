"""Decision rules: how scores become a predicted class, ties included, and the rows that ask for one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.program.mip import Affine

__all__ = ["RULES", "Argmax", "Decision", "Rule", "RuleName", "Sign", "Value"]

RuleName = Literal["sign", "argmax", "value"]


@dataclass(frozen=True)
class Rule:
    """A rule by which scores become a prediction."""

    name: ClassVar[str]

    def at(self, threshold: float, strict: bool) -> Rule:  # noqa: ARG002 - for a rule that has a threshold
        """Return the rule with this threshold, for a rule that has one."""
        return self


@dataclass(frozen=True)
class Value(Rule):
    """Regression: the score, or the link of it, is the prediction."""

    name: ClassVar[str] = "value"


@dataclass(frozen=True)
class Decision(Rule, ABC):
    """A rule that decides on a class."""

    @property
    def first_wins(self) -> bool:
        """Whether a tie of two classes goes to the first of them."""
        return True

    @abstractmethod
    def decide(self, scores: FloatArray) -> IntArray:
        """Return the index of the predicted class of each row."""

    @abstractmethod
    def wins(self, i: int) -> bool:
        """Whether class `i` wins every tie, whatever the other scores are."""

    @abstractmethod
    def gaps(self, scores: Sequence[Affine], i: int, margin: float, lost: float) -> list[Affine]:
        """Return expressions that must not be negative for class `i` to win.

        It wins by `margin` where a tie would be its own, and by `lost` where the tie would go to another class.
        """

    @abstractmethod
    def lead(self, scores: FloatArray, i: int) -> FloatArray:
        """Return by how much class `i` leads; negative where it does not."""

    @abstractmethod
    def clearance(self, scores: FloatArray) -> FloatArray:
        """Return how far the scores are from a tie for the first place."""

    @abstractmethod
    def pairs(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return weights and constants of the leads of class ``k`` over class ``m``, for all ``k < m`` of `n` classes."""


@dataclass(frozen=True)
class Sign(Decision):
    """One score: the second class iff it is above the threshold, or on it when not `strict`."""

    name: ClassVar[str] = "sign"
    threshold: float = 0.0
    strict: bool = True

    def at(self, threshold: float, strict: bool) -> Sign:
        """Return the rule with this threshold."""
        return Sign(threshold, strict)

    @property
    def first_wins(self) -> bool:
        """A score on the threshold is the first class's where the threshold must be passed."""
        return self.strict

    def decide(self, scores: FloatArray) -> IntArray:
        """Return 1 where the score is above the threshold."""
        above = scores[:, 0] > self.threshold if self.strict else scores[:, 0] >= self.threshold
        return above.astype(np.int64)

    def wins(self, i: int) -> bool:
        """Whether a score on the threshold is class `i`'s."""
        return (i == 0) == self.strict

    def gaps(self, scores: Sequence[Affine], i: int, margin: float, lost: float) -> list[Affine]:
        """Return the distance from the threshold, on the side of class `i`."""
        sign = 1.0 if i == 1 else -1.0
        return [(scores[0] - self.threshold) * sign - (margin if self.wins(i) else lost)]

    def lead(self, scores: FloatArray, i: int) -> FloatArray:
        """Return the distance from the threshold, on the side of class `i`."""
        return scores[:, 0] - self.threshold if i == 1 else self.threshold - scores[:, 0]

    def clearance(self, scores: FloatArray) -> FloatArray:
        """Return the distance from the threshold."""
        return np.abs(scores[:, 0] - self.threshold)

    def pairs(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return the lead of the first class over the second."""
        del n
        return np.array([[-1.0]]), np.array([self.threshold])


@dataclass(frozen=True)
class Argmax(Decision):
    """One score per class: the first of the largest wins."""

    name: ClassVar[str] = "argmax"

    def decide(self, scores: FloatArray) -> IntArray:
        """Return the first of the largest."""
        return np.asarray(scores.argmax(axis=1))

    def wins(self, i: int) -> bool:
        """The first class wins every tie."""
        return i == 0

    def gaps(self, scores: Sequence[Affine], i: int, margin: float, lost: float) -> list[Affine]:
        """Return the leads over all other classes: a tie with a later one is ours."""
        return [scores[i] - scores[k] - (margin if k > i else lost) for k in range(len(scores)) if k != i]

    def lead(self, scores: FloatArray, i: int) -> FloatArray:
        """Return the lead over the best of the other classes."""
        return np.asarray(scores[:, i] - np.delete(scores, i, axis=1).max(axis=1))

    def clearance(self, scores: FloatArray) -> FloatArray:
        """Return the lead of the best over the second."""
        if scores.shape[1] < 2:
            return np.full(len(scores), np.inf)
        top = np.sort(scores, axis=1)[:, -2:]
        return np.asarray(top[:, 1] - top[:, 0])

    def pairs(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return the differences of all pairs of scores."""
        eye = np.eye(n)
        weights = np.array([eye[k] - eye[m] for k in range(n) for m in range(k + 1, n)])
        return weights, np.zeros(len(weights))


RULES: dict[str, Rule] = {rule.name: rule for rule in (Sign(), Argmax(), Value())}
