"""Adapter: an estimator around a network, with the transformer in front of it and the user's labels behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.adapters.estimator import Trained
from ifonly.errors import SchemaError

__all__ = ["LINKS", "Adapter", "Decides", "as_matrix"]

LINKS = ("Sigmoid", "Softmax")


class Adapter(Trained):
    """Base class of network adapters: a fitted estimator that turns a frame into the matrix of a network."""

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


class Decides:
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


def as_matrix(output: Any, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return scores as a matrix; skl2onnx may give one dictionary per row."""
    if isinstance(output, list):
        return np.array([[row[c] for c in classes.tolist()] for row in output])
    return np.asarray(output).reshape(len(output), -1)
