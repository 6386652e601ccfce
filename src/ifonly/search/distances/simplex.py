"""Multipliers of the rows of a covering problem: its linear relaxation, in which features mix their candidates.

    min sum_fv c_fv w_fv   subject to   sum_fv g_ifv w_fv >= b_i,   sum_v w_fv = 1,   w >= 0.

A simplex method with generalised upper bounds (Dantzig and Van Slyke 1967): each feature has a key candidate, whose weight is
what the others leave of 1, so the basis has a column per row and no more. A row may fall short at a high price, which bounds
its multiplier. Bounds are computed from multipliers anew, and hold for any of them; so nothing rests on this program.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.tolerances import NOISE, ROUNDING

__all__ = ["Mix", "relaxed"]


class _OfRow(IntEnum):
    """Columns of the basis that belong to a row instead of a feature: in place of the number of a feature."""

    SURPLUS = -1
    SHORT = -2


class Mix(NamedTuple):
    """Solution of the relaxation: multipliers and their bound, weights of candidates, and whether these meet all rows."""

    y: FloatArray
    value: float
    weights: FloatArray
    met: bool = False


class _Column(NamedTuple):
    """A column of the basis: a candidate of a feature, or the surplus or shortage of a row."""

    feature: int
    at: int


def relaxed(costs: FloatArray, rows: FloatArray, least: FloatArray, dear: FloatArray, steps: int) -> Mix:
    """Return the solution after at most so many steps; `dear`: price of a unit by which each row falls short."""
    return _Simplex(costs, rows, least, dear).run(steps)


class _Simplex:
    """State of the method."""

    def __init__(self, costs: FloatArray, rows: FloatArray, least: FloatArray, dear: FloatArray) -> None:
        self.costs, self.rows, self.least, self.dear = costs, rows, least, dear
        self.every = np.arange(len(costs))
        self.key = costs.argmin(axis=1)
        short = least - rows[:, self.every, self.key].sum(axis=1)
        self.basis = [_Column(_OfRow.SHORT if s > 0.0 else _OfRow.SURPLUS, i) for i, s in enumerate(short)]
        self.value = np.abs(short)
        self.unit = np.eye(len(least))
        finite = costs[np.isfinite(costs)]
        self.small = NOISE * float(np.abs(finite).max(initial=0.0))

    def run(self, steps: int) -> Mix:
        """Exchange columns until none has a negative reduced cost."""
        best, value = np.zeros(len(self.least)), -np.inf
        for _ in range(steps):
            try:
                matrix, paid = self._basis()
                y = np.asarray(np.linalg.solve(matrix.T, paid), dtype=np.float64)
                within = np.clip(y, 0.0, self.dear)
                bound = float(self._worth(within).min(axis=1).sum() + within @ self.least)
                if bound > value:
                    best, value = within, bound
                entering = self._entering(y)
                if entering is None or not self._exchange(matrix, entering):
                    break
            except np.linalg.LinAlgError:  # a basis that rounding made singular: what is known so far is as good
                break
        return Mix(best, value, *self._weights())

    def _worth(self, y: FloatArray) -> FloatArray:
        return np.asarray(self.costs - np.tensordot(y, self.rows, axes=1))

    def _column(self, column: _Column) -> tuple[FloatArray, float]:
        """Return a column and its cost; a candidate takes the place of the key of its feature."""
        f, at = column
        if f == _OfRow.SURPLUS:
            return -self.unit[at], 0.0
        if f == _OfRow.SHORT:
            return self.unit[at], float(self.dear[at])
        key = self.key[f]
        return self.rows[:, f, at] - self.rows[:, f, key], float(self.costs[f, at] - self.costs[f, key])

    def _basis(self) -> tuple[FloatArray, FloatArray]:
        pairs = [self._column(column) for column in self.basis]
        return np.array([pair[0] for pair in pairs]).T, np.array([pair[1] for pair in pairs])

    def _entering(self, y: FloatArray) -> _Column | None:
        """Return the column with the least reduced cost; None: none is negative."""
        worth = self._worth(y)
        at = worth.argmin(axis=1)
        here = worth[self.every, self.key]
        reduced = worth[self.every, at] - here
        reduced = np.where(reduced < -np.maximum(self.small, ROUNDING * np.abs(here)), reduced, 0.0)
        f = int(reduced.argmin())
        least, column = float(reduced[f]), _Column(f, int(at[f]))
        for i, price in enumerate(y):
            room = NOISE * self.dear[i]
            for kind, own in ((_OfRow.SURPLUS, price), (_OfRow.SHORT, self.dear[i] - price)):
                if own < min(least, -room):
                    least, column = float(own), _Column(kind, i)
        return column if least < 0.0 else None

    def _exchange(self, matrix: FloatArray, entering: _Column) -> bool:
        """Let a column enter the basis, as far as no weight falls below 0; False: there is no end to it."""
        away = np.linalg.solve(matrix, self._column(entering)[0])
        step, leaving, feature = np.inf, -1, -1
        for p, way in enumerate(away):
            if way > ROUNDING and max(self.value[p], 0.0) / way < step:
                step, leaving = max(self.value[p], 0.0) / way, p
        members: dict[int, list[int]] = {entering.feature: []} if entering.feature >= 0 else {}
        for p, column in enumerate(self.basis):
            if column.feature >= 0:
                members.setdefault(column.feature, []).append(p)
        for f, own in members.items():  # the key of a feature has what its other candidates leave
            left = 1.0 - float(self.value[own].sum())
            falls = float(f == entering.feature) - float(away[own].sum())
            if falls > ROUNDING and max(left, 0.0) / falls < step:
                step, leaving, feature = max(left, 0.0) / falls, -1, f
        if step == np.inf:
            return False
        self.value = self.value - step * away
        if feature >= 0:
            if not members[feature]:
                self.key[feature] = entering.at
                return True
            leaving = max(members[feature], key=lambda p: self.value[p])
            self.key[feature] = self.basis[leaving].at
        self.basis[leaving] = entering
        self.value[leaving] = step
        return True

    def _weights(self) -> tuple[FloatArray, bool]:
        """Return the weights of all candidates, and whether no row falls short."""
        weights, met = np.zeros_like(self.costs), True
        weights[self.every, self.key] = 1.0
        for (f, at), value in zip(self.basis, self.value, strict=True):
            if f >= 0:
                weights[f, at] += value
                weights[f, self.key[f]] -= value
            elif f == _OfRow.SHORT:
                met &= value <= ROUNDING * max(1.0, abs(float(self.least[at])))
        return np.maximum(weights, 0.0), bool(met)
