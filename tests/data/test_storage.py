"""Storage of rows in columns: for all features at once as for each alone; a row decoded beside another is the row decoded."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import questions
from ifonly import Explainer, Schema
from ifonly.data.features import Numeric, restore_numbers
from ifonly.data.given import Given

PEOPLE = questions.people(60)
MODEL = questions.pipeline(PEOPLE, questions.labels(PEOPLE))


def odd_numbers(rows: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "plain": rng.normal(size=rows),
            "narrow": rng.normal(size=rows).astype(np.float32),
            "half": rng.normal(size=rows).astype(np.float16),
            "whole": rng.integers(-5, 6, rows),
            "tiny": rng.integers(0, 100, rows).astype(np.uint8),
            "decimal": rng.normal(size=rows).round(2),
            "maybe": pd.array(rng.integers(0, 9, rows), dtype="Int64"),
            "floating": pd.array(rng.normal(size=rows), dtype="Float32"),
            "job": pd.Categorical(rng.choice(["a", "b", "c"], rows)),
        }
    )


def test_all_columns_together_keep_what_each_keeps() -> None:
    table = odd_numbers()
    schema = Schema.infer(table, precision={"decimal": 2}, numeric=["tiny"])
    U = schema.encode(table) + np.random.default_rng(1).normal(scale=3.0, size=(len(table), schema.width))
    U[0, schema.starts[3]] = -0.3  # rounds to -0, which a whole number does not know
    stored = schema.stored(U)
    assert stored is not U
    for j, feature in enumerate(schema.features):
        part = U[:, schema.starts[j]]
        right = np.asarray(restore_numbers(part, feature), dtype=float) if isinstance(feature, Numeric) else part
        np.testing.assert_array_equal(stored[:, schema.starts[j]], right)
        np.testing.assert_array_equal(np.signbit(stored[:, schema.starts[j]]), np.signbit(right))
    np.testing.assert_array_equal(schema.stored(U[3]), stored[3])
    np.testing.assert_array_equal(schema.stored(stored), stored)


@pytest.mark.parametrize("table", [odd_numbers(), questions.people(40)], ids=["odd", "people"])
@pytest.mark.parametrize("changed", [0, 1, 3, 99])
def test_a_row_beside_another_is_decoded_as_alone(table: pd.DataFrame, changed: int) -> None:
    schema = Schema.infer(table)
    U, rng = schema.encode(table), np.random.default_rng(changed)
    for i in range(5):
        other = U[i].copy()
        for j in rng.permutation(len(schema))[:changed]:
            other[schema.slice(int(j))] = U[i + 7][schema.slice(int(j))]
        given = Given.of(table.iloc[[i]], schema, missing=False)
        frame = given.table
        pd.testing.assert_frame_equal(schema.decode_beside(other, given.factual, frame), schema.decode(other))
        pd.testing.assert_frame_equal(frame, table.iloc[[i]])  # which is read, and not changed


def test_a_column_that_was_no_float_becomes_one_where_the_answer_is() -> None:
    table = pd.DataFrame({"a": [1, 2, 3], "b": [1, 5, 9], "c": ["x", "y", "x"], "d": [0, 1, 0]})
    schema = Schema.infer(table, numeric=["a"])
    u = schema.encode(table)[0]
    beside = u.copy()
    beside[schema.starts[0]] = 1.25
    frame = schema.decode_beside(beside, u, table.iloc[[0]])
    pd.testing.assert_frame_equal(frame, schema.decode(beside))
    assert frame["a"].dtype == float


def test_callers_may_change_their_row_and_the_answer() -> None:
    people, model = PEOPLE, MODEL
    explainer = Explainer(model, people)
    refused = people[model.predict(people) != "good"].iloc[[0]]
    row = refused.copy()
    answer = explainer.explain(row, want="good")
    row.iloc[0, 0] = 70
    pd.testing.assert_frame_equal(answer.factual, refused)
    first = answer.frame().copy()
    answer.factual.iloc[0, 0] = 69
    again = explainer.explain(refused, want="good")
    pd.testing.assert_frame_equal(again.frame(), first)
    pd.testing.assert_frame_equal(again.factual, refused)


def test_what_is_known_of_a_row_is_no_part_of_a_pickle() -> None:
    people, model = PEOPLE, MODEL
    explainer = Explainer(model, people)
    explainer.explain(people[model.predict(people) != "good"].iloc[[0]], want="good")
    rows = explainer.model.prepare
    assert rows._here.factual is not None  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(rows))._here.factual is None
