"""Branch and bound over inputs, for rectifier networks under costs and demands on single features: no solver needed.

So it is for curves, votes and means of networks and linear forms: their rows are bounded through those of the scores inside
(`ifonly.models.forms.composed`), or are thresholds of a single one. No trail is kept of these, since none is replayed.

In a node, an interval for each number and a set of levels for each category, the rows of the goal are bounded from above by
linear functions of the inputs (`ifonly.models.forms.backward`), over the part of the node that the budget leaves. The least
cost at which such a function reaches 0 is a fractional knapsack, and bounds the cost of the node from below. The node with
the least bound is split next, along the feature that the looseness of its bound is owed to; many are done at once. Its
knapsack's point, and the cheapest point of the linear piece around it, are offered as incumbents.

In small nodes the signs of all units are decided and the bound is exact. Where costs leave many features free, nodes
become small slowly: the search is given up, and a solver takes over with its incumbent and its bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.events import Built
from ifonly.models.abilities import Layered, parts_of
from ifonly.models.forms.backward import Layers
from ifonly.models.forms.composed import Composed, Inputs, is_of_networks
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.search.engine import Separable, enclosure_of, linear_in_scores
from ifonly.search.incumbents import Incumbents
from ifonly.search.inputs.best_first import opened
from ifonly.search.inputs.branching import Open, OverInputs
from ifonly.search.inputs.celled import Celled
from ifonly.search.inputs.nodes import Nodes, Spent, as_inputs
from ifonly.search.inputs.places import Places
from ifonly.search.inputs.signs import BySigns
from ifonly.search.inputs.splits import Splits
from ifonly.search.progress import Progress
from ifonly.tolerances import BEYOND_ROUNDING, ORDINARY

__all__ = ["Networks", "Search"]


@dataclass(frozen=True)
class Networks:
    """Engine for networks of rectifiers, and curves and votes of them, under costs and demands on single features."""

    name: str = "networks"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the form is a network or made of such, the goal is linear in its scores, and nothing couples features."""
        form = statement.form
        bare = isinstance(form, Layered)
        if not (bare or parts_of(form)) or linear_in_scores(statement, box) is None:
            return False
        enclosure = None if bare else enclosure_of(statement)
        if enclosure is None:
            return bare
        # a number that enters by steps and by its value has no cells
        return is_of_networks(enclosure) and form.raw().isdisjoint(form.cuts())

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Search until the box is closed, or closing it would take longer than a solver may need."""
        opening = opened(statement, box, progress)
        if isinstance(opening, Found):
            if opening.ended is not Ended.GAVE_UP and isinstance(statement.form, Layered):
                Splits(progress.ledger).write()
            return opening
        question, incumbents, box = opening
        search = Search(statement, question, box, incumbents)
        if search.is_too_large() or not search.is_ordinary():
            return Found(Ended.GAVE_UP)
        progress.tell(Built(search.layers.n_units, search.n_features))
        ended = search.run_all()
        if ended is not Ended.GAVE_UP:
            search.splits.write()
        return search.found(ended)


class Search(OverInputs[Open]):
    """One branch and bound over inputs of a network."""

    def __init__(self, statement: Statement, question: Separable, box: Box, incumbents: Incumbents) -> None:
        self.tuning = statement.query.tuning.networks
        super().__init__(statement, question, box, incumbents, range(len(statement.query.schema)), self.tuning)
        self.layers = self._layers(question)
        self._beyond = BEYOND_ROUNDING * self.layers.off_by
        self.beyond = float(self._beyond.max())
        self._polishes = self.tuning.polishes if self.layers.straight else self.tuning.bent_polishes
        if not isinstance(statement.form, Layered):
            self.splits = Splits(None)  # a trail of a composite cannot be replayed: none is kept

    @property
    def n_features(self) -> int:
        """Number of features that may change."""
        return len(self.places.numbers) + len(self.places.categories)

    def _places(self, features: Iterable[int]) -> Places:
        """Return the places of the features that the box leaves open; numbers that enter by steps are cells."""
        return Celled.of_steps(self.statement, self.box, features, self.start, self.statement.form.cuts())

    def _layers(self, question: Separable) -> Layers | Composed:
        """Return the rows of the goal over the free inputs; a threshold of a single score is as that of a bare network."""
        form, at = self.statement.form, self.places
        goal = question.goal.matrix(self.statement.margin, self.statement.tie)
        free = np.concatenate([at.places, at.entries])
        if isinstance(form, Layered):
            rows = goal[0] @ form.weights, goal[0] @ form.constant + goal[1]
            return Layers.of(form.blocks, rows, free, at.origin, at.size)
        enclosure = enclosure_of(self.statement)
        assert enclosure is not None
        cells = (at.owner, at.value) if isinstance(at, Celled) else ()
        composed = Composed.of(
            enclosure, goal, Inputs(free, at.origin, at.size, at.start, *cells), self.tuning.most_thresholds
        )
        return composed.threshold(self.whole(), self.tuning.looked_at) or composed

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
    def run_all(self) -> Ended:
        """Search over boxes, and over signs of units where there is a compiler: before it, after it, or both."""
        tuning = self.statement.query.tuning.plain_signs
        layers = self.layers.straight
        if layers is None or not BySigns.takes(self, layers, tuning):
            return self.run()
        signs, ended = BySigns(self, layers, tuning), Ended.GAVE_UP
        if signs.comes_first():
            ended = signs.run(tuning.at_first)
        if ended is Ended.GAVE_UP:
            ended = self.run()
        if ended is Ended.GAVE_UP:
            ended = signs.run(tuning.afterwards)
        self.bound = max(self.bound, signs.bound) if ended is Ended.GAVE_UP else np.inf
        return ended

    def _work(self) -> int:
        return self.layers.work + self.tuning.per_entry * self._in_knapsacks

    def _bound_all(self, nodes: Nodes) -> None:
        """Bound nodes, offer points of the best of them, and keep those that may hold a better answer."""
        planes = self.layers.planes(nodes)
        rows = range(planes.slopes.shape[1])
        spent = [nodes.cheapest(planes.slopes[:, r], planes.constant[:, r], self._beyond[r]) for r in rows]
        costs = np.stack([s.cost for s in spent])
        hardest = costs.argmax(axis=0)
        cost = costs.max(axis=0)
        cost = np.where(np.isnan(cost), self.free.elsewhere, cost)  # what is no number bounds nothing
        which = np.arange(len(nodes))
        best = Spent.of_rows(spent, hardest)
        goal = len(self.layers.rows)  # rows behind those of the goal are necessary, not enough: no points are theirs
        self._offer(nodes, best if goal == len(rows) else Spent.of_rows(spent, costs[:goal].argmax(axis=0)), cost)
        keep = np.flatnonzero((cost <= self.progress.budget) & np.isfinite(cost))
        worth = np.where(best.rate > 0.0, best.rate, 1.0)[:, None]
        score = np.nan_to_num(planes.looseness[which, hardest] / worth) + best.excess
        points = []
        for i in keep:
            along = self._along(nodes, int(i), score[i])
            if along < 0:
                points.append(self.point(nodes.near[i], self._cheapest_levels(nodes, int(i)), nodes.near[i]))
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
        for _ in range(self._polishes + 1):
            for x, chosen, near in zip(numbers, levels, some.near, strict=True):
                self.incumbents.offer(self.point(x, chosen, near))
            x = as_inputs(numbers, levels, len(self.places.places) + len(self.places.entries))
            slopes, constant = self.layers.tangents(x)
            value = (slopes @ x[:, :, None])[:, :, 0] + constant
            row = value.argmin(axis=1)
            which = np.arange(len(some))
            better = some.cheapest(slopes[which, row], constant[which, row], self._beyond[row])
            numbers, levels = better.numbers, better.levels
