"""Distances by hand, and the closest answer for each of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import questions
from ifonly import Actionability, CriterionError, Explainer, Proximity, Schema, SchemaError


@pytest.fixture(scope="module")
def plane() -> Explainer:
    """Two continuous features with training range 10 and 2; the model says yes above ``x + 4 y = 12``."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(0, 10, 50), "y": rng.uniform(0, 2, 50)})
    X.iloc[0], X.iloc[1] = (0.0, 0.0), (10.0, 2.0)
    model = LogisticRegression().fit(X, X["x"] + 4 * X["y"] > 12)
    model.coef_, model.intercept_ = np.array([[1.0, 4.0]]), np.array([-12.0])
    return Explainer(model, X)


ORIGIN = {"x": 0.0, "y": 0.0}


def answer(explainer: Explainer, proximity: Proximity) -> tuple[list[float], float]:
    found = explainer.explain(ORIGIN, want=True, criteria=[proximity], gap=1e-8)
    assert found.status == "optimal"
    return found.frame().iloc[0].tolist(), found[0].distance


def only_proximity(explainer: Explainer) -> Explainer:
    return Explainer(explainer.model.estimator, explainer._frame, criteria=[])


def test_l1_goes_where_it_is_cheapest_first(plane: Explainer) -> None:
    # By range: a unit of score costs 1/10 along x, 1/8 along y. So x to its end, the rest along y.
    (x, y), distance = answer(only_proximity(plane), Proximity("l1"))
    assert (x, y) == pytest.approx((10.0, 0.5), abs=1e-5)
    assert distance == pytest.approx(1.25, abs=1e-6)


def test_l1_with_own_weights_turns_the_other_way(plane: Explainer) -> None:
    (x, y), distance = answer(only_proximity(plane), Proximity("l1", weights={"x": 2.0}))
    assert (x, y) == pytest.approx((4.0, 2.0), abs=1e-5)
    assert distance == pytest.approx(1.0 + 2 * 0.4, abs=1e-6)


def test_l2_is_the_foot_of_the_perpendicular(plane: Explainer) -> None:
    # In units of the range the plane is 10 a + 8 b = 12, so (a, b) = 12 (10, 8) / 164.
    (x, y), distance = answer(only_proximity(plane), Proximity("l2"))
    assert (x / 10, y / 2) == pytest.approx((120 / 164, 96 / 164), abs=1e-3)
    assert distance == pytest.approx(144 / 164, abs=1e-6)


def test_linf_moves_all_alike(plane: Explainer) -> None:
    (x, y), distance = answer(only_proximity(plane), Proximity("linf"))
    assert distance == pytest.approx(12 / 18, abs=1e-6)
    assert (x / 10, y / 2) == pytest.approx((12 / 18, 12 / 18), abs=1e-5)


def test_mahalanobis_is_closed_form_too(plane: Explainer) -> None:
    (x, y), distance = answer(only_proximity(plane), Proximity("mahalanobis"))
    S = np.cov(plane._frame.to_numpy(), rowvar=False)
    a = np.array([1.0, 4.0])
    expected = S @ a * 12 / (a @ S @ a)
    assert distance == pytest.approx(144 / (a @ S @ a), rel=1e-4)
    assert (x, y) == pytest.approx(expected, abs=0.05)


def test_scales_are_those_of_the_training_data(plane: Explainer) -> None:
    X = plane._frame
    step = {"x": 1.0, "y": 0.0}
    there = {"x": 0.0, "y": 3.0}
    query = plane.problem(step, want=True).query
    u = plane.schema.encode(pd.DataFrame([there]))
    std = X.to_numpy().std(axis=0)
    mad = np.median(np.abs(X - X.median()), axis=0)
    for scale, by in (
        ("range", [10, 2]),
        ("std", std),
        ("mad", mad),
        ("none", [1, 1]),
        ({"y": 5.0}, [10, 5]),
    ):
        expected = 1 / by[0] + 3 / by[1]
        assert Proximity("l1", scale=scale).distance(query, u)[0] == pytest.approx(expected)


def test_mad_of_zero_falls_back_on_the_deviation() -> None:
    X = pd.DataFrame({"x": [0.0] * 8 + [1.0, 2.0], "y": np.arange(10.0)})
    explainer = Explainer(LogisticRegression().fit(X, X["y"] > 4), X)
    query = explainer.problem({"x": 0.0, "y": 0.0}, want=True).query
    u = np.array([[1.0, 0.0]])
    assert Proximity("l1", scale="mad").distance(query, u)[0] == pytest.approx(1 / X["x"].std(ddof=0))


def test_categories_cost_their_weight_once_and_levels_their_share() -> None:
    explainer = questions.explainer()
    query = explainer.problem(questions.FACTUAL, want="good").query
    other = {**questions.FACTUAL, "job": "full", "education": "college", "home": True}
    u = explainer.schema.encode(pd.DataFrame([other]))
    weights = {"job": 3.0, "education": 2.0}
    assert Proximity("l1").distance(query, u)[0] == pytest.approx(1 + 0.5 + 1)
    assert Proximity("l1", weights=weights).distance(query, u)[0] == pytest.approx(3 + 2 * 0.5 + 1)
    assert Proximity("l2", weights=weights).distance(query, u)[0] == pytest.approx(9 + 1 + 1)
    assert Proximity("linf", weights=weights).distance(query, u)[0] == pytest.approx(3)
    assert Proximity("mahalanobis", weights=weights).distance(query, u)[0] == pytest.approx(3 + 1 + 1)


def test_only_categories_have_a_mahalanobis_distance_too() -> None:
    X = pd.DataFrame({"a": ["x", "y"] * 10, "b": ["u", "u", "v", "v"] * 5})
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(X, (X["a"] == "x") & (X["b"] == "u"))
    explainer = Explainer(model, X, criteria=[Proximity("mahalanobis")])
    assert explainer.explain({"a": "y", "b": "u"}, want=True)[0].distance == pytest.approx(1.0)


def test_a_free_feature_costs_nothing(plane: Explainer) -> None:
    (x, _), distance = answer(only_proximity(plane), Proximity("l1", weights={"y": 0.0}))
    assert distance == pytest.approx(x / 10, abs=1e-6)
    assert distance == pytest.approx(0.4, abs=1e-6)


def test_the_calls_own_proximity_replaces_that_of_the_house(plane: Explainer) -> None:
    house = Explainer(plane.model.estimator, plane._frame, criteria=[Proximity("l1", weights={"x": 100.0})])
    (x, y), _ = answer(house, Proximity("l1"))
    assert (x, y) == pytest.approx((10.0, 0.5), abs=1e-5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"norm": "l3"}, "The 'norm' of Proximity must be one of l1, l2, linf, mahalanobis. Got 'l3'."),
        ({"scale": "iqr"}, "must be one of auto, range, mad, std, percentile, none or a mapping. Got 'iqr'."),
        ({"scale": {"age": 0.0}}, "The scale of 'age' must be a positive number, got 0.0."),
        ({"weights": {"age": -1.0}}, "The weight of 'age' must not be negative, got -1.0."),
        ({"weights": {"age": float("nan")}}, "must not be negative, got nan"),
    ],
)
def test_ill_posed(options: dict, says: str) -> None:
    with pytest.raises(CriterionError) as caught:
        Proximity(**options)
    assert says in str(caught.value)


@pytest.mark.parametrize("options", [{"weights": {"agee": 1.0}}, {"scale": {"agee": 1.0}}])
def test_unknown_feature(options: dict) -> None:
    with pytest.raises(SchemaError, match="Did you mean 'age'"):
        questions.explainer().explain(questions.FACTUAL, want="good", criteria=[Proximity(**options)])


def test_a_constant_feature_needs_a_scale_only_if_it_can_move() -> None:
    X = pd.DataFrame({"x": np.arange(10.0), "c": np.full(10, 5.0)})
    model = LogisticRegression().fit(X, X["x"] > 4)
    assert Explainer(model, X).explain({"x": 1.0, "c": 5.0}, want=True).status == "optimal"
    wide = Explainer(model, X, schema=Schema.infer(X, bounds={"c": (0.0, 9.0)}))
    with pytest.raises(CriterionError, match=r"'c' is constant in the training data.*Proximity\(scale=\{'c': 1.0\}\)"):
        wide.explain({"x": 1.0, "c": 5.0}, want=True)
    given = Proximity("l1", scale={"c": 1.0})
    assert wide.explain({"x": 1.0, "c": 5.0}, want=True, criteria=[given]).status == "optimal"


def test_linf_leaves_alone_what_the_model_does_not_look_at() -> None:
    # Below the largest deviation other changes are free; that is no reason to touch the telephone.
    explainer = questions.explainer(criteria=[Proximity("linf")])
    answer = explainer.explain(
        questions.FACTUAL, want="good", criteria=[Actionability(frozen=["job", "home", "education"])]
    )
    assert "phone" not in {c.feature for c in answer[0].changes}
