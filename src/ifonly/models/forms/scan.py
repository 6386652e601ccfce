"""Scan of single and paired changes: a linear function of the scores of trees, at all values of one or two features.

For a point, count per leaf how many features exclude it. A leaf excluded by no feature is where the point is; a leaf
excluded by feature `j` alone is one that changing only `j` can reach. So the scores of all values of `j` need only
those leaves: running sums over their ends instead of a walk through every tree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.models.abilities import Ensemble
from ifonly.models.forms.leaves import Leaves
from ifonly.program.box import Box

__all__ = ["Brackets", "TreeScan", "inside"]

BoolArray = npt.NDArray[np.bool_]


def inside(trees: Ensemble, j: int, parts: FloatArray, leaves: IntArray | slice) -> BoolArray:
    """Return, per value of feature `j` (rows of its canonical part) and leaf, whether the leaf allows it."""
    schema, table = trees.schema, trees.leaves
    if not isinstance(schema.features[j], Numeric):
        allowed = np.asarray(table.levels[leaves, schema.slice(j)])
        known: BoolArray = np.asarray(parts.any(axis=1))
        code = parts.argmax(axis=1)
        absent = np.asarray(table.when_missing[leaves, j]).reshape(1, -1)
        return np.asarray(np.where(known[:, None], allowed[:, code].T, absent))
    x = parts[:, 0]
    position = np.searchsorted(trees.cuts()[j], x, side="left")[:, None]
    found: BoolArray = np.asarray((position > table.low[leaves, j]) & (position <= table.high[leaves, j]))
    missing = np.isnan(x)
    if missing.any():
        found[missing] = table.when_missing[leaves, j]
    return found


class Brackets:
    """Linear functions ``G s + c`` of the scores: their leaf values, and how large they can get within a box.

    Parameters
    ----------
    trees
        The form.
    G, c
        One row per function.
    """

    def __init__(self, trees: Ensemble, G: FloatArray, c: FloatArray) -> None:
        self.trees, self.G = trees, G
        self.leaves = trees.leaves
        self.values: FloatArray = self.values_of(self.leaves)
        self.constant: FloatArray = G @ trees.base + c

    def values_of(self, leaves: Leaves) -> FloatArray:
        """Return what each leaf adds to each function, for some leaves of these trees."""
        return np.asarray(self.trees.leaf_values(leaves.node) @ self.G.T)

    def alive(self, box: Box) -> BoolArray:
        """Return the leaves that some point of the box can reach."""
        return self.leaves.alive(box)

    def most(self, alive: BoolArray) -> FloatArray:
        """Return an upper bound of each function: every tree at its best leaf still alive."""
        held = np.where(alive[:, None], self.values, -np.inf)
        return np.asarray(np.maximum.reduceat(held, self.leaves.first, axis=0).sum(axis=0) + self.constant)

    def open_leaves(self, alive: BoolArray) -> int:
        """Return how many leaves are alive in trees that are not decided: the size of the program."""
        count = np.add.reduceat(alive.astype(np.int64), self.leaves.first)
        return int(count[count > 1].sum())


class TreeScan:
    """Values of the bracketed functions along single features and pairs, from a point that can be moved.

    Along a numeric feature a leaf adds its value on an interval of positions: +value where it begins, -value where it
    ends, and running sums of these steps are the functions at every position. The same holds in two dimensions.
    """

    def __init__(self, brackets: Brackets, u: FloatArray) -> None:
        self.brackets = brackets
        self.leaves = brackets.leaves
        schema = self.leaves.schema
        self.excluded = np.empty((len(self.leaves.features), len(self.leaves.node)), dtype=np.bool_)
        for k, j in enumerate(self.leaves.features):
            self.excluded[k] = self.leaves.outside(j, self.leaves.position(j, u[schema.slice(j)]))
        self.count = self.excluded.sum(axis=0, dtype=np.int16)
        self._within_two: tuple[IntArray, BoolArray, npt.NDArray[np.int16]] | None = None

    def move(self, j: int, position: int) -> None:
        """Change one feature of the point: a numeric one to a position, another one to a level."""
        k = self.leaves.features.index(j)
        now = self.leaves.outside(j, position)
        self.count += now.astype(np.int16) - self.excluded[k]
        self.excluded[k] = now
        self._within_two = None

    def here(self) -> FloatArray:
        """Return the functions at the point."""
        return np.asarray(self.brackets.values[self.count == 0].sum(axis=0) + self.brackets.constant)

    def singles(self) -> tuple[FloatArray, FloatArray]:
        """Return the functions after every change of one feature.

        The first table has a row per position of each numeric feature, in the order of `Leaves.offset`; the second has
        a row per entry of the canonical vector, which is meaningful for levels.
        """
        leaves, values = self.leaves, self.brackets.values
        if not leaves.features:  # trees that split on nothing say the same everywhere
            here = self.here()
            return np.tile(here, (leaves.n_places, 1)), np.tile(here, (leaves.schema.width, 1))
        home = np.flatnonzero(self.count == 0)
        near = np.flatnonzero(self.count == 1)
        by = np.asarray(leaves.features, dtype=np.int64)[self.excluded[:, near].argmax(axis=0)]
        numeric = np.asarray(list(leaves.cuts), dtype=np.int64)
        leaf = np.concatenate([np.repeat(home, len(numeric)), near])
        feature = np.concatenate([np.tile(numeric, len(home)), by])
        is_number = leaves.is_numeric[feature]
        along = _steps_1d(leaves, leaf[is_number], feature[is_number], values)
        levels = leaves.levels[home].T @ values[home]
        other = ~leaves.is_numeric[by]
        if other.any():
            own = leaves.levels[near[other]] & (leaves.entry_feature == by[other][:, None])
            levels = levels + own.T @ values[near[other]]
        return along + self.brackets.constant, levels + self.brackets.constant

    def _excluded_by_two(self) -> tuple[IntArray, BoolArray, npt.NDArray[np.int16]]:
        """Return the leaves that at most two features exclude, which ones these are, and how many: pairs reach no other."""
        if self._within_two is None:
            close = np.flatnonzero(self.count <= 2)
            self._within_two = close, self.excluded[:, close], self.count[close]
        return self._within_two

    def pair(self, i: int, j: int, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the functions when `i` and `j` take these positions or levels, shape (of i, of j, functions)."""
        leaves = self.leaves
        first, second = leaves.features.index(i), leaves.features.index(j)
        close, excluded, count = self._excluded_by_two()
        near = close[count == excluded[first].astype(np.int16) + excluded[second]]
        spans = [_span(leaves, k, near) for k in (i, j)]
        if spans[0] is None or spans[1] is None:
            held = [_held(leaves, k, near, at) for k, at in ((i, rows), (j, columns))]
            values = self.brackets.values[near]
            parts = [(held[0] * values[:, k]) @ held[1].T for k in range(values.shape[1])]
            return np.stack(parts, axis=-1) + self.brackets.constant
        table = _steps_2d(_within(spans[0], rows), _within(spans[1], columns), self.brackets.values[near])
        picked = table[np.ix_(rows - rows.min(), columns - columns.min())]
        return np.asarray(picked + self.brackets.constant)

    def beside(self, i: int, rows: IntArray, features: IntArray, positions: IntArray) -> FloatArray:
        """Return the functions when the number `i` takes each of some positions, and another number one of its own.

        The other changes are given by numbers and their positions, all numbers at once; the shape is (of i, of others,
        functions). Leaves that do not look at the other number add the same to all of its positions, so only the others have
        rectangles: of those that hold the point but for `i`, less what they add to all, and of those that only it excludes.
        """
        leaves, columns = self.leaves, _Columns(features, positions)
        rest = self.count - self.excluded[leaves.features.index(i)]
        home, other = np.flatnonzero(rest == 0), np.flatnonzero(rest == 1)
        excluded = self.excluded[:, other]
        excluded[leaves.features.index(i)] = False
        by = np.asarray(leaves.features, dtype=np.int64)[excluded.argmax(axis=0)]
        other, by = other[columns.used(by)], by[columns.used(by)]
        own = np.concatenate([home, other])
        row = _within(_ends(leaves, i, own), rows)
        met = row.begin < row.end
        asks = (leaves.low[home][:, columns.features] >= 0) | (
            leaves.high[home][:, columns.features] < leaves.last[columns.features]
        )
        at, k = np.nonzero(asks & met[: len(home), None])
        far = np.flatnonzero(met[len(home) :]) + len(home)
        leaf, j = np.concatenate([at, far]), np.concatenate([columns.features[k], by[far - len(home)]])
        begin, end, whole = columns.within(_ends_at(leaves, own[leaf], j), j)
        width, values = columns.width, self.brackets.values[own]
        first, last = row.begin[leaf] * width, row.end[leaf] * width
        near = slice(0, len(at))  # what these add to all of the positions is in the first sum
        place = np.concatenate([first + begin, last + begin, first + end, last + end])
        less = np.concatenate([first[near] + whole[0][near], last[near] + whole[0][near]])
        more = np.concatenate([first[near] + whole[1][near], last[near] + whole[1][near]])
        out = np.empty((row.places, width, values.shape[1]))
        for g in range(values.shape[1]):
            v, size = values[leaf, g], (row.places + 1) * width
            w = v[near]
            step = np.bincount(place, np.concatenate([v, -v, -v, v]), size)
            step += np.bincount(less, np.concatenate([-w, w]), size) + np.bincount(more, np.concatenate([w, -w]), size)
            flat = values[: len(home), g]
            along = np.bincount(row.begin[: len(home)], flat, row.places + 1)
            along -= np.bincount(row.end[: len(home)], flat, row.places + 1)
            table = step.reshape(row.places + 1, width).cumsum(axis=0).cumsum(axis=1)
            out[:, :, g] = (table + along.cumsum()[:, None])[: row.places]
        picked = out[rows - rows.min()][:, columns.at]
        return np.asarray(picked + self.brackets.constant)


class _Columns:
    """Positions of several numbers side by side: each number with a place for each of its positions, and one behind them."""

    def __init__(self, features: IntArray, positions: IntArray) -> None:
        self.features, which = np.unique(features, return_inverse=True)
        self.first = np.full(len(self.features), np.iinfo(np.int64).max)
        np.minimum.at(self.first, which, positions)
        past = np.zeros(len(self.features), dtype=np.int64)
        np.maximum.at(past, which, positions + 1)
        self.size = past - self.first
        self.start = np.concatenate([[0], np.cumsum(self.size + 1)[:-1]])
        self.width = int((self.size + 1).sum())
        self.at = self.start[which] + positions - self.first[which]

    def used(self, features: IntArray) -> BoolArray:
        """Whether these are among the numbers."""
        return np.isin(features, self.features)

    def within(self, ends: tuple[IntArray, IntArray], features: IntArray) -> tuple[IntArray, IntArray, list[IntArray]]:
        """Return where intervals of numbers begin and end, and where all of their numbers' places do."""
        k = np.searchsorted(self.features, features)
        start, first, size = self.start[k], self.first[k], self.size[k]
        begin, end = (start + np.clip(edge - first, 0, size) for edge in ends)
        return begin, end, [start, start + size]


@dataclass(frozen=True, eq=False)
class _Spans:
    """Intervals, by their first and last places among so many."""

    begin: IntArray
    end: IntArray
    places: int


def _within(span: tuple[IntArray, IntArray], positions: IntArray) -> _Spans:
    """Return a leaf's ends counted from the least of some positions, cut off behind the greatest."""
    least, places = int(positions.min()), int(np.ptp(positions)) + 1
    begin, end = (np.clip(ends - least, 0, places).astype(np.int64) for ends in span)
    return _Spans(begin, end, places)


def _steps_1d(leaves: Leaves, leaf: IntArray, feature: IntArray, values: FloatArray) -> FloatArray:
    """Return, per position of each numeric feature, the sum of the values of the leaves that hold it."""
    start = leaves.offset[feature]
    end = start + np.minimum(leaves.high[leaf, feature], leaves.last[feature]) + 1
    # A leaf that only a missing value reaches has no interval: it begins where it ends, and adds nothing.
    begin = np.minimum(start + leaves.low[leaf, feature] + 1, end)
    # A feature's last position has one more place behind it, so that nothing runs into the next feature.
    places = leaves.n_places
    out = np.empty((places, values.shape[1]))
    for k in range(values.shape[1]):
        step = np.bincount(begin, values[leaf, k], places) - np.bincount(end, values[leaf, k], places)
        out[:, k] = np.cumsum(step)
    return out


def _span(leaves: Leaves, j: int, near: IntArray) -> tuple[IntArray, IntArray] | None:
    """Return where leaves begin and end along a numeric feature, or None along another one."""
    return _ends(leaves, j, near) if leaves.is_numeric[j] else None


def _ends(leaves: Leaves, j: int, near: IntArray) -> tuple[IntArray, IntArray]:
    end = np.minimum(leaves.high_of[j][near], leaves.last[j]) + 1
    return np.minimum(leaves.low_of[j][near] + 1, end), end


def _ends_at(leaves: Leaves, leaf: IntArray, feature: IntArray) -> tuple[IntArray, IntArray]:
    end = np.minimum(leaves.high[leaf, feature], leaves.last[feature]) + 1
    return np.minimum(leaves.low[leaf, feature] + 1, end), end


def _held(leaves: Leaves, j: int, near: IntArray, at: IntArray) -> FloatArray:
    """Return, per position or level and leaf, 1 where the leaf holds it."""
    if leaves.is_numeric[j]:
        low, high = leaves.low_of[j][near], leaves.high_of[j][near]
        return np.asarray((at[:, None] > low) & (at[:, None] <= high), dtype=np.float64)
    return np.asarray(leaves.level_of[leaves.schema.starts[j] + at][:, near], dtype=np.float64)


def _steps_2d(rows: _Spans, columns: _Spans, values: FloatArray) -> FloatArray:
    """Return the sum of the values of the rectangles that hold each place."""
    n, m = rows.places, columns.places
    out = np.empty((n, m, values.shape[1]))
    corners = [(r, c) for r in (rows.begin, rows.end) for c in (columns.begin, columns.end)]
    place = np.concatenate([r * (m + 1) + c for r, c in corners])
    for k in range(values.shape[1]):
        weight = np.concatenate([sign * values[:, k] for sign in (1.0, -1.0, -1.0, 1.0)])
        step = np.bincount(place, weight, (n + 1) * (m + 1)).reshape(n + 1, m + 1)[:n, :m]
        out[:, :, k] = step.cumsum(axis=0).cumsum(axis=1)
    return out
