"""XGBoost: the same float32 as it computes, strict comparisons, base scores, category sets, missing directions."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ifonly.errors import UnsupportedModel
from ifonly.models.own_links import ValueLink
from ifonly.models.readers.xgboost import _LAST_SCORE_OF_HALF
from tree_cases import agree, labels, mixed, mixed_holes, mixed_labels, neighbours, opened, points, table

xgboost = pytest.importorskip("xgboost")
pytestmark = pytest.mark.frameworks

FRAME = mixed()
HOLES = mixed_holes(FRAME)
NUMBERS = table()
VALUE = np.exp(labels(FRAME, 9) / 3) + (FRAME["job"] == "none")
FEW = {"n_estimators": 15, "max_depth": 4, "n_jobs": 1}


def thresholds(booster, frame):
    model = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    found = {}
    for tree in (model["gbtree"]["model"] if "gbtree" in model else model["model"]).get("trees", []):
        for column, t, left, kind in zip(
            tree["split_indices"], tree["split_conditions"], tree["left_children"], tree["split_type"], strict=True
        ):
            if left >= 0 and kind == 0 and frame.dtypes.iloc[column].kind == "f":
                found.setdefault(column, []).append(np.float32(t))
    return {j: np.unique(t) for j, t in found.items()}


def check(estimator, frame, missing=0.1, exact=True):
    model = opened(estimator, frame)
    U = points(model.read.form.schema, frame, thresholds(estimator.get_booster(), frame), missing=missing)

    def raw(Z):
        return estimator.predict(Z, output_margin=True)

    if exact:
        own = np.asarray(raw(model.prepare(U)), dtype=np.float64).reshape(len(U), -1)
        assert (model.read.form(U) == own).all()
    agree(model, U, raw, tolerance=1e-5)
    return model, U


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sets", [4, 1], ids=["one by one", "sets"])
@pytest.mark.parametrize("frame", [FRAME, HOLES], ids=["complete", "holes"])
def test_classes(frame, sets, classes):
    estimator = xgboost.XGBClassifier(enable_categorical=True, max_cat_to_onehot=sets, **FEW)
    model, _ = check(estimator.fit(frame, mixed_labels(FRAME, classes)), frame)
    assert model.read.accepts_missing


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "binary:logitraw"},
        {"objective": "binary:hinge"},
        {"base_score": 0.3},
        {"num_parallel_tree": 3},
        {"missing": 3.0},
        {"missing": 0.5},
    ],
    ids=str,
)
def test_options(options):
    """A value declared missing goes the way of missing values, though its neighbours do not."""
    frame = NUMBERS.assign(share=NUMBERS["share"].where(NUMBERS["share"] < 0.7, 0.5))
    estimator = xgboost.XGBClassifier(**options, **FEW).fit(frame, labels(NUMBERS))
    model, U = check(estimator, frame)
    if "missing" in options:
        U[:, 2:4] = options["missing"]
        agree(model, U, lambda Z: estimator.predict(Z, output_margin=True), tolerance=1e-5)


def test_softmax_labels():
    estimator = xgboost.XGBClassifier(objective="multi:softmax", **FEW).fit(NUMBERS, labels(NUMBERS, 3))
    check(estimator, NUMBERS)


@pytest.mark.parametrize("classes", [2, 3])
def test_dropped_trees_weigh_less(classes):
    estimator = xgboost.XGBClassifier(booster="dart", rate_drop=0.3, **FEW)
    check(estimator.fit(NUMBERS, labels(NUMBERS, classes)), NUMBERS, exact=False)


@pytest.mark.parametrize("classes", [2, 3])
def test_random_forests(classes):
    estimator = xgboost.XGBRFClassifier(n_estimators=15, max_depth=4, n_jobs=1)
    check(estimator.fit(NUMBERS, labels(NUMBERS, classes)), NUMBERS)
    check(xgboost.XGBRFRegressor(n_estimators=15, max_depth=4, n_jobs=1).fit(NUMBERS, VALUE), NUMBERS)


def test_only_the_best_rounds():
    estimator = xgboost.XGBClassifier(n_estimators=100, early_stopping_rounds=2, max_depth=3, n_jobs=1)
    y = labels(NUMBERS)
    estimator.fit(NUMBERS[:300], y[:300], eval_set=[(NUMBERS[300:], y[300:])], verbose=False)
    assert estimator.best_iteration + 1 < estimator.get_booster().num_boosted_rounds()
    check(estimator, NUMBERS)


@pytest.mark.parametrize(
    "objective",
    [
        *("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:squaredlogerror"),
        *("count:poisson", "reg:gamma", "reg:tweedie", "reg:logistic"),
    ],
)
def test_values(objective):
    y = VALUE if objective != "reg:logistic" else VALUE / (VALUE.max() + 1)
    estimator = xgboost.XGBRegressor(objective=objective, enable_categorical=True, **FEW).fit(HOLES, y)
    model, U = check(estimator, HOLES)
    read, predicted = model.read, np.asarray(model.predict(U), dtype=float)
    assert np.allclose(read.decide(read.form(U)), predicted, rtol=1e-5)
    if isinstance(read.link, ValueLink):
        assert np.allclose([read.link.back(v) for v in predicted[:50]], read.form(U)[:50, 0], atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_linear_booster(classes):
    frame = NUMBERS.drop(columns="rate")
    estimator = xgboost.XGBClassifier(booster="gblinear", n_estimators=5).fit(frame, labels(NUMBERS, classes))
    model, _ = check(estimator, frame, missing=0.0, exact=False)
    assert not model.read.accepts_missing
    estimator = xgboost.XGBRegressor(booster="gblinear", n_estimators=5).fit(frame, VALUE)
    check(estimator, frame, missing=0.0, exact=False)


def test_strict_float32_cut():
    """``float32(x) < threshold``: the threshold itself goes right, and the cut is the last float64 that does not."""
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(1e3, 1, 300)})
    stump = xgboost.XGBClassifier(n_estimators=1, max_depth=1).fit(frame, (frame["x"] > 1000.1).astype(int))
    ((threshold,),) = thresholds(stump.get_booster(), frame).values()
    model = opened(stump, frame)
    (cut,) = model.read.form.cuts()[0]
    assert np.float32(cut) < threshold <= np.float32(np.nextafter(cut, np.inf))
    x = neighbours(np.array([threshold, cut]))
    own = stump.predict(pd.DataFrame({"x": x}), output_margin=True)
    assert (model.read.form(x[:, None])[:, 0] == own).all()
    assert len(set(own)) == 2


def test_the_score_at_which_a_probability_passes_one_half():
    booster = xgboost.train({"base_score": 0.5, "objective": "binary:logistic"}, xgboost.DMatrix([[0.0]], [1]), 0)
    last = np.float32(_LAST_SCORE_OF_HALF)
    for score, above in ((last, False), (np.nextafter(last, np.float32(1)), True), (np.float32(0), False)):
        data = xgboost.DMatrix([[0.0]], base_margin=[score])
        assert (booster.predict(data)[0] > 0.5) == above


def test_tie_goes_to_the_first_class():
    frame = pd.DataFrame({"x": np.repeat([0.0, 1.0, 2.0], 40)})
    y = np.concatenate([np.tile([0, 1], 20), np.zeros(40, int), np.ones(40, int)])
    estimator = xgboost.XGBClassifier(n_estimators=1, max_depth=2, base_score=0.5).fit(frame, y)
    model = opened(estimator, frame)
    U = np.array([[0.0], [1.0], [2.0]])
    assert model.read.form(U)[0, 0] == 0.0
    assert list(model.read.decide(model.read.form(U))) == list(model.predict(U)) == [0, 0, 1]


def test_float32_columns_and_arrays():
    y = labels(NUMBERS)
    single = NUMBERS.astype(np.float32)
    check(xgboost.XGBClassifier(**FEW).fit(single, y), single)
    array = NUMBERS.to_numpy()
    estimator = xgboost.XGBClassifier(**FEW).fit(array, y)
    model = opened(estimator, array)
    U = points(model.read.form.schema, NUMBERS.set_axis([f"x{i}" for i in range(5)], axis=1), {}, missing=0.1)
    agree(model, U, lambda Z: estimator.predict(Z, output_margin=True), tolerance=1e-5)


@pytest.mark.parametrize("sparse", [1.0, 0.0], ids=["sparse", "dense"])
def test_behind_encoders(sparse):
    """In a sparse matrix a zero is missing, be it of a one-hot column or of a number."""
    columns = ColumnTransformer(
        [("one", OneHotEncoder(handle_unknown="ignore"), ["job", "code"])],
        remainder="passthrough",
        sparse_threshold=sparse,
    )
    frame = FRAME.assign(debt=FRAME["debt"].where(FRAME["debt"] > 0, 0.0))
    estimator = make_pipeline(columns, xgboost.XGBClassifier(**FEW)).fit(frame, mixed_labels(FRAME))
    assert hasattr(columns.transform(frame), "tocsr") == bool(sparse)
    model = opened(estimator, frame)
    # A stored number that is zero in float32 only, below 1e-45, is the one thing that is read as not stored.
    found = {j: c[np.abs(c) > 1e-40] for j, c in model.read.form.cuts().items()}
    U = points(model.read.form.schema, frame, {j: c for j, c in found.items() if frame.dtypes.iloc[j].kind == "f"})
    last = estimator[-1]
    agree(model, U, lambda Z: last.predict(columns.transform(Z), output_margin=True), tolerance=1e-5)


def test_refused_by_name():
    two = np.column_stack([VALUE, VALUE + 1])
    several = xgboost.XGBRegressor(multi_strategy="multi_output_tree", **FEW).fit(NUMBERS, two)
    with pytest.raises(UnsupportedModel, match="one_output_per_tree"):
        opened(several, NUMBERS)
    with pytest.raises(UnsupportedModel, match="predicts 2 outputs at once"):
        opened(xgboost.XGBRegressor(**FEW).fit(NUMBERS, two), NUMBERS)
    odd = xgboost.XGBClassifier(objective="multi:softprob", num_class=2, **FEW).fit(NUMBERS, labels(NUMBERS))
    with pytest.raises(UnsupportedModel, match="'multi:softprob' with 2 scores for 2 classes"):
        opened(odd, NUMBERS)


def test_an_objective_of_ones_own():
    own = xgboost.XGBRegressor(objective=lambda y, p: (p - y, np.ones_like(y)), **FEW).fit(NUMBERS, VALUE)
    check(own, NUMBERS)
