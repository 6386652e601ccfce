"""A worker for OCEAN: its constraint programming explainer with its default number of workers.

OCEAN knows no weights: distances are normalised only if the features are. So the thresholds of the fitted forest are
moved to features scaled to a range of 1, and answers are moved back cell by cell. Its whole numbers cannot be scaled,
so they are solved as continuous (an easier problem) and moved to the nearest whole number of their cell afterwards.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pandas as pd
from ocean import ConstraintProgrammingExplainer
from ocean.abc import Mapper
from ocean.feature import Feature
from serve import Answer, FloatArray, Task, serve


class Ocean:
    """The explainer on the scaled forest."""

    def __init__(self, task: Task) -> None:
        self.encoding, self.want = task.encoding, task.want
        self.strict = task.kind == "xgboost"
        numbers = [f for f in task.encoding.fields if f.kind != "category"]
        self.numbers = {f.columns[0]: f for f in numbers}
        self.low, self.span = np.zeros(task.encoding.width), np.ones(task.encoding.width)
        for column, field in self.numbers.items():
            self.low[column], self.span[column] = field.low, field.span
        self.cuts: dict[int, set[float]] = {c: set() for c in self.numbers}
        scale = self._scaled_xgboost if self.strict else self._scaled_forest
        self.forest = scale(task.estimator)
        self.sorted = {c: np.sort(np.array(list(cuts))) for c, cuts in self.cuts.items()}
        self.explainer = ConstraintProgrammingExplainer(self.forest, mapper=self._mapper())

    # -- scaling ------------------------------------------------------------------------------------------------
    def _scaled(self, rows: FloatArray) -> FloatArray:
        """Return rows with numbers on [-0.5, 0.5], as OCEAN's own parser scales them, and 0/1 columns as they are."""
        shift = np.zeros(len(self.low))
        shift[list(self.numbers)] = 0.5
        return (rows - self.low) / self.span - shift

    def _cut(self, column: int, threshold: float) -> float:
        """Return an equivalent threshold ``x <= t``, between whole numbers for a whole-numbered feature."""
        if self.numbers[column].kind == "integer":
            return float(np.ceil(threshold) - 0.5 if self.strict else np.floor(threshold) + 0.5)
        below = np.nextafter(np.float32(threshold), np.float32(-np.inf), dtype=np.float32)
        return float(below) if self.strict else threshold

    def _move(self, column: int, threshold: float) -> float:
        cut = self._cut(column, threshold)
        self.cuts[column].add(cut)
        return float((cut - self.low[column]) / self.span[column] - 0.5)

    def _scaled_forest(self, forest: Any) -> Any:
        forest = copy.deepcopy(forest)
        for tree in (e.tree_ for e in forest.estimators_):
            for node in np.flatnonzero(tree.children_left != tree.children_right):
                column = int(tree.feature[node])
                if column in self.numbers:
                    tree.threshold[node] = self._move(column, float(tree.threshold[node]))
        return forest

    def _scaled_xgboost(self, model: Any) -> Any:
        booster = model.get_booster()
        booster.feature_names = [f"f{i}" for i in range(len(self.low))]
        data = json.loads(booster.save_raw("json"))
        for tree in data["learner"]["gradient_booster"]["model"]["trees"]:
            for node, left in enumerate(tree["left_children"]):
                column = int(tree["split_indices"][node])
                if left >= 0 and column in self.numbers:
                    moved = self._move(column, float(tree["split_conditions"][node]))
                    # OCEAN reads ``x < s`` as ``x <= the float below s``.
                    above = np.nextafter(np.float32(moved), np.float32(np.inf), dtype=np.float32)
                    tree["split_conditions"][node] = float(above)
        booster.load_model(bytearray(json.dumps(data).encode()))
        return model

    def _mapper(self) -> Any:
        mapping, columns = {}, [("", "")] * self.encoding.width
        # OCEAN counts columns in the order of the features it is given.
        for field in sorted(self.encoding.fields, key=lambda f: f.columns[0]):
            if field.kind != "category":
                name = f"f{field.columns[0]}"
                mapping[name] = Feature(Feature.Type.CONTINUOUS, levels=(-1.0, 1.0))
                columns[field.columns[0]] = (name, "")
                continue
            codes = tuple(str(i) for i in range(len(field.columns)))
            name = f"c{field.columns[0]}"
            mapping[name] = Feature(Feature.Type.ONE_HOT_ENCODED, codes=codes)
            for column, code in zip(field.columns, codes, strict=True):
                columns[column] = (name, code)
        several = any(f.kind == "category" for f in self.encoding.fields)
        index = pd.MultiIndex.from_tuples(columns) if several else pd.Index([c[0] for c in columns])
        return Mapper(mapping, columns=index)

    # -- asking -------------------------------------------------------------------------------------------------
    def predict(self, rows: FloatArray) -> list[int]:
        """Return the class of the scaled forest."""
        scaled = self._scaled(rows)
        return [int(c) for c in np.argmax(self.forest.predict_proba(scaled), axis=1)]

    def explain(self, row: FloatArray, seconds: float) -> Answer:
        """Solve, and move the answer back."""
        query = self._scaled(row[None, :])[0]
        found = self.explainer.explain(query, y=self.want, norm=1, max_time=seconds, random_seed=0)
        status = self.explainer.get_solving_status()
        if found is None:
            return Answer(None, status == "INFEASIBLE", None, status.lower())
        scale = self.explainer._obj_scale
        bound = float(self.explainer.solver.BestObjectiveBound()) / scale
        return Answer(self._unscaled(row, query, np.asarray(found.x)), status == "OPTIMAL", bound)

    def _unscaled(self, row: FloatArray, query: FloatArray, found: FloatArray) -> FloatArray:
        """Return the point of the answer's cells that is nearest to the factual, in raw units."""
        out = found.copy()
        for column, field in self.numbers.items():
            cuts = self.sorted[column]
            if found[column] == query[column] or not len(cuts):
                out[column] = row[column]
                continue
            scaled = (cuts - self.low[column]) / self.span[column] - 0.5
            nearest = float(cuts[int(np.argmin(np.abs(scaled - found[column])))])
            up = found[column] > query[column]
            out[column] = _beyond(nearest, up=up, whole=field.kind == "integer")
        return out


def _beyond(cut: float, *, up: bool, whole: bool) -> float:
    """Return the nearest value above a cut, or the nearest that is not above it."""
    if whole:
        return float(np.floor(cut) + up)
    value = np.float32(cut)
    if up:
        return float(value if value > cut else np.nextafter(value, np.float32(np.inf), dtype=np.float32))
    return float(value if value <= cut else np.nextafter(value, np.float32(-np.inf), dtype=np.float32))


if __name__ == "__main__":
    serve(Ocean)
