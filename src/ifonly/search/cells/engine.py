"""Branch and bound over boxes of cells, for trees under costs and demands on single features: no solver needed.

In a part of the box every tree can reach some of its leaves. Taken each for itself, its best leaf bounds the score from
above: a part whose bound stays below the goal holds no answer. Otherwise the best leaves of two trees lie apart along
some feature, and the part is split between them; or they all meet, and where they meet is an answer. What a part must
cost, and how many features must change in it, takes the other features away: the rest of the budget reaches less far.

This closes most questions within some dozens of parts. How it fares shows early: halving the whole at each split gives
every part a share, and the shares of closed parts add up to 1 in the end. A search that has closed next to nothing when
a solver could have built its program is given up.
"""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.events import Built
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.search.cells.splitting import Splitting
from ifonly.search.engine import NO_SOLVER, by_cells, separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress

__all__ = ["Cells", "Splitting"]


@dataclass(frozen=True)
class Cells:
    """Engine for trees under costs and demands on single features."""

    name: str = "cells"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the form is an ensemble, the goal is linear in its scores, and nothing couples features."""
        return by_cells(statement, box, separable(statement))

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Search until the box is closed, or next to nothing of it is when a solver could have begun."""
        question = separable(statement)
        assert question is not None
        incumbents = Incumbents.of(statement, box, progress)
        incumbents.open()
        progress.tell_best()
        reducer = incumbents.reducer
        assert reducer.brackets is not None
        if progress.deadline.passed:
            return Found(Ended.GAVE_UP)
        progress.tell(Built(len(reducer.brackets.values), len(reducer.form.features())))
        search = Splitting(incumbents, question.most, ledger=progress.ledger)
        ended = search.run(box, progress.deadline)
        progress.tell_best()
        if ended is not Ended.CLOSED:
            progress.raise_floor(min(search.bound, progress.budget))
            return Found(Ended.GAVE_UP)
        progress.solver = NO_SOLVER
        return progress.found()
