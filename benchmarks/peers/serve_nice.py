"""A worker for NICE: nearest instance of the wanted class, made sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from nice import NICE
from serve import Answer, FloatArray, Task, serve


class Nice:
    """NICE on coded rows: level positions are its categories.

    It mixes the factual with a training row and knows no frozen feature; where some are frozen, it is given the
    training rows that have the factual's values of them, anew for each factual.
    """

    def __init__(self, task: Task) -> None:
        self.encoding, self.want, self.estimator = task.encoding, task.want, task.estimator
        fields = task.encoding.fields
        self.categories = [j for j, f in enumerate(fields) if f.kind == "category"]
        self.numbers = [j for j in range(len(fields)) if j not in self.categories]
        self.frozen = [j for j, f in enumerate(fields) if f.name in task.options.get("frozen", ())]
        self.rows, self.y = self.encoding.codes(task.X), np.asarray(task.y)
        # It starts from a row of the wanted class that the model gets right.
        self.starts = (self.y == self.want) & (np.asarray(self.predict(task.X)) == self.want)
        self.explainer = None if self.frozen else self._open(slice(None))

    def _open(self, which: Any) -> NICE:
        return NICE(
            predict_fn=self._probabilities,
            X_train=self.rows[which],
            cat_feat=self.categories,
            num_feat=self.numbers,
            y_train=self.y[which],
            optimization="sparsity",
            justified_cf=True,
        )

    def _probabilities(self, codes: FloatArray) -> FloatArray:
        return self.estimator.predict_proba(self.encoding.matrix(codes))

    def predict(self, rows: FloatArray) -> list[int]:
        """Return class positions by way of the codes that NICE hands to the model."""
        return [int(c) for c in np.argmax(self._probabilities(self.encoding.codes(rows)), axis=1)]

    def explain(self, row: FloatArray, seconds: float) -> Answer:
        """Find the nearest row of the wanted class; NICE has no time limit of its own."""
        del seconds
        codes = self.encoding.codes(row[None, :])
        explainer = self.explainer
        if explainer is None:
            same = (self.rows[:, self.frozen] == codes[0, self.frozen]).all(axis=1)
            if not (same & self.starts).any():
                return Answer(None, status="none found")
            explainer = self._open(same)
        found = explainer.explain(codes, target_class=[self.want])
        return Answer(self.encoding.matrix(np.asarray(found, dtype=float))[0])


if __name__ == "__main__":
    serve(Nice)
