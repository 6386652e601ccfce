"""Lowering by tangents, the door to all solvers: programs are scaled, made linear, solved, and their verdicts confirmed.

Squares in the objective and convex rows become tangents, added until the gap is closed. Outer approximation (Duran and
Grossmann 1986): every tangent of a convex function lies below it, so the linear program with any set of tangents is a
relaxation and its bound is valid; the true objective at a solution is an upper bound. After each mixed-integer solve the
integers are fixed and the continuous rest is solved to its own optimum, whose tangents make that assignment exact, so no
assignment is visited twice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from ifonly.arrays import FloatArray
from ifonly.program.mip import Affine, MipArrays, Square
from ifonly.program.scaling import Balanced, balance, row_near_one
from ifonly.solvers.backend import Backend, Capability, IncumbentHook, Limits, Solution, Status
from ifonly.solvers.linear import solve_linear
from ifonly.solvers.trusted import RESOLUTION, repaired, solve_trusted, with_fixed_integers, without_assignment
from ifonly.tolerances import DUST, LP_ROOM, SAME_POINT

__all__ = ["relaxation", "solve"]

_LIFT = 2.0**6  # of the entries of tangents: a solver keeps a row to 1e-6, and a square is wanted to less
_LEAST_CUT = DUST  # of the height of a square, which is 1 at most: finer cuts would be found again and again


def solve(
    program: MipArrays,
    backend: Backend,
    limits: Limits,
    on_incumbent: IncumbentHook | None = None,
) -> Solution:
    """Solve any program: directly when it is linear, else by tangents; points and costs come back in its own units."""
    deadline = time.perf_counter() + limits.seconds
    answer = _solve_balanced(program, backend, limits, on_incumbent)
    for _ in range(limits.tuning.solving.rescalings):
        open_ = answer.values is not None and answer.objective - answer.bound > limits.gap * abs(answer.objective)
        if not open_ or answer.interrupted or not program.squares:
            break
        smaller = _cheaper_than(program, answer.objective, limits.tuning.solving.narrower)
        if smaller is None:
            break
        # Squares that are small beside what their box allows are lost in the tolerances: count from a smaller box.
        program, known = smaller, answer
        left = replace(limits, cutoff=min(limits.cutoff, known.objective)).within(deadline - time.perf_counter())
        answer = _solve_balanced(program, backend, left, on_incumbent)
        if answer.values is None or answer.objective >= known.objective:
            closed = answer.status is Status.INFEASIBLE
            bound = known.objective * (1.0 - limits.gap) if closed else max(known.bound, answer.bound)
            status = Status.OPTIMAL if closed or answer.status is Status.OPTIMAL else Status.FEASIBLE
            answer = replace(known, status=status, bound=min(bound, known.objective), interrupted=answer.interrupted)
    return answer


def _solve_balanced(
    program: MipArrays, backend: Backend, limits: Limits, on_incumbent: IncumbentHook | None
) -> Solution:
    balanced = balance(program, limits.cutoff)
    inner = replace(limits, cutoff=balanced.scaled_cost(limits.cutoff))
    tell = None if on_incumbent is None else _translated(balanced, on_incumbent)
    scaled = balanced.program
    if program.convex or program.squares:
        return _restored(balanced, program, _Loop(scaled, backend, inner, tell).run())
    if Capability.PROVES in backend.capabilities:
        return _restored(balanced, program, backend.solve(scaled, inner, tell))
    return _restored(balanced, program, solve_trusted(scaled, backend, inner, tell))


def _cheaper_than(program: MipArrays, value: float, share: float) -> MipArrays | None:
    """Return the program with the bounds that a cost of at most `value` leaves, or None if they are hardly smaller.

    If the affine part costs at least ``L`` within its bounds, ``w inner^2 <= value - L``; for an inner part of one column
    that is an interval of the column.
    """
    ends = program.cost * program.lower, program.cost * program.upper
    least = float(np.where(program.cost == 0.0, 0.0, np.minimum(*ends)).sum()) + program.offset
    if not np.isfinite(least) or not np.isfinite(value):
        return None
    lower, upper = program.lower.copy(), program.upper.copy()
    for square in program.squares:
        if square.inner.columns.size != 1 or square.weight <= 0.0 or square.inner.values[0] == 0.0:
            continue
        j, slope = int(square.inner.columns[0]), float(square.inner.values[0])
        reach = np.sqrt(max(value - least, 0.0) / square.weight) * (1.0 + DUST)
        a, b = sorted(((-reach - square.inner.constant) / slope, (reach - square.inner.constant) / slope))
        if program.integer[j]:
            a, b = np.floor(a), np.ceil(b)
        lower[j], upper[j] = max(lower[j], a), min(upper[j], b)
    shrunk = (upper - lower) < share * (program.upper - program.lower)
    return replace(program, lower=lower, upper=upper) if shrunk.any() and (lower <= upper).all() else None


def relaxation(program: MipArrays, limits: Limits) -> Solution:
    """Solve a linear program with integers without them; the bound is safe, in the program's own units."""
    balanced = balance(program, limits.cutoff)
    inner = replace(limits, cutoff=balanced.scaled_cost(limits.cutoff))
    loose = replace(balanced.program, integer=np.zeros_like(program.integer))
    return _restored(balanced, program, solve_linear(loose, inner))


def _translated(balanced: Balanced, on_incumbent: IncumbentHook) -> IncumbentHook:
    def tell(objective: float, bound: float, values: FloatArray) -> None:
        on_incumbent(balanced.cost(objective), balanced.cost(bound), balanced.original(values))

    return tell


def _restored(balanced: Balanced, program: MipArrays, answer: Solution) -> Solution:
    """Return an answer of the scaled program as one of the program itself."""
    values = None if answer.values is None else balanced.original(answer.values)
    objective = np.inf if values is None else program.objective(values)
    pool = tuple((balanced.cost(cost), balanced.original(point)) for cost, point in answer.pool)
    bound = min(balanced.cost(answer.bound), objective)
    return replace(answer, values=values, objective=objective, bound=bound, pool=pool)


@dataclass
class _Loop:
    """One outer-approximation run; what it has found so far survives an interrupt at any moment."""

    program: MipArrays
    backend: Backend
    limits: Limits
    on_incumbent: IncumbentHook | None
    best: FloatArray | None = None
    value: float = np.inf
    bound: float = -np.inf
    pool: list[tuple[float, FloatArray]] = field(default_factory=list)

    def run(self) -> Solution:
        """Alternate between the relaxation with integers and the exact continuous rest."""
        self.deadline = time.perf_counter() + self.limits.seconds
        try:
            return self._alternate()
        except KeyboardInterrupt:  # between two solves
            return self._stopped(Solution(Status.INTERRUPTED, interrupted=True))

    def _left(self) -> Limits:
        return self.limits.within(self.deadline - time.perf_counter())

    def _alternate(self) -> Solution:
        whole = np.flatnonzero(self.program.integer)
        seen: FloatArray | None = None
        relaxed = _with_epigraphs(self.program)
        relaxed = _add_rows(relaxed, self._opening_tangents(relaxed))
        for _ in range(self.limits.tuning.solving.tangent_rounds):
            answer = self._relaxation(relaxed, self._left())
            if answer.status is Status.INFEASIBLE:
                return self._exhausted(relaxed)
            self.bound = max(self.bound, min(answer.bound, self.value))
            if self._is_closed():
                answer = self._second_opinion(relaxed)
                if answer.status is Status.INFEASIBLE:
                    return Solution(Status.OPTIMAL, self.best, self.value, self.bound, tuple(self.pool))
                self.bound = min(self.bound, answer.bound)
            if answer.values is None:
                return self._stopped(answer)
            rows, known = relaxed.n_rows, self.value
            again = seen is not None and np.allclose(answer.values, seen, **SAME_POINT)
            stuck = again and self.best is not None
            seen = answer.values if len(answer.values) == relaxed.n_columns else None
            relaxed = self._tightened_at_integers(relaxed, answer.values)
            if (relaxed.n_rows == rows or stuck) and self.value >= known:  # only the tolerances make it look better
                if not self._is_beaten(relaxed, answer.values):
                    return self._stopped(answer)
                relaxed, seen = without_assignment(relaxed, answer.values, whole), None
            if answer.status is not Status.OPTIMAL:
                return self._stopped(answer)
        return self._stopped(Solution(Status.OUT_OF_TIME))

    def _is_beaten(self, relaxed: MipArrays, values: FloatArray) -> bool:
        """Whether no point with these integers is better than the best known, by a safe bound."""
        if not relaxed.integer.any() or Capability.PROVES in self.backend.capabilities:
            return False
        rest = solve_linear(with_fixed_integers(relaxed, np.round(values)), replace(self._left(), cutoff=np.inf))
        return rest.bound >= self.value - self._gap()

    def _is_closed(self) -> bool:
        return self.best is not None and self.value - self.bound <= self._gap()

    def _second_opinion(self, relaxed: MipArrays) -> Solution:
        """Ask on another way whether something better than the best known is left; none, where bounds are safe."""
        if not relaxed.integer.any() or Capability.PROVES in self.backend.capabilities:
            return Solution(Status.INFEASIBLE)
        cutoff = self.value - self._gap()
        return self.backend.solve(relaxed, replace(self._left(), cutoff=cutoff, second_setting=True))

    def _relaxation(self, relaxed: MipArrays, limits: Limits) -> Solution:
        """Solve the program with the tangents so far; without integers, its bound is safe."""
        if relaxed.integer.any() or Capability.PROVES in self.backend.capabilities:
            return self.backend.solve(relaxed, limits)
        return solve_linear(relaxed, limits, exact=True)

    def _gap(self) -> float:
        return max(self.limits.gap * abs(self.value), RESOLUTION)

    def _exhausted(self, relaxed: MipArrays) -> Solution:
        """Nothing is left below the cut-off: what was found within it is optimal, what lies above does not count."""
        if relaxed.integer.any() and Capability.PROVES not in self.backend.capabilities:
            answer = self.backend.solve(relaxed, replace(self._left(), second_setting=True))
            if answer.status is not Status.INFEASIBLE:
                # One setting says that nothing is left, the other that nothing below this bound is: that much they agree on.
                self.bound = min(answer.bound, self.value)
                if not self._is_closed() or self.value > self.limits.cutoff:
                    return self._stopped(replace(answer, status=Status.OUT_OF_TIME))
                return Solution(Status.OPTIMAL, self.best, self.value, self.bound, tuple(self.pool))
        if self.best is None or self.value > self.limits.cutoff:
            return Solution(Status.INFEASIBLE, bound=np.inf)
        return Solution(Status.OPTIMAL, self.best, self.value, self.value, tuple(self.pool))

    def _stopped(self, answer: Solution) -> Solution:
        if self.best is None:  # a point of the relaxation alone is none of the program
            ended = Status.OUT_OF_TIME if answer.status in (Status.OPTIMAL, Status.FEASIBLE) else answer.status
            ended = Status.INTERRUPTED if answer.interrupted else ended
            return Solution(ended, bound=self.bound, interrupted=answer.interrupted)
        pool = tuple(self.pool)
        return Solution(Status.FEASIBLE, self.best, self.value, self.bound, pool, interrupted=answer.interrupted)

    def _opening_tangents(self, relaxed: MipArrays) -> list[tuple[Affine, float]]:
        """A few tangents per square, so that the first relaxation already has the right shape."""
        rows: list[tuple[Affine, float]] = []
        n, shares = self.program.n_columns, self.limits.tuning.solving.opening
        for k, square in enumerate(self.program.squares):
            low, high = _range(square.inner, relaxed)
            places = np.unique([*(low * s for s in shares), *(high * s for s in reversed(shares))])
            rows += [(_epigraph_row(square, float(at), n + k), 0.0) for at in places]
        return rows

    def _tightened_at_integers(self, relaxed: MipArrays, values: FloatArray) -> MipArrays:
        """Fix the integers and solve the continuous rest to its optimum; return the relaxation with its tangents."""
        n, tuning = self.program.n_columns, self.limits.tuning.solving
        settled = tuning.settled * self.limits.gap
        value, last = np.inf, None
        for _ in range(tuning.tangent_rounds):
            exact = self._exact(relaxed, values)
            if exact is None or (last is not None and np.allclose(exact, last, **SAME_POINT)):
                break  # tangents that no longer move the point are below what a linear program can see
            values = last = exact
            cuts, worst = self._violated(values[:n], values[n : n + len(self.program.squares)])
            if worst <= LP_ROOM:
                value = min(value, self.program.objective(values[:n]))
                self._keep(values[:n], value)
            relaxed = _add_rows(relaxed, cuts)
            closed = value - relaxed.objective(values) <= settled * abs(value)
            if not cuts or closed or self._left().seconds <= 0:
                break
        return relaxed

    def _exact(self, relaxed: MipArrays, values: FloatArray) -> FloatArray | None:
        """Return the best point with the integers of `values`; a backend with blocks has columns that only it knows."""
        if Capability.PROVES not in self.backend.capabilities:
            return repaired(relaxed, values, self._left()).point
        rest = with_fixed_integers(relaxed, np.round(values))
        return self.backend.solve(rest, replace(self._left(), cutoff=np.inf)).values

    def _keep(self, values: FloatArray, value: float) -> None:
        if value < self.value:
            self.best, self.value = values.copy(), value
            self.pool.append((value, self.best))
            if self.on_incumbent is not None:
                self.on_incumbent(value, self.bound, self.best)

    def _violated(self, v: FloatArray, heights: FloatArray) -> tuple[list[tuple[Affine, float]], float]:
        """Return the tangents that cut off this point, and the largest violation of a convex row."""
        rows: list[tuple[Affine, float]] = []
        n = self.program.n_columns
        dearest = sum(square.weight for square in self.program.squares)
        total = self.program.objective(v)
        # A square that is short by a small share of the gap leaves the whole within it.
        short = self.limits.tuning.solving.short * self.limits.gap
        share = max(short * abs(total) / dearest, _LEAST_CUT) if dearest > 0.0 else _LEAST_CUT
        for k, square in enumerate(self.program.squares):
            at = square.inner.value(v)
            if at * at - heights[k] > share:
                rows.append((_epigraph_row(square, at, n + k), 0.0))
        worst = 0.0
        for demand in self.program.convex:
            point = demand.at(v)
            excess = demand.function(point)
            worst = max(worst, excess)
            if excess > LP_ROOM:
                rows.append((demand.tangent(point), 0.0))
        return rows, worst


def _range(expression: Affine, program: MipArrays) -> tuple[float, float]:
    lower, upper = program.lower[expression.columns], program.upper[expression.columns]
    a, b = expression.values * lower, expression.values * upper
    return (
        float(np.minimum(a, b).sum() + expression.constant),
        float(np.maximum(a, b).sum() + expression.constant),
    )


def _epigraph_row(square: Square, at: float, column: int) -> Affine:
    """Return ``tangent - t`` with ``t`` the height of the square."""
    return square.tangent(at) + Affine.of(column, -1.0)


def _with_epigraphs(program: MipArrays) -> MipArrays:
    """Replace every square by a column for its height, which costs the square's weight."""
    k = len(program.squares)
    tops = [max(x * x for x in _range(s.inner, program)) for s in program.squares]
    return replace(
        program,
        cost=np.concatenate([program.cost, [s.weight for s in program.squares]]),
        lower=np.concatenate([program.lower, np.zeros(k)]),
        upper=np.concatenate([program.upper, tops]),
        integer=np.concatenate([program.integer, np.zeros(k, dtype=np.bool_)]),
        matrix=sparse.csr_matrix(sparse.hstack([program.matrix, sparse.csr_matrix((program.n_rows, k))])),
        names=(*program.names, *(f"square_{i}" for i in range(k))),
        squares=(),
        convex=(),
    )


def _add_rows(program: MipArrays, rows: Sequence[tuple[Affine, float]]) -> MipArrays:
    """Return the program with rows ``expression <= limit`` added."""
    if not rows:
        return program
    near_one = (row_near_one(program, r, limit) for r, limit in rows)
    rows = [(r * _LIFT, limit * _LIFT) for r, limit in near_one]
    sizes = [r.columns.size for r, _ in rows]
    block = sparse.csr_matrix(
        (
            np.concatenate([r.values for r, _ in rows]),
            (np.repeat(np.arange(len(rows)), sizes), np.concatenate([r.columns for r, _ in rows])),
        ),
        shape=(len(rows), program.n_columns),
    )
    limits = np.array([limit - r.constant for r, limit in rows])
    return replace(
        program,
        matrix=sparse.csr_matrix(sparse.vstack([program.matrix, block])),
        row_lower=np.concatenate([program.row_lower, np.full(len(rows), -np.inf)]),
        row_upper=np.concatenate([program.row_upper, limits]),
    )
