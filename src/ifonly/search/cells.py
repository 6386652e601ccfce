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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import IntArray
from ifonly.events import Built
from ifonly.models.forms.scan import Brackets
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.question.trail import Ledger
from ifonly.runtime.deadline import Deadline
from ifonly.search.engine import NO_SOLVER, by_cells, separable
from ifonly.search.grids import Grid, Part
from ifonly.search.incumbents import Incumbents
from ifonly.search.kernel import Kernel, Offer, Said, compiled
from ifonly.search.progress import Progress
from ifonly.tolerances import ROUNDING as _TIE

__all__ = ["Cells", "Splitting"]

BoolArray = npt.NDArray[np.bool_]


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
        reducer = incumbents.reducer
        assert reducer.brackets is not None
        if progress.deadline.passed:
            return Found(Ended.GAVE_UP)
        progress.tell(Built(len(reducer.brackets.values), len(reducer.form.features())))
        ended = Splitting(incumbents, question.most, ledger=progress.ledger).run(box, progress.deadline)
        progress.tell_best()
        if ended is not Ended.CLOSED:
            return Found(Ended.GAVE_UP)
        progress.solver = NO_SOLVER
        return progress.found()


@dataclass(frozen=True, eq=False)
class _Node:
    """A part, its share of the whole, and the leaves that are open in the part `around` it."""

    part: Part
    share: float
    around: Part
    leaves: IntArray


@dataclass(frozen=True, eq=False)
class _Best:
    """Best leaf of each tree within a node, as a box: cells from `begin` to `end`, the levels that each `holds`."""

    begin: IntArray
    end: IntArray
    holds: BoolArray

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.holds.shape[1])


class Splitting:
    """One branch and bound over cells.

    Parameters
    ----------
    incumbents
        Checks points and offers them to the progress of the search.
    most
        How many features may change.
    patient
        Whether to go on until the deadline however little is closed, because no solver can take over.
    ledger
        Keeps the parts, where a proof is asked for.
    any_point
        Whether the first point that is better than the incumbent ends the search.
    most_parts
        After how many parts to give up in any case; None: as many as it takes.

    Attributes
    ----------
    parts
        How many parts were looked at.
    met
        Whether a point was found that is better than the incumbent before.
    """

    def __init__(
        self,
        incumbents: Incumbents,
        most: int,
        *,
        patient: bool = False,
        ledger: Ledger | None = None,
        any_point: bool = False,
        most_parts: int | None = None,
    ) -> None:
        self.incumbents, self.reducer, self.progress = incumbents, incumbents.reducer, incumbents.progress
        self.most, self.patient, self.ledger, self.any_point = most, patient, ledger, any_point
        self.tuning, self.most_parts = self.reducer.statement.query.tuning.cells, most_parts
        self.parts, self.met = 0, False
        self._noted = False  # whether the ledger has the last split already

    def run(self, box: Box, deadline: Deadline) -> Ended:
        """Search a box and say how that ended; closed: nothing better than the incumbent is left in it, for certain."""
        brackets = self.reducer.brackets
        assert brackets is not None
        if deadline.left() < self.tuning.seconds_per_leaf * len(brackets.leaves.node):
            return Ended.LIMIT
        box = self.reducer.within(box, self.progress.budget)
        if box.empty() is not None:
            if self.ledger is not None:
                self.ledger.leaf()
            return Ended.CLOSED
        self._tabulate(box, brackets)
        return self._by_kernel(deadline) if compiled() else self._by_numpy(deadline)

    def _by_numpy(self, deadline: Deadline) -> Ended:
        """Search part by part with NumPy."""
        whole = self.grid.whole()
        stack = [_Node(whole, 1.0, whole, self._inhabited())]
        done, look, least = 0.0, self.tuning.first_look, self.tuning.least_done
        while stack:
            node = stack.pop()
            self.parts += 1
            children = self._split(node)
            if self.ledger is not None:
                self._note(self.ledger, children)
            stack += children
            if not children:
                done += node.share
            if self.met and self.any_point:
                return Ended.LIMIT
            if self.parts == self.most_parts and stack:
                return Ended.GAVE_UP
            if self.parts >= look and not self.patient:
                if done < least or self.parts >= self.tuning.most_parts:
                    return Ended.GAVE_UP
                look, least = 2 * look, 10.0 * least
            if deadline.passed:
                return Ended.LIMIT
        return Ended.CLOSED

    def _by_kernel(self, deadline: Deadline) -> Ended:
        """Search with the compiled kernel, and look at its progress, the deadline and Ctrl-C every few milliseconds."""
        try:
            kernel = Kernel(self, self._inhabited(), self.most, keeps_trail=self.ledger is not None)
        except MemoryError:
            return Ended.GAVE_UP
        look, least, met = self.tuning.first_look_compiled, self.tuning.least_done, Offer.REFUSED
        before = self.parts
        while True:
            if deadline.passed:
                return Ended.LIMIT
            ends = [end for end in (self.most_parts, None if self.patient else look) if end is not None]
            most = min(ends, default=self.parts + self.tuning.most_parts) - self.parts
            run = kernel.run(self.progress.budget, met, most)
            self.parts = before + run.parts
            if self.ledger is not None:
                self.ledger.data += run.trail
            if run.said is Said.CLOSED:
                return Ended.CLOSED
            if run.said in {Said.FULL, Said.BROKEN}:
                return Ended.GAVE_UP
            if run.said is Said.OFFER:
                met = self._offer(kernel.meeting())
                if self.met and self.any_point:
                    return Ended.LIMIT
            elif self.parts == self.most_parts:
                return Ended.GAVE_UP
            elif self.parts >= look and not self.patient:
                if run.done < least or self.parts >= self.tuning.most_parts:
                    return Ended.GAVE_UP
                look, least = 2 * look, 10.0 * least

    def _tabulate(self, box: Box, brackets: Brackets) -> None:
        """Tabulate what the box leaves open."""
        leaves = brackets.leaves.within(box)
        self.grid = Grid(self.reducer, box, leaves)
        self.values = brackets.values_of(leaves)
        self.tree = leaves.tree
        largest = np.abs(self.values).max(axis=0) * brackets.trees.n_trees
        self.need = -brackets.constant - _TIE * np.maximum(1.0, np.maximum(largest, np.abs(brackets.constant)))

    def _inhabited(self) -> IntArray:
        """Return the leaves that some admissible value of each feature reaches, ordered by tree and value."""
        grid = self.grid
        some = np.asarray((grid.begin <= grid.end).all(axis=0))
        if grid.entries.size:
            some &= np.logical_or.reduceat(grid.holds & grid.open[:, None], grid.entry_first, axis=0).all(axis=0)
        order = np.lexsort((-self.values[:, 0], self.tree))
        return np.asarray(order[some[order]])

    # -- one part -----------------------------------------------------------------------------------------------
    def _split(self, node: _Node) -> list[_Node]:
        """Reduce a node and branch: two children, the more promising one last (the stack pops it first); empty if pruned."""
        part = self._reduced(node.part)
        if part is None:
            return []
        leaves = self._alive(part, node)
        best = self._best(part, leaves)
        if best is None:
            return []
        halves = self._between(part, best)
        if halves is None:
            halves = self._beside(part, self._meeting(part, best))
        share = node.share / max(len(halves), 1)
        return [_Node(half, share, part, leaves) for half in halves]

    def _note(self, ledger: Ledger, children: Sequence[_Node]) -> None:
        """Note a pruned part, or how it was split. The stack pops the last child first, so the notes are in pre-order.

        What a reduction took away before the split lies on either side of it, and is taken away there again.
        """
        if self._noted:
            self._noted = False
            return
        if not children:
            ledger.leaf()
            return
        grid, (later, sooner) = self.grid, (child.part for child in children)
        apart = np.flatnonzero((later.low != sooner.low) | (later.high != sooner.high))
        if apart.size:
            k = int(apart[0])
            last = min(int(later.high[k]), int(sooner.high[k]))
            ledger.cut(grid.numbers[k], float(grid.highest[grid.first[k] + last]), bool(sooner.low[k] > last))
        else:
            c = int(grid.owner[np.flatnonzero(later.allowed != sooner.allowed)[0]])
            ledger.levels(grid.categories[c], sooner.allowed[grid.span(c)])

    def _reduced(self, part: Part) -> Part | None:
        """Return what the budget and the number of changes leave of a part."""
        grid = self.grid
        if self.most < len(grid.numbers) + len(grid.categories) + grid.changed_elsewhere:
            away = grid.changed(part)
            count = int(away[0].sum() + away[1].sum()) + grid.changed_elsewhere
            if count > self.most:
                return None
            if count == self.most:
                part = grid.staying(part, away)
        numbers, levels = grid.least(part)
        spare = self.progress.budget - grid.elsewhere - float(numbers.sum() + levels.sum())
        if not spare >= 0.0:
            return None
        return part if spare == np.inf else grid.within(part, (numbers + spare, levels + spare))

    def _alive(self, part: Part, node: _Node) -> IntArray:
        """Return the leaves that are open in a part; only features in which it is smaller than before are looked at."""
        grid, leaves, around = self.grid, node.leaves, node.around
        for k in np.flatnonzero((part.low != around.low) | (part.high != around.high)):
            leaves = leaves[(grid.begin[k][leaves] <= part.high[k]) & (grid.end[k][leaves] >= part.low[k])]
        fewer = part.allowed != around.allowed
        for c in np.unique(grid.owner[fewer]) if fewer.any() else ():
            span = grid.span(int(c))
            leaves = leaves[grid.holds[span][part.allowed[span]][:, leaves].any(axis=0)]
        return leaves

    def _best(self, part: Part, leaves: IntArray) -> _Best | None:
        """Return the best leaf of each tree; None when even these do not reach the goal together."""
        tree = self.tree[leaves]
        first = np.concatenate(([0], np.flatnonzero(tree[1:] != tree[:-1]) + 1))
        if len(self.need) == 1:  # leaves of a tree come in the order of their values
            best = leaves[first]
            if self.values[best, 0].sum() < self.need[0]:
                return None
        else:
            values = self.values[leaves]
            tops = np.maximum.reduceat(values, first, axis=0)
            spare = tops.sum(axis=0) - self.need
            if (spare < 0.0).any():
                return None
            g = int(spare.argmin())
            count = np.diff(first, append=len(leaves))
            hits = np.flatnonzero(values[:, g] == np.repeat(tops[:, g], count))
            best = leaves[hits[np.diff(tree[hits], prepend=-1) != 0]]
        grid = self.grid
        begin = np.maximum(grid.begin[:, best], part.low[:, None])
        end = np.minimum(grid.end[:, best], part.high[:, None])
        return _Best(begin, end, grid.holds[:, best] & part.allowed[:, None])

    # -- best leaves that lie apart -----------------------------------------------------------------------------
    def _between(self, part: Part, best: _Best) -> list[Part] | None:
        """Split where most best leaves lie on either side, along a number or between one level and the others."""
        along, cell = self._apart(best)
        among, entry = self._at_odds(part, best)
        if along >= among and along > 0:
            k = int(self.grid.number_of[cell])
            return self._halves(part, k, cell - int(self.grid.first[k]))
        if among > 0:
            return self._one_level(part, entry)
        return None

    def _apart(self, best: _Best) -> tuple[int, int]:
        """Return how many best leaves end at or before a cell, while no fewer begin behind it, and at which cell."""
        grid, trees = self.grid, best.n_trees
        if not grid.numbers:
            return 0, 0
        n = len(grid.cost)
        before = trees * grid.number_of
        ended = np.bincount((best.end + grid.first[:, None]).ravel(), minlength=n).cumsum() - before
        begun = np.bincount((best.begin + grid.first[:, None]).ravel(), minlength=n).cumsum() - before
        score = np.minimum(ended, trees - begun)
        cell = int(score.argmax())
        return int(score[cell]), cell

    def _at_odds(self, part: Part, best: _Best) -> tuple[int, int]:
        """Return how many best leaves want a level and no other one, while no fewer rule it out, and which level."""
        grid = self.grid
        if not grid.categories:
            return 0, 0
        wide = np.add.reduceat(best.holds, grid.entry_first, axis=0, dtype=np.int64)
        only = (best.holds & (wide[grid.owner] == 1)).sum(axis=1)
        hold = best.holds.sum(axis=1)
        score = np.where(part.allowed, np.minimum(only, best.n_trees - hold), 0)
        entry = int(score.argmax())
        if score[entry] == 0:
            # Sets can meet two by two and still have nothing in common.
            apart = ~np.logical_or.reduceat(hold == best.n_trees, grid.entry_first)
            if not apart.any():
                return 0, 0
            score = np.where(part.allowed & apart[grid.owner], np.minimum(hold, best.n_trees - hold), 0)
            entry = int(score.argmax())
        return int(score[entry]), entry

    def _halves(self, part: Part, k: int, cell: int) -> list[Part]:
        """Split a number behind a cell; the side of the cheapest value comes last."""
        below = part.numbers(k, int(part.low[k]), cell)
        above = part.numbers(k, cell + 1, int(part.high[k]))
        return [above, below] if self.grid.cheapest[k] <= cell else [below, above]

    def _one_level(self, part: Part, entry: int) -> list[Part]:
        """Split a category into one level and the others; the side of what it is now comes last."""
        grid = self.grid
        others = grid.owner != grid.owner[entry]
        this = np.arange(len(grid.entries)) == entry
        only, rest = part.levels(others | this), part.levels(~this)
        return [rest, only] if grid.home[entry] else [only, rest]

    # -- best leaves that meet ----------------------------------------------------------------------------------
    def _meeting(self, part: Part, best: _Best) -> Part:
        """Return the part that all best leaves have in common."""
        common = np.asarray(best.holds.all(axis=1))
        if not self.grid.numbers:
            return Part(part.low, part.high, common)
        return Part(best.begin.max(axis=1), best.end.min(axis=1), common)

    def _beside(self, part: Part, meeting: Part) -> list[Part]:
        """Offer the cheapest point of the intersection as incumbent; branch so that cheaper points lie in the other child."""
        grid = self.grid
        here, there = grid.least(part), grid.least(meeting)
        cost = grid.elsewhere + float(there[0].sum() + there[1].sum())
        met = self._offer(meeting) if cost <= self.progress.budget else Offer.REFUSED
        if met is Offer.DEAD:
            if self.ledger is not None:
                grid.note_around(self.ledger, part, meeting)
                self._noted = True
            return grid.around(part, meeting)
        dearer = np.concatenate([there[0] - here[0], there[1] - here[1]])
        k = int(dearer.argmax()) if dearer.size else -1
        if k < 0 or dearer[k] <= 0.0:
            return [] if met is Offer.TAKEN else self._anywhere(part)
        if k >= len(grid.numbers):
            span = np.zeros(len(grid.entries), dtype=np.bool_)
            span[grid.span(k - len(grid.numbers))] = True
            return [part.levels(~span | meeting.allowed), part.levels(~(span & meeting.allowed))]
        at = int(min(max(grid.cheapest[k], meeting.low[k]), meeting.high[k]))
        return self._halves(part, k, at - 1 if at > grid.cheapest[k] else at)

    def _offer(self, meeting: Part) -> Offer:
        """Offer the cheapest point of the intersection as incumbent; say what became of it.

        In the intersection every tree is in its best leaf, so all points have the same scores: where these miss the goal, as
        at a tie that the bound could not tell from a win, none of them is an answer.
        """
        u = self.grid.point(meeting, self.incumbents.start)
        if self.incumbents.offer(u):
            self.met = True
            return Offer.TAKEN
        misses = self.any_point and not self.reducer.goal.holds(self.incumbents.query, u[None, :])[0]
        return Offer.DEAD if misses else Offer.REFUSED

    def _anywhere(self, part: Part) -> list[Part]:
        """Split a part whose cheapest point was refused by the last digits of a sum, or by the number of changes."""
        width = part.high - part.low
        if width.size and width.max() > 0:
            k = int(width.argmax())
            return self._halves(part, k, int(part.low[k] + width[k] // 2))
        if self.grid.entries.size:
            left = np.add.reduceat(part.allowed, self.grid.entry_first, dtype=np.int64)
            open_ = np.flatnonzero(part.allowed & (left > 1)[self.grid.owner])
            if open_.size:
                return self._one_level(part, int(open_[0]))
        return []
