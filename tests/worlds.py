"""Small worlds that can be enumerated: every row of a grid, what the model says of it, and what it costs."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ifonly import Explainer
from ifonly.question.criterion import Criterion

FAMILIES = {
    "logistic": lambda seed: LogisticRegression(max_iter=5000),
    "tree": lambda seed: DecisionTreeClassifier(max_depth=5, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(9, max_depth=4, random_state=seed),
    "boosting": lambda seed: GradientBoostingClassifier(n_estimators=12, max_depth=3, random_state=seed),
    "network": lambda seed: MLPClassifier((6,), max_iter=1500, random_state=seed, alpha=0.3),
}


def fit(family: str, X: pd.DataFrame, y: Any, seed: int = 0) -> Any:
    text = X.select_dtypes(exclude="number").columns.tolist()
    rest = [c for c in X.columns if c not in text]
    before = make_column_transformer((OneHotEncoder(sparse_output=False), text), (StandardScaler(), rest))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network need not have converged
        return make_pipeline(before, FAMILIES[family](seed)).fit(X, y)


@dataclass
class World:
    """Whole numbers and one category; 'yes' is the second class, so a tie is a no, as it is for robustness."""

    seed: int
    family: str
    sizes: tuple[int, ...] = (9, 8, 6)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.names = [f"n{i}" for i in range(len(self.sizes))]
        levels = ["blue", "green", "red"]
        columns: dict[str, Any] = {
            name: np.concatenate([[0, size - 1], rng.integers(0, size, 70)])
            for name, size in zip(self.names, self.sizes, strict=True)
        }
        columns["colour"] = [*levels[:2], *rng.choice(levels, 70)]
        self.X = pd.DataFrame(columns)
        effect = sum(rng.normal() * self.X[n] / (s - 1) for n, s in zip(self.names, self.sizes, strict=True))
        effect = effect + rng.normal() * (self.X["colour"] == "red") + 0.4 * np.sin(self.X["n0"] + self.X["n1"])
        effect = effect + rng.normal(0, 0.1, len(self.X))
        self.y = np.where(effect > np.quantile(effect, 0.6), "yes", "no")
        self.model = fit(self.family, self.X, self.y, self.seed)
        self.grid = pd.DataFrame(
            list(itertools.product(*(range(s) for s in self.sizes), levels)), columns=self.X.columns
        ).astype(self.X.dtypes.to_dict())
        self.said = np.asarray(self.model.predict(self.grid)) == "yes"
        self.ranges = np.array([s - 1.0 for s in self.sizes])
        self._explainers: dict[str, Explainer] = {}

    def explainer(self, *criteria: Criterion, labelled: bool = False) -> Explainer:
        """Return an explainer of this world, the same one each time: reading a model is most of the work."""
        key = repr((criteria, labelled))
        if key not in self._explainers:
            y = self.y if labelled else None
            self._explainers[key] = Explainer(self.model, self.X, y, criteria=criteria or None)
        return self._explainers[key]

    def factuals(self, n: int) -> list[pd.DataFrame]:
        refused = self.X[np.asarray(self.model.predict(self.X)) == "no"]
        return [refused.iloc[[i]] for i in range(min(n, len(refused)))]

    def moves(self, row: pd.DataFrame, others: pd.DataFrame | None = None) -> np.ndarray:
        """Return the scaled move of each feature from `row` to each row of the grid (or of `others`)."""
        to = self.grid if others is None else others
        numbers = np.abs(to[self.names].to_numpy(float) - row[self.names].to_numpy(float)) / self.ranges
        switched = (to["colour"].to_numpy() != row["colour"].to_numpy()[0]).astype(float)
        return np.column_stack([numbers, switched])

    def costs(self, row: pd.DataFrame, price: float = 0.1) -> np.ndarray:
        moves = self.moves(row)
        return moves.sum(axis=1) + price * (moves > 0).sum(axis=1)

    def robust(self, said: np.ndarray, radius: float, norm: str, features: list[str] | None = None) -> np.ndarray:
        """Say which rows of the grid have only good rows of the grid in their ball; written as loops over shifts."""
        shape = (*self.sizes, 3)
        good, out = said.reshape(shape), np.ones(shape, dtype=bool)
        reach = [
            int(np.floor(radius * r + 1e-9)) * (features is None or n in features)
            for n, r in zip(self.names, self.ranges, strict=True)
        ]
        for shift in itertools.product(*(range(-r, r + 1) for r in reach)):
            if norm == "l2" and sum((d / r) ** 2 for d, r in zip(shift, self.ranges, strict=True)) > radius**2 + 1e-12:
                continue
            at = [np.clip(np.arange(s) + d, 0, s - 1) for s, d in zip(self.sizes, shift, strict=True)]
            out &= good[np.ix_(*at, range(3))]
        return out.ravel()


@cache
def world_of(seed: int, family: str, sizes: tuple[int, ...] = (9, 8, 6)) -> World:
    """Return a world that others may use as well."""
    return World(seed, family, sizes)
