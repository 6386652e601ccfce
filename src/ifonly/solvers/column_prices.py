"""Pricing of many columns: the least product of a direction with any line of a matrix, and the lines that attain it.

One product of the matrix with the direction tells. Of a million lines that takes tens of milliseconds, and a search asks for
hundreds of directions that lie close together. So the lines with the least products are listed for some directions ``d``, all
others having at least ``t``. For another direction ``y = s d + e`` with ``s >= 0``, and lines ``a`` at most ``R`` from a
centre ``c`` when the coordinates are counted in units ``u``, every line that is not listed has

    y'a  =  s d'a + e'c + e'(a - c)  >=  s t + e'c - R |u e|

by Cauchy and Schwarz. Where that is no less than what is asked for, the list alone decides. The sums are lowered by a
bound of their rounding errors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.runtime.memo import cached_property
from ifonly.runtime.tuning import DEFAULT, ColumnGeneration
from ifonly.tolerances import LONG_SUM

__all__ = ["Least", "Pricer"]


class Least(NamedTuple):
    """Least products of a direction: no line of the matrix has one below `bound`; `which` lines have the `products`."""

    bound: float
    which: IntArray
    products: FloatArray


class _Listed(NamedTuple):
    """Lines with the least products along a direction of length 1; all others have at least `least`."""

    direction: FloatArray
    lines: IntArray
    matrix: FloatArray
    least: float


class _Spread(NamedTuple):
    """Centre of all lines, a unit per coordinate, and the largest distance from the centre in these units."""

    centre: FloatArray
    unit: FloatArray
    radius: float


class Pricer:
    """Least products with the lines of one matrix; what it remembers may be shared by threads.

    Examples
    --------
    >>> least = Pricer(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]])).least(np.array([1.0, 1.0]))
    >>> round(least.bound, 9), sorted(least.which.tolist())
    (1.0, [0])
    """

    def __init__(self, matrix: FloatArray, tuning: ColumnGeneration = DEFAULT.columns) -> None:
        self.matrix, self.tuning = matrix, tuning
        self._listed: tuple[_Listed, ...] = ()

    @cached_property
    def sizes(self) -> FloatArray:
        """The largest absolute value of each coordinate."""
        if not len(self.matrix):
            return np.zeros(self.matrix.shape[1])
        return np.asarray(np.maximum(np.abs(self.matrix.min(axis=0)), np.abs(self.matrix.max(axis=0))))

    def least(self, direction: FloatArray, most: int = 1, below: float | None = None) -> Least:
        """Return a bound of all products, the line with the least one, and up to so many others with small ones.

        Who looks for lines with products less than `below` need not be told of the least: where it is given, the bound may be
        loose and lesser lines missing, as long as a line with such a product is returned, or none has one.
        """
        off = LONG_SUM * float(np.abs(direction) @ self.sizes)
        if len(self.matrix) > self.tuning.many:
            known = self._by_lists(direction, most, below, off)
            if known is not None:
                return known
        products = np.asarray(self.matrix @ direction)
        if len(self.matrix) > self.tuning.many:
            self._remember(direction, products)
        return _least_of(np.arange(len(products)), products, most, np.inf, off)

    # -- lists --------------------------------------------------------------------------------------------------
    @cached_property
    def _spread(self) -> _Spread:
        centre, unit = self.matrix.mean(axis=0), self.matrix.std(axis=0)
        unit = np.where(unit > 0.0, unit, 1.0)
        farthest, step = 0.0, self.tuning.many
        for first in range(0, len(self.matrix), step):
            away = (self.matrix[first : first + step] - centre) / unit
            farthest = max(farthest, float((away * away).sum(axis=1).max()))
        return _Spread(centre, unit, float(np.sqrt(farthest)) * (1.0 + LONG_SUM))

    def _by_lists(self, direction: FloatArray, most: int, below: float | None, off: float) -> Least | None:
        """Return what the list of the nearest direction tells; None where it is not enough."""
        known = self._listed  # another thread may have others in the meantime
        if not known:
            return None
        centre, unit, radius = self._spread
        scaled = unit * direction
        along = np.array([listed.direction @ scaled for listed in known])
        best = int(along.argmax())
        listed, share = known[best], max(float(along[best]), 0.0)
        rest = direction - share * (listed.direction / unit)
        length = float(np.linalg.norm(unit * rest)) * (1.0 + LONG_SUM)
        others = share * listed.least + float(rest @ centre) - radius * length
        others -= 4.0 * LONG_SUM * float((np.abs(direction) + np.abs(rest)) @ self.sizes)
        products = np.asarray(listed.matrix @ direction)
        here = float(products.min())
        if others < here and (below is None or (others < below <= here)):
            return None
        return _least_of(listed.lines, products, most, others, off)

    def _remember(self, direction: FloatArray, products: FloatArray) -> None:
        """List the lines with the least products of a direction, in place of the oldest list where there are many."""
        unit = self._spread.unit
        length = float(np.linalg.norm(unit * direction))
        if not length > 0.0:
            return
        n = self.tuning.listed
        order = np.argpartition(products, n)
        off = LONG_SUM * float(np.abs(direction) @ self.sizes)
        least = (float(products[order[n]]) - off) / length
        lines = np.sort(order[:n])
        new = _Listed(unit * direction / length, lines, self.matrix[lines], least - LONG_SUM * abs(least))
        self._listed = (*self._listed[-(self.tuning.directions - 1) :], new)


def _least_of(lines: IntArray, products: FloatArray, most: int, others: float, off: float) -> Least:
    """Return the least products of some lines, all others having at least `others`."""
    if len(products) > most:
        some = np.argpartition(products, most - 1)[:most]
        lines, products = lines[some], products[some]
    return Least(min(float(products.min()), others) - off, lines, products)
