"""Reader of PyTorch modules, by symbolic tracing: linear layers, (leaky) rectifiers, batch norm and residual sums."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ifonly.errors import UnsupportedModel
from ifonly.models.forms.network import Graph, Signal
from ifonly.models.forms.steps import Lift
from ifonly.models.read import Read
from ifonly.models.reading.graphs import Linked, agrees, as_classifier, as_regressor, clip, combine, joined, received
from ifonly.models.reading.source import Source
from ifonly.models.registry import reads

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__: list[str] = []

_LAYERS = "Linear, ReLU, LeakyReLU, PReLU, ReLU6, Hardtanh, BatchNorm1d, Dropout, Flatten, Identity"
_SAME_LAYERS = frozenset({"Dropout", "AlphaDropout", "Flatten", "Identity"})
_SAME_CALLS = frozenset(
    {
        "flatten",
        "view",
        "reshape",
        "squeeze",
        "contiguous",
        "float",
        "double",
        "dropout",
        "log_softmax",
        "clone",
    }
)
_LINKS: dict[str, Callable[[Signal], Linked]] = {
    **dict.fromkeys(("Sigmoid", "sigmoid"), partial(Linked, link="sigmoid")),
    **dict.fromkeys(("Softmax", "softmax"), partial(Linked, link="softmax")),
    **dict.fromkeys(("LogSoftmax", "log_softmax"), partial(Linked, link="log_softmax")),
}
_SIGNS = {"add": ("add", "iadd"), "sub": ("sub", "isub", "subtract"), "mul": ("mul", "imul", "multiply")}
_ARITHMETIC = {name: sign for sign, names in _SIGNS.items() for name in names} | dict.fromkeys(
    ("div", "truediv", "itruediv", "divide", "true_divide"), "div"
)


@reads("torch", "Module")
def read_module(module: Any, source: Source) -> Read:
    """A bare module has no `predict`, so there is nothing to confirm an answer with."""
    raise UnsupportedModel(
        f"{source.where}{type(module).__name__} is a torch module, which has no labels and no predict. Wrap it: "
        "TorchClassifier(module, classes) or TorchRegressor(module) from ifonly.adapters."
    )


@reads("ifonly", "TorchClassifier")
def read_torch_classifier(adapter: Any, source: Source) -> Read:
    """The scores in front of the last sigmoid or softmax."""
    graph, value, finish = _traced(adapter, source)
    probabilities = isinstance(value, Linked) and value.link != "log_softmax"
    if probabilities and adapter.outputs_are == "scores":
        raise UnsupportedModel(
            f"{source.where}the module ends in a sigmoid or softmax, so its outputs are probabilities. Say so: "
            "TorchClassifier(module, classes, outputs_are='probabilities')."
        )
    if not probabilities and adapter.outputs_are == "probabilities":
        raise UnsupportedModel(
            f"{source.where}outputs_are='probabilities', but the module does not end in a sigmoid or softmax. Leave "
            "outputs_are='scores'."
        )
    return agrees(finish(as_classifier(adapter, value, graph, source)), adapter, source)


@reads("ifonly", "TorchRegressor")
def read_torch_regressor(adapter: Any, source: Source) -> Read:
    """The output."""
    graph, value, finish = _traced(adapter, source)
    return agrees(finish(as_regressor(adapter, value, graph, source)), adapter, source)


def _traced(adapter: Any, source: Source) -> tuple[Graph, Signal | Linked, Callable[[Read], Read]]:
    import torch.fx  # noqa: PLC0415 - an optional framework

    inner = received(adapter, source)
    lift = Lift.of(inner)
    longer = lift.source(inner)
    graph = Graph(longer.schema)
    signal = graph.input(*longer.affine(type(adapter.module).__name__))
    with _evaluating(adapter.module):
        try:
            traced = torch.fx.symbolic_trace(adapter.module)
        except (torch.fx.proxy.TraceError, TypeError) as error:
            raise UnsupportedModel(
                f"{source.where}{type(adapter.module).__name__} cannot be traced: {error} Its forward must not branch "
                f"on its input. What can be read: {_LAYERS}, sums and products with constants."
            ) from error
        return graph, _Walk(traced, graph, source.where).run(signal), lambda read: lift.read(read, inner)


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Trace in evaluation mode, and leave every part as it was."""
    training = [m for m in module.modules() if m.training]
    module.eval()
    try:
        yield
    finally:
        for m in training:
            m.training = True


class _Walk:
    """Symbolic evaluation of a traced module, node by node; every value is a signal, a constant, or linked scores."""

    def __init__(self, traced: Any, graph: Graph, where: str) -> None:
        self.traced, self.graph, self.where = traced, graph, where
        self.values: dict[str, Any] = {}

    def run(self, signal: Signal) -> Signal | Linked:
        """Return the module's output for this input."""
        for node in self.traced.graph.nodes:
            if node.op == "placeholder":
                if self.values:
                    raise UnsupportedModel(
                        f"{self.where}the module takes a second input, {node.target!r}. It must take one."
                    )
                self.values[node.name] = signal
            elif node.op == "output":
                return self._output(self._lookup(node.args[0]))
            else:
                self.values[node.name] = self._step(node)
        raise UnsupportedModel(f"{self.where}the module returns nothing.")

    def _output(self, value: Any) -> Signal | Linked:
        if not isinstance(value, (Signal, Linked)):
            raise UnsupportedModel(f"{self.where}the module returns {type(value).__name__}, not one tensor of scores.")
        return value

    def _lookup(self, item: Any) -> Any:
        if type(item).__name__ == "Node":
            return self.values[item.name]
        if isinstance(item, (tuple, list)):
            return [self._lookup(i) for i in item]
        return item

    def _step(self, node: Any) -> Any:
        if node.op == "get_attr":
            return _array(attrgetter(node.target)(self.traced))
        args = [self._lookup(a) for a in node.args]
        options = {k: self._lookup(v) for k, v in node.kwargs.items()}
        if node.op == "call_module":
            module = self.traced.get_submodule(node.target)
            kind = type(module).__name__
            name, act = f"layer {node.target!r} ({kind})", partial(self._layer, kind, module, args[0])
        else:
            kind = (node.target if isinstance(node.target, str) else node.target.__name__).rstrip("_")
            name, act = f"operation {kind!r}", partial(self._call, kind, args, options)
        if any(isinstance(a, Linked) for a in args) and kind not in _SAME_LAYERS | _SAME_CALLS:
            raise UnsupportedModel(
                f"{self.where}{name} comes after a sigmoid or softmax, which may only be the last step."
            )
        try:
            result = act()
        except ValueError as error:
            raise UnsupportedModel(f"{self.where}{name} cannot be read: {error}.") from error
        if result is None:
            raise UnsupportedModel(
                f"{self.where}{name} is not piecewise linear, or is not known. What can be read: {_LAYERS}, a last "
                "Sigmoid or Softmax, sums, products with constants, concatenation. Nearest to a smooth activation: "
                "ReLU."
            )
        return result

    def _layer(self, kind: str, module: Any, s: Any) -> Any:
        if kind in _SAME_LAYERS:
            return s
        if kind == "Linear":
            return _linear(s, module.weight, module.bias)
        if kind == "BatchNorm1d":
            return _batch_norm(s, module)
        if kind in ("ReLU", "LeakyReLU"):
            return self.graph.rectify(s, getattr(module, "negative_slope", 0.0))
        if kind == "PReLU":
            return self.graph.rectify(s, _array(module.weight))
        if kind in ("ReLU6", "Hardtanh"):
            return clip(self.graph, s, float(module.min_val), float(module.max_val))
        return _LINKS[kind](s) if kind in _LINKS else None

    def _call(self, name: str, args: list[Any], options: dict[str, Any]) -> Any:
        if name in _ARITHMETIC:
            if options:
                raise ValueError(f"the option {', '.join(options)} is not known")
            return combine(_ARITHMETIC[name], *(_value(a) for a in args))
        s = args[0]
        if name == "dropout" and (args[2] if len(args) > 2 else options.get("training", True)):
            raise ValueError("it drops at random in evaluation mode too; pass training=self.training")
        if name in _SAME_CALLS:
            return s
        if name == "relu":
            return self.graph.rectify(s)
        if name == "leaky_relu":
            slope = args[1] if len(args) > 1 else options.get("negative_slope", 0.01)
            return self.graph.rectify(s, slope)
        if name in ("clamp", "clip", "hardtanh"):
            return self._clamp(name, s, args, options)
        return self._shape(name, s, args, options)

    def _clamp(self, name: str, s: Signal, args: list[Any], options: dict[str, Any]) -> Signal:
        names = ("min_val", "max_val") if name == "hardtanh" else ("min", "max")
        default = (-1.0, 1.0) if name == "hardtanh" else (None, None)
        ends = [args[i + 1] if len(args) > i + 1 else options.get(names[i], default[i]) for i in (0, 1)]
        return clip(self.graph, s, *ends)

    def _shape(self, name: str, s: Any, args: list[Any], options: dict[str, Any]) -> Any:
        if name in ("size", "getattr"):
            return np.zeros(0)
        if name == "linear":
            bias = args[2] if len(args) > 2 else options.get("bias")
            return _linear(s, args[1], bias)
        if name == "matmul":
            return _linear(s, np.asarray(args[1]).T, None)
        if name == "cat":
            dim = args[1] if len(args) > 1 else options.get("dim", 0)
            if dim not in (1, -1):
                raise ValueError(f"concatenation along dim={dim}, not along the columns")
            return joined(s)
        if name == "getitem":
            return _picked(s, args[1])
        if name == "neg":
            return s.scaled(-1.0)
        if name == "abs":
            return self.graph.rectify(s, -1.0)
        return _LINKS[name](s) if name in _LINKS else None


def _array(tensor: Any) -> Any:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def _value(item: Any) -> Any:
    if isinstance(item, Signal):
        return item
    return np.asarray(item, dtype=np.float64)


def _linear(s: Signal, weight: Any, bias: Any) -> Signal:
    W = _array(weight) if hasattr(weight, "detach") else np.asarray(weight)
    if W.shape[1] != s.size:
        raise ValueError(f"it takes {W.shape[1]} columns, but receives {s.size}")
    c = 0.0 if bias is None else _array(bias) if hasattr(bias, "detach") else bias
    return s.affine(W, c)


def _batch_norm(s: Signal, module: Any) -> Signal:
    """``(s - mean) / sqrt(var + eps) * weight + bias`` with the statistics of training."""
    if module.running_mean is None:
        raise ValueError("it has no running statistics, so a row's score would depend on the other rows")
    factor = 1.0 / np.sqrt(_array(module.running_var) + module.eps)
    shift = -_array(module.running_mean) * factor
    if module.weight is not None:
        factor, shift = factor * _array(module.weight), shift * _array(module.weight) + _array(module.bias)
    return s.scaled(factor, shift)


def _picked(s: Any, index: Any) -> Any:
    """``x[:, columns]``; an index into a shape is not a value of the network."""
    if not isinstance(s, Signal):
        return np.zeros(0)
    rows, columns = index if isinstance(index, list) and len(index) == 2 else (None, None)
    if rows != slice(None):
        raise ValueError("an index that picks rows")
    return s.pick(np.atleast_1d(np.arange(s.size)[columns]))
