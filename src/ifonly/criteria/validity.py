"""Validity: the model must say what is wanted, ties broken exactly as its `predict` breaks them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ifonly.box import Box
from ifonly.criteria import Demand, Query, Relaxation, number
from ifonly.criteria.crossing import crossings
from ifonly.deadline import Deadline
from ifonly.errors import CriterionError, did_you_mean
from ifonly.mip import Affine, Convex, FloatArray
from ifonly.models import Form, Model, Read
from ifonly.models.compose import magnitude
from ifonly.models.trees import Trees

if TYPE_CHECKING:
    from ifonly.problem import Problem, Statement

__all__ = ["Goal", "Target", "resolve"]


@dataclass(frozen=True)
class Target:
    """The outcome that is wished for.

    Parameters
    ----------
    label
        The wanted class, for a classifier.
    probability
        The least probability the model must give that class; without it, the class must be the prediction. A value
        below one half does not ask for the class to win.
    at_least, at_most
        The wanted interval of a regression model's prediction.

    Examples
    --------
    >>> Target("good", probability=0.7)
    Target(label='good', probability=0.7, at_least=None, at_most=None)
    """

    label: Any = None
    probability: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if self.probability is not None and not 0.0 < self.probability < 1.0:
            raise CriterionError(
                f"The 'probability' of a Target must lie strictly between 0 and 1, got {self.probability!r}. For 70 "
                "per cent write 0.7."
            )
        interval = self.at_least is not None or self.at_most is not None
        if interval and (self.label is not None or self.probability is not None):
            raise CriterionError(
                "A Target is either a class (label, probability) or an interval (at_least, at_most), not both."
            )
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise CriterionError(
                f"The interval of the Target is empty: at_least={self.at_least!r} is above at_most={self.at_most!r}."
            )


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
        from ifonly.models.compose import refused  # noqa: PLC0415 - composites are loaded with the readers

        if isinstance(statement.form, Trees) or np.isnan(statement.query.factual).any():
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

    def clears(self, scores: FloatArray, margin: float) -> npt.NDArray[np.bool_]:
        """Say which scores clear every threshold by a margin: the NumPy twin of `apply`."""
        out = np.ones(len(scores), dtype=np.bool_)
        for gap in self.gaps([Affine.of(k) for k in range(scores.shape[1])], margin):
            out &= scores[:, gap.columns] @ gap.values + gap.constant >= 0.0
        if self.is_curved():
            probabilities = self.read.probabilities(scores)
            assert probabilities is not None
            out &= np.log(probabilities[:, self.index] / self.probability) >= margin
        return out

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
        """Name the outcome that is within reach, by the form and by the model itself, whichever is further away."""
        if self.kind == "probability":
            reached = min(self._reached(u))
            shown = np.floor(reached * 1e4) / 1e4
            change = f"probability {number(self.probability)} -> {number(shown)}"
            return Relaxation(self.text, change, self.probability - reached)
        if self.kind == "interval":
            values = self._reached(u)
            least, most = min(*values, self.low), max(*values, self.high)
            change = f"outcome {_interval(self.low, self.high)} -> ({number(least, 'down')}, {number(most, 'up')})"
            amount = max(self.low - least if least < self.low else 0.0, most - self.high if most > self.high else 0.0)
            return Relaxation(self.text, change, amount)
        return super().loosened(query, u)

    def _reached(self, u: FloatArray) -> tuple[float, float]:
        """Return the probability or the value of a row: by the form, and by the model's own arithmetic."""
        row = u[None, :]
        if self.kind == "probability":
            said = self.model.predict_proba(row)
            assert said is not None
            return float(self.score_of(row)[0]), float(said[0, self.index])
        return float(self.score_of(row)[0]), float(np.asarray(self.model.predict(row), dtype=np.float64).reshape(-1)[0])


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


def resolve(want: Any, model: Model) -> Goal:
    """Turn what the user wants into a goal for this model, or say why it makes no sense for it."""
    target = want if isinstance(want, Target) else Target(label=want)
    read = model.read
    if not read.classes:
        if target.at_least is None and target.at_most is None:
            raise CriterionError(
                "The model predicts a number, so say which numbers are wanted: want=Target(at_least=...) or "
                f"Target(at_most=...). Got {want!r}."
            )
        low = -np.inf if target.at_least is None else float(target.at_least)
        high = np.inf if target.at_most is None else float(target.at_most)
        return Goal(f"want a prediction in {_interval(low, high)}", model, "interval", low=low, high=high)
    if target.at_least is not None or target.at_most is not None:
        raise CriterionError(
            f"The model predicts classes ({_known(read)}), not numbers: use want=Target(label, probability=...)."
        )
    index = _class_index(target.label, read)
    label = read.classes[index]
    if target.probability is None:
        return Goal(f"want {label!r}", model, "class", label, index)
    if read.link in ("none", "normalised") or not hasattr(model.estimator, "predict_proba"):
        raise CriterionError(
            f"A probability was asked for, but {type(model.estimator).__name__} {_no_probability(read)} Ask for the class "
            f"alone, want={label!r}; or wrap the model in CalibratedClassifierCV(ensemble=False), or fit one whose "
            "probabilities can be asked for: LogisticRegression, a forest, gradient boosting."
        )
    text = f"want {label!r} with probability at least {number(target.probability)}"
    return Goal(text, model, "probability", label, index, target.probability)


def _no_probability(read: Read) -> str:
    """Say what a model does in place of a probability that a program can hold."""
    if read.link != "normalised":
        return "gives no probabilities."
    if read.link_forward is not None:
        return f"bends the scores of its {len(read.classes)} classes one by one: no threshold on them is a probability."
    return (
        f"judges each of its {len(read.classes)} classes against the rest, by a sigmoid of its score, and divides by the sum "
        "of all: no threshold on the scores is a probability."
    )


def _class_index(label: Any, read: Read) -> int:
    for i, known in enumerate(read.classes):
        if known == label and isinstance(known, bool) == isinstance(label, (bool, np.bool_)):
            return i
    if label is None:
        raise CriterionError(
            f"Say which outcome is wanted: the model knows {_known(read)}. want=None means 'the other class' and "
            "needs exactly two."
        )
    raise CriterionError(
        f"The model does not know the class {label!r}; it knows {_known(read)}.{did_you_mean(label, read.classes)}"
    )


def _known(read: Read) -> str:
    return ", ".join(repr(c) for c in read.classes)
