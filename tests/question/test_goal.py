"""Goals: rows on the scores, NumPy's word and the model's own word say the same, ties included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ifonly import Target
from ifonly.criteria.validity import resolve
from ifonly.models.opening import open_model
from ifonly.program.mip import Affine
from ifonly.question.abilities import Loosens
from ifonly.question.goal import ClassGoal, Goal, IntervalGoal, ProbabilityGoal

RNG = np.random.default_rng(5)
X = pd.DataFrame({"a": RNG.integers(0, 5, 80).astype(float), "b": RNG.integers(0, 5, 80).astype(float)})
TWO = np.where(X.a + X.b + RNG.integers(0, 3, 80) > 5, "yes", "no")
THREE = np.where(X.a > 3, "high", np.where(X.b > 2, "middle", "low"))
VALUE = X.a * 2 + X.b


def model_of(estimator: Any, y: Any) -> Any:
    return open_model(estimator.fit(X, y), X, None)[1]


CASES = {
    "class of two": (LogisticRegression(), TWO, "yes", ClassGoal),
    "other class of two": (LogisticRegression(), TWO, "no", ClassGoal),
    "class with ties": (DecisionTreeClassifier(max_depth=2, random_state=0), TWO, "yes", ClassGoal),
    "class of three with ties": (RandomForestClassifier(4, max_depth=2, random_state=0), THREE, "middle", ClassGoal),
    "probability": (LogisticRegression(), TWO, Target("no", probability=0.7), ProbabilityGoal),
    "probability of a leaf": (
        DecisionTreeClassifier(max_depth=3),
        TWO,
        Target("yes", probability=0.6),
        ProbabilityGoal,
    ),
    "probability by softmax": (LogisticRegression(), THREE, Target("middle", probability=0.5), ProbabilityGoal),
    "interval": (LinearRegression(), VALUE, Target(at_least=4.5, at_most=9.5), IntervalGoal),
    "half an interval": (DecisionTreeRegressor(max_depth=3), VALUE, Target(at_most=5.0), IntervalGoal),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_numpy_and_the_model_agree(name: str) -> None:
    estimator, y, want, kind = CASES[name]
    model = model_of(estimator, y)
    goal: Goal = resolve(want, model)
    assert type(goal) is kind
    U = X.drop_duplicates().to_numpy()
    confirmed = goal.confirmed(U)
    assert 0 < confirmed.sum() < len(confirmed)
    np.testing.assert_array_equal(goal.holds(None, U), confirmed)  # type: ignore[arg-type]
    scores = model.read.form(U)
    if not goal.is_curved():
        gaps = goal.gaps([Affine.of(k) for k in range(scores.shape[1])], 0.0, 1e-9)
        rows = np.min([scores[:, g.columns] @ g.values + g.constant for g in gaps], axis=0) >= -1e-12
        np.testing.assert_array_equal(rows, confirmed)
    lead = goal.lead(scores)
    np.testing.assert_array_equal((lead > 0)[np.abs(lead) > 1e-9], confirmed[np.abs(lead) > 1e-9])


def test_a_class_has_no_size_to_be_loosened_by() -> None:
    model = model_of(LogisticRegression(), TWO)
    assert not isinstance(resolve("yes", model), Loosens)
    assert isinstance(resolve(Target("yes", probability=0.9), model), Loosens)


def test_goals_are_told_apart_by_what_they_want() -> None:
    model = model_of(LogisticRegression(), TWO)
    wants = ["yes", "no", Target("yes", probability=0.6), Target("yes", probability=0.7)]
    assert len({resolve(want, model).key for want in wants}) == len(wants)
    assert resolve("yes", model).key == resolve("yes", model).key
