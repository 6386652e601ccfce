"""The engines in the order in which they are tried, and the search that tries them: from a statement to a point and a proof.

The answer is not verified yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ifonly.errors import SolverFailed
from ifonly.events import OnEvent
from ifonly.program.box import Box
from ifonly.question.demand import Demand
from ifonly.question.found import Ended, Found
from ifonly.question.guidance import Branch, Branches
from ifonly.question.statement import Statement
from ifonly.question.trail import Ledger, alternatives
from ifonly.runtime.deadline import Deadline
from ifonly.search.balls import Balls
from ifonly.search.boxes import Boxes
from ifonly.search.cells import Cells
from ifonly.search.composites import Composites
from ifonly.search.ellipsoid import Ellipsoid
from ifonly.search.engine import NO_SOLVER, Engine
from ifonly.search.largest import LargestChange
from ifonly.search.linear import Knapsack
from ifonly.search.nearest import Neighbours
from ifonly.search.network_balls import NetworkBalls
from ifonly.search.networks import Networks
from ifonly.search.progress import Progress
from ifonly.search.single_tree import SingleTree
from ifonly.search.unions import Unions
from ifonly.solvers.backend import Backend, Limits
from ifonly.solvers.registry import ONLY
from ifonly.tolerances import ROUNDING

__all__ = ["ENGINES", "WITH_SOLVER", "engines_for", "find"]

_IN_BOXES: tuple[Engine, ...] = (
    Knapsack(),
    Ellipsoid(),
    SingleTree(),
    Cells(),
    LargestChange(),
    Networks(),
    Neighbours(),
    Composites(),
    Balls(),
    NetworkBalls(),
)
ENGINES: tuple[Engine, ...] = (*_IN_BOXES, Unions(_IN_BOXES), Boxes())
WITH_SOLVER: tuple[Engine, ...] = ENGINES[-1:]  # of a solver that is to solve every question: "highs only"

NEVER = Deadline.never()


def engines_for(backend: Backend) -> tuple[Engine, ...]:
    """Return the engines of a ``solver=``: all of them, unless the solver is asked to do all by itself ("highs only")."""
    return WITH_SOLVER if backend.name.endswith(ONLY) else ENGINES


def find(
    statement: Statement,
    backend: Backend,
    limits: Limits,
    on_event: OnEvent | None = None,
    deadline: Deadline = NEVER,
    engines: Sequence[Engine] | None = None,
    *,
    proof: bool = False,
) -> Found:
    """Search for the cheapest point that meets all demands, within the limits and before the deadline.

    `engines` are tried in their order; those of the solver by default (see `engines_for`). With `proof`, the trail of a
    search that needs no solver is kept.
    """
    box = statement.box()
    if box.empty() is not None:
        return _nothing(proof=proof)
    tried = engines_for(backend) if engines is None else tuple(engines)
    hunt = _Hunt(tried, backend, limits, deadline.within(limits.seconds), on_event, proof)
    for demand in statement.demands:
        branches = demand.branches(statement, box, hunt.deadline) if isinstance(demand, Branches) else None
        if branches is not None:
            return hunt.over_branches(statement, demand, branches)
    return hunt.in_box(statement, box, limits.cutoff)


@dataclass(frozen=True)
class _Hunt:
    """One call of `find`: who searches, and within which limits."""

    engines: tuple[Engine, ...]
    backend: Backend
    limits: Limits
    deadline: Deadline
    on_event: OnEvent | None
    proof: bool = False

    def in_box(self, statement: Statement, box: Box, cutoff: float) -> Found:
        """Try the engines in turn, until one does not give up."""
        if box.empty() is not None:
            return _nothing(proof=self.proof)
        ledger = Ledger() if self.proof else None
        limits = replace(self.limits, cutoff=cutoff)
        progress = Progress(self.backend, limits, self.deadline, self.on_event, ledger)
        try:
            for engine in self.engines:
                if engine.accepts(statement, box):
                    found = engine.search(statement, box, progress)
                    if found.ended is not Ended.GAVE_UP:
                        return found if ledger is None else replace(found, trail=bytes(ledger.data))
                    if ledger is not None:
                        ledger.clear()
        except KeyboardInterrupt:  # outside of the solver: what is known so far still counts
            progress.interrupt()
            return progress.found()
        progress.leave(-np.inf)
        return replace(progress.found(), ended=Ended.GAVE_UP)

    def over_branches(self, statement: Statement, demand: Demand, branches: Iterable[Branch]) -> Found:
        """Search alternatives in the order of their bounds until the next bound passes the best answer."""
        best, value, unfinished = Found.nothing(), self.limits.cutoff, False
        least = np.inf  # of the bounds of all alternatives so far: within a gap, a dearer one may hold the best point
        trails: dict[int | None, bytes] = {}
        for branch in branches:
            if branch.bound > value * (1.0 - ROUNDING):
                break
            if self.deadline.passed:
                least, unfinished = min(least, branch.bound), True
                break
            others = tuple(branch.demand if d is demand else d for d in statement.demands)
            part = replace(statement, demands=others)
            try:
                found = self.in_box(part, branch.box, value)
            except SolverFailed:
                if best.u is None:
                    raise
                least, unfinished = min(least, branch.bound), True  # what was found before is not lost
                continue
            # The bounds of alternatives may be linear programs, even where all that is left of one needs no solver.
            solver = self.backend.label if found.solver == NO_SOLVER and branch.by_solver else found.solver
            trails[branch.name] = found.trail
            found = replace(found, solver=solver, trail=b"")
            least = min(least, max(found.bound, branch.bound))
            unfinished |= found.ended is not Ended.CLOSED
            if found.u is not None:
                cost = float(part.objective(found.u[None, :])[0])
                least = min(least, cost)
                if best.u is None or cost < value:
                    best, value = found, min(cost, value)
            elif best.u is None and not found.infeasible:
                best = found
            if found.interrupted:
                return replace(best, ended=Ended.INTERRUPTED, bound=min(least, branch.bound))
        if unfinished:
            return replace(best, ended=Ended.LIMIT if best.ended is Ended.CLOSED else best.ended, bound=least)
        return replace(best, bound=least, trail=alternatives(trails))


def _nothing(*, proof: bool) -> Found:
    """Return that an empty box has no point; the proof of it is the box itself, as its only part."""
    ledger = Ledger()
    ledger.leaf()
    return replace(Found.nothing(), trail=bytes(ledger.data) if proof else b"")
