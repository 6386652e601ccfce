"""Candidates that obey the causal equations: one action and what follows, and rows of the data taken back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.question.feasible import feasible
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline

__all__ = ["acted"]


def acted(statement: Statement, box: Box, followers: frozenset[int], deadline: Deadline) -> Iterator[FloatArray]:
    """Yield points that meet all demands, found by acting on single features and by taking rows of the data back.

    Whatever is tried, what follows from it is computed anew before it is looked at.
    """
    free = [j for j in _looked_at(statement) if j not in followers and not box.is_fixed(j)]
    if np.isnan(statement.query.factual).any() or not free or deadline.passed:
        return
    rows = np.concatenate([_moves(statement, box, j) for j in free])
    rows = statement.with_consequences(rows)
    met = np.flatnonzero(_meets(statement, box, rows, deadline))
    if met.size:
        yield _closer(statement, box, rows[met[np.argmin(statement.objective(rows[met]))]], deadline)
    for u in _near(statement, box, free, deadline):
        yield _closer(statement, box, _taken_back(statement, box, u, free, deadline), deadline)


def _looked_at(statement: Statement) -> list[int]:
    features = set(statement.form.features())
    for demand in statement.demands:
        features |= demand.features(statement.query)
    return sorted(features)


def _meets(statement: Statement, box: Box, rows: FloatArray, deadline: Deadline) -> npt.NDArray[np.bool_]:
    return feasible(statement.demands, statement.query, box, rows, deadline)


def _moves(statement: Statement, box: Box, j: int) -> FloatArray:
    """Return the factual with other values of one feature: each level, each cell, or steps towards either end."""
    schema, factual = statement.query.schema, statement.query.factual
    feature, part, halvings = schema.features[j], schema.slice(j), statement.query.tuning.causes.halvings
    if not isinstance(feature, Numeric):
        values = np.eye(feature.width)[box.allowed[part]]
    else:
        hat, ends = float(factual[part][0]), (float(box.lower[j]), float(box.upper[j]))
        steps = [hat + (end - hat) * 0.5**k for end in ends for k in range(halvings)]
        cuts = statement.form.cuts().get(j, np.empty(0))
        points = np.concatenate([steps, Cells.of(feature, *ends, cuts).nearest(hat)])
        values = np.unique([feature.snap(float(v)) for v in np.clip(points, *ends)])[:, None]
    rows = np.repeat(factual[None, :], len(values), axis=0)
    rows[:, part] = values
    return rows


def _near(statement: Statement, box: Box, free: list[int], deadline: Deadline) -> list[FloatArray]:
    """Return the cheapest rows of the data that meet all demands once what cannot be acted on is as it must be."""
    if deadline.passed:
        return []
    query = statement.query
    schema, sample = query.schema, query.training.sample
    rows = np.repeat(query.factual[None, :], len(sample), axis=0)
    for j in free:
        part = schema.slice(j)
        if isinstance(schema.features[j], Numeric):
            rows[:, part] = np.clip(sample[:, part], box.lower[j], box.upper[j])
        else:
            allowed = (sample[:, part] > 0.5) @ box.allowed[part].astype(float) > 0.5
            rows[np.ix_(allowed, range(part.start, part.stop))] = sample[allowed, part]
    rows = statement.with_consequences(rows[~np.isnan(rows).any(axis=1)])
    rows = rows[_meets(statement, box, rows, deadline)]
    return list(rows[np.argsort(statement.objective(rows), kind="stable")[: query.tuning.causes.rows]])


def _taken_back(statement: Statement, box: Box, u: FloatArray, free: list[int], deadline: Deadline) -> FloatArray:
    """Undo actions one by one, the dearest first, as long as all demands are met."""
    query = statement.query
    costs = statement.costs().per_feature(query, u[None, :])[0]
    for j in sorted(free, key=lambda j: -costs[j]):
        trial = u.copy()
        trial[query.schema.slice(j)] = query.factual[query.schema.slice(j)]
        trial = statement.with_consequences(trial[None, :])
        if bool(_meets(statement, box, trial, deadline)[0]):
            u = trial[0]
    return u


def _closer(statement: Statement, box: Box, u: FloatArray, deadline: Deadline) -> FloatArray:
    """Pull the numbers of a point towards the factual, as far as all demands are met."""
    query = statement.query
    numeric = [query.schema.starts[j] for j in query.schema.numeric]
    near, far = 0.0, 1.0
    for _ in range(query.tuning.causes.halvings):
        if deadline.passed:
            return u
        middle = 0.5 * (near + far)
        trial = u.copy()
        trial[numeric] = query.factual[numeric] + middle * (u - query.factual)[numeric]
        trial = statement.with_consequences(query.schema.stored(trial)[None, :])
        near, far = (near, middle) if bool(_meets(statement, box, trial, deadline)[0]) else (middle, far)
    point = u.copy()
    point[numeric] = query.factual[numeric] + far * (u - query.factual)[numeric]
    pulled = statement.with_consequences(query.schema.stored(point)[None, :])
    both = np.concatenate([u[None, :], pulled])
    both = both[_meets(statement, box, both, deadline)]
    return both[np.argmin(statement.objective(both))] if len(both) else u
