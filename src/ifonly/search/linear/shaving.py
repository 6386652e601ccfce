"""Reduced-cost fixing at the root of a knapsack: features that stay in every answer worth having.

With the multiplier ``lambda`` of the root's Lagrangian bound ``L`` and the reduced cost ``r_j = min (cost - lambda * gain)``
over the moves of a feature, no choice in which feature ``j`` moves costs less than

    L - min(0, r_j) + r_j          (and where only K may move: the dearest of the K that do makes room for it).

If that is above the incumbent, ``j`` stays. All features are priced at once, as arrays: of 10,000, some hundred are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.runtime.tuning import KnapsackSearch
from ifonly.search.linear.moves import Jump, Slide
from ifonly.tolerances import DUST, ROUNDING

__all__ = ["Priced", "Prices"]


class Priced(NamedTuple):
    """The best choice at a multiplier: the move of each feature (NaN: it stays), its reduced cost, and the totals."""

    price: float
    move: FloatArray
    reduced: FloatArray
    gain: float
    cost: float


class Prices:
    """The moves of many features as arrays, and what they are worth at a multiplier; at most `most` may move."""

    def __init__(
        self, features: Sequence[Sequence[Jump] | Slide], need: float, most: int, tuning: KnapsackSearch
    ) -> None:
        self.need, self.most, self.n, self.tuning = need, most, len(features), tuning
        self.slide_of = np.array([j for j, f in enumerate(features) if isinstance(f, Slide)], dtype=np.int64)
        slides = [f for f in features if isinstance(f, Slide)]
        numbers = np.array([(f.rate, f.fee, f.price, f.reach, f.step or 0.0, f.square) for f in slides])
        self.rate, self.fee, self.fixed, self.reach, self.step, self.square = numbers.reshape(-1, 6).T
        jumps = [(j, i, jump) for j, f in enumerate(features) if not isinstance(f, Slide) for i, jump in enumerate(f)]
        self.jump_of = np.array([j for j, _, _ in jumps], dtype=np.int64)
        self.jump_at = np.array([i for _, i, _ in jumps], dtype=np.float64)
        self.jump_gain = np.array([jump.gain for _, _, jump in jumps])
        self.jump_cost = np.array([jump.cost for _, _, jump in jumps])
        self.heads = np.flatnonzero(np.diff(self.jump_of, prepend=-1))

    def _slides(self, price: float) -> FloatArray:
        """Return how far each slide goes at its best: to its end, or where the derivative is 0, or beside it on a grid."""
        curved = self.square > 0.0
        if price == inf or not curved.any():
            return self.reach
        with np.errstate(divide="ignore", invalid="ignore"):
            at = np.where(curved, (price * self.rate - self.fee) / (2.0 * self.square), self.reach)
        at = np.clip(at, self.step, self.reach)
        grid = curved & (self.step > 0.0) & (at < self.reach)
        if grid.any():
            step = np.where(grid, self.step, 1.0)
            below = np.maximum(np.floor(at / step) * step, step)
            above = np.minimum(below + step, self.reach)
            nearer = self._worth(below, price) <= self._worth(above, price)
            at = np.where(grid, np.where(nearer, below, above), at)
        return at

    def _worth(self, d: FloatArray, price: float) -> FloatArray:
        return np.asarray(self.fixed + (self.fee + self.square * d) * d - price * self.rate * d)

    def at(self, price: float, *, all_move: bool = False) -> Priced:
        """Return the choice that is best when a unit of gain is paid `price` (infinite: only gains count)."""
        charged, paid = (0.0, 1.0) if price == inf else (1.0, price)
        gain, cost, move = np.zeros(self.n), np.zeros(self.n), np.full(self.n, np.nan)
        d = self._slides(price)
        gain[self.slide_of] = self.rate * d
        cost[self.slide_of] = self.fixed + (self.fee + self.square * d) * d
        move[self.slide_of] = d
        if len(self.heads):
            worth = charged * self.jump_cost - paid * self.jump_gain
            # the best jump of each feature: sorted by feature, then by worth, the first of each
            first = np.lexsort((worth, self.jump_of))[self.heads]
            owner = self.jump_of[first]
            gain[owner], cost[owner], move[owner] = self.jump_gain[first], self.jump_cost[first], self.jump_at[first]
        reduced = charged * cost - paid * gain
        moves = np.ones(self.n, dtype=np.bool_) if all_move else reduced < 0.0
        if not all_move and int(moves.sum()) > self.most:
            kept = np.argsort(reduced, kind="stable")[: self.most]
            moves = np.zeros(self.n, dtype=np.bool_)
            moves[kept] = True
        total_gain, total_cost = float(gain[moves].sum()), float(cost[moves].sum())
        return Priced(price, np.where(moves, move, np.nan), reduced, total_gain, total_cost)

    def bound(self, priced: Priced) -> float:
        """Return the Lagrangian bound at a multiplier."""
        return priced.cost + priced.price * (self.need - priced.gain)

    def top(self) -> tuple[Priced, Priced] | None:
        """Return the choice with the highest bound, and one near it that gains enough; None: nothing does, or all does."""
        left, right = self.at(0.0), self.at(inf)
        if right.gain < self.need or left.gain >= self.need:
            return None
        best = left
        for _ in range(self.tuning.most_lines):
            if right.gain <= left.gain:
                break
            middle = self.at((right.cost - left.cost) / (right.gain - left.gain))
            if self.bound(middle) > self.bound(best):
                best = middle
            price = middle.price
            flat = left.cost - price * left.gain - DUST * abs(self.bound(best))
            if middle.cost - price * middle.gain >= flat:
                break
            if middle.gain >= self.need:
                right = middle
            else:
                left = middle
        return best, right

    def near(self, best: Priced, right: Priced) -> list[dict[int, float]]:
        """Return choices near the top: the one that gains enough, and those of the least reduced costs, some more and fewer.

        A feature that does not move at the top goes as far as it would.
        """
        choices = [right.move]
        order = np.argsort(best.reduced, kind="stable")
        count = int((~np.isnan(right.move)).sum())
        ways = self.at(best.price, all_move=True).move
        for k in range(max(1, count - self.tuning.around), min(self.n, self.most, count + self.tuning.around) + 1):
            move = np.full(self.n, np.nan)
            move[order[:k]] = ways[order[:k]]
            choices.append(move)
        return [{int(j): float(move[j]) for j in np.flatnonzero(~np.isnan(move))} for move in choices]

    def may_move(self, priced: Priced, budget: float) -> IntArray:
        """Return the features that move in some choice below the budget, as far as the bound can tell."""
        moving = ~np.isnan(priced.move)
        room = 0.0
        if 0 < self.most <= int(moving.sum()):  # one of those that move must stay then
            room = float(priced.reduced[moving].max())
        reduced = priced.reduced.copy()  # of the best move; a slide that is not worth it costs least at its shortest
        nearest = self._worth(self.step, priced.price)
        reduced[self.slide_of] = np.minimum(reduced[self.slide_of], nearest)
        bounds = self.bound(priced) - room + reduced
        size = abs(priced.cost) + priced.price * (abs(self.need) + priced.gain) + abs(budget)
        return np.flatnonzero(moving | ~(bounds > budget + ROUNDING * size))
