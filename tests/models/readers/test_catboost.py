"""CatBoost: symmetric and free trees, float32 borders, one-hot categories by their hashes."""

import numpy as np
import pandas as pd
import pytest

from ifonly.errors import UnsupportedModel
from ifonly.models.own_links import ValueLink
from tree_cases import agree, labels, mixed, mixed_labels, neighbours, opened, points, table, with_holes

catboost = pytest.importorskip("catboost")
pytestmark = pytest.mark.frameworks

NUMBERS = table()
HOLES = with_holes(NUMBERS)
FRAME = mixed().astype({"job": object})
VALUE = np.exp(labels(FRAME, 9) / 3) + (FRAME["job"] == "none")
FEW = {"iterations": 15, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
CATEGORIES = {"one_hot_max_size": 50, "cat_features": ["job", "code", "flag"]}
SHAPES = ["SymmetricTree", "Depthwise", "Lossguide"]


def raw(estimator):
    return lambda Z: estimator.predict(Z, prediction_type="RawFormulaVal")


def check(estimator, frame, missing=()):
    model = opened(estimator, frame)
    schema = model.read.form.schema
    cuts = {j: c for j, c in model.read.form.cuts().items() if frame.dtypes.iloc[j].kind == "f"}
    U, rng = points(schema, frame, cuts), np.random.default_rng(4)
    for name in missing:
        U[rng.uniform(size=len(U)) < 0.2, schema.starts[schema.index(name)]] = np.nan
    agree(model, U, raw(estimator))
    return model, U


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_classes(shape, classes):
    names = np.array(["low", "mid", "top"])[mixed_labels(FRAME, classes)]
    estimator = catboost.CatBoostClassifier(grow_policy=shape, **FEW, **CATEGORIES).fit(FRAME, names)
    model, _ = check(estimator, FRAME, missing=["income", "rate"])
    assert model.read.accepts_missing


@pytest.mark.parametrize("mode", ["Min", "Max"])
@pytest.mark.parametrize("shape", SHAPES[:2])
def test_missing_numbers(shape, mode):
    estimator = catboost.CatBoostClassifier(grow_policy=shape, nan_mode=mode, **FEW).fit(HOLES, labels(NUMBERS))
    check(estimator, HOLES, missing=list(HOLES.columns))


@pytest.mark.parametrize("loss", ["MultiClassOneVsAll", "MultiClass", "CrossEntropy", "Logloss"])
def test_losses(loss):
    y = labels(NUMBERS, 3 if loss.startswith("Multi") else 2)
    check(catboost.CatBoostClassifier(loss_function=loss, **FEW).fit(NUMBERS, y), NUMBERS)


@pytest.mark.parametrize(
    "loss", ["RMSE", "MAE", "Quantile", "Huber:delta=1", "LogCosh", "MAPE", "Poisson", "Tweedie:variance_power=1.5"]
)
def test_values(loss):
    estimator = catboost.CatBoostRegressor(loss_function=loss, **FEW, **CATEGORIES).fit(FRAME, VALUE)
    model, U = check(estimator, FRAME)
    read, predicted = model.read, np.asarray(model.predict(U), dtype=float)
    assert np.allclose(read.decide(read.form(U)), predicted, rtol=1e-9)
    if isinstance(read.link, ValueLink):
        assert np.allclose([read.link.back(v) for v in predicted[:50]], read.form(U)[:50, 0], rtol=1e-9)


def test_threshold_scale_and_bias():
    estimator = catboost.CatBoostClassifier(**FEW).fit(NUMBERS, labels(NUMBERS))
    estimator.set_probability_threshold(0.3)
    check(estimator, NUMBERS)
    estimator.set_scale_and_bias(2.0, 0.1)
    check(estimator, NUMBERS)


def test_float32_border():
    """``float32(x) > border`` goes right: the border itself does not."""
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(1e3, 1, 300)})
    stump = catboost.CatBoostRegressor(iterations=1, depth=1, verbose=0, allow_writing_files=False)
    stump.fit(frame, frame["x"] > 1000.1)
    model = opened(stump, frame)
    (cut,) = model.read.form.cuts()[0]
    border = np.float32(cut)
    assert np.float32(np.nextafter(cut, np.inf)) == np.nextafter(border, np.float32(np.inf))
    x = neighbours(np.array([cut, border]))
    own = stump.predict(pd.DataFrame({"x": x}))
    assert np.abs(model.read.form(x[:, None])[:, 0] - own).max() < 1e-12
    assert len(set(own)) == 2


def test_arrays():
    array = NUMBERS.to_numpy()
    estimator = catboost.CatBoostClassifier(**FEW).fit(array, labels(NUMBERS))
    model = opened(estimator, array)
    U = points(model.read.form.schema, NUMBERS.set_axis([f"x{i}" for i in range(5)], axis=1), {}, missing=0.1)
    agree(model, U, raw(estimator))


def test_refused_by_name():
    several = catboost.CatBoostRegressor(loss_function="MultiRMSE", **FEW)
    with pytest.raises(UnsupportedModel, match="predicts 2 outputs at once"):
        opened(several.fit(NUMBERS, np.column_stack([VALUE, VALUE])), NUMBERS)
