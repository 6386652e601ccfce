"""Sampling: rows that are worth putting to the black box, in the box of the demands and on the schema's grid and levels."""

from __future__ import annotations

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema
from ifonly.program.box import Box
from ifonly.question.statement import Statement

__all__ = ["Sampler"]


class Sampler:
    """Sampler of rows near the factual, between rows, and around a point; each is a row that could be returned."""

    def __init__(self, statement: Statement, rng: np.random.Generator) -> None:
        self.statement, self.rng = statement, rng
        self.query, self.box = statement.query, statement.box()
        self.schema: Schema = self.query.schema
        self.free = [j for j in range(len(self.schema)) if not self.box.is_fixed(j)]
        self.training = self.query.training.sample
        self._values: dict[tuple[int, int], FloatArray] = {}
        self.start = self.into_box(self.query.factual[None, :])[0]

    # -- rows that could be returned ------------------------------------------------------------------------------
    def into_box(self, rows: FloatArray) -> FloatArray:
        """Return rows moved into the box, feature by feature, with what follows from the rest, as they are stored."""
        return self.as_returned(_into_box(rows, self.box, self.query.factual))

    def as_returned(self, rows: FloatArray) -> FloatArray:
        """Return rows as they are stored, with consequences computed anew; those that leave the box are left out."""
        if not len(rows):
            return rows
        rows = self.schema.stored(self.statement.with_consequences(self.schema.stored(rows), by_model=True))
        rows = rows[self.box.contains(rows)]
        return np.unique(rows, axis=0) if len(rows) > 1 else rows

    # -- values of one feature ------------------------------------------------------------------------------------
    def values(self, j: int, most: int) -> FloatArray:
        """Return values of one feature in the box, as its entries in canonical rows; at most that many numbers."""
        if (j, most) not in self._values:
            self._values[j, most] = self._some_values(j, most)
        return self._values[j, most]

    def _some_values(self, j: int, most: int) -> FloatArray:
        feature = self.schema.features[j]
        if not isinstance(feature, Numeric):
            return np.eye(feature.width)[self.box.allowed[self.schema.slice(j)]]
        low, high = float(self.box.lower[j]), float(self.box.upper[j])
        step = feature.step
        if step is not None and (high - low) / step < most:
            return np.array([[feature.snap(v)] for v in np.arange(low, high + 0.5 * step, step)])
        seen = self.training[:, self.schema.starts[j]]
        seen = seen[(seen >= low) & (seen <= high)]
        shares = np.linspace(0.0, 1.0, min(self.query.tuning.observing.quantiles, most))
        quantiles = np.quantile(seen, shares) if len(seen) else np.empty(0)
        even = np.linspace(low, high, max(most - len(quantiles), 2))
        return np.unique([feature.snap(float(v)) for v in (*quantiles, *even)])[:, None]

    # -- rows -----------------------------------------------------------------------------------------------------
    def sweeps(self, u: FloatArray, most: int) -> FloatArray:
        """Return rows that differ from a row in one feature."""
        rows = [u[None, :]]
        for j in self.free:
            values = self.values(j, most)
            part = np.repeat(u[None, :], len(values), axis=0)
            part[:, self.schema.slice(j)] = values
            rows.append(part)
        return self.as_returned(np.vstack(rows))

    def mixtures(self, u: FloatArray, others: FloatArray, count: int) -> FloatArray:
        """Return rows that have some features of one row and the others of other rows; numbers may lie between both."""
        if not len(others):
            return np.empty((0, len(u)))
        rows = others[self.rng.integers(len(others), size=count)].copy()
        share = self.rng.uniform(size=count)
        for j in self.free:
            part = self.schema.slice(j)
            stay = self.rng.uniform(size=count) > share
            if isinstance(self.schema.features[j], Numeric):
                between = self.rng.uniform(size=count) ** 0.5
                moved = u[part.start] + between * (rows[:, part.start] - u[part.start])
                rows[:, part.start] = self._snapped(j, moved)
            rows[stay, part] = u[part]
        return self.into_box(rows)

    def around(self, u: FloatArray, count: int, size: float) -> FloatArray:
        """Return rows around a row: each of its features is moved in one of two rows, numbers by a share of their range."""
        rows = np.repeat(u[None, :], count, axis=0)
        tuning = self.query.tuning.observing
        for j in self.free:
            part, feature = self.schema.slice(j), self.schema.features[j]
            moved = self.rng.uniform(size=count) < max(tuning.moved, tuning.least_moved / len(self.free))
            if isinstance(feature, Numeric):
                span = float(self.box.upper[j] - self.box.lower[j])
                step = max(size * span, feature.step or 0.0)
                values = rows[moved, part.start] + step * self.rng.standard_normal(int(moved.sum()))
                rows[moved, part.start] = self._snapped(j, values)
            else:
                levels = np.eye(feature.width)[self.box.allowed[part]]
                if len(levels):
                    rows[moved, part] = levels[self.rng.integers(len(levels), size=int(moved.sum()))]
        return self.into_box(rows)

    def between(self, u: FloatArray, v: FloatArray, count: int) -> FloatArray:
        """Return rows on the way from one row to another: numbers a share of the way, levels switched at random."""
        share = np.linspace(0.0, 1.0, count)[:, None]
        rows = u + share * (v - u)
        for j in self.free:
            part = self.schema.slice(j)
            if isinstance(self.schema.features[j], Numeric):
                rows[:, part.start] = self._snapped(j, rows[:, part.start])
            else:
                there = self.rng.uniform(size=count) < share[:, 0]
                rows[there, part], rows[~there, part] = v[part], u[part]
        return self.into_box(rows)

    def _snapped(self, j: int, values: FloatArray) -> FloatArray:
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        return values if feature.precision is None else np.round(values, feature.precision)


def _into_box(rows: FloatArray, box: Box, factual: FloatArray) -> FloatArray:
    rows = np.array(rows, dtype=np.float64)
    for j, feature in enumerate(box.schema.features):
        part = box.schema.slice(j)
        if box.missing[j]:
            rows[:, part] = factual[part]
        elif isinstance(feature, Numeric):
            gaps = np.isnan(rows[:, part.start])
            rows[gaps, part.start] = factual[part.start]
            rows[:, part.start] = np.clip(rows[:, part.start], box.lower[j], box.upper[j])
        else:
            allowed = box.allowed[part]
            bad = (rows[:, part] @ allowed) < 0.5
            level = factual[part] if factual[part] @ allowed > 0 else np.eye(feature.width)[int(np.argmax(allowed))]
            rows[bad, part] = level
    return rows
