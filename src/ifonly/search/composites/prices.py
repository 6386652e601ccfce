"""Prices of leaves and cells: the duals of one linear program, by which the cost of every node is bounded.

Trees and features are told apart: each tree takes a leaf of its own, each feature a value of its own, and rows say that they
agree, ``sum {y_l : begin_l > c} <= z_c`` for a tree and a cut (`ifonly.models.forms.trees`), where ``z_c`` says that the
number lies behind cell ``c``. With any prices ``a, b >= 0`` of these rows, and ``m >= 0`` of the rows of the goal, no point
of a node costs less than

    sum over trees of min over open leaves (charge_l - m @ gain_l)
    + sum over features of min over values left (cost - rebate - m @ gain)  -  m @ constant,

where a leaf is charged the prices of the rows that it is in, and a value is rebated those of the rows that it fills. Good
prices are the duals of the linear program at the root; bad ones make the bound loose, never wrong. Curves are linear in that
program only: in a node the gains are those of its own bounds (`ifonly.models.forms.enclosing`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.forms.enclosing import Rows
from ifonly.program.mip import Affine, Mip
from ifonly.runtime.memo import cached_property
from ifonly.search.composites.tables import Tables
from ifonly.search.inputs.free import Free
from ifonly.search.inputs.nodes import Nodes
from ifonly.solvers.linear import duals_of
from ifonly.tolerances import CHAINED_ROUNDING

__all__ = ["Prices"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of leaves and cells.

    Attributes
    ----------
    goal
        Of each row of the goal.
    charge
        Per leaf.
    rebate
        Per cell of all numbers.
    level_rebate
        Per level.
    cost
        The least cost of each cell.
    """

    tables: Tables
    free: Free
    raw: BoolArray
    goal: FloatArray
    charge: FloatArray
    rebate: FloatArray
    level_rebate: FloatArray
    cost: FloatArray
    rows: FloatArray
    constant: FloatArray
    at: FloatArray

    @cached_property
    def size(self) -> float:
        """Sum of the largest charge of each tree and the largest rebate of each feature, which a bound adds and subtracts."""
        tables, first = self.tables, self.free.first
        tops = [np.maximum.reduceat(self.charge, tables.root)] if tables.root.size else []
        tops += [np.maximum.reduceat(np.abs(self.rebate), tables.first)] if tables.first.size else []
        tops += [np.maximum.reduceat(np.abs(self.level_rebate), first)] if first.size else []
        return float(sum(part.sum() for part in tops))

    @classmethod
    def of(
        cls,
        tables: Tables,
        free: Free,
        raw: BoolArray,
        rows: tuple[FloatArray, FloatArray],
        at: FloatArray,
        spans: tuple[FloatArray, FloatArray],
        seconds: float,
    ) -> Prices | None:
        """Return the duals of a program in which the goal is linear: as steep as across the box, and right at some scores."""
        G, c = rows
        slopes = tables.enclosure.rows(Rows(G[None], c, G[None]), *spans).lean[0]
        atoms = np.zeros(len(at), dtype=np.bool_)
        for atom in tables.enclosure.atoms:
            atoms[atom.place] = True
        constant = G @ at[tables.enclosure.out] + c - slopes[:, atoms] @ at[atoms]
        cost = tables.cost
        program = _Program(tables, free, raw, cost)
        program.goal(slopes, constant)
        found = duals_of(program.mip.arrays(), seconds)
        if found is None:
            return None
        return cls(tables, free, raw, *program.prices(found[0]), cost, G, c, at)

    def least(
        self, nodes: Nodes, cells: tuple[IntArray, IntArray], open_: BoolArray, spans: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the least cost of nodes, the better of two bounds of the goal, and what leaves cost by these prices."""
        weighed = np.broadcast_to(self.goal @ self.rows, (len(nodes), 1, self.rows.shape[1]))
        asked = Rows(weighed, self.goal @ self.constant, weighed)
        enclosure = self.tables.enclosure
        best: tuple[FloatArray, FloatArray] | None = None
        for at in (np.broadcast_to(self.at, spans[0].shape), None):
            bound = enclosure.rows(asked, *spans, at)
            least, leaf = self.bounds(nodes, cells, open_, bound.slopes[:, 0], bound.constant[:, 0])
            if best is not None:
                better = least > best[0]
                least, leaf = np.where(better, least, best[0]), np.where(better[:, None], leaf, best[1])
            best = least, leaf
            if not enclosure.steps:
                break
        assert best is not None
        return best

    def bounds(
        self, nodes: Nodes, cells: tuple[IntArray, IntArray], open_: BoolArray, slopes: FloatArray, constant: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the least cost of nodes, and what leaves cost by these prices.

        `slopes` of the atoms' scores and `constant` are an upper bound of the goal's rows, weighed by their prices.
        """
        tables = self.tables
        leaf = self.charge - tables.worth(slopes[:, None])[:, 0]
        value = np.where(open_, leaf, np.inf)
        tops = np.minimum.reduceat(value, tables.root, axis=1)
        total = tops.sum(axis=1) - constant - np.abs(slopes) @ tables.room
        size = np.abs(tops).sum(axis=1) + np.abs(constant) + self.size
        for atom, base in zip(tables.trees, tables.base, strict=True):
            total = total - slopes[:, atom.place] @ base
            size = size + np.abs(slopes[:, atom.place]) @ np.abs(base)
        for atom, shift in zip(tables.linear, tables.shift, strict=True):
            total = total - slopes[:, atom.place] @ shift
            size = size + np.abs(slopes[:, atom.place]) @ np.abs(shift)
        for least in self._features(nodes, cells, tables.of_inputs(slopes)):
            total = total + least.sum(axis=1)
            size = size + np.abs(least).sum(axis=1)
        return total + self.free.elsewhere - CHAINED_ROUNDING * size, leaf

    def _features(self, nodes: Nodes, cells: tuple[IntArray, IntArray], slopes: FloatArray) -> list[FloatArray]:
        """Return, per node, the least that each number and each category costs, less its rebate and its gain."""
        tables, free = self.tables, self.free
        reduced = np.append(self.cost - self.rebate, np.inf)
        ends = np.stack([tables.first + cells[0], tables.first + cells[1] + 1], axis=2).ravel()
        numbers = np.zeros((len(nodes), 0))
        if tables.size.size:
            numbers = np.minimum.reduceat(reduced, ends)[::2].reshape(len(nodes), -1)
        for k in np.flatnonzero(self.raw):
            numbers[:, k] = self._raw(nodes, int(k), slopes[:, k])
        if not free.first.size:
            return [numbers]
        levels = free.level_cost - self.level_rebate - slopes[:, free.n_numbers :]
        return [numbers, np.minimum.reduceat(np.where(nodes.allowed, levels, np.inf), free.first, axis=1)]

    def _raw(self, nodes: Nodes, k: int, slope: FloatArray) -> FloatArray:
        """Return the least of cost less rebate and gain of a number whose raw value matters: at an end of a cell, or at home.

        Squares are least where their slope is that of the gain.
        """
        tables, free = self.tables, self.free
        own = slice(int(tables.first[k]), int(tables.first[k] + tables.size[k]))
        low = np.maximum(tables.low[own], nodes.low[:, k, None])
        high = np.minimum(tables.high[own], nodes.high[:, k, None])
        home, rate, square = float(free.home[k]), float(free.rate[k]), float(free.square[k])
        points = [low, high, np.clip(home, low, high)]
        if square > 0.0:
            way = np.sign(slope) * np.maximum(np.abs(slope) - rate, 0.0) / (2.0 * square)
            points.append(np.clip(home + way[:, None], low, high))
        out = np.full(len(nodes), np.inf)
        for x in points:
            away = np.abs(x - home)
            value = (
                rate * away + square * away**2 + free.price[k] * (away > 0.0) - slope[:, None] * x - self.rebate[own]
            )
            out = np.minimum(out, np.where(low <= high, value, np.inf).min(axis=1))
        return out


class _Program:
    """The linear program over the tables: trees, cells, raw values and levels, and rows by which they agree."""

    def __init__(self, tables: Tables, free: Free, raw: BoolArray, cost: FloatArray) -> None:
        self.tables, self.free, self.raw, self.mip = tables, free, raw, Mip()
        mip = self.mip
        self.y = mip.columns(tables.n_leaves)
        self.z = [mip.columns(int(n) - 1) for n in tables.size]
        self.w = mip.columns(len(free.owner))
        self.x: dict[int, Affine] = {}
        self.keys: list[tuple[int, int, IntArray, IntArray, bool]] = []
        self.tree = np.repeat(np.arange(len(tables.root)), tables.count)
        # one leaf of each tree
        mip.rows(self.tree, self.y, np.ones(len(self.y)), 1.0, 1.0, len(tables.root))
        for k in range(len(tables.size)):
            self._number(k, cost[tables.first[k] : tables.first[k] + tables.size[k]])
        self._levels()

    def _number(self, k: int, cost: FloatArray) -> None:
        mip, z, tables, free = self.mip, self.z[k], self.tables, self.free
        n = len(z)
        if n > 1:
            each = np.arange(n - 1, dtype=np.int64)
            row, column = np.concatenate([each, each]), np.concatenate([z[1:], z[:-1]])
            # behind a cell is behind all cells before it
            mip.rows(row, column, np.repeat([1.0, -1.0], n - 1), -np.inf, 0.0, n - 1)
        by_cell = Affine(z, np.diff(cost), float(cost[0]))
        if not self.raw[k]:
            mip.minimise(by_cell)
        else:
            own = slice(int(tables.first[k]), int(tables.first[k] + tables.size[k]))
            low, high = tables.low[own], tables.high[own]
            x = self.x[k] = mip.column(float(low[0]), float(high[-1]))
            away = float(max(high[-1] - free.home[k], free.home[k] - low[0]))
            paid = mip.column(0.0, 4.0 * float(free.rate[k] * away + cost.max() + 1.0))
            # a value lies in its cell
            mip.row(x - Affine(z, np.diff(low), float(low[0])), lower=0.0)
            # ... at both ends of it
            mip.row(x - Affine(z, np.diff(high), float(high[0])), upper=0.0)
            for sign in (1.0, -1.0):
                # it costs its distance
                mip.row(paid + (x - float(free.home[k])) * (sign * float(free.rate[k])), lower=0.0)
            # ... and no less than its cell
            mip.row(paid - by_cell, lower=0.0)
            mip.minimise(paid)
        self._agree(k)

    def _agree(self, k: int) -> None:
        """Add the rows of trees along one number, for every cut of each tree."""
        begin, end, last = self.tables.begin[k], self.tables.end[k], int(self.tables.size[k]) - 1
        for after in (True, False):
            where = np.flatnonzero(begin > 0 if after else end < last)
            cut = (begin[where] - 1 if after else end[where]).astype(np.int64)
            keys = np.unique(self.tree[where] * (last + 1) + cut)
            tree, cut = keys // (last + 1), keys % (last + 1)
            row, leaf = self._in_tree(tree)
            inside = begin[leaf] > cut[row] if after else end[leaf] <= cut[row]
            row, leaf = row[inside], leaf[inside]
            each = np.arange(len(keys), dtype=np.int64)
            row_, column = np.concatenate([row, each]), np.concatenate([self.y[leaf], self.z[k][cut]])
            value = np.concatenate([np.ones(len(row)), np.full(len(each), -1.0 if after else 1.0)])
            self.keys.append((k, self.mip.n_rows, tree, cut, after))
            # leaves behind a cut need the value behind it, and leaves before it a value before it
            self.mip.rows(row_, column, value, -np.inf, 0.0 if after else 1.0, len(keys))

    def _in_tree(self, tree: IntArray) -> tuple[IntArray, IntArray]:
        """Return all leaves of some trees, one tree after the other, with the number of the tree among these."""
        count = self.tables.count[tree]
        row = np.repeat(np.arange(len(tree), dtype=np.int64), count)
        within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        return row, self.tables.root[tree][row] + within

    def _levels(self) -> None:
        mip, free, holds = self.mip, self.free, self.tables.holds
        if not free.first.size:
            return
        # one level of each category
        mip.rows(free.owner.astype(np.int64), self.w, np.ones(len(self.w)), 1.0, 1.0, len(free.first))
        mip.minimise(Affine(self.w, free.level_cost))
        entry, leaf = np.nonzero(~holds)
        keys, row = np.unique(entry * len(self.tables.root) + self.tree[leaf], return_inverse=True)
        each = np.arange(len(keys), dtype=np.int64)
        self.level_rows, self.level_of = mip.n_rows, keys // max(len(self.tables.root), 1)
        self.level_tree = keys % max(len(self.tables.root), 1)
        column = np.concatenate([self.y[leaf], self.w[self.level_of]])
        # a level rules out the leaves that do not hold it
        mip.rows(np.concatenate([row, each]), column, np.ones(len(column)), -np.inf, 1.0, len(keys))

    def goal(self, slopes: FloatArray, constant: FloatArray) -> None:
        """Add the rows of the goal, linear in the scores of the atoms."""
        tables, worth, inputs = self.tables, self.tables.worth(slopes[None])[0], self.tables.of_inputs(slopes)
        self.goal_rows = self.mip.n_rows
        for r in range(len(slopes)):
            total = Affine(self.y, worth[r], float(constant[r]))
            for atom, base in zip(tables.trees, tables.base, strict=True):
                total = total + float(slopes[r, atom.place] @ base)
            for atom, shift in zip(tables.linear, tables.shift, strict=True):
                total = total + float(slopes[r, atom.place] @ shift)
            for k, x in self.x.items():
                total = total + x * float(inputs[r, k])
            # the row is at least 0
            self.mip.row(total + Affine(self.w, inputs[r, self.free.n_numbers :]), lower=0.0)

    def prices(self, duals: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the prices of the goal's rows, the charges of leaves, the rebates of cells and those of levels."""
        tables = self.tables
        goal = np.maximum(duals[self.goal_rows :], 0.0)
        charge, rebate = np.zeros(tables.n_leaves), np.zeros(len(tables.low))
        for k, first, tree, cut, after in self.keys:
            price = np.maximum(-duals[first : first + len(tree)], 0.0)
            row, leaf = self._in_tree(tree)
            inside = tables.begin[k][leaf] > cut[row] if after else tables.end[k][leaf] <= cut[row]
            np.add.at(charge, leaf[inside], price[row[inside]])
            own = slice(int(tables.first[k]), int(tables.first[k] + tables.size[k]))
            total = np.bincount(cut, price, int(tables.size[k]))
            before = np.cumsum(total) - total
            rebate[own] += before if after else total.sum() - before
        levels = np.zeros(len(self.w))
        if self.free.first.size:
            price = np.maximum(-duals[self.level_rows : self.level_rows + len(self.level_of)], 0.0)
            by_level = np.bincount(self.level_of, price, len(self.w))
            levels = np.add.reduceat(by_level, self.free.first)[self.free.owner] - by_level
            entry, leaf = np.nonzero(~tables.holds)
            keys = self.level_of * len(tables.root) + self.level_tree
            np.add.at(charge, leaf, price[np.searchsorted(keys, entry * len(tables.root) + self.tree[leaf])])
        return goal, charge, rebate, levels
