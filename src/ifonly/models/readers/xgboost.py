"""Reader of XGBoost: its JSON model, strict comparisons in float32, and its own base score."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import UnsupportedModel
from ifonly.models.form import Form
from ifonly.models.forms.linear import Linear
from ifonly.models.read import Read
from ifonly.models.readers.sklearn_linear import labels_of
from ifonly.models.reading.assemble import RawTree, assemble, float32_below
from ifonly.models.reading.codes import coded, with_hole
from ifonly.models.reading.links import log, logistic, logit
from ifonly.models.reading.source import Source
from ifonly.models.registry import reads
from ifonly.tolerances import SAME_FILE, SPACING_OF_FLOAT32

__all__ = ["read_booster"]

# The largest score whose sigmoid is not above one half in float32, in which XGBoost compares.
_LAST_SCORE_OF_HALF = 1.5 * 2.0**-24
_LOGISTIC = frozenset({"binary:logistic", "reg:logistic"})
_LOG = frozenset({"count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"})
_OTHER = frozenset({"binary:hinge", "binary:logitraw", "multi:softmax", "multi:softprob"})
_PLAIN = frozenset(
    {
        "reg:squarederror",
        "reg:squaredlogerror",
        "reg:pseudohubererror",
        "reg:absoluteerror",
        "reg:quantileerror",
        "rank:pairwise",
        "rank:ndcg",
        "rank:map",
    }
)


@reads("xgboost", "XGBClassifier", "XGBRFClassifier")
def read_classifier(estimator: Any, source: Source) -> Read:
    """Scores before the sigmoid or softmax, from the rounds that `predict` uses."""
    return read_booster(estimator.get_booster(), source, labels_of(estimator), _rounds(estimator), estimator.missing)


@reads("xgboost", "XGBRegressor", "XGBRFRegressor", "XGBRanker")
def read_regressor(estimator: Any, source: Source) -> Read:
    """The value before its output transform, from the rounds that `predict` uses."""
    return read_booster(estimator.get_booster(), source, (), _rounds(estimator), estimator.missing)


@reads("xgboost", "Booster")
def refuse_booster(booster: Any, source: Source) -> Read:
    """A native booster takes a DMatrix, so there is nothing to confirm an answer with."""
    raise UnsupportedModel(
        f"{source.where}a native {type(booster).__name__} has no predict for frames. Wrap it: "
        "BoosterClassifier(booster, classes) or BoosterRegressor(booster) from ifonly.adapters."
    )


def _rounds(estimator: Any) -> int | None:
    """Return how many rounds the estimator predicts with; None means all."""
    try:
        return int(estimator.best_iteration) + 1
    except AttributeError:
        return None


def read_booster(
    booster: Any, source: Source, classes: tuple[Any, ...], rounds: int | None = None, missing: float = np.nan
) -> Read:
    """Return a booster as a classifier over `classes`, or as a regressor when there are none."""
    model = json.loads(booster.save_raw("json"))["learner"]
    objective = model["objective"]["name"]
    base = _base(model, objective, source)
    if model["gradient_booster"]["name"] == "gblinear":
        form: Form = _linear(model, base, source)
        _confirmed(form, booster, source, None, missing)
        return _finish(form, objective, classes, source, piecewise=False, missing=frozenset())
    inner = coded(source, _categories(model), unknown_is_missing=False)
    trees = _trees(model, len(base), rounds, source)
    # What a sparse matrix does not store is missing to XGBoost, not zero.
    sparse = hasattr(source.evaluate(source.base[None, :]), "tocsr")
    for value in ([0.0] if sparse else []) + ([] if np.isnan(missing) else [float(np.float32(missing))]):
        after = float(np.nextafter(np.float32(value), np.float32(np.inf)))
        trees = [with_hole(t, value, value, value, after, float32_below) for t in trees]
    form = assemble(inner, trees, base, float32_below, dtype=np.float32)
    _confirmed(form, booster, source, rounds, missing)
    return _finish(form, objective, classes, source, piecewise=True, missing=inner.may_miss(True))


# -- how scores become predictions ----------------------------------------------------------------------------------
def _finish(
    form: Form, objective: str, classes: tuple[Any, ...], source: Source, *, piecewise: bool, missing: frozenset[int]
) -> Read:
    read = partial(Read, form, piecewise_constant=piecewise, accepts_missing=missing, rounding=SPACING_OF_FLOAT32)
    if not classes:
        if form.n_outputs != 1:
            raise UnsupportedModel(
                f"{source.where}this XGBoost model predicts {form.n_outputs} outputs at once. Fit one model per output "
                "and explain the one you ask about."
            )
        return _regression(read, objective, source)
    if objective.startswith("multi:") and form.n_outputs == len(classes) > 2:
        return read(classes, "argmax", "softmax")
    if form.n_outputs == 1 and len(classes) == 2:
        if objective in _LOGISTIC:
            return read(classes, "sign", "sigmoid", threshold=_LAST_SCORE_OF_HALF if piecewise else 0.0)
        if objective == "binary:hinge":
            return read(classes, "sign")
        if objective == "binary:logitraw":
            return read(classes, "sign", threshold=0.5)
    raise UnsupportedModel(
        f"{source.where}the XGBoost objective {objective!r} with {form.n_outputs} scores for {len(classes)} classes "
        "cannot be read. Supported: binary:logistic, binary:hinge, binary:logitraw, multi:softprob, multi:softmax."
    )


def _regression(read: Callable[..., Read], objective: str, source: Source) -> Read:
    if objective in _PLAIN or objective == "binary:logitraw":
        return read()
    if objective in _LOG:
        return read(link_forward=np.exp, link_inverse=log)
    if objective in _LOGISTIC:
        return read(link_forward=logistic, link_inverse=logit)
    raise UnsupportedModel(
        f"{source.where}the XGBoost objective {objective!r} cannot be read. Supported for regression: "
        f"{', '.join(sorted(_PLAIN | _LOG))}, reg:logistic."
    )


# -- the JSON model -------------------------------------------------------------------------------------------------
def _base(model: Any, objective: str, source: Source) -> FloatArray:
    """Return the scores that boosting starts from; the file holds them as predictions."""
    if objective not in _LOGISTIC | _LOG | _PLAIN | _OTHER:
        raise UnsupportedModel(
            f"{source.where}the XGBoost objective {objective!r} is not known, so neither is what its base score means."
        )
    parameters = model["learner_model_param"]
    text = parameters["base_score"]
    given = np.atleast_1d(np.array(json.loads(text.lower()), dtype=np.float32))
    outputs = max(int(parameters["num_class"]), int(parameters.get("num_target", 1)), 1)
    base = np.broadcast_to(given, (outputs,)).astype(np.float32)
    # XGBoost's logarithm is right to the last digit of float32, NumPy's is not; the one in float64 is, once rounded.
    if objective in _LOGISTIC:
        odds = (np.float32(1.0) / base - np.float32(1.0)).astype(np.float64)
        base = -np.log(odds).astype(np.float32)
    elif objective in _LOG:
        base = np.log(base.astype(np.float64)).astype(np.float32)
    return base.astype(np.float64)


def _trees(model: Any, outputs: int, rounds: int | None, source: Source) -> list[RawTree]:
    booster = model["gradient_booster"]
    weights = booster.get("weight_drop")
    inner = booster["gbtree"]["model"] if "gbtree" in booster else booster["model"]
    ends = inner.get("iteration_indptr") or _ends(inner, outputs)
    used = ends[-1] if rounds is None else ends[min(rounds, len(ends) - 1)]
    trees: list[RawTree] = []
    for t, group in zip(inner["trees"][:used], inner["tree_info"][:used], strict=True):
        if int(t["tree_param"]["size_leaf_vector"]) > 1:
            raise UnsupportedModel(
                f"{source.where}XGBoost with multi_strategy='multi_output_tree' has a vector in each leaf. Fit it with "
                "multi_strategy='one_output_per_tree'."
            )
        factor = np.float32(1.0 if weights is None else weights[len(trees)])
        trees.append(_tree(t, int(group), outputs, factor))
    return trees


def _ends(inner: Any, outputs: int) -> Sequence[int]:
    """Return where each round ends, for files that do not say."""
    per_round = int(inner["gbtree_model_param"]["num_parallel_tree"]) * outputs
    return list(range(0, len(inner["trees"]) + 1, per_round))


def _tree(tree: Any, output: int, outputs: int, factor: np.float32) -> RawTree:
    left = np.array(tree["left_children"], dtype=np.int64)
    right = np.array(tree["right_children"], dtype=np.int64)
    leaf, own = left < 0, np.arange(len(left))
    split = np.array(tree["split_conditions"], dtype=np.float32)
    value = np.zeros((len(left), outputs))
    value[:, output] = np.where(leaf, split * factor, np.float32(0.0))
    missing = np.array(tree["default_left"], dtype=np.bool_)
    sets = {}
    for node, start, size in zip(
        tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
    ):
        # The file lists the categories that go right; here a set goes left, so the children change places.
        sets[int(node)] = frozenset(float(c) for c in tree["categories"][start : start + size])
        left[node], right[node], missing[node] = right[node], left[node], not missing[node]
    return RawTree(
        column=np.where(leaf, -1, np.array(tree["split_indices"], dtype=np.int64)),
        threshold=split.astype(np.float64),
        left=np.where(leaf, own, left),
        right=np.where(leaf, own, right),
        value=value,
        missing_left=missing,
        categories=sets,
    )


def _categories(model: Any) -> dict[int, list[Any]]:
    """Return the levels of each category column in the model's order, where the file holds them."""
    stored = model["gradient_booster"].get("model", model["gradient_booster"].get("gbtree", {}).get("model", {}))
    encoded = stored.get("cats", {}).get("enc", [])
    out: dict[int, list[Any]] = {}
    for c, column in enumerate(encoded):
        if column.get("offsets"):
            text, ends = bytes(v % 256 for v in column["values"]), column["offsets"]
            out[c] = [text[a:b].decode() for a, b in pairwise(ends)]
        elif column.get("values"):
            out[c] = list(column["values"])
    return out


def _linear(model: Any, base: FloatArray, source: Source) -> Linear:
    """A linear booster: one row of weights per feature, and the biases last; all start from the first base score."""
    weights = np.array(model["gradient_booster"]["model"]["weights"], dtype=np.float64)
    table = weights.reshape(-1, len(base))
    return Linear(source.schema, *source.linear(table[:-1].T, table[-1] + base[0], "XGBoost's gblinear"))


def _confirmed(form: Form, booster: Any, source: Source, rounds: int | None, missing: float) -> None:
    """Compare one row with the booster itself: what a file's numbers mean has changed between versions."""
    import xgboost  # noqa: PLC0415 - an optional framework

    data = xgboost.DMatrix(source.evaluate(source.base[None, :]), missing=missing, enable_categorical=True)
    own = booster.predict(data, output_margin=True, iteration_range=(0, rounds or 0), validate_features=False).reshape(
        -1
    )
    ours = form(source.base[None, :])[0]
    if np.abs(own - ours).max() > SAME_FILE * max(1.0, float(np.abs(own).max())):
        raise UnsupportedModel(
            f"{source.where}the XGBoost model gives {own.tolist()} where its file says {ours.tolist()}: a version "
            f"({xgboost.__version__}) whose files mean something else. Please report this."
        )
