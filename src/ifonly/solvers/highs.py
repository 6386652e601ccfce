"""HiGHS, by arrays: the default solver, always there."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import SolverFailed
from ifonly.program.mip import MipArrays
from ifonly.solvers._loading import load_highspy, loads_within
from ifonly.solvers.backend import Capability, IncumbentHook, Limits, Packaged, Solution, Status
from ifonly.solvers.beside import Beside
from ifonly.tolerances import LP_EXACT, NO_GAP

__all__ = ["BACKEND", "Highs", "load", "write_program"]

# Tolerances are HiGHS's own: at 1e-9, with presolve, it has called wrong points optimal (tests/faults). What needs
# more digits is repaired and confirmed afterwards (see `ifonly.solvers.trusted`).
# with a good answer known, the work left is a proof: restarts and heuristics only delay it (docs/what-was-tried.md)
_PROOF: dict[str, object] = {
    "mip_allow_restart": False,
    "mip_heuristic_run_feasibility_jump": False,
}
_BEYOND_REACH = 1e19


@dataclass(frozen=True)
class Highs(Packaged):
    """The HiGHS backend (Huangfu and Hall 2018): mixed-integer linear programs, one thread."""

    package: ClassVar[str] = "highspy"
    name: str = "highs"
    label: str = "HiGHS"
    capabilities: frozenset[Capability] = frozenset({Capability.INCUMBENT_EVENTS})

    def solve(self, program: MipArrays, limits: Limits, on_incumbent: IncumbentHook | None = None) -> Solution:
        """Solve, collecting every incumbent on the way; a run without a verdict is repeated without presolve."""
        if program.n_columns == 0:
            return _solve_empty(program)
        if not loads_within(limits.seconds, limits.tuning.solving.loading):
            return Solution(Status.OUT_OF_TIME)
        began = time.perf_counter()
        answer = _attempt(program, limits, on_incumbent, {})
        if answer.status is Status.FAILED:
            left = limits.within(limits.seconds - (time.perf_counter() - began))
            answer = _attempt(program, left, on_incumbent, {"presolve": "off"})
        return answer


BACKEND = Highs()


def _attempt(
    program: MipArrays, limits: Limits, on_incumbent: IncumbentHook | None, options: dict[str, object]
) -> Solution:
    highs = load(program)
    for key, value in (_options(program, limits) | options).items():
        highs.setOptionValue(key, value)
    heard = _Heard(on_incumbent)
    with _interruptible() as flag:
        _listen(highs, heard, flag)
        patience = limits.seconds + limits.tuning.solving.patience
        if not heard.solve.run(highs.run, patience, heard.hear):
            return _left_behind(program, heard, flag)
    answer = _answer(highs, program, heard.pool, flag)
    if answer.status is Status.OPTIMAL and answer.bound > limits.cutoff:  # what is solved at the root may lie beyond it
        return Solution(Status.INFEASIBLE, bound=np.inf)
    return answer


@dataclass
class _Heard:
    """Incumbents and the dual bound that were heard of a solve while it ran."""

    on_incumbent: IncumbentHook | None
    bound: float = -np.inf
    pool: list[tuple[float, FloatArray]] = field(default_factory=list)
    solve: Beside[tuple[float, float, FloatArray]] = field(default_factory=Beside)

    def hear(self, incumbent: tuple[float, float, FloatArray]) -> None:
        objective, bound, values = incumbent
        self.pool.append((objective, values))
        if self.on_incumbent is not None:
            self.on_incumbent(objective, bound, values)


def _left_behind(program: MipArrays, heard: _Heard, flag: threading.Event) -> Solution:
    """Return what was heard of a solve that did not look at the clock in time."""
    stopped = flag.is_set()
    if not heard.pool:
        ended = Status.INTERRUPTED if stopped else Status.OUT_OF_TIME
        return Solution(ended, bound=heard.bound, interrupted=stopped)
    values = heard.pool[-1][1]
    objective = float(program.cost @ values + program.offset)
    bound = min(heard.bound, objective)
    return Solution(Status.FEASIBLE, values, objective, bound, tuple(heard.pool), interrupted=stopped)


def _options(program: MipArrays, limits: Limits) -> dict[str, object]:
    options: dict[str, object] = {
        "random_seed": limits.solver_seed,
        "time_limit": float(limits.seconds),
        "mip_rel_gap": limits.relative_gap,
        "mip_abs_gap": NO_GAP,
        "objective_bound": float(limits.cutoff),
    }
    if np.isfinite(limits.cutoff) and program.integer.any():
        tuning = limits.tuning.solving
        options |= _PROOF | {"mip_heuristic_effort": tuning.heuristic_effort}
        if program.n_columns >= tuning.interior_from:
            options["mip_lp_solver"] = "ipm"
    if limits.second_setting:
        options["presolve"] = "off"
    return options


def _solve_empty(program: MipArrays) -> Solution:
    feasible = bool((program.row_lower <= LP_EXACT).all() and (program.row_upper >= -LP_EXACT).all())
    if not feasible:
        return Solution(Status.INFEASIBLE, bound=np.inf)
    return Solution(Status.OPTIMAL, np.empty(0), program.offset, program.offset)


def load(program: MipArrays) -> Any:
    """Return a HiGHS object that holds the linear part of a program, with HiGHS's own settings."""
    load_highspy()
    import highspy  # noqa: PLC0415 - imported only when something is solved

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.n_columns, program.n_rows
    lp.col_cost_, lp.offset_ = program.cost, program.offset
    lp.col_lower_, lp.col_upper_ = program.lower, program.upper
    # What no row can reach is still no infinity, which HiGHS refuses on this side.
    lp.row_lower_ = np.minimum(program.row_lower, _BEYOND_REACH)
    lp.row_upper_ = np.maximum(program.row_upper, -_BEYOND_REACH)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = program.n_columns, program.n_rows
    lp.a_matrix_.start_ = program.matrix.indptr
    lp.a_matrix_.index_ = program.matrix.indices
    lp.a_matrix_.value_ = program.matrix.data
    if program.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(i)] for i in program.integer]
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverFailed(
            "HiGHS refused the program: an entry is not finite or an index is out of range. Please report this with "
            "the file that explainer.problem(row).write('problem.lp') makes."
        )
    return highs


def write_program(program: MipArrays, path: Path) -> None:
    """Write the linear part of a program as an LP or MPS file, with the names of the features."""
    highs = load(program)
    for i, name in enumerate(program.names):
        highs.passColName(i, "".join(c if c.isalnum() else "_" for c in name))
    highs.writeModel(str(path))


def _listen(highs: Any, heard: _Heard, flag: threading.Event) -> None:
    """Collect incumbents and dual bounds of a solve; stop it when the flag is set, or nobody waits for it any more."""

    def on_solution(event: Any) -> None:
        data = event.data_out
        heard.solve.tell(
            (float(data.objective_function_value), float(data.mip_dual_bound), np.array(data.mip_solution))
        )

    def stop(event: Any) -> None:
        if flag.is_set() or heard.solve.left:
            event.data_in.user_interrupt = True

    def bounded(event: Any) -> None:
        heard.bound = max(heard.bound, float(event.data_out.mip_dual_bound))
        stop(event)

    highs.cbMipImprovingSolution += on_solution
    highs.cbMipInterrupt += bounded
    highs.cbSimplexInterrupt += stop


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn Ctrl-C during the solve into a polite stop; the caller learns of it from the flag."""
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def on_signal(number: int, frame: object) -> None:
        del number, frame
        flag.set()

    previous = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, on_signal)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, previous if previous is not None else signal.SIG_DFL)


def _answer(highs: Any, program: MipArrays, pool: list[tuple[float, FloatArray]], flag: threading.Event) -> Solution:
    import highspy  # noqa: PLC0415 - imported only when something is solved

    ended = highs.getModelStatus()
    info = highs.getInfo()
    kinds = highspy.HighsModelStatus
    if ended in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
        return Solution(Status.INFEASIBLE, bound=np.inf)
    if ended == kinds.kObjectiveBound and info.primal_solution_status != 2:
        return Solution(Status.INFEASIBLE, bound=np.inf)
    values, objective = None, np.inf
    if info.primal_solution_status == 2:
        values = np.array(highs.getSolution().col_value)
        objective = float(program.cost @ values + program.offset)
    bound = float(info.mip_dual_bound) if program.integer.any() else -np.inf
    saved = tuple(pool)
    if ended in (kinds.kOptimal, kinds.kModelEmpty):
        bound = objective if not program.integer.any() else min(bound, objective)
        return Solution(Status.OPTIMAL, values, objective, bound, saved)
    stopped = flag.is_set()
    if values is not None:
        return Solution(Status.FEASIBLE, values, objective, min(bound, objective), saved, interrupted=stopped)
    if stopped or ended == kinds.kInterrupt:
        return Solution(Status.INTERRUPTED, bound=bound, interrupted=True)
    if ended in (kinds.kTimeLimit, kinds.kIterationLimit, kinds.kSolutionLimit):
        return Solution(Status.OUT_OF_TIME, bound=bound)
    return Solution(Status.FAILED, bound=bound)
