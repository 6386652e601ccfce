"""Branch and bound over inputs, for rectifier networks under costs and demands on single features: no solver needed.

In a node, an interval for each number and a set of levels for each category, the rows of the goal are bounded from above by
linear functions of the inputs (`ifonly.models.forms.backward`), over the part of the node that the budget leaves. The least
cost at which such a function reaches 0 is a fractional knapsack, and bounds the cost of the node from below. The node with
the least bound is split next, along the feature that the looseness of its bound is owed to; many are done at once. Its
knapsack's point, and the cheapest point of the linear piece around it, are offered as incumbents.

In small nodes the signs of all units are decided and the bound is exact. Where costs leave many features free, nodes
become small slowly: the search is given up, and a solver takes over with its incumbent and its bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.events import Built
from ifonly.models.abilities import Layered
from ifonly.models.forms.backward import Layers
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.search.engine import Separable, fills_gaps, separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.inputs.best_first import opened
from ifonly.search.inputs.branching import Open, OverInputs
from ifonly.search.inputs.nodes import Nodes, Spent, as_inputs
from ifonly.search.inputs.splits import Splits
from ifonly.search.progress import Progress
from ifonly.tolerances import BEYOND_ROUNDING, ORDINARY

__all__ = ["Networks", "Search"]


@dataclass(frozen=True)
class Networks:
    """Engine for networks of rectifiers under costs and demands on single features."""

    name: str = "networks"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the form has layers, the goal is linear in its scores, and nothing couples features."""
        form = statement.form
        if not isinstance(form, Layered) or fills_gaps(statement, box):
            return False
        question = separable(statement)
        if question is None or statement.costs().curves:
            return False
        return bool(question.goal.rows())

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Search until the box is closed, or closing it would take longer than a solver may need."""
        opening = opened(statement, box, progress)
        if isinstance(opening, Found):
            if opening.ended is not Ended.GAVE_UP:
                Splits(progress.ledger).write()
            return opening
        question, incumbents, box = opening
        search = Search(statement, question, box, incumbents)
        if search.is_too_large() or not search.is_ordinary():
            return Found(Ended.GAVE_UP)
        progress.tell(Built(search.layers.n_units, search.n_features))
        ended = search.run()
        if ended is not Ended.GAVE_UP:
            search.splits.write()
        return search.found(ended)


class Search(OverInputs[Open]):
    """One branch and bound over inputs of a network."""

    def __init__(self, statement: Statement, question: Separable, box: Box, incumbents: Incumbents) -> None:
        self.tuning = statement.query.tuning.networks
        super().__init__(statement, question, box, incumbents, range(len(statement.query.schema)), self.tuning)
        self.layers = self._layers(question)
        self.beyond = BEYOND_ROUNDING * float(self.layers.room[-1].max())

    @property
    def n_features(self) -> int:
        """Number of features that may change."""
        return len(self.places.numbers) + len(self.places.categories)

    def _layers(self, question: Separable) -> Layers:
        """Return the rows of the goal over the free inputs."""
        form, at = self.statement.form, self.places
        assert isinstance(form, Layered)
        rows, constant = question.goal.matrix(self.statement.margin, self.statement.tie)
        free = np.concatenate([at.places, at.entries])
        return Layers.of(form.blocks, (rows @ form.weights, rows @ form.constant + constant), free, at.origin, at.size)

    def is_too_large(self) -> bool:
        """Whether the bounds of a single node take too long, or too much memory."""
        return self.layers.work > self.tuning.most_work or self._in_knapsacks > self.tuning.most_entries

    @property
    def _in_knapsacks(self) -> int:
        """Number of inputs in the knapsacks of one node: two for each unit, of its least and of its largest value."""
        return 2 * self.layers.n_units * (len(self.places.places) + len(self.places.entries))

    def is_ordinary(self) -> bool:
        """Whether no sum and no square overflows: a bound that is not a number would close what it does not bound."""
        return bool(np.isfinite(self.beyond) and self.places.size.max(initial=0.0) < ORDINARY[1])

    # -- the search ----------------------------------------------------------------------------------------------
    def _work(self) -> int:
        return self.layers.work + self.tuning.per_entry * self._in_knapsacks

    def _bound_all(self, nodes: Nodes) -> None:
        """Bound nodes, offer points of the best of them, and keep those that may hold a better answer."""
        planes = self.layers.planes(nodes)
        rows = range(planes.slopes.shape[1])
        spent = [nodes.cheapest(planes.slopes[:, r], planes.constant[:, r], self.beyond) for r in rows]
        costs = np.stack([s.cost for s in spent])
        hardest = costs.argmax(axis=0)
        cost = costs.max(axis=0)
        cost = np.where(np.isnan(cost), self.free.elsewhere, cost)  # what is no number bounds nothing
        which = np.arange(len(nodes))
        best = Spent.of_rows(spent, hardest)
        self._offer(nodes, best, cost)
        keep = np.flatnonzero((cost <= self.progress.budget) & np.isfinite(cost))
        worth = np.where(best.rate > 0.0, best.rate, 1.0)[:, None]
        score = np.nan_to_num(planes.looseness[which, hardest] / worth) + best.excess
        points = []
        for i in keep:
            along = self._along(nodes, int(i), score[i])
            if along < 0:
                points.append(self._point(nodes.near[i], self._cheapest_levels(nodes, int(i)), nodes.near[i]))
                continue
            level = int(best.levels[i, along - self.free.n_numbers]) if along >= self.free.n_numbers else -1
            node = Open(int(nodes.name[i]), nodes.low[i], nodes.high[i], nodes.allowed[i], along, level)
            self._push(float(cost[i]), node)
        self._offer_points(points)

    # -- incumbents ----------------------------------------------------------------------------------------------
    def _offer(self, nodes: Nodes, best: Spent, cost: FloatArray) -> None:
        """Offer the points of the most promising nodes, and the cheapest points of the linear pieces around them."""
        order = np.argsort(cost, kind="stable")[: self.tuning.points]
        order = order[cost[order] <= self.progress.budget]
        if not order.size:
            return
        some = nodes.pick(order)
        numbers, levels = best.numbers[order], best.levels[order]
        for _ in range(self.tuning.polishes + 1):
            for x, chosen, near in zip(numbers, levels, some.near, strict=True):
                self.incumbents.offer(self._point(x, chosen, near))
            x = as_inputs(numbers, levels, len(self.places.places) + len(self.places.entries))
            slopes, constant = self.layers.tangents(x)
            value = (slopes @ x[:, :, None])[:, :, 0] + constant
            row = value.argmin(axis=1)
            which = np.arange(len(some))
            better = some.cheapest(slopes[which, row], constant[which, row], self.beyond)
            numbers, levels = better.numbers, better.levels
