"""Adversary of hard votes in an l2 ball: tangents of the ball, and every point put onto it before it is judged.

The lead in votes is constant between the ties of the members, so a program has no reason to stay near the ball: its points
lie at corners of the tangents, outside, and a loop that waits for one inside may wait forever. A point outside is drawn
towards the centre until it lies on the ball. If the lead is not enough there, it is an attack; if it is, the tangent at that
place cuts the point off. A program without a point is the proof that no attack exists: each one is a relaxation.

All attacks break the demand by whole votes, so they are told apart by how far beyond their ties the members are that went
over: the deepest one rules out most. It is looked for among the steepest directions of these members, and between them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.criteria.robustness.keeps_lead import KeepsLead, lead
from ifonly.criteria.robustness.wary import votes_of
from ifonly.criteria.robustness.worst_cell import Worst
from ifonly.data.schema import Numeric
from ifonly.models.form import Form
from ifonly.program.cells import grid_floor
from ifonly.program.mip import Affine, Mip
from ifonly.program.variables import Variables
from ifonly.question.goal import ClassGoal
from ifonly.runtime.deadline import Deadline
from ifonly.solvers.backend import Backend, Limits, Status
from ifonly.solvers.tangents import solve

__all__ = ["worst_vote"]

_MIXES = (0.25, 0.5, 0.75)  # shares of two steepest directions, between which the deepest point of both may lie


def worst_vote(demand: KeepsLead, u: FloatArray, backend: Backend, limits: Limits, deadline: Deadline) -> Worst | None:
    """Return an attack on `u`; None for another ball or form, or where not every number of the ball enters by its value."""
    form = demand.attacked
    numbers = {int(j) for j in np.flatnonzero(demand.reach)}
    if demand.norm != "l2" or not demand.firmer or form is None or not numbers <= form.raw():
        return None
    worst = Worst(True)
    for k in range(len(demand.goal.gaps([Affine()] * form.n_outputs, 0.0))):
        found = _Round(demand, u, sorted(numbers), k).run(backend, limits, deadline)
        if found.point is None and not found.closed:
            return found
        worst = found if found.least < worst.least else worst
    return worst


class _Round:
    """Outer approximation of one ball (Duran and Grossmann 1986), for one gap of the goal."""

    def __init__(self, demand: KeepsLead, u: FloatArray, numbers: list[int], k: int) -> None:
        self.demand, self.u, self.numbers, self.k = demand, u, numbers, k
        self.schema = demand.limits.schema
        self.at = np.array([self.schema.starts[j] for j in numbers])
        self.reach = demand.reach[numbers]
        self.tangents: list[FloatArray] = []

    def run(self, backend: Backend, limits: Limits, deadline: Deadline) -> Worst:
        """Look for a point of the ball whose lead is not enough, until there is none outside of it either."""
        demand, tuning = self.demand, limits.tuning.balls
        for _ in range(tuning.tangents):
            if deadline.passed:
                break
            x, mip = self._program()
            own = replace(limits, cutoff=demand.enough, gap=tuning.gap).within(deadline.left())
            answer = solve(mip.arrays(), backend, own)
            if answer.status is Status.INFEASIBLE or answer.bound >= demand.enough - 0.25 * demand.room:
                return Worst(True)
            if answer.values is None:
                break
            y = x.point(answer.values)
            away = (y[self.at] - self.u[self.at]) / self.reach
            length = float(np.linalg.norm(away))
            point = y if length <= 1.0 else self._onto_the_ball(y, away / length)
            least = self._lead(point)
            if least < demand.enough:
                return Worst(False, *self._deepest(point))
            if length <= 1.0 and self._lead(point, self.demand.form) < demand.enough:
                return Worst(False, least, point)  # at a tie of what is attacked, short of all that is asked for
            if length <= 1.0:
                break  # the program and the form do not agree on a point: nothing is proven
            self.tangents.append(away / length)
        return Worst(False)

    def _program(self) -> tuple[Variables, Mip]:
        form, mip = self._form, Mip()
        x = Variables(mip, self.demand.ball(self.u), self.u, form.cuts(), form.raw())
        mip.minimise(self.demand.goal.gaps(form.embed(mip, x), 0.0)[self.k])
        for normal in self.tangents:
            # normal @ ((y - u) / reach) <= 1: the tangent of the ball at a point of length 1
            parts = ((x.raw(j) - float(self.u[i])) * float(n / r) for j, i, n, r in self._each(normal))
            mip.row(Affine.total(parts), upper=1.0)
        return x, mip

    def _each(self, normal: FloatArray) -> zip[tuple[int, int, float, float]]:
        return zip(self.numbers, self.at, normal, self.reach, strict=True)

    def _onto_the_ball(self, y: FloatArray, normal: FloatArray) -> FloatArray:
        """Return the point in the direction of `y` at which the ball ends; numbers on a grid stay within it."""
        point = y.copy()
        for j, i, n, r in self._each(normal):
            feature, shift = self.schema.features[j], n * r
            assert isinstance(feature, Numeric)
            if feature.step is not None:
                shift = np.sign(shift) * float(grid_floor(feature, np.array([abs(shift)]))[0])
            point[i] = feature.snap(float(self.u[i]) + shift)
        return point

    def _deepest(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the lead at, and the one of a few points of the ball that break the demand most clearly."""
        members, goal = votes_of(self._form), self.demand.goal
        assert isinstance(goal, ClassGoal)

        def leads(rows: FloatArray) -> FloatArray:
            return np.column_stack([m.read.decision.lead(m.read.form(rows), goal.index) for m in members])

        over = np.flatnonzero(leads(point[None, :])[0] < 0.0)
        ends = np.repeat(self.u[None, :], 2 * len(self.at), axis=0)
        ends[np.arange(len(self.at)), self.at] += self.reach
        ends[len(self.at) + np.arange(len(self.at)), self.at] -= self.reach
        up, down = np.split(leads(ends)[:, over], 2)
        slopes = (down - up).T  # per member that went over: the direction in which it goes farther, in half-axes
        size = np.linalg.norm(slopes, axis=1)
        size[size == 0.0] = 1.0
        normals = slopes / size[:, None]
        mixed = [normals[a] * t + normals[b] * (1.0 - t) for a, b in combinations(range(len(over)), 2) for t in _MIXES]
        directions = [
            n / length for n in (*normals, *mixed, normals.sum(axis=0)) if (length := np.linalg.norm(n)) > 0.0
        ]
        rows = np.array([point, *(self._onto_the_ball(self.u, n) for n in directions)])
        broken = lead(self.demand.goal, self._form(rows)) < self.demand.enough
        depth = np.where(leads(rows) < 0.0, -leads(rows), np.inf)
        depth[:, over] /= size
        clear = np.where(broken, depth.min(axis=1), -np.inf)
        best = int(clear.argmax())
        return self._lead(rows[best]), rows[best]

    @property
    def _form(self) -> Form:
        assert self.demand.attacked is not None
        return self.demand.attacked

    def _lead(self, y: FloatArray, form: Form | None = None) -> float:
        return float(lead(self.demand.goal, (form or self._form)(y[None, :]))[0])
