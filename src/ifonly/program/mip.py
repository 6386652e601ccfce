"""Mixed-integer program as plain arrays: the waist. Knows no solver and no learning library.

    minimise    c'v + c0 + sum_k w_k e_k(v)^2
    subject to  lower <= A v <= upper,   g_i(e_i(v)) <= 0 (convex),   l <= v <= u,   v_j integer for j in I

The squares carry what `l2` and Mahalanobis need, the convex rows what a softmax probability needs; both are met by a
growing set of tangents (see `ifonly.solvers.tangents`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ifonly.arrays import FloatArray, IntArray

__all__ = ["Affine", "Convex", "Mip", "MipArrays", "Square"]

_NO_COLUMNS: IntArray = np.empty(0, dtype=np.int64)


_NO_VALUES: FloatArray = np.empty(0, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """An affine expression ``constant + sum_i values[i] * v[columns[i]]``; columns may repeat."""

    columns: IntArray = field(default_factory=lambda: _NO_COLUMNS)
    values: FloatArray = field(default_factory=lambda: _NO_VALUES)
    constant: float = 0.0

    @classmethod
    def of(cls, column: int, value: float = 1.0, constant: float = 0.0) -> Affine:
        """Return ``constant + value * v[column]``."""
        return cls(np.array([column], dtype=np.int64), np.array([value], dtype=np.float64), constant)

    @classmethod
    def total(cls, terms: Iterable[Affine]) -> Affine:
        """Return the sum of many expressions, concatenated once."""
        items = list(terms)
        if not items:
            return cls()
        return cls(
            np.concatenate([t.columns for t in items]),
            np.concatenate([t.values for t in items]),
            float(sum(t.constant for t in items)),
        )

    @property
    def is_constant(self) -> bool:
        """Whether no column takes part."""
        return self.columns.size == 0

    def __add__(self, other: Affine | float) -> Affine:
        if isinstance(other, Affine):
            return Affine.total((self, other))
        return Affine(self.columns, self.values, self.constant + float(other))

    __radd__ = __add__

    def __mul__(self, factor: float) -> Affine:
        return Affine(self.columns, self.values * factor, self.constant * factor)

    __rmul__ = __mul__

    def __neg__(self) -> Affine:
        return self * -1.0

    def __sub__(self, other: Affine | float) -> Affine:
        return self + (-other)

    def __rsub__(self, other: float) -> Affine:
        return -self + other

    def value(self, v: FloatArray) -> float:
        """Evaluate at a point of the program."""
        return float(self.constant + self.values @ v[self.columns])


@dataclass(frozen=True, slots=True, eq=False)
class Square:
    """An objective term ``weight * inner(v)^2``, with ``inner = 0`` whenever the 0/1 column `switch` is 0.

    The switch, when there is one, gives the perspective tangent ``t >= 2 d0 inner - d0^2 switch`` (Frangioni and
    Gentile 2006), which is tighter than the plain one while the switch is fractional.
    """

    inner: Affine
    weight: float
    switch: Affine | None = None

    def tangent(self, at: float) -> Affine:
        """Return the supporting line of ``inner^2`` at ``inner = at`` as an affine lower bound."""
        line = self.inner * (2.0 * at)
        if self.switch is None:
            return line + (-at * at)
        return line + self.switch * (-at * at)


@dataclass(frozen=True, slots=True, eq=False)
class Convex:
    """A demand ``function(inner(v)) <= 0`` with a convex, differentiable function of a few expressions."""

    inner: tuple[Affine, ...]
    function: Callable[[FloatArray], float]
    gradient: Callable[[FloatArray], FloatArray]

    def at(self, v: FloatArray) -> FloatArray:
        """Return the inner expressions at a point of the program."""
        return np.array([e.value(v) for e in self.inner])

    def tangent(self, point: FloatArray) -> Affine:
        """Return ``g(p) + g'(p) (inner - p)``, which lies below `function`: demanding it <= 0 cuts nothing valid."""
        slope = self.gradient(point)
        lines = Affine.total(e * float(a) for e, a in zip(self.inner, slope, strict=True))
        return lines + float(self.function(point) - slope @ point)


@dataclass(frozen=True, slots=True, eq=False)
class MipArrays:
    """A program frozen into the arrays that every backend takes.

    `row_factor` is what the first rows were multiplied by when it was scaled (see `ifonly.program.scaling`), for whoever adds
    entries to them.
    """

    cost: FloatArray
    offset: float
    matrix: sparse.csr_matrix
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: npt.NDArray[np.bool_]
    squares: tuple[Square, ...] = ()
    convex: tuple[Convex, ...] = ()
    names: tuple[str, ...] = ()
    row_factor: FloatArray = field(default_factory=lambda: _NO_VALUES)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.cost.size)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.row_lower.size)

    def objective(self, v: FloatArray) -> float:
        """Return the true objective at `v`, squares included."""
        squares = sum(s.weight * s.inner.value(v) ** 2 for s in self.squares)
        return float(self.cost @ v + self.offset + squares)

    def violation(self, v: FloatArray) -> float:
        """Return the largest violation of a row, a bound or integrality at `v`."""
        worst = [0.0]
        if self.n_rows:
            activity = self.matrix @ v
            worst += [float(np.max(self.row_lower - activity)), float(np.max(activity - self.row_upper))]
        if self.n_columns:
            worst += [float(np.max(self.lower - v)), float(np.max(v - self.upper))]
        if self.integer.any():
            whole = v[self.integer]
            worst.append(float(np.max(np.abs(whole - np.round(whole)))))
        return max(worst)


class Mip:
    """A program under construction: add columns, rows and costs; take `arrays()` when done."""

    def __init__(self) -> None:
        self._lower: list[FloatArray] = []
        self._upper: list[FloatArray] = []
        self._integer: list[npt.NDArray[np.bool_]] = []
        self._names: list[str] = []
        self.n_columns = 0
        self.n_rows = 0
        self._entries: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._row_lower: list[FloatArray] = []
        self._row_upper: list[FloatArray] = []
        self._objective: list[Affine] = []
        self._squares: list[Square] = []
        self._convex: list[Convex] = []

    def columns(
        self,
        n: int,
        lower: npt.ArrayLike = 0.0,
        upper: npt.ArrayLike = 1.0,
        *,
        integer: bool = False,
        name: str = "",
    ) -> IntArray:
        """Add `n` columns and return their indices."""
        first = self.n_columns
        self.n_columns += n
        self._lower.append(np.broadcast_to(np.asarray(lower, dtype=np.float64), (n,)))
        self._upper.append(np.broadcast_to(np.asarray(upper, dtype=np.float64), (n,)))
        self._integer.append(np.full(n, integer))
        self._names += [f"{name or 'v'}_{i}" for i in range(n)] if n != 1 else [name or f"v_{first}"]
        return np.arange(first, first + n, dtype=np.int64)

    def column(self, lower: float = 0.0, upper: float = 1.0, *, integer: bool = False, name: str = "") -> Affine:
        """Add one column and return it as an expression."""
        return Affine.of(int(self.columns(1, lower, upper, integer=integer, name=name)[0]))

    def epigraph(self, most: float, name: str) -> Affine:
        """Add the column of an epigraph, which rows push up and the objective pulls down, of something up to `most`.

        Its upper end is twice that. It never binds; but HiGHS 1.15.1 has called programs infeasible, with and without
        presolve, whose best point lies within 1e-9 of the end of such a column (tests/faults/test_epigraph.py).
        """
        return self.column(0.0, 2.0 * most, name=name)

    def row(self, expression: Affine, lower: float = -np.inf, upper: float = np.inf) -> None:
        """Demand ``lower <= expression <= upper``."""
        self._entries.append(
            (np.full(expression.columns.size, self.n_rows, dtype=np.int64), expression.columns, expression.values)
        )
        self._row_lower.append(np.array([lower - expression.constant]))
        self._row_upper.append(np.array([upper - expression.constant]))
        self.n_rows += 1

    def rows(
        self,
        row: IntArray,
        column: IntArray,
        value: FloatArray,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        n: int,
    ) -> None:
        """Demand ``lower <= B v <= upper`` for `n` rows at once, `B` given by its entries."""
        self._entries.append((row + self.n_rows, column, value))
        self._row_lower.append(np.broadcast_to(np.asarray(lower, dtype=np.float64), (n,)))
        self._row_upper.append(np.broadcast_to(np.asarray(upper, dtype=np.float64), (n,)))
        self.n_rows += n

    def convex(self, demand: Convex) -> None:
        """Demand that a convex function of a few expressions is at most 0."""
        self._convex.append(demand)

    def minimise(self, expression: Affine) -> None:
        """Add an affine term to the objective."""
        self._objective.append(expression)

    def minimise_square(self, square: Square) -> None:
        """Add a convex square to the objective."""
        self._squares.append(square)

    def limit_objective(self, upper: float) -> None:
        """Demand that the affine part of the objective so far is at most `upper`."""
        # objective <= upper, as far as it is affine
        self.row(Affine.total(self._objective), upper=upper)

    def clear_objective(self) -> None:
        """Forget all costs: the program becomes a question of feasibility."""
        self._objective.clear()
        self._squares.clear()

    def bounds(self, expression: Affine) -> tuple[float, float]:
        """Return interval bounds of an expression from the column bounds; every big-M comes from here."""
        lower, upper = self.column_bounds(expression.columns)
        low = np.where(expression.values >= 0, expression.values * lower, expression.values * upper)
        high = np.where(expression.values >= 0, expression.values * upper, expression.values * lower)
        return float(low.sum() + expression.constant), float(high.sum() + expression.constant)

    def column_bounds(self, columns: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of all columns, or of the given ones."""
        self._compact()
        lower = self._lower[0] if self._lower else _NO_VALUES
        upper = self._upper[0] if self._upper else _NO_VALUES
        return (lower, upper) if columns is None else (lower[columns], upper[columns])

    def _compact(self) -> None:
        if len(self._lower) > 1:
            self._lower = [np.concatenate(self._lower)]
            self._upper = [np.concatenate(self._upper)]
            self._integer = [np.concatenate(self._integer)]

    def arrays(self) -> MipArrays:
        """Freeze the program."""
        self._compact()
        objective = Affine.total(self._objective)
        cost = np.zeros(self.n_columns)
        np.add.at(cost, objective.columns, objective.values)
        empty_integer = np.empty(0, dtype=np.bool_)
        row_lower = np.concatenate(self._row_lower) if self._row_lower else _NO_VALUES
        row_upper = np.concatenate(self._row_upper) if self._row_upper else _NO_VALUES
        return MipArrays(
            cost=cost,
            offset=objective.constant,
            matrix=self._matrix(),
            row_lower=row_lower,
            row_upper=row_upper,
            lower=self._lower[0] if self._lower else _NO_VALUES,
            upper=self._upper[0] if self._upper else _NO_VALUES,
            integer=self._integer[0] if self._integer else empty_integer,
            squares=tuple(self._squares),
            convex=tuple(self._convex),
            names=tuple(self._names),
        )

    def _matrix(self) -> sparse.csr_matrix:
        parts: Sequence[tuple[IntArray, IntArray, FloatArray]] = self._entries or [
            (_NO_COLUMNS, _NO_COLUMNS, _NO_VALUES)
        ]
        row = np.concatenate([p[0] for p in parts])
        column = np.concatenate([p[1] for p in parts])
        value = np.concatenate([p[2] for p in parts])
        matrix = sparse.csr_matrix((value, (row, column)), shape=(self.n_rows, self.n_columns))
        matrix.sum_duplicates()
        return matrix
