"""The unions engine: demands that are unions of boxes are branched on, and each box is a question without them.

A further answer leaves a feature of every earlier one as it is. That couples features, so no engine of single features takes
it; but with such a feature fixed it is met, and what is left is the question that was there before. A node is a box, its
relaxation the question in that box without these demands, which an engine closes without a solver. If its optimum breaks one
of them, the node is branched into the boxes in which that one is met; if it breaks none, it is the optimum of the node. The
node with the least bound comes first, as in the enumeration of k best solutions (Lawler 1972).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count

import numpy as np

from ifonly.events import Event, Incumbent, OnEvent
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.further import Further
from ifonly.question.guidance import UnionOfBoxes
from ifonly.question.statement import Statement
from ifonly.runtime.memo import Memo
from ifonly.search.engine import NO_SOLVER, Engine
from ifonly.search.progress import Progress

__all__ = ["Unions"]


@dataclass(frozen=True)
class Unions:
    """Engine for questions that another one closes in boxes, but for demands that are unions of boxes."""

    engines: tuple[Engine, ...]
    name: str = "unions"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether there is such a demand, and an engine for the question without it."""
        relaxed = _relaxed(statement)
        return relaxed is not None and self._engine(relaxed, box) is not None

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Return the best point of the box and the bound that is proven for it."""
        relaxed = _relaxed(statement)
        assert relaxed is not None
        return _Search(self, statement, relaxed, progress).run(box)

    def _engine(self, relaxed: Statement, box: Box) -> Engine | None:
        return next((engine for engine in self.engines if engine.accepts(relaxed, box)), None)

    def solve(self, relaxed: Statement, box: Box, progress: Progress) -> Found:
        """Return the best point of a box for the question without unions, if it is below the incumbent."""
        engine = self._engine(relaxed, box)
        if engine is None:
            return Found(Ended.GAVE_UP)
        limits = replace(progress.limits, cutoff=progress.value)
        part = Progress(progress.backend, limits, progress.deadline, _but_for_incumbents(progress.on_event))
        found = engine.search(relaxed, box, part)
        if found.ended is Ended.GAVE_UP and part.best is not None:
            return replace(found, u=part.best.u)
        return found


def _but_for_incumbents(on_event: OnEvent | None) -> OnEvent | None:
    """Return a listener that hears all but incumbents: those of a relaxation may break a demand."""
    if on_event is None:
        return None

    def hear(event: Event) -> None:
        if not isinstance(event, Incumbent):
            on_event(event)

    return hear


def _relaxed(statement: Statement) -> Statement | None:
    """Return the statement without its demands that are unions of boxes; None if it has none."""
    others = tuple(d for d in statement.demands if not isinstance(d, UnionOfBoxes))
    return replace(statement, demands=others) if len(others) < len(statement.demands) else None


class _Search:
    """One best-first branch and bound over boxes."""

    def __init__(self, unions: Unions, statement: Statement, relaxed: Statement, progress: Progress) -> None:
        self.unions, self.statement, self.relaxed, self.progress = unions, statement, relaxed, progress
        self.demands = [d for d in statement.demands if isinstance(d, UnionOfBoxes)]
        self.heap: list[tuple[float, int, Box]] = []
        self.number = count()
        self.seen: set[bytes] = set()
        shared = (d.solved for d in self.demands if isinstance(d, Further))
        self.solved = next(shared, None) or Memo()

    def run(self, box: Box) -> Found:
        """Branch until no open node can be better than the incumbent."""
        progress = self.progress
        self._open([box], -np.inf)
        while self.heap:
            bound, _, box = heappop(self.heap)
            if bound > progress.budget:  # and so are all that are left
                break
            if progress.deadline.passed:
                return self._unfinished(bound)
            found = self._solved(box)
            if found.ended is not Ended.CLOSED:
                self._offer(found)
            if found.ended is Ended.GAVE_UP:
                progress.raise_floor(bound)
                return Found(Ended.GAVE_UP)
            bound = max(bound, found.bound)
            if found.ended is not Ended.CLOSED:
                progress.interrupted |= found.interrupted
                return self._unfinished(bound)
            if found.u is not None and not self._branch(found, box, bound):
                progress.raise_floor(bound)
                return Found(Ended.GAVE_UP)
        progress.solver = NO_SOLVER
        return progress.found()

    def _unfinished(self, bound: float) -> Found:
        """Return what is known when the node at hand, of the least bound of all, stays open."""
        self.progress.leave(bound)
        self.progress.solver = NO_SOLVER
        return self.progress.found()

    def _open(self, boxes: Sequence[Box], bound: float) -> None:
        """Open the nodes that are not empty, each once: features fixed in another order make the same box."""
        for box in boxes:
            if box.empty() is None and box.key not in self.seen:
                self.seen.add(box.key)
                heappush(self.heap, (bound, next(self.number), box))

    def _branch(self, found: Found, box: Box, bound: float) -> bool:
        """Take the optimum of a relaxation as that of the node if it breaks no demand; else branch on one that it breaks.

        False: a piece still holds the point, which a rounding may do; then branching leads nowhere.
        """
        assert found.u is not None
        query, u = self.statement.query, found.u[None, :]
        broken = next((d for d in self.demands if not bool(d.holds(query, u)[0])), None)
        self._offer(found)
        if broken is None:
            self.progress.close(bound)
            return True
        pieces = broken.pieces(query, box)
        if any(bool(piece.contains(u)[0]) for piece in pieces):
            return False
        self._open(pieces, bound)
        return True

    def _offer(self, found: Found) -> None:
        """Take the points of a relaxation as incumbents that meet the demands which it left out."""
        points = [p for p in (found.u, *found.pool) if p is not None]
        if not points:
            return
        rows = np.array(points)
        good = np.all([d.holds(self.statement.query, rows) for d in self.demands], axis=0)
        costs = self.statement.objective(rows)
        for k in np.flatnonzero(good & (costs <= self.progress.limits.cutoff)):
            if self.progress.keep(rows[k], float(costs[k])):
                self.progress.tell_best()

    def _solved(self, box: Box) -> Found:
        """Return the best point of a box for the relaxation; an optimum is an optimum for every question that shares it."""
        asked = self.relaxed
        key = box.key, asked.margin, asked.tie, id(asked.form), tuple(map(id, asked.demands)), self.progress.limits.gap
        known: list[Found] = self.solved.get("boxes", key, list, keep=(asked.form, asked.demands))
        for found in known:
            # "nothing below the cut-off" is of use only to those who look no further
            if found.u is not None or found.bound >= self.progress.budget:
                return found
        found = self.unions.solve(asked, box, self.progress)
        if found.ended is Ended.CLOSED:
            known.append(found)
        return found
