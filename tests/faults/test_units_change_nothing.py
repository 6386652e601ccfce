"""Units: the same question with amounts of any size has the same costs, verdicts and number of answers.

With amounts of 1e9 instead of 1e3 a proven l-infinity optimum was twice too dear, a robust question proven impossible, and
further answers were lost.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ifonly import Actionability, Diversity, Explainer, LinearRow, Manifold, Proximity, Robustness, Sparsity
from portions import diagonals

UNITS = [1e-9, 7e8, 1e12]
MORE_UNITS = [1e-6, 1e3, 1e10]
ASKED: dict[str, tuple[list[Any], int]] = {
    "l1": ([Proximity("l1")], 1),
    "l2": ([Proximity("l2"), Sparsity(price=0.1)], 1),
    "linf": ([Proximity("linf", scale="none")], 1),
    "mahalanobis": ([Proximity("mahalanobis")], 1),
    "ball": ([Proximity("l1"), Robustness(radius=0.05)], 1),
    "round ball": ([Proximity("l1"), Robustness(radius=0.05, norm="l2")], 1),
    "iterate": ([Proximity("l1"), Diversity("iterate", distance=0.2)], 3),
    "hull": ([Proximity("l1"), Manifold(epsilon=0.05)], 1),
    "row": ([Proximity("l1")], 1),
}


@cache
def question(unit: float, kind: str) -> tuple[Any, Explainer, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 1, (120, 2)), columns=["assets", "debts"])
    X["debts"] *= -1
    y = np.where(X.sum(axis=1) > 0, "yes", "no")
    last = {
        "linear": LogisticRegression(),
        "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
        "network": MLPClassifier((4,), solver="lbfgs", max_iter=500, random_state=0),
    }[kind]
    X *= unit
    model = make_pipeline(StandardScaler(), last).fit(X, y)
    row = X[model.predict(X) == "no"].sort_values("assets").iloc[[5]]
    return model, Explainer(model, X, criteria=[]), row


@pytest.mark.parametrize(
    "units", [UNITS, pytest.param(MORE_UNITS, marks=pytest.mark.slow)], ids=["the farthest", "between them"]
)
@pytest.mark.parametrize(("kind", "name"), diagonals(4, ["linear", "network", "tree"], ASKED))
def test_costs_and_numbers_of_answers_are_the_same_in_every_unit(kind: str, name: str, units: list[float]) -> None:
    criteria, n = ASKED[name]
    seen = []
    for unit in [1.0, *units]:
        model, explainer, row = question(unit, kind)
        if name == "row":
            criteria = [Proximity("l1"), Actionability(rows=[LinearRow({"assets": 1, "debts": 2}, at_most=0.2 * unit)])]
        answer = explainer.explain(row, want="yes", n=n, criteria=criteria, time_limit=60.0)
        scale = unit if name == "linf" else 1.0
        seen.append((len(answer), answer.status, *(c.certificate.objective / scale for c in answer)))
        assert (model.predict(answer.frame()) == "yes").all()
    usual, *others = seen
    for found in others:
        assert found[:2] == usual[:2]
        assert found[2:] == pytest.approx(usual[2:], rel=1e-5)
