"""Ellipsoids: a linear score under a square of all moves together (Mahalanobis), closed as one convex program.

With ``d`` the moves of the numbers, continuous ones, and jumps of categories beside them:

    min |F d|^2 + costs of jumps   such that   a'd + gains of jumps >= need,   l <= d <= u.

Where no end of the box binds, all numbers together are one slide of a knapsack: a gain of ``t`` costs ``t^2 / kappa`` with
``kappa = a' (F'F)^-1 a``, and is made by ``d = (t / kappa) (F'F)^-1 a``. So the knapsack chooses the jumps. Then the numbers
are solved for what is left to gain, ends of the box included, by an active-set method.

The bound rests on no solver, nor on the method having converged. A square lies above its tangents, so for every ``d0`` and
``price``

    |F d|^2 >= price * gain - |F d0|^2 + sum_j min over l_j <= d_j <= u_j of (c_j - price * a_j) d_j,    c = 2 F'F d0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.events import Built
from ifonly.models.abilities import LinearScores
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.result.values import relative_gap
from ifonly.runtime.tuning import EllipsoidSearch
from ifonly.search.engine import NO_SOLVER, quadratic_only
from ifonly.search.linear.engine import goal_row, jumps_of, one_linear_row
from ifonly.search.linear.knapsack import cheapest_moves
from ifonly.search.linear.moves import Slide
from ifonly.search.progress import Progress
from ifonly.tolerances import BEYOND_THE_THRESHOLD, DUST, LONG_SUM, PAIRWISE_ROUNDINGS

__all__ = ["Ellipsoid"]

BoolArray = npt.NDArray[np.bool_]
Wide = npt.NDArray[np.longdouble]
Root = tuple[FloatArray, bool]  # of a Cholesky factorisation


@dataclass(frozen=True)
class Ellipsoid:
    """Engine for one linear row under a square of all moves together."""

    name: str = "ellipsoid"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the scores are linear, the goal is one row of them, and the numbers that may move are continuous."""
        question = quadratic_only(statement) if isinstance(statement.form, LinearScores) else None
        if question is None or not statement.starts_in(box) or question.most < len(statement.query.schema):
            return False
        schema = statement.query.schema
        free = [f for j, f in enumerate(schema.features) if isinstance(f, Numeric) and not box.is_fixed(j)]
        if len(free) > statement.query.tuning.ellipsoid.most_numbers or any(f.step is not None for f in free):
            return False
        return one_linear_row(question.goal)

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Return the cheapest point, or its best bound and a point near it where the box and jumps stand in the way."""
        question = quadratic_only(statement)
        assert question is not None
        slope, need = goal_row(statement, question.goal)
        numbers = _Numbers.of(statement, box, slope)
        jumps = [mover for _, mover in sorted(jumps_of(statement, box, slope).items())]
        progress.tell(Built(len(numbers.free) + len(jumps), 1))
        whole = numbers.whole()
        if whole is None:
            return Found(Ended.GAVE_UP)
        answer = cheapest_moves(
            [*(jump.moves for jump in jumps), whole],
            need,
            gap=DUST,
            cutoff=progress.limits.cutoff,
            deadline=progress.deadline,
            tuning=statement.query.tuning.knapsack,
        )
        if answer.ended is not Ended.CLOSED:
            return Found(Ended.GAVE_UP)
        if answer.moves is None:
            return Found.nothing(bound=progress.budget)
        u = statement.query.factual.copy()
        for i, move in answer.moves.items():
            if i < len(jumps):
                jumps[i].apply(u, move, box)
        moves, price = numbers.cheapest(need - float(slope @ (u - statement.query.factual)))
        bound = answer.bound if jumps else max(answer.bound, numbers.bound(moves, price, need))
        progress.raise_floor(bound)
        points = np.array([numbers.point(u, moves * (1.0 + share), box) for share in BEYOND_THE_THRESHOLD])
        return self._kept(statement, box, question.goal, progress, points, bound)

    def _kept(
        self, statement: Statement, box: Box, goal: Goal, progress: Progress, points: FloatArray, bound: float
    ) -> Found:
        """Keep the first of some points that meets all demands; closed is what its cost and the bound enclose."""
        met = box.contains(points) & goal.clears(statement.form(points), statement.margin, statement.tie)
        for demand in statement.demands:
            met &= demand.holds(statement.query, points)
        if not met.any():
            return Found(Ended.GAVE_UP)
        u = points[int(met.argmax())]
        cost = float(statement.objective(u[None, :])[0])
        progress.keep(u, cost)
        progress.tell_best(bound)
        if relative_gap(cost, bound) > progress.limits.gap:
            return Found(Ended.GAVE_UP)
        return Found(Ended.CLOSED, u, min(bound, cost), (u,), NO_SOLVER)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The numbers of a question: ``min |F d|^2`` for a gain ``a'd``, between ends `low` and `high` of the moves.

    Attributes
    ----------
    places
        Where the numbers that may move are in the canonical vector.
    free
        Their features.
    factor
        The columns of ``F`` of these numbers.
    """

    places: IntArray
    free: IntArray
    factor: FloatArray
    slope: FloatArray
    low: FloatArray
    high: FloatArray
    tuning: EllipsoidSearch

    @classmethod
    def of(cls, statement: Statement, box: Box, slope: FloatArray) -> _Numbers:
        """Return the numbers that a box leaves free."""
        query, (criterion,) = statement.query, statement.coupled
        coupled, factor = sorted(criterion.couples(query)), criterion.factor(query)
        assert factor is not None
        kept = [k for k, j in enumerate(coupled) if not box.is_fixed(j)]
        free = np.array([coupled[k] for k in kept], dtype=np.int64)
        places = np.asarray(query.schema.starts)[free]
        hat = query.factual[places]
        low, high = box.lower[free] - hat, box.upper[free] - hat
        return cls(places, free, factor[:, kept], slope[places], low, high, query.tuning.ellipsoid)

    def point(self, u: FloatArray, moves: FloatArray, box: Box) -> FloatArray:
        """Carry moves out, within a box."""
        out = u.copy()
        out[self.places] = np.clip(u[self.places] + moves, box.lower[self.free], box.upper[self.free])
        return out

    def whole(self) -> Slide | None:
        """Return all numbers as one slide, as far as the box may let them gain, and no dearer than they are; None: no use.

        ``kappa`` is bounded from above, so that no gain costs less: for ``F'F y = a - r`` it is at most
        ``|F y|^2 + 2 |r'y| + |r|^2 trace((F'F)^-1)``.
        """
        gains = np.maximum(self.slope * self.low, self.slope * self.high)
        reach = float(gains.sum()) * (1.0 + LONG_SUM) if gains.size else 0.0
        if reach <= 0.0:
            return Slide(1.0, 0.0, 0.0, 0.0, None, 1.0)
        try:
            root = cho_factor(self.factor.T @ self.factor)
        except np.linalg.LinAlgError:
            return None
        y = self._refined(root, cho_solve(root, self.slope), self.slope)
        square, r, off = self._square(y, self.slope)
        r = np.abs(r) + off
        spread = 2.0 * float(np.trace(cho_solve(root, np.eye(len(y)))))
        kappa = square + 2.0 * float(r @ np.abs(y)) + float(r @ r) * spread
        return Slide(1.0, 0.0, 0.0, reach, None, (1.0 - LONG_SUM) / kappa)

    def _refined(self, root: Root, d: FloatArray, to: FloatArray, some: BoolArray | slice = slice(None)) -> Wide:
        """Return ``d`` with ``F'F d = to`` in some entries, more digits of it than a double has: iterative refinement."""
        out = d.astype(np.longdouble)
        for _ in range(self.tuning.refinements):
            _, r, _ = self._square(out, to)
            out[some] -= cho_solve(root, r[some])
        return out

    def _square(self, d: Wide, to: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return ``|F d|^2``, ``F'F d - to``, and by how much each entry of the latter may be off.

        In extended precision where the machine has it: a covariance of fewer rows than features is nearly singular, and its
        large terms cancel.
        """
        wide = self.factor.astype(np.longdouble)
        # NumPy adds pairwise along rows: a sum of thousands of terms is off by some dozen roundings, not by thousands.
        inner = (wide * d).sum(axis=1)
        r = (np.ascontiguousarray(wide.T) * inner).sum(axis=1) - to
        size = np.abs(self.factor).T @ (np.abs(self.factor) @ np.abs(d).astype(np.float64)) + np.abs(to)
        off = PAIRWISE_ROUNDINGS * float(np.finfo(np.longdouble).eps) * size + LONG_SUM * np.abs(r).astype(np.float64)
        return float(inner @ inner), np.asarray(r, dtype=np.float64), np.asarray(off)

    def cheapest(self, gain: float) -> tuple[FloatArray, float]:
        """Return the moves that gain so much for least, and the multiplier of the gain: an active-set method.

        Numbers that go beyond an end are held there, and let go where the multiplier of the end has the wrong sign (Nocedal
        and Wright 2006, section 16.5). It stops after some rounds, whether that has settled or not.
        """
        n = len(self.free)
        moves, price, held = np.zeros(n), 0.0, np.zeros(n, dtype=np.bool_)
        quadratic = self.factor.T @ self.factor
        for _ in range(self.tuning.rounds):
            solved = self._solve(quadratic, moves, held, gain)
            if solved is None:
                break
            trial, price = solved
            beyond = (trial < self.low) | (trial > self.high)
            moves = np.clip(trial, self.low, self.high)
            if beyond.any():
                held = held | beyond
                continue
            pull = 2.0 * (quadratic @ moves) - price * self.slope
            wrong = held & np.where(moves <= self.low, pull < 0.0, pull > 0.0)
            if not wrong.any():
                break
            held = held & ~wrong
        return moves, max(price, 0.0)

    def _solve(
        self, quadratic: FloatArray, moves: FloatArray, held: BoolArray, gain: float
    ) -> tuple[FloatArray, float] | None:
        """Return the moves of the numbers that are not held, at the least cost for a gain; None: they cannot gain it."""
        rest = ~held
        if not rest.any():
            return None
        root = cho_factor(quadratic[np.ix_(rest, rest)])
        along = cho_solve(root, self.slope[rest])
        back = cho_solve(root, quadratic[np.ix_(rest, held)] @ moves[held])
        slope = float(self.slope[rest] @ along)
        if slope <= 0.0:
            return None
        price = 2.0 * (gain - float(self.slope[held] @ moves[held]) + float(self.slope[rest] @ back)) / slope
        out = moves.copy()
        out[rest] = 0.5 * price * along - back
        return out, price

    def bound(self, moves: FloatArray, price: float, gain: float) -> float:
        """Return a bound of the cost of this gain, by the tangent at some moves and a multiplier."""
        inside = (moves > self.low) & (moves < self.high)
        quadratic = (self.factor.T @ self.factor)[np.ix_(inside, inside)]
        half = 0.5 * price * self.slope
        touching = moves.astype(np.longdouble)
        if inside.any():
            touching = self._refined(cho_factor(quadratic), moves, half, inside)
        square, pull, off = self._square(touching, half)
        ends = 2.0 * np.minimum(np.minimum(pull * self.low, pull * self.high), 0.0)
        room = 2.0 * off * np.maximum(np.abs(self.low), np.abs(self.high))
        total = price * gain - square + float(ends.sum())
        size = price * abs(gain) + square + float(np.abs(ends).sum())
        return total - float(room.sum()) - LONG_SUM * size
