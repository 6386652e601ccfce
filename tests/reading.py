"""Shared by the tests of readers: a read model beside the estimator it was read from, and rows to compare them on."""

from typing import Any

import numpy as np
import pandas as pd

from ifonly.data.schema import Numeric, Schema
from ifonly.models.read import Read
from ifonly.models.reading.source import Source
from ifonly.models.registry import read_estimator


def read(estimator: Any, frame: pd.DataFrame, **options: Any) -> tuple[Read, Schema]:
    schema = Schema.infer(frame, **options)
    return read_estimator(estimator, Source.raw(schema, schema.decode, schema.encode(frame)[0])), schema


def rows(schema: Schema, frame: pd.DataFrame, n: int = 5000, seed: int = 0) -> np.ndarray:
    """Training rows first, then random ones over the whole box, `n` together."""
    rng = np.random.default_rng(seed)
    known = schema.encode(frame)[:n]
    U = np.zeros((n - len(known), schema.width))
    for j, feature in enumerate(schema.features):
        if isinstance(feature, Numeric):
            values = rng.uniform(feature.lower, feature.upper, len(U))
            U[:, schema.starts[j]] = [feature.snap(v) for v in values]
        else:
            U[:, schema.slice(j)] = np.eye(feature.width)[rng.integers(0, feature.width, len(U))]
    return np.concatenate([known, U])


def mixed_frame(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": np.round(rng.lognormal(8, 0.6, n), 2),
            "debt": rng.normal(0.3, 0.2, n),
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["none", "part", "full"], n),
            "home": rng.choice(["own", "rent"], n),
        }
    )


def outcome(frame: pd.DataFrame) -> np.ndarray:
    """Something a model can learn from the mixed frame: 0, 1 or 2."""
    score = np.log(frame["income"]) / 2 - 3 * frame["debt"] + (frame["job"] == "full") + (frame["age"] > 40) * 0.7
    return np.digitize(score, np.quantile(score, [0.4, 0.7]))
