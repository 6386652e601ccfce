"""Tables of one composite: cells and open leaves of all its trees, its linear parts, bounds of its goal in many nodes.

A node is an interval of each number and a set of levels of each category (`ifonly.search.inputs.nodes`). Trees see the cells
that it reaches, linear parts the interval itself. Rows of the goal are bounded by linear functions of the scores of both
(`ifonly.models.forms.enclosing`); of a tree, the best open leaf counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.models.abilities import Ensemble, LinearScores
from ifonly.models.forms.enclosing import Atom, Enclosure, Rows
from ifonly.models.forms.leaves import Leaves
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.search.inputs.free import Free
from ifonly.search.inputs.nodes import Nodes
from ifonly.search.inputs.places import Places
from ifonly.tolerances import DUST, TINY

__all__ = ["Looked", "Tables"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Looked:
    """Bounds of the rows of a goal in nodes.

    Attributes
    ----------
    nodes
        The nodes in which every tree has an open leaf.
    slopes, constant
        Per node and row: ``row(x) <= slopes @ x + constant`` over the free inputs, trees at their best leaves.
    looseness
        Per node, row and free feature with a linear part: about how much of the bound is owed to what curves do to it.
    open_
        The leaves that are open, per node.
    lean
        Per node and row: slopes of atom scores by which a search may go.
    low, high
        The cells that each number reaches, per node.
    least, leaf
        The least cost of each node by prices, and what each leaf costs by them; None: there are none.
    """

    nodes: Nodes
    slopes: FloatArray
    constant: FloatArray
    looseness: FloatArray
    open_: BoolArray
    lean: FloatArray
    low: IntArray
    high: IntArray
    least: FloatArray | None = None
    leaf: FloatArray | None = None


class Priced(Protocol):
    """Prices by which nodes are bounded."""

    def least(
        self,
        nodes: Nodes,
        cells: tuple[IntArray, IntArray],
        open_: BoolArray,
        spans: tuple[FloatArray, FloatArray],
    ) -> tuple[FloatArray, FloatArray]:
        """Return the least cost of nodes, and what leaves cost by these prices."""
        ...


class Tables:
    """Tables of one composite in one box.

    Attributes
    ----------
    low, high
        The ends of all cells, number by number, from the origin.
    value
        Of each cell: its raw value nearest to the factual.
    first
        The first cell of each number.
    begin, end
        The first and the last cell that a leaf allows, shape (numbers, leaves).
    holds
        Whether a leaf allows a level, shape (entries, leaves).
    root
        The first leaf of each tree.
    """

    def __init__(self, enclosure: Enclosure, box: Box, places: Places, free: Free, factual: FloatArray) -> None:
        self.enclosure, self.places, self.free = enclosure, places, free
        self.trees = [atom for atom in enclosure.atoms if isinstance(atom.form, Ensemble)]
        self.linear = [atom for atom in enclosure.atoms if not isinstance(atom.form, Ensemble)]
        leaves = [atom.form.leaves.within(box) for atom in self.trees if isinstance(atom.form, Ensemble)]
        self._tabulate_cells(box, leaves, factual)
        self._tabulate_leaves(leaves)
        self._tabulate_costs()
        self._tabulate_linear()
        self.room = np.zeros(enclosure.n_places)
        for atom in enclosure.atoms:
            self.room[atom.place] = atom.room

    # -- tables -------------------------------------------------------------------------------------------------
    def _tabulate_cells(self, box: Box, leaves: Sequence[Leaves], factual: FloatArray) -> None:
        schema, n = self.places.schema, sum(len(part.node) for part in leaves)
        self.begin = np.zeros((len(self.places.numbers), n), dtype=np.int32)
        self.end = np.zeros_like(self.begin)
        lows, highs, values, sizes = [], [], [], []
        for k, j in enumerate(self.places.numbers):
            feature, origin = schema.features[j], self.places.origin[schema.starts[j]]
            assert isinstance(feature, Numeric)
            cuts = [part.cuts[j] for part in leaves if j in part.cuts]
            every = np.unique(np.concatenate(cuts)) if cuts else np.empty(0)
            cells = Cells.of(feature, float(box.lower[j]), float(box.upper[j]), every)
            nearest, at = cells.nearest(float(factual[schema.starts[j]])), 0
            for part in leaves:
                own = slice(at, at + len(part.node))
                at = own.stop
                position = part.cuts[j].searchsorted(nearest, side="left") if j in part.cuts else np.zeros(len(nearest))
                self.begin[k, own] = position.searchsorted(part.low_of[j], side="right")
                self.end[k, own] = position.searchsorted(part.high_of[j], side="right") - 1
            ends = _apart(np.column_stack([cells.low, cells.high]).ravel() - origin)
            lows.append(ends[::2])
            highs.append(ends[1::2])
            values.append(nearest)
            sizes.append(len(nearest))
        self.size = np.array(sizes, dtype=np.int64)
        self.first = np.cumsum([0, *sizes[:-1]], dtype=np.int64) if sizes else np.empty(0, dtype=np.int64)
        self.low, self.high, self.value = (np.concatenate(p) if p else np.empty(0) for p in (lows, highs, values))
        self.number_of = np.repeat(np.arange(len(sizes)), self.size)

    def _tabulate_leaves(self, leaves: Sequence[Leaves]) -> None:
        counts = [len(part.node) for part in leaves]
        self.ends = np.cumsum([0, *counts], dtype=np.int64)
        self.root = (
            np.concatenate([part.first + at for part, at in zip(leaves, self.ends, strict=False)])
            if leaves
            else np.empty(0, dtype=np.int64)
        )
        self.count = np.diff(self.root, append=self.ends[-1])
        self.values = [
            atom.form.leaf_values(part.node)
            for atom, part in zip(self.trees, leaves, strict=True)
            if isinstance(atom.form, Ensemble)
        ]
        self.base = [atom.form.base for atom in self.trees if isinstance(atom.form, Ensemble)]
        held = [part.levels[:, self.places.entries].T for part in leaves]
        self.holds = np.concatenate(held, axis=1) if held else np.zeros((len(self.places.entries), 0), dtype=np.bool_)
        spans = np.append(self.free.first, len(self.places.entries))
        self.told = [
            (c, slice(int(a), int(b)))
            for c, (a, b) in enumerate(pairwise(spans))
            if self.holds.size and not self.holds[a:b].all()
        ]

    def _tabulate_costs(self) -> None:
        """Tabulate the cost of each cell, and of each leaf the numbers that it asks something of."""
        free, by = self.free, self.number_of
        self.near = np.clip(free.home[by], self.low, self.high)
        away = np.abs(self.near - free.home[by])
        self.cost = free.rate[by] * away + free.square[by] * away**2 + free.price[by] * (away > 0.0)
        cells = zip(self.first, self.size, strict=True)
        self.cheapest = np.array([int(self.cost[a : a + n].argmin()) for a, n in cells], dtype=np.int64)
        asks = (self.begin > 0) | (self.end < self.size[:, None] - 1)
        leaf, self.asked = (a.astype(np.int64) for a in np.nonzero(asks.T))
        self.asking, self.asked_first = np.unique(leaf, return_index=True)
        self.asked_begin, self.asked_end = self.begin[self.asked, leaf], self.end[self.asked, leaf]

    def _tabulate_linear(self) -> None:
        free = np.concatenate([self.places.places, self.places.entries])
        self.weights, self.shift = [], []
        for atom in self.linear:
            assert isinstance(atom.form, LinearScores)
            self.weights.append(atom.form.weights[:, free])
            self.shift.append(atom.form.weights @ self.places.origin + atom.form.intercept)
        self.n_free = len(free)

    @property
    def n_leaves(self) -> int:
        """Number of leaves that the box leaves open."""
        return int(self.ends[-1])

    def is_finite(self) -> bool:
        """Whether all cells have ends."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())

    # -- nodes --------------------------------------------------------------------------------------------------
    def cells(self, nodes: Nodes) -> tuple[IntArray, IntArray]:
        """Return the first and the last cell that each number reaches in nodes."""
        low, high = np.zeros((2, len(nodes), len(self.size)), dtype=np.int64)
        for k, (a, n) in enumerate(zip(self.first, self.size, strict=True)):
            low[:, k] = np.minimum(self.high[a : a + n].searchsorted(nodes.low[:, k], side="left"), n - 1)
            high[:, k] = np.maximum(self.low[a : a + n].searchsorted(nodes.high[:, k], side="right") - 1, low[:, k])
        return low, high

    def open(self, low: IntArray, high: IntArray, allowed: BoolArray) -> BoolArray:
        """Return the leaves that are open in nodes."""
        out = np.ones((len(low), self.n_leaves), dtype=np.bool_)
        for k in np.flatnonzero((low > 0).any(axis=0)):
            out &= self.end[k] >= low[:, k, None]
        for k in np.flatnonzero((high < self.size - 1).any(axis=0)):
            out &= self.begin[k] <= high[:, k, None]
        for _, span in self.told:
            out &= (allowed[:, span].astype(np.float32) @ self.holds[span].astype(np.float32)) > 0.0
        return out

    def affordable(self, nodes: Nodes, low: IntArray, high: IntArray) -> BoolArray:
        """Return the leaves that are open in nodes, and whose demands on all features together keep to the budget."""
        out = self.open(low, high, nodes.allowed)
        if not np.isfinite(nodes.budget):
            return out
        extra = np.zeros(out.shape)
        if self.asked.size:
            k = self.asked
            begin, end = np.maximum(self.asked_begin, low[:, k]), np.minimum(self.asked_end, high[:, k])
            at = np.minimum(np.maximum(self.cheapest[k], begin), np.maximum(end, begin))
            more = np.maximum(self.cost[self.first[k] + at] - nodes.least[:, k], 0.0)
            extra[:, self.asking] = np.add.reduceat(more, self.asked_first, axis=1)
        n = self.free.n_numbers
        for c, span in self.told:
            cheap = nodes.allowed[:, span] & (self.free.level_cost[span] <= nodes.least[:, n + c, None])
            held = (cheap.astype(np.float32) @ self.holds[span].astype(np.float32)) > 0.0
            extra += np.where(held, 0.0, nodes.more[:, c, None])
        return out & (extra <= (nodes.budget - nodes.base + DUST * abs(nodes.budget))[:, None])

    def spans(self, nodes: Nodes) -> tuple[FloatArray, FloatArray]:
        """Return bounds of all scores in nodes."""
        return self.enclosure.bounds(*self.scores(nodes, self.open(*self.cells(nodes), nodes.allowed)))

    def scores(self, nodes: Nodes, open_: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds of the scores of all atoms, in the places of all scores, the leaves that are open given."""
        low, high = np.zeros((2, len(nodes), self.enclosure.n_places))
        for i, atom in enumerate(self.trees):
            own, first = self._own(i)
            held = open_[:, own]
            for k, value in enumerate(self.values[i].T):
                place = atom.place.start + k
                least = np.minimum.reduceat(np.where(held, value, np.inf), first, axis=1)
                low[:, place] = least.sum(axis=1) + self.base[i][k] - atom.room[k]
                most = np.maximum.reduceat(np.where(held, value, -np.inf), first, axis=1)
                high[:, place] = most.sum(axis=1) + self.base[i][k] + atom.room[k]
        for atom, weights, shift in zip(self.linear, self.weights, self.shift, strict=True):
            slopes = np.broadcast_to(weights, (len(nodes), *weights.shape))
            low[:, atom.place] = shift - nodes.largest(-slopes) - atom.room
            high[:, atom.place] = shift + nodes.largest(slopes) + atom.room
        return low, high

    def _own(self, i: int) -> tuple[slice, IntArray]:
        """Return the leaves of an ensemble, and which of them are the first of their trees."""
        a, b = int(self.ends[i]), int(self.ends[i + 1])
        return slice(a, b), self.root[(self.root >= a) & (self.root < b)] - a

    def worth(self, slopes: FloatArray) -> FloatArray:
        """Return what leaves are worth to rows of atom scores, per node and row."""
        parts = [slopes[:, :, atom.place] @ value.T for atom, value in zip(self.trees, self.values, strict=True)]
        return np.concatenate(parts, axis=2) if parts else np.zeros((*slopes.shape[:2], 0))

    def look(self, nodes: Nodes, rows: FloatArray, constant: FloatArray, prices: Priced | None = None) -> Looked | None:
        """Bound rows ``rows @ scores + constant`` in nodes; None where some tree of each has no leaf within the budget."""
        low, high = self.cells(nodes)
        open_ = self.affordable(nodes, low, high)
        some = np.asarray(np.logical_or.reduceat(open_, self.root, axis=1).all(axis=1))
        if not some.all():
            nodes, low, high, open_ = nodes.pick(some), low[some], high[some], open_[some]
        if not len(nodes):
            return None
        spans = self.enclosure.bounds(*self.scores(nodes, open_))
        shape = (len(nodes), *rows.shape)
        asked = Rows(np.broadcast_to(rows, shape), constant, np.broadcast_to(rows, shape))
        bound = self.enclosure.rows(asked, *spans)
        total = bound.constant + np.abs(bound.slopes) @ self.room
        if self.trees:
            worth = np.where(open_[:, None], self.worth(bound.slopes), -np.inf)
            total = total + np.maximum.reduceat(worth, self.root, axis=2).sum(axis=2)
        for atom, base in zip(self.trees, self.base, strict=True):
            total = total + bound.slopes[:, :, atom.place] @ base
        slopes = np.zeros((*shape[:2], self.n_free))
        looseness = np.zeros((*shape[:2], nodes.free.n_features))
        for atom, weights, shift in zip(self.linear, self.weights, self.shift, strict=True):
            own = bound.slopes[:, :, atom.place]
            slopes += own @ weights
            total = total + own @ shift
            looseness += self._looseness(nodes, bound, spans, atom, weights)
        least, leaf = (None, None) if prices is None else prices.least(nodes, (low, high), open_, spans)
        return Looked(nodes, slopes, total, looseness, open_, bound.lean, low, high, least, leaf)

    def _looseness(
        self, nodes: Nodes, bound: Rows, spans: tuple[FloatArray, FloatArray], atom: Atom, weights: FloatArray
    ) -> FloatArray:
        """Return what the slopes of a linear atom's scores leave open, shared out by how far features move the scores."""
        wide = (spans[1] - spans[0])[:, None, atom.place]
        loose = np.abs(bound.lean - bound.slopes)[:, :, atom.place] * wide
        extent = nodes.extent(np.broadcast_to(weights, (len(nodes), *weights.shape)))
        return np.asarray(loose @ (extent / np.maximum(extent.sum(axis=2, keepdims=True), TINY)))

    def of_inputs(self, slopes: FloatArray) -> FloatArray:
        """Return slopes of atom scores as slopes of the free inputs, those of linear atoms only."""
        out = np.zeros((len(slopes), self.n_free))
        for atom, weights in zip(self.linear, self.weights, strict=True):
            out += slopes[:, atom.place] @ weights
        return out

    # -- points -------------------------------------------------------------------------------------------------
    def points(self, start: FloatArray, numbers: FloatArray, levels: IntArray) -> FloatArray:
        """Return canonical rows with these raw numbers and levels, other features as in `start`."""
        at = self.places
        U = np.repeat(start[None, :], len(numbers), axis=0)
        U[:, at.places] = numbers
        U[:, at.entries] = 0.0
        U[np.arange(len(U))[:, None], at.entries[levels]] = 1.0
        return at.schema.stored(U)

    def around(self, nodes: Nodes, U: FloatArray) -> Nodes:
        """Return the parts of nodes in which every number keeps the cell, and every category the level, of a point."""
        x = U[:, self.places.places] - self.places.origin[self.places.places]
        low, high = nodes.low.copy(), nodes.high.copy()
        for k, (a, n) in enumerate(zip(self.first, self.size, strict=True)):
            cell = a + np.minimum(self.high[a : a + n].searchsorted(x[:, k], side="left"), n - 1)
            low[:, k], high[:, k] = np.maximum(low[:, k], self.low[cell]), np.minimum(high[:, k], self.high[cell])
        return replace(nodes, low=low, high=np.maximum(low, high), allowed=U[:, self.places.entries] > 0.0)


def _apart(ends: FloatArray) -> FloatArray:
    """Return the ends of cells, first and last values in turn, such that no two cells fall together.

    Counted from an origin, neighbouring floats may have become the same one; then the later one is moved up by a float.
    """
    for i in range(2, len(ends), 2):
        if ends[i] <= ends[i - 1]:
            ends[i] = np.nextafter(ends[i - 1], np.inf)
            ends[i + 1] = max(ends[i], ends[i + 1])
    return ends
