"""Robustness: the outcome holds around the answer, with a margin, and by the word of several models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ifonly.box import Box
from ifonly.criteria import Criterion, Demand, Query, number
from ifonly.criteria.validity import Goal, Target, resolve
from ifonly.errors import CriterionError
from ifonly.fitted import open_model
from ifonly.mip import Affine, FloatArray
from ifonly.models import Form
from ifonly.schema import Numeric
from ifonly.shifted import Shifted, moved
from ifonly.training import Training

if TYPE_CHECKING:
    from ifonly.problem import Problem, Statement

__all__ = ["Robustness", "Stays", "lead"]

Ball = Literal["linf", "l2"]

# Of the scores' spread: by how much a score must clear its threshold all over a ball. A tie is not robust.
_ROOM = 1e-6
_WIDER = 1e-9  # shifts reach this share beyond the ball, so that rounding never lets its edge slip out
_GRID_DUST = 1e-9


@dataclass(frozen=True)
class Robustness(Criterion):
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
    _read: dict[int, Training] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.radius is None and self.margin is None and not len(self.models):
            raise CriterionError("Robustness needs radius= (a ball), margin= (on the score) or models=[...] that agree.")
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
        for goal, _ in self._goals(query):
            if self.radius is not None and not goal.gaps([Affine()] * goal.read.form.n_outputs, 0.0):
                raise CriterionError(
                    "A probability out of a softmax over several classes is not linear in the scores, so its least value "
                    "in a ball cannot be proven. Ask for the class alone, with margin= in place of the probability."
                )
            if not goal.read.accepts_missing and bool(np.isnan(query.factual).any()):
                raise CriterionError(
                    f"{type(goal.model.estimator).__name__} gives a missing value no meaning, but this row has one. "
                    "Fill it in, or leave this model out of Robustness(models=[...])."
                )

    # -- demands ------------------------------------------------------------------------------------------------
    def demands(self, query: Query) -> list[Demand]:
        """Return one demand per model."""
        out: list[Demand] = []
        for i, (goal, scale) in enumerate(self._goals(query)):
            reach = self._reach(query, goal)
            if i == 0 and self.margin is None and not reach.any():
                continue
            room = _ROOM * scale if reach.any() or not _ties_hold(goal) else 0.0
            still = np.zeros(len(query.schema))
            text = self._text(goal, i, ball=bool(reach.any()))
            out.append(Stays(text, goal, self.margin or 0.0, room, reach, self.norm, (still,)))
        return out

    def _text(self, goal: Goal, i: int, *, ball: bool) -> str:
        who = f"models[{i - 1}] also says " if i else ""
        lead = f" by a margin of {number(self.margin)}" if self.margin else ""
        where = f" anywhere within {number(self.radius)} of the ranges ({self.norm})" if ball and self.radius else ""
        return f"{who}{goal.text.removeprefix('want ')}{lead}{where}"

    def _goals(self, query: Query) -> list[tuple[Goal, float]]:
        """Return the goal of each model, the explained one first, and the size of its scores."""
        goal = query.goal
        assert goal is not None
        out = [(goal, query.training.score_scale)]
        for i, estimator in enumerate(self.models):
            training = self._opened(query.training, i, estimator)
            out.append((resolve(_target(goal), training.model), training.score_scale))
        return out

    def _opened(self, training: Training, i: int, estimator: Any) -> Training:
        known = self._read.get(i)
        if known is None or known.U is not training.U:
            complete = ~np.isnan(training.U).any(axis=1)
            example = training.schema.decode(training.U[[int(np.argmax(complete))]])
            _, model, _, _ = open_model(estimator, example, training.schema)
            known = self._read[i] = Training(training.schema, training.U, model)
        return known

    def _reach(self, query: Query, goal: Goal) -> FloatArray:
        """Return how far each feature may be off, in its own unit and on its grid; 0 where that changes nothing."""
        schema, reach = query.schema, np.zeros(len(query.schema))
        named = schema.names if self.features is None else self.features
        for j in goal.read.form.features() & {schema.index(name) for name in named}:
            feature = schema.features[j]
            if self.radius is None or not isinstance(feature, Numeric) or np.isnan(query.factual[schema.starts[j]]):
                continue
            reach[j] = self.radius * float(query.training.range[j])
            if feature.step is not None:
                reach[j] = feature.snap(float(np.floor(reach[j] / feature.step + _GRID_DUST)) * feature.step)
        return reach


def _ties_hold(goal: Goal) -> bool:
    return goal.read.piecewise_constant and goal.ties_are_ours()


def _target(goal: Goal) -> Target:
    if goal.kind == "interval":
        low, high = (None if np.isinf(end) else end for end in (goal.low, goal.high))
        return Target(at_least=low, at_most=high)
    return Target(goal.label, goal.probability if goal.kind == "probability" else None)


def lead(goal: Goal, scores: FloatArray) -> FloatArray:
    """Return by how much the scores clear the goal, the tightest row of it: the NumPy twin of `Goal.gaps`."""
    gaps = goal.gaps([Affine.of(k) for k in range(scores.shape[1])], 0.0)
    if gaps:
        return np.min([scores[:, g.columns] @ g.values + g.constant for g in gaps], axis=0)
    probabilities = goal.read.probabilities(scores)
    assert probabilities is not None
    return np.asarray(np.log(probabilities[:, goal.index] / goal.probability))


@dataclass(frozen=True, eq=False)
class Stays(Demand):
    """``lead(clip(x + s)) >= margin + room`` for every shift ``s`` that is known to matter.

    Attributes
    ----------
    goal
        What must hold, of the explained model or of another.
    margin, room
        The lead that is demanded, and the little more that keeps ties and rounding away.
    reach
        Per feature: how far a number may be off; all zeros for a demand on the answer alone.
    norm
        The shape of the ball with these half-axes.
    shifts
        The shifts found so far, "none" first; `ifonly.adversary` adds to them.
    nogo
        Boxes found so far in which no answer may lie: from anywhere in them, the ball meets points that flip.
    known
        Points that are proven to keep the lead all over their ball.
    """

    goal: Goal
    margin: float
    room: float
    reach: FloatArray
    norm: Ball
    shifts: tuple[FloatArray, ...]
    nogo: tuple[Box, ...] = ()
    known: tuple[FloatArray, ...] = ()

    @property
    def enough(self) -> float:
        """The lead at which a point counts as safe; half the room is left to the solver's tolerance."""
        return self.margin + 0.5 * self.room

    def stricter(self, shift: FloatArray | None = None, nogo: Box | None = None) -> Stays:
        """Return the demand with one more shift, or one more box to stay out of."""
        shifts = self.shifts if shift is None else (*self.shifts, shift)
        return replace(self, shifts=shifts, nogo=self.nogo if nogo is None else (*self.nogo, nogo))

    # -- the ball -----------------------------------------------------------------------------------------------
    def ball(self, query: Query, u: FloatArray) -> Box:
        """Return the box of all points that no feature by itself takes out of the ball around `u`."""
        schema = query.schema
        box = Box.of(schema, query.factual)
        for j, feature in enumerate(schema.features):
            part = u[schema.slice(j)]
            if isinstance(feature, Numeric):
                box.missing[j] = bool(np.isnan(part[0]))
                if not box.missing[j]:
                    box.narrow(j, float(part[0] - self.reach[j]), float(part[0] + self.reach[j]))
                    box.lower[j], box.upper[j] = min(box.lower[j], part[0]), max(box.upper[j], part[0])
            else:
                box.missing[j] = not part.any()
                box.keep_levels(j, part > 0.5)
        return box

    def widened(self, query: Query) -> FloatArray:
        """Return the reach with room for the rounding of each feature's stored values; grids need none."""
        schema, out = query.schema, self.reach.copy()
        limits = Box.of(schema, query.factual)
        for j in np.flatnonzero(self.reach):
            feature = schema.features[j]
            assert isinstance(feature, Numeric)
            if feature.step is None:
                kind = getattr(feature.dtype, "numpy_dtype", feature.dtype)
                grain = np.finfo(kind).eps if np.dtype(kind).kind == "f" else np.finfo(np.float64).eps
                size = max(abs(limits.lower[j]), abs(limits.upper[j]))
                out[j] += _WIDER * out[j] + 4.0 * float(grain) * size
        return out

    # -- the optimiser's side -----------------------------------------------------------------------------------
    def cuts(self, query: Query) -> Mapping[int, FloatArray]:
        """Return the thresholds of the form, moved against each shift."""
        own = self.goal.read.form.cuts()
        parts = {j: [c - s[j] for s in self.shifts] for j, c in own.items()}
        for box in self.nogo:
            for j in self._bounded(query, box):
                parts.setdefault(j, []).append(np.array([np.nextafter(box.lower[j], -np.inf), box.upper[j]]))
        return {j: np.unique(np.concatenate(p)) for j, p in parts.items()}

    def _bounded(self, query: Query, box: Box) -> list[int]:
        """Return the numeric features by which one can leave a box."""
        limits = Box.of(query.schema, query.factual)
        inside = (box.lower > limits.lower) | (box.upper < limits.upper)
        return [j for j in sorted(self.features(query)) if inside[j] and not box.missing[j] and isinstance(query.schema.features[j], Numeric)]

    def raw(self, query: Query) -> frozenset[int]:
        """Return the numeric features whose raw value the form needs."""
        del query
        return self.goal.read.form.raw()

    def features(self, query: Query) -> frozenset[int]:
        """Return the features the form looks at."""
        del query
        return self.goal.read.form.features()

    def form(self, query: Query, refined: Form) -> Form:
        """Return the form to embed: the refined one for the explained model."""
        return refined if self.goal is query.goal else self.goal.read.form

    def apply(self, problem: Problem) -> None:
        """Embed the form once per shift, and demand the lead there."""
        own = self.goal is problem.query.goal
        form = self.form(problem.query, problem.statement.form)
        least = self.margin + max(problem.margin, self.room)
        for shift in self.shifts:
            view = copy(problem)
            if shift.any():
                view.outputs = form.embed(problem.mip, Shifted(problem.x, shift))
            elif not own:
                view.outputs = form.embed(problem.mip, problem.x)
            gaps = self.goal.gaps(view.outputs, 0.0)
            for gap in gaps:
                problem.mip.row(gap, lower=least)
            if not gaps:
                view.margin = least
                self.goal.apply(view)
        for box in self.nogo:
            problem.mip.row(self._outside(problem, box), lower=1.0)

    def _outside(self, problem: Problem, box: Box) -> Affine:
        """Return the number of features that leave a box: below it, above it, or by their level."""
        query, x = problem.query, problem.x
        terms = []
        for j in self._bounded(query, box):
            terms.append(x.at_most(j, float(np.nextafter(box.lower[j], -np.inf))))
            terms.append(1.0 - x.at_most(j, float(box.upper[j])))
        for j in sorted(self.features(query)):
            if not isinstance(query.schema.features[j], Numeric) and not box.missing[j]:
                terms.append(x.level_in(j, ~box.allowed[query.schema.slice(j)]))
        return Affine.total(terms)

    def candidates(self, statement: Statement, box: Box) -> Iterable[FloatArray]:
        """Return the points that are known to be robust."""
        del statement, box
        return self.known

    # -- NumPy's side -------------------------------------------------------------------------------------------
    def leads(self, query: Query, U: FloatArray, shift: FloatArray) -> FloatArray:
        """Return the lead of rows that are off by a shift, by the form."""
        V = moved(query.schema, query.factual, U, shift)
        return lead(self.goal, self.goal.read.form(V))

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows keep the lead under every known shift; another model is asked itself, too."""
        good = np.ones(len(U), dtype=np.bool_)
        for shift in self.shifts:
            good[good] = self.leads(query, U[good], shift) >= self.enough
        for box in self.nogo:
            good &= ~box.contains(U)
        if self.goal is not query.goal and good.any():
            good[good] = self.goal.confirmed(U[good])
        return good
