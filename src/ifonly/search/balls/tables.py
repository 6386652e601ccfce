"""Tables of a robust search: the features that may move, and for each row of a goal its trees, their cells, and the ball.

Numbers on a grid are counted in whole steps, so that sums of steps are exact. For a number that the ball reaches by itself
(linf, or not at all) tables say from which centre on a cell is not touched any more: the least ``x`` with ``x - reach >
high`` as floats are subtracted, which is monotone, so one comparison with the table is as good as the subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric, Schema
from ifonly.models.abilities import Ensemble
from ifonly.models.forms.leaves import Leaves
from ifonly.models.forms.scan import Brackets
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Enclosed
from ifonly.tolerances import ON_GRID, ROUNDING, SPACING, STORED_ROUNDINGS

__all__ = ["MOST_LEVELS", "BallTables", "Units", "kind_of"]

REAL, SINGLE, WHOLE = range(3)
MOST_LEVELS = 64  # bits of a word
BoolArray = npt.NDArray[np.bool_]


def kind_of(feature: Numeric) -> int | None:
    """Return how the values of a number are kept: as float64, as float32, in whole steps; None: in another way."""
    if feature.step is not None:
        return WHOLE
    return {"f8": REAL, "f4": SINGLE}.get(feature.stored.str[1:])


@dataclass(frozen=True, eq=False)
class Units:
    """Units in which the kernel counts: steps of a grid, else the number itself."""

    schema: Schema

    def of(self, j: int, values: npt.ArrayLike) -> FloatArray:
        """Return values of a number in its unit; on a grid, whole."""
        precision = self._precision(j)
        given = np.asarray(values, dtype=np.float64)
        if precision is None:
            return given
        return np.rint(given * 10.0**precision if precision >= 0 else given / 10.0**-precision)

    def back(self, j: int, values: npt.ArrayLike) -> FloatArray:
        """Return the values that so many units are."""
        precision = self._precision(j)
        given = np.asarray(values, dtype=np.float64)
        if precision is None:
            return given
        return given / 10.0**precision if precision > 0 else given * 10.0**-precision

    def step(self, j: int) -> float:
        """Return the size of the unit."""
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        return feature.step or 1.0

    def is_grid(self, j: int) -> bool:
        """Whether a number lies on a grid."""
        return self._precision(j) is not None

    def _precision(self, j: int) -> int | None:
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        return feature.precision


@dataclass(frozen=True, eq=False)
class _Row:
    """One row of a goal that must hold all over a ball: the leaves that are open, their values, and the least sum."""

    ball: Enclosed
    outer: Box
    leaves: Leaves
    values: FloatArray
    least: float


class BallTables:
    """Tables of one question.

    Parameters
    ----------
    statement, box
        The question, and the box of centres.
    balls
        What is demanded all over which ball.
    start
        The point that has the values of all features that the trees do not look at.

    Attributes
    ----------
    numbers, categories
        The features that some tree looks at, and that may change.
    """

    def __init__(self, statement: Statement, box: Box, balls: Sequence[Enclosed], start: FloatArray) -> None:
        self.statement, self.box, self.start = statement, box, start
        self.schema = statement.query.schema
        self.units = Units(self.schema)
        self.rows = [row for ball in balls for row in self._rows(ball)]
        seen = sorted({j for row in self.rows for j in row.leaves.features})
        numeric = {j: isinstance(self.schema.features[j], Numeric) for j in seen}
        self.numbers = [j for j in seen if numeric[j]]
        self.categories = [j for j in seen if not numeric[j]]

    # -- features -----------------------------------------------------------------------------------------------
    def elsewhere(self) -> tuple[float, int]:
        """Return what all other features cost as the box demands them, and how many of them change."""
        query, looked = self.statement.query, [*self.numbers, *self.categories]
        fixed = self.start.copy()
        for j in looked:
            fixed[self.schema.slice(j)] = query.factual[self.schema.slice(j)]
        costs = self.statement.costs().per_feature(query, fixed[None, :])[0]
        costs[looked] = 0.0
        return float(costs.sum()), int(query.changed(fixed[None, :])[0].sum())

    def features(self) -> list[object]:
        """Return the tables of the features, in the order of the kernel."""
        query, costs, units = self.statement.query, self.statement.costs(), self.units
        hat = [float(units.of(j, query.factual[self.schema.starts[j]])) for j in self.numbers]
        step = np.array([units.step(j) for j in self.numbers])
        low = [float(units.of(j, self.box.lower[j])) for j in self.numbers]
        high = [float(units.of(j, self.box.upper[j])) for j in self.numbers]
        kinds = [kind_of(self.schema.features[j]) for j in self.numbers]  # type: ignore[arg-type]
        spans = [self.schema.slice(j) for j in self.categories]
        sizes = [span.stop - span.start for span in spans]
        entries = [costs.level_costs(self.schema, j, query.factual) for j in self.categories]
        home = [int(query.factual[span].argmax()) if query.factual[span].any() else -1 for span in spans]
        open_ = [_bits(self.box.allowed[span]) for span in spans]
        return [
            *(_as(np.float64, hat), _as(np.float64, costs.linear[self.numbers] * step)),
            *(_as(np.float64, costs.square[self.numbers] * step**2), _as(np.float64, costs.price[self.numbers])),
            *(_as(np.float64, low), _as(np.float64, high), _as(np.float64, self._push(hat))),
            *(_as(np.int32, kinds), _as(np.int32, _starts(sizes)), _as(np.int32, sizes), _as(np.int32, home)),
            *(_as(np.float64, np.concatenate(entries) if entries else ()), _as(np.uint64, open_)),
        ]

    def _push(self, hat: Sequence[float]) -> FloatArray:
        """Return how far an answer keeps away from where it would flip, so that its ball is safe whoever computes it."""
        out = np.zeros(len(self.numbers))
        for i, j in enumerate(self.numbers):
            if kind_of(self.schema.features[j]) != REAL:  # type: ignore[arg-type]
                continue
            reach = max(float(row.ball.reach[j]) for row in self.rows)
            cuts = [np.abs(row.leaves.cuts[j]).max(initial=0.0) for row in self.rows if j in row.leaves.cuts]
            out[i] = ROUNDING * reach + STORED_ROUNDINGS * SPACING * max(abs(hat[i]), reach, *cuts)
        return out

    # -- constraints --------------------------------------------------------------------------------------------
    def _rows(self, ball: Enclosed) -> list[_Row]:
        form = ball.form
        assert isinstance(form, Ensemble)
        brackets = Brackets(form, *ball.goal.matrix())
        outer = self._outer(ball)
        leaves = brackets.leaves.within(outer)
        values = brackets.values_of(leaves)
        return [
            _Row(ball, outer, leaves, own, ball.enough - float(constant))
            for own, constant in zip(values.T, brackets.constant, strict=True)
        ]

    def _outer(self, ball: Enclosed) -> Box:
        """Return the box of all points of all balls."""
        outer = ball.limits.copy()
        outer.allowed[:] &= self.box.allowed
        outer.missing[:] = self.box.missing
        for j in self.schema.numeric:
            if not self.box.missing[j]:
                reach = float(ball.reach[j])
                room = reach + self.units.step(j) if self.units.is_grid(j) else 2.0 * reach
                outer.narrow(j, float(self.box.lower[j]) - room, float(self.box.upper[j]) + room)
                outer.lower[j] = min(outer.lower[j], self.box.lower[j])
                outer.upper[j] = max(outer.upper[j], self.box.upper[j])
        return outer

    def constraints(self) -> list[list[object]]:
        """Return the tables of the rows, in the order of the kernel."""
        return [self._constraint(row) for row in self.rows]

    def _constraint(self, row: _Row) -> list[object]:
        n, leaves = len(self.numbers), len(row.leaves.node)
        cells = [self._cells(row, j) for j in self.numbers]
        begin, end = np.zeros((n, leaves), dtype=np.int32), np.zeros((n, leaves), dtype=np.int32)
        for k, (j, c) in enumerate(zip(self.numbers, cells, strict=True)):
            begin[k], end[k] = self._span(row, j, c)
        sets = [
            row.leaves.levels[:, self.schema.slice(j)] & self.box.allowed[self.schema.slice(j)] for j in self.categories
        ]
        some = np.asarray((begin <= end).all(axis=0)) if n else np.ones(leaves, dtype=np.bool_)
        for held in sets:
            some &= held.any(axis=1)
        order = np.lexsort((row.values, row.leaves.tree))
        order = order[some[order]]
        sizes = np.array([len(c.low) for c in cells], dtype=np.int64)
        asks = (begin[:, order] > 0) | (end[:, order] < sizes[:, None] - 1)
        at_leaf, at_number = np.nonzero(asks.T)
        full = [self.box.allowed[self.schema.slice(j)] for j in self.categories]
        limited = np.array([(held[order] != every).any(axis=1) for held, every in zip(sets, full, strict=True)])
        set_leaf, set_category = np.nonzero(limited.T) if len(limited) else (np.empty(0, int), np.empty(0, int))
        bits = [_bits(sets[c][order[i]]) for i, c in zip(set_leaf, set_category, strict=True)]
        tree = row.leaves.tree[order]
        ends = [self._ends(row, j, c) for j, c in zip(self.numbers, cells, strict=True)]
        flat = [np.concatenate(part) if part else np.empty(0) for part in zip(*ends, strict=True)] if ends else []
        low, high, up, down = flat or [np.empty(0)] * 4
        return [
            *(_as(np.float64, row.values[order]), _as(np.int32, np.cumsum(np.diff(tree, prepend=tree[:1]) != 0))),
            *(_as(np.int32, _first(at_leaf, len(order))), _as(np.int32, at_number)),
            *(_as(np.int32, begin[:, order].T[at_leaf, at_number]), _as(np.int32, end[:, order].T[at_leaf, at_number])),
            *(_as(np.int32, _first(set_leaf, len(order))), _as(np.int32, set_category), _as(np.uint64, bits)),
            *(_as(np.int32, _starts(sizes)), _as(np.int32, sizes), _as(np.float64, low), _as(np.float64, high)),
            *(_as(np.float64, up), _as(np.float64, down), _as(np.bool_, [self._is_hard(row, j) for j in self.numbers])),
            *(_as(np.float64, [self._reach(row, j) for j in self.numbers]), _as(np.float64, [row.least])),
        ]

    def _cells(self, row: _Row, j: int) -> Cells:
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        cuts = row.leaves.cuts.get(j, np.empty(0))
        return Cells.of(feature, float(row.outer.lower[j]), float(row.outer.upper[j]), cuts)

    def _span(self, row: _Row, j: int, cells: Cells) -> tuple[IntArray, IntArray]:
        """Return the first and the last cell that each leaf allows."""
        leaves = row.leaves
        if j not in leaves.cuts:
            return np.zeros(len(leaves.node), dtype=np.int64), np.full(len(leaves.node), len(cells.low) - 1)
        position = leaves.cuts[j].searchsorted(np.where(np.isfinite(cells.low), cells.low, cells.high), side="left")
        begin = position.searchsorted(leaves.low_of[j], side="right")
        end = position.searchsorted(leaves.high_of[j], side="right") - 1
        return begin.astype(np.int64), end.astype(np.int64)

    def _is_hard(self, row: _Row, j: int) -> bool:
        return row.ball.norm == "linf" or float(row.ball.reach[j]) == 0.0

    def _reach(self, row: _Row, j: int) -> float:
        """Return the half-axis in the number's unit; 1 where there is none, so that nothing is divided by 0."""
        reach = float(row.ball.reach[j]) / self.units.step(j)
        if row.ball.norm == "linf" and self.units.is_grid(j):
            reach = float(np.floor(reach + ON_GRID))
        return reach or 1.0

    def _ends(self, row: _Row, j: int, cells: Cells) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the ends of the cells, and the first and last centres that do not touch them, in the number's unit."""
        low, high = self.units.of(j, cells.low), self.units.of(j, cells.high)
        reach = self._reach(row, j) if row.ball.reach[j] else 0.0
        if self.units.is_grid(j) and float(row.ball.reach[j]) / self.units.step(j) + ON_GRID < 1.0:
            reach = 0.0  # not even one step
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        if not self._is_hard(row, j):
            up, down = np.full(len(low), np.inf), np.full(len(low), -np.inf)
        elif feature.step is not None:
            up, down = high + reach + 1.0, low - reach - 1.0
        else:
            up = feature.at_least(_beyond(high, reach))
            down = feature.at_most(-_beyond(-low, reach))
        return low, high, up, down


def _beyond(high: FloatArray, reach: float) -> FloatArray:
    """Return the least floats ``x`` with ``x - reach > high``, as floats are subtracted."""
    x = high + reach
    while (near := x - reach <= high).any():
        x = np.where(near, np.nextafter(x, np.inf), x)
    while (far := np.nextafter(x, -np.inf) - reach > high).any():
        x = np.where(far, np.nextafter(x, -np.inf), x)
    return x


def _bits(levels: BoolArray) -> int:
    return int(sum(1 << int(e) for e in np.flatnonzero(levels)))


def _starts(sizes: Sequence[int] | IntArray) -> IntArray:
    return np.cumsum([0, *sizes])[:-1].astype(np.int64)


def _first(leaf: IntArray, n: int) -> IntArray:
    """Return where the entries of each leaf begin, in a list that is ordered by leaves."""
    return np.searchsorted(leaf, np.arange(n + 1)).astype(np.int64)


def _as(dtype: type, table: object) -> object:
    return np.ascontiguousarray(np.asarray(table, dtype=dtype))
