"""Rows encoded together are the rows encoded one by one, and a refused one is alone in being refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import questions
from ifonly import Schema
from ifonly.data.given import Given, given_rows
from ifonly.runtime.later import Later, deferred

ODD = pd.DataFrame(
    {
        "number": [1.5, np.nan, -0.0, 1e300],
        "whole": [1, 2, 3, 4],
        "small": np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32),
        "flag": [True, False, True, True],
        "word": pd.Categorical(["a", None, "b", "a"]),
        "mixed": np.array([1, "x", 2, "x"], dtype=object),
        "maybe": pd.array([1, None, 3, 4], dtype="Int64"),
    },
    index=list("wxyz"),
)


@pytest.mark.parametrize(
    "table", [questions.people(50), ODD, ODD.astype({"word": object})], ids=["people", "odd", "object"]
)
def test_rows_together_are_rows_alone(table: pd.DataFrame) -> None:
    schema = Schema.infer(table)
    together = list(given_rows(schema.frame(table), schema, missing=True))
    for i, given in enumerate(together):
        alone = Given.of(table.iloc[[i]], schema, missing=True)
        assert given is not None
        np.testing.assert_array_equal(given.factual, alone.factual)
        assert given.factual.tobytes() == alone.factual.tobytes()
        assert given.index.equals(alone.index)
        pd.testing.assert_frame_equal(given.returned(schema), alone.returned(schema))


@pytest.mark.parametrize("bad", [[], [0], [9], [3, 4, 7], list(range(10))])
def test_only_rows_at_fault_are_left_out(bad: list[int]) -> None:
    people = questions.people(10)
    schema = Schema.infer(people)
    table = people.astype(object)
    for i in bad:
        table.iloc[i, 0] = "thirty" if i % 2 else None
    found = list(given_rows(table, schema, missing=False))
    assert [i for i, given in enumerate(found) if given is None] == bad
    right = schema.encode(people)
    for i, given in enumerate(found):
        if given is not None:
            np.testing.assert_array_equal(given.factual, right[i])


def test_a_value_of_later_is_computed_once_and_travels_as_itself() -> None:
    calls: list[int] = []

    def compute(x: int) -> list[int]:
        calls.append(x)
        return [x]

    value: Any = Later(compute, 3)
    assert value.get() is value.get()
    assert calls == [3]
    assert pickle.loads(pickle.dumps(Later(sorted, [2, 1]))).get() == [1, 2]
    with pytest.raises(AttributeError):
        deferred("field")(type("Thing", (), {})).field  # noqa: B018 - a field without a default


def test_frames_of_a_batch_are_those_of_single_questions() -> None:
    explainer, rows = questions.explainer(), questions.people(12, seed=3)
    for outcome in explainer.explain_all(rows, want="good"):
        if outcome.explanation is None:
            continue
        alone = explainer.explain(rows.loc[[outcome.index]], want="good")
        pd.testing.assert_frame_equal(outcome.explanation.factual, alone.factual)
        pd.testing.assert_frame_equal(outcome.explanation.frame(), alone.frame())
        again = pickle.loads(pickle.dumps(outcome.explanation))
        pd.testing.assert_frame_equal(again[0].row, alone[0].row)
        pd.testing.assert_frame_equal(again.factual, alone.factual)


def test_a_batch_keeps_its_rows_when_the_caller_changes_the_frame() -> None:
    explainer, rows = questions.explainer(), questions.people(12, seed=3)
    before = rows.copy()
    found = explainer.explain_all(rows, want="good")
    rows.iloc[:, 0] = 1
    for outcome in found:
        if outcome.explanation is not None:
            assert outcome.explanation.factual["age"].iloc[0] == before.loc[outcome.index, "age"]
