"""The models of the comparison, each on min-max-scaled numbers and one-hot categories with the first level dropped."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmarks.paper.sets import Data, load

__all__ = ["AUTHORS", "MODELS", "NAMES", "PAPER_MODELS", "Fitted", "ModelName", "fitted"]

ModelName = Literal["lr", "svm", "cart", "rf", "gbm", "mlp", "xgboost", "lightgbm", "authors"]
# The forests that the paper's tables rest on, read from files, not trained.
AUTHORS: ModelName = "authors"
PAPER_MODELS: tuple[ModelName, ...] = ("lr", "cart", "rf", "gbm", "mlp")
_SEED = 0


def _lr() -> Any:
    import inspect

    from sklearn.linear_model import LogisticRegression

    # From scikit-learn 1.8 on, the kind of penalty is said by `l1_ratio` alone.
    old = inspect.signature(LogisticRegression).parameters["penalty"].default == "l2"
    lasso: dict[str, Any] = {"penalty": "l1"} if old else {"l1_ratio": 1.0}
    return LogisticRegression(**lasso, solver="saga", max_iter=1000, random_state=_SEED)


def _svm() -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(dual=False, random_state=_SEED)


def _cart() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=10, random_state=_SEED)


def _rf() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(20, max_depth=4, random_state=_SEED)


def _gbm() -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=20, max_depth=5, learning_rate=0.2, random_state=_SEED)


def _mlp() -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((100,), max_iter=200, random_state=_SEED)


def _xgboost() -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=20, max_depth=5, learning_rate=0.2, random_state=_SEED, n_jobs=1)


def _lightgbm() -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(
        n_estimators=20, max_depth=5, learning_rate=0.2, random_state=_SEED, n_jobs=1, verbose=-1
    )


MODELS: dict[ModelName, Callable[[], Any]] = {
    "lr": _lr,
    "svm": _svm,
    "cart": _cart,
    "rf": _rf,
    "gbm": _gbm,
    "mlp": _mlp,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
}
NAMES: tuple[ModelName, ...] = (*MODELS, AUTHORS)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model that was trained on a data set, and the paper's factuals that it refuses.

    Attributes
    ----------
    model
        A Pipeline on raw columns.
    asked
        Positions (in the test part) of the factuals that do not have the wanted class yet.
    dropped
        Positions of those that have it.
    """

    data: Data
    name: ModelName
    model: Any
    asked: tuple[int, ...]
    dropped: tuple[int, ...]

    def wanted(self, frame: Any) -> npt.NDArray[np.bool_]:
        """Say which rows the model puts in the wanted class, by its own `predict`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self.model.predict(frame) == self.data.train.wanted)


@cache
def fitted(name: ModelName, data: str) -> Fitted:
    """Train a model on the train part, or open the authors' own, and ask it about the factuals."""
    source = load(data)
    pipeline = _published(source) if name == AUTHORS else _trained(name, source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = pipeline.predict(source.factuals) == source.train.wanted
    asked = tuple(p for p, done in zip(source.positions, there, strict=True) if not done)
    dropped = tuple(p for p, done in zip(source.positions, there, strict=True) if done)
    return Fitted(source, name, pipeline, asked, dropped)


def _published(source: Data) -> Any:
    from benchmarks.paper.authors import forest_file, pipeline

    return pipeline(forest_file(source.name), source)


def _trained(name: ModelName, source: Data) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    numbers, categories = list(source.numbers), list(source.categories)
    levels = [list(source.train.schema[c].levels) for c in categories]  # type: ignore[union-attr]
    parts: list[tuple[str, Any, list[str]]] = [("number", MinMaxScaler(), numbers)]
    if categories:
        parts.append(("category", OneHotEncoder(categories=levels, drop="first", sparse_output=False), categories))
    pipeline = Pipeline([("columns", ColumnTransformer(parts)), ("model", MODELS[name]())])
    with warnings.catch_warnings():
        # Whether a model has converged is not the question here.
        warnings.simplefilter("ignore")
        return pipeline.fit(source.train.frame, source.train.target)
