"""Readers of scikit-learn's multi-layer perceptrons."""

from __future__ import annotations

from typing import Any

import numpy as np

from ifonly.errors import UnsupportedModel
from ifonly.models.form import Form
from ifonly.models.forms.network import Graph
from ifonly.models.forms.steps import Lift
from ifonly.models.read import Read
from ifonly.models.reading.on_grids import on_grids
from ifonly.models.reading.source import Source
from ifonly.models.registry import reads

__all__: list[str] = []


@reads("sklearn", "MLPClassifier")
def read_mlp_classifier(estimator: Any, source: Source) -> Read:
    """The input of the last activation: one score for two classes, else one per class.

    `predict` asks whether the sigmoid is above 0.5, or which softmax is the first of the largest; both are monotone,
    so a score of exactly 0, like a tie, goes to the earlier class.
    """
    if estimator.out_activation_ == "logistic" and estimator.n_outputs_ > 1:
        raise UnsupportedModel(
            f"{source.where}MLPClassifier decides {estimator.n_outputs_} labels at once (multilabel). Fit one "
            "MLPClassifier per label and explain the one you ask about."
        )
    classes = tuple(c.item() if isinstance(c, np.generic) else c for c in estimator.classes_)
    network, missing = _network(estimator, source), source.may_miss(False)
    if network.n_outputs == 1:
        return Read(network, classes, "sign", "sigmoid", accepts_missing=missing)
    return Read(network, classes, "argmax", "softmax", accepts_missing=missing)


@reads("sklearn", "MLPRegressor")
def read_mlp_regressor(estimator: Any, source: Source) -> Read:
    """One value."""
    if estimator.n_outputs_ > 1:
        raise UnsupportedModel(
            f"{source.where}MLPRegressor predicts {estimator.n_outputs_} values at once. Fit one model per output and "
            "explain the one you ask about."
        )
    if estimator.out_activation_ != "identity":
        raise UnsupportedModel(
            f"{source.where}MLPRegressor with loss={estimator.loss!r} ends in {estimator.out_activation_!r}, which is "
            "not piecewise linear. The nearest thing that can be read: MLPRegressor(loss='squared_error')."
        )
    return Read(_network(estimator, source), accepts_missing=source.may_miss(False))


def _network(estimator: Any, source: Source) -> Form:
    who = type(estimator).__name__
    if estimator.activation not in ("relu", "identity"):
        raise UnsupportedModel(
            f"{source.where}{who} with activation={estimator.activation!r} has no exact mixed-integer form: it is not "
            f"piecewise linear. The nearest thing that has one: {who}(activation='relu')."
        )
    source = on_grids(source)
    lift = Lift.of(source)
    longer = lift.source(source)
    graph = Graph(longer.schema)
    signal = graph.input(*longer.linear(estimator.coefs_[0].T, estimator.intercepts_[0], who))
    for weights, intercept in zip(estimator.coefs_[1:], estimator.intercepts_[1:], strict=True):
        hidden = graph.rectify(signal) if estimator.activation == "relu" else signal
        signal = hidden.affine(weights.T, intercept)
    return lift.around(graph.network(signal))
