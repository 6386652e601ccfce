"""Separation: a least distance from a point, as a sum over single features."""

from __future__ import annotations

from dataclasses import dataclass

from ifonly.arrays import FloatArray

__all__ = ["Separation"]


@dataclass(frozen=True, eq=False)
class Separation:
    """A distance in the l1 metric that is to be kept from a point: a reverse-convex row, but one of single features.

    ``sum_j rate[j] |x_j - point_j| >= least`` over the numbers, plus ``levels[e]`` for the entry ``e`` of each category
    that is taken.

    Attributes
    ----------
    point
        In canonical form.
    rate
        Per feature; 0 for categories, and for what does not count.
    levels
        Per entry of the canonical vector; 0 for numbers, and for what does not count.
    """

    point: FloatArray
    rate: FloatArray
    levels: FloatArray
    least: float
