"""Branching of nodes of a composite: where the best leaves of its trees lie apart, or along what its curves are loosest by.

The weight of a tree is what its best leaf is worth beyond the next one. A split behind a cell is worth the weight of the
trees whose best leaf ends before it, or of those whose best leaf begins behind it, whichever is less: each side loses one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.runtime.tuning import CompositeSearch
from ifonly.search.composites.tables import Looked, Tables
from ifonly.search.inputs.free import Free
from ifonly.search.inputs.nodes import Nodes, Spent
from ifonly.tolerances import DUST, ROUNDING, TINY

__all__ = ["Branching", "Chosen", "Split", "behind_cell", "beside_level"]

BoolArray = npt.NDArray[np.bool_]
Child = tuple[FloatArray, FloatArray, BoolArray]


@dataclass(frozen=True, eq=False)
class Split:
    """A split of a node into intervals of one number, or into sets of levels."""

    number: int = -1
    intervals: tuple[tuple[float, float], ...] = ()
    levels: tuple[BoolArray, ...] = ()

    def children(self, low: FloatArray, high: FloatArray, allowed: BoolArray) -> Iterator[Child]:
        """Yield the children of a node."""
        for levels in self.levels:
            yield low, high, allowed & levels
        for a, b in self.intervals:
            lower, upper = max(a, float(low[self.number])), min(b, float(high[self.number]))
            if lower <= upper:
                yield _with(low, self.number, lower), _with(high, self.number, upper), allowed


@dataclass(frozen=True, eq=False)
class _Best:
    """Best leaf of each tree in each node: its first and last cell per number, its levels, and the weight of the tree."""

    begin: IntArray
    end: IntArray
    holds: BoolArray
    weight: FloatArray
    spread: FloatArray


class Chosen(NamedTuple):
    """Splits of nodes, None where there is one point or all points are the same; raw numbers and levels of points.

    Attributes
    ----------
    headed
        Of the first nodes: where most best leaves meet.
    last
        Of the nodes without a split: their cheapest points.
    """

    splits: list[Split | None]
    headed: list[tuple[FloatArray, IntArray]]
    last: list[tuple[FloatArray, IntArray]]


class Branching:
    """Choice of the splits of nodes; `raw` are the numbers whose raw value matters."""

    def __init__(self, tables: Tables, raw: frozenset[int], tuning: CompositeSearch) -> None:
        self.tables, self.free, self.tuning = tables, tables.free, tuning
        self.raw = np.array([j in raw for j in tables.places.numbers], dtype=np.bool_)

    def of(self, nodes: Nodes, looked: Looked, which: IntArray, row: IntArray, best: Spent, few: int) -> Chosen:
        """Return the splits of some of the nodes that were looked at, by one row each, and points of the first `few`."""
        low, high = looked.low[which], looked.high[which]
        lean = looked.lean[which, row][:, None]
        tops = self._best(self.tables.worth(lean)[:, 0], looked.open_[which], low, high)
        rate = np.where(best.rate > 0.0, best.rate, 1.0)[:, None]
        along, cover = self._along(tops)
        among, hold = self._among(nodes, tops)
        loose = np.nan_to_num(looked.looseness[which, row] / rate) + best.excess
        loose[:, : len(self.raw)][:, ~self.raw] = 0.0
        along, among = along / rate, among / rate
        if looked.leaf is not None and looked.least is not None:
            along = self._tried(along, looked.leaf[which], looked.open_[which], nodes.budget - looked.least[which])
        parts = [_Node(self, nodes, i, low[i], high[i]) for i in range(len(which))]
        splits = [node.split(along[node.i], among[node.i], loose[node.i], tops) for node in parts]
        headed = [node.point(cover[node.i], hold[node.i], best) for node in parts[:few]]
        last = np.array([i for i, split in enumerate(splits) if split is None], dtype=np.int64)
        return Chosen(splits, headed, self._cheapest(nodes.pick(last), low[last], high[last]))

    def _cheapest(self, nodes: Nodes, low: IntArray, high: IntArray) -> list[tuple[FloatArray, IntArray]]:
        """Return the cheapest points of nodes in which nothing is left to be told apart."""
        tables, free = self.tables, self.free
        at = np.minimum(np.maximum(tables.cheapest, low), high)
        inside = (nodes.near >= tables.low[tables.first + at]) & (nodes.near <= tables.high[tables.first + at])
        raw = np.where(
            self.raw & inside & ~(free.step > 0.0), nodes.near + free.origin, tables.value[tables.first + at]
        )
        cost = np.where(nodes.allowed, np.where(free.level_home, -1.0, free.level_cost), np.inf)
        spans = list(pairwise(np.append(free.first, len(free.owner))))
        levels = np.array([[a + int(row[a:b].argmin()) for a, b in spans] for row in cost], dtype=np.int64)
        return list(zip(raw, levels.reshape(len(raw), len(spans)), strict=True))

    def _best(self, worth: FloatArray, open_: BoolArray, low: IntArray, high: IntArray) -> _Best:
        tables = self.tables
        n, trees = len(worth), len(tables.root)
        if not trees:
            none = np.zeros((n, 0))
            empty = np.zeros((len(tables.size), n, 0), dtype=np.int64)
            return _Best(empty, empty, np.zeros((len(tables.holds), n, 0), dtype=np.bool_), none, none)
        value = np.where(open_, worth, -np.inf)
        top = np.maximum.reduceat(value, tables.root, axis=1)
        places = np.arange(worth.shape[1])
        hit = value == np.repeat(top, tables.count, axis=1)
        best = np.minimum.reduceat(np.where(hit, places, worth.shape[1]), tables.root, axis=1)
        np.put_along_axis(value, best, -np.inf, axis=1)
        second = np.maximum.reduceat(value, tables.root, axis=1)
        bottom = np.minimum.reduceat(np.where(open_, worth, np.inf), tables.root, axis=1)
        weight = np.where(np.isfinite(second), top - second, 0.0)
        # where leaves are worth the same, a split tells them apart all the same
        weight = weight + np.where(np.isfinite(second), self.tuning.same_weight * (top - bottom) + DUST, 0.0)
        begin = np.maximum(tables.begin[:, best], low.T[:, :, None])
        end = np.minimum(tables.end[:, best], high.T[:, :, None])
        return _Best(begin.astype(np.int64), end.astype(np.int64), tables.holds[:, best], weight, top - bottom)

    def _along(self, best: _Best) -> tuple[FloatArray, FloatArray]:
        """Return what a split behind each cell is worth, and the weight of the best leaves that hold it, per node."""
        tables, n = self.tables, len(best.weight)
        cells = len(tables.low)
        if not cells:
            return np.zeros((n, 0)), np.zeros((n, 0))
        offset = np.arange(n)[None, :, None] * cells + tables.first[:, None, None]
        weight = np.broadcast_to(best.weight, best.begin.shape).ravel()
        total = best.weight.sum(axis=1)[:, None]
        before = total * tables.number_of
        ended, begun = (
            np.bincount((offset + at).ravel(), weight, n * cells).reshape(n, cells).cumsum(axis=1) - before
            for at in (best.end, best.begin)
        )
        # a leaf that ends at a cell still holds it
        inner = np.concatenate([np.zeros((n, 1)), ended[:, :-1]], axis=1)
        inner[:, tables.first] = 0.0
        score = np.minimum(ended, total - begun)
        return np.where(score > DUST * total, score, 0.0), begun - inner  # sums that cancel leave dust

    def _tried(self, along: FloatArray, leaf: FloatArray, open_: BoolArray, spare: FloatArray) -> FloatArray:
        """Return what splits behind cells are worth, few of them: by how much the bound rises on both sides.

        Of each number the best cell is taken, and of these the best few are tried, by the prices of leaves. `spare` is how
        far the bound may rise before a node is closed.
        """
        tables = self.tables
        if not along.size:
            return along
        spans = [slice(int(a), int(a + size)) for a, size in zip(tables.first, tables.size, strict=True)]
        cell = np.column_stack([along[:, span].argmax(axis=1) for span in spans])
        score = np.take_along_axis(along, cell + tables.first, axis=1)
        k = np.argsort(-score, axis=1)[:, : self.tuning.tries]
        cell, score = (np.take_along_axis(a, k, axis=1) for a in (cell, score))
        cost = np.where(open_, leaf, np.inf)
        least = np.minimum.reduceat(cost, tables.root, axis=1).sum(axis=1)[:, None]
        room = np.clip(spare, TINY, 1.0)[:, None]
        worth = np.where(score > 0.0, 1.0, 0.0)
        for side in (tables.begin[k] <= cell[:, :, None], tables.end[k] > cell[:, :, None]):
            child = np.minimum.reduceat(np.where(side, cost[:, None], np.inf), tables.root, axis=2).sum(axis=2)
            # the product rule of Achterberg (2007), which no side may make 0
            worth = worth * (np.minimum((child - least) / room, 1.0) + self.tuning.least_rise)
        top = np.maximum(worth.max(axis=1, keepdims=True), TINY)
        out = np.zeros_like(along)
        np.put_along_axis(out, cell + tables.first[k], worth / top * score.max(axis=1, keepdims=True), axis=1)
        return out

    def _among(self, nodes: Nodes, best: _Best) -> tuple[FloatArray, FloatArray]:
        """Return what it is worth to split a level from the others, and the weight of the best leaves that hold it."""
        free, n = self.free, len(nodes)
        if not free.first.size:
            return np.zeros((n, 0)), np.zeros((n, 0))
        holds = best.holds & nodes.allowed.T[:, :, None]
        wide = np.add.reduceat(holds, free.first, axis=0, dtype=np.int64)[free.owner]
        hold = np.einsum("ent,nt->ne", holds, best.weight)
        only = np.einsum("ent,nt->ne", holds & (wide == 1), best.weight)
        total = best.weight.sum(axis=1)[:, None]
        score = np.minimum(only, total - hold)
        # sets can meet two by two and still have nothing in common
        common = np.logical_or.reduceat(holds.all(axis=2).T, free.first, axis=1)[:, free.owner]
        score = np.where(common, 0.0, np.maximum(score, self.tuning.odds * np.minimum(hold, total - hold)))
        return np.where(nodes.allowed, np.maximum(score, 0.0), 0.0), hold


class _Node:
    """One node whose split is chosen."""

    def __init__(self, branching: Branching, nodes: Nodes, i: int, low: IntArray, high: IntArray) -> None:
        self.branching, self.tables, self.free = branching, branching.tables, branching.free
        self.nodes, self.i, self.low, self.high = nodes, i, low, high

    def split(self, along: FloatArray, among: FloatArray, loose: FloatArray, best: _Best) -> Split | None:
        """Return the best split; None where there is nothing to be told apart."""
        tables = self.tables
        cell = int(along.argmax()) if along.size else -1
        entry = int(among.argmax()) if among.size else -1
        by_cell = float(along[cell]) if cell >= 0 else 0.0
        by_entry = float(among[entry]) if entry >= 0 else 0.0
        wide = self._wide()
        loose = np.where(wide, loose, -1.0)
        feature = int(loose.argmax()) if loose.size else -1
        by_curve = float(loose[feature]) if feature >= 0 else -1.0
        if by_cell > 0.0 and by_cell >= max(by_entry, by_curve):
            k = int(tables.number_of[cell])
            return behind_cell(tables, k, cell - int(tables.first[k]))
        if by_entry > 0.0 and by_entry >= by_curve:
            return beside_level(self.free, entry)
        if by_curve > 0.0:
            return self._feature(feature)
        return self._beside(best) or (self._feature(int(wide.argmax())) if wide.any() else None)

    def _wide(self) -> BoolArray:
        """Return the features of which raw values or levels matter, and more than one is left."""
        nodes, i, free = self.nodes, self.i, self.free
        width = nodes.high[i] - nodes.low[i]
        wide = np.where(free.step > 0.0, width >= 0.5 * free.step, width > 0.0) & self.branching.raw
        if not free.first.size:
            return np.asarray(wide)
        if not self.tables.linear:
            return np.concatenate([wide, np.zeros(len(free.first), dtype=np.bool_)])
        return np.concatenate([wide, np.add.reduceat(nodes.allowed[i], free.first, dtype=np.int64) > 1])

    def _beside(self, best: _Best) -> Split | None:
        """Split where the best leaves, which all meet, end: the side that does not hold them loses most there."""
        i, tables = self.i, self.tables
        spread = best.spread[i]
        choices: list[tuple[float, Split]] = []
        for k in range(len(tables.size)):
            begin, end = best.begin[k, i], best.end[k, i]
            for cell, trees in (
                (int(begin.max(initial=0)) - 1, begin > self.low[k]),
                (int(end.min(initial=int(self.high[k]))), end < self.high[k]),
            ):
                if trees.any():
                    choices.append((float(spread[trees].sum()), behind_cell(tables, k, cell)))
        allowed = self.nodes.allowed[i]
        for a, b in pairwise(np.append(self.free.first, len(self.free.owner))):
            held = best.holds[a:b, i]
            left = allowed[a:b, None] & ~held
            trees = left.any(axis=0)
            if trees.any():
                common = allowed.copy()
                common[a:b] = held.all(axis=1) & allowed[a:b]
                inside = np.ones(len(allowed), dtype=np.bool_)
                inside[a:b] = common[a:b]
                outside = np.ones(len(allowed), dtype=np.bool_)
                outside[a:b] = ~common[a:b]
                choices.append((float(spread[trees].sum()), Split(levels=(inside, outside))))
        return max(choices, key=lambda choice: choice[0])[1] if choices else None

    def _feature(self, f: int) -> Split:
        """Split a number or a category by what it costs, where that differs; else in two halves."""
        free, nodes, i = self.free, self.nodes, self.i
        if f >= free.n_numbers:
            own = (free.owner == f - free.n_numbers) & nodes.allowed[i]
            cost = free.level_cost
            cheap = own & (cost <= cost[own].min())
            if (cheap == own).all():
                cheap = np.arange(len(cost)) == int(np.flatnonzero(own)[0])
            return Split(levels=(~(own & ~cheap), ~(own & cheap)))
        return Split(f, tuple(free.split(f, float(nodes.low[i, f]), float(nodes.high[i, f]))[0]))

    # -- points --------------------------------------------------------------------------------------------------
    def point(self, cover: FloatArray, hold: FloatArray, best: Spent) -> tuple[FloatArray, IntArray]:
        """Return raw numbers and levels at which most best leaves meet, as cheap as that may be."""
        tables, free, i = self.tables, self.free, self.i
        numbers = np.empty(len(tables.size))
        for k, a in enumerate(tables.first):
            cells = slice(int(a + self.low[k]), int(a + self.high[k] + 1))
            x = float(best.numbers[i, k])
            raw = x + free.origin[k]
            away = np.maximum(tables.low[cells] - x, x - tables.high[cells])
            if cover.size:
                held = cover[cells]
                away = np.where(held >= held.max() - ROUNDING * abs(held.max()), away, np.inf)
            cell = int(a + self.low[k]) + int(away.argmin())
            if not self.branching.raw[k] or free.step[k] > 0.0 or not tables.low[cell] <= x <= tables.high[cell]:
                raw = tables.value[cell]
            numbers[k] = raw
        levels: list[int] = []
        for a, b in pairwise(np.append(free.first, len(free.owner))):
            allowed = self.nodes.allowed[i, a:b]
            held = np.where(allowed, hold[a:b], -1.0)
            top = held >= held.max() - ROUNDING * abs(held.max())
            chosen = int(best.levels[i][len(levels)])
            cheap = np.where(top, free.level_cost[a:b], np.inf)
            levels.append(chosen if top[chosen - a] and tables.linear else int(a) + int(cheap.argmin()))
        return numbers, np.array(levels, dtype=np.int64)


def behind_cell(tables: Tables, k: int, cell: int) -> Split:
    """Return the split of a number behind a cell."""
    at = int(tables.first[k]) + cell
    return Split(k, ((-np.inf, float(tables.high[at])), (float(tables.low[at + 1]), np.inf)))


def beside_level(free: Free, entry: int) -> Split:
    """Return the split of one level from the others of its category."""
    this = np.arange(len(free.owner)) == entry
    own = free.owner == free.owner[entry]
    return Split(levels=(~own | this, ~this))


def _with(values: FloatArray, k: int, value: float) -> FloatArray:
    out = values.copy()
    out[k] = value
    return out
