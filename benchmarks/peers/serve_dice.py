"""A worker for DiCE: its random and its genetic search, otherwise with its defaults."""

from __future__ import annotations

import random
from typing import Any

import dice_ml
import numpy as np
import pandas as pd
from serve import Answer, Encoding, FloatArray, Task, serve

_OUTCOME = "outcome"


class _Encoded:
    """The estimator as DiCE sees it: frames with raw columns in, probabilities out."""

    def __init__(self, estimator: Any, encoding: Encoding) -> None:
        self.estimator, self.encoding = estimator, encoding
        self.classes_ = np.arange(len(estimator.classes_))

    def codes(self, frame: pd.DataFrame) -> FloatArray:
        """Return the frame in code form."""
        out = np.zeros((len(frame), len(self.encoding.fields)))
        for j, field in enumerate(self.encoding.fields):
            column = frame[field.name]
            if field.kind == "category":
                out[:, j] = [field.levels.index(str(v)) for v in column]
            else:
                out[:, j] = column.astype(float)
        return out

    def predict_proba(self, frame: pd.DataFrame) -> FloatArray:
        """Return the class probabilities."""
        return self.estimator.predict_proba(self.encoding.matrix(self.codes(frame)))

    def predict(self, frame: pd.DataFrame) -> Any:
        """Return class positions."""
        return np.argmax(self.predict_proba(frame), axis=1)


class Dice:
    """DiCE with one of its methods."""

    def __init__(self, task: Task) -> None:
        self.encoding, self.want = task.encoding, task.want
        self.method = task.options["method"]
        self.count = task.options.get("count", 1)
        frozen = task.options.get("frozen", ())
        vary = [f.name for f in task.encoding.fields if f.name not in frozen]
        self.demands = {"features_to_vary": vary} if frozen else {}
        self.model = _Encoded(task.estimator, task.encoding)
        frame = self._frame(task.X)
        frame[_OUTCOME] = np.asarray(task.y, dtype=int)
        numbers = [f.name for f in task.encoding.fields if f.kind != "category"]
        data = dice_ml.Data(dataframe=frame, continuous_features=numbers, outcome_name=_OUTCOME)
        model = dice_ml.Model(model=self.model, backend="sklearn", model_type="classifier")
        self.explainer = dice_ml.Dice(data, model, method=self.method)

    def _frame(self, rows: FloatArray) -> pd.DataFrame:
        codes = self.encoding.codes(rows)
        columns: dict[str, Any] = {}
        for j, field in enumerate(self.encoding.fields):
            if field.kind == "category":
                columns[field.name] = np.array(field.levels, dtype=object)[codes[:, j].astype(int)]
            else:
                columns[field.name] = codes[:, j].astype(int if field.kind == "integer" else float)
        return pd.DataFrame(columns)

    def predict(self, rows: FloatArray) -> Any:
        """Return class positions by way of the frame that DiCE hands to the model."""
        return self.model.predict(self._frame(rows))

    def explain(self, row: FloatArray, seconds: float) -> Answer:
        """Ask for counterfactuals; DiCE has no time limit of its own."""
        del seconds
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002 - DiCE draws from the global generator
        extra = {"random_seed": 0} if self.method == "random" else {}
        found = self.explainer.generate_counterfactuals(
            self._frame(row[None, :]), total_CFs=self.count, desired_class=self.want, **self.demands, **extra
        )
        frame = found.cf_examples_list[0].final_cfs_df
        if frame is None or not len(frame):
            return Answer(None, status="none found")
        first, *others = self.encoding.matrix(self.model.codes(frame.iloc[: self.count]))
        return Answer(first, more=tuple(others))


if __name__ == "__main__":
    serve(Dice)
