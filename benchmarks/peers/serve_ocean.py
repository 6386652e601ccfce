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

_ROOM = 1e-6


class Ocean:
    """The explainer on the scaled forest; numbers are scaled to a range of `reach`."""

    explainers: Any = ConstraintProgrammingExplainer
    reach = 1.0

    def __init__(self, task: Task) -> None:
        self.encoding, self.want = task.encoding, task.want
        self.classes = len(task.estimator.classes_)
        self.strict = task.kind == "xgboost"
        numbers = [f for f in task.encoding.fields if f.kind != "category"]
        self.numbers = {f.columns[0]: f for f in numbers}
        self.low, self.span = np.zeros(task.encoding.width), np.ones(task.encoding.width)
        for column, field in self.numbers.items():
            self.low[column], self.span[column] = field.low, field.span / self.reach
        # Per column: where a cut is on the scaled feature -> where it is on the raw one.
        self.cuts: dict[int, dict[float, float]] = {c: {} for c in self.numbers}
        scale = self._scaled_xgboost if self.strict else self._scaled_forest
        self.forest = scale(task.estimator)
        self.mapper = self._mapper()
        self.frozen = [c for f in task.encoding.fields if f.name in task.options.get("frozen", ()) for c in f.columns]
        self.explainer = self.explainers(self.forest, mapper=self.mapper)

    # -- scaling ------------------------------------------------------------------------------------------------
    def _scaled(self, rows: FloatArray) -> FloatArray:
        """Return rows with numbers around zero, as OCEAN's own parser scales them, and 0/1 columns as they are."""
        shift = np.zeros(len(self.low))
        shift[list(self.numbers)] = 0.5 * self.reach
        return (rows - self.low) / self.span - shift

    def _move(self, column: int, threshold: float) -> float:
        """Return an equivalent threshold ``x <= t`` on the scaled feature, and remember it in raw units."""
        cut, room = threshold, 0.0
        if self.numbers[column].kind == "integer":
            cut = float(np.ceil(threshold) - 0.5 if self.strict else np.floor(threshold) + 0.5)
        elif self.strict:
            cut = float(np.nextafter(np.float32(threshold), np.float32(-np.inf), dtype=np.float32))
            # Scaled splits are stored as 32-bit floats: next to a value of the data, they need a little room.
            room = _ROOM
        level = float((cut - self.low[column]) / self.span[column] - 0.5 * self.reach - room)
        self.cuts[column][level] = cut
        return level

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
                mapping[name] = Feature(Feature.Type.CONTINUOUS, levels=(-self.reach, self.reach))
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
        """Return the class by the trees as OCEAN has read them, which it compares in double precision."""
        return [int(np.argmax(self._scores(row))) for row in self._scaled(rows)]

    def _scores(self, row: FloatArray) -> FloatArray:
        total = np.zeros(self.classes)
        for tree in self.explainer.trees:
            node = tree.root
            while not node.is_leaf:
                feature = self.mapper[node.feature]
                one_hot = feature.is_one_hot_encoded
                column = self.mapper.idx.get(node.feature, node.code) if one_hot else self.mapper.idx.get(node.feature)
                node = node.left if row[column] <= (0.5 if one_hot else node.threshold) else node.right
            total += np.ravel(node.value)
        if self.strict:
            total[1] += self.explainer._logit[0]
        return total

    def explain(self, row: FloatArray, seconds: float) -> Answer:
        """Solve, and move the answer back."""
        query = self._scaled(row[None, :])[0]
        if self.frozen:
            self._freeze(query)
        found = self.explainer.explain(query, y=self.want, norm=1, **self._limits(seconds))
        status = self.explainer.get_solving_status()
        if found is None:
            return Answer(None, status == "INFEASIBLE", None, status.lower())
        return Answer(self._unscaled(row, query, found), status == "OPTIMAL", self._bound())

    def _limits(self, seconds: float) -> dict[str, Any]:
        return {"max_time": seconds, "random_seed": 0}

    def _bound(self) -> float | None:
        return float(self.explainer.solver.BestObjectiveBound()) / self.explainer._obj_scale

    def _cell(self, found: Any, column: int) -> int:
        """Return the cell of a number that the solver has chosen."""
        return int(self.explainer.solver.Value(found.vget(column)))

    def _freeze(self, query: FloatArray) -> None:
        """Hold frozen columns; OCEAN has no such demand, so it is put on the variables of a model made anew."""
        self.explainer = self.explainers(self.forest, mapper=self.mapper)
        for column in self.frozen:
            own = int(query[column])
            if column in self.numbers:
                levels = np.asarray(self.mapper[f"f{column}"].levels)
                own = int(np.searchsorted(levels, query[column], side="left")) - 1
            self.explainer.Add(self.explainer.explanation.vget(column) == own)

    def _unscaled(self, row: FloatArray, query: FloatArray, found: Any) -> FloatArray:
        """Return the point of the answer's cells that is nearest to the factual, in raw units.

        The cells are read off the solver: the values that OCEAN puts into them are 32-bit floats of scaled features,
        which can lie beyond the next cut.
        """
        out = np.array(found.x, dtype=np.float64)
        for column, field in self.numbers.items():
            levels = np.asarray(self.mapper[f"f{column}"].levels)
            cell = self._cell(found, column)
            own = int(np.searchsorted(levels, query[column], side="left")) - 1
            out[column] = row[column]
            if cell != own:
                up = cell > own
                edge = float(levels[cell if up else cell + 1])
                nearest = min(self.cuts[column], key=lambda level: abs(level - edge))
                out[column] = _beyond(self.cuts[column][nearest], up=up, whole=field.kind == "integer")
        return out


def _beyond(cut: float, *, up: bool, whole: bool) -> float:
    """Return the nearest value above a cut, or the nearest that is not above it."""
    if whole:
        return float(np.floor(cut) + up)
    near = np.float32(cut)
    # As plain floats: NumPy would round the cut before it compares.
    if (float(near) > cut) != up:
        near = np.nextafter(near, np.float32(np.inf if up else -np.inf), dtype=np.float32)
    return float(near)


if __name__ == "__main__":
    serve(Ocean)
