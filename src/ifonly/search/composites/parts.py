"""Parts of a search that splits scores: a node of inputs, and an interval for each score of the atoms.

An interval of a score says something of the others: linear scores may be each other's negatives and sums, as the leads of
three classes over each other are, and a goal that can be met only by some scores narrows them all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.forms.enclosing import Rows
from ifonly.models.forms.planes import size_of
from ifonly.search.composites.tables import Tables
from ifonly.search.inputs.nodes import Nodes
from ifonly.tolerances import CHAINED_ROUNDING, ROUNDING

__all__ = ["Part", "Parts", "View"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Part:
    """An interval of each number, a set of levels of each category, and an interval of each score."""

    low: FloatArray
    high: FloatArray
    allowed: BoolArray
    least: FloatArray
    most: FloatArray


@dataclass(frozen=True, eq=False)
class View:
    """A part as it is bounded.

    Attributes
    ----------
    nodes
        Its inputs, one node of them.
    cells
        The first and the last cell that each number reaches.
    open_
        The leaves that are open.
    low, high
        Bounds of all scores.
    rows
        Upper bounds of the rows of the goal, linear in the scores of the atoms.
    """

    nodes: Nodes
    cells: tuple[IntArray, IntArray]
    open_: BoolArray
    low: FloatArray
    high: FloatArray
    rows: Rows


class _Ties:
    """Linear scores that are a negative of another one, or a sum of two others: ``s_k = a s_i + b s_j`` with signs.

    Scores are rounded, and so are the weights of a sum of weights: each tie holds within its room.
    """

    def __init__(self, tables: Tables, whole: Nodes) -> None:
        reach = np.zeros(tables.n_free)
        numbers = size_of(whole.low[0], whole.high[0])
        reach[: len(numbers)], reach[len(numbers) :] = numbers, 1.0
        self.ties: list[tuple[int, tuple[tuple[int, float], ...], float]] = []
        for atom, weights, shift in zip(tables.linear, tables.weights, tables.shift, strict=True):
            full, room = np.column_stack([weights * reach, shift]), tables.room[atom.place]
            size = np.abs(full).sum(axis=1)
            kinds = [i for i in range(len(full)) if size[i] > 0.0]
            signed: list[tuple[tuple[int, float], ...]] = [((i, a),) for i in kinds for a in (1.0, -1.0)]
            signed += [
                ((i, a), (j, b)) for i in kinds for j in kinds if i < j for a in (1.0, -1.0) for b in (1.0, -1.0)
            ]
            for k in kinds:
                for terms in signed:
                    if any(i == k for i, _ in terms):
                        continue
                    off = np.abs(full[k] - sum(a * full[i] for i, a in terms)).sum()
                    if off <= ROUNDING * size[k]:
                        rooms = float(room[k] + sum(room[i] for i, _ in terms) + 2.0 * off)
                        first = atom.place.start
                        self.ties.append((first + k, tuple((first + i, a) for i, a in terms), rooms))

    def narrow(self, low: FloatArray, high: FloatArray) -> None:
        """Narrow intervals of scores in place."""
        for k, terms, room in self.ties:
            ends = [(a * low[i], a * high[i]) if a > 0.0 else (a * high[i], a * low[i]) for i, a in terms]
            lower, upper = sum(e[0] for e in ends), sum(e[1] for e in ends)
            size = CHAINED_ROUNDING * sum(max(abs(e[0]), abs(e[1])) for e in ends) + room
            low[k], high[k] = max(low[k], lower - size), min(high[k], upper + size)


class Parts:
    """Views of parts of one box, for rows of a goal."""

    def __init__(self, tables: Tables, rows: FloatArray, constant: FloatArray, whole: Nodes) -> None:
        self.tables, self.constant = tables, constant
        self.asked = Rows(rows[None], constant, rows[None])
        self.whole = whole
        self.ties = _Ties(tables, whole)

    def root(self) -> Part:
        """Return the whole box."""
        whole, n = self.whole, self.tables.enclosure.n_places
        return Part(whole.low[0], whole.high[0], whole.allowed[0], np.full(n, -np.inf), np.full(n, np.inf))

    def view(self, part: Part, budget: float) -> View | None:
        """Return what a budget leaves of a part; None where nothing is left, or the goal cannot be met."""
        tables, enclosure = self.tables, self.tables.enclosure
        nodes = replace(
            self.whole, low=part.low[None], high=part.high[None], allowed=part.allowed[None], budget=budget
        ).reduced()
        if not len(nodes):
            return None
        cells = tables.cells(nodes)
        open_ = tables.affordable(nodes, *cells)
        if tables.root.size and not np.logical_or.reduceat(open_[0], tables.root).all():
            return None
        low, high = tables.scores(nodes, open_)
        low[0], high[0] = np.maximum(low[0], part.least), np.minimum(high[0], part.most)
        self.ties.narrow(low[0], high[0])
        if self._empty(low, high):
            return None
        found = enclosure.narrowed(self.asked, *enclosure.bounds(low, high))
        if found.closed[0]:
            return None
        self.ties.narrow(found.low[0], found.high[0])
        if self._empty(found.low, found.high):
            return None
        return View(nodes, cells, open_, found.low, found.high, found.rows)

    def near(self, view: View, at: FloatArray) -> Rows:
        """Return upper bounds of the rows of the goal that are tight near some scores."""
        return self.tables.enclosure.rows(self.asked, view.low, view.high, at[None])

    def _empty(self, low: FloatArray, high: FloatArray) -> bool:
        inner = self.tables.enclosure.inner
        return bool((low[0, inner] > high[0, inner]).any())
