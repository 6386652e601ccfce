"""Budget bounds of composites: a calibrated, voting or binned network gets what a bare one gets, and no answer is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestRegressor, VotingClassifier, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier

from ifonly import Explainer, Proximity, Target
from ifonly.models.abilities import has_units
from ifonly.question.problem import build
from ifonly.search.reduce import Reducer
from ifonly.solvers.backend import Limits, Status
from ifonly.solvers.tangents import solve
from questions import labels, people, pipeline

X = people(200)
Y = labels(X)


def network(seed: int = 0) -> MLPClassifier:
    return MLPClassifier((5,), solver="lbfgs", alpha=0.1, max_iter=2000, random_state=seed)


MODELS: dict[str, Any] = {
    "bare": network(),
    "calibrated": CalibratedClassifierCV(network(), cv=2),
    "voting": VotingClassifier([("a", network()), ("b", network(1)), ("linear", LogisticRegression(max_iter=1000))]),
    "soft voting": VotingClassifier([("a", network()), ("linear", LogisticRegression(max_iter=1000))], voting="soft"),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "calibrated" else n for n in MODELS])
def test_a_budget_decides_units_and_keeps_the_optimum(name: str) -> None:
    model = pipeline(X, Y, MODELS[name])
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="range")])
    row = X[model.predict(X) == "bad"].iloc[[1]]
    answer = explainer.explain(row, want="good")
    assert answer.status == "optimal"
    cost = answer[0].certificate.objective
    question = explainer._ask(row, "good", ())
    statement = question.goal.with_first_margin(question.statement)
    assert has_units(statement.form)
    reducer, budget = Reducer(statement), 1.05 * cost
    box = reducer.within(statement.box(), budget)
    tighter = reducer.for_budget(box, budget)
    assert tighter is not None
    found, binaries = [], []
    for asked in (statement, tighter):
        problem = build(asked, box)
        problem.mip.limit_objective(budget)
        binaries.append(int(problem.arrays().integer.sum()))
        solution = solve(problem.arrays(), explainer.backend, Limits())
        assert solution.status is Status.OPTIMAL
        found.append(solution.objective)
    assert binaries[1] <= binaries[0]
    # Curves are relaxed between their breakpoints, and the less the narrower they are; all else is exact.
    assert found[0] * (1.0 - 1e-5) <= found[1] <= cost * (1.0 + 1e-5)
    if name in ("bare", "voting"):
        assert found[1] == pytest.approx(found[0], rel=1e-5)


def test_a_composite_without_bounds_inside_gets_no_budget_row() -> None:
    value = X["income"] * 2 - X["debts"]
    parts = [("forest", RandomForestRegressor(3, max_depth=3, random_state=0)), ("linear", LinearRegression())]
    model = pipeline(X, value, VotingRegressor(parts))
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="range")])
    row = X.iloc[[int(np.argmin(model.predict(X)))]]
    statement = explainer._ask(row, Target(at_least=4.0), ()).statement
    assert not has_units(statement.form)
    assert Reducer(statement).for_budget(statement.box(), 1.0) is None
