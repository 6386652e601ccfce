"""Diverse answers: each equal to the best that enumeration leaves, and as far apart as was promised."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ifonly import (
    Actionability,
    CriterionError,
    Diversity,
    Explainer,
    LinearRow,
    Proximity,
    Robustness,
    Schema,
    Sparsity,
)
from ifonly.question.problem import build
from ifonly.solvers.backend import Limits
from ifonly.solvers.highs import BACKEND
from portions import one_in
from worlds import World, fit, world_of

TREES_AND_LINES = ["logistic", "tree", "forest", "boosting"]


def changed(world: World, row: pd.DataFrame, others: pd.DataFrame | None = None) -> np.ndarray:
    return world.moves(row, others) > 0


# -- by features -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", one_in(2, TREES_AND_LINES))
def test_each_answer_is_the_cheapest_that_leaves_one_feature_of_each_earlier_one(family: str) -> None:
    world = world_of(11, family)
    for row in world.factuals(2):
        answer = world.explainer().explain(row, want="yes", n=4)
        sets = changed(world, row)
        left = np.where(world.said, world.costs(row), np.inf)
        for found in answer:
            assert found.certificate.proven
            assert found.certificate.objective == pytest.approx(left.min(), abs=1e-6)
            mine = changed(world, row, found.row)[0]
            left = np.where(sets[:, mine].all(axis=1), np.inf, left)
        assert len(answer) == 4 or not np.isfinite(left.min())


@pytest.mark.parametrize("family", one_in(3, TREES_AND_LINES))
def test_nested_sets_are_the_exact_k_best(family: str) -> None:
    world = world_of(12, family)
    for row in world.factuals(2):
        explainer = world.explainer()
        unseen = [j for j in range(4) if j not in explainer.model.read.form.features()]
        sets = changed(world, row)
        costs = np.where(world.said & ~sets[:, unseen].any(axis=1), world.costs(row), np.inf)
        best = sorted(
            costs[(sets == subset).all(axis=1)].min()
            for subset in itertools.product([False, True], repeat=sets.shape[1])
            if any(subset)
        )
        answer = explainer.explain(row, want="yes", n=5, criteria=[Diversity("features", nested=True)])
        assert [a.certificate.objective for a in answer] == pytest.approx(best[:5], abs=1e-6)
        mine = {tuple(changed(world, row, a.row)[0]) for a in answer}
        assert len(mine) == 5


def test_fewer_than_asked_for_says_why() -> None:
    world = world_of(11, "tree")
    row = world.factuals(1)[0]
    answer = world.explainer().explain(row, want="yes", n=40, criteria=[Actionability(frozen=["n2", "colour"])])
    assert 1 <= len(answer) < 4
    assert answer.notes == (
        f"only {len(answer)} of 40: every further answer changes all that one of these changes (proven)",
    )
    assert answer.notes[0] in str(answer)
    assert answer.status == "optimal"


# -- by distance -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", one_in(4, [*TREES_AND_LINES, "network"]))
def test_each_answer_is_the_cheapest_that_is_far_enough_from_the_others(family: str) -> None:
    world = world_of(13, family)
    for row in world.factuals(2):
        answer = world.explainer().explain(
            row, want="yes", n=3, criteria=[Diversity("iterate", distance=0.4)], time_limit=300
        )
        left = np.where(world.said, world.costs(row), np.inf)
        for found in answer:
            assert found.certificate.proven
            assert found.certificate.objective == pytest.approx(left.min(), abs=1e-5)
            left = np.where(world.moves(found.row).sum(axis=1) < 0.4 - 1e-9, np.inf, left)
        assert len(answer) == 3 or not np.isfinite(left.min())


@pytest.mark.slow
def test_distances_are_counted_with_the_scales_and_weights_of_the_proximity() -> None:
    world = world_of(14, "forest")
    row = world.factuals(1)[0]
    metric = Proximity("l2", scale={"n0": 2.0}, weights={"n1": 3.0, "colour": 0.5})
    answer = world.explainer().explain(row, want="yes", n=4, criteria=[metric, Diversity("iterate", distance=1.5)])
    assert len(answer) == 4
    weights = np.array([1 / 2.0, 3.0 / 7.0, 1 / 5.0])
    for a, b in itertools.combinations(list(answer), 2):
        numbers = np.abs(a.row[world.names].to_numpy(float) - b.row[world.names].to_numpy(float))[0]
        apart = numbers @ weights + 0.5 * (a.row["colour"].iloc[0] != b.row["colour"].iloc[0])
        assert apart >= 1.5


@pytest.mark.parametrize("family", one_in(3, ["logistic", "forest", "network"]))
def test_the_distance_holds_on_the_returned_rows(family: str) -> None:
    rng = np.random.default_rng(5)
    X = pd.DataFrame(
        {
            "a": rng.normal(0, 1e4, 120),
            "b": rng.uniform(0, 1, 120).astype("float32"),
            "c": np.round(rng.uniform(0, 5, 120), 1),
            "d": rng.integers(0, 30, 120),
            "e": rng.choice(["x", "y", "z"], 120),
        }
    )
    y = np.where(X["a"] / 1e4 - 2 * X["b"] + 0.3 * X["c"] + 0.02 * X["d"] > 0.3, "yes", "no")
    model = fit(family, X, y)
    schema = Schema.infer(X, precision={"c": 1}, ordinal={"e": ["x", "y", "z"]})
    row = X[model.predict(X) == "no"].iloc[[0]]
    answer = Explainer(model, X, schema=schema, criteria=[Proximity()]).explain(
        row, want="yes", n=4, criteria=[Diversity("iterate", distance=0.15)], time_limit=300
    )
    assert len(answer) == 4
    rows = answer.frame()
    assert (model.predict(rows) == "yes").all()
    ranges = X[list("abcd")].max().astype(float) - X[list("abcd")].min().astype(float)
    order = rows["e"].map({"x": 0, "y": 1, "z": 2}).astype(float)
    for i, j in itertools.combinations(range(4), 2):
        numbers = (rows.loc[i, list("abcd")].astype(float) - rows.loc[j, list("abcd")].astype(float)).abs() / ranges
        assert numbers.sum() + abs(order[i] - order[j]) / 2 >= 0.15


def test_no_answer_is_that_far_away() -> None:
    world = world_of(13, "tree")
    answer = world.explainer().explain(
        world.factuals(1)[0], want="yes", n=3, criteria=[Diversity("iterate", distance=9.0)]
    )
    counted = "the features that the model or a demand looks at"
    assert answer.notes == (f"only 1 of 3: no further answer is 9 away from the others in {counted} (proven)",)


# -- incumbents ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", one_in(2, ["logistic", "forest", "network"]))
def test_incumbents_are_different_valid_and_led_by_the_optimum(family: str) -> None:
    world = world_of(15, family)
    explainer = world.explainer()
    counts = []
    for row in world.factuals(4):
        answer = explainer.explain(row, want="yes", n=3, criteria=[Diversity("incumbents")])
        assert answer.status == "optimal"
        assert answer[0].certificate.proven
        assert answer[0].certificate.objective == pytest.approx(
            explainer.explain(row, want="yes")[0].certificate.objective
        )
        rows = answer.frame()
        assert (world.model.predict(rows) == "yes").all()
        assert not rows.duplicated().any()
        objectives = [a.certificate.objective for a in answer]
        assert objectives == sorted(objectives)
        assert all(a.certificate.bound <= answer[0].certificate.objective + 1e-9 for a in answer)
        counts.append(len(answer))
        assert (len(answer) < 3) == bool(answer.notes)
    assert max(counts) > 1


def test_incumbents_keep_every_demand() -> None:
    world = world_of(15, "forest")
    row = world.factuals(1)[0]
    criteria = [Diversity("incumbents"), Sparsity(at_most=2), Actionability(frozen=["n0"]), Robustness(radius=0.2)]
    answer = world.explainer().explain(row, want="yes", n=4, criteria=criteria)
    good = world.robust(world.said, 0.2, "linf")
    for found in answer:
        moves = world.moves(row, found.row)[0]
        assert moves[0] == 0
        assert (moves > 0).sum() <= 2
        same = (world.grid == found.row.iloc[0]).all(axis=1)
        assert good[same].all()


# -- words -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "words"),
    [({"how": "random"}, "'how'"), ({"distance": 0.0}, "'distance'"), ({"distance": float("inf")}, "'distance'")],
)
def test_what_makes_no_sense_is_said_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(CriterionError, match=words):
        Diversity(**options)


def test_the_call_has_the_last_word() -> None:
    world = world_of(13, "tree")
    row = world.factuals(1)[0]
    explainer = Explainer(world.model, world.X, criteria=[Diversity("iterate", distance=9.0)])
    assert len(explainer.explain(row, want="yes", n=2)) == 1
    assert len(explainer.explain(row, want="yes", n=2, criteria=[Diversity("features")])) == 2


# -- features that nothing looks at ----------------------------------------------------------------------------------
def unseen_world() -> tuple[Explainer, dict[str, Any]]:
    """A tree on one whole number; the shoe size and the colour are there, but the tree never asks for them."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {"debts": rng.integers(0, 10, 80), "shoes": rng.integers(30, 50, 80), "colour": rng.choice(["r", "g"], 80)}
    )
    explainer = Explainer(fit("tree", X, np.where(X["debts"] < 4, "yes", "no")), X)
    assert explainer.model.read.form.features() == {0}
    return explainer, {"debts": 7, "shoes": 40, "colour": "r"}


@pytest.mark.parametrize("how", [Diversity("features", nested=True), Diversity("iterate", distance=1.5)])
def test_what_nothing_looks_at_makes_no_other_answer_and_the_note_says_so(how: Diversity) -> None:
    explainer, row = unseen_world()
    answer = explainer.explain(row, want="yes", n=3, criteria=[how])
    assert [[c.feature for c in a.changes] for a in answer] == [["debts"]]
    assert "the features that the model or a demand looks at (proven)" in answer.notes[0]


def test_what_a_demand_looks_at_counts() -> None:
    explainer, row = unseen_world()
    rule = Actionability(rows=[LinearRow({"shoes": 1, "debts": 1}, at_least=0)])  # always true
    nested = explainer.explain(row, want="yes", n=3, criteria=[rule, Diversity("features", nested=True)])
    assert [{c.feature for c in a.changes} for a in nested] == [{"debts"}, {"debts", "shoes"}]
    distant = explainer.explain(row, want="yes", n=2, criteria=[rule, Diversity("iterate", distance=0.5)])
    apart = (distant.frame()[["debts", "shoes"]].astype(float).diff().iloc[1] / [9, 19]).abs().sum()
    assert len(distant) == 2
    assert apart >= 0.5


@pytest.mark.parametrize("how", [Diversity("features", nested=True), Diversity("iterate", distance=0.3)])
def test_numpy_and_the_program_agree_on_what_is_another_answer(how: Diversity) -> None:
    """Every row of the box, pinned: the program has it exactly when `holds` says yes, unseen changes set aside."""
    explainer, row = unseen_world()
    statement = explainer.problem(row, want="yes").statement
    query = statement.query
    first = query.schema.encode(explainer.explain(row, want="yes").frame())[0]
    demand = how.another(query, statement.criteria, statement.demands, first)
    for debts, shoes in itertools.product(range(10), (30, 40, 49)):
        u = query.schema.encode(pd.DataFrame([{**row, "debts": debts, "shoes": shoes}]))
        box = statement.box()
        box.narrow(0, debts, debts)
        problem = build(replace(statement, demands=(demand,)), box)
        found = BACKEND.solve(problem.arrays(), Limits()).values is not None
        assert found == bool(demand.holds(query, u)[0])
