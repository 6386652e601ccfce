"""Programs: a built problem goes to the solver, and the point is read off its solution."""

from __future__ import annotations

from dataclasses import replace

from ifonly.arrays import FloatArray
from ifonly.errors import SolverFailed
from ifonly.events import Built, Incumbent, OnEvent
from ifonly.question.found import Ended, Found
from ifonly.question.problem import Problem
from ifonly.solvers.backend import Backend, Limits, Solution, Status
from ifonly.solvers.branch_and_price import with_blocks
from ifonly.solvers.tangents import solve

__all__ = ["solve_problem"]


def solve_problem(problem: Problem, backend: Backend, limits: Limits, on_event: OnEvent | None = None) -> Found:
    """Solve a built problem and read the point off the solution."""
    if limits.seconds <= 0.0:  # nor is there time to write and balance the arrays
        return Found(Ended.LIMIT, solver=backend.label)
    program, backend = with_blocks(problem.mip.arrays(), problem.blocks, backend, limits.tuning.columns)
    if on_event is not None:
        on_event(Built(program.n_columns, program.n_rows))

    def on_incumbent(objective: float, bound: float, values: FloatArray) -> None:
        del values
        if on_event is not None:
            on_event(Incumbent(objective, bound))

    answer = solve(program, backend, limits, on_incumbent=on_incumbent)
    if answer.status is Status.FAILED:
        raise SolverFailed(
            f"{backend.label} stopped without an answer and without a proof on a program of {program.n_columns} columns "
            f"and {program.n_rows} rows. Try another solver=, or write the program with explainer.problem(row) and report it."
        )
    if answer.status is Status.OPTIMAL and answer.objective - answer.bound > limits.gap * abs(answer.objective):
        # Beside what the box allows, the answer is too cheap for the solver to tell its digits: a smaller box will.
        answer = replace(answer, status=Status.FEASIBLE)
    u = None if answer.values is None else problem.point(answer.values)
    pool = tuple(problem.point(values) for _, values in reversed(answer.pool))
    return Found(_ended(answer), u, answer.bound, pool, answer.solver or backend.label)


def _ended(answer: Solution) -> Ended:
    if answer.interrupted or answer.status is Status.INTERRUPTED:
        return Ended.INTERRUPTED
    return Ended.CLOSED if answer.status in (Status.OPTIMAL, Status.INFEASIBLE) else Ended.LIMIT
