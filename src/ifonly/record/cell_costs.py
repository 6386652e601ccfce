"""Lower bounds on the costs of cells and levels: exact fractions rounded down, or floats with room for every rounding."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from math import inf

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Schema
from ifonly.question.costs import Costs
from ifonly.question.curves import CostCurve
from ifonly.record.parts import NotReplayable
from ifonly.tolerances import CELL_COST_ROUNDINGS, HALF_ULP, ORDINARY

__all__ = ["cell_costs", "level_costs", "level_fractions", "rounded_down"]


def rounded_down(value: Fraction) -> float:
    """Return the greatest float that is no greater than a fraction."""
    try:
        near = float(value)
    except OverflowError:
        return -inf if value < 0 else float(np.finfo(np.float64).max)
    return near if Fraction(near) <= value else float(np.nextafter(near, -inf))


def level_fractions(costs: Costs, schema: Schema, j: int, factual: FloatArray) -> list[Fraction]:
    """Return what each level of a category costs."""
    part = schema.slice(j)
    price = _number(costs.price[j])
    return [_number(c) + (price if here == 0 else 0) for c, here in zip(costs.levels[part], factual[part], strict=True)]


def level_costs(costs: Costs, schema: Schema, j: int, factual: FloatArray) -> FloatArray:
    """Return what each level of a category costs at least."""
    return np.array([rounded_down(cost) for cost in level_fractions(costs, schema, j, factual)])


def cell_costs(costs: Costs, j: int, nearest: FloatArray, hat: float) -> FloatArray:
    """Return what a number costs at least in cells, given the value of each that is nearest to the factual's.

    No cost falls away from the factual's value, so none is less in a cell than at its nearest value.
    """
    linear, square, price = (_number(c[j]) for c in (costs.linear, costs.square, costs.price))
    moved = np.abs(nearest - hat)
    sizes = np.concatenate([moved[moved > 0], [c for c in map(float, (linear, square, price)) if c > 0]])
    if j not in costs.curves and sizes.size and sizes.min() > ORDINARY[0] and sizes.max() < ORDINARY[1]:
        return np.asarray(costs.numeric(j, nearest - hat) * (1.0 - CELL_COST_ROUNDINGS * HALF_ULP))
    curve = _Curve(costs.curves[j]) if j in costs.curves else None
    out = []
    for value in map(float, nearest):
        way = Fraction(value) - Fraction(hat)
        cost = linear * abs(way) + square * way * way + (price if way else 0)
        out.append(rounded_down(cost + (curve(way) if curve is not None else 0)))
    return np.array(out)


class _Curve:
    """The greatest curve that is nowhere above a table, and does not fall away from 0: rounding may have bent the table."""

    def __init__(self, curve: CostCurve) -> None:
        at, value = list(map(Fraction, map(float, curve.at))), [_number(v) for v in curve.value]
        home = at.index(Fraction(0))
        self.at = at
        below, above = _least_from_outside(value[: home + 1]), _least_from_outside(value[home:][::-1])[::-1]
        self.value = [*below[:-1], Fraction(0), *above[1:]]
        slopes = [abs(w - v) / (b - a) for a, b, v, w in zip(at, at[1:], value, value[1:], strict=False)]
        self.tails = (slopes[0] if home > 0 else Fraction(0)), (slopes[-1] if home < len(at) - 1 else Fraction(0))

    def __call__(self, way: Fraction) -> Fraction:
        """Return the cost of a change."""
        at, value = self.at, self.value
        if way <= at[0]:
            return value[0] + self.tails[0] * (at[0] - way)
        if way >= at[-1]:
            return value[-1] + self.tails[1] * (way - at[-1])
        i = bisect_right(at, way) - 1
        return value[i] + (value[i + 1] - value[i]) * (way - at[i]) / (at[i + 1] - at[i])


def _least_from_outside(values: Sequence[Fraction]) -> list[Fraction]:
    out: list[Fraction] = []
    for value in values:
        out.append(value if not out else min(out[-1], value))
    return out


def _number(value: float) -> Fraction:
    """Return a cost as a fraction."""
    if not 0.0 <= float(value) < inf:
        raise NotReplayable(f"a cost is {float(value)!r}")
    return Fraction(float(value))
