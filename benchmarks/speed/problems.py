"""The problems: data, a model on it, and the rows to explain; the same for every method."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.peers.encoding import Encoding, Field, FloatArray
from benchmarks.speed.asking import PLAIN, Ask
from ifonly import datasets
from ifonly.data.schema import Integer, Numeric, Schema

__all__ = ["PROBLEMS", "QUICK", "Case", "Kind", "Problem", "Table", "breast_cancer", "german", "prepare"]

Kind = Literal[
    "forest", "boosting", "xgboost", "tree", "linear", "network", "extra", "histgb", "catboost", "lightgbm", "composite"
]
CHECK_ROWS = 200


@dataclass(frozen=True, eq=False)
class Table:
    """Data as a model is trained on it, and the outcome to wish for."""

    frame: pd.DataFrame
    target: pd.Series[Any]
    schema: Schema
    wanted: Any


@dataclass(frozen=True)
class Problem:
    """A model on a table, and what is asked of it."""

    name: str
    table: Callable[[], Table]
    estimator: Callable[[], Any]
    kind: Kind
    ask: Ask = PLAIN


@dataclass(frozen=True, eq=False)
class Case:
    """A problem with its model fitted: as people use it (raw columns), and as peers see it (matrix columns)."""

    name: str
    kind: Kind
    table: Table
    model: Any
    estimator: Any
    encoding: Encoding
    matrix: FloatArray
    factuals: npt.NDArray[np.int64]
    ask: Ask = PLAIN

    @property
    def classes(self) -> list[Any]:
        """The outcomes, in the order of the estimator."""
        return list(self.model.classes_)

    @property
    def want(self) -> int:
        """The position of the wanted class."""
        return self.classes.index(self.table.wanted)

    def frame_of(self, row: FloatArray) -> pd.DataFrame:
        """Return a matrix row in raw columns, in their own dtypes wherever the values allow it."""
        codes = self.encoding.codes(row[None, :])[0]
        columns: dict[str, Any] = {}
        for code, field in zip(codes, self.encoding.fields, strict=True):
            dtype = self.table.frame[field.name].dtype
            if field.kind == "category":
                columns[field.name] = pd.Series([_levels(self.table.schema, field.name)[int(code)]], dtype=dtype)
            else:
                kept = not pd.api.types.is_integer_dtype(dtype) or float(code).is_integer()
                columns[field.name] = pd.Series([code], dtype=dtype if kept else np.float64)
        return pd.DataFrame(columns)

    def row_of(self, frame: pd.DataFrame) -> FloatArray:
        """Return a one-row frame as a matrix row."""
        row: FloatArray = _matrix(frame, self.table.schema, self.encoding)[0]
        return row

    def check_rows(self) -> FloatArray:
        """Return the rows on which a peer must predict what the model predicts."""
        return self.matrix[:: max(1, len(self.matrix) // CHECK_ROWS)][:CHECK_ROWS]


# -- from a problem to a case ----------------------------------------------------------------------------------------
def prepare(problem: Problem, factuals: int, seed: int = 0) -> Case:
    """Fit the model and draw the rows to explain among those it puts in the unwanted class."""
    table = problem.table()
    encoding = encode(table.schema)
    model, estimator = _fit(problem, table, encoding)
    unwanted = np.flatnonzero(np.ravel(model.predict(table.frame)) != table.wanted)
    drawn = np.random.default_rng(seed).permutation(unwanted)[:factuals]
    matrix = _matrix(table.frame, table.schema, encoding)
    drawn = drawn.astype(np.int64)
    return Case(problem.name, problem.kind, table, model, estimator, encoding, matrix, drawn, problem.ask)


def encode(schema: Schema) -> Encoding:
    """Return the encoding that `_columns` makes: categories first, then numbers, each in the order of the frame."""
    fields: dict[str, Field] = {}
    at = 0
    for feature in schema.features:
        if not isinstance(feature, Numeric):
            levels = tuple(str(level) for level in feature.levels)
            columns = tuple(range(at, at + len(levels)))
            fields[feature.name] = Field(feature.name, "category", columns, levels=levels)
            at += len(levels)
    for feature in schema.features:
        if isinstance(feature, Numeric):
            kind: Literal["integer", "number"] = "integer" if isinstance(feature, Integer) else "number"
            fields[feature.name] = Field(feature.name, kind, (at,), float(feature.lower), float(feature.upper))
            at += 1
    return Encoding(tuple(fields[name] for name in schema.names))


def _levels(schema: Schema, name: str) -> tuple[Any, ...]:
    feature = schema[name]
    assert not isinstance(feature, Numeric)
    return tuple(feature.levels)


def _matrix(frame: pd.DataFrame, schema: Schema, encoding: Encoding) -> FloatArray:
    codes = np.zeros((len(frame), len(encoding.fields)))
    for j, field in enumerate(encoding.fields):
        if field.kind == "category":
            position = {level: k for k, level in enumerate(_levels(schema, field.name))}
            codes[:, j] = [position[value] for value in frame[field.name]]
        else:
            codes[:, j] = frame[field.name].to_numpy(dtype=np.float64)
    return encoding.matrix(codes)


def _fit(problem: Problem, table: Table, encoding: Encoding) -> tuple[Any, Any]:
    """Return the model on raw columns, and the part of it that works on the matrix."""
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import StandardScaler

    with warnings.catch_warnings():
        # Whether a network has converged is not the question here.
        warnings.simplefilter("ignore")
        steps = [StandardScaler()] if problem.kind in ("linear", "network") else []
        core = make_pipeline(*steps, problem.estimator()) if steps else problem.estimator()
        if all(field.kind != "category" for field in encoding.fields):
            fitted = core.fit(table.frame, table.target)
            return fitted, fitted
        columns = _columns(table.schema)
        inner = core.steps if steps else [("model", core)]
        pipeline = Pipeline([("columns", columns), *inner]).fit(table.frame, table.target)
        return pipeline, pipeline[1:] if steps else pipeline[-1]


def _columns(schema: Schema) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    categories = [f for f in schema.features if not isinstance(f, Numeric)]
    numbers = [f.name for f in schema.features if isinstance(f, Numeric)]
    encoder = OneHotEncoder(categories=[list(f.levels) for f in categories], sparse_output=False)
    return ColumnTransformer(
        [("category", encoder, [f.name for f in categories]), ("number", "passthrough", numbers)],
        sparse_threshold=0.0,
    )


# -- tables ----------------------------------------------------------------------------------------------------------
@cache
def _shipped(name: str) -> Table:
    data = getattr(datasets, name)()
    return Table(data.frame, data.target, data.schema, data.wanted)


def german() -> Table:
    """German Credit."""
    return _shipped("german_credit")


def adult() -> Table:
    """Adult, the train part."""
    return _shipped("adult")


def heloc() -> Table:
    """HELOC, the train part."""
    return _shipped("heloc")


def give_me_some_credit() -> Table:
    """Give Me Some Credit, the train part."""
    return _shipped("give_me_some_credit")


@cache
def breast_cancer() -> Table:
    """Breast cancer (Wisconsin, diagnostic), which scikit-learn ships: 30 numeric features."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    target = data.target.map({0: "malignant", 1: "benign"})
    return Table(data.data, target, Schema.infer(data.data, precision=None), "benign")


# -- models ----------------------------------------------------------------------------------------------------------
def forest(trees: int, depth: int) -> Callable[[], Any]:
    """A random forest."""

    def make() -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(trees, max_depth=depth, random_state=0)

    return make


def network(*widths: int) -> Callable[[], Any]:
    """A ReLU network."""

    def make() -> Any:
        from sklearn.neural_network import MLPClassifier

        return MLPClassifier(widths, max_iter=300, random_state=0)

    return make


def calibrated(*widths: int) -> Callable[[], Any]:
    """A ReLU network whose probabilities are calibrated by sigmoids, on three folds."""

    def make() -> Any:
        from sklearn.calibration import CalibratedClassifierCV

        return CalibratedClassifierCV(network(*widths)(), cv=3)

    return make


def voting(*widths: int) -> Callable[[], Any]:
    """The votes of two ReLU networks and a logistic regression."""

    def make() -> Any:
        from sklearn.ensemble import VotingClassifier

        parts = [(f"network {i}", network(*widths)().set_params(random_state=i)) for i in range(2)]
        return VotingClassifier([*parts, ("logistic", _logistic())])

    return make


def _boosting() -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0)


def _xgboost() -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=100, max_depth=4, random_state=0, n_jobs=1)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def _tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=8, random_state=0)


_LIST = [
    *(
        Problem(f"german-rf-{trees}x{depth}", german, forest(trees, depth), "forest")
        for depth in (5, 8)
        for trees in (10, 50, 100)
    ),
    Problem("german-gbm-100x3", german, _boosting, "boosting"),
    Problem("german-logistic", german, _logistic, "linear"),
    Problem("german-tree", german, _tree, "tree"),
    Problem("german-mlp-1x50", german, network(50), "network"),
    Problem("german-mlp-2x32", german, network(32, 32), "network"),
    Problem("german-calibrated-1x10", german, calibrated(10), "network"),
    Problem("german-voting-1x20", german, voting(20), "network"),
    Problem("breast-logistic", breast_cancer, _logistic, "linear"),
    Problem("breast-tree", breast_cancer, _tree, "tree"),
    Problem("breast-rf-50x5", breast_cancer, forest(50, 5), "forest"),
    Problem("heloc-rf-100x5", heloc, forest(100, 5), "forest"),
    Problem("heloc-xgboost-100x4", heloc, _xgboost, "xgboost"),
    Problem("adult-rf-100x8", adult, forest(100, 8), "forest"),
    Problem("gmsc-rf-100x8", give_me_some_credit, forest(100, 8), "forest"),
]
PROBLEMS: dict[str, Problem] = {p.name: p for p in _LIST}
QUICK = ("german-rf-10x5", "german-gbm-100x3", "german-logistic", "german-mlp-1x50")
