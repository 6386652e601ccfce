"""Shifts of a ball: the one at which a linear function is largest, over many parts of the ball at once.

A part is a box of shifts ``low <= d <= high``; of an l2 ball only what lies in the ellipsoid ``sum_j (d_j / reach_j)^2 <= 1``
as well. There the largest value of ``s @ d`` is the minimum of its Lagrangian

    price + sum_j max over d_j of ( s_j d_j - price (d_j / reach_j)^2 ),

and every price gives an upper bound. Without ends of the box in the way the right price is half the length of
``s_j reach_j``, and elsewhere a few steps towards it are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.tolerances import ON_GRID, ROUNDING, TINY

__all__ = ["Parts", "best_shift", "inside", "on_steps"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of one ball around a centre, as boxes of inputs for linear bounds of a network.

    Attributes
    ----------
    low, high
        Per part and number: the ends of its shifts.
    reach
        Half-axes of the ellipsoid; None: the ball is a box.
    prices
        Steps that are taken towards the right price.
    """

    low: FloatArray
    high: FloatArray
    reach: FloatArray | None
    prices: int

    def __len__(self) -> int:
        return len(self.low)

    def largest(self, slopes: FloatArray) -> FloatArray:
        """Return upper bounds of ``slopes[i, k] @ d`` in part ``i``."""
        return best_shift(slopes, self.low[:, None], self.high[:, None], self.reach, self.prices)[0]

    def largest_of(self, slopes: FloatArray, which: IntArray) -> FloatArray:
        """Return upper bounds of ``slopes[m] @ d`` in part ``which[m]``."""
        return best_shift(slopes, self.low[which], self.high[which], self.reach, self.prices)[0]

    def roughly(self, slopes: FloatArray) -> FloatArray:
        """Return upper bounds over the boxes alone."""
        rises, falls = np.maximum(slopes, 0.0), np.minimum(slopes, 0.0)
        if len(slopes) == 1:
            return np.asarray(self.high @ rises[0].T + self.low @ falls[0].T)
        return np.asarray((rises @ self.high[:, :, None] + falls @ self.low[:, :, None])[:, :, 0])

    def extent(self, slopes: FloatArray) -> FloatArray:
        """Return how much each number can change ``slopes[i, k] @ d`` in part ``i``."""
        return np.asarray(np.abs(slopes) * (self.high - self.low)[:, None])

    def inhabited(self) -> BoolArray:
        """Say which parts have a shift of the ball in them."""
        some = np.asarray((self.low <= self.high).all(axis=1))
        if self.reach is not None:
            nearest = np.clip(0.0, self.low, np.maximum(self.low, self.high))
            some &= ((nearest / self.reach) ** 2).sum(axis=1) <= 1.0 + ROUNDING
        return some


def best_shift(
    slopes: FloatArray, low: FloatArray, high: FloatArray, reach: FloatArray | None, prices: int
) -> tuple[FloatArray, FloatArray]:
    """Return upper bounds of ``slopes @ d`` over parts of a ball, and shifts near their maximum."""
    corner = np.where(slopes > 0.0, high, low)
    best = np.asarray((slopes * corner).sum(axis=-1))
    if reach is None:
        return best, corner
    best, shift = best.copy(), corner
    price = 0.5 * np.linalg.norm(slopes * reach, axis=-1)
    for _ in range(prices):
        paid = np.maximum(price, TINY)[..., None]
        with np.errstate(over="ignore"):
            shift = np.clip(0.5 * slopes * reach**2 / paid, low, high)
        length = ((shift / reach) ** 2).sum(axis=-1)
        # the sum of all terms but for rounding, a share of the sum of their sizes
        value = price + (slopes * shift).sum(axis=-1) - price * length
        size = price + (np.abs(slopes) * np.abs(shift)).sum(axis=-1) + price * length
        best = np.minimum(best, value + ROUNDING * size)
        price = price * np.sqrt(length)
    return best, inside(shift, reach)


def inside(shift: FloatArray, reach: FloatArray) -> FloatArray:
    """Return shifts drawn in as far as they lie outside of an ellipsoid."""
    length = np.sqrt(((shift / reach) ** 2).sum(axis=-1, keepdims=True)) * (1.0 + ROUNDING)
    return np.asarray(shift / np.maximum(length, 1.0))


def on_steps(shift: FloatArray, step: FloatArray) -> FloatArray:
    """Return shifts drawn in to whole steps of grids; 0 stands for continuous numbers."""
    width = np.where(step > 0.0, step, 1.0)
    count = np.trunc(shift / width + np.sign(shift) * ON_GRID)
    return np.asarray(np.where(step > 0.0, count * width, shift))
