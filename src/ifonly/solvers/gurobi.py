"""Gurobi through gurobipy: optional and commercial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import SolverFailed
from ifonly.program.mip import MipArrays
from ifonly.solvers.backend import Capability, IncumbentHook, Limits, Packaged, Solution, Status
from ifonly.tolerances import FEASIBILITY, NO_GAP

__all__ = ["BACKEND", "Gurobi"]


@dataclass(frozen=True)
class Gurobi(Packaged):
    """The Gurobi backend: mixed-integer linear programs, at Gurobi's own tolerances."""

    package: ClassVar[str] = "gurobipy"
    name: str = "gurobi"
    label: str = "Gurobi"
    capabilities: frozenset[Capability] = frozenset({Capability.INCUMBENT_EVENTS})

    def solve(self, program: MipArrays, limits: Limits, on_incumbent: IncumbentHook | None = None) -> Solution:
        """Solve, collecting every incumbent on the way."""
        import gurobipy  # noqa: PLC0415 - imported only when something is solved

        pool: list[tuple[float, FloatArray]] = []
        try:
            with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as model:
                x = _load(model, program, limits)
                model.optimize(_listener(x, pool, on_incumbent))
                return _answer(model, x, program, pool)
        except gurobipy.GurobiError as error:
            raise SolverFailed(
                f"Gurobi refused: {error}. Without a full licence it takes small programs only; use solver='highs'."
            ) from error


BACKEND = Gurobi()


def _load(model: Any, program: MipArrays, limits: Limits) -> Any:
    import gurobipy  # noqa: PLC0415 - imported only when something is solved

    kinds = np.where(program.integer, gurobipy.GRB.INTEGER, gurobipy.GRB.CONTINUOUS)
    x = model.addMVar(program.n_columns, lb=program.lower, ub=program.upper, vtype=kinds)
    low, high = np.isfinite(program.row_lower), np.isfinite(program.row_upper)
    if low.any():
        model.addMConstr(program.matrix[low], x, ">", program.row_lower[low])
    if high.any():
        model.addMConstr(program.matrix[high], x, "<", program.row_upper[high])
    objective = program.cost @ x + float(program.offset)
    model.setObjective(objective)
    model.Params.TimeLimit = max(float(limits.seconds), 0.0)
    model.Params.MIPGap = limits.relative_gap
    model.Params.MIPGapAbs = NO_GAP
    model.Params.IntFeasTol = FEASIBILITY  # as the other solvers; its own is ten times as much, of a whole range
    model.Params.Threads = 1
    model.Params.Seed = limits.solver_seed
    if limits.second_setting:
        model.Params.Presolve = 0
    if np.isfinite(limits.cutoff):
        model.Params.Cutoff = float(limits.cutoff)
    return x


def _listener(x: Any, pool: list[tuple[float, FloatArray]], on_incumbent: IncumbentHook | None) -> Any:
    import gurobipy  # noqa: PLC0415 - imported only when something is solved

    def listen(model: Any, where: int) -> None:
        if where != gurobipy.GRB.Callback.MIPSOL:
            return
        values = np.asarray(model.cbGetSolution(x), dtype=np.float64)
        objective = float(model.cbGet(gurobipy.GRB.Callback.MIPSOL_OBJ))
        pool.append((objective, values))
        if on_incumbent is not None:
            on_incumbent(objective, float(model.cbGet(gurobipy.GRB.Callback.MIPSOL_OBJBND)), values)

    return listen


def _answer(model: Any, x: Any, program: MipArrays, pool: list[tuple[float, FloatArray]]) -> Solution:
    import gurobipy  # noqa: PLC0415 - imported only when something is solved

    codes, ended = gurobipy.GRB.Status, model.Status
    if ended in (codes.INFEASIBLE, codes.INF_OR_UNBD, codes.CUTOFF):
        return Solution(Status.INFEASIBLE, bound=np.inf)
    interrupted = ended == codes.INTERRUPTED
    bound = float(model.ObjBound) if model.IsMIP or model.SolCount else -np.inf
    if not model.SolCount:
        status = (
            Status.OUT_OF_TIME if ended == codes.TIME_LIMIT else Status.INTERRUPTED if interrupted else Status.FAILED
        )
        return Solution(status, bound=bound, interrupted=interrupted)
    values = np.asarray(x.X, dtype=np.float64)
    objective = program.objective(values)
    status = Status.OPTIMAL if ended == codes.OPTIMAL else Status.FEASIBLE
    return Solution(status, values, objective, min(bound, objective), tuple(pool), interrupted=interrupted)
