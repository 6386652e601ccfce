"""Confirmation of mixed-integer verdicts: points are repaired, and an end is confirmed by a second setting.

A solver's point keeps its rows to 1e-6 and its integers to 1e-6, which a large constant turns into any error. So its integers
are rounded and fixed, and the continuous rest is solved anew, to 1e-9 and a little inside every inequality. A solver's
"optimal" or "infeasible" is a claim about points nobody sees; it counts only after the same program, with everything
above the best repaired point cut off, was found empty on another way as well (no presolve, another seed).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from ifonly.arrays import FloatArray, IntArray
from ifonly.program.mip import MipArrays
from ifonly.solvers.backend import Backend, IncumbentHook, Limits, Solution, Status
from ifonly.solvers.linear import solve_linear
from ifonly.tolerances import FEASIBILITY, INSIDE, LP_EXACT

__all__ = ["RESOLUTION", "Repair", "repaired", "solve_trusted", "with_fixed_integers", "without_assignment"]

RESOLUTION = FEASIBILITY  # of a scaled objective, whose size is about 1,000: what branch and bound does not tell apart


def solve_trusted(
    program: MipArrays, backend: Backend, limits: Limits, on_incumbent: IncumbentHook | None = None
) -> Solution:
    """Solve a scaled linear program with integers; "optimal" and "infeasible" are confirmed."""
    if not program.integer.any():
        return _continuous(program, limits)
    return _Trial(program, backend, limits, on_incumbent).run()


@dataclass(frozen=True, slots=True)
class Repair:
    """A point with given integers, exact to the rounding of floats; or none, which may be proven (`empty`)."""

    point: FloatArray | None = None
    empty: bool = False


def repaired(program: MipArrays, values: FloatArray, limits: Limits) -> Repair:
    """Return the best point with the integers of `values`."""
    whole = program.integer
    near = np.where(whole, np.round(values), np.clip(values, program.lower, program.upper))
    if program.violation(near) <= LP_EXACT and not _is_open(program):
        return Repair(near)
    rest = with_fixed_integers(program, near)
    apart = program.row_upper - program.row_lower > 2.0 * (INSIDE + INSIDE)  # as much between them as on either side
    room = np.where(apart, INSIDE, 0.0)
    answer = Solution(Status.FAILED)
    for inside in (room, np.zeros_like(room)):
        tighter = replace(rest, row_lower=program.row_lower + inside, row_upper=program.row_upper - inside)
        answer = solve_linear(tighter, replace(limits, cutoff=np.inf), exact=True)
        if answer.values is not None:
            return Repair(np.where(whole, near, np.clip(answer.values, program.lower, program.upper)))
    return Repair(empty=answer.status is Status.INFEASIBLE)


def with_fixed_integers(program: MipArrays, values: FloatArray) -> MipArrays:
    """Return the linear program that is left when the integer columns are fixed."""
    whole = program.integer
    lower, upper = np.where(whole, values, program.lower), np.where(whole, values, program.upper)
    return replace(program, lower=lower, upper=upper, integer=np.zeros_like(whole))


def _is_open(program: MipArrays) -> bool:
    """Whether continuous columns carry a cost of their own, so that fixing the integers leaves something to gain."""
    return bool((program.cost[~program.integer] != 0.0).any())


def _continuous(program: MipArrays, limits: Limits) -> Solution:
    """Solve a program without integers: its bound is safe, its point moved inside its rows."""
    answer = solve_linear(program, limits)
    if answer.values is None:
        return answer
    point = repaired(program, answer.values, limits).point
    if point is None:
        return answer
    objective = program.objective(point)
    return replace(answer, values=point, objective=objective, bound=min(answer.bound, objective))


@dataclass
class _Trial:
    """One program: the first setting, then the other one on what would be better, until they agree."""

    program: MipArrays
    backend: Backend
    limits: Limits
    on_incumbent: IncumbentHook | None
    best: FloatArray | None = None
    value: float = np.inf
    pool: list[tuple[float, FloatArray]] = field(default_factory=list)

    def run(self) -> Solution:
        """Return the best point and what two settings say about it."""
        # what is kept back is for the repair of a point that comes at the last moment
        tuning, seconds = self.limits.tuning.solving, self.limits.seconds
        deadline = time.perf_counter() + seconds - min(tuning.repair_seconds, tuning.repair_share * seconds)
        whole = np.flatnonzero(self.program.integer)
        second, bound = False, np.inf
        for _ in range(tuning.rounds):
            left = self.limits.within(deadline - time.perf_counter())
            tell = None if second else self.on_incumbent
            answer = self.backend.solve(self.program, replace(left, cutoff=self._cutoff(), second_setting=second), tell)
            if answer.status is Status.INFEASIBLE and second:
                return self._closed()
            bound = min(bound, answer.bound)
            if answer.status not in (Status.OPTIMAL, Status.INFEASIBLE):
                self._take(answer, left)
                return self._open(answer, bound)
            known = self._cutoff()
            repair = self._take(answer, left)
            if self._is_least():
                return self._closed()
            if answer.values is None or self._cutoff() < known:
                second = True
            elif repair.empty or self._is_pruned(answer.values, left):
                # only the tolerances make this assignment look better than the best known
                self.program = without_assignment(self.program, answer.values, whole)
            else:
                break
        return self._open(Solution(Status.FEASIBLE), bound)

    def _cutoff(self) -> float:
        """Return what a point must stay below to be better than the best known by more than the gap."""
        if self.best is None:
            return self.limits.cutoff
        return self.value - max(0.5 * self.limits.gap * abs(self.value), RESOLUTION)

    def _take(self, answer: Solution, left: Limits) -> Repair:
        """Repair the points of an answer and keep the best; return what became of its own best point."""
        if answer.values is None:
            return Repair()
        repair = repaired(self.program, answer.values, left)
        for _, values in answer.pool[-3:-1] if repair.point is None else ():
            self._keep(repaired(self.program, _padded(values, self.program.n_columns), left).point)
        self._keep(repair.point)
        self.pool += answer.pool
        return repair

    def _is_pruned(self, values: FloatArray, left: Limits) -> bool:
        """Whether no point with the integers of `values` is better than the best known, by a safe bound."""
        rest = with_fixed_integers(self.program, np.round(values))
        return solve_linear(rest, replace(left, cutoff=np.inf)).bound >= self._cutoff()

    def _is_least(self) -> bool:
        """Whether the best point costs no more than the bounds of the columns alone say."""
        ends = self.program.cost * self.program.lower, self.program.cost * self.program.upper
        least = float(np.where(self.program.cost == 0.0, 0.0, np.minimum(*ends)).sum()) + self.program.offset
        return self.best is not None and self._cutoff() <= least

    def _keep(self, point: FloatArray | None) -> None:
        if point is not None and self.program.objective(point) < self.value:
            self.best, self.value = point, self.program.objective(point)

    def _closed(self) -> Solution:
        if self.best is None or self.value > self.limits.cutoff:
            return Solution(Status.INFEASIBLE, bound=np.inf)
        bound = min(self._cutoff(), self.value)
        return Solution(Status.OPTIMAL, self.best, self.value, bound, self._pool())

    def _open(self, answer: Solution, bound: float) -> Solution:
        if self.best is None:
            status = Status.OUT_OF_TIME if answer.status in (Status.OPTIMAL, Status.FEASIBLE) else answer.status
            return Solution(status, bound=bound if np.isfinite(bound) else -np.inf, interrupted=answer.interrupted)
        kept = self._pool()
        return Solution(
            Status.FEASIBLE, self.best, self.value, min(bound, self.value), kept, interrupted=answer.interrupted
        )

    def _pool(self) -> tuple[tuple[float, FloatArray], ...]:
        assert self.best is not None
        return (*self.pool, (self.value, self.best))


def _padded(values: FloatArray, n: int) -> FloatArray:
    return np.concatenate([values, np.zeros(n - len(values))]) if len(values) < n else values


def without_assignment(program: MipArrays, values: FloatArray, whole: IntArray) -> MipArrays:
    """Return the program without one assignment of some integer columns: one of them has to differ.

    With ``z`` the assignment: ``sum over ones of (1 - v) + sum over zeros of v + sum over others of (below + above) >= 1``,
    where the 0/1 columns ``below`` and ``above`` of an integer column with ``l <= v <= u`` obey

        v + (u - z + 1) below <= u,        v - (z + 1 - l) above >= l.
    """
    z = np.round(values[whole])
    binary = (program.lower[whole] >= 0.0) & (program.upper[whole] <= 1.0)
    other, n = whole[~binary], program.n_columns
    k = len(other)
    below, above = n + np.arange(k), n + k + np.arange(k)
    on = z[binary] > 0.5
    low, high, at = program.lower[other], program.upper[other], z[~binary]
    rows = np.arange(k)
    entries = [
        (np.zeros(len(on), dtype=np.int64), whole[binary], np.where(on, -1.0, 1.0)),
        (np.zeros(2 * k, dtype=np.int64), np.concatenate([below, above]), np.ones(2 * k)),
        (1 + rows, other, np.ones(k)),
        (1 + rows, below, high - at + 1.0),
        (1 + k + rows, other, np.ones(k)),
        (1 + k + rows, above, -(at + 1.0 - low)),
    ]
    row, column, value = (np.concatenate([e[i] for e in entries]) for i in range(3))
    block = sparse.csr_matrix((value, (row, column)), shape=(1 + 2 * k, n + 2 * k))
    wide = sparse.csr_matrix(sparse.hstack([program.matrix, sparse.csr_matrix((program.n_rows, 2 * k))]))
    return replace(
        program,
        cost=np.append(program.cost, np.zeros(2 * k)),
        lower=np.append(program.lower, np.zeros(2 * k)),
        upper=np.concatenate([program.upper, at > low, at < high]).astype(np.float64),
        integer=np.append(program.integer, np.ones(2 * k, dtype=np.bool_)),
        matrix=sparse.csr_matrix(sparse.vstack([wide, block])),
        row_lower=np.concatenate([program.row_lower, [1.0 - float(on.sum())], np.full(k, -np.inf), low]),
        row_upper=np.concatenate([program.row_upper, [np.inf], high, np.full(k, np.inf)]),
        names=(*program.names, *(f"differs_{i}" for i in range(2 * k))),
    )
