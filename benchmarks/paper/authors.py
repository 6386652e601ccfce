"""The authors' own forests: their files, an estimator that predicts with them, and its reader, as a third party writes one.

A file ``authors_forest_<set>.json`` holds ``columns`` in the forest's order (``feature=level`` is a 0/1 column), ``minimum``
and ``maximum`` of the min-max scaling per number, ``trees`` (``column`` -2 at a leaf; left when ``float32(x) <= threshold``;
``p1`` is the leaf's share of class 1), and ``check_rows`` (scaled) with the forest's own ``check_p1``. The class is 1 when
the mean of p1 is above one half. Only `ifonly.extend` is imported from the library.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from benchmarks.paper.sets import Data
from ifonly.extend import RawTree, Read, Source, assemble, float32_at_most, reads

__all__ = ["FOLDER", "AuthorsForest", "ForestMissing", "forest_file", "pipeline"]

# The environment variable with the folder of the files; `--forests` sets it.
FOLDER = "IFONLY_FORESTS"
_AGREEMENT = 1e-12

FloatArray = npt.NDArray[np.float64]


class ForestMissing(FileNotFoundError):
    """No file of the authors' forest on a data set was found."""


class AuthorsForest(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A forest from a file, on scaled columns.

    Parameters
    ----------
    trees
        Of each tree, per node: ``column``, ``threshold``, ``left``, ``right``, ``p1``.
    """

    def __init__(self, trees: Sequence[Mapping[str, Any]]) -> None:
        self.trees = trees
        self.classes_ = np.array([0, 1])
        self.arrays_ = [{name: np.asarray(values) for name, values in tree.items()} for tree in trees]

    def fit(self, X: Any, y: Any = None) -> AuthorsForest:
        """Refuse: these forests are compared as they were published."""
        del X, y
        raise TypeError("The authors' forests are used as published; to train a forest, ask for the model 'rf'.")

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Return the mean of the leaves' shares, tree after tree."""
        values = np.asarray(X, dtype=np.float32).astype(np.float64)
        total = np.zeros((len(values), 2))
        rows = np.arange(len(values))
        for tree in self.arrays_:
            at = np.zeros(len(values), dtype=np.int64)
            while (inner := tree["column"][at] >= 0).any():
                column = np.where(inner, tree["column"][at], 0)
                left = values[rows, column] <= tree["threshold"][at]
                at = np.where(inner, np.where(left, tree["left"][at], tree["right"][at]), at)
            share = tree["p1"][at].astype(np.float64)
            total += np.column_stack([1.0 - share, share])
        return total / len(self.arrays_)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return class 1 where the mean share is above one half."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@reads(AuthorsForest.__module__, "AuthorsForest")
def read_authors_forest(estimator: AuthorsForest, source: Source) -> Read:
    """The mean of the leaves' shares; the first of the largest wins."""
    trees = []
    for tree in estimator.arrays_:
        leaf = tree["column"] < 0
        own = np.arange(len(leaf))
        share = tree["p1"].astype(np.float64)
        trees.append(
            RawTree(
                column=np.where(leaf, -1, tree["column"]),
                threshold=np.where(leaf, 0.0, tree["threshold"]),
                left=np.where(leaf, own, tree["left"]),
                right=np.where(leaf, own, tree["right"]),
                value=np.column_stack([1.0 - share, share]),
            )
        )
    form = assemble(source, trees, np.zeros(2), float32_at_most, over=len(trees))
    return Read(form, tuple(estimator.classes_.tolist()), "argmax", "identity", piecewise_constant=True)


def forest_file(data: str) -> Path:
    """Return the file of a data set, from the folder that ``--forests`` or the environment names."""
    folder = os.environ.get(FOLDER)
    if not folder:
        raise ForestMissing(
            "The authors' forests are not part of the project, and no folder with them was named. Put "
            f"authors_forest_{data}.json into a folder and name it: --forests FOLDER, or {FOLDER}=FOLDER."
        )
    path = Path(folder) / f"authors_forest_{data}.json"
    if not path.is_file():
        raise ForestMissing(
            f"There is no {path.name} in {folder}. Leave {data} out with --data, or name another folder."
        )
    return path


def pipeline(path: Path, data: Data) -> Any:
    """Return a forest as a Pipeline on the raw columns of a data set, after its own check rows were put to it."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    forest = AuthorsForest(stored["trees"])
    said = forest.predict_proba(np.array(stored["check_rows"]))[:, 1]
    apart = float(np.abs(said - np.array(stored["check_p1"])).max())
    if apart > _AGREEMENT:
        raise ValueError(
            f"{path.name} gives its check rows {apart:.2g} more or less than it says: the file is damaged."
        )
    columns = [str(name) for name in stored["columns"]]
    numbers = [name for name in columns if "=" not in name]
    levels = _levels([name for name in columns if "=" in name], data)
    parts: list[tuple[str, Any, list[str]]] = [("number", MinMaxScaler(), numbers)]
    if levels:
        encoder = OneHotEncoder(categories=list(levels.values()), drop="first", sparse_output=False)
        parts.append(("category", encoder, list(levels)))
    # Two rows say all that is learned: the ends of every number. Levels are given.
    ends = data.train.frame.iloc[:2].copy()
    for name in numbers:
        ends[name] = [float(stored["minimum"][name]), float(stored["maximum"][name])]
    made = ColumnTransformer(parts, verbose_feature_names_out=False).fit(ends)
    if numbers + [f"{name}={level}" for name, named in levels.items() for level in named[1:]] != columns:
        raise ValueError(f"The columns of {path.name} are not numbers first and each category's levels together.")
    return Pipeline([("columns", made), ("model", forest)])


def _levels(columns: Sequence[str], data: Data) -> dict[str, list[str]]:
    """Return the levels of each category in the forest's order, the one without a column first."""
    kept: dict[str, list[str]] = {}
    for column in columns:
        name, level = column.split("=", 1)
        kept.setdefault(name, []).append(level)
    out = {}
    for name, named in kept.items():
        known = [str(level) for level in data.train.schema[name].levels]  # type: ignore[union-attr]
        left = [level for level in known if level not in named]
        if len(left) != 1 or not set(named) <= set(known):
            raise ValueError(f"The forest's columns of {name!r} are {named}; the data's levels are {known}.")
        out[name] = [*left, *named]
    return out
