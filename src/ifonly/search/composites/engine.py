"""Branch and bound over inputs, for curves, votes and means of trees and linear forms: no solver needed.

A calibrated forest, a vote of forests and a logistic regression, a stack of them: none is a sum of trees, and each is a
function of such sums and of linear scores. In a node, an interval for each number and a set of levels for each category, the
rows of the goal are bounded from above by linear functions of these scores (`tables`), trees at their best open leaves. The
least cost at which such a bound reaches 0 is a fractional knapsack over the linear parts, and bounds the cost of the node
from below; where the search is not closed soon, so do prices of leaves and cells (`prices`). The node with the least bound
is split next (`branching`); where scores of lines are curved, parts of inputs and scores are (`relaxed`). Where all trees are
decided and no raw value matters, all points of a node have the same scores. A good incumbent comes first (`exchanges`): its
budget closes leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.events import Built
from ifonly.models.abilities import Ensemble, LinearScores
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.search.composites.branching import Branching, Split
from ifonly.search.composites.exchanges import Exchanges
from ifonly.search.composites.parts import View
from ifonly.search.composites.prices import Prices
from ifonly.search.composites.relaxed import Relaxed
from ifonly.search.composites.tables import Looked, Tables
from ifonly.search.engine import Separable, enclosure_of, linear_in_scores
from ifonly.search.incumbents import Incumbents
from ifonly.search.inputs.best_first import BestFirst, opened
from ifonly.search.inputs.nodes import Nodes, Spent
from ifonly.search.progress import Progress
from ifonly.solvers._loading import loads_within
from ifonly.tolerances import BEYOND_ROUNDING, ORDINARY

__all__ = ["Composites"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Composites:
    """Engine for curves, votes and means of trees and linear forms, under costs and demands on single features."""

    name: str = "composites"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the form is made of trees and linear ones, the goal linear in its scores, and nothing couples features."""
        form = statement.form
        if isinstance(form, Ensemble | LinearScores) or linear_in_scores(statement, box) is None:
            return False
        enclosure = enclosure_of(statement)
        if enclosure is None or not all(isinstance(atom.form, Ensemble | LinearScores) for atom in enclosure.atoms):
            return False
        return any(isinstance(atom.form, Ensemble) for atom in enclosure.atoms)

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Search until the box is closed, or closing it would take longer than a solver may need."""
        opening = opened(statement, box, progress)
        if isinstance(opening, Found):
            return opening
        question, incumbents, box = opening
        search = _Search(statement, question, box, incumbents)
        if not search.is_ordinary():
            return Found(Ended.GAVE_UP)
        if search.exchange([] if progress.best is None else [progress.best.u]):
            box = incumbents.reducer.within(box, progress.budget)
            if box.empty() is None:
                search = _Search(statement, question, box, incumbents)
        progress.tell(Built(search.tables.n_leaves, search.free.n_features))
        return search.found(search.run())


@dataclass(frozen=True, eq=False)
class _Open:
    """An open node: its box, and how to split it."""

    low: FloatArray
    high: FloatArray
    allowed: BoolArray
    split: Split


class _Search(BestFirst[_Open]):
    """One branch and bound over inputs of a composite."""

    def __init__(self, statement: Statement, question: Separable, box: Box, incumbents: Incumbents) -> None:
        form, self.tuning = statement.form, statement.query.tuning.composites
        super().__init__(statement, question, box, incumbents, sorted(form.features()), self.tuning)
        enclosure = enclosure_of(statement)
        assert enclosure is not None
        self.tables = Tables(enclosure, box, self.places, self.free, statement.query.factual)
        self.rows, self.constant = question.goal.matrix(statement.margin, statement.tie)
        self.branching = Branching(self.tables, form.raw(), self.tuning)
        self.beyond = BEYOND_ROUNDING * question.goal.rounding(form, box)
        self.prices: Prices | None = None
        self._exchanged = self._priced = self._relaxed = False  # each is tried once

    def is_ordinary(self) -> bool:
        """Whether no sum and no square overflows: a bound that is not a number would close what it does not bound."""
        return self.tables.is_finite() and bool(self.places.size.max(initial=0.0) < ORDINARY[1])

    def exchange(self, starts: list[FloatArray]) -> bool:
        """Trade changes of points for cheaper ones; say whether there is a better incumbent then."""
        best, exchanges = self.progress.best, Exchanges(self.tables, self.rows, self.constant)
        for u in starts:
            held = None if self.deadline.passed else exchanges.shrunk(exchanges.held(u), self.deadline)
            if held is None:
                continue
            self.incumbents.offer(exchanges.point(held, self.start))
            if self.tables.n_leaves > self.tuning.small:
                self.incumbents.offer(exchanges.point(exchanges.exchanged(held, self.deadline), self.start))
        return self.progress.best is not best

    # -- the search ----------------------------------------------------------------------------------------------
    def _work(self) -> int:
        return self.tables.n_leaves * (len(self.rows) + self.tables.enclosure.n_places)

    def _improved(self, whole: Nodes) -> bool:
        """Exchange changes of training rows, and price leaves and cells: once each, where the search is not closed soon."""
        if not self._exchanged and self.looked >= self.tuning.traded_from:
            self._exchanged = True
            if self.exchange(self.incumbents.near_rows(self.tuning.rows)):
                return True
        curved = bool(self.tables.linear) and self.tables.enclosure.bends
        if curved and not self._relaxed and self.looked >= self.tuning.relaxed_from:
            self._relaxed = True
            if self._relax(whole):
                return True
        best = self.progress.best
        if self._priced or self.looked < self.tuning.priced_from or best is None:
            return False
        self._priced = True
        self._price(whole, best.u)
        return self.prices is not None

    def _relax(self, whole: Nodes) -> bool:
        """Split scores, with a linear program in each part; say whether that has closed the search."""
        if not loads_within(self.deadline.left(), self.statement.query.tuning.solving.loading):
            return False
        whole = replace(whole, budget=self.progress.budget).reduced()
        if len(whole):
            goal = self.rows, self.constant
            search = Relaxed(
                self.tables, self.branching.raw, goal, whole, self.progress, self._offer_point, self.tuning
            )
            bound = search.run(self.deadline.within(self.tuning.relaxed_share * self.deadline.left()))
            self.looked += search.looked
            if np.isfinite(bound):
                self.progress.raise_floor(bound)
                return False
        self.open.clear()
        return True

    def _offer_point(self, numbers: FloatArray, levels: IntArray, view: View, row: int) -> None:
        """Offer a point, and the one that it is taken to at the threshold."""
        points = self._points([(numbers, levels)])
        self._offer(points)
        if self.tables.linear:
            slopes = self.tables.of_inputs(view.rows.lean[0, [row]])
            self._polish(view.nodes, points, slopes, np.array([row]))

    def _price(self, whole: Nodes, u: FloatArray) -> None:
        """Price leaves and cells by a linear program that is right at the incumbent, and bound the open nodes anew."""
        whole = replace(whole, budget=self.progress.budget).reduced()
        spans = self.tables.spans(whole)
        at = self.tables.enclosure.values(u)
        seconds = 0.5 * self.deadline.left()
        self.prices = Prices.of(
            self.tables, self.free, self.branching.raw, (self.rows, self.constant), at, spans, seconds
        )
        popped, self.open = [node for _, _, node in sorted(self.open)], []
        for i in range(0, len(popped), self.at_once):
            part = popped[i : i + self.at_once]
            self._look(self._nodes([(node.low, node.high, node.allowed) for node in part]))

    def _bound_all(self, nodes: Nodes) -> None:
        """Bound nodes, offer points of the best of them, and keep those that may hold a better answer."""
        looked = self.tables.look(nodes, self.rows, self.constant, self.prices)
        if looked is None:
            return
        nodes = looked.nodes
        best, hardest, cost = self._spent(nodes, looked)
        if looked.least is not None:
            cost = np.maximum(cost, looked.least)
        cost = np.where(np.isnan(cost), self.free.elsewhere, cost)  # what is no number bounds nothing
        keep = np.flatnonzero((cost <= self.progress.budget) & np.isfinite(cost))
        keep = keep[np.argsort(cost[keep], kind="stable")]
        if not keep.size:
            return
        nodes, best = nodes.pick(keep), best.pick(keep)
        row, cost = hardest[keep], cost[keep]
        chosen = self.branching.of(nodes, looked, keep, row, best, self.tuning.points)
        self._offer(self._points([*chosen.headed, *chosen.last]))
        if self.tables.linear:
            few = np.arange(len(chosen.headed))
            slopes = self.tables.of_inputs(looked.lean[keep[few], row[few]])
            self._polish(nodes.pick(few), self._points(chosen.headed), slopes, row[few])
        for i, (split, least) in enumerate(zip(chosen.splits, cost, strict=True)):
            if split is not None and least <= self.progress.budget:
                node = _Open(nodes.low[i], nodes.high[i], nodes.allowed[i], split)
                self._push(float(least), node)

    def _points(self, points: list[tuple[FloatArray, IntArray]]) -> FloatArray:
        """Return points as canonical rows."""
        if not points:
            return np.empty((0, len(self.start)))
        numbers, levels = (np.array(part) for part in zip(*points, strict=True))
        return self.tables.points(self.start, numbers, levels.reshape(len(numbers), -1).astype(np.int64))

    def _spent(self, nodes: Nodes, looked: Looked) -> tuple[Spent, npt.NDArray[np.int64], FloatArray]:
        """Return the least cost of each node, of the row that costs most."""
        rows = range(len(self.rows))
        spent = [nodes.cheapest(looked.slopes[:, r], looked.constant[:, r]) for r in rows]
        costs = np.stack([s.cost for s in spent])
        # of rows that cost the same, the one with the least to spare
        hardest = np.lexsort((looked.constant.T, -costs), axis=0)[0]
        return Spent.of_rows(spent, hardest), hardest, costs.max(axis=0)

    def _offer(self, points: FloatArray) -> None:
        """Offer points of nodes; where a point is all there is of a node, the model decides within rounding."""
        if not len(points):
            return
        goal, statement = self.incumbents.reducer.goal, self.statement
        costs = statement.objective(points)
        worth = np.flatnonzero(costs < (np.inf if self.progress.best is None else self.progress.best.cost))
        if not worth.size:
            return
        held = goal.holds_scores(statement.form(points[worth]))
        for i in worth[held]:
            self.incumbents.offer(points[i])
        if not held.all():
            self.incumbents.ask(points[worth[~held]])

    def _polish(self, nodes: Nodes, points: FloatArray, slopes: FloatArray, row: IntArray) -> None:
        """Take points of nodes to the threshold: Newton's method, where no tree changes its leaf."""
        around = self.tables.around(nodes, points)
        which, at = np.arange(len(points)), self.places
        for _ in range(self.tuning.polishes):
            value = (self.statement.form(points) @ self.rows.T + self.constant)[which, row]
            x = np.concatenate([points[:, at.places] - self.free.origin, points[:, at.entries]], axis=1)
            better = around.cheapest(slopes, value - (slopes * x).sum(axis=1), self.beyond)
            points = self.tables.points(self.start, self.free.raw(better.numbers, around.near), better.levels)
            self._offer(points)

    def _children(self, popped: list[_Open]) -> Nodes:
        """Return the children of nodes."""
        return self._nodes([child for n in popped for child in n.split.children(n.low, n.high, n.allowed)])

    def _nodes(self, parts: Sequence[tuple[FloatArray, FloatArray, BoolArray]]) -> Nodes:
        """Return nodes of intervals and levels; none has a name, as no trail is kept of them."""
        low, high, allowed = (np.array(some) for some in zip(*parts, strict=True))
        return Nodes(self.free, low, high, allowed.astype(np.bool_), np.zeros(len(parts), dtype=np.int64))
