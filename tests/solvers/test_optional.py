"""SCIP and Gurobi: the same known answers as HiGHS, and whole explanations with the same optimum."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ifonly import Explainer, Proximity, Sparsity
from ifonly.errors import SolverFailed
from ifonly.program.mip import Mip
from ifonly.solvers.backend import Limits, Status
from ifonly.solvers.registry import known_solvers
from ifonly.testing import check_solver

pytestmark = pytest.mark.frameworks
OPTIONAL = ("scip", "gurobi")


def ready(name: str) -> str:
    """Skip where the solver is not installed, or has no licence for even the smallest program."""
    backend = known_solvers()[name]
    if not backend.available():
        pytest.skip(f"{backend.label} is not installed")
    mip = Mip()
    mip.minimise(mip.column(1.0, 2.0, integer=True))
    try:
        assert backend.solve(mip.arrays(), Limits()).status is Status.OPTIMAL
    except SolverFailed as error:
        pytest.skip(f"{backend.label} has no licence here: {error}")
    return name


@pytest.fixture(scope="module", params=OPTIONAL)
def solver(request: pytest.FixtureRequest) -> str:
    return ready(request.param)


def test_known_answers(solver: str) -> None:
    check_solver(known_solvers()[solver])


@cache
def table() -> tuple[pd.DataFrame, pd.Series[Any]]:
    rng = np.random.default_rng(5)
    X = pd.DataFrame(
        {
            "rate": rng.uniform(0, 5, 160).round(2),
            "months": rng.integers(3, 60, 160),
            "age": rng.integers(18, 80, 160),
            "job": rng.choice(["none", "some", "own"], 160),
        }
    )
    score = X["rate"] - 0.06 * X["months"] + 0.02 * X["age"] + (X["job"] == "own") + rng.normal(0, 0.4, 160)
    return X, pd.Series(np.where(score > score.median(), "yes", "no"))


@cache
def model(kind: str) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    estimator = {
        "linear": LogisticRegression(),
        "forest": RandomForestClassifier(6, max_depth=3, random_state=0),
        "network": MLPClassifier((6,), max_iter=200, random_state=0),
    }[kind]
    columns = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["rate", "months", "age"]))
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether the network has converged is not the question
        return make_pipeline(columns, estimator).fit(X, y)


QUESTIONS = {
    "linear l1": ("linear", (Proximity("l1"), Sparsity(at_most=2))),
    "linear l2": ("linear", (Proximity("l2"),)),
    "forest l1": ("forest", (Proximity("l1"), Sparsity(price=0.05))),
    "forest l2": ("forest", (Proximity("l2"),)),
    "network l1": ("network", (Proximity("l1"),)),
}


@cache
def optimum(question: str, solver: str, row: int) -> float:
    kind, criteria = QUESTIONS[question]
    X, _ = table()
    fitted = model(kind)
    refused = X[fitted.predict(X) == "no"]
    answer = Explainer(fitted, X, criteria=list(criteria), solver=solver).explain(refused.iloc[[row]], want="yes")
    best = answer[0]
    assert fitted.predict(best.row)[0] == "yes"
    assert best.certificate.proven
    return best.certificate.objective


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_same_optimum_as_highs(solver: str, question: str) -> None:
    for row in (0, 3):
        assert optimum(question, f"{solver} only", row) == pytest.approx(optimum(question, "highs only", row), abs=3e-6)
