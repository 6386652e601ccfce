"""Blocks of numbers: the columns of a table that are numbers of NumPy's own dtypes, read and returned together.

A frame takes some 30 microseconds for each column that is taken out of it or put into it alone: most of a second for
10,000 of them, several times per question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.features import WHOLE_TOLERANCE, Feature, Integer, Numeric, unfit_whole

__all__ = ["Block", "Grid", "block_of", "same_dtype"]


class Block(NamedTuple):
    """The numbers of a table: which columns they are, and their values as floats, one row per row."""

    columns: IntArray
    values: FloatArray


def block_of(frame: pd.DataFrame) -> Block:
    """Return the columns of floats and whole numbers of NumPy's own dtypes."""
    dtypes = frame.dtypes.tolist()
    columns = np.flatnonzero([isinstance(dtype, np.dtype) and dtype.kind in "fiu" for dtype in dtypes])
    part = frame if len(columns) == frame.shape[1] else frame.iloc[:, columns]
    return Block(columns, part.to_numpy(dtype=np.float64))


def same_dtype(features: Sequence[Feature]) -> np.dtype[np.generic] | None:
    """Return the dtype of NumPy's floats that all features are stored in; None: they are not all."""
    kinds = {feature.dtype if isinstance(feature, Numeric) else None for feature in features}
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    return kind if isinstance(kind, np.dtype) and kind.kind == "f" else None


class Grid:
    """Decimals of numeric features, for all of them at once."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self.whole = np.array([isinstance(feature, Integer) for feature in features], dtype=np.bool_)
        decimals = [feature.precision if isinstance(feature, Numeric) else None for feature in features]
        self.steps = {
            d: np.flatnonzero([own == d for own in decimals]) for d in sorted({d for d in decimals if d is not None})
        }

    def round(self, values: FloatArray) -> FloatArray:
        """Return rows of numbers, one column per feature, on the grids of those that have one."""
        if not self.steps:
            return values
        values = values.copy()
        for decimals, columns in self.steps.items():
            values[:, columns] = np.round(values[:, columns], decimals)
        return values

    def unfit(self, block: Block) -> IntArray:
        """Return the columns of a block with a value that does not fit their feature: infinite, or off its grid."""
        values = block.values
        off = np.asarray(np.isinf(values).any(axis=0))
        place = np.full(len(self.whole), -1)
        place[block.columns] = np.arange(len(block.columns))
        for decimals, features in self.steps.items():
            at = place[features][place[features] >= 0]
            part = values[:, at]
            with np.errstate(invalid="ignore"):
                far = np.abs(part - np.round(part, decimals)) > WHOLE_TOLERANCE * np.maximum(1.0, np.abs(part))
            off[at] |= far.any(axis=0) | (self.whole[block.columns[at]] & unfit_whole(part).any(axis=0))
        return block.columns[off]
