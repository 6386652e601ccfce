"""The variables of a program as they look when every number is off by a given amount, within the schema's bounds.

With ``s`` the shift, a form that is embedded on this view is the form at ``clip(x + s, lower, upper)``. Thresholds need
no column, because ``clip(x + s) <= cut`` is ``x <= cut - s`` for every cut between the bounds. A raw value needs one only
where a bound can be met: ``y = max(x + s, lower)`` for a shift downwards is

    y >= x + s,    y >= lower,    y <= x + s + (1 - f) (lower - least),    y <= lower + f (most - lower),    f in {0, 1},

where ``least <= x + s <= most``; and a shift upwards is its mirror image.
"""

from __future__ import annotations

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.program.cells import Cells, grid_floor
from ifonly.program.mip import Affine
from ifonly.program.variables import Variables

__all__ = ["Shifted", "moved", "moved_cuts"]


def moved_cuts(feature: Numeric, cuts: FloatArray, shift: float) -> FloatArray:
    """Return the thresholds on `x` that say ``x + shift <= cut``.

    On a decimal grid they are values of the grid themselves: 0.1 + 0.2 is stored as 0.3 there, and is at most a cut of 0.3,
    while ``0.3 - 0.2`` in floating point is a little less than 0.1.
    """
    if not _keeps_grid(feature, shift):
        return cuts - shift
    return np.array([feature.snap(float(v)) for v in grid_floor(feature, cuts) - shift])


def _keeps_grid(feature: Numeric, shift: float) -> bool:
    return feature.step is not None and shift != 0.0 and feature.snap(float(shift)) == shift


def moved(limits: Box, U: FloatArray, shift: FloatArray) -> FloatArray:
    """Return canonical rows with a shift per feature added, within the limits and free of the dust of grids."""
    out = U.copy()
    for j in map(int, np.flatnonzero(shift)):
        at = limits.schema.starts[j]
        out[:, at] = _moved_values(limits, j, out[:, at], float(shift[j]))
    return out


def _moved_values(limits: Box, j: int, values: FloatArray, shift: float) -> FloatArray:
    """Return values of feature `j` with a shift added, within the limits."""
    feature = limits.schema.features[j]
    assert isinstance(feature, Numeric)
    there = np.clip(values + shift, limits.lower[j], limits.upper[j])
    return np.array([feature.snap(float(v)) for v in there]) if _keeps_grid(feature, shift) else there


class Shifted(Variables):
    """A view of other variables, whose literals and levels it shares.

    Parameters
    ----------
    base
        The variables of the program.
    shift
        Per feature: what is added to a number; 0 for categorical features.
    """

    def __init__(self, base: Variables, shift: FloatArray) -> None:
        limits = Box.of(base.schema, base.factual)
        box = base.box.copy()
        for j in map(int, np.flatnonzero(shift)):
            ends = np.array([box.lower[j], box.upper[j]])
            box.lower[j], box.upper[j] = _moved_values(limits, j, ends, float(shift[j]))
        super().__init__(base.mip, box, base.factual, base._cuts, base._raw_features)
        self.base, self.shift, self._limits = base, shift, limits
        self._levels = base._levels

    def cells(self, j: int) -> Cells:
        """Return the base's cells, moved."""
        cells, s = self.base.cells(j), float(self.shift[j])
        if s == 0.0:
            return cells
        low, high = (
            np.clip(_moved_values(self._limits, j, end, s), self.box.lower[j], self.box.upper[j])
            for end in (cells.low, cells.high)
        )
        return Cells(moved_cuts(self._numeric(j), cells.cuts, -s), low, high)

    def literals(self, j: int) -> IntArray:
        """Return the base's literals: ``b[k] = 1`` iff ``x + s <= cuts[k] + s``."""
        return self.base.literals(j)

    def literal_index(self, j: int, cuts: FloatArray) -> IntArray:
        """Return which literal says ``clip(x + s) <= cut``: -1 when never, the number of cuts when always."""
        k = self.base.literal_index(j, moved_cuts(self._numeric(j), cuts, float(self.shift[j])))
        k = np.where(cuts >= self.box.upper[j], self.base.cells(j).cuts.size, k)
        return np.where(cuts < self.box.lower[j], -1, k)

    def _numeric(self, j: int) -> Numeric:
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        return feature

    def is_raw(self, j: int) -> bool:
        """Whether the raw value of numeric feature `j` takes part in the problem."""
        return self.base.is_raw(j)

    def _make_raw(self, j: int) -> Affine:
        s = float(self.shift[j])
        x = self.base.raw(j)
        if s == 0.0:
            return x
        least, most = float(self.base.box.lower[j]) + s, float(self.base.box.upper[j]) + s
        low, high = float(self.box.lower[j]), float(self.box.upper[j])
        if low == high:
            return Affine(constant=low)
        if least >= low and most <= high:
            return x + s
        name = self.schema.features[j].name
        y = self.mip.column(low, high, name=f"{name}_shifted")
        free = self.mip.column(integer=True, name=f"{name}_free")
        if s < 0:
            # y = max(x + s, low): y >= x + s, and equality with one of the two
            self.mip.row(y - x, lower=s)
            # y <= x + s where free is 1
            self.mip.row(y - x + free * (low - least), upper=s + low - least)
            # y <= low where free is 0
            self.mip.row(y - free * (most - low), upper=low)
        else:
            # y = min(x + s, high): y <= x + s, and equality with one of the two
            self.mip.row(y - x, upper=s)
            # y >= x + s where free is 1
            self.mip.row(y - x - free * (most - high), lower=s - (most - high))
            # y >= high where free is 0
            self.mip.row(y + free * (high - least), lower=high)
        return y
