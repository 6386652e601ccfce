"""Improvement of prices in one part of a cell search: subgradient steps, points on the way, and what the prices close.

A step goes against a subgradient of the bound, as far as would miss the goal if the bound were linear (Polyak 1969), with a
share of the step before. Of several goals, those that the best leaves clear by less than the others gain weight. The cells
that are worth most are a point of the part, and now and then one that reaches the goal: it is brought home as far as it can
be, and offered as incumbent. Where a leaf or a cell is worth so much less than the best of its tree or feature that the bound
without the difference misses the goal, no better answer lies in it. A part shrinks to the hull of the leaves that each tree
has left. Where a proof is kept, nothing is closed but by prices that are rounded to a unit and written down (`keeping`), and
parts go on from these.

This is the twin of `_prices.h` and of the files that it includes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.runtime.deadline import Deadline
from ifonly.search.cells.grids import Part
from ifonly.search.cells.keeping import ROUGHEST, Keeping
from ifonly.search.cells.split_prices import Bound, Method, Prices, PriceTables

__all__ = ["Improved", "Improving"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Improved:
    """A part after its prices were improved.

    Attributes
    ----------
    part, leaves
        What is left of it.
    prices
        The best prices.
    best
        The best leaf of each tree at these prices.
    cost
        No point of it that is within the budget costs less.
    apart
        How many best leaves of the last steps end at or before each cell, and begin at each.
    counted
        Number of these steps.
    point
        A point to be offered, as a part of its own.
    """

    part: Part
    leaves: IntArray
    prices: Prices
    best: IntArray
    cost: float
    apart: tuple[IntArray, IntArray]
    counted: int
    point: Part | None


class Improving:
    """Subgradient method on the prices of parts."""

    def __init__(
        self,
        tables: PriceTables,
        method: Method,
        keeping: Keeping | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self.tables, self.method, self.grid, self.keeping = tables, method, tables.grid, keeping
        self.deadline = Deadline.never() if deadline is None else deadline

    def improved(
        self, part: Part, leaves: IntArray, parent: Prices, steps: int, budget: float, cost: float
    ) -> Improved | None:
        """Return what is left of a part after so many steps, from the prices of its parent; None: it is closed.

        `cost` is the bound of the parent.
        """
        self.tables.charge_most(part)
        run = _Run(self, part, leaves, budget)
        base = self.tables.active(parent, part, leaves, every=self.keeping is not None)
        prices = run.improve(base, steps)
        if prices is not None and self.keeping is not None:
            prices = self.keeping.rounded(prices, base, 1)
            self.keeping.note(prices, base)
        bound = None if prices is None else run.bound(prices)
        if prices is None or bound is None or bound.is_missed:
            return None
        least = bound.need - 2.0 * bound.rounding
        if prices.mu > 0.0:
            own = self.tables.charged.elsewhere + (least - (bound.value - prices.mu * run.allowance)) / prices.mu
            if own > cost:
                cost = min(budget, own)
        left = self._left(part, leaves, bound, bound.value - least)
        if left is None:
            return None
        return Improved(*left, prices, bound.best, cost, (run.ended, run.begun), run.counted, run.found())

    # -- what is closed by its price ----------------------------------------------------------------------------
    def _left(self, part: Part, leaves: IntArray, bound: Bound, spare: float) -> tuple[Part, IntArray] | None:
        """Return the part and its leaves without what falls short of the best by more than there is to spare."""
        grid, tree = self.grid, self.tables.tree_of[leaves]
        leaves = leaves[~(bound.tops[tree] - bound.worth > spare)]
        low, high = part.low.copy(), part.high.copy()
        for k in range(len(grid.numbers)):
            low[k], high[k] = self._range(part, bound, spare, k)
        heads = np.flatnonzero(np.diff(self.tables.tree_of[leaves], prepend=-1))
        for k in range(len(grid.numbers)):
            low[k] = max(low[k], int(np.minimum.reduceat(grid.begin[k][leaves], heads).max()))
            high[k] = min(high[k], int(np.maximum.reduceat(grid.end[k][leaves], heads).min()))
        if (low > high).any():
            return None
        for j in np.flatnonzero((low != part.low) | (high != part.high)):
            leaves = leaves[(grid.begin[j][leaves] <= high[j]) & (grid.end[j][leaves] >= low[j])]
        if len(np.unique(self.tables.tree_of[leaves])) < self.tables.n_trees:
            return None
        return replace(part, low=low, high=high), leaves

    def _range(self, part: Part, bound: Bound, spare: float, k: int) -> tuple[int, int]:
        """Return the first and the last cell of a number that are not closed. A change may take the place of another."""
        grid = self.grid
        low, high, home = int(part.low[k]), int(part.high[k]), int(grid.unchanged[k])
        own = bound.base[k] + bound.taken[k]
        change = own + (bound.least_taken if low <= home <= high and bound.taken[k] == 0.0 else 0.0)
        stay = own - (bound.next_gain if bound.taken[k] > 0.0 else 0.0)
        first = int(grid.first[k])
        while low < high and (stay if low == home else change) - bound.cells[first + low] > spare:
            low += 1
        while high > low and (stay if high == home else change) - bound.cells[first + high] > spare:
            high -= 1
        return low, high


@dataclass(frozen=True, eq=False)
class _Push:
    """Direction of a step: of the price of the budget, of the weights of goals, and of the prices of splits."""

    mu: float
    weights: FloatArray
    below: FloatArray
    above: FloatArray

    @classmethod
    def none(cls, prices: Prices) -> _Push:
        """Return no direction."""
        still = np.zeros(len(prices.split))
        return cls(0.0, np.zeros(len(prices.weights)), still, still)

    def moved(self, prices: Prices, by: float) -> Prices:
        """Return prices after a step; none is below 0, and weights add up to 1."""
        below, above = prices.below + by * self.below, prices.above + by * self.above
        mu, weights = prices.mu + by * self.mu, prices.weights
        if len(weights) > 1:
            more = weights + by * self.weights
            more = np.where(more > 0.0, more, 0.0)
            whole = sum(more.tolist())
            weights = more / whole if whole > 0.0 else weights
        positive = (np.where(price > 0.0, price, 0.0) for price in (below, above))
        return Prices(max(0.0, mu), weights, prices.split, *positive)


class _Run:
    """The steps in one part."""

    def __init__(self, improving: Improving, part: Part, leaves: IntArray, budget: float) -> None:
        self.tables, self.method, self.deadline = improving.tables, improving.method, improving.deadline
        self.keeping = improving.keeping
        self.grid, self.part, self.leaves, self.budget = improving.grid, part, leaves, budget
        self.allowance = budget - self.tables.charged.elsewhere if budget < np.inf else 0.0
        self.ended = np.zeros(len(self.grid.cost), dtype=np.int64)
        self.begun = np.zeros(len(self.grid.cost), dtype=np.int64)
        self.counted, self.point, self.tries = 0, None, 0

    point: IntArray | None

    def bound(self, prices: Prices) -> Bound:
        """Return the bound at some prices."""
        return self.tables.bound(self.part, self.leaves, prices, self.allowance)

    def improve(self, prices: Prices, steps: int) -> Prices | None:
        """Return the best prices of so many steps; None: they close the part."""
        base, best, least, stall, stretch = prices, prices, np.inf, 0, self.method.stretch
        push = none = _Push.none(prices)
        fresh, best_at = not (prices.mu or prices.below.any() or prices.above.any()), 0
        for i in range(steps):
            bound = self.bound(prices)
            if bound.is_missed:
                if i == 0 or self.keeping is None:  # at first, by the prices of the part around
                    return None
                prices, bound = self._rounded_to_close(prices, base, self.keeping)
                if bound.is_missed:
                    self.keeping.note(prices, base)
                    return None
            stall += 1
            if bound.value < least:
                best, least, stall, best_at = prices, bound.value, 0, i
            elif stall == self.method.patience:
                stall, stretch = 0, stretch * self.method.shorter
                if best_at > 0 or not fresh:  # not to where nothing had a price: the way from there is bumpy
                    prices, push = best, none
                    bound = self.bound(prices)
            if i >= max(steps - self.method.counted, steps / 2):
                self._count(bound)
            if (i + 1) % self.method.round_every == 0:
                self._look_at(bound.chosen)
            if self.point is not None or i + 1 == steps or self.deadline.passed:
                break
            push, length = self._direction(prices, bound, push)
            if not length > 0.0:
                break
            by = stretch * ((bound.value - bound.need) + self.method.beyond) / length
            prices = push.moved(prices, by)
        return best

    def _rounded_to_close(self, prices: Prices, base: Prices, keeping: Keeping) -> tuple[Prices, Bound]:
        """Return prices as rough as they may be to close the part, and their bound; where none do, the finest ones."""
        by = ROUGHEST
        while True:
            rounded = keeping.rounded(prices, base, by)
            bound = self.bound(rounded)
            by //= 2
            if by == 0 or bound.is_missed:
                return rounded, bound

    def _direction(self, prices: Prices, bound: Bound, before: _Push) -> tuple[_Push, float]:
        """Return the direction of the prices, and its squared length in units in which a budget weighs as all trees do."""
        momentum = self.method.momentum
        ways = self.tables.ways(prices, bound)
        below = _pushed(prices.below, ways[0], before.below, momentum)
        above = _pushed(prices.above, ways[1], before.above, momentum)
        length, mu = float((below * below + above * above).sum()), before.mu
        if self.allowance > 0.0:
            unit = self.tables.n_trees / (self.allowance * self.allowance)
            mu = (self.tables.costs(bound.chosen) - self.allowance) * unit + momentum * mu
            if prices.mu == 0.0 and mu < 0.0:
                mu = 0.0
            length += mu * mu / unit
        weights = before.weights
        if len(weights) > 1:
            weights, squares = self._to_weigh_more(prices, bound, weights)
            length += squares
        return _Push(mu, weights, below, above), length

    def _to_weigh_more(self, prices: Prices, bound: Bound, before: FloatArray) -> tuple[FloatArray, float]:
        """Return the direction of the weights: away from goals that are cleared by more than the mean of those that count."""
        unit, slacks = self.tables.n_trees * self.method.weight_unit, self.tables.slacks(bound).tolist()
        mean = sum(slack for slack, weight in zip(slacks, prices.weights, strict=True) if weight > 0.0)
        mean /= int((prices.weights > 0.0).sum())
        out, squares = np.zeros(len(slacks)), 0.0
        for g, slack in enumerate(slacks):
            push = (mean - slack) * unit + self.method.momentum * float(before[g])
            out[g] = 0.0 if prices.weights[g] == 0.0 and push < 0.0 else push
            squares += float(out[g]) * float(out[g]) / unit
        return out, squares

    def _count(self, bound: Bound) -> None:
        """Count where the best leaves end and begin inside the part."""
        grid, part = self.grid, self.part
        end, begin = grid.end[:, bound.best], grid.begin[:, bound.best]
        n, first = len(grid.cost), grid.first[:, None]
        self.ended += np.bincount((end + first)[end < part.high[:, None]], minlength=n)
        self.begun += np.bincount((begin + first)[begin > part.low[:, None]], minlength=n)
        self.counted += 1

    # -- points -------------------------------------------------------------------------------------------------
    def _reaches(self, point: IntArray) -> bool:
        """Whether a point reaches the goal, by leaves that are open."""
        grid, n = self.grid, len(self.grid.numbers)
        at = point[:n, None]
        inside = ((grid.begin[:, self.leaves] <= at) & (grid.end[:, self.leaves] >= at)).all(axis=0)
        inside &= grid.holds[point[n:]][:, self.leaves].all(axis=0)
        held = self.leaves[inside]
        if len(held) < self.tables.n_trees:
            return False
        values = self.tables.values[held]
        return not any(float(values[:, g].copy().sum()) < need for g, need in enumerate(self.tables.need.tolist()))

    def _look_at(self, chosen: IntArray) -> None:
        """Bring a point that reaches the goal home as far as it can be, and keep it if it is within the budget."""
        if not self._reaches(chosen):
            return
        point, self.tries = chosen.copy(), self.method.tries
        for partly in (False, True):
            self._bring_home(point, partly=partly)
        if all(t.elsewhere + self.tables.costs_by(t, point) <= self.budget for t in self.grid.tables):
            self.point = point

    def _bring_home(self, point: IntArray, *, partly: bool) -> None:
        """Move numbers home (or, partly, as far as that goes) while the goal is kept, the dearest first."""
        grid, n = self.grid, len(self.grid.numbers)
        paid = grid.cost[grid.first + point[:n]]
        for k in np.argsort(-paid, kind="stable"):
            if not paid[k] > 0.0:
                return
            here = int(point[k])
            home = int(min(max(grid.cheapest[k], self.part.low[k]), self.part.high[k]))
            cost = grid.cost[int(grid.first[k]) :]
            for cell in range(home, here, 1 if here > home else -1):
                if not cost[cell] < cost[here]:
                    break
                if self.tries <= 0:
                    return
                self.tries -= 1
                point[k] = cell
                if self._reaches(point):
                    break
                point[k] = here
                if not partly:
                    break

    def found(self) -> Part | None:
        """Return the point that was found, as a part of its own."""
        if self.point is None:
            return None
        n = len(self.grid.numbers)
        allowed = np.zeros(len(self.grid.entries), dtype=np.bool_)
        allowed[self.point[n:]] = True
        return Part(self.point[:n].astype(np.int64), self.point[:n].astype(np.int64), allowed)


def _pushed(price: FloatArray, way: IntArray, before: FloatArray, momentum: float) -> FloatArray:
    """Return the direction of prices: a subgradient, and a share of the direction before; none below 0."""
    none = price == 0.0
    push = np.where(none & (way < 0), 0, way) + momentum * before
    return np.where(none & (push < 0.0), 0.0, push)
