"""Repair of a point on the very edge of its outcome: a little further from the factual, until the model itself agrees.

A program that asks for nothing beyond the threshold has its optimum on the threshold, where the model's own rounding decides.
Along the line from the factual through that point, continuous numbers move on by a small share of what they have moved
already, and no further than their ranges; the first point that the model confirms costs next to nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.runtime.tuning import Answering

__all__ = ["nudged"]


def _shares(tuning: Answering) -> FloatArray:
    """Return the shares of the way that are tried, powers of one half with as many between them as was chosen."""
    n = max(tuning.nudges, 1)
    return np.asarray(2.0 ** (np.arange(-n * tuning.least_nudge, 1 - n * tuning.largest_nudge) / n))


def nudged(statement: Statement, goal: Goal, u: FloatArray) -> Iterator[FloatArray]:
    """Yield points beyond `u`, the nearest first, that the model confirms and that keep all demands."""
    query, box = statement.query, statement.box()
    schema = query.schema
    free = [j for j, f in enumerate(schema.features) if isinstance(f, Numeric) and f.step is None]
    at = np.array([schema.starts[j] for j in free], dtype=np.intp)
    move = np.nan_to_num(u - query.factual)[at]
    if not move.any():
        return
    shares = _shares(query.tuning.answering)
    rows = np.repeat(u[None, :], len(shares), axis=0)
    # the end of a range may be the one point that is left
    rows[:, at] = np.clip(rows[:, at] + shares[:, None] * move, box.lower[free], box.upper[free])
    rows = schema.stored(rows)
    good = box.contains(rows)
    for demand in statement.demands:
        if good.any():
            good[good] = goal.confirmed(rows[good]) if demand is goal else demand.holds(query, rows[good])
    yield from rows[good]
