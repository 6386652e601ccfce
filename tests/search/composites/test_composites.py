"""Branch and bound over composites: bounds hold, and the optimum is that of enumeration and of the solver."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ifonly import Explainer, Infeasible, Proximity, Schema, Sparsity, Target
from ifonly.question.found import Ended
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import CompositeSearch, Tuning
from ifonly.search.composites import Composites
from ifonly.search.engines import ENGINES, WITH_SOLVER, find
from ifonly.solvers.backend import Limits
from portions import diagonals, one_in
from questions import HOUSES, labels, people, pipeline, shares

GRID = pd.DataFrame(
    list(itertools.product(range(7), np.round(np.arange(-2, 3) * 0.1, 1), ["red", "green", "blue", "black"], [0, 1])),
    columns=["size", "weight", "colour", "new"],
)
NONE = "no solver needed"


def forest(seed: int, trees: int = 6, depth: int = 3) -> RandomForestClassifier:
    return RandomForestClassifier(trees, max_depth=depth, random_state=seed)


def logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=2000)


KINDS: dict[str, Callable[[int], Any]] = {
    "sigmoid": lambda s: CalibratedClassifierCV(forest(s), cv=2),
    "isotonic": lambda s: CalibratedClassifierCV(forest(s), method="isotonic", cv=2),
    "isotonic, one fold": lambda s: CalibratedClassifierCV(forest(s), method="isotonic", cv=2, ensemble=False),
    "boosting": lambda s: CalibratedClassifierCV(GradientBoostingClassifier(n_estimators=8, random_state=s), cv=2),
    "soft": lambda s: VotingClassifier([("a", forest(s)), ("b", logistic())], voting="soft", weights=[2, 1]),
    "hard": lambda s: VotingClassifier([(str(k), forest(s + k)) for k in range(3)], voting="hard"),
    "hard, mixed": lambda s: VotingClassifier(
        [("a", forest(s)), ("b", logistic()), ("c", DecisionTreeClassifier(max_depth=3, random_state=s))], voting="hard"
    ),
    "stacked": lambda s: StackingClassifier([("a", forest(s)), ("b", logistic())], cv=2),
    "stacked votes": lambda s: StackingClassifier(
        [("a", forest(s)), ("b", ExtraTreesClassifier(5, max_depth=3, random_state=s))], cv=2, passthrough=True
    ),
}


def outcomes(seed: int, classes: int) -> np.ndarray:
    score = GRID["size"] + 2 * (GRID["colour"] == "green") - 20 * GRID["weight"] * GRID["new"]
    noise = np.random.default_rng(seed).normal(0, 1.5, len(GRID))
    return np.digitize(score + noise, [2.5, 5.0][: classes - 1])


def painted(kind: str, seed: int, classes: int) -> Any:
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), remainder=StandardScaler())
    while True:
        model = make_pipeline(columns, KINDS[kind](seed)).fit(GRID, outcomes(seed, classes))
        if len(set(model.predict(GRID))) > 1:
            return model
        seed += 1000


# -- against enumeration -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", one_in(2, KINDS))
@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_optimum_equals_enumeration(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = 2 + seed % 2
    if kind == "isotonic" and classes > 2:
        pytest.skip("not exact in a program, and not read")
    model = painted(kind, 100 + seed, classes)
    said = model.predict(GRID)
    weights = {"size": float(rng.choice([0.2, 1.0, 3.0])), "colour": float(rng.choice([0.3, 1.0]))}
    price, at_most = float(rng.choice([0.0, 0.1])), int(rng.integers(1, 5))
    square = seed % 3 == 2
    house = [Proximity("l2" if square else "l1", scale="range", weights=weights)]
    house.append(Sparsity(at_most=at_most, price=price))
    schema = Schema.infer(GRID, precision={"weight": 1})
    explainer = Explainer(model, GRID, schema=schema, criteria=house)
    for i in rng.permutation(len(GRID))[:3]:
        factual = GRID.iloc[int(i)]
        want = int(rng.choice([c for c in set(said) if c != said[i]]))
        away = shares(GRID, factual)
        table = away.mul(pd.Series(weights).reindex(away.columns).fillna(1.0))
        cost = (table**2 if square else table).sum(axis=1)
        changed = (table > 0).sum(axis=1)
        good = (said == want) & (changed <= at_most).to_numpy()
        row = factual.to_frame().T.astype(GRID.dtypes)
        if not good.any():
            with pytest.raises(Infeasible):
                explainer.explain(row, want=want)
            continue
        best = float((cost + price * changed)[good].min())
        answer = explainer.explain(row, want=want)
        assert answer.status == "optimal"
        assert answer[0].certificate.objective == pytest.approx(best, rel=2e-6, abs=1e-12)
        assert answer[0].certificate.bound <= best * (1 + 1e-9)


# -- against the solver ------------------------------------------------------------------------------------------------
X = people(200)


@cache
def fitted(kind: str) -> Any:
    return pipeline(X, labels(X), KINDS[kind](1))


@pytest.mark.filterwarnings("ignore::ifonly.FactualViolatesDemand")
@pytest.mark.parametrize(("kind", "house"), diagonals(5, ["sigmoid", "soft", "hard", "stacked"], HOUSES))
def test_the_solver_agrees(kind: str, house: str) -> None:
    model = fitted(kind)
    explainer = Explainer(model, X)
    for i in np.flatnonzero(model.predict(X) == "bad")[1:2]:
        question = explainer._ask(X.iloc[[i]], "good", HOUSES[house])
        statement = question.goal.with_first_margin(question.statement)
        assert Composites().accepts(statement, statement.box())
        ours = find(statement, explainer.backend, Limits(), engines=(Composites(),))
        assert ours.solver == NONE
        answer = Explainer(model, X, solver="highs only").explain(X.iloc[[i]], want="good", criteria=HOUSES[house])
        assert answer.status == "optimal"
        theirs = answer[0].certificate
        assert ours.optimal
        assert ours.u is not None
        cost = float(statement.objective(ours.u[None, :])[0])
        assert cost == pytest.approx(theirs.objective, rel=3e-6)
        assert ours.bound <= theirs.objective * (1 + 1e-9)


def test_priced_nodes_have_the_same_optimum() -> None:
    model = pipeline(X, labels(X), KINDS["soft"](3))
    first: list[float] = []
    for tuned in ({"priced_from": 1, "small": 0, "traded_from": 3}, {"priced_from": 10**9, "small": 10**9}):
        explainer = Explainer(model, X, tuning=Tuning(composites=CompositeSearch(**tuned)))
        bad = np.flatnonzero(model.predict(X) == "bad")[:4]
        answers = [explainer.explain(X.iloc[[i]], want="good") for i in bad]
        costs = [answer[0].certificate.objective for answer in answers]
        assert all(answer[0].certificate.solver == NONE for answer in answers)
        assert costs == pytest.approx(first or costs, rel=2e-6)
        first = costs


# -- regression --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", one_in(2, ["voting", "median"]))
def test_an_interval_of_a_regression(kind: str) -> None:
    y = X["income"] - 0.6 * X["debts"] + 0.5 * X["home"]
    trees = RandomForestRegressor(6, max_depth=3, random_state=0)
    regressors = {
        "voting": VotingRegressor([("a", trees), ("b", LinearRegression())]),
        "median": AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=5, random_state=0),
    }
    model = pipeline(X, y, regressors[kind])
    explainer = Explainer(model, X)
    row, value = X.iloc[[int(np.argmin(y))]], float(np.quantile(model.predict(X), 0.6))
    answer = explainer.explain(row, want=Target(at_least=value))
    assert answer.status == "optimal"
    assert answer[0].certificate.solver == NONE
    other = Explainer(model, X, solver="highs only").explain(row, want=Target(at_least=value))
    assert answer[0].certificate.objective == pytest.approx(other[0].certificate.objective, rel=3e-6)


# -- limits ------------------------------------------------------------------------------------------------------------
def test_the_engine_comes_before_the_solver() -> None:
    names = [engine.name for engine in ENGINES]
    assert names.index("composites") < names.index("boxes") == len(ENGINES) - 1
    assert [engine.name for engine in WITH_SOLVER] == ["boxes"]


@pytest.mark.slow
def test_it_gives_up_and_leaves_a_bound_that_holds() -> None:
    model = pipeline(X, labels(X), KINDS["soft"](1))
    tuned = Tuning(composites=CompositeSearch(most_nodes=3, small=10**9, nodes_at_once=1))
    given_up = 0
    for i in np.flatnonzero(model.predict(X) == "bad")[:5]:
        row = X.iloc[[i]]
        explainer = Explainer(model, X, tuning=tuned)
        statement = explainer._ask(row, "good", []).statement
        found = find(statement, explainer.backend, Limits(), engines=(Composites(),))
        whole = Explainer(model, X).explain(row, want="good")
        assert found.bound <= whole[0].certificate.objective * (1 + 1e-9)
        given_up += found.ended is Ended.GAVE_UP
    assert given_up


def test_a_deadline_is_kept() -> None:
    model = pipeline(X, labels(X), KINDS["sigmoid"](1))
    explainer = Explainer(model, X)
    row = X[model.predict(X) == "bad"].iloc[[0]]
    statement = explainer._ask(row, "good", []).statement
    found = find(statement, explainer.backend, Limits(), deadline=Deadline.after(0.0), engines=(Composites(),))
    assert found.ended is Ended.GAVE_UP
