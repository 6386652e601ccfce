"""The size of a program before it is built: one that would take too much memory, or the time that is left, is not.

A forest's program has a row per tree and threshold that holds all leaves of the tree on one side of it. So its entries
grow with the square of the leaves of a tree: ``sum_t L_t^2``, of which 0.19 to 0.42 were counted on forests of 10 to 200
trees of depth 5 to unlimited. An entry takes some 130 bytes while it is put together and solved, and half a microsecond
until the solver looks at the clock for the first time.
"""

from __future__ import annotations

import numpy as np

from ifonly.box import Box
from ifonly.deadline import Deadline
from ifonly.models.trees import Trees
from ifonly.problem import Statement

__all__ = ["affordable", "expected_entries"]

_SHARE = 0.3  # of the sum of squares
_MOST_ENTRIES = 5_000_000  # some 650 MB
_PER_SECOND = 1_000_000  # entries that are built, handed over and presolved, with room for a slower machine


def expected_entries(statement: Statement, box: Box) -> float:
    """Return about how many entries the program of a box has, for trees; 0 for other forms, whose programs are small."""
    if not isinstance(statement.form, Trees):
        return 0.0
    leaves = statement.form.leaves
    count = np.add.reduceat(leaves.alive(box).astype(np.int64), leaves.first)
    return _SHARE * float((count[count > 1] ** 2).sum())


def affordable(statement: Statement, box: Box, deadline: Deadline) -> bool:
    """Whether the program of a box may be built: it fits into memory, and the solver can start before the deadline."""
    return expected_entries(statement, box) <= min(_MOST_ENTRIES, _PER_SECOND * deadline.left())
