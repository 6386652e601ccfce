r"""Hulls by category: one small question per combination of categories that occurs, cheapest bound first.

Let row ``i`` differ from the answer in ``m_i`` of the ``F`` categorical features, and let ``q_f`` be the weight of the
rows that differ in feature ``f``, so that ``sum_f q_f = sum_i lambda_i m_i``. The 0/1 columns of ``f`` add ``2 q_f`` to the
l1 norm of ``s``, at least ``q_f^2`` to the square of its l2 norm, and ``q_f`` is an entry of it. If no row agreed with the
answer in all categories, every ``m_i`` would be at least 1, hence ``sum_f q_f >= 1`` and

    ||s||_1 >= 2,    ||s||_2 >= 1 / sqrt(F),    ||s||_inf >= 1 / F.

So below that radius the answer has the categories of some row. With radius 0 all ``q_f`` are 0: only the rows with
exactly these categories take part, and coherence holds by itself, as the paper argues (appendix A). Otherwise the
weight ``q`` of the other rows is at most ``radius / 2``, ``radius * sqrt(F)`` or ``radius * F``, which bounds how far the
numbers can leave those of the group.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.criteria.manifold.hull import Ball
from ifonly.criteria.manifold.in_hull import InHull, least_apart, least_for_levels
from ifonly.criteria.manifold.rows import Shape
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.question.demand import BoxDemand, Demand
from ifonly.question.further import Clustered
from ifonly.question.guidance import Branch, Branches
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.memo import Memo, cached_property

__all__ = ["InCloud"]

_FIRST, _ROW, _SCAN, _GROUP, _FINE = range(5)


@dataclass(frozen=True, eq=False)
class InCloud(InHull, Branches, Clustered):
    """Demand to lie in one of the hulls of a cloud; falls apart into branches by cluster and categories."""

    shape: Shape | None = None

    @classmethod
    def of(cls, text: str, shape: Shape, ball: Ball) -> InCloud:
        """Return the demand to lie in the enlarged hulls of a shape."""
        return cls(text, shape.hulls, ball, shape.U, shape=shape)

    def clusters(self, query: Query) -> Sequence[Demand]:
        """Return one demand per cluster hull, for one answer in each; none when there is a single hull."""
        del query
        assert self.shape is not None
        n = len(self.hulls)
        if n == 1:
            return []
        parts = [self.shape.only(k) for k in range(n)]
        return [InCloud.of(f"{self.text}, cluster {k + 1}", part, self.ball) for k, part in enumerate(parts)]

    def branches(self, statement: Statement, box: Box, deadline: Deadline) -> Iterator[Branch] | None:
        """One branch per combination of categories, or per cluster when the ball is too large for that."""
        assert self.shape is not None
        if self._shares_categories(self.shape):
            return _ByCategory(self, self.shape, statement, box, deadline).branches()
        return iter(self._by_cluster(self.shape, statement, box, deadline)) if len(self.hulls) > 1 else None

    def _shares_categories(self, shape: Shape) -> bool:
        """Whether every answer must have the categories of some row."""
        return self.ball.radius < least_apart(self.ball.norm, len(shape.categorical))

    def _by_cluster(self, shape: Shape, statement: Statement, box: Box, deadline: Deadline) -> list[Branch]:
        out = []
        for k, hull in enumerate(self.hulls):
            demand = InHull(self.text, (hull,), self.ball, shape.U[shape.cluster == k])
            bound, _ = demand.slice(statement, box, deadline).cheapest()
            out.append(Branch(max(bound, 0.0) + least_for_levels(statement, box), box, demand))
        return sorted(out, key=lambda branch: branch.bound)


class _ByCategory:
    """The branches of one question."""

    def __init__(self, whole: InCloud, shape: Shape, statement: Statement, box: Box, deadline: Deadline) -> None:
        self.deadline = deadline
        self.whole, self.shape, self.groups = whole, shape, shape.groups
        self.statement, self.query, self.box = statement, statement.query, box
        self.exact = whole.ball.radius == 0.0
        self._memo = Memo()
        self.room = self._room()

    def _room(self) -> FloatArray:
        """Return how far each number can leave the range of its group: by the ball, and by the weight of other rows."""
        ball, F = self.whole.ball, max(len(self.shape.categorical), 1)
        borrowed = ball.radius * {"l1": 0.5, "l2": np.sqrt(F), "linf": F}[ball.norm]
        units = self.shape.units[[self.query.schema.starts[j] for j in self.shape.numeric]]
        if not len(units):
            return np.empty((len(self.groups), 0))
        low, high = self.groups.lowest, self.groups.highest
        other = np.maximum(low - low.min(axis=0), high.max(axis=0) - high)
        return np.asarray(ball.radius * units + min(borrowed, 1.0) * other)

    def branches(self) -> Iterator[Branch]:
        """Yield the nearest row that meets all demands, then rows and groups by their bounds.

        The bound of a group is made finer when it comes up. A group of equal rows needs no question of its own: its row
        is among the rows that meet all demands, or not. When time is up, all that is left is one branch.
        """
        heap = [(bound, _GROUP, g) for g, bound in self._bounds()]
        heapq.heapify(heap)
        for bound, kind, i in self._first_rows():
            if kind == _FIRST:
                yield self._row(bound, i)
            else:
                heapq.heappush(heap, (bound, kind, i))
        while heap:
            bound, kind, i = heapq.heappop(heap)
            if self.deadline.passed:
                yield Branch(bound, self.box, self.whole)
                return
            if kind == _ROW:
                yield self._row(bound, i)
            elif kind == _SCAN:
                for item in self._scan(i):
                    heapq.heappush(heap, item)
            elif kind == _FINE:
                yield Branch(bound, *self._group(i))
            else:
                heapq.heappush(heap, (max(bound, self._finer(i)), _FINE, i))

    # -- rows ---------------------------------------------------------------------------------------------------
    @cached_property
    def _by_cost(self) -> tuple[FloatArray, IntArray]:
        """The objective of every row, and the rows in that order."""
        step, n = self.query.tuning.hulls.rows_in_memory, len(self.shape.U)
        parts = (np.arange(first, min(first + step, n)) for first in range(0, n, step))
        cost = np.concatenate([self.statement.objective(self._as_answers(part)) for part in parts])
        return cost, np.argsort(cost, kind="stable")

    def _first_rows(self) -> list[tuple[float, int, int]]:
        """Scan until the nearest row that meets all demands is found; what else turned up is kept for later."""
        items: list[tuple[float, int, int]] = [(0.0, _SCAN, 0)]
        kept: list[tuple[float, int, int]] = []
        while items and items[-1][1] == _SCAN:
            if self.deadline.passed:
                return [*kept, *items]
            kept += items[:-1]
            items = self._scan(items[-1][2])
            if items and items[0][1] == _ROW:
                return [(items[0][0], _FIRST, items[0][2]), *items[1:]]
        return kept

    def _scan(self, start: int) -> list[tuple[float, int, int]]:
        """Return the rows that meet all demands among the next few, and where to go on."""
        cost, order = self._by_cost
        some = order[start : start + self.query.tuning.hulls.rows_at_once]
        rows = self._as_answers(some)
        good = self.box.contains(rows)
        for demand in self.statement.demands:
            if demand is not self.whole and good.any():
                good[good] = demand.holds(self.query, rows[good])
        found = [(float(cost[i]), _ROW, int(i)) for i in some[good]]
        end = start + len(some)
        return [*found, (float(cost[order[end]]), _SCAN, end)] if end < len(order) else found

    def _as_answers(self, rows: IntArray) -> FloatArray:
        """Return rows as answers: what the factual lacks stays missing."""
        U = self.shape.U[rows].copy()
        for j in set(range(len(self.query.schema))) - set(self.shape.features):
            U[:, self.query.schema.slice(j)] = self.query.factual[self.query.schema.slice(j)]
        return U

    def _row(self, bound: float, i: int) -> Branch:
        """Return the branch of a single row: nothing is left to choose."""
        box, u, schema = self.box.copy(), self.shape.U[i], self.query.schema
        for j in self.shape.features:
            if isinstance(schema.features[j], Numeric):
                box.lower[j] = box.upper[j] = u[schema.starts[j]]
            else:
                box.keep_levels(j, u[schema.slice(j)] > 0)
        return Branch(bound, box, BoxDemand(self.whole.text))

    # -- groups -------------------------------------------------------------------------------------------------
    def _bounds(self) -> list[tuple[int, float]]:
        """Return (group, bound) for the groups that the box admits: what their categories and ranges cost at least."""
        groups, schema = self.groups, self.query.schema
        near = np.tile(self.query.factual, (len(groups), 1))
        for k, j in enumerate(self.shape.categorical):
            near[:, schema.slice(j)] = np.eye(schema.features[j].width)[groups.levels[:, k]]
        fits = np.ones(len(groups), dtype=np.bool_)
        for k, j in enumerate(self.shape.numeric):
            low = np.maximum(groups.lowest[:, k] - self.room[:, k], self.box.lower[j])
            high = np.minimum(groups.highest[:, k] + self.room[:, k], self.box.upper[j])
            fits &= low <= high
            near[:, schema.starts[j]] = np.clip(near[:, schema.starts[j]], low, np.maximum(low, high))
        fits &= self.box.contains(near)
        if self.exact:
            fits &= ~groups.are_points
        bounds = self.statement.costs().per_feature(self.query, near).sum(axis=1)
        for criterion in self.statement.coupled:
            costs = criterion.coupled_bound(self.query)
            if costs is not None:
                bounds = bounds + costs.per_feature(self.query, near).max(axis=1)
        return [(int(g), float(bounds[g])) for g in np.flatnonzero(fits)]

    def _finer(self, g: int) -> float:
        """Return a bound for a group by the linear relaxation of its hull."""
        if self.deadline.passed:
            return -np.inf
        box, demand = self._group(g)
        bound, _ = demand.slice(self.statement, box, self.deadline).cheapest()
        return bound + least_for_levels(self.statement, box)

    def _group(self, g: int) -> tuple[Box, InHull]:
        """Return the part of the box with the categories of a group, and the hull to lie in there."""
        return self._memo.get("group", g, lambda: self._make_group(g))

    def _make_group(self, g: int) -> tuple[Box, InHull]:
        box, rows, whole = self.box.copy(), self.groups.rows(g), self.whole
        for k, j in enumerate(self.shape.categorical):
            box.keep_levels(j, np.arange(self.query.schema.features[j].width) == self.groups.levels[g, k])
        for k, j in enumerate(self.shape.numeric):
            low, high = self.groups.lowest[g, k] - self.room[g, k], self.groups.highest[g, k] + self.room[g, k]
            box.narrow(j, float(low), float(high))
        hull = self.shape.numbers_of(g) if self.exact else self.whole.hulls[self.groups.cluster[g]]
        return box, InHull(whole.text, (hull,), whole.ball, self.shape.part(rows))
