"""Candidates in a hull before any proof: its cheapest point, and from there towards rows of the wanted outcome.

Any point between two points of a hull is in it, so the line from the cheapest point to a row that has the wanted outcome
reaches the outcome inside the hull. Around such a point trees say the same on a whole box; a linear program finds the
cheapest point of the hull in that box, and the walk goes on over the edge of the box that stops it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.criteria.manifold.hull import Costing, Hull, Slice
from ifonly.data.schema import Numeric
from ifonly.models.abilities import Ensemble
from ifonly.program.box import Box
from ifonly.question.goal import Goal
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline
from ifonly.tolerances import AT_AN_EDGE, DUST, ROUNDING
from ifonly.tolerances import DUST as _BETTER
from ifonly.tolerances import FEASIBILITY as _ON_GRID

__all__ = ["Seeker", "costing_of", "ends_of"]


def costing_of(statement: Statement, hull: Hull) -> Costing:
    """Return what moving the coordinates of a hull costs at least, in its units; categories are charged elsewhere."""
    query, costs = statement.query, statement.costs()
    rates = costs.minorant
    out = {name: np.zeros(len(hull.entries)) for name in ("linear", "square", "price")}
    for i, j in numeric_entries(query, hull):
        out["linear"][i] = rates[j] * hull.scale[i]
        out["square"][i] = costs.square[j] * hull.scale[i] ** 2
        out["price"][i] = costs.price[j]
    return Costing(hull.scaled(query.factual), **out)


def numeric_entries(query: Query, hull: Hull) -> list[tuple[int, int]]:
    """Return (coordinate, feature) of the numeric features of a hull."""
    where = {int(e): i for i, e in enumerate(hull.entries)}
    return [
        (where[query.schema.starts[j]], j)
        for j, feature in enumerate(query.schema.features)
        if isinstance(feature, Numeric) and query.schema.starts[j] in where
    ]


def ends_of(query: Query, hull: Hull, box: Box) -> tuple[FloatArray, FloatArray]:
    """Return the box in the coordinates of a hull."""
    lower, upper = np.zeros(query.schema.width), np.zeros(query.schema.width)
    for j, feature in enumerate(query.schema.features):
        part = query.schema.slice(j)
        if isinstance(feature, Numeric):
            lower[part], upper[part] = box.lower[j], box.upper[j]
        else:
            allowed = box.allowed[part]
            upper[part] = allowed
            lower[part] = allowed if allowed.sum() == 1 else 0.0
    return hull.scaled(lower), hull.scaled(upper)


class _Hulls(Protocol):
    """Hulls to search: hulls in the same coordinates, with rows that lie in them."""

    @property
    def hulls(self) -> tuple[Hull, ...]:
        """The hulls."""
        ...

    @property
    def rows(self) -> FloatArray:
        """Canonical rows that lie in the hulls."""
        ...

    def start_with(self, rows: Iterable[int]) -> None:
        """Note the rows that the next linear program starts with."""
        ...

    def slice(self, statement: Statement, box: Box, deadline: Deadline, lean: FloatArray | None = None) -> Slice:
        """Return the linear relaxation of the hull within a box."""
        ...


class Seeker:
    """Search for cheap points of an enlarged hull that have the wanted outcome, within a box that fixes categories."""

    def __init__(self, statement: Statement, demand: _Hulls, box: Box, deadline: Deadline) -> None:
        self.deadline, self.tuning = deadline, statement.query.tuning.hulls
        self.stops = np.linspace(0.0, 1.0, self.tuning.stops + 1)[1:]
        self.statement, self.query, self.box = statement, statement.query, box
        self.demand, self.hull, self.rows = demand, demand.hulls[0], demand.rows
        self.goal = statement.query.goal
        hull = self.hull
        self.lower, self.upper = ends_of(self.query, hull, box)
        self.costing = costing_of(statement, hull)
        pairs = numeric_entries(self.query, hull)
        self.at = np.array([i for i, _ in pairs], dtype=np.int64)
        self.features = [j for _, j in pairs]
        self.step = np.zeros(len(hull.entries))
        for i, j in pairs:
            self.step[i] = (self.query.schema.features[j].step or 0.0) / hull.scale[i]  # type: ignore[union-attr]
        self.slice: Slice | None = None
        self.best: tuple[float, FloatArray] | None = None

    def points(self) -> Iterator[FloatArray]:
        """Yield the points that were found, each cheaper than those before."""
        order = np.argsort(self.statement.objective(self.rows), kind="stable")
        rows = self._wanted(order, self.tuning.lines)
        if len(rows):
            self._keep(rows[0])
            yield rows[0]
        if not len(self.at) or len(self.rows) == 1 or not (self.upper > self.lower).any():
            return
        if len(self.demand.hulls) > 1 or not all(self.box.is_fixed(j) for j in self._categorical()):
            return
        if self.deadline.passed:
            return
        self.slice = self.demand.slice(self.statement, self.box, self.deadline, self._uphill())
        bound, x = self.slice.cheapest()
        if x is None or (self.best is not None and bound >= self.best[0]):
            return
        start = self._canonical(self._sparser(x, self.lower, self.upper))
        yield start
        yield from self._along_lines(start, rows)
        self.demand.start_with(self.slice.used)

    def _categorical(self) -> list[int]:
        return [j for j, f in enumerate(self.query.schema.features) if not isinstance(f, Numeric)]

    def _wanted(self, order: IntArray, most: int) -> FloatArray:
        """Return the first few rows, in this order, that lie in the box and have the wanted outcome."""
        found: list[FloatArray] = []
        for first in range(0, len(order), self.tuning.rows_at_once):
            if self.deadline.passed:
                break
            rows = self.rows[order[first : first + self.tuning.rows_at_once]]
            rows = rows[self.box.contains(rows)]
            found.append(rows[self._holds(rows)] if len(rows) else rows)
            if sum(map(len, found)) >= most:
                break
        return np.concatenate(found)[:most] if found else self.rows[:0]

    def _holds(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        return np.ones(len(U), dtype=np.bool_) if self.goal is None else self.goal.holds(self.query, U)

    def _cost(self, u: FloatArray) -> float:
        return float(self.statement.objective(u[None, :])[0])

    def _keep(self, u: FloatArray) -> bool:
        cost = self._cost(u)
        if self.best is not None and cost >= self.best[0] - _BETTER:
            return False
        self.best = (cost, u)
        return True

    # -- from coordinates to rows and back ----------------------------------------------------------------------
    def _canonical(self, x: FloatArray) -> FloatArray:
        """Return the canonical row of a point: its numbers on their grids and in the box, its levels by the box."""
        schema, u, raw = self.query.schema, self.query.factual.copy(), self.hull.raw(x)
        for j in range(len(schema)):
            if not isinstance(schema.features[j], Numeric) and not self.box.missing[j]:
                allowed = self.box.allowed[schema.slice(j)]
                if allowed.sum() == 1:
                    u[schema.slice(j)] = allowed
        for i, j in zip(self.at, self.features, strict=True):
            feature = schema.features[j]
            assert isinstance(feature, Numeric)
            at = schema.starts[j]
            stays = x[i] == self.costing.factual[i]  # the way there and back might change its last digit
            value = feature.snap(float(u[at] if stays else raw[i]))
            u[at] = np.clip(value, self.box.lower[j], self.box.upper[j])
        return u

    # -- lines and walks ----------------------------------------------------------------------------------------
    def _along_lines(self, start: FloatArray, rows: FloatArray) -> Iterator[FloatArray]:
        """Walk on from the first points with the wanted outcome on the lines to rows that have it."""
        if not len(rows):
            return
        stops = start + (rows - start)[:, None, :] * self.stops[None, :, None]
        valid = self._holds(stops.reshape(-1, stops.shape[2])).reshape(stops.shape[:2])
        first = stops[np.arange(len(rows)), np.where(valid.any(axis=1), valid.argmax(axis=1), -1)]
        slope = self._along_slope(start)
        first = np.concatenate([slope[self._holds(slope)][: self.tuning.walks], first])
        if not isinstance(self.statement.form, Ensemble):
            on_grid = np.array([self._canonical(self.hull.scaled(u)) for u in first])
            yield from on_grid[np.argsort(self.statement.objective(on_grid), kind="stable")[: self.tuning.walks]]
            return
        for x in self._most_promising([self.hull.scaled(u) for u in first]):
            if self.deadline.passed:
                return
            self._walk(x)
            if self.best is not None:
                yield self.best[1]

    def _uphill(self) -> FloatArray:
        """Return a direction in which the score rises: a linear fit to the scores of rows, near ones counting most.

        Its largest entry is 1: scores may be of any size, and the direction becomes a row of a program.
        """
        training, goal = self.query.training, self.goal
        if not isinstance(goal, Goal):
            return np.zeros(len(self.hull.entries))
        if not goal.rows():
            return np.zeros(len(self.hull.entries))
        lead = goal.lead(training.sample_scores)
        moves = np.nan_to_num(self.hull.scaled(training.sample) - self.costing.factual)
        away = np.abs(moves).sum(axis=1)
        weight = np.exp(-0.5 * away / max(float(np.median(away)), ROUNDING))
        A = np.column_stack([moves, np.ones(len(moves))]) * weight[:, None]
        ridge = self.tuning.ridge * float(weight.sum()) * np.eye(A.shape[1])
        slope = np.linalg.solve(A.T @ A + ridge, A.T @ (lead * weight))[:-1]
        return slope / (float(np.abs(slope).max(initial=0.0)) or 1.0)

    def _along_slope(self, start: FloatArray) -> FloatArray:
        """Return the cheapest points that go farther and farther up the slope of the scores."""
        assert self.slice is not None
        here, top = float(self.hull.scaled(start) @ self.slice.direction), self.slice.farthest()
        out = [start]
        for share in self.stops**2 if np.isfinite(top) else ():
            if self.deadline.passed:
                break
            self.slice.lean(here + share * (top - here) - _BETTER)
            _, x = self.slice.cheapest()
            if x is not None:
                out.append(self._raw(x))
        self.slice.lean(-np.inf)
        return np.array(out)

    def _most_promising(self, points: list[FloatArray]) -> list[FloatArray]:
        """Return the few points around which the hull is cheapest, grids aside."""
        assert self.slice is not None
        bounds = []
        for x in points:
            if self.deadline.passed:
                break
            bounds.append(self.slice.cheapest(*self._plateau(x))[0])
        return [points[k] for k in np.argsort(bounds, kind="stable")[: self.tuning.walks]]

    def _walk(self, x: FloatArray) -> None:
        """Go to the cheapest point of the box around `x` on which the trees say the same, and over its edge."""
        for _ in range(self.tuning.steps):
            if self.deadline.passed:
                return
            lower, upper = self._plateau(x)
            on_grid = self._on_grid(lower, upper)
            if on_grid is None or not self._keep_valid(self._canonical(on_grid)):
                return
            self._keep_valid(self._canonical(self._sparser(on_grid, lower, upper)))
            beyond = self._over_an_edge(on_grid, lower, upper)
            if beyond is None:
                return
            x = beyond

    def _keep_valid(self, u: FloatArray) -> bool:
        return bool(self._holds(u[None, :])[0]) and self._keep(u)

    def _plateau(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the box around a point, in scaled units, on which every tree stays in its leaf."""
        form = self.statement.form
        assert isinstance(form, Ensemble)
        leaves, leaf = form.leaves, form.leaf_of(self._raw(x)[None, :])[0]
        at = np.flatnonzero(np.isin(leaves.node, leaf))
        low, high = leaves.low[at].max(axis=0), leaves.high[at].min(axis=0)
        lower, upper = self.lower.copy(), self.upper.copy()
        origin = np.broadcast_to(self.hull.origin, self.hull.scale.shape)
        for i, j in zip(self.at, self.features, strict=True):
            cuts = form.cuts().get(j, np.empty(0))
            if 0 <= low[j] < len(cuts):
                lower[i] = max(lower[i], (np.nextafter(cuts[low[j]], np.inf) - origin[i]) / self.hull.scale[i])
            if high[j] < len(cuts):
                upper[i] = min(upper[i], (cuts[high[j]] - origin[i]) / self.hull.scale[i])
        return lower, upper

    def _raw(self, x: FloatArray) -> FloatArray:
        """Return a point as a canonical row that need not be on any grid."""
        u, raw = self._canonical(x), self.hull.raw(x)
        for i, j in zip(self.at, self.features, strict=True):
            u[self.query.schema.starts[j]] = raw[i]
        return u

    def _on_grid(self, lower: FloatArray, upper: FloatArray) -> FloatArray | None:
        """Dive: solve, round one coordinate to its grid, solve again; None when that leaves the hull or costs too much."""
        assert self.slice is not None
        step = self.step
        whole = step > 0
        lower, upper = lower.copy(), upper.copy()
        lower[whole] = np.ceil(lower[whole] / step[whole] - _ON_GRID) * step[whole]
        upper[whole] = np.floor(upper[whole] / step[whole] + _ON_GRID) * step[whole]
        cutoff = np.inf if self.best is None else self.best[0]
        while (lower <= upper).all():
            _, x = self.slice.cheapest(lower, upper, cutoff)
            if x is None:
                return None
            units = np.divide(x, step, out=np.zeros_like(x), where=whole)
            off = np.abs(units - np.round(units))
            open_ = whole & (upper > lower) & (off > _ON_GRID)
            if not open_.any():
                return np.where(whole, np.round(units) * step, x)
            i = int(np.argmin(np.where(open_, off, np.inf)))
            sides = (np.round(units[i]), 2.0 * np.floor(units[i]) + 1.0 - np.round(units[i]))
            for side in sides:
                lower[i] = upper[i] = side * step[i]
                if self.slice.cheapest(lower, upper, cutoff)[1] is not None:
                    break
            else:
                return None
        return None

    def _over_an_edge(self, x: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray | None:
        """Return a point just beyond an edge that keeps `x` from the factual, if the outcome is the same there."""
        hat = self.costing.factual
        gap = np.maximum(self.step, ROUNDING)
        down = (x > hat) & (x - lower <= gap * AT_AN_EDGE + ROUNDING) & (lower > self.lower)
        up = (x < hat) & (upper - x <= gap * AT_AN_EDGE + ROUNDING) & (upper < self.upper)
        tries = []
        for i in np.flatnonzero(down | up):
            beyond = x.copy()
            edge = lower[i] - gap[i] if down[i] else upper[i] + gap[i]
            beyond[i] = edge if self.step[i] else np.nextafter(edge, hat[i])
            tries.append(beyond)
        if not tries:
            return None
        valid = self._holds(np.array([self._raw(t) for t in tries]))
        return tries[int(np.argmax(valid))] if valid.any() else None

    def _sparser(self, x: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Return a sparser point by reweighting: small moves are charged more, so that they vanish (Candes et al. 2008)."""
        assert self.slice is not None
        c = self.costing
        if not c.price.any():
            return x
        best = x
        for _ in range(self.tuning.sparser):
            move = np.abs(x - c.factual)
            self.slice.reweigh(c.linear + 2.0 * c.square * move + c.price / np.maximum(move, self.tuning.least_move))
            _, found = self.slice.cheapest(lower, upper)
            if found is None:
                break
            x = np.where(np.abs(found - c.factual) < DUST, c.factual, found)
            if self._cost(self._raw(x)) < self._cost(self._raw(best)):
                best = x
        self.slice.own_cost()
        return best
