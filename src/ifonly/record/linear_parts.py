"""Parts of a question about one linear row: intervals and sets of levels, in exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isfinite, isnan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ifonly.data.schema import Numeric
from ifonly.models.abilities import LinearScores
from ifonly.program.box import Box
from ifonly.program.cells import Cells, grid_floor
from ifonly.program.mip import Affine
from ifonly.question.statement import Statement
from ifonly.question.trail import Split
from ifonly.record.cell_costs import level_fractions
from ifonly.record.parts import Part, Refused

__all__ = ["LinearParts"]

BoolArray = npt.NDArray[np.bool_]


class _Interval(NamedTuple):
    """A number in a part: its least and greatest value, whether it may stay, and whether it may move."""

    low: float
    high: float
    stays: bool
    moves: bool


class _Best(NamedTuple):
    """The least charge of a feature that stays and of one that moves, each None where it cannot."""

    stay: Fraction | None
    move: Fraction | None


class LinearParts:
    """Parts as intervals and sets of levels, in exact fractions.

    With the gain ``g_j(v)`` of a value over the factual's, its cost ``c_j(v)``, and a multiplier ``m >= 0``, every point that
    gains what is needed costs at least ``m * need + sum_j min_v (c_j(v) - m g_j(v))``; of the features that need not move,
    as many of the least terms count as may.
    """

    at_once = 1

    def __init__(
        self, statement: Statement, box: Box, most: int, bound: float, form: LinearScores, gap: Affine
    ) -> None:
        self.schema, self.factual, self.box = statement.query.schema, statement.query.factual, box
        self.most, self.costs = most, statement.costs()
        self.bound = Fraction(bound) if isfinite(bound) else None
        if not np.isfinite(self.factual).all() or box.missing.any():
            raise Refused("a value is missing, and no search closes such a question part by part")
        if not (np.isfinite(box.lower).all() and np.isfinite(box.upper).all()):
            raise Refused("a number has no end, and no search closes such a question part by part")
        slope = [Fraction(0)] * self.schema.width
        need = -Fraction(gap.constant)
        for column, weight in zip(gap.columns, gap.values, strict=True):
            need -= Fraction(float(weight)) * Fraction(float(form.intercept[column]))
            for i, w in enumerate(form.weights[column]):
                slope[i] += Fraction(float(weight)) * Fraction(float(w))
        self.slope = slope
        self.need = need - sum((s * Fraction(float(u)) for s, u in zip(slope, self.factual, strict=True)), Fraction(0))
        self.levels = {j: self._level_table(j) for j in range(len(self.schema)) if j not in self.schema.numeric}
        self.beside = {j: self._neighbours(j) for j in self.schema.numeric}

    def _level_table(self, j: int) -> list[tuple[Fraction, Fraction]]:
        """Return cost and gain of each level."""
        part = self.schema.slice(j)
        here = int(self.factual[part].argmax())
        cost = level_fractions(self.costs, self.schema, j, self.factual)
        return [(c, self.slope[part][i] - self.slope[part][here]) for i, c in enumerate(cost)]

    def _neighbours(self, j: int) -> tuple[float, float]:
        """Return the values next to the factual's on its grid; itself, as the limit of values near by, without a grid."""
        feature, hat = self.schema.features[j], float(self.factual[self.schema.starts[j]])
        assert isinstance(feature, Numeric)
        if feature.step is None:
            return hat, hat
        below = float(grid_floor(feature, np.array([np.nextafter(hat, -inf)]))[0])
        above = Cells.of(feature, hat, inf, np.array([hat])).low
        return below, float(above[-1])

    def whole(self) -> list[Any]:
        """Return intervals, and sets of allowed levels."""
        states: list[Any] = []
        for j in range(len(self.schema)):
            if j in self.levels:
                states.append(self.box.allowed[self.schema.slice(j)].copy())
            else:
                states.append(_Interval(float(self.box.lower[j]), float(self.box.upper[j]), True, True))
        return states

    def sides(self, state: Any, split: Split) -> tuple[Any, Any]:
        """Return both sides of a split."""
        j = split.feature
        if j in self.levels:
            if split.levels is None or len(split.levels) != len(state):
                raise Refused(f"it splits {self.schema.names[j]!r} as if it were something else")
            return state & split.levels, state & ~split.levels
        if split.levels is not None or (split.value is not None and isnan(split.value)):
            raise Refused(f"it splits {self.schema.names[j]!r} as if it were something else")
        if split.value is None:
            return state._replace(moves=False), state._replace(stays=False)
        if split.value < state.low:
            return state._replace(stays=False, moves=False), state
        if split.value >= state.high:
            return state, state._replace(stays=False, moves=False)
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        cells = Cells.of(feature, state.low, state.high, np.array([split.value]))
        if len(cells.low) != 2:  # between neighbouring numbers of the column's dtype: both sides hold all
            return state, state
        return (
            state._replace(high=float(cells.high[0])),
            state._replace(low=float(cells.low[1])),
        )

    def closed(self, parts: Sequence[Part]) -> list[bool]:
        """Whether no better answer lies in each of some parts."""
        return [self._closed(part.states, part.price) for part in parts]

    def _closed(self, states: list[Any], price: float | None) -> bool:
        """Whether it is closed: by too many changes, too little to gain, or a bound that is high enough."""
        if price is not None and not (isfinite(price) and price >= 0.0):
            raise Refused(f"a multiplier is {price!r}")
        out = self._charge(states, Fraction(1), charged=False)  # -(what can be gained at most)
        if out is None or -out < self.need:
            return True
        if self.bound is None:
            return False
        for multiplier in {Fraction(0), Fraction(price or 0.0)}:
            charge = self._charge(states, multiplier)
            if charge is None or charge + multiplier * self.need >= self.bound:
                return True
        return False

    def _charge(self, states: list[Any], multiplier: Fraction, *, charged: bool = True) -> Fraction | None:
        """Return the least of ``cost - multiplier * gain`` over a part, without the cost if not charged; None: no point."""
        total, room, savings = Fraction(0), self.most, []
        for j, state in enumerate(states):
            feature = self._level if j in self.levels else self._number
            best = feature(j, state, multiplier, charged)
            if best.stay is None and best.move is None:
                return None
            if best.stay is None:
                assert best.move is not None
                total, room = total + best.move, room - 1
                continue
            total += best.stay
            if best.move is not None and best.move < best.stay:
                savings.append(best.move - best.stay)
        if room < 0:
            return None
        return total + sum(sorted(savings)[:room], Fraction(0))

    def _level(self, j: int, allowed: BoolArray, multiplier: Fraction, charged: bool) -> _Best:
        here = int(self.factual[self.schema.slice(j)].argmax())
        stay, move = None, None
        for i in map(int, np.flatnonzero(allowed)):
            cost, gain = self.levels[j][i]
            value = (cost if charged else 0) - multiplier * gain
            if i == here:
                stay = value
            elif move is None or value < move:
                move = value
        return _Best(stay, move)

    def _number(self, j: int, state: _Interval, multiplier: Fraction, charged: bool) -> _Best:
        """Return the least charges; that of a move is convex on both sides of the factual's value.

        So it is least at an end, beside the factual's value, or where its derivative is 0: on a grid, beside that.
        """
        hat = float(self.factual[self.schema.starts[j]])
        stay = Fraction(0) if state.stays and state.low <= hat <= state.high else None
        if not state.moves:
            return _Best(stay, None)
        points = {v for v in (state.low, state.high) if v != hat}
        points |= {v for v in self.beside[j] if state.low <= v <= state.high}
        linear, price = Fraction(float(self.costs.linear[j])), Fraction(float(self.costs.price[j]))
        slope, square = self.slope[self.schema.starts[j]], Fraction(float(self.costs.square[j]))
        ways = [Fraction(v) - Fraction(hat) for v in points]
        if charged and square > 0:
            ways += self._turning(j, state, (multiplier * abs(slope) - linear) / (2 * square), up=slope > 0)
        move = None
        for way in ways:
            cost = price + linear * abs(way) + square * way * way if charged else 0
            value = cost - multiplier * slope * way
            if move is None or value < move:
                move = value
        return _Best(stay, move)

    def _turning(self, j: int, state: _Interval, way: Fraction, *, up: bool) -> list[Fraction]:
        """Return the move of derivative 0, or on a grid those beside it, as far as they are in the interval."""
        if way <= 0:
            return []
        feature, hat = self.schema.features[j], Fraction(float(self.factual[self.schema.starts[j]]))
        assert isinstance(feature, Numeric)
        at = hat + way if up else hat - way
        if not state.low < at < state.high:
            return []
        if feature.step is None:
            return [at - hat]
        cells = Cells.of(feature, state.low, state.high, np.array([float(at)]))
        return [Fraction(float(v)) - hat for v in (*cells.high[:-1], *cells.low[1:]) if Fraction(float(v)) != hat]
