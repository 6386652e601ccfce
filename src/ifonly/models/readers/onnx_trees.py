"""Tree ensembles inside ONNX graphs, as exported by skl2onnx: thresholds and inputs in the graph's own float type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Schema
from ifonly.errors import UnsupportedModel
from ifonly.models.forms.network import Graph, Signal
from ifonly.models.forms.trees import Trees
from ifonly.models.links import LinkName
from ifonly.models.read import Read
from ifonly.models.reading.assemble import RawTree, assemble, float32_at_most
from ifonly.models.reading.source import Column, Source

__all__ = ["Ensemble", "Input", "read_ensemble"]

_POST: dict[str, LinkName] = {"NONE": "identity", "LOGISTIC": "sigmoid", "SOFTMAX": "softmax"}
_TURNED = {"BRANCH_GT": "BRANCH_LEQ", "BRANCH_GTE": "BRANCH_LT"}


@dataclass(frozen=True, eq=False)
class Input:
    """The columns of an input; trees need only each of them, a network needs them affine."""

    source: Source
    network: Graph

    def signal(self, who: str) -> Signal:
        """Return the columns as a signal, or say which one is not affine."""
        return self.network.input(*self.source.affine(who))


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The trees of one node, how they become a decision, and the features whose gaps are filled in before them."""

    form: Trees
    link: LinkName
    threshold: float
    filled: frozenset[int]

    def classifier(self, classes: tuple[Any, ...], where: str) -> Read:
        """Return the decision: one sum belongs to the second of two classes, several to one class each."""
        if self.form.n_outputs not in {1, len(classes)}:
            raise UnsupportedModel(
                f"{where}the trees of the ONNX graph give {self.form.n_outputs} scores for {len(classes)} classes."
            )
        rule: Literal["sign", "argmax"] = "sign" if self.form.n_outputs == 1 else "argmax"
        return Read(
            self.form,
            classes,
            rule,
            self.link,
            threshold=self.threshold,
            piecewise_constant=True,
            accepts_missing=self.filled,
        )

    def regressor(self, where: str) -> Read:
        """Return the value of a regression ensemble."""
        if self.form.n_outputs != 1 or self.link != "identity":
            raise UnsupportedModel(
                f"{where}the trees of the ONNX graph give {self.form.n_outputs} outputs behind {self.link!r}; a "
                "regression model has one, as it is."
            )
        return Read(self.form, piecewise_constant=True, accepts_missing=self.filled)


def read_ensemble(kind: str, options: Mapping[str, Any], value: Any, walk: Any, name: str) -> tuple[Any, ...]:
    """Return the outputs of a TreeEnsembleClassifier (a label and scores) or TreeEnsembleRegressor (scores)."""
    prefix = {"TreeEnsembleClassifier": "class", "TreeEnsembleRegressor": "target"}.get(kind)
    after = options.get("post_transform", b"NONE").decode()
    if prefix is None or after not in _POST or options.get("aggregate_function", b"SUM") not in (b"SUM", b"AVERAGE"):
        raise UnsupportedModel(
            f"{walk.where}a {kind} node with post_transform={after!r} cannot be read. Supported: "
            "TreeEnsembleClassifier and TreeEnsembleRegressor with sums or averages, and NONE, LOGISTIC or SOFTMAX "
            "behind them."
        )
    double = "nodes_values_as_tensor" in options
    source = _source(value, walk, name)
    ids = np.asarray(options[f"{prefix}_ids"], dtype=np.int64)
    labels = next((v for k, v in options.items() if k.startswith("classlabels_") and len(v)), ())
    outputs = int(options.get("n_targets", len(labels) or 1))
    binary = prefix == "class" and outputs == 2 and not ids.any()
    if binary:
        outputs = 1
    weights = _numbers(options, f"{prefix}_weights")
    trees = _trees(options, prefix, weights, outputs, double, walk.where)
    base = np.zeros(outputs)
    given = _numbers(options, "base_values")
    base[: min(len(given), outputs)] = given[-outputs:] if len(given) else 0.0
    if options.get("aggregate_function", b"SUM") == b"AVERAGE":
        trees = [replace(t, value=t.value / len(trees)) for t in trees]
    form = assemble(source, trees, base, _float64_at_most if double else float32_at_most)
    # The runtime compares a sum of weights that are all positive with one half, and any other sum with zero.
    threshold = 0.5 if binary and bool((weights >= 0).all()) else 0.0
    ensemble = Ensemble(form, _POST[after], threshold, source.may_miss(False))
    return (None, ensemble) if prefix == "class" else (ensemble,)


def _float64_at_most(z: FloatArray, threshold: FloatArray) -> npt.NDArray[np.bool_]:
    return np.asarray(z <= threshold)


def _numbers(options: Mapping[str, Any], name: str) -> FloatArray:
    if f"{name}_as_tensor" in options:
        from onnx import numpy_helper  # noqa: PLC0415 - an optional framework

        return np.asarray(numpy_helper.to_array(options[f"{name}_as_tensor"]), dtype=np.float64)
    return np.asarray(options.get(name, []), dtype=np.float64)


def _trees(
    options: Mapping[str, Any], prefix: str, weights: FloatArray, outputs: int, double: bool, where: str
) -> list[RawTree]:
    """Return each tree, its children as positions and every comparison as ``x <= threshold``."""
    tree = np.asarray(options["nodes_treeids"], dtype=np.int64)
    node = np.asarray(options["nodes_nodeids"], dtype=np.int64)
    place = {key: i for i, key in enumerate(zip(tree.tolist(), node.tolist(), strict=True))}
    value = np.zeros((len(tree), outputs))
    leaves = zip(options[f"{prefix}_treeids"], options[f"{prefix}_nodeids"], strict=True)
    at = np.array([place[key] for key in leaves], dtype=np.int64)
    np.add.at(value, (at, np.asarray(options[f"{prefix}_ids"], dtype=np.int64)), weights)
    modes = np.array([m.decode() for m in options["nodes_modes"]])
    leaf = modes == "LEAF"
    threshold = _at_most(modes, _numbers(options, "nodes_values"), double, where)
    true, false = (
        np.array([place.get((t, c), 0) for t, c in zip(tree.tolist(), options[side], strict=True)])
        for side in ("nodes_truenodeids", "nodes_falsenodeids")
    )
    turned = np.isin(modes, list(_TURNED))
    left, right = np.where(turned, false, true), np.where(turned, true, false)
    tracks = np.asarray(options.get("nodes_missing_value_tracks_true", np.zeros(len(tree))), dtype=np.bool_)
    column = np.where(leaf, -1, np.asarray(options["nodes_featureids"], dtype=np.int64))
    out = []
    for t in np.unique(tree):
        own = np.flatnonzero(tree == t)
        # Positions within the tree; the exporters list a tree's nodes together, with its root first.
        local = np.full(len(tree), -1, dtype=np.int64)
        local[own] = np.arange(len(own))
        self_ = np.arange(len(own))
        out.append(
            RawTree(
                column=column[own],
                threshold=threshold[own],
                left=np.where(leaf[own], self_, local[left[own]]),
                right=np.where(leaf[own], self_, local[right[own]]),
                value=value[own],
                missing_left=(tracks ^ turned)[own],
            )
        )
    return out


def _at_most(modes: npt.NDArray[Any], values: FloatArray, double: bool, where: str) -> FloatArray:
    """Return thresholds of ``x <= t``; ``x < t`` is ``x <=`` the float before ``t``."""
    plain = np.array([_TURNED.get(m, m) for m in modes])
    odd = sorted(set(plain) - {"LEAF", "BRANCH_LEQ", "BRANCH_LT"})
    if odd:
        raise UnsupportedModel(f"{where}a tree of the ONNX graph splits by {odd[0]}. Supported: <=, <, >= and >.")
    kind = np.float64 if double else np.float32
    before = np.nextafter(values.astype(kind), kind(-np.inf)).astype(np.float64)
    return np.where(plain == "BRANCH_LT", before, values)


def _source(value: Any, walk: Any, name: str) -> Source:
    """Return what the trees receive: the graph's input, or a tensor computed from it by the runtime itself."""
    if isinstance(value, Input):
        return value.source
    if not isinstance(value, Signal) or value.weights.shape[1] != walk.source.schema.width:
        raise UnsupportedModel(f"{walk.where}the trees of the ONNX graph come after a network or other trees.")
    source: Source = walk.source
    probe, whole = _probe(walk, name), source.evaluate
    columns = tuple(
        _column(source.schema, w, float(c), k)
        for k, (w, c) in enumerate(zip(value.weights, value.constant, strict=True))
    )
    return replace(source, columns=columns, evaluate=lambda U: probe(whole(U)))


def _column(schema: Schema, weights: FloatArray, constant: float, k: int) -> Column:
    used = frozenset(j for j in range(len(schema)) if weights[schema.slice(j)].any())
    return Column(f"column {k}", used, weights, constant, why="a linear map inside the graph")


def _probe(walk: Any, name: str) -> Any:
    """Return a function that runs the graph up to one tensor."""
    from onnx import ModelProto, helper  # noqa: PLC0415 - an optional framework

    from ifonly.adapters.onnx import OnnxRegressor  # noqa: PLC0415 - only for graphs that transform their input

    cut = ModelProto()
    cut.CopyFrom(walk.model)
    kind = walk.graph.input[0].type.tensor_type.elem_type
    cut.graph.output.append(helper.make_tensor_value_info(name, kind, None))
    adapter = OnnxRegressor(cut)
    return lambda Z: adapter.run(Z, [name])[0]
