"""Exhaustion: where numbers lie on grids and the best cost is small, all rows that cost less are put to the black box.

The values of one feature that cost less than the best row are few: feature by feature they are put together, and what
costs too much already is dropped. If no more rows are left than can be asked about, they are, the cheapest first.
"""

from __future__ import annotations

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.question.statement import Statement
from ifonly.tolerances import ROUNDING

__all__ = ["all_cheaper", "as_many"]


def all_cheaper(statement: Statement, box: Box, below: float, most: int) -> FloatArray | None:
    """Return all rows of a box that cost less, the cheapest first; None where they are too many, or cannot be listed.

    They can be listed where every number that is free to change lies on a grid and every cost belongs to a single feature.
    Demands between features are not looked at.
    """
    schema, factual = statement.query.schema, statement.query.factual
    if not statement.separable() or np.isnan(factual).any():
        return None
    rows, costs = factual[None, :].copy(), np.zeros(1)
    options: list[tuple[int, FloatArray, FloatArray]] = []
    for j in range(len(schema)):
        values = _values(statement, box, j, below, most)
        if values is None:
            return None
        options.append((j, *values))
    rest = sum(float(prices.min(initial=np.inf)) for _, _, prices in options)  # the least that all others cost
    for j, entries, prices in sorted(options, key=lambda option: len(option[1])):
        rest -= float(prices.min(initial=np.inf))
        order = np.argsort(prices, kind="stable")
        # Of each row, the values that it can pay for come first. They are counted before any is put together: a column of
        # amounts has tens of thousands. Rounding may let a row too many in; the whole cost decides at last.
        room = below - rest - costs + ROUNDING * below
        counts = np.searchsorted(prices[order], room, side="left")
        if counts.sum() > most:
            return None
        old = np.repeat(np.arange(len(costs)), counts)
        new = order[np.arange(len(old)) - np.repeat(np.cumsum(counts) - counts, counts)]
        rows, costs = rows[old], costs[old] + prices[new]
        rows[:, schema.slice(j)] = entries[new]
    costs = statement.objective(rows)
    order = np.argsort(costs, kind="stable")
    return np.asarray(rows[order[costs[order] < below]])


def as_many(statement: Statement, box: Box, below: float, most: int, halvings: int) -> FloatArray | None:
    """Return the cheapest rows of a box: all below some cost, about as many as can be asked about."""
    low, high, found = 0.0, below, None
    for _ in range(halvings if np.isfinite(below) else 0):
        middle = 0.5 * (low + high)
        rows = all_cheaper(statement, box, middle, most)
        if rows is None:
            high = middle
        else:
            found, low = rows, middle
    return found


def _values(statement: Statement, box: Box, j: int, below: float, most: int) -> tuple[FloatArray, FloatArray] | None:
    """Return the values of a feature that cost less by themselves, as canonical entries, and their costs; None: too many."""
    query, feature, part = statement.query, statement.query.schema.features[j], statement.query.schema.slice(j)
    if box.is_fixed(j) or box.missing[j]:
        entries = query.factual[None, part] if box.missing[j] else _only(box, j)
    elif not isinstance(feature, Numeric):
        entries = np.eye(feature.width)[box.allowed[part]]
    else:
        near = _on_grid(statement, box, j, below, most)
        if near is None:
            return None
        entries = near
    rows = np.repeat(query.factual[None, :], len(entries), axis=0)
    rows[:, part] = entries
    prices = statement.costs().per_feature(query, rows)[:, j]
    return entries[prices < below], prices[prices < below]


def _only(box: Box, j: int) -> FloatArray:
    part = box.schema.slice(j)
    if isinstance(box.schema.features[j], Numeric):
        return np.array([[box.lower[j]]])
    return box.allowed[None, part].astype(np.float64)


def _on_grid(statement: Statement, box: Box, j: int, below: float, most: int) -> FloatArray | None:
    """Return the values of a number on its grid that cost less; the factual's own, which may lie beside it, included."""
    feature, own = box.schema.features[j], float(statement.query.factual[box.schema.starts[j]])
    assert isinstance(feature, Numeric)
    low, high, step = float(box.lower[j]), float(box.upper[j]), feature.step
    rate = float(statement.costs().minorant[j])
    if step is None:
        return None
    if rate > 0.0:
        low, high = max(low, own - below / rate - step), min(high, own + below / rate + step)
    if not (high - low) / step < most:
        return None
    values = np.round(np.arange(np.floor(low / step), np.ceil(high / step) + 1) * step, feature.precision or 0)
    values = np.unique(np.append(values, own))
    return np.asarray(values[(values >= box.lower[j]) & (values <= box.upper[j])][:, None])
