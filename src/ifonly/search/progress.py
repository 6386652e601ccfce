"""Progress: the incumbent, the bounds and the limits of one search of a box, shared by the engines that try it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.events import Event, Incumbent, OnEvent
from ifonly.question.found import Ended, Found
from ifonly.question.trail import Ledger
from ifonly.runtime.deadline import Deadline
from ifonly.solvers.backend import Backend, Limits
from ifonly.tolerances import closing_gap

__all__ = ["Known", "Progress"]

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
        return value - closing_gap(value, self.limits.gap) if np.isfinite(value) else np.inf

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
