"""Branch and bound over cells: what it closes is what enumeration and the solver say, and what it cannot it leaves alone."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ifonly import Actionability, Explainer, Infeasible, Proximity, Sparsity, Target
from ifonly.errors import FactualViolatesDemand
from ifonly.question.criterion import Criterion
from ifonly.question.found import Ended
from ifonly.question.trail import Ledger
from ifonly.runtime.deadline import Deadline
from ifonly.search.cells.grids import Grid
from ifonly.search.cells.kernel import compiled
from ifonly.search.cells.splitting import Splitting
from ifonly.search.engines import WITH_SOLVER, engines_for, find
from ifonly.search.incumbents import Incumbents
from ifonly.search.reduce import Reducer
from ifonly.solvers.backend import Limits
from portions import diagonals
from questions import labels, people, pipeline

X = people(400)
Y = labels(X)
GRID = pd.DataFrame(
    list(itertools.product(range(6), range(5), ["red", "green", "blue", "black"], [0, 1])),
    columns=["size", "weight", "colour", "new"],
)
NONE = "no solver needed"


def encoded(estimator):
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    return make_pipeline(columns, estimator)


# -- enumeration ----------------------------------------------------------------------------------------------------
@pytest.mark.slow
@given(
    seed=st.integers(0, 10_000), classes=st.integers(2, 3), at_most=st.integers(1, 4), price=st.sampled_from([0, 0.3])
)
@settings(max_examples=25, deadline=None)
def test_optimum_equals_enumeration(seed, classes, at_most, price):
    rng = np.random.default_rng(seed)
    score = (
        GRID["size"] + 2 * (GRID["colour"] == "green") - GRID["weight"] * GRID["new"] + rng.normal(0, 1.5, len(GRID))
    )
    y = np.digitize(score, [1.5, 4.0][: classes - 1])
    model = encoded(RandomForestClassifier(9, max_depth=5, random_state=seed)).fit(GRID, y)
    said = model.predict(GRID)
    weight = {"size": float(rng.choice([0.0, 1.0, 3.0]))}
    house = [Proximity("l1", weights=weight), Sparsity(at_most=at_most, price=price)]
    explainer = Explainer(model, GRID, criteria=house)
    factual = GRID.iloc[int(rng.integers(len(GRID)))]
    others = [c for c in set(said) if c != said[factual.name]]
    if not others:
        return
    want = int(rng.choice(others))
    changed = (factual != GRID).to_numpy()
    cost = weight["size"] * (GRID["size"] - factual["size"]).abs() / 5 + (GRID["weight"] - factual["weight"]).abs() / 4
    cost = cost + changed[:, 2] + (GRID["new"] - factual["new"]).abs() + price * changed.sum(axis=1)
    good = (said == want) & (changed.sum(axis=1) <= at_most)
    if not good.any():
        with pytest.raises(Infeasible):
            explainer.explain(factual, want=want)
        return
    answer = explainer.explain(factual, want=want)
    assert answer.solver == NONE
    assert answer[0].certificate.proven
    assert answer[0].certificate.objective == pytest.approx(cost[good].min(), abs=1e-6)
    assert model.predict(answer.frame())[0] == want


# -- the solver -----------------------------------------------------------------------------------------------------
MODELS = {
    "forest": (pipeline(X, Y, RandomForestClassifier(12, max_depth=5, random_state=0)), "good"),
    "probability": (pipeline(X, Y, RandomForestClassifier(12, max_depth=5, random_state=1)), Target("good", 0.7)),
    "interval": (
        pipeline(X, X["income"] * 2 - X["debts"], RandomForestRegressor(10, max_depth=5, random_state=0)),
        Target(at_least=6.0, at_most=7.5),
    ),
    "boosted": (
        pipeline(X, X["income"] * 2 - X["debts"], GradientBoostingRegressor(n_estimators=15, random_state=0)),
        Target(at_least=6.0),
    ),
    "three classes": (
        pipeline(
            X, np.digitize(X["income"] - X["debts"], [1.0, 3.0]), RandomForestClassifier(8, max_depth=5, random_state=0)
        ),
        2,
    ),
}
CRITERIA: dict[str, list[Criterion]] = {
    "default": [],
    "bound": [Proximity("l1"), Sparsity(at_most=2)],
    "squares": [Proximity("l2"), Sparsity(price=0.02)],
    "acting": [Actionability(frozen=["job"], decrease=["debts"], max_step={"income": 3.0})],
    "weights": [Proximity("l1", weights={"income": 3.0, "home": 0.0}), Sparsity(at_most=3, price=0.01)],
    "far apart": [Proximity("l1", scale="none", weights={"income": 1e7, "age": 1e-3}), Sparsity(price=0.0)],
}


@cache
def explainers(name: str) -> tuple[Explainer, Explainer]:
    """An explainer that may do without a solver, and one that may not."""
    model, _ = MODELS[name]
    return Explainer(model, X), Explainer(model, X, solver="highs only")


@pytest.mark.parametrize(("name", "criteria"), diagonals(6, MODELS, CRITERIA))
def test_the_solver_finds_nothing_cheaper(name: str, criteria: str) -> None:
    (_, want), (mine, solved) = MODELS[name], explainers(name)
    asked = 0
    for i in range(0, 40, 3):
        row = X.iloc[[i]]
        if mine._ask(row, want, ()).goal.confirmed(mine.schema.encode(row))[0]:
            continue
        asked += 1
        if asked > 2:
            break
        try:
            answer = mine.explain(row, want=want, criteria=CRITERIA[criteria])
        except Infeasible:
            statement = solved._ask(row, want, CRITERIA[criteria]).statement
            assert find(statement, solved.backend, Limits(), WITH_SOLVER).infeasible
            continue
        theirs = solved.explain(row, want=want, criteria=CRITERIA[criteria])
        assert (answer.solver, theirs.solver) == (NONE, "HiGHS")
        assert answer.status == theirs.status == "optimal"
        assert answer[0].certificate.objective == pytest.approx(theirs[0].certificate.objective, rel=3e-6, abs=3e-6)
    assert asked


def test_a_factual_with_holes_and_one_outside_of_what_is_demanded():
    holes = X[["age", "income", "debts"]].astype(float)
    holes = holes.mask(np.random.default_rng(0).uniform(size=holes.shape) < 0.1)
    model = HistGradientBoostingClassifier(max_iter=15, random_state=0).fit(holes, Y)
    mine, solved = Explainer(model, holes), Explainer(model, holes, solver="highs only")
    rows = holes[(model.predict(holes) == "bad") & holes.isna().any(axis=1)]
    for i in range(4):
        costs = [e.explain(rows.iloc[[i]], want="good")[0].certificate.objective for e in (mine, solved)]
        assert costs[0] == pytest.approx(costs[1], abs=3e-6)
    row = holes[(model.predict(holes) == "bad") & holes.notna().all(axis=1)].iloc[[0]]
    apart = [Actionability(ranges={"income": (float(row["income"].iloc[0]) + 0.5, 9.0)})]
    with pytest.warns(FactualViolatesDemand):
        answers = [e.explain(row, want="good", criteria=apart) for e in (mine, solved)]
    assert answers[0].solver == NONE
    assert answers[0][0].certificate.objective == pytest.approx(answers[1][0].certificate.objective, abs=3e-6)


@pytest.mark.parametrize("at_most", [1, 2, 4])
def test_a_change_that_is_demanded_of_a_feature_no_tree_looks_at(at_most):
    model, want = MODELS["forest"]
    rows = X[(model.predict(X) == "bad") & (X["phone"] == "no")]
    criteria = [Actionability(allow={"phone": ["yes"]}), Sparsity(at_most=at_most, price=0.05)]
    mine, solved = explainers("forest")
    for i in range(3):
        found = []
        for explainer in (mine, solved):
            with pytest.warns(FactualViolatesDemand):
                asked = explainer._ask(rows.iloc[[i]], want, criteria)
            found.append(find(asked.statement, explainer.backend, Limits(), engines_for(explainer.backend)))
        assert found[0].ended is found[1].ended is Ended.CLOSED
        assert (found[0].u is None) == (found[1].u is None)
        if found[0].u is not None:
            assert found[0].solver == NONE
            costs = [float(asked.statement.objective(f.u[None, :])[0]) for f in found]
            assert costs[0] == pytest.approx(costs[1], abs=3e-6)


# -- giving up ------------------------------------------------------------------------------------------------------
@cache
def confident() -> tuple[Explainer, pd.DataFrame]:
    data, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(50, max_depth=5, random_state=0).fit(data, y)
    return Explainer(model, data, criteria=[Proximity("l1")]), data.iloc[[6]]


def splitting(explainer: Explainer, row: pd.DataFrame, ledger: Ledger | None = None) -> tuple[Splitting, Incumbents]:
    statement = explainer._ask(row, None, ()).statement
    incumbents = Incumbents(Reducer(statement), statement.box())
    incumbents.quick()
    incumbents.rows()
    return Splitting(incumbents, 30, ledger=ledger), incumbents


def test_a_search_that_gets_nowhere_without_prices_is_given_up_early():
    explainer, row = confident()
    search, incumbents = splitting(explainer, row, Ledger())
    search._can_price = lambda: False
    assert search.run(incumbents.box, Deadline.never()) is Ended.GAVE_UP
    assert search.parts <= (100_000 if compiled() else 1000)


def test_the_deadline_is_kept():
    explainer, row = confident()
    search, incumbents = splitting(explainer, row)
    assert search.run(incumbents.box, Deadline.after(0.0)) is Ended.LIMIT
    assert search.parts <= 16


def test_what_reaches_beyond_single_features_goes_to_the_solver():
    explainer, _ = explainers("forest")
    row = X[MODELS["forest"][0].predict(X) == "bad"].iloc[[0]]
    assert explainer.explain(row, want="good", criteria=[Proximity("mahalanobis")]).solver == "HiGHS"


def test_a_part_costs_what_its_cheapest_point_costs():
    explainer = Explainer(MODELS["forest"][0], X, criteria=[Proximity("l1"), Sparsity(price=0.1)])
    row = X[MODELS["forest"][0].predict(X) == "bad"].iloc[[3]]
    statement = explainer._ask(row, "good", ()).statement
    reducer, box = Reducer(statement), statement.box()
    grid = Grid(reducer, box, reducer.brackets.leaves.within(box))
    rng = np.random.default_rng(0)
    for _ in range(50):
        part = grid.whole()
        for k in range(len(grid.numbers)):
            low, high = sorted(rng.integers(0, grid.size[k], 2))
            part = part.numbers(k, int(low), int(high))
        keep = rng.uniform(size=len(grid.entries)) < 0.7
        keep[grid.entry_first] = True
        part = part.levels(keep)
        numbers, levels = grid.least(part)
        point = grid.point(part, statement.query.factual)
        assert statement.objective(point[None, :])[0] == pytest.approx(numbers.sum() + levels.sum())
        away = grid.changed(part)
        assert statement.query.changed(point[None, :])[0].sum() == away[0].sum() + away[1].sum()
