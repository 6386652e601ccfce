"""Trades: an incumbent of trees made cheaper by a joint change of two features, one of which is changed already.

Changes of single features that keep the outcome are soon used up. Then one feature may come nearer to the factual if another
one goes a little farther. For one changed feature, all its values are scored with all values of all other numbers in one
table (`TreeScan.beside`); the pair that saves most is carried out, what it makes superfluous is taken back, and the next
changed feature has its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.forms.scan import Brackets, TreeScan
from ifonly.search.incumbents import Incumbents, reached
from ifonly.search.progress import Known
from ifonly.tolerances import DUST as _DUST

__all__ = ["look_further", "trade"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Trade:
    """Two entries of the menu of changes, and what they save."""

    saved: float
    first: int
    second: int


def trade(incumbents: Incumbents) -> Known | None:
    """Trade changes of two features against each other until no pair is cheaper; return the incumbent."""
    brackets, best = incumbents.reducer.brackets, incumbents.best
    if brackets is None or best is None:
        return best
    trades = _Trades(incumbents, brackets)
    pair = trades.from_start(best.cost)
    if pair is not None:
        incumbents.offer(pair)
    trades.improve()
    return incumbents.best


def look_further(incumbents: Incumbents) -> Known | None:
    """Look for better incumbents where the first ones are far from the best: none is known, or few features may change."""
    incumbents.climb_from_each()
    return trade(incumbents) if incumbents.most < len(incumbents.schema) else incumbents.best


class _Trades:
    """Local search over pairs of features."""

    def __init__(self, incumbents: Incumbents, brackets: Brackets) -> None:
        self.incumbents, self.brackets, self.menu = incumbents, brackets, incumbents.menu
        self.numeric = brackets.leaves.is_numeric[self.menu.feature]

    def from_start(self, below: float) -> FloatArray | None:
        """Return the cheapest change of two features that gives the wanted outcome for less than `below`."""
        scan, menu = TreeScan(self.brackets, self.incumbents.start), self.menu
        best: _Trade | None = None
        for i in np.unique(menu.feature):
            if self.incumbents.deadline.passed:
                break
            rows, others = np.flatnonzero(menu.feature == i), menu.feature > i
            best = self._best(scan, int(i), rows, others, np.full(len(menu.cost), below), best)
        if best is None:
            return None
        u = self.incumbents.start.copy()
        self._carry_out(u, best)
        return u

    def improve(self) -> None:
        """Carry out trades of one changed feature after the other, until none of them has any that saves."""
        incumbents = self.incumbents
        assert incumbents.best is not None
        u = incumbents.best.u
        scan, now = TreeScan(self.brackets, u), incumbents.costs(u)
        turns, tried = [int(j) for j in np.argsort(-now, kind="stable")], 0
        while tried < len(turns) and not incumbents.deadline.passed:
            i = turns.pop(0)
            turns.append(i)
            tried += 1
            if not now[i] > 0.0:
                continue
            found = self._exchange(scan, u, i, now)
            if found is None:
                continue
            other = u.copy()
            self._carry_out(other, found, scan)
            other = incumbents.shrunk(other, scan)
            if incumbents.offer(other):
                u, now, tried = other, incumbents.costs(other), 0
            else:  # some other demand is in its way
                scan = TreeScan(self.brackets, u)

    def _exchange(self, scan: TreeScan, u: FloatArray, i: int, now: FloatArray) -> _Trade | None:
        """Return the best trade of a changed feature: where no more may change, one that stays goes home for each new one."""
        menu, paid = self.menu, now[i] + now[self.menu.feature]
        rows = np.flatnonzero((menu.feature == i) & (menu.cost < now[i] + float(now.max())))
        changed = self._changed(u)
        if int(changed.sum()) < self.incumbents.most:
            return self._best(scan, i, rows, menu.feature != i, paid, None)
        among = changed[menu.feature]
        found = self._best(scan, i, rows, (menu.feature != i) & among, paid, None)
        return self._best(scan, i, rows[self.incumbents.stays[rows]], ~among, paid, found)

    def _changed(self, u: FloatArray) -> BoolArray:
        """Return which features of a point are not as they are."""
        schema = self.brackets.leaves.schema
        return np.logical_or.reduceat(u != self.incumbents.start, schema.starts)

    def _carry_out(self, u: FloatArray, found: _Trade, scan: TreeScan | None = None) -> None:
        for option in (found.first, found.second):
            self.incumbents.carry_out(u, option)
            if scan is not None:
                scan.move(int(self.menu.feature[option]), int(self.menu.position[option]))

    # -- one feature --------------------------------------------------------------------------------------------
    def _best(
        self, scan: TreeScan, i: int, rows: IntArray, others: BoolArray, paid: FloatArray, best: _Trade | None
    ) -> _Trade | None:
        """Return the pair of one of the rows and another change that saves most of what its features cost now."""
        menu = self.menu
        if not rows.size:
            return best
        others = others & (menu.cost + menu.cost[rows].min() < paid - _DUST)
        for columns, score in self._tables(scan, i, others):
            least = _DUST if best is None else best.saved
            some = rows[menu.cost[rows] + (menu.cost - paid)[columns].min() < -least]
            size = max(1, self.incumbents.tuning.pairs_at_once // columns.size)
            for at in range(0, some.size, size):
                part = some[at : at + size]
                if self.incumbents.pairs_left < part.size * columns.size or self.incumbents.deadline.passed:
                    return best
                self.incumbents.pairs_left -= part.size * columns.size
                found = self._cheapest(part, columns, paid, score(part, columns))
                if found is not None and (best is None or found.saved > best.saved):
                    best = found
        return best

    def _tables(
        self, scan: TreeScan, i: int, others: BoolArray
    ) -> Iterator[tuple[IntArray, Callable[[IntArray, IntArray], FloatArray]]]:
        """Yield changes of other features that one table holds: all numbers together, and each other feature by itself."""
        menu, position = self.menu, self.menu.position
        together = others & self.numeric if scan.leaves.is_numeric[i] else np.zeros_like(others)
        if together.any():
            yield (
                np.flatnonzero(together),
                lambda rows, columns: scan.beside(i, position[rows], menu.feature[columns], position[columns]),
            )
        alone = others & ~together
        for j in np.unique(menu.feature[alone]):
            columns = np.flatnonzero(alone & (menu.feature == j))
            yield columns, partial(self._pairs, scan, i, int(j))

    def _pairs(self, scan: TreeScan, i: int, j: int, rows: IntArray, columns: IntArray) -> FloatArray:
        return scan.pair(i, j, self.menu.position[rows], self.menu.position[columns])

    def _cheapest(self, rows: IntArray, columns: IntArray, paid: FloatArray, scores: FloatArray) -> _Trade | None:
        """Return the pair that reaches the goal and saves most."""
        saved = (paid - self.menu.cost)[columns][None, :] - self.menu.cost[rows][:, None]
        saved = np.where(reached(scores), saved, -np.inf)
        k, m = np.unravel_index(int(saved.argmax()), saved.shape)
        return _Trade(float(saved[k, m]), int(rows[k]), int(columns[m])) if saved[k, m] > _DUST else None
