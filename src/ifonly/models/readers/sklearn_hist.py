"""Reader of scikit-learn's histogram gradient boosting, with its own category encoder and missing directions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ifonly.models.forms.trees import Trees
from ifonly.models.read import Read
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.reading.assemble import RawTree, assemble, float64_at_most
from ifonly.models.reading.links import log
from ifonly.models.reading.source import Source
from ifonly.models.registry import reads

__all__: list[str] = []


@reads("sklearn", "HistGradientBoostingClassifier")
def read_hist_classifier(estimator: Any, source: Source) -> Read:
    """Baseline plus the trees; a sigmoid or softmax of that."""
    form, missing = _form(estimator, source)
    if form.n_outputs == 1:
        return Read(form, labels_of(estimator), "sign", "sigmoid", piecewise_constant=True, accepts_missing=missing)
    return Read(form, labels_of(estimator), "argmax", "softmax", piecewise_constant=True, accepts_missing=missing)


@reads("sklearn", "HistGradientBoostingRegressor")
def read_hist_regressor(estimator: Any, source: Source) -> Read:
    """Baseline plus the trees; its exponential for the losses of positive outcomes."""
    form, missing = _form(estimator, source)
    if estimator.loss not in ("poisson", "gamma"):
        return Read(form, piecewise_constant=True, accepts_missing=missing)
    return Read(
        form,
        piecewise_constant=True,
        accepts_missing=missing,
        link_forward=np.exp,
        link_inverse=log,
    )


def _form(estimator: Any, source: Source) -> tuple[Trees, frozenset[int]]:
    inner = _received(estimator, source)
    k = int(estimator.n_trees_per_iteration_)
    trees = [_tree(predictor, c, k) for stage in estimator._predictors for c, predictor in enumerate(stage)]
    base = np.asarray(estimator._baseline_prediction, dtype=np.float64).reshape(-1)
    form = assemble(inner, trees, base, float64_at_most)
    return form, inner.may_miss(True)


def _received(estimator: Any, source: Source) -> Source:
    """Return the trees' input: categories first, as the codes of the estimator's own encoder, then the numbers."""
    columns = source.columns
    if estimator.is_categorical_ is not None:
        encoded = np.asarray(estimator.is_categorical_, dtype=np.bool_)
        why = f"encoded inside {type(estimator).__name__}"
        codes = [
            replace(columns[c], weights=None, why=why, labels=False, identity=False, branch=None)
            for c in np.flatnonzero(encoded)
        ]
        columns = (*codes, *(columns[c] for c in np.flatnonzero(~encoded)))
    return replace(source, columns=columns, evaluate=lambda U: estimator._preprocess_X(source.evaluate(U), reset=False))


def _tree(predictor: Any, output: int, n_outputs: int) -> RawTree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(np.bool_)
    own = np.arange(len(nodes))
    value = np.zeros((len(nodes), n_outputs))
    value[:, output] = nodes["value"]
    sets = {
        int(i): frozenset(np.flatnonzero(_bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][i]])).tolist())
        for i in np.flatnonzero(nodes["is_categorical"].astype(np.bool_) & ~leaf)
    }
    return RawTree(
        column=np.where(leaf, -1, nodes["feature_idx"]).astype(np.int64),
        threshold=nodes["num_threshold"],
        left=np.where(leaf, own, nodes["left"]).astype(np.int64),
        right=np.where(leaf, own, nodes["right"]).astype(np.int64),
        value=value,
        missing_left=nodes["missing_go_to_left"].astype(np.bool_),
        categories=sets,
    )


def _bits(words: Any) -> Any:
    """Return a bit set of 32-bit words as one flag per category code."""
    return (words[:, None] >> np.arange(32, dtype=words.dtype) & 1).astype(np.bool_).reshape(-1)
