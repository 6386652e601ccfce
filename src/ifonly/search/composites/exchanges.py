"""Exchanges of changes: features move to cheaper cells or levels one at a time, then in pairs, while the goal holds.

A point is a cell per number and a level per category. A leaf is excluded by the features that lie outside of it; those that
one feature alone excludes are the leaves that a change of it can reach. So the scores of all changes of a feature are a
product of two tables, and those of all changes of two features a product of three.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.runtime.deadline import Deadline
from ifonly.search.composites.tables import Tables
from ifonly.tolerances import DUST

__all__ = ["Exchanges"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(eq=False)
class _Held:
    """A point: the option of each feature, what it costs, which leaves lie outside of it, and its linear scores."""

    options: IntArray
    cost: FloatArray
    outside: BoolArray
    lines: FloatArray
    numbers: FloatArray

    @property
    def total(self) -> float:
        """Cost of all options together."""
        return float(self.cost.sum())


class Exchanges:
    """Local search for cheaper points that meet rows ``rows @ scores + constant >= 0``."""

    def __init__(self, tables: Tables, rows: FloatArray, constant: FloatArray) -> None:
        self.tables, self.free, self.rows, self.constant = tables, tables.free, rows, constant
        free, enclosure = tables.free, tables.enclosure
        spans = list(pairwise(np.append(free.first, len(free.owner))))
        cells = list(zip(tables.first, tables.size, strict=True))
        # of each feature: what its options cost, which leaves they are in, and what they add to linear scores
        self.costs = [tables.cost[a : a + n] for a, n in cells] + [free.level_cost[a:b] for a, b in spans]
        each = [np.arange(n)[:, None] for n in tables.size]
        self.holds = [(tables.begin[k] <= at) & (at <= tables.end[k]) for k, at in enumerate(each)]
        self.holds += [tables.holds[a:b] for a, b in spans]
        self.values = np.zeros((tables.n_leaves, enclosure.n_places))
        self.base = np.zeros(enclosure.n_places)
        for i, atom in enumerate(tables.trees):
            self.values[int(tables.ends[i]) : int(tables.ends[i + 1]), atom.place] = tables.values[i]
            self.base[atom.place] = tables.base[i]
        self.weights = np.zeros((enclosure.n_places, tables.n_free))
        for atom, weight, shift in zip(tables.linear, tables.weights, tables.shift, strict=True):
            self.weights[atom.place], self.base[atom.place] = weight, shift
        self.lines = [tables.near[a : a + n, None] * self.weights[:, k] for k, (a, n) in enumerate(cells)]
        self.lines += [self.weights[:, free.n_numbers + a : free.n_numbers + b].T for a, b in spans]

    # -- points --------------------------------------------------------------------------------------------------
    def held(self, u: FloatArray) -> _Held:
        """Return a canonical vector as options, its numbers as they are."""
        at, tables, free = self.tables.places, self.tables, self.free
        x, options = u[at.places] - free.origin, []
        for k, (a, n) in enumerate(zip(tables.first, tables.size, strict=True)):
            options.append(min(int(tables.high[a : a + n].searchsorted(x[k], side="left")), int(n) - 1))
        for a, b in pairwise(np.append(free.first, len(free.owner))):
            options.append(int(u[at.entries[a:b]].argmax()))
        out = self._held(np.array(options, dtype=np.int64))
        n = free.n_numbers
        out.cost[:n], out.lines[:n] = free.cost(np.abs(x - free.home)), x[:, None] * self.weights.T[:n]
        out.numbers[:] = u[at.places]
        return out

    def _held(self, options: IntArray) -> _Held:
        each = list(enumerate(options))
        return _Held(
            options,
            np.array([self.costs[f][o] for f, o in each], dtype=np.float64),
            np.array([~self.holds[f][o] for f, o in each], dtype=np.bool_).reshape(len(each), len(self.values)),
            np.array([self.lines[f][o] for f, o in each]).reshape(len(each), len(self.base)),
            self.tables.value[self.tables.first + options[: self.free.n_numbers]],
        )

    def point(self, held: _Held, start: FloatArray) -> FloatArray:
        """Return the canonical vector of a point."""
        levels = (self.free.first + held.options[self.free.n_numbers :])[None]
        return np.asarray(self.tables.points(start, held.numbers[None], levels)[0])

    def _move(self, held: _Held, f: int, o: int) -> None:
        held.options[f], held.cost[f] = o, self.costs[f][o]
        held.outside[f], held.lines[f] = ~self.holds[f][o], self.lines[f][o]
        if f < self.free.n_numbers:
            held.numbers[f] = self.tables.value[self.tables.first[f] + o]

    def _met(self, scores: FloatArray) -> BoolArray:
        """Say which scores of the atoms meet the goal."""
        low, high = self.tables.enclosure.bounds(scores, scores)
        out = 0.5 * (low + high)[:, self.tables.enclosure.out]
        return np.asarray((out @ self.rows.T + self.constant >= 0.0).all(axis=1))

    # -- moves ---------------------------------------------------------------------------------------------------
    def shrunk(self, held: _Held, deadline: Deadline) -> _Held | None:
        """Move feature by feature to the cheapest option that keeps the goal, the largest gain first; None: it is not met."""
        here = self.values[~held.outside.any(axis=0)].sum(axis=0) + held.lines.sum(axis=0) + self.base
        if not self._met(here[None])[0]:
            return None
        while not deadline.passed:
            count, lines = held.outside.sum(axis=0), held.lines.sum(axis=0) + self.base
            gains, tables = [], []
            for f, costs in enumerate(self.costs):
                cheaper = np.flatnonzero(costs < held.cost[f] - DUST)
                if cheaper.size:
                    leaf = np.flatnonzero(count == held.outside[f])
                    table = self.holds[f][cheaper][:, leaf] @ self.values[leaf]
                    tables.append(table + self.lines[f][cheaper] + (lines - held.lines[f]))
                    gains += [(float(held.cost[f] - costs[o]), f, int(o)) for o in cheaper]
            met = self._met(np.concatenate(tables)) if tables else ()
            best = max((gain for gain, good in zip(gains, met, strict=True) if good), default=None)
            if best is None:
                break
            self._move(held, best[1], best[2])
        return held

    def exchanged(self, held: _Held, deadline: Deadline) -> _Held:
        """Change one feature further to bring another one home, all pairs of options at once, until no pair is cheaper."""
        while not deadline.passed:
            pair = self._best_pair(held, deadline)
            if pair is None:
                break
            for f, o in pair:
                self._move(held, f, o)
            self.shrunk(held, deadline)
        return held

    def _best_pair(self, held: _Held, deadline: Deadline) -> tuple[tuple[int, int], ...] | None:
        """Return the two changes that save most."""
        least, best = DUST, None
        paying = [f for f, paid in enumerate(held.cost) if paid > self.costs[f].min() + DUST]
        for i in paying:
            for j in range(len(held.cost)):
                if j == i or (j in paying and j < i) or deadline.passed:
                    continue
                found = self._pair(held, i, j, least)
                if found is not None:
                    least, best = found[0], found[1:]
        return best

    def _pair(self, held: _Held, i: int, j: int, least: float) -> tuple[float, tuple[int, int], tuple[int, int]] | None:
        """Return the changes of two features that save most, if that is more than the `least`."""
        saved = held.cost[i] + held.cost[j] - (self.costs[i][:, None] + self.costs[j])
        first, second = np.flatnonzero((saved > least).any(axis=1)), np.flatnonzero((saved > least).any(axis=0))
        if not first.size:
            return None
        count = held.outside.sum(axis=0)
        leaf = np.flatnonzero(count == held.outside[i].astype(np.int64) + held.outside[j])
        left, right = self.holds[i][np.ix_(first, leaf)], self.holds[j][np.ix_(second, leaf)].astype(np.float64)
        rest = held.lines.sum(axis=0) - held.lines[i] - held.lines[j] + self.base
        gain = saved[np.ix_(first, second)]
        a, b = np.nonzero(gain > least)
        order = np.argsort(-gain[a, b], kind="stable")
        a, b = a[order], b[order]
        scores = np.stack([(left * value) @ right.T for value in self.values[leaf].T], axis=2)[a, b]
        scores += self.lines[i][first[a]] + self.lines[j][second[b]] + rest
        met = np.flatnonzero(self._met(scores))
        if not met.size:
            return None
        k = int(met[0])
        return float(gain[a[k], b[k]]), (i, int(first[a[k]])), (j, int(second[b[k]]))
