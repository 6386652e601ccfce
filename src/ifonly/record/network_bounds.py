"""Bounds of a network of rectifiers over parts of a question, many at once, in floats with a derived error.

A row ``r @ h + c``, where ``h`` is the inputs followed by the units, is bounded from above: every unit is enclosed between
two lines of what it receives, and with these in the place of the units, last ones first, a function ``s @ x + c'`` of the
inputs alone is left. Whatever the multiplier ``m >= 0``, a point that costs at most ``B`` has

    s @ x + c'  <=  c' + m B + sum_j max over v of ( s_j v - m cost_j(v) ).

What a unit receives, on which its lines rest, is bounded in the same way. Multipliers are those of fractional knapsacks; no
bound rests on how well they were chosen.

Arithmetic. With ``u = 2^-53``, a sum of ``k`` products is off by at most ``k u / (1 - k u)`` of the sum of their absolute
values, in whatever order it is computed (Higham 2002, section 3.1). Let ``T`` bound the absolute terms of what a unit
receives anywhere in the box. A line over an interval within ``[-T, T]`` has absolute terms of at most ``T`` together, or
``3 T max(1, |a|)`` where the slope ``a`` of the unit below 0 is not within 0 and 1: the unit's size. Then no substitution
makes the absolute terms of a row, each at its size, add up to more than before. So a bound through ``N`` units in ``L``
layers is off by at most ``2 N + 4 L`` times ``u`` times that sum, and the sum over ``n`` inputs at the end, of terms of up to
three times their size, by ``6 n + 32``. Twice the two together are added to every bound. Costs are rounded likewise: by a
share of all that a part can cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.tolerances import (
    DUST,
    FACTUAL_ROUNDINGS,
    HALF_ULP,
    INPUT_ROUNDINGS,
    LAYER_ROUNDINGS,
    LINE_OF_UNIT,
    REACH_ROUNDINGS,
    SPENT_ROUNDINGS,
    TINY,
    TOLD_STEP,
    TWICE,
    UNIT_ROUNDINGS,
)

__all__ = ["Boxes", "Layer", "Prices", "bounds_of_rows"]

BoolArray = npt.NDArray[np.bool_]
_OFF_GRID = DUST  # of a step, by which a number on a grid may be off: steps are decimal numbers


class Layer(NamedTuple):
    """Units, or the rows of the goal: weights on inputs and earlier units, constants, and slopes below 0.

    `size` bounds the absolute terms of each sum anywhere in the box, `room` how far a computed bound of it may be off.
    """

    weights: FloatArray
    constant: FloatArray
    slope: FloatArray
    size: FloatArray
    room: FloatArray

    @classmethod
    def all_of(cls, sums: Sequence[tuple[FloatArray, FloatArray, FloatArray]], inputs: FloatArray) -> tuple[Layer, ...]:
        """Return layers, given weights, constants and slopes of each and the size of every input."""
        operations, size, out = INPUT_ROUNDINGS * len(inputs) + SPENT_ROUNDINGS, inputs, []
        for weights, constant, slope in sums:
            total = (np.abs(weights) @ size + np.abs(constant)) * (1.0 + DUST)
            out.append(cls(weights, constant, slope, total, TWICE * HALF_ULP * operations * total + TINY))
            plain = (slope >= 0.0) & (slope <= 1.0)
            size = np.concatenate([size, np.where(plain, total, 3.0 * total * np.maximum(1.0, np.abs(slope)))])
            operations += UNIT_ROUNDINGS * len(constant) + LAYER_ROUNDINGS
        return tuple(out)


class _Lines(NamedTuple):
    """Lines around units, per part: slope and constant of those below, and of those above."""

    under: tuple[FloatArray, FloatArray]
    over: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, layer: Layer, lower: FloatArray, upper: FloatArray) -> _Lines:
        """Return lines that hold from `lower` to `upper`.

        A unit is the larger of ``s`` and ``slope * s`` where its slope is at most 1, else the smaller one. Each of these is a
        line on its inner side; on the other side lies the chord, moved until it clears both ends.
        """
        slope = layer.slope
        lower, upper = np.maximum(lower, -layer.size), np.minimum(upper, layer.size)
        decided = (lower >= 0.0) | (upper <= 0.0)
        piece = np.where(lower >= 0.0, 1.0, slope)
        span = np.where(decided, 1.0, upper - lower)
        chord = np.clip((upper - slope * lower) / span, np.minimum(slope, 1.0), np.maximum(slope, 1.0))
        ends = (1.0 - chord) * upper, (slope - chord) * lower
        moved = LINE_OF_UNIT * layer.size * np.maximum(1.0, np.abs(slope))
        above, below = np.maximum(*ends) + moved, np.minimum(*ends) - moved
        ray = np.where(upper > -lower, 1.0, slope)  # the one that encloses less
        convex, zero = slope <= 1.0, np.zeros_like(ray)
        under = np.where(convex, ray, chord), np.where(convex, zero, below)
        over = np.where(convex, chord, ray), np.where(convex, above, zero)
        return cls(
            (np.where(decided, piece, under[0]), np.where(decided, 0.0, under[1])),
            (np.where(decided, piece, over[0]), np.where(decided, 0.0, over[1])),
        )


@dataclass(frozen=True, eq=False)
class Prices:
    """Costs of a question: of a number that changes by ``d``, ``rate |d| + square d^2 + price``; of a level, its own.

    Attributes
    ----------
    hat
        Per number: the factual's value.
    rate, square, price
        Per number: its cost.
    step
        Per number: the spacing of its grid; 0: it has none.
    level
        Per level: its cost.
    home
        Per level: whether it is the factual's.
    first, owner
        Per category: the place of its first level; per level: its category.
    most
        How many features may change.
    """

    hat: FloatArray
    rate: FloatArray
    square: FloatArray
    price: FloatArray
    step: FloatArray
    level: FloatArray
    home: BoolArray
    first: IntArray
    owner: IntArray
    most: int

    @property
    def error(self) -> float:
        """Share of a sum of costs by which it may be off."""
        return TWICE * HALF_ULP * (len(self.hat) + len(self.first) + SPENT_ROUNDINGS)

    def way(self, away: FloatArray, way: FloatArray) -> FloatArray:
        """Return what it costs more to go on by as much, from a distance from the factual's value."""
        cost = way * (self.rate + self.square * (2.0 * away + way))
        return np.asarray(cost + np.where((away == 0.0) & (way > 0.0), self.price, 0.0))

    def line(self, away: FloatArray, most: FloatArray) -> FloatArray:
        """Return the slope of a line below that, for all ways up to the longest one."""
        at = np.minimum(most, np.sqrt(self.price / np.maximum(self.square, TINY)))
        paid = np.where((away == 0.0) & (at > 0.0), self.price / np.maximum(at, TINY) + self.square * at, 0.0)
        return np.asarray(self.rate + 2.0 * self.square * away + np.where(self.price > 0.0, paid, 0.0))

    def reach(self, spare: FloatArray) -> FloatArray:
        """Return how far numbers may go from the factual's values for as much each, rounded up."""
        left = np.maximum(spare - self.price, 0.0)
        divisor = self.rate + np.sqrt(self.rate**2 + 4.0 * self.square * left)
        far = np.where(divisor > 0.0, 2.0 * left / np.maximum(divisor, TINY), inf)
        far = far * (1.0 + REACH_ROUNDINGS * HALF_ULP) + FACTUAL_ROUNDINGS * HALF_ULP * np.abs(self.hat)
        return np.where(spare < self.price, 0.0, far)

    def least(self, levels: FloatArray) -> FloatArray:
        """Return the least of each category's levels."""
        return np.minimum.reduceat(levels, self.first, axis=-1) if self.first.size else levels

    def largest(self, levels: FloatArray) -> FloatArray:
        """Return the largest of each category's levels."""
        return np.maximum.reduceat(levels, self.first, axis=-1) if self.first.size else levels


@dataclass(frozen=True, eq=False)
class Boxes:
    """Parts: per part an interval of each number and a set of levels; `which` part of those asked for each one is."""

    prices: Prices
    low: FloatArray
    high: FloatArray
    allowed: BoolArray
    which: IntArray

    def __len__(self) -> int:
        return len(self.low)

    def pick(self, which: BoolArray | IntArray) -> Boxes:
        """Return some of them."""
        return replace(
            self, low=self.low[which], high=self.high[which], allowed=self.allowed[which], which=self.which[which]
        )

    def left(self, budget: float) -> Boxes:
        """Return what is left of those parts that hold a point that costs less and changes few enough features."""
        boxes = self
        for _ in range(2):  # fewer values may force changes, and these leave fewer values
            boxes = boxes._few_changes()
            if isfinite(budget):
                boxes = boxes._affordable(budget)
        return boxes.pick(boxes._some())

    def single(self) -> BoolArray:
        """Return the parts of one point."""
        return np.asarray((self.low == self.high).all(axis=1) & (self.allowed.sum(axis=1) == len(self.prices.first)))

    def _some(self) -> BoolArray:
        some = (self.low <= self.high).all(axis=1)
        if self.prices.first.size:
            some &= np.logical_or.reduceat(self.allowed, self.prices.first, axis=1).all(axis=1)
        return np.asarray(some)

    def _few_changes(self) -> Boxes:
        """Drop parts in which too many features must change; where as many must as may, the others stay."""
        boxes, prices = self.pick(self._some()), self.prices
        moved = (boxes.low > prices.hat) | (boxes.high < prices.hat)
        stays = prices.largest((boxes.allowed & prices.home).astype(np.float64)) > 0.0
        count = moved.sum(axis=1) + (~stays).sum(axis=1)
        kept = ((count == prices.most)[:, None]) & ~moved
        low, high = np.where(kept, prices.hat, boxes.low), np.where(kept, prices.hat, boxes.high)
        fixed = ((count == prices.most)[:, None] & stays)[:, prices.owner]
        return replace(boxes, low=low, high=high, allowed=boxes.allowed & ~(fixed & ~prices.home)).pick(
            count <= prices.most
        )

    def _affordable(self, budget: float) -> Boxes:
        """Drop parts whose least costs add up to the budget, and values that are too dear beside the others' least costs."""
        prices, least = self.prices, self._least
        base = least.sum(axis=1)
        boxes, least = self.pick(base * (1.0 - prices.error) < budget), least[base * (1.0 - prices.error) < budget]
        base = least.sum(axis=1)
        spare = (budget - base + prices.error * (budget + base))[:, None] + least
        n = len(prices.hat)
        reach = prices.reach(spare[:, :n])
        low = boxes._up(np.maximum(boxes.low, prices.hat - reach), prices.hat)
        high = -boxes._up(np.maximum(-boxes.high, -prices.hat - reach), -prices.hat)
        allowed = boxes.allowed & (prices.level <= spare[:, n:][:, prices.owner])
        return replace(boxes, low=low, high=high, allowed=allowed)

    def _up(self, low: FloatArray, hat: FloatArray) -> FloatArray:
        """Return lower ends moved up to their grids, less what rounding may take, and not beyond the factual's value."""
        step = np.where(self.prices.step > 0.0, self.prices.step, 1.0)
        room = _OFF_GRID + LINE_OF_UNIT * np.abs(low / step)
        value = (np.ceil(low / step - room) - room) * step
        value = np.where(low <= hat, np.minimum(value, hat), value)
        return np.where((self.prices.step > 0.0) & (room < TOLD_STEP), np.maximum(low, value), low)

    # -- costs ---------------------------------------------------------------------------------------------------
    @property
    def near(self) -> FloatArray:
        """The cheapest value of each number."""
        return np.clip(self.prices.hat, self.low, self.high)

    @property
    def _least(self) -> FloatArray:
        """The least cost of each number, then of each category."""
        numbers = self.prices.way(np.zeros_like(self.low), np.abs(self.near - self.prices.hat))
        return np.concatenate([numbers, self.prices.least(np.where(self.allowed, self.prices.level, inf))], axis=1)


class _Spending:
    """Upper bounds of linear functions over parts, for points that cost at most a budget."""

    def __init__(self, boxes: Boxes, budget: float) -> None:
        self.boxes, self.budget, prices = boxes, budget, boxes.prices
        self.n = len(prices.hat)
        self.near, least = boxes.near, boxes._least
        self.base = least.sum(axis=1)
        away = np.abs(self.near - prices.hat)
        ways = boxes.high - self.near, self.near - boxes.low
        self.away, self.ways = away[:, None], tuple(way[:, None] for way in ways)
        self.costs = tuple(prices.way(away, way)[:, None] for way in ways)
        self.line = prices.line(away, np.maximum(*ways))[:, None]
        more = prices.level - least[:, self.n :][:, prices.owner] if prices.first.size else np.zeros_like(least[:, :0])
        self.more = np.where(boxes.allowed, more, inf)[:, None]
        self.step = prices.least(np.where(self.more > 0.0, self.more, inf))
        self.step = np.where(np.isfinite(self.step), self.step, 0.0)
        dearest = np.maximum(*self.costs).sum(axis=2)[:, 0]
        dearest = dearest + prices.largest(np.where(boxes.allowed, more, 0.0)).sum(axis=1)
        if isfinite(budget):
            self.spare = (budget - self.base)[:, None]
            self.error = prices.error * (budget + self.base + dearest)[:, None]

    def largest(self, slopes: FloatArray) -> FloatArray:
        """Return bounds of ``slopes @ x``, per part and row, but for the rounding of the sum itself."""
        on, levels = slopes[:, :, : self.n], slopes[:, :, self.n :]
        up, prices = on > 0.0, self.boxes.prices
        rate, way = np.abs(on), np.where(up, *self.ways)
        gain = rate * way
        cheap = prices.largest(np.where(self.more <= 0.0, levels, -inf))
        top = prices.largest(np.where(np.isfinite(self.more), levels, -inf)) - cheap
        least = (on @ self.near[:, :, None])[:, :, 0] + cheap.sum(axis=2)
        free = least + gain.sum(axis=2) + top.sum(axis=2)
        if not isfinite(self.budget):
            return np.asarray(free)
        m = self._multiplier(gain, self.line * way, top)
        numbers = self._numbers(rate, way, m[:, :, None], np.where(up, *self.costs))
        charged = numbers + self._levels(levels, m[:, :, None], cheap)
        # a multiplier that overflows bounds nothing
        return np.asarray(np.fmin(free, least + charged + m * (self.spare + self.error)))

    def _numbers(self, rate: FloatArray, way: FloatArray, m: FloatArray, cost: FloatArray) -> FloatArray:
        """Return the most that numbers gain beyond what they cost, at a multiplier."""
        prices = self.boxes.prices
        if prices.square.any():  # the best way is where the derivative is 0, or an end
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                best = (rate / m - prices.rate - 2.0 * prices.square * self.away) / (2.0 * prices.square)
            way = np.where(prices.square > 0.0, np.clip(np.nan_to_num(best, nan=inf), 0.0, way), way)
            cost = prices.way(self.away, way)
        return np.asarray(np.maximum(rate * way - m * cost, 0.0).sum(axis=2))

    def _levels(self, levels: FloatArray, m: FloatArray, cheap: FloatArray) -> FloatArray:
        """Return the same of levels, from the best of the cheapest ones on."""
        allowed = np.isfinite(self.more)
        charged = np.where(allowed, levels - m * np.where(allowed, self.more, 0.0), -inf)
        return np.asarray((self.boxes.prices.largest(charged) - cheap).sum(axis=2))

    def _multiplier(self, gain: FloatArray, cost: FloatArray, top: FloatArray) -> FloatArray:
        """Return the gain per cost of the first item that a fractional knapsack cannot take whole; 0: it takes all."""
        gain = np.concatenate([gain, top], axis=2)
        cost = np.concatenate([cost, np.broadcast_to(self.step, top.shape)], axis=2)
        if not gain.size:
            return np.zeros(gain.shape[:2])
        with np.errstate(over="ignore"):
            ratio = gain / np.maximum(cost, TINY)
        order = np.argsort(-ratio, axis=2)
        spent = np.cumsum(np.take_along_axis(cost, order, axis=2), axis=2)
        beyond = spent > self.spare[:, :, None]
        some = beyond.any(axis=2)
        at = np.take_along_axis(order, beyond.argmax(axis=2)[:, :, None], axis=2)
        found = np.take_along_axis(ratio, at, axis=2)[:, :, 0]
        return np.where(some & np.isfinite(found), found, 0.0)


def bounds_of_rows(layers: Sequence[Layer], boxes: Boxes, budget: float) -> FloatArray:
    """Return bounds from above of the last layer, per part and row, that hold wherever a point costs at most `budget`."""
    spending = _Spending(boxes, budget)
    around: list[_Lines] = []
    for layer in layers[:-1]:
        both = np.concatenate([layer.weights, -layer.weights]), np.concatenate([layer.constant, -layer.constant])
        slopes, total = _substituted(*both, layers[: len(around)], around)
        most, units = spending.largest(slopes) + total, len(layer.constant)
        around.append(_Lines.of(layer, -(most[:, units:] + layer.room), most[:, :units] + layer.room))
    last = layers[-1]
    slopes, total = _substituted(last.weights, last.constant, layers[:-1], around)
    return np.asarray(spending.largest(slopes) + total + last.room)


def _substituted(
    weights: FloatArray, constant: FloatArray, layers: Sequence[Layer], enclosed: Sequence[_Lines]
) -> tuple[FloatArray, FloatArray]:
    """Return slopes and constants of bounds from above of ``weights @ h + constant`` over the inputs, part by part."""
    slopes, total = weights[None], constant[None]
    for layer, around in zip(reversed(layers), reversed(enclosed), strict=True):
        width = layer.weights.shape[1]
        units, slopes = slopes[:, :, width:], slopes[:, :, :width]
        above, below = np.maximum(units, 0.0), np.minimum(units, 0.0)
        factor = above * around.over[0][:, None] + below * around.under[0][:, None]
        offset = above @ around.over[1][:, :, None] + below @ around.under[1][:, :, None]
        slopes = slopes + factor @ layer.weights
        total = total + factor @ layer.constant + offset[:, :, 0]
    return slopes, total
