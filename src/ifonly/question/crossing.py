"""Candidates that cross a goal: from a point near by, the cheapest change of one more feature that gets there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.question.query import Wanted
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline

__all__ = ["crossings"]


def crossings(
    goal: Wanted, statement: Statement, box: Box, starts: Iterable[FloatArray], deadline: Deadline
) -> Iterator[FloatArray]:
    """Yield, for each starting point, the cheapest point found that differs in one feature and meets the goal.

    A numeric feature is tried at the ends of its interval and at ever smaller steps around its value; between the last
    step that misses the goal and the first that meets it, the interval is then halved.
    """
    features = [j for j in sorted(statement.form.features()) if not box.is_fixed(j)]
    halvings = statement.query.tuning.asking.halvings
    for start in starts:
        if deadline.passed:
            return
        moves = [(j, u) for j in features for u in _moves(box, start, j, halvings)]
        rows = box.schema.stored(np.array([u for _, u in moves]).reshape(-1, box.schema.width))
        met = np.flatnonzero(goal.holds(statement.query, rows)) if len(rows) else np.empty(0, dtype=np.int64)
        if met.size:
            k = int(met[np.argmin(statement.objective(rows[met]))])
            yield _closer(goal, statement, start, rows[k], moves[k][0], deadline)


def _moves(box: Box, start: FloatArray, j: int, halvings: int) -> Iterator[FloatArray]:
    """Yield the point with other values of one feature."""
    part, feature = box.schema.slice(j), box.schema.features[j]
    if not isinstance(feature, Numeric):
        for level in np.flatnonzero(box.allowed[part]):
            yield _with(start, part, np.eye(feature.width)[level])
        return
    at = float(start[part][0])
    for end in (float(box.lower[j]), float(box.upper[j])):
        for k in range(halvings):
            value = feature.snap(at + (end - at) * 0.5**k)
            if value != at and box.lower[j] <= value <= box.upper[j]:
                yield _with(start, part, np.array([value]))


def _with(u: FloatArray, part: slice, values: FloatArray) -> FloatArray:
    out = u.copy()
    out[part] = values
    return out


def _closer(
    goal: Wanted, statement: Statement, start: FloatArray, found: FloatArray, j: int, deadline: Deadline
) -> FloatArray:
    """Move a numeric feature back towards where it was, as far as the goal allows."""
    schema = statement.query.schema
    feature, part = schema.features[j], schema.slice(j)
    if not isinstance(feature, Numeric):
        return found
    miss, best = float(start[part][0]), float(found[part][0])
    for _ in range(statement.query.tuning.asking.halvings):
        if deadline.passed:
            break
        trial = schema.stored(_with(found, part, np.array([0.5 * (miss + best)])))
        middle = float(trial[part][0])
        meets = bool(goal.holds(statement.query, trial[None, :])[0])
        miss, best = (miss, middle) if meets else (middle, best)
    closer = _with(found, part, np.array([best]))
    before, after = statement.objective(np.array([found, closer]))
    return closer if after < before else found
