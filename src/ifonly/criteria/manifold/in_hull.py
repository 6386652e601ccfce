"""The demand to lie in a convex hull of rows: as rows of a program, as a distance, and as bounds on every number.

With ``p_i`` the rows and ``x`` the answer in scaled units (numbers divided by their range in training, categories as
0/1 columns), the demand is the paper's enlarged hull (Maragno et al. 2021),

    sum_i lambda_i p_i = x + s,   sum_i lambda_i = 1,   lambda >= 0,   ||s|| <= epsilon,

and for a union of clusters ``sum_{i in k} lambda_i = w_k`` with ``w`` binary (Balas 1985). The weights are a block of
columns that a solver need not write down (see `ifonly.solvers.priced_lp`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.criteria.manifold.hull import Ball, Hull, Meter, Norm, Slice
from ifonly.criteria.manifold.points import Seeker, costing_of, ends_of, numeric_entries
from ifonly.data.schema import Numeric
from ifonly.errors import Relaxation
from ifonly.program.box import Box
from ifonly.program.euclidean import at_least_length
from ifonly.program.mip import Affine
from ifonly.question.abilities import Loosens
from ifonly.question.demand import Demand
from ifonly.question.guidance import Proposes, Squeezes
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.question.words import number
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.memo import Memo, cached_property
from ifonly.solvers.priced_lp import Block
from ifonly.tolerances import IN_HULL

__all__ = ["TOLERANCE", "InHull"]

TOLERANCE = IN_HULL


@dataclass(frozen=True, eq=False)
class InHull(Proposes, Squeezes, Loosens, Demand):
    """Demand to lie in one of several hulls, enlarged by a ball.

    Attributes
    ----------
    hulls
        The hulls of the clusters, all in the same coordinates.
    ball
        What they are enlarged by.
    rows
        Canonical rows that lie in the hulls, for a start.
    memo
        Rows of a single hull that linear programs have used so far, where the next one starts.
    """

    hulls: tuple[Hull, ...]
    ball: Ball
    rows: FloatArray
    memo: Memo = field(default_factory=Memo, repr=False)

    @property
    def hull(self) -> Hull:
        """The first hull, whose coordinates are those of all."""
        return self.hulls[0]

    def raw(self, query: Query) -> frozenset[int]:
        """Every number of the hull is coupled with all others."""
        return frozenset(j for _, j in numeric_entries(query, self.hull))

    def features(self, query: Query) -> frozenset[int]:
        """A hull moves what the model does not look at, too."""
        starts = np.array(query.schema.starts)
        return frozenset(int(j) for j in np.searchsorted(starts, self.hull.entries, side="right") - 1)

    # -- the optimiser's side -----------------------------------------------------------------------------------
    def apply(self, problem: Program) -> None:
        """Demand a convex combination of the rows, up to a vector of the ball."""
        if len(self.hull.entries):
            self._link(problem, _in_ball(problem, self.ball, len(self.hull.entries)))

    def _link(self, problem: Program, beyond: Sequence[Affine]) -> None:
        mip, hull, k = problem.mip, self.hull, len(self.hulls)
        coordinates = _coordinates(problem, hull)
        first = mip.n_rows
        for i, x in enumerate(coordinates):
            # sum_i lambda_i p_i = x + s, the weights being columns of the block
            mip.row(-(x + beyond[i]), 0.0, 0.0)
        matrix, pricer = hull.points, hull.pricer if k == 1 else None
        if k > 1:
            matrix = np.concatenate([h.points for h in self.hulls])
            for chosen in mip.columns(k, integer=True, name="cluster"):
                # sum of the weights of this cluster's rows = chosen in {0, 1}
                mip.row(Affine.of(int(chosen), -1.0), 0.0, 0.0)
            member = np.repeat(np.eye(k), [len(h.points) for h in self.hulls], axis=0)
            matrix = np.column_stack([matrix, member])
        rows = np.arange(first, mip.n_rows)
        # sum_i lambda_i = 1, the weights being columns of the block
        mip.row(Affine(), 1.0, 1.0)
        problem.blocks.append(Block(rows, mip.n_rows - 1, matrix, self._seed(problem.query), pricer))

    def _seed(self, query: Query) -> list[int]:
        """Return the rows to start with: for each hull its ends and what is near, or what was useful before."""
        if self.useful:
            return list(self.useful)
        first = np.cumsum([0, *(len(h.points) for h in self.hulls)])
        near = [h.seed(h.scaled(query.factual)) for h in self.hulls]
        return [int(start) + i for start, some in zip(first, near, strict=False) for i in some]

    # -- NumPy's side -------------------------------------------------------------------------------------------
    def distance(self, U: FloatArray) -> FloatArray:
        """Return how far canonical rows are from the nearest hull, in scaled units."""
        if not len(self.hull.entries):
            return np.zeros(len(U))
        return np.array([min(m.distance(x) for m in self._meters) for x in self.hull.scaled(U)])

    @cached_property
    def _meters(self) -> tuple[Meter, ...]:
        return tuple(Meter(hull, self.ball.norm) for hull in self.hulls)

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows lie in the enlarged hulls; a linear program is asked only where nothing simpler tells."""
        out = np.zeros(len(U), dtype=np.bool_)
        if not len(self.hull.entries):
            return ~out
        X, limit = self.hull.scaled(U), self.ball.radius + TOLERANCE
        levels = np.ones(len(self.hull.entries), dtype=np.bool_)
        levels[[i for i, _ in numeric_entries(query, self.hull)]] = False
        n = len(self.features(query)) - int((~levels).sum())
        for hull, meter in zip(self.hulls, self._meters, strict=True):
            left = np.flatnonzero(~out)
            left = left[_may_be_near(hull, X[left], levels if least_apart(self.ball.norm, n) > limit else None, limit)]
            out[left] = [meter.distance(x, limit) <= limit for x in X[left]]
        return out

    @property
    def useful(self) -> tuple[int, ...]:
        """Rows of a single hull that linear programs have used so far."""
        return self.memo.get("rows", "useful", tuple)

    def start_with(self, rows: Iterable[int]) -> None:
        """Note the rows that the next linear program starts with."""
        self.memo.put("rows", "useful", tuple(dict.fromkeys(rows)))

    # -- before solving -----------------------------------------------------------------------------------------
    def candidates(self, statement: Statement, box: Box, deadline: Deadline) -> Iterable[FloatArray]:
        """Look for cheap points in the hull that have the wanted outcome."""
        return Seeker(statement, self, box, deadline).points()

    def slice(self, statement: Statement, box: Box, deadline: Deadline, lean: FloatArray | None = None) -> Slice:
        """Return the linear relaxation of the hull within a box."""
        lower, upper = ends_of(statement.query, self.hull, box)
        costing = costing_of(statement, self.hull)
        return Slice(self.hull, self.ball, costing, lower, upper, self.useful, lean, deadline)

    def lower_bound(self, statement: Statement, box: Box, deadline: Deadline) -> float:
        """Return what the cheapest point of the hull in the box costs at least."""
        if not self._can_squeeze(statement.query) or deadline.passed:
            return -np.inf
        bound, _ = self.slice(statement, box, deadline).cheapest()
        return bound + least_for_levels(statement, box)

    def _can_squeeze(self, query: Query) -> bool:
        return len(self.hulls) == 1 and len(self.hull.points) > 1 and bool(numeric_entries(query, self.hull))

    def squeeze(self, statement: Statement, box: Box, budget: float, deadline: Deadline) -> Box:
        """Return the box of the points in the hull that can cost at most `budget`: two linear programs per number."""
        if not self._can_squeeze(statement.query) or not np.isfinite(budget):
            return box
        pairs, tuning = numeric_entries(statement.query, self.hull), statement.query.tuning.hulls
        left = budget - least_for_levels(statement, box)
        for _ in range(tuning.squeezes):
            if deadline.passed:
                break
            part = self.slice(statement, box, deadline)
            bound, _ = part.cheapest(cutoff=left)
            box = box.copy()
            if bound >= left:
                box.lower[pairs[0][1]], box.upper[pairs[0][1]] = np.inf, -np.inf
                return box
            lower, upper = part.extent(left)
            self.start_with(part.used)
            # an end that has not moved stays as it is, to the last float
            low = np.where(lower > part.lower, self.hull.raw(lower), -np.inf)
            high = np.where(upper < part.upper, self.hull.raw(upper), np.inf)
            for i, j in pairs:
                box.narrow(j, float(low[i]), float(high[i]))
            shrunk = float((upper - lower).sum()) < tuning.worth * float((part.upper - part.lower).sum())
            if box.empty() is not None or not shrunk or not statement.costs().price.any():
                break
        return box

    # -- loosening ----------------------------------------------------------------------------------------------
    def excess(self, problem: Program) -> Affine | None:
        """The distance to the hull, by which it would have to be enlarged."""
        n = len(self.hull.entries)
        if not n:
            return None
        mip, far = problem.mip, self._farthest(problem)
        away = mip.column(0.0, float(far.sum()), name="epsilon")
        if self.ball.norm == "l2":
            columns = mip.columns(n, -far, far)
            beyond = [Affine.of(int(c)) for c in columns]
            # away >= ||s||_2
            mip.row(away - at_least_length(mip, columns), lower=0.0)
        else:
            plus, minus = (mip.columns(n, 0.0, far) for _ in range(2))
            beyond = [Affine.of(int(p)) - Affine.of(int(m)) for p, m in zip(plus, minus, strict=True)]
            parts = [Affine.of(int(p)) + Affine.of(int(m)) for p, m in zip(plus, minus, strict=True)]
            for part in [Affine.total(parts)] if self.ball.norm == "l1" else parts:
                # away >= ||s||_1, or away >= |s_i| for each i (l-infinity)
                mip.row(away - part, lower=0.0)
        self._link(problem, beyond)
        return away

    def _farthest(self, problem: Program) -> FloatArray:
        """Return how far each coordinate of the answer can lie from any of the hulls."""
        ends = np.array([problem.mip.bounds(x) for x in _coordinates(problem, self.hull)])
        lowest = np.min([h.range[0] for h in self.hulls], axis=0)
        highest = np.max([h.range[1] for h in self.hulls], axis=0)
        return np.asarray(np.maximum(np.maximum(ends[:, 1] - lowest, highest - ends[:, 0]), 0.0))

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Name the least enlargement that lets the row through."""
        del query
        needed = float(self.distance(u[None, :])[0])
        change = f"epsilon {number(self.ball.radius)} -> {number(needed + TOLERANCE, 'up')}"
        return Relaxation(self.text, change, needed - self.ball.radius)


def least_apart(norm: Norm, n: int) -> float:
    """Return how far from a hull a point is at least whose `n` categories are those of none of its rows together.

    Let row ``i`` differ from the point in ``m_i >= 1`` categories and ``q_f`` be the weight of the rows that differ in
    category ``f``, so that ``sum_f q_f = sum_i lambda_i m_i >= 1``. The 0/1 columns of ``f`` add ``2 q_f`` to the l1 norm, at
    least ``q_f^2`` to the square of the l2 norm, and ``q_f`` is an entry.
    """
    return np.inf if n == 0 else {"l1": 2.0, "l2": 1.0 / np.sqrt(n), "linf": 1.0 / n}[norm]


def _may_be_near(
    hull: Hull, X: FloatArray, levels: npt.NDArray[np.bool_] | None, limit: float
) -> npt.NDArray[np.bool_]:
    """Say which points are not farther than `limit` by their coordinates, and share these levels with a row."""
    lowest, highest = hull.range
    near = np.asarray(((lowest - limit <= X) & (highest + limit >= X)).all(axis=1))
    if levels is not None and levels.any():
        known = {row.tobytes() for row in hull.points[:, levels] > 0.5}
        near[near] = [row.tobytes() in known for row in X[near][:, levels] > 0.5]
    return near


def least_for_levels(statement: Statement, box: Box) -> float:
    """Return what the categories of a box cost at least."""
    query, costs = statement.query, statement.costs()
    total = 0.0
    for j, feature in enumerate(query.schema.features):
        if not isinstance(feature, Numeric) and not box.missing[j]:
            table = costs.level_costs(query.schema, j, query.factual)
            total += float(table[box.allowed[query.schema.slice(j)]].min(initial=np.inf))
    return total


def _coordinates(problem: Program, hull: Hull) -> list[Affine]:
    """Return the coordinates of the answer as expressions, in scaled units."""
    schema, out = problem.query.schema, []
    starts = np.array(schema.starts)
    origins = np.broadcast_to(hull.origin, hull.scale.shape)
    for entry, scale, origin in zip(hull.entries, hull.scale, origins, strict=True):
        j = int(np.searchsorted(starts, entry, side="right")) - 1
        if isinstance(schema.features[j], Numeric):
            out.append((problem.x.raw(j) - float(origin)) * float(1.0 / scale))
        else:
            level = np.zeros(schema.features[j].width)
            level[int(entry) - schema.starts[j]] = 1.0
            out.append(problem.x.level_table(j, level))
    return out


def _in_ball(problem: Program, ball: Ball, n: int) -> list[Affine]:
    """Add a vector of the ball to a program, exactly."""
    if ball.norm != "l2" or ball.radius == 0.0:
        return ball.around(problem.mip, n)
    beyond = problem.mip.columns(n, -ball.radius, ball.radius, name="beyond")
    # ||s||_2 <= radius
    problem.mip.row(at_least_length(problem.mip, beyond), upper=ball.radius)
    return [Affine.of(int(c)) for c in beyond]
