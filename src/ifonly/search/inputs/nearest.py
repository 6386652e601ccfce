"""Branch and bound over inputs, for k nearest neighbours under costs and demands on single features: no solver needed.

A goal asks that at least ``q`` of the ``k`` nearest rows are of a set ``A``. Where they are, at least ``q`` rows of ``A``
have no more than ``k - q`` of the other rows, ``B``, nearer than themselves. Row ``i`` is nearer than row ``j`` on one side
of a plane, ``s_i(x) >= s_j(x)``; in a node, an interval for each number and a set of levels for each category, the least
cost ``c_ij`` of a point on that side is a fractional knapsack. So no point of the node costs less than

    the q-th least over i in A   of   the (k - q + 1)-th largest over j in B   of   c_ij,

and a row of ``A`` that is too dear by itself is left out of all that the node is split into. Only the rows of ``B`` that are
nearest at the cheapest point of the node are looked at, which loosens the bound and loses nothing.

Rows at the same distance are ordered by the model in its own way. Bounds hold for every order; points at which the order
could matter are put to the model itself (`Goal.holds`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.events import Built
from ifonly.models.abilities import NearestRows, distance_from_ties
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.search.engine import Separable, linear_in_scores, separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.inputs.best_first import narrowed
from ifonly.search.inputs.branching import Open, OverInputs
from ifonly.search.inputs.nodes import Nodes
from ifonly.search.progress import Progress
from ifonly.tolerances import BEYOND_ROUNDING, CHAINED_ROUNDING, DUST, ORDINARY

__all__ = ["Neighbours"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Neighbours:
    """Engine for k nearest neighbours under costs and demands on single features."""

    name: str = "neighbours"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the form is a mean over nearest rows, the goal linear in it, and nothing couples features."""
        form = statement.form
        if not isinstance(form, NearestRows) or distance_from_ties(form) > 0.0:
            return False
        return linear_in_scores(statement, box) is not None

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Search until the box is closed, or closing it would take longer than a solver may need."""
        question = separable(statement)
        assert question is not None
        incumbents = Incumbents.of(statement, box, progress)
        search = _Search(statement, question, box, incumbents)
        if not search.is_ordinary():
            return Found(Ended.GAVE_UP)
        search.open_up()
        left = narrowed(incumbents, box)
        if isinstance(left, Found):
            return left
        search = _Search(statement, question, left, incumbents)
        progress.tell(Built(len(search.constant), search.free.n_features))
        return search.found(search.run())


@dataclass(frozen=True, eq=False)
class _Quota:
    """At least `least` of the k nearest rows are of the set `rows`; the others are `rivals`."""

    rows: IntArray
    rivals: IntArray
    least: int


@dataclass(frozen=True, eq=False)
class _Node(Open):
    """An open node, with the rows that each quota has left in it."""

    alive: tuple[IntArray, ...]


@dataclass(frozen=True, eq=False)
class _Bound:
    """Lower bound of the cost of a node by one quota: the rows left in it, and the pair of rows that it is owed to."""

    cost: float
    alive: IntArray
    near: IntArray
    pair: tuple[int, int]


class _Search(OverInputs[_Node]):
    """One branch and bound over inputs of a k-nearest-neighbour model."""

    def __init__(self, statement: Statement, question: Separable, box: Box, incumbents: Incumbents) -> None:
        form, self.tuning = statement.form, statement.query.tuning.neighbours
        super().__init__(statement, question, box, incumbents, sorted(form.features()), self.tuning)
        assert isinstance(form, NearestRows)
        self.k, at = form.k, self.places
        self.slopes = form.inner.weights[:, np.concatenate([at.places, at.entries])]
        self.constant = form.inner.weights @ at.origin + form.inner.intercept
        size = np.abs(form.inner.weights) @ at.size + np.abs(form.inner.intercept)
        # of a difference of scores, ours and the model's own
        self.room = max(2.0 * CHAINED_ROUNDING * float(size.max()), form.noise)
        self.quotas = self._quotas(form.values, question)
        # the rows that the parents of nodes have left, per quota: the name of a node is its parent's place here
        self.given: list[tuple[IntArray, ...]] = [tuple(quota.rows for quota in self.quotas)]

    def is_ordinary(self) -> bool:
        """Whether no sum and no square overflows: a bound that is not a number would close what it does not bound."""
        return bool(np.isfinite(self.room) and self.places.size.max(initial=0.0) < ORDINARY[1])

    def _quotas(self, values: FloatArray, question: Separable) -> list[_Quota]:
        """Return what each row of the goal asks of the number of rows above some value.

        For a row of the goal, ``sum of g_i over the nearest >= -c k``, and a value ``v``: if ``a`` of the nearest have
        ``g_i >= v``, the sum is at most ``a max g + (k - a) max {g_i < v}``. So at least as many have it as are enough for
        that.
        """
        quotas = []
        for weights, constant in zip(*question.goal.matrix(self.statement.margin, self.statement.tie), strict=True):
            gain = values @ weights
            levels = np.unique(gain)[1:]
            some = np.unique(np.linspace(0, len(levels) - 1, self.tuning.most_levels).astype(np.int64))
            for level in levels[some] if len(levels) else ():
                rows, rivals = np.flatnonzero(gain >= level), np.flatnonzero(gain < level)
                counts = np.arange(self.k + 1)
                sums = counts * gain.max() + (self.k - counts) * gain[rivals].max() + constant * self.k
                enough = sums >= -DUST * self.k * max(np.abs(gain).max(), abs(constant))
                least = int(enough.argmax()) if enough.any() else self.k + 1
                if least:
                    quotas.append(_Quota(rows, rivals, least))
        return quotas

    # -- the search ----------------------------------------------------------------------------------------------
    def _work(self) -> int:
        rows = sum(len(quota.rows) for quota in self.quotas)
        return rows * (self.k + self.tuning.rivals) * max(1, int(self.slopes.shape[1]))

    def _bound_all(self, nodes: Nodes) -> None:
        """Bound nodes one by one, offer a point of each, and keep those that may hold a better answer."""
        single = []
        for n in range(len(nodes)):
            node = nodes.pick(np.array([n]))
            bounds = self._bounds(node, self.given[int(node.name[0])])
            hardest = max(bounds, key=lambda b: b.cost, default=None)
            cost = max(float(node.base[0]), -np.inf if hardest is None else hardest.cost)
            if not cost <= self.progress.budget:
                continue
            along, point = self._split(node, hardest)
            if along < 0:
                single.append(self._point(node.near[0], self._cheapest_levels(node, 0), node.near[0]))
                continue
            self._try(point)
            level = int(self._places_of(point)[along - self.free.n_numbers]) if along >= self.free.n_numbers else -1
            alive = tuple(b.alive for b in bounds)
            self._push(cost, _Node(0, node.low[0], node.high[0], node.allowed[0], along, level, alive))
        for u in single:
            self._try(u, polish=False)

    def _bounds(self, node: Nodes, alive: tuple[IntArray, ...]) -> list[_Bound]:
        """Return the bounds of one node by all quotas."""
        x = np.concatenate([node.near[0], np.zeros(len(self.places.entries))])
        x[self.free.n_numbers + self._cheapest_levels(node, 0)] = 1.0
        here = self.slopes @ x + self.constant
        return [self._bound(node, quota, rows, here) for quota, rows in zip(self.quotas, alive, strict=True)]

    def _bound(self, node: Nodes, quota: _Quota, rows: IntArray, here: FloatArray) -> _Bound:
        """Return the bound of one node by a quota, from the rows left in it and the rivals nearest at its cheapest point."""
        spared = self.k - quota.least  # rivals that may be nearer
        if len(rows) < quota.least or spared < 0:
            return _Bound(np.inf, rows, rows, (-1, -1))
        rivals = quota.rivals[np.argsort(-here[quota.rivals], kind="stable")[: spared + 1 + self.tuning.rivals]]
        if len(rivals) <= spared:
            return _Bound(-np.inf, rows, rows[: quota.least], (-1, -1))
        pairs = self.slopes[rows][:, None] - self.slopes[rivals][None]
        gaps = self.constant[rows][:, None] - self.constant[rivals][None] + self.room
        costs = node.costs(pairs.reshape(1, gaps.size, -1), gaps.reshape(1, -1)).reshape(gaps.shape)
        costs = np.where(np.isnan(costs), -np.inf, costs)  # what is no number bounds nothing
        order = np.argsort(-costs, axis=1, kind="stable")
        dear = np.take_along_axis(costs, order[:, spared : spared + 1], axis=1)[:, 0]
        keep = np.flatnonzero(dear <= self.progress.budget)
        if len(keep) < quota.least:
            return _Bound(np.inf, rows[keep], rows[keep], (-1, -1))
        cheap = keep[np.argsort(dear[keep], kind="stable")]
        last = cheap[quota.least - 1]
        pair = int(rows[last]), int(rivals[order[last, spared]])
        return _Bound(float(dear[last]), rows[keep], rows[cheap[: quota.least]], pair)

    # -- branching -----------------------------------------------------------------------------------------------
    def _split(self, node: Nodes, hardest: _Bound | None) -> tuple[int, FloatArray]:
        """Return the feature along which rows change places most, -1: it is a single point; and the point of the bound."""
        if hardest is None or hardest.pair[0] < 0:
            slopes, constant = np.zeros((1, self.slopes.shape[1])), np.zeros(1)
        else:
            i, j = hardest.pair
            slopes, constant = (self.slopes[i] - self.slopes[j])[None], (self.constant[i] - self.constant[j])[None]
        best = node.cheapest(slopes, constant, BEYOND_ROUNDING * self.room)
        rows = np.arange(len(self.slopes)) if hardest is None else hardest.alive
        spread = self.slopes[rows] - self.slopes[rows].mean(axis=0)
        score = node.extent(spread[None])[0].mean(axis=0) + node.extent(slopes[None])[0, 0]
        return self._along(node, 0, score), self._point(best.numbers[0], best.levels[0], node.near[0])

    def _children(self, popped: list[_Node]) -> Nodes:
        """Return the children of nodes, named by the place of their parent among the nodes."""
        self.given = [node.alive for node in popped]
        parts = [super(_Search, self)._children([node]) for node in popped]
        return replace(
            parts[0],
            low=np.concatenate([part.low for part in parts]),
            high=np.concatenate([part.high for part in parts]),
            allowed=np.concatenate([part.allowed for part in parts]),
            name=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
        )

    # -- incumbents ----------------------------------------------------------------------------------------------
    def open_up(self) -> None:
        """Look for a first incumbent: rows of the wanted outcome, with as many of their changes taken back as can be."""
        for u in (self.start, *self.incumbents.near_rows(self.tuning.rows)):
            if self.deadline.passed:
                break
            self._try(u if u is self.start else self.incumbents.pulled(u))
        self.progress.tell_best()

    def _places_of(self, u: FloatArray) -> IntArray:
        """Return the place of the level of each category at a point."""
        return np.flatnonzero(u[self.places.entries] > 0.5)

    def _try(self, u: FloatArray, *, polish: bool = True) -> None:
        """Offer a point, and what is left of its changes when they are taken back as far as the outcome allows."""
        if self.incumbents.offer(u) and polish:
            self._polish(u)

    def _polish(self, u: FloatArray) -> None:
        """Take changes of numbers back one after the other, by shares of the way home, as long as that is cheaper."""
        factual, places, improved = self.statement.query.factual, self.places.places, True
        while improved and not self.deadline.passed:
            improved = False
            for place in places[u[places] != factual[places]]:
                trials = np.repeat(u[None, :], self.tuning.shares, axis=0)
                trials[:, place] += np.linspace(1.0, 0.0, self.tuning.shares, endpoint=False) * (
                    factual[place] - u[place]
                )
                trials = self.places.schema.stored(trials)
                held = np.flatnonzero(self.incumbents.reducer.goal.holds(self.statement.query, trials))
                if held.size and self.incumbents.offer(trials[held[0]]):
                    u, improved = trials[held[0]], True
