"""The paper's measures, against the numbers printed in the paper and numbers computed by hand."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ifonly.data.schema import Binary, Categorical, Integer, Numeric, Ordinal, Schema
from ifonly.errors import SchemaError
from ifonly.result.metrics import MEASURES, evaluate, explanation_metrics
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation

# German Credit as in Table 3 of the paper: F1-F4 and three more are numeric, F8-F20 are the 13 categories.
NUMERIC = ["F1", "F2", "F3", "F4", "F5", "F6", "F7"]
LEVELS = [f"F{i}" for i in range(8, 21)]
GERMAN = Schema((*(Numeric(f, -1e5, 1e5) for f in NUMERIC), *(Categorical(f, ("-", "A", "B", "C")) for f in LEVELS)))
FACTUAL = {"F1": 24.0, "F2": 1371.26, "F3": 4.0, "F4": 25.0, "F5": 1.0, "F6": 1.0, "F7": 1.0}
FACTUAL |= dict.fromkeys(LEVELS, "-")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (  # Part A
            [{"F1": 15.02, "F2": -333.52, "F3": 3.86, "F4": 27.04}],
            (1.00, -1715.94, 0.8, math.nan, math.nan, math.nan),
        ),
        ([{"F1": 7.12}], (1.00, -16.88, 0.95, math.nan, math.nan, math.nan)),  # Part B
        (  # Part C
            [{"F1": 7.12}, {"F2": -2873.47, "F4": 30.06}, {"F3": 1.96, "F4": 26.63}],
            (1.00, -1423.45, 0.92, 0.00, 2845.81, 0.15),
        ),
        (  # Part D
            [{"F1": 7.12}, {"F3": 1.96, "F4": 26.63}, {"F4": 75.52}],
            (1.00, -23.69, 0.93, 0.00, 46.29, 0.12),
        ),
        (  # Part E
            [
                {"F1": 22.0, "F2": 1283.52, "F8": "B", "F10": "B", "F18": "B"},
                {"F1": 10.0, "F2": 1363.43, "F3": 2.0, "F4": 64.0, "F8": "B", "F12": "B", "F16": "B"}
                | {"F18": "C", "F20": "B"},
                {
                    "F1": 12.0,
                    "F2": 1893.04,
                    "F4": 29.0,
                    "F12": "B",
                    "F14": "B",
                    "F16": "B",
                    "F18": "B",
                    "F20": "B",
                },
            ],
            (0.67, -230.12, 0.63, 0.36, 441.68, 0.42),
        ),
    ],
)
def test_the_papers_case_study(changes: list[dict[str, Any]], expected: tuple[float, ...]) -> None:
    answers = pd.DataFrame([FACTUAL | change for change in changes])
    measures = evaluate(pd.DataFrame([FACTUAL]), answers, GERMAN, [True] * len(changes))
    assert tuple(measures) == MEASURES
    assert measures["validity"] == 1.0
    # The paper prints two decimals of values that were themselves computed from unrounded answers.
    assert list(measures.values())[1:] == pytest.approx(expected, abs=0.012, nan_ok=True)


MIXED = Schema(
    (
        Integer("age", 18, 90),
        Numeric("income", 0, 100),
        Ordinal("school", ("low", "mid", "high")),
        Binary("owner", (False, True)),
    )
)


def test_small_case_by_hand() -> None:
    factual = {"age": 30, "income": 10.0, "school": "low", "owner": False}
    answers = [
        {"age": 32, "income": 10.0, "school": "high", "owner": False},  # l1 2, 1 of 2 levels, 2 of 4 features
        {"age": 30, "income": 14.5, "school": "mid", "owner": True},  # l1 4.5, 2 of 2 levels, 3 of 4 features
    ]  # between them: l1 2 + 4.5, 2 of 2 levels, 4 of 4 features
    measures = evaluate(pd.DataFrame([factual]), pd.DataFrame(answers), MIXED, [True, False])
    assert measures == {
        "validity": 0.5,
        "categorical_proximity": 0.25,
        "continuous_proximity": -3.25,
        "sparsity": 0.375,
        "categorical_diversity": 1.0,
        "continuous_diversity": 6.5,
        "sparsity_diversity": 1.0,
    }


def test_an_unchanged_answer_is_perfectly_near_and_not_diverse() -> None:
    frame = pd.DataFrame({"age": [30, 30], "income": [1.0, 1.0], "school": ["low"] * 2, "owner": [True] * 2})
    measures = evaluate(frame.iloc[[0]], frame, MIXED, [True, True])
    assert list(measures.values()) == [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert math.copysign(1.0, measures["continuous_proximity"]) == 1.0


def test_missing_values_equal_each_other_and_have_no_distance() -> None:
    schema = Schema((Numeric("x", 0, 9), Numeric("y", 0, 9), Categorical("z", ("a", "b"))))
    factual = pd.DataFrame({"x": [np.nan], "y": [np.nan], "z": [None]})
    answers = pd.DataFrame({"x": [np.nan], "y": [3.0], "z": ["a"]})
    measures = evaluate(factual, answers, schema, [True])
    assert measures["sparsity"] == pytest.approx(1 / 3)
    assert measures["continuous_proximity"] == 0.0
    assert measures["categorical_proximity"] == 0.0


def test_measures_without_meaning_are_nan() -> None:
    numbers = evaluate([[1.0, 2.0]], [[1.0, 5.0]], Schema((Numeric("x", 0, 9), Numeric("y", 0, 9))), True)
    assert math.isnan(numbers["categorical_proximity"])
    assert numbers["continuous_proximity"] == -3.0
    words = evaluate([["a"]], [["b"]], Schema((Categorical("z", ("a", "b")),)), True)
    assert math.isnan(words["continuous_proximity"])
    assert words["categorical_proximity"] == 0.0
    none = evaluate([["a"]], np.empty((0, 1), dtype=object), Schema((Categorical("z", ("a", "b")),)), [])
    assert all(math.isnan(value) for value in none.values())


def test_counts_that_do_not_fit_are_refused() -> None:
    schema = Schema((Numeric("x", 0, 9),))
    with pytest.raises(SchemaError, match=r"1 counterfactual.* and 2 flag"):
        evaluate([[1.0]], [[2.0]], schema, [True, True])
    with pytest.raises(SchemaError, match="2 factual"):
        evaluate([[1.0], [1.0]], [[2.0]], schema, [True])


def explanation(want: str, before: Any, *predictions: Any) -> Explanation:
    schema = Schema((Integer("age", 18, 90),))
    certificate = Certificate(1.0, 1.0, 0.0, proven=True)
    answers = tuple(
        Counterfactual(pd.DataFrame({"age": [31 + i]}), (Change("age", 30, 31 + i),), p, 0.6, 1.0, certificate)
        for i, p in enumerate(predictions)
    )
    return Explanation(answers, pd.DataFrame({"age": [30]}), before, 0.4, want, schema, "optimal", 0.1)


@pytest.mark.parametrize(
    ("want", "before", "predictions", "validity"),
    [
        ("good", "bad", ("good", "good"), 1.0),
        ("'good'", "bad", ("good", "good"), 1.0),
        ("good", "bad", ("good", "bad"), 0.5),
        ("1", 0, (1, 1), 1.0),
        ("'good' with probability at least 0.7", "bad", ("good",), 1.0),
        ("a value of at least 200", 150.0, (201.0, 205.0), 1.0),
        ("bad", "bad", ("good",), 0.0),
    ],
)
def test_validity_of_an_explanation(want: str, before: Any, predictions: tuple[Any, ...], validity: float) -> None:
    one = explanation(want, before, *predictions)
    assert one.metrics()["validity"] == validity


def test_measures_of_an_explanation() -> None:
    measures = explanation_metrics(explanation("good", "bad", "good", "good", "good"))
    assert measures["continuous_proximity"] == -2.0  # 1, 2 and 3 years
    assert measures["continuous_diversity"] == pytest.approx(4 / 3)  # 1, 1 and 2 years apart
    assert all(math.isnan(value) for value in explanation_metrics(explanation("good", "bad")).values())
