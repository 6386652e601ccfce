"""Any of several classes: the cheapest row of a grid that has one of them, by enumeration; and wishes that make no sense."""

from __future__ import annotations

import itertools
import json
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import ifonly
import questions
from ifonly import (
    Actionability,
    CriterionError,
    Diversity,
    Explainer,
    Explanation,
    Infeasible,
    Manifold,
    Proximity,
    Robustness,
    Sparsity,
    Target,
)
from ifonly.criteria.validity import resolve
from ifonly.search.boxes.programs import solve_problem
from ifonly.solvers.backend import Limits
from ifonly.solvers.registry import find_solver
from portions import diagonals

SIZES = (9, 8, 6)
FAMILIES: dict[str, Any] = {
    "logistic": LogisticRegression(max_iter=5000),
    "svm": LinearSVC(dual=False),
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": RandomForestClassifier(9, max_depth=4, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=0),
    "network": MLPClassifier((6,), max_iter=1500, random_state=0, alpha=0.3),
}


@cache
def world(family: str) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """A model of four classes on three whole numbers, its data, and every row there is."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({f"n{i}": np.concatenate([[0, s - 1], rng.integers(0, s, 120)]) for i, s in enumerate(SIZES)})
    effect = X["n0"] / 8 - X["n1"] / 7 + 0.5 * np.sin(X["n2"] + X["n0"]) + rng.normal(0, 0.1, len(X))
    y = np.array(["a", "b", "c", "d"])[np.digitize(effect, np.quantile(effect, [0.25, 0.5, 0.75]))]
    grid = pd.DataFrame(list(itertools.product(*map(range, SIZES))), columns=X.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FAMILIES[family].fit(X, y), X, grid


def cheapest(model: Any, grid: pd.DataFrame, row: pd.DataFrame, labels: set[str], price: float = 0.1) -> float:
    """Return the least cost of a row with one of the labels, by asking the model about all of them."""
    moved = np.abs(grid.to_numpy() - row.to_numpy())
    cost = (moved / (np.array(SIZES) - 1)).sum(axis=1) + price * (moved > 0).sum(axis=1)
    return float(cost[np.isin(model.predict(grid), list(labels))].min())


@pytest.mark.parametrize(("solver", "family"), diagonals(4, ["auto", "highs only"], FAMILIES))
def test_the_cheapest_of_all_rows_with_one_of_the_classes(family: str, solver: str) -> None:
    model, X, grid = world(family)
    explainer = Explainer(model, X, solver=solver, criteria=[Proximity(), Sparsity(price=0.1)])
    asked = 0
    for position in range(0, len(grid), 79):
        row = grid.iloc[[position]]
        now = str(model.predict(row)[0])
        for labels in itertools.combinations(sorted({"a", "b", "c", "d"} - {now}), 2):
            answer = explainer.explain(row, want=list(labels))
            assert answer.status == "optimal"
            assert model.predict(answer.frame())[0] in labels
            assert answer[0].prediction in labels
            assert answer[0].certificate.objective == pytest.approx(cheapest(model, grid, row, set(labels)), abs=1e-6)
            asked += 1
    assert asked >= 15


def test_the_program_has_the_same_optimum_as_the_branches() -> None:
    """`explainer.problem` states the union with 0/1 columns, in one program."""
    model, X, grid = world("forest")
    explainer = Explainer(model, X, criteria=[Proximity(), Sparsity(price=0.1)])
    row = grid.iloc[[0]]
    labels = sorted({"a", "b", "c", "d"} - {str(model.predict(row)[0])})[:2]
    found = solve_problem(explainer.problem(row, want=labels), find_solver("highs"), Limits(20.0))
    assert found.u is not None
    assert found.bound == pytest.approx(cheapest(model, grid, row, set(labels)), abs=1e-6)


def test_with_demands_several_answers_and_hulls() -> None:
    model, X, grid = world("forest")
    y = model.predict(X)
    explainer = Explainer(model, X, y)
    row = grid.iloc[[0]]
    now = str(model.predict(row)[0])
    labels = sorted({"a", "b", "c", "d"} - {now})[:2]
    several = explainer.explain(row, want=labels, n=3, criteria=[Diversity("features", nested=True)])
    assert len(several) == 3
    assert set(model.predict(several.frame())) <= set(labels)
    near = explainer.explain(row, want=labels, criteria=[Manifold()])
    assert near[0].prediction in labels
    assert f"labelled {labels[0]!r} or {labels[1]!r}" in " ".join(near.notes)
    kept = Actionability(frozen=["n0", "n1"], ranges={"n2": (0, 0)})
    with pytest.raises(Infeasible) as impossible:
        explainer.explain(row, want=labels, criteria=[kept])
    assert f"want {labels[0]!r} or {labels[1]!r}" in impossible.value.conflict


def test_an_observed_model() -> None:
    _, X, grid = world("forest")
    y = world("forest")[0].predict(X)
    model = KNeighborsClassifier(3, weights="distance").fit(X, y)
    row = grid.iloc[[0]]
    labels = sorted({"a", "b", "c", "d"} - {str(model.predict(row)[0])})[:2]
    answer = Explainer(model, X, surrogate="auto").explain(row, want=labels, time_limit=3)
    assert model.predict(answer.frame())[0] in labels
    assert not answer[0].certificate.proven


# -- wishes -----------------------------------------------------------------------------------------------------------
def test_lists_sets_arrays_and_targets_say_the_same() -> None:
    model, X, _ = world("forest")
    opened = Explainer(model, X).model
    for want in (["b", "a"], ("a", "b"), {"a", "b"}, np.array(["a", "b", "a"]), Target(any_of=["a", "b"])):
        assert resolve(want, opened).text == "want 'a' or 'b'"
    assert resolve(["c"], opened).text == "want 'c'"
    assert repr(Target(any_of=["a", "b"])) == "Target(any_of=('a', 'b'))"


@pytest.mark.parametrize(
    ("want", "words"),
    [
        (["a", "b", "c", "d"], "Every class that the model knows is wanted"),
        (["a", "x"], "does not know the class 'x'"),
        ([], "any_of.* is empty"),
    ],
)
def test_wishes_that_make_no_sense(want: Any, words: str) -> None:
    model, X, grid = world("forest")
    with pytest.raises(CriterionError, match=words):
        Explainer(model, X).explain(grid.iloc[[0]], want=want)


def test_targets_that_make_no_sense() -> None:
    with pytest.raises(CriterionError, match=r"any_of=\['good'\]"):
        Target(any_of="good")
    with pytest.raises(CriterionError, match="no label, probability or interval beside it"):
        Target(any_of=["a", "b"], probability=0.7)


def test_robustness_keeps_one_outcome() -> None:
    model, X, grid = world("forest")
    now = model.predict(grid.iloc[[0]])[0]
    labels = sorted({"a", "b", "c", "d"} - {now})[:2]
    with pytest.raises(CriterionError, match="each class by itself"):
        Explainer(model, X).explain(grid.iloc[[0]], want=labels, criteria=[Robustness(radius=0.1)])


def test_of_two_classes_both_is_no_wish() -> None:
    with pytest.raises(CriterionError, match="Leave one out"):
        questions.explainer().explain(questions.FACTUAL, want=["good", "bad"])


def test_the_wish_is_kept_in_json_and_in_a_record() -> None:
    model, X, grid = world("forest")
    explainer = Explainer(model, X)
    now = model.predict(grid.iloc[[0]])[0]
    labels = sorted({"a", "b", "c", "d"} - {now})[:2]
    answer = explainer.explain(grid.iloc[[0]], want=labels)
    data = answer.to_dict()
    assert data["want"] == labels
    again = Explanation.from_json(answer.to_json())
    assert again.want == f"{labels[0]!r} or {labels[1]!r}"
    verdict = ifonly.verify(json.loads(answer.to_json()), model, X)
    assert verdict.ok, str(verdict)


@pytest.mark.parametrize("family", ["network", "forest", "logistic"])
def test_within_a_gap_the_bound_is_that_of_all_classes(family: str) -> None:
    """One class may be closed within the gap only, and another one to the end: the bound is the least of both."""
    model, X, grid = world(family)
    for norm, position in itertools.product(("l1", "l2"), range(0, len(grid), 131)):
        row = grid.iloc[[position]]
        labels = sorted({"a", "b", "c", "d"} - {str(model.predict(row)[0])})
        moved = np.abs(grid.to_numpy() - row.to_numpy()) / (np.array(SIZES) - 1)
        costs = (moved.sum(axis=1) if norm == "l1" else (moved**2).sum(axis=1)) + 0.1 * (moved > 0).sum(axis=1)
        best = float(costs[np.isin(model.predict(grid), labels)].min())
        criteria = [Proximity(norm), Sparsity(price=0.1)]
        explainer = Explainer(model, X, solver="highs only", criteria=criteria)
        certificate = explainer.explain(row, want=labels, gap=0.3)[0].certificate
        assert certificate.bound <= best * (1 + 1e-9)
        assert best <= certificate.objective * (1 + 1e-9) <= best / 0.7 * (1 + 1e-6)
