"""The 216 cells of Maragno et al. (2024), their data and models; and three larger questions of our own.

`published.csv` has a line per cell: data set, norm, radius, model and size, mean seconds of the solved questions, and how
many of 20 were not solved within 1,000 s by Gurobi. Columns are min-max scaled on all rows, models fitted on all rows; the
first 20 rows are asked for the other class, at the least l1 distance. The paper has no bounds on features. Ours are 10
ranges wide on either side: what costs less than that is the same without them, and every answer does.
"""

from __future__ import annotations

import ast
import csv
import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ifonly import Explainer, Proximity, Schema, datasets

__all__ = ["LARGER", "Cell", "Larger", "cells", "explainer_of", "factuals", "fitted", "larger_explainer", "scaled"]

_FILES = {"banknote": "banknote.csv", "diabetes": "pima_diabetes.csv", "ionosphere": "ionosphere.csv"}
BEYOND = 10.0  # ranges on either side of the data


class Cell(NamedTuple):
    """One line of the published table."""

    data: str
    norm: str
    radius: float
    model: str
    size: str
    seconds: float
    unsolved: int

    @property
    def name(self) -> str:
        """Its name, in records."""
        return f"{self.data} {self.norm} {self.radius} {self.model} {self.size}"


class Larger(NamedTuple):
    """A question of our own: data set, model, radius, the bar in processor seconds, and where it comes from."""

    name: str
    data: str
    model: str
    radius: float
    bar: float


LARGER = (
    Larger("German Credit, forest 100 x 5", "german_credit", "forest", 0.02, 0.1),
    Larger("HELOC, forest 100 x 5", "heloc", "forest", 0.02, 20.0),
    Larger("Adult, network 1 x 100", "adult", "network", 0.02, 20.0),
)


def cells() -> list[Cell]:
    """Return all published cells, in the order of the file."""
    with (Path(__file__).parent / "published.csv").open(newline="") as file:
        return [
            Cell(
                line["dataset"],
                line["norm"],
                float(line["radius"]),
                line["model"],
                line["size"],
                float(line["mean_seconds_of_solved"]),
                int(line["unsolved_of_20_in_1000s"]),
            )
            for line in csv.DictReader(file)
        ]


@cache
def scaled(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return the numbers of a data set, min-max scaled, and the class as 0 or 1."""
    folder = os.environ.get("IFONLY_DATA")
    if not folder:
        raise SystemExit(f"Set IFONLY_DATA to the folder that has {_FILES[name]}.")
    frame = pd.read_csv(Path(folder) / _FILES[name], header=0 if name == "diabetes" else None)
    X, y = frame.iloc[:, :-1].astype(float), frame.iloc[:, -1]
    span = (X.max() - X.min()).replace(0.0, 1.0)  # a column that is the same everywhere is 0
    X = (X - X.min()) / span
    X.columns = [f"x{j}" for j in range(X.shape[1])]
    return X, (y == "g").astype(int) if name == "ionosphere" else y.astype(int)


@cache
def fitted(name: str, kind: str, size: str) -> Any:
    """Return a model of the paper, fitted on all rows."""
    makers = {
        "linear": lambda: LogisticRegression(random_state=0),
        "cart": lambda: DecisionTreeClassifier(max_depth=int(size), random_state=0),
        "rf": lambda: RandomForestClassifier(int(size), max_depth=3, random_state=0),
        "gbm": lambda: GradientBoostingClassifier(
            learning_rate=1.0, n_estimators=int(size), max_depth=2, random_state=0
        ),
        "mlp": lambda: MLPClassifier(ast.literal_eval(size), activation="relu", random_state=0, max_iter=10_000),
    }
    X, y = scaled(name)
    return makers[kind]().fit(X, y)


@cache
def explainer_of(name: str, kind: str, size: str, solver: str) -> Explainer:
    """Return the explainer of a model: l1 on the scaled numbers, bounds far away."""
    X, _ = scaled(name)
    bounds = dict.fromkeys(X, (-BEYOND, 1.0 + BEYOND))
    schema = Schema.infer(X, bounds=bounds, numeric=list(X))
    near = Proximity("l1", scale="none")
    return Explainer(fitted(name, kind, size), X, schema=schema, criteria=[near], solver=solver)


@cache
def larger_explainer(which: Larger, solver: str) -> tuple[Any, Any, Explainer]:
    """Return the data set, the model and the explainer of a larger question, under the default policy."""
    data = getattr(datasets, which.data)()
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include=["category", "object"])),
        remainder=StandardScaler(),
    )
    forest = RandomForestClassifier(100, max_depth=5, random_state=0)
    model = forest if which.model == "forest" else MLPClassifier((100,), random_state=0, alpha=0.01, max_iter=60)
    model = make_pipeline(columns, model).fit(data.frame, data.target)
    return data, model, Explainer(model, data.frame, schema=data.schema, solver=solver)


def factuals(which: Larger, rows: int, solver: str) -> list[int]:
    """Return the first rows of the training data that have another outcome than the wanted one."""
    data, model, _ = larger_explainer(which, solver)
    head = data.frame.iloc[:2000]
    return [int(i) for i in np.flatnonzero(model.predict(head) != data.wanted)[:rows]]
