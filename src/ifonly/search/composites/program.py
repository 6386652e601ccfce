"""Linear program over the tables of a composite: a leaf of each tree, a cell of each number, a level of each category.

Trees and features are told apart, and rows say that they agree (`ifonly.search.composites.prices`). The goal is a row of
what leaves, raw values and levels add to it, or of columns for the scores of the atoms, each with a row that says what it is;
then the goal can be changed from one part of a search to the next, and the scores can be kept within intervals.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ifonly.arrays import FloatArray, IntArray
from ifonly.program.mip import Affine, Mip
from ifonly.runtime.memo import cached_property
from ifonly.search.composites.tables import Tables
from ifonly.search.inputs.free import Free

__all__ = ["Program"]

BoolArray = npt.NDArray[np.bool_]


class Program:
    """The linear program over the tables: trees, cells, raw values and levels, and rows by which they agree."""

    def __init__(self, tables: Tables, free: Free, raw: BoolArray, cost: FloatArray) -> None:
        self.tables, self.free, self.raw, self.mip = tables, free, raw, Mip()
        mip = self.mip
        self.y = mip.columns(tables.n_leaves)
        self.z = [mip.columns(int(n) - 1) for n in tables.size]
        self.w = mip.columns(len(free.owner))
        self.x: dict[int, Affine] = {}
        self.paid: dict[int, Affine] = {}
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
            paid = self.paid[k] = mip.column(0.0, 4.0 * float(free.rate[k] * away + cost.max() + 1.0))
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

    def scores(self, low: FloatArray, high: FloatArray) -> IntArray:
        """Add a column for each score of the atoms, with the row that says what it is; return the columns by their places."""
        tables, mip, n = self.tables, self.mip, self.tables.enclosure.n_places
        columns = mip.columns(n, low, high)
        for place in tables.enclosure.inner:
            slope = np.zeros((1, n))
            slope[0, place] = 1.0
            total = Affine(self.y, tables.worth(slope[None])[0, 0])
            inputs = tables.of_inputs(slope)[0]
            for atom, base in [
                *zip(tables.trees, tables.base, strict=True),
                *zip(tables.linear, tables.shift, strict=True),
            ]:
                if atom.place.start <= place < atom.place.stop:
                    total = total + float(base[place - atom.place.start])
            for k, x in self.x.items():
                total = total + x * float(inputs[k])
            # a score is the sum of what leaves, values and levels add to it
            mip.row(total + Affine(self.w, inputs[self.free.n_numbers :]) - Affine.of(int(columns[place])), 0.0, 0.0)
        return columns

    def goals(self, n: int, scores: IntArray) -> None:
        """Add `n` rows of scores, for the goal of one part of a search after the other."""
        for _ in range(n):
            # the row is at least 0
            self.mip.row(Affine(scores, np.ones(len(scores))))

    def envelopes(self) -> dict[int, int]:
        """Add two rows for each raw value with a price or a square, above and below what it is now; return the first of them.

        What a number must cost at least there depends on the part of a search.
        """
        out: dict[int, int] = {}
        for k, x in self.x.items():
            if self.free.price[k] > 0.0 or self.free.square[k] > 0.0:
                out[k] = self.mip.n_rows
                for sign in (1.0, -1.0):
                    # it costs its distance, its square and its share of the price
                    self.mip.row(self.paid[k] + x * sign)
        return out

    @cached_property
    def _agreements(self) -> sparse.csr_matrix:
        """The leaves that are in each row by which trees and features agree: a line per leaf."""
        tables, leaves, rows = self.tables, [], []
        for k, first, tree, cut, after in self.keys:
            row, leaf = self._in_tree(tree)
            inside = tables.begin[k][leaf] > cut[row] if after else tables.end[k][leaf] <= cut[row]
            leaves.append(leaf[inside])
            rows.append(first + row[inside])
        if self.free.first.size:
            entry, leaf = np.nonzero(~tables.holds)
            keys = self.level_of * len(tables.root) + self.level_tree
            leaves.append(leaf)
            rows.append(self.level_rows + np.searchsorted(keys, entry * len(tables.root) + self.tree[leaf]))
        at = (np.concatenate(leaves), np.concatenate(rows)) if leaves else (np.empty(0, int), np.empty(0, int))
        return sparse.csr_matrix((np.ones(len(at[0])), at), shape=(tables.n_leaves, self.mip.n_rows))

    def prices(self, duals: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the charges of leaves, the rebates of cells and those of levels."""
        tables, prices = self.tables, np.maximum(-duals, 0.0)
        rebate, levels = np.zeros(len(tables.low)), np.zeros(len(self.w))
        for k, first, tree, cut, after in self.keys:
            own = slice(int(tables.first[k]), int(tables.first[k] + tables.size[k]))
            total = np.bincount(cut, prices[first : first + len(tree)], int(tables.size[k]))
            before = np.cumsum(total) - total
            rebate[own] += before if after else total.sum() - before
        if self.free.first.size:
            by_row = prices[self.level_rows : self.level_rows + len(self.level_of)]
            by_level = np.bincount(self.level_of, by_row, len(self.w))
            levels = np.add.reduceat(by_level, self.free.first)[self.free.owner] - by_level
        return np.asarray(self._agreements @ prices), rebate, levels
