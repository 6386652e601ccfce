"""Answers at a distance from earlier ones: closed without a solver, at the cost that enumeration finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from ifonly import Diversity, Explainer, Proximity, Sparsity
from ifonly.criteria.diversity.distinct import Apart
from ifonly.extend import Tuning
from ifonly.question.found import Ended
from ifonly.runtime.deadline import Deadline
from ifonly.search.cells.kernel import compiled
from ifonly.search.cells.split_prices import Method
from ifonly.search.distances import Distances
from ifonly.search.engines import ENGINES, find
from ifonly.solvers.backend import Limits
from ifonly.solvers.registry import find_solver
from worlds import World, world_of

FAMILIES = ["logistic", "tree", "forest", "boosting"]


def check(world: World, row: pd.DataFrame, distance: float, costs: np.ndarray, *criteria: Any) -> int:
    """Hold four answers against the enumeration of the grid; return how many there are."""
    asked = [Diversity("iterate", distance=distance), *criteria]
    answer = world.explainer().explain(row, want="yes", n=4, criteria=asked)
    left = np.where(world.said, costs, np.inf)
    for found in answer:
        assert found.certificate.proven
        assert found.certificate.solver == "no solver needed"
        assert found.certificate.objective == pytest.approx(left.min(), abs=1e-9)
        left = np.where(world.moves(found.row).sum(axis=1) >= distance - 1e-9, left, np.inf)
    assert len(answer) == 4 or not np.isfinite(left.min())
    return len(answer)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("distance", [0.2, 0.6, 1.7])
def test_cost_what_enumeration_finds(family: str, distance: float) -> None:
    world = world_of(31, family)
    first, second = world.factuals(2)
    assert check(world, first, distance, world.costs(first, 0.1), Sparsity(price=0.1)) >= 2
    check(world, second, distance, world.costs(second, 0.0), Sparsity(price=0.0))


@pytest.mark.parametrize("family", ["logistic", "forest"])
def test_a_number_of_changes(family: str) -> None:
    world = world_of(32, family)
    row = world.factuals(1)[0]
    few = (world.moves(row) > 0).sum(axis=1) <= 2
    costs = np.where(few, world.costs(row, 0.0), np.inf)
    check(world, row, 0.4, costs, Sparsity(at_most=2, price=0.0))


@pytest.mark.parametrize("family", ["logistic", "forest"])
def test_squares(family: str) -> None:
    world = world_of(33, family)
    row = world.factuals(1)[0]
    costs = (world.moves(row) ** 2).sum(axis=1)
    check(world, row, 0.5, costs, Proximity("l2", scale="range"), Sparsity(price=0.0))


@pytest.mark.skipif(not compiled(), reason="the package was installed without a compiler")
def test_without_the_kernel_the_answers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(34, "forest")
    row = world.factuals(1)[0]
    count = check(world, row, 0.3, world.costs(row, 0.1), Sparsity(price=0.1))
    monkeypatch.setenv("IFONLY_KERNEL", "numpy")
    assert check(world, row, 0.3, world.costs(row, 0.1), Sparsity(price=0.1)) == count


def test_a_search_that_begins_again_with_prices_looks_at_all_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cells of the second search are others, so what the first one has seen is of no use to it."""
    world, began = world_of(35, "forest", (14, 12, 11)), []
    opened = Method.of
    monkeypatch.setattr(Method, "of", lambda *tables: (began.append(True), opened(*tables))[1])
    usual = Tuning()
    tuning = replace(
        usual,
        covering=replace(usual.covering, plain_parts_compiled=6),
        prices=replace(usual.prices, plain_parts=6),
    )
    explainer = Explainer(world.model, world.X, criteria=[Sparsity(price=0.1)], tuning=tuning)
    for row in world.factuals(3):
        answer = explainer.explain(row, want="yes", n=4, criteria=[Diversity("iterate", distance=0.3)])
        left = np.where(world.said, world.costs(row, 0.1), np.inf)
        for found in answer:
            assert found.certificate.proven
            assert found.certificate.objective == pytest.approx(left.min(), abs=1e-9)
            left = np.where(world.moves(found.row).sum(axis=1) >= 0.3 - 1e-9, left, np.inf)
    assert began


@pytest.mark.parametrize("kernel", ["compiled", "numpy"])
@pytest.mark.parametrize(("seed", "family"), [(31, "tree"), (32, "forest")])
def test_leaves_that_prices_close_still_lie_in_their_part(
    monkeypatch: pytest.MonkeyPatch, kernel: str, seed: int, family: str
) -> None:
    """Points in closed leaves may miss the goal, where all leaves that are left open reach it."""
    if kernel == "numpy":
        monkeypatch.setenv("IFONLY_KERNEL", "numpy")
    world, usual = world_of(seed, family), Tuning()
    tuning = replace(
        usual,
        covering=replace(usual.covering, plain_parts_compiled=1),
        prices=replace(usual.prices, plain_parts=1),
    )
    explainer = Explainer(world.model, world.X, criteria=[Sparsity(price=0.1)], tuning=tuning)
    for row in world.factuals(2):
        answer = explainer.explain(row, want="yes", n=4, criteria=[Diversity("iterate", distance=0.3)])
        left = np.where(world.said, world.costs(row, 0.1), np.inf)
        for found in answer:
            assert found.certificate.proven
            assert found.certificate.objective == pytest.approx(left.min(), abs=1e-9)
            left = np.where(world.moves(found.row).sum(axis=1) >= 0.3 - 1e-9, left, np.inf)


@pytest.mark.parametrize("kind", ["logistic", "forest"])
def test_continuous_numbers_cost_what_the_solver_finds(kind: str) -> None:
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": rng.normal(size=90), "b": rng.normal(size=90) * 1e3, "c": rng.normal(size=90) + 1e4})
    y = np.where(X.a + X.b / 1e3 - (X.c - 1e4) > 0.3, "yes", "no")
    X = X.round({"a": 6, "b": 5, "c": 6})
    model: Any = LogisticRegression(max_iter=9000) if kind == "logistic" else RandomForestClassifier(4, max_depth=3)
    model = model.set_params(random_state=0).fit(X, y)
    explainer = Explainer(model, X)
    row = X[model.predict(X) == "no"].iloc[[3]]
    asked = [Diversity("iterate", distance=0.3)]
    ours = explainer.explain(row, want="yes", n=3, criteria=asked)
    theirs = Explainer(model, X, solver="highs only").explain(row, want="yes", n=3, criteria=asked)
    assert ours[1].certificate.solver == "no solver needed"
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-4)


def test_a_row_beside_its_grid_is_left_to_others() -> None:
    world = world_of(31, "forest")
    explainer, row = world.explainer(), world.factuals(1)[0]
    statement = explainer._ask(row, "yes", ()).statement
    first = find(statement, find_solver("auto"), Limits(10.0), deadline=Deadline.after(10.0), engines=ENGINES)
    assert first.ended is Ended.CLOSED
    assert first.u is not None
    among = frozenset(range(len(statement.query.schema)))
    apart = Apart.from_(first.u, Proximity(), 0.3, among)
    further, box = replace(statement, demands=(*statement.demands, apart)), statement.box()
    assert Distances().accepts(further, box)
    beside = statement.query.factual.copy()
    beside[0] += 0.5
    assert not Distances().accepts(replace(further, query=replace(further.query, factual=beside)), box)
    assert not Distances().accepts(statement, box)  # no distance is to be kept
