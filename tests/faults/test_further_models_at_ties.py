"""Further models whose scores are steps: a lead need not be half a step, but for a tie that is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ifonly import Explainer, Infeasible, Proximity, Robustness, Target


def _steps(*counts: dict[Any, int]) -> tuple[pd.DataFrame, list[Any]]:
    """Return a table whose n-th value of "x" has so many rows of each label."""
    rows = [(float(x), label) for x, part in enumerate(counts) for label, n in part.items() for _ in range(n)]
    return pd.DataFrame({"x": [x for x, _ in rows]}), [label for _, label in rows]


def _cheapest(first: Any, further: Any, X: pd.DataFrame, good: Any) -> float | None:
    """Return the least move from 0 at which both have the outcome, among the values of the table."""
    at = [x for x in sorted(set(X["x"])) if all(good(m, pd.DataFrame({"x": [x]})) for m in (first, further))]
    return min(at) if at else None


def _found(first: Any, further: Any, X: pd.DataFrame, want: Any) -> float | None:
    schema_of = pd.DataFrame({"x": X["x"].astype(int)})
    explainer = Explainer(first, schema_of, criteria=[Proximity(scale="none")])
    try:
        answer = explainer.explain({"x": 0}, want=want, criteria=[Robustness(models=[further])])
    except Infeasible:
        return None
    assert answer[0].certificate.proven
    return float(answer[0].row["x"].iloc[0])


@pytest.mark.parametrize("probability", [0.5, 0.7, 0.8, 0.9, 12 / 13])
def test_a_probability_between_two_steps_is_met_by_the_upper_one(probability: float) -> None:
    X, y = _steps({"no": 13}, {"no": 1, "yes": 12}, {"no": 4, "yes": 2}, {"yes": 9})
    first = DecisionTreeClassifier(random_state=0).fit(X, y)
    Z, z = _steps({"no": 9}, {"no": 2, "yes": 8}, {"yes": 5}, {"no": 1, "yes": 12})
    further = DecisionTreeClassifier(random_state=0).fit(Z, z)

    def good(model: Any, row: pd.DataFrame) -> bool:
        return bool(model.predict_proba(row)[0, 1] >= probability)

    want = Target("yes", probability=probability)
    assert _found(first, further, X, want) == _cheapest(first, further, X, good)


@pytest.mark.parametrize("least", [1, 2, 3, 5])
def test_a_value_on_the_end_of_an_interval_is_in_it(least: float) -> None:
    X, y = _steps({0: 2}, {1: 2}, {5: 2}, {3: 2})
    first = DecisionTreeRegressor(random_state=0).fit(X, y)
    further = DecisionTreeRegressor(random_state=0).fit(*_steps({0: 2}, {3: 2}, {5: 2}, {2: 2}))
    expected = _cheapest(first, further, X, lambda model, row: bool(model.predict(row)[0] >= least))
    assert _found(first, further, X, Target(at_least=least)) == expected


@pytest.mark.parametrize("label", ["a", "b", "c"])
def test_a_tie_with_a_later_class_is_ours(label: str) -> None:
    X, y = _steps({"a": 1, "b": 2, "c": 3} if label != "c" else {"a": 4}, {label: 4}, {label: 4}, {label: 4})
    first = DecisionTreeClassifier(random_state=0).fit(X, y)
    tied = {"a": 2, "b": 2, "c": 2}
    further = DecisionTreeClassifier(random_state=0).fit(
        *_steps({"a": 1, "b": 1, "c": 4}, tied, {"b": 2, "c": 2}, tied)
    )
    np.testing.assert_array_equal(further.predict(pd.DataFrame({"x": [1.0, 2.0]})), ["a", "b"])
    expected = _cheapest(first, further, X, lambda model, row: bool(model.predict(row)[0] == label))
    assert _found(first, further, X, label) == expected
