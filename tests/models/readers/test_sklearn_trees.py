"""scikit-learn's trees, forests and boosting: the same float as they compute, on thresholds and beside them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PowerTransformer, StandardScaler
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from ifonly.errors import SchemaError, UnsupportedModel
from portions import diagonals, one_in
from tree_cases import agree, labels, mixed, mixed_labels, neighbours, opened, points, table, with_holes

FRAME = table()
HOLES = with_holes(FRAME)
VALUE = np.log(FRAME["income"]) + FRAME["debt"]


def thresholds(estimator):
    members = getattr(estimator, "estimators_", [estimator])
    trees = [m.tree_ for m in np.ravel(members)]
    return {j: np.unique([t for k in trees for t in k.threshold[k.feature == j]]) for j in range(FRAME.shape[1])}


def check(estimator, frame, raw, missing=0.0):
    model = opened(estimator, frame)
    U = points(model.read.form.schema, frame, thresholds(estimator), missing=missing)
    agree(model, U, raw)
    return model


@pytest.mark.parametrize(("holes", "classes"), diagonals(2, [False, True], [2, 3]))
@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(random_state=0),
        ExtraTreeClassifier(random_state=0),
        RandomForestClassifier(20, random_state=0),
        ExtraTreesClassifier(20, max_depth=5, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_shares(estimator, holes, classes):
    frame = HOLES if holes else FRAME
    estimator.fit(frame, labels(FRAME, classes))
    # A tree says where a missing value goes even when it has seen none.
    model = check(estimator, frame, estimator.predict_proba, missing=0.1)
    assert model.read.accepts_missing


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeRegressor(max_depth=6),
        ExtraTreeRegressor(random_state=0),
        RandomForestRegressor(20, max_depth=6, random_state=0),
        ExtraTreesRegressor(20, max_depth=6, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_values(estimator, holes):
    estimator.fit(HOLES if holes else FRAME, VALUE)
    check(estimator, HOLES if holes else FRAME, estimator.predict, missing=0.1)


@pytest.mark.parametrize(
    ("options", "classes"),
    [({}, 2), ({}, 3), ({"loss": "exponential"}, 2), ({"init": "zero"}, 2), ({"init": DummyClassifier()}, 3)],
)
def test_boosting(options, classes):
    estimator = GradientBoostingClassifier(n_estimators=20, random_state=0, **options)
    estimator.fit(FRAME, labels(FRAME, classes))
    model = check(estimator, FRAME, estimator.decision_function)
    assert not model.read.accepts_missing


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
def test_boosted_values(loss):
    estimator = GradientBoostingRegressor(n_estimators=20, loss=loss, random_state=0).fit(FRAME, VALUE)
    check(estimator, FRAME, estimator.predict)


def test_float32_cut():
    """``float32(x) <= threshold``: the cut is the last float64 whose float32 is not above the threshold."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(1e3, 1, 200)})
    stump = DecisionTreeClassifier(max_depth=1).fit(frame, frame["x"] > 1000.123456789)
    threshold = stump.tree_.threshold[0]
    (cut,) = opened(stump, frame).read.form.cuts()[0]
    assert np.float64(np.float32(cut)) <= threshold < np.float64(np.float32(np.nextafter(cut, np.inf)))
    assert cut != threshold
    x = neighbours(np.array([threshold, cut]))
    model = opened(stump, frame)
    said = model.read.decide(model.read.form(x[:, None]))
    assert (said == stump.predict(pd.DataFrame({"x": x}))).all()
    assert len(set(said)) == 2


def test_tie_of_a_forest_goes_to_the_first_class():
    """Ten trees against ten is a tie exactly; the average of shares must not decide it by its dust."""
    frame, y = table(40), np.array([0, 1] * 20)
    forest = RandomForestClassifier(20, max_depth=3, random_state=0).fit(frame, y)
    model = opened(forest, frame)
    U = points(model.read.form.schema, frame, thresholds(forest))
    scores = model.read.form(U)
    assert (scores == forest.predict_proba(model.prepare(U))).all()
    full = RandomForestClassifier(20, random_state=0).fit(frame, y)
    model = opened(full, frame)
    scores = model.read.form(U)
    tied = scores[:, 0] == scores[:, 1]
    assert tied.sum() > 20
    assert (model.predict(U)[tied] == 0).all()
    assert (model.read.decide(scores) == model.predict(U)).all()


def test_tie_of_boosting_goes_to_the_second_class():
    frame = pd.DataFrame({"x": [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]})
    boosting = GradientBoostingClassifier(n_estimators=3, init="zero", max_depth=2)
    boosting.fit(frame, ["a", "b", "a", "a", "b", "b"])
    model = opened(boosting, frame)
    U = np.array([[0.0], [1.0], [2.0]])
    assert model.read.form(U)[0, 0] == boosting.decision_function(model.prepare(U))[0] == 0.0
    assert [model.read.classes[k] for k in model.read.decide(model.read.form(U))] == ["b", "a", "b"]
    assert list(model.predict(U)) == ["b", "a", "b"]


@pytest.mark.parametrize("scaler", one_in(2, [StandardScaler(), PowerTransformer()]))
def test_behind_a_scaler(scaler):
    estimator = make_pipeline(scaler, RandomForestClassifier(10, max_depth=5, random_state=0))
    estimator.fit(FRAME, labels(FRAME))
    model = opened(estimator, FRAME)
    U = points(model.read.form.schema, FRAME, model.read.form.cuts())
    agree(model, U, estimator.predict_proba)


def test_behind_encoders():
    frame = mixed().astype({"job": str})
    columns = ColumnTransformer(
        [("one", OneHotEncoder(), ["job"]), ("code", OrdinalEncoder(), ["code"])], remainder="passthrough"
    )
    estimator = make_pipeline(columns, GradientBoostingClassifier(n_estimators=20, random_state=0))
    estimator.fit(frame, mixed_labels(frame))
    model = opened(estimator, frame)
    cuts = {j: c for j, c in model.read.form.cuts().items() if frame.dtypes.iloc[j].kind == "f"}
    agree(model, points(model.read.form.schema, frame, cuts), estimator.decision_function)


@pytest.mark.parametrize(
    "last", [RandomForestClassifier(10, random_state=0), GradientBoostingClassifier(n_estimators=9)]
)
def test_an_imputer_fills_in_before_the_trees(last):
    """A missing value goes where the value that was filled in goes, not where the tree sends missing ones."""
    estimator = make_pipeline(SimpleImputer(strategy="median"), last).fit(HOLES, labels(FRAME))
    model = opened(estimator, HOLES)
    assert model.read.accepts_missing
    U = points(model.read.form.schema, HOLES, model.read.form.cuts(), missing=0.2)
    raw = estimator.decision_function if hasattr(last, "decision_function") else estimator.predict_proba
    agree(model, U, raw)


def test_encoders_with_missing_categories():
    frame = mixed().astype({"job": object})
    frame.loc[::7, "job"] = None
    frame.loc[::5, "debt"] = np.nan
    columns = ColumnTransformer(
        [("one", OneHotEncoder(), ["job"]), ("code", OrdinalEncoder(), ["code"])], remainder="passthrough"
    )
    estimator = make_pipeline(columns, RandomForestClassifier(10, max_depth=6, random_state=0))
    estimator.fit(frame, mixed_labels(frame))
    model = opened(estimator, frame)
    assert model.read.accepts_missing
    schema = model.read.form.schema
    U = points(schema, frame, {})
    U[::3, schema.slice(schema.index("job"))] = 0.0
    U[::4, schema.starts[schema.index("income")]] = np.nan
    agree(model, U, estimator.predict_proba)


def test_a_missing_indicator_is_not_read_as_if_nothing_were_missing():
    """It is read exactly, or refused; never as an indicator that stays 0."""
    steps = SimpleImputer(add_indicator=True), GradientBoostingClassifier(n_estimators=5)
    estimator = make_pipeline(*steps).fit(HOLES, labels(FRAME))
    try:
        model = opened(estimator, HOLES)
    except SchemaError:
        return
    agree(model, points(model.read.form.schema, HOLES, {}, missing=0.2), estimator.decision_function)


def test_refused_by_name():
    two = np.column_stack([labels(FRAME), labels(FRAME, 3)])
    with pytest.raises(UnsupportedModel, match="RandomForestClassifier predicts 2 outputs"):
        opened(RandomForestClassifier(3).fit(FRAME, two), FRAME)
    started = GradientBoostingClassifier(n_estimators=2, init=LogisticRegression(max_iter=5000))
    with pytest.raises(UnsupportedModel, match="starts from a LogisticRegression, which depends on the input"):
        opened(
            started.fit(StandardScaler().set_output(transform="pandas").fit_transform(FRAME), labels(FRAME)),
            FRAME,
        )
    drawn = GradientBoostingClassifier(n_estimators=2, init=DummyClassifier(strategy="stratified"))
    with pytest.raises(UnsupportedModel, match="draws at random"):
        opened(drawn.fit(FRAME, labels(FRAME)), FRAME)
