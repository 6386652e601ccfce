"""Rows: canonical rows as the table that an estimator receives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Schema
from ifonly.runtime.memo import Memo
from ifonly.runtime.tuning import DEFAULT

__all__ = ["Rows"]


class Rows:
    """Decoder of canonical rows for one estimator: the columns that it was fitted on, named or as a plain array.

    A single row is remembered for a while: an answer is put to the model, perhaps twice, and then returned. `schema` are
    the features that the estimator receives, `entries` their places in the canonical vector of all features.
    """

    def __init__(
        self, schema: Schema, entries: IntArray, *, named: bool, most: int = DEFAULT.reading.remembered
    ) -> None:
        self.schema, self.entries, self.named = schema, entries, named
        self._memo = Memo(most)

    def __call__(self, U: FloatArray) -> Any:
        """Return the table that the estimator receives for canonical rows of all features."""
        decoded = self.frame(U[:, self.entries])
        return decoded if self.named else decoded.to_numpy()

    def frame(self, U: FloatArray) -> pd.DataFrame:
        """Return canonical rows of the estimator's own features as a frame of the caller's own."""
        U = np.asarray(U, dtype=np.float64)
        if len(U) != 1:
            return self.schema.decode(U)
        return self._memo.get("row", U.tobytes(), lambda: self.schema.decode(U)).copy()
