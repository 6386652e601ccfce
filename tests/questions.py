"""Shared by several tests: one small question with every kind of feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from ifonly import Actionability, Explainer, Proximity, Schema, Sparsity

EDUCATION = ["school", "college", "degree"]
FACTUAL = {
    "age": 30,
    "income": 1.5,
    "debts": 4,
    "job": "part",
    "education": "school",
    "home": False,
    "phone": "no",
}

# Policies on single features, about the people below.
HOUSES: dict[str, list[Any]] = {
    "default": [],
    "l1": [Sparsity(price=0.0)],
    "squares": [Proximity("l2"), Sparsity(price=0.0)],
    "two changes": [Sparsity(at_most=2, price=0.0)],
    "rules": [Actionability(frozen=["home"], increase=["age"], ranges={"debts": (1, 8)})],
}


def people(n: int = 120, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 71, n),
            "income": np.round(rng.uniform(0.5, 6.0, n), 3),
            "debts": rng.integers(0, 9, n),
            "job": rng.choice(["none", "part", "full"], n),
            "education": rng.choice(EDUCATION, n),
            "home": rng.choice([False, True], n),
            "phone": rng.choice(["no", "yes"], n),  # the model does not look at it
        }
    )
    ends = {"age": (18, 70), "income": (0.5, 6.0), "debts": (0, 8)}
    X.loc[0, list(ends)] = [low for low, _ in ends.values()]
    X.loc[1, list(ends)] = [high for _, high in ends.values()]
    return X.astype({"age": "int64", "debts": "int64"})


def labels(X: pd.DataFrame) -> np.ndarray:
    score = 0.03 * X["age"] + X["income"] - 0.6 * X["debts"] + 1.5 * (X["job"] == "full") + 0.7 * X["home"]
    score += X["education"].map(EDUCATION.index)
    return np.where(score > score.median(), "good", "bad")


def pipeline(X: pd.DataFrame, y: Any, last: Any = None) -> Pipeline:
    encode = ColumnTransformer(
        [
            ("number", StandardScaler(), ["age", "income", "debts"]),
            ("level", OneHotEncoder(drop="first"), ["job"]),
            ("order", OrdinalEncoder(categories=[EDUCATION]), ["education"]),
            ("flag", "passthrough", ["home"]),
        ]
    )
    return Pipeline([("encode", encode), ("model", LogisticRegression() if last is None else last)]).fit(X, y)


def schema(X: pd.DataFrame, **options: Any) -> Schema:
    return Schema.infer(X, ordinal={"education": EDUCATION}, **{"precision": None, **options})


def explainer(criteria: Any = None, last: Any = None, y: Any = None, **options: Any) -> Explainer:
    X = people()
    model = pipeline(X, labels(X) if y is None else y(X), last)
    return Explainer(model, X, schema=schema(X, **options), criteria=criteria)


def shares(frame: pd.DataFrame, factual: pd.Series) -> pd.DataFrame:
    """Return how far each row is from one of them, per feature: numbers in ranges, words by 1 where they differ."""
    out = {}
    for name in frame:
        words = not pd.api.types.is_numeric_dtype(frame[name])
        away = (frame[name] != factual[name]).astype(float) if words else (frame[name] - factual[name]).abs()
        out[name] = away if words else away / (frame[name].max() - frame[name].min())
    return pd.DataFrame(out)
