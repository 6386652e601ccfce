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

import heapq
from dataclasses import dataclass, replace
from itertools import count, pairwise

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.events import Built
from ifonly.models.abilities import Layered
from ifonly.models.forms.backward import Layers
from ifonly.program.box import Box
from ifonly.program.mip import Affine
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.search.engine import NO_SOLVER, Separable, fills_gaps, separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from ifonly.search.spending import Free, Nodes, Spent, told_steps
from ifonly.tolerances import ORDINARY

__all__ = ["Networks"]

BoolArray = npt.NDArray[np.bool_]


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
        return bool(question.goal.gaps([Affine()] * form.n_outputs, 0.0))

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Search until the box is closed, or closing it would take longer than a solver may need."""
        question = separable(statement)
        assert question is not None
        incumbents = Incumbents.of(statement, box, progress)
        incumbents.open()
        progress.tell_best()
        if progress.deadline.passed:
            return Found(Ended.GAVE_UP)
        box = incumbents.reducer.within(box, progress.budget)
        if box.empty() is not None:
            progress.solver = NO_SOLVER
            return progress.found()
        search = _Search(statement, question, box, incumbents)
        if search.is_too_large() or not search.is_ordinary():
            return Found(Ended.GAVE_UP)
        progress.tell(Built(search.layers.n_units, search.n_features))
        ended = search.run()
        progress.tell_best(search.bound)
        if ended is Ended.GAVE_UP:
            progress.raise_floor(search.bound)
            return Found(Ended.GAVE_UP)
        progress.solver = NO_SOLVER
        return progress.found()


@dataclass(frozen=True, eq=False)
class _Open:
    """An open node: its box, and the feature to split it along (a category: between one level and the others)."""

    low: FloatArray
    high: FloatArray
    allowed: BoolArray
    along: int
    level: int


class _Search:
    """One branch and bound over inputs.

    Attributes
    ----------
    bound
        The least bound of the open nodes.
    looked
        How many nodes were bounded.
    """

    def __init__(self, statement: Statement, question: Separable, box: Box, incumbents: Incumbents) -> None:
        self.statement, self.box, self.incumbents = statement, box, incumbents
        self.progress, self.tuning = incumbents.progress, statement.query.tuning.networks
        self.schema = schema = statement.query.schema
        open_ = [j for j in range(len(schema)) if not box.is_fixed(j)]
        self.numbers = [j for j in open_ if isinstance(schema.features[j], Numeric)]
        self.categories = [j for j in open_ if not isinstance(schema.features[j], Numeric)]
        self.places: IntArray = np.array([schema.starts[j] for j in self.numbers], dtype=np.int64)
        self.entries: IntArray = np.array(
            [e for j in self.categories for e in range(schema.slice(j).start, schema.slice(j).stop)], dtype=np.int64
        )
        self.start = incumbents.start
        self.free = self._free(question)
        self.layers = self._layers(question)
        self.beyond = 4.0 * float(self.layers.room[-1].max())
        self.bound, self.looked, self._order = self.free.elsewhere, 0, count()
        # a solver may need the rest
        self.deadline = self.progress.deadline.within(self.tuning.share * self.progress.deadline.left())
        self.open: list[tuple[float, int, _Open]] = []

    @property
    def n_features(self) -> int:
        """Number of features that may change."""
        return len(self.numbers) + len(self.categories)

    def _free(self, question: Separable) -> Free:
        """Return the features that the box leaves open, with their costs; what is fixed elsewhere is paid, and counted."""
        query, schema, costs = self.statement.query, self.schema, self.statement.costs()
        fixed = self.start.copy()
        fixed[self.places], fixed[self.entries] = query.factual[self.places], query.factual[self.entries]
        changed = int(query.changed(fixed[None, :])[0].sum())
        steps = [schema.features[j].step or 0.0 for j in self.numbers]  # type: ignore[union-attr]
        size = self._size()[self.places]
        sizes = [schema.features[j].width for j in self.categories]
        return Free(
            home=query.factual[self.places] - self.start[self.places],
            origin=self.start[self.places],
            rate=costs.linear[self.numbers],
            square=costs.square[self.numbers],
            price=costs.price[self.numbers],
            step=told_steps(np.array(steps), size),
            size=size,
            level_cost=costs.entries(schema, query.factual, self.entries),
            first=np.cumsum([0, *sizes[:-1]], dtype=np.int64) if sizes else np.empty(0, dtype=np.int64),
            level_home=query.factual[self.entries] > 0.0,
            elsewhere=float(costs.per_feature(query, fixed[None, :])[0].sum()),
            most=question.most - changed,
        )

    def _layers(self, question: Separable) -> Layers:
        """Return the rows of the goal over the free inputs."""
        form, statement = self.statement.form, self.statement
        assert isinstance(form, Layered)
        gaps = question.goal.gaps([Affine.of(k) for k in range(form.n_outputs)], statement.margin, statement.tie)
        G = np.zeros((len(gaps), form.n_outputs))
        for row, gap in zip(G, gaps, strict=True):
            np.add.at(row, gap.columns, gap.values)
        origin = np.nan_to_num(self.start)
        origin[self.entries] = 0.0
        return Layers.of(
            form.blocks,
            (G @ form.weights, G @ form.constant + np.array([gap.constant for gap in gaps])),
            np.concatenate([self.places, self.entries]),
            origin,
            self._size(),
        )

    def _size(self) -> FloatArray:
        """Return the largest absolute value of each entry, in the box, at its start and at the factual."""
        points = np.abs(np.nan_to_num(np.stack([self.start, self.statement.query.factual])))
        return np.asarray(np.maximum(self.box.reach(), points.max(axis=0)))

    def is_too_large(self) -> bool:
        """Whether the bounds of a single node take too long, or too much memory."""
        return self.layers.work > self.tuning.most_work or self._in_knapsacks > self.tuning.most_entries

    @property
    def _in_knapsacks(self) -> int:
        """Number of inputs in the knapsacks of one node: two for each unit, of its least and of its largest value."""
        return 2 * self.layers.n_units * (len(self.places) + len(self.entries))

    def is_ordinary(self) -> bool:
        """Whether no sum and no square overflows: a bound that is not a number would close what it does not bound."""
        return bool(np.isfinite(self.beyond) and self._size().max(initial=0.0) < ORDINARY[1])

    # -- the search ----------------------------------------------------------------------------------------------
    def run(self) -> Ended:
        """Split the most promising nodes until none is left; say how that ended."""
        origin = self.free.origin
        whole = Nodes(
            self.free,
            self.box.lower[self.numbers][None] - origin,
            self.box.upper[self.numbers][None] - origin,
            self.box.allowed[self.entries][None],
        )
        self._look(whole)
        most, look = self.tuning.most_nodes, self.tuning.first_look
        work = self.layers.work + self.tuning.per_entry * self._in_knapsacks
        at_once = max(1, int(min(self.tuning.nodes_at_once, self.tuning.work_at_once // max(1, work))))
        first = self.open[0][0] if self.open else np.inf
        while self.open:
            self.bound = self.open[0][0]
            best = self.progress.best
            if self.bound > self.progress.budget or (best is not None and self.bound >= best.cost):  # 0 has no gap
                break
            if self.looked >= most or self.deadline.passed:
                return Ended.GAVE_UP
            if self.looked >= look:
                if self.bound - first < self.tuning.least_done * (self.progress.value - first):
                    return Ended.GAVE_UP
                look *= 2
            some = min(at_once, max(1, len(self.open) // 2))
            popped = [heapq.heappop(self.open)[2] for _ in range(some)]
            self._look(self._children(popped))
        self.bound = np.inf
        return Ended.CLOSED

    def _look(self, nodes: Nodes) -> None:
        """Bound nodes, offer points of the best of them, and keep those that may hold a better answer."""
        nodes = replace(nodes, budget=self.progress.budget).reduced()
        if not len(nodes):
            return
        self.looked += len(nodes)
        planes = self.layers.planes(nodes)
        rows = range(planes.slopes.shape[1])
        spent = [nodes.cheapest(planes.slopes[:, r], planes.constant[:, r], self.beyond) for r in rows]
        costs = np.stack([s.cost for s in spent])
        hardest = costs.argmax(axis=0)
        cost = costs.max(axis=0)
        which = np.arange(len(nodes))
        best = Spent(*(np.stack([getattr(s, name) for s in spent])[hardest, which] for name in Spent._fields))
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
            node = _Open(nodes.low[i], nodes.high[i], nodes.allowed[i], along, level)
            heapq.heappush(self.open, (float(cost[i]), next(self._order), node))
        self._settle(points)

    def _settle(self, points: list[FloatArray]) -> None:
        """Offer single points, after which there is nothing left of their nodes; the model decides where rounding might."""
        refused = [u for u in points if not self.incumbents.offer(u)]
        if refused:
            self.incumbents.ask(np.array(refused))

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
            x = np.concatenate([numbers, np.zeros((len(some), len(self.entries)))], axis=1)
            np.put_along_axis(x, len(self.numbers) + levels, 1.0, axis=1)
            slopes, constant = self.layers.tangents(x)
            value = (slopes @ x[:, :, None])[:, :, 0] + constant
            row = value.argmin(axis=1)
            which = np.arange(len(some))
            better = some.cheapest(slopes[which, row], constant[which, row], self.beyond)
            numbers, levels = better.numbers, better.levels

    def _point(self, numbers: FloatArray, levels: IntArray, near: FloatArray) -> FloatArray:
        """Return a canonical point; numbers on a grid are rounded away from their cheapest value."""
        u = self.start.copy()
        raw, step = numbers + self.free.origin, np.where(self.free.step > 0.0, self.free.step, 1.0)
        up = np.ceil((raw - 2.0 * self.free.room) / step) * step
        down = np.floor((raw + 2.0 * self.free.room) / step) * step
        u[self.places] = np.where(self.free.step > 0.0, np.where(numbers > near, up, down), raw)
        u[self.entries] = 0.0
        u[self.entries[levels]] = 1.0
        return self.schema.stored(u)

    def _cheapest_levels(self, nodes: Nodes, i: int) -> IntArray:
        cost = np.where(nodes.allowed[i], self.free.level_cost, np.inf)
        ends = np.append(self.free.first, len(cost))
        return np.array([a + int(cost[a:b].argmin()) for a, b in pairwise(ends)], dtype=np.int64)

    # -- branching -----------------------------------------------------------------------------------------------
    def _along(self, nodes: Nodes, i: int, score: FloatArray) -> int:
        """Return the feature to split a node along, numbers first; -1: it is a single point."""
        width = nodes.high[i] - nodes.low[i]
        wide = np.where(self.free.step > 0.0, width >= 0.5 * self.free.step, width > 0.0)
        if self.free.first.size:
            wide = np.concatenate([wide, np.add.reduceat(nodes.allowed[i], self.free.first, dtype=np.int64) > 1])
        if not wide.any():
            return -1
        # where nothing is loose, a point was refused by rounding: any feature will do
        return int(np.where(wide, np.maximum(score, 0.0) + np.finfo(float).tiny, -1.0).argmax())

    def _children(self, popped: list[_Open]) -> Nodes:
        """Return the children of nodes."""
        low, high, allowed = [], [], []
        for node in popped:
            if node.along >= self.free.n_numbers:
                for levels in self._levels(node):
                    low.append(node.low)
                    high.append(node.high)
                    allowed.append(levels)
                continue
            for a, b in self._intervals(node):
                if a <= b:
                    low.append(_with(node.low, node.along, a))
                    high.append(_with(node.high, node.along, b))
                    allowed.append(node.allowed)
        return Nodes(self.free, np.array(low), np.array(high), np.array(allowed, dtype=np.bool_))

    def _levels(self, node: _Open) -> list[BoolArray]:
        """Split a category: the cheapest levels and the others; where all cost the same, the best one and the others."""
        free = self.free
        own = (free.owner == node.along - free.n_numbers) & node.allowed
        cost = free.level_cost
        cheap = own & (cost <= cost[own].min())
        if (cheap == own).all():
            cheap = np.arange(len(cost)) == (node.level if own[node.level] else int(np.flatnonzero(own)[0]))
        return [node.allowed & ~(own & ~cheap), node.allowed & ~(own & cheap)]

    def _intervals(self, node: _Open) -> list[tuple[float, float]]:
        """Split a number: what it is now, less and more, where that makes a difference to the cost; else two halves."""
        free, k = self.free, node.along
        low, high, home, step = float(node.low[k]), float(node.high[k]), float(free.home[k]), float(free.step[k])
        origin = float(free.origin[k])
        room = float(free.room[k])
        counts = free.price[k] > 0.0 or free.most < self.n_features
        if low <= home <= high and (counts or low < home < high):
            if not counts:
                return [(low, home), (home, high)]
            if not step:
                below, above = np.nextafter(home, -np.inf), np.nextafter(home, np.inf)
            else:
                below = (np.ceil((home + origin - 2.0 * room) / step) - 1.0) * step - origin + room
                above = (np.floor((home + origin + 2.0 * room) / step) + 1.0) * step - origin - room
            return [(low, float(below)), (home, home), (float(above), high)]
        middle = 0.5 * (low + high)
        if step:
            cell = float(np.floor((middle + origin) / step)) * step - origin
            return [(low, cell + room), (cell + step - room, high)]
        if not low < middle < high:
            return [(low, low), (high, high)]
        return [(low, middle), (middle, high)]


def _with(values: FloatArray, k: int, value: float) -> FloatArray:
    out = values.copy()
    out[k] = value
    return out
