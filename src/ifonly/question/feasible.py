"""Feasibility of many rows within a deadline: demands are checked on a few rows at a time, as many as are quick."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.program.box import Box
from ifonly.question.demand import Demand
from ifonly.question.query import Query
from ifonly.runtime.deadline import Deadline

__all__ = ["feasible"]


def feasible(
    demands: Sequence[Demand], query: Query, box: Box, U: FloatArray, deadline: Deadline, *, only_first: bool = False
) -> npt.NDArray[np.bool_]:
    """Say which rows lie in the box and meet all demands; one that was not looked at counts as one that does not.

    Rows are looked at in their order until the deadline, or until one is found if only the first is asked for. A row
    costs next to nothing where demands are forms, and a linear program where one of them is a hull.
    """
    good, tuning = box.contains(U), query.tuning.asking
    inside = np.flatnonzero(good)
    size = 1 if only_first or np.isfinite(deadline.at) else max(len(inside), 1)
    while inside.size:
        if deadline.passed:
            good[inside] = False
            break
        began = time.perf_counter()
        some, inside = inside[:size], inside[size:]
        good[some] = _all_hold(demands, query, U[some])
        if only_first and good[some].any():
            good[inside] = False
            break
        spent = time.perf_counter() - began
        size = tuning.more * size if spent < tuning.quick else size if spent < tuning.slow else max(size // 2, 1)
    return good


def _all_hold(demands: Sequence[Demand], query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
    good = np.ones(len(U), dtype=np.bool_)
    for demand in demands:
        left = np.flatnonzero(good)
        if not left.size:
            break
        good[left] = demand.holds(query, U[left])
    return good
