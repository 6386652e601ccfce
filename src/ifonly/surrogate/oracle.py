"""Oracle: the black box as it is asked for one question, within a budget of rows and before the deadline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.models.rules import Sign
from ifonly.question.any_class import AnyClassGoal
from ifonly.question.goal import ClassGoal, Goal, IntervalGoal, ProbabilityGoal
from ifonly.question.training import Training
from ifonly.runtime.deadline import Deadline

__all__ = ["ROWS", "Oracle", "known_leads", "leads", "sample_said"]

ROWS = 30_000  # rows that are put to the black box for one answer at most
_FIRST = 16  # rows of the first call, by which its pace is measured
_PIECE, _SHARE = 0.25, 0.05  # seconds that one call may take at most, and the share of the time left that it may
_WORTHWHILE, _MOST = 0.05, 2048  # seconds and rows of a call that may find what it looks for among the first rows
_CLIP = 6.0  # log-odds beyond which a probability tells nothing more about the boundary
_LEAST = 0.02  # least size of a lead: its sign is the black box's word, whatever its scores say


class Oracle:
    """The black box, asked in pieces small enough to keep the deadline; what could not be asked is not confirmed."""

    def __init__(self, goal: Goal, deadline: Deadline, training: Training, rows: int = ROWS) -> None:
        self.goal, self.deadline, self.scale, self.left = goal, deadline, training.score_scale, rows
        self._by_scores = _scores_tell(goal, training)
        self._pace, self._largest = _PIECE / _FIRST, 0  # seconds per row, and the size of the largest call so far
        self._said: dict[bytes, bool] = {}

    @property
    def affordable(self) -> int:
        """Rows that can still be asked, by the budget and by the pace of the calls so far."""
        return min(self.left, int(self.deadline.left() / self._pace)) if self._largest else self.left

    @property
    def piece(self) -> int:
        """Rows to ask about at once where few of them may be enough."""
        return int(np.clip(_WORTHWHILE / self._pace, _FIRST, _MOST))

    @property
    def spent(self) -> bool:
        """Whether the budget is used up, or the deadline has come."""
        return self.left <= 0 or self.deadline.passed

    def confirmed(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows the black box confirms; rows that it was not asked about count as refused."""
        keys = [u.tobytes() for u in U]
        new = np.array([i for i, key in enumerate(keys) if key not in self._said], dtype=np.int64)
        for piece in self._pieces(len(new)):
            said = self.goal.confirmed(U[new[piece]])
            self._said |= {keys[i]: bool(s) for i, s in zip(new[piece], said, strict=True)}
        return np.array([self._said.get(key, False) for key in keys], dtype=np.bool_)

    def leads(self, U: FloatArray) -> FloatArray:
        """Return by how much rows have the wanted outcome, positive iff confirmed; NaN where it was not asked."""
        out = np.full(len(U), np.nan)
        for piece in self._pieces(len(U)):
            scores = self.goal.read.form(U[piece])
            good = self.goal.holds_scores(scores) if self._by_scores else self.goal.confirmed(U[piece])
            out[piece] = leads(self.goal, scores, good, self.scale)
        return out

    def _pieces(self, count: int) -> Iterator[slice]:
        """Yield slices of rows to ask about, each timed, until all are asked or the oracle is spent."""
        at = 0
        while at < count and not self.spent:
            left = self.deadline.left()
            seconds = min(max(_PIECE, _SHARE * left), 0.5 * left)
            size = max(1, min(count - at, self.left, int(seconds / self._pace)))
            began = time.perf_counter()
            yield slice(at, at + size)
            if 2 * size >= self._largest:  # a small call tells more of what a call costs than of what a row does
                self._pace = max((time.perf_counter() - began) / size, _PIECE / ROWS)
                self._largest = max(size, self._largest)
            self.left, at = self.left - size, at + size


def known_leads(goal: Goal, training: Training) -> FloatArray:
    """Return the leads of the sample of training rows, from what the black box said of them when it was opened."""
    return leads(goal, training.sample_scores, _known(goal, training), training.score_scale)


def _known(goal: Goal, training: Training) -> npt.NDArray[np.bool_]:
    """Say which rows of the sample have the wanted outcome, by the black box's own word where it gives classes."""
    if not isinstance(goal, ClassGoal | AnyClassGoal):
        return np.asarray(goal.holds_scores(training.sample_scores), dtype=np.bool_)
    labels = goal.labels if isinstance(goal, AnyClassGoal) else (goal.label,)
    return np.array([any(s == label for label in labels) for s in sample_said(training)], dtype=np.bool_)


def _scores_tell(goal: Goal, training: Training) -> bool:
    """Say whether the scores tell the outcome, as they do for all rows of the sample; an SVC's probabilities need not."""
    return bool((goal.holds_scores(training.sample_scores) == _known(goal, training)).all())


def sample_said(training: Training) -> Any:
    """Return the black box's predictions for the sample of training rows, asked once."""
    return training.memo.get("said", "sample", lambda: training.model.predict(training.sample))


def leads(goal: Goal, scores: FloatArray, good: npt.NDArray[np.bool_], scale: float) -> FloatArray:
    """Return by how much rows have the wanted outcome, in a unit that is smooth where the black box tells enough.

    Log-odds against the runner-up or the wanted probability; the decision function; the distance from the nearer end of
    an interval, in units of `scale`; else 1. The sign is that of the black box's own word: positive iff it confirms the row.
    """
    size = np.abs(np.nan_to_num(_margin(goal, scores, scale), nan=1.0))
    return np.asarray(np.where(good, 1.0, -1.0) * np.clip(size, _LEAST, _CLIP))


def _margin(goal: Goal, scores: FloatArray, scale: float) -> FloatArray:
    if isinstance(goal, IntervalGoal):
        room = np.minimum(scores[:, 0] - goal.low, goal.high - scores[:, 0])
        return np.asarray(room / scale)
    probabilities = goal.read.probabilities(scores)
    if probabilities is not None:
        p = np.clip(probabilities, np.exp(-_CLIP), 1.0)
        if isinstance(goal, AnyClassGoal):
            wanted = list(goal.indices)
            return np.asarray(np.log(p[:, wanted].max(axis=1) / np.delete(p, wanted, axis=1).max(axis=1)))
        assert isinstance(goal, ClassGoal | ProbabilityGoal)
        own = p[:, goal.index]
        if isinstance(goal, ProbabilityGoal):
            t = goal.probability
            return np.asarray(np.log(own / np.clip(1.0 - own, np.exp(-_CLIP), 1.0)) - np.log(t / (1.0 - t)))
        return np.asarray(np.log(own / np.delete(p, goal.index, axis=1).max(axis=1)))
    if isinstance(goal.read.rule, Sign):
        return scores[:, 0] - goal.read.threshold
    return np.ones(len(scores))
