"""Robustness: the outcome holds around the answer, with a margin, and by the word of several models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.criteria.robustness.keeps_lead import Ball, KeepsLead, on_grid
from ifonly.criteria.robustness.wary import wary
from ifonly.criteria.validity import Target, resolve
from ifonly.data.schema import Numeric
from ifonly.errors import CriterionError
from ifonly.models.abilities import has_nearest
from ifonly.models.form import Form
from ifonly.models.forms.compose import score_bounds
from ifonly.models.opening import open_model
from ifonly.models.read import Model
from ifonly.program.box import Box
from ifonly.question.any_class import AnyClassGoal
from ifonly.question.criterion import Criterion, Remarks
from ifonly.question.demand import Demand
from ifonly.question.goal import ClassGoal, Goal, IntervalGoal, ProbabilityGoal
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.question.training import Training
from ifonly.question.words import number
from ifonly.question.wrapping import Ranges
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.warning_filters import few_filters
from ifonly.solvers.backend import Backend
from ifonly.tolerances import (
    BEYOND_A_TIE_IN_BALL,
    BEYOND_A_VOTE_IN_BALL,
    FEASIBILITY,
    MODEL_ROUNDINGS,
    MOST_BEYOND_A_VOTE,
    PROGRAM_ROUNDINGS,
)

__all__ = ["Robustness"]


@dataclass(frozen=True)
class Robustness(Remarks, Ranges, Criterion):
    r"""Do not stand on the edge.

    With ``radius``, the outcome stays what is wanted anywhere in the ball around the answer ``x``

    * ``linf``: ``|y_j - x_j| <= radius * range_j`` for every feature ``j`` by itself;
    * ``l2``: ``sum_j ((y_j - x_j) / range_j)^2 <= radius^2``;

    where ``range_j`` is the training range. Categories do not move. Whole-numbered features, and those with a fixed
    precision, move on their grid. Values beyond the schema's bounds do not exist, so the ball ends there. A tie does not
    count as robust. This is the robust counterfactual of Maragno et al. (2024), found by adding the worst shift that an
    adversary finds until it finds none.

    Together, the margin holds and the models agree all over the ball.

    Parameters
    ----------
    radius
        How far the numbers may be off, as a share of each feature's training range.
    norm
        The shape of the ball.
    features
        The numeric features that may be off; by default all.
    margin
        By how much the wanted outcome must lead, in the model's own scores: log-odds for logistic regression, most
        boosting and networks, a lead in probability for forests, the unit of the prediction in regression.
    models
        Further fitted models of the same columns that must also say what is wanted, e.g. the same model trained again.

    Examples
    --------
    >>> Robustness(radius=0.02, norm="linf").radius
    0.02
    """

    radius: float | None = None
    norm: Ball = "linf"
    features: Sequence[str] | None = None
    margin: float | None = None
    models: Sequence[Any] = ()

    def __post_init__(self) -> None:
        if self.radius is None and self.margin is None and not len(self.models):
            raise CriterionError(
                "Robustness needs radius= (a ball), margin= (on the score) or models=[...] that agree."
            )
        for name in ("radius", "margin"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise CriterionError(f"The '{name}' of Robustness must be a positive number, got {value!r}.")
        if self.norm not in get_args(Ball):
            raise CriterionError(
                f"The 'norm' of Robustness must be one of {', '.join(get_args(Ball))}. Got {self.norm!r}."
            )
        if isinstance(self.features, str):
            raise CriterionError(
                f"The 'features' of Robustness must be a list, got the text {self.features!r}. Write "
                f"features=[{self.features!r}]."
            )
        if self.features is not None and self.radius is None:
            raise CriterionError("The 'features' of Robustness say what may be off within a radius; give radius= too.")

    def check(self, query: Query) -> None:
        """Every named feature must be numeric, every model readable, and the target one an adversary can attack."""
        for name in self.features or ():
            if not isinstance(query.schema[name], Numeric):
                raise CriterionError(
                    f"{name!r} is {query.schema[name].kind}: its levels are not off by a little. Take it out of the "
                    "'features' of Robustness; to forbid levels use Actionability(allow={...})."
                )
        for goal in self._goals(query):
            if self.radius is not None and not goal.rows():
                raise CriterionError(
                    "A probability out of a softmax over several classes is not linear in the scores, so its least value "
                    "in a ball cannot be proven. Ask for the class alone, with margin= in place of the probability."
                )
            if self.radius is not None and has_nearest(goal.read.form):
                raise CriterionError(
                    f"{type(goal.model.estimator).__name__} counts its nearest rows, and where several are equally far only "
                    "it knows which: what it says all over a ball cannot be proven. Leave out radius=, or ask for a "
                    "probability: Target(label, probability=...)."
                )
            absent = set(np.flatnonzero(Box.of(query.schema, query.factual).missing)) - goal.read.accepts_missing
            if absent:
                raise CriterionError(
                    f"{type(goal.model.estimator).__name__} gives a missing value of {query.schema.names[min(absent)]!r} "
                    "no meaning, but this row has one. "
                    "Fill it in, or leave this model out of Robustness(models=[...])."
                )

    # -- demands ------------------------------------------------------------------------------------------------
    def demands(self, query: Query) -> list[Demand]:
        """Return one demand per model."""
        out: list[Demand] = []
        for i, goal in enumerate(self._goals(query)):
            radius, ranges = self.radius or 0.0, self._ranges(query, goal)
            reach = on_grid(query.schema, radius * ranges, self.norm)
            if i == 0 and self.margin is None and not reach.any():
                continue
            tie = 0.0
            if not reach.any() and self.margin is None and not goal.read.form.raw():
                noise = goal.rounding(goal.read.form, Box.of(query.schema, query.factual))
                room, tie = -noise, goal.lead_in_steps(goal.read.form, noise)
            else:
                room = _room(query, goal, reach) if reach.any() or not _ties_hold(goal) else 0.0
            limits = Box.of(query.schema, query.factual)
            demand = KeepsLead(
                self._text(goal, i, ball=bool(reach.any())),
                goal,
                _wary(query, goal, reach, 1.0) if reach.any() else goal.read.form,
                self.margin or 0.0,
                room,
                reach,
                self.norm,
                shifts=(np.zeros(len(query.schema)),),
                limits=limits,
                tie=tie,
                radius=radius,
                ranges=ranges,
                attacked=_wary(query, goal, reach, 0.5) if reach.any() else None,
                firmer=_firmer(query, goal, reach) if reach.any() and not i else (),
            )
            out.append(demand)
        return out

    def _text(self, goal: Goal, i: int, *, ball: bool) -> str:
        who = f"models[{i - 1}] also says " if i else ""
        lead = f" by a margin of {number(self.margin)}" if self.margin else ""
        radius = number(self.radius or 0.0)
        where = f" anywhere within {radius} of the ranges ({self.norm})" if ball else ""
        return f"{who}{goal.text.removeprefix('want ')}{lead}{where}"

    def _goals(self, query: Query) -> list[Goal]:
        """Return the goal of each model, the explained one first."""
        goal = query.goal
        assert isinstance(goal, Goal)
        if isinstance(goal, AnyClassGoal):
            raise CriterionError(
                f"Robustness keeps one outcome, but any of several is wanted ({goal.text.removeprefix('want ')}). Ask for "
                "each class by itself and take the cheapest answer, or leave Robustness out."
            )
        training, kept = query.training, tuple(self.models)
        others = training.memo.get("models", tuple(map(id, kept)), lambda: _opened(training, kept), keep=kept)
        return [goal, *(resolve(_target(goal), model) for model in others)]

    def _ranges(self, query: Query, goal: Goal) -> FloatArray:
        """Return the training range of each feature that may be off; 0 where that changes nothing."""
        schema, ranges = query.schema, np.zeros(len(query.schema))
        named = schema.names if self.features is None else self.features
        for j in goal.read.form.features() & {schema.index(name) for name in named}:
            if isinstance(schema.features[j], Numeric) and not np.isnan(query.factual[schema.starts[j]]):
                ranges[j] = query.training.range[j]
        return ranges

    def ranges(
        self, statement: Statement, u: FloatArray, backend: Backend, deadline: Deadline
    ) -> dict[str, tuple[float, float]]:
        """Return, per changed number of an answer, the least and largest value that keeps the outcome; not of k-NN."""
        from ifonly.criteria.robustness.ranges import safe_ranges  # noqa: PLC0415 - loaded for robust questions only

        tied = any(has_nearest(goal.read.form) for goal in self._goals(statement.query))
        return {} if tied else safe_ranges(statement, u, backend, deadline)

    def remarks(self, query: Query, U: FloatArray) -> list[str]:
        """Say what was proven of every answer."""
        del U
        balls = [d.text for d in self.demands(query) if isinstance(d, KeepsLead) and d.reach.any()]
        return [f"proven against every point of the ball: {text}" for text in balls]


def _opened(training: Training, estimators: Sequence[Any]) -> list[Model]:
    """Read further models of the same columns."""
    complete = ~np.isnan(training.U).any(axis=1)
    example = training.schema.decode(training.U[[int(np.argmax(complete))]])
    with few_filters():
        return [open_model(estimator, example, training.schema, tuning=training.tuning)[1] for estimator in estimators]


def _room(query: Query, goal: Goal, reach: FloatArray) -> float:
    """Return the lead that can be told from a tie, for scores as they are in a ball of this size around the factual.

    It need not be more than a program can tell from a tie, a share of what the scores can be at all: with a column around
    1e9 many roundings of its terms are more than other columns change, which cost answers and made questions impossible. Of
    an answer alone the model itself is asked; nobody asks it all over a ball, where its own rounding counts in full.
    """
    form, limits = goal.read.form, Box.of(query.schema, query.factual)
    noise = goal.rounding(form, limits)
    double = noise * float(np.finfo(np.float64).eps) / goal.model.rounding
    low, high = score_bounds(form, limits)
    told = FEASIBILITY * float(np.max(high - low))
    if not reach.any():
        return min(max(PROGRAM_ROUNDINGS * double, MODEL_ROUNDINGS * noise), told)
    rounding = max(min(PROGRAM_ROUNDINGS * double, told), MODEL_ROUNDINGS * noise)
    low, high = score_bounds(form, _ball(query, reach))
    width = float(np.max(high - low))
    return BEYOND_A_TIE_IN_BALL * (width if np.isfinite(width) else 1.0) + rounding


def _ball(query: Query, reach: FloatArray) -> Box:
    """Return the box around the factual in which a ball of this reach lies."""
    ball = Box.of(query.schema, query.factual)
    for j in map(int, np.flatnonzero(reach)):
        hat = float(query.factual[query.schema.starts[j]])
        ball.lower[j], ball.upper[j] = max(ball.lower[j], hat - reach[j]), min(ball.upper[j], hat + reach[j])
    for j, feature in enumerate(query.schema.features):
        part = query.factual[query.schema.slice(j)]
        if not isinstance(feature, Numeric):
            ball.keep_levels(j, part > 0)
        elif not reach[j] and not np.isnan(part[0]):
            ball.lower[j] = ball.upper[j] = part[0]
    return ball


def _wary(query: Query, goal: Goal, reach: FloatArray, share: float) -> Form:
    """Return the form in which members of a hard vote clear their ties, by a share of what a solver can tell from one."""
    most = _ball(query, reach), share * MOST_BEYOND_A_VOTE
    return _firm(goal, [(Box.of(query.schema, query.factual), share * BEYOND_A_VOTE_IN_BALL), most])


def _firm(goal: Goal, rooms: Sequence[tuple[Box, float]]) -> Form:
    """Return the form in which members of a hard vote lead by a share of what their leads range over in a box."""
    if not isinstance(goal, ClassGoal):
        return goal.read.form
    n = goal.read.form.n_outputs
    good = np.where(np.arange(n) == goal.index, 1.0, -1.0) if n > 1 else np.array([2.0 * goal.index - 1.0])
    return wary(goal.read.form, good, rooms)


def _firmer(query: Query, goal: Goal, reach: FloatArray) -> tuple[Form, ...]:
    """Return forms in which members lead by what a ball takes from them, at most or about; none without a hard vote."""
    ball = _ball(query, reach)
    forms = tuple(_firm(goal, [(ball, 0.5 * share)]) for share in query.tuning.balls.firmer)
    return () if forms[0] is goal.read.form else forms


def _ties_hold(goal: Goal) -> bool:
    return goal.read.piecewise_constant and goal.ties_are_ours()


def _target(goal: Goal) -> Target:
    """Return the target that a goal was made of."""
    if isinstance(goal, IntervalGoal):
        low, high = (None if np.isinf(end) else end for end in (goal.low, goal.high))
        return Target(at_least=low, at_most=high)
    if isinstance(goal, ProbabilityGoal):
        return Target(goal.label, goal.probability)
    assert isinstance(goal, ClassGoal)
    return Target(goal.label)
