"""Readers of scikit-learn's trees, forests and gradient boosting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ifonly.errors import UnsupportedModel
from ifonly.mip import FloatArray
from ifonly.models import Read, reads
from ifonly.models.assemble import RawTree, assemble
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.source import Source

__all__ = ["raw_tree"]


def raw_tree(tree: Any, value: FloatArray) -> RawTree:
    """Return a scikit-learn `Tree` with the given leaf values (nodes, outputs)."""
    leaf = tree.children_left < 0
    own = np.arange(tree.node_count)
    missing = getattr(tree, "missing_go_to_left", None)
    return RawTree(
        column=np.where(leaf, -1, tree.feature).astype(np.int64),
        threshold=tree.threshold,
        left=np.where(leaf, own, tree.children_left),
        right=np.where(leaf, own, tree.children_right),
        value=value,
        missing_left=None if missing is None else missing.astype(np.bool_),
    )


def _single_output(estimator: Any, source: Source) -> None:
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise UnsupportedModel(
            f"{source.where}{type(estimator).__name__} predicts {estimator.n_outputs_} outputs at once. Fit one model "
            "per output and explain the one you ask about."
        )


def _class_shares(tree: Any) -> FloatArray:
    counts = tree.value[:, 0, :]
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray(counts / np.where(total == 0, 1.0, total))


def _accepts_missing(estimators: Any) -> bool:
    return any(bool(np.any(getattr(t.tree_, "missing_go_to_left", 0))) for t in estimators)


@reads("sklearn", "DecisionTreeClassifier", "ExtraTreeClassifier")
def read_tree_classifier(estimator: Any, source: Source) -> Read:
    """Class shares of the leaf; the first of the largest wins."""
    _single_output(estimator, source)
    form = assemble(
        source, [raw_tree(estimator.tree_, _class_shares(estimator.tree_))], np.zeros(len(estimator.classes_))
    )
    return Read(
        form, labels_of(estimator), "argmax", "identity",
        piecewise_constant=True, accepts_missing=_accepts_missing([estimator]),
    )  # fmt: skip


@reads("sklearn", "DecisionTreeRegressor", "ExtraTreeRegressor")
def read_tree_regressor(estimator: Any, source: Source) -> Read:
    """The leaf's value."""
    _single_output(estimator, source)
    form = assemble(source, [raw_tree(estimator.tree_, estimator.tree_.value[:, 0, :])], np.zeros(1))
    return Read(form, piecewise_constant=True, accepts_missing=_accepts_missing([estimator]))


@reads("sklearn", "RandomForestClassifier", "ExtraTreesClassifier")
def read_forest_classifier(estimator: Any, source: Source) -> Read:
    """The average of the trees' class shares; the first of the largest wins."""
    _single_output(estimator, source)
    n = len(estimator.estimators_)
    trees = [raw_tree(t.tree_, _class_shares(t.tree_) / n) for t in estimator.estimators_]
    form = assemble(source, trees, np.zeros(len(estimator.classes_)))
    return Read(
        form, labels_of(estimator), "argmax", "identity",
        piecewise_constant=True, accepts_missing=_accepts_missing(estimator.estimators_),
    )  # fmt: skip


@reads("sklearn", "RandomForestRegressor", "ExtraTreesRegressor")
def read_forest_regressor(estimator: Any, source: Source) -> Read:
    """The average of the trees' values."""
    _single_output(estimator, source)
    n = len(estimator.estimators_)
    trees = [raw_tree(t.tree_, t.tree_.value[:, 0, :] / n) for t in estimator.estimators_]
    form = assemble(source, trees, np.zeros(1))
    return Read(form, piecewise_constant=True, accepts_missing=_accepts_missing(estimator.estimators_))


@reads("sklearn", "GradientBoostingClassifier")
def read_boosting_classifier(estimator: Any, source: Source) -> Read:
    """Initial score plus learning rate times the trees; a sigmoid or softmax of that."""
    start = _initial(estimator, source)
    k = estimator.estimators_.shape[1]
    form = _boosted(estimator, source, start)
    link = "sigmoid" if k == 1 else "softmax"
    if estimator.loss == "exponential":
        return Read(
            form, labels_of(estimator), "sign", "sigmoid", strict=False, piecewise_constant=True,
            link_forward=_exponential_probabilities, link_inverse=lambda p: 0.5 * float(np.log(p) - np.log1p(-p)),
        )  # fmt: skip
    rule = "sign" if k == 1 else "argmax"
    return Read(
        form, labels_of(estimator), rule, link, strict=False, piecewise_constant=True  # type: ignore[arg-type]
    )


def _exponential_probabilities(scores: FloatArray) -> FloatArray:
    p = 1.0 / (1.0 + np.exp(-2.0 * scores[:, 0]))
    return np.column_stack([1.0 - p, p])


@reads("sklearn", "GradientBoostingRegressor")
def read_boosting_regressor(estimator: Any, source: Source) -> Read:
    """Initial value plus learning rate times the trees."""
    return Read(_boosted(estimator, source, _initial(estimator, source)), piecewise_constant=True)


def _boosted(estimator: Any, source: Source, start: FloatArray) -> Any:
    k = estimator.estimators_.shape[1]
    trees = []
    for stage in estimator.estimators_:
        for c, tree in enumerate(stage):
            value = np.zeros((tree.tree_.node_count, k))
            value[:, c] = estimator.learning_rate * tree.tree_.value[:, 0, 0]
            trees.append(raw_tree(tree.tree_, value))
    return assemble(source, trees, start)


def _initial(estimator: Any, source: Source) -> FloatArray:
    """Return the constant the boosting starts from, as the estimator itself computes it."""
    kind = type(estimator.init_).__name__
    if estimator.init_ != "zero" and not kind.startswith("Dummy"):
        raise UnsupportedModel(
            f"{source.where}{type(estimator).__name__} starts from a {kind}, which depends on the input. Use init=None "
            "or init='zero'."
        )
    row = source.dense(source.base[None, :]).astype(np.float32)
    return np.asarray(estimator._raw_predict_init(row), dtype=np.float64).reshape(-1)  # noqa: SLF001 - no public way
