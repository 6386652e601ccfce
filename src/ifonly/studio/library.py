"""Names of the library that the studio needs and that are not in its public catalogue: the only file that knows where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ifonly import Actionability, Explainer, Sparsity
from ifonly.arrays import FloatArray
from ifonly.bench import credit_model
from ifonly.data.features import LARGEST_WHOLE, Feature, Integer, Numeric
from ifonly.models.read import Model
from ifonly.result.text import format_change, format_range, format_value
from ifonly.runtime.warning_filters import few_filters, silenced

__all__ = [
    "LARGEST_WHOLE",
    "Feature",
    "Integer",
    "Numeric",
    "credit_model",
    "format_change",
    "format_range",
    "format_value",
    "frame_of",
    "in_one_pass",
    "makers_of",
]


def frame_of(explainer: Explainer) -> pd.DataFrame:
    """Return the data that an explainer was given."""
    return explainer._frame


def in_one_pass(model: Model, U: FloatArray) -> tuple[npt.NDArray[Any], FloatArray] | None:
    """Return a classifier's own labels and probabilities with one way through the steps before it, or None.

    None where the model is no plain Pipeline of scikit-learn with probabilities. Of its forests, one pass is enough:
    their `predict` is, by definition, the first of the most probable classes.
    """
    pipeline = model.estimator
    if not _is_of(pipeline, "sklearn.pipeline", "Pipeline") or not hasattr(pipeline, "predict_proba"):
        return None
    *before, (_, last) = pipeline.steps
    rows = model.prepare(U)
    with few_filters():
        for _, step in before:
            rows = rows if step is None or step == "passthrough" else step.transform(rows)
        shares = np.asarray(last.predict_proba(rows), dtype=np.float64)
        if _is_of(last, "sklearn.ensemble._forest", "RandomForestClassifier", "ExtraTreesClassifier"):
            labels = last.classes_.take(shares.argmax(axis=1))
        else:
            labels = last.predict(rows)
    return np.asarray(labels, dtype=object).reshape(len(U), -1)[:, 0], shares


def _is_of(value: Any, module: str, *names: str) -> bool:
    return type(value).__module__ == module and type(value).__name__ in names


def makers_of(
    explainer: Explainer, row: Any, want: Any, made: Iterable[tuple[str, Sequence[Any]]]
) -> Mapping[str, str]:
    """Return the text of each demand -> who makes it, for demands on single features, between them and on their number.

    `made` lists makers with their criteria, the strongest first: what the law demands stays the law's, whoever else
    demands it, too.
    """
    with silenced():
        query = explainer._ask(row, want, ()).query
        found: dict[str, str] = {}
        for maker, criteria in made:
            for criterion in criteria:
                if isinstance(criterion, Actionability | Sparsity):
                    for demand in criterion.demands(query):
                        found.setdefault(demand.text, maker)
    return found
