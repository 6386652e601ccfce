"""Readers of MLPClassifier and MLPRegressor: the same scores and classes as scikit-learn, or a clear refusal."""

import warnings

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ifonly.errors import UnsupportedModel
from portions import one_in
from reading import mixed_frame, outcome, read, rows

FRAME = mixed_frame()
CLASS = outcome(FRAME)
NAMES = np.array(["bad", "fair", "good"])


def fitted(network, y, frame=FRAME):
    pipeline = Pipeline(
        [
            (
                "prepare",
                make_column_transformer(
                    (StandardScaler(), ["income", "debt", "age"]), (OneHotEncoder(), ["job", "home"])
                ),
            ),
            ("net", network),
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return pipeline.fit(frame, y)


def raw_scores(pipeline, frame):
    """The outputs that scikit-learn computes in front of its last activation."""
    net = pipeline[-1]
    net.out_activation_, kept = "identity", net.out_activation_
    try:
        return net._forward_pass_fast(pipeline[:-1].transform(frame))
    finally:
        net.out_activation_ = kept


@pytest.mark.parametrize("layers", one_in(2, [(16,), (12, 8), (6, 6, 6)]))
@pytest.mark.parametrize("activation", ["relu", "identity"])
def test_binary_scores_and_classes_are_scikit_learns(layers, activation):
    model = fitted(MLPClassifier(layers, activation=activation, max_iter=60, random_state=0), NAMES[2 * (CLASS > 0)])
    read_model, schema = read(model, FRAME)
    U = rows(schema, FRAME)
    frame, scores = schema.decode(U), read_model.form(U)
    assert (read_model.rule.name, read_model.link.name, read_model.classes) == ("sign", "sigmoid", ("bad", "good"))
    np.testing.assert_allclose(scores, raw_scores(model, frame), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(read_model.probabilities(scores), model.predict_proba(frame), atol=1e-12)
    assert (np.array(read_model.classes)[read_model.decide(scores)] == model.predict(frame)).all()


def test_several_classes_are_scikit_learns():
    model = fitted(MLPClassifier((10, 6), max_iter=60, random_state=0), NAMES[CLASS])
    read_model, schema = read(model, FRAME)
    U = rows(schema, FRAME)
    frame, scores = schema.decode(U), read_model.form(U)
    assert (read_model.rule.name, read_model.link.name) == ("argmax", "softmax")
    np.testing.assert_allclose(scores, raw_scores(model, frame), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(read_model.probabilities(scores), model.predict_proba(frame), atol=1e-12)
    assert (np.array(read_model.classes)[read_model.decide(scores)] == model.predict(frame)).all()


def test_values_are_scikit_learns():
    model = fitted(MLPRegressor(hidden_layer_sizes=(16, 8), max_iter=60, random_state=0), FRAME["debt"] * 100)
    read_model, schema = read(model, FRAME)
    U = rows(schema, FRAME)
    assert read_model.rule.name == "value"
    np.testing.assert_allclose(read_model.form(U)[:, 0], model.predict(schema.decode(U)), rtol=1e-9, atol=1e-9)


def test_a_tie_goes_to_the_earlier_class():
    numbers = FRAME[["income", "debt"]]
    for y in (CLASS > 0, CLASS):
        model = MLPClassifier((4,), max_iter=2, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(numbers, y)
        model.coefs_ = [np.zeros_like(c) for c in model.coefs_]
        model.intercepts_ = [np.zeros_like(c) for c in model.intercepts_]
        read_model, schema = read(model, numbers)
        scores = read_model.form(schema.encode(numbers))
        assert not scores.any()
        assert (np.array(read_model.classes)[read_model.decide(scores)] == model.predict(numbers)).all()


def test_a_bare_network_without_a_pipeline_is_read():
    numbers = FRAME[["debt", "age"]] / [1.0, 80.0]
    model = make_pipeline(MLPClassifier((5,), max_iter=30, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(numbers, CLASS > 0)
    read_model, schema = read(model[-1], numbers)
    U = rows(schema, numbers, 500)
    np.testing.assert_allclose(
        read_model.probabilities(read_model.form(U)), model.predict_proba(schema.decode(U)), atol=1e-12
    )


@pytest.mark.parametrize("activation", ["tanh", "logistic"])
def test_smooth_activations_are_refused_by_name(activation):
    model = fitted(MLPClassifier((4,), activation=activation, max_iter=5, random_state=0), CLASS > 0)
    with pytest.raises(UnsupportedModel, match=rf"Step 'net': MLPClassifier .*{activation}.*activation='relu'"):
        read(model, FRAME)


def test_several_labels_at_once_are_refused():
    model = fitted(MLPClassifier((4,), max_iter=5, random_state=0), np.column_stack([CLASS > 0, CLASS > 1]).astype(int))
    with pytest.raises(UnsupportedModel, match="one MLPClassifier per label"):
        read(model, FRAME)


def test_several_values_at_once_are_refused():
    model = fitted(MLPRegressor(hidden_layer_sizes=(4,), max_iter=5, random_state=0), FRAME[["debt", "age"]])
    with pytest.raises(UnsupportedModel, match="2 values at once"):
        read(model, FRAME)


def test_an_exponential_output_is_refused():
    model = MLPRegressor(hidden_layer_sizes=(4,), max_iter=5, random_state=0)
    model = fitted(model, FRAME["age"].astype(float))
    model[-1].out_activation_ = "exp"
    model[-1].loss = "poisson"
    with pytest.raises(UnsupportedModel, match=r"poisson.*squared_error"):
        read(model, FRAME)


def test_text_without_an_encoder_is_refused_with_the_column():
    numbers = FRAME[["income", "debt"]].assign(age=FRAME["age"].astype(float))
    model = MLPClassifier((4,), max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(numbers, CLASS > 0)
    with pytest.raises(UnsupportedModel, match="'job'"):
        read(model, FRAME[["income", "debt", "job"]])
    with pytest.raises(UnsupportedModel, match="fitted on 3 columns"):
        read(model, FRAME[["income", "debt"]])
