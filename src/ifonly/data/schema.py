"""Features and their canonical vector `u`: one raw value per numeric feature, one 0/1 per level of a categorical one.

Coherence lives here: a categorical feature has exactly one level at 1, so no answer can be half of two categories.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.data.features import (
    Binary,
    Categorical,
    Feature,
    Integer,
    Numeric,
    Ordinal,
    code_of,
    codes_of,
    number_of,
    numbers_of,
    plain,
    restore_levels,
    restore_numbers,
)
from ifonly.data.tables import align, as_frame, as_row
from ifonly.errors import SchemaError, did_you_mean

__all__ = ["Binary", "Categorical", "Feature", "Integer", "Numeric", "Ordinal", "Schema"]

_MOST_DECIMALS = 6

_MOST_NAMES = 5  # of columns in one message
_SHOWN = 12  # features that a repr names


@dataclass(frozen=True)
class Schema:
    """Features of a table, one per column; encodes rows into the canonical vector and decodes them without loss.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [19, 75], "job": ["skilled", "unskilled"]})
    >>> schema = Schema.infer(X)
    >>> schema["age"].kind, schema["job"].levels
    ('integer', ('skilled', 'unskilled'))
    >>> u = schema.encode(X)
    >>> schema.decode(u).equals(X)
    True
    """

    features: tuple[Feature, ...]

    def __repr__(self) -> str:
        kinds = ", ".join(f"{f.name}: {f.kind}" for f in self.features[:_SHOWN])
        more = f", ... ({len(self.features)} features)" if len(self.features) > _SHOWN else ""
        return f"Schema({kinds}{more})"

    def __post_init__(self) -> None:
        starts = np.concatenate([[0], np.cumsum([f.width for f in self.features])]).astype(int)
        object.__setattr__(self, "starts", tuple(int(s) for s in starts[:-1]))
        object.__setattr__(self, "width", int(starts[-1]))
        object.__setattr__(self, "names", tuple(f.name for f in self.features))
        object.__setattr__(self, "numeric", [j for j, f in enumerate(self.features) if isinstance(f, Numeric)])
        object.__setattr__(self, "owner", np.repeat(np.arange(len(self.features)), np.diff(starts)))
        object.__setattr__(self, "_index", {f.name: j for j, f in enumerate(self.features)})
        levels = ({} if isinstance(f, Numeric) else {v: i for i, v in enumerate(f.levels)} for f in self.features)
        object.__setattr__(self, "_codes", tuple(levels))

    starts: ClassVar[tuple[int, ...]]
    width: ClassVar[int]
    names: ClassVar[tuple[str, ...]]
    numeric: ClassVar[list[int]]
    owner: ClassVar[npt.NDArray[np.int64]]
    _index: ClassVar[dict[str, int]]
    _codes: ClassVar[tuple[dict[Any, int], ...]]

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, name: str) -> Feature:
        return self.features[self.index(name)]

    def index(self, name: str) -> int:
        """Return the position of a feature, or suggest the nearest name."""
        try:
            return self._index[name]
        except KeyError:
            raise SchemaError(
                f"Unknown feature {name!r}.{did_you_mean(name, self.names)} Known: {', '.join(self.names)}."
            ) from None

    def slice(self, j: int) -> slice:
        """Return where feature `j` lives in the canonical vector."""
        return slice(self.starts[j], self.starts[j] + self.features[j].width)

    def label(self, name: str) -> str:
        """Return the human label of a feature (its name when it has none)."""
        return self[name].label or name

    @classmethod
    def infer(
        cls,
        X: Any,
        *,
        integer: Iterable[str] = (),
        ordinal: Mapping[str, Sequence[Any]] | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        precision: Mapping[str, int] | Literal["data"] | None = None,
        labels: Mapping[str, str] | None = None,
        numeric: Iterable[str] = (),
        categorical: Iterable[str] = (),
    ) -> Schema:
        """Read the kind, range and levels of each column off a frame.

        Parameters
        ----------
        X
            The training data.
        integer, numeric, categorical
            Columns to read as whole-numbered, continuous or categorical whatever their dtype.
        ordinal
            Column -> its levels, lowest first.
        bounds
            Column -> (lowest, highest) value; the default is the range seen in `X`.
        precision
            Column -> number of decimals its values may have; ``"data"`` reads them off every column of floats in which all
            values have at most six. Rows to be explained must then have no more.
        labels
            Column -> what to call it in print.
        """
        frame = as_frame(X)
        if frame.empty:
            raise SchemaError(
                f"The training data is empty ({len(frame)} rows, {frame.shape[1]} columns): ranges and levels are "
                "read off it. Pass the data the model was trained on."
            )
        if isinstance(precision, str):
            precision = _decimals(frame, precision, {*integer, *numeric, *categorical, *(ordinal or ())})
        ordinal, bounds, precision, labels = ordinal or {}, bounds or {}, precision or {}, labels or {}
        forced = {
            **dict.fromkeys(integer, "integer"),
            **dict.fromkeys(numeric, "numeric"),
            **dict.fromkeys(categorical, "categorical"),
        }
        for name in (*forced, *ordinal, *bounds, *precision, *labels):
            if name not in frame.columns:
                raise SchemaError(
                    f"Unknown column {name!r} in the schema's options.{did_you_mean(name, frame.columns)}"
                )
        features: list[Feature] = []
        for name in frame.columns:
            column = frame[name]
            if name in ordinal:
                feature: Feature = Ordinal(name, _levels_given(column, ordinal[name]), dtype=column.dtype)
            else:
                feature = _infer_feature(name, column, forced.get(name))
            if name in bounds or name in precision:
                feature = _override(feature, bounds.get(name), precision.get(name))
            features.append(replace(feature, label=labels.get(name, "")))
        return cls(tuple(features))

    def with_bounds(self, name: str, lower: float, upper: float) -> Schema:
        """Return a schema in which one numeric feature has other bounds."""
        j = self.index(name)
        changed = _override(self.features[j], (lower, upper), None)
        return Schema((*self.features[:j], changed, *self.features[j + 1 :]))

    def frame(self, data: Any) -> pd.DataFrame:
        """Return `data` as a frame with exactly this schema's columns, in order."""
        return align(as_frame(data, self.names), self.names)

    def row(self, row: Any) -> pd.DataFrame:
        """Return one row as a one-row frame with exactly this schema's columns, in order."""
        return align(as_row(row, self.names), self.names)

    def returned(self, frame: pd.DataFrame, u: FloatArray) -> pd.DataFrame:
        """Return the frame that a row was encoded from as `decode` would give it back, with its own index."""
        same = all(have == feature.dtype for have, feature in zip(frame.dtypes, self.features, strict=True))
        if same and np.array_equal(self.stored(u), u, equal_nan=True):
            return frame.copy()
        return self.decode(u, like=frame)

    def stored(self, u: FloatArray) -> FloatArray:
        """Return canonical rows as they come back from the columns' dtypes and declared precision."""
        out = np.array(u, dtype=np.float64)
        for j, feature in enumerate(self.features):
            if isinstance(feature, Numeric):
                values = restore_numbers(np.atleast_1d(out[..., self.starts[j]]), feature)
                out[..., self.starts[j]] = np.asarray(values, dtype=np.float64).reshape(out.shape[:-1])
        return out

    def encode(self, X: Any, *, missing: bool | Collection[int] = False) -> FloatArray:
        """Return the canonical matrix, one row per row of `X`.

        A missing value is an error unless `missing`, which may also name the features that it is allowed in; then it is
        NaN for a numeric feature and no level at all for a categorical one.
        """
        frame = self.frame(X)
        if len(frame) == 1:
            return self._encode_one(frame, missing)
        u = np.zeros((len(frame), self.width))
        for j, feature in enumerate(self.features):
            column = frame[feature.name]
            if isinstance(feature, Numeric):
                u[:, self.starts[j]] = numbers_of(column, feature)
                absent = np.isnan(u[:, self.starts[j]])
            else:
                codes = codes_of(column, feature)
                absent = codes < 0
                u[np.flatnonzero(~absent), self.starts[j] + codes[~absent]] = 1.0
            if bool(absent.any()):
                self._meet_missing(j, int(np.argmax(absent)), missing)
        return u

    def _encode_one(self, frame: pd.DataFrame, missing: bool | Collection[int]) -> FloatArray:
        """Encode one row value by value, without the accessors that a column is worth."""
        u = np.zeros((1, self.width))
        for j, (feature, (_, column)) in enumerate(zip(self.features, frame.items(), strict=True)):
            value, at = column.array[0], self.starts[j]
            if isinstance(feature, Numeric):
                u[0, at] = number = number_of(value, feature)
                absent = number != number  # noqa: PLR0124 - only NaN differs from itself
            else:
                code = code_of(value, feature, self._codes[j])
                absent = code < 0
                if not absent:
                    u[0, at + code] = 1.0
            if absent:
                self._meet_missing(j, 0, missing)
        return u

    def _meet_missing(self, j: int, row: int, missing: bool | Collection[int]) -> None:
        """Refuse a missing value of feature `j`, unless it is allowed there."""
        if not (missing if isinstance(missing, bool) else j in missing):
            where = f"Missing value in column {self.names[j]!r} (row {row})"
            raise SchemaError(f"{where}: {self._no_meaning(missing)}")

    def _no_meaning(self, missing: bool | Collection[int]) -> str:
        """Say why a missing value is refused, given where it would not be."""
        if isinstance(missing, bool) or not missing:
            return (
                "this model gives a missing value no meaning. Fill it in, or put an imputer into the model's Pipeline."
            )
        names = [self.names[j] for j in sorted(missing)]
        shown = ", ".join(map(repr, names[:_MOST_NAMES])) + (", ..." if len(names) > _MOST_NAMES else "")
        return (
            f"this model gives a missing value a meaning in other columns ({shown}), but not in this one. Fill it in, or "
            "put an imputer for this column into the model's Pipeline."
        )

    def decode(self, u: npt.ArrayLike, like: pd.DataFrame | None = None) -> pd.DataFrame:
        """Return canonical rows as a frame in the columns, order and dtypes of the training data.

        `like`, a frame of the same length gives the index.
        """
        matrix = np.atleast_2d(np.asarray(u, dtype=np.float64))
        data: dict[str, Any] = {}
        for j, feature in enumerate(self.features):
            part = matrix[:, self.slice(j)]
            if isinstance(feature, Numeric):
                data[feature.name] = restore_numbers(part[:, 0], feature)
            else:
                data[feature.name] = restore_levels(part, feature)
        frame = pd.DataFrame(data)
        return frame if like is None else frame.set_axis(like.index)

    def level_values(self, j: int, row: FloatArray) -> Any:
        """Return the raw value of feature `j` in a canonical row: a number or a level (None when missing)."""
        feature = self.features[j]
        part = row[self.slice(j)]
        if isinstance(feature, Numeric):
            value = feature.snap(float(part[0]))
            return int(value) if isinstance(feature, Integer) and np.isfinite(value) else value
        return feature.levels[int(np.argmax(part))] if part.any() else None


def _infer_feature(name: str, column: pd.Series[Any], forced: str | None) -> Feature:
    dtype = column.dtype
    if forced == "categorical":
        return _categorical(name, column)
    if isinstance(dtype, pd.CategoricalDtype) and forced is None:
        unordered = _categorical(name, column)
        return Ordinal(name, unordered.levels, dtype=dtype) if dtype.ordered else unordered
    if pd.api.types.is_bool_dtype(dtype) and forced is None:
        return Binary(name, (False, True), dtype=dtype)
    if pd.api.types.is_numeric_dtype(dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isinf(values).any():
            raise SchemaError(f"Infinity in column {name!r} of the training data. Replace it by a finite value.")
        values = values[~np.isnan(values)]
        if not values.size:
            raise SchemaError(f"Column {name!r} has no value at all in the training data. Drop it.")
        lower, upper = float(values.min()), float(values.max())
        whole = forced == "integer" or (forced is None and pd.api.types.is_integer_dtype(dtype))
        if whole:
            return Integer(name, float(np.floor(lower)), float(np.ceil(upper)), dtype=dtype)
        return Numeric(name, lower, upper, dtype=dtype)
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        raise SchemaError(
            f"Column {name!r} is a date or duration ({dtype}), which has no distance here. Turn it into a number, "
            "e.g. days since a fixed day."
        )
    if forced is not None:
        raise SchemaError(
            f"Column {name!r} cannot be read as {forced}: its dtype is {dtype}. Convert it to numbers first, or leave "
            "it a category."
        )
    return _categorical(name, column)


def _categorical(name: str, column: pd.Series[Any]) -> Categorical:
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = tuple(plain(v) for v in column.dtype.categories)
    else:
        levels = tuple(plain(v) for v in pd.unique(column.dropna()))
        levels = tuple(sorted(levels, key=lambda v: (str(type(v)), v)))
    if not levels:
        raise SchemaError(f"Column {name!r} has no value at all in the training data. Drop it.")
    kind = Binary if len(levels) == 2 else Categorical
    return kind(name, levels, dtype=column.dtype)


def _levels_given(column: pd.Series[Any], levels: Sequence[Any]) -> tuple[Any, ...]:
    unknown = sorted({str(v) for v in pd.unique(column.dropna())} - {str(v) for v in levels})
    if unknown:
        raise SchemaError(
            f"Column {column.name!r} has level {unknown[0]!r}, which is not among the ordinal levels given "
            f"({', '.join(map(repr, levels))}). Add it, in its place."
        )
    return tuple(levels)


def _decimals(frame: pd.DataFrame, how: str, forced: Collection[str]) -> dict[str, int]:
    """Return the decimals of the columns of floats that have few; columns whose kind is given are left alone."""
    if how != "data":
        raise SchemaError(f"The 'precision' of a schema must map columns to decimals, or be 'data'. Got {how!r}.")
    out = {}
    for name in frame.columns:
        if name in forced or not pd.api.types.is_float_dtype(frame[name].dtype):
            continue
        x = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
        x = x[np.isfinite(x)]
        few = next((k for k in range(1, _MOST_DECIMALS + 1) if np.array_equal(np.round(x, k), x)), None)
        # Whole numbers in a column of floats are no decimals: what they are is for the user to say.
        if few is not None and x.size and not np.array_equal(np.round(x), x):
            out[name] = few
    return out


def _override(feature: Feature, bounds: tuple[float, float] | None, precision: int | None) -> Feature:
    if not isinstance(feature, Numeric):
        raise SchemaError(
            f"Bounds and precision are for numeric features; {feature.name!r} is {feature.kind}. "
            "Use Actionability(allow={...}) to restrict its levels."
        )
    if bounds is not None:
        lower, upper = (float(b) for b in bounds)
        if not (np.isfinite(lower) and np.isfinite(upper) and lower <= upper):
            raise SchemaError(
                f"Bounds of {feature.name!r} must be two finite numbers, lowest first; got {bounds!r}. Every "
                "constant of the optimisation model is derived from them."
            )
        feature = replace(feature, lower=lower, upper=upper)
    if precision is not None:
        if isinstance(feature, Integer):
            raise SchemaError(f"{feature.name!r} is whole-numbered, so it has no precision to set.")
        feature = replace(feature, precision=int(precision))
    return feature if bounds is None else _on_grid(feature)


def _on_grid(feature: Numeric) -> Numeric:
    """Return the feature with its bounds moved inwards to the nearest points of its grid."""
    if feature.step is None:
        return feature
    lower, upper = feature.snap_up(feature.lower), feature.snap_down(feature.upper)
    if lower > upper:
        wanted = "whole number" if isinstance(feature, Integer) else f"number with {feature.precision} decimals"
        raise SchemaError(
            f"The bounds of {feature.name!r} ({feature.lower:g}, {feature.upper:g}) hold no {wanted}. Widen them."
        )
    return replace(feature, lower=lower, upper=upper)
