"""Few changes: as a bound, as a price, and counted over everything that a demand can move."""

from __future__ import annotations

import warnings

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
    Sparsity,
)


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return questions.explainer(criteria=[Proximity("l1")])


def test_a_bound_is_kept_and_costs_distance(explainer: Explainer) -> None:
    free = explainer.explain(questions.FACTUAL, want="good")
    one = explainer.explain(questions.FACTUAL, want="good", criteria=[Sparsity(at_most=1)])
    assert len(one[0].changes) == 1
    assert one[0].certificate.objective >= free[0].certificate.objective - 1e-6


def test_a_price_is_paid_per_changed_feature(explainer: Explainer) -> None:
    priced = explainer.explain(questions.FACTUAL, want="good", criteria=[Sparsity(price=0.5)])[0]
    assert priced.certificate.objective == pytest.approx(priced.distance + 0.5 * len(priced.changes))
    assert len(priced.changes) <= len(explainer.explain(questions.FACTUAL, want="good")[0].changes)


def test_the_calls_price_replaces_the_houses_and_bounds_add_up() -> None:
    house = questions.explainer(criteria=[Proximity("l1"), Sparsity(at_most=2, price=9.0)])
    answer = house.explain(questions.FACTUAL, want="good", criteria=[Sparsity(price=0.5)])[0]
    assert answer.certificate.objective == pytest.approx(answer.distance + 0.5 * len(answer.changes))
    assert len(answer.changes) <= 2
    only_price = questions.explainer(criteria=[Proximity("l1"), Sparsity(price=9.0)])
    again = only_price.explain(questions.FACTUAL, want="good", criteria=[Sparsity(price=0.5)])[0]
    assert again.certificate.objective == pytest.approx(again.distance + 0.5 * len(again.changes))


@pytest.mark.parametrize(
    "action",
    [
        Actionability(allow={"phone": ["yes"]}),
        Actionability(implies=[Implies({"age": (None, 100)}, {"phone": "yes"})]),
    ],
    ids=["a level that must be left", "an implication"],
)
def test_features_that_only_a_demand_moves_are_counted(explainer: Explainer, action: Actionability) -> None:
    # The model does not look at the telephone, but the demand changes it: that is one of the allowed changes.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FactualViolatesDemand)
        with pytest.raises(Infeasible) as caught:
            explainer.explain(questions.FACTUAL, want="good", criteria=[Sparsity(at_most=1), action])
        assert "at_most 1 -> 2" in [r.change for r in caught.value.relaxations]
        answer = explainer.explain(questions.FACTUAL, want="good", criteria=[Sparsity(at_most=2), action])
    assert len(answer[0].changes) == 2
    assert "phone" in {c.feature for c in answer[0].changes}


def test_features_that_a_row_moves_are_counted() -> None:
    X = questions.people().assign(extra=0.0)
    X.loc[1, "extra"] = 1.0
    model = questions.pipeline(X, questions.labels(X))
    explainer = Explainer(model, X, schema=questions.schema(X), criteria=[Proximity("l1")])
    factual = {**questions.FACTUAL, "extra": 0.0}
    tied = Actionability(rows=[LinearRow({"extra": 10.0, "income": -1.0}, at_least=-questions.FACTUAL["income"])])
    others = Actionability(frozen=["age", "debts", "job", "education", "home"])
    with pytest.raises(Infeasible):
        explainer.explain(factual, want="good", criteria=[Sparsity(at_most=1), tied, others])
    answer = explainer.explain(factual, want="good", criteria=[Sparsity(at_most=2), tied, others])
    assert {c.feature for c in answer[0].changes} == {"income", "extra"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "Sparsity needs at_most= (a bound) or price="),
        ({"at_most": 0}, "whole number of at least 1, got 0"),
        ({"at_most": 1.5}, "whole number of at least 1, got 1.5"),
        ({"price": -0.1}, "must not be negative, got -0.1"),
        ({"price": float("inf")}, "must not be negative, got inf"),
    ],
)
def test_ill_posed(options: dict, says: str) -> None:
    with pytest.raises(CriterionError) as caught:
        Sparsity(**options)
    assert says in str(caught.value)
