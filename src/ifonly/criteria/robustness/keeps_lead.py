"""KeepsLead, the demand behind robustness: a lead that is kept under every shift that is known to matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema
from ifonly.errors import Relaxation
from ifonly.models.form import Form
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.program.leaving import apart, ends, leaving
from ifonly.program.mip import Affine
from ifonly.program.shifted import Shifted, moved, moved_cuts
from ifonly.question.abilities import Loosens, Refines, Shrinks, Verifies, dropped
from ifonly.question.demand import Demand
from ifonly.question.feasible import feasible
from ifonly.question.goal import Goal
from ifonly.question.guidance import Proposes
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.question.words import number
from ifonly.question.wrapping import Embeds, Enclosed, Encloses, Search, Wraps
from ifonly.runtime.deadline import Deadline
from ifonly.solvers.backend import Backend, Limits
from ifonly.tolerances import DUST as _WIDER
from ifonly.tolerances import ENOUGH_OF_ROOM, STORED_ROUNDINGS
from ifonly.tolerances import ON_GRID as _GRID_DUST

__all__ = ["Ball", "KeepsLead", "lead", "on_grid"]

Ball = Literal["linf", "l2"]


def lead(goal: Goal, scores: FloatArray) -> FloatArray:
    """Return by how much the scores clear the goal, the tightest row of it: the NumPy twin of `Goal.gaps`."""
    return goal.lead(scores)


def on_grid(schema: Schema, reach: FloatArray, norm: Ball) -> FloatArray:
    """Return how far each feature can be off on its grid: whole steps, or nothing when there is not even one.

    In an l2 ball the half-axes stay what they are, because steps of several features share the radius.
    """
    out = reach.copy()
    for j in np.flatnonzero(reach):
        feature = schema.features[j]
        if isinstance(feature, Numeric) and feature.step is not None:
            steps = float(np.floor(reach[j] / feature.step + _GRID_DUST))
            if norm == "linf" or not steps:
                out[j] = feature.snap(steps * feature.step)
    return out


@dataclass(frozen=True, eq=False)
class KeepsLead(Proposes, Loosens, Shrinks, Refines, Verifies, Wraps, Embeds, Encloses, Demand):
    """``lead(clip(x + s)) >= margin + room`` for every shift ``s`` that is known to matter; more where a tie would be lost.

    Attributes
    ----------
    goal
        What must hold, of the explained model or of another.
    form
        The scores of that model, refined where it was needed.
    margin, room, tie
        The lead that is demanded, the little more that keeps ties and rounding away, and how much more it is at least where a
        tie would be lost.
    reach
        Per feature: how far a number may be off; all zeros for a demand on the answer alone.
    norm
        The shape of the ball with these half-axes.
    shifts
        The shifts found so far, "none" first; `ifonly.criteria.robustness.adversary` adds to them.
    limits
        The schema's bounds, beyond which there are no values.
    nogo
        Boxes found so far in which no answer may lie: from anywhere in them, the ball meets points that flip.
    known
        Points that are proven to keep the lead all over their ball.
    radius, ranges
        What the reach is made of, before grids.
    attacked
        The form that the adversary attacks, where it is another: see `ifonly.criteria.robustness.wary`.
    firmer
        Forms of the explained model in which an answer is likely to withstand, the firmest first.
    """

    goal: Goal
    form: Form
    margin: float
    room: float
    reach: FloatArray
    norm: Ball
    shifts: tuple[FloatArray, ...]
    limits: Box
    nogo: tuple[Box, ...] = ()
    known: tuple[FloatArray, ...] = ()
    tie: float = 0.0
    radius: float = 0.0
    ranges: FloatArray = field(default_factory=lambda: np.zeros(0))
    attacked: Form | None = None
    firmer: tuple[Form, ...] = ()

    @property
    def enough(self) -> float:
        """The lead at which a point counts as safe; half the room is left to the solver's tolerance."""
        return self.margin + ENOUGH_OF_ROOM * self.room

    def stricter(self, shift: FloatArray | None = None, nogo: Box | None = None) -> KeepsLead:
        """Return the demand with one more shift, or one more box to stay out of."""
        shifts = self.shifts if shift is None else (*self.shifts, shift)
        return replace(self, shifts=shifts, nogo=self.nogo if nogo is None else (*self.nogo, nogo))

    def shrunk(self, share: float) -> KeepsLead | None:
        """Return the demand for a part of the ball, with nothing found yet; None without a ball."""
        if not self.reach.any():
            return None
        reach = on_grid(self.limits.schema, self.radius * share * self.ranges, self.norm)
        return replace(self, reach=reach, shifts=self.shifts[:1], nogo=(), known=(), radius=self.radius * share)

    def shrinking(self, share: float) -> Relaxation:
        """Name the smaller radius."""
        radius = self.radius * share
        return Relaxation(self.text, f"radius {number(self.radius)} -> {number(radius, 'down')}", self.radius - radius)

    # -- around a search ----------------------------------------------------------------------------------------
    def wrapped(self, search: Search, backend: Backend) -> Search:
        """Return the search that goes on until no point of the ball around its answer flips; without a ball, the search."""
        from ifonly.criteria.robustness.adversary import WrappedSearch  # noqa: PLC0415 - loaded for robust questions only

        if isinstance(search, WrappedSearch) or not self.reach.any():
            return search
        return WrappedSearch(search, backend)

    def withstands(self, u: FloatArray, backend: Backend, limits: Limits, deadline: Deadline) -> bool:
        """Whether no point of the ball around `u` flips, proven."""
        from ifonly.criteria.robustness.adversary import attack  # noqa: PLC0415 - loaded for robust questions only

        return not self.reach.any() or attack(self, u, backend, limits, deadline).safe

    def enclosed(self) -> Enclosed | None:
        """Return the lead that is demanded all over the ball; None without one, or once shifts and boxes were added."""
        if not self.reach.any() or len(self.shifts) > 1 or self.nogo or self.form is not self.goal.read.form:
            return None
        return self.over_ball

    @property
    def over_ball(self) -> Enclosed:
        """The lead all over the ball, whatever of it was found so far: what an adversary attacks."""
        return Enclosed(self.goal, self.form, self.enough, self.room, self.reach, self.norm, self.limits)

    def embedded(self, query: Query) -> list[Form]:
        """Return a copy of the form per shift; none for the first, which is no shift, where the goal has embedded it."""
        return [self.form] * (len(self.shifts) - (self.goal is query.goal))

    # -- the ball -----------------------------------------------------------------------------------------------
    def ball(self, u: FloatArray) -> Box:
        """Return the box of all points that no feature by itself takes out of the ball around `u`."""
        return self.over_ball.box(u)

    def widened(self) -> FloatArray:
        """Return the reach with room for the rounding of each feature's stored values; grids need none."""
        out = self.reach.copy()
        for j in np.flatnonzero(self.reach):
            feature = self.limits.schema.features[j]
            assert isinstance(feature, Numeric)
            if feature.step is None:
                kind = feature.stored
                grain = np.finfo(kind).eps if kind.kind == "f" else np.finfo(np.float64).eps
                size = max(abs(self.limits.lower[j]), abs(self.limits.upper[j]))
                out[j] += _WIDER * out[j] + STORED_ROUNDINGS * float(grain) * size
        return out

    def _inside(self, shift: FloatArray) -> FloatArray:
        """Return a shift drawn in as far as rounding can matter: the program asks for more, the check for less."""
        dust = 2.0 * (self.widened() - self.reach)
        return np.asarray(np.sign(shift) * np.maximum(np.minimum(np.abs(shift), self.reach) - dust, 0.0))

    # -- the optimiser's side -----------------------------------------------------------------------------------
    def cuts(self, query: Query) -> Mapping[int, FloatArray]:
        """Return the thresholds of the form, moved against each shift."""
        parts: dict[int, list[FloatArray]] = {}
        for j, cuts in self.form.cuts().items():
            feature = query.schema.features[j]
            assert isinstance(feature, Numeric)
            parts[j] = [moved_cuts(feature, cuts, float(s[j])) for s in self.shifts]
        for box in self.nogo:
            for j, edges in ends(box, self._bounded(query, box)).items():
                parts.setdefault(j, []).append(edges)
        return {j: np.unique(np.concatenate(p)) for j, p in parts.items()}

    def _bounded(self, query: Query, box: Box) -> list[int]:
        """Return the numeric features by which one can leave a box."""
        inside = ((box.lower > self.limits.lower) | (box.upper < self.limits.upper)) & ~box.missing
        numeric = (j for j in sorted(self.features(query)) if isinstance(query.schema.features[j], Numeric))
        return [j for j in numeric if inside[j]]

    def raw(self, query: Query) -> frozenset[int]:
        """Return the numeric features whose raw value the form needs."""
        del query
        return self.form.raw()

    def features(self, query: Query) -> frozenset[int]:
        """Return the features the form looks at."""
        del query
        return self.form.features()

    def apply(self, problem: Program) -> None:
        """Embed the form once per shift, and demand the lead there; then stay out of the boxes."""
        least = max(problem.margin, self.room)
        lost = max(least, self.tie)
        for shift in self.shifts:
            view = copy(problem)
            if shift.any() or self.goal is not problem.query.goal:
                view.outputs = self.form.embed(problem.mip, Shifted(problem.x, shift))
            # a narrow interval limits the room, which is for rounding, but never the margin that was asked for
            gaps = self.goal.gaps(view.outputs, least, lost)
            for gap in gaps:
                # lead(clip(x + s)) >= margin + room, for each threshold of the goal; where a tie is lost, margin + tie
                problem.mip.row(gap, lower=self.margin)
            if not gaps:
                view.margin, view.tie = self.margin + least, self.margin + lost
                self.goal.apply(view)
        for box in self.nogo:
            # no-good: some feature leaves the box
            problem.mip.row(self._outside(problem, box), lower=1.0)

    def _outside(self, problem: Program, box: Box) -> Affine:
        """Return the number of features that leave a box: below it, above it, or by their level."""
        _, levels = apart(box, self.features(problem.query))
        return leaving(problem.x, box, self._bounded(problem.query, box), levels)

    def candidates(self, statement: Statement, box: Box, deadline: Deadline) -> Iterator[FloatArray]:
        """Yield the points that are known to be robust, pulled back as far as what is demanded so far allows.

        Pulling back looks at every cell of every changed feature, so it gets a share of the time that is left.
        """
        pulling = deadline.within(statement.query.tuning.balls.pulling * deadline.left())
        for u in self.known:
            if bool(box.contains(u[None, :])[0]):
                yield self._pulled(statement, box, u, pulling)

    def _pulled(self, statement: Statement, box: Box, u: FloatArray, deadline: Deadline) -> FloatArray:
        """Move one feature after the other to its cheapest value that keeps all demands, the dearest first."""
        query, costs = statement.query, statement.costs()
        for _ in range(query.tuning.balls.sweeps):
            paid = costs.per_feature(query, u[None, :])[0]
            for j in map(int, np.argsort(-paid, kind="stable")[: int((paid > 0).sum())]):
                if deadline.passed:
                    return u
                values = self._nearer(query, box, j, u)
                rows = np.repeat(u[None, :], len(values), axis=0)
                rows[:, query.schema.slice(j)] = values
                rows = rows[np.argsort(costs.per_feature(query, rows)[:, j], kind="stable")]
                kept = feasible(statement.demands, query, box, rows, deadline, only_first=True)
                if kept.any():
                    u = rows[int(np.argmax(kept))]
        return u

    def _nearer(self, query: Query, box: Box, j: int, u: FloatArray) -> FloatArray:
        """Return values of a feature between the factual's and a point's: one per cell, or evenly spread."""
        feature, part = query.schema.features[j], query.schema.slice(j)
        if not isinstance(feature, Numeric):
            return query.factual[None, part]
        hat, value = float(query.factual[part][0]), float(u[part][0])
        low, high = max(min(hat, value), float(box.lower[j])), min(max(hat, value), float(box.upper[j]))
        if np.isnan(hat) or low > high:
            return u[None, part]
        cells = Cells.of(feature, low, high, self.cuts(query).get(j, np.empty(0)))
        even = np.linspace(hat, value, query.tuning.balls.spread) if j in self.raw(query) else ()
        spread = [feature.snap(float(v)) for v in even]
        return np.array([*cells.nearest(hat), *spread])[:, None]

    # -- loosening ----------------------------------------------------------------------------------------------
    def excess(self, problem: Program) -> Affine | None:
        """Return the amount by which the lead stays behind its margin, for a margin on the answer alone."""
        own = self.goal is problem.query.goal
        gaps = self.goal.gaps(problem.outputs, 0.0) if own and not self.reach.any() else []
        if not gaps:
            return None
        worst = problem.mip.column(0.0, self.margin, name="behind")
        for gap in gaps:
            # lead >= margin - behind, for each threshold of the goal
            problem.mip.row(gap + worst, lower=self.margin)
        return worst

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Name the margin that is within reach."""
        if self.goal is not query.goal or self.reach.any():
            return dropped(self)
        reached = float(self.leads(u[None, :], self.shifts[0])[0])
        change = f"margin {number(self.margin)} -> {number(reached, 'down')}"
        return Relaxation(self.text, change, self.margin - reached)

    # -- NumPy's side -------------------------------------------------------------------------------------------
    def leads(self, U: FloatArray, shift: FloatArray) -> FloatArray:
        """Return the lead of rows that are off by a shift, by the form."""
        return lead(self.goal, self.goal.read.form(moved(self.limits, U, shift)))

    def _clears(self, U: FloatArray, shift: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows that are off by a shift have enough of a lead; half of what a tie needs is left to rounding."""
        if not self.tie:
            return np.asarray(self.leads(U, shift) >= self.enough)
        scores = self.goal.read.form(moved(self.limits, U, shift))
        return self.goal.clears(scores, self.enough, self.margin + 0.5 * self.tie)

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows keep the lead under every known shift, and lie in no box that is ruled out."""
        del query
        good = np.ones(len(U), dtype=np.bool_)
        for shift in self.shifts:
            good[good] = self._clears(U[good], self._inside(shift))
        for box in self.nogo:
            good &= ~box.contains(U)
        return good

    def verified(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows do so, and have the outcome by the model's own word."""
        good = self.holds(query, U)
        if good.any() and self.goal is not query.goal:
            good[good] = self.goal.confirmed(U[good])
        return good

    def refusing(self, query: Query, u: FloatArray) -> Form | None:
        """Return the form of another model that does not give the outcome at `u` itself, though its scores may."""
        if self.goal is query.goal or self.reach.any() or bool(self.goal.confirmed(u[None, :])[0]):
            return None
        return self.form

    def asks_for(self, form: Form) -> bool:
        """Whether the form is that of the other model."""
        return form is self.form

    def refined(self, u: FloatArray) -> KeepsLead | None:
        """Return the demand with a form that is exact at `u`, shifted or not."""
        form = self.form
        for shift in self.shifts:
            form = form.refined(moved(self.limits, u[None, :], shift)[0]) or form
        return None if form is self.form else replace(self, form=form)
