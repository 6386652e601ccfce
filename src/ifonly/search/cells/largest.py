"""Bisection of the radius, for trees under l-infinity: its balls are boxes, and a box of cells either holds an answer or not.

Where the largest deviation of a single feature is the only cost, the points that cost at most ``r`` are a box. Whether some
point in it reaches the goal is a question to the branch and bound over cells, which ends at the first point it finds. If
there is one, it is the new incumbent; if there is none, no answer costs less than ``r``. A small box has few open leaves, so
a radius that is too small is refuted quickly. What is proven last is that the box just inside the incumbent is empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ifonly.events import Built
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.question.trail import Ledger
from ifonly.runtime.deadline import Deadline
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
        tuning = statement.query.tuning.largest
        most_parts = tuning.most_parts_compiled if compiled() else tuning.most_parts
        bound, hard, parts = (
            0.0,
            np.inf,
            tuning.first_parts,
        )  # what is proven; a radius that took too long; how long that is
        while True:
            radius = progress.budget
            if hard <= tuning.near * bound:
                hard, parts = np.inf, tuning.more_parts * parts
                if parts > most_parts:
                    return Found(Ended.GAVE_UP)
            if np.isfinite(radius) and min(radius, hard) > tuning.near * bound:
                radius = 0.5 * (bound + min(radius, hard))
            inside = reducer.within(box, radius)
            most = parts if np.isfinite(radius) else None
            ledger = None if progress.ledger is None else Ledger()
            search = Splitting(incumbents, question.most, patient=True, ledger=ledger, any_point=True, most_parts=most)
            ended = _searched(search, inside, progress.deadline)
            if search.met:
                progress.tell_best(bound)
            elif ended is Ended.GAVE_UP:
                if most is None or search.parts < most:  # out of memory
                    return Found(Ended.GAVE_UP)
                hard = radius
            elif ended is not Ended.CLOSED:
                progress.leave(bound)
                return progress.found()
            elif radius >= progress.budget:
                progress.solver = NO_SOLVER
                if progress.ledger is not None and ledger is not None:
                    progress.ledger.data += ledger.data  # the last box is the proof; those before it were smaller
                return progress.found()
            else:
                bound = radius
                progress.raise_floor(bound)


def _searched(search: Splitting, box: Box, deadline: Deadline) -> Ended:
    """Search a box, of which a small radius may have left nothing."""
    if box.empty() is None:
        return search.run(box, deadline)
    if search.ledger is not None:
        search.ledger.leaf()
    return Ended.CLOSED
