"""Reader of LightGBM: its dumped model, category sets, and its three kinds of missing value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.errors import UnsupportedModel
from ifonly.models.read import Read
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.reading.assemble import RawTree, assemble, float64_at_most
from ifonly.models.reading.codes import coded, with_hole
from ifonly.models.reading.links import (
    Logistic,
    log,
    logistic,
    logit,
    signed_root,
    signed_square,
    softplus,
    softplus_inverse,
)
from ifonly.models.reading.source import Source
from ifonly.models.registry import reads

__all__ = ["read_booster"]

# LightGBM takes a value for zero when it is within this distance of it, a float32 constant.
_ZERO = float(np.float32(1e-35))
# The largest score whose sigmoid is not above one half in float64.
_LAST_SCORE_OF_HALF = 1.5 * 2.0**-53
_PLAIN = frozenset(
    {
        "regression",
        "regression_l1",
        "huber",
        "fair",
        "quantile",
        "mape",
        "lambdarank",
        "rank_xendcg",
    }
)
_LOG = frozenset({"poisson", "gamma", "tweedie"})


@reads("lightgbm", "LGBMClassifier")
def read_classifier(estimator: Any, source: Source) -> Read:
    """Scores before the sigmoid or softmax, from the rounds that `predict` uses."""
    return read_booster(estimator.booster_, source, labels_of(estimator))


@reads("lightgbm", "LGBMRegressor", "LGBMRanker")
def read_regressor(estimator: Any, source: Source) -> Read:
    """The value before its output transform, from the rounds that `predict` uses."""
    return read_booster(estimator.booster_, source, ())


@reads("lightgbm", "Booster")
def refuse_booster(booster: Any, source: Source) -> Read:
    """A native booster has no labels."""
    raise UnsupportedModel(
        f"{source.where}a native {type(booster).__name__} has no labels. Wrap it: BoosterClassifier(booster, classes) "
        "or BoosterRegressor(booster) from ifonly.adapters."
    )


def read_booster(booster: Any, source: Source, classes: tuple[Any, ...]) -> Read:
    """Return a booster as a classifier over `classes`, or as a regressor when there are none."""
    model = booster.dump_model()
    outputs = int(model["num_tree_per_iteration"])
    inner = coded(source, _categories(booster, source))
    trees = [_tree(t, k % outputs, outputs, source) for k, t in enumerate(model["tree_info"])]
    over = len(trees) / outputs if model["average_output"] and trees else 1.0
    form = assemble(inner, trees, np.zeros(outputs), _at_most, over=over)
    read = partial(Read, form, piecewise_constant=True, accepts_missing=inner.may_miss(True))
    name, *options = str(model.get("objective", "custom")).split()
    given = dict(option.split(":", 1) for option in options if ":" in option)
    if classes:
        return _classification(read, name, float(given.get("sigmoid", 1.0)), outputs, classes, source)
    if outputs != 1:
        raise UnsupportedModel(
            f"{source.where}this LightGBM model predicts {outputs} outputs at once. Fit one model per output and "
            "explain the one you ask about."
        )
    return _regression(read, name, "sqrt" in options, source)


# -- how scores become predictions ----------------------------------------------------------------------------------
def _classification(
    read: Callable[..., Read],
    objective: str,
    slope: float,
    outputs: int,
    classes: tuple[Any, ...],
    source: Source,
) -> Read:
    if objective in ("binary", "cross_entropy") and outputs == 1 and len(classes) == 2:
        threshold = _LAST_SCORE_OF_HALF / slope
        if slope == 1.0:
            return read(classes, "sign", "sigmoid", threshold=threshold)
        return read(
            classes,
            "sign",
            "sigmoid",
            threshold=threshold,
            link_forward=Logistic(slope),
            link_inverse=Logistic(slope).inverse,
        )
    if objective == "multiclass" and outputs == len(classes):
        return read(classes, "argmax", "softmax")
    if objective == "multiclassova" and outputs == len(classes):
        # One sigmoid per class, not even divided by their sum.
        return read(classes, "argmax", "normalised", link_forward=Logistic(slope, each=True))
    raise UnsupportedModel(
        f"{source.where}the LightGBM objective {objective!r} with {outputs} scores for {len(classes)} classes cannot "
        "be read. Supported: binary, cross_entropy, multiclass, multiclassova."
    )


def _regression(read: Callable[..., Read], objective: str, squared: bool, source: Source) -> Read:
    if squared:
        return read(link_forward=signed_square, link_inverse=signed_root)
    if objective in _PLAIN:
        return read()
    if objective in _LOG:
        return read(link_forward=np.exp, link_inverse=log)
    if objective in ("cross_entropy", "binary"):
        return read(link_forward=logistic, link_inverse=logit)
    if objective == "cross_entropy_lambda":
        return read(link_forward=softplus, link_inverse=softplus_inverse)
    raise UnsupportedModel(
        f"{source.where}the LightGBM objective {objective!r} cannot be read. Supported for regression: "
        f"{', '.join(sorted(_PLAIN | _LOG))}, cross_entropy, cross_entropy_lambda."
    )


# -- the dumped model -----------------------------------------------------------------------------------------------
def _categories(booster: Any, source: Source) -> dict[int, list[Any]]:
    """Return the levels of each category column in the model's order, which it keeps for all of them in turn."""
    first = source.evaluate(source.base[None, :])
    if not hasattr(first, "iloc"):
        return {}
    columns = [c for c, dtype in enumerate(first.dtypes) if isinstance(dtype, pd.CategoricalDtype)]
    stored = booster.pandas_categorical or []
    if len(stored) != len(columns):
        raise UnsupportedModel(
            f"{source.where}the LightGBM model was trained with {len(stored)} category columns, but the data has "
            f"{len(columns)}. Pass the data with the types it was trained on."
        )
    return dict(zip(columns, stored, strict=True))


@dataclass
class _Flat:
    """The nodes of one tree in a row, as its nested dump is walked."""

    column: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    missing: list[bool] = field(default_factory=list)
    sets: dict[int, frozenset[float]] = field(default_factory=dict)
    zero: bool = False

    def add(self, node: Any, where: str) -> int:
        """Append one node, and say where it stands."""
        if "leaf_coeff" in node:
            raise UnsupportedModel(
                f"{where}LightGBM with linear_tree=True has a linear model in each leaf. Fit it without linear_tree."
            )
        i = len(self.column)
        leaf = "leaf_value" in node
        self.column.append(-1 if leaf else int(node["split_feature"]))
        self.value.append(float(node["leaf_value"]) if leaf else 0.0)
        self.left.append(i)
        self.right.append(i)
        by_set = not leaf and node["decision_type"] == "=="
        if by_set:
            self.sets[i] = frozenset(float(c) for c in str(node["threshold"]).split("||"))
        self.threshold.append(0.0 if leaf or by_set else float(node["threshold"]))
        self.missing.append(not leaf and not by_set and self._missing_left(node))
        return i

    def _missing_left(self, node: Any) -> bool:
        if node["missing_type"] == "None":
            return float(node["threshold"]) >= 0.0  # a missing value is taken for zero
        self.zero |= node["missing_type"] == "Zero"
        return bool(node["default_left"])


def _tree(tree: Any, output: int, outputs: int, source: Source) -> RawTree:
    flat = _Flat()
    stack = [(tree["tree_structure"], -1, "")]
    while stack:
        node, parent, side = stack.pop()
        i = flat.add(node, source.where)
        if parent >= 0:
            getattr(flat, side)[parent] = i
        if "leaf_value" not in node:
            stack += [(node["right_child"], i, "right"), (node["left_child"], i, "left")]
    value = np.zeros((len(flat.column), outputs))
    value[:, output] = flat.value
    raw = RawTree(
        np.array(flat.column, dtype=np.int64),
        np.array(flat.threshold, dtype=np.float64),
        np.array(flat.left, dtype=np.int64),
        np.array(flat.right, dtype=np.int64),
        value,
        np.array(flat.missing, dtype=np.bool_),
        flat.sets,
    )
    if not flat.zero:
        return raw
    return with_hole(raw, -_ZERO, _ZERO, float(np.nextafter(-_ZERO, -1.0)), _ZERO, _at_most)


def _at_most(z: FloatArray, threshold: FloatArray) -> npt.NDArray[np.bool_]:
    """Compare as LightGBM does: in float64, and a value next to zero is zero."""
    return float64_at_most(np.where(np.abs(z) <= _ZERO, 0.0, z), threshold)
