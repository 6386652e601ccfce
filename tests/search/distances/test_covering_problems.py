"""Covering problems against the enumeration of all their points: bounds, lists, surrogates, and the search itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

from ifonly import Proximity, Sparsity
from ifonly.arrays import FloatArray
from ifonly.program.box import Box
from ifonly.question.separation import Separation
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import Tuning
from ifonly.search.cells.grids import Grid
from ifonly.search.distances.candidates import Candidates
from ifonly.search.distances.covering import Covering
from ifonly.search.distances.enumeration import listed
from ifonly.search.distances.inside import Parts, region_of
from ifonly.search.distances.simplex import relaxed
from ifonly.search.distances.surrogates import tables
from ifonly.search.distances.terms import Row, Terms
from ifonly.search.reduce import Reducer
from worlds import world_of

TUNING = Tuning().covering
COSTS = {
    "lines": (Proximity("l1", scale="range"), Sparsity(price=0.0)),
    "prices": (Proximity("l1", scale="range"), Sparsity(price=0.1)),
    "squares": (Proximity("l2", scale="range"), Sparsity(price=0.0)),
}


@cache
def statement_of(kind: str) -> tuple[Statement, FloatArray]:
    """Return a question and all points of its grid."""
    world = world_of(41, "tree", (7, 6, 5))
    statement = world.explainer(*COSTS[kind])._ask(world.factuals(1)[0], "yes", ()).statement
    return statement, statement.query.schema.encode(world.grid)


@dataclass
class Case:
    """A random problem: distances from points, perhaps a number of changes and a linear row; and its points."""

    seed: int
    kind: str

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.statement, self.U = statement_of(self.kind)
        query, schema = self.statement.query, self.statement.query.schema
        self.rng, self.cost = rng, self.statement.objective(self.U)
        numbers, starts = np.asarray(schema.numeric), schema.number_starts
        hat = query.factual
        self.rows, self.met = [], np.ones(len(self.U), dtype=bool)
        for _ in range(int(rng.integers(1, 4))):
            point, rate = self.U[rng.integers(len(self.U))], np.zeros(len(schema))
            rate[numbers] = rng.choice([0.0, 0.2, 0.5, 1.0], len(numbers))
            levels = rng.choice([0.3, 1.0], schema.width) * (point == 0.0)
            levels[starts] = 0.0
            far = np.abs(self.U - point)[:, starts] @ rate[numbers] + self.U @ levels
            least = float(rng.choice(far[far > 0.0])) - 1e-7
            self.rows.append(Row.apart(schema, Separation(point, rate, levels, least)))
            self.met &= far >= least
        if rng.random() < 0.5:
            most = int(rng.integers(1, 4))
            self.rows.append(Row.count(schema, hat, most))
            self.met &= query.changed(self.U).sum(axis=1) <= most
        if rng.random() < 0.5:
            slope = rng.normal(size=schema.width)
            score = self.U @ slope
            constant = -float(np.quantile(score, rng.uniform(0.2, 0.9))) + 1e-7
            self.rows.append(Row.linear(schema, hat, slope, constant))
            self.met &= score + constant >= 0.0
        self.terms = Terms(schema, hat, self.statement.costs(), self.rows, np.zeros(len(schema), dtype=bool))
        self.box = self._some_box()
        self.met &= self.box.contains(self.U)
        rest = self.statement.costs().per_feature(query, hat[None, :])[0]
        assert not rest.any()
        self.base = query.factual.copy()
        self.inside = region_of(self.terms, self.box)

    def _some_box(self) -> Box:
        box, rng = self.statement.box().copy(), self.rng
        for j in self.statement.query.schema.numeric:
            if rng.random() < 0.4:
                low, high = sorted(rng.integers(int(box.lower[j]), int(box.upper[j]) + 1, 2))
                box.lower[j], box.upper[j] = float(low), float(high)
        return box

    @property
    def all_features(self) -> bool:
        """Whether every feature counts in some row: what does not is no part of the problem."""
        return len(self.terms.numbers) + len(self.terms.categories) == len(self.statement.query.schema)

    @property
    def best(self) -> float:
        return float(np.where(self.met, self.cost, np.inf).min())


@cache
def cases() -> list[Case]:
    """Return problems in which every feature counts."""
    return [case for kind in COSTS for seed in range(25) if (case := Case(seed, kind)).all_features]


@dataclass
class Best:
    """The best point so far of those that meet all rows."""

    case: Case
    value: float = np.inf

    def offer(self, u: FloatArray) -> bool:
        at = np.flatnonzero((self.case.statement.query.schema.stored(u) == self.case.U).all(axis=1))
        assert at.size  # on the grid
        if not self.case.met[at[0]] or self.case.cost[at[0]] >= self.value:
            return False
        self.value = float(self.case.cost[at[0]])
        return True

    def budget(self) -> float:
        return self.value * (1.0 - 1e-7)


def test_the_search_finds_what_enumeration_finds() -> None:
    found = []
    for case in cases():
        best = Best(case)
        left = Covering(case.terms, best.offer, best.budget, TUNING).search(
            case.inside, case.base, 0.0, Deadline.never()
        )
        assert left == np.inf or left == best.value == 0.0
        assert best.value == pytest.approx(case.best, abs=1e-9)
        found.append(np.isfinite(best.value))
    assert sum(found) > 20
    assert not all(found)


def test_a_point_that_is_refused_stays_open() -> None:
    for case in cases()[:20]:
        covering = Covering(case.terms, lambda u: False, lambda: np.inf, TUNING)
        left = covering.search(case.inside, case.base, 0.0, Deadline.never())
        assert left <= case.best + 1e-9
        assert np.isinf(case.best) or left > case.best - 0.5


@pytest.mark.parametrize("size", [0.01, 1.0, 1e4])
def test_bounds_hold_for_any_multipliers(size: float) -> None:
    for case in cases():
        found = Candidates(case.terms, case.inside)
        if found.empty:
            assert np.isinf(case.best)
            continue
        for _ in range(4):
            y = case.rng.exponential(size, case.terms.n_rows) * case.rng.integers(0, 2, case.terms.n_rows)
            assert found.bound(y) <= case.best
            if found.unmeetable(y):
                assert np.isinf(case.best)


def test_lists_hold_the_cheapest_point() -> None:
    seen = 0
    for case in cases():
        found = Candidates(case.terms, case.inside)
        y = case.rng.exponential(0.3, case.terms.n_rows)
        points = None if found.empty else listed(found, y, case.best + 0.05, 20_000, 8)
        if points is None or np.isinf(case.best):
            assert points is None or not len(points.cost)
            continue
        seen += 1
        assert points.cost[0] == pytest.approx(case.best, abs=1e-9)
        assert (np.diff(points.cost) >= 0.0).all()
    assert seen > 20


def test_no_answer_is_dearer_by_a_surrogate() -> None:
    checked = 0
    for case in cases()[::2]:
        reducer = Reducer(case.statement)
        assert reducer.brackets is not None
        grid = Grid(reducer, case.box, reducer.brackets.leaves.within(case.box))
        y = case.rng.exponential(0.5, (3, case.terms.n_rows)) * case.rng.integers(0, 2, (3, case.terms.n_rows))
        for table in tables(case.terms, grid, case.box, reducer, y):
            for at in np.flatnonzero(case.met)[:40]:
                u, cost = case.U[at], table.elsewhere
                for k, j in enumerate(grid.numbers):
                    value = u[grid.schema.starts[j]]
                    own = slice(int(grid.first[k]), int(grid.first[k] + grid.size[k]))
                    cell = np.flatnonzero((grid.lowest[own] <= value) & (value <= grid.highest[own]))
                    cost += float(table.cost[own][cell[0]])
                cost += float(table.level_cost[u[grid.entries] > 0.0].sum())
                assert cost <= case.cost[at] + 1e-12
                checked += 1
    assert checked > 100


def test_the_simplex_method_finds_what_another_solver_finds() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        features, width, count = int(rng.integers(1, 6)), int(rng.integers(2, 6)), int(rng.integers(1, 4))
        costs, rows = rng.uniform(0, 2, (features, width)), rng.normal(size=(count, features, width))
        costs[rng.random((features, width)) < 0.1] = np.inf
        costs[:, 0] = np.where(np.isfinite(costs[:, 0]), costs[:, 0], 1.0)
        least = rng.normal(0.5, 1.0, count)
        mix = relaxed(costs, rows, least, np.full(count, 1e5), 500)
        finite = np.isfinite(costs).ravel()
        choose = np.kron(np.eye(features), np.ones(width))[:, finite]
        other = linprog(
            costs.ravel()[finite],
            A_ub=-rows.reshape(count, -1)[:, finite],
            b_ub=-least,
            A_eq=choose,
            b_eq=np.ones(features),
        )
        assert mix.met == (other.status == 0)
        if mix.met:
            assert mix.value == pytest.approx(other.fun, abs=1e-7)
            np.testing.assert_allclose(mix.weights.sum(axis=1), 1.0, atol=1e-9)
            assert (np.tensordot(rows, mix.weights, axes=2) >= least - 1e-7).all()


def test_parts_of_another_grid_are_searched_anew() -> None:
    """A part is known by its cells, and the same cells of another grid are other values."""
    case = next(case for case in cases() if np.isfinite(case.best))
    reducer = Reducer(case.statement)
    assert reducer.brackets is not None
    covering = Covering(case.terms, lambda u: False, lambda: np.inf, TUNING)
    parts = Parts(reducer, case.terms, covering, 1)
    box, nodes = case.statement.box(), []
    for _ in range(2):
        grid = Grid(reducer, box, reducer.brackets.leaves.within(box))
        parts.surrogates(grid, box)
        for _ in range(2):
            parts.search(grid, box, grid.whole(), case.base, Deadline.never())
            nodes.append(covering.nodes)
    assert 0 < nodes[0] == nodes[1] < nodes[2] == nodes[3]
