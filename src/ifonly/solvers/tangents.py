"""Lowering of convex pieces: squares in the objective and convex rows become tangents, added until the gap is closed.

Outer approximation (Duran and Grossmann 1986): every tangent of a convex function lies below it, so the linear program
with any set of tangents is a relaxation and its bound is valid; the true objective at a solution is an upper bound.
After each mixed-integer solve the integers are fixed and the continuous rest is solved to its own optimum, whose
tangents make that assignment exact, so no assignment is visited twice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from ifonly.mip import Affine, FloatArray, MipArrays, Square
from ifonly.solvers import Backend, Capability, IncumbentHook, Limits, Solution, Status
from ifonly.tolerances import closing_gap

__all__ = ["solve"]

_MOST_ROUNDS = 200
_CONVEX_TOLERANCE = 1e-9
_LEAST_CUT = 1e-9
_LEAST_ENTRY = 1e-7


def solve(
    program: MipArrays,
    backend: Backend,
    limits: Limits,
    start: FloatArray | None = None,
    on_incumbent: IncumbentHook | None = None,
) -> Solution:
    """Solve any program: directly when it is linear (or the backend takes its squares), else by tangents."""
    linear = not program.convex and (not program.squares or Capability.SQUARES in backend.capabilities)
    if linear:
        return backend.solve(program, limits, start, on_incumbent)
    return _Loop(program, backend, limits, on_incumbent).run()


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
        try:
            return self._alternate()
        except KeyboardInterrupt:  # between two solves
            return self._stopped(Solution(Status.INTERRUPTED, interrupted=True))

    def _alternate(self) -> Solution:
        began = time.perf_counter()
        relaxed = _with_epigraphs(self.program)
        relaxed = _add_rows(relaxed, self._opening_tangents(relaxed))
        for _ in range(_MOST_ROUNDS):
            left = self.limits.seconds - (time.perf_counter() - began)
            answer = self.backend.solve(relaxed, replace(self.limits, seconds=max(left, 0.0)))
            if answer.status is Status.INFEASIBLE:
                return self._exhausted()
            self.bound = max(self.bound, min(answer.bound, self.value))
            if answer.values is None:
                return self._stopped(answer)
            known, rows = self.value, relaxed.n_rows
            relaxed, stopped = self._settle(relaxed, answer.values, began)
            if self.best is not None and self.value < known:
                self.pool.append((self.value, self.best))
                if self.on_incumbent is not None:
                    self.on_incumbent(self.value, self.bound, self.best)
            if self.best is not None and self.value - self.bound <= self._closing():
                return Solution(Status.OPTIMAL, self.best, self.value, self.bound, tuple(self.pool))
            if stopped or answer.status is not Status.OPTIMAL or relaxed.n_rows == rows:
                return self._stopped(replace(answer, interrupted=answer.interrupted or stopped))
        return self._stopped(Solution(Status.OUT_OF_TIME))

    def _closing(self) -> float:
        """Return the gap at which to stop: what was asked for, but not less than tangents can resolve."""
        resolved = _LEAST_CUT * max(1, len(self.program.squares))
        return max(closing_gap(self.value, self.limits.gap), resolved)

    def _exhausted(self) -> Solution:
        """Nothing is left below the cut-off: what was found within it is optimal, what lies above does not count."""
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
        n = self.program.n_columns
        for k, square in enumerate(self.program.squares):
            low, high = _range(square.inner, relaxed)
            places = np.unique([low, low / 4, low / 16, high / 16, high / 4, high])
            rows += [(_epigraph_row(square, float(at), n + k), 0.0) for at in places]
        return rows

    def _settle(self, relaxed: MipArrays, values: FloatArray, began: float) -> tuple[MipArrays, bool]:
        """Fix the integers and solve the continuous rest to its optimum, collecting its tangents.

        Returns the relaxation with these tangents, and whether Ctrl-C cut it short.
        """
        n = self.program.n_columns
        whole = relaxed.integer
        fixed_at = np.round(values[whole])
        value = np.inf
        for _ in range(_MOST_ROUNDS):
            cuts, worst = self._violated(values[:n], values[n:])
            if worst <= _CONVEX_TOLERANCE:
                here = self.program.objective(values[:n])
                value = min(value, here)
                if here < self.value:
                    self.best, self.value = values[:n].copy(), here
            relaxed = _add_rows(relaxed, cuts)
            left = self.limits.seconds - (time.perf_counter() - began)
            if not cuts or left <= 0:
                break
            lower, upper = relaxed.lower.copy(), relaxed.upper.copy()
            lower[whole] = upper[whole] = fixed_at
            rest = replace(relaxed, lower=lower, upper=upper, integer=np.zeros_like(whole))
            answer = self.backend.solve(rest, replace(self.limits, seconds=left))
            if answer.interrupted:
                return relaxed, True
            if answer.values is None:
                break
            values = answer.values
            if value - answer.objective <= 0.1 * closing_gap(value, self.limits.gap):
                break
        return relaxed, False

    def _violated(self, v: FloatArray, heights: FloatArray) -> tuple[list[tuple[Affine, float]], float]:
        """Return the tangents that cut off this point, and the largest violation of a convex row."""
        rows: list[tuple[Affine, float]] = []
        n = self.program.n_columns
        # A cut finer than the solver's own tolerance would be found again and again.
        known = self.value if np.isfinite(self.value) else 0.0
        share = max(0.1 * closing_gap(known, self.limits.gap) / max(1, len(self.program.squares)), _LEAST_CUT)
        for k, square in enumerate(self.program.squares):
            at = square.inner.value(v)
            if square.weight * at * at - heights[k] > share:
                rows.append((_epigraph_row(square, at, n + k), 0.0))
        worst = 0.0
        for demand in self.program.convex:
            point = demand.at(v)
            excess = demand.function(point)
            worst = max(worst, excess)
            if excess > _CONVEX_TOLERANCE:
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
    """Return ``weight * tangent - t``, in units of the objective: raw squares can span twelve orders of magnitude."""
    return square.tangent(at) * square.weight + Affine.of(column, -1.0)


def _with_epigraphs(program: MipArrays) -> MipArrays:
    """Replace every weighted square by a column of its own, which costs what it is."""
    k = len(program.squares)
    tops = [s.weight * max(x * x for x in _range(s.inner, program)) for s in program.squares]
    return replace(
        program,
        cost=np.concatenate([program.cost, np.ones(k)]),
        lower=np.concatenate([program.lower, np.zeros(k)]),
        upper=np.concatenate([program.upper, tops]),
        integer=np.concatenate([program.integer, np.zeros(k, dtype=np.bool_)]),
        matrix=sparse.csr_matrix(sparse.hstack([program.matrix, sparse.csr_matrix((program.n_rows, k))])),
        names=(*program.names, *(f"square_{i}" for i in range(k))),
        squares=(),
        convex=(),
    )


def _factor(expression: Affine) -> float:
    """Return a power of two that lifts entries so small that a solver would take them for nothing."""
    sizes = np.abs(expression.values[expression.values != 0])
    if not sizes.size or sizes.min() >= _LEAST_ENTRY:
        return 1.0
    return float(2.0 ** -np.round(0.5 * np.log2(sizes.min() * sizes.max())))


def _add_rows(program: MipArrays, rows: Sequence[tuple[Affine, float]]) -> MipArrays:
    """Return the program with rows ``expression <= limit`` added."""
    if not rows:
        return program
    rows = [(r * factor, limit * factor) for (r, limit), factor in ((row, _factor(row[0])) for row in rows)]
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
