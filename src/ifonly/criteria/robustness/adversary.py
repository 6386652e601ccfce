"""Adversary and cutting-set method: the point of a ball that hurts most, and the search that ends when there is none.

Cutting-set method (Mutapcic and Boyd 2009; Maragno et al. 2024 for counterfactuals): solve with what is demanded so far,
let the adversary look for the worst point of the ball around the answer, rule that out, and repeat. Every round is a
relaxation, so its bound holds; the last answer is robust, because the adversary's own program has no point left that
flips it. What rules a point out is the outcome under the same shift, which is a copy of the model; and for trees a box
that no answer may lie in (see `ifonly.criteria.robustness.nogo`), which is one row and makes the search finite.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.criteria.robustness.keeps_lead import KeepsLead, lead
from ifonly.criteria.robustness.nogo import far_shift, no_go
from ifonly.criteria.robustness.worst_cell import worst_cell
from ifonly.criteria.robustness.worst_point import worst_point
from ifonly.criteria.robustness.worst_vote import worst_vote
from ifonly.data.schema import Numeric, Schema
from ifonly.models.abilities import distance_from_ties
from ifonly.program.cells import grid_floor
from ifonly.program.mip import Affine, Convex, Mip
from ifonly.program.variables import Variables
from ifonly.question.demand import Demand
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Search, Sought
from ifonly.runtime.deadline import Deadline
from ifonly.solvers.backend import Backend, Limits, Status
from ifonly.solvers.tangents import solve
from ifonly.tolerances import TINY

__all__ = ["Attack", "WrappedSearch", "attack"]

NEVER = Deadline.never()


@dataclass(frozen=True, eq=False)
class Attack:
    """Result of the adversary: none exists, with proof; or a point of the ball that breaks the demand; or out of time.

    Attributes
    ----------
    safe
        Whether no point of the ball breaks the demand, proven.
    point
        A point that does.
    least
        The lead there.
    sure
        Whether nothing was left out. Where a member of a hard vote, or of a median, is tied at a point that does not break
        the demand, the program keeps away from ties, and points next to one were not looked at.
    """

    safe: bool
    point: FloatArray | None = None
    least: float = np.inf
    sure: bool = True


def attack(demand: KeepsLead, u: FloatArray, backend: Backend, limits: Limits, deadline: Deadline = NEVER) -> Attack:
    """Look for the point of the ball around `u` with the least lead, among those whose lead is not enough."""
    deadline = deadline.within(limits.seconds)
    cell = worst_cell(demand, u, deadline)
    if cell is not None:
        return Attack(cell.closed and cell.point is None, cell.point, cell.least)
    point = worst_point(demand.over_ball, u, deadline, limits.tuning.balls, limits.tuning.signs)
    if point is not None:
        return Attack(point.closed and point.point is None, point.point, point.least)
    vote = worst_vote(demand, u, backend, limits, deadline)
    if vote is not None:
        return Attack(vote.closed and vote.point is None, vote.point, vote.least)
    worst = Attack(True)
    for k in range(len(demand.goal.rows())):
        found = _attack_one(demand, u, k, backend, limits, deadline)
        if not found.safe and found.point is None:
            return found  # no time: what the other rows say does not matter
        if not found.safe and (worst.safe or found.least < worst.least):
            worst = found
        elif worst.safe:
            worst = Attack(True, sure=worst.sure and found.sure)
    return worst


def _attack_one(
    demand: KeepsLead, u: FloatArray, k: int, backend: Backend, limits: Limits, deadline: Deadline
) -> Attack:
    """Minimise one gap over the ball; a point that only a loose form admits makes the form finer there."""
    attacked = demand.attacked or demand.form
    form, on_grids, tuning = attacked, False, limits.tuning.balls
    for _ in range(tuning.refinements):
        if deadline.passed:
            break
        mip = Mip()
        x = Variables(mip, demand.ball(u), u, form.cuts(), form.raw())
        mip.minimise(demand.goal.gaps(form.embed(mip, x), 0.0)[k])
        fine = _round(mip, x, demand, u, tuning.fine) if demand.norm == "l2" else {}
        program = mip.arrays()
        if on_grids:
            fine = {}
        for value in fine.values():
            program.integer[value.columns] = False
        own = replace(limits, cutoff=demand.enough, gap=tuning.gap).within(deadline.left())
        answer = solve(program, backend, own)
        sure = distance_from_ties(form) == 0.0
        if answer.status is Status.INFEASIBLE or answer.bound >= demand.over_ball.broken:
            return Attack(True, sure=sure)
        if answer.values is None:
            return Attack(False)
        y = x.point(answer.values)
        for j, value in fine.items():
            y[x.schema.starts[j]] = _towards(x.schema, j, value.value(answer.values), u)
        least = float(lead(demand.goal, attacked(y[None, :]))[0])
        if least < demand.enough:
            return Attack(False, y, least)
        if fine:  # only a point between the grids flips: look on the grids
            on_grids = True
            continue
        finer = form.refined(y)
        if finer is None:
            return Attack(answer.status is Status.OPTIMAL, sure=sure)
        form = finer
    return Attack(False)


def _towards(schema: Schema, j: int, value: float, u: FloatArray) -> float:
    """Return the value of feature `j`'s grid next to `value` on the side of `u`, where the ball is no smaller."""
    feature, hat = schema.features[j], float(u[schema.starts[j]])
    assert isinstance(feature, Numeric)
    if value < hat:
        return feature.snap(hat - float(grid_floor(feature, np.array([hat - value]))[0]))
    return feature.snap(hat + float(grid_floor(feature, np.array([value - hat]))[0]))


def _round(mip: Mip, x: Variables, demand: KeepsLead, u: FloatArray, many: float) -> dict[int, Affine]:
    """Demand ``sum_j ((y_j - u_j) / reach_j)^2 <= 1``: a number per cell where there is no raw value, else tangents.

    The first tangent stands where the lead falls most steeply, which is exact as far as the form is linear. Returns the
    raw values whose grid is so fine that it only gets in the way: without it the ball is a little larger, so that a proof of
    safety holds, and a point that flips is put back on its grid.
    """
    squares, inner, steep = [Affine()], [], []
    slopes = _slopes(demand, u)
    fine: dict[int, Affine] = {}
    for j in map(int, np.flatnonzero(demand.reach)):
        hat, reach = float(u[x.schema.starts[j]]), float(demand.reach[j])
        if x.box.is_fixed(j):
            continue
        if x.is_raw(j):
            inner.append((x.raw(j) - hat) * (1.0 / reach))
            steep.append(-slopes[j])
            feature = x.schema.features[j]
            if isinstance(feature, Numeric) and feature.step is not None and reach >= many * feature.step:
                fine[j] = x.raw(j)
        else:
            squares.append(x.cell_table(j, ((x.cells(j).nearest(hat) - hat) / reach) ** 2))
    total = Affine.total(squares)
    if not inner:
        # sum_j ((y_j - u_j) / reach_j)^2 <= 1, every term constant on a cell
        mip.row(total, upper=1.0)
        return fine

    ball = _within_one(inner) if total.is_constant else _within_one_with(total, inner)
    # sum_j ((y_j - u_j) / reach_j)^2 <= 1, as a convex row
    mip.convex(ball)
    if any(steep):
        # its tangent where the lead falls most steeply
        mip.row(ball.tangent(np.array([0.0, *steep])[-len(ball.inner) :] / np.linalg.norm(steep)), upper=0.0)
    return fine


def _within_one(inner: Sequence[Affine]) -> Convex:
    """``|d| - 1 <= 0``, whose tangents touch the ball."""

    def function(d: FloatArray) -> float:
        return float(np.linalg.norm(d)) - 1.0

    def gradient(d: FloatArray) -> FloatArray:
        return d / max(float(np.linalg.norm(d)), TINY)

    return Convex(tuple(inner), function, gradient)


def _within_one_with(total: Affine, inner: Sequence[Affine]) -> Convex:
    """``d_0 + sum_i d_i^2 - 1 <= 0``, with the squares of cells as ``d_0``."""

    def function(d: FloatArray) -> float:
        return float(d[0] + (d[1:] ** 2).sum() - 1.0)

    def gradient(d: FloatArray) -> FloatArray:
        return np.concatenate([[1.0], 2.0 * d[1:]])

    return Convex((total, *inner), function, gradient)


def _slopes(demand: KeepsLead, u: FloatArray) -> FloatArray:
    """Return by how much the lead rises per reach of each feature, from one end of the ball to the other."""
    ends = np.diag(demand.reach)[demand.reach > 0]
    up, down = (np.array([demand.leads(u[None, :], sign * s)[0] for s in ends]) for sign in (1.0, -1.0))
    slopes = np.zeros(len(demand.reach))
    slopes[demand.reach > 0] = 0.5 * (up - down)
    return slopes


@dataclass(frozen=True)
class WrappedSearch:
    """Search that is wrapped by the cutting-set method: search, attack, and demand more until no attack succeeds."""

    search: Search
    backend: Backend

    def __call__(self, statement: Statement, limits: Limits, deadline: Deadline) -> Sought:
        """Return the first answer that no attack breaks, and all that was demanded for it."""
        return CuttingSet(statement, self.search, self.backend, limits, deadline).run()


class CuttingSet:
    """Cutting-set method (Mutapcic and Boyd 2009): solve, attack the answer, add the violated row, until none is violated.

    A search may use the time up to the deadline but for what the proof of its answer will take; so an answer that is
    found at the last moment can still be proven.
    """

    def __init__(
        self, statement: Statement, search: Search, backend: Backend, limits: Limits, deadline: Deadline
    ) -> None:
        self.statement, self.search, self.backend, self.limits = statement, search, backend, limits
        self.deadline, self.tuning = deadline, limits.tuning.balls
        self.bound = -np.inf
        self.longest: float | None = None

    def run(self) -> Sought:
        """Return the first answer that no attack breaks."""
        lifted = False
        while True:
            found = self.search(self.statement, self.limits, self._for_search()).found
            self.bound = max(self.bound, found.bound)
            if found.u is None:
                return Sought(self._unfinished(found), self.statement)
            attacks = self._attacks(found.u)
            if all(a.safe for a in attacks):
                return Sought(self._robust(found, sure=all(a.sure for a in attacks)), self.statement)
            if found.interrupted or all(a.point is None for a in attacks) or self.deadline.passed:
                return Sought(self._unfinished(found), self.statement)
            self.statement = self._stricter(found.u, attacks)
            if not lifted:
                lifted = True
                self._know(found)
                self._lift(found.u, attacks)

    def _for_search(self) -> Deadline:
        """Return when a search must end, so that there is time to prove what it finds."""
        left = self.deadline.left()
        if not np.isfinite(left):
            return self.deadline
        reserved = self.tuning.reserved * left
        if self.longest is not None:
            reserved = min(reserved, self.tuning.as_long * self.longest)
        return self.deadline.earlier(reserved)

    def _balls(self) -> list[KeepsLead]:
        return [d for d in self.statement.demands if isinstance(d, KeepsLead) and d.reach.any()]

    def _attacks(self, u: FloatArray) -> list[Attack]:
        """Attack the point, as it will be returned, for every ball."""
        balls = self._balls()
        if any(np.array_equal(u, known, equal_nan=True) for ball in balls for known in ball.known):
            return [Attack(True) for _ in balls]
        row, began = self._returned(u), time.perf_counter()
        found = [attack(ball, row, self.backend, self.limits, self.deadline) for ball in balls]
        self.longest = max(self.longest or 0.0, time.perf_counter() - began)
        return found

    def _returned(self, u: FloatArray) -> FloatArray:
        stored = self.statement.query.schema.stored(u)
        return np.asarray(self.statement.with_consequences(stored[None, :], by_model=True)[0])

    def _robust(self, found: Found, *, sure: bool) -> Found:
        """Return an answer that no attack breaks; where the adversary left points out, nothing about it is proven."""
        assert found.u is not None
        own = replace(found, pool=(found.u,))
        return own if sure else replace(own, ended=Ended.LIMIT, bound=-np.inf)

    def _unfinished(self, found: Found) -> Found:
        """Return the best point known to be robust, if there is one, with the bound of all rounds."""
        if found.infeasible:
            return found
        ended = Ended.LIMIT if found.ended is Ended.CLOSED else found.ended
        known = [u for ball in self._balls() for u in ball.known]
        if not known:
            return Found(ended, bound=self.bound)
        best = known[int(np.argmin(self.statement.objective(np.array(known))))]
        return Found(ended, best, self.bound, (best,))

    # -- ruling out ---------------------------------------------------------------------------------------------
    def _stricter(self, u: FloatArray, attacks: Sequence[Attack]) -> Statement:
        """Return the statement with what rules out each point that was found."""
        row, costs = self._returned(u), self.statement.costs()
        new: dict[int, Demand] = {}
        for ball, found in zip(self._balls(), attacks, strict=True):
            if found.point is None:
                continue
            box = no_go(ball, self.statement.query, costs, row, found.point)
            shift = None
            if box is None or len(ball.shifts) < (
                self.tuning.copies if ball.norm == "linf" else self.tuning.copies_round
            ):
                shift = far_shift(ball, self.statement.query, costs, row, found.point)
            new[id(ball)] = ball.stricter(shift, box)
        return self._with(new)

    def _with(self, new: dict[int, Demand]) -> Statement:
        return replace(self.statement, demands=tuple(new.get(id(d), d) for d in self.statement.demands))

    def _know(self, found: Found) -> None:
        """Keep a point that an engine found before it gave up, if no attack breaks it: it bounds all further rounds."""
        assert found.u is not None
        for u in found.pool[: self.tuning.handed]:
            if not np.array_equal(u, found.u, equal_nan=True) and all(a.safe for a in self._attacks(u)):
                first = self._balls()[0]
                self.statement = self._with({id(first): replace(first, known=(*first.known, u))})

    def _lift(self, u: FloatArray, attacks: Sequence[Attack]) -> None:
        """Look for a robust point by asking for a larger margin at the answer alone: it bounds all further rounds."""
        balls, margin = self._balls(), self.statement.margin
        if balls[0].firmer:
            self._lift_votes(balls[0])
            return
        for _ in range(self.tuning.lifts):
            behind = [b.enough - a.least for b, a in zip(balls, attacks, strict=True) if a.point is not None]
            if not behind:
                break
            margin += self.tuning.lifted * max(behind)
            limits = replace(self.limits, gap=max(self.limits.gap, self.tuning.lift_gap))
            found = self.search(replace(self.statement, margin=margin), limits, self._for_search()).found
            if found.u is None or self.deadline.passed:
                break
            u, attacks = found.u, self._attacks(found.u)
            if all(a.safe for a in attacks):
                self.statement = self._with({id(balls[0]): replace(balls[0], known=(*balls[0].known, u))})
                break

    def _lift_votes(self, ball: KeepsLead) -> None:
        """Look for a robust point by asking for members that lead by what the ball may take from them."""
        limits = replace(self.limits, gap=max(self.limits.gap, self.tuning.lift_gap))
        for form in ball.firmer:
            found = self.search(replace(self.statement, form=form), limits, self._for_search()).found
            if self.deadline.passed:
                return
            if found.u is not None and all(a.safe for a in self._attacks(found.u)):
                first = self._balls()[0]
                self.statement = self._with({id(first): replace(first, known=(*first.known, found.u))})
