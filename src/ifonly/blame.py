"""Why it is impossible: a minimal set of clashing demands, and for each the least loosening that helps.

A deletion filter (Chinneck and Dravnieks 1991): leave out one demand at a time; if the rest is still impossible, it was
not needed for the contradiction. What remains is minimal: drop any one and the others can be met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ifonly.box import Box
from ifonly.criteria import Demand, Relaxation
from ifonly.criteria.validity import Goal
from ifonly.engine import run
from ifonly.errors import Infeasible
from ifonly.mip import Affine
from ifonly.problem import Problem, Statement
from ifonly.solvers import Backend, Limits, Status

__all__ = ["explain_infeasibility"]


@dataclass(frozen=True)
class _Court:
    """Answers "are these demands possible together?" by solving without an objective."""

    statement: Statement
    backend: Backend
    limits: Limits

    def possible(self, demands: Sequence[Demand]) -> bool:
        """Whether the demands can be met together; undecided within the time counts as possible."""
        statement = replace(self.statement, demands=tuple(demands), criteria=())
        box = statement.box()
        if box.empty() is not None:
            return False
        problem = Problem(statement, box)
        for demand in demands:
            demand.apply(problem)
        return run(problem, self.backend, self.limits).status is not Status.INFEASIBLE

    def conflict(self, demands: Sequence[Demand]) -> list[Demand]:
        """Return a minimal subset that is impossible together."""
        kept = list(demands)
        for demand in demands:
            rest = [d for d in kept if d is not demand]
            if not self.possible(rest):
                kept = rest
        return kept

    def loosen(self, demand: Demand, others: Sequence[Demand]) -> Relaxation | None:
        """Return the least loosening of one demand that makes all possible, or None if none does."""
        statement = replace(self.statement, demands=tuple(others), criteria=())
        box = statement.box()
        if box.empty() is not None:
            return None
        problem = _problem_with_raw(statement, box, demand)
        for other in others:
            other.apply(problem)
        excess = demand.excess(problem)
        problem.mip.minimise(Affine() if excess is None else excess)
        found = run(problem, self.backend, self.limits)
        return None if found.u is None else demand.loosened(statement.query, found.u)


def _problem_with_raw(statement: Statement, box: Box, demand: Demand) -> Problem:
    problem = Problem(statement, box, extra_raw=demand.excess_raw(statement.query))
    problem.touch(demand.excess_features(statement.query))
    return problem


def explain_infeasibility(statement: Statement, backend: Backend, limits: Limits) -> Infeasible:
    """Return the error that names the clash and the ways out of it."""
    court = _Court(statement, backend, limits)
    conflict = court.conflict(statement.demands)
    relaxations: list[Relaxation] = []
    for demand in conflict:
        if isinstance(demand, Goal) and demand.kind == "class":
            continue  # wanting something else is no way out
        others = [d for d in statement.demands if d is not demand]
        way = court.loosen(demand, others)
        if way is None:
            way = _together(court, demand, others)
        if way is not None:
            relaxations.append(way)
    words = [d.text for d in conflict]
    return Infeasible(_message(words, relaxations), words, relaxations)


def _together(court: _Court, demand: Demand, others: Sequence[Demand]) -> Relaxation | None:
    """When loosening one demand is not enough, loosen it together with the demands of the next clash."""
    dropped = [demand]
    rest = list(others)
    while not court.possible(rest):
        clash = [d for d in court.conflict(rest) if not isinstance(d, Goal)]
        if not clash:
            return None
        dropped.append(clash[-1])
        rest = [d for d in rest if d is not clash[-1]]
    words = "; ".join(f"drop: {d.text}" for d in dropped)
    return Relaxation(demand.text, words, float(len(dropped)))


def _message(conflict: Sequence[str], relaxations: Sequence[Relaxation]) -> str:
    lines = ["No counterfactual exists: these demands cannot be met together (proven).", *(f"  - {c}" for c in conflict)]
    if relaxations:
        lines += ["Any one of these would make it possible:", *(f"  - {r}" for r in relaxations)]
    return "\n".join(lines)
