"""Slips of a first try: each just works, or is answered in a sentence that says what to do next."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.svm import SVC

from ifonly import Actionability, Explainer, Schema
from ifonly.errors import CriterionError, OutsideTrainingRange, SchemaError, UnsupportedModel


@pytest.fixture(scope="module")
def loans() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"duration": rng.integers(4, 60, 200), "amount": rng.gamma(2, 1000, 200), "rate": rng.uniform(size=200)}
    )
    score = X["amount"] / 1000 + X["duration"] / 20 - 2 * X["rate"] + rng.normal(0, 0.3, 200)
    return X, pd.Series(np.where(score < 3, "good", "bad"))


def fitted(X: Any, y: Any) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)


def said(error: type[Exception], *args: Any, **options: Any) -> str:
    with pytest.raises(error) as caught:
        Explainer(*args, **options)
    assert len(str(caught.value)) < 700
    return str(caught.value)


def test_an_object_column_of_numbers_is_not_taken_for_names(loans: Any) -> None:
    X, y = loans
    model = fitted(X, y)
    boxed = X.astype({"amount": object})
    message = said(SchemaError, model, boxed)
    assert "'amount' holds numbers, but its dtype is object" in message
    assert "pd.to_numeric(X['amount'])" in message
    again = boxed.assign(amount=pd.to_numeric(boxed["amount"]))
    assert Explainer(model, again).explain(again[model.predict(again) == "bad"].head(1)).status == "optimal"
    assert Schema.infer(boxed, categorical=["amount"])["amount"].kind == "categorical"


@pytest.mark.parametrize(
    "columns",
    [[0, 1, 2], pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "z")], names=["part", "column"])],
    ids=["integers", "MultiIndex"],
)
def test_names_of_columns_are_kept_in_and_out(loans: Any, columns: Any) -> None:
    X, y = loans
    X = X.set_axis(columns, axis=1)
    model = fitted(X, y)
    refused = X[model.predict(X) == "bad"]
    explainer = Explainer(model, X)
    first = X.columns[0]
    for row in (refused.iloc[0], refused.head(1), refused.iloc[0].to_dict()):
        answer = explainer.explain(row, criteria=[Actionability(frozen=[first])])
        pd.testing.assert_index_equal(answer.frame().columns, X.columns)
        assert answer.frame()[first].iloc[0] == refused[first].iloc[0]
        assert model.predict(answer.frame())[0] == "good"
    pd.testing.assert_index_equal(explainer.explain_all(refused.head(2)).frame().columns, X.columns)


def test_swapped_arguments(loans: Any) -> None:
    X, y = loans
    assert "Write Explainer(model, X)." in said(UnsupportedModel, X, fitted(X, y))


def test_a_model_of_a_frame_and_an_array(loans: Any) -> None:
    X, y = loans
    message = said(SchemaError, fitted(X, y), X.to_numpy())
    assert "pd.DataFrame(X, columns=model.feature_names_in_)" in message


def test_levels_that_no_row_has_just_work(loans: Any) -> None:
    X, y = loans
    X = X.assign(home=pd.Categorical(np.where(X["rate"] > 0.5, "own", "rent"), categories=["own", "rent", "free"]))
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["home"]), remainder=StandardScaler()), LogisticRegression()
    )
    model.fit(X, y)
    row = X[model.predict(X) == "bad"].head(1)
    answer = Explainer(model, X).explain(row)
    assert answer.status == "optimal"
    assert answer.frame()["home"].dtype == X["home"].dtype
    assert model.predict(answer.frame())[0] == "good"


def test_bounds_that_exclude_the_factual(loans: Any) -> None:
    X, y = loans
    model = fitted(X, y)
    row = X[(model.predict(X) == "bad") & (X["duration"] > 20)].head(1)
    explainer = Explainer(model, X, schema=Schema.infer(X, bounds={"duration": (4, 10)}))
    with pytest.warns(OutsideTrainingRange, match="duration"):
        answer = explainer.explain(row)
    assert answer.status == "optimal"


def test_no_rows(loans: Any) -> None:
    X, y = loans
    model = fitted(X, y)
    assert "0 rows" in said(SchemaError, model, X.head(0))
    assert len(Explainer(model, X).explain_all(X.head(0), want="good")) == 0
    with pytest.raises(SchemaError, match="exactly one row, got 0"):
        Explainer(model, X).explain(X.head(0))


def test_a_dict_for_a_schema_and_a_number_for_a_range(loans: Any) -> None:
    X, y = loans
    assert "Schema.infer(X" in said(SchemaError, fitted(X, y), X, schema={"duration": "integer"})
    with pytest.raises(CriterionError, match=r"ranges=\{'duration': \(12, 24\)\}"):
        Actionability(ranges={"duration": 24})  # type: ignore[dict-item]


def test_duplicate_columns(loans: Any) -> None:
    X, y = loans
    assert "Duplicated column 'a'" in said(SchemaError, fitted(X.to_numpy(), y), X.set_axis(["a", "a", "b"], axis=1))


# -- ways out --------------------------------------------------------------------------------------------------------
def test_what_cannot_be_read_ends_with_the_way_out(loans: Any) -> None:
    X, y = loans
    for model in (
        SVC(),
        MLPClassifier((3,), activation="tanh", solver="lbfgs", max_iter=2000),
        make_pipeline(FunctionTransformer(np.sin), SVC()),
    ):
        assert 'Explainer(model, X, surrogate="auto")' in said(UnsupportedModel, model.fit(X, y), X).splitlines()[-1]


def test_no_way_out_is_named_where_the_model_cannot_be_asked_either(loans: Any) -> None:
    X, y = loans
    message = said(
        UnsupportedModel, LogisticRegression().fit(X.to_numpy(), y), X.assign(rate=X["rate"].astype(str) + "%")
    )
    assert "surrogate" not in message


@pytest.mark.parametrize("bend", [FunctionTransformer(np.log1p), PowerTransformer()], ids=["log1p", "power"])
@pytest.mark.parametrize(
    "last",
    [LogisticRegression(), MLPClassifier((4,), solver="lbfgs", alpha=1.0, max_iter=5000, random_state=0)],
    ids=["linear", "network"],
)
def test_bent_columns_of_whole_numbers_are_read(loans: Any, bend: Any, last: Any) -> None:
    # An oracle by enumeration: two whole numbers, all pairs.
    X, y = loans
    X = X[["duration"]].assign(amount=(X["amount"] / 100).astype(int))
    model = make_pipeline(bend, StandardScaler(), last).fit(X, y)
    row = X[model.predict(X) == "bad"].head(1)
    answer = Explainer(model, X).explain(row, want="good")
    grid = pd.DataFrame(
        [
            (d, a)
            for d in range(X["duration"].min(), X["duration"].max() + 1)
            for a in range(X["amount"].min(), X["amount"].max() + 1)
        ],
        columns=X.columns,
    )
    grid = grid[model.predict(grid) == "good"]
    moved = (grid - row.iloc[0]).abs()
    span = X.max() - X.min()
    costs = (moved / span).sum(axis=1) + 0.1 * (moved > 0).sum(axis=1)
    assert answer.status == "optimal"
    assert answer[0].certificate.objective == pytest.approx(costs.min(), rel=1e-6)


# -- polars ----------------------------------------------------------------------------------------------------------
def test_polars_in_polars_out(loans: Any) -> None:
    polars = pytest.importorskip("polars")
    X, y = loans
    model = fitted(X, y)
    refused = X[model.predict(X) == "bad"].head(3)
    table, rows = (polars.DataFrame(frame.to_dict("list")) for frame in (X, refused))
    expected = Explainer(model, X).explain(refused.head(1)).frame()
    for explainer, row in (
        (Explainer(model, table), rows[0]),
        (Explainer(model, table), rows.row(0, named=True)),
        (Explainer(model, X), rows[0]),
    ):
        answer = explainer.explain(row).frame()
        assert isinstance(answer, polars.DataFrame)
        assert answer.columns == list(X.columns)
        assert answer.rows() == [tuple(expected.iloc[0].tolist())]
    assert isinstance(Explainer(model, table).explain(refused.head(1)).frame(), pd.DataFrame)
    many = Explainer(model, table).explain_all(rows)
    assert isinstance(many.frame(), polars.DataFrame)
    assert many.frame().columns == ["row", "counterfactual", *X.columns]
    assert isinstance(many[0].explanation.frame(), polars.DataFrame)
