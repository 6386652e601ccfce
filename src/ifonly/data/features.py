"""The kinds of features, and how one column becomes numbers and comes back in its own dtype."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isinf
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.errors import SchemaError, did_you_mean
from ifonly.tolerances import EDGE, ON_GRID

__all__ = [
    "LARGEST_WHOLE",
    "WHOLE_TOLERANCE",
    "Binary",
    "Categorical",
    "Feature",
    "Integer",
    "Numeric",
    "Ordinal",
    "code_of",
    "codes_of",
    "number_of",
    "numbers_of",
    "plain",
    "restore_levels",
    "restore_numbers",
    "stored_as",
    "unfit_whole",
]

_SHOWN = 20  # levels that a message lists

WHOLE_TOLERANCE = ON_GRID
LARGEST_WHOLE = 2.0**53  # beyond, whole numbers cannot be told from their neighbours
_DOUBLE = np.dtype("float64")


@dataclass(frozen=True, slots=True)
class Numeric:
    """A real feature within ``[lower, upper]``, on the grid of `precision` decimals when that is given.

    `decimals` are those that its values in the data have. They are a note and no grid: a question for which a grid costs
    nothing takes them as its precision (`ifonly.data.given.on_grids`), any other one leaves the feature continuous.
    """

    name: str
    lower: float
    upper: float
    precision: int | None = None
    label: str = ""
    dtype: Any = np.dtype("float64")
    decimals: int | None = None

    kind: ClassVar[str] = "numeric"
    width: ClassVar[int] = 1

    @property
    def step(self) -> float | None:
        """The grid's spacing, or None for a continuous feature."""
        return None if self.precision is None else 10.0**-self.precision

    @property
    def stored(self) -> np.dtype[Any]:
        """The NumPy dtype in which the column holds its numbers, pandas' nullable columns included."""
        dtype: np.dtype[Any] = np.dtype(getattr(self.dtype, "numpy_dtype", self.dtype))
        return dtype

    def at_least(self, value: npt.ArrayLike) -> FloatArray:
        """Return the least numbers that the column's dtype can hold and that are not below the given ones."""
        return self._stored(value, np.inf)

    def at_most(self, value: npt.ArrayLike) -> FloatArray:
        """Return the greatest numbers that the column's dtype can hold and that are not above the given ones."""
        return self._stored(value, -np.inf)

    def _stored(self, value: npt.ArrayLike, towards: float) -> FloatArray:
        given = np.asarray(value, dtype=np.float64)
        if self.dtype == _DOUBLE:
            return given
        kind = self.stored if self.precision is None else _DOUBLE
        if kind.kind != "f" or kind.itemsize >= given.itemsize:
            return given
        with np.errstate(over="ignore"):
            near = given.astype(kind)
        beyond = near.astype(np.float64) < given if towards > 0 else near.astype(np.float64) > given
        return np.asarray(np.where(beyond, np.nextafter(near, kind.type(towards)), near), dtype=np.float64)

    def snap(self, value: float) -> float:
        """Return `value` on the grid (nearest point), free of the dust of floating point."""
        return value if self.precision is None else float(round(value, self.precision))

    def snap_down(self, value: float) -> float:
        """Return the greatest value of the grid at or below `value`, which may be off by rounding."""
        near = self.snap(value)
        return near if near - value <= self._dust(value) else self.snap(near - (self.step or 0.0))

    def snap_up(self, value: float) -> float:
        """Return the least value of the grid at or above `value`, which may be off by rounding."""
        near = self.snap(value)
        return near if value - near <= self._dust(value) else self.snap(near + (self.step or 0.0))

    def below(self, value: float) -> float:
        """Return the greatest value below the given one: of the grid, or of floats; minus infinity has none."""
        if self.precision is None or not np.isfinite(value):
            return float(np.nextafter(value, -np.inf))
        near = self.snap_down(value)
        return near if value - near > self._dust(value) else self.snap(near - (self.step or 0.0))

    def above(self, value: float) -> float:
        """Return the least value above the given one: of the grid, or of floats; infinity has none."""
        if self.precision is None or not np.isfinite(value):
            return float(np.nextafter(value, np.inf))
        near = self.snap_up(value)
        return near if near - value > self._dust(value) else self.snap(near + (self.step or 0.0))

    def _dust(self, value: float) -> float:
        """Return by how much a number that is meant to lie on the grid may be off: of its own size, and of a step."""
        return EDGE * abs(value) + ON_GRID * (self.step or 0.0)


@dataclass(frozen=True, slots=True)
class Integer(Numeric):
    """A whole-numbered feature within ``[lower, upper]``."""

    precision: int | None = 0
    dtype: Any = np.dtype("int64")

    kind: ClassVar[str] = "integer"


@dataclass(frozen=True, slots=True)
class Categorical:
    """A feature with unordered levels."""

    name: str
    levels: tuple[Any, ...]
    label: str = ""
    dtype: Any = np.dtype("object")

    kind: ClassVar[str] = "categorical"

    @property
    def width(self) -> int:
        """Number of levels, which is the number of 0/1 entries in `u`."""
        return len(self.levels)

    def position(self, level: Any) -> int:
        """Return the index of a level, or say which levels there are."""
        for i, known in enumerate(self.levels):
            if known == level and isinstance(known, bool) == isinstance(level, (bool, np.bool_)):
                return i
        shown = ", ".join(map(repr, self.levels[:_SHOWN]))
        more = f" and {self.width - _SHOWN} more" if self.width > _SHOWN else ""
        raise SchemaError(
            f"Unseen level {level!r} of {self.name!r}: known levels are {shown}{more}.{did_you_mean(level, self.levels)} "
            "Write one of these; or, if the model was trained on rows with it, give the Explainer those rows, or make the "
            "column a pandas category that lists it."
        )


@dataclass(frozen=True, slots=True)
class Ordinal(Categorical):
    """A feature with ordered levels: a step of one level costs ``1 / (levels - 1)`` of a full swing."""

    kind: ClassVar[str] = "ordinal"


@dataclass(frozen=True, slots=True)
class Binary(Categorical):
    """A feature with two levels."""

    kind: ClassVar[str] = "binary"


Feature = Numeric | Categorical


def plain(value: Any) -> Any:
    """Return a NumPy scalar as the Python value it holds."""
    return value.item() if isinstance(value, np.generic) else value


def numbers_of(column: pd.Series[Any], feature: Numeric) -> FloatArray:
    """Return a column as numbers (NaN where missing), or say which value is none or does not fit the feature."""
    if pd.api.types.is_any_real_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = np.array([np.nan if _is_missing(v) else _as_number(v, feature) for v in column])
    unfit = np.isinf(values)
    if isinstance(feature, Integer):
        unfit |= unfit_whole(values)
    if feature.precision is not None:
        rounded = np.round(values, feature.precision)
        with np.errstate(invalid="ignore"):
            unfit |= np.abs(values - rounded) > WHOLE_TOLERANCE * np.maximum(1.0, np.abs(values))
    if unfit.any():
        _refuse_unfit(float(values[np.argmax(unfit)]), feature)
    return values


def unfit_whole(values: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell whole numbers that floating point cannot tell from their neighbours."""
    return np.asarray(np.abs(values) > LARGEST_WHOLE)


def number_of(value: Any, feature: Numeric) -> float:
    """Return one value as a number: the same as for a column, without the accessors that a column is worth."""
    if _is_missing(value):
        return np.nan
    number = _as_number(value, feature)
    if feature.precision is not None or isinf(number):
        off = isinf(number) or abs(number - round(number, feature.precision)) > WHOLE_TOLERANCE * max(1.0, abs(number))
        if off or (isinstance(feature, Integer) and abs(number) > LARGEST_WHOLE):
            _refuse_unfit(number, feature)
    return number


def _refuse_unfit(value: float, feature: Numeric) -> NoReturn:
    if isinf(value):
        raise SchemaError(f"Infinity in column {feature.name!r}. Replace it by a finite value.")
    if isinstance(feature, Integer) and abs(value) > LARGEST_WHOLE:
        raise SchemaError(
            f"Column {feature.name!r} has whole numbers beyond 2**53, which floating point cannot tell apart. Drop it "
            "if it is an identifier, or measure it in a larger unit."
        )
    wanted = "a whole number" if isinstance(feature, Integer) else f"{feature.precision} decimals"
    raise SchemaError(
        f"Column {feature.name!r} is declared to have {wanted}, got {value!r}. Round it, or read the column as "
        f"continuous: Schema.infer(X, numeric=[{feature.name!r}])."
    )


def _as_number(value: Any, feature: Numeric) -> float:
    if not isinstance(value, (pd.Timestamp, pd.Timedelta, np.datetime64, np.timedelta64)):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise SchemaError(
        f"Column {feature.name!r} must be a number, got {value!r} ({type(value).__name__}). Convert it, or fit the "
        "schema with this column as a category."
    )


def codes_of(column: pd.Series[Any], feature: Categorical) -> npt.NDArray[np.int64]:
    """Return the position of each value among the levels, -1 where missing."""
    lookup = {level: i for i, level in enumerate(feature.levels)}
    if isinstance(column.dtype, pd.CategoricalDtype):
        seen = column.cat.codes.to_numpy()
        values = [plain(v) for v in column.dtype.categories]
        used = set(seen[seen >= 0].tolist())
        table = [_code(v, lookup, feature) if i in used else -1 for i, v in enumerate(values)]
        return np.append(np.array(table, dtype=np.int64), -1)[seen]
    return np.array([code_of(v, feature, lookup) for v in column.to_numpy(dtype=object)], dtype=np.int64)


def code_of(value: Any, feature: Categorical, lookup: Mapping[Any, int]) -> int:
    """Return the position of one value among the levels, -1 when it is missing."""
    return -1 if _is_missing(value) else _code(plain(value), lookup, feature)


def _code(value: Any, lookup: Mapping[Any, int], feature: Categorical) -> int:
    code = lookup.get(value)
    return feature.position(value) if code is None else code


def _is_missing(value: Any) -> bool:
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def restore_numbers(values: FloatArray, feature: Numeric) -> Any:
    """Return numbers in the dtype of the feature's column, on its grid."""
    if feature.precision is not None:
        values = np.round(values, feature.precision)
    if pd.api.types.is_integer_dtype(feature.dtype) and not isinstance(feature, Integer):
        return values  # an integer column read as continuous: its answers need not be whole
    dtype = _wide_enough(values, feature.dtype)
    if isinstance(dtype, np.dtype):
        if dtype.kind in "iub" and np.isnan(values).any():
            return values
        return values.astype(dtype)
    return pd.array(values, dtype=dtype)


def stored_as(dtype: object) -> np.dtype[Any] | None:
    """Return the NumPy dtype in which columns of a dtype, perhaps one of pandas' own, hold numbers; None: it names none."""
    own = getattr(dtype, "numpy_dtype", dtype)
    return own if isinstance(own, np.dtype) else None


def other_neighbour(value: float, stored: float, feature: Numeric) -> float | None:
    """Return the number of the column's dtype on the other side of `value` than the nearest, `stored`; None if it is one.

    Numbers on a grid have their neighbours a step away, which is another value and no rounding of this one.
    """
    dtype = stored_as(feature.dtype)
    if feature.step is not None or dtype is None or dtype.kind != "f" or stored == value or np.isnan(value):
        return None
    return float(np.nextafter(dtype.type(stored), dtype.type(np.inf if value > stored else -np.inf)))


def _wide_enough(values: FloatArray, dtype: Any) -> Any:
    """Return the column's dtype, or a wider one when a value does not fit into it and would wrap around."""
    stored = stored_as(dtype)
    if stored is None or stored.kind not in "iu":
        return dtype
    limits = np.iinfo(stored)
    if not bool(((values < limits.min) | (values > limits.max)).any()):
        return dtype
    return np.dtype("int64") if isinstance(dtype, np.dtype) else pd.Int64Dtype()


def restore_levels(part: FloatArray, feature: Categorical) -> Any:
    """Return 0/1 entries as levels in the dtype of the feature's column; no level at all is a missing value."""
    present = part.any(axis=1)
    codes = np.where(present, part.argmax(axis=1), -1)
    if isinstance(feature.dtype, pd.CategoricalDtype):
        named = feature.dtype.categories.tolist()
        if named != list(feature.levels):  # the same levels in another order
            codes = np.array([*(named.index(level) for level in feature.levels), -1])[codes]
        return pd.Categorical.from_codes(codes, dtype=feature.dtype, validate=False)
    values = [feature.levels[c] if c >= 0 else None for c in codes]
    if isinstance(feature.dtype, np.dtype) and (feature.dtype == object or not present.all()):
        return pd.Series(values, dtype=object)  # a bare array of text would become the dtype "str"
    if isinstance(feature.dtype, np.dtype):
        return np.array(values).astype(feature.dtype)
    return pd.array(values, dtype=feature.dtype)
