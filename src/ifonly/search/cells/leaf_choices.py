"""Choices of the leaves of one tree: what each feature can do in a box, and which leaves allow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric, Schema
from ifonly.models.abilities import Ensemble
from ifonly.models.forms.scan import inside
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.question.statement import Statement

__all__ = ["Choices", "Priced", "all_choices"]

BoolArray = npt.NDArray[np.bool_]


class Priced(NamedTuple):
    """Choices of one question: their values, their costs, and the place of each feature's own (-1: it has none)."""

    value: FloatArray
    cost: FloatArray
    home: IntArray


@dataclass(frozen=True, eq=False)
class Choices:
    """Cells of numbers and levels of categories, feature by feature; they do not depend on the factual.

    Attributes
    ----------
    feature, entry
        The feature of each choice, and its entry of the canonical vector: that of the number, or of the level.
    low, high
        The ends of each cell; those of a level are 1.
    first
        Where each feature's choices begin.
    allowed
        Which leaves allow which choices, shape (choices, leaves): all points of a cell are the same to the tree.
    """

    feature: IntArray
    entry: IntArray
    low: FloatArray
    high: FloatArray
    first: IntArray
    allowed: BoolArray

    def priced(self, statement: Statement) -> Priced:
        """Return the point of each choice that is nearest to the factual, and what it costs."""
        schema, factual, costs = statement.query.schema, statement.query.factual, statement.costs()
        hat = factual[self.entry]
        number = np.isin(self.feature, schema.numeric)
        value = np.clip(hat, self.low, self.high)
        cost = np.empty(len(value))
        cost[number] = costs.numeric(self.feature[number], (value - hat)[number])
        cost[~number] = costs.entries(schema, factual, self.entry[~number])
        own = np.flatnonzero(value == hat)
        home = np.full(len(self.first), -1)
        home[np.searchsorted(self.first, own, side="right") - 1] = own
        return Priced(value, cost, home)

    def cheapest(self, priced: Priced) -> tuple[FloatArray, IntArray]:
        """Return, per leaf, the least cost of all features together, and how many must change for it."""
        dear = np.where(self.allowed, priced.cost[:, None], np.inf)
        least = np.minimum.reduceat(dear, self.first, axis=0)
        stays = (priced.home >= 0)[:, None] & (dear[priced.home] <= least)
        return least.sum(axis=0), (~stays).sum(axis=0)

    def take(self, leaf: int, priced: Priced, u: FloatArray, schema: Schema) -> None:
        """Write the cheapest choice of each feature that a leaf allows into a factual; where it may, a feature stays."""
        dear = np.where(self.allowed[:, leaf], priced.cost, np.inf)
        ends = [*self.first[1:].tolist(), len(dear)]
        for low, high, home in zip(self.first.tolist(), ends, priced.home.tolist(), strict=True):
            best = low + int(dear[low:high].argmin())
            if home < 0 or dear[best] < dear[home]:
                u[schema.slice(int(self.feature[best]))] = 0.0
                u[self.entry[best]] = priced.value[best]


def all_choices(form: Ensemble, box: Box, leaves: IntArray, most: int) -> tuple[Choices, ...]:
    """Return the choices of the features that a tree looks at, in parts of at most so many entries of `allowed`."""
    parts: list[list[_One]] = [[]]
    size = 0
    for one in _one_by_one(form, box):
        size += len(one.entry) * len(leaves)
        if size > most and parts[-1]:
            parts.append([])
            size = len(one.entry) * len(leaves)
        parts[-1].append(one)
    return tuple(_together(form, part, leaves) for part in parts if part)


class _One(NamedTuple):
    """The choices of one feature."""

    j: int
    entry: IntArray
    low: FloatArray
    high: FloatArray


def _one_by_one(form: Ensemble, box: Box) -> Iterator[_One]:
    schema, cuts = box.schema, form.cuts()  # of the question, which may be on a grid where the form's is not
    for j in sorted(form.features()):
        feature, start = schema.features[j], schema.starts[j]
        if isinstance(feature, Numeric):
            cells = Cells.of(feature, float(box.lower[j]), float(box.upper[j]), cuts[j])
            yield _One(j, np.full(len(cells.low), start), cells.low, cells.high)
        else:
            levels = start + np.flatnonzero(box.allowed[schema.slice(j)])
            yield _One(j, levels, np.ones(len(levels)), np.ones(len(levels)))


def _together(form: Ensemble, parts: Sequence[_One], leaves: IntArray) -> Choices:
    sizes = [len(one.entry) for one in parts]
    return Choices(
        np.repeat([one.j for one in parts], sizes),
        np.concatenate([one.entry for one in parts]),
        np.concatenate([one.low for one in parts]),
        np.concatenate([one.high for one in parts]),
        np.cumsum([0, *sizes[:-1]]),
        np.concatenate([inside(form, one.j, _canonical(form, one), leaves) for one in parts]),
    )


def _canonical(form: Ensemble, one: _One) -> FloatArray:
    """Return the canonical parts of one feature's choices: a point of each cell, or the levels."""
    if isinstance(form.schema.features[one.j], Numeric):
        return one.low[:, None]
    return np.eye(form.schema.features[one.j].width)[one.entry - form.schema.starts[one.j]]
