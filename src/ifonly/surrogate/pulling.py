"""Pulling: confirmed rows are drawn back towards the factual, feature by feature, by the black box's own word.

Every move makes a row cheaper, keeps all demands and is confirmed. Moves of one feature are tried first: all the way
back, or a part of it (again and again, which is a bisection). When none is left, moves of two: one feature goes back, and
another one goes elsewhere in exchange. Several rows are drawn at once, so that the black box is asked seldom, and about many
rows at a time: a call through a pipeline costs as much as some hundred rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.question.abilities import verified
from ifonly.question.statement import Statement
from ifonly.runtime.tuning import Pulling
from ifonly.surrogate.oracle import Oracle
from ifonly.surrogate.sampling import Sampler

__all__ = ["Puller"]

Priced = tuple[FloatArray, float]


@dataclass(frozen=True, eq=False)
class Puller:
    """The local search of one question."""

    statement: Statement
    sampler: Sampler
    oracle: Oracle

    @property
    def tuning(self) -> Pulling:
        """The numbers that it goes by."""
        return self.statement.query.tuning.pulling

    def meets(self, rows: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows meet all demands but the goal, by the word of the user's own models."""
        good = np.ones(len(rows), dtype=np.bool_)
        for demand in self.statement.demands:
            if demand is not self.oracle.goal and good.any():
                good[good] = verified(demand, self.statement.query, rows[good])
        return good

    def cheapest(self, rows: FloatArray, below: float) -> Priced | None:
        """Return the cheapest row that costs less, meets all demands and is confirmed."""
        rows, costs = self._worthwhile(rows, below)
        at = 0
        while at < len(rows) and not self.oracle.spent:
            size = self.oracle.piece
            found = np.flatnonzero(self.oracle.confirmed(rows[at : at + size]))
            if found.size:
                return rows[at + found[0]], float(costs[at + found[0]])
            at += size
        return None

    def _worthwhile(self, rows: FloatArray, below: float) -> tuple[FloatArray, FloatArray]:
        """Return the rows that cost less and meet all demands, the cheapest first, and their costs."""
        if not len(rows):
            return rows, np.empty(0)
        costs = self.statement.objective(rows)
        order = np.argsort(costs, kind="stable")
        order = order[costs[order] < below]
        order = order[self.meets(rows[order])] if len(order) else order
        return rows[order], costs[order]

    # -- drawing back -----------------------------------------------------------------------------------------------
    def pull(self, rows: Iterable[FloatArray]) -> list[Priced]:
        """Return what confirmed rows are drawn back to, one feature after the other, the cheapest first."""
        drawn: list[Priced] = [(u, float(self.statement.objective(u[None, :])[0])) for u in rows]
        moving = list(range(len(drawn)))
        for _ in range(self.tuning.rounds):
            if not moving or self.oracle.spent:
                break
            still = []
            for i, found in zip(moving, self._drawn([drawn[i] for i in moving]), strict=True):
                if found is not None:
                    still += [i] if drawn[i][1] - found[1] >= self.tuning.gain * drawn[i][1] else []
                    drawn[i] = found
            moving = still
        return sorted(drawn, key=lambda d: d[1])

    def _drawn(self, priced: list[Priced]) -> list[Priced | None]:
        """Return for each row the cheapest confirmed one that lies one move nearer; all are asked about at once."""
        nearer = [self._worthwhile(self._back(u), cost) for u, cost in priced]
        good = self.oracle.confirmed(np.vstack([rows for rows, _ in nearer]))
        out: list[Priced | None] = []
        at = 0
        for rows, costs in nearer:
            found = np.flatnonzero(good[at : at + len(rows)])
            out.append((rows[found[0]], float(costs[found[0]])) if found.size else None)
            at += len(rows)
        return out

    def exchange(self, u: FloatArray, cost: float) -> Priced:
        """Return the row that a confirmed one leads to when features are exchanged, and drawn back, in turn."""
        for _ in range(self.tuning.rounds):
            found = self.cheapest(self._exchanged(u), (1.0 - self.tuning.gain) * cost)
            if found is None:
                break
            u, cost = self.pull([found[0]])[0]
        return u, cost

    def refined(self, u: FloatArray, cost: float) -> Priced:
        """Draw each changed number back as far as it goes, in small steps of what is left, again and again."""
        schema, factual = self.statement.query.schema, self.statement.query.factual
        for j in self._changed(u):
            if not isinstance(schema.features[j], Numeric):
                continue
            at, refused = schema.starts[j], float(factual[schema.starts[j]])
            for _ in range(self.tuning.times):
                values = self._snapped(j, np.linspace(refused, u[at], self.tuning.parts + 1)[1:-1])
                rows = np.repeat(u[None, :], len(values), axis=0)
                rows[:, at] = values
                found = self.cheapest(self.sampler.as_returned(rows), cost)
                width = abs(u[at] - refused) / self.tuning.parts
                if found is not None:
                    u, cost = found
                refused = u[at] - np.sign(u[at] - refused) * width
        return u, cost

    # -- moves ------------------------------------------------------------------------------------------------------
    def _snapped(self, j: int, values: FloatArray) -> FloatArray:
        feature = self.statement.query.schema.features[j]
        assert isinstance(feature, Numeric)
        return np.array([feature.snap(float(v)) for v in values])

    def _changed(self, u: FloatArray) -> list[int]:
        return [int(j) for j in np.flatnonzero(self.statement.query.changed(u[None, :])[0]) if j in self.sampler.free]

    def _nearer(self, u: FloatArray, j: int, shares: tuple[float, ...]) -> FloatArray:
        """Return values of one feature that are nearer to the factual's than the row's own."""
        schema, factual = self.statement.query.schema, self.statement.query.factual
        part, feature = schema.slice(j), schema.features[j]
        if not isinstance(feature, Numeric):
            return self.sampler.values(j, self.statement.query.tuning.observing.sweep)
        start, end = float(factual[part.start]), float(u[part.start])
        step = feature.step
        if step is not None and abs(end - start) / step <= len(shares):
            count = round(abs(end - start) / step)
            values = [start + np.sign(end - start) * k * step for k in range(count)]
        else:
            values = [start + share * (end - start) for share in shares]
        return np.unique([feature.snap(v) for v in values])[:, None]

    def _back(self, u: FloatArray) -> FloatArray:
        """Return rows with one changed feature drawn back, and rows with all numbers drawn back at once."""
        schema, factual = self.statement.query.schema, self.statement.query.factual
        rows = [u[None, :]]
        changed = self._changed(u)
        for j in changed:
            values = self._nearer(u, j, self.tuning.shares)
            part = np.repeat(u[None, :], len(values), axis=0)
            part[:, schema.slice(j)] = values
            rows.append(part)
        numbers = [schema.starts[j] for j in changed if isinstance(schema.features[j], Numeric)]
        if len(numbers) > 1:
            part = np.repeat(u[None, :], len(self.tuning.shares), axis=0)
            part[:, numbers] = factual[numbers] + np.array(self.tuning.shares)[:, None] * (
                u[numbers] - factual[numbers]
            )
            rows.append(part)
        return self.sampler.as_returned(np.vstack(rows))

    def _exchanged(self, u: FloatArray) -> FloatArray:
        """Return rows with one changed feature drawn back and another feature elsewhere."""
        schema = self.statement.query.schema
        one = [(j, v) for j in self._changed(u) for v in self._nearer(u, j, self.tuning.exchanged)]
        other = [(k, v) for k in self.sampler.free for v in self.sampler.values(k, self.tuning.values)]
        pairs = [(a, b) for a in range(len(one)) for b in range(len(other)) if one[a][0] != other[b][0]]
        if len(pairs) > self.tuning.exchanges:
            chosen = self.sampler.rng.choice(len(pairs), self.tuning.exchanges, replace=False)
            pairs = [pairs[i] for i in sorted(chosen)]
        rows = np.repeat(u[None, :], len(pairs), axis=0)
        for row, (a, b) in zip(rows, pairs, strict=True):
            row[schema.slice(one[a][0])] = one[a][1]
            row[schema.slice(other[b][0])] = other[b][1]
        return self.sampler.as_returned(rows)
