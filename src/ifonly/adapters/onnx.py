"""ONNX files as estimators: `predict` in the user's columns confirms answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.adapters.adapter import LINKS, Adapter, Decides, as_matrix
from ifonly.errors import UnsupportedModel

__all__ = ["OnnxClassifier", "OnnxRegressor", "load_onnx"]

_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}


@dataclass(eq=False)
class _Onnx(Adapter):
    """An ONNX file, run by onnxruntime; the session is made when first needed and never pickled."""

    model: Any
    columns: Sequence[str] | None = None
    transform: Any = None
    _session: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.model, (str, Path)):
            self.model = Path(self.model).read_bytes()
        elif not isinstance(self.model, (bytes, bytearray)):
            self.model = self.model.SerializeToString()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}

    def input_names(self) -> list[str]:
        """Return the names of the graph's inputs, which are column names where there is one input per column."""
        import onnx  # noqa: PLC0415 - an optional framework

        graph = onnx.load_from_string(bytes(self.model)).graph
        constants = {i.name for i in graph.initializer}
        return [i.name for i in graph.input if i.name not in constants]

    def run(self, X: Any, names: Sequence[str] | None = None) -> list[Any]:
        """Return the outputs of the graph, all of them or those named."""
        if self._session is None:
            import onnxruntime  # noqa: PLC0415 - an optional framework

            quiet = onnxruntime.SessionOptions()
            quiet.log_severity_level = 3
            self._session = onnxruntime.InferenceSession(bytes(self.model), quiet, providers=["CPUExecutionProvider"])
        Z = self.received(X)
        inputs = self._session.get_inputs()
        widths = [i.shape[1] if len(i.shape) > 1 and isinstance(i.shape[1], int) else 1 for i in inputs]
        parts = np.split(Z, np.cumsum(widths)[:-1], axis=1) if len(inputs) > 1 else [Z]
        feed = {i.name: part.astype(_TYPES[i.type]) for i, part in zip(inputs, parts, strict=True)}
        return list(self._session.run(names, feed))


@dataclass(eq=False)
class OnnxClassifier(Decides, _Onnx):
    """An ONNX classifier, as exported by skl2onnx (a label and scores) or by torch (scores only).

    Parameters
    ----------
    model
        A path, the file's bytes, or an `onnx.ModelProto`.
    classes
        The labels, in the order of the outputs; read off the graph when it names them.
    columns, transform
        As in `TorchClassifier`.
    """

    classes: Sequence[Any] | None = None

    _estimator_type = "classifier"

    def __post_init__(self) -> None:
        super().__post_init__()
        labels, self._labelled, self._probabilistic = _declared(self.model)
        classes = self.classes if self.classes is not None else labels
        if classes is None:
            raise UnsupportedModel(
                "The ONNX graph does not name its classes. Give them, in the order of its outputs: "
                "OnnxClassifier(model, classes=[...])."
            )
        self.classes_ = np.asarray(classes)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of each row, as the graph gives it, or else by its scores."""
        first, *_ = outputs = self.run(X)
        if self._labelled:
            return np.asarray(first).reshape(-1)
        return self._choose(as_matrix(outputs[-1], self.classes_), self._probabilistic)

    @property
    def predict_proba(self) -> Any:
        """Return the function that gives the probability of each class; absent when the graph gives only scores."""
        if self._labelled and not self._probabilistic:
            raise AttributeError("predict_proba: the graph gives a label and scores, and no probabilities")
        return self._proba

    def _proba(self, X: Any) -> npt.NDArray[np.float64]:
        return self._probabilities(as_matrix(self.run(X)[-1], self.classes_), self._probabilistic)


@dataclass(eq=False)
class OnnxRegressor(_Onnx):
    """An ONNX regression model with one output; parameters as in `OnnxClassifier`."""

    _estimator_type = "regressor"

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the value of each row."""
        y = np.asarray(self.run(X)[0])
        return y.reshape(len(y), -1)[:, 0] if y.size == len(y) else y


def load_onnx(path: str | Path) -> OnnxClassifier | OnnxRegressor:
    """Return the model of an ONNX file: a classifier when its graph gives a label, names classes or has several outputs.

    A graph that does not name its classes gets 0, 1, ..., in the order of its outputs.
    """
    import onnx  # noqa: PLC0415 - an optional framework

    model = Path(path).read_bytes()
    labels, labelled, probabilistic = _declared(model)
    if labels is not None or labelled:
        return OnnxClassifier(model)
    sizes = onnx.load_from_string(model).graph.output[-1].type.tensor_type.shape.dim
    width = sizes[-1].dim_value if len(sizes) > 1 else 1
    if width > 1 or probabilistic:
        return OnnxClassifier(model, classes=list(range(max(width, 2))))
    return OnnxRegressor(model)


def _declared(model: bytes) -> tuple[list[Any] | None, bool, bool]:
    """Return what a classifier's graph says of itself: its labels, whether it outputs one, and probabilities."""
    import onnx  # noqa: PLC0415 - an optional framework
    from onnx import helper, numpy_helper  # noqa: PLC0415 - an optional framework

    graph = onnx.load_from_string(bytes(model)).graph
    constants = {i.name: i for i in graph.initializer}
    maker = {name: node for node in graph.node for name in node.output}
    labels: list[Any] | None = None
    for node in graph.node:
        values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        named = [v for k, v in values.items() if k.startswith("classlabels_") and len(v)]
        if named:
            labels = [c.decode() if isinstance(c, bytes) else c for c in named[0]]
        elif labels is None and node.op_type == "ArrayFeatureExtractor" and node.input[0] in constants:
            found = numpy_helper.to_array(constants[node.input[0]]).tolist()
            labels = [c.decode() if isinstance(c, bytes) else c for c in found]
    labelled = len(graph.output) > 1
    return labels, labelled, _gives_probabilities(maker, graph.output[-1].name)


def _gives_probabilities(maker: dict[str, Any], name: str) -> bool:
    """Whether a tensor comes out of a sigmoid, a softmax, or a classifier node that applies one."""
    node = maker.get(name)
    while node is not None and node.op_type in (
        "Identity",
        "Cast",
        "ZipMap",
        "Normalizer",
        "Reshape",
        "Concat",
    ):
        name = node.input[-1] if node.op_type == "Concat" else node.input[0]
        node = maker.get(name)
    if node is None:
        return False
    if node.op_type in ("LinearClassifier", "TreeEnsembleClassifier"):
        after = next((a.s for a in node.attribute if a.name == "post_transform"), b"NONE")
        return node.op_type == "TreeEnsembleClassifier" or after != b"NONE"
    return node.op_type in LINKS
