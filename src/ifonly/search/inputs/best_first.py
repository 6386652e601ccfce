"""Best-first branch and bound over inputs: the open node with the least bound is split next, some of them at a time.

What a node's bound is, and how it is split, is left to the engine: of networks, or of curves, votes and means.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from typing import Generic, Protocol, TypeVar

import numpy as np

from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.search.engine import NO_SOLVER, Separable, separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.inputs.nodes import Nodes
from ifonly.search.inputs.places import Places
from ifonly.search.progress import Progress

__all__ = ["BestFirst", "Pace", "narrowed", "opened"]

Node = TypeVar("Node")


class Pace(Protocol):
    """Tuned numbers of a search: how many nodes, how many of them at a time, and when to give up."""

    @property
    def most_nodes(self) -> int:
        """Number of nodes after which a solver may be quicker."""
        ...

    @property
    def first_look(self) -> int:
        """Number of nodes after which the progress is judged; it is judged again at twice as many."""
        ...

    @property
    def least_done(self) -> float:
        """Share of the gap that must be closed by then."""
        ...

    @property
    def nodes_at_once(self) -> int:
        """Number of nodes that are looked at together, at most."""
        ...

    @property
    def work_at_once(self) -> int:
        """Work that is done together, at most."""
        ...

    @property
    def share(self) -> float:
        """Share of the time that is left: a solver may need the rest."""
        ...


def opened(statement: Statement, box: Box, progress: Progress) -> tuple[Separable, Incumbents, Box] | Found:
    """Return the question, the heuristics with a first incumbent if there is one, and what its budget leaves of the box.

    Or how the search has ended before its first node.
    """
    question = separable(statement)
    assert question is not None
    incumbents = Incumbents.of(statement, box, progress)
    incumbents.open()
    progress.tell_best()
    left = narrowed(incumbents, box)
    return left if isinstance(left, Found) else (question, incumbents, left)


def narrowed(incumbents: Incumbents, box: Box) -> Box | Found:
    """Return what the budget leaves of a box; or how the search has ended: without time, or with nothing left of it."""
    progress = incumbents.progress
    if progress.deadline.passed:
        return Found(Ended.GAVE_UP)
    box = incumbents.reducer.within(box, progress.budget)
    if box.empty() is None:
        return box
    progress.solver = NO_SOLVER
    return progress.found()


class BestFirst(ABC, Generic[Node]):
    """One branch and bound over inputs.

    Attributes
    ----------
    bound
        The least bound of the open nodes.
    looked
        How many nodes were bounded.
    open
        Heap of the open nodes: bound, order, node.
    """

    def __init__(
        self,
        statement: Statement,
        question: Separable,
        box: Box,
        incumbents: Incumbents,
        features: Iterable[int],
        pace: Pace,
    ) -> None:
        self.statement, self.box, self.incumbents, self.pace = statement, box, incumbents, pace
        self.progress, self.start = incumbents.progress, incumbents.start
        self.places = self._places(features)
        self.free = self.places.free(statement, question)
        self.bound, self.looked, self.at_once, self._order = self.free.elsewhere, 0, 1, count()
        # a solver may need the rest
        self.deadline = self.progress.deadline.within(pace.share * self.progress.deadline.left())
        self.open: list[tuple[float, int, Node]] = []

    def _places(self, features: Iterable[int]) -> Places:
        """Return the places of the features among some that the box leaves open."""
        return Places.of(self.statement, self.box, features, self.start)

    def run(self) -> Ended:
        """Split the most promising nodes until none is left; say how that ended."""
        whole, pace = self.whole(), self.pace
        self._look(whole)
        self.at_once = max(1, int(min(pace.nodes_at_once, pace.work_at_once // max(1, self._work()))))
        look, first = pace.first_look, self.open[0][0] if self.open else np.inf
        while self.open:
            self.bound = self.open[0][0]
            best = self.progress.best
            if self.bound > self.progress.budget or (best is not None and self.bound >= best.cost):  # 0 has no gap
                break
            if self.looked >= pace.most_nodes or self.deadline.passed:
                return Ended.GAVE_UP
            if self.looked >= look:
                if self.bound - first < pace.least_done * (self.progress.value - first):
                    return Ended.GAVE_UP
                look *= 2
            if self._improved(whole):
                continue
            some = min(self.at_once, max(1, len(self.open) // 2))
            self._look(self._children([heapq.heappop(self.open)[2] for _ in range(some)]))
        self.bound = np.inf
        return Ended.CLOSED

    def found(self, ended: Ended) -> Found:
        """Return what a run has found; what it gave up keeps its bound as a floor."""
        self.progress.tell_best(self.bound)
        if ended is Ended.GAVE_UP:
            self.progress.raise_floor(self.bound)
            return Found(Ended.GAVE_UP)
        self.progress.solver = NO_SOLVER
        return self.progress.found()

    def whole(self) -> Nodes:
        """Return the box as a node."""
        at, origin = self.places, self.free.origin
        numbers = list(at.numbers)
        return Nodes(
            self.free,
            self.box.lower[numbers][None] - origin,
            self.box.upper[numbers][None] - origin,
            at.allowed(self.box)[None],
            np.zeros(1, dtype=np.int64),
        )

    def _push(self, bound: float, node: Node) -> None:
        """Keep a node open."""
        heapq.heappush(self.open, (bound, next(self._order), node))

    def _improved(self, whole: Nodes) -> bool:
        """Look for a better incumbent, or better bounds, before the next split; say whether there are any."""
        del whole
        return False

    @abstractmethod
    def _work(self) -> int:
        """Return the work of bounding one node."""

    def _look(self, nodes: Nodes) -> None:
        """Look at what the budget leaves of nodes."""
        nodes = replace(nodes, budget=self.progress.budget).reduced()
        self.looked += len(nodes)
        if len(nodes):
            self._bound_all(nodes)

    @abstractmethod
    def _bound_all(self, nodes: Nodes) -> None:
        """Bound nodes, offer points of the best of them, and keep those that may hold a better answer."""

    @abstractmethod
    def _children(self, popped: list[Node]) -> Nodes:
        """Return the children of nodes."""
