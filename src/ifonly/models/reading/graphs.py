"""Computation graphs, as their readers share them: arithmetic on signals, an adapter's input, and its decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.errors import UnsupportedModel
from ifonly.models.forms.network import Graph, Signal
from ifonly.models.read import Read
from ifonly.models.reading.source import Source
from ifonly.models.reading.transforms import apply_transformer
from ifonly.tolerances import SAME_GRAPH, SAME_LABELS

__all__ = ["Linked", "agrees", "as_classifier", "as_regressor", "clip", "combine", "joined", "received"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Linked:
    """Scores behind a final sigmoid or softmax: the decision is taken on the scores themselves."""

    signal: Signal
    link: Literal["sigmoid", "softmax", "log_softmax", "normalised"]


Value = Signal | Array


def combine(operation: str, a: Value, b: Value) -> Value:
    """Return ``a + b``, ``a - b``, ``a * b`` or ``a / b``, as long as that is affine in the signals."""
    if operation == "sub":
        return combine("add", a, combine("mul", b, np.array(-1.0)))
    if operation == "div":
        if isinstance(b, Signal):
            raise ValueError("it divides by a signal")
        return combine("mul", a, 1.0 / np.asarray(b, dtype=np.float64))
    if isinstance(a, Signal) and isinstance(b, Signal):
        if operation == "mul":
            raise ValueError("it multiplies two signals")
        size = max(a.size, b.size)
        return _repeated(a, size) + _repeated(b, size)
    if isinstance(b, Signal):
        a, b = b, a
    if isinstance(a, Signal):
        assert not isinstance(b, Signal)
        values = np.asarray(b, dtype=np.float64).reshape(-1)
        signal = _repeated(a, max(a.size, values.size))
        if values.size not in {1, signal.size}:
            raise ValueError(f"it meets {values.size} constants with {signal.size} entries")
        return signal.scaled(1.0, values) if operation == "add" else signal.scaled(values)
    assert not isinstance(b, Signal)
    return np.asarray(a + b if operation == "add" else a * b)


def _repeated(signal: Signal, size: int) -> Signal:
    """Return a signal of one entry repeated, as broadcasting does."""
    if signal.size == size:
        return signal
    if signal.size != 1:
        raise ValueError(f"it meets {signal.size} entries with {size}")
    return signal.pick(np.zeros(size, dtype=np.int64))


def clip(graph: Graph, signal: Signal, low: float | None, high: float | None) -> Signal:
    """Return ``min(max(s, low), high)``: one rectifier per end, ``low + relu(s - low) - relu(s - high)``."""
    if low is None or np.isneginf(low):
        if high is None or np.isposinf(high):
            return signal
        return graph.rectify(signal.scaled(-1.0, high)).scaled(-1.0, high)
    raised = graph.rectify(signal.scaled(1.0, -low)).scaled(1.0, low)
    if high is None or np.isposinf(high):
        return raised
    return raised + graph.rectify(signal.scaled(1.0, -high)).scaled(-1.0)


def joined(parts: Sequence[Any]) -> Signal:
    """Return signals side by side, as one."""
    if not all(isinstance(p, Signal) for p in parts):
        raise ValueError("a constant beside a signal")
    return Signal.stack(parts)


def received(adapter: Any, source: Source) -> Source:
    """Return the columns that go into an adapter's model: those it chose, through its own transform."""
    if adapter.columns is not None:
        names = [c.name for c in source.columns]
        unknown = [c for c in adapter.columns if c not in names]
        if unknown:
            raise UnsupportedModel(
                f"{source.where}{type(adapter).__name__} reads column {unknown[0]!r}, which the data does not have. "
                f"Known: {', '.join(names)}."
            )
        places = [names.index(c) for c in adapter.columns]
        whole = source.evaluate
        source = replace(
            source,
            columns=tuple(source.columns[i] for i in places),
            evaluate=lambda U: _columns(whole(U), places),
        )
    if adapter.transform is not None:
        source = replace(apply_transformer(adapter.transform, source.within("transform")), where=source.where)
    return source


def _columns(Z: Any, places: Sequence[int]) -> Any:
    return Z.iloc[:, list(places)] if hasattr(Z, "iloc") else Z[:, list(places)]


def as_classifier(adapter: Any, value: Signal | Linked, graph: Graph, source: Source) -> Read:
    """Return the decision of a classifier: one score for two classes (their difference, if it has two), else argmax."""
    signal = value.signal if isinstance(value, Linked) else value
    classes = tuple(adapter.classes_.tolist())
    who = type(adapter).__name__
    if signal.size not in {len(classes), 1} or len(classes) < 2 or (signal.size == 1 and len(classes) != 2):
        raise UnsupportedModel(
            f"{source.where}{who} has {signal.size} outputs and {len(classes)} classes. It needs one output per class, "
            "or one output for two classes."
        )
    if isinstance(value, Linked) and signal.size > 1 and value.link == "sigmoid":
        raise UnsupportedModel(
            f"{source.where}{who} ends in a sigmoid per class (multilabel). Use a softmax, or leave the scores as they "
            "are, when the classes exclude each other."
        )
    if signal.size == 2:
        return Read(graph.network(signal.affine([[-1.0, 1.0]])), classes, "sign", "sigmoid")
    if signal.size == 1:
        return Read(graph.network(signal), classes, "sign", "sigmoid")
    normalised = isinstance(value, Linked) and value.link == "normalised"
    return Read(graph.network(signal), classes, "argmax", "normalised" if normalised else "softmax")


def as_regressor(adapter: Any, value: Signal | Linked, graph: Graph, source: Source) -> Read:
    """Return the value of a regression model with one output."""
    who = type(adapter).__name__
    if isinstance(value, Linked):
        raise UnsupportedModel(
            f"{source.where}{who} ends in a {value.link}, so it looks like a classifier. Wrap it as one, or drop the "
            f"{value.link}."
        )
    if value.size != 1:
        raise UnsupportedModel(
            f"{source.where}{who} predicts {value.size} values at once. Keep the one output you ask about."
        )
    return Read(graph.network(value))


def agrees(read: Read, adapter: Any, source: Source) -> Read:
    """Return `read` if it agrees with the adapter's own answers on some rows; a misread graph must never pass."""
    U = _some_rows(source, source.tuning.compared)
    Z, scores = source.evaluate(U), read.form(U)
    if read.classes and not hasattr(adapter, "predict_proba"):
        named = np.array([read.classes.index(c) for c in np.asarray(adapter.predict(Z)).tolist()])
        # Without probabilities only labels can be compared, and a near tie may fall either way in float32.
        gap = float(np.mean(named != read.decide(scores)) > SAME_LABELS)
    elif read.classes:
        ours = read.probabilities(scores)
        assert ours is not None
        gap = float(np.abs(ours - np.asarray(adapter.predict_proba(Z), dtype=np.float64)).max())
    else:
        theirs = np.asarray(adapter.predict(Z), dtype=np.float64)
        gap = float(np.abs(scores[:, 0] - theirs).max() / max(1.0, float(np.abs(theirs).max())))
    if not gap <= SAME_GRAPH:
        raise UnsupportedModel(
            f"{source.where}{type(adapter).__name__}: what was read differs from what it computes by {gap:.2g}. "
            "A reshape or an operation over rows is the usual cause; keep to one row in, one row of scores out."
        )
    return read


def _some_rows(source: Source, n: int) -> FloatArray:
    rng = np.random.default_rng(0)
    U = np.repeat(source.base[None, :], n, axis=0)
    for j, feature in enumerate(source.schema.features):
        if isinstance(feature, Numeric):
            values = rng.uniform(feature.lower, feature.upper, n)
            U[1:, source.schema.starts[j]] = [feature.snap(float(v)) for v in values[1:]]
        else:
            U[1:, source.schema.slice(j)] = np.eye(feature.width)[rng.integers(0, feature.width, n - 1)]
    return U
