"""Lines above and below an increasing curve over many intervals at once: secants from the ends, and envelopes.

The curves are those that are convex, concave, or first convex and then concave (sigmoids), and broken lines. A slope may be
chosen by any rule: the constant that belongs to it is the largest ``f(s) - slope * s`` of the interval, so the line is above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.forms.bends import Bend, Broken, Smooth
from ifonly.runtime.tuning import DEFAULT
from ifonly.tolerances import CHAINED_ROUNDING, ROUNDING, TINY

__all__ = ["envelope", "reached", "rises", "secants"]

Function = Callable[[FloatArray], FloatArray]


def rises(bend: Bend) -> bool:
    """Whether a function of one number never falls, and is convex, concave, or first convex and then concave."""
    if isinstance(bend, Broken):
        return all(a <= b for a, b in pairwise(bend.ys))
    if not isinstance(bend, Smooth) or bend.turns or len(bend.inflections) > 1:
        return False
    at = np.array([t + bend.scale * k for t in bend.inflections or (0.0,) for k in (-1.0, 0.0, 1.0)])
    slopes = np.asarray(bend.derivative(at))
    return bool((slopes >= 0.0).all()) and (not bend.inflections or bool(slopes.argmax() == 1))


def reached(bend: Bend, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the interval of scores outside of which values of an increasing function are not in an interval.

    The inverse proposes its ends; each is kept only if the function itself, rounded, is beyond the value there: as it never
    falls, it is so everywhere behind. Where that fails, or there is no inverse, the end is infinite.
    """
    room = np.stack([ROUNDING * np.abs(end) + TINY for end in (low, high)])
    with np.errstate(all="ignore"):  # where there is no inverse it is infinite, or no number
        first, last = _inverse(bend, low - 2.0 * room[0], "left"), _inverse(bend, high + 2.0 * room[1], "right")
        below, above = bend(first), bend(last)
        first = np.where(below + room[0] < low, first, -np.inf)
        last = np.where(above - room[1] > high, last, np.inf)
    return first, last


def _inverse(bend: Bend, value: FloatArray, side: Literal["left", "right"]) -> FloatArray:
    """Return where an increasing function has a value; of many such scores the first, or the last."""
    if isinstance(bend, Broken):
        k = bend.ys.searchsorted(value, side=side)
        a, b = np.maximum(k - 1, 0), np.minimum(k, len(bend.ys) - 1)
        rise = bend.ys[b] - bend.ys[a]
        share = np.where(rise > 0.0, (value - bend.ys[a]) / np.where(rise > 0.0, rise, 1.0), 0.0)
        inside = bend.xs[a] + share * (bend.xs[b] - bend.xs[a])
        return np.where(k == 0, -np.inf, np.where(k == len(bend.ys), np.inf, inside))
    undo = bend.undo if isinstance(bend, Smooth) else None
    return np.full(value.shape, np.nan) if undo is None else np.asarray(undo(value))


def secants(
    bend: Bend, low: FloatArray, high: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the least slopes of secants from the upper and from the lower end of an interval, and that of the chord.

    From an end of a function that is convex, or concave, or turns from one to the other once, the least slope is that of the
    chord or of the tangent. They are rounded down, and 0 where they are lost in rounding: the function never falls.
    """
    width = np.maximum(high - low, TINY)
    lost = CHAINED_ROUNDING * np.maximum(np.abs(lower), np.abs(upper))
    chord = np.maximum((upper - lower - lost) / width, 0.0)
    if isinstance(bend, Broken):
        inside = (bend.xs > low[:, None]) & (bend.xs < high[:, None])
        rise = np.where(inside, upper[:, None] - bend.ys - lost[:, None], np.inf)
        from_above = (rise / np.where(inside, high[:, None] - bend.xs, 1.0)).min(axis=1, initial=np.inf)
        rise = np.where(inside, bend.ys - lower[:, None] - lost[:, None], np.inf)
        from_below = (rise / np.where(inside, bend.xs - low[:, None], 1.0)).min(axis=1, initial=np.inf)
    else:
        assert isinstance(bend, Smooth)
        from_above, from_below = (np.asarray(bend.derivative(s)) * (1.0 - CHAINED_ROUNDING) for s in (high, low))
    above, below = (np.maximum(np.minimum(chord, slope), 0.0) for slope in (from_above, from_below))
    return above, below, np.where(high > low, (upper - lower) / width, above)


def envelope(
    bend: Bend, low: FloatArray, high: FloatArray, at: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return slope and constant of a line above, and of one below, each about as near to the curve `at` a score as may be."""
    if isinstance(bend, Broken):
        above, over = _above_broken(bend.xs, bend.ys, low, high, at)
        below, under = _above_broken(-bend.xs[::-1], -bend.ys[::-1], -high, -low, -at)
        return above, over, below, -under
    assert isinstance(bend, Smooth)
    curve = _Curve(bend.function, bend.derivative, _turn(bend))
    above, over = curve.above(low, high, at)
    below, under = curve.reflected().above(-high, -low, -at)
    return above, over, below, -under


def _turn(bend: Smooth) -> float:
    """Return where a function turns from convex to concave: nowhere is plus or minus infinity."""
    if bend.inflections:
        return bend.inflections[0]
    slope = np.asarray(bend.derivative(np.array([0.0, bend.scale])))
    return np.inf if slope[1] > slope[0] else -np.inf


@dataclass(frozen=True, eq=False)
class _Curve:
    """An increasing function, convex before `turn` and concave behind it."""

    function: Function
    derivative: Function
    turn: float

    def reflected(self) -> _Curve:
        """Return ``-f(-s)``."""
        return _Curve(lambda s: -self.function(-s), lambda s: self.derivative(-s), -self.turn)

    def above(self, low: FloatArray, high: FloatArray, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the line of the concave envelope at a score: a tangent, or the line from the lower end that touches.

        Behind the turn ``f(s) - slope * s`` is largest where the slope is that of the line, or at an end; before the turn, at
        an end of the interval or at the turn.
        """
        first, last = np.clip(self.turn, low, high), high
        lower, upper = self.function(low), self.function(high)
        for _ in range(DEFAULT.forms.halvings):
            middle = 0.5 * (first + last)
            early = self.function(middle) - lower < self.derivative(middle) * (middle - low)
            first, last = np.where(early, middle, first), np.where(early, last, middle)
        touch = np.maximum(last, at)
        slope = np.asarray(self.derivative(touch))
        chord = (upper - lower) / np.maximum(high - low, TINY)
        slope = np.where((touch >= high) & (chord < slope), chord, slope)
        ends = [self.function(s) - slope * s for s in (low, touch, high)]
        return slope, np.maximum(np.maximum(*ends[:2]), ends[2])


def _above_broken(
    xs: FloatArray, ys: FloatArray, low: FloatArray, high: FloatArray, at: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return a line above a broken one: level, the chord, or the steepest or flattest one from an end beyond a score."""
    lower, upper = np.interp(low, xs, ys), np.interp(high, xs, ys)
    x = np.concatenate([np.broadcast_to(xs, (len(low), len(xs))), low[:, None], high[:, None]], axis=1)
    y = np.concatenate([np.broadcast_to(ys, (len(low), len(ys))), lower[:, None], upper[:, None]], axis=1)
    inside = (x >= low[:, None]) & (x <= high[:, None])
    room = np.maximum(high - low, TINY)[:, None]
    ahead, behind = inside & (x >= at[:, None]) & (x > low[:, None]), inside & (x <= at[:, None]) & (x < high[:, None])
    up = np.where(ahead, (y - lower[:, None]) / np.where(ahead, x - low[:, None], room), -np.inf).max(axis=1)
    down = np.where(behind, (upper[:, None] - y) / np.where(behind, high[:, None] - x, room), np.inf).min(axis=1)
    choices = [np.zeros_like(low), (upper - lower) / room[:, 0], up, down]
    best, least = choices[0], np.full(len(low), np.inf)
    constant = np.zeros_like(low)
    for choice in choices:
        slope = np.where(np.isfinite(choice), choice, 0.0)
        over = np.where(inside, y - slope[:, None] * x, -np.inf).max(axis=1)
        value = over + slope * at
        best, constant = np.where(value < least, slope, best), np.where(value < least, over, constant)
        least = np.minimum(least, value)
    return best, constant
