"""A worker for Veritas: its bisection of the radius (`VeritasRobustnessSearch`), under the largest change.

Veritas knows no weights, so it takes features that are scaled to a range of 1 already. Its own default is 10 steps of
bisection; with more it goes on until the bracket is closed, and only then is the answer called proven.
"""

from __future__ import annotations

import numpy as np
from serve import Answer, FloatArray, Task, serve
from veritas import VeritasRobustnessSearch, get_addtree

# How close the ends of the bracket must be for the radius to count as proven, where Veritas itself stops as well; and
# how far inside an open end of a leaf an example is put: trees compare 32-bit floats, which are 6e-8 apart below 1.
_CLOSED, _INSIDE = 1e-5, 1e-7


class Veritas:
    """Two classes: the trees of the wanted one, and the sign that they must have."""

    def __init__(self, task: Task) -> None:
        if any(field.kind == "category" or abs(field.span - 1.0) > 1e-9 for field in task.encoding.fields):
            raise ValueError("Veritas is asked on numbers that are scaled to a range of 1.")
        if task.kind == "xgboost":
            task.estimator.get_booster().feature_names = [f"f{i}" for i in range(task.encoding.width)]
        self.trees = get_addtree(task.estimator, silent=True)
        self.want, self.steps = task.want, int(task.options["steps"])

    def predict(self, rows: FloatArray) -> list[int]:
        """Return the class by Veritas's own trees; a tie is the first class's."""
        own = np.empty(rows.shape)  # an array that was pickled has a dtype that Veritas does not recognise
        own[:] = rows
        return [int(score > 0.0) for score in np.ravel(self.trees.eval(own))]

    def explain(self, row: FloatArray, seconds: float) -> Answer:
        """Bisect the radius, from the whole range down; the last example is the nearest."""
        source, target = (None, self.trees) if self.want == 1 else (self.trees, None)
        search = VeritasRobustnessSearch(
            row.copy(),
            1.0,
            source,
            target,
            num_steps=self.steps,
            max_time=seconds,
            search_guard=_INSIDE,
            stop_condition=lambda low, high: high - low <= _CLOSED * high,
            silent=True,
        )
        _, low, high = search.search()
        examples = [np.asarray(e, dtype=np.float64) for e in search.generated_examples]
        proven = high - low <= _CLOSED * max(high, 1e-12)
        if not examples:
            return Answer(None, False, low, "none found")
        nearest = min(examples, key=lambda e: float(np.abs(e - row).max()))
        return Answer(nearest, proven, low)


if __name__ == "__main__":
    serve(Veritas)
