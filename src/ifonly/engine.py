"""From a statement to a point and a proof: build, reduce, solve. The answer is not verified yet."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ifonly.box import Box
from ifonly.criteria import Branch, Demand
from ifonly.errors import SolverFailed
from ifonly.events import Built, Incumbent, OnEvent
from ifonly.mip import FloatArray
from ifonly.problem import Problem, Statement, build
from ifonly.reduce import Reducer
from ifonly.solvers import Backend, Limits, Status
from ifonly.solvers.tangents import solve

__all__ = ["Found", "find", "run"]

_BRANCH_DUST = 1e-12


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
    deadline = time.perf_counter() + limits.seconds
    for demand in statement.demands:
        branches = demand.branches(statement, box)
        if branches is not None:
            return _over_branches(statement, demand, branches, backend, limits, deadline, on_event)
    return _find_in(statement, box, backend, limits, deadline, on_event)


def _over_branches(
    statement: Statement,
    demand: Demand,
    branches: Iterable[Branch],
    backend: Backend,
    limits: Limits,
    deadline: float,
    on_event: OnEvent | None,
) -> Found:
    """Solve alternatives in the order of their bounds until the next bound passes the best answer."""
    best = Found(Status.INFEASIBLE, bound=np.inf)
    value, open_bound = limits.cutoff, np.inf
    for branch in branches:
        if branch.bound > value - _BRANCH_DUST:
            break
        if time.perf_counter() >= deadline:
            open_bound = min(open_bound, branch.bound)
            break
        others = tuple(branch.demand if d is demand else d for d in statement.demands)
        part = replace(statement, demands=others)
        found = _find_in(part, branch.box, backend, replace(limits, cutoff=value), deadline, on_event)
        if found.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            open_bound = min(open_bound, max(found.bound, branch.bound))
        if found.u is not None:
            cost = float(part.objective(found.u[None, :])[0])
            if best.u is None or cost < value:
                best, value = replace(found, bound=min(found.bound, cost)), min(cost, value)
        elif best.u is None and found.status is not Status.INFEASIBLE:
            best = found
        if found.interrupted:
            return replace(best, interrupted=True, bound=min(best.bound, open_bound))
    if np.isfinite(open_bound):
        status = Status.FEASIBLE if best.u is not None else Status.OUT_OF_TIME
        return replace(best, status=status, bound=min(best.bound, open_bound))
    return best


def _find_in(
    statement: Statement, box: Box, backend: Backend, limits: Limits, deadline: float, on_event: OnEvent | None
) -> Found:
    """Search one box: incumbent, cost box, solve."""
    if box.empty() is not None:
        return Found(Status.INFEASIBLE, bound=np.inf)
    reducer = Reducer(statement, box)
    known = reducer.incumbent()
    if known is not None and known[1] > limits.cutoff:
        known = None
    budget = known[1] if known is not None else limits.cutoff
    if known is not None and on_event is not None:
        on_event(Incumbent(known[1], -np.inf))
    problem = build(statement, reducer.within(budget) if np.isfinite(budget) else box)
    rest = replace(limits, cutoff=budget).within(deadline - time.perf_counter())
    found = run(problem, backend, rest, on_event)
    return found if known is None else _better(found, *known, statement)


def _better(found: Found, point: FloatArray, cost: float, statement: Statement) -> Found:
    """Return the better of what the solver found below the incumbent's cost and the incumbent itself."""
    if found.status is Status.INFEASIBLE:
        return Found(Status.OPTIMAL, point, cost, (point,))
    if found.u is None or float(statement.objective(found.u[None, :])[0]) > cost:
        status = Status.OPTIMAL if found.status is Status.OPTIMAL else Status.FEASIBLE
        return replace(found, status=status, u=point, pool=(*found.pool, point))
    return replace(found, pool=(*found.pool, point))


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
