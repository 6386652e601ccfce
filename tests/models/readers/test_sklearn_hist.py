"""Histogram gradient boosting: float64 thresholds, category sets behind its own encoder, missing directions, links."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from ifonly.data.schema import Schema
from ifonly.errors import UnsupportedModel
from ifonly.models.own_links import ValueLink
from portions import one_in
from tree_cases import agree, labels, mixed, mixed_holes, mixed_labels, neighbours, opened, points, table

FRAME = mixed()
HOLES = mixed_holes(FRAME)
VALUE = np.exp(labels(FRAME, 9) / 3) + (FRAME["job"] == "none")


def thresholds(estimator, frame):
    known = estimator.is_categorical_
    known = np.zeros(frame.shape[1], dtype=bool) if known is None else np.asarray(known)
    order = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
    found = {}
    for nodes in (p.nodes for stage in estimator._predictors for p in stage):
        for node in nodes[(nodes["is_leaf"] == 0) & (nodes["is_categorical"] == 0)]:
            found.setdefault(int(order[node["feature_idx"]]), []).append(node["num_threshold"])
    return {j: np.unique(t) for j, t in found.items() if frame.dtypes.iloc[j].kind == "f"}


def check(estimator, frame, schema=None):
    model = opened(estimator, frame, schema)
    assert model.read.accepts_missing
    U = points(model.read.form.schema, frame, thresholds(estimator, frame), missing=0.1)
    agree(model, U, estimator._raw_predict)
    return model, U


@pytest.mark.parametrize("classes", one_in(2, [2, 3]))
@pytest.mark.parametrize("frame", [FRAME, HOLES], ids=["complete", "holes"])
def test_classes(frame, classes):
    estimator = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=12)
    check(estimator.fit(frame, mixed_labels(FRAME, classes)), frame)


@pytest.mark.parametrize("loss", one_in(2, ["squared_error", "absolute_error", "quantile", "poisson", "gamma"]))
@pytest.mark.parametrize("frame", [FRAME, HOLES], ids=["complete", "holes"])
def test_values(frame, loss):
    estimator = HistGradientBoostingRegressor(loss=loss, quantile=0.5, max_iter=15, max_leaf_nodes=12)
    model, U = check(estimator.fit(frame, VALUE), frame)
    read = model.read
    if loss not in ("poisson", "gamma"):
        assert not isinstance(read.link, ValueLink)
        return
    predicted = np.asarray(model.predict(U), dtype=float)
    assert np.allclose(read.link.forward(read.form(U))[:, 0], predicted, rtol=1e-12)
    assert np.allclose([read.link.back(v) for v in predicted[:50]], read.form(U)[:50, 0], rtol=1e-9)
    assert read.link.back(-1.0) == -np.inf


def test_float64_cut():
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(1e3, 1, 300)})
    stump = HistGradientBoostingClassifier(max_iter=1, max_depth=1, max_bins=255).fit(frame, frame["x"] > 1000.1)
    threshold = stump._predictors[0][0].nodes[0]["num_threshold"]
    model = opened(stump, frame)
    assert list(model.read.form.cuts()[0]) == [threshold]
    x = neighbours(np.array([threshold]))
    assert (model.read.form(x[:, None])[:, 0] == stump._raw_predict(pd.DataFrame({"x": x}))[:, 0]).all()


def test_tie_goes_to_the_first_class():
    frame = pd.DataFrame({"x": np.repeat([0.0, 1.0], 40)})
    estimator = HistGradientBoostingClassifier(max_iter=1).fit(frame, ["a", "b"] * 40)
    model = opened(estimator, frame)
    assert model.read.form(np.zeros((1, 1)))[0, 0] == 0.0
    assert model.read.decide(np.zeros((1, 1)))[0] == 0
    assert list(model.predict(np.zeros((1, 1)))) == ["a"]


def test_a_level_never_seen_goes_where_missing_ones_go():
    estimator = HistGradientBoostingClassifier(max_iter=20).fit(HOLES, mixed_labels(FRAME))
    model = opened(estimator, HOLES)
    schema = model.read.form.schema
    j = schema.index("job")
    U = schema.encode(FRAME)
    U[:, schema.slice(j)] = np.eye(5)[schema["job"].levels.index("king")]
    missing = U.copy()
    missing[:, schema.slice(j)] = 0.0
    assert (model.read.form(U) == model.read.form(missing)).all()
    agree(model, U, estimator._raw_predict)


def test_categories_given_as_numbers():
    rng = np.random.default_rng(0)
    frame = table().assign(k=rng.integers(3, 9, 400).astype(float))
    y = labels(frame) ^ (frame["k"] == 5)
    estimator = HistGradientBoostingClassifier(max_iter=15, categorical_features=["k"]).fit(frame, y)
    with pytest.raises(UnsupportedModel, match=r"Schema.infer\(X, categorical=\['k'\]\)"):
        opened(estimator, frame)
    check(estimator, frame, Schema.infer(frame, categorical=["k"]))


def test_behind_an_encoder_that_gives_missing_values():
    """The pipeline turns a level it has not seen into NaN, which the trees send their own way."""
    frame = FRAME.astype({"job": object})
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    columns = ColumnTransformer([("code", encoder, ["job", "code"])], remainder="passthrough")
    estimator = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=15))
    known = frame[frame["job"] != "boss"]
    estimator.fit(known, mixed_labels(FRAME)[frame["job"] != "boss"])
    model = opened(estimator, frame)
    U = points(model.read.form.schema, frame, {}, missing=0.1)
    agree(model, U, lambda Z: estimator[-1]._raw_predict(estimator[:-1].transform(Z)))
