"""Linear programs by HiGHS, whose verdicts are proven by their own duals (see `ifonly.solvers.bounds`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.program.mip import MipArrays
from ifonly.runtime.deadline import FOREVER
from ifonly.solvers._loading import loads_within
from ifonly.solvers.backend import Limits, Solution, Status
from ifonly.solvers.bounds import safe_bound
from ifonly.solvers.highs import load
from ifonly.tolerances import LP_EXACT

__all__ = ["duals_of", "ray_of", "solve_linear"]


def solve_linear(program: MipArrays, limits: Limits, *, exact: bool = False) -> Solution:
    """Solve a linear program; an optimum comes with a safe bound, and "infeasible" is said only with a proof.

    With `exact`, rows are kept to 1e-9, for a point that is to be used.
    """
    if program.n_columns == 0:
        from ifonly.solvers.highs import BACKEND  # noqa: PLC0415 - a program without columns has no linear program

        return BACKEND.solve(program, limits)
    if not loads_within(limits.seconds, limits.tuning.solving.loading):
        return Solution(Status.OUT_OF_TIME)
    began = time.perf_counter()
    highs = load(program)
    if exact:
        highs.setOptionValue("primal_feasibility_tolerance", LP_EXACT)
    answer = Solution(Status.FAILED)
    for options in ({}, {"presolve": "off", "simplex_strategy": 1}, {"presolve": "off", "simplex_strategy": 4}):
        left = limits.seconds - (time.perf_counter() - began)
        if left <= 0.0:
            return Solution(Status.OUT_OF_TIME, bound=answer.bound)
        for key, value in {"time_limit": float(left), "objective_bound": float(limits.cutoff), **options}.items():
            highs.setOptionValue(key, value)
        if options:
            highs.clearSolver()
        highs.run()
        answer = _verdict(highs, program, limits)
        if answer.status is not Status.FAILED:
            return answer
    return answer


def _verdict(highs: Any, program: MipArrays, limits: Limits) -> Solution:
    import highspy  # noqa: PLC0415 - imported only when something is solved

    ended, kinds = highs.getModelStatus(), highspy.HighsModelStatus
    if ended in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
        return Solution(Status.INFEASIBLE, bound=np.inf) if _is_empty(highs, program) else Solution(Status.FAILED)
    solution = highs.getSolution()
    bound = safe_bound(program, np.asarray(solution.row_dual)) if solution.dual_valid else -np.inf
    if ended in (kinds.kOptimal, kinds.kModelEmpty):
        values = np.array(solution.col_value)
        objective = float(program.cost @ values + program.offset)
        return Solution(Status.OPTIMAL, values, objective, min(bound, objective))
    if bound > limits.cutoff:
        return Solution(Status.INFEASIBLE, bound=bound)
    if ended in (kinds.kTimeLimit, kinds.kIterationLimit, kinds.kInterrupt):
        return Solution(Status.OUT_OF_TIME, bound=bound)
    return Solution(Status.FAILED, bound=bound)


def _is_empty(highs: Any, program: MipArrays) -> bool:
    """Whether a ray of the duals proves that no point meets all rows, within the bounds of all columns."""
    if bool((program.lower > program.upper).any() or (program.row_lower > program.row_upper).any()):
        return True
    # a single row whose columns cannot add up to what it asks for
    if any(safe_bound(program, y, np.zeros(program.n_columns)) > 0.0 for y in _suspects(program)):
        return True
    ray = ray_of(highs, program.n_rows)
    return ray is not None and safe_bound(program, ray, np.zeros(program.n_columns)) > 0.0


def duals_of(program: MipArrays, seconds: float, *, infeasible: bool = False) -> tuple[FloatArray, float] | None:
    """Return duals of a program without its integers, and the safe bound that they give; None where there are none.

    With `infeasible`, the duals of no cost, and a bound above 0 proves that there is no point.
    """
    highs = load(replace(program, integer=np.zeros(program.n_columns, dtype=np.bool_), squares=(), convex=()))
    nothing = np.zeros(program.n_columns)
    for options in ({}, {"presolve": "off", "simplex_strategy": 1}):
        if seconds <= 0.0:
            return None
        for key, value in {"time_limit": float(min(seconds, FOREVER)), **options}.items():
            highs.setOptionValue(key, value)
        if options:
            highs.clearSolver()
        highs.run()
        if infeasible:
            ray = ray_of(highs, program.n_rows)
            tried = [*_suspects(program), *([] if ray is None else [ray])]
            proofs = [(y, safe_bound(program, y, nothing)) for y in tried]
            best = max(proofs, key=lambda pair: pair[1], default=None)
            if best is not None and best[1] > 0.0:
                return best
            continue
        solution = highs.getSolution()
        if solution.dual_valid:
            y = np.asarray(solution.row_dual, dtype=np.float64)
            sides = np.where(y > 0.0, program.row_lower, program.row_upper)
            y = np.where(np.isfinite(sides) & np.isfinite(y), y, 0.0)
            return y, safe_bound(program, y)
    return None


def _suspects(program: MipArrays) -> Iterator[FloatArray]:
    """Yield the duals of single rows that interval arithmetic cannot meet."""
    row = np.repeat(np.arange(program.n_rows), np.diff(program.matrix.indptr))
    column, value = program.matrix.indices, program.matrix.data
    with np.errstate(invalid="ignore"):
        ends = value * program.lower[column], value * program.upper[column]
        low = np.bincount(row, np.minimum(*ends), program.n_rows)
        high = np.bincount(row, np.maximum(*ends), program.n_rows)
        for sign, broken in ((1.0, high < program.row_lower), (-1.0, low > program.row_upper)):
            for i in np.flatnonzero(broken):
                y = np.zeros(program.n_rows)
                y[i] = sign
                yield y


def ray_of(highs: Any, n_rows: int) -> FloatArray | None:
    """Return the ray of the duals that HiGHS has for a program without a point; None where it has none."""
    found = highs.getDualRay()
    # (status, whether there is one, the ray)
    if not isinstance(found, tuple) or len(found) < 3 or not found[1]:
        return None
    ray = np.asarray(found[2], dtype=np.float64)
    return ray if ray.size == n_rows else None
