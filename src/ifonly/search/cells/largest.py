"""Bisection of the radius, for trees under l-infinity: its balls are boxes, and a box of cells either holds an answer or not.

Where the largest deviation of a single feature is the only cost, the points that cost at most ``r`` are a box. Whether some
point in it reaches the goal is a question to the branch and bound over cells, which ends at the first point it finds. If
there is one, it is the new incumbent; if there is none, no answer costs less than ``r``. A small box has few open leaves, so
a radius that is too small is refuted quickly. A radius that takes too long is put off; once all are, more is spent on each,
on prices of splits. What is proven last is that the box just inside the incumbent is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ifonly.events import Built
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.question.trail import Ledger
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import LargestChangeSearch
from ifonly.search.cells.kernel import compiled
from ifonly.search.cells.splitting import Splitting
from ifonly.search.engine import NO_SOLVER, by_cells, largest_only
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress

__all__ = ["LargestChange"]


@dataclass(frozen=True)
class LargestChange:
    """Engine for trees where the largest deviation of a feature is the only cost."""

    name: str = "largest change"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the form is an ensemble, the goal is linear in its scores, and the balls of the cost are boxes."""
        return by_cells(statement, box, largest_only(statement))

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Bisect the radius until the box just inside the incumbent is proven empty."""
        question = largest_only(statement)
        assert question is not None
        incumbents = Incumbents.of(statement, box, progress)
        incumbents.open()
        reducer = incumbents.reducer
        assert reducer.brackets is not None
        progress.tell(Built(len(reducer.brackets.values), len(reducer.form.features())))
        progress.tell_best()
        bound, hard = 0.0, np.inf  # what is proven; a radius that took too long
        tuning, put_off = statement.query.tuning.largest, 0
        efforts = _efforts(tuning, prices=progress.ledger is None)
        effort = next(efforts)
        while True:
            radius = progress.budget
            # above a bound of 0 there is always a smaller radius, of a box that may be no smaller
            if hard <= effort.near * bound or put_off > tuning.most_put_off:
                hard, put_off, harder = np.inf, 0, next(efforts, None)
                if harder is None:
                    return Found(Ended.GAVE_UP)
                effort = harder
            if np.isfinite(radius) and min(radius, hard) > effort.near * bound:
                radius = 0.5 * (bound + min(radius, hard))
            inside = reducer.within(box, radius)
            ledger = None if progress.ledger is None else Ledger()
            search = effort.search(incumbents, question.most, ledger, finite=bool(np.isfinite(radius)))
            ended = _searched(search, inside, progress.deadline)
            if search.met:
                put_off = 0
                progress.tell_best(bound)
            elif ended is Ended.GAVE_UP:
                if not search.spent:  # out of memory
                    return Found(Ended.GAVE_UP)
                hard, put_off = radius, put_off + 1
            elif ended is not Ended.CLOSED:
                progress.leave(bound)
                return progress.found()
            elif radius >= progress.budget:
                progress.solver = NO_SOLVER
                if progress.ledger is not None and ledger is not None:
                    progress.ledger.data += ledger.data  # the last box is the proof; those before it were smaller
                return progress.found()
            else:
                bound, put_off = radius, 0
                progress.raise_floor(bound)


class _Effort(NamedTuple):
    """Effort that a radius is worth: parts without and with prices, and the radius over the bound that is not halved."""

    parts: int | None
    priced: int
    near: float

    def search(self, incumbents: Incumbents, most: int, ledger: Ledger | None, *, finite: bool) -> Splitting:
        """Return the search of one box; where no answer is known yet, it goes on until there is one."""
        parts, priced = (self.parts, self.priced) if finite else (None, None)
        return Splitting(
            incumbents, most, patient=True, ledger=ledger, any_point=True, most_parts=parts, most_priced=priced
        )


def _efforts(tuning: LargestChangeSearch, *, prices: bool) -> Iterator[_Effort]:
    """Yield efforts: little first, so that easy radii come first; then prices, or, where a proof is kept, more parts."""
    parts, most = tuning.first_parts, tuning.most_parts_compiled if compiled() else tuning.most_parts
    yield _Effort(parts, 0, tuning.near)
    priced, most_priced = tuning.first_priced, most // tuning.as_dear
    while prices and priced <= most_priced:
        yield _Effort(None, priced, tuning.near_priced)
        priced *= tuning.more_priced
    while not prices and parts * tuning.more_parts <= most:
        parts *= tuning.more_parts
        yield _Effort(parts, 0, tuning.near)


def _searched(search: Splitting, box: Box, deadline: Deadline) -> Ended:
    """Search a box, of which a small radius may have left nothing."""
    if box.empty() is None:
        return search.run(box, deadline)
    if search.ledger is not None:
        search.ledger.leaf()
    return Ended.CLOSED
