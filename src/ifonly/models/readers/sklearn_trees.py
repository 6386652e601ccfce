"""Readers of scikit-learn's trees, forests and gradient boosting."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.errors import UnsupportedModel
from ifonly.models.forms.trees import Trees
from ifonly.models.links import LinkName
from ifonly.models.read import Read
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.reading.assemble import RawTree, assemble
from ifonly.models.reading.source import Source
from ifonly.models.registry import reads

__all__ = ["raw_tree", "takes_missing"]


def raw_tree(tree: Any, value: FloatArray, columns: npt.ArrayLike | None = None) -> RawTree:
    """Return a scikit-learn `Tree` with the given leaf values (nodes, outputs).

    `columns` are the columns the tree was given, when it saw only some of them.
    """
    leaf = tree.children_left < 0
    own = np.arange(tree.node_count)
    column = tree.feature if columns is None else np.asarray(columns)[tree.feature]
    return RawTree(
        column=np.where(leaf, -1, column).astype(np.int64),
        threshold=tree.threshold,
        left=np.where(leaf, own, tree.children_left),
        right=np.where(leaf, own, tree.children_right),
        value=value,
        missing_left=tree.missing_go_to_left.astype(np.bool_),
    )


def takes_missing(estimator: Any, source: Source) -> frozenset[int]:
    """Whether some feature may be missing: the tree itself takes NaN, or the steps before it fill it in."""
    received = source.evaluate(source.base[None, :])
    return source.may_miss(bool(estimator._support_missing_values(received)))


def _single_output(estimator: Any, source: Source) -> None:
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise UnsupportedModel(
            f"{source.where}{type(estimator).__name__} predicts {estimator.n_outputs_} outputs at once. Fit one model "
            "per output and explain the one you ask about."
        )


def _average(members: Any, source: Source) -> Trees:
    """The trees' values added up one by one, then divided, as `predict` does."""
    trees = [raw_tree(t.tree_, t.tree_.value[:, 0, :]) for t in members]
    return assemble(source, trees, np.zeros(trees[0].value.shape[1]), over=len(trees))


@reads("sklearn", "DecisionTreeClassifier", "ExtraTreeClassifier")
def read_tree_classifier(estimator: Any, source: Source) -> Read:
    """Class shares of the leaf; the first of the largest wins."""
    return _classifier(estimator, [estimator], source)


@reads("sklearn", "RandomForestClassifier", "ExtraTreesClassifier")
def read_forest_classifier(estimator: Any, source: Source) -> Read:
    """The average of the trees' class shares; the first of the largest wins."""
    return _classifier(estimator, estimator.estimators_, source)


@reads("sklearn", "DecisionTreeRegressor", "ExtraTreeRegressor")
def read_tree_regressor(estimator: Any, source: Source) -> Read:
    """The leaf's value."""
    return _regressor(estimator, [estimator], source)


@reads("sklearn", "RandomForestRegressor", "ExtraTreesRegressor")
def read_forest_regressor(estimator: Any, source: Source) -> Read:
    """The average of the trees' values."""
    return _regressor(estimator, estimator.estimators_, source)


def _classifier(estimator: Any, members: Any, source: Source) -> Read:
    _single_output(estimator, source)
    return Read(
        _average(members, source),
        labels_of(estimator),
        "argmax",
        "identity",
        piecewise_constant=True,
        accepts_missing=takes_missing(members[0], source),
    )


def _regressor(estimator: Any, members: Any, source: Source) -> Read:
    _single_output(estimator, source)
    return Read(_average(members, source), piecewise_constant=True, accepts_missing=takes_missing(members[0], source))


@reads("sklearn", "GradientBoostingClassifier")
def read_boosting_classifier(estimator: Any, source: Source) -> Read:
    """Initial score plus learning rate times the trees; a sigmoid or softmax of that."""
    form, classes, missing = _boosted(estimator, source), labels_of(estimator), source.may_miss(False)
    if form.n_outputs > 1:
        return Read(form, classes, "argmax", "softmax", piecewise_constant=True, accepts_missing=missing)
    link: LinkName = "sigmoid"
    # Unlike every other booster, this one gives a score of exactly 0 to the second class.
    read = Read(form, classes, "sign", link, strict=False, piecewise_constant=True, accepts_missing=missing)
    if estimator.loss != "exponential":
        return read
    return Read(
        form,
        classes,
        "sign",
        link,
        strict=False,
        piecewise_constant=True,
        accepts_missing=missing,
        link_forward=_half_logit_probabilities,
        link_inverse=_half_logit,
    )


def _half_logit_probabilities(scores: FloatArray) -> FloatArray:
    """The exponential loss: ``p = 1 / (1 + exp(-2 s))``."""
    p = 0.5 * (1.0 + np.tanh(scores[:, 0]))
    return np.column_stack([1.0 - p, p])


def _half_logit(p: float) -> float:
    return 0.5 * float(np.log(p) - np.log1p(-p))


@reads("sklearn", "GradientBoostingRegressor")
def read_boosting_regressor(estimator: Any, source: Source) -> Read:
    """Initial value plus learning rate times the trees."""
    return Read(_boosted(estimator, source), piecewise_constant=True, accepts_missing=source.may_miss(False))


def _boosted(estimator: Any, source: Source) -> Trees:
    k = estimator.estimators_.shape[1]
    trees = []
    for stage in estimator.estimators_:
        for c, tree in enumerate(stage):
            value = np.zeros((tree.tree_.node_count, k))
            value[:, c] = estimator.learning_rate * tree.tree_.value[:, 0, 0]
            trees.append(raw_tree(tree.tree_, value))
    return assemble(source, trees, _initial(estimator, source))


def _initial(estimator: Any, source: Source) -> FloatArray:
    """Return the constant the boosting starts from, as the estimator itself computes it."""
    init = estimator.init_
    kind = init if isinstance(init, str) else type(init).__name__
    if kind != "zero" and (not kind.startswith("Dummy") or getattr(init, "strategy", "") == "stratified"):
        what = "which draws at random" if kind.startswith("Dummy") else "which depends on the input"
        raise UnsupportedModel(
            f"{source.where}{type(estimator).__name__} starts from a {kind}, {what}. Use init=None or init='zero'."
        )
    row = np.zeros((1, estimator.n_features_in_), dtype=np.float32)
    return np.asarray(estimator._raw_predict_init(row), dtype=np.float64).reshape(-1)
