"""The search for a point: engines are tried in turn, and share the progress of a box, its incumbent, bounds and limits.

From a statement to a point and a proof; the answer is not verified yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import SolverFailed
from ifonly.events import Event, Incumbent, OnEvent
from ifonly.program.box import Box
from ifonly.question.demand import Demand
from ifonly.question.found import NO_SOLVER, Ended, Found
from ifonly.question.guidance import Branch, Branches
from ifonly.question.statement import Statement
from ifonly.question.trail import Ledger, alternatives
from ifonly.runtime.deadline import Deadline
from ifonly.solvers.backend import Backend, Limits
from ifonly.tolerances import CLOSING, ROUNDING

__all__ = ["Engine", "Known", "Progress", "find"]

NEVER = Deadline.never()
UNLIMITED = Limits(np.inf)
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Known:
    """An incumbent: a point that meets all demands, and its cost."""

    u: FloatArray
    cost: float


class Progress:
    """State of one search of a box.

    Every engine that tries the box is given the same one, so that an engine that gives up leaves its incumbent to the
    next.

    Parameters
    ----------
    backend
        The solver, for engines that need one.
    limits
        Gap, cut-off and seed.
    deadline
        When the search must have ended.
    on_event
        The listener, if there is one.
    ledger
        Keeps the trail of the search, where a proof is asked for.

    Attributes
    ----------
    best
        The incumbent.
    value
        Its cost, or the cut-off if that is less.
    budget
        The most that a better point may cost: less than `value` by the gap that closes the search.
    pool
        Points of the solver's that meet all demands.
    open_bound
        The least bound of the nodes that were left open; infinity: none was.
    closed_bound
        The least bound that a solver proved for the optimum of a node.
    floor
        The bound that an engine proved for the whole box before it gave up.
    interrupted
        Whether Ctrl-C was pressed.
    too_large
        Whether a node was left open because its program is too large.
    solver
        Who closed the last node, in words for people.
    """

    def __init__(
        self,
        backend: Backend | None = None,
        limits: Limits = UNLIMITED,
        deadline: Deadline = NEVER,
        on_event: OnEvent | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.ledger = ledger
        self._backend, self.limits, self.deadline, self._on_event = backend, limits, deadline, on_event
        self.best: Known | None = None
        self.value, self.budget = limits.cutoff, self._below(limits.cutoff)
        self.pool: list[FloatArray] = []
        self.open_bound = self.closed_bound = np.inf
        self.floor = -np.inf
        self.interrupted = self.too_large = False
        self.solver = "" if backend is None else backend.label
        self._made: dict[type, Any] = {}

    @property
    def backend(self) -> Backend:
        """The solver."""
        assert self._backend is not None, "this search was started without a solver"
        return self._backend

    def _below(self, value: float) -> float:
        return value - CLOSING * self.limits.gap * abs(value) if value < np.inf else np.inf

    # -- what is known ------------------------------------------------------------------------------------------
    def keep(self, u: FloatArray, cost: float) -> bool:
        """Take a point that meets all demands as the incumbent if it is cheaper than the one before; say whether it is."""
        if self.best is not None and cost >= self.best.cost:
            return False
        self.best = Known(u, cost)
        self.value = min(cost, self.limits.cutoff)
        self.budget = self._below(self.value)
        return True

    def leave(self, bound: float, *, too_large: bool = False) -> None:
        """Leave a node open in which no point costs less than `bound`."""
        self.open_bound = min(self.open_bound, bound)
        self.too_large |= too_large

    def close(self, bound: float) -> None:
        """Note the bound that a solver proved for the optimum of a node."""
        self.closed_bound = min(self.closed_bound, bound)

    def raise_floor(self, bound: float) -> None:
        """Note that no point of the whole box costs less than `bound`, whoever goes on with it."""
        self.floor = max(self.floor, bound)

    def interrupt(self) -> None:
        """Note Ctrl-C outside of a solver: nobody knows what the node at hand would have cost."""
        self.interrupted = True
        self.leave(-np.inf)

    # -- who hears of it ----------------------------------------------------------------------------------------
    def tell(self, event: Event) -> None:
        """Tell the listener, if there is one."""
        if self._on_event is not None:
            self._on_event(event)

    def tell_best(self, bound: float = -np.inf) -> None:
        """Tell the listener of the incumbent, if there is one."""
        if self.best is not None:
            self.tell(Incumbent(self.best.cost, bound))

    @property
    def on_event(self) -> OnEvent | None:
        """The listener."""
        return self._on_event

    # -- what engines share -------------------------------------------------------------------------------------
    def once(self, kind: type[T], make: Callable[[], T]) -> T:
        """Return the object of a kind that an earlier engine made for this search, or make it."""
        if kind not in self._made:
            self._made[kind] = make()
        made: T = self._made[kind]
        return made

    # -- the result ---------------------------------------------------------------------------------------------
    def found(self) -> Found:
        """Return the incumbent with the bound of all nodes, and how the search ended."""
        unfinished = self.interrupted or self.open_bound < np.inf
        if self.best is None or self.best.cost > self.limits.cutoff:
            bound = max(self.open_bound, self.floor)
            if unfinished:
                return Found(self._ended(), bound=bound)
            # what lies between the budget and the cut-off is within the gap of it
            return Found.nothing(self.solver, min(self.closed_bound, self.budget))
        bound = min(self.open_bound, self.closed_bound, self.budget, self.best.cost)
        bound = max(bound, min(self.floor, self.best.cost))
        ended = self._ended() if unfinished else Ended.CLOSED
        return Found(ended, self.best.u, bound, (*self.pool, self.best.u), self.solver)

    def _ended(self) -> Ended:
        if self.interrupted:
            return Ended.INTERRUPTED
        return Ended.TOO_LARGE if self.too_large else Ended.LIMIT


@runtime_checkable
class Engine(Protocol):
    """A way to search a box for the cheapest point that meets all demands.

    Examples
    --------
    An engine that takes questions of one admissible point:

    >>> import numpy as np
    >>> from ifonly.question.found import Ended
    >>> class Fixed:
    ...     name = "fixed"
    ...
    ...     def accepts(self, statement, box):
    ...         return all(box.is_fixed(j) for j in range(len(box.schema)))
    ...
    ...     def search(self, statement, box, progress):
    ...         u = statement.query.factual
    ...         holds = all(d.holds(statement.query, u[None, :])[0] for d in statement.demands)
    ...         return Found(Ended.CLOSED, u, 0.0, solver=self.name) if holds else Found.nothing(self.name)
    """

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the question is of a kind that this engine can close."""
        ...

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Search a box that is not empty; `Ended.GAVE_UP` hands it on to the next engine, with the incumbent so far.

        Only points below the cut-off of `progress` count, and the deadline is to be kept.
        """
        ...


def find(
    statement: Statement,
    backend: Backend,
    limits: Limits,
    engines: Sequence[Engine],
    on_event: OnEvent | None = None,
    deadline: Deadline = NEVER,
    *,
    proof: bool = False,
) -> Found:
    """Search for the cheapest point that meets all demands, within the limits and before the deadline.

    `engines` are tried in their order; `ifonly.search.engines` has all there are. With `proof`, the trail of a search that
    needs no solver is kept.
    """
    if statement.is_empty:
        return _nothing(proof=proof)
    box = statement.whole
    hunt = _Hunt(tuple(engines), backend, limits, deadline.within(limits.seconds), on_event, proof)
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
        """Try the engines in turn in a box that is not empty, until one does not give up."""
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
                empty = branch.box.empty() is not None
                found = _nothing(proof=self.proof) if empty else self.in_box(part, branch.box, value)
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
