"""Adversary of networks without a program: branch and bound over the shifts of one ball for a lead that is not enough.

In a part of the ball, a box of shifts, the rows of the goal are bounded from below by linear functions of the shift
(`ifonly.models.forms.backward`). A part whose bound is enough is safe; another one is split along the number that the
looseness of its bound is owed to. Before that, shifts are followed downhill from the centre: what flips is found there,
as a rule, and what is safe is safe at first sight where few units change their sign in the ball.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.criteria.robustness.shifts import Parts, best_shift, inside, on_steps
from ifonly.criteria.robustness.worst_cell import Worst
from ifonly.data.schema import Numeric
from ifonly.models.abilities import Layered, LinearScores
from ifonly.models.form import Form
from ifonly.models.forms.backward import Layers
from ifonly.models.forms.propagate import Block
from ifonly.models.forms.signs import Ball, Room, Signs, knows
from ifonly.question.wrapping import Enclosed
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.kernels import Said
from ifonly.runtime.tuning_forests import Balls
from ifonly.runtime.tuning_kernels import SignSearch
from ifonly.tolerances import BEYOND_A_TIE_IN_BALL, LOST_OF_ROOM, ON_GRID, ORDINARY, ROUNDING

__all__ = ["worst_point"]


def _as_layers(form: Form) -> tuple[tuple[Block, ...], FloatArray, FloatArray] | None:
    """Return the units of a form, and the weights and constants of its scores; linear scores have no units."""
    if isinstance(form, Layered):
        return form.blocks, form.weights, form.constant
    return ((), form.weights, form.intercept) if isinstance(form, LinearScores) else None


def worst_point(ball: Enclosed, u: FloatArray, deadline: Deadline, tuning: Balls, signs: SignSearch) -> Worst | None:
    """Return a point of the ball around `u` whose lead is not enough, or that there is none.

    None where the form is neither linear nor a network, the goal is not linear in its scores, or too many parts would be
    needed.
    """
    form = _as_layers(ball.form)
    weights, constant = ball.goal.matrix()
    if form is None or not len(weights):
        return None
    schema = ball.limits.schema
    numbers = [int(j) for j in np.flatnonzero(ball.reach) if not np.isnan(u[schema.starts[j]])]
    places = np.array([schema.starts[j] for j in numbers], dtype=np.int64)
    step = np.array([schema.steps[j] or 0.0 for j in numbers])
    if (np.abs(u[places] - np.rint(u[places] / np.where(step > 0.0, step, 1.0)) * step) > ON_GRID * step)[
        step > 0
    ].any():
        return None  # off its grid, the values around it are no whole steps away
    box, reach = ball.box(u), ball.reach[numbers]
    low, high = box.lower[numbers] - u[places], box.upper[numbers] - u[places]
    low, high = on_steps(low, step), on_steps(high, step)
    origin = np.nan_to_num(u)
    size = np.abs(origin)
    size[places] += reach
    if not size.max(initial=0.0) < ORDINARY[1]:
        return None
    blocks, own, intercept = form
    layers = Layers.of(blocks, (-weights @ own, -weights @ intercept - constant), places, origin, size)
    round_ = reach if ball.norm == "l2" else None
    whole = Parts(low[None], high[None], round_, tuning.ball_prices)
    return _Attack(ball, u, layers, places, step, whole).run(deadline, tuning, signs)


class _Attack:
    """One branch and bound; the rows of the layers are leads with their sign changed."""

    def __init__(
        self, ball: Enclosed, u: FloatArray, layers: Layers, places: IntArray, step: FloatArray, whole: Parts
    ) -> None:
        self.ball, self.u, self.layers, self.places, self.step, self.whole = ball, u, layers, places, step, whole
        self.least = ball.broken

    def run(self, deadline: Deadline, tuning: Balls, numbers: SignSearch) -> Worst | None:
        """Go downhill first; then search all of the ball."""
        found = self._downhill(tuning.descents)
        if found is not None:
            return found
        if not np.isfinite(self.layers.room[-1]).all():
            return None
        if knows([self.layers.blocks]):
            found = self._by_signs(deadline, tuning, numbers)
            if found is not None:
                return found
        at_once = max(1, min(tuning.parts_at_once, tuning.part_work // max(1, self.layers.work)))
        open_, looked = [self.whole], 0
        while open_:
            if deadline.passed:
                return Worst(False)
            parts = open_.pop()
            if len(parts) > at_once:
                open_.append(_pick(parts, np.arange(at_once, len(parts))))
                parts = _pick(parts, np.arange(at_once))
            looked += len(parts)
            if looked > tuning.most_ball_parts:
                return None
            worst, children = self._look(parts)
            if worst is not None:
                return worst
            if children is not None:
                open_.append(children)
        return Worst(True)

    def _by_signs(self, deadline: Deadline, tuning: Balls, numbers: SignSearch) -> Worst | None:
        """Look for the shift at which a row is lost by most, row by row, by signs of units.

        The search minimises ``slack - by how much the row is lost``, and ends where that is more than the slack. None where
        that takes it too long, as ellipsoids and several layers may: boxes are divided then.
        """
        for row in range(len(self.layers.rows)):
            signs, runs = Signs(self._room(), [self._lost(row)], tuning.kernel_bytes, numbers), 0
            while (said := signs.run(0.0, tuning.sign_work)) is not Said.CLOSED:
                worst = (
                    self._beyond(self._kept(signs.offered()[0]), row, tuning.descents) if said is Said.OFFER else None
                )
                if worst is not None or deadline.passed:
                    return worst or Worst(False)
                runs += 1
                if said is Said.FULL or runs == tuning.sign_runs:
                    return None
            if signs.bound < np.inf:
                return None  # a shift within rounding of a tie: neither lost nor safe
        return Worst(True)

    def _kept(self, shift: FloatArray) -> FloatArray:
        """Return a shift as one that is surely of the ball."""
        whole = self.whole
        own = np.clip(shift, whole.low[0], whole.high[0])
        return on_steps(own if whole.reach is None else inside(own, whole.reach), self.step)[None]

    def _room(self) -> Room:
        """Return the shifts of the ball, at no cost but what the row is not lost by."""
        whole, zero = self.whole, np.zeros(len(self.places))
        near = ON_GRID * self.step
        numbers = (zero, zero, zero, zero, zero, self.step, near, whole.low[0] - near, whole.high[0] + near)
        none = np.zeros(0), np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.int64)
        axes = np.zeros(0) if whole.reach is None else whole.reach
        slack = self.ball.room / BEYOND_A_TIE_IN_BALL  # about what the score changes by in the ball
        return Room(*numbers, *none, -slack, len(zero), axes, 2.0 * slack)

    def _lost(self, row: int) -> Ball:
        """Return that a row is lost: the lead with its sign changed, beyond what is enough."""
        layers, zero = self.layers, np.zeros(len(self.places))
        one = replace(
            layers,
            rows=layers.rows[[row]],
            constant=layers.constant[[row]] + self.least - LOST_OF_ROOM * self.ball.room,
            room=(*layers.room[:-1], layers.room[-1][[row]]),
        )
        return Ball(one, zero, zero - np.inf, zero + np.inf, self.step, False, 0.0)

    def _downhill(self, steps: int) -> Worst | None:
        """Follow the linear pieces of every row from the centre, each time to the best shift of the ball for it."""
        shift = np.zeros((len(self.layers.rows), len(self.places)))
        tried = list(self._steps(shift, np.arange(len(shift)), steps))
        return self._flipped(np.concatenate(tried)) if tried else None

    def _beyond(self, shift: FloatArray, row: int, steps: int) -> Worst | None:
        """Return the worst point on the way downhill from a shift."""
        return self._flipped(np.concatenate([shift, *self._steps(shift, np.array([row]), steps)]))

    def _steps(self, shift: FloatArray, rows: IntArray, steps: int) -> Iterator[FloatArray]:
        """Yield the best shifts of the ball for the linear pieces around shifts, one row each, and around those."""
        whole, which = self.whole, np.arange(len(rows))
        for _ in range(steps):
            slopes, _ = self.layers.tangents(shift)
            best = best_shift(slopes[which, rows], whole.low, whole.high, whole.reach, whole.prices)[1]
            shift = on_steps(best, self.step)
            yield shift

    def _flipped(self, shifts: FloatArray) -> Worst | None:
        """Return the worst of some shifts, by the form, where its lead is not enough."""
        points = np.repeat(self.u[None, :], len(shifts), axis=0)
        points[:, self.places] += shifts
        for k in np.flatnonzero(self.step > 0.0):
            feature = self.ball.limits.schema.features[self._feature(int(k))]
            assert isinstance(feature, Numeric)
            points[:, self.places[k]] = [feature.snap(float(v)) for v in points[:, self.places[k]]]
        leads = self.ball.goal.lead(self.ball.goal.read.form(points))
        worst = int(np.argmin(leads))
        return Worst(False, float(leads[worst]), points[worst]) if leads[worst] < self.least else None

    def _feature(self, k: int) -> int:
        return int(self.ball.limits.schema.starts.index(int(self.places[k])))

    def _look(self, parts: Parts) -> tuple[Worst | None, Parts | None]:
        """Bound parts; return a flipping point of theirs, or the halves of those that may have one."""
        parts = _pick(parts, np.flatnonzero(parts.inhabited()))
        if not len(parts):
            return None, None
        planes = self.layers.planes(parts)
        bound, shifts = best_shift(planes.slopes, parts.low[:, None], parts.high[:, None], parts.reach, parts.prices)
        bound = bound + planes.constant
        row = bound.argmax(axis=1)
        which = np.arange(len(parts))
        open_ = np.flatnonzero(~(bound[which, row] <= -self.least))  # what is no number is not safe
        if not open_.size:
            return None, None
        worst = self._flipped(on_steps(shifts[open_, row[open_]], self.step))
        if worst is not None:
            return worst, None
        return None, self._halves(_pick(parts, open_), planes.looseness[open_, row[open_]])

    def _halves(self, parts: Parts, looseness: FloatArray) -> Parts | None:
        """Split parts along the number that their looseness is owed to; single points, which do not flip, are done."""
        width = parts.high - parts.low
        wide = np.where(self.step > 0.0, width >= 0.5 * self.step, width > 0.0)
        kept = np.flatnonzero(wide.any(axis=1))
        if not kept.size:
            return None
        parts, score = _pick(parts, kept), np.where(wide, np.nan_to_num(looseness) + ROUNDING * width, -1.0)[kept]
        along, which = score.argmax(axis=1), np.arange(len(kept))
        middle = 0.5 * (parts.low + parts.high)[which, along]
        step = self.step[along]
        cell = np.floor(middle / np.where(step > 0.0, step, 1.0) + ON_GRID) * step
        ends = np.where(step > 0.0, cell, middle), np.where(step > 0.0, cell + step, middle)
        low, high = parts.low.copy(), parts.high.copy()
        high[which, along], low[which, along] = ends
        return replace(parts, low=np.concatenate([parts.low, low]), high=np.concatenate([high, parts.high]))


def _pick(parts: Parts, which: IntArray) -> Parts:
    return replace(parts, low=parts.low[which], high=parts.high[which])
