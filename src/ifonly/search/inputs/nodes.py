"""Nodes of a branch and bound over inputs, many at once: intervals of numbers, sets of levels, and what a budget buys.

In a node every feature has a cheapest value, and all others cost more. The most that a linear function can gain within a
budget, and the least that must be spent for a gain, are fractional knapsacks: one item per feature, from its cheapest value
to the one that gains most. Where the items are taken whole the bound is exact; a price per change, levels of several costs
and squares are replaced by lines below them, so it is a bound in any case (Sinha and Zoltners 1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.runtime.memo import cached_property
from ifonly.search.inputs.free import Free
from ifonly.tolerances import DUST, FLOAT64_ROOM, ROUNDING, TINY

__all__ = ["Nodes", "Spent", "as_inputs"]

BoolArray = npt.NDArray[np.bool_]


class Spent(NamedTuple):
    """Least cost of each node at which a linear function may reach 0, and the point that does.

    Attributes
    ----------
    cost
        The cost; infinity: the function stays below 0.
    numbers
        The values of the numbers.
    levels
        The place of one level per category.
    rate
        The gain that the last unit of cost buys.
    excess
        Per feature: what the point costs beyond the lines below the costs.
    """

    cost: FloatArray
    numbers: FloatArray
    levels: IntArray
    rate: FloatArray
    excess: FloatArray

    @classmethod
    def of_rows(cls, spent: Sequence[Spent], row: IntArray) -> Spent:
        """Return, for each node, what is spent by one of several functions: that of its row."""
        node = np.arange(len(row))
        return cls(*(np.stack(part)[row, node] for part in zip(*spent, strict=True)))

    def pick(self, which: IntArray) -> Spent:
        """Return those of some of the nodes."""
        return Spent(self.cost[which], self.numbers[which], self.levels[which], self.rate[which], self.excess[which])


def as_inputs(numbers: FloatArray, levels: IntArray, width: int) -> FloatArray:
    """Return points as numbers, then 1 for each chosen level and 0 for the others, then 0 up to a width."""
    x = np.zeros((len(numbers), width))
    x[:, : numbers.shape[1]] = numbers
    np.put_along_axis(x, numbers.shape[1] + levels, 1.0, axis=1)
    return x


class _Items(NamedTuple):
    """Knapsack items, per node and row: the value at the cheapest point, and gain and cost of each feature's best move."""

    base: FloatArray
    gain: FloatArray
    cost: FloatArray
    upwards: BoolArray


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes: per node, the interval of each number, the allowed levels and its name; and the budget for all changes."""

    free: Free
    low: FloatArray
    high: FloatArray
    allowed: BoolArray
    name: IntArray
    budget: float = np.inf

    def __len__(self) -> int:
        return len(self.low)

    def pick(self, which: BoolArray | IntArray) -> Nodes:
        """Return some of the nodes."""
        return replace(
            self, low=self.low[which], high=self.high[which], allowed=self.allowed[which], name=self.name[which]
        )

    # -- costs ---------------------------------------------------------------------------------------------------
    @cached_property
    def near(self) -> FloatArray:
        """The cheapest value of each number."""
        return np.clip(self.free.home, self.low, self.high)

    @cached_property
    def _away(self) -> FloatArray:
        return np.abs(self.near - self.free.home)

    @cached_property
    def _levels(self) -> FloatArray:
        return np.where(self.allowed, self.free.level_cost, np.inf)

    @cached_property
    def least(self) -> FloatArray:
        """The least that each feature must cost: numbers, then categories."""
        levels = np.minimum.reduceat(self._levels, self.free.first, axis=1) if self.free.first.size else self._levels
        return np.concatenate([self.free.cost(self._away), levels], axis=1)

    @cached_property
    def base(self) -> FloatArray:
        """The least that a node must cost."""
        return np.asarray(self.free.elsewhere + self.least.sum(axis=1))

    @cached_property
    def _slope(self) -> FloatArray:
        """Per number: the least rate at which going on from the cheapest value costs; a price is part of it at home."""
        free, width = self.free, np.maximum(self.high - self.near, self.near - self.low)
        on = free.rate + 2.0 * free.square * self._away
        # (price + rate d + square d^2) / d is least at d = sqrt(price / square), or at the end of the interval
        best = np.minimum(width, np.sqrt(free.price / np.maximum(free.square, TINY)))
        at_home = on + np.where(best > 0.0, free.price / np.maximum(best, TINY) + free.square * best, 0.0)
        return np.where(self._away > 0.0, on, np.where(free.price > 0.0, at_home, on))

    @property
    def onward(self) -> FloatArray:
        """Per number: the least rate at which going on from the cheapest value costs."""
        return self._slope

    @cached_property
    def more(self) -> FloatArray:
        """Per category: the least that a level costs beyond the cheapest."""
        if not self.free.first.size:
            return self._levels
        least = self.least[:, self.free.n_numbers :]
        above = self._levels - least[:, self.free.owner]
        more = np.minimum.reduceat(np.where(above > 0.0, above, np.inf), self.free.first, axis=1)
        return np.where(np.isfinite(more), more, 0.0)

    # -- reduction -----------------------------------------------------------------------------------------------
    def reduced(self) -> Nodes:
        """Return the nodes that the budget and the number of changes leave, and what they leave of each."""
        nodes = self.pick(self._inhabited())._counted()
        if not np.isfinite(self.budget):
            return nodes
        nodes = nodes.pick(nodes.base <= self.budget * (1.0 + DUST))
        free, n = self.free, self.free.n_numbers
        spare = (self.budget - nodes.base)[:, None] + nodes.least + DUST * abs(self.budget)
        reach = free.reach(spare[:, :n]) + FLOAT64_ROOM * np.abs(free.origin + free.home)
        low, high = free.snapped(np.maximum(nodes.low, free.home - reach), np.minimum(nodes.high, free.home + reach))
        allowed = nodes.allowed
        if free.first.size:
            allowed = allowed & (free.level_cost <= spare[:, n:][:, free.owner])
        nodes = replace(nodes, low=low, high=high, allowed=allowed)
        return nodes.pick(nodes._inhabited())

    def _inhabited(self) -> BoolArray:
        some = np.asarray((self.low <= self.high).all(axis=1))
        if self.free.first.size:
            some &= np.logical_or.reduceat(self.allowed, self.free.first, axis=1).all(axis=1)
        return some

    def _counted(self) -> Nodes:
        """Return the nodes with no more forced changes than are allowed; at that number all other features stay."""
        free = self.free
        if free.most >= free.n_features:
            return self
        moved = self._away > 0.0
        if free.first.size:
            stays = np.logical_or.reduceat(self.allowed & free.level_home, free.first, axis=1)
        else:
            stays = np.ones((len(self), 0), dtype=np.bool_)
        count = moved.sum(axis=1) + (~stays).sum(axis=1)
        full = (count == free.most)[:, None]
        low = np.where(full & ~moved, free.home, self.low)
        high = np.where(full & ~moved, free.home, self.high)
        allowed = self.allowed & ~(full & stays[:, free.owner] & ~free.level_home)
        return replace(self, low=low, high=high, allowed=allowed).pick(count <= free.most)

    # -- knapsacks -----------------------------------------------------------------------------------------------
    def extent(self, slopes: FloatArray) -> FloatArray:
        """Return how much each feature can change linear functions, budgets aside."""
        n = self.free.n_numbers
        wide = np.abs(slopes[:, :, :n]) * (self.high - self.low)[:, None]
        if not self.free.first.size:
            return wide
        on = slopes[:, :, n:]
        top = np.maximum.reduceat(np.where(self.allowed[:, None], on, -np.inf), self.free.first, axis=2)
        bottom = np.minimum.reduceat(np.where(self.allowed[:, None], on, np.inf), self.free.first, axis=2)
        return np.concatenate([wide, top - bottom], axis=2)

    def _items(self, slopes: FloatArray) -> _Items:
        free, n = self.free, self.free.n_numbers
        on = slopes[:, :, :n]
        base = (on @ self.near[:, :, None])[:, :, 0]
        up, down = (self.high - self.near)[:, None], (self.near - self.low)[:, None]
        rises, falls = on * up, -on * down
        upwards = rises >= falls
        gain = np.maximum(np.maximum(rises, falls), 0.0)
        cost = self._slope[:, None] * np.where(upwards, up, down)
        if not free.first.size:
            return _Items(base, gain, cost, upwards)
        levels = slopes[:, :, n:]
        least = self.least[:, n:][:, free.owner]
        home = np.maximum.reduceat(np.where((self._levels <= least)[:, None], levels, -np.inf), free.first, axis=2)
        top = np.maximum.reduceat(np.where(self.allowed[:, None], levels, -np.inf), free.first, axis=2)
        more = np.broadcast_to(self.more[:, None], home.shape)
        return _Items(
            base + home.sum(axis=2),
            np.concatenate([gain, top - home], axis=2),
            np.concatenate([cost, more], axis=2),
            upwards,
        )

    def largest(self, slopes: FloatArray) -> FloatArray:
        """Return upper bounds of linear functions within the budget, by the fractional knapsack."""
        items = self._items(slopes)
        spare = (self.budget - self.base + DUST * abs(self.budget))[:, None]
        if not np.isfinite(self.budget) or bool((items.cost.sum(axis=2) <= spare).all()):
            return np.asarray(items.base + items.gain.sum(axis=2))
        order = np.argsort(-_ratio(items.gain, items.cost), axis=2)
        gain, cost = (np.take_along_axis(a, order, axis=2) for a in (items.gain, items.cost))
        left = np.clip(spare[:, :, None] - (np.cumsum(cost, axis=2) - cost), 0.0, None)
        share = np.divide(left, cost, out=np.ones_like(left), where=left < cost)
        return np.asarray(items.base + (gain * share).sum(axis=2))

    def costs(self, slopes: FloatArray, constant: FloatArray) -> FloatArray:
        """Return the least cost at which each of several functions ``slopes @ x + constant`` per node may reach 0."""
        items = self._items(slopes)
        base, order = items.base + constant, np.argsort(-_ratio(items.gain, items.cost), axis=2)
        gain, paid = (np.take_along_axis(a, order, axis=2) for a in (items.gain, items.cost))
        left = -base[:, :, None] - (np.cumsum(gain, axis=2) - gain)
        share = np.clip(left / np.where(gain > 0.0, gain, 1.0), 0.0, 1.0) * (gain > 0.0)
        out = (self.base[:, None] + (share * paid).sum(axis=2)) * (1.0 - ROUNDING)
        return np.where(base + gain.sum(axis=2) < 0.0, np.inf, out)

    def roughly(self, slopes: FloatArray) -> FloatArray:
        """Return upper bounds of linear functions, whatever the budget; ``slopes[0]`` may serve all nodes."""
        n = self.free.n_numbers
        rises, falls = np.maximum(slopes[:, :, :n], 0.0), np.minimum(slopes[:, :, :n], 0.0)
        if len(slopes) == 1:
            best = self.high @ rises[0].T + self.low @ falls[0].T
        else:
            best = (rises @ self.high[:, :, None] + falls @ self.low[:, :, None])[:, :, 0]
        if not self.free.first.size:
            return np.asarray(best)
        levels = np.where(self.allowed[:, None], slopes[:, :, n:], -np.inf)
        return np.asarray(best + np.maximum.reduceat(levels, self.free.first, axis=2).sum(axis=2))

    def largest_of(self, slopes: FloatArray, which: IntArray) -> FloatArray:
        """Return upper bounds of linear functions within the budget, each in the node that it is meant for."""
        return self.pick(which).largest(slopes[:, None])[:, 0]

    def cheapest(self, slopes: FloatArray, constant: FloatArray, beyond: FloatArray | float = 0.0) -> Spent:
        """Return the least cost at which ``slopes @ x + constant`` may reach 0, of one function per node.

        The point is one that goes `beyond` by as much, with numbers between grid points and the levels that gain most.
        """
        items = self._items(slopes[:, None])
        base, gain, cost = items.base[:, 0] + constant, items.gain[:, 0], items.cost[:, 0]
        ratio = _ratio(gain, cost)
        order = np.argsort(-ratio, axis=1)
        gain, paid, ratio = (np.take_along_axis(a, order, axis=1) for a in (gain, cost, ratio))
        before = np.cumsum(gain, axis=1) - gain
        share = _share(-base, before, gain)
        out = np.asarray(self.base + (share * paid).sum(axis=1)) * (1.0 - ROUNDING)
        out = np.where(base + gain.sum(axis=1) < 0.0, np.inf, out)
        taken = np.empty_like(share)
        np.put_along_axis(taken, order, _share(beyond - base, before, gain), axis=1)
        rate = np.where(share > 0.0, ratio, np.inf).min(axis=1, initial=np.inf)
        rate = np.where(np.isfinite(rate), rate, ratio.max(axis=1, initial=0.0))
        n = self.free.n_numbers
        way = np.where(items.upwards[:, 0], self.high - self.near, self.low - self.near)
        numbers, levels = self.near + taken[:, :n] * way, self._chosen(slopes, taken[:, n:] > 0.5)
        return Spent(out, numbers, levels, rate, self._excess(numbers, levels, taken * cost))

    def _excess(self, numbers: FloatArray, levels: IntArray, paid: FloatArray) -> FloatArray:
        """Return what points cost beyond what was reckoned: by prices, grids and levels."""
        free, n = self.free, self.free.n_numbers
        true: FloatArray = free.cost(np.abs(numbers - free.home)) - self.least[:, :n] - paid[:, :n]
        step = np.where(free.step > 0.0, free.step, 1.0)
        off = np.abs((numbers + free.origin) / step - np.rint((numbers + free.origin) / step)) * step
        true += np.where(free.step > 0.0, off, 0.0) * self._slope
        chosen = free.level_cost[levels] - self.least[:, n:] if free.first.size else paid[:, n:]
        return np.asarray(np.maximum(np.concatenate([true, np.abs(chosen - paid[:, n:])], axis=1), 0.0))

    def _chosen(self, slopes: FloatArray, moves: BoolArray) -> IntArray:
        """Return a level per category: the one that gains most of those that may be taken, or of the cheapest."""
        free = self.free
        if not free.first.size:
            return np.zeros((len(self), 0), dtype=np.int64)
        cheap = self._levels <= self.least[:, free.n_numbers :][:, free.owner]
        open_ = np.where(moves[:, free.owner], self.allowed, cheap)
        gain = np.where(open_, slopes[:, free.n_numbers :], -np.inf)
        top = np.maximum.reduceat(gain, free.first, axis=1)
        hit = gain >= top[:, free.owner]
        places = np.where(hit, np.arange(len(free.owner)), len(free.owner))
        return np.asarray(np.minimum.reduceat(places, free.first, axis=1))


def _ratio(gain: FloatArray, cost: FloatArray) -> FloatArray:
    """Return the gain per cost of items, those that cost nothing first."""
    with np.errstate(over="ignore"):
        return np.asarray(gain / np.maximum(cost, TINY))


def _share(need: FloatArray | float, before: FloatArray, gain: FloatArray) -> FloatArray:
    """Return the share of each item, in order, that is taken until the gains add up to a need."""
    left = np.asarray(need)[:, None] - before
    return np.asarray(np.clip(left / np.where(gain > 0.0, gain, 1.0), 0.0, 1.0) * (gain > 0.0))
