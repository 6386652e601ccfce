"""Goal of any of several classes: a union of simpler goals, one for each class that may lead."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.models.rules import Argmax
from ifonly.program.box import Box
from ifonly.program.mip import Affine
from ifonly.question.goal import Goal
from ifonly.question.guidance import Branch, Branches
from ifonly.question.program import Program
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline

__all__ = ["AnyClassGoal"]


@dataclass(frozen=True, eq=False)
class AnyClassGoal(Goal, Branches):
    """The model predicts one of these classes.

    With scores ``s``, wanted classes ``W`` and all others ``O``, the first of the largest winning: a class of ``W`` is
    predicted iff some ``k`` of ``W`` has ``s_k >= s_m`` for the ``m > k`` of ``O`` and ``s_k > s_m`` for the ``m < k`` of
    ``O``. Leads among the wanted classes do not matter, so ties between them need no margin.

    Attributes
    ----------
    labels, indices
        The wanted classes, and their places among the model's.
    leader
        The place of the class that is ahead of all that are not wanted; None: any of them, a union.
    """

    labels: tuple[Any, ...]
    indices: tuple[int, ...]
    leader: int | None = None

    @property
    def key(self) -> tuple[Hashable, ...]:
        """The classes."""
        return (AnyClassGoal, self.indices, self.leader)

    @property
    def _others(self) -> tuple[int, ...]:
        return tuple(m for m in range(len(self.read.classes)) if m not in self.indices)

    # -- the optimiser's side -----------------------------------------------------------------------------------
    def gaps(self, scores: Sequence[Affine], margin: float, tie: float = 0.0) -> list[Affine]:
        """Return the leads of the leader over the classes that are not wanted; a union has no rows of its own."""
        return [] if self.leader is None else self._leads(scores, self.leader, margin, tie)

    def _leads(self, scores: Sequence[Affine], k: int, margin: float, tie: float) -> list[Affine]:
        rivals = (m for m in range(len(self.read.classes)) if m != k)
        rows = self.read.decision.gaps(scores, k, margin, max(margin, tie))
        return [row for m, row in zip(rivals, rows, strict=True) if m not in self.indices]

    def apply(self, problem: Program) -> None:
        """Demand the leads of the leader; of a union, those of one class that a 0/1 column chooses."""
        super().apply(problem)
        if self.leader is not None:
            return
        mip, chosen = problem.mip, []
        for k in self.indices:
            leads = mip.column(integer=True, name="leads")
            chosen.append(leads)
            for gap in self._leads(problem.outputs, k, problem.margin, problem.tie):
                behind = max(0.0, -mip.bounds(gap)[0])
                # the class that is chosen leads; of the others, a gap is at least its lower bound
                mip.row(gap - leads * behind, lower=-behind)
        # one of the wanted classes is chosen
        mip.row(Affine.total(chosen), lower=1.0)

    def branches(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[Branch] | None:
        """Split into one question for each class that may lead, the one that is least behind at the factual first."""
        del deadline
        if self.leader is not None:
            return None
        behind = self._each(self.model.scores(statement.query.factual[None, :]))[0]
        order = [self.indices[i] for i in np.argsort(-np.nan_to_num(behind), kind="stable")]
        return [Branch(0.0, box, replace(self, leader=k), by_solver=False, name=k) for k in order]

    def _threshold_size(self) -> float:
        return abs(self.read.threshold)

    def ties_are_ours(self) -> bool:
        """Whether every wanted class wins every tie with one that is not."""
        return max(self.indices) < min(self._others)

    # -- NumPy's side -------------------------------------------------------------------------------------------
    def _each(self, scores: FloatArray) -> FloatArray:
        """Return the lead of each wanted class over the best that is not wanted, a column per class."""
        assert isinstance(self.read.rule, Argmax)  # of two classes, any of both is no wish
        return np.asarray(scores[:, list(self.indices)] - scores[:, list(self._others)].max(axis=1, keepdims=True))

    def lead(self, scores: FloatArray) -> FloatArray:
        """Return the lead of the leader, of a union the largest lead of a wanted class."""
        leads = self._each(scores)
        return np.asarray(leads.max(axis=1) if self.leader is None else leads[:, self.indices.index(self.leader)])

    def clears(self, scores: FloatArray, margin: float, tie: float = 0.0) -> npt.NDArray[np.bool_]:
        """Say which scores clear the goal by a margin."""
        if self.leader is not None:
            return super().clears(scores, margin, tie)
        return np.asarray(np.any([replace(self, leader=k).clears(scores, margin, tie) for k in self.indices], axis=0))

    def holds_scores(self, scores: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which scores a wanted class wins with."""
        return np.isin(self.read.decide(scores), self.indices)

    def confirmed(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say for which rows the model predicts one of the classes."""
        return np.array([any(p == label for label in self.labels) for p in self.model.predict(U)], dtype=np.bool_)

    def score_of(self, U: FloatArray) -> FloatArray:
        """Return the largest probability of a wanted class, or their largest lead where there are no probabilities."""
        scores = self.model.scores(U)
        probabilities = self.read.probabilities(scores)
        if probabilities is None:
            return np.asarray(self._each(scores).max(axis=1))
        return np.asarray(probabilities[:, list(self.indices)].max(axis=1))
