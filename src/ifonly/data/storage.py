"""Storage: what the columns of a table keep of canonical rows, for all features at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ifonly.data.features import Feature, Integer, Numeric

__all__ = ["Storage", "storage_of"]

Places = npt.NDArray[np.intp]


class Storage(NamedTuple):
    """Places of the canonical vector at which the columns' dtypes and declared precision change numbers.

    Attributes
    ----------
    rounded
        Numbers of decimals, and the entries that are rounded to them.
    narrow
        Floats of fewer bits than the canonical vector has, and the entries in them.
    whole
        The entries in whole numbers, which know no -0.
    odd
        Features whose columns have another dtype than NumPy's floats and whole numbers: the column itself is asked.
    """

    rounded: tuple[tuple[int, Places], ...]
    narrow: tuple[tuple[Any, Places], ...]
    whole: Places
    odd: tuple[tuple[Numeric, int], ...]


def storage_of(features: Sequence[Feature], starts: Sequence[int]) -> Storage:
    """Return what the columns of some features keep."""
    numbers = [(f, start) for f, start in zip(features, starts, strict=True) if isinstance(f, Numeric)]
    decimals = sorted({f.precision for f, _ in numbers if f.precision is not None and not _is_odd(f)})
    narrow = {f.dtype for f, _ in numbers if _is_narrow(f)}

    def places(chosen: Callable[[Numeric], bool]) -> Places:
        return np.array([start for f, start in numbers if chosen(f) and not _is_odd(f)], dtype=np.intp)

    return Storage(
        tuple((d, places(lambda f, d=d: f.precision == d)) for d in decimals),  # type: ignore[misc]
        tuple((kind, places(lambda f, kind=kind: f.dtype == kind)) for kind in narrow),  # type: ignore[misc]
        places(lambda f: isinstance(f, Integer) and f.dtype.kind in "iu"),
        tuple((f, start) for f, start in numbers if _is_odd(f)),
    )


def _is_odd(feature: Numeric) -> bool:
    """Whether a column has another dtype than NumPy's floats and whole numbers."""
    return not isinstance(feature.dtype, np.dtype) or feature.dtype.kind not in "fiu"


def _is_narrow(feature: Numeric) -> bool:
    """Whether a column of floats keeps fewer bits than the canonical vector."""
    return not _is_odd(feature) and feature.dtype.kind == "f" and feature.dtype != np.float64
