"""Reader of CatBoost: its JSON export, symmetric and free trees, one-hot splits by the model's own hashes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.errors import UnsupportedModel
from ifonly.models.read import Read
from ifonly.models.readers.catboost_statistics import Question, Statistics, Unfolded
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.reading.assemble import RawTree, assemble
from ifonly.models.reading.links import log, logistic
from ifonly.models.reading.source import Source
from ifonly.models.registry import reads

__all__ = ["read_booster"]

_PLAIN = frozenset(
    {"RMSE", "MAE", "Quantile", "Huber", "LogCosh", "MAPE", "Expectile", "Lq", "LogLinQuantile", "NumErrors"}
)
_LOG = frozenset({"Poisson", "Tweedie"})


@reads("catboost", "CatBoostClassifier")
def read_classifier(estimator: Any, source: Source) -> Read:
    """Scores before the sigmoid or softmax."""
    return read_booster(estimator, source, labels_of(estimator))


@reads("catboost", "CatBoostRegressor", "CatBoostRanker")
def read_regressor(estimator: Any, source: Source) -> Read:
    """The value before its output transform."""
    return read_booster(estimator, source, ())


@reads("catboost", "CatBoost")
def refuse_booster(booster: Any, source: Source) -> Read:
    """A bare CatBoost predicts raw scores, whatever it was trained for."""
    raise UnsupportedModel(
        f"{source.where}a bare {type(booster).__name__} predicts raw scores. Wrap it: "
        "BoosterClassifier(booster, classes) or BoosterRegressor(booster) from ifonly.adapters."
    )


def read_booster(booster: Any, source: Source, classes: tuple[Any, ...]) -> Read:
    """Return a booster as a classifier over `classes`, or as a regressor when there are none."""
    model = _exported(booster, source)
    layout = _Layout.of(model, source)
    scale, bias = model["scale_and_bias"]
    base = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    inner = replace(source, evaluate=layout.encode, columns=layout.columns)
    statistics = _statistics(model, layout, inner)
    if "oblivious_trees" in model:
        trees = [_symmetric(t, len(base), scale, layout, statistics) for t in model["oblivious_trees"]]
    else:
        trees = [_free(t, len(base), scale, layout, statistics) for t in model["trees"]]
    form = assemble(inner, trees, base)
    missing = layout.may_miss & inner.may_miss(True)
    read = partial(Read, form, piecewise_constant=True, accepts_missing=missing)
    loss = model["model_info"]["params"]["loss_function"]["type"]
    if classes:
        return _classification(read, booster, loss, len(base), classes, source)
    if len(base) != 1:
        raise UnsupportedModel(
            f"{source.where}this CatBoost model ({loss}) predicts {len(base)} outputs at once. Fit one model per "
            "output and explain the one you ask about."
        )
    if loss in _LOG:
        return read(link_forward=np.exp, link_inverse=log)
    if loss in _PLAIN or loss.startswith(("YetiRank", "PairLogit", "Query", "StochasticRank")):
        return read()
    raise UnsupportedModel(
        f"{source.where}the CatBoost loss {loss!r} cannot be read. Supported for regression: "
        f"{', '.join(sorted(_PLAIN | _LOG))}."
    )


def _classification(
    read: Callable[..., Read], booster: Any, loss: str, outputs: int, classes: tuple[Any, ...], source: Source
) -> Read:
    if loss in ("Logloss", "CrossEntropy") and outputs == 1 and len(classes) == 2:
        return read(classes, "sign", "sigmoid", threshold=_threshold(booster))
    if loss == "MultiClass" and outputs == len(classes):
        return read(classes, "argmax", "softmax")
    if loss == "MultiClassOneVsAll" and outputs == len(classes):
        # One sigmoid per class, not divided by their sum.
        return read(classes, "argmax", "normalised", link_forward=logistic)
    raise UnsupportedModel(
        f"{source.where}the CatBoost loss {loss!r} with {outputs} scores for {len(classes)} classes cannot be read. "
        "Supported: Logloss, CrossEntropy, MultiClass, MultiClassOneVsAll."
    )


def _threshold(booster: Any) -> float:
    """Return the score above which the second class is predicted; a user may have moved it."""
    notes = booster.get_metadata()
    if "binclass_probability_threshold" not in notes.keys():  # noqa: SIM118 - not a dict, and not iterable
        return 0.0
    p = float(notes["binclass_probability_threshold"])
    return -np.inf if p <= 0.0 else np.inf if p >= 1.0 else float(np.log(p) - np.log1p(-p))


# -- what the model receives ----------------------------------------------------------------------------------------
def _exported(booster: Any, source: Source) -> Any:
    """Return the JSON export; given a row per level, it holds the hash of each of them too."""
    import catboost  # noqa: PLC0415 - an optional framework

    features = source.schema.features
    rows = [source.base[None, :]]
    rows += [source.vary_levels(j) for j, f in enumerate(features) if not isinstance(f, Numeric)]
    columns = booster.get_cat_feature_indices()
    pool = catboost.Pool(source.evaluate(np.concatenate(rows)), cat_features=columns) if columns else None
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        booster.save_model(str(path), format="json", pool=pool)
        return json.loads(path.read_text())


@dataclass(frozen=True, eq=False)
class _Layout:
    """Layout of the model's input: the column of the data that each of its features is, and the hash of each category."""

    source: Source
    numbers: Mapping[int, int]
    categories: Mapping[int, int]
    hashes: Mapping[str, float]
    missing_right: frozenset[int]

    @classmethod
    def of(cls, model: Any, source: Source) -> _Layout:
        info = model["features_info"]
        floats, categories = info.get("float_features", []), info.get("categorical_features", [])
        nan = {int(f["flat_feature_index"]): f["nan_value_treatment"] for f in floats}
        return cls(
            source,
            {int(f["feature_index"]): int(f["flat_feature_index"]) for f in floats},
            {int(f["feature_index"]): int(f["flat_feature_index"]) for f in categories},
            {str(entry["value"]): float(_signed(entry["hash"])) for entry in info.get("cat_features_hash", [])},
            frozenset(c for c, treatment in nan.items() if treatment == "AsTrue"),
        )

    @property
    def columns(self) -> Any:
        """The source's columns, with a hash in place of each category."""
        coded = set(self.categories.values())
        return tuple(
            replace(c, weights=None, why="hashed by CatBoost", labels=False, identity=False, branch=None)
            if k in coded
            else c
            for k, c in enumerate(self.source.columns)
        )

    @property
    def may_miss(self) -> frozenset[int]:
        """The features that may be missing: numbers; a missing category is refused."""
        return frozenset(j for c in self.numbers.values() for j in self.source.columns[c].features)

    def encode(self, U: FloatArray) -> FloatArray:
        """Return what the model compares: numbers, and hashes of categories."""
        Z = self.source.evaluate(U)
        coded = set(self.categories.values())
        out = np.empty(Z.shape)
        for c in range(Z.shape[1]):
            column = Z.iloc[:, c].to_numpy() if hasattr(Z, "iloc") else Z[:, c]
            if c in coded:
                out[:, c] = [self.hashes.get(_text(v), np.nan) for v in column]
            else:
                out[:, c] = np.asarray(column, dtype=np.float64)
        return out

    def split(self, split: Any) -> tuple[int, float, frozenset[float] | None, bool]:
        """Return column, border, the hashes that go left and where a missing value goes, for one split."""
        kind = split["split_type"]
        if kind == "FloatFeature":
            c = self.numbers[int(split["float_feature_index"])]
            return c, float(split["border"]), None, c not in self.missing_right
        if kind != "OneHotFeature":
            raise UnsupportedModel(
                f"{self.source.where}CatBoost splits on {kind!r}, of text or embeddings, which is no split on one "
                "feature. Leave them out, or encode them in a Pipeline."
            )
        c = self.categories[int(split["cat_feature_index"])]
        others = frozenset(self.hashes.values()) - {float(split["value"])}
        return c, 0.0, others, True


def _text(level: Any) -> str:
    """Return a level as CatBoost spells it before hashing."""
    return str(int(level)) if isinstance(level, (bool, np.bool_)) else str(level)


def _signed(value: int) -> int:
    """The export holds hashes as unsigned numbers in one place and as signed ones in another."""
    return value - 2**32 if value >= 2**31 else value


def _statistics(model: Any, layout: _Layout, inner: Source) -> Statistics:
    """Return the reader of the model's statistics of categories, in the columns of the data."""

    def codes(feature: int) -> tuple[int, list[float]]:
        c = layout.categories[feature]
        owners = sorted(inner.columns[c].features)
        if not owners:
            return c, [float(v) for v in inner.values(inner.base[None, :], c)]
        if len(owners) > 1 or isinstance(inner.schema.features[owners[0]], Numeric):
            name = inner.schema.names[owners[0]]
            raise UnsupportedModel(
                f"{inner.where}CatBoost takes the numeric column {name!r} for categories. Say so: Schema.infer(X, "
                f"categorical=[{name!r}])."
            )
        return c, [float(v) for v in inner.at_levels(owners[0], c)]

    def question(split: Any) -> Question:
        c, border, left, missing_left = layout.split(split)
        return Question(c, border, left, missing_left)

    return Statistics(
        model,
        codes,
        lambda f, border: question({"split_type": "FloatFeature", "float_feature_index": f, "border": border}),
        lambda f, value: question({"split_type": "OneHotFeature", "cat_feature_index": f, "value": value}),
        inner.where,
        inner.tuning.most_nodes,
    )


def _asked(split: Any, nodes: Unfolded, no: int, yes: int, layout: _Layout, statistics: Statistics) -> int:
    """Add a split to a tree that is unfolded: on a statistic, or as it is."""
    if split["split_type"] == "OnlineCtr":
        return statistics.unfold(split, nodes, no, yes)
    return nodes.ask(Question(*layout.split(split)), no, yes)


# -- trees ----------------------------------------------------------------------------------------------------------
def _symmetric(tree: Any, outputs: int, scale: float, layout: _Layout, statistics: Statistics) -> RawTree:
    """A symmetric tree asks the same question at all nodes of a level; answer `i` is bit `i` of the leaf's number."""
    if any(s["split_type"] == "OnlineCtr" for s in tree["splits"] or []):
        nodes = Unfolded(outputs)
        values = scale * np.asarray(tree["leaf_values"], dtype=np.float64).reshape(-1, outputs)
        top = [nodes.leaf(value) for value in values]
        for i in range(len(tree["splits"]) - 1, -1, -1):
            half, asked = 2**i, tree["splits"][i]
            top = [_asked(asked, nodes, top[p], top[p + half], layout, statistics) for p in range(half)]
        return nodes.tree(top[0])
    splits = [layout.split(s) for s in tree["splits"] or []]
    depth = len(splits)
    inner, leaves = 2**depth - 1, 2**depth
    own = np.arange(inner + leaves)
    level = np.floor(np.log2(own[:inner] + 1)).astype(np.int64)
    column, threshold = np.full(len(own), -1, dtype=np.int64), np.zeros(len(own))
    missing = np.zeros(len(own), dtype=np.bool_)
    sets: dict[int, frozenset[float]] = {}
    for i, (c, border, left_set, missing_left) in enumerate(splits):
        at = np.flatnonzero(level == i)
        column[at], threshold[at], missing[at] = c, border, missing_left
        if left_set is not None:
            sets |= {int(k): left_set for k in at}
    # The path to the leaf that stands at place p among the leaves is p in binary, first question first.
    place = np.arange(leaves)
    number = np.zeros(leaves, dtype=np.int64)
    for i in range(depth):
        number |= ((place >> (depth - 1 - i)) & 1) << i
    value = np.zeros((len(own), outputs))
    value[inner:] = scale * np.asarray(tree["leaf_values"], dtype=np.float64).reshape(leaves, outputs)[number]
    left = np.where(own < inner, 2 * own + 1, own)
    right = np.where(own < inner, 2 * own + 2, own)
    return RawTree(column, threshold, left, right, value, missing, sets)


def _free(tree: Any, outputs: int, scale: float, layout: _Layout, statistics: Statistics) -> RawTree:
    """A tree of its own shape, nested in the export."""
    if _has_statistic(tree):
        unfolded = Unfolded(outputs)

        def below(node: Any) -> int:
            if "split" not in node:
                return unfolded.leaf(scale * np.asarray(node["value"], dtype=np.float64).reshape(outputs))
            return _asked(node["split"], unfolded, below(node["left"]), below(node["right"]), layout, statistics)

        return unfolded.tree(below(tree))
    nodes: list[Any] = []
    children: list[list[int]] = []
    stack = [(tree, -1, 0)]
    while stack:
        node, parent, side = stack.pop()
        if parent >= 0:
            children[parent][side] = len(nodes)
        children.append([len(nodes), len(nodes)])
        if "split" in node:
            stack += [(node["right"], len(nodes), 1), (node["left"], len(nodes), 0)]
        nodes.append(node)
    n = len(nodes)
    column, threshold = np.full(n, -1, dtype=np.int64), np.zeros(n)
    missing, value = np.zeros(n, dtype=np.bool_), np.zeros((n, outputs))
    sets: dict[int, frozenset[float]] = {}
    for i, node in enumerate(nodes):
        if "split" not in node:
            value[i] = scale * np.asarray(node["value"], dtype=np.float64)
            continue
        column[i], threshold[i], left_set, missing[i] = layout.split(node["split"])
        if left_set is not None:
            sets[i] = left_set
    both = np.array(children, dtype=np.int64)
    return RawTree(column, threshold, both[:, 0], both[:, 1], value, missing, sets)


def _has_statistic(node: Any) -> bool:
    if "split" not in node:
        return False
    return node["split"]["split_type"] == "OnlineCtr" or _has_statistic(node["left"]) or _has_statistic(node["right"])
