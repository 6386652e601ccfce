"""Preprocessing of scikit-learn: the affine map that is read off equals what the fitted steps compute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, FactorAnalysis, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

import reading
from ifonly import Explainer, UnsupportedModel
from ifonly.runtime.tuning import DEFAULT
from portions import one_in

NUMERIC = ["income", "debt", "age"]
TEXT = ["job", "home"]


def frame() -> pd.DataFrame:
    made = reading.mixed_frame(200)
    return made.assign(income=made["income"] / 1000)


def labels() -> np.ndarray:
    return np.minimum(reading.outcome(reading.mixed_frame(200)), 1)


def check(pipeline: Pipeline, X: pd.DataFrame, **options: Any) -> None:
    """The form of the whole pipeline is its decision function, on the data and all over the box."""
    pipeline.fit(X, labels())
    read, schema = reading.read(pipeline, X, **options)
    U = reading.rows(schema, X, 2000)
    assert np.allclose(read.form(U)[:, 0], pipeline.decision_function(schema.decode(U)), rtol=1e-8, atol=1e-8)


def last() -> LogisticRegression:
    return LogisticRegression(max_iter=5000)


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MinMaxScaler(),
        MinMaxScaler((-1, 3)),
        MaxAbsScaler(),
        RobustScaler(),
        RobustScaler(with_centering=False),
        RobustScaler(with_scaling=False),
        FunctionTransformer(),
        SimpleImputer(),
        SimpleImputer(strategy="median", add_indicator=True),
        PCA(2),
        PCA(2, whiten=True),
        PCA(),
        IncrementalPCA(2),
        TruncatedSVD(2, random_state=0),
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(solver="eigen"),
        VarianceThreshold(),
        SelectKBest(k=2),
        "passthrough",
        None,
        make_pipeline(StandardScaler(), PCA(2), MinMaxScaler()),
    ],
    ids=repr,
)
def test_numeric_steps(step: Any) -> None:
    check(Pipeline([("step", step), ("last", last())]), frame()[NUMERIC])


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="first"),
        OneHotEncoder(drop="if_binary"),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        OneHotEncoder(min_frequency=90, handle_unknown="infrequent_if_exist"),
        OneHotEncoder(max_categories=2),
        OrdinalEncoder(),
        OrdinalEncoder(categories=[["part", "none", "full"], ["rent", "own"]]),
        TargetEncoder(),
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
    ],
    ids=repr,
)
def test_encoders(encoder: Any) -> None:
    columns = ColumnTransformer([("number", StandardScaler(), NUMERIC), ("text", encoder, TEXT)])
    check(Pipeline([("columns", columns), ("last", last())]), frame())


def test_an_encoder_that_sees_only_some_levels_of_a_category_dtype() -> None:
    X = frame().assign(job=pd.Categorical(frame()["job"], categories=["none", "part", "full", "retired"]))
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer([("text", encoder, ["job"])], remainder=StandardScaler())
    check(Pipeline([("columns", columns), ("last", last())]), X.drop(columns="home"))


@pytest.mark.parametrize(
    "parts",
    [
        [("a", StandardScaler(), NUMERIC), ("b", OneHotEncoder(), TEXT)],
        [("b", OneHotEncoder(), TEXT), ("a", StandardScaler(), [2, 0, 1])],
        [("a", MinMaxScaler(), slice("income", "debt")), ("b", "passthrough", ["age"])],
        [("a", MinMaxScaler(), slice(0, 2)), ("c", "drop", ["age"])],
        [("a", MinMaxScaler(), [True, False, True, False, False])],
        [("a", MinMaxScaler(), np.array([True, False, True, False, False]))],
        [("a", MinMaxScaler(), make_column_selector(dtype_include="number"))],
        [("a", MinMaxScaler(), ["income"]), ("again", StandardScaler(), ["income", "age"])],
        [("a", MinMaxScaler(), NUMERIC), ("none", OneHotEncoder(), [])],
        [
            ("a", MinMaxScaler(), NUMERIC),
            ("none", OneHotEncoder(), make_column_selector(dtype_include="bool")),
        ],
    ],
    ids=lambda p: "+".join(type(columns).__name__ for _, _, columns in p),
)
def test_column_transformers(parts: Any) -> None:
    check(Pipeline([("columns", ColumnTransformer(parts)), ("last", last())]), frame())


@pytest.mark.parametrize("remainder", ["passthrough", "drop", StandardScaler()])
def test_the_remainder(remainder: Any) -> None:
    columns = ColumnTransformer([("a", OneHotEncoder(), TEXT)], remainder=remainder)
    if remainder == "drop":
        check(Pipeline([("columns", columns), ("last", last())]), frame())
    else:
        check(Pipeline([("columns", columns), ("scale", MaxAbsScaler()), ("last", last())]), frame())


def test_one_after_another_by_name() -> None:
    first = ColumnTransformer(
        [("number", StandardScaler(), NUMERIC), ("text", OneHotEncoder(sparse_output=False), TEXT)]
    )
    first.set_output(transform="pandas")
    second = ColumnTransformer([("again", MinMaxScaler(), ["number__age", "number__income"])], remainder="passthrough")
    check(Pipeline([("first", first), ("second", second), ("last", last())]), frame())


def test_booleans_and_numbers_as_levels() -> None:
    X = frame()[["income"]].assign(
        member=frame()["age"] > 40, code=np.where(frame()["debt"] > 0.3, 7, 3), grade=frame()["age"] % 3
    )
    check(Pipeline([("scale", StandardScaler()), ("last", last())]), X)
    columns = ColumnTransformer([("code", OneHotEncoder(), ["grade", "code"])], remainder="passthrough")
    check(Pipeline([("columns", columns), ("last", last())]), X, categorical=["grade", "code"])


def test_a_model_without_names_gets_arrays() -> None:
    X = frame()[NUMERIC].to_numpy()
    model = make_pipeline(StandardScaler(), PCA(2), last()).fit(X, labels())
    answer = Explainer(model, X).explain(X[0])
    assert model.predict(answer.frame().to_numpy())[0] != model.predict(X[:1])[0]


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (FactorAnalysis(2), "FactorAnalysis is not read. The nearest linear map that is: PCA."),
        (MinMaxScaler(clip=True), "is clipped by MinMaxScaler(clip=True)"),
        (FunctionTransformer(np.square), "FunctionTransformer with 'square': only the identity"),
        (FunctionTransformer(lambda X: X), "FunctionTransformer with '<lambda>'"),
        (SimpleImputer(missing_values=0), "replaces an ordinary value, which is a jump"),
    ],
    ids=lambda p: type(p).__name__,
)
def test_steps_that_a_linear_model_cannot_stand_behind(step: Any, says: str) -> None:
    X = frame()[NUMERIC]
    model = Pipeline([("bend", step), ("last", last())]).fit(X, labels())
    with pytest.raises(UnsupportedModel) as caught:
        Explainer(model, X)
    assert says in str(caught.value)
    assert "Step 'bend'" in str(caught.value) or "Step 'last'" in str(caught.value)


def test_an_unfitted_column_transformer_in_a_fitted_pipeline() -> None:
    X = frame()[NUMERIC]
    columns = ColumnTransformer([("a", StandardScaler(), make_column_selector(dtype_include="number"))])
    model = make_pipeline(columns, last()).fit(X, labels())
    columns.transformers_ = [("a", columns.transformers_[0][1], make_column_selector(dtype_include="number"))]
    with pytest.raises(UnsupportedModel, match="its column selection is still a function"):
        Explainer(model, X)


@pytest.mark.parametrize("family", one_in(2, ["linear", "forest"]))
def test_levels_in_groups_of_any_size_give_the_encoders_own_numbers(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    words = {f"c{k}": rng.choice([f"w{i}" for i in range(2 + k)], 300) for k in range(9)}
    X = pd.DataFrame({**words, "number": rng.normal(size=300)}).astype(dict.fromkeys(words, "category"))
    y = (X["c8"].cat.codes + X["c3"].cat.codes + X["number"] > 5).to_numpy()
    columns = ColumnTransformer([("words", OneHotEncoder(), list(words))], remainder="passthrough")
    model = make_pipeline(columns, last() if family == "linear" else RandomForestClassifier(5, random_state=0))
    model.fit(X, y)
    calls: list[int] = []
    transform = OneHotEncoder.transform
    monkeypatch.setattr(OneHotEncoder, "transform", lambda self, Z: calls.append(len(Z)) or transform(self, Z))
    needed = []
    for rows in (1, 20, 1000):  # each feature alone, in groups, all at once
        calls.clear()
        own = Explainer(model, X, tuning=replace(DEFAULT, reading=replace(DEFAULT.reading, level_rows=rows)))
        needed.append(len(calls))
        U = reading.rows(own.schema, X, 500)
        there = own.schema.decode(U)
        expected = model.predict_proba(there) if family == "forest" else model.decision_function(there)[:, None]
        assert own.model.read.form(U) == pytest.approx(expected, abs=1e-9)
    assert needed[0] >= needed[1] + 4 >= needed[2] + 6
