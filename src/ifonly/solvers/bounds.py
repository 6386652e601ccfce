"""Safe bounds of linear programs: from any duals, right or wrong, a number that no point can cost less than.

For ``min c'v`` subject to ``L <= A v <= U`` and ``l <= v <= u``, and any ``y`` whatever,

    sum_i (y_i L_i if y_i > 0 else y_i U_i)  +  sum_j min over [l_j, u_j] of (c - A'y)_j v_j   <=   c'v

for every feasible ``v`` (weak duality; Neumaier and Shcherbina 2004). Good duals make it tight, bad ones only loose. The
sums are lowered by a bound of their own rounding error, so what is returned holds in spite of floating point.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ifonly.arrays import FloatArray
from ifonly.program.mip import MipArrays
from ifonly.tolerances import LONG_ROUNDINGS, SHORT_SUM

__all__ = ["SafeBounds", "safe_bound"]


class SafeBounds:
    """Safe bounds of one program under other and other bounds, sides of rows and costs."""

    def __init__(self, matrix: sparse.csr_matrix) -> None:
        self._turned = matrix.T.tocsr()
        self._sizes = abs(self._turned)
        self._roundings = SHORT_SUM * min(matrix.shape[0] + 2, LONG_ROUNDINGS)

    def of(self, program: MipArrays, duals: FloatArray, cost: FloatArray | None = None) -> float:
        """Return the safe bound that duals of the rows give for the linear part of a program of this matrix.

        With a cost of zero, a bound above 0 proves that there is no point at all (Farkas).
        """
        own = program.cost if cost is None else cost
        sides = np.where(duals > 0.0, program.row_lower, program.row_upper)
        usable = np.isfinite(sides) & (duals != 0.0) & np.isfinite(duals)
        y = np.where(usable, duals, 0.0)
        rows = y * np.where(usable, sides, 0.0)
        reduced = own - self._turned @ y
        size = np.abs(own) + self._sizes @ np.abs(y)
        error = self._roundings * size
        at = np.where(reduced > 0.0, program.lower, program.upper)
        endless = np.isinf(at)
        if bool((endless & (reduced != 0.0)).any()):
            return -np.inf
        columns = reduced * np.where(endless, 0.0, at)
        reach = np.maximum(np.abs(program.lower), np.abs(program.upper))
        lost = error * np.where(np.isfinite(reach), reach, 0.0)
        offset = program.offset if cost is None else 0.0
        total = float(rows.sum() + columns.sum() + offset)
        sums = float(np.abs(rows).sum() + np.abs(columns).sum() + abs(offset))
        return float(total - lost.sum() - SHORT_SUM * np.log2(2.0 + len(rows) + len(columns)) * sums)


def safe_bound(program: MipArrays, duals: FloatArray, cost: FloatArray | None = None) -> float:
    """Return the safe bound that duals of the rows give for the linear part of a program (or for another cost)."""
    return SafeBounds(program.matrix).of(program, duals, cost)
