"""Weak duality in fractions: the bound that any duals of the rows give for a program, exactly."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import isfinite

from ifonly.program.mip import MipArrays

__all__ = ["exact_bound"]


def exact_bound(program: MipArrays, duals: Iterable[tuple[int, float]], *, charged: bool = True) -> Fraction | None:
    """Return the bound that duals, by row, give for the linear costs of a program (squares only add to it); None: none.

    Not `charged`, that is without any cost, a bound above 0 proves that there is no point (Farkas).
    """
    total = Fraction(float(program.offset)) if charged else Fraction(0)
    reduced = {j: Fraction(float(c)) for j, c in enumerate(program.cost) if c} if charged else {}
    matrix = program.matrix.tocsr()
    for i, value in duals:
        y = Fraction(value)
        side = float(program.row_lower[i] if y > 0 else program.row_upper[i])
        if y == 0:
            continue
        if not isfinite(side):
            return None
        total += y * Fraction(side)
        for at in range(int(matrix.indptr[i]), int(matrix.indptr[i + 1])):
            j = int(matrix.indices[at])
            reduced[j] = reduced.get(j, Fraction(0)) - y * Fraction(float(matrix.data[at]))
    for j, rate in reduced.items():
        if rate == 0:
            continue
        end = float(program.lower[j] if rate > 0 else program.upper[j])
        if not isfinite(end):
            return None
        total += rate * Fraction(end)
    return total
