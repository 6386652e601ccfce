"""Rows of a goal: linear functions of the scores that must be large enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ifonly.arrays import FloatArray, IntArray

__all__ = ["Row", "matrix_of"]


class Row(NamedTuple):
    """Row of a goal on the scores ``s``: ``values @ s[columns] + constant`` must be at least `least`."""

    columns: IntArray
    values: FloatArray
    constant: float
    least: float = 0.0


def matrix_of(rows: Sequence[Row], n: int) -> tuple[FloatArray, FloatArray]:
    """Return rows as weights of all `n` scores and constants: ``weights @ scores + constant >= 0``."""
    weights = np.zeros((len(rows), n))
    for out, row in zip(weights, rows, strict=True):
        np.add.at(out, row.columns, row.values)
    return weights, np.array([row.constant - row.least for row in rows])
