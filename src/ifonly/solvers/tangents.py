"""Lowering of convex pieces: squares in the objective and convex rows become tangents, added until the gap is closed.

Outer approximation (Duran and Grossmann 1986): every tangent of a convex function lies below it, so the linear program
with any set of tangents is a relaxation and its bound is valid; the true objective at a solution is an upper bound.
After each mixed-integer solve the integers are fixed and the continuous rest is solved to its own optimum, whose
tangents make that assignment exact, so no assignment is visited twice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ifonly.mip import Affine, FloatArray, MipArrays, Square
from ifonly.solvers import Backend, Capability, IncumbentHook, Limits, Solution, Status

__all__ = ["solve"]

_MOST_ROUNDS = 200
_CONVEX_TOLERANCE = 1e-9


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
    """One outer-approximation run."""

    program: MipArrays
    backend: Backend
    limits: Limits
    on_incumbent: IncumbentHook | None

    def run(self) -> Solution:
        """Alternate between the relaxation with integers and the exact continuous rest."""
        began = time.perf_counter()
        relaxed = _with_epigraphs(self.program)
        relaxed = _add_rows(relaxed, self._opening_tangents(relaxed))
        best: FloatArray | None = None
        best_value, bound = np.inf, -np.inf
        pool: list[tuple[float, FloatArray]] = []
        for _ in range(_MOST_ROUNDS):
            left = self.limits.seconds - (time.perf_counter() - began)
            answer = self.backend.solve(relaxed, replace(self.limits, seconds=max(left, 0.0)))
            if answer.status is Status.INFEASIBLE and best is None:
                return Solution(Status.INFEASIBLE, bound=np.inf)
            bound = max(bound, min(answer.bound, best_value))
            if answer.values is None:
                return self._stopped(answer, best, best_value, bound, pool)
            relaxed, point, value = self._settle(relaxed, answer.values, began)
            if point is not None and value < best_value:
                best, best_value = point, value
                pool.append((value, point))
                if self.on_incumbent is not None:
                    self.on_incumbent(value, bound, point)
            if best_value - bound <= self.limits.gap * max(1.0, abs(best_value)):
                return Solution(Status.OPTIMAL, best, best_value, bound, tuple(pool))
            if answer.status is not Status.OPTIMAL:
                return self._stopped(answer, best, best_value, bound, pool)
        return self._stopped(Solution(Status.OUT_OF_TIME), best, best_value, bound, pool)

    def _stopped(
        self,
        answer: Solution,
        best: FloatArray | None,
        value: float,
        bound: float,
        pool: Sequence[tuple[float, FloatArray]],
    ) -> Solution:
        if best is None:
            return replace(answer, values=None, bound=bound)
        return Solution(Status.FEASIBLE, best, value, bound, tuple(pool), interrupted=answer.interrupted)

    def _opening_tangents(self, relaxed: MipArrays) -> list[tuple[Affine, float]]:
        """A few tangents per square, so that the first relaxation already has the right shape."""
        rows: list[tuple[Affine, float]] = []
        n = self.program.n_columns
        for k, square in enumerate(self.program.squares):
            low, high = _range(square.inner, relaxed)
            for at in np.unique([low, low / 4, low / 16, high / 16, high / 4, high]):
                rows.append((_epigraph_row(square, float(at), n + k), 0.0))
        return rows

    def _settle(
        self, relaxed: MipArrays, values: FloatArray, began: float
    ) -> tuple[MipArrays, FloatArray | None, float]:
        """Fix the integers and solve the continuous rest to its optimum, collecting its tangents."""
        n = self.program.n_columns
        whole = relaxed.integer
        fixed_at = np.round(values[whole])
        value, point = np.inf, None
        for _ in range(_MOST_ROUNDS):
            cuts, worst = self._violated(values[:n], values[n:])
            if worst <= _CONVEX_TOLERANCE and self.program.objective(values[:n]) < value:
                point, value = values[:n].copy(), self.program.objective(values[:n])
            relaxed = _add_rows(relaxed, cuts)
            left = self.limits.seconds - (time.perf_counter() - began)
            if not cuts or left <= 0:
                break
            lower, upper = relaxed.lower.copy(), relaxed.upper.copy()
            lower[whole] = upper[whole] = fixed_at
            rest = replace(relaxed, lower=lower, upper=upper, integer=np.zeros_like(whole))
            answer = self.backend.solve(rest, replace(self.limits, seconds=left))
            if answer.values is None:
                break
            values = answer.values
            if value - answer.objective <= 0.1 * self.limits.gap * max(1.0, abs(value)):
                break
        return relaxed, point, value

    def _violated(self, v: FloatArray, heights: FloatArray) -> tuple[list[tuple[Affine, float]], float]:
        """Return the tangents that cut off this point, and the largest violation of a convex row."""
        rows: list[tuple[Affine, float]] = []
        n = self.program.n_columns
        share = 0.05 * self.limits.gap / max(1, len(self.program.squares))
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


def _add_rows(program: MipArrays, rows: Sequence[tuple[Affine, float]]) -> MipArrays:
    """Return the program with rows ``expression <= limit`` added."""
    if not rows:
        return program
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
