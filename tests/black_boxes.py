"""A small world of black boxes: people, pipelines, and a wall that only predictions come through."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def people(count: int = 200, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, count),
            "income": np.round(rng.gamma(4.0, 10.0, count), 1),
            "debts": rng.integers(0, 6, count),
            "home": rng.choice(["own", "rent", "free"], count),
        }
    )
    score = 0.05 * X["income"] - 0.6 * X["debts"] + 0.8 * (X["home"] == "own") - 0.0015 * (X["age"] - 45) ** 2
    return X, pd.Series(np.where(score + 0.3 * rng.standard_normal(count) > 0.3, "yes", "no"))


def piped(model: Any, X: pd.DataFrame, y: Any) -> Any:
    numbers = [c for c in X if pd.api.types.is_numeric_dtype(X[c])]
    others = [c for c in X if c not in numbers]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), others))
    return make_pipeline(columns, model).fit(X, y)


class Opaque:
    """A model behind a wall: its predictions come through, and nothing else."""

    def __init__(self, model: Any, probabilities: bool = True) -> None:
        self.classes_ = model.classes_
        self._model = model
        if probabilities:
            self.predict_proba = model.predict_proba
        self.rows = 0

    def predict(self, X: Any) -> Any:
        self.rows += len(X)
        return self._model.predict(X)


def refused(model: Any, X: pd.DataFrame, count: int) -> pd.DataFrame:
    return X[np.asarray(model.predict(X)) == "no"].head(count)
