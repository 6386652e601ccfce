"""The variables of a program as they look when every number is off by a given amount, within the schema's bounds.

With ``s`` the shift, a form that is embedded on this view is the form at ``clip(x + s, lower, upper)``. Thresholds need
no column, because ``clip(x + s) <= cut`` is ``x <= cut - s`` for every cut between the bounds. A raw value needs one only
where a bound can be met: ``y = max(x + s, lower)`` for a shift downwards is

    y >= x + s,    y >= lower,    y <= x + s + (1 - f) (lower - least),    y <= lower + f (most - lower),    f in {0, 1},

where ``least <= x + s <= most``; and a shift upwards is its mirror image.
"""

from __future__ import annotations

import numpy as np

from ifonly.box import Box
from ifonly.mip import Affine, FloatArray, IntArray
from ifonly.schema import Numeric
from ifonly.variables import Cells, Variables

__all__ = ["Shifted", "moved"]


def moved(limits: Box, U: FloatArray, shift: FloatArray) -> FloatArray:
    """Return canonical rows with a shift per feature added, within the limits and free of the dust of grids."""
    out = U.copy()
    for j in np.flatnonzero(shift):
        feature, at = limits.schema.features[j], limits.schema.starts[j]
        assert isinstance(feature, Numeric)
        values = np.clip(out[:, at] + shift[j], limits.lower[j], limits.upper[j])
        on_grid = feature.step is not None and feature.snap(float(shift[j])) == shift[j]
        out[:, at] = [feature.snap(float(v)) for v in values] if on_grid else values
    return out


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
        for j in np.flatnonzero(shift):
            box.lower[j], box.upper[j] = (
                np.clip(end + shift[j], limits.lower[j], limits.upper[j]) for end in (box.lower[j], box.upper[j])
            )
        super().__init__(base.mip, box, base.factual, base._cuts, base._raw_features)
        self.base, self.shift = base, shift
        self._levels = base._levels

    def cells(self, j: int) -> Cells:
        """Return the base's cells, moved."""
        cells, s = self.base.cells(j), float(self.shift[j])
        if s == 0.0:
            return cells
        low, high = (np.clip(end + s, self.box.lower[j], self.box.upper[j]) for end in (cells.low, cells.high))
        return Cells(cells.cuts + s, low, high)

    def literals(self, j: int) -> IntArray:
        """Return the base's literals: ``b[k] = 1`` iff ``x + s <= cuts[k] + s``."""
        return self.base.literals(j)

    def literal_index(self, j: int, cuts: FloatArray) -> IntArray:
        """Return which literal says ``clip(x + s) <= cut``: -1 when never, the number of cuts when always."""
        k = self.base.literal_index(j, cuts - self.shift[j])
        k = np.where(cuts >= self.box.upper[j], self.base.cells(j).cuts.size, k)
        return np.where(cuts < self.box.lower[j], -1, k)

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
            self.mip.row(y - x, lower=s)
            self.mip.row(y - x + free * (low - least), upper=s + low - least)
            self.mip.row(y - free * (most - low), upper=low)
        else:
            self.mip.row(y - x, upper=s)
            self.mip.row(y - x - free * (most - high), lower=s - (most - high))
            self.mip.row(y + free * (high - least), lower=high)
        return y
