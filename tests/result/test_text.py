"""The printed answer, character by character, and the promises of the printed numbers."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ifonly.data.schema import Categorical, Feature, Integer, Numeric, Schema
from ifonly.errors import Infeasible, OutOfTime
from ifonly.result.many import Explanations, Outcome
from ifonly.result.text import format_change, format_range, format_value, outcome, render, render_batch
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation

FEATURES = (
    Integer("duration", 4, 72),
    Numeric("credit_amount", 250, 20000, label="credit amount"),
    Categorical("savings_status", ("<100", "100<=X<500", ">=500")),
)
FACTUAL = {"duration": 24, "credit_amount": 1371.26, "savings_status": "<100"}
PROVEN = Certificate(objective=0.31, bound=0.31, gap=0.0, proven=True)


def answer(changes: dict[str, Any], **parts: Any) -> Counterfactual:
    row = pd.DataFrame([FACTUAL | changes])
    listed = tuple(Change(name, FACTUAL[name], value) for name, value in changes.items())
    return Counterfactual(
        row,
        listed,
        **{"prediction": "good", "score": 0.52, "distance": 0.3124, "certificate": PROVEN} | parts,
    )


def explanation(*answers: Counterfactual, **parts: Any) -> Explanation:
    return Explanation(
        answers,
        pd.DataFrame([FACTUAL]),
        **{
            "prediction": "bad",
            "score": 0.38,
            "want": "good",
            "schema": Schema(FEATURES),
            "status": "optimal",
            "seconds": 0.031,
        }
        | parts,
    )


def test_one_answer_reads_as_in_the_design() -> None:
    text = render(explanation(answer({"duration": 18, "savings_status": "100<=X<500"})))
    assert text.splitlines() == [
        "If only ...                  it is now      it would be",
        "  duration                   24             18",
        "  savings_status             <100           100<=X<500",
        "then  bad (0.38)  ->  good (0.52)",
        "2 of 3 features · distance 0.31 · proven optimal · confirmed by the model · 0.03 s (HiGHS)",
    ]


def test_explanation_prints_itself() -> None:
    one = explanation(answer({"duration": 18}))
    assert str(one) == render(one)


def test_several_answers_are_numbered_and_line_up() -> None:
    first = answer(
        {"duration": 12, "credit_amount": 1283.5},
        ranges={"duration": (11.0, 16.0), "savings_status": (0.0, 1.0)},
        measures={"hull_distance": 0.0123},
    )
    second = answer({"savings_status": ">=500"}, certificate=Certificate.of(0.31, 0.3))
    text = render(explanation(first, second, notes=("age may only grow",)))
    assert text.splitlines() == [
        "1. If only ...                  it is now      it would be",
        "     duration                   24             12",
        "     credit amount              1371.26        1283.5",
        "   then  bad (0.38)  ->  good (0.52)",
        "     holds for duration between 11 and 16",
        "     hull distance 0.0123",
        "   2 of 3 features · distance 0.31 · proven optimal",
        "",
        "2. If only ...                  it is now      it would be",
        "     savings_status             <100           >=500",
        "   then  bad (0.38)  ->  good (0.52)",
        "   1 of 3 features · distance 0.31 · within 3.3% of the best, proven",
        "",
        "2 answers · confirmed by the model · 0.03 s (HiGHS)",
        "note: age may only grow",
    ]


def test_long_and_wide_names_push_the_columns_apart() -> None:
    wide = replace(FEATURES[2], label="貯蓄の状態", levels=("<100", "a level with a rather long name", ">=500"))
    schema = Schema((*FEATURES[:2], wide))
    changed = Counterfactual(
        pd.DataFrame([FACTUAL]),
        (
            Change("savings_status", "a level with a rather long name", "<100"),
            Change("credit_amount", 1371.26, 1500.0),
        ),
        "good",
        0.52,
        0.3,
        PROVEN,
    )
    lines = render(explanation(changed, schema=schema)).splitlines()
    assert lines[0] == "If only ...                  it is now                        it would be"
    # Each of the five characters of the label is two columns wide.
    assert lines[1] == "  貯蓄の状態                 a level with a rather long name  <100"
    assert lines[2].index("1500") == lines[0].index("it would be")


def test_no_answer_and_no_change_are_said_plainly() -> None:
    assert render(explanation()) == "No counterfactual was found. · 0.03 s (HiGHS)"
    unchanged = render(explanation(answer({}, distance=0.0)))
    assert unchanged.splitlines()[0] == "Nothing has to change:"
    assert "0 of 3 features · distance 0 ·" in unchanged


def test_rounded_numbers_are_confessed() -> None:
    text = render(explanation(answer({"credit_amount": 1234.56789})))
    assert "1234.56" in text
    assert text.splitlines()[-1].startswith("note: long numbers are rounded")
    assert "note" not in render(explanation(answer({"credit_amount": 1234.5})))


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        (Certificate.of(1.0, 0.5), "within 50% of the best, proven"),
        (Certificate.of(1.0, 0.9996), "within 0.04% of the best, proven"),
        (Certificate.of(4.0, 3.5), "within 13% of the best, proven"),  # rounded up: 12 would not be true
        (Certificate.of(512.0, 1.0), "within 99.9% of the best, proven"),
        (Certificate.of(0.4, 0.0), "no bound yet"),
        (Certificate.of(1.0, -math.inf), "no bound yet"),
        (Certificate.of(1.0, 0.76, asked_gap=0.5), "within 24% of the best, proven"),
        (Certificate.of(1.0, 1.0), "proven optimal"),
    ],
)
def test_proof_in_words(certificate: Certificate, words: str) -> None:
    assert f"· {words} ·" in render(explanation(answer({"duration": 18}, certificate=certificate)))


@pytest.mark.parametrize(
    ("distance", "words"), [(0.0, "0"), (0.004321, "0.0043"), (1234.5, "1234.50"), (math.nan, "nan")]
)
def test_distance_in_words(distance: float, words: str) -> None:
    assert f"distance {words} ·" in render(explanation(answer({"duration": 18}, distance=distance)))


def test_seconds_keep_a_digit_that_says_something() -> None:
    assert "0.004 s (SCIP)" in render(explanation(answer({"duration": 18}), seconds=0.0041, solver="SCIP"))


@pytest.mark.parametrize(
    ("before", "after", "name", "words"),
    [
        (("bad", 0.38), ("good", 0.52), "probability", ("bad (0.38)", "good (0.52)")),
        (("bad", 0.4996), ("good", 0.5003), "probability", ("bad (0.4996)", "good (0.5003)")),
        (("bad", 0.499), ("good", 0.504), "probability", ("bad (0.499)", "good (0.504)")),
        (("bad", 0.5), ("good", 0.5), "probability", ("bad (0.50)", "good (0.50)")),
        ((0, -1.2), (1, 0.05), "score", ("0 (score -1.20)", "1 (score 0.05)")),
        (("bad", None), ("good", None), "score", ("bad", "good")),
        (("bad", None), ("good", 0.5), "probability", ("bad", "good (0.50)")),
        (("bad", 0.5), ("good", None), "probability", ("bad (0.50)", "good")),
        ((152.133484, 152.133484), (201.2, 201.2), "value", ("152.133", "201.2")),
        ((1.00000001, 0.0), (1.00000002, 0.0), "value", ("1.00000001", "1.00000002")),
        ((7.0, 0.0), (7.0, 0.0), "value", ("7", "7")),
        ((math.nan, 0.0), (7.5, 0.0), "value", ("missing", "7.5")),
    ],
)
def test_outcome(before: tuple[Any, Any], after: tuple[Any, Any], name: str, words: tuple[str, str]) -> None:
    one = explanation(
        answer({"duration": 18}, prediction=after[0], score=after[1]),
        prediction=before[0],
        score=before[1],
        score_name=name,
    )
    assert outcome(one, one[0]) == words


@pytest.mark.parametrize(
    ("value", "feature", "text"),
    [
        (24, None, "24"),
        (np.int64(24), None, "24"),
        (24.0, FEATURES[0], "24"),
        (1e15, None, "1000000000000000"),
        (1234567.0, None, "1234567"),
        (1234567.891, None, "1234568"),
        (0.1, None, "0.1"),
        (0.1 + 0.2, None, "0.3"),
        (-0.000012345678, None, "-0.0000123457"),
        (1.5e-9, None, "1.5e-9"),
        (2.5e20, None, "2.5e20"),
        (0.0, None, "0"),
        (-0.0, None, "0"),
        (float(np.float32(0.1)), Numeric("x", 0, 1, dtype=np.dtype("float32")), "0.1"),
        (float(np.float32(0.1)), Numeric("x", 0, 1, dtype=pd.Float32Dtype()), "0.1"),
        (np.float32(0.1), None, "0.1"),
        (1234567.89, Numeric("x", 0, 1e7, precision=2), "1234567.89"),
        (0.123456789, Categorical("x", (0.123456789,)), "0.123456789"),
        (True, None, "True"),
        (np.bool_(False), None, "False"),
        ("a level", None, "a level"),
        (" Private", None, " Private"),
        ("", None, "''"),
        ("two\nlines", None, "'two\\nlines'"),
        (None, None, "missing"),
        (pd.NA, None, "missing"),
        (math.nan, None, "missing"),
        (math.inf, None, "inf"),
    ],
)
def test_format_value(value: Any, feature: Feature | None, text: str) -> None:
    assert format_value(value, feature) == text


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        (24, 18, ("24", "18")),
        (24, 7.123456789, ("24", "7.12345")),
        (1, 7.123456789, ("1", "7.12346")),
        (0.5, 0.5000000123, ("0.5", "0.500000013")),
        (0.1234567891, 0.123457, ("0.12345679", "0.123457")),
        ("a", "b", ("a", "b")),
        (math.nan, 1.23456789, ("missing", "1.23456789")),
        (1.23456789, 1.23456789, ("1.23457", "1.23456789")),
    ],
)
def test_format_change(before: Any, after: Any, texts: tuple[str, str]) -> None:
    assert format_change(before, after) == texts


def test_rounding_never_leaves_the_bounds() -> None:
    bounded = Numeric("x", 0.0, 7.123456789)
    assert format_change(1, 7.123456789, bounded) == ("1", "7.123456789")


def test_a_declared_precision_is_printed_in_full() -> None:
    assert format_change(0.0, 1234567.89, Numeric("x", 0, 1e7, precision=2)) == ("0", "1234567.89")


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(finite, finite)
def test_the_printed_number_is_at_least_as_far_from_the_factual(before: float, after: float) -> None:
    assume(before != after)
    now, then = format_change(before, after)
    assert now != then
    assert float(then) >= after if after > before else float(then) <= after


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_rounding_is_small_against_the_change(before: float, after: float) -> None:
    assume(abs(before - after) > 1e-9)
    _, then = format_change(before, after)
    assert abs(float(then) - after) <= 0.1 * abs(after - before) * (1 + 1e-6)
    assert abs(float(then) - after) <= 1e-5 * max(abs(after), 1e-5) * (1 + 1e-6)


@settings(deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.floats(-1e6, 1e6, width=32))
def test_the_printed_number_read_as_float32_stays_on_its_side(before: float, after: float) -> None:
    assume(before != after)
    _, then = format_change(before, after, Numeric("x", -4e38, 4e38, dtype=np.dtype("float32")))
    assert np.float32(then) >= after if after > before else np.float32(then) <= after


@settings(deadline=None)
@given(finite, finite)
def test_a_printed_range_lies_within_the_range(one: float, other: float) -> None:
    low, high = sorted((one, other))
    texts = format_range(low, high)
    assert low <= float(texts[0]) <= float(texts[1]) <= high


def test_range_of_a_whole_number() -> None:
    assert format_range(11.0, 16.0, FEATURES[0]) == ("11", "16")
    assert format_range(-math.inf, 16.0) == ("-inf", "16")


def batch(*outcomes: Outcome) -> Explanations:
    return Explanations(outcomes, 1.9)


def test_batch_summary() -> None:
    one = explanation(answer({"duration": 18, "savings_status": ">=500"}), answer({"duration": 16}))
    other = explanation(answer({"duration": 18}), seconds=0.05, status="feasible")
    long = "demands clash: " + "x" * 100
    summary = str(
        batch(
            Outcome(0, "optimal", one),
            Outcome(3, "optimal", one),
            Outcome(5, "feasible", other),
            Outcome(17, "infeasible", error=Infeasible(f"{long}\nmore")),
            Outcome(18, "infeasible", error=Infeasible("another")),
            Outcome(19, "out_of_time", error=OutOfTime("")),
        )
    )
    assert summary.splitlines() == [
        "6 rows in 1.90 s · median 0.03 s per row",
        "  2 optimal",
        "  2 infeasible  (row 17: " + long[:87] + "...)",
        "  1 feasible",
        "  1 out of time  (row 19: OutOfTime)",
        "Most often changed: duration (3), savings_status (2)",
    ]


def test_batch_without_rows_or_answers() -> None:
    assert render_batch(batch()) == "No rows."
    assert render_batch(batch(Outcome("a", "error"))) == "1 row in 1.90 s\n  1 error"
