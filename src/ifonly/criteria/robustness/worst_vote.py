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
from ifonly.tolerances import FEASIBILITY, TINY

__all__ = ["worst_vote"]


def worst_vote(demand: KeepsLead, u: FloatArray, backend: Backend, limits: Limits, deadline: Deadline) -> Worst | None:
    """Return an attack on `u`; None for another ball or form, or where it could not tell."""
    form = demand.attacked
    numbers = {int(j) for j in np.flatnonzero(demand.reach)}
    if demand.norm != "l2" or not demand.firmer or form is None or not numbers <= form.raw():
        return None
    worst = Worst(True)
    for k in range(len(demand.goal.rows())):
        found = _Round(demand, u, sorted(numbers), k, limits.tuning.balls.mixes).run(backend, limits, deadline)
        if found.point is None and not found.closed:
            return found if deadline.passed else None  # what it could not tell, the general adversary may
        worst = found if found.least < worst.least else worst
    return worst


class _Round:
    """Outer approximation of one ball (Duran and Grossmann 1986), for one gap of the goal."""

    def __init__(self, demand: KeepsLead, u: FloatArray, numbers: list[int], k: int, mixes: int) -> None:
        self.demand, self.u, self.numbers, self.k = demand, u, numbers, k
        self.schema = demand.limits.schema
        self.at = np.array([self.schema.starts[j] for j in numbers])
        self.reach, self.ball = demand.reach[numbers], demand.ball(u)
        self.tangents: list[FloatArray] = []
        self.mixes = mixes

    def run(self, backend: Backend, limits: Limits, deadline: Deadline) -> Worst:
        """Look for a point of the ball whose lead is not enough, until there is none outside of it either."""
        demand, tuning = self.demand, limits.tuning.balls
        for _ in range(tuning.tangents):
            if deadline.passed:
                break
            x, mip = self._program()
            own = replace(limits, cutoff=demand.enough, gap=tuning.gap).within(deadline.left())
            answer = solve(mip.arrays(), backend, own)
            if answer.status is Status.INFEASIBLE or answer.bound >= demand.over_ball.broken:
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
            if length <= 1.0 + FEASIBILITY:  # a solver sees no farther
                # at a tie of what is attacked, and short of all that is asked for; else program and form do not agree
                short = self._lead(point, demand.form) < demand.enough
                return Worst(False, *self._deepest(point)) if short else Worst(False)
            self.tangents.append(away / length)
        return Worst(False)

    def _program(self) -> tuple[Variables, Mip]:
        form, mip = self._form, Mip()
        x = Variables(mip, self.ball, self.u, form.cuts(), form.raw())
        mip.minimise(self.demand.goal.gaps(form.embed(mip, x), 0.0)[self.k])
        for normal in self.tangents:
            parts = ((x.raw(j) - float(self.u[i])) * float(n / r) for j, i, n, r in self._each(normal))
            # normal @ ((y - u) / reach) <= 1: the tangent of the ball at a point of length 1
            mip.row(Affine.total(parts), upper=1.0)
        return x, mip

    def _each(self, normal: FloatArray) -> zip[tuple[int, int, float, float]]:
        return zip(self.numbers, self.at, normal, self.reach, strict=True)

    def _onto_the_ball(self, y: FloatArray, normal: FloatArray) -> FloatArray:
        """Return the point in a direction at which the ball ends, or the bounds: a number drawn in stays in the ball."""
        point = y.copy()
        for j, i, n, r in self._each(normal):
            feature, shift = self.schema.features[j], n * r
            assert isinstance(feature, Numeric)
            if feature.step is not None:
                shift = np.sign(shift) * float(grid_floor(feature, np.array([abs(shift)]))[0])
            point[i] = np.clip(feature.snap(float(self.u[i]) + shift), self.ball.lower[j], self.ball.upper[j])
        return point

    def _deepest(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the lead at, and the one of many points of the ball at which the members that it takes are farthest over."""
        rows = np.array([point])
        slopes = self._slopes()
        over = np.flatnonzero(self._gaps(rows)[0] < 0.0)
        normals = slopes[over]
        pairs = [(normals[a], normals[b]) for a, b in combinations(range(len(over)), 2)]
        shares = np.linspace(0.0, 1.0, self.mixes + 1)[:, None]
        mixed = [n * shares + m * (1.0 - shares) for n, m in pairs] or [normals]
        best = self._clearest(rows, np.concatenate(mixed))
        around = (best[self.at] - self.u[self.at]) / self.reach
        # once more, more finely, between the best and the neighbours that it had
        steps = np.linspace(-1.0, 1.0, self.mixes + 1)[:, None] / self.mixes
        finer = [around + steps * (n - m) for n, m in pairs] or [normals]
        best = self._clearest(best[None, :], np.concatenate(finer))
        return self._lead(best, self.demand.form), best

    def _clearest(self, rows: FloatArray, directions: FloatArray) -> FloatArray:
        """Return the row, or the point in one of the directions, that takes the members it needs farthest beyond ties."""
        length = np.linalg.norm(directions, axis=1)
        unit = directions[length > 0.0] / length[length > 0.0, None]
        rows = np.concatenate([rows, *(self._onto_the_ball(self.u, n)[None, :] for n in unit)])
        depth = -self._leads(rows)
        broken = lead(self.demand.goal, self.demand.form(rows)) < self.demand.enough
        needed = int((depth[broken] > 0.0).sum(axis=1).min())
        clear = np.where(broken, np.sort(depth, axis=1)[:, -max(needed, 1)], -np.inf)
        return np.asarray(rows[int(clear.argmax())])

    def _leads(self, rows: FloatArray) -> FloatArray:
        """Return by how much each member votes for the wanted class, in units of the steepest change of it over the ball."""
        return np.minimum.reduceat(self._gaps(rows), self.firsts, axis=1)

    def _gaps(self, rows: FloatArray) -> FloatArray:
        """Return the leads of the wanted class over each other one, member by member."""
        goal = self.demand.goal
        assert isinstance(goal, ClassGoal)
        columns = []
        for member in votes_of(self.demand.form):
            for pair, gap in zip(member.pairs(), member.gaps()(rows).T, strict=True):
                if goal.index in pair:
                    columns.append(gap if pair[0] == goal.index else -gap)
        return np.column_stack(columns) / self.size

    def _slopes(self) -> FloatArray:
        """Return per lead the direction in which it falls, in half-axes, and note how steeply: exact for linear members."""
        members, n = votes_of(self.demand.form), len(self.at)
        others = [m.n_outputs - 1 for m in members]
        self.firsts, self.size = np.cumsum([0, *others])[:-1], np.ones(sum(others))
        ends = np.repeat(self.u[None, :], 2 * n, axis=0)
        ends[np.arange(n), self.at] += self.reach
        ends[n + np.arange(n), self.at] -= self.reach
        up, down = np.split(self._gaps(ends), 2)
        slopes = (down - up).T
        self.size = np.maximum(np.linalg.norm(slopes, axis=1), TINY)
        return np.asarray(slopes / self.size[:, None])

    @property
    def _form(self) -> Form:
        assert self.demand.attacked is not None
        return self.demand.attacked

    def _lead(self, y: FloatArray, form: Form | None = None) -> float:
        return float(lead(self.demand.goal, (form or self._form)(y[None, :]))[0])
