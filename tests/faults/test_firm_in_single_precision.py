"""Answers of models in single precision: clear of the rounding of one row among others, where there is one that is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from ifonly import Actionability, Diversity, Explainer, Proximity, Target

SINGLE = 2.0**-23


def in_single_precision(model: object, X: pd.DataFrame) -> Explainer:
    """Return an explainer that takes a model's scores to be rounded to single precision."""
    explainer = Explainer(model, X)
    object.__setattr__(explainer.model, "read", replace(explainer.model.read, rounding=SINGLE))
    return explainer


@pytest.mark.parametrize("n", [1, 3])
def test_an_answer_clears_the_rounding_of_its_score(n: int) -> None:
    X = pd.DataFrame({"x": np.linspace(0.0, 6000.0, 601), "z": np.linspace(0.0, 1.0, 601)})
    model = LogisticRegression().fit(X, X.x > 3000)
    model.coef_, model.intercept_ = np.array([[1.0, 0.5]]), np.array([-3000.0])
    criteria = [Proximity("l1"), Diversity("incumbents")]
    answer = in_single_precision(model, X).explain({"x": 0.0, "z": 0.0}, want=True, n=n, criteria=criteria)
    score = model.decision_function(answer.frame())
    assert (score >= SINGLE * 3000.0).all()  # summed in another order, 3000 may be off by as much
    assert score[0] <= 64.0 * SINGLE * 6000.0
    assert answer[0].certificate.proven


@pytest.mark.parametrize("limit", [0.5, 20.0])
def test_an_answer_within_rounding_is_better_than_none(limit: float) -> None:
    """At the end of its range the prediction is just what is wanted; there is nothing beyond."""
    X = pd.DataFrame({"x": np.linspace(0.0, 1.0, 65)})
    model = LinearRegression().fit(X, X.x)
    model.coef_, model.intercept_ = np.array([1.0]), 0.0
    answer = in_single_precision(model, X).explain(
        {"x": 0.25}, want=Target(at_least=1.0), criteria=[Proximity("l1")], time_limit=limit
    )
    assert answer.frame().x[0] == 1.0
    assert answer[0].certificate.proven


def test_within_rounding_under_a_demand() -> None:
    """The only answer lies where a demand ends."""
    X = pd.DataFrame({"x": np.linspace(0.0, 1.0, 65), "y": np.linspace(1.0, 0.0, 65)})
    model = LinearRegression().fit(X, X.x)
    model.coef_, model.intercept_ = np.array([1.0, 1.0]), 0.0
    within = Actionability(ranges={"x": (0.0, 0.5), "y": (0.0, 0.25)})
    answer = in_single_precision(model, X).explain(
        {"x": 0.25, "y": 0.125}, want=Target(at_least=0.75), criteria=[Proximity("l1"), within]
    )
    assert answer.frame().iloc[0].tolist() == [0.5, 0.25]
