"""The rows that tie leaves to literals: per tree and cut one row that holds every leaf on a side of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ifonly.arrays import IntArray
from ifonly.program.mip import Mip

__all__ = ["add_rows", "cumulative"]

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
    mip.rows(
        np.concatenate([row, literal_row.astype(np.int64)]),
        np.concatenate([column, literal]),
        np.concatenate([np.ones(len(row)), np.full(len(literal), weight)]),
        -np.inf,
        upper,
        n,
    )
