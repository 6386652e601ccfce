"""Readers of scikit-learn's ensembles over trees: AdaBoost, bagging and the isolation forest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import UnsupportedModel
from ifonly.models.forms.compose import stack
from ifonly.models.forms.median import Median
from ifonly.models.read import Read
from ifonly.models.readers.sklearn_compose import average_of_members
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.readers.sklearn_trees import raw_tree, takes_missing
from ifonly.models.reading.assemble import RawTree, assemble
from ifonly.models.reading.outcomes import values
from ifonly.models.reading.source import Source
from ifonly.models.registry import read_estimator, reads

__all__ = ["mean_path", "path_scores", "read_isolation"]

_TREES = frozenset({"DecisionTree", "ExtraTree"})


def _only_trees(estimator: Any, source: Source) -> None:
    for member in estimator.estimators_:
        kind = type(member).__name__
        if kind.removesuffix("Classifier").removesuffix("Regressor") not in _TREES:
            raise UnsupportedModel(
                f"{source.where}{type(estimator).__name__} over {kind} is not a sum of leaf values. It can be read "
                "over DecisionTree and ExtraTree; the nearest thing for other members is a VotingClassifier."
            )
        if getattr(member, "n_outputs_", 1) != 1:
            raise UnsupportedModel(
                f"{source.where}{type(estimator).__name__} predicts {member.n_outputs_} outputs at once. Fit one model "
                "per output and explain the one you ask about."
            )


# -- AdaBoost -------------------------------------------------------------------------------------------------------
@reads("sklearn", "AdaBoostClassifier")
def read_adaboost(estimator: Any, source: Source) -> Read:
    """A weighted vote: each tree gives its weight to its class and takes ``weight / (classes - 1)`` from the others."""
    _only_trees(estimator, source)
    if getattr(estimator, "algorithm", "SAMME") == "SAMME.R":
        raise UnsupportedModel(
            f"{source.where}AdaBoostClassifier with algorithm='SAMME.R' adds logarithms of probabilities, and newer "
            "scikit-learn has dropped it. Fit it with algorithm='SAMME'."
        )
    n, missing = int(estimator.n_classes_), source.may_miss(False)
    used = list(zip(estimator.estimators_, estimator.estimator_weights_, strict=False))
    total, classes = float(estimator.estimator_weights_.sum()), labels_of(estimator)
    trees = [raw_tree(t.tree_, _votes(t, float(w), estimator.classes_)) for t, w in used]
    if n == 2:
        trees = [_keep_last(t) for t in trees]
        form = assemble(source, trees, np.zeros(1), over=total / 2.0)
        return Read(form, classes, "sign", "sigmoid", piecewise_constant=True, accepts_missing=missing)
    form = assemble(source, trees, np.zeros(n), over=total * max(n - 1, 1))
    return Read(form, classes, "argmax", "softmax", piecewise_constant=True, accepts_missing=missing)


def _votes(member: Any, weight: float, classes: Any) -> FloatArray:
    """Return what each leaf adds to each class; a member may not know all classes."""
    said = member.classes_[member.tree_.value[:, 0, :].argmax(axis=1)]
    against = -1 / max(len(classes) - 1, 1) * weight
    return np.where(said[:, None] == np.asarray(classes)[None, :], weight, against)


def _keep_last(tree: RawTree) -> RawTree:
    """Two classes: the votes for the first are those for the second with the sign turned."""
    return RawTree(tree.column, tree.threshold, tree.left, tree.right, tree.value[:, 1:], tree.missing_left)


@reads("sklearn", "AdaBoostRegressor")
def read_adaboost_regressor(estimator: Any, source: Source) -> Read:
    """The weighted median of the members' values; the members may be any regressors that can be read."""
    weights = np.asarray(estimator.estimator_weights_, dtype=np.float64)[: len(estimator.estimators_)]
    weights = weights if len(weights) > 1 else np.ones(1)  # a single one that is no better than chance has no weight
    members = [(type(member).__name__, read_estimator(member, source)) for member in estimator.estimators_]
    form = Median(stack(values(read, f"{source.where}{who}") for who, read in members), weights)
    steady = all(read.piecewise_constant for _, read in members)
    return Read(form, piecewise_constant=steady, accepts_missing=source.may_miss(False))


# -- bagging --------------------------------------------------------------------------------------------------------
@reads("sklearn", "BaggingClassifier")
def read_bagging_classifier(estimator: Any, source: Source) -> Read:
    """The average of the members' class shares; the first of the largest wins."""
    n = int(estimator.n_classes_)

    def shares(member: Any) -> FloatArray:
        value = np.zeros((member.tree_.node_count, n))
        # A member is fitted on class positions, and may have seen only some of them.
        value[:, member.classes_.astype(np.int64)] = member.tree_.value[:, 0, :]
        return value

    return _bagging(estimator, source, shares, n, labels_of(estimator))


@reads("sklearn", "BaggingRegressor")
def read_bagging_regressor(estimator: Any, source: Source) -> Read:
    """The average of the members' values."""
    return _bagging(estimator, source, lambda member: member.tree_.value[:, 0, :], 1, ())


def _bagging(
    estimator: Any, source: Source, value: Callable[[Any], FloatArray], n: int, classes: tuple[Any, ...]
) -> Read:
    if not any(hasattr(member, "tree_") for member in estimator.estimators_):
        return average_of_members(estimator, source)
    _only_trees(estimator, source)
    members = zip(estimator.estimators_, estimator.estimators_features_, strict=True)
    trees = [raw_tree(m.tree_, value(m), columns) for m, columns in members]
    form = assemble(source, trees, np.zeros(n), over=len(trees))
    missing = takes_missing(estimator.estimators_[0], source)
    if not classes:
        return Read(form, piecewise_constant=True, accepts_missing=missing)
    return Read(form, classes, "argmax", "identity", piecewise_constant=True, accepts_missing=missing)


# -- isolation forest -----------------------------------------------------------------------------------------------
@reads("sklearn", "IsolationForest")
def read_isolation(estimator: Any, source: Source) -> Read:
    """The mean path length ``d`` over the trees; ``score_samples`` is its increasing function ``-2 ** (-d / c)``.

    ``c`` is the mean path length of a random tree on ``max_samples`` points. The score is `d`, so that a demand on the
    anomaly score is one linear row, ``d >= mean_path(estimator, score)``; `predict` gives 1 where the score is at
    least ``offset_`` and -1 elsewhere (Liu, Ting and Zhou 2008).
    """
    whole = estimator._max_features == estimator.n_features_in_
    trees = []
    for k, (member, columns) in enumerate(zip(estimator.estimators_, estimator.estimators_features_, strict=True)):
        length = estimator._decision_path_lengths[k] + estimator._average_path_length_per_tree[k] - 1.0
        trees.append(raw_tree(member.tree_, length[:, None], None if whole else columns))
    form = assemble(source, trees, np.zeros(1), over=len(trees))
    return Read(
        form,
        (-1, 1),
        "sign",
        threshold=mean_path(estimator, float(estimator.offset_)),
        strict=False,
        piecewise_constant=True,
        accepts_missing=source.may_miss(True),
    )


def _whole_path(estimator: Any) -> float:
    """Return the sum over all trees of the path length at which an isolation forest's score is -1/2."""
    from sklearn.ensemble._iforest import _average_path_length  # noqa: PLC0415 - scikit-learn is loaded late

    return float(_average_path_length([estimator._max_samples])[0]) * len(estimator.estimators_)


def path_scores(estimator: Any, paths: FloatArray) -> FloatArray:
    """Return `score_samples` of an isolation forest for mean path lengths: ``-2 ** (-path / average path)``."""
    whole = _whole_path(estimator)
    if whole == 0.0:  # samples of one row have no path, and scikit-learn takes the quotient for 1
        return np.full(paths.shape, -0.5)
    return np.asarray(-(2.0 ** (-paths * len(estimator.estimators_) / whole)))


def mean_path(estimator: Any, score: float) -> float:
    """Return the least mean path length at which `score_samples` of an isolation forest is at least `score`."""
    n, whole = len(estimator.estimators_), _whole_path(estimator)
    if whole == 0.0 or not -1.0 <= score < 0.0:
        return -np.inf if score <= -0.5 else np.inf

    def enough(path: float) -> bool:
        return bool(-(2 ** (-np.divide(path, whole))) >= score)

    path = -whole * float(np.log2(-score))
    # The logarithm is right up to the last digits; the first float that is enough is among its neighbours.
    while enough(path) and path > 0.0:
        path = float(np.nextafter(path, -np.inf))
    while not enough(path):
        path = float(np.nextafter(path, np.inf))
    return path / n
