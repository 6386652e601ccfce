"""Adversary of trees without a program: branch and bound over the cells of one ball for the least lead.

In a box of cells every tree can reach some of its leaves; taken each for itself, the worst ones bound the lead from below. A
box whose bound is enough is safe. Otherwise the worst leaves of two trees lie apart along some number, and the box is split
between them; or they all meet, and where they meet is the worst cell of the box. In an l2 ball the squares of the gaps
between the centre and a box add up, and what is farther than the radius does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.criteria.robustness.keeps_lead import KeepsLead
from ifonly.data.schema import Numeric
from ifonly.models.abilities import Ensemble
from ifonly.models.forms.scan import Brackets
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.runtime.deadline import Deadline
from ifonly.tolerances import ROUNDING

__all__ = ["Worst", "worst_cell"]


@dataclass(frozen=True, eq=False)
class Worst:
    """Least lead in a ball, where it is not enough, and a point that has it; `closed`: the search went to its end."""

    closed: bool
    least: float = np.inf
    point: FloatArray | None = None


def worst_cell(demand: KeepsLead, u: FloatArray, deadline: Deadline) -> Worst | None:
    """Return the worst point of the ball around `u`; None where the form is no sum of trees, or the goal is not linear."""
    form = demand.form
    if not isinstance(form, Ensemble):
        return None
    rows = demand.goal.matrix()
    if not len(rows[0]):
        return None
    table = _Table(demand, u, Brackets(form, *rows))
    worst = Worst(True)
    for g in range(len(rows[0])):
        found = _Attack(table, g, min(demand.over_ball.broken, worst.least), deadline).run()
        if found.point is not None:
            worst = found
        if not found.closed:
            return Worst(False, worst.least, worst.point)
    return worst


class _Table:
    """Cells of a ball, the leaves that meet it, and the squares of the gaps between the centre and each cell."""

    def __init__(self, demand: KeepsLead, u: FloatArray, brackets: Brackets) -> None:
        ball = demand.ball(u)
        self.u, self.schema = u, demand.limits.schema
        leaves = brackets.leaves.within(ball)
        self.values, self.constant = brackets.values_of(leaves), brackets.constant
        self.numbers = [j for j in leaves.features if leaves.is_numeric[j]]
        self.cells = [self._cells(ball, j, leaves.cuts[j]) for j in self.numbers]
        n, many = len(self.numbers), len(leaves.node)
        self.begin, self.end = np.zeros((n, many), dtype=np.int64), np.zeros((n, many), dtype=np.int64)
        self.first = np.cumsum([0, *(len(c.low) for c in self.cells)])[:-1].astype(np.int64)
        self.home = np.zeros(n, dtype=np.int64)
        gaps = [np.zeros(0)]
        for k, (j, cells) in enumerate(zip(self.numbers, self.cells, strict=True)):
            position = leaves.cuts[j].searchsorted(cells.low, side="left")
            self.begin[k] = position.searchsorted(leaves.low_of[j], side="right")
            self.end[k] = position.searchsorted(leaves.high_of[j], side="right") - 1
            hat = float(u[self.schema.starts[j]])
            self.home[k] = int(cells.index(hat))
            round_ = demand.norm == "l2" and demand.reach[j] > 0
            gaps.append(((cells.nearest(hat) - hat) / demand.reach[j]) ** 2 if round_ else np.zeros(len(cells.low)))
        self.gap = np.concatenate(gaps)
        some = np.flatnonzero((self.begin <= self.end).all(axis=0))
        self.tree, self.leaves = leaves.tree, some
        self.n_trees = len(np.unique(leaves.tree))

    def _cells(self, ball: Box, j: int, cuts: FloatArray) -> Cells:
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        return Cells.of(feature, float(ball.lower[j]), float(ball.upper[j]), cuts)

    def least_gap(self, low: IntArray, high: IntArray) -> FloatArray:
        """Return the least squares of the gaps over ranges of cells: they rise to both sides of the centre's cell."""
        shape = (slice(None), *([None] * (low.ndim - 1)))
        home, first = self.home[shape], self.first[shape]
        if not self.numbers:
            return np.zeros(low.shape)
        return np.asarray(self.gap[first + np.clip(home, low, np.maximum(low, high))])

    def point(self, low: IntArray, high: IntArray) -> FloatArray:
        """Return the point of a box of cells that is nearest to the centre."""
        y = self.u.copy()
        for k, (j, cells) in enumerate(zip(self.numbers, self.cells, strict=True)):
            at, c = self.schema.starts[j], int(np.clip(self.home[k], low[k], high[k]))
            y[at] = float(cells.nearest(float(self.u[at]))[c])
        return y


class _Attack:
    """One branch and bound for the least value of one gap, below `least`."""

    def __init__(self, table: _Table, g: int, least: float, deadline: Deadline) -> None:
        self.table, self.deadline = table, deadline
        self.values, self.constant = table.values[:, g], float(table.constant[g])
        self.best = least
        self.point: FloatArray | None = None

    def run(self) -> Worst:
        """Search all of the ball."""
        t = self.table
        order = np.lexsort((self.values, t.tree))
        order = order[np.isin(order, t.leaves)]
        low, high = (
            np.zeros(len(t.numbers), dtype=np.int64),
            np.array([len(c.low) - 1 for c in t.cells], dtype=np.int64),
        )
        stack = [(low, high, order)]
        while stack:
            if self.deadline.passed:
                return self._result(closed=False)
            stack += self._split(*stack.pop())
        return self._result(closed=True)

    def _result(self, *, closed: bool) -> Worst:
        return Worst(closed) if self.point is None else Worst(closed, self.best, self.point)

    def _split(self, low: IntArray, high: IntArray, leaves: IntArray) -> list[tuple[IntArray, IntArray, IntArray]]:
        """Bound a box of cells, and split it: the child that looks worse last."""
        t = self.table
        begin, end = np.maximum(t.begin[:, leaves], low[:, None]), np.minimum(t.end[:, leaves], high[:, None])
        kept = np.flatnonzero((begin <= end).all(axis=0) & (t.least_gap(begin, end).sum(axis=0) <= 1.0 + ROUNDING))
        leaves = leaves[kept]
        tree = t.tree[leaves]
        first = np.concatenate(([0], np.flatnonzero(tree[1:] != tree[:-1]) + 1)) if len(leaves) else np.empty(0, int)
        if len(first) < t.n_trees:
            return []  # no cell of it is in the ball
        total = float(self.values[leaves[first]].sum()) + self.constant
        if total >= self.best:
            return []
        begin, end = begin[:, kept[first]], end[:, kept[first]]
        meet_low, meet_high = (begin.max(axis=1), end.min(axis=1)) if t.numbers else (low, high)
        apart = np.flatnonzero(meet_low > meet_high)
        if apart.size:
            k, cell = self._between(apart, begin, end)
            up_first = int((begin[k] > cell).sum()) > int((end[k] <= cell).sum())
        else:
            gap = t.least_gap(meet_low, meet_high)
            if gap.sum() <= 1.0 + ROUNDING:
                self.best, self.point = total, t.point(meet_low, meet_high)
                return []
            k = int((gap - t.least_gap(low, high)).argmax())
            up_first = bool(meet_low[k] > t.home[k])
            cell = int(meet_low[k] - 1 if up_first else meet_high[k])
            if not low[k] <= cell < high[k]:
                return []  # it is as near as it can be, and too far away
        below, above = (low, _with(high, k, cell), leaves), (_with(low, k, cell + 1), high, leaves)
        return [below, above] if up_first else [above, below]

    @staticmethod
    def _between(apart: IntArray, begin: IntArray, end: IntArray) -> tuple[int, int]:
        """Return where most worst leaves end before, while no fewer begin behind."""
        best, at = -1, (0, 0)
        for k in map(int, apart):
            cuts = np.unique(end[k])
            before = (end[k][None, :] <= cuts[:, None]).sum(axis=1)
            behind = (begin[k][None, :] > cuts[:, None]).sum(axis=1)
            both = np.minimum(before, behind)
            if both.max() > best:
                best, at = int(both.max()), (k, int(cuts[both.argmax()]))
        return at


def _with(ends: IntArray, k: int, value: int) -> IntArray:
    out = ends.copy()
    out[k] = value
    return out
