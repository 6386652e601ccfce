"""Convex hulls of many rows: how far a point is from one, its cheapest point in a box, and how far it extends.

All by linear programs over ``{sum_i lambda_i p_i : lambda >= 0, sum lambda = 1}`` in which only a few of the rows ``p_i``
ever appear (see `ifonly.solvers.priced_lp`); Euclidean distances by Wolfe's algorithm. Units are scaled: a coordinate counts
from an origin near the rows and is divided by its scale, so a hull is enlarged by the same amount in every direction, and
years or account numbers leave as many digits for their differences as any other column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.program.mip import Affine, Mip
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.memo import cached_property
from ifonly.runtime.tuning import DEFAULT, Tuning
from ifonly.solvers.column_prices import Pricer
from ifonly.solvers.priced_lp import Block, PricedProgram
from ifonly.tolerances import LP_EXACT as _BEYOND
from ifonly.tolerances import LP_ROOM as _ROOM
from ifonly.tolerances import ROUNDING as _WOLFE_DUST
from ifonly.tolerances import STEEPEST

__all__ = ["Ball", "Costing", "Hull", "Meter", "Norm", "Slice"]

Norm = Literal["l1", "l2", "linf"]
NEVER = Deadline.never()


@dataclass(frozen=True, slots=True)
class Ball:
    """Ball that enlarges a hull: ``{s : ||s|| <= radius}``."""

    radius: float = 0.0
    norm: Norm = "l1"

    def around(self, mip: Mip, n: int) -> list[Affine]:
        """Add a vector of the ball to a linear program; the Euclidean ball by a polytope around it."""
        if self.radius == 0.0:
            return [Affine()] * n
        plus, minus = (mip.columns(n, 0.0, self.radius, name=name) for name in ("beyond", "short"))
        if self.norm != "linf":
            most = self.radius * (np.sqrt(n) if self.norm == "l2" else 1.0)
            # ||s||_1 <= radius; sqrt(n) times that contains the Euclidean ball
            mip.row(Affine(np.concatenate([plus, minus]), np.ones(2 * n)), upper=float(most))
        return [Affine.of(int(p)) - Affine.of(int(m)) for p, m in zip(plus, minus, strict=True)]


@dataclass(frozen=True, eq=False)
class Hull:
    """The convex hull of scaled rows.

    Attributes
    ----------
    points
        The rows, one coordinate per entry, counted from `origin` and divided by `scale`.
    entries
        The places of the coordinates in the canonical vector.
    scale
        The unit of each coordinate.
    origin
        Where each coordinate is 0, in raw units.
    tuning
        The tuned numbers.
    """

    points: FloatArray
    entries: IntArray
    scale: FloatArray
    origin: FloatArray | float = 0.0
    tuning: Tuning = DEFAULT

    def scaled(self, U: FloatArray) -> FloatArray:
        """Return canonical rows in the hull's coordinates."""
        return np.asarray((U[..., self.entries] - self.origin) / self.scale)

    def raw(self, x: FloatArray) -> FloatArray:
        """Return scaled coordinates in raw units."""
        return np.asarray(x * self.scale + self.origin)

    @cached_property
    def pricer(self) -> Pricer:
        """Least products with the rows, for all programs over them."""
        return Pricer(self.points, self.tuning.columns)

    @cached_property
    def ends(self) -> list[int]:
        """The rows at an end of some coordinate."""
        ends = np.concatenate([self.points.argmin(axis=0), self.points.argmax(axis=0)])
        return [int(i) for i in np.unique(ends)]

    @cached_property
    def range(self) -> tuple[FloatArray, FloatArray]:
        """The least and the greatest value of each coordinate."""
        return self.points.min(axis=0), self.points.max(axis=0)

    def seed(self, x: FloatArray) -> list[int]:
        """Return rows to start a linear program with: those at an end of some coordinate, and a few near `x`."""
        step = max(1, len(self.points) // self.tuning.hulls.looked_at)
        some = self.points[::step]
        n = min(self.tuning.hulls.seeds, len(some))
        near = step * np.argpartition(np.abs(some - x).sum(axis=1), n - 1)[:n]
        return list(dict.fromkeys([*self.ends, *(int(i) for i in near)]))

    def distance(self, U: FloatArray, norm: Norm = "l1") -> FloatArray:
        """Return the distance of canonical rows to the hull, in scaled units."""
        meter = Meter(self, norm)
        return np.array([meter.distance(x) for x in self.scaled(U)])


class Meter:
    """Distances to one hull: ``min ||x - h||`` over its points ``h``."""

    def __init__(self, hull: Hull, norm: Norm) -> None:
        self.hull, self.norm = hull, norm
        self._program: PricedProgram | None = None
        self._block: Block | None = None

    def distance(self, x: FloatArray, cutoff: float = np.inf) -> float:
        """Return the distance of a scaled point, or anything beyond the cut-off that it is at least."""
        if np.isnan(x).any():
            return np.inf
        if self.norm == "l2":
            return _euclidean(self.hull.points - x, self.hull.tuning.hulls.wolfe_rounds)
        if self._program is None or self._block is None:
            self._program, self._block = self._build(x)
        for row, value in zip(self._block.rows, x, strict=True):
            self._program.set_row(int(row), value, value)
        lowest, highest = self.hull.range
        away = np.concatenate([np.maximum(x - lowest, 0.0), np.maximum(highest - x, 0.0)])
        ends = away if self.norm == "l1" else np.append(away, away.max())
        self._program.set_bounds(np.arange(len(ends), dtype=np.int32), np.zeros(len(ends)), ends)
        found = self._program.solve(cutoff + _BEYOND)
        # A point of the hull shows how near it is; without one, the bound says how far it must be.
        if found.stopped:
            return np.inf  # no point of the hull was found near it, so it does not count as near
        reached = found.bound if found.values is None else float(self._program.cost @ found.values)
        return max(reached, 0.0)

    def _build(self, x: FloatArray) -> tuple[PricedProgram, Block]:
        mip, m = Mip(), len(x)
        plus, minus = (mip.columns(m, 0.0, np.inf) for _ in range(2))
        for p, q in zip(plus, minus, strict=True):
            # sum_i lambda_i p_i + d+ - d- = x; the block brings the weights, `set_row` the point
            mip.row(Affine.of(int(p)) - Affine.of(int(q)), 0.0, 0.0)
        if self.norm == "l1":
            mip.minimise(Affine(np.concatenate([plus, minus]), np.ones(2 * m)))
        else:
            most = mip.column(0.0, np.inf)
            mip.minimise(most)
            for p, q in zip(plus, minus, strict=True):
                # most >= |d_i|: the l-infinity norm
                mip.row(most - Affine.of(int(p)) - Affine.of(int(q)), lower=0.0)
        one = mip.n_rows
        # sum_i lambda_i = 1, the weights being columns of the block
        mip.row(Affine(), 1.0, 1.0)
        block = Block(np.arange(m), one, self.hull.points, self.hull.seed(x), self.hull.pricer)
        return PricedProgram(mip.arrays(), [block], self.hull.tuning.columns, elastic=False), block


def _euclidean(points: FloatArray, rounds: int) -> float:
    """Return the least norm in the hull of `points`, by Wolfe (1976): exact, one pass over the rows per step."""
    chosen = [int(np.argmin((points**2).sum(axis=1)))]
    weight = np.ones(1)
    for _ in range(rounds):
        x = weight @ points[chosen]
        along = points @ x
        k = int(np.argmin(along))
        if x @ x - along[k] <= _WOLFE_DUST * max(1.0, float(x @ x)) or k in chosen:
            break
        chosen.append(k)
        weight = np.append(weight, 0.0)
        chosen, weight = _corral(points, chosen, weight)
    return float(np.linalg.norm(weight @ points[chosen]))


def _corral(points: FloatArray, chosen: list[int], weight: FloatArray) -> tuple[list[int], FloatArray]:
    """Move to the least norm in the affine hull of the chosen points, dropping those that stand in the way."""
    while True:
        A = points[chosen]
        n = len(chosen)
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = A @ A.T
        system[:n, n] = system[n, :n] = 1.0
        target = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0))[0][:n]
        if (target > _WOLFE_DUST).all():
            return chosen, target / target.sum()
        falling = target < weight
        step = np.min(weight[falling] / (weight[falling] - target[falling]), initial=1.0)
        weight = (1.0 - step) * weight + step * target
        keep = weight > _WOLFE_DUST
        if keep.all():
            keep[int(np.argmin(weight))] = False
        chosen, weight = [c for c, k in zip(chosen, keep, strict=True) if k], weight[keep]
        weight /= weight.sum()


@dataclass(frozen=True, eq=False)
class Costing:
    """Separable cost of a displacement, in scaled units: ``linear |d| + square d^2 + price [d != 0]``."""

    factual: FloatArray
    linear: FloatArray
    square: FloatArray
    price: FloatArray


class Slice:
    """The part of an enlarged hull within a box, and a lower bound of the cost on it.

    The bound is the convex envelope of the cost on the box: a price counts in proportion to the move, a square by a few
    tangents, so the linear program never promises more than the true cost. The program counts costs in a unit of its own, in
    which the largest is near 1: a square of a column of 1e12 is beyond what the solver takes for infinite. Once the deadline
    has passed, bounds are those that were proven until then (or none), and points are not found any more.
    """

    def __init__(
        self,
        hull: Hull,
        ball: Ball,
        costing: Costing,
        lower: FloatArray,
        upper: FloatArray,
        seed: Iterable[int] = (),
        lean: FloatArray | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        self.costing, self.deadline, self.tuning = costing, deadline, hull.tuning
        self.direction = np.zeros(len(lower)) if lean is None else lean
        self.lower, self.upper = lower, upper
        self._unit = self._cost_unit()
        mip, m = Mip(), len(lower)
        self._x = mip.columns(m, lower, upper).astype(np.int32)
        beyond = ball.around(mip, m)
        for i in range(m):
            # sum_i lambda_i p_i + s = x, the weights being columns of the block
            mip.row(beyond[i] - Affine.of(int(self._x[i])), 0.0, 0.0)
        rows = np.arange(mip.n_rows - m, mip.n_rows)
        one = mip.n_rows
        # sum_i lambda_i = 1, the weights being columns of the block
        mip.row(Affine(), 1.0, 1.0)
        self._moves: dict[int, IntArray] = {}
        cost = Affine.total(self._cost(mip, i) for i in range(m))
        mip.minimise(cost)
        self._budget_row = mip.n_rows
        # the cost, without a bound until a budget sets one
        mip.row(cost)
        self._lean_row = mip.n_rows
        # direction'x, without a bound until a cut sets one
        mip.row(Affine(self._x.astype(np.int64), self.direction))
        near = hull.seed(np.clip(costing.factual, lower, upper))
        self.block = Block(rows, one, hull.points, list(dict.fromkeys([*near, *seed])), hull.pricer)
        program = mip.arrays()
        self._every = np.arange(program.n_columns, dtype=np.int32)
        self._own_cost = program.cost
        self.program = PricedProgram(program, [self.block], hull.tuning.columns)

    def _reach(self, i: int) -> float:
        hat = float(self.costing.factual[i])
        return max(float(self.upper[i]) - hat, hat - float(self.lower[i]), 0.0)

    def _cost_unit(self) -> float:
        """Return the power of two that the costs are multiplied by."""
        c, reach = self.costing, np.array([self._reach(i) for i in range(len(self.lower))])
        largest = float((c.linear * reach + c.square * reach**2 + c.price).max(initial=0.0))
        return 2.0 ** -float(np.frexp(largest)[1]) if 0.0 < largest < np.inf else 1.0

    def _cost(self, mip: Mip, i: int) -> Affine:
        """Add the envelope of the cost of one coordinate, in the program's unit."""
        c, x, hat = self.costing, Affine.of(int(self._x[i])), float(self.costing.factual[i])
        reach = self._reach(i)
        if reach == 0.0 or not (c.linear[i] or c.square[i] or c.price[i]):
            return Affine()
        moves = mip.columns(2, 0.0, [max(float(self.upper[i]) - hat, 0.0), max(hat - float(self.lower[i]), 0.0)])
        self._moves[i] = moves
        moved = Affine(moves, np.ones(2))
        # x - up + down = xhat
        mip.row(x - Affine.of(int(moves[0])) + Affine.of(int(moves[1])), hat, hat)
        # a lower rate is a bound as well, and solvers take no numbers beyond 1e15: the reach may be two neighbouring floats
        cost = moved * min(float(c.linear[i] + c.price[i] / reach), STEEPEST / self._unit)
        if c.square[i]:
            top = mip.column(0.0, reach * reach)
            for at in reach * np.array(self.tuning.hulls.tangents):
                # top >= 2 a |d| - a^2: the tangent of d^2 at a
                mip.row(top - moved * float(2.0 * at), lower=float(-at * at))
            cost = cost + top * float(c.square[i])
        return cost * self._unit

    def reweigh(self, rates: FloatArray) -> None:
        """Charge other rates for the moves, for a search that is not after the bound."""
        for i, moves in self._moves.items():
            self.program.set_costs(moves.astype(np.int32), np.full(2, rates[i] * self._unit))

    @property
    def used(self) -> list[int]:
        """The rows that carried weight in some solution so far."""
        return sorted(self.program.used[0])

    def farthest(self) -> float:
        """Return how far the slice extends in its direction, at most (infinity when there was no time to tell)."""
        self.program.set_bounds(self._x, self.lower, self.upper)
        self.program.set_costs(self._every, np.zeros(len(self._every)))
        self.program.set_costs(self._x, -self.direction)
        found = self.program.solve(deadline=self.deadline)
        self.own_cost()
        return -found.bound

    def lean(self, least: float) -> None:
        """Keep to the points that go at least this far in the slice's direction."""
        self.program.set_row(self._lean_row, least, np.inf)

    def own_cost(self) -> None:
        """Charge the envelope again."""
        self.program.set_costs(self._every, self._own_cost)

    def cheapest(
        self, lower: FloatArray | None = None, upper: FloatArray | None = None, cutoff: float = np.inf
    ) -> tuple[float, FloatArray | None]:
        """Return a bound of the cost within bounds, and the point that attains it unless it passes the cut-off."""
        self.program.set_bounds(self._x, self.lower if lower is None else lower, self.upper if upper is None else upper)
        found = self.program.solve(cutoff * self._unit, self.deadline)
        return found.bound / self._unit, None if found.values is None else found.values[self._x]

    def extent(self, budget: float) -> tuple[FloatArray, FloatArray]:
        """Return the least and greatest value of each coordinate among the points that cost at most `budget`."""
        lower, upper = self.lower.copy(), self.upper.copy()
        self.program.set_bounds(self._x, lower, upper)
        self.program.set_row(self._budget_row, -np.inf, budget * self._unit)
        self.program.set_costs(self._every, np.zeros(len(self._every)))
        seen_low, seen_high = np.full(len(lower), np.inf), np.full(len(lower), -np.inf)
        for i in np.flatnonzero(upper > lower):
            for sign, ends, seen in ((1.0, lower, seen_low), (-1.0, upper, seen_high)):
                if sign * (seen[i] - ends[i]) <= _ROOM:
                    continue  # a point already found reaches the end of the box
                self.program.set_costs(self._x[i : i + 1], np.array([sign]))
                found = self.program.solve(deadline=self.deadline)
                self.program.set_costs(self._x[i : i + 1], np.zeros(1))
                if found.bound == np.inf:
                    return np.full_like(lower, np.inf), np.full_like(upper, -np.inf)
                ends[i] = sign * max(found.bound - _ROOM, sign * ends[i])
                if found.values is not None:
                    x = found.values[self._x]
                    np.minimum(seen_low, x, out=seen_low)
                    np.maximum(seen_high, x, out=seen_high)
        self.program.set_row(self._budget_row, -np.inf, np.inf)
        self.own_cost()
        return lower, upper
