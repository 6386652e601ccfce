"""Answers on their very threshold, where nothing goes beyond it: "at least 1" of what ends at 1 is possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor

from ifonly import Actionability, Explainer, Infeasible, Proximity, Target
from portions import one_in

X = pd.DataFrame({"x": np.linspace(0.0, 1.0, 65), "y": np.linspace(1.0, 0.0, 65)})


def total() -> LinearRegression:
    """Return the model ``x + y``."""
    model = LinearRegression().fit(X, X.x)
    model.coef_, model.intercept_ = np.array([1.0, 1.0]), 0.0
    return model


def rectified() -> MLPRegressor:
    """Return the network ``relu(x) + relu(y)``."""
    model = MLPRegressor(hidden_layer_sizes=(2,), max_iter=1, random_state=0)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        model.fit(X, X.x)
    model.coefs_ = [np.eye(2), np.ones((2, 1))]
    model.intercepts_ = [np.zeros(2), np.zeros(1)]
    return model


@pytest.mark.parametrize("norm", one_in(2, ["l1", "l2", "linf"]))
@pytest.mark.parametrize("solver", ["auto", "highs only"])
@pytest.mark.parametrize("make", [total, rectified])
def test_the_end_of_every_range_is_an_answer(make: Any, solver: str, norm: Any) -> None:
    answer = Explainer(make(), X, solver=solver).explain(
        {"x": 0.25, "y": 0.125}, want=Target(at_least=2.0), criteria=[Proximity(norm)]
    )
    assert answer.frame().iloc[0].tolist() == [1.0, 1.0]
    assert answer[0].certificate.proven
    assert answer[0].certificate.margin < 1e-12


@pytest.mark.parametrize("want", [Target(at_least=0.75), Target(at_least=0.75, at_most=3.0)])
def test_where_demands_meet(want: Target) -> None:
    within = Actionability(ranges={"x": (0.0, 0.5), "y": (0.0, 0.25)})
    answer = Explainer(total(), X).explain({"x": 0.25, "y": 0.125}, want=want, criteria=[Proximity("l1"), within])
    assert answer.frame().iloc[0].tolist() == [0.5, 0.25]


def test_the_lower_end() -> None:
    answer = Explainer(total(), X).explain({"x": 0.25, "y": 0.125}, want=Target(at_most=0.0))
    assert answer.frame().iloc[0].tolist() == [0.0, 0.0]


def test_beyond_the_end_is_impossible() -> None:
    with pytest.raises(Infeasible) as told:
        Explainer(total(), X).explain({"x": 0.25, "y": 0.125}, want=Target(at_least=np.nextafter(2.0, 3.0)))
    assert list(told.value.conflict) == ["want a prediction in (2, inf)"]


@pytest.mark.filterwarnings("ignore::ifonly.FactualViolatesDemand")
def test_a_clash_that_can_be_met_on_the_threshold_is_none() -> None:
    """The outcome is possible within both ranges; the clash is between a range and a step."""
    within = Actionability(ranges={"x": (0.0, 0.5), "y": (0.2, 0.25)}, max_step={"y": 0.05})
    with pytest.raises(Infeasible) as told:
        Explainer(total(), X).explain({"x": 0.25, "y": 0.125}, want=Target(at_least=0.75), criteria=[within])
    assert set(told.value.conflict) == {"range of y (0.2, 0.25)", "y moves by at most 0.05"}


def test_a_second_answer_on_the_threshold() -> None:
    """Either number alone can reach the sum, the second one with its last float."""
    answers = Explainer(total(), X).explain(
        {"x": 0.25, "y": 0.125}, want=Target(at_least=1.125), n=2, criteria=[Proximity("l1", weights={"y": 0.5})]
    )
    first, second = answers.frame().to_numpy()
    assert first == pytest.approx([0.25, 0.875])
    assert second.tolist() == [1.0, 0.125]


@pytest.mark.parametrize("solver", ["auto", "highs only"])
def test_a_lead_by_rounding_alone_is_the_models_to_judge(solver: str) -> None:
    """0.1 * 3 is a float above 0.3, so the model says yes there, and nowhere else."""
    table = pd.DataFrame({"x": [0, 1, 2, 3] * 10})
    model = LogisticRegression().fit(table, table.x > 1)
    model.coef_, model.intercept_ = np.array([[0.1]]), np.array([-0.3])
    assert model.predict(table.iloc[[3]])[0]
    answer = Explainer(model, table, solver=solver).explain({"x": 0}, want=True)
    assert answer.frame().x[0] == 3
    assert answer[0].certificate.proven


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_a_tie_that_is_lost_is_no_answer(dtype: str) -> None:
    table = pd.DataFrame({"x": np.array([0, 1, 2, 4] * 10, dtype=dtype)})
    model = LogisticRegression().fit(table, table.x > 1)
    model.coef_, model.intercept_ = np.array([[0.25]]), np.array([-1.0])
    assert not model.predict(table.iloc[[3]])[0]
    with pytest.raises(Infeasible) as told:
        Explainer(model, table).explain({"x": 0}, want=True)
    if dtype == "float64":  # of what is continuous, a margin is named; on a grid the tie itself is ruled out
        assert 0.0 < told.value.margin < 1e-12
    else:
        assert told.value.margin == 0.0
