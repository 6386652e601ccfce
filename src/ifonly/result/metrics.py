"""The paper's evaluation table: validity, proximity, sparsity and diversity of a set of counterfactuals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ifonly.data.schema import Numeric, Schema
from ifonly.errors import SchemaError
from ifonly.result.values import Explanation

__all__ = ["MEASURES", "evaluate", "explanation_metrics"]

MEASURES = (
    "validity",
    "categorical_proximity",
    "continuous_proximity",
    "sparsity",
    "categorical_diversity",
    "continuous_diversity",
    "sparsity_diversity",
)


def evaluate(factual: Any, counterfactuals: Any, schema: Schema, valid: npt.ArrayLike) -> dict[str, float]:
    r"""Return the seven measures of Mothilal et al. (2020), as used by Maragno et al. (2022), for one factual.

    With ``k`` answers and ``d`` features, of which ``d_cat`` are categorical (ordered and two-level ones included):

    - validity: the share of `valid`;
    - categorical proximity: ``1 - mismatches / (k d_cat)``;
    - continuous proximity: minus the mean l1 distance over the numeric features, in raw units;
    - sparsity: ``1 - changed / (k d)``;
    - the three diversities: mismatches per categorical feature, l1 distance, and differing features per feature,
      each averaged over the pairs of answers.

    A measure that has no meaning is NaN: a diversity of fewer than two answers, a categorical measure without
    categorical features, a continuous one without numeric features.

    Parameters
    ----------
    factual
        The row that was explained.
    counterfactuals
        A frame or array with one row per answer.
    schema
        What the columns mean.
    valid
        For each answer, whether the model's own prediction is the wanted one.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [20, 60], "job": ["skilled", "unskilled"]})
    >>> answers = pd.DataFrame({"age": [25, 20], "job": ["skilled", "unskilled"]})
    >>> measures = evaluate(X.iloc[[0]], answers, Schema.infer(X), valid=[True, True])
    >>> measures["continuous_proximity"], measures["sparsity"], measures["categorical_diversity"]
    (-2.5, 0.5, 1.0)
    """
    rows, start = schema.frame(counterfactuals), schema.frame(factual)
    flags = np.asarray(valid, dtype=bool).ravel()
    if len(start) != 1 or len(flags) != len(rows):
        raise SchemaError(
            f"Expected one factual and one `valid` flag per counterfactual, got {len(start)} factual(s), "
            f"{len(rows)} counterfactual(s) and {len(flags)} flag(s)."
        )
    numeric = np.array([isinstance(f, Numeric) for f in schema.features], dtype=bool)
    first = _row(start, 0, schema)
    answers = [_row(rows, i, schema) for i in range(len(rows))]
    origin = [(first, answer) for answer in answers]
    pairs = list(combinations(answers, 2))

    def mismatches(pair: _Pair) -> float:
        return float(np.mean(_differs(pair)[~numeric])) if not numeric.all() else np.nan

    def distance(pair: _Pair) -> float:
        return _l1(pair, numeric) if numeric.any() else np.nan

    def changed(pair: _Pair) -> float:
        return float(np.mean(_differs(pair)))

    return {
        "validity": float(flags.mean()) if len(flags) else np.nan,
        "categorical_proximity": 1.0 - _mean(mismatches, origin),
        "continuous_proximity": 0.0 - _mean(distance, origin),
        "sparsity": 1.0 - _mean(changed, origin),
        "categorical_diversity": _mean(mismatches, pairs),
        "continuous_diversity": _mean(distance, pairs),
        "sparsity_diversity": _mean(changed, pairs),
    }


def explanation_metrics(explanation: Explanation) -> dict[str, float]:
    """Return the seven measures of an explanation.

    Every answer in an explanation was confirmed by the model when it was made. Validity compares the predictions
    once more where the wish is a class; a range or a probability cannot be compared with a prediction alone.
    """
    predictions = [c.prediction for c in explanation]
    names_class = any(_names(explanation.want, p) for p in (explanation.prediction, *predictions))
    valid = [not names_class or _names(explanation.want, p) for p in predictions]
    rows = explanation.rows() if len(explanation) else explanation.factual.iloc[:0]
    return evaluate(explanation.factual, rows, explanation.schema, valid)


def _names(want: str, label: Any) -> bool:
    return want in (str(label), repr(label))


_Row = npt.NDArray[np.object_]
_Pair = tuple[_Row, _Row]


def _row(frame: pd.DataFrame, i: int, schema: Schema) -> _Row:
    """Return one row as plain values, None where one is missing."""
    values = np.empty(len(schema), dtype=object)
    for j, name in enumerate(schema.names):
        value = frame[name].iloc[i]
        if not pd.isna(value):
            values[j] = float(value) if isinstance(schema.features[j], Numeric) else value
    return values


def _differs(pair: _Pair) -> npt.NDArray[np.bool_]:
    return np.array([a != b for a, b in zip(*pair, strict=True)], dtype=bool)


def _l1(pair: _Pair, numeric: npt.NDArray[np.bool_]) -> float:
    """Return the l1 distance over numeric features; a step from or to a missing value has no length."""
    steps = zip(pair[0][numeric], pair[1][numeric], strict=True)
    return float(sum(abs(a - b) for a, b in steps if a is not None and b is not None))


def _mean(quantity: Callable[[_Pair], float], pairs: list[_Pair]) -> float:
    return float(np.mean([quantity(pair) for pair in pairs])) if pairs else np.nan
