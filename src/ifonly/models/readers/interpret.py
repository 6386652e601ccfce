"""Readers of interpret's explainable boosting machines: a sum of tables over one or two features each."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.errors import UnsupportedModel
from ifonly.models.forms.additive import Axis, Table, additive
from ifonly.models.forms.bends import EXP
from ifonly.models.forms.trees import Trees
from ifonly.models.read import Read
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.reading.outcomes import Bent
from ifonly.models.reading.source import Source, representatives
from ifonly.models.reading.stepwise import Jumps
from ifonly.models.registry import reads

__all__: list[str] = []


@reads("interpret", "ExplainableBoostingClassifier", "DPExplainableBoostingClassifier")
def read_classifier(estimator: Any, source: Source) -> Read:
    """Two classes: the logit of the second; more: one score per class and a softmax."""
    form = _form(estimator, source)
    read = partial(Read, form, labels_of(estimator), piecewise_constant=True, accepts_missing=source.may_miss(True))
    if estimator.link_ == "logit" and form.n_outputs == 1:
        return read("sign", "sigmoid")
    if estimator.link_ == "mlogit" and form.n_outputs == len(estimator.classes_):
        return read("argmax", "softmax")
    raise UnsupportedModel(
        f"{source.where}{type(estimator).__name__} with the link {estimator.link_!r}. Fit it with "
        "objective='log_loss', whose logits can be read."
    )


@reads("interpret", "ExplainableBoostingRegressor", "DPExplainableBoostingRegressor")
def read_regressor(estimator: Any, source: Source) -> Read:
    """The sum of the terms, or its exponential (Poisson, gamma and Tweedie objectives)."""
    read = partial(Read, _form(estimator, source), piecewise_constant=True, accepts_missing=source.may_miss(True))
    if estimator.link_ == "identity":
        return read()
    if estimator.link_ == "log":
        bent = Bent(np.exp, classes=False, bend=EXP)
        return read(link_forward=bent, link_inverse=bent.inverse)
    raise UnsupportedModel(
        f"{source.where}{type(estimator).__name__} with the link {estimator.link_!r}. The links 'identity' and 'log' can be "
        "read: objective='rmse', 'poisson_deviance', 'gamma_deviance', 'tweedie_deviance'."
    )


def _form(estimator: Any, source: Source) -> Trees:
    if len(estimator.feature_names_in_) != len(source.columns):
        raise UnsupportedModel(
            f"{source.where}{type(estimator).__name__} was fitted on {len(estimator.feature_names_in_)} columns, but the "
            f"data has {len(source.columns)}. Pass the frame the model was trained on, or the whole Pipeline."
        )
    base = np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64))
    tables = [_table(estimator, source, t, len(base)) for t in range(len(estimator.term_features_))]
    return additive(source.schema, tables, base)


def _table(estimator: Any, source: Source, term: int, outputs: int) -> Table:
    """Return one term as a table over the features behind its columns, measured by the estimator itself."""
    columns = estimator.term_features_[term]
    edges: dict[int, list[FloatArray]] = {}
    for c in columns:
        for j in source.columns[c].features:
            own = edges.setdefault(j, [])
            if isinstance(source.schema.features[j], Numeric):
                bins = estimator.bins_[c]
                own.append(_jumps(bins[min(len(bins), len(columns)) - 1]).cuts(source, c))
    axes = tuple(Axis(j, np.unique(np.concatenate([*cuts, np.empty(0)]))) for j, cuts in sorted(edges.items()))
    alone = copy.copy(estimator)
    alone.term_features_, alone.term_scores_ = [columns], [estimator.term_scores_[term]]
    return Table(axes, _measured(axes, source, lambda Z: np.asarray(alone.eval_terms(Z)), outputs))


def _jumps(bins: Any) -> Jumps:
    """Return the cuts of a number, which belong to the bin above; of numbers that it takes for names, every one."""
    if not isinstance(bins, dict):
        return Jumps(at=[float(c) for c in bins])
    points = []
    for name in bins:
        try:
            points.append(float(name))
        except ValueError:
            continue
    return Jumps(points=points)


def _measured(
    axes: tuple[Axis, ...], source: Source, evaluate: Callable[[Any], FloatArray], outputs: int
) -> FloatArray:
    """Return the value of every combination of cells, levels and gaps."""
    parts = [_options(source, axis) for axis in axes]
    sizes = tuple(len(p) for p in parts)
    U = np.repeat(source.base[None, :], int(np.prod(sizes)), axis=0)
    places = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), dtype=np.int64)
    for axis, part, place in zip(axes, parts, places, strict=True):
        U[:, source.schema.slice(axis.feature)] = part[place]
    return evaluate(source.evaluate(U)).reshape(*sizes, outputs)


def _options(source: Source, axis: Axis) -> FloatArray:
    """Return one canonical part per cell or level, and one for a missing value."""
    feature = source.schema.features[axis.feature]
    if not isinstance(feature, Numeric):
        return np.vstack([np.eye(feature.width), np.zeros(feature.width)])
    inside = representatives(feature, axis.cuts) if axis.cuts.size else source.base[source.schema.slice(axis.feature)]
    return np.append(inside, np.nan)[:, None]
