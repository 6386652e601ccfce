"""Peers in environments of their own, on the models of the comparison.

Peers see rows as numbers and one 0/1 column per level, so each model is restated on these columns: scaling and the
dropped levels become its first step. Treecf and OCEAN read the trees of a forest, so its thresholds are moved to
raw units: to the last 32-bit number that the scaled threshold lets pass. Both know that scikit-learn compares 32-bit
numbers, so a changed number of theirs is moved to the nearest one (by less than one part in ten million), where the
moved threshold and the scaled one agree.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.models import Fitted
from benchmarks.paper.replies import Reply, Unsupported
from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.encoding import Encoding, FloatArray
from benchmarks.peers.environments import Environment
from benchmarks.peers.session import Opened

__all__ = ["Remote", "coded", "on_matrix", "raw_forest"]

KINDS = {"lr": "linear", "svm": "linear", "cart": "tree", "rf": "forest", "gbm": "boosting", "mlp": "network"}
_CHECKED = 200
_READ_TREES = ("treecf", "oceanpy")


class Remote:
    """A peer's worker with a model; after a hang it is started anew."""

    def __init__(self, method: str, source: Fitted, n: int, cache: Path | None = None) -> None:
        self.method, self.source, self.n = method, source, n
        self.peer = PEERS[method]
        kind = KINDS.get(source.name, source.name)
        if method in _READ_TREES and kind != "forest":
            raise Unsupported(f"{method} is compared on forests")
        if n > 1 and not method.startswith("dice"):
            raise Unsupported(f"{method} gives one answer")
        self.estimator = raw_forest(source) if method in _READ_TREES else on_matrix(source)
        data = source.data
        matrix = data.matrix(data.train.frame)
        self.check = matrix[:: max(1, len(matrix) // _CHECKED)][:_CHECKED]
        options = {**self.peer.options, "frozen": list(data.frozen), "count": n}
        task = {
            "estimator": self.estimator,
            "X": matrix,
            "y": data.train.target.to_numpy(),
            "encoding": data.encoding.to_json(),
            "want": int(data.train.wanted),
            "kind": kind,
            "options": options,
            "check": self.check,
        }
        environment = _environment(self.peer.environment, source.name)
        self.session = Opened(self.peer, task, self._agreement, cache, environment)

    def _agreement(self, said: Sequence[int]) -> float:
        """Return the share of the check rows whose outcome is wanted on both sides or on neither."""
        data = self.source.data
        ours = self.source.wanted(data.frame(data.encoding.codes(self.check)))
        return float(np.mean(ours == (np.array(said) == data.train.wanted)))

    def explain(self, position: int, seconds: float) -> Reply:
        """Ask, and end the worker when it hangs."""
        data = self.source.data
        row = data.matrix(data.test.frame.iloc[[position]])[0]
        reply = self.session.ask(row, seconds)
        if reply["status"] in ("killed", "died", "error"):
            return Reply(reply["status"], reply["seconds"], note=reply["note"])
        if reply["row"] is None:
            late = reply["seconds"] >= 0.95 * seconds
            return Reply(
                "out of time" if late else "none found", reply["seconds"], proven=reply["proven"], cpu=reply["cpu"]
            )
        found = np.array([reply["row"], *reply["more"]])
        if self.method in _READ_TREES:
            found = np.where(found == row, row, found.astype(np.float32))
        rows = coded(found, data.encoding)
        return Reply("found", reply["seconds"], rows, proven=reply["proven"], cpu=reply["cpu"])

    def close(self) -> None:
        """End the worker and remove the task."""
        self.session.close()


def _environment(own: Environment, model: str) -> Environment:
    """Return the peer's environment, with LightGBM in it when the model needs that."""
    if model != "lightgbm":
        return own
    return replace(own, name=f"{own.name}-lightgbm", shared=(*own.shared, "lightgbm"))


def coded(matrix: FloatArray, encoding: Encoding) -> FloatArray:
    """Return matrix rows in code form, NaN for a category that does not have exactly one level."""
    out = encoding.codes(matrix)
    for j, field in enumerate(encoding.fields):
        if field.kind == "category":
            part = matrix[:, list(field.columns)]
            broken = ~(np.isin(part, (0.0, 1.0)).all(axis=1) & (part.sum(axis=1) == 1.0))
            out[broken, j] = np.nan
    return out


# -- models on matrix columns ----------------------------------------------------------------------------------------
def _columns(source: Fitted) -> tuple[list[int], list[int]]:
    """Return the matrix columns of the numbers and of the levels that are not dropped, in the model's order."""
    fields = {f.name: f for f in source.data.encoding.fields}
    numbers = [fields[name].columns[0] for name in source.data.numbers]
    return numbers, [c for name in source.data.categories for c in fields[name].columns[1:]]


def on_matrix(source: Fitted) -> Any:
    """Return the model as a Pipeline on matrix columns; a support vector machine as the logistic model with its score."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MinMaxScaler

    numbers, levels = _columns(source)
    parts: list[tuple[str, Any, list[int]]] = [("number", MinMaxScaler(), numbers)]
    if levels:
        parts.append(("category", "passthrough", levels))
    columns = ColumnTransformer(parts).fit(source.data.matrix(source.data.train.frame))
    core = source.model[-1]
    if source.name == "svm":
        core = _as_logistic(core)
    return Pipeline([("columns", columns), ("model", core)])


def _as_logistic(machine: Any) -> Any:
    """Return a logistic regression with the same score, for peers that ask for probabilities."""
    from sklearn.linear_model import LogisticRegression

    out = LogisticRegression()
    for name in ("coef_", "intercept_", "classes_", "n_features_in_"):
        setattr(out, name, getattr(machine, name))
    return out


def raw_forest(source: Fitted) -> Any:
    """Return the forest on matrix columns in raw units."""
    numbers, levels = _columns(source)
    column = np.array([*numbers, *levels])
    scaler = source.model[0].named_transformers_["number"]
    forest = copy.deepcopy(source.model[-1])
    width = source.data.encoding.width
    fields = {f.columns[0]: f for f in source.data.encoding.fields if f.kind != "category"}
    for estimator in forest.estimators_:
        tree = estimator.tree_
        for node in np.flatnonzero(tree.children_left != tree.children_right):
            z = int(tree.feature[node])
            place = int(column[z])
            if z < len(numbers):
                limit = float(tree.threshold[node])
                reach = (fields[place].low, fields[place].high)
                tree.threshold[node] = _last_below(limit, float(scaler.scale_[z]), float(scaler.min_[z]), reach)
            tree.feature[node] = place
        estimator.n_features_in_ = width
    forest.n_features_in_ = width
    return forest


def _last_below(limit: float, scale: float, shift: float, reach: tuple[float, float]) -> float:
    """Return the largest 32-bit number x with ``float32(x * scale + shift) <= limit``."""

    def below(x: np.float32) -> bool:
        return float(np.float32(float(x) * scale + shift)) <= limit

    guess = np.float32(np.clip((limit - shift) / scale, *reach))
    while not below(guess):
        guess = np.nextafter(guess, np.float32(-np.inf), dtype=np.float32)
    while below(above := np.nextafter(guess, np.float32(np.inf), dtype=np.float32)):
        guess = above
    return float(guess)
