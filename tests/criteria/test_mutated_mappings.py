"""Mappings of criteria are fixed: costs are made ready once, and must not change under answers that are called proven."""

from __future__ import annotations

import copy
import operator
import pickle
from dataclasses import replace

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ifonly import Explainer, Proximity

X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "b": [0.0, 2.0, 1.0, 4.0, 3.0, 5.0]})
MODEL = LogisticRegression().fit(X, X["a"] + X["b"] > 5.0)


def cost(criterion: Proximity) -> float:
    return Explainer(MODEL, X, criteria=[criterion]).explain(X.iloc[[0]], want=True)[0].certificate.objective


def test_a_mapping_that_is_changed_later_changes_no_answer() -> None:
    weights, scale = {"a": 1.0, "b": 10.0}, {"a": 5.0, "b": 5.0}
    criterion = Proximity("l1", weights=weights, scale=scale)
    explainer = Explainer(MODEL, X, criteria=[criterion])
    before = explainer.explain(X.iloc[[0]], want=True)[0]
    weights["a"], scale["a"] = 100.0, 0.01
    after = explainer.explain(X.iloc[[0]], want=True)[0]
    assert after.certificate.objective == before.certificate.objective
    # another criterion with the new weights has another answer
    assert cost(replace(criterion, weights={"a": 100.0, "b": 1.0})) != pytest.approx(before.certificate.objective)


def test_tables_and_the_mappings_in_them_are_copies() -> None:
    tables = {"c": {("x", "y"): 2.0}}
    criterion = Proximity(tables=tables)
    tables["c"]["x", "y"] = 50.0
    assert criterion.tables["c"]["x", "y"] == 2.0


CHANGES = {
    "set": lambda weights: operator.setitem(weights, "a", 3.0),
    "delete": lambda weights: operator.delitem(weights, "a"),
    "or": lambda weights: operator.ior(weights, {"a": 3.0}),
    "update": lambda weights: weights.update(a=3.0),
    "clear": lambda weights: weights.clear(),
    "pop": lambda weights: weights.pop("a"),
    "popitem": lambda weights: weights.popitem(),
    "setdefault": lambda weights: weights.setdefault("b", 3.0),
}


@pytest.mark.parametrize("way", CHANGES)
def test_the_mapping_of_a_criterion_refuses_changes_in_a_sentence(way: str) -> None:
    weights = Proximity(weights={"a": 2.0}).weights
    with pytest.raises(TypeError, match=r"do not change.*Make another criterion"):
        CHANGES[way](weights)
    assert weights == {"a": 2.0}


def test_a_criterion_with_mappings_is_pickled_copied_and_compared_as_before() -> None:
    criterion = Proximity("l1", weights={"a": 2.0}, scale={"a": 1.0}, tables={"c": {("x", "y"): 2.0}})
    for other in (
        pickle.loads(pickle.dumps(criterion)),
        copy.deepcopy(criterion),
        copy.copy(criterion),
        replace(criterion),
    ):
        assert other == criterion
        assert repr(other) == repr(criterion)
    assert repr(criterion.weights) == "{'a': 2.0}"
