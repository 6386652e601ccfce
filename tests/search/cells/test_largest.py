"""Bisection of the radius under l-infinity: the optimum is that of enumeration and of the solver, and bounds hold."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ifonly import Actionability, Explainer, Infeasible, Proximity, Sparsity
from ifonly.question.found import Ended
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT, LargestChangeSearch, Tuning
from ifonly.search.cells.largest import LargestChange
from ifonly.search.engines import WITH_SOLVER, find
from ifonly.search.progress import Progress
from ifonly.solvers.backend import Limits
from portions import diagonals, one_in
from questions import labels, people, pipeline

GRID = pd.DataFrame(
    list(itertools.product(range(6), range(5), ["red", "green", "blue", "black"], [0, 1])),
    columns=["size", "weight", "colour", "new"],
)
NONE = "no solver needed"
KERNELS = ["", "numpy"]


@pytest.mark.parametrize(("seed", "which"), diagonals(5, range(12), KERNELS))
def test_optimum_equals_enumeration(seed: int, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IFONLY_KERNEL", which)
    rng = np.random.default_rng(seed)
    score = GRID["size"] + 2 * (GRID["colour"] == "green") - GRID["weight"] * GRID["new"]
    y = np.digitize(score + rng.normal(0, 1.5, len(GRID)), [1.5, 4.0][: 1 + seed % 2])
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    model = make_pipeline(columns, RandomForestClassifier(9, max_depth=5, random_state=seed)).fit(GRID, y)
    said = model.predict(GRID)
    at_most = int(rng.integers(1, 5))
    weights = {"size": float(rng.choice([0.0, 1.0, 3.0])), "colour": float(rng.choice([0.3, 1.0]))}
    house = [Proximity("linf", weights=weights), Sparsity(at_most=at_most, price=0.0)]
    factual = GRID.iloc[int(rng.integers(len(GRID)))]
    want = int(rng.choice([c for c in set(said) if c != said[factual.name]]))
    changed = (factual != GRID).to_numpy()
    deviations = [
        weights["size"] * (GRID["size"] - factual["size"]).abs() / 5,
        (GRID["weight"] - factual["weight"]).abs() / 4,
        weights["colour"] * changed[:, 2],
        (GRID["new"] - factual["new"]).abs(),
    ]
    cost = np.max(deviations, axis=0)
    good = (said == want) & (changed.sum(axis=1) <= at_most)
    explainer = Explainer(model, GRID, criteria=house)
    if not good.any():
        with pytest.raises(Infeasible):
            explainer.explain(factual, want=want)
        return
    answer = explainer.explain(factual, want=want)
    assert answer.solver == NONE
    assert answer[0].certificate.proven
    assert answer[0].certificate.objective == pytest.approx(cost[good].min(), abs=1e-6)
    assert model.predict(answer.frame())[0] == want


LEVELS = ["none", "some", "much", "all"]


@pytest.mark.filterwarnings("ignore::ifonly.FactualViolatesDemand")
@pytest.mark.parametrize("which", KERNELS)
@pytest.mark.parametrize("seed", range(4))
def test_a_level_that_is_not_allowed_is_left_for_the_cheapest_one(
    seed: int, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IFONLY_KERNEL", which)
    rng = np.random.default_rng(seed)
    grid = pd.DataFrame(list(itertools.product(range(5), LEVELS, LEVELS)), columns=["size", "risk", "use"])
    places = grid.assign(risk=grid["risk"].map(LEVELS.index), use=grid["use"].map(LEVELS.index)).to_numpy()
    for column in ("risk", "use"):
        grid[column] = pd.Categorical(grid[column], LEVELS, ordered=True)
    columns = make_column_transformer((OneHotEncoder(), ["risk", "use"]), remainder="passthrough")
    model = make_pipeline(columns, RandomForestClassifier(1 + 2 * seed, max_depth=4, random_state=seed))
    said = model.fit(grid, places[:, 0] + rng.integers(0, 4, len(grid)) > 3 + places[:, 1]).predict(grid)
    explainer = Explainer(model, grid, criteria=[Proximity("linf")])
    for row in np.flatnonzero(~said & (places[:, 1] == 3))[::3]:
        allowed = list(rng.choice(3, 2, replace=False))
        good = said & np.isin(places[:, 1], allowed)
        only = Actionability(allow={"risk": [LEVELS[k] for k in allowed]})
        cost = np.max(np.abs(places - places[row]) / [4, 3, 3], axis=1)
        if good.any():
            answer = explainer.explain(grid.iloc[[row]], want=True, criteria=[only])
            assert answer[0].certificate.proven
            assert answer[0].certificate.objective == pytest.approx(cost[good].min(), abs=1e-6)


X = people(400)
Y = labels(X)
MODELS = {
    "forest": pipeline(X, Y, RandomForestClassifier(12, max_depth=5, random_state=0)),
    "boosted": pipeline(X, Y, GradientBoostingClassifier(n_estimators=15, random_state=0)),
}


@pytest.mark.parametrize("name", one_in(2, MODELS))
def test_the_solver_finds_nothing_cheaper(name: str) -> None:
    model = MODELS[name]
    house = [Proximity("linf", scale="std"), Actionability(frozen=["job"], max_step={"debts": 2})]
    mine, solved = Explainer(model, X, criteria=house), Explainer(model, X, criteria=house, solver="highs only")
    rows = X[model.predict(X) == "bad"].iloc[:4]
    for i in range(len(rows)):
        try:
            answer = mine.explain(rows.iloc[[i]], want="good")
        except Infeasible:
            statement = solved._ask(rows.iloc[[i]], "good", ()).statement
            assert find(statement, solved.backend, Limits(), WITH_SOLVER).infeasible
            continue
        theirs = solved.explain(rows.iloc[[i]], want="good")
        assert (answer.solver, theirs.solver) == (NONE, "HiGHS")
        assert answer[0].certificate.objective == pytest.approx(theirs[0].certificate.objective, rel=3e-6, abs=3e-6)


@cache
def hard(tuning: Tuning = DEFAULT) -> tuple[Explainer, pd.DataFrame]:
    data, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(50, max_depth=5, random_state=0).fit(data, y)
    return Explainer(model, data, criteria=[Proximity("linf")], tuning=tuning), data.iloc[[28]]


def searched(deadline: Deadline, tuning: Tuning = DEFAULT) -> tuple[Any, Progress]:
    explainer, row = hard(tuning)
    statement = explainer._ask(row, None, ()).statement
    box, progress = statement.box(), Progress(deadline=deadline)
    engine = LargestChange()
    assert engine.accepts(statement, box)
    return engine.search(statement, box, progress), progress


def test_a_price_for_each_change_is_no_box() -> None:
    explainer, row = hard()
    statement = explainer._ask(row, None, [Sparsity(price=0.1)]).statement
    assert not LargestChange().accepts(statement, statement.box())
    statement = explainer._ask(row, None, [Proximity("mahalanobis")]).statement
    assert not LargestChange().accepts(statement, statement.box())


def test_a_search_that_gives_up_leaves_its_bound_and_its_incumbent() -> None:
    optimum = searched(Deadline.never())[0]
    best = hard()[0]._ask(hard()[1], None, ()).statement.objective(optimum.u[None, :])[0]
    assert optimum.ended is Ended.CLOSED
    impatient = LargestChangeSearch(first_parts=20, most_parts=40, most_parts_compiled=40)
    found, progress = searched(Deadline.never(), Tuning(largest=impatient))
    assert found.ended is Ended.GAVE_UP
    assert progress.best is not None
    assert 0.0 < progress.floor <= best <= progress.best.cost
    progress.leave(-np.inf)  # whoever goes on and gets nowhere
    assert progress.found().bound == progress.floor
