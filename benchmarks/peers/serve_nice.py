"""A worker for NICE: nearest instance of the wanted class, made sparse."""

from __future__ import annotations

import numpy as np
from nice import NICE
from serve import Answer, FloatArray, Task, serve


class Nice:
    """NICE on coded rows: level positions are its categories."""

    def __init__(self, task: Task) -> None:
        self.encoding, self.want, self.estimator = task.encoding, task.want, task.estimator
        fields = task.encoding.fields
        categories = [j for j, f in enumerate(fields) if f.kind == "category"]
        self.explainer = NICE(
            predict_fn=self._probabilities,
            X_train=self.encoding.codes(task.X),
            cat_feat=categories,
            num_feat=[j for j in range(len(fields)) if j not in categories],
            y_train=np.asarray(task.y),
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
        found = self.explainer.explain(self.encoding.codes(row[None, :]), target_class=[self.want])
        return Answer(self.encoding.matrix(np.asarray(found, dtype=float))[0])


if __name__ == "__main__":
    serve(Nice)
