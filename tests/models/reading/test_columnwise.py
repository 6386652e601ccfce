"""Transformers of the user's own: what they declare is enough to read them, or is refused with the reason."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ifonly import Explainer, UnsupportedModel
from ifonly.data.schema import Schema
from ifonly.testing import check_reader
from portions import one_in
from reading import mixed_frame, outcome

FRAME = mixed_frame(240).assign(income=lambda f: f["income"] / 1000.0)
YES = (outcome(FRAME) > 0).astype(int)
MODELS = [LogisticRegression(max_iter=2000), RandomForestClassifier(3, max_depth=4, random_state=0)]


class Mine(TransformerMixin, BaseEstimator):
    """A function per column, with the declaration as an attribute of the object."""

    column_wise: object = True

    def __init__(self, functions=None):
        self.functions = functions

    def fit(self, X, y=None):
        self.feature_names_in_ = np.array(X.columns)
        return self

    def transform(self, X):
        return pd.DataFrame({name: f(X[name]) for name, f in (self.functions or {}).items()}, index=X.index)

    def __sklearn_is_fitted__(self):
        return True


def declared(column_wise, **functions):
    made = Mine(functions)
    made.column_wise = column_wise
    return made


def fitted(transformer, last, frame):
    """Fit step by step: cloning a transformer would lose an attribute that is not a parameter."""
    transformer.fit(frame)
    last = last.fit(transformer.transform(frame), YES)
    return make_pipeline(transformer, last)


def up_and_down(x):
    return (x % 7 < 3) + 0.5 * (x > 50)


def length(x):
    return x.map({"none": 0.0, "part": 4.5, "full": 8.0}).astype(float)


@pytest.mark.parametrize("last", one_in(2, MODELS), ids=repr)
def test_categories_and_whole_numbers_need_no_more_than_true(last):
    frame = FRAME[["age", "job"]]
    check_reader(fitted(declared(True, age=up_and_down, job=length), last, frame), frame, points=2000)


@pytest.mark.parametrize("last", one_in(2, MODELS), ids=repr)
def test_decimals_are_a_grid(last):
    frame = FRAME[["debt"]].round(2)
    schema = Schema.infer(frame, precision={"debt": 2})
    model = fitted(declared(True, debt=lambda x: np.sin(9 * x).round(1)), last, frame)
    check_reader(model, frame, schema=schema, points=2000)


@pytest.mark.parametrize("last", one_in(2, MODELS), ids=repr)
def test_a_monotone_function_that_takes_few_values_is_read_as_steps(last):
    frame = FRAME[["income", "debt"]]
    floors = declared("monotone", income=np.floor, debt=lambda x: -np.round(3 * x))
    check_reader(fitted(floors, last, frame), frame, points=2000)


def test_a_monotone_function_is_for_trees_and_said_to_be_bent_for_the_others():
    frame = FRAME[["income", "debt"]]
    bent = declared("monotone", income=np.log1p, debt=np.arctan)
    check_reader(fitted(bent, MODELS[1], frame), frame, points=2000)
    with pytest.raises(UnsupportedModel, match=r"'income'.*bent by Mine"):
        Explainer(fitted(bent, MODELS[0], frame), frame)


@pytest.mark.parametrize("last", MODELS, ids=repr)
def test_a_straight_line(last):
    frame = FRAME[["income", "debt"]]
    check_reader(
        fitted(declared("affine", income=lambda x: x / 12, debt=lambda x: 1 - x), last, frame), frame, points=2000
    )


@pytest.mark.parametrize("last", one_in(2, MODELS), ids=repr)
def test_steps_by_their_jumps_and_columns_of_several_kinds(last):
    def sides(x):
        return np.where(x < 1.5, 2.0, np.where(x <= 3.0, -1.0, 0.5))

    columns = {"income": [1.5, 3.0], "debt": "affine"}
    model = fitted(declared(columns, income=sides, debt=lambda x: 2 * x, age=up_and_down), last, FRAME)
    check_reader(model, FRAME, points=2000)


def test_a_function_says_so_itself_and_behind_a_scaler():
    def clipped(X):
        return np.clip(X, -1.0, 1.0)

    clipped.column_wise = "monotone"
    numbers = FRAME[["income", "debt"]]
    model = make_pipeline(StandardScaler(), FunctionTransformer(clipped), MODELS[1]).fit(numbers, YES)
    check_reader(model, numbers, points=2000)
    parts = make_column_transformer((FunctionTransformer(clipped), ["debt"]), remainder="passthrough")
    check_reader(make_pipeline(parts, MODELS[1]).fit(numbers, YES), numbers, points=2000)


def test_a_shape_that_holds_within_the_bounds_only_is_not_taken_for_more():
    """The square is a rising function of ages, and a falling one far below them."""
    frame = FRAME[["age"]]
    check_reader(fitted(declared(True, age=lambda x: (x - 10.0) ** 2), MODELS[1], frame), frame, points=2000)
    check_reader(fitted(declared(True, age=lambda x: (x - 10.0).abs()), MODELS[0], frame), frame, points=2000)


@pytest.mark.parametrize(
    ("column_wise", "functions", "said"),
    [
        (True, {"debt": np.sin}, r"'debt' is continuous.*column_wise='monotone'"),
        ("monotone", {"debt": lambda x: np.sin(9 * x)}, r"turns near 'debt'"),
        ("affine", {"debt": np.exp}, r"no straight line of 'debt'"),
        ({"debt": [0.1]}, {"debt": np.floor}, r"not constant between"),
        ({"debt": "monotone"}, {"debt": lambda x: np.log(x + 1e-9)}, r"no finite number for 'debt'"),
    ],
    ids=["continuous", "turns", "bends", "jumps", "undefined"],
)
def test_what_is_declared_and_does_not_hold_is_refused(column_wise, functions, said):
    frame = FRAME[["debt"]]
    transformer = declared(column_wise, **functions).fit(frame)
    last = MODELS[1].fit(np.arange(4.0)[:, None], [0, 1, 0, 1])
    with pytest.raises(UnsupportedModel, match=said):
        Explainer(make_pipeline(transformer, last), frame)


def test_two_columns_in_one_are_refused():
    class Ratio(Mine):
        column_wise = "monotone"

        def transform(self, X):
            return (X["income"] / (1 + X["age"])).to_frame("ratio")

    frame = FRAME[["income", "age"]]
    model = fitted(Ratio(), MODELS[1], frame)
    with pytest.raises(UnsupportedModel, match=r"'ratio' depends on 'income', 'age' together"):
        Explainer(model, frame)


def test_an_undeclared_transformer_is_told_of_the_declaration():
    with pytest.raises(UnsupportedModel, match=r"column_wise = True"):
        Explainer(fitted(declared(None, age=up_and_down), MODELS[1], FRAME[["age"]]), FRAME[["age"]])


class ByName(TransformerMixin, BaseEstimator):
    """A step of people's own that keeps neither the names nor the number of its columns, and takes a frame."""

    column_wise = True

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.column_stack([X["age"] // 10, X["job"].map({"a": 1.0, "b": 2.0, "c": 0.0})]).astype(float)


def test_a_step_that_takes_frames_and_does_not_say_so():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(18, 70, 200), "job": rng.choice(["a", "b", "c"], 200)})
    model = make_pipeline(ByName(), LogisticRegression()).fit(X, X["age"] + 10 * (X["job"] == "a") > 45)
    row = X[~model.predict(X)].iloc[[0]]
    answer = Explainer(model, X).explain(row, want=True)
    assert answer.status == "optimal"
    assert model.predict(answer.frame())[0]
