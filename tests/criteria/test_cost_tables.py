"""Costs that are tables or percentiles: the cheapest row by enumeration, in every engine; and curves against brute force."""

from __future__ import annotations

import itertools
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ifonly import Diversity, Explainer, Manifold, Proximity, Robustness, Sparsity
from ifonly.extend import check_criterion
from ifonly.question.curves import CostCurve
from portions import diagonals, one_in

SIZES = {"n0": 12, "n1": 9, "n2": 6}
LEVELS = ["blue", "green", "red"]
FAMILIES: dict[str, Any] = {
    "logistic": LogisticRegression(max_iter=5000),
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": RandomForestClassifier(9, max_depth=4, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=0),
    "network": MLPClassifier((6,), max_iter=1500, random_state=0, alpha=0.3),
}
# Dear at first and cheap later (not convex), dearer downwards; and one that holds for both directions.
TABLES = {"n0": {-2: 1.0, -6: 1.2, 3: 0.2, 4: 0.9}, "n2": {1: 0.1, 3: 0.7}, "colour": {"red": 0.3}}


@cache
def world(family: str) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(8)
    X = pd.DataFrame({n: np.concatenate([[0, s - 1], rng.binomial(s - 1, 0.3, 120)]) for n, s in SIZES.items()})
    X["colour"] = [*LEVELS[:2], *rng.choice(LEVELS, 120)]
    effect = X["n0"] / 11 - X["n1"] / 8 + 0.4 * np.sin(X["n2"] + X["n0"]) + 0.3 * (X["colour"] == "red")
    y = np.where(effect + rng.normal(0, 0.1, len(X)) > 0.2, "yes", "no")
    grid = pd.DataFrame(list(itertools.product(*map(range, SIZES.values()), LEVELS)), columns=X.columns)
    before = make_column_transformer((OneHotEncoder(sparse_output=False), ["colour"]), (StandardScaler(), list(SIZES)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(before, FAMILIES[family]).fit(X, y), X, grid


def percentile(X: pd.DataFrame, name: str, value: Any) -> Any:
    """The share of rows below a value, and half of those at it; written out, and linear in between."""
    at = np.unique(X[name])
    share = [(float((X[name] < v).mean()) + float((X[name] <= v).mean())) / 2 for v in at]
    return np.interp(np.asarray(value, dtype=float), at, share)


def table_cost(table: dict[int, float], change: Any) -> Any:
    known = dict(table) | {0: 0.0}
    if not any(d < 0 for d in table):
        known |= {-d: c for d, c in table.items()}
    d = np.array(sorted(known), dtype=float)
    c = np.array([known[int(k)] for k in d])
    change = np.asarray(change, dtype=float)
    low, high = abs(c[1] - c[0]) / (d[1] - d[0]), (c[-1] - c[-2]) / (d[-1] - d[-2])
    inside = np.interp(change, d, c)
    return inside + low * np.maximum(d[0] - change, 0) + high * np.maximum(change - d[-1], 0)


def costs(X: pd.DataFrame, grid: pd.DataFrame, row: pd.DataFrame, how: str) -> Any:
    """Per row and feature, what a change costs: said a second time."""
    out = []
    for name in SIZES:
        hat = row[name].iloc[0]
        if how == "tables" and name in TABLES:
            out.append(table_cost(TABLES[name], grid[name] - hat))  # type: ignore[arg-type]
        elif how == "percentile":
            out.append(np.abs(percentile(X, name, grid[name]) - percentile(X, name, hat)))
        else:
            out.append(np.abs(grid[name] - hat) / (X[name].max() - X[name].min()))
    switched = grid["colour"] != row["colour"].iloc[0]
    price = np.where(grid["colour"] == "red", 0.3, 1.0) if how == "tables" else 1.0
    return np.column_stack([*out, switched * price])


@pytest.mark.parametrize(("how", "family"), diagonals(4, ["tables", "percentile"], FAMILIES))
@pytest.mark.parametrize(("norm", "solver"), [("l1", "auto"), ("l1", "highs only"), ("linf", "auto")])
def test_the_cheapest_of_all_rows(family: str, how: str, norm: str, solver: str) -> None:
    model, X, grid = world(family)
    said = model.predict(grid)
    near = (
        Proximity(norm, tables=TABLES, scale="range")  # type: ignore[arg-type]
        if how == "tables"
        else Proximity(norm, scale="percentile")  # type: ignore[arg-type]
    )
    explainer = Explainer(model, X, solver=solver, criteria=[near, Sparsity(price=0.05)])
    for position in np.flatnonzero(said == "no")[::211][:7]:
        row = grid.iloc[[int(position)]]
        each = costs(X, grid, row, how)
        changed = (grid.to_numpy(dtype=object) != row.to_numpy(dtype=object)).sum(axis=1)
        total = (each.sum(axis=1) if norm == "l1" else each.max(axis=1)) + 0.05 * changed
        answer = explainer.explain(row, want="yes")
        assert answer.status == "optimal"
        assert answer[0].certificate.objective == pytest.approx(float(total[said == "yes"].min()), abs=1e-6)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize(
    "options", one_in(2, [{"tables": TABLES}, {"scale": "percentile"}, {"scale": "percentile", "weights": {"n1": 3.0}}])
)
def test_the_program_says_what_numpy_says(norm: Any, options: dict[str, Any]) -> None:
    model, X, grid = world("logistic")
    check_criterion(Proximity(norm, **options), Explainer(model, X), grid.iloc[[5]], want="yes")


def test_beside_hulls_diversity_and_robustness() -> None:
    model, X, grid = world("forest")
    said = model.predict(grid)
    row = grid.iloc[[int(np.flatnonzero(said == "no")[40])]]
    explainer = Explainer(model, X, criteria=[Proximity(tables=TABLES)])
    free = explainer.explain(row, want="yes")[0].certificate
    for more in (Manifold(of="all"), Robustness(radius=0.1), Diversity("iterate", distance=0.3)):
        n = 2 if isinstance(more, Diversity) else 1
        answer = explainer.explain(row, want="yes", criteria=[more], n=n)
        assert (model.predict(answer.frame()) == "yes").all()
        assert answer[0].certificate.objective >= free.objective - 1e-9
        measured = costs(X, answer.frame(), row, "tables").sum(axis=1)
        assert answer[0].certificate.objective == pytest.approx(measured[0], abs=1e-9)


def test_a_continuous_number_pays_by_the_table() -> None:
    """One number, one threshold: the answer and its cost by hand."""
    X = pd.DataFrame({"x": np.linspace(0.0, 10.0, 201) + 0.00123456789})
    model = LogisticRegression(C=1e6).fit(X, X["x"] > 6.0)
    explainer = Explainer(model, X, criteria=[Proximity(tables={"x": {1: 5.0, 3: 5.5}})])
    answer = explainer.explain({"x": 2.0}, want=True)
    edge = float(-model.intercept_[0] / model.coef_[0, 0])
    assert answer[0].changes[0].after == pytest.approx(edge, abs=1e-6)
    # from 1 on, a unit costs 0.25, and that goes on
    assert answer[0].certificate.objective == pytest.approx(5.0 + 0.25 * (edge - 3.0), abs=1e-6)
    assert answer[0].certificate.proven


# -- the automatic scale ---------------------------------------------------------------------------------------------
def test_outliers_do_not_make_every_change_small() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"share": rng.uniform(0, 1, 400), "age": rng.integers(20, 70, 400)})
    X.loc[0, "share"] = 5000.0
    y = X["share"].clip(upper=1.0) + X["age"] / 100 > 1.0
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    row = X[~model.predict(X)].iloc[[3]]
    answer = Explainer(model, X, criteria=[Proximity()]).explain(row, want=True)
    plain = Explainer(model, X, criteria=[Proximity(scale="range")]).explain(row, want=True)
    assert plain[0].distance < 1e-3
    assert answer[0].distance > 0.01
    middle = float(np.subtract(*np.quantile(X["share"], [0.95, 0.05])))
    moved = {c.feature: abs(c.after - c.before) for c in answer[0].changes}
    by_hand = moved.get("share", 0.0) / middle + moved.get("age", 0.0) / (X["age"].max() - X["age"].min())
    assert answer[0].distance == pytest.approx(by_hand)
    told = [note for note in answer.notes if note.startswith("outliers rule the range of share")]
    assert bool(told) == ("share" in moved)
    # Without outliers the range it is, to the last digit, and nothing is said.
    calm = X.iloc[1:]
    one, other = (
        Explainer(model, calm, criteria=[Proximity(scale=s)]).explain(row, want=True) for s in ("auto", "range")
    )
    assert one[0].distance == other[0].distance
    assert not one.notes


# -- curves ----------------------------------------------------------------------------------------------------------
def test_reach_is_the_farthest_change_that_a_budget_pays() -> None:
    rng = np.random.default_rng(1)
    d = np.linspace(-30, 30, 24001)
    for _ in range(60):
        sides = [np.sort(rng.uniform(0.5, 10, 3)), np.sort(rng.uniform(0.5, 10, 2))]
        values = [np.sort(rng.choice([0.0, 0.5, 1.0, 2.0, 3.0], 3)), np.sort(rng.uniform(0, 3, 2))]
        curve = CostCurve.through(np.concatenate([-sides[0], sides[1]]), np.concatenate(values))
        cost = curve(d)
        assert (np.diff(cost[d >= 0]) >= -1e-12).all()
        assert (cost >= curve.rate * np.abs(d) - 1e-9).all()
        for budget in (0.0, 0.3, 1.0, 2.5):
            down, up = curve.reach(budget)
            paid = d[cost <= budget + 1e-12]
            assert min(down, 30.0) == pytest.approx(-paid.min(), abs=0.01)
            assert min(up, 30.0) == pytest.approx(paid.max(), abs=0.01)
        assert curve.reach(-1.0) == (-1.0, -1.0)
        both = curve + curve.times(2.0)
        np.testing.assert_allclose(both(d), 3.0 * cost, atol=1e-12)


# -- refusals --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"norm": "l2", "tables": {"n0": {1: 1.0}}}, "Use norm='l1' or norm='linf'"),
        ({"norm": "mahalanobis", "scale": "percentile"}, "not squared"),
        ({"tables": {"n0": 3.0}}, "must map changes"),
        ({"tables": {"n0": {}}}, "must map changes"),
        ({"tables": {"n0": {1: -1.0}}}, "must not be negative"),
        ({"tables": {"n0": {1: 2.0, 2: 1.0}}}, "charges less for more"),
        ({"tables": {"n0": {0: 1.0, 2: 1.0}}}, "No change costs nothing"),
        ({"tables": {"n0": {0: 0.0}}}, "names no change"),
        ({"tables": {"n0": {"up": 1.0}}}, "must map changes to costs"),
        ({"tables": {"colour": {"pink": 1.0}}}, "pink"),
    ],
)
def test_tables_that_make_no_sense(options: dict[str, Any], words: str) -> None:
    model, X, grid = world("tree")
    with pytest.raises(ValueError, match=words):
        Explainer(model, X, criteria=[Proximity(**options)]).explain(grid.iloc[[0]], want="yes")
