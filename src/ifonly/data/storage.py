"""Storage: what the columns of a table keep of canonical rows, for all features at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.features import Feature, Integer, Numeric, restore_numbers

__all__ = ["Storage"]

_Places = list[int]


class Storage:
    """Canonical rows as they come back from the columns' dtypes and declared precision.

    Numbers with decimals are rounded to them, and those in narrow floats to these. What a dtype of pandas' own keeps, the
    column itself is asked.
    """

    def __init__(self, features: Sequence[Feature], starts: Sequence[int]) -> None:
        numbers = [(f, start) for f, start in zip(features, starts, strict=True) if isinstance(f, Numeric)]
        decimals = sorted({f.precision for f, _ in numbers if f.precision is not None})
        narrow = {f.dtype for f, _ in numbers if _is_narrow(f)}

        def places(chosen: Callable[[Numeric], bool]) -> _Places:
            return [start for f, start in numbers if chosen(f) and not _is_odd(f)]

        self._rounded = [(d, places(lambda f, d=d: f.precision == d)) for d in decimals]  # type: ignore[misc]
        self._narrow = [(kind, places(lambda f, kind=kind: f.dtype == kind)) for kind in narrow]  # type: ignore[misc]
        self._whole = places(lambda f: isinstance(f, Integer) and f.dtype.kind in "iu")
        self._odd = [(f, start) for f, start in numbers if _is_odd(f)]

    def __call__(self, u: FloatArray) -> FloatArray:
        """Return a row, or rows, as stored; the array is a new one."""
        out = np.array(u, dtype=np.float64)
        for decimals, at in self._rounded:
            out[..., at] = np.round(out[..., at], decimals)
        if self._whole:
            out[..., self._whole] += 0.0  # whole numbers know no -0
        for kind, at in self._narrow:
            out[..., at] = out[..., at].astype(kind)
        for feature, start in self._odd:
            values = restore_numbers(np.atleast_1d(out[..., start]), feature)
            out[..., start] = np.asarray(values, dtype=np.float64).reshape(out.shape[:-1])
        return out


def _is_odd(feature: Numeric) -> bool:
    """Whether a column has another dtype than NumPy's floats and whole numbers."""
    return not isinstance(feature.dtype, np.dtype) or feature.dtype.kind not in "fiu"


def _is_narrow(feature: Numeric) -> bool:
    """Whether a column of floats keeps fewer bits than the canonical vector."""
    return not _is_odd(feature) and feature.dtype.kind == "f" and feature.dtype != np.float64
