"""Goal: the wanted outcome as rows on the scores of one model, ties broken exactly as its `predict` breaks them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.deadline import Deadline
from ifonly.errors import Relaxation
from ifonly.models.abilities import Ensemble
from ifonly.models.form import Form
from ifonly.models.forms.compose import magnitude
from ifonly.models.read import Model, Read
from ifonly.program.box import Box
from ifonly.program.mip import Affine, Convex
from ifonly.question.crossing import crossings
from ifonly.question.demand import Demand
from ifonly.question.query import Query
from ifonly.question.words import number

if TYPE_CHECKING:
    from ifonly.question.problem import Problem
    from ifonly.question.statement import Statement

__all__ = ["Goal"]

Kind = Literal["class", "probability", "interval"]


# Rounding errors that add up along one score, in our arithmetic and in the model's: a chain of scaling, products and sums.
_OPERATIONS = 32.0


@dataclass(frozen=True, eq=False)
class Goal(Demand):
    """A target made exact for one model: rows on its scores, and the model's own word at the end."""

    model: Model
    kind: Kind
    label: Any = None
    index: int = 0
    probability: float = 0.0
    low: float = -np.inf
    high: float = np.inf

    @property
    def read(self) -> Read:
        """How the model's scores become predictions."""
        return self.model.read

    # -- the optimiser's side -----------------------------------------------------------------------------------
    def apply(self, problem: Problem) -> None:
        """Demand the outcome with the problem's margin."""
        for expression in self.gaps(problem.outputs, problem.margin, problem.statement.tie):
            # each gap of the goal is at least 0
            problem.mip.row(expression, lower=0.0)
        if self.is_curved():
            self._softmax(problem)

    def is_curved(self) -> bool:
        """Whether the demand is more than linear rows on the scores: a probability by softmax."""
        return self.kind == "probability" and self.read.link == "softmax" and self.read.rule == "argmax"

    def gaps(self, scores: list[Affine], margin: float, tie: float = 0.0) -> list[Affine]:
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
        read, i = self.read, self.index
        lost = max(margin, tie)
        if self.kind == "interval":
            return _between(scores[0], *self._needed_interval(), margin)
        if self.kind == "probability":
            if read.rule == "sign":
                need = self._needed_score()
                low, high = (need, np.inf) if i == 1 else (-np.inf, need)
                return _between(scores[0], low, high, margin)
            if read.link == "identity":
                return [scores[i] - (self.probability + margin)]
            if read.link == "shares":
                return [scores[i] - Affine.total(scores) * (self.probability + margin)]
            return []
        if read.rule == "sign":
            sign = 1.0 if i == 1 else -1.0
            return [(scores[0] - read.threshold) * sign - (margin if self.ties_are_ours() else lost)]
        # argmax takes the first of the largest: a tie with a later class is ours
        return [scores[i] - scores[k] - (margin if k > i else lost) for k in range(len(scores)) if k != i]

    def _needed_score(self) -> float:
        p = self.probability if self.index == 1 else 1.0 - self.probability
        if self.read.link_inverse is not None:
            return self.read.link_inverse(p if self.index == 1 else float(np.nextafter(p, np.inf)))
        if self.read.link == "identity":
            return p
        if self.read.link == "clip":
            return 2.0 * p - 1.0
        return float(np.log(p) - np.log1p(-p))

    def _needed_interval(self) -> tuple[float, float]:
        """Return the wanted interval in terms of the score: the output may be an increasing function of it."""
        back = self.read.link_inverse
        if back is None:
            return self.low, self.high
        low = back(self.low) if np.isfinite(self.low) else -np.inf
        return low, back(float(np.nextafter(self.high, np.inf))) if np.isfinite(self.high) else np.inf

    def _softmax(self, problem: Problem, behind: Affine | None = None) -> None:
        """``log sum_k exp(s_k - s_want) <= -log p`` (plus `behind`, to measure a shortfall): convex in the scores."""
        i, limit = self.index, -float(np.log(self.probability)) - problem.margin
        others = [k for k in range(len(problem.outputs)) if k != i]
        gaps = tuple(problem.outputs[k] - problem.outputs[i] for k in others)
        inner = (*gaps, Affine() if behind is None else behind)

        def function(d: FloatArray) -> float:
            top = max(0.0, float(d[:-1].max()))
            return float(top + np.log(np.exp(-top) + np.exp(d[:-1] - top).sum()) - limit - d[-1])

        def gradient(d: FloatArray) -> FloatArray:
            top = max(0.0, float(d[:-1].max()))
            e = np.exp(d[:-1] - top)
            return np.append(e / (np.exp(-top) + e.sum()), -1.0)

        problem.mip.convex(Convex(inner, function, gradient))

    def candidates(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[FloatArray]:
        """Return what is cheapest near the factual, and near points at which a relaxed form was refused."""
        from ifonly.models.forms.compose import refused  # noqa: PLC0415 - composites are loaded with the readers

        if isinstance(statement.form, Ensemble) or np.isnan(statement.query.factual).any():
            return ()
        starts = (statement.query.factual, *refused(statement.form)[:2])
        return crossings(self, statement, box, starts, deadline)

    def rounding(self, form: Form, box: Box) -> float:
        """Return how far the gaps may be off by rounding alone, in the arithmetic of the model, anywhere in a box."""
        size = float(magnitude(form, box).max()) * 2.0
        if self.kind == "class":
            size += abs(self.read.threshold)
        elif self.kind == "interval":
            size += max(abs(end) for end in (self.low, self.high) if np.isfinite(end))
        else:  # the slope of the logit at p is 1 / (p (1 - p))
            size += 1.0 / (self.probability * (1.0 - self.probability))
        return _OPERATIONS * self.model.rounding * size

    def ties_are_ours(self) -> bool:
        """Whether a score exactly on the threshold gives the wanted outcome, whatever the other scores are."""
        if self.kind != "class":
            return True
        if self.read.rule == "sign":
            return (self.index == 0) == self.read.strict
        return self.index == 0

    # -- NumPy's side -------------------------------------------------------------------------------------------
    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, by the form's scores, which rows have the wanted outcome."""
        del query
        scores = self.read.form(U)
        return self.holds_scores(scores)

    def holds_scores(self, scores: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which scores give the wanted outcome."""
        if self.kind == "interval":
            values = self.read.decide(scores)
            room = self._unsure * np.abs(values)
            return np.asarray((values + room >= self.low) & (values - room <= self.high))
        if self.kind == "probability":
            probabilities = self.read.probabilities(scores)
            assert probabilities is not None
            return np.asarray(probabilities[:, self.index] >= self.probability - self._unsure)
        return np.asarray(self.read.decide(scores) == self.index)

    @property
    def _unsure(self) -> float:
        """The share by which an output may be off because the model adds and rounds in its own way; it decides itself.

        Only where it is constant around a point, so that the model's refusal rules all of that out.
        """
        return 0.0 if self.read.form.raw() else 64.0 * self.model.rounding

    def confirmed(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows the user's own model confirms."""
        if self.kind == "interval":
            values = np.asarray(self.model.predict(U), dtype=np.float64)
            return np.asarray((values >= self.low) & (values <= self.high))
        if self.kind == "probability":
            probabilities = self.model.predict_proba(U)
            assert probabilities is not None
            return np.asarray(probabilities[:, self.index] >= self.probability)
        return np.array([p == self.label for p in self.model.predict(U)], dtype=np.bool_)

    def score_of(self, U: FloatArray) -> FloatArray:
        """Return what is shown beside the prediction: the wanted class's probability, else a decision score."""
        scores = self.read.form(U)
        if not self.read.classes:
            return np.asarray(self.read.decide(scores))
        probabilities = self.read.probabilities(scores)
        if probabilities is not None:
            return probabilities[:, self.index]
        if self.read.rule == "sign":
            return scores[:, 0] - self.read.threshold if self.index == 1 else self.read.threshold - scores[:, 0]
        return np.asarray(scores[:, self.index] - np.delete(scores, self.index, axis=1).max(axis=1))

    # -- loosening ----------------------------------------------------------------------------------------------
    def excess(self, problem: Problem) -> Affine | None:
        """How far the scores stay behind, where the demand has a size at all."""
        gaps = self.gaps(problem.outputs, 0.0)
        if self.kind == "class" or not (gaps or self.is_curved()):
            return None
        worst = problem.mip.column(0.0, self._farthest_behind(problem, gaps), name="behind")
        if self.is_curved():
            self._softmax(problem, worst)
        for gap in gaps:
            problem.mip.row(gap + worst, lower=0.0)
        return worst

    def _farthest_behind(self, problem: Problem, gaps: list[Affine]) -> float:
        """Return how far the scores can stay behind at most, from the bounds of the program."""
        if not self.is_curved():
            return max(0.0, *(-problem.mip.bounds(gap)[0] for gap in gaps), 0.0)
        ahead = [problem.mip.bounds(s - problem.outputs[self.index])[1] for s in problem.outputs]
        return max(0.0, max(ahead) + float(np.log(len(ahead)) + np.log(self.probability)))

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Name the outcome that is within reach."""
        if self.kind == "probability":
            reached = float(self.score_of(u[None, :])[0])
            shown = np.floor(reached * 1e4) / 1e4
            change = f"probability {number(self.probability)} -> {number(shown)}"
            return Relaxation(self.text, change, self.probability - reached)
        if self.kind == "interval":
            value = float(self.score_of(u[None, :])[0])
            low = number(value, "down") if value < self.low else number(self.low)
            high = number(value, "up") if value > self.high else number(self.high)
            change = f"outcome {_interval(self.low, self.high)} -> ({low}, {high})"
            return Relaxation(self.text, change, max(self.low - value, value - self.high))
        return super().loosened(query, u)


def _between(score: Affine, low: float, high: float, margin: float) -> list[Affine]:
    """Return what must not be negative for a score within an interval, by a margin."""
    if np.isposinf(low) or np.isneginf(high):
        return [Affine(constant=-1.0)]
    margin = min(margin, (high - low) / 4)  # a narrow interval must not vanish
    out = [score - (low + margin)] if np.isfinite(low) else []
    return [*out, *([(high - margin) - score] if np.isfinite(high) else [])]


def _interval(low: float, high: float) -> str:
    left = "-inf" if np.isneginf(low) else number(low)
    right = "inf" if np.isposinf(high) else number(high)
    return f"({left}, {right})"
