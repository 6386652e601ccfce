"""Neighbours of an optimum, nearer to the factual: points by which the proof of a solver is put to the test.

Two settings of one solver can be wrong together. A point that meets all demands and costs less than a proven bound shows it,
whoever proved the bound, and takes no solver: demands and costs have twins in NumPy. Tried are points with one changed
feature, or all of them at once, brought back: by one step of a grid, by shares of the way, or all the way; and other levels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.question.statement import Statement

__all__ = ["neighbours", "placed"]


def neighbours(statement: Statement, u: FloatArray) -> FloatArray:
    """Return the neighbours of a point, one per row, each once; those with the largest way back first."""
    query = statement.query
    changed = np.flatnonzero(query.changed(u[None, :])[0])
    free = [int(j) for j in changed if int(j) not in statement.exempt() and not _is_filled(statement, int(j))]
    rows = [trial for j in free for trial in _back(statement, u, j)]
    rows += list(_together(statement, u, free)) if len(free) > 1 else []
    if not rows:
        return np.empty((0, len(u)))
    _, first = np.unique(np.array(rows), axis=0, return_index=True)
    return np.array(rows)[np.sort(first)]


def _is_filled(statement: Statement, j: int) -> bool:
    """Whether a number takes the place of a missing one: there is no way back from it."""
    return bool(np.isnan(statement.query.factual[statement.query.schema.slice(j)]).any())


def _back(statement: Statement, u: FloatArray, j: int) -> Iterator[FloatArray]:
    """Yield the point with one feature brought back, or on another level."""
    schema, hat = statement.query.schema, statement.query.factual
    feature, part = schema.features[j], schema.slice(j)
    if not isinstance(feature, Numeric):
        for level in np.flatnonzero(u[part] < 0.5):
            yield placed(u, part, np.arange(feature.width) == level)
        return
    for value in _values(feature, float(u[part][0]), float(hat[part][0]), _shares(statement)):
        yield placed(u, part, value)


def _together(statement: Statement, u: FloatArray, changed: list[int]) -> Iterator[FloatArray]:
    """Yield the point with all changed numbers brought back by one step, and by shares of their way."""
    schema, hat = statement.query.schema, statement.query.factual
    numbers = [j for j in changed if isinstance(schema.features[j], Numeric)]
    shares = _shares(statement)
    for k in range(-1, len(shares)):
        out = u.copy()
        for j in numbers:
            feature, part = schema.features[j], schema.slice(j)
            assert isinstance(feature, Numeric)
            here, there = float(u[part][0]), float(hat[part][0])
            out[part] = _step(feature, here, there) if k < 0 else _share(feature, here, there, shares[k])
        yield out


def _shares(statement: Statement) -> list[float]:
    """Return shares of the way back, from all of it on, each half of the one before."""
    return [0.5**k for k in range(statement.query.tuning.answering.ways_back)]


def _values(feature: Numeric, here: float, there: float, shares: list[float]) -> Iterator[float]:
    for share in shares:
        yield _share(feature, here, there, share)
    yield _step(feature, here, there)


def _share(feature: Numeric, here: float, there: float, share: float) -> float:
    """Return a value some share of the way back, on the grid; all the way is the factual's own value, which may be off it."""
    return there if share == 1.0 else feature.snap(here + share * (there - here))


def _step(feature: Numeric, here: float, there: float) -> float:
    """Return the next value of the grid on the way back; without a grid, where it is."""
    if feature.step is None:
        return here
    return there if abs(there - here) <= feature.step else feature.snap(here + np.sign(there - here) * feature.step)


def placed(u: FloatArray, part: slice, values: float | FloatArray) -> FloatArray:
    """Return a point with other values in one part of it."""
    out = u.copy()
    out[part] = values
    return out
