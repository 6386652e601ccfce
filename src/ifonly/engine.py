"""From a statement to a point and a proof: build, reduce, solve. The answer is not verified yet."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ifonly.errors import SolverFailed
from ifonly.events import Built, Incumbent, OnEvent
from ifonly.mip import FloatArray
from ifonly.problem import Problem, Statement, build
from ifonly.solvers import Backend, Limits, Status
from ifonly.solvers.tangents import solve

__all__ = ["Found", "find", "run"]


@dataclass(frozen=True)
class Found:
    """The outcome of one search: the best point in canonical form, and what is proven."""

    status: Status
    u: FloatArray | None = None
    bound: float = -np.inf
    pool: tuple[FloatArray, ...] = ()
    interrupted: bool = False


def find(statement: Statement, backend: Backend, limits: Limits, on_event: OnEvent | None = None) -> Found:
    """Search for the cheapest point that meets all demands."""
    box = statement.box()
    if box.empty() is not None:
        return Found(Status.INFEASIBLE, bound=np.inf)
    began = time.perf_counter()
    problem = build(statement, box)
    return run(problem, backend, limits.within(limits.seconds - (time.perf_counter() - began)), on_event)


def run(problem: Problem, backend: Backend, limits: Limits, on_event: OnEvent | None = None) -> Found:
    """Solve a built problem and read the point off the solution."""
    program = problem.arrays()
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
    u = None if answer.values is None else problem.point(answer.values)
    pool = tuple(problem.point(values) for _, values in reversed(answer.pool))
    return Found(answer.status, u, answer.bound, pool, answer.interrupted)
