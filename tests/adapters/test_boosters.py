"""Native boosters behind their adapters: read exactly, loaded from their own files, and explained end to end."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ifonly import Explainer, Target
from ifonly.adapters.boosters import BoosterClassifier, BoosterRegressor, load
from ifonly.errors import UnsupportedModel
from tree_cases import agree, labels, mixed, mixed_labels, opened, points, table

pytestmark = pytest.mark.frameworks

FRAME = table()
MIXED = mixed()
VALUE = np.exp(labels(FRAME, 9) / 3)


def train_xgboost(y, classes, frame=FRAME):
    xgboost = pytest.importorskip("xgboost")
    objective = {0: "count:poisson", 2: "binary:logistic", 3: "multi:softprob"}[classes]
    options = {"objective": objective, "max_depth": 3, "nthread": 1} | ({"num_class": 3} if classes == 3 else {})
    return xgboost.train(options, xgboost.DMatrix(frame, y, enable_categorical=True), 12)


def train_lightgbm(y, classes, frame=FRAME):
    lightgbm = pytest.importorskip("lightgbm")
    objective = {0: "poisson", 2: "binary", 3: "multiclass"}[classes]
    options = {"objective": objective, "max_depth": 3, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    options |= {"num_class": 3} if classes == 3 else {}
    return lightgbm.train(options, lightgbm.Dataset(frame, y), 12)


def train_catboost(y, classes, frame=FRAME):
    catboost = pytest.importorskip("catboost")
    loss = {0: "Poisson", 2: "Logloss", 3: "MultiClass"}[classes]
    options = {"loss_function": loss, "iterations": 12, "depth": 3, "verbose": 0, "allow_writing_files": False}
    categories = [c for c in getattr(frame, "columns", ()) if frame.dtypes[c].name == "category"]
    return catboost.CatBoost(options | {"one_hot_max_size": 50}).fit(frame, y, cat_features=categories)


TRAIN = {"xgboost": train_xgboost, "lightgbm": train_lightgbm, "catboost": train_catboost}
ENDS = [("xgboost", "json"), ("xgboost", "ubj"), ("lightgbm", "txt"), ("catboost", "json"), ("catboost", "cbm")]


def raw(adapter, Z):
    booster = adapter.booster
    if adapter.framework == "lightgbm":
        return booster.predict(Z, raw_score=True)
    if adapter.framework == "catboost":
        return booster.predict(Z, prediction_type="RawFormulaVal")
    import xgboost

    return booster.predict(xgboost.DMatrix(Z, enable_categorical=True), output_margin=True)


def check(adapter, frame):
    model = opened(adapter, frame)
    U = points(model.read.form.schema, frame, {}, n=800)
    agree(model, U, lambda Z: raw(adapter, Z), tolerance=1e-5)
    return model, U


@pytest.mark.parametrize("framework", TRAIN)
@pytest.mark.parametrize("classes", [2, 3])
def test_classifier(framework, classes):
    names = np.array(["bad", "fair", "good"])[:classes]
    adapter = BoosterClassifier(TRAIN[framework](labels(FRAME, classes), classes), names)
    model, U = check(adapter, FRAME)
    assert set(model.predict(U)) == set(names)
    assert adapter.predict_proba(FRAME).shape == (len(FRAME), classes)
    assert clone(adapter).get_params().keys() == {"booster", "classes"}


@pytest.mark.parametrize("framework", TRAIN)
def test_regressor(framework):
    adapter = BoosterRegressor(TRAIN[framework](VALUE, 0))
    model, U = check(adapter, FRAME)
    assert np.allclose(model.read.decide(model.read.form(U)), model.predict(U), rtol=1e-5)
    said = adapter.predict(FRAME)
    answer = Explainer(adapter, FRAME).explain(FRAME.iloc[int(said.argmin())], want=Target(at_least=np.median(said)))
    assert adapter.predict(answer[0].row)[0] >= np.median(said)


@pytest.mark.parametrize("framework", TRAIN)
def test_categories(framework):
    frame = MIXED if framework != "catboost" else MIXED.drop(columns="job")
    adapter = BoosterClassifier(TRAIN[framework](mixed_labels(MIXED), 2, frame), ["no", "yes"])
    check(adapter, frame)
    factual = frame.iloc[[3]]
    now = adapter.predict(factual)[0]
    answer = Explainer(adapter, frame).explain(factual)
    assert adapter.predict(answer[0].row)[0] != now
    assert answer[0].certificate.proven


@pytest.mark.parametrize(("framework", "end"), ENDS)
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_files(framework, end, classes, tmp_path):
    y = labels(FRAME, classes) if classes else VALUE
    booster = TRAIN[framework](y, classes)
    path = tmp_path / f"model.{end}"
    if framework == "catboost":
        booster.save_model(str(path), format=end)
    else:
        booster.save_model(str(path))
    loaded = load(path)
    assert isinstance(loaded, BoosterClassifier if classes else BoosterRegressor)
    trained = BoosterClassifier(booster, range(classes)) if classes else BoosterRegressor(booster)
    assert np.allclose(loaded.predict(FRAME), trained.predict(FRAME), rtol=1e-12)
    check(loaded, FRAME)
    if classes == 2:
        assert set(load(path, classes=["no", "yes"]).predict(FRAME)) == {"no", "yes"}


@pytest.mark.parametrize("framework", TRAIN)
def test_at_the_end_of_a_pipeline(framework):
    scaler = StandardScaler().fit(FRAME)
    scaled = pd.DataFrame(scaler.transform(FRAME), columns=FRAME.columns)
    adapter = BoosterClassifier(TRAIN[framework](labels(FRAME), 2, scaled.to_numpy()), [0, 1])
    pipeline = make_pipeline(scaler, adapter)
    model = opened(pipeline, FRAME)
    U = points(model.read.form.schema, FRAME, model.read.form.cuts(), n=800)
    agree(model, U, lambda Z: raw(adapter, scaler.transform(Z)), tolerance=1e-5)


def test_refused_by_name(tmp_path):
    with pytest.raises(UnsupportedModel, match="must come from xgboost, lightgbm or catboost"):
        BoosterRegressor(object())
    with pytest.raises(FileNotFoundError, match="no model file"):
        load(tmp_path / "none.json")
    (tmp_path / "odd.txt").write_text("nothing of the kind")
    with pytest.raises(UnsupportedModel, match="is no model file of XGBoost"):
        load(tmp_path / "odd.txt")
    booster = train_lightgbm(labels(FRAME), 2)
    with pytest.raises(UnsupportedModel, match="at least two classes"):
        BoosterClassifier(booster, ["only"])
    with pytest.raises(UnsupportedModel, match=r"BoosterClassifier\(booster, classes\)"):
        opened(booster, FRAME)
