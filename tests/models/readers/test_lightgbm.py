"""LightGBM: the same float64 as it computes, category sets, and its three kinds of missing value."""

import warnings

import numpy as np
import pandas as pd
import pytest

from ifonly.data.schema import Schema
from ifonly.errors import UnsupportedModel
from ifonly.models.own_links import ValueLink
from tree_cases import agree, labels, mixed, mixed_holes, mixed_labels, neighbours, opened, points, table

lightgbm = pytest.importorskip("lightgbm")
pytestmark = pytest.mark.frameworks

FRAME = mixed()
HOLES = mixed_holes(FRAME)
NUMBERS = table()
VALUE = np.exp(labels(FRAME, 9) / 3) + (FRAME["job"] == "none")
FEW = {"n_estimators": 15, "max_depth": 4, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}


def thresholds(booster, frame):
    found = {}

    def walk(node):
        if "leaf_value" in node:
            return
        if node["decision_type"] == "<=" and frame.dtypes.iloc[node["split_feature"]].kind == "f":
            found.setdefault(node["split_feature"], []).append(node["threshold"])
        walk(node["left_child"])
        walk(node["right_child"])

    for tree in booster.dump_model()["tree_info"]:
        walk(tree["tree_structure"])
    return {j: np.unique(t) for j, t in found.items()}


def check(estimator, frame, missing=0.1, over=1.0, schema=None):
    model = opened(estimator, frame, schema)
    assert model.read.accepts_missing
    U = points(model.read.form.schema, frame, thresholds(estimator.booster_, frame), missing=missing)
    own = np.asarray(estimator.predict(model.prepare(U), raw_score=True)).reshape(len(U), -1) / over
    assert (model.read.form(U) == own).all()
    agree(model, U, lambda Z: estimator.predict(Z, raw_score=True) / over)
    return model, U


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"zero_as_missing": True}, {"use_missing": False}, {"max_cat_to_onehot": 1, "min_data_per_group": 5}],
    ids=str,
)
@pytest.mark.parametrize("frame", [FRAME, HOLES], ids=["complete", "holes"])
def test_classes(frame, options, classes):
    check(lightgbm.LGBMClassifier(**options, **FEW).fit(frame, mixed_labels(FRAME, classes)), frame)


@pytest.mark.parametrize("options", [{}, {"zero_as_missing": True}, {"use_missing": False}], ids=str)
def test_zero(options):
    """Zeros, what counts as zero, and the first floats that do not."""
    rng = np.random.default_rng(2)
    frame = NUMBERS.assign(income=NUMBERS["income"] - 3000)
    frame["debt"] = frame["debt"].where(rng.uniform(size=400) > 0.3, 0.0)
    estimator = lightgbm.LGBMClassifier(**options, **FEW).fit(frame, labels(NUMBERS))
    model, U = check(estimator, frame)
    edge = float(np.float32(1e-35))
    near = [0.0, -0.0, edge, -edge, *(np.nextafter(v, side) for v in (edge, -edge) for side in (-1.0, 1.0)), 1e-300]
    U[:, 0], U[:, 1] = rng.choice(near, len(U)), rng.choice(near, len(U))
    agree(model, U, lambda Z: estimator.predict(Z, raw_score=True))


@pytest.mark.parametrize(
    ("options", "classes", "rounds"),
    [
        ({"sigmoid": 0.5}, 2, 1),
        ({"objective": "cross_entropy"}, 2, 1),
        ({"objective": "multiclassova"}, 3, 1),
        ({"objective": "multiclassova", "sigmoid": 0.7}, 3, 1),
        ({"boosting_type": "dart", "drop_rate": 0.5}, 2, 1),
        ({"boosting_type": "rf", "subsample": 0.7, "subsample_freq": 1}, 2, 15),
        ({"boosting_type": "rf", "subsample": 0.7, "subsample_freq": 1}, 3, 15),
    ],
    ids=str,
)
def test_options(options, classes, rounds):
    estimator = lightgbm.LGBMClassifier(**options, **FEW).fit(NUMBERS, labels(NUMBERS, classes))
    check(estimator, NUMBERS, over=rounds)


def test_only_the_best_rounds():
    estimator = lightgbm.LGBMClassifier(n_estimators=100, max_depth=3, verbose=-1, n_jobs=1)
    y, stop = labels(NUMBERS), lightgbm.early_stopping(2, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how the validation data is named depends on the version
        estimator.fit(NUMBERS[:300], y[:300], eval_set=[(NUMBERS[300:], y[300:])], callbacks=[stop])
    assert estimator.best_iteration_ < 100
    check(estimator, NUMBERS)


@pytest.mark.parametrize(
    "options",
    [
        *({"objective": o} for o in ("regression", "regression_l1", "huber", "fair", "quantile", "mape")),
        *({"objective": o} for o in ("poisson", "gamma", "tweedie", "cross_entropy", "cross_entropy_lambda")),
        {"reg_sqrt": True},
    ],
    ids=str,
)
def test_values(options):
    y = VALUE / (VALUE.max() + 1) if str(options.get("objective")).startswith("cross") else VALUE
    y = y - 3 if "reg_sqrt" in options else y
    model, U = check(lightgbm.LGBMRegressor(**options, **FEW).fit(HOLES, y), HOLES)
    read, predicted = model.read, np.asarray(model.predict(U), dtype=float)
    assert np.allclose(read.decide(read.form(U)), predicted, rtol=1e-12)
    if isinstance(read.link, ValueLink):
        assert np.allclose([read.link.back(v) for v in predicted[:50]], read.form(U)[:50, 0], rtol=1e-9)


def test_float64_cut():
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(1e3, 1, 300)})
    stump = lightgbm.LGBMClassifier(n_estimators=1, num_leaves=2, verbose=-1).fit(frame, frame["x"] > 1000.1)
    ((threshold,),) = thresholds(stump.booster_, frame).values()
    model = opened(stump, frame)
    assert list(model.read.form.cuts()[0]) == [threshold]
    x = neighbours(np.array([threshold]))
    own = stump.predict(pd.DataFrame({"x": x}), raw_score=True)
    assert (model.read.form(x[:, None])[:, 0] == own).all()
    assert len(set(own)) == 2


def test_tie_goes_to_the_first_class():
    frame = pd.DataFrame({"x": np.repeat([0.0, 1.0], 40)})
    estimator = lightgbm.LGBMClassifier(n_estimators=1, verbose=-1).fit(frame, ["a", "b"] * 40)
    model = opened(estimator, frame)
    assert model.read.form(np.zeros((1, 1)))[0, 0] == 0.0
    assert model.read.classes[model.read.decide(np.zeros((1, 1)))[0]] == model.predict(np.zeros((1, 1)))[0] == "a"


def test_categories_given_as_numbers():
    frame = NUMBERS.assign(k=np.random.default_rng(0).integers(0, 6, 400))
    estimator = lightgbm.LGBMClassifier(**FEW)
    estimator.fit(frame, labels(frame) ^ (frame["k"] == 5), categorical_feature=["k"])
    check(estimator, frame, schema=Schema.infer(frame, categorical=["k"]))


def test_float32_columns_and_arrays():
    y, single = labels(NUMBERS), NUMBERS.astype(np.float32)
    check(lightgbm.LGBMClassifier(**FEW).fit(single, y), single)
    array = NUMBERS.to_numpy()
    estimator = lightgbm.LGBMClassifier(**FEW).fit(array, y)
    model = opened(estimator, array)
    U = points(model.read.form.schema, NUMBERS.set_axis([f"x{i}" for i in range(5)], axis=1), {}, missing=0.1)
    agree(model, U, lambda Z: estimator.predict(Z, raw_score=True))


def test_refused_by_name():
    linear = lightgbm.LGBMRegressor(linear_tree=True, **FEW).fit(NUMBERS, VALUE)
    with pytest.raises(UnsupportedModel, match="linear_tree=True has a linear model in each leaf"):
        opened(linear, NUMBERS)
    own = lightgbm.LGBMClassifier(objective=lambda y, p: (p - y, np.ones_like(y)), **FEW)
    with pytest.raises(UnsupportedModel, match="'custom' with 1 scores for 2 classes"):
        opened(own.fit(NUMBERS, labels(NUMBERS)), NUMBERS)
    estimator = lightgbm.LGBMClassifier(**FEW).fit(FRAME, mixed_labels(FRAME))
    with pytest.raises(UnsupportedModel, match="trained with 2 category columns, but the data has 1"):
        opened(estimator, FRAME.astype({"code": int}))
