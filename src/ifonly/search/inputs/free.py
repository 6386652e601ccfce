"""Features that a branch and bound over inputs may change: what they cost, their grids, and where they are split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.runtime.memo import cached_property
from ifonly.tolerances import FLOAT64_ROOM, ON_GRID, ROUNDING, TOLD_STEP

__all__ = ["Free", "told_steps"]

BoolArray = npt.NDArray[np.bool_]


def told_steps(step: FloatArray, size: FloatArray) -> FloatArray:
    """Return the spacings of grids; 0, as for continuous numbers, where rounding takes a tenth of a step or more.

    Whole numbers around 1e15 are exact, but a room of `FLOAT64_ROOM` around them holds their neighbours as well.
    """
    return np.where(FLOAT64_ROOM * size < TOLD_STEP * step, step, 0.0)


@dataclass(frozen=True, eq=False)
class Free:
    """The features that a search may change: numbers, counted from an origin, and categories with their levels.

    Attributes
    ----------
    home
        Per number: the factual's value, from the origin.
    origin
        Per number: the raw value that counts as 0.
    rate, square, price
        Per number: a change by ``d`` costs ``rate |d| + square d^2 + price [d != 0]``.
    step
        Per number: the spacing of its grid; 0 where it is continuous, or its values are too large to tell their grid.
    size
        Per number: the largest absolute raw value, of which rounding takes its share.
    level_cost
        Per level: its cost.
    first
        Per category: the place of its first level.
    level_home
        Per level: whether it is the factual's.
    elsewhere
        What the other features cost.
    most
        How many of these features may change.
    """

    home: FloatArray
    origin: FloatArray
    rate: FloatArray
    square: FloatArray
    price: FloatArray
    step: FloatArray
    size: FloatArray
    level_cost: FloatArray
    first: IntArray
    level_home: BoolArray
    elsewhere: float
    most: int

    @cached_property
    def owner(self) -> IntArray:
        """Per level: its category."""
        sizes = np.diff(np.append(self.first, len(self.level_cost)))
        return np.repeat(np.arange(len(self.first)), sizes)

    @cached_property
    def room(self) -> FloatArray:
        """Per number: how far from a point of its grid a computed value may lie that is meant to be on it."""
        return np.asarray(ON_GRID * self.step + FLOAT64_ROOM * self.size * (self.step > 0.0))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.home) + len(self.first)

    @property
    def n_numbers(self) -> int:
        """Number of numeric features."""
        return len(self.home)

    def cost(self, distance: FloatArray) -> FloatArray:
        """Return what numbers cost at a distance from home."""
        return np.asarray(self.rate * distance + self.square * distance**2 + self.price * (distance > 0.0))

    def reach(self, spare: FloatArray) -> FloatArray:
        """Return the distance from home that numbers may have for this much each, rounded up; 0 below their price."""
        left = np.maximum(spare - self.price, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):  # where nothing costs, or there is no limit
            far = 2.0 * left / (self.rate + np.sqrt(self.rate**2 + 4.0 * self.square * left))
        far = np.where(
            (self.rate + self.square > 0.0) & ~np.isnan(far), far, np.where(spare >= self.price, np.inf, 0.0)
        )
        return np.asarray(far * (1.0 + ROUNDING))

    def snapped(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return intervals from grid point to grid point, a little wider than these, so that no point is lost to rounding."""
        step = np.where(self.step > 0.0, self.step, 1.0)
        raw_low, raw_high = low + self.origin, high + self.origin
        from_ = np.ceil((raw_low - 2.0 * self.room) / step) * step - self.origin - self.room
        to = np.floor((raw_high + 2.0 * self.room) / step) * step - self.origin + self.room
        on_grid = (self.step > 0.0) & (high > low)
        return np.where(on_grid, np.maximum(low, from_), low), np.where(on_grid, np.minimum(high, to), high)

    def raw(self, numbers: FloatArray, near: FloatArray) -> FloatArray:
        """Return raw values of numbers; those on a grid are rounded to it, away from their cheapest value."""
        raw, step = numbers + self.origin, np.where(self.step > 0.0, self.step, 1.0)
        up = np.ceil((raw - 2.0 * self.room) / step) * step
        down = np.floor((raw + 2.0 * self.room) / step) * step
        return np.where(self.step > 0.0, np.where(numbers > near, up, down), raw)

    def split(self, k: int, low: float, high: float) -> tuple[list[tuple[float, float]], float]:
        """Split a number: what it is now, less and more, where that makes a difference to the cost; else two halves.

        Also return the value that divides the halves, or that the three parts are of.
        """
        home, step, origin, room = (float(a[k]) for a in (self.home, self.step, self.origin, self.room))
        counts = self.price[k] > 0.0 or self.most < self.n_features
        if low <= home <= high and (counts or low < home < high):
            if not counts:
                return [(low, home), (home, high)], home
            if not step:
                below, above = np.nextafter(home, -np.inf), np.nextafter(home, np.inf)
            else:
                below = (np.ceil((home + origin - 2.0 * room) / step) - 1.0) * step - origin + room
                above = (np.floor((home + origin + 2.0 * room) / step) + 1.0) * step - origin - room
            return [(low, float(below)), (home, home), (float(above), high)], home
        middle = 0.5 * (low + high)
        if step:
            cell = float(np.floor((middle + origin) / step)) * step - origin
            return [(low, cell + room), (cell + step - room, high)], cell + 0.5 * step
        if not low < middle < high:
            return [(low, low), (high, high)], low
        return [(low, middle), (middle, high)], middle
