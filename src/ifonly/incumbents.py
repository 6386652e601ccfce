"""Good points before any proof: scans of one and two features, and rows of the wanted outcome shrunk to the factual.

A point counts only if it meets every demand; what is found here bounds the optimum from above.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.box import Box
from ifonly.mip import FloatArray
from ifonly.models.linear import Linear
from ifonly.models.scan import Brackets, TreeScan
from ifonly.reduce import Options, Reducer
from ifonly.schema import Numeric

__all__ = ["Incumbents", "Known"]

_DUST = 1e-9
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Known:
    """A point that meets all demands, and its cost."""

    u: FloatArray
    cost: float


class Incumbents:
    """Searches a box for cheap points that meet all demands."""

    def __init__(self, reducer: Reducer, box: Box) -> None:
        self.reducer = reducer
        self.statement = reducer.statement
        self.query = reducer.query
        self.schema = reducer.schema
        self.box = box
        self.start = self._start()
        self.best: Known | None = None

    # -- entry points -------------------------------------------------------------------------------------------
    def quick(self, rows: int = 4) -> Known | None:
        """Look at single changes, at what the demands propose, and at a few rows of the wanted outcome."""
        self.offer(self.start)
        brackets = self.reducer.brackets
        for u in self._proposed():
            self.offer(u)
        if brackets is None:
            settled = self.best is not None and isinstance(self.reducer.form, Linear)
            for u in self._near_rows(0 if settled else rows):  # a linear program needs no second opinion
                self.offer(self._pulled(u))
            return self.best
        options = self.reducer.options(self.box)
        single = self._single_change(brackets, options)
        if single is not None:
            self.offer(single)
        for u in self._near_rows(rows):
            self.offer(self._shrunk(u, brackets, options))
        return self.best

    def thorough(self) -> Known | None:
        """Trade changes of two features against each other until no pair is cheaper."""
        brackets = self.reducer.brackets
        if brackets is None or self.best is None:
            return self.best
        options = self.reducer.options(self.box)
        pair = self._pair_change(brackets, options, self.best.cost)
        if pair is not None:
            self.offer(pair)
        improved = True
        while improved:
            before = self.best.cost
            self.offer(self._exchanged(self.best.u, brackets, options))
            improved = self.best.cost < before - _DUST
        return self.best

    def offer(self, u: FloatArray) -> None:
        """Keep a point, its consequences drawn, if it meets all demands and is cheaper than what is known."""
        u = self.statement.settled(u[None, :])[0]
        cost = float(self.statement.objective(u[None, :])[0])
        if (self.best is None or cost < self.best.cost) and self._meets_all(u):
            self.best = Known(u, cost)

    def accept(self, u: FloatArray) -> None:
        """Keep a point of the solver's, which meets all demands by construction, if it is cheaper."""
        cost = float(self.statement.objective(u[None, :])[0])
        if self.best is None or cost < self.best.cost:
            self.best = Known(u, cost)

    def _meets_all(self, u: FloatArray) -> bool:
        row = u[None, :]
        inside = bool(self.box.contains(row)[0])
        return inside and all(bool(d.holds(self.query, row)[0]) for d in self.statement.demands)

    # -- starting points ----------------------------------------------------------------------------------------
    def _start(self) -> FloatArray:
        """Return the factual, moved into the box where it lies outside."""
        u = self.query.factual.copy()
        for j, feature in enumerate(self.schema.features):
            part = self.schema.slice(j)
            if self.box.missing[j]:
                continue
            if isinstance(feature, Numeric):
                u[part] = self.box.lower[j] if np.isnan(u[part][0]) else np.clip(u[part], *self._ends(j))
            elif not u[part][self.box.allowed[part]].any():
                levels = np.flatnonzero(self.box.allowed[part])
                table = self.reducer.separable.level_costs(self.schema, j, self.query.factual)
                u[part] = np.eye(feature.width)[levels[np.argmin(table[levels])]]
        return u

    def _ends(self, j: int) -> tuple[float, float]:
        return float(self.box.lower[j]), float(self.box.upper[j])

    def _proposed(self) -> Iterator[FloatArray]:
        for demand in self.statement.demands:
            yield from demand.candidates(self.statement, self.box)

    def _near_rows(self, most: int) -> list[FloatArray]:
        """Return training rows with the wanted outcome, moved into the box, the cheapest few."""
        training, goal = self.query.training, self.reducer.goal
        good = training.sample[goal.holds_scores(training.sample_scores)]
        if not len(good) or not most:
            return []
        rows = self._into_box(good)
        nearest = np.argsort(self.statement.objective(rows), kind="stable")[: 4 * most]
        rows = rows[nearest]
        return list(rows[goal.holds(self.query, rows)][:most])

    def _into_box(self, rows: FloatArray) -> FloatArray:
        rows = rows.copy()
        looked_at = self.reducer.form.features()
        for j, feature in enumerate(self.schema.features):
            part = self.schema.slice(j)
            if self.box.missing[j] or j not in looked_at:
                rows[:, part] = self.start[part]
            elif isinstance(feature, Numeric):
                rows[:, part] = np.clip(rows[:, part], *self._ends(j))
            else:
                outside = ~((rows[:, part] > 0.5) & self.box.allowed[part]).any(axis=1)
                rows[outside, part] = self.start[part]
        return rows

    # -- any form -----------------------------------------------------------------------------------------------
    def _pulled(self, u: FloatArray) -> FloatArray:
        """Restore features one by one, dearest first, then pull the numeric rest towards the factual."""
        goal = self.reducer.goal
        u = u.copy()
        costs = self.reducer.separable.per_feature(self.query, u[None, :])[0]
        for j in np.argsort(-costs):
            part = self.schema.slice(int(j))
            trial = u.copy()
            trial[part] = self.start[part]
            if bool(goal.holds(self.query, trial[None, :])[0]):
                u = trial
        numeric = [self.schema.starts[j] for j, f in enumerate(self.schema.features) if isinstance(f, Numeric)]
        steps = np.linspace(0.0, 1.0, 65)[:-1]
        trials = np.repeat(u[None, :], len(steps), axis=0)
        trials[:, numeric] -= steps[:, None] * (u - self.start)[numeric]
        trials = self.schema.stored(trials)
        held = np.flatnonzero(goal.holds(self.query, trials))
        return trials[held[-1]] if held.size else u

    # -- trees --------------------------------------------------------------------------------------------------
    def _single_change(self, brackets: Brackets, options: dict[int, Options]) -> FloatArray | None:
        """Return the cheapest change of one feature that gives the wanted outcome."""
        scan = TreeScan(brackets, self.start)
        best: tuple[int, int] | None = None
        cost = np.inf
        for j, o in options.items():
            worth = int(np.searchsorted(o.costs, cost))
            if not worth:
                continue
            valid = _reached(scan.along(j, o.parts[:worth]))
            if valid.any():
                k = int(np.argmax(valid))
                best, cost = (j, k), float(o.costs[k])
        if best is None:
            return None
        u = self.start.copy()
        u[self.schema.slice(best[0])] = options[best[0]].parts[best[1]]
        return u

    def _pair_change(self, brackets: Brackets, options: dict[int, Options], below: float) -> FloatArray | None:
        """Return the cheapest change of two features that gives the wanted outcome for less than `below`."""
        scan = TreeScan(brackets, self.start)
        best: tuple[int, int, int, int] | None = None
        for (i, first), (j, second) in itertools.combinations(options.items(), 2):
            found = _cheapest_pair(scan, i, j, first, second, below)
            if found is not None:
                below, best = found[0], (i, found[1], j, found[2])
        if best is None:
            return None
        i, k, j, m = best
        u = self.start.copy()
        u[self.schema.slice(i)], u[self.schema.slice(j)] = options[i].parts[k], options[j].parts[m]
        return u

    def _shrunk(self, u: FloatArray, brackets: Brackets, options: dict[int, Options]) -> FloatArray:
        """Move feature by feature to the cheapest value that keeps the outcome, the largest gain first."""
        u = u.copy()
        now = self.reducer.separable.per_feature(self.query, u[None, :])[0]
        scan = TreeScan(brackets, u)
        while True:
            best: tuple[float, int, int] | None = None
            for j, o in options.items():
                cheaper = int(np.searchsorted(o.costs, now[j] - _DUST))
                if not cheaper or (best is not None and now[j] - o.costs[0] <= best[0]):
                    continue
                valid = _reached(scan.along(j, o.parts[:cheaper]))
                if valid.any():
                    k = int(np.argmax(valid))
                    gain = float(now[j] - o.costs[k])
                    if best is None or gain > best[0]:
                        best = (gain, j, k)
            if best is None:
                return u
            _, j, k = best
            u[self.schema.slice(j)] = options[j].parts[k]
            scan.move(j, options[j].parts[k])
            now[j] = options[j].costs[k]

    def _exchanged(self, u: FloatArray, brackets: Brackets, options: dict[int, Options]) -> FloatArray:
        """Return the point after the best joint change of two features, one of which is changed already."""
        now = self.reducer.separable.per_feature(self.query, u[None, :])[0]
        scan = TreeScan(brackets, u)
        best: tuple[float, tuple[int, int, int, int]] | None = None
        for i in (j for j in options if now[j] > 0):
            for j, second in options.items():
                if j == i or (now[j] > 0 and j < i):
                    continue
                paid = now[i] + now[j]
                gain_needed = _DUST if best is None else best[0]
                found = _cheapest_pair(scan, i, j, options[i], second, paid - gain_needed)
                if found is not None:
                    best = (paid - found[0], (i, found[1], j, found[2]))
        if best is None:
            return u
        i, k, j, m = best[1]
        u = u.copy()
        u[self.schema.slice(i)] = options[i].parts[k]
        u[self.schema.slice(j)] = options[j].parts[m]
        return self._shrunk(u, brackets, options)


def _reached(gaps: FloatArray) -> npt.NDArray[np.bool_]:
    return np.asarray((gaps >= -_TIE).all(axis=-1))


def _cheapest_pair(
    scan: TreeScan, i: int, j: int, first: Options, second: Options, below: float
) -> tuple[float, int, int] | None:
    """Return the cheapest pair of values that reaches the goal for less than `below`, if there is one."""
    a = int(np.searchsorted(first.costs, below))
    b = int(np.searchsorted(second.costs, below))
    if not a or not b:
        return None
    total = first.costs[:a, None] + second.costs[None, :b]
    if total[0, 0] >= below:
        return None
    valid = _reached(scan.along_pair(i, j, first.parts[:a], second.parts[:b])) & (total < below)
    if not valid.any():
        return None
    k, m = np.unravel_index(int(np.argmin(np.where(valid, total, np.inf))), total.shape)
    return float(total[k, m]), int(k), int(m)
