"""Branch and bound over boxes of cells: the search of one grid, and how it goes from part to part.

See `ifonly.search.cells` for what it closes, and why. With demands that a sum over single features be large enough
(`ifonly.search.distances`), a part in which the goal is reached may hold no answer: it is then searched by itself, and the
surrogates of these demands are further tables of costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.forms.scan import Brackets
from ifonly.program.box import Box
from ifonly.question.found import Ended
from ifonly.question.trail import Ledger
from ifonly.runtime.deadline import Deadline
from ifonly.search.cells.branching import Best, Branching
from ifonly.search.cells.grids import Grid, Part
from ifonly.search.cells.improving import Improving
from ifonly.search.cells.inside import Inside
from ifonly.search.cells.keeping import Keeping, names_of
from ifonly.search.cells.kernel import Kernel, Offer, Said, compiled
from ifonly.search.cells.pacing import Pace
from ifonly.search.cells.split_prices import Method, Prices, PriceTables
from ifonly.search.cells.sums import Sums
from ifonly.search.cells.trades import look_further, trade
from ifonly.search.incumbents import Incumbents

__all__ = ["Splitting"]

BoolArray = npt.NDArray[np.bool_]


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
    most_priced
        After how many parts with prices that is.
    inside
        Searches parts in which the goal is reached; None: the cheapest point of such a part is an answer.

    Attributes
    ----------
    parts
        How many parts were looked at.
    met
        Whether a point was found that is better than the incumbent before.
    spent
        Whether the parts that it was given are used up.
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
        most_priced: int | None = None,
        inside: Inside | None = None,
    ) -> None:
        self.incumbents, self.reducer, self.progress = incumbents, incumbents.reducer, incumbents.progress
        self.most, self.patient, self.ledger, self.any_point = most, patient, ledger, any_point
        self.tuning, self.most_parts, self.most_priced = (
            self.reducer.statement.query.tuning.cells,
            most_parts,
            most_priced,
        )
        self.inside, self.deadline = inside, Deadline.never()
        self.pricing = self.reducer.statement.query.tuning.prices
        self.method: Method | None = None
        self.improving: Improving | None = None
        self.parts, self.met, self.spent, self.bound = 0, False, False, -np.inf
        self._stop: int | None = None  # parts after which this run ends
        self._trade_at: int | None = None  # parts after which changes of the incumbent are traded, once
        self._noted = False  # whether the ledger has the last split already
        self._unkept = False  # whether prices are used that are not written down, or too many of them

    def run(self, box: Box, deadline: Deadline) -> Ended:
        """Search a box and say how that ended; closed: nothing better than the incumbent is left in it, for certain."""
        self.deadline = deadline
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
        self._stop = min(most, self._plain_parts())
        ended = self._search(deadline)
        if ended is not Ended.GAVE_UP:
            return ended
        self._forget_parts()
        if self.inside is not None:
            self.incumbents.open()  # where that has not been done yet
        elif not self.any_point:
            look_further(self.incumbents)
            self.progress.tell_best()
        if not self._open(box, brackets):
            return Ended.CLOSED
        self.method = Method.of(pricing, self.grid, self.sums.values, self.sums.tree)
        self._stop = None if self.patient else self.parts + min(most, pricing.most_parts)
        self.most_parts = None if self.most_priced is None else self.parts + self.most_priced
        # a pair of changes that saves most comes nearer to earlier answers, too
        if self.inside is None and not self.any_point:
            self._trade_at = self.parts + pricing.trade_parts
        return self._search(deadline if self.patient else deadline.within(pricing.share * deadline.left()))

    def _plain_parts(self) -> int:
        """Return after how many parts prices are tried; parts that are pruned by surrogates take little."""
        pricing, covering = self.pricing, self.reducer.statement.query.tuning.covering
        if not compiled():
            return pricing.plain_parts
        return pricing.plain_parts_compiled if self.inside is None else covering.plain_parts_compiled

    def _forget_parts(self) -> None:
        """Take back the parts of a search that was given up."""
        self._noted = False
        if self.ledger is not None:
            self.ledger.clear()

    def _names(self, tables: PriceTables) -> IntArray | None:
        """Return the names of splits, so that their prices can be kept; None: they cannot, and then no parts are."""
        assert self.reducer.brackets is not None
        names = names_of(tables, self.reducer.brackets.leaves, self.sums.tree)
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
        self.order = self._inhabited()
        trees = np.diff(self.sums.tree[self.order], prepend=-1) != 0
        return not self._closes_leaves() or int(trees.sum()) == int((np.diff(self.sums.tree, prepend=-1) != 0).sum())

    def _can_price(self) -> bool:
        """Whether prices help where the search without them gets nowhere."""
        if self.most_priced == 0 or not self.grid.numbers:
            return False
        if self.ledger is not None and (self.any_point or len(self.sums.need) > 1):
            return False  # several goals are weighed, and weights have no place in a proof that is kept
        return bool(np.isfinite(self.grid.cost).all() and np.isfinite(self.grid.level_cost).all())

    def _search(self, deadline: Deadline) -> Ended:
        self.bound = -np.inf  # what an earlier run proved is no proof of this one
        return self._by_kernel(deadline) if compiled() else self._by_numpy(deadline)

    def _by_numpy(self, deadline: Deadline) -> Ended:
        """Search part by part with NumPy."""
        stack = [self._whole(deadline)]
        done, pace = 0.0, self._pace(self.tuning.first_look)
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
            if stack and pace.gives_up(self.parts, done):
                self.spent = True
                return Ended.GAVE_UP
            self._trade()
            if deadline.passed:
                return Ended.LIMIT
        return Ended.CLOSED

    def _by_kernel(self, deadline: Deadline) -> Ended:
        """Search with the compiled kernel, and look at its progress, the deadline and Ctrl-C every few milliseconds."""
        try:
            order = self.order
            keeps = self.ledger is not None
            names = self._names(self._price_tables(order)) if keeps and self.method is not None else None
            kernel = Kernel(self, order, self.most, keeps_trail=keeps, method=self.method, names=names)
        except MemoryError:
            return Ended.GAVE_UP
        pace, met = self._pace(self.tuning.first_look_compiled), Offer.REFUSED
        before = self.parts
        while True:
            if deadline.passed:
                return Ended.LIMIT
            run = kernel.run(self.progress.budget, met, pace.next_look(self.parts, self._trade_at) - self.parts)
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
            elif pace.gives_up(self.parts, run.done):
                self.spent = True
                return Ended.GAVE_UP
            self._trade()

    def _pace(self, look: int) -> Pace:
        """Return when the run at hand is looked at first, and when it ends."""
        ends = tuple(end for end in (self.most_parts, self._stop) if end is not None)
        judged = self._stop is None and not self.patient
        return Pace(look, self.tuning.least_done, self.tuning.more_done, ends, judged, self.tuning.most_parts)

    def _trade(self) -> None:
        """Trade changes of the incumbent, once a search with prices has turned out to be long: its budget decides."""
        if self._trade_at is not None and self.parts >= self._trade_at:
            self._trade_at = None
            trade(self.incumbents)
            self.progress.tell_best()

    def _whole(self, deadline: Deadline) -> _Node:
        """Return the whole as a node."""
        whole, order = self.grid.whole(), self.order
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
        return PriceTables(self.grid, self.sums, order, self.most, self.method.error)

    def _tabulate(self, box: Box, brackets: Brackets) -> None:
        """Tabulate what the box leaves open."""
        leaves, self.box = brackets.leaves.within(box), box
        self.grid = Grid(self.reducer, box, leaves)
        parts, keeps, noise = self.inside is not None, self.ledger is not None, self.incumbents.rounding
        self.sums = Sums.of(brackets, leaves, self.reducer.goal, parts=parts, keeps=keeps, noise=noise)
        self.branching = Branching(self.grid)
        if self.inside is not None:
            self.grid.surrogates = self.inside.surrogates(self.grid, box)

    def _inhabited(self) -> IntArray:
        """Return the leaves that some admissible value of each feature reaches, ordered by tree and value."""
        order = np.lexsort((-self.sums.values[:, 0], self.sums.tree))
        order = order[self.grid.inhabited()[order]]
        return np.asarray(self._reached(self.grid.whole(), order) if self._closes_leaves() else order)

    def _closes_leaves(self) -> bool:
        """Whether leaves are closed that are out of reach by themselves: the checker of proofs does not know this rule."""
        return self.ledger is None and self.inside is None

    def _reached(self, part: Part, leaves: IntArray) -> IntArray:
        """Return the leaves of a part that the budget and the number of changes let a point be in."""
        return self.grid.reached(part, leaves, self.most, self.progress.budget)

    # -- one part -----------------------------------------------------------------------------------------------
    def _split(self, node: _Node) -> list[_Node]:
        """Reduce a node and branch: two children, the more promising one last (the stack pops it first); empty if pruned."""
        part = self.grid.reduced(node.part, self.most, self.progress.budget)
        if part is None:
            return []
        leaves = self.grid.alive(part, node.around, node.leaves)
        if self.improving is not None and len(np.unique(self.sums.tree[leaves])) < self.improving.tables.n_trees:
            return []
        tops = self.sums.best(leaves)
        if tops is None:
            return []
        if self._reaches_all_over(leaves, part):
            self._offer(part)
            return []
        if node.prices is not None and self.improving is not None:
            return self._split_priced(node, part, leaves, node.prices, self.improving)
        halves = self._halves(part, self.branching.best(part, tops))
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
        if self._closes_leaves():
            leaves = self._reached(part, leaves)
            if len(np.unique(self.sums.tree[leaves])) < improving.tables.n_trees:
                return []
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
            tree = self.sums.tree[got.leaves]
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

    def _reaches_all_over(self, leaves: IntArray, part: Part) -> bool:
        """Whether every point of a part reaches the goal: even the worst leaves of all trees that lie in it do together."""
        if self.sums.sure is None or not self.sums.surely_reach(leaves):
            return False
        return self.method is None or self.sums.surely_reach(self._inside(part))  # prices close leaves that lie in it

    def _inside(self, part: Part) -> IntArray:
        """Return all leaves that lie in a part."""
        return self.grid.alive(part, self.grid.whole(), self._inhabited())

    # -- best leaves that meet ----------------------------------------------------------------------------------
    def _beside(self, part: Part, meeting: Part) -> list[Part]:
        """Offer the cheapest point of the intersection as incumbent; branch so that cheaper points lie in the other child."""
        grid = self.grid
        for table in grid.tables:
            if not table.bound(meeting) <= self.progress.budget:
                return self.branching.cheaper(table, part, meeting, taken=False)
        met = self._offer(meeting)
        if met is Offer.DEAD or self.inside is not None:
            if self.ledger is not None:
                grid.note_around(self.ledger, part, meeting)
                self._noted = True
            return grid.around(part, meeting)
        return self.branching.cheaper(grid.costs, part, meeting, taken=met is Offer.TAKEN)

    def _offer(self, meeting: Part) -> Offer:
        """Offer the cheapest point of the intersection as incumbent; say what became of it.

        In the intersection every tree is in its best leaf, so all points have the same scores: where these miss the goal, as
        at a tie that the bound could not tell from a win, none of them is an answer. The checker of proofs knows this only of
        boxes in which any point would do.
        """
        u = self.grid.point(meeting, self.start)
        if self.inside is not None:
            return self._search_inside(meeting, u)
        if self.incumbents.offer(u):
            self.met = True
            self.progress.tell_best()  # a search with prices may take long, and whoever waits may be content with it
            return Offer.TAKEN
        if self.ledger is not None and not self.any_point:
            return Offer.REFUSED
        misses = not self.reducer.goal.holds(self.incumbents.query, u[None, :])[0]
        return Offer.DEAD if misses else Offer.REFUSED

    def _search_inside(self, meeting: Part, u: FloatArray) -> Offer:
        """Search an intersection in which the goal is reached, or all of a part; say what became of it."""
        assert self.inside is not None
        if not self.reducer.goal.holds(self.incumbents.query, u[None, :])[0]:
            tree = self.sums.tree[self._inside(meeting)]
            if len(tree) == len(np.unique(tree)):  # one leaf of each: all points have the same scores
                return Offer.DEAD
        if not self.inside.search(self.grid, self.box, meeting, u, self.deadline):
            return Offer.REFUSED
        self.met = True
        self.progress.tell_best()
        return Offer.TAKEN
