"""Missing values, for a model that takes them: they stay missing, unless a demand gives the feature a value."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import questions
from ifonly import Actionability, Explainer, FactualViolatesDemand, Proximity, Sparsity

NOW = {"age": 30, "income": np.nan, "debts": 4.0, "job": None}


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    X = questions.people(200)[["age", "income", "debts", "job"]]
    y = questions.labels(questions.people(200))
    X = X.assign(debts=X["debts"].astype(float), job=X["job"].astype("category"))
    rng = np.random.default_rng(0)
    X.loc[rng.random(len(X)) < 0.15, "income"] = np.nan
    X.loc[rng.random(len(X)) < 0.15, "job"] = None
    model = HistGradientBoostingClassifier(max_iter=20, max_depth=3, categorical_features="from_dtype", random_state=0)
    return Explainer(model.fit(X, y), X, criteria=[Proximity("l1")])


def frame(explainer: Explainer, *criteria: Any) -> pd.DataFrame:
    other = "good" if explainer.model.estimator.predict(row(explainer))[0] == "bad" else "bad"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FactualViolatesDemand)
        answer = explainer.explain(row(explainer), want=other, criteria=criteria)
    assert explainer.model.estimator.predict(answer.frame())[0] == other
    assert answer.status == "optimal"
    return answer.frame()


def row(explainer: Explainer) -> pd.DataFrame:
    return explainer.schema.decode(explainer.schema.encode(pd.DataFrame([NOW]), missing=True))


def test_what_is_missing_stays_missing(explainer: Explainer) -> None:
    found = frame(explainer)
    assert found["income"].isna().all()
    assert found["job"].isna().all()


@pytest.mark.parametrize(
    "action",
    [
        Actionability(frozen=["income", "job"]),
        Actionability(increase=["income"]),
        Actionability(decrease=["income"]),
        Actionability(max_step={"income": 0.5}),
        Sparsity(at_most=2),
        Sparsity(price=0.1),
        Proximity("linf"),
        Proximity("mahalanobis"),
    ],
    ids=repr,
)
def test_rules_about_a_change_do_not_invent_a_value(explainer: Explainer, action: Any) -> None:
    found = frame(explainer, action)
    assert found["income"].isna().all()
    assert found["job"].isna().all()


def test_a_range_gives_it_a_value(explainer: Explainer) -> None:
    found = frame(explainer, Actionability(ranges={"income": (2.0, 3.0)}))
    assert found["income"].between(2.0, 3.0).all()


def test_allowed_levels_give_it_a_level(explainer: Explainer) -> None:
    found = frame(explainer, Actionability(allow={"job": ["full", "part"]}))
    assert found["job"].isin(["full", "part"]).all()


def test_a_value_in_place_of_nothing_counts_as_a_change(explainer: Explainer) -> None:
    filled = Actionability(ranges={"income": (0.5, 6.0)}, frozen=["age"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FactualViolatesDemand)
        other = "good" if explainer.model.estimator.predict(row(explainer))[0] == "bad" else "bad"
        answer = explainer.explain(row(explainer), want=other, criteria=[filled, Sparsity(price=0.25)])
    assert "income" in {c.feature for c in answer[0].changes}
    paid = answer[0].certificate.objective - answer[0].distance
    assert paid == pytest.approx(0.25 * len(answer[0].changes))
