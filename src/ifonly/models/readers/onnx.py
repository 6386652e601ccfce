"""Reader of ONNX graphs: networks and linear models as exported by torch and skl2onnx; trees are in `onnx_trees`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.data.schema import Integer
from ifonly.errors import UnsupportedModel, did_you_mean
from ifonly.models.forms.network import Graph, Signal
from ifonly.models.forms.steps import Lift
from ifonly.models.links import NoLink
from ifonly.models.read import Read
from ifonly.models.readers.onnx_trees import Ensemble, Input, read_ensemble
from ifonly.models.reading.graphs import Linked, agrees, as_classifier, as_regressor, clip, combine, joined, received
from ifonly.models.reading.source import Source
from ifonly.models.registry import reads

__all__: list[str] = []

_STRING, _INT64 = 8, 7


@reads("onnx", "ModelProto")
@reads("onnxruntime", "InferenceSession")
def read_bare_onnx(model: Any, source: Source) -> Read:
    """A bare graph has no `predict`, so there is nothing to confirm an answer with."""
    raise UnsupportedModel(
        f"{source.where}{type(model).__name__} is an ONNX graph, which has no predict. Wrap it: OnnxClassifier(model) "
        "or OnnxRegressor(model) from ifonly.adapters."
    )


@reads("ifonly", "OnnxClassifier")
def read_onnx_classifier(adapter: Any, source: Source) -> Read:
    """The scores in front of the last sigmoid or softmax of the graph's last output."""
    walk = _Walk(adapter, source)
    value = walk.value(walk.graph.output[-1].name)
    if isinstance(value, Ensemble):
        read = value.classifier(tuple(adapter.classes_.tolist()), source.where)
    else:
        read = walk.filling(as_classifier(adapter, walk.scores(value), walk.network, source))
    if not hasattr(adapter, "predict_proba"):
        read = replace(read, link=NoLink())
    return agrees(read, adapter, source)


@reads("ifonly", "OnnxRegressor")
def read_onnx_regressor(adapter: Any, source: Source) -> Read:
    """The graph's first output."""
    walk = _Walk(adapter, source)
    value = walk.value(walk.graph.output[0].name)
    if isinstance(value, Ensemble):
        return agrees(value.regressor(source.where), adapter, source)
    read = as_regressor(adapter, walk.scores(value), walk.network, source)
    return agrees(walk.filling(read), adapter, source)


@dataclass(frozen=True, eq=False)
class _Complement:
    """``1 - p`` of a sigmoid, which skl2onnx puts in front of ``p`` as the first class's probability."""

    of: Linked


class _Walk:
    """Symbolic evaluation of a graph: tensors by name, and only those that are asked for."""

    def __init__(self, adapter: Any, source: Source) -> None:
        import onnx  # noqa: PLC0415 - an optional framework

        self.adapter, self.where = adapter, source.where
        self.model = onnx.load_from_string(bytes(adapter.model))
        self.graph = self.model.graph
        self.received = received(adapter, source)
        # Trees look at the columns themselves, one by one; all other operations need them affine.
        trees = any(node.op_type.startswith("TreeEnsemble") for node in self.graph.node)
        self.lift = Lift.none(source.schema) if trees else Lift.of(self.received)
        self.source = self.lift.source(self.received)
        self.network = Graph(self.source.schema)
        self._known: dict[str, Any] = {i.name: _array(i) for i in self.graph.initializer}
        self._maker = {name: node for node in self.graph.node for name in node.output}
        self._feed([i for i in self.graph.input if i.name not in self._known])

    def filling(self, read: Read) -> Read:
        """Return what was read of a network, with what its transformers fill in."""
        return self.lift.read(read, self.received)

    def _feed(self, inputs: Sequence[Any]) -> None:
        """Give each input its columns: all of them to a single one, else as many as each declares, in order."""
        columns = self.source.columns
        names, shown = [i.name for i in inputs], [c.name for c in columns]
        if len(inputs) > 1 and set(names) == set(shown) and names != shown:
            raise UnsupportedModel(
                f"{self.where}the ONNX graph takes its inputs in another order than the data has them. Pass "
                f"columns={names!r} to {type(self.adapter).__name__}."
            )
        first = 0
        for item in inputs:
            tensor = item.type.tensor_type
            dims = tensor.shape.dim
            declared = dims[1].dim_value if len(dims) > 1 else 1
            width = len(columns) if len(inputs) == 1 else declared or 1
            if (declared and declared != width) or first + width > len(columns):
                raise UnsupportedModel(
                    f"{self.where}the ONNX graph takes {declared} columns in {item.name!r}, but the data has "
                    f"{len(columns)}. Pass columns=[...] or transform=... to {type(self.adapter).__name__}."
                )
            part = replace(self.source, columns=columns[first : first + width])
            self._check_type(item.name, tensor.elem_type, part)
            self._known[item.name] = Input(part, self.network)
            first += width

    def _check_type(self, name: str, kind: int, part: Source) -> None:
        if kind == _STRING:
            raise UnsupportedModel(
                f"{self.where}the ONNX graph takes text in {name!r}. Export the model behind its encoder, and give the "
                f"fitted encoder to {type(self.adapter).__name__}(transform=...)."
            )
        features = [part.schema.features[j] for c in part.columns for j in c.features]
        if kind == _INT64 and not all(isinstance(f, Integer) for f in features):
            raise UnsupportedModel(
                f"{self.where}the ONNX graph takes whole numbers in {name!r}, but the data has others. Export it with "
                "a float input."
            )

    def value(self, name: str) -> Any:
        """Return what a tensor is: a constant, a signal, linked scores or an ensemble of trees."""
        if name not in self._known:
            node = self._maker.get(name)
            if node is None:
                raise UnsupportedModel(f"{self.where}the ONNX graph has no tensor {name!r}.")
            for output, value in zip(node.output, self._run(node), strict=False):
                self._known[output] = value
        return self._known[name]

    def scores(self, value: Any) -> Any:
        """Return a value with an input's columns turned into a signal."""
        return value.signal(type(self.adapter).__name__) if isinstance(value, Input) else value

    def _run(self, node: Any) -> tuple[Any, ...]:
        """Return the outputs of a node."""
        from onnx import helper  # noqa: PLC0415 - an optional framework

        options = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        kind, name = node.op_type, f"node {node.name or node.output[0]!r} ({node.op_type})"
        if kind.startswith("TreeEnsemble"):
            return read_ensemble(kind, options, self.value(node.input[0]), self, node.input[0])
        operation = _OPERATIONS.get(kind)
        if operation is None:
            raise UnsupportedModel(
                f"{self.where}{name} is not piecewise linear, or is not known.{did_you_mean(kind, _OPERATIONS)} What "
                f"can be read: {', '.join(sorted(_OPERATIONS))} and tree ensembles."
            )
        values = [self.value(i) if i else None for i in node.input]
        if kind not in _PASSING:
            values = [self.scores(v) for v in values]
        try:
            result = operation(_Node(options, values, self.network))
        except (ValueError, AttributeError) as error:
            raise UnsupportedModel(f"{self.where}{name} cannot be read: {error}.") from error
        return result if isinstance(result, tuple) else (result,)


def _array(tensor: Any) -> npt.NDArray[Any]:
    from onnx import numpy_helper  # noqa: PLC0415 - an optional framework

    return np.asarray(numpy_helper.to_array(tensor))


@dataclass(frozen=True, eq=False)
class _Node:
    """One operation: its attributes, the values that come in, and the network that grows."""

    options: Mapping[str, Any]
    values: Sequence[Any]
    network: Graph

    @property
    def signal(self) -> Signal:
        """The first value, which must still be a vector of the network."""
        if not isinstance(self.values[0], Signal):
            raise ValueError("it comes after a sigmoid, a softmax or trees")  # noqa: TRY004 - becomes a refusal
        return self.values[0]


Operation = Callable[[_Node], Any]
_OPERATIONS: dict[str, Operation] = {}
_PASSING = frozenset({"Identity", "Cast", "Dropout", "Flatten", "Reshape", "Squeeze", "Imputer", "ZipMap"})


def _operation(*names: str) -> Callable[[Operation], Operation]:
    def register(function: Operation) -> Operation:
        _OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return register


@_operation(*_PASSING)
def _same(node: _Node) -> Any:
    return node.values[0]


@_operation("Constant")
def _constant(node: _Node) -> Any:
    value = next(iter(node.options.values()))
    return _array(value) if hasattr(value, "dims") else np.asarray(value)


@_operation("Gemm")
def _gemm(node: _Node) -> Any:
    """``alpha * x @ B + beta * C``."""
    B = np.asarray(node.values[1], dtype=np.float64) * node.options.get("alpha", 1.0)
    if node.options.get("transA", 0):
        raise ValueError("it transposes its input")
    bias = node.values[2] if len(node.values) > 2 and node.values[2] is not None else 0.0
    shift = np.asarray(bias, dtype=np.float64) * node.options.get("beta", 1.0)
    return node.signal.affine(B if node.options.get("transB", 0) else B.T, shift)


@_operation("MatMul")
def _matmul(node: _Node) -> Any:
    if isinstance(node.values[1], Signal):
        raise ValueError("it multiplies two signals")  # noqa: TRY004 - becomes a refusal
    return node.signal.affine(np.asarray(node.values[1], dtype=np.float64).T)


def _arithmetic(sign: str) -> Operation:
    def operation(node: _Node) -> Any:
        a, b = node.values
        if sign == "sub" and isinstance(b, Linked) and b.link == "sigmoid" and np.all(np.asarray(a) == 1):
            return _Complement(b)
        if any(isinstance(v, (Linked, _Complement, Ensemble)) for v in node.values):
            raise ValueError("it comes after a sigmoid, a softmax or trees")
        return combine(sign, a, b)

    return operation


_OPERATIONS.update({"Add": _arithmetic("add"), "Sub": _arithmetic("sub")})
_OPERATIONS.update({"Mul": _arithmetic("mul"), "Div": _arithmetic("div")})


@_operation("Relu")
def _relu(node: _Node) -> Any:
    return node.network.rectify(node.signal)


@_operation("LeakyRelu")
def _leaky_relu(node: _Node) -> Any:
    return node.network.rectify(node.signal, node.options.get("alpha", 0.01))


@_operation("PRelu")
def _prelu(node: _Node) -> Any:
    return node.network.rectify(node.signal, node.values[1])


@_operation("Abs")
def _abs(node: _Node) -> Any:
    return node.network.rectify(node.signal, -1.0)


@_operation("Neg")
def _neg(node: _Node) -> Any:
    return node.signal.scaled(-1.0)


@_operation("Clip")
def _clip(node: _Node) -> Any:
    given = [*node.values[1:], None, None][:2]
    ends = [node.options.get(name) if v is None else float(v) for name, v in zip(("min", "max"), given, strict=True)]
    return clip(node.network, node.signal, *ends)


@_operation("Concat", "FeatureVectorizer")
def _concat(node: _Node) -> Any:
    if node.options.get("axis", 1) not in (1, -1):
        raise ValueError(f"it joins along axis {node.options['axis']}, not along the columns")
    first, last = node.values[0], node.values[-1]
    if isinstance(first, _Complement) and first.of is last and len(node.values) == 2:
        return last
    return joined(node.values)


@_operation("Gather", "ArrayFeatureExtractor")
def _pick(node: _Node) -> Any:
    if node.options.get("axis", 1) not in (1, -1):
        raise ValueError("it picks rows, not columns")
    return node.signal.pick(np.asarray(node.values[1], dtype=np.int64).reshape(-1))


@_operation("Scaler")
def _scaler(node: _Node) -> Any:
    """``(x - offset) * scale``."""
    scale = np.asarray(node.options.get("scale", [1.0]), dtype=np.float64)
    offset = np.asarray(node.options.get("offset", [0.0]), dtype=np.float64)
    return node.signal.scaled(scale, -offset * scale)


@_operation("BatchNormalization")
def _batch_norm(node: _Node) -> Any:
    """``(x - mean) / sqrt(var + eps) * scale + bias``."""
    if node.options.get("training_mode", 0):
        raise ValueError("it is in training mode, so a row's score would depend on the other rows")
    scale, bias, mean, var = (np.asarray(v, dtype=np.float64) for v in node.values[1:5])
    factor = scale / np.sqrt(var + node.options.get("epsilon", 1e-5))
    return node.signal.scaled(factor, bias - mean * factor)


@_operation("Sigmoid")
def _sigmoid(node: _Node) -> Any:
    return Linked(node.signal, "sigmoid")


@_operation("Softmax")
def _softmax(node: _Node) -> Any:
    if node.options.get("axis", -1) not in (1, -1):
        raise ValueError(f"it runs along axis {node.options['axis']}, not along the classes")
    return Linked(node.signal, "softmax")


@_operation("LogSoftmax")
def _log_softmax(node: _Node) -> Any:
    return replace(_softmax(node), link="log_softmax")


@_operation("Normalizer")
def _normalizer(node: _Node) -> Any:
    """Probabilities divided by their sum; on anything but probabilities it is not piecewise linear."""
    value = node.values[0]
    if not isinstance(value, (Linked, Ensemble)) or node.options.get("norm", b"MAX") != b"L1":
        raise ValueError("it divides each row by its norm, which is not piecewise linear; scale by columns instead")
    if isinstance(value, Linked) and value.link == "sigmoid" and value.signal.size > 1:
        return replace(value, link="normalised")
    return value


@_operation("LinearRegressor")
def _linear_regressor(node: _Node) -> Any:
    if node.options.get("post_transform", b"NONE") != b"NONE":
        raise ValueError(f"it ends in {node.options['post_transform'].decode()}")
    rows = np.asarray(node.options["coefficients"], dtype=np.float64).reshape(node.options.get("targets", 1), -1)
    return node.signal.affine(rows, np.asarray(node.options.get("intercepts", [0.0]), dtype=np.float64))


@_operation("LinearClassifier")
def _linear_classifier(node: _Node) -> Any:
    """A label, and scores behind the transform; two opposite rows with a sigmoid are one score."""
    intercepts = np.asarray(node.options["intercepts"], dtype=np.float64)
    rows = np.asarray(node.options["coefficients"], dtype=np.float64).reshape(len(intercepts), -1)
    signal = node.signal.affine(rows, intercepts)
    after = node.options.get("post_transform", b"NONE").decode()
    if after == "NONE":
        return None, signal
    if after not in ("LOGISTIC", "SOFTMAX"):
        raise ValueError(f"it ends in {after}")
    if after == "SOFTMAX":
        return None, Linked(signal, "softmax")
    if len(rows) == 2 and np.array_equal(rows[0], -rows[1]) and intercepts[0] == -intercepts[1]:
        signal = signal.pick([1])
    return None, Linked(signal, "sigmoid")
