"""Candidates: points that are looked at before a solver is asked whether some demands can be met together at all.

A solver's "infeasible" is a claim about points that nobody sees, and where a point lies at the very end of what a curve or a
column can reach, its tolerances may take it away. The factual, its moves to the ends of the box and a few training rows are
seen in no time; one of them that meets all demands settles the question.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.search.boxes.neighbours import placed

__all__ = ["first_candidate"]


def first_candidate(statement: Statement, box: Box) -> FloatArray | None:
    """Return a point of the box that meets all demands, by their twins; None: none of those that are tried does."""
    U = np.array(list(_tried(statement, box)))
    fine = box.contains(U)
    for demand in statement.demands:
        if not fine.any():
            return None
        some = U[fine]
        if isinstance(demand, Goal):
            fine[fine] = demand.clears(statement.form(some), statement.margin, statement.tie)
        else:
            fine[fine] = demand.holds(statement.query, some)
    return U[int(np.argmax(fine))] if fine.any() else None


def _tried(statement: Statement, box: Box) -> Iterator[FloatArray]:
    """Yield the factual in the box, with each feature at either end or on each level, and training rows in the box."""
    query = statement.query
    start = _inside(statement, box, query.factual)
    yield start
    for j, feature in enumerate(query.schema.features):
        part = query.schema.slice(j)
        if not isinstance(feature, Numeric):
            for level in np.flatnonzero(box.allowed[part]):
                yield placed(start, part, np.arange(feature.width) == level)
        elif not box.missing[j]:
            for end in (box.lower[j], box.upper[j]):
                if np.isfinite(end):
                    yield placed(start, part, end)
    sample = query.training.sample[: query.tuning.blame.rows]
    yield from (_inside(statement, box, row) for row in sample)


def _inside(statement: Statement, box: Box, u: FloatArray) -> FloatArray:
    """Return a point moved into the box: numbers to its nearest end, levels that are not allowed to the first that is."""
    schema, out = statement.query.schema, u.copy()
    for j, feature in enumerate(schema.features):
        part = schema.slice(j)
        if isinstance(feature, Numeric):
            value = statement.query.factual[part][0] if np.isnan(u[part][0]) else u[part][0]
            out[part] = np.nan if box.missing[j] else np.clip(value, box.lower[j], box.upper[j])
        elif not (box.allowed[part] & (u[part] > 0)).any() and box.allowed[part].any():
            out[part] = np.arange(feature.width) == np.flatnonzero(box.allowed[part])[0]
    return out
