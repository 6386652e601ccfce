"""Cells of one numeric feature: the intervals between its thresholds, on its grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric

__all__ = ["Cells", "grid_floor"]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of one numeric feature inside its box: admissible ``[low[k], high[k]]`` for each, in order.

    ``cuts[k]`` separates cell ``k`` from cell ``k + 1``; a cell without an admissible point is not kept.
    """

    cuts: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, feature: Numeric, lower: float, upper: float, cuts: FloatArray) -> Cells:
        """Split ``[lower, upper]`` at the cuts that lie within, merging cells that hold no admissible point."""
        inside = np.unique(cuts[(cuts >= lower) & (cuts < upper)])
        step = feature.step
        if step is None:
            low = np.concatenate([[lower], feature.at_least(np.nextafter(inside, np.inf))])
            high = np.concatenate([feature.at_most(inside), [upper]])
            some = low <= high  # between neighbouring cuts there may be no number of the column's dtype
            if not some.all():
                low, high = low[some], high[some]
            return cls(high[:-1], low, high)
        precision = feature.precision or 0
        below = np.unique(_steps_below(inside, precision))
        high = np.concatenate([_on_grid(below, precision), [upper]])
        low = np.concatenate([[lower], _on_grid(below + 1, precision)])
        return cls(high[:-1], low, high)

    def index(self, value: npt.ArrayLike) -> IntArray:
        """Return the cell of each value."""
        return np.searchsorted(self.cuts, np.asarray(value, dtype=np.float64), side="left").astype(np.int64)

    def nearest(self, value: float) -> FloatArray:
        """Return, per cell, its admissible point nearest to `value`."""
        return np.asarray(np.clip(value, self.low, self.high))


def grid_floor(feature: Numeric, values: FloatArray) -> FloatArray:
    """Return the greatest value of a feature's grid at or below each value."""
    precision = feature.precision or 0
    return _on_grid(_steps_below(values, precision), precision)


def _steps_below(values: FloatArray, precision: int) -> FloatArray:
    """Return the number of whole steps from 0 to the greatest grid value at or below each value.

    b / 10^p is the float nearest to the decimal number, as a value on the grid is stored; b * step may be off by one, unless
    the step is a whole number itself.
    """
    below = np.floor(values * 10.0**precision if precision > 0 else values / 10.0**-precision)
    too_low, too_high = _on_grid(below + 1, precision) <= values, _on_grid(below, precision) > values
    return np.asarray(below + too_low.astype(float) - too_high.astype(float))


def _on_grid(counts: FloatArray, precision: int) -> FloatArray:
    """Return the numbers that are so many steps of a decimal grid from 0."""
    return np.asarray(counts / 10.0**precision if precision > 0 else counts * 10.0**-precision)
