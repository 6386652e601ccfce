"""Pulling: a confirmed row is drawn back towards the factual, feature by feature, by the black box's own word.

Every move makes the row cheaper, keeps all demands and is confirmed. Moves of one feature are tried first: all the way
back, or a part of it (again and again, which is a bisection). When none is left, moves of two: one feature goes back, and
another one goes elsewhere in exchange.
"""

from __future__ import annotations

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


@dataclass(frozen=True, eq=False)
class Puller:
    """The local search of one question."""

    statement: Statement
    sampler: Sampler
    oracle: Oracle

    @property
    def tuning(self) -> Pulling:
        """The tuned numbers."""
        return self.statement.query.tuning.pulling

    def meets(self, rows: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows meet all demands but the goal, by the word of the user's own models."""
        good = np.ones(len(rows), dtype=np.bool_)
        for demand in self.statement.demands:
            if demand is not self.oracle.goal and good.any():
                good[good] = verified(demand, self.statement.query, rows[good])
        return good

    def cheapest(self, rows: FloatArray, below: float) -> tuple[FloatArray, float] | None:
        """Return the cheapest row that costs less, meets all demands and is confirmed."""
        if not len(rows):
            return None
        costs = self.statement.objective(rows)
        order = np.argsort(costs, kind="stable")
        rows, costs = rows[order], costs[order]
        rows, costs = rows[costs < below], costs[costs < below]
        good = self.meets(rows) if len(rows) else np.zeros(0, dtype=np.bool_)
        rows, costs = rows[good], costs[good]
        many = self.tuning.at_once
        for at in range(0, len(rows), many):
            if self.oracle.spent:
                return None
            found = np.flatnonzero(self.oracle.confirmed(rows[at : at + many]))
            if found.size:
                return rows[at + found[0]], float(costs[at + found[0]])
        return None

    def pull(self, u: FloatArray, cost: float, best: float = np.inf) -> tuple[FloatArray, float]:
        """Return the row that a confirmed one is drawn back to, and its cost.

        Exchanges are tried only where the row is not much dearer than the `best` that is known.
        """
        tuning = self.tuning
        for _ in range(tuning.rounds):
            found = self.cheapest(self._back(u), cost)
            if found is None or cost - found[1] < tuning.gain * cost:
                u, cost = (u, cost) if found is None else found
                near = cost < tuning.near * best
                found = self.cheapest(self._exchanged(u), (1.0 - tuning.gain) * cost) if near else None
            if found is None or self.oracle.spent:
                break
            u, cost = found
        return u, cost

    def refined(self, u: FloatArray, cost: float) -> tuple[FloatArray, float]:
        """Draw each changed number back as far as it goes, in steps of a tenth of what is left, again and again."""
        schema, factual = self.statement.query.schema, self.statement.query.factual
        for j in self._changed(u):
            if not isinstance(schema.features[j], Numeric):
                continue
            at, refused = schema.starts[j], float(factual[schema.starts[j]])
            for _ in range(self.tuning.digits):
                values = self._snapped(j, np.linspace(refused, u[at], 11)[1:-1])
                rows = np.repeat(u[None, :], len(values), axis=0)
                rows[:, at] = values
                found = self.cheapest(self.sampler.settled(rows), cost)
                width = abs(u[at] - refused) / 10.0
                if found is not None:
                    u, cost = found
                refused = u[at] - np.sign(u[at] - refused) * width
        return u, cost

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
            return self.sampler.values(j)
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
        return self.sampler.settled(np.vstack(rows))

    def _exchanged(self, u: FloatArray) -> FloatArray:
        """Return rows with one changed feature drawn back and another feature elsewhere."""
        schema, tuning = self.statement.query.schema, self.tuning
        one = [(j, v) for j in self._changed(u) for v in self._nearer(u, j, tuning.exchanged)]
        other = [(k, v) for k in self.sampler.free for v in self.sampler.values(k, tuning.values)]
        pairs = [(a, b) for a in range(len(one)) for b in range(len(other)) if one[a][0] != other[b][0]]
        if len(pairs) > tuning.exchanges:
            chosen = self.sampler.rng.choice(len(pairs), tuning.exchanges, replace=False)
            pairs = [pairs[i] for i in sorted(chosen)]
        rows = np.repeat(u[None, :], len(pairs), axis=0)
        for row, (a, b) in zip(rows, pairs, strict=True):
            row[schema.slice(one[a][0])] = one[a][1]
            row[schema.slice(other[b][0])] = other[b][1]
        return self.sampler.settled(rows)
