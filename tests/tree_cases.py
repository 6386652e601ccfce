"""Shared by the tests of tree readers: data, points on thresholds and their float neighbours, and the comparison."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ifonly.data.schema import Numeric, Schema
from ifonly.models.opening import open_model
from ifonly.models.read import Model

Thresholds = Mapping[int, np.ndarray]


def table(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Wide, narrow, negative, whole-numbered and constant-looking columns, all floating point."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": rng.lognormal(8, 0.6, n),
            "debt": rng.normal(0.0, 0.2, n),
            "share": rng.uniform(0, 1, n).round(2),
            "years": rng.integers(0, 30, n).astype(float),
            "rate": rng.normal(1e6, 1.0, n),
        }
    )


def labels(frame: pd.DataFrame, classes: int = 2) -> np.ndarray:
    """Classes that a tree can learn, with some noise."""
    rng = np.random.default_rng(1)
    score = np.log(frame["income"]) - 4 * frame["debt"] + frame["share"] + 0.05 * frame["years"]
    score = score.fillna(0.0) + 0.3 * (frame["rate"] - 1e6).fillna(1.0) + rng.normal(0, 0.3, len(frame))
    return np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))


def with_holes(frame: pd.DataFrame, share: float = 0.15, seed: int = 5) -> pd.DataFrame:
    """The same frame with missing values."""
    rng = np.random.default_rng(seed)
    return frame.mask(pd.DataFrame(rng.uniform(size=frame.shape) < share, frame.index, frame.columns))


def mixed(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Numbers, whole numbers, truth values and categories; one level never occurs, one column has number levels."""
    rng = np.random.default_rng(seed)
    frame = table(n, seed)
    frame["years"] = frame["years"].astype(int)
    jobs = ["part", "none", "full", "boss", "king"]
    frame["job"] = pd.Categorical(rng.choice(["none", "part", "full", "boss"], n), categories=jobs)
    frame["code"] = pd.Categorical(rng.choice([10, 20, 7], n))
    frame["flag"] = rng.integers(0, 2, n).astype(bool)
    return frame


def mixed_labels(frame: pd.DataFrame, classes: int = 2) -> np.ndarray:
    """Classes in which the categories matter."""
    return (labels(frame, classes) + (frame["job"] == "full") + (frame["code"] == 7)) % classes


def mixed_holes(frame: pd.DataFrame, share: float = 0.15) -> pd.DataFrame:
    """The same frame with missing numbers and missing categories."""
    rng = np.random.default_rng(6)
    frame = frame.copy()
    for name in ("income", "debt", "share", "rate", "job", "code"):
        frame.loc[rng.uniform(size=len(frame)) < share, name] = None
    return frame


def opened(estimator: Any, frame: pd.DataFrame, schema: Schema | None = None) -> Model:
    """The estimator read as the Explainer reads it."""
    return open_model(estimator, frame, schema)[1]


def neighbours(thresholds: np.ndarray) -> np.ndarray:
    """Each threshold, and the floats next to it, in double and in single precision."""
    t = np.asarray(thresholds, dtype=np.float64)
    t = t[np.abs(t) < 1e30]  # a threshold that everything is below has no neighbours
    single = t.astype(np.float32)
    below, above = np.nextafter(single, np.float32(-np.inf)), np.nextafter(single, np.float32(np.inf))
    halves = [(single.astype(np.float64) + other.astype(np.float64)) / 2 for other in (below, above)]
    near = [np.nextafter(v, side) for v in (t, single.astype(np.float64), *halves) for side in (-np.inf, np.inf)]
    return np.unique(np.concatenate([t, single, below, above, *halves, *near]).astype(np.float64))


def points(
    schema: Schema,
    frame: pd.DataFrame,
    thresholds: Thresholds,
    *,
    n: int = 3200,
    missing: float = 0.0,
    seed: int = 3,
) -> np.ndarray:
    """Training rows, random rows and rows on thresholds and beside them; some values missing when asked for."""
    rng = np.random.default_rng(seed)
    known = schema.encode(frame, missing=True)
    U = np.concatenate([known, _random(schema, rng, n // 2), known[rng.integers(0, len(known), n)]])
    placed = U[len(known) + n // 2 :]
    where = [(schema.starts[j], neighbours(t)) for j, t in thresholds.items() if len(t)]
    for row in placed:
        for _ in range(2):
            start, values = where[rng.integers(len(where))] if where else (0, row[:1])
            row[start] = values[rng.integers(len(values))]
    if missing:
        for j, feature in enumerate(schema.features):
            if isinstance(feature.dtype, np.dtype) and feature.dtype.kind in "biu":
                continue  # a column of whole numbers or truth values cannot hold a missing one
            gone = rng.uniform(size=len(U)) < missing
            U[gone, schema.slice(j)] = np.nan if isinstance(feature, Numeric) else 0.0
    return schema.stored(U)


def _random(schema: Schema, rng: np.random.Generator, n: int) -> np.ndarray:
    U = np.zeros((n, schema.width))
    for j, feature in enumerate(schema.features):
        if isinstance(feature, Numeric):
            room = 0.1 * (feature.upper - feature.lower)
            values = rng.uniform(feature.lower - room, feature.upper + room, n)
            U[:, schema.starts[j]] = [feature.snap(v) for v in values]
        else:
            U[:, schema.slice(j)] = np.eye(feature.width)[rng.integers(0, feature.width, n)]
    return U


def agree(
    model: Model,
    U: np.ndarray,
    raw: Callable[[Any], np.ndarray],
    *,
    tolerance: float = 1e-9,
    classes: bool = True,
) -> None:
    """The form equals the framework's raw score, and the class and the probabilities are its own."""
    read, received = model.read, model.prepare(U)
    scores = read.form(U)
    truth = np.asarray(raw(received), dtype=np.float64).reshape(len(U), -1)
    scale = max(1.0, float(np.abs(truth).max()))
    assert scores.shape == truth.shape
    assert np.abs(scores - truth).max() <= tolerance * scale
    if not read.classes:
        return
    if classes:
        said = np.array([read.classes[k] for k in read.decide(scores)], dtype=object)
        assert (said == np.asarray(model.predict(U), dtype=object)).all()
    shown, own = read.probabilities(scores), model.predict_proba(U)
    if shown is not None and own is not None:
        assert np.abs(shown - own).max() <= max(tolerance, 1e-9)
