"""Demands that are unions of boxes: closed without a solver, at the cost that enumeration finds."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ifonly import Actionability, Explainer, Implies, Infeasible, Proximity, Schema, Sparsity
from ifonly.arrays import FloatArray
from ifonly.criteria.diversity.distinct import LeaveOne, OtherFeatures
from ifonly.data.features import Numeric
from ifonly.program.box import Box
from ifonly.question.criterion import Criterion
from ifonly.question.demand import Demand
from ifonly.question.found import Ended
from ifonly.question.guidance import UnionOfBoxes
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline
from ifonly.search.engine import OnlyWith
from ifonly.search.engines import ENGINES, find
from ifonly.search.progress import Progress
from ifonly.search.unions import Unions
from ifonly.solvers.backend import Limits
from ifonly.solvers.registry import find_solver
from worlds import World, world_of

# The factual may break a rule, which an answer then repairs; that it does is warned of.
pytestmark = pytest.mark.filterwarnings("ignore::ifonly.errors.FactualViolatesDemand")

FAMILIES = ["logistic", "tree", "forest", "boosting", "network"]


def best_cost(world: World, row: pd.DataFrame, good: np.ndarray) -> float:
    return float(np.where(world.said & good, world.costs(row), np.inf).min())


@pytest.mark.parametrize("family", FAMILIES)
def test_implications_need_no_solver_and_cost_what_enumeration_finds(family: str) -> None:
    world = world_of(21, family)
    g = world.grid
    rules = [
        (Implies({"n0": (3, None)}, {"n1": (None, 4)}), (g["n0"] < 3) | (g["n1"] <= 4)),
        (Implies({"colour": ["red", "blue"]}, {"n2": (2, 4)}), (g["colour"] == "green") | g["n2"].between(2, 4)),
        (
            Implies({"n0": (0, 4), "n2": 1}, {"colour": "blue", "n1": (5, 7)}),
            ~(g["n0"].between(0, 4) & (g["n2"] == 1)) | ((g["colour"] == "blue") & g["n1"].between(5, 7)),
        ),
    ]
    for row, used in itertools.product(world.factuals(2), [rules[:1], rules[1:2], rules[2:], rules]):
        good = np.logical_and.reduce([np.asarray(kept) for _, kept in used])
        expected = best_cost(world, row, good)
        try:
            answer = world.explainer().explain(
                row, want="yes", criteria=[Actionability(implies=[rule for rule, _ in used])]
            )[0]
        except Infeasible:
            assert not np.isfinite(expected)
            continue
        assert answer.certificate.proven
        # a knapsack of moves begins at the factual, which a rule may rule out
        assert answer.certificate.solver == "no solver needed" or family == "logistic"
        assert answer.certificate.objective == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_further_answers_need_no_solver_and_keep_their_number_of_changes(family: str) -> None:
    world = world_of(22, family)
    row = world.factuals(1)[0]
    answer = world.explainer().explain(row, want="yes", n=4, criteria=[Sparsity(at_most=2, price=0.1)])
    assert {a.certificate.solver for a in answer} == {"no solver needed"}
    moves = world.moves(row) > 0
    left = np.where(world.said & (moves.sum(axis=1) <= 2), world.costs(row), np.inf)
    for found in answer:
        assert found.certificate.proven
        assert found.certificate.objective == pytest.approx(left.min(), abs=1e-9)
        left = np.where(moves[:, (world.moves(row, found.row) > 0)[0]].all(axis=1), np.inf, left)
    assert len(answer) == 4 or not np.isfinite(left.min())


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_every_norm(norm: str) -> None:
    world = world_of(23, "forest")
    row = world.factuals(1)[0]
    moves, numbers = world.moves(row), world.moves(row)
    cost = {"l1": numbers.sum(axis=1), "l2": (numbers**2).sum(axis=1), "linf": numbers.max(axis=1)}[norm]
    left = np.where(world.said, cost, np.inf)
    answer = world.explainer(Proximity(norm)).explain(row, want="yes", n=3)
    for found in answer:
        value = found.certificate.objective
        assert found.certificate.proven
        assert value == pytest.approx(left.min(), abs=1e-9) or value**2 == pytest.approx(left.min(), abs=1e-9)
        left = np.where((moves > 0)[:, (world.moves(row, found.row) > 0)[0]].all(axis=1), np.inf, left)


# -- pieces ----------------------------------------------------------------------------------------------------------
@cache
def _explainer() -> Explainer:
    """A forest on a number with one decimal, a continuous one, and a category."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"tenth": np.round(rng.uniform(0, 1, 60), 1), "free": rng.uniform(0, 1, 60)})
    X["level"] = pd.Categorical(rng.choice(["a", "b", "c"], 60), categories=["a", "b", "c"])
    y = np.where(X["tenth"] + X["free"] + 0.3 * (X["level"] == "a") > 1.1, "yes", "no")
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["level"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(3, random_state=0)).fit(X, y)
    return Explainer(model, X, schema=Schema.infer(X, precision={"tenth": 1}))


def _statement(tenth: float, *criteria: Criterion) -> Statement:
    explainer = _explainer()
    row = pd.DataFrame({"tenth": [tenth], "free": [0.05], "level": ["b"]})
    return explainer._ask(row, "yes", criteria).statement


def _points(query: Query, tenth: float) -> FloatArray:
    """All points of a grid that a value can take; the factual's own tenth may lie beside the grid."""
    tenths = np.unique(np.append(np.round(np.arange(0, 1.05, 0.1), 1), tenth))
    frees = np.unique(np.concatenate([np.linspace(0, 1, 21), [0.05, 0.3, np.nextafter(0.3, 1), np.nextafter(0.3, 0)]]))
    rows = [(t, f, *np.eye(3)[k]) for t, f, k in itertools.product(tenths, frees, range(3))]
    return np.array(rows)[query.limits.contains(np.array(rows))]


RULES = [
    Implies({"tenth": (0.3, None)}, {"free": (0.3, 0.5)}),
    Implies({"tenth": (None, 0.34)}, {"level": ["a", "b"]}),
    Implies({"free": (0.3, 0.3)}, {"tenth": (0.2, 0.41)}),
    Implies({"level": "b", "free": (None, 0.3)}, {"tenth": 0.4, "free": (0.1, None)}),
]


@pytest.mark.parametrize("tenth", [0.3, 0.4])
def test_pieces_are_what_meets_the_demand(tenth: float) -> None:
    query = _statement(tenth).query
    points = _points(query, tenth)
    changed = np.array([[True, False, True], [False, True, False], [True, True, True]])
    demands: list[Demand] = [d for rule in RULES for d in Actionability(implies=[rule]).demands(query)]
    demands += [LeaveOne.of(query, some) for some in changed]
    demands += [OtherFeatures.than(query, some, frozenset({0, 1, 2})) for some in changed]
    for demand in demands:
        assert isinstance(demand, UnionOfBoxes)
        pieces = demand.pieces(query, query.limits.copy())
        inside = np.any([piece.contains(points) for piece in pieces], axis=0)
        assert np.array_equal(inside, demand.holds(query, points)), demand.text


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("tenth", [0.3, 0.4])
def test_rules_on_the_edge_of_a_grid(rule: Implies, tenth: float) -> None:
    statement = _statement(tenth, Actionability(implies=[rule]))
    backend = find_solver("auto")
    found = find(statement, backend, Limits(60.0), ENGINES)
    alone = find(statement, backend, Limits(60.0), engines=ENGINES[-1:])
    assert found.optimal
    assert found.solver == "no solver needed"
    assert alone.bound == pytest.approx(found.bound, abs=1e-5)


def test_next_values_of_a_grid() -> None:
    tenths, free = Numeric("x", 0, 1, precision=1), Numeric("x", 0, 1)
    assert (tenths.below(0.3), tenths.above(0.3)) == (0.2, 0.4)
    assert (tenths.below(0.1 + 0.2), tenths.above(0.1 + 0.2)) == (0.2, 0.4)  # off by rounding
    assert (tenths.below(0.34), tenths.above(0.34)) == (0.3, 0.4)
    assert (tenths.below(-np.inf), tenths.above(np.inf)) == (-np.inf, np.inf)
    assert free.below(0.3) < 0.3 < free.above(0.3) < 0.3 + 1e-15


# -- the end of a search ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class LeadsNowhere(LeaveOne):
    """A demand whose pieces still hold the point that breaks it."""

    def pieces(self, query: Query, box: Box) -> list[Box]:
        del query
        return [box.copy()]


def test_pieces_that_lead_nowhere_go_to_the_solver() -> None:
    statement = _statement(0.3)
    first = find(statement, find_solver("auto"), Limits(60.0), ENGINES)
    assert first.u is not None
    changed = statement.query.changed(first.u[None, :])[0]
    for kind, solver in ((LeaveOne, "no solver needed"), (LeadsNowhere, "HiGHS")):
        asked = replace(statement, demands=(*statement.demands, kind.of(statement.query, changed)))
        found = find(asked, find_solver("auto"), Limits(60.0), ENGINES)
        assert found.optimal
        assert found.solver == solver
        assert found.bound > first.bound


def test_out_of_time_leaves_a_bound_that_holds() -> None:
    statement = _statement(0.3, Actionability(implies=RULES[:1]))
    whole = find(statement, find_solver("auto"), Limits(60.0), ENGINES)
    unions = next(only.engine for only in ENGINES if isinstance(only, OnlyWith) and isinstance(only.engine, Unions))
    assert unions.accepts(statement, statement.box())
    progress = Progress(find_solver("auto"), Limits(60.0), Deadline.after(0.0))
    late = unions.search(statement, statement.box(), progress)
    assert late.ended is not Ended.CLOSED
    assert progress.found().bound <= whole.bound
