"""PyTorch modules as estimators: `predict` in the user's columns confirms answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ifonly.adapters.adapter import LINKS, Adapter, Decides
from ifonly.errors import UnsupportedModel

__all__ = ["TorchClassifier", "TorchRegressor"]


@dataclass(eq=False)
class _Torch(Adapter):
    """Adapter of a trained module: its outputs in evaluation mode."""

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
class TorchClassifier(Decides, _Torch):
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
        if last in LINKS and self.outputs_are == "scores":
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
