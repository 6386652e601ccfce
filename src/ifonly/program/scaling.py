"""Scaling of a program before it goes to a solver, and of what comes back: the one place where numbers are scaled.

Solvers work to absolute tolerances, so a program must speak in numbers near 1 whatever the units of its features. With
``v = shift + factor * v'`` for the columns, rows multiplied by ``r`` and the objective by ``o``,

    minimise    o (c * factor)' v' + ...      subject to    r (lower - A shift) <= r A diag(factor) v' <= r (upper - A shift),

where a continuous column counts from its end nearest to 0 in units of the width of its interval, an integer column counts
from such an end in units of 1, the largest entry of each row is near 1, and so is the dearest column. All factors are powers
of two, so no digit is lost. An entry that a solver would take for zero becomes a little room in its row, and so does what
rounding may have taken from a side whose columns lie far from zero: room only ever admits more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ifonly.arrays import FloatArray
from ifonly.program.mip import Affine, Convex, MipArrays, Square
from ifonly.tolerances import LP_EXACT, SMALLEST_ENTRY, SPACING

__all__ = ["Balanced", "balance", "row_near_one"]

# Branch and bound gives up a node whose bound is within the feasibility tolerance (1e-6) of the best answer, so what is
# asked for to 1e-6 of its own size has to be far above 1 in size.
_COST = 2.0**10
_LARGEST_COST = 2.0**20


@dataclass(frozen=True, eq=False)
class Balanced:
    """A scaled program, and the way back.

    Attributes
    ----------
    program
        The program in numbers near 1.
    shift, factor
        Where each column counts from, and in what unit.
    objective_factor
        The unit of the objective, inverted.
    """

    program: MipArrays
    shift: FloatArray
    factor: FloatArray
    objective_factor: float

    def original(self, values: FloatArray) -> FloatArray:
        """Return a point of the scaled program in the columns of the original one; further columns are left out."""
        n = len(self.shift)
        return np.asarray(self.shift + self.factor * values[:n])

    def scaled(self, values: FloatArray) -> FloatArray:
        """Return a point of the original program in the columns of the scaled one."""
        return np.asarray((values - self.shift) / self.factor)

    def cost(self, value: float) -> float:
        """Return an objective value of the scaled program in the unit of the original one."""
        return value / self.objective_factor

    def scaled_cost(self, value: float) -> float:
        """Return an objective value of the original program in the unit of the scaled one."""
        return value * self.objective_factor


def balance(program: MipArrays, cutoff: float = np.inf) -> Balanced:
    """Scale columns, rows and objective of a program of which only points up to the cut-off are of interest."""
    shift, factor = _columns(program)
    matrix = sparse.csr_matrix(program.matrix @ sparse.diags_array(factor)) if program.n_columns else program.matrix
    offset = program.matrix @ shift if program.n_columns else np.zeros(program.n_rows)
    row_factor = _row_factors(matrix)
    squares = tuple(_square(s, program, shift, factor) for s in program.squares)
    cost = program.cost * factor
    offset_cost = program.offset + float(program.cost @ shift)
    dearest = max(float(np.abs(cost).max(initial=0.0)), *(abs(s.weight) for s in squares), 0.0, 0.0)
    unit = _objective_factor(dearest, cutoff - offset_cost)
    with np.errstate(over="ignore"):  # a side that is beyond all floats is no side
        sides = (program.row_lower - offset) * row_factor, (program.row_upper - offset) * row_factor
        room = SPACING * _far(program, shift) * row_factor
    room = np.where(room > LP_EXACT, room, 0.0)
    scaled = replace(
        program,
        cost=cost * unit,
        offset=offset_cost * unit,
        matrix=sparse.csr_matrix(sparse.diags_array(row_factor) @ matrix) if program.n_rows else matrix,
        row_lower=sides[0] - room,
        row_upper=sides[1] + room,
        lower=(program.lower - shift) / factor,
        upper=(program.upper - shift) / factor,
        squares=tuple(replace(s, weight=s.weight * unit) for s in squares),
        convex=tuple(_convex(c, shift, factor) for c in program.convex),
        row_factor=row_factor,
    )
    return Balanced(_without_dust(scaled), shift, factor, unit)


def _far(program: MipArrays, shift: FloatArray) -> FloatArray:
    """Return the size of what the sides of a row are a difference of, where its columns count from elsewhere; else 0.

    ``lower - A shift`` may be a difference of numbers around 1e9, and so be off by some 1e-7. In an equality that nothing
    else can fill, as at the end of a curve, a solver that keeps its rows to 1e-7 would find no point.
    """
    if not program.n_columns:
        return np.zeros(program.n_rows)
    size = abs(program.matrix) @ np.abs(shift)
    sides = [np.where(np.isfinite(side), np.abs(side), 0.0) for side in (program.row_lower, program.row_upper)]
    return np.asarray(np.where(size > 0.0, size + np.maximum(*sides), 0.0))


def _objective_factor(dearest: float, room: float) -> float:
    """Return the factor that gives the dearest column, or what is left of a cut-off, a cost far above the tolerances."""
    if not 0.0 < dearest < np.inf:
        return 1.0
    size = min(dearest, room) if room > 0.0 else dearest
    return _power_of_two(min(_COST / size, _LARGEST_COST / dearest))


def _power_of_two(value: float) -> float:
    return float(2.0 ** np.round(np.log2(value)))


def _columns(program: MipArrays) -> tuple[FloatArray, FloatArray]:
    """Return where each column counts from and in what unit; a column without both ends counts as it is."""
    lower, upper = program.lower, program.upper
    bounded = np.isfinite(lower) & np.isfinite(upper)
    shift = np.where(bounded & (lower > 0.0), lower, np.where(bounded & (upper < 0.0), upper, 0.0))
    shift = np.where(program.integer, np.round(shift), shift)
    width = np.where(bounded & (upper > lower) & ~program.integer, upper - lower, 1.0)
    return shift, np.asarray(2.0 ** np.round(np.log2(width)), dtype=np.float64)


def _row_factors(matrix: sparse.csr_matrix) -> FloatArray:
    if not matrix.nnz:
        return np.ones(matrix.shape[0])
    peaks = np.asarray(abs(matrix).max(axis=1).todense()).reshape(-1)
    return np.asarray(np.where(peaks > 0.0, 2.0 ** -np.round(np.log2(np.where(peaks > 0.0, peaks, 1.0))), 1.0))


def _affine(expression: Affine, shift: FloatArray, factor: FloatArray) -> Affine:
    at = expression.columns
    constant = expression.constant + float(expression.values @ shift[at])
    return Affine(at, expression.values * factor[at], constant)


def _square(square: Square, program: MipArrays, shift: FloatArray, factor: FloatArray) -> Square:
    """Return a square over scaled columns, its inside near 1 and the size it can have in its weight."""
    at = square.inner.columns
    ends = square.inner.values * program.lower[at], square.inner.values * program.upper[at]
    low = float(np.minimum(*ends).sum() + square.inner.constant)
    high = float(np.maximum(*ends).sum() + square.inner.constant)
    reach = max(abs(low), abs(high))
    size = _power_of_two(reach) if np.isfinite(reach) and reach > 0.0 else 1.0
    switch = None if square.switch is None else _affine(square.switch, shift, factor)
    return Square(_affine(square.inner, shift, factor) * (1.0 / size), square.weight * size * size, switch)


def _convex(row: Convex, shift: FloatArray, factor: FloatArray) -> Convex:
    return replace(row, inner=tuple(_affine(e, shift, factor) for e in row.inner))


def _without_dust(program: MipArrays) -> MipArrays:
    """Replace entries that a solver takes for zero by room in their rows, as much as they could ever be worth."""
    matrix = program.matrix
    tiny = (np.abs(matrix.data) < SMALLEST_ENTRY) & (matrix.data != 0.0)
    if not tiny.any():
        return program
    row = np.repeat(np.arange(program.n_rows), np.diff(matrix.indptr))[tiny]
    column, value = matrix.indices[tiny], matrix.data[tiny]
    ends = value * program.lower[column], value * program.upper[column]
    least, most = np.minimum(*ends), np.maximum(*ends)
    known = np.isfinite(least) & np.isfinite(most)
    lower, upper = program.row_lower.copy(), program.row_upper.copy()
    np.subtract.at(lower, row[known], most[known])
    np.subtract.at(upper, row[known], least[known])
    data = matrix.data.copy()
    data[np.flatnonzero(tiny)[known]] = 0.0
    kept = sparse.csr_matrix((data, matrix.indices.copy(), matrix.indptr.copy()), shape=matrix.shape)
    kept.eliminate_zeros()
    return replace(program, matrix=kept, row_lower=lower, row_upper=upper)


def row_near_one(program: MipArrays, expression: Affine, limit: float) -> tuple[Affine, float]:
    """Return a further row ``expression <= limit`` of a scaled program, its entries near 1 and none of them dust.

    An entry of dust is replaced by the least it can be worth, so the row only ever admits more.
    """
    peak = float(np.abs(expression.values).max(initial=0.0))
    if peak > 0.0:
        factor = _power_of_two(1.0 / peak)
        expression, limit = expression * factor, limit * factor
    tiny = np.abs(expression.values) < SMALLEST_ENTRY
    if not tiny.any():
        return expression, limit
    at, values = expression.columns[tiny], expression.values[tiny]
    least = float(np.minimum(values * program.lower[at], values * program.upper[at]).sum())
    return Affine(expression.columns[~tiny], expression.values[~tiny], expression.constant + least), limit
