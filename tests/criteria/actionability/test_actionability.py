"""Actionability, rule by rule: each holds in raw units in every answer, and nonsense is refused in words."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import questions
from ifonly import (
    Actionability,
    CriterionError,
    Explainer,
    FactualViolatesDemand,
    Implies,
    Infeasible,
    LinearRow,
    Proximity,
    SchemaError,
)

NOW = questions.FACTUAL


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return questions.explainer(criteria=[Proximity("l1")])


def answer(explainer: Explainer, *actions: Actionability, n: int = 4) -> pd.DataFrame:
    """Several answers, so that a rule is seen to hold in each of them."""
    found = explainer.explain(NOW, want="good", criteria=actions, n=n)
    assert (explainer.model.estimator.predict(found.frame()) == "good").all()
    return found.frame()


def order(frame: pd.DataFrame) -> pd.Series:
    return frame["education"].map(questions.EDUCATION.index)


def test_without_rules_the_cheapest_feature_moves(explainer: Explainer) -> None:
    free = answer(explainer, n=1).iloc[0].to_dict()
    assert {k for k in free if free[k] != NOW[k]} - {"phone"}


def test_frozen(explainer: Explainer) -> None:
    frame = answer(explainer, Actionability(frozen=["debts", "job"]))
    assert (frame[["debts", "job"]] == [NOW["debts"], NOW["job"]]).all(axis=None)


def test_increase_and_decrease(explainer: Explainer) -> None:
    frame = answer(explainer, Actionability(increase=["age", "debts", "education"], decrease=["income"]))
    assert (frame["age"] >= NOW["age"]).all()
    assert (frame["debts"] >= NOW["debts"]).all()
    assert (frame["income"] <= NOW["income"]).all()
    assert (order(frame) >= 0).all()
    up = {**NOW, "education": "degree", "debts": 8}
    down = explainer.explain(up, want="good", criteria=[Actionability(decrease=["education"])])
    assert (order(down.frame()) <= 2).all()


def test_ranges(explainer: Explainer) -> None:
    frame = answer(explainer, Actionability(ranges={"debts": (3, 8), "income": (1.0, 2.0), "age": (None, 40)}))
    assert frame["debts"].between(3, 8).all()
    assert frame["income"].between(1.0, 2.0).all()
    assert (frame["age"] <= 40).all()


def test_max_step(explainer: Explainer) -> None:
    frame = answer(explainer, Actionability(max_step={"debts": 1, "income": 0.5, "education": 1}))
    assert (abs(frame["debts"] - NOW["debts"]) <= 1).all()
    assert (abs(frame["income"] - NOW["income"]) <= 0.5 + 1e-9).all()
    assert (order(frame) <= 1).all()


def test_allow(explainer: Explainer) -> None:
    frame = answer(explainer, Actionability(allow={"job": ["none", "part"], "education": ["school", "degree"]}))
    assert frame["job"].isin(["none", "part"]).all()
    assert frame["education"].isin(["school", "degree"]).all()


def test_conditional_on_the_level_now(explainer: Explainer) -> None:
    frame = answer(explainer, Actionability(conditional={"job": {"part": ["none"], "full": ["part"]}}))
    assert frame["job"].isin(["part", "none"]).all()
    # A level that is not named may go anywhere.
    elsewhere = Actionability(conditional={"job": {"none": ["part"]}}, frozen=["income", "debts"])
    assert (answer(explainer, elsewhere)["job"] == "full").any()


def test_linear_rows(explainer: Explainer) -> None:
    rows = [
        LinearRow({"age": 1, "debts": -2}, at_least=25),
        LinearRow({"income": 1.0, "home": 2.0}, at_most=3.2),
    ]
    with pytest.warns(FactualViolatesDemand, match=r"1 age -2 debts in \(25, inf\)"):
        frame = answer(explainer, Actionability(rows=rows))
    assert (frame["age"] - 2 * frame["debts"] >= 25 - 1e-6).all()
    assert (frame["income"] + 2 * frame["home"] <= 3.2 + 1e-6).all()


def test_implications(explainer: Explainer) -> None:
    rules = [
        Implies({"job": "full"}, {"education": ["college", "degree"], "age": (35, 60)}),
        Implies({"debts": (None, 3), "home": False}, {"income": (None, 2.0)}),
        Implies({"income": (2.0, None)}, {"phone": "yes"}),
    ]
    frame = answer(explainer, Actionability(implies=rules))
    full = frame[frame["job"] == "full"]
    assert full["education"].isin(["college", "degree"]).all()
    assert full["age"].between(35, 60).all()
    assert (frame.loc[(frame["debts"] <= 3) & ~frame["home"], "income"] <= 2.0).all()
    assert (frame.loc[frame["income"] >= 2.0, "phone"] == "yes").all()


def test_house_and_call_add_up() -> None:
    house = questions.explainer(criteria=[Proximity("l1"), Actionability(frozen=["job"])])
    frame = answer(house, Actionability(frozen=["home"], increase=["age"]))
    assert (frame["job"] == NOW["job"]).all()
    assert (frame["home"] == NOW["home"]).all()
    assert (frame["age"] >= NOW["age"]).all()
    both = answer(house, Actionability(increase=["debts"]), Actionability(frozen=["debts"]))  # frozen is not less
    assert (both["debts"] == NOW["debts"]).all()


def test_a_demand_that_the_factual_breaks_is_said_before_solving(explainer: Explainer) -> None:
    with pytest.warns(FactualViolatesDemand, match=r"breaks the demand 'range of debts \(0, 3\)'"):
        frame = answer(explainer, Actionability(ranges={"debts": (0, 3)}))
    assert (frame["debts"] <= 3).all()
    with pytest.warns(FactualViolatesDemand, match="job only none, full"):
        frame = answer(explainer, Actionability(allow={"job": ["none", "full"]}))
    assert frame["job"].isin(["none", "full"]).all()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: Actionability(frozen="age"),
            "must be a list of features, got the text 'age'. Write frozen=['age'].",
        ),
        (lambda: Actionability(increase="age"), "Write increase=['age']."),
        (lambda: Actionability(frozen=["age"], increase=["age"]), "'age' is both frozen and to increase"),
        (lambda: Actionability(frozen=["age"], decrease=["age"]), "'age' is both frozen and to decrease"),
        (lambda: Actionability(increase=["age"], decrease=["age"]), "that is frozen. Say frozen=[...]."),
        (lambda: Actionability(ranges={"age": (9, 1)}), "The range of 'age' is empty: 9 is above 1."),
        (
            lambda: Actionability(max_step={"age": -1}),
            "The max_step of 'age' must be a number and not negative, got -1.",
        ),
        (lambda: Actionability(max_step={"age": float("nan")}), "must be a number and not negative, got nan"),
        (lambda: LinearRow({}, at_most=1), "A LinearRow needs at least one feature"),
        (lambda: LinearRow({"age": 1}), "A LinearRow needs at_least= or at_most="),
    ],
)
def test_ill_posed_by_itself(make: Any, says: str) -> None:
    with pytest.raises(CriterionError) as caught:
        make()
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (Actionability(increase=["job"]), "'job' is categorical: its levels have no order"),
        (
            Actionability(max_step={"phone": 1}),
            "declare it ordinal: Schema.infer(X, ordinal={'phone': [...]})",
        ),
        (
            Actionability(ranges={"job": (0, 1)}),
            "'job' is categorical, not numeric: use allow={'job': [...]}",
        ),
        (Actionability(allow={"age": [30]}), "'age' is numeric: use ranges={'age': (low, high)}"),
        (Actionability(conditional={"age": {30: [31]}}), "'age' is numeric"),
        (Actionability(allow={"job": []}), "No level of 'job' is allowed"),
        (Actionability(rows=[LinearRow({"job": 1.0}, at_most=1)]), "has no number to put into a LinearRow"),
    ],
)
def test_ill_posed_for_this_schema(explainer: Explainer, action: Actionability, says: str) -> None:
    with pytest.raises(CriterionError) as caught:
        explainer.explain(NOW, want="good", criteria=[action])
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "action",
    [
        Actionability(frozen=["agee"]),
        Actionability(increase=["agee"]),
        Actionability(ranges={"agee": (0, 1)}),
        Actionability(max_step={"agee": 1}),
        Actionability(allow={"agee": ["x"]}),
        Actionability(rows=[LinearRow({"agee": 1}, at_most=1)]),
        Actionability(implies=[Implies({"agee": (0, 1)}, {"job": "full"})]),
    ],
)
def test_unknown_features_are_named_with_the_nearest(explainer: Explainer, action: Actionability) -> None:
    with pytest.raises(SchemaError, match=r"Unknown feature 'agee'\. Did you mean 'age'\?"):
        explainer.explain(NOW, want="good", criteria=[action])


@pytest.mark.parametrize(
    "action",
    [
        Actionability(allow={"job": ["ful"]}),
        Actionability(conditional={"job": {"ful": ["part"]}}),
        Actionability(implies=[Implies({"job": "ful"}, {"home": True})]),
    ],
)
def test_unknown_levels_are_named_with_the_nearest(explainer: Explainer, action: Actionability) -> None:
    with pytest.raises(SchemaError, match=r"Unseen level 'ful' of 'job'.*Did you mean 'full'\?"):
        explainer.explain(NOW, want="good", criteria=[action])


# -- only ------------------------------------------------------------------------------------------------------------
def test_only_is_the_same_as_freezing_all_others(explainer: Explainer) -> None:
    may = ["income", "job"]
    others = [name for name in NOW if name not in may]
    one, other = (
        explainer.explain(NOW, want="good", criteria=[action])
        for action in (Actionability(only=may), Actionability(frozen=others))
    )
    assert one[0].certificate.objective == other[0].certificate.objective
    frame = answer(explainer, Actionability(only=may))
    assert (frame[others] == [NOW[name] for name in others]).all(axis=None)
    # House and person meet: what both let change may change.
    both = answer(explainer, Actionability(only=may), Actionability(only=["debts", "income"]), n=1)
    assert (both[others] == [NOW[name] for name in others]).all(axis=None)
    assert (both["job"] == NOW["job"]).all()


def test_a_clash_names_what_only_froze(explainer: Explainer) -> None:
    with pytest.raises(Infeasible) as impossible:
        explainer.explain(NOW, want="good", criteria=[Actionability(only=["phone"])])
    assert "want 'good'" in impossible.value.conflict
    assert any(text.startswith("frozen ") for text in impossible.value.conflict)
    assert any(way.change.startswith("unfreeze ") for way in impossible.value.relaxations)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"only": "income"}, r"Write only=\['income'\]"),
        ({"only": []}, "lets nothing change"),
        ({"only": ["income"], "frozen": ["income"]}, "both frozen and among only"),
        ({"only": ["income"], "increase": ["age"]}, "Add it there, or take it out of increase"),
    ],
)
def test_only_that_contradicts_itself_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(CriterionError, match=words):
        Actionability(**options)


def test_only_names_known_features(explainer: Explainer) -> None:
    with pytest.raises(SchemaError, match=r"'incom'.*income"):
        explainer.explain(NOW, want="good", criteria=[Actionability(only=["incom"])])
