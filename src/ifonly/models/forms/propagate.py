"""Sound bounds on a rectifier network: extremes of linear functions over a box, carried back through the layers.

The extreme of ``w @ u`` over a box takes the better end of each interval and the best admissible level of each
categorical feature, since exactly one level is 1. With a `Budget` on the total cost of all changes it is a
multiple-choice knapsack, whose fractional optimum is the minimum of its Lagrangian (Sinha and Zoltners 1979)

    min over lam >= 0 of   lam * total + sum_j max over points p of feature j of ( w_p - lam * cost_p ),

and every ``lam`` gives a sound bound. For deeper layers each rectifier is enclosed between two lines, and the lines
are substituted backwards until only ``u`` is left (Zhang et al. 2018; Singh et al. 2019); the box, and the budget, are
applied there, so no correlation between units is lost on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.runtime.tuning import DEFAULT
from ifonly.tolerances import CHAINED_ROUNDING, TINY

__all__ = ["Block", "Bounds", "Budget", "enclosing_lines", "preactivations", "reach"]

Bounds = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Block:
    """Units ``y = rho(s)`` with ``s = weights @ h + constant``, where ``rho(s) = max(s, 0) + slope * min(s, 0)``.

    ``h`` is the canonical vector followed by the units of all earlier blocks, so a residual connection is only a
    weight that reaches further back.
    """

    weights: FloatArray
    constant: FloatArray
    slope: FloatArray

    def activate(self, s: FloatArray) -> FloatArray:
        """Return ``rho(s)``."""
        return np.asarray(np.where(s > 0, s, self.slope * s))


@dataclass(frozen=True, eq=False)
class Budget:
    """All changes together cost at most `total`.

    Attributes
    ----------
    total
        The budget.
    factual
        The canonical row that changes are counted from.
    rate
        Per canonical entry: the cost of moving a numeric feature by one unit, or of taking this level (the
        factual's own level is free).
    fixed
        Per feature: the cost of changing it at all, on top of `rate`.
    tangents
        How many cuts of two tangents a bound may take.
    """

    total: float
    factual: FloatArray
    rate: FloatArray
    fixed: FloatArray | None = None
    tangents: int = DEFAULT.forms.tangents


@dataclass(frozen=True, eq=False)
class _Points:
    """The points at which a separable function of the box can be extreme, grouped by feature.

    Point ``p`` puts ``value[p]`` into entry ``entry[p]`` of ``u`` at ``cost[p]``; group ``g`` starts at ``start[g]``.
    """

    entry: IntArray
    value: FloatArray
    cost: FloatArray
    start: IntArray
    total: float | None
    tangents: int = DEFAULT.forms.tangents

    @classmethod
    def of(cls, box: Box, budget: Budget | None) -> _Points:
        entry: list[int] = []
        value: list[float] = []
        cost: list[float] = []
        start: list[int] = []
        for j in np.flatnonzero(~box.missing):
            at, values, costs = _feature_points(box, int(j), budget)
            if at:
                start.append(len(entry))
                entry += at
                value += values
                cost += costs
        total = None
        if budget is not None and start:
            # An unaffordable budget is raised to the least cost: the bound is then loose, never wrong.
            total = max(budget.total, float(np.minimum.reduceat(cost, start).sum()))
        rounds = DEFAULT.forms.tangents if budget is None else budget.tangents
        places = np.array(entry, dtype=np.int64), np.array(value), np.array(cost), np.array(start, np.int64)
        return cls(*places, total, rounds)

    def largest(self, weights: FloatArray) -> FloatArray:
        """Return, per row, an upper bound of ``weights @ u``; exact without a budget."""
        if not self.start.size:
            return np.zeros(len(weights))
        gain = weights[:, self.entry] * self.value
        free = np.asarray(np.maximum.reduceat(gain, self.start, axis=1).sum(axis=1))
        if self.total is None:
            return free
        return self._knapsack(gain, free, self.total)

    def _knapsack(self, gain: FloatArray, free: FloatArray, total: float) -> FloatArray:
        """Minimise the convex Lagrangian by intersecting the tangents on either side of its minimum."""
        left, right = np.zeros(len(gain)), self._steepest(gain)
        (low, falls), (high, rises) = self._dual(gain, left, total), self._dual(gain, right, total)
        best = np.minimum(free, high)
        for _ in range(self.tangents):
            turn = rises - falls
            open_ = (falls < 0) & (rises > 0) & (turn > 0)
            if not open_.any():
                break
            meet = (low - falls * left - high + rises * right) / np.where(open_, turn, 1.0)
            at = np.clip(np.where(open_, meet, left), left, right)
            value, slope = self._dual(gain, at, total)
            best = np.minimum(best, value)
            on_left = slope < 0
            left, low, falls = (np.where(on_left, a, b) for a, b in ((at, left), (value, low), (slope, falls)))
            right, high, rises = (np.where(on_left, b, a) for a, b in ((at, right), (value, high), (slope, rises)))
        return best

    def _dual(self, gain: FloatArray, price: FloatArray, total: float) -> Bounds:
        """Return the Lagrangian, rounded upwards, and its slope at one price per row."""
        net = gain - price[:, None] * self.cost
        top = np.maximum.reduceat(net, self.start, axis=1)
        sizes = np.diff(np.append(self.start, len(self.entry)))
        spent = np.where(net >= np.repeat(top, sizes, axis=1), self.cost, np.inf)
        cheapest = np.minimum.reduceat(spent, self.start, axis=1).sum(axis=1)
        # A steep price times the budget cancels against the costs, so its rounding must not be lost.
        room = CHAINED_ROUNDING * price * (total + cheapest)
        return price * total + top.sum(axis=1) + room, total - cheapest

    def _steepest(self, gain: FloatArray) -> FloatArray:
        """Return a price per row at which no change pays."""
        sizes = np.diff(np.append(self.start, len(self.entry)))
        least = np.repeat(np.minimum.reduceat(self.cost, self.start), sizes)
        home = np.where(self.cost <= least, gain, -np.inf)
        at_home = np.repeat(np.maximum.reduceat(home, self.start, axis=1), sizes, axis=1)
        extra = self.cost - least
        ratio = np.where(extra > 0, (gain - at_home) / np.where(extra > 0, extra, 1.0), 0.0)
        return np.asarray(2.0 * np.maximum(ratio.max(axis=1), 0.0) + TINY)


def _feature_points(box: Box, j: int, budget: Budget | None) -> tuple[list[int], list[float], list[float]]:
    """Return entries, values and costs of the points of one feature."""
    first = box.schema.starts[j]
    fixed = 0.0 if budget is None or budget.fixed is None else float(budget.fixed[j])
    if isinstance(box.schema.features[j], Numeric):
        low, high = float(box.lower[j]), float(box.upper[j])
        values = [low, high]
        if budget is None:
            return [first] * 2, values, [0.0] * 2
        hat, rate = float(budget.factual[first]), float(budget.rate[first])
        if low < hat < high:
            values.append(hat)
        moves = [0.0 if np.isnan(hat) else abs(v - hat) for v in values]
        costs = [rate * m + (fixed if v != hat else 0.0) for v, m in zip(values, moves, strict=True)]
        return [first] * len(values), values, costs
    levels = [int(e) for e in first + np.flatnonzero(box.allowed[box.schema.slice(j)])]
    if budget is None:
        return levels, [1.0] * len(levels), [0.0] * len(levels)
    costs = [0.0 if budget.factual[e] == 1.0 else float(budget.rate[e]) + fixed for e in levels]
    return levels, [1.0] * len(levels), costs


def middle(box: Box) -> FloatArray:
    """Return the middle of each number's interval in the box; 0 for levels, and for what is missing or has no end."""
    place = np.zeros(box.schema.width)
    for j, feature in enumerate(box.schema.features):
        if isinstance(feature, Numeric) and not box.missing[j]:
            half = 0.5 * float(box.lower[j]) + 0.5 * float(box.upper[j])
            place[box.schema.starts[j]] = half if np.isfinite(half) else 0.0
    return place


def reach(box: Box) -> FloatArray:
    """Return the largest absolute value of each canonical entry in the box; a missing feature counts as 0."""
    size = np.zeros(box.schema.width)
    for j, feature in enumerate(box.schema.features):
        if box.missing[j]:
            continue
        if isinstance(feature, Numeric):
            size[box.schema.starts[j]] = max(abs(float(box.lower[j])), abs(float(box.upper[j])))
        else:
            size[box.schema.slice(j)] = box.allowed[box.schema.slice(j)]
    return size


def preactivations(
    blocks: Sequence[Block],
    box: Box,
    budget: Budget | None = None,
    known: Sequence[Bounds] = (),
) -> list[Bounds]:
    """Return bounds of ``s`` for each block in turn, no wider than the `known` ones.

    Both interval arithmetic and backward substitution are done, and the better bound of each unit is kept.
    """
    points = _Points.of(box, budget)
    size = reach(box)
    low, high = np.empty(0), np.empty(0)
    found: list[Bounds] = []
    for k, block in enumerate(blocks):
        total = np.abs(block.weights) @ size + np.abs(block.constant)
        lower, upper = _interval(block, points, low, high)
        if k:
            upper = np.minimum(upper, _carried(block.weights, block.constant, blocks[:k], found, points))
            lower = np.maximum(lower, -_carried(-block.weights, -block.constant, blocks[:k], found, points))
        lower, upper = lower - CHAINED_ROUNDING * total, upper + CHAINED_ROUNDING * total
        if k < len(known):
            lower, upper = np.maximum(lower, known[k][0]), np.minimum(upper, known[k][1])
        found.append((lower, upper))
        ends = np.stack([block.activate(lower), block.activate(upper), block.activate(np.clip(0.0, lower, upper))])
        low, high = np.concatenate([low, ends.min(axis=0)]), np.concatenate([high, ends.max(axis=0)])
        size = np.concatenate([size, total * np.maximum(1.0, np.abs(block.slope))])
    return found


def _interval(block: Block, points: _Points, low: FloatArray, high: FloatArray) -> Bounds:
    """Return bounds of ``s`` from the box and from intervals of the earlier units."""
    width = block.weights.shape[1] - len(low)
    on_u, on_y = block.weights[:, :width], block.weights[:, width:]
    positive, negative = np.maximum(on_y, 0.0), np.minimum(on_y, 0.0)
    upper = points.largest(on_u) + positive @ high + negative @ low + block.constant
    lower = -points.largest(-on_u) + positive @ low + negative @ high + block.constant
    return lower, upper


def _carried(
    weights: FloatArray,
    constant: FloatArray,
    blocks: Sequence[Block],
    bounds: Sequence[Bounds],
    points: _Points,
) -> FloatArray:
    """Return an upper bound of ``weights @ h + constant``, the better of two choices of lines for each row."""
    enclosed = [enclosing_lines(block.slope, *ends) for block, ends in zip(blocks, bounds, strict=True)]
    flat = [enclosing_lines(block.slope, *ends, flat=True) for block, ends in zip(blocks, bounds, strict=True)]
    return np.minimum(
        _backward(weights, constant, blocks, enclosed, points),
        _backward(weights, constant, blocks, flat, points),
    )


def _backward(
    weights: FloatArray,
    constant: FloatArray,
    blocks: Sequence[Block],
    lines: Sequence[tuple[Bounds, Bounds]],
    points: _Points,
) -> FloatArray:
    """Return an upper bound of ``weights @ h + constant`` by substituting an enclosing line for every unit."""
    for block, (under, over) in zip(reversed(blocks), reversed(lines), strict=True):
        width = block.weights.shape[1]
        on_y, weights = weights[:, width:], weights[:, :width]
        positive, negative = np.maximum(on_y, 0.0), np.minimum(on_y, 0.0)
        slope = positive * over[0] + negative * under[0]
        weights = weights + slope @ block.weights
        constant = constant + slope @ block.constant + positive @ over[1] + negative @ under[1]
    return points.largest(weights) + constant


def enclosing_lines(
    slope: FloatArray, lower: FloatArray, upper: FloatArray, *, flat: bool = False
) -> tuple[Bounds, Bounds]:
    """Return (slope, intercept) of a line below and a line above ``rho`` on ``[lower, upper]``.

    For ``slope <= 1`` the function is convex: the chord lies above it, and any line through 0 with a slope between
    `slope` and 1 below it: the one with the smaller area, or always `slope` when `flat`. For ``slope > 1`` the two
    change places.
    """
    stable = (lower >= 0) | (upper <= 0)
    one_piece = np.where(lower >= 0, 1.0, slope)
    span = np.where(stable, 1.0, upper - lower)
    chord = np.where(stable, one_piece, (upper - slope * lower) / span)
    height = np.where(stable, 0.0, upper * (1.0 - chord))
    ray = np.where(stable, one_piece, np.where((upper > -lower) & (not flat), 1.0, slope))
    zero = np.zeros_like(ray)
    convex = slope <= 1.0
    under = np.where(convex, ray, chord), np.where(convex, zero, height)
    over = np.where(convex, chord, ray), np.where(convex, height, zero)
    return under, over
