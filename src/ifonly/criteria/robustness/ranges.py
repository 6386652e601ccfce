"""Ranges: the interval around one feature of an answer that keeps the outcome while the others stay.

Where a form only compares a feature with cuts, its cells are scanned. Otherwise the nearest flip on either side is the
optimum of a program with that feature alone: ``min |y_j - x_j|`` over all ``y_j`` at which the lead is lost. Both ends
are then confirmed by the models themselves. An end that cannot be computed in time is the answer's own value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.criteria.robustness.keeps_lead import KeepsLead, lead
from ifonly.data.schema import Numeric
from ifonly.models.form import Form
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.program.mip import Mip
from ifonly.program.variables import Variables
from ifonly.question.goal import Goal
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline
from ifonly.solvers.backend import Backend, Limits, Status
from ifonly.solvers.tangents import solve
from ifonly.tolerances import FEASIBILITY, PROGRAM_ROUNDINGS, ROUNDING

__all__ = ["safe_ranges"]

_MOST = FEASIBILITY  # and no more than this beyond rounding, so that a range ends where the outcome does


def safe_ranges(
    statement: Statement, u: FloatArray, backend: Backend, deadline: Deadline
) -> dict[str, tuple[float, float]]:
    """Return, per changed numeric feature of an answer, the lowest and highest value that keeps the outcome."""
    query = statement.query
    others = [d.goal for d in statement.demands if isinstance(d, KeepsLead) and d.goal is not query.goal]
    assert isinstance(query.goal, Goal)
    goals = [query.goal, *others]
    features = [
        j
        for j in map(int, np.flatnonzero(query.changed(u[None, :])[0]))
        if isinstance(query.schema.features[j], Numeric) and not np.isnan(u[query.schema.starts[j]])
    ]
    ends: list[tuple[int, float]] = []
    for j in features:
        low, high = zip(*(_interval(query, goal, u, j, backend, deadline) for goal in goals), strict=True)
        ends += [(query.schema.starts[j], max(low)), (query.schema.starts[j], min(high))]
    kept = _confirmed(query, goals, u, ends, deadline)
    return {query.schema.names[j]: (kept[2 * i], kept[2 * i + 1]) for i, j in enumerate(features)}


def _interval(
    query: Query, goal: Goal, u: FloatArray, j: int, backend: Backend, deadline: Deadline
) -> tuple[float, float]:
    """Return the interval of feature `j` that keeps one goal, by the form."""
    box, form = Box.of(query.schema, query.factual), goal.read.form
    value, low, high = float(u[query.schema.starts[j]]), float(box.lower[j]), float(box.upper[j])
    if j not in form.features():
        return low, high
    if deadline.passed:
        return value, value
    if j not in form.raw():
        feature = query.schema.features[j]
        assert isinstance(feature, Numeric)
        cells = Cells.of(feature, low, high, form.cuts().get(j, np.empty(0)))
        first, last = _run(goal.holds(query, _rows(u, query.schema.starts[j], cells.low)), int(cells.index(value)))
        return float(cells.low[first]), float(cells.high[last])
    if not goal.rows():
        points = np.unique([*np.linspace(low, high, query.tuning.ranges.samples), value])
        kept = goal.holds(query, _rows(u, query.schema.starts[j], points))
        first, last = _run(kept, int(np.searchsorted(points, value)))
        return float(points[first]), float(points[last])
    below, above = (_before_flip(query, goal, u, j, end, backend, deadline) for end in (low, high))
    return below, above


def _rows(u: FloatArray, at: int, values: FloatArray) -> FloatArray:
    rows = np.repeat(u[None, :], len(values), axis=0)
    rows[:, at] = values
    return rows


def _run(kept: npt.NDArray[np.bool_], home: int) -> tuple[int, int]:
    """Return the first and last position of the run of True values around `home`."""
    below, above = np.flatnonzero(~kept[:home]), np.flatnonzero(~kept[home + 1 :])
    return int(below[-1]) + 1 if below.size else 0, home + int(above[0]) if above.size else len(kept) - 1


def _before_flip(
    query: Query, goal: Goal, u: FloatArray, j: int, end: float, backend: Backend, deadline: Deadline
) -> float:
    """Return the value nearest to `end`, coming from the answer's, before which the lead is never lost."""
    value = float(u[query.schema.starts[j]])
    feature = query.schema.features[j]
    assert isinstance(feature, Numeric)
    own = float(lead(goal, goal.read.form(u[None, :]))[0])
    noise = goal.rounding(goal.read.form, Box.of(query.schema, query.factual))
    least = min(query.tuning.ranges.lead * own, _MOST * own + PROGRAM_ROUNDINGS * noise)
    if least <= 0 or end == value:
        return value
    side = 1.0 if end > value else -1.0
    for k in range(len(goal.rows())):
        flip = _nearest_flip(query, goal, u, j, (value, end), k, least, backend, deadline)
        if flip is not None:
            end = flip if feature.step is None else feature.snap(flip - side * feature.step)
        if (end - value) * side <= 0:
            return value
    return end


def _nearest_flip(
    query: Query,
    goal: Goal,
    u: FloatArray,
    j: int,
    span: tuple[float, float],
    k: int,
    least: float,
    backend: Backend,
    deadline: Deadline,
) -> float | None:
    """Return the nearest value in the span at which gap `k` is at most `least`, or None when there is none.

    Without time to find it, it is the answer's own value: nothing beyond that is known.
    """
    value, end = span
    form: Form = goal.read.form
    for _ in range(query.tuning.ranges.refinements):
        if deadline.passed:
            return value
        mip = Mip()
        x = Variables(mip, _only(query, u, j, min(span), max(span)), u, form.cuts(), form.raw())
        gap = goal.gaps(form.embed(mip, x), 0.0)[k]
        # the gap is lost: at most `least`
        mip.row(gap, upper=least)
        mip.minimise((x.raw(j) - value) * (1.0 if end > value else -1.0))
        limits = Limits(query.tuning.ranges.seconds, tuning=query.tuning)
        answer = solve(mip.arrays(), backend, limits.within(deadline.left()))
        if answer.status is Status.INFEASIBLE:
            return None
        if answer.values is None or answer.status is not Status.OPTIMAL:
            return value
        y = x.point(answer.values)
        finer = form.refined(y)
        if finer is None or float(lead(goal, goal.read.form(y[None, :]))[0]) <= 2.0 * least:
            return float(y[query.schema.starts[j]])
        form = finer
    return value


def _only(query: Query, u: FloatArray, j: int, low: float, high: float) -> Box:
    """Return the box in which only feature `j` is free, within an interval."""
    box = Box.of(query.schema, query.factual)
    for i, feature in enumerate(query.schema.features):
        part = u[query.schema.slice(i)]
        if not isinstance(feature, Numeric):
            box.missing[i] = not part.any()
            box.keep_levels(i, part > 0.5)
            continue
        box.missing[i] = bool(np.isnan(part[0]))
        box.lower[i], box.upper[i] = (low, high) if i == j else (part[0], part[0])
    return box


def _confirmed(
    query: Query, goals: Sequence[Goal], u: FloatArray, ends: Sequence[tuple[int, float]], deadline: Deadline
) -> list[float]:
    """Return each end, or the nearest value to it on the way back, that every model confirms."""
    if not ends:
        return []
    rows = np.vstack([_rows(u, at, np.array([end])) for at, end in ends])
    kept = _agreed(goals, query.schema.stored(rows))
    return [
        end if good else float(u[at]) if deadline.passed else _on_the_way_back(query, goals, u, at, end)
        for (at, end), good in zip(ends, kept, strict=True)
    ]


def _on_the_way_back(query: Query, goals: Sequence[Goal], u: FloatArray, at: int, end: float) -> float:
    inwards = np.array([0.0, *np.geomspace(ROUNDING, 1.0, query.tuning.ranges.inwards)])
    values = query.schema.stored(_rows(u, at, end + (u[at] - end) * inwards))
    kept = _agreed(goals, values)
    return float(values[int(np.argmax(kept)), at]) if kept.any() else float(u[at])


def _agreed(goals: Sequence[Goal], rows: FloatArray) -> npt.NDArray[np.bool_]:
    return np.asarray(np.logical_and.reduce([goal.confirmed(rows) for goal in goals]))
