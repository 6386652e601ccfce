"""The Euclidean length of a vector as linear rows, to eight digits.

Ben-Tal and Nemirovski (2001): fold the angle of a plane vector with entries ``a, b >= 0`` in half again and again,

    xi' = cos(t) xi + sin(t) eta,    eta' >= |cos(t) eta - sin(t) xi|,    t = pi/4, pi/8, ...,

so that after ``k`` folds it lies within ``pi / 2^(k+1)`` of the axis, where ``xi`` is the length up to the factor
``1 / cos(pi / 2^(k+1))``. A longer vector is a tower of plane ones. Nothing is iterated, and the rows never demand more
than the true ball does: a bound proven with them holds.
"""

from __future__ import annotations

import numpy as np

from ifonly.arrays import IntArray
from ifonly.program.mip import Affine, Mip
from ifonly.tolerances import DUST, FOLDS

__all__ = ["at_least_length"]

_ROUNDING = DUST  # folding turns a vector and never makes it longer, but for rounding


def at_least_length(mip: Mip, columns: IntArray) -> Affine:
    """Return an expression that is at least the Euclidean length of the columns, and can be just that."""
    parts = []
    for c in columns:
        size = mip.epigraph(float(np.abs(mip.column_bounds(np.array([c]))).max()), name="size")
        # size >= |c|, from above
        mip.row(size - Affine.of(int(c)), lower=0.0)
        # size >= |c|, from below
        mip.row(size + Affine.of(int(c)), lower=0.0)
        parts.append(size)
    while len(parts) > 1:
        pairs = [_plane(mip, a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def _plane(mip: Mip, a: Affine, b: Affine) -> Affine:
    """Return the length of ``(a, b)``, both at least 0."""
    xi, eta = a, b
    most = float(np.hypot(mip.bounds(a)[1], mip.bounds(b)[1])) * (1.0 + _ROUNDING)
    for k in range(1, FOLDS + 1):
        turn = np.pi / 2.0 ** (k + 1)
        along, across = xi * np.cos(turn) + eta * np.sin(turn), eta * np.cos(turn) - xi * np.sin(turn)
        xi, eta = mip.epigraph(most, name="along"), mip.epigraph(most, name="across")
        # xi' = cos(t) xi + sin(t) eta
        mip.row(xi - along, 0.0, 0.0)
        # eta' >= cos(t) eta - sin(t) xi
        mip.row(eta - across, lower=0.0)
        # eta' >= sin(t) xi - cos(t) eta
        mip.row(eta + across, lower=0.0)
    # eta <= tan(pi / 2^(k+1)) xi: the vector lies near the axis after the last fold
    mip.row(xi * np.tan(np.pi / 2.0 ** (FOLDS + 1)) - eta, lower=0.0)
    return xi
