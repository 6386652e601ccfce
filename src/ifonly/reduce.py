"""Make the problem small before it is solved: a good incumbent first, then only what can still beat it.

Every step is exact. A point that meets all demands and costs `U` is an upper bound; a feature whose change alone would
cost more than what `U` leaves it cannot be changed that far in a better answer, so the box shrinks, and with it the
cells, leaves, levels and units of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ifonly.box import Box
from ifonly.criteria import Costs
from ifonly.criteria.validity import Goal
from ifonly.mip import FloatArray
from ifonly.models.scan import TreeScan
from ifonly.models.trees import Trees
from ifonly.problem import Statement
from ifonly.schema import Numeric
from ifonly.variables import Cells

__all__ = ["Reducer"]

BoolArray = npt.NDArray[np.bool_]
_DUST = 1e-9


@dataclass(frozen=True, eq=False)
class Options:
    """The values of one feature worth looking at, cheapest first: its canonical parts and their costs."""

    parts: FloatArray
    costs: FloatArray


class Reducer:
    """Incumbents and cost boxes for one statement."""

    def __init__(self, statement: Statement, box: Box) -> None:
        self.statement = statement
        self.query = statement.query
        self.schema = statement.query.schema
        self.box = box
        self.form = statement.form
        goals = [d for d in statement.demands if isinstance(d, Goal)]
        self.goal = goals[0]

    # -- costs --------------------------------------------------------------------------------------------------
    @cached_property
    def costs(self) -> Costs:
        """Separable costs, plus what each feature alone adds to a coupled cost at the least."""
        total = self.statement.costs()
        for criterion in self.statement.criteria:
            bound = criterion.coupled_bound(self.query)
            if bound is not None:
                total = total + bound
        return total

    @cached_property
    def _forced(self) -> FloatArray:
        """The least each feature must cost in this box (0 unless the factual lies outside)."""
        costs = self.statement.costs()
        out = np.zeros(len(self.schema))
        for j, feature in enumerate(self.schema.features):
            hat = self.query.factual[self.schema.slice(j)]
            if self.box.missing[j]:
                continue
            if isinstance(feature, Numeric):
                if not np.isnan(hat[0]):
                    nearest = np.clip(hat, self.box.lower[j], self.box.upper[j])
                    out[j] = costs.numeric(j, nearest - hat)[0]
            else:
                table = costs.level_costs(self.schema, j, self.query.factual)
                out[j] = table[self.box.allowed[self.schema.slice(j)]].min()
        return out

    def within(self, budget: float) -> Box:
        """Return the box of all points that can cost at most `budget`."""
        box = self.box.copy()
        slack = budget - float(self._forced.sum())
        for j, feature in enumerate(self.schema.features):
            if box.missing[j]:
                continue
            left = slack + self._forced[j] + _DUST * max(1.0, abs(budget))
            if isinstance(feature, Numeric):
                hat = float(self.query.factual[self.schema.starts[j]])
                if not np.isnan(hat):
                    reach = self._reach(j, left)
                    box.narrow(j, hat - reach, hat + reach)
            else:
                table = self.costs.level_costs(self.schema, j, self.query.factual)
                box.keep_levels(j, table <= left)
        return box

    def _reach(self, j: int, budget: float) -> float:
        """Return how far numeric feature `j` can move for this much."""
        left = budget - self.costs.price[j]
        if left < 0:
            return 0.0
        a, b = float(self.costs.square[j]), float(self.costs.linear[j])
        if a == 0.0 and b == 0.0:
            return np.inf
        reach = left / b if a == 0.0 else (-b + np.sqrt(b * b + 4.0 * a * left)) / (2.0 * a)
        return float(reach * (1.0 + 1e-12) + 1e-12)

    # -- candidate values ---------------------------------------------------------------------------------------
    @cached_property
    def options(self) -> dict[int, Options]:
        """Per feature the model looks at: one value per cell (nearest to the factual) or per level, cheapest first."""
        costs = self.statement.costs()
        cuts = self.form.cuts()
        out = {}
        for j in sorted(self.form.features()):
            feature = self.schema.features[j]
            if self.box.missing[j]:
                continue
            if isinstance(feature, Numeric):
                hat = float(self.query.factual[self.schema.starts[j]])
                if np.isnan(hat) or j not in cuts:
                    continue
                low, high = float(self.box.lower[j]), float(self.box.upper[j])
                points = Cells.of(feature, low, high, cuts[j]).nearest(hat)
                price = costs.numeric(j, points - hat)
                parts = points[:, None]
            else:
                levels = np.flatnonzero(self.box.allowed[self.schema.slice(j)])
                price = costs.level_costs(self.schema, j, self.query.factual)[levels]
                parts = np.eye(feature.width)[levels]
            order = np.argsort(price, kind="stable")
            out[j] = Options(parts[order], price[order])
        return out

    # -- incumbents ---------------------------------------------------------------------------------------------
    def incumbent(self) -> tuple[FloatArray, float] | None:
        """Return the best point found by scans and by shrinking rows of the wanted outcome, and its cost."""
        best: tuple[FloatArray, float] | None = None
        for u in self._candidates():
            if not self._meets_all(u):
                continue
            cost = float(self.statement.objective(u[None, :])[0])
            if best is None or cost < best[1]:
                best = (u, cost)
        return best

    def _candidates(self) -> Iterator[FloatArray]:
        if isinstance(self.form, Trees):
            yield from self._single_changes()
            for u in self._near_rows(6):
                yield self._shrunk(u)
        else:
            yield from self._near_rows(6)

    def _meets_all(self, u: FloatArray) -> bool:
        row = u[None, :]
        if not bool(self.box.contains(row)[0]):
            return False
        return all(bool(d.holds(self.query, row)[0]) for d in self.statement.demands)

    @cached_property
    def _start(self) -> FloatArray:
        """The factual, moved into the box where it lies outside."""
        u = self.query.factual.copy()
        for j, feature in enumerate(self.schema.features):
            part = self.schema.slice(j)
            if self.box.missing[j]:
                continue
            if isinstance(feature, Numeric):
                u[part] = np.clip(u[part], self.box.lower[j], self.box.upper[j])
                if np.isnan(u[part][0]):
                    u[part] = self.box.lower[j]
            elif not u[part][self.box.allowed[part]].any():
                levels = np.flatnonzero(self.box.allowed[part])
                table = self.statement.costs().level_costs(self.schema, j, self.query.factual)
                u[part] = np.eye(feature.width)[levels[np.argmin(table[levels])]]
        return u

    def _single_changes(self) -> Iterator[FloatArray]:
        """The cheapest change of one feature that gives the wanted outcome."""
        assert isinstance(self.form, Trees)
        scan = TreeScan(self.form, self._start)
        best, cost = None, np.inf
        for j, options in self.options.items():
            worth = options.costs < cost
            if not worth.any():
                continue
            valid = self.goal.holds_scores(scan.along(j, options.parts[worth]))
            if valid.any():
                k = int(np.argmax(valid))
                best, cost = (j, k), float(options.costs[k])
        if best is not None:
            u = self._start.copy()
            u[self.schema.slice(best[0])] = self.options[best[0]].parts[best[1]]
            yield u

    def _near_rows(self, most: int) -> list[FloatArray]:
        """Return training rows with the wanted outcome, moved into the box, the cheapest few."""
        U = self.query.training.sample
        good = U[self.goal.holds_scores(self.query.training.sample_scores)]
        if not len(good):
            return []
        rows = self._into_box(good)
        price = self.statement.objective(rows)
        nearest = np.argsort(price, kind="stable")[: 4 * most]
        rows = rows[nearest]
        return list(rows[self.goal.holds(self.query, rows)][:most])

    def _into_box(self, rows: FloatArray) -> FloatArray:
        rows = rows.copy()
        model_features = self.form.features()
        for j, feature in enumerate(self.schema.features):
            part = self.schema.slice(j)
            if self.box.missing[j] or j not in model_features:
                rows[:, part] = self._start[part]
            elif isinstance(feature, Numeric):
                rows[:, part] = np.clip(rows[:, part], self.box.lower[j], self.box.upper[j])
            else:
                outside = ~((rows[:, part] > 0.5) & self.box.allowed[part]).any(axis=1)
                rows[np.ix_(outside, range(part.start, part.stop))] = self._start[part]
        return rows

    def _shrunk(self, u: FloatArray) -> FloatArray:
        """Return the point after moving feature by feature to the cheapest value that keeps the outcome."""
        assert isinstance(self.form, Trees)
        u = u.copy()
        now = self.statement.costs().per_feature(self.query, u[None, :])[0]
        while True:
            scan = TreeScan(self.form, u)
            best: tuple[float, int, int] | None = None
            for j, options in self.options.items():
                cheaper = int(np.searchsorted(options.costs, now[j] - _DUST))
                if not cheaper:
                    continue
                valid = self.goal.holds_scores(scan.along(j, options.parts[:cheaper]))
                if valid.any():
                    k = int(np.argmax(valid))
                    gain = float(now[j] - options.costs[k])
                    if best is None or gain > best[0]:
                        best = (gain, j, k)
            if best is None:
                return u
            _, j, k = best
            u[self.schema.slice(j)] = self.options[j].parts[k]
            now[j] = self.options[j].costs[k]
