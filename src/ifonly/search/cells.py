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
from ifonly.search.branching import Best, Branching
from ifonly.search.engine import NO_SOLVER, by_cells, separable
from ifonly.search.grids import Grid, Part
from ifonly.search.improving import Improving
from ifonly.search.incumbents import Incumbents
from ifonly.search.keeping import Keeping, names_of
from ifonly.search.kernel import Kernel, Offer, Said, compiled
from ifonly.search.progress import Progress
from ifonly.search.split_prices import Method, Prices, PriceTables
from ifonly.search.trades import trade
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


@dataclass(frozen=True, eq=False)
class _Node:
    """A part, its share of the whole, and the leaves that are open in the part `around` it."""

    part: Part
    share: float
    around: Part
    leaves: IntArray
    prices: Prices | None = None
    steps: int = 0
    bound: float = -np.inf


@dataclass
class _Pace:
    """Parts after which the progress of a search is judged next, and the share that must be closed by then."""

    look: int
    least: float


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
    bound
        No point of the box that is within the budget costs less, where prices were used.
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
        self.pricing = self.reducer.statement.query.tuning.prices
        self.method: Method | None = None
        self.improving: Improving | None = None
        self.parts, self.met, self.bound = 0, False, -np.inf
        self._stop: int | None = None  # parts after which this run ends
        self._trade_at: int | None = None  # parts after which changes of the incumbent are traded, once
        self._noted = False  # whether the ledger has the last split already
        self._unkept = False  # whether prices are used that are not written down, or too many of them

    def run(self, box: Box, deadline: Deadline) -> Ended:
        """Search a box and say how that ended; closed: nothing better than the incumbent is left in it, for certain."""
        brackets = self.reducer.brackets
        assert brackets is not None
        if deadline.left() < self.tuning.seconds_per_leaf * len(brackets.leaves.node):
            return Ended.LIMIT
        if not self._open(box, brackets):
            return Ended.CLOSED
        if not self._can_price():
            return self._search(deadline)
        pricing = self.pricing
        most = self.tuning.most_parts  # of either search
        self._stop = min(most, pricing.plain_parts_compiled if compiled() else pricing.plain_parts)
        ended = self._search(deadline)
        if ended is not Ended.GAVE_UP:
            return ended
        self._forget_parts()
        if not self._open(box, brackets):
            return Ended.CLOSED
        self.method = Method.of(pricing, self.grid, self.values, self.tree)
        self._stop = None if self.patient else self.parts + min(most, pricing.most_parts)
        self._trade_at = self.parts + pricing.trade_parts
        return self._search(deadline if self.patient else deadline.within(pricing.share * deadline.left()))

    def _forget_parts(self) -> None:
        """Take back the parts of a search that was given up."""
        self._noted = False
        if self.ledger is not None:
            self.ledger.clear()

    def _names(self, tables: PriceTables) -> IntArray | None:
        """Return the names of splits, so that their prices can be kept; None: they cannot, and then no parts are."""
        assert self.reducer.brackets is not None
        names = names_of(tables, self.reducer.brackets.leaves, self.tree)
        self._unkept = names is None
        return names

    def _limit_parts(self, ledger: Ledger) -> None:
        """Forget the parts of a search with prices that are too many, or whose prices are not kept."""
        self._unkept |= self.method is not None and len(ledger.data) > self.pricing.kept_bytes
        if self._unkept:
            ledger.clear()

    def _open(self, box: Box, brackets: Brackets) -> bool:
        """Tabulate what the budget leaves of a box, if it leaves anything."""
        box = self.reducer.within(box, self.progress.budget)
        if box.empty() is not None:
            if self.ledger is not None:
                self.ledger.leaf()  # a box of which the budget leaves nothing is its only part
            return False
        # a feature that no open leaf looks at has no cells: it stays where it is cheapest in this very box
        self.start = self.incumbents.inside(box, self.incumbents.start)
        self._tabulate(box, brackets)
        return True

    def _can_price(self) -> bool:
        """Whether prices help where the search without them gets nowhere."""
        if self.any_point or not self.grid.numbers or (len(self.need) > 1 and self.ledger is not None):
            return False  # several goals are weighed, and weights have no place in a proof that is kept
        return bool(np.isfinite(self.grid.cost).all() and np.isfinite(self.grid.level_cost).all())

    def _search(self, deadline: Deadline) -> Ended:
        self.bound = -np.inf  # what an earlier run proved is no proof of this one
        return self._by_kernel(deadline) if compiled() else self._by_numpy(deadline)

    def _by_numpy(self, deadline: Deadline) -> Ended:
        """Search part by part with NumPy."""
        stack = [self._whole(deadline)]
        done, pace = 0.0, _Pace(self.tuning.first_look, self.tuning.least_done)
        while stack:
            node = stack.pop()
            self.parts += 1
            children = self._split(node)
            if self.ledger is not None:
                self._note(self.ledger, children)
                self._limit_parts(self.ledger)
            stack += children
            self.bound = min((open_.bound for open_ in stack), default=np.inf)
            if not children:
                done += node.share
            if self.met and self.any_point:
                return Ended.LIMIT
            if stack and self._gives_up(pace, done):
                return Ended.GAVE_UP
            self._trade()
            if deadline.passed:
                return Ended.LIMIT
        return Ended.CLOSED

    def _by_kernel(self, deadline: Deadline) -> Ended:
        """Search with the compiled kernel, and look at its progress, the deadline and Ctrl-C every few milliseconds."""
        try:
            order = self._inhabited()
            keeps = self.ledger is not None
            names = self._names(self._price_tables(order)) if keeps and self.method is not None else None
            kernel = Kernel(self, order, self.most, keeps_trail=keeps, method=self.method, names=names)
        except MemoryError:
            return Ended.GAVE_UP
        pace, met = _Pace(self.tuning.first_look_compiled, self.tuning.least_done), Offer.REFUSED
        before = self.parts
        while True:
            if deadline.passed:
                return Ended.LIMIT
            run = kernel.run(self.progress.budget, met, self._next_look(pace) - self.parts)
            self.parts, self.bound = before + run.parts, run.bound
            if self.ledger is not None:
                self.ledger.data += run.trail
                self._limit_parts(self.ledger)
            if run.said is Said.CLOSED:
                return Ended.CLOSED
            if run.said in {Said.FULL, Said.BROKEN}:
                return Ended.GAVE_UP
            if run.said is Said.OFFER:
                met = self._offer(kernel.meeting())
                if self.met and self.any_point:
                    return Ended.LIMIT
            elif self._gives_up(pace, run.done):
                return Ended.GAVE_UP
            self._trade()

    # -- limits -------------------------------------------------------------------------------------------------
    def _next_look(self, pace: _Pace) -> int:
        """Return the number of parts at which the search may be given up."""
        ends = [end for end in (self.most_parts, self._stop, self._trade_at) if end is not None]
        if self._stop is None and not self.patient:
            ends.append(pace.look)
        return min(ends, default=self.parts + self.tuning.most_parts)

    def _trade(self) -> None:
        """Trade changes of the incumbent, once a search with prices has turned out to be long: its budget decides."""
        if self._trade_at is not None and self.parts >= self._trade_at:
            self._trade_at = None
            trade(self.incumbents)
            self.progress.tell_best()

    def _gives_up(self, pace: _Pace, done: float) -> bool:
        """Whether the parts that are allowed are used up, or next to nothing was closed by them."""
        if any(end is not None and self.parts >= end for end in (self.most_parts, self._stop)):
            return True
        if self._stop is not None or self.patient or self.parts < pace.look:
            return False
        if done < pace.least or self.parts >= self.tuning.most_parts:
            return True
        pace.look, pace.least = 2 * pace.look, 10.0 * pace.least
        return False

    def _whole(self, deadline: Deadline) -> _Node:
        """Return the whole as a node."""
        whole, order = self.grid.whole(), self._inhabited()
        if self.method is None:
            self.improving = None
            return _Node(whole, 1.0, whole, order)
        method, tables, keeping = self.method, self._price_tables(order), None
        if self.ledger is not None and (names := self._names(tables)) is not None:
            keeping = Keeping(self.ledger, method.unit, names)
        self.improving = Improving(tables, method, keeping, deadline)
        return _Node(whole, 1.0, whole, order, tables.whole(), method.first_steps)

    def _price_tables(self, order: IntArray) -> PriceTables:
        """Return the splits of all trees, for a search with prices."""
        assert self.method is not None
        return PriceTables(self.grid, self.values, self.need, self.tree, order, self.most, self.method.error)

    def _tabulate(self, box: Box, brackets: Brackets) -> None:
        """Tabulate what the box leaves open."""
        leaves = brackets.leaves.within(box)
        self.grid = Grid(self.reducer, box, leaves)
        self.values = brackets.values_of(leaves)
        self.tree = leaves.tree
        self.branching = Branching(self.grid)
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
        part = self.grid.reduced(node.part, self.most, self.progress.budget)
        if part is None:
            return []
        leaves = self.grid.alive(part, node.around, node.leaves)
        if self.improving is not None and len(np.unique(self.tree[leaves])) < self.improving.tables.n_trees:
            return []
        best = self._best(part, leaves)
        if best is None:
            return []
        if node.prices is not None and self.improving is not None:
            return self._split_priced(node, part, leaves, node.prices, self.improving)
        halves = self._halves(part, best)
        share = node.share / max(len(halves), 1)
        return [_Node(half, share, part, leaves) for half in halves]

    def _halves(self, part: Part, best: Best) -> list[Part]:
        """Split where the best leaves are apart, or else beside where they meet."""
        halves = self.branching.between(part, best)
        return self._beside(part, self.branching.meeting(part, best)) if halves is None else halves

    def _split_priced(
        self, node: _Node, part: Part, leaves: IntArray, prices: Prices, improving: Improving
    ) -> list[_Node]:
        """Improve the prices of a part and branch by them; while steps are left, or after a better point, look again."""
        method = improving.method
        steps = min(node.steps, method.at_once)
        got = improving.improved(part, leaves, prices, steps, self.progress.budget, node.bound)
        if got is None:
            return []
        taken = got.point is not None and self._offer(got.point) is Offer.TAKEN
        left = node.steps if taken else node.steps - method.at_once
        if left > 0:
            return [_Node(got.part, node.share, got.part, got.leaves, got.prices, left, got.cost)]
        halves = self.branching.between_priced(got)
        if halves is None:
            tree = self.tree[got.leaves]
            first = got.leaves[np.diff(tree, prepend=-1) != 0]
            halves = self._halves(got.part, self.branching.best(got.part, first))
        share = node.share / max(len(halves), 1)
        return [_Node(half, share, got.part, got.leaves, got.prices, method.steps, got.cost) for half in halves]

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
        if len(children) == 1:  # the same part, with other prices
            return
        later, sooner = (child.part for child in children)
        self.grid.note_halves(ledger, sooner, later)

    def _best(self, part: Part, leaves: IntArray) -> Best | None:
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
        return self.branching.best(part, best)

    # -- best leaves that meet ----------------------------------------------------------------------------------
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
            return [] if met is Offer.TAKEN else self.branching.anywhere(part)
        if k >= len(grid.numbers):
            span = np.zeros(len(grid.entries), dtype=np.bool_)
            span[grid.span(k - len(grid.numbers))] = True
            return [part.levels(~span | meeting.allowed), part.levels(~(span & meeting.allowed))]
        at = int(min(max(grid.cheapest[k], meeting.low[k]), meeting.high[k]))
        return self.branching.halves(part, k, at - 1 if at > grid.cheapest[k] else at)

    def _offer(self, meeting: Part) -> Offer:
        """Offer the cheapest point of the intersection as incumbent; say what became of it.

        In the intersection every tree is in its best leaf, so all points have the same scores: where these miss the goal, as
        at a tie that the bound could not tell from a win, none of them is an answer. The checker of proofs knows this only of
        boxes in which any point would do.
        """
        u = self.grid.point(meeting, self.start)
        if self.incumbents.offer(u):
            self.met = True
            self.progress.tell_best()  # a search with prices may take long, and whoever waits may be content with it
            return Offer.TAKEN
        if self.ledger is not None and not self.any_point:
            return Offer.REFUSED
        misses = not self.reducer.goal.holds(self.incumbents.query, u[None, :])[0]
        return Offer.DEAD if misses else Offer.REFUSED
