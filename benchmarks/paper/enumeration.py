"""Enumeration: the fewest features whose change turns a forest's answer, found by asking the forest about every cell.

A forest is constant between two neighbouring thresholds of a number, so one value of every cell stands for all of them. No
optimisation and nothing of `ifonly` is used: only `predict`, on rows that differ from the factual in one feature, then
in two. So what this says about a printed figure does not rest on the method that is compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from benchmarks.paper.models import Fitted
from benchmarks.peers.encoding import FloatArray

__all__ = ["Fewest", "fewest", "markdown", "values_of"]

_AT_ONCE = 200_000


@dataclass(frozen=True)
class Fewest:
    """Factuals of a data set by the fewest changes that turn them.

    Attributes
    ----------
    by_one, by_two, more
        How many factuals one change turns; two, and not one; no two.
    features
        The number of features of the data.
    """

    data: str
    by_one: int
    by_two: int
    more: int
    features: int

    @property
    def sparsity(self) -> float:
        """The greatest sparsity that valid answers to all factuals can have; "more" counted as three."""
        changes = self.by_one + 2 * self.by_two + 3 * self.more
        return 1.0 - changes / ((self.by_one + self.by_two + self.more) * self.features)


def values_of(source: Fitted) -> list[FloatArray]:
    """Return for each feature one value of every cell of the forest; none for a feature that may not change."""
    data = source.data
    columns, forest = source.model[0], source.model[-1]
    scaler, numbers = columns.named_transformers_["number"], columns.transformers_[0][2]
    used: dict[str, list[float]] = {name: [] for name in numbers}
    for tree in forest.arrays_:
        for column, threshold in zip(tree["column"], tree["threshold"], strict=True):
            if 0 <= column < len(numbers):
                raw = (float(threshold) - scaler.min_[column]) / scaler.scale_[column]
                used[numbers[column]].append(raw)
    out = []
    for field in data.encoding.fields:
        if field.name in data.frozen:
            out.append(np.zeros(0))
        elif field.kind == "category":
            out.append(np.arange(len(field.levels), dtype=np.float64))
        else:
            out.append(_cells(np.unique(used[field.name]), field.low, field.high, field.kind == "integer"))
    return out


def _cells(thresholds: FloatArray, low: float, high: float, whole: bool) -> FloatArray:
    """Return a value of every cell within the bounds, and those that rounding may put on either side of a threshold."""
    if whole:
        near = np.concatenate([np.floor(thresholds) + step for step in (-1.0, 0.0, 1.0, 2.0)])
    else:
        ends = np.concatenate([[low], thresholds, [high]])
        near = np.concatenate([(ends[1:] + ends[:-1]) / 2.0, thresholds])
    values = np.unique(np.concatenate([[low, high], near]))
    return values[(values >= low) & (values <= high)]


def fewest(source: Fitted) -> Fewest:
    """Ask the forest about every single change of every factual, and every two where no single one does."""
    data, values = source.data, values_of(source)
    found = {1: 0, 2: 0, 3: 0}
    for position in source.asked:
        factual = data.codes(data.test.frame.iloc[[position]])[0]
        found[_changes(source, factual, values)] += 1
    return Fewest(data.name, found[1], found[2], found[3], len(data.encoding.fields))


def _changes(source: Fitted, factual: FloatArray, values: list[FloatArray]) -> int:
    """Return 1 or 2, or 3 when no two changes do."""
    free = [j for j, own in enumerate(values) if len(own)]
    if any(_turns(source, factual, (j,), values) for j in free):
        return 1
    return 2 if any(_turns(source, factual, pair, values) for pair in combinations(free, 2)) else 3


def _turns(source: Fitted, factual: FloatArray, features: tuple[int, ...], values: list[FloatArray]) -> bool:
    grid = np.stack([part.ravel() for part in np.meshgrid(*(values[j] for j in features))], axis=1)
    for start in range(0, len(grid), _AT_ONCE):
        part = grid[start : start + _AT_ONCE]
        rows = np.tile(factual, (len(part), 1))
        rows[:, features] = part
        if source.wanted(source.data.frame(rows)).any():
            return True
    return False


def markdown(found: list[Fewest]) -> str:
    """Return one line per data set."""
    head = "| data | one change turns | two, not one | no two | greatest sparsity of valid answers |\n"
    head += "|---|---:|---:|---:|---:|\n"
    return head + "".join(
        f"| {f.data} | {f.by_one} | {f.by_two} | {f.more} | {'at most ' if f.more else ''}{f.sparsity:.3f} |\n"
        for f in found
    )
