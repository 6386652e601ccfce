"""The rows that tie leaves to literals: per tree and cut one row that holds every leaf on a side of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.program.mip import Mip

__all__ = ["add_rows", "cumulative", "near_zero", "partition_rows"]

BoolArray = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int32]


def cumulative(
    tree: IntArray, key: Positions, y: IntArray, *, ascending: bool
) -> tuple[IntArray, IntArray, IntArray, int]:
    """Return entries of one row per (tree, key), each holding every leaf of the tree at or before that key."""
    sign = 1 if ascending else -1
    order = np.lexsort((key * sign, tree))
    tree, key, y = tree[order], key[order].astype(np.int64), y[order]
    new_tree = np.concatenate([[True], tree[1:] != tree[:-1]])
    new_row = new_tree | np.concatenate([[True], key[1:] != key[:-1]])
    own = np.cumsum(new_row) - 1
    n = int(own[-1]) + 1
    tree_of_row = tree[new_row]
    last_row = np.searchsorted(tree_of_row, tree, side="right") - 1
    repeats = last_row - own + 1
    ends = np.cumsum(repeats)
    row = np.arange(ends[-1]) - np.repeat(ends - repeats, repeats) + np.repeat(own, repeats)
    return row.astype(np.int64), np.repeat(y, repeats), key[new_row], n


def near_zero(values: FloatArray, tree: IntArray, constant: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the values of leaves, and a constant, with what all leaves of a tree have in common moved to the constant.

    ``sum_l v_l y_l = c + sum_l (v_l - c) y_l``, as one leaf is chosen: a solver leaves a billionth of a leaf open, which
    among values around 1e9 is as much as they differ by. Only where all values of a tree are farther from 0 than from each
    other, so that the difference is exact (Sterbenz's lemma).
    """
    if not len(values):
        return values, constant
    new = np.concatenate([[True], tree[1:] != tree[:-1]])
    first = np.flatnonzero(new)
    low, high = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
    far = np.maximum(low, -high) > high - low
    common = np.where(far, np.where(low > 0.0, low, high), 0.0)
    return values - common[np.cumsum(new) - 1], constant + common.sum(axis=0)


def add_rows(
    mip: Mip,
    row: IntArray,
    column: IntArray,
    literal_row: IntArray,
    literal: IntArray,
    weight: float,
    upper: float,
    n: int,
) -> None:
    """Add rows ``sum y + weight * literal <= upper``."""
    # sum of leaves + weight * literal <= upper, one row per tree and cut
    mip.rows(
        np.concatenate([row, literal_row.astype(np.int64)]),
        np.concatenate([column, literal]),
        np.concatenate([np.ones(len(row)), np.full(len(literal), weight)]),
        -np.inf,
        upper,
        n,
    )


def partition_rows(
    mip: Mip, b: IntArray, y: IntArray, tree: IntArray, low: Positions, high: Positions, last: int
) -> BoolArray:
    """Add ``sum {y[l] : l spans the cells i..k} = b[k] - b[i-1]`` for trees whose leaves' intervals are a partition.

    For these the cumulative rows say the same, with an entry per leaf and cut in place of one per leaf. Only partitions
    into three intervals or more are worth it. Returns the leaves that need no other rows along this feature.
    """
    done = np.zeros(len(y), dtype=np.bool_)
    unbounded = np.bincount(tree, (low == 0) & (high == last))
    leaves = np.flatnonzero(((unbounded == 0) & (np.bincount(tree) >= 3))[tree])
    if not leaves.size:
        return done
    size = last + 1
    key = (tree[leaves].astype(np.int64) * size + low[leaves]) * size + high[leaves]
    spans, own = np.unique(key, return_inverse=True)
    group, begin, end = spans // size**2, spans // size % size, spans % size
    new = np.concatenate([[True], group[1:] != group[:-1]])
    wrong = np.where(new, begin != 0, begin != np.concatenate([[0], end[:-1] + 1]))
    wrong |= np.concatenate([new[1:], [True]]) & (end != last)
    count = np.bincount(group)
    chosen = (np.bincount(group, wrong) == 0) & (count >= 3)
    kept = chosen[group]
    place = np.cumsum(kept) - 1
    held = np.flatnonzero(kept[own])
    up, down = np.flatnonzero(kept & (end < last)), np.flatnonzero(kept & (begin > 0))
    whole = (end[kept] == last).astype(np.float64)
    if held.size:
        # sum {y[l] : l spans the cells i..k} - b[k] + b[i-1] = 0 (b of the last cell is 1)
        mip.rows(
            np.concatenate([place[own[held]], place[up], place[down]]).astype(np.int64),
            np.concatenate([y[leaves[held]], b[end[up]], b[begin[down] - 1]]),
            np.concatenate([np.ones(len(held)), np.full(len(up), -1.0), np.ones(len(down))]),
            whole,
            whole,
            int(kept.sum()),
        )
        done[leaves[held]] = True
    return done
