"""Goals: the wanted outcome as rows on the scores of one model, ties broken exactly as its `predict` breaks them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.errors import Relaxation
from ifonly.models.abilities import Ensemble, NearestRows, adds_exactly, spacing_of
from ifonly.models.form import Form
from ifonly.models.forms.compose import refused
from ifonly.models.links import between
from ifonly.models.read import Model, Read
from ifonly.models.rules import Sign
from ifonly.program.box import Box
from ifonly.program.mip import Affine
from ifonly.question.abilities import Loosens
from ifonly.question.crossing import crossings
from ifonly.question.demand import Outcome
from ifonly.question.guidance import Proposes
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.rows import Row, matrix_of
from ifonly.question.statement import Statement
from ifonly.question.words import interval_text, number
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.memo import cached_property
from ifonly.tolerances import DUST, LONG_ROUNDINGS, MARGINS_AT_THE_EDGE, ON_GRID, SCORE_OPERATIONS, SPACING

__all__ = ["ClassGoal", "Goal", "IntervalGoal", "ProbabilityGoal", "Row"]


@dataclass(frozen=True, eq=False)
class Goal(Proposes, Outcome):
    """A target made exact for one model: rows on its scores, and the model's own word at the end."""

    model: Model

    @property
    def read(self) -> Read:
        """Rule by which the model's scores become predictions."""
        return self.model.read

    # -- the optimiser's side -----------------------------------------------------------------------------------
    def apply(self, problem: Program) -> None:
        """Demand the outcome with the problem's margin."""
        for expression in self.gaps(problem.outputs, problem.margin, problem.tie):
            # each gap of the goal is at least 0
            problem.mip.row(expression, lower=0.0)

    def is_curved(self) -> bool:
        """Whether the demand is more than linear rows on the scores: a probability by softmax."""
        return False

    @abstractmethod
    def gaps(self, scores: Sequence[Affine], margin: float, tie: float = 0.0) -> list[Affine]:
        """Return expressions that must not be negative.

        Parameters
        ----------
        scores
            The scores, as expressions.
        margin
            By how much every threshold must be cleared.
        tie
            By how much it must be cleared at least where a tie would be lost: against a class that comes before.
        """

    def rows(self, margin: float = 0.0, tie: float = 0.0) -> tuple[Row, ...]:
        """Return the same as arrays."""
        gaps = self.gaps([Affine.of(k) for k in range(self.read.form.n_outputs)], margin, tie)
        return tuple(Row(gap.columns, gap.values, gap.constant) for gap in gaps)

    def matrix(self, margin: float = 0.0, tie: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Return the rows as weights of all scores and constants: ``weights @ scores + constant >= 0``."""
        return matrix_of(self.rows(margin, tie), self.read.form.n_outputs)

    def lead(self, scores: FloatArray) -> FloatArray:
        """Return by how much scores clear the goal, the tightest row of it: the NumPy twin of `gaps`."""
        leads = [scores[:, row.columns] @ row.values + row.constant for row in self.rows()]
        return np.asarray(np.min(leads, axis=0)) if leads else np.full(len(scores), np.inf)

    def clears(self, scores: FloatArray, margin: float, tie: float = 0.0) -> npt.NDArray[np.bool_]:
        """Say which scores clear every threshold by a margin, and by `tie` where a tie is lost: the NumPy twin of `apply`."""
        if self.is_curved():
            return np.asarray(self.lead(scores) >= margin)
        rows = self.rows(margin, tie)
        cleared = [scores[:, row.columns] @ row.values + row.constant >= row.least for row in rows]
        return np.asarray(np.all(cleared, axis=0)) if cleared else np.ones(len(scores), dtype=np.bool_)

    def candidates(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[FloatArray]:
        """Return what is cheapest near the factual, and near points at which a relaxed form was refused."""
        if isinstance(statement.form, Ensemble) or np.isnan(statement.query.factual).any():
            return ()
        starts = (statement.query.factual, *refused(statement.form)[:2])
        return crossings(self, statement, box, starts, deadline)

    @property
    @abstractmethod
    def key(self) -> tuple[Hashable, ...]:
        """The outcome wanted of the model, to tell two goals apart."""

    def rounding(self, form: Form, box: Box) -> float:
        """Return how far the gaps may be off by rounding alone, in the arithmetic of the model, anywhere in a box."""
        threshold = self.model.rounding * self._threshold_size()
        return SCORE_OPERATIONS * (2.0 * self.model.scatter(form, box) + threshold)

    def is_narrower(self, width: float) -> bool:
        """Whether the outcome is an interval that is narrower than this, as a score."""
        del width
        return False

    @abstractmethod
    def _threshold_size(self) -> float:
        """Return the size of what scores are compared with."""

    def ties_are_ours(self) -> bool:
        """Whether a score exactly on the threshold gives the wanted outcome, whatever the other scores are."""
        return True

    # -- the first margin ---------------------------------------------------------------------------------------
    def with_first_margin(self, statement: Statement, noise: float | None = None) -> Statement:
        """Return the statement with the least lead that can be told from a tie, where a tie would be lost.

        Scores that are whole multiples of a unit, added up without rounding, are a unit apart, or equal. Other scores of
        trees may be off by rounding, and the model itself tells them apart, point by point. What is continuous must clear
        its threshold by more than rounding, which is the `noise`.
        """
        noise = self.rounding(statement.form, statement.whole) if noise is None else noise
        raw, schema = statement.form.raw(), statement.query.schema
        if not raw or adds_exactly(statement.form):
            return replace(statement, margin=-noise, tie=self.lead_in_steps(statement.form, noise))
        on_grid = all(schema.features[j].step is not None for j in raw)  # type: ignore[union-attr]
        if not on_grid and self._may_hold_within(noise, statement):
            # Within so much noise there may be answers. They are asked for first; the model has the last word.
            return replace(statement, margin=0.0, tie=0.0)
        # On a grid a tie is a point of its own; between its points it is the edge of what there is.
        return replace(statement, margin=0.0 if on_grid else noise, tie=noise)

    def _may_hold_within(self, noise: float, statement: Statement) -> bool:
        """Whether rounding is so wide that a cost may depend on it: in single precision, or beside columns far from zero."""
        if self.model.rounding > np.finfo(np.float64).eps:
            return True
        return noise > DUST * self.model.spread(statement.form, statement.whole)

    def with_firm_margin(self, statement: Statement, noise: float) -> Statement:
        """Return the statement with twice the lead by which an answer that began at the edge must clear its threshold.

        For statements that begin without a margin: what is nearer to its threshold than that is no answer to rely on.
        """
        margin = MARGINS_AT_THE_EDGE[0] * noise / SCORE_OPERATIONS
        return replace(statement, margin=margin, tie=margin)

    def lead_in_steps(self, form: Form, noise: float) -> float:
        """Return the lead to ask for where scores are constant in cells: half a unit if a tie is lost, else less than none.

        Scores that are off by rounding are then told apart by the model itself.
        """
        spacing = spacing_of(form)
        lost = spacing > 2.0 * noise and self._loses_at_the_threshold(spacing)
        return 0.5 * spacing if lost else -noise

    def _loses_at_the_threshold(self, spacing: float) -> bool:
        """Whether scores that are multiples of a unit meet the threshold at one of them, and that one is not enough.

        Such a score may be a float away from the threshold, on either side: one tuned on the data is taken from the scores.
        """
        if not isinstance(self.read.rule, Sign):
            return True
        threshold = self.read.threshold
        count = round(threshold / spacing)
        score = count / round(1.0 / spacing) if spacing < 1.0 else count * spacing
        near = abs(threshold / spacing - count) < ON_GRID
        return near and not bool(self.holds_scores(np.array([[score]]))[0])

    # -- NumPy's side -------------------------------------------------------------------------------------------
    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, by their scores, which rows have the wanted outcome; by the model's word where a form does not know it."""
        del query
        if self.model.by_form or not len(U):
            return self.holds_scores(self.model.scores(U))
        form = self.read.form
        if not isinstance(form, NearestRows):  # a composite does not know where a part of it is tied
            return self.confirmed(U)
        held, doubtful = self.holds_scores(form(U)), form.tied(U)
        if doubtful.any():
            held[doubtful] = self.confirmed(U[doubtful])
        return held

    @abstractmethod
    def holds_scores(self, scores: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which scores give the wanted outcome."""

    @property
    def _unsure(self) -> float:
        """The share by which an output may be off because the model adds and rounds in its own way; it decides itself.

        Only where it is constant around a point, so that the model's refusal rules all of that out.
        """
        return 0.0 if self.read.form.raw() else LONG_ROUNDINGS * self.model.rounding

    @abstractmethod
    def confirmed(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows the user's own model confirms."""

    def said_of(self, U: FloatArray, scores: FloatArray, box: Box) -> npt.NDArray[np.bool_]:
        """Say which of many rows have the outcome, from their scores; the model itself where rounding could decide."""
        held = self.holds_scores(scores)
        doubtful = ~(np.abs(self.lead(scores)) > self.rounding(self.read.form, box)) | (not self.model.by_form)
        if doubtful.any():
            held[doubtful] = self.confirmed(U[doubtful])
        return held

    def class_of(self, u: FloatArray, box: Box, form: Form | None = None) -> int:
        """Return the index of the class that the model predicts: by its form, and by itself where rounding could decide.

        `form` has the same scores in the box, and perhaps its rounding is known already.
        """
        scores = self.model.scores(u[None, :])
        room = self.rounding(self.read.form if form is None else form, box)
        if self.read.decision.clearance(scores)[0] <= room or not self.model.by_form:
            return self.read.classes.index(self.model.predict(u[None, :])[0])
        return int(self.read.decide(scores)[0])

    @abstractmethod
    def score_of(self, U: FloatArray) -> FloatArray:
        """Return what is shown beside the prediction: the wanted class's probability, else a decision score."""


@dataclass(frozen=True, eq=False)
class ClassGoal(Goal):
    """The model predicts this class."""

    label: Any
    index: int

    @property
    def key(self) -> tuple[Hashable, ...]:
        """The class."""
        return (ClassGoal, self.index)

    def gaps(self, scores: Sequence[Affine], margin: float, tie: float = 0.0) -> list[Affine]:
        """Return the leads over the other classes."""
        return self.read.decision.gaps(scores, self.index, margin, max(margin, tie))

    def rows(self, margin: float = 0.0, tie: float = 0.0) -> tuple[Row, ...]:
        """Return the leads as arrays: the rule is asked for them once."""
        lost = max(margin, tie)
        return tuple(row._replace(least=lost if loses else margin) for row, loses in self._leads)

    @cached_property
    def _leads(self) -> tuple[tuple[Row, bool], ...]:
        """The rows without a margin, and of each whether a tie is lost there."""
        known, tied = super().rows(), super().rows(tie=1.0)
        return tuple((row, other.constant < row.constant) for row, other in zip(known, tied, strict=True))

    def _threshold_size(self) -> float:
        return max(abs(self.read.threshold), self.read.slope_at_threshold)

    def ties_are_ours(self) -> bool:
        """Whether the class wins every tie."""
        return not any(loses for _, loses in self._leads)

    def holds_scores(self, scores: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which scores the class wins with."""
        held = np.asarray(self.read.decide(scores) == self.index)
        if not (slope := self.read.slope_at_threshold):
            return held
        return held | (np.abs(scores[:, 0] - self.read.threshold) <= min(self._unsure * slope, 1.0))

    def confirmed(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say for which rows the model predicts the class."""
        return np.array([p == self.label for p in self.model.predict(U)], dtype=np.bool_)

    def score_of(self, U: FloatArray) -> FloatArray:
        """Return the probability of the class, or its lead where there are no probabilities."""
        scores = self.model.scores(U)
        probabilities = self.read.probabilities(scores)
        return self.read.decision.lead(scores, self.index) if probabilities is None else probabilities[:, self.index]


@dataclass(frozen=True, eq=False)
class ProbabilityGoal(Goal, Loosens):
    """The model gives this class at least this probability."""

    label: Any
    index: int
    probability: float

    @property
    def key(self) -> tuple[Hashable, ...]:
        """The class and its probability."""
        return (ProbabilityGoal, self.index, self.probability)

    def apply(self, problem: Program) -> None:
        """Demand the probability with the problem's margin."""
        super().apply(problem)
        if self.is_curved():
            self._curve(problem)

    def _curve(self, problem: Program, behind: Affine | None = None) -> None:
        link, p = self.read.link, self.probability
        # log sum_k exp(s_k - s_want) <= -log p + behind, or what the link makes of it
        problem.mip.convex(link.convex(problem.outputs, self.index, p, problem.margin, behind))

    def is_curved(self) -> bool:
        """Whether the link is: a softmax of several scores."""
        return self.read.link.is_curved(self.read.form.n_outputs)

    def gaps(self, scores: Sequence[Affine], margin: float, tie: float = 0.0) -> list[Affine]:
        """Return the linear rows of the link; none where it is curved."""
        del tie
        return self.read.link.gaps(scores, self.index, self.probability, margin)

    def lead(self, scores: FloatArray) -> FloatArray:
        """Return by how much scores clear the goal; where it is curved, the logarithm of the probability does."""
        return np.log(self._probability(scores) / self.probability) if self.is_curved() else super().lead(scores)

    def _threshold_size(self) -> float:
        # the slope of the logit at p is 1 / (p (1 - p)); next to 0 and 1 there is no float for it
        return 1.0 / (max(self.probability, SPACING) * max(1.0 - self.probability, SPACING))

    def _probability(self, scores: FloatArray) -> FloatArray:
        probabilities = self.read.probabilities(scores)
        assert probabilities is not None
        return probabilities[:, self.index]

    def holds_scores(self, scores: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which scores give the probability."""
        return np.asarray(self._probability(scores) >= self.probability - self._unsure)

    def confirmed(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say for which rows the model gives the probability."""
        probabilities = self.model.predict_proba(U)
        assert probabilities is not None
        return np.asarray(probabilities[:, self.index] >= self.probability)

    def score_of(self, U: FloatArray) -> FloatArray:
        """Return the probability of the class."""
        return self._probability(self.model.scores(U))

    # -- loosening ----------------------------------------------------------------------------------------------
    def excess(self, problem: Program) -> Affine | None:
        """Return how far the scores stay behind."""
        if not self.is_curved():
            return _behind(problem, self.gaps(problem.outputs, 0.0))
        wanted = problem.outputs[self.index]
        ahead = np.array([problem.mip.bounds(s - wanted)[1] for s in problem.outputs])
        worst = problem.mip.column(0.0, self.read.link.most_behind(ahead, self.probability), name="behind")
        self._curve(problem, worst)
        return worst

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Name the probability that is within reach, by the form and by the model itself, whichever is lower."""
        del query
        said = self.model.predict_proba(u[None, :])
        assert said is not None
        reached = min(float(self.score_of(u[None, :])[0]), float(said[0, self.index]))
        shown = np.floor(reached * 1e4) / 1e4
        change = f"probability {number(self.probability)} -> {number(shown)}"
        return Relaxation(self.text, change, self.probability - reached)


@dataclass(frozen=True, eq=False)
class IntervalGoal(Goal, Loosens):
    """The prediction of a regression model lies in this interval."""

    low: float = -np.inf
    high: float = np.inf

    @property
    def key(self) -> tuple[Hashable, ...]:
        """The interval."""
        return (IntervalGoal, self.low, self.high)

    def gaps(self, scores: Sequence[Affine], margin: float, tie: float = 0.0) -> list[Affine]:
        """Return the distances from both ends, as scores."""
        del tie
        return between(scores[0], *self.read.link.interval(self.low, self.high), margin)

    def _threshold_size(self) -> float:
        return max(abs(end) for end in (self.low, self.high) if np.isfinite(end))

    def is_narrower(self, width: float) -> bool:
        """Whether the interval is, as scores."""
        low, high = self.read.link.interval(self.low, self.high)
        return bool(high - low < width)

    def holds_scores(self, scores: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which scores give a value in the interval."""
        values = self.read.decide(scores)
        room = self._unsure * np.abs(values)
        return np.asarray((values + room >= self.low) & (values - room <= self.high))

    def confirmed(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say for which rows the model predicts a value in the interval."""
        values = np.asarray(self.model.predict(U), dtype=np.float64)
        return np.asarray((values >= self.low) & (values <= self.high))

    def score_of(self, U: FloatArray) -> FloatArray:
        """Return the value."""
        return np.asarray(self.read.decide(self.model.scores(U)))

    # -- loosening ----------------------------------------------------------------------------------------------
    def excess(self, problem: Program) -> Affine | None:
        """Return how far the score stays behind."""
        return _behind(problem, self.gaps(problem.outputs, 0.0))

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Name the interval that is within reach, by the form and by the model itself, whichever is further away.

        A row alone and the same row among others may get values that differ in their last digits. Where these are digits
        that people see, as with columns around 1e9, both are within the interval.
        """
        scores = self.model.scores(u[None, :])
        room = self.model.scatter(self.read.form, query.limits)
        room = room if room > DUST * float(np.abs(scores).max()) else 0.0
        values = (
            *map(float, self.read.decide(np.concatenate([scores - room, scores, scores + room]))),
            float(np.asarray(self.model.predict(u[None, :]), dtype=np.float64)[0]),
        )
        least, most = min(*values, self.low), max(*values, self.high)
        change = f"outcome {interval_text(self.low, self.high)} -> ({number(least, 'down')}, {number(most, 'up')})"
        amount = max(self.low - least if least < self.low else 0.0, most - self.high if most > self.high else 0.0)
        return Relaxation(self.text, change, amount)


def _behind(problem: Program, gaps: Sequence[Affine]) -> Affine | None:
    """Return an expression of the largest shortfall of some gaps; None when there are none."""
    if not gaps:
        return None
    most = max(0.0, *(-problem.mip.bounds(gap)[0] for gap in gaps), 0.0)
    worst = problem.mip.column(0.0, most, name="behind")
    for gap in gaps:
        # each gap is short by no more than the worst
        problem.mip.row(gap + worst, lower=0.0)
    return worst
