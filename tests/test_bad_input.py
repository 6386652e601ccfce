"""Bad input gets a clear error: which thing, why, and what to do next. One test for each line of the list."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, PolynomialFeatures
from sklearn.svm import SVC, SVR

import questions
from ifonly import (
    Actionability,
    CriterionError,
    Explainer,
    IfOnlyError,
    OutsideTrainingRange,
    Proximity,
    Robustness,
    Schema,
    SchemaError,
    SolverMissing,
    Sparsity,
    Target,
    UnsupportedModel,
)
from ifonly.solvers.registry import available_solvers

NOW = questions.FACTUAL


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return questions.explainer()


def refused(kind: type[IfOnlyError], explainer: Explainer, row: Any, **options: Any) -> str:
    """The message, after checking that one `except` for the builtin would have caught it too."""
    with pytest.raises(kind) as caught:
        explainer.explain(row, **{"want": "good", **options})
    assert isinstance(caught.value, IfOnlyError)
    assert isinstance(caught.value, ValueError | NotImplementedError)
    return str(caught.value)


# -- columns ----------------------------------------------------------------------------------------------------------
def test_unknown_column(explainer: Explainer) -> None:
    row = {**{k: v for k, v in NOW.items() if k != "income"}, "incme": 1.5}
    message = refused(SchemaError, explainer, row)
    assert "unknown column 'incme'. Did you mean 'income'?" in message
    assert "  - income\n  + incme" in message


def test_extra_column(explainer: Explainer) -> None:
    assert "unknown column 'shoe_size'" in refused(SchemaError, explainer, {**NOW, "shoe_size": 43})


def test_missing_column(explainer: Explainer) -> None:
    row = {k: v for k, v in NOW.items() if k != "debts"}
    message = refused(SchemaError, explainer, row)
    assert "missing column 'debts'." in message
    assert "  - debts" in message


def test_duplicated_column(explainer: Explainer) -> None:
    twice = pd.DataFrame([[*NOW.values(), 5]], columns=[*NOW, "debts"])
    assert "Duplicated column 'debts'" in refused(SchemaError, explainer, twice)
    assert "Rename or drop the copies" in refused(SchemaError, explainer, twice)
    with pytest.raises(SchemaError, match="Duplicated column"):
        explainer.explain_all(twice)


def test_reordered_columns_of_a_row_are_put_in_order(explainer: Explainer) -> None:
    backwards = dict(reversed(NOW.items()))
    answer, same = explainer.explain(backwards, want="good"), explainer.explain(NOW, want="good")
    pd.testing.assert_frame_equal(answer.frame(), same.frame())


def test_reordered_columns_of_the_training_data_are_shown_as_a_diff() -> None:
    X = questions.people()[["age", "income", "debts"]]
    model = LogisticRegression().fit(X, questions.labels(questions.people()))
    with pytest.raises(SchemaError) as caught:
        Explainer(model, X[["income", "age", "debts"]])
    message = str(caught.value)
    assert "not those the model was fitted on (same names, same order)" in message
    assert "position 0: expected age, found income" in message
    assert "Pass X[model.feature_names_in_]." in message


# -- values -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("nothing", [np.nan, None, pd.NA, pd.NaT])
@pytest.mark.parametrize("column", ["income", "debts", "job"])
def test_missing_value(explainer: Explainer, column: str, nothing: Any) -> None:
    message = refused(SchemaError, explainer, {**NOW, column: nothing})
    assert f"Missing value in column '{column}' (row 0)" in message
    assert "Fill it in" in message


@pytest.mark.parametrize("value", [np.inf, -np.inf, float("inf")])
def test_infinity(explainer: Explainer, value: float) -> None:
    message = refused(SchemaError, explainer, {**NOW, "income": value})
    assert message == "Infinity in column 'income'. Replace it by a finite value."


def test_infinity_and_missing_values_in_the_training_data() -> None:
    X = questions.people()[["age", "income", "debts"]]
    y = questions.labels(questions.people())
    model = LogisticRegression().fit(X, y)
    with pytest.raises(SchemaError, match="Infinity in column 'income' of the training data"):
        Explainer(model, X.assign(income=np.inf))
    holed = X.copy()
    holed.loc[3, "income"] = np.nan
    with pytest.raises(SchemaError, match=r"Missing value in column 'income' \(row 3\)"):
        Explainer(model, holed)


def test_unseen_level(explainer: Explainer) -> None:
    message = refused(SchemaError, explainer, {**NOW, "job": "ful"})
    assert message == (
        "Unseen level 'ful' of 'job': known levels are 'full', 'none', 'part'. Did you mean 'full'? Write one of these; or, "
        "if the model was trained on rows with it, give the Explainer those rows, or make the column a pandas category that "
        "lists it."
    )


def test_the_next_step_for_an_unseen_level_helps() -> None:
    """A model that takes any level, asked about one that no row of X has: a category that lists it is enough."""
    X, y = questions.people(), questions.labels(questions.people())
    model = questions.pipeline(X, y)
    few = X[X["job"] != "full"]
    row = {**NOW, "job": "full", "debts": 8}
    with pytest.raises(SchemaError, match="a pandas category that lists it"):
        Explainer(model, few).explain(row, want="good")
    listed = few.assign(job=pd.Categorical(few["job"], ["none", "part", "full"]))
    assert Explainer(model, listed).explain(row, want="good")[0].prediction == "good"


def test_value_outside_its_bounds_widens_them_with_a_warning(explainer: Explainer) -> None:
    with pytest.warns(OutsideTrainingRange, match=r"'age' is 95 in this row, outside the range \(18, 70\)"):
        answer = explainer.explain({**NOW, "age": 95}, want="good")
    assert 18 <= answer.frame()["age"].iloc[0] <= 95
    assert answer.factual["age"].iloc[0] == 95


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("income", "much", "Column 'income' must be a number, got 'much' (str). Convert it"),
        ("debts", 2.5, "Column 'debts' is declared to have a whole number, got"),
        ("age", pd.Timestamp("1990-01-01"), "Column 'age' must be a number, got Timestamp"),
        ("job", 3, "Unseen level 3 of 'job'"),
        ("home", "yes", "Unseen level 'yes' of 'home': known levels are False, True."),
    ],
)
def test_wrong_dtype(explainer: Explainer, column: str, value: Any, says: str) -> None:
    assert says in refused(SchemaError, explainer, {**NOW, column: value})


def test_a_row_that_is_no_row(explainer: Explainer) -> None:
    assert "exactly one row, got 2" in refused(SchemaError, explainer, pd.DataFrame([NOW, NOW]))
    assert "7 are known" in refused(SchemaError, explainer, [1, 2, 3])
    assert "Expected a table" in refused(SchemaError, explainer, 42)


# -- the model --------------------------------------------------------------------------------------------------------
def test_unfitted_model() -> None:
    with pytest.raises(UnsupportedModel, match=r"This LogisticRegression is not fitted yet\. Call fit\(X, y\)"):
        Explainer(LogisticRegression(), questions.people())
    with pytest.raises(UnsupportedModel, match=r"must be a fitted estimator with a predict method"):
        Explainer(LogisticRegression, questions.people())
    with pytest.raises(UnsupportedModel, match=r"must be a fitted estimator with a predict method, got 'model.pkl'"):
        Explainer("model.pkl", questions.people())


def test_model_with_another_feature_count() -> None:
    X = questions.people()[["age", "income", "debts"]]
    y = questions.labels(questions.people())
    with pytest.raises(SchemaError, match=r"fitted on 3 columns, but X has 2.*or the whole Pipeline"):
        Explainer(LogisticRegression().fit(X.to_numpy(), y), X[["age", "income"]].to_numpy())
    with pytest.raises(SchemaError, match=r"(?s)same names.*- debts"):
        Explainer(LogisticRegression().fit(X, y), X[["age", "income"]])
    last = questions.pipeline(questions.people(), y)["model"]
    with pytest.raises(SchemaError, match=r"fitted on 7 columns, but X has 6.*whole Pipeline instead of its last step"):
        Explainer(last, questions.people().drop(columns="phone"))


@pytest.mark.parametrize(
    ("model", "nearest"),
    [
        (RadiusNeighborsClassifier(), "KNeighborsClassifier, KNeighborsRegressor or a random forest"),
        (GaussianNB(), "LogisticRegression or LinearDiscriminantAnalysis"),
        (GaussianProcessClassifier(), "GradientBoosting or a ReLU network"),
    ],
)
def test_unsupported_estimator(model: Any, nearest: str) -> None:
    X = questions.people()[["age", "income", "debts"]]
    model.fit(X, questions.labels(questions.people()))
    with pytest.raises(UnsupportedModel) as caught:
        Explainer(model, X)
    message = str(caught.value)
    assert f"{type(model).__name__} cannot be turned into an exact optimisation model" in message
    assert nearest in message
    assert 'surrogate="auto"' in message
    assert len(message) < 500
    assert message.count("\n") < 3


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (PolynomialFeatures(), "cannot be read exactly. The nearest thing that can be: a model that bends by itself"),
        (
            Normalizer(),
            "Normalizer cannot be read exactly. The nearest thing that can be: StandardScaler. ",
        ),
        (FunctionTransformer(np.sin), "FunctionTransformer with 'sin'"),
        (
            FunctionTransformer(np.log1p),
            "needs numeric inputs that are affine in the raw values, but column 'income'",
        ),
    ],
)
def test_unsupported_step_is_named(step: Any, says: str) -> None:
    from sklearn.pipeline import Pipeline

    X = questions.people()[["age", "income", "debts"]]
    y = questions.labels(questions.people())
    model = Pipeline([("step", step), ("last", LogisticRegression(max_iter=10_000))]).fit(X, y)
    with pytest.raises(UnsupportedModel) as caught:
        Explainer(model, X)
    assert says in str(caught.value)
    assert str(caught.value).startswith("Step '")


@pytest.mark.parametrize(
    ("model", "says", "near"),
    [
        (SVC(), "Step 'last': SVC with kernel='rbf'", "SVC(kernel='linear'), LinearSVC, or a gradient boosting model"),
        (SVR(), "Step 'last': SVR with kernel='rbf'", "SVR(kernel='linear'), LinearSVR, or a gradient boosting model"),
        (
            KNeighborsClassifier(weights="distance"),
            "Step 'last': KNeighborsClassifier with weights='distance'",
            "weights='uniform'",
        ),
        (GaussianProcessClassifier(), "Step 'last': GaussianProcessClassifier", "GradientBoosting or a ReLU network"),
        (
            MLPClassifier((2,), activation="tanh", max_iter=1),
            "Step 'last': MLPClassifier with activation='tanh'",
            "MLPClassifier(activation='relu')",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_refused_is_named_with_its_step_and_what_is_near(model: Any, says: str, near: str) -> None:
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    X = questions.people()[["age", "income", "debts"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = Pipeline([("scale", StandardScaler()), ("last", model)]).fit(X, X["debts"] % 2)
    with pytest.raises(UnsupportedModel) as caught:
        Explainer(fitted, X)
    assert str(caught.value).startswith(says)
    assert near in str(caught.value)


@pytest.mark.parametrize("model", [SVC(), SVC(kernel="linear"), SVR()], ids=["rbf", "three classes", "regression"])
def test_unsupported_kernels(model: Any) -> None:
    X = questions.people()[["age", "income", "debts"]]
    y = X["debts"] % 3
    with pytest.raises(UnsupportedModel, match=r"kernel='rbf' has no exact|3 classes decides by votes"):
        Explainer(model.fit(X, y), X)


def test_text_that_reaches_a_linear_model_unencoded() -> None:
    X = questions.people()[["age", "job"]]
    encode = ColumnTransformer([("all", FunctionTransformer(), ["age", "job"])])

    class Text(LogisticRegression):
        def fit(self, X: Any, y: Any) -> Text:
            return super().fit(np.asarray(X)[:, :1].astype(float), y)

    model = make_pipeline(encode, Text()).fit(X, questions.labels(questions.people()))
    with pytest.raises(UnsupportedModel, match=r"column 'job' \(from 'job'\) is a text category\. Use .*OneHotEncoder"):
        Explainer(model, X)


def test_numbers_that_are_encoded_level_by_level() -> None:
    X = questions.people()[["age", "debts"]]
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    model.fit(X, questions.labels(questions.people()))
    with pytest.raises(UnsupportedModel, match=r"Say so: Schema.infer\(X, categorical=\['age'\]\)"):
        Explainer(model, X)
    asked = Explainer(model, X, schema=Schema.infer(X, categorical=["age", "debts"]))
    assert asked.model.read.classes == ("bad", "good")


def test_a_level_that_the_encoder_never_saw() -> None:
    X = questions.people()[["age", "job"]]
    X["job"] = pd.Categorical(X["job"], categories=["none", "part", "full", "retired"])
    encode = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X, questions.labels(questions.people()))
    with pytest.raises(UnsupportedModel, match=r"refuses a level of 'job'.*remove_unused_categories"):
        Explainer(model, X, schema=Schema.infer(X))  # who says what the levels are is taken at their word
    assert Explainer(model, X).schema["job"].levels == ("none", "part", "full")


def test_a_level_that_a_further_model_never_saw() -> None:
    X = questions.people()[["age", "job"]]
    y = questions.labels(questions.people())
    encode = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
    first = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X, y)
    seen = X["job"] != X["job"].iloc[0]
    other = clone(first).fit(X[seen], np.asarray(y)[seen])
    explainer = Explainer(first, X, criteria=[Robustness(models=[other])])
    with pytest.raises(UnsupportedModel, match=r"OneHotEncoder refuses a level of 'job'.*handle_unknown='ignore'"):
        explainer.explain(X.iloc[[1]], want="good")


# -- the data ---------------------------------------------------------------------------------------------------------
def test_constant_feature() -> None:
    X = questions.people()[["age", "income", "debts"]].assign(year=2024)
    model = LogisticRegression(max_iter=5000).fit(X, questions.labels(questions.people()))
    row = {"age": 30, "income": 1.5, "debts": 4, "year": 2024}
    answer = Explainer(model, X).explain(row, want="good")
    assert answer.frame()["year"].tolist() == [2024]  # it cannot move, so it needs no scale
    wide = Explainer(model, X, schema=Schema.infer(X, bounds={"year": (2000, 2030)}))
    message = refused(CriterionError, wide, row)
    assert "'year' is constant in the training data, so a change of it has no scale" in message
    assert "Proximity(scale={'year': 1.0})" in message


@pytest.mark.parametrize("empty", [pd.DataFrame(), pd.DataFrame({"age": []}), np.empty((0, 3))])
def test_empty_frame(empty: Any) -> None:
    model = questions.explainer().model.estimator
    with pytest.raises(SchemaError, match=r"The training data is empty \(0 rows, \d columns\).*Pass the data"):
        Explainer(model, empty)
    with pytest.raises(SchemaError, match="The training data is empty"):
        Schema.infer(empty)


def test_labels_of_another_length() -> None:
    X = questions.people()
    with pytest.raises(CriterionError, match="y has 3 entries but X has 120 rows"):
        Explainer(questions.pipeline(X, questions.labels(X)), X, [1, 2, 3])


# -- the question -----------------------------------------------------------------------------------------------------
def test_class_not_known(explainer: Explainer) -> None:
    message = refused(CriterionError, explainer, NOW, want="godo")
    assert message == "The model does not know the class 'godo'; it knows 'bad', 'good'. Did you mean 'good'?"


@pytest.mark.parametrize("p", [0, 1, -0.5, 1.5, 70, float("nan")])
def test_probability_outside_its_interval(p: float) -> None:
    with pytest.raises(CriterionError, match=rf"strictly between 0 and 1, got {p}.*write 0\.7"):
        Target("good", probability=p)


def test_negative_weights() -> None:
    with pytest.raises(CriterionError, match=r"weight of 'age' must not be negative, got -2.*Actionability\(frozen"):
        Proximity(weights={"age": -2})
    with pytest.raises(CriterionError, match=r"'price' of Sparsity must not be negative, got -1"):
        Sparsity(price=-1)


def test_frozen_and_increase_on_the_same_feature() -> None:
    with pytest.raises(CriterionError, match=r"'age' is both frozen and to increase.*Take it out of one list\."):
        Actionability(frozen=["age"], increase=["age"])


def test_unknown_feature_in_a_criterion(explainer: Explainer) -> None:
    for criterion in (Actionability(frozen=["agee"]), Proximity(weights={"agee": 2.0})):
        message = refused(SchemaError, explainer, NOW, criteria=[criterion])
        assert "Unknown feature 'agee'. Did you mean 'age'? Known: age, income" in message


@pytest.mark.parametrize("thing", ["sparse", Sparsity, 3])
def test_something_that_is_no_criterion(explainer: Explainer, thing: Any) -> None:
    message = refused(CriterionError, explainer, NOW, criteria=[thing])
    assert "A criterion must be one of Proximity, Sparsity, Actionability" in message
    assert "criteria=[Sparsity(at_most=2)]" in message


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", True, None, float("nan")])
def test_n_is_no_count(explainer: Explainer, n: Any) -> None:
    says = f"'n' must be a whole number of at least 1, got {n!r}. Write e.g. n=3 for three answers."
    assert refused(CriterionError, explainer, NOW, n=n) == says
    with pytest.raises(CriterionError, match="'n' must be a whole number"):
        explainer.explain_all([NOW], want="good", n=n)


@pytest.mark.parametrize("limit", [-1, 0, 0.0, float("nan"), None, "30", True, [30]])
def test_time_limit_is_no_time(explainer: Explainer, limit: Any) -> None:
    says = (
        f"'time_limit' must be a positive number of seconds, got {limit!r}. Write e.g. time_limit=30, or float('inf')"
    )
    assert says in refused(CriterionError, explainer, NOW, time_limit=limit)
    with pytest.raises(CriterionError, match="'time_limit' must be a positive number of seconds"):
        explainer.explain_all([NOW], want="good", time_limit=limit)


@pytest.mark.parametrize("gap", [-0.1, float("nan"), "small", None, 1, 5, False])
def test_gap_is_no_share(explainer: Explainer, gap: Any) -> None:
    says = (
        f"'gap' must be a share of the cost, at least 0 and below 1, got {gap!r}. Write e.g. gap=0.05 to stop within 5%"
    )
    assert says in refused(CriterionError, explainer, NOW, gap=gap)
    with pytest.raises(CriterionError, match="'gap' must be a share of the cost"):
        explainer.explain_all([NOW], want="good", gap=gap)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two", True])
def test_n_jobs_is_no_number_of_workers(explainer: Explainer, n_jobs: Any) -> None:
    with pytest.raises(CriterionError) as caught:
        explainer.explain_all([NOW], want="good", n_jobs=n_jobs)
    says = f"'n_jobs' must be a whole number of workers other than 0, got {n_jobs!r}. Write e.g. n_jobs=2, or -1 for one per"
    assert says in str(caught.value)


def test_something_that_is_no_criterion_stops_a_batch_at_once(explainer: Explainer) -> None:
    with pytest.raises(CriterionError, match="A criterion must be one of Proximity"):
        explainer.explain_all([NOW], want="good", criteria=["sparse"])


def test_numbers_of_numpy_are_numbers(explainer: Explainer) -> None:
    plain = explainer.explain(NOW, want="good", n=2)
    options = {"n": np.int64(2), "time_limit": np.float32(30), "gap": np.float64(1e-6)}
    pd.testing.assert_frame_equal(explainer.explain(NOW, want="good", **options).frame(), plain.frame())
    batch = explainer.explain_all([NOW], want="good", n_jobs=np.int32(1), **options | {"time_limit": np.inf})
    assert batch.status().tolist() == ["optimal"]


@pytest.mark.frameworks
@pytest.mark.parametrize("solver", available_solvers())
def test_no_time_limit_is_no_slip(solver: str) -> None:
    X = questions.people()[["age", "income", "debts"]]
    model = LogisticRegression(max_iter=5000).fit(X, questions.labels(questions.people()))
    asked = Explainer(model, X, criteria=[Proximity("l2")], solver=solver)
    row = {"age": 30, "income": 1.5, "debts": 4}
    assert asked.explain(row, want="good", time_limit=float("inf"))[0].prediction == "good"


@pytest.mark.parametrize("ends", [24, "12", ("a", "b"), (1, 2, 3), (float("nan"), 3), None, {1, 2}])
def test_a_range_that_is_no_pair(ends: Any) -> None:
    with pytest.raises(CriterionError) as caught:
        Actionability(ranges={"duration": ends})
    says = f"The range of 'duration' must be a pair (low, high) of numbers, got {ends!r}. Write e.g. ranges={{'duration': (1"
    assert says in str(caught.value)


@pytest.mark.parametrize("step", ["two", None, -1, float("nan")])
def test_a_largest_step_that_is_none(step: Any) -> None:
    with pytest.raises(CriterionError, match="max_step of 'debts' must be a number and not negative"):
        Actionability(max_step={"debts": step})


def test_unknown_solver() -> None:
    X = questions.people()
    with pytest.raises(SolverMissing, match="Did you mean 'highs'"):
        Explainer(questions.pipeline(X, questions.labels(X)), X, solver="higs")


def test_nothing_is_lost(explainer: Explainer) -> None:
    """After all these refusals the explainer, the data and the row are what they were."""
    row, X = dict(NOW), explainer._frame.copy()
    for bad in ({**NOW, "job": "ful"}, {**NOW, "income": np.inf}, {"age": 3}):
        with pytest.raises(SchemaError):
            explainer.explain(bad, want="good")
    assert explainer.explain(row, want="good").status == "optimal"
    assert row == NOW
    pd.testing.assert_frame_equal(explainer._frame, X)


def test_a_forest_is_not_refused() -> None:
    X = questions.people()
    model = questions.pipeline(X, questions.labels(X), RandomForestClassifier(5, max_depth=3, random_state=0))
    assert Explainer(model, X, schema=questions.schema(X)).explain(NOW, want="good").status == "optimal"
