"""SCIP (Bolusani et al. 2024) through PySCIPOpt: optional."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ifonly.program.mip import MipArrays
from ifonly.solvers.backend import Capability, IncumbentHook, Limits, Packaged, Solution, Status
from ifonly.tolerances import LP_EXACT, NO_GAP

__all__ = ["BACKEND", "Scip"]


@dataclass(frozen=True)
class Scip(Packaged):
    """The SCIP backend: mixed-integer linear programs, at SCIP's own tolerances."""

    package: ClassVar[str] = "pyscipopt"
    name: str = "scip"
    label: str = "SCIP"
    capabilities: frozenset[Capability] = frozenset()

    def solve(self, program: MipArrays, limits: Limits, on_incumbent: IncumbentHook | None = None) -> Solution:
        """Solve; incumbents are told once the solve has ended."""
        model, variables = _load(program, limits)
        model.optimize()
        answer = _answer(model, variables, program)
        if on_incumbent is not None:
            for objective, values in answer.pool:
                on_incumbent(objective, answer.bound, values)
        return answer


BACKEND = Scip()


def _load(program: MipArrays, limits: Limits) -> tuple[Any, list[Any]]:
    import pyscipopt  # noqa: PLC0415 - imported only when something is solved

    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("limits/time", max(float(limits.seconds), 0.0))
    model.setParam("limits/absgap", NO_GAP)
    model.setParam("limits/gap", limits.relative_gap)
    model.setParam("randomization/randomseedshift", limits.solver_seed)
    if limits.second_setting:
        model.setPresolve(pyscipopt.SCIP_PARAMSETTING.OFF)
    model.setParam("misc/catchctrlc", False)
    variables = [
        model.addVar(
            vtype="I" if whole else "C",
            lb=None if np.isneginf(low) else float(low),
            ub=None if np.isposinf(high) else float(high),
        )
        for low, high, whole in zip(program.lower, program.upper, program.integer, strict=True)
    ]
    _add_rows(model, variables, program)
    _set_objective(model, variables, program)
    if np.isfinite(limits.cutoff):
        model.setObjlimit(float(limits.cutoff))
    return model, variables


def _add_rows(model: Any, variables: list[Any], program: MipArrays) -> None:
    import pyscipopt  # noqa: PLC0415 - imported only when something is solved

    A = program.matrix
    for i in range(program.n_rows):
        part = slice(A.indptr[i], A.indptr[i + 1])
        low, high = float(program.row_lower[i]), float(program.row_upper[i])
        if part.start == part.stop:
            if low > LP_EXACT or high < -LP_EXACT:
                never = model.addVar(vtype="C", lb=0.0, ub=0.0)
                model.addCons(never >= 1.0)
            continue
        terms = (float(a) * variables[j] for j, a in zip(A.indices[part], A.data[part], strict=True))
        row = pyscipopt.quicksum(terms)
        if low == high:
            model.addCons(row == low)
            continue
        if np.isfinite(low):
            model.addCons(row >= low)
        if np.isfinite(high):
            model.addCons(row <= high)


def _set_objective(model: Any, variables: list[Any], program: MipArrays) -> None:
    import pyscipopt  # noqa: PLC0415 - imported only when something is solved

    parts = [float(c) * v for c, v in zip(program.cost, variables, strict=True) if c != 0.0]
    model.setObjective(pyscipopt.quicksum(parts) + float(program.offset), "minimize")


def _answer(model: Any, variables: list[Any], program: MipArrays) -> Solution:
    ended = model.getStatus()
    if ended in ("infeasible", "inforunbd"):
        return Solution(Status.INFEASIBLE, bound=np.inf)
    points = [np.array([s[v] for v in variables]) for s in model.getSols()]
    pool = sorted(((program.objective(p), p) for p in points), key=lambda pair: pair[0])
    bound = float(model.getDualbound())
    interrupted = ended == "userinterrupt"
    if not pool:
        status = Status.OUT_OF_TIME if ended == "timelimit" else Status.INTERRUPTED if interrupted else Status.FAILED
        return Solution(status, bound=bound, interrupted=interrupted)
    objective, values = pool[0]
    best_last = tuple(reversed(pool))
    if ended in ("optimal", "gaplimit"):
        return Solution(Status.OPTIMAL, values, objective, min(bound, objective), best_last)
    return Solution(Status.FEASIBLE, values, objective, min(bound, objective), best_last, interrupted=interrupted)
