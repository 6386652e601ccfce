"""A worker for treecf: its exact search, with its own warm start, under the shared distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from serve import Answer, FloatArray, Task, serve
from treecf import Explainer, Freeze, OneHot, Range, Target
from treecf.api import Counterfactual
from treecf.ir.evaluate import raw_score

# The default of two million nodes would stop the search long before the time limit does.
_NODES = 10**12


class Treecf:
    """Forests by the mean probability of class 1, boosting by its margin."""

    def __init__(self, task: Task) -> None:
        self.forest = task.kind == "forest"
        self.search = task.options.get("search", "refine")
        self.strict = task.kind == "boosting"
        estimator = task.estimator
        names = [f"f{i}" for i in range(task.encoding.width)]
        if task.kind == "xgboost":
            estimator.get_booster().feature_names = names
        elif task.kind in ("catboost", "lightgbm"):
            # These keep the names of their columns in a place of their own.
            names = _named(estimator, task.kind)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        scale, policy, rules = np.ones(len(names)), {}, []
        for field in task.encoding.fields:
            columns = list(field.columns)
            if field.name in task.options.get("frozen", ()):
                rules += [Freeze(names[c]) for c in columns]
            if field.kind == "category":
                # Both columns of a switch are paid for, and a switch shall cost 1.
                scale[columns] = 2.0
                if len(columns) > 1:
                    rules.append(OneHot(tuple(names[c] for c in columns)))
                continue
            scale[columns] = field.span
            rules.append(Range(names[columns[0]], field.low, field.high))
            if field.kind == "integer":
                policy[names[columns[0]]] = "integer"
        self.explainer = Explainer(estimator, constraints=rules, normalizers=scale, value_policy=policy)
        self.target = self._target(task.want)

    def _target(self, want: int) -> Target:
        """Return the interval that `predict` calls the wanted class; which side owns the threshold differs."""
        middle = 0.5 if self.forest else 0.0
        if self.strict:
            lowest, highest = middle, float(np.nextafter(middle, -np.inf))
        else:
            lowest, highest = float(np.nextafter(middle, np.inf)), middle
        return Target.raw(op=">=", value=lowest) if want == 1 else Target.raw(op="<=", value=highest)

    def predict(self, rows: FloatArray) -> list[int]:
        """Return the side of the threshold that treecf's own reading of the model is on."""
        middle = 0.5 if self.forest else 0.0
        scores = [raw_score(self.explainer.ir, row) for row in rows]
        return [int(s >= middle if self.strict else s > middle) for s in scores]

    def explain(self, row: FloatArray, seconds: float) -> Answer:
        """Search exactly."""
        found = self.explainer.explain(
            row,
            self.target,
            backend="exact",
            time_budget_s=seconds,
            node_budget=_NODES,
            seed=0,
            search=self.search,
        )
        stats = found.solver_stats
        bound = float(stats["lower_bound"]) if "lower_bound" in stats else None
        if isinstance(found, Counterfactual):
            return Answer(np.asarray(found.x_cf), found.proof == "optimal", bound)
        return Answer(None, found.proof == "certified", bound, "infeasible")


def _named(estimator: Any, kind: str) -> list[str]:
    return list(estimator.feature_names_ if kind == "catboost" else estimator.booster_.feature_name())


if __name__ == "__main__":
    serve(Treecf)
