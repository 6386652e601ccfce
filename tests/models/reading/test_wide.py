"""Many columns: what is read in one piece says the same as the model, with and without missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ifonly import Explainer
from ifonly.arrays import FloatArray
from ifonly.models.reading.sparse_row import SparseRow, matrix_product, transposed
from ifonly.runtime.tuning import Reading, Tuning

WIDTH = 90
RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.normal(size=(120, WIDTH)), columns=[f"x{j}" for j in range(WIDTH)])
Y = (X.to_numpy() @ RNG.normal(size=WIDTH) > 0).astype(int)


def holes() -> pd.DataFrame:
    return X.mask(RNG.random(X.shape) < 0.2)


@pytest.mark.parametrize("indicator", [False, True])
def test_the_form_agrees_with_the_model_where_values_are_missing(indicator: bool) -> None:
    with_holes = holes()
    steps = SimpleImputer(strategy="median", add_indicator=indicator), StandardScaler(), LogisticRegression()
    model = make_pipeline(*steps).fit(with_holes, Y)
    explainer = Explainer(model, with_holes)
    U = explainer.schema.encode(with_holes, missing=True)
    said = model.decision_function(with_holes)
    np.testing.assert_allclose(explainer.model.read.form(U)[:, 0], said, rtol=1e-9, atol=1e-9)


def test_all_gaps_at_once_say_what_they_say_one_by_one() -> None:
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(X, Y)
    at_once = Explainer(model, X).model.read
    singly = Explainer(model, X, tuning=Tuning(reading=Reading(many=10**9))).model.read
    assert at_once.accepts_missing == singly.accepts_missing == frozenset(range(WIDTH))
    U = Explainer(model, X).schema.encode(holes(), missing=True)
    np.testing.assert_array_equal(at_once.form(U), singly.form(U))


def test_a_model_without_imputer_takes_no_gap() -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    assert Explainer(model, X).model.read.accepts_missing in (False, frozenset())


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_rows_come_back_as_they_were(dtype: str) -> None:
    table = (10.0 * X).round().astype(dtype) if dtype == "int16" else X.astype(dtype)
    schema = Explainer(LogisticRegression().fit(table, Y), table).schema
    pd.testing.assert_frame_equal(schema.decode(schema.encode(table)), table)
    one = schema.row(table.iloc[7])
    np.testing.assert_array_equal(schema.encode(one)[0], table.iloc[7].to_numpy(dtype=np.float64))


def test_an_answer_of_a_wide_model_is_the_model_s_own() -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    answer = Explainer(model, X).explain(X.iloc[0])
    assert answer[0].certificate.proven
    assert model.predict(answer.frame())[0] != model.predict(X.iloc[[0]])[0]


def test_products_of_sparse_rows_are_those_of_dense_ones() -> None:
    A: FloatArray = np.where(RNG.random((7, 11)) < 0.3, RNG.normal(size=(7, 11)), 0.0)
    C = RNG.normal(size=(2, 7))
    rows = [SparseRow.of(a) if k % 2 else a for k, a in enumerate(A)]
    np.testing.assert_allclose(matrix_product(C, rows, 11), C @ A)
    sparse = [SparseRow.of(a) for a in A]
    np.testing.assert_array_equal(np.array([np.asarray(row) for row in transposed(sparse, 11)]), A.T)
    longer = sparse[0].longer(SparseRow.of(A[1]))
    np.testing.assert_array_equal(np.asarray(longer), np.concatenate([A[0], A[1]]))
    np.testing.assert_array_equal(longer.within(slice(9, 14)), np.concatenate([A[0], A[1]])[9:14])
