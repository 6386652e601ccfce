"""PyTorch modules, ONNX files and points of scorecards as estimators: `predict` in the user's columns confirms answers.

An adapter may stand alone or at the end of a scikit-learn `Pipeline`. It is trained already: `fit` does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ifonly.errors import SchemaError, UnsupportedModel
from ifonly.trained import Trained

__all__ = ["OnnxClassifier", "OnnxRegressor", "ScorecardPoints", "TorchClassifier", "TorchRegressor", "load_onnx"]

_LINKS = ("Sigmoid", "Softmax")
_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}


class _Adapter(Trained):
    """What scikit-learn asks of a fitted estimator, and how a frame becomes the one matrix a network receives."""

    columns: Sequence[str] | None
    transform: Any

    def received(self, X: Any) -> npt.NDArray[Any]:
        """Return the matrix that goes into the model: the chosen columns, through the transform."""
        if self.columns is not None:
            if not hasattr(X, "loc"):
                raise SchemaError(
                    f"{type(self).__name__} has columns={list(self.columns)!r}, but receives an array without names. "
                    "Pass a frame, or leave columns out behind a transformer."
                )
            X = X.loc[:, list(self.columns)]
        if self.transform is not None:
            X = self.transform.transform(X if _named(self.transform) or not hasattr(X, "loc") else X.to_numpy())
        X = X.toarray() if hasattr(X, "toarray") else X
        return np.ascontiguousarray(np.asarray(X, dtype=getattr(self, "dtype", np.float64)))

    @property
    def arithmetic(self) -> npt.DTypeLike:
        """The dtype in which the network computes."""
        return np.dtype(getattr(self, "dtype", np.float32))

    @property
    def takes_frames(self) -> bool:
        """Whether `predict` needs column names, because it or its transform chooses by them."""
        return self.columns is not None or _named(self.transform)


def _named(transform: Any) -> bool:
    """Whether a transformer was fitted on named columns."""
    steps = [step for _, step in getattr(transform, "steps", ())]
    return hasattr(transform, "feature_names_in_") or any(_named(step) for step in steps)


class _Decides:
    """From outputs to classes: one output is the second of two classes, several are one per class."""

    classes_: npt.NDArray[Any]

    def _choose(self, outputs: npt.NDArray[Any], probabilities: bool) -> npt.NDArray[Any]:
        if outputs.shape[1] > 1:
            return np.asarray(self.classes_[outputs.argmax(axis=1)])
        above = outputs[:, 0] > (0.5 if probabilities else 0.0)
        return np.asarray(self.classes_[above.astype(np.int64)])

    @staticmethod
    def _probabilities(outputs: npt.NDArray[Any], probabilities: bool) -> npt.NDArray[np.float64]:
        values = np.asarray(outputs, dtype=np.float64)
        if values.shape[1] == 1:
            p = values if probabilities else 0.5 * (1.0 + np.tanh(0.5 * values))
            return np.column_stack([1.0 - p, p])
        if probabilities:
            return values
        e = np.exp(values - values.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))


@dataclass(eq=False)
class _Torch(_Adapter):
    module: Any

    def outputs(self, X: Any) -> npt.NDArray[Any]:
        """Return what the module computes in evaluation mode, shape (rows, outputs)."""
        import torch  # noqa: PLC0415 - an optional framework

        tensor = torch.as_tensor(self.received(X))
        training = [m for m in self.module.modules() if m.training]
        self.module.eval()
        try:
            with torch.no_grad():
                y = self.module(tensor)
        finally:
            for m in training:
                m.training = True
        return np.asarray(y.detach().cpu().numpy()).reshape(len(tensor), -1)


@dataclass(eq=False)
class TorchClassifier(_Decides, _Torch):
    """A trained `torch.nn.Module` as a classifier.

    Parameters
    ----------
    module
        The network: one output for two classes, else one per class.
    classes
        The labels, in the order of the outputs; with one output it belongs to the second.
    columns
        The columns the network reads, in its order; by default all, as they come.
    transform
        A fitted scikit-learn transformer that the data passes first.
    dtype
        The floating-point type of the network.
    outputs_are
        ``"scores"`` (logits), or ``"probabilities"`` when the module itself ends in a sigmoid or softmax.
    """

    classes: Sequence[Any]
    columns: Sequence[str] | None = None
    transform: Any = None
    dtype: npt.DTypeLike = np.float32
    outputs_are: Literal["scores", "probabilities"] = "scores"

    _estimator_type = "classifier"

    def __post_init__(self) -> None:
        self.classes_ = np.asarray(self.classes)
        last = type(list(self.module.modules())[-1]).__name__
        if last in _LINKS and self.outputs_are == "scores":
            raise UnsupportedModel(
                f"The module ends in {last}, so its outputs are probabilities. Say so: "
                "TorchClassifier(module, classes, outputs_are='probabilities')."
            )

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of each row; a tie goes to the earlier class."""
        return self._choose(self.outputs(X), self.outputs_are == "probabilities")

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of each class."""
        return self._probabilities(self.outputs(X), self.outputs_are == "probabilities")


@dataclass(eq=False)
class TorchRegressor(_Torch):
    """A trained `torch.nn.Module` with one output as a regressor; parameters as in `TorchClassifier`."""

    columns: Sequence[str] | None = None
    transform: Any = None
    dtype: npt.DTypeLike = np.float32

    _estimator_type = "regressor"

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the value of each row."""
        y = self.outputs(X)
        return y[:, 0] if y.shape[1] == 1 else y


@dataclass(eq=False)
class _Onnx(_Adapter):
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
class OnnxClassifier(_Decides, _Onnx):
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
        return self._choose(_matrix(outputs[-1], self.classes_), self._probabilistic)

    @property
    def predict_proba(self) -> Any:
        """Return the function that gives the probability of each class; absent when the graph gives only scores."""
        if self._labelled and not self._probabilistic:
            raise AttributeError("predict_proba: the graph gives a label and scores, and no probabilities")
        return self._proba

    def _proba(self, X: Any) -> npt.NDArray[np.float64]:
        return self._probabilities(_matrix(self.run(X)[-1], self.classes_), self._probabilistic)


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


def _matrix(output: Any, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return scores as a matrix; skl2onnx may give one dictionary per row."""
    if isinstance(output, list):
        return np.array([[row[c] for c in classes.tolist()] for row in output])
    return np.asarray(output).reshape(len(output), -1)


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
    return node.op_type in _LINKS


# -- scorecards ------------------------------------------------------------------------------------------------------
@dataclass(eq=False)
class ScorecardPoints(Trained):
    """The points of a fitted optbinning Scorecard as a regression model, to ask for a score: ``Target(at_least=600)``.

    Parameters
    ----------
    scorecard
        The fitted scorecard, with a scaling method.
    """

    scorecard: Any
    _estimator_type: Literal["regressor"] = field(default="regressor", init=False, repr=False)
    _allows_missing = True
    takes_frames = True

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the points of each row."""
        return np.asarray(self.scorecard.score(X), dtype=np.float64)

    def points(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the points of each row, variable by variable; with the intercept they sum to `predict`."""
        card = self.scorecard
        bins = card._transform(X=X, metric="indices", metric_special="empirical", metric_missing="empirical")
        table = card._df_scorecard
        columns = [table[table.Variable == name].Points.to_numpy()[bins[name]] for name in bins.columns]
        return np.column_stack([np.asarray(c, dtype=np.float64) for c in columns])
