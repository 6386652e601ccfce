"""CatBoost's statistics of categories, read from the model's own tables, as nested splits on single features.

A statistic (CTR) is a number per combination of category values, of answers to ``x > border`` and of answers to
``category = value``. The model keeps counts in a table under a hash of the combination; with the counts ``n`` (of the
target's class, or of the rows) and ``N`` it is ``((n + prior) / (N + denominator) + shift) * scale``, in single precision,
and a tree asks whether it is above a border. That answer is a table over the combination's parts, so the question unfolds
into questions on one part after the other; equal answers share their nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.errors import UnsupportedModel
from ifonly.models.reading.assemble import RawTree
from ifonly.tolerances import FLOAT32_ROOM

__all__ = ["Question", "Statistics", "Unfolded"]

_WORD = 2**64 - 1
_MULTIPLIER = 0x4906BA494954CB65
_EMPTY = _WORD  # the hash of a slot of the table that nothing is in
_COUNTED = frozenset({"Counter", "FeatureFreq"})
_MEANS = frozenset({"BinarizedTargetMeanValue", "FloatTargetMeanValue"})
_CLASSES = frozenset({"Borders", "Buckets"})


def _with(known: int, value: int) -> int:
    """Return the hash of a combination with one value more."""
    return _MULTIPLIER * ((known + _MULTIPLIER * value) & _WORD) & _WORD


@dataclass(frozen=True)
class Question:
    """A split on one column: goes to the left up to `border`, or for the category codes in `left`."""

    column: int
    border: float = 0.0
    left: frozenset[float] | None = None
    missing_left: bool = False


@dataclass(eq=False)
class Unfolded:
    """The nodes of one tree, each question asked of the same children kept once; leaves first."""

    outputs: int
    rows: list[tuple[Question | None, int, int]] = field(default_factory=list)
    values: list[npt.NDArray[np.float64]] = field(default_factory=list)
    known: dict[tuple[Question, int, int], int] = field(default_factory=dict)

    def leaf(self, value: npt.NDArray[np.float64]) -> int:
        """Add a leaf."""
        self.rows.append((None, len(self.rows), len(self.rows)))
        self.values.append(value)
        return len(self.rows) - 1

    def ask(self, question: Question, left: int, right: int) -> int:
        """Add a node, unless both of its sides are the same."""
        if left == right:
            return left
        key = question, left, right
        if key not in self.known:
            self.known[key] = len(self.rows)
            self.rows.append(key)
            self.values.append(np.zeros(self.outputs))
        return self.known[key]

    def tree(self, root: int) -> RawTree:
        """Return the nodes with the root first."""
        n = len(self.rows)
        order = [root, *(i for i in range(n) if i != root)]
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        questions = [self.rows[i][0] for i in order]
        return RawTree(
            np.array([-1 if q is None else q.column for q in questions], dtype=np.int64),
            np.array([0.0 if q is None else q.border for q in questions]),
            place[[self.rows[i][1] for i in order]],
            place[[self.rows[i][2] for i in order]],
            np.array([self.values[i] for i in order]),
            np.array([q is not None and q.missing_left for q in questions], dtype=np.bool_),
            {k: q.left for k, q in enumerate(questions) if q is not None and q.left is not None},
        )


@dataclass(frozen=True, eq=False)
class _Statistic:
    """One statistic: its parts, and its value per combination."""

    kind: str
    elements: Sequence[Mapping[str, Any]]
    table: Mapping[int, Sequence[float]]
    denominator: float
    prior: tuple[float, float]
    place: tuple[float, float]
    target: int

    def __call__(self, combination: int) -> np.float32:
        """Return the value at a combination, by its hash."""
        found = self.table.get(combination)
        if self.kind in _COUNTED:
            return self._value(0.0 if found is None else found[0], self.denominator)
        if found is None:
            return self._value(0.0, 0.0)
        if self.kind in _MEANS:
            return self._value(found[0], found[1])
        if self.kind == "Buckets":
            return self._value(found[self.target], sum(found))
        return self._value(sum(found[self.target + 1 :]), sum(found))

    def _value(self, count: float, total: float) -> np.float32:
        one = np.float32
        with np.errstate(all="ignore"):
            share = (one(count) + one(self.prior[0])) / (one(total) + one(self.prior[1]))
            return one((share + one(self.place[0])) * one(self.place[1]))


class Statistics:
    """The statistics of a model, by the number of a split.

    Parameters
    ----------
    model
        The JSON export.
    codes
        Categorical feature of the model -> its column and the codes of the levels that the data has.
    number
        ``(float feature, border)`` -> the question whether a number is at most the border.
    equals
        ``(categorical feature, value)`` -> the question whether a category is another one.
    where
        A prefix for error messages.
    """

    def __init__(
        self,
        model: Any,
        codes: Callable[[int], tuple[int, Sequence[float]]],
        number: Callable[[int, float], Question],
        equals: Callable[[int, float], Question],
        where: str,
        most_nodes: int,
    ) -> None:
        self.most_nodes = most_nodes
        self.model, self.codes, self.number, self.equals, self.where = model, codes, number, equals, where
        info = model["features_info"]
        first = sum(len(f["borders"] or ()) for f in info.get("float_features", []))
        first += sum(len(f.get("values") or ()) for f in info.get("categorical_features", []))
        self.by_split: dict[int, tuple[Any, float]] = {}
        for ctr in info.get("ctrs", []):
            for border in ctr["borders"]:
                self.by_split[first] = ctr, float(border)
                first += 1
        self._read: dict[str, _Statistic] = {}

    def unfold(self, split: Any, nodes: Unfolded, no: int, yes: int) -> int:
        """Add a split on a statistic to a tree and return its first node."""
        ctr, border = self.by_split.get(int(split["split_index"]), (None, np.nan))
        if ctr is None or abs(border - float(split["border"])) > FLOAT32_ROOM * max(1.0, abs(border)):
            raise UnsupportedModel(
                f"{self.where}a split of this CatBoost model is not the statistic that its number says. Fit it with "
                "one_hot_max_size=255, or report this with the versions of catboost and ifonly."
            )
        statistic, limit = self._statistic(ctr), np.float32(split["border"])

        def below(i: int, known: int) -> int:
            if len(nodes.rows) > self.most_nodes:
                raise UnsupportedModel(
                    f"{self.where}the combinations of categories in this CatBoost model are too many to unfold. Fit it "
                    "with max_ctr_complexity=1."
                )
            if i == len(statistic.elements):
                return yes if statistic(known) > limit else no
            element = statistic.elements[i]
            if element["combination_element"] == "cat_feature_value":
                return self._by_code(
                    int(element["cat_feature_index"]), nodes, lambda code: below(i + 1, _with(known, code))
                )
            aside, on = below(i + 1, _with(known, 0)), below(i + 1, _with(known, 1))
            if element["combination_element"] == "float_feature":
                return nodes.ask(self.number(int(element["float_feature_index"]), float(element["border"])), aside, on)
            value = float(element.get("cat_feature_value", element.get("value", np.nan)))
            return nodes.ask(self.equals(int(element["cat_feature_index"]), value), aside, on)

        return below(0, 0)

    def _by_code(self, feature: int, nodes: Unfolded, child: Callable[[int], int]) -> int:
        """Ask for a category: the codes with the same answer together, the most frequent answer last."""
        column, codes = self.codes(feature)
        groups: dict[int, list[float]] = {}
        for code in sorted(set(codes)):
            groups.setdefault(child(int(code) & _WORD), []).append(code)
        *some, last = sorted(groups, key=lambda at: len(groups[at]))
        for at in reversed(some):
            last = nodes.ask(Question(column, left=frozenset(groups[at])), at, last)
        return last

    def _statistic(self, ctr: Any) -> _Statistic:
        kind, parts = ctr["ctr_type"], [e["combination_element"] for e in ctr["elements"]]
        key = repr((ctr["identifier"], ctr["prior_numerator"], ctr["prior_denomerator"], ctr["target_border_idx"]))
        if key in self._read:
            return self._read[key]
        known = {"cat_feature_value", "float_feature", "cat_feature_exact_value"}
        if kind not in _COUNTED | _MEANS | _CLASSES or not set(parts) <= known:
            raise UnsupportedModel(
                f"{self.where}CatBoost's statistic {kind!r} over {', '.join(parts)} cannot be read; Borders, Buckets, "
                "Counter, FeatureFreq and the target means over categories and numbers can. Choose among these in "
                "simple_ctr and combinations_ctr, or fit with one_hot_max_size=255."
            )
        data = self.model["ctr_data"][ctr["identifier"]]
        flat, stride = data["hash_map"], int(data["hash_stride"])
        rows = {int(flat[i]): [float(v) for v in flat[i + 1 : i + stride]] for i in range(0, len(flat), stride)}
        rows.pop(_EMPTY, None)
        self._read[key] = _Statistic(
            kind,
            ctr["elements"],
            rows,
            float(data.get("counter_denominator", 0)),
            (float(ctr["prior_numerator"]), float(ctr["prior_denomerator"])),
            (float(ctr["shift"]), float(ctr["scale"])),
            int(ctr["target_border_idx"]),
        )
        return self._read[key]
