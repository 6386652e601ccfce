"""Questions that need no solver: the answers are those of the solver, and what needs one is left to it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ifonly import Actionability, Explainer, Infeasible, Proximity, Sparsity, Target
from ifonly.question.criterion import Criterion
from ifonly.search.engines import ENGINES
from portions import diagonals
from questions import FACTUAL, labels, people, pipeline

X = people(400)
Y = labels(X)
MODELS = {
    "linear": pipeline(X, Y, LogisticRegression(C=0.3)),
    "tree": pipeline(X, Y, DecisionTreeClassifier(max_depth=7, random_state=0)),
    "number": pipeline(X, X["income"] * 2 - X["debts"], DecisionTreeRegressor(max_depth=6, random_state=0)),
}
CRITERIA: dict[str, list[Criterion]] = {
    "default": [],
    "bound": [Proximity("l1"), Sparsity(at_most=2)],
    "deviation": [Proximity("l1", scale="mad"), Sparsity(price=0.02)],
    "acting": [Actionability(frozen=["job"], increase=["age"], decrease=["debts"], max_step={"income": 1.2})],
    "squares": [Proximity("l2")],
    "few squares": [Proximity("l2", scale="std"), Sparsity(at_most=2)],
    "weights": [Proximity("l1", weights={"income": 3.0, "home": 0.2}), Sparsity(at_most=3, price=0.01)],
}


@cache
def explainers(name: str) -> tuple[Explainer, Explainer]:
    return Explainer(MODELS[name], X), Explainer(MODELS[name], X, solver="highs only")


@pytest.mark.parametrize(("name", "criteria"), diagonals(4, MODELS, CRITERIA))
def test_the_solver_finds_nothing_cheaper(name: str, criteria: str) -> None:
    direct, solved = explainers(name)
    want = Target(at_least=6.0) if name == "number" else "good"
    said = MODELS[name].predict(X)
    rows = X[said < 4.0] if name == "number" else X[said == "bad"]
    for i in range(4):
        row = rows.iloc[[i]]
        try:
            mine = direct.explain(row, want=want, criteria=CRITERIA[criteria])
        except Infeasible:
            with pytest.raises(Infeasible):
                solved.explain(row, want=want, criteria=CRITERIA[criteria])
            continue
        theirs = solved.explain(row, want=want, criteria=CRITERIA[criteria])
        assert mine.solver == "no solver needed"
        assert theirs.solver == "HiGHS"
        assert mine.status == theirs.status == "optimal"
        assert mine[0].certificate.objective == pytest.approx(theirs[0].certificate.objective, abs=3e-6)


@pytest.mark.parametrize("probability", [0.6, 0.9])
def test_a_probability_is_one_row_too(probability: float) -> None:
    direct, solved = explainers("linear")
    answers = [e.explain(FACTUAL, want=Target("good", probability)) for e in (direct, solved)]
    assert answers[0].solver == "no solver needed"
    costs = [a[0].certificate.objective for a in answers]
    assert costs[0] == pytest.approx(costs[1], abs=3e-6)
    assert MODELS["linear"].predict_proba(answers[0].frame())[0, 1] >= probability


@pytest.mark.parametrize(
    "criteria",
    [[Proximity("linf")], [Proximity("mahalanobis")]],
)
def test_what_reaches_beyond_single_features_goes_to_the_solver(criteria: list[Criterion]) -> None:
    explainer, _ = explainers("linear")
    statement = explainer._ask(FACTUAL, "good", criteria).statement
    assert not any(engine.accepts(statement, statement.box()) for engine in ENGINES[:-1])


def test_three_classes_go_to_the_solver() -> None:
    three = np.where(X["income"] < 2, "low", np.where(X["income"] < 4, "middle", "high"))
    explainer = Explainer(pipeline(X, three, LogisticRegression()), X)
    statement = explainer._ask(FACTUAL, "high", ()).statement
    assert not any(engine.accepts(statement, statement.box()) for engine in ENGINES[:-1])


@pytest.mark.parametrize(("seed", "row"), [(26, 4), (35, 1), (35, 5), (39, 4)])
def test_a_free_feature_of_a_tree_stays_where_it_may(seed: int, row: int) -> None:
    """A change that costs nothing is still a change: counted without need, it shut the cheapest answer out."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    wins = (table["a"] * table["b"] + table["c"] - table["d"] * table["a"] > 0).astype(int)
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(table, wins)
    criteria = [Proximity("l1", weights={"a": 0.0, "b": 0.0}), Sparsity(at_most=2)]
    costs = []
    for solver in ("auto", "highs only"):
        answer = Explainer(model, table, criteria=criteria, solver=solver).explain(table.iloc[[row]], want=1)
        assert answer.status == "optimal"
        assert len(answer[0].changes) <= 2
        costs.append(answer[0].certificate.objective)
    assert costs[0] == pytest.approx(costs[1], abs=3e-6)
