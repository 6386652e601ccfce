"""Moves of a feature in a knapsack: a jump to another level, or a slide of a number."""

from __future__ import annotations

from math import floor, inf
from typing import NamedTuple

__all__ = ["Curve", "Jump", "Point", "Slide"]


class Jump(NamedTuple):
    """To another level: gains `gain` and costs `cost`."""

    gain: float
    cost: float


class Slide(NamedTuple):
    """By ``d`` up to `reach`, in whole `step`s if there is one.

    It gains ``rate * d`` and costs ``price + fee * d + square * d^2``.
    """

    rate: float
    fee: float
    price: float
    reach: float
    step: float | None
    square: float = 0.0

    def cost(self, d: float) -> float:
        """Return the cost of a move by `d`."""
        return self.price + (self.fee + self.square * d) * d


class Point(NamedTuple):
    """One end of what a feature can do: its gain and cost there, and the move (None: it stays)."""

    gain: float
    cost: float
    move: float | None


class Curve(NamedTuple):
    """Points of a slide with a square between `low` and `high`; which of them is best depends on the multiplier."""

    slide: Slide
    low: float
    high: float

    def best(self, price: float) -> tuple[Point, ...]:
        """Return the point that is best when a unit of gain is paid `price`, or on a grid the two beside it."""
        slide, low, high = self
        at = high if price == inf else (price * slide.rate - slide.fee) / (2.0 * slide.square)
        ends: tuple[float, ...] = (min(max(at, low), high),)
        if slide.step is not None and low < at < high:
            below = floor(at / slide.step)
            ends = (max(below * slide.step, low), min((below + 1) * slide.step, high))
        return tuple(Point(slide.rate * d, slide.cost(d), d) for d in ends)
