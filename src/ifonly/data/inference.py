"""Inference of features: the kinds, ranges and levels of columns, read off their values, and what a caller says of them."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.data.blocks import block_of
from ifonly.data.features import Binary, Categorical, Feature, Integer, Numeric, Ordinal, plain
from ifonly.errors import SchemaError, did_you_mean
from ifonly.runtime.tuning_tables import TABLES
from ifonly.tolerances import SHORT_SUM

__all__ = ["decimals_of", "infer_features", "overridden", "plain_numbers"]

# These say what a schema is, by the odds in `decimals_of`, and not how fast it is read.
_MOST_DECIMALS = 6
_FEWEST_VALUES = 10  # different ones, from which on decimals are read off them


def infer_features(
    frame: pd.DataFrame,
    forced: Mapping[str, str],
    ordinal: Mapping[str, Sequence[Any]],
    bounds: Mapping[str, tuple[float, float]],
    precision: Mapping[str, int | None] | str | None,
    labels: Mapping[str, str],
) -> tuple[Feature, ...]:
    """Return the features of a table, a kind being forced on some columns; the rest as in `Schema.infer`."""
    if frame.empty:
        raise SchemaError(
            f"The training data is empty ({len(frame)} rows, {frame.shape[1]} columns): ranges and levels are "
            "read off it. Pass the data the model was trained on."
        )
    declared, read = _decimals_to_keep(frame, precision, {*forced, *ordinal})
    for name in (*forced, *ordinal, *bounds, *declared, *labels):
        if name not in frame.columns:
            raise SchemaError(f"Unknown column {name!r} in the schema's options.{did_you_mean(name, frame.columns)}")
    features: list[Feature] = []
    special = {*ordinal, *bounds, *declared, *labels, *forced}
    plainly = plain_numbers(frame, special)
    for name in frame.columns:
        if name in plainly:
            features.append(plainly[name])
            continue
        column = frame[name]
        if name in ordinal:
            feature: Feature = Ordinal(name, _levels_given(column, ordinal[name]), dtype=column.dtype)
        else:
            feature = _infer_feature(name, column, forced.get(name))
        if name in bounds or name in declared:
            feature = overridden(feature, bounds.get(name), declared.get(name))
        features.append(replace(feature, label=labels.get(name, "")))
    return tuple(_noted(feature, read.get(feature.name)) for feature in features)


def _decimals_to_keep(
    frame: pd.DataFrame, precision: Mapping[str, int | None] | str | None, forced: Collection[str]
) -> tuple[dict[str, int | None], dict[str, int]]:
    """Return the decimals that are declared, and those that are only read off the data."""
    if isinstance(precision, str) and precision not in ("auto", "data"):
        raise SchemaError(
            f"The 'precision' of a schema must map columns to decimals, or be 'auto' or 'data'. Got {precision!r}."
        )
    if precision is None:
        return {}, {}
    declared = {} if isinstance(precision, str) else dict(precision)
    read = decimals_of(frame, {*forced, *declared})
    return ({**read}, {}) if precision == "data" else (declared, read)


def _noted(feature: Feature, decimals: int | None) -> Feature:
    """Return the feature with the decimals that the data have noted."""
    return feature if decimals is None or not isinstance(feature, Numeric) else replace(feature, decimals=decimals)


def overridden(feature: Feature, bounds: tuple[float, float] | None, precision: int | None) -> Feature:
    """Return a feature with other bounds, moved inwards to its grid, or another number of decimals."""
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


def plain_numbers(frame: pd.DataFrame, special: Collection[str]) -> dict[str, Numeric]:
    """Return the features of all columns of numbers that are not special and have nothing but finite values."""
    columns, values = block_of(frame)
    names, dtypes = frame.columns.tolist(), frame.dtypes.tolist()
    lower, upper = values.min(axis=0), values.max(axis=0)  # NaN or infinite where some value is
    finite = np.isfinite(lower) & np.isfinite(upper)
    out = {}
    for i, c in enumerate(columns.tolist()):
        name, dtype = names[c], dtypes[c]
        if finite[i] and name not in special:
            kind = Numeric if dtype.kind == "f" else Integer
            out[name] = kind(name, float(lower[i]), float(upper[i]), dtype=dtype)
    return out


def _infer_feature(name: str, column: pd.Series[Any], forced: str | None) -> Feature:
    """Return the feature that a column is, of the kind that is forced on it if there is one."""
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
    _refuse_boxed_numbers(name, column)
    return _categorical(name, column)


def _refuse_boxed_numbers(name: str, column: pd.Series[Any]) -> None:
    """Refuse a column of numbers whose dtype hides them: read as a category, 1.5 would be as far from 1.6 as from 900."""
    if column.dtype != object:
        return
    there = column.dropna()
    if len(there) and all(isinstance(v, numbers.Real) and not isinstance(v, (bool, np.bool_)) for v in there):
        raise SchemaError(
            f"Column {name!r} holds numbers, but its dtype is object. Make it a column of numbers, X[{name!r}] = "
            f"pd.to_numeric(X[{name!r}]), or say that they are names: Schema.infer(X, categorical=[{name!r}])."
        )


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
    """Return the levels that a caller gives for a column, if it has no others."""
    unknown = sorted({str(v) for v in pd.unique(column.dropna())} - {str(v) for v in levels})
    if unknown:
        raise SchemaError(
            f"Column {column.name!r} has level {unknown[0]!r}, which is not among the ordinal levels given "
            f"({', '.join(map(repr, levels))}). Add it, in its place."
        )
    return tuple(levels)


def decimals_of(frame: pd.DataFrame, left_alone: Collection[str] = ()) -> dict[str, int]:
    """Return the decimals of the columns of doubles whose values are all short decimals.

    A value has `d` decimals if it is the double nearest to some ``k / 10**d``. A double drawn from a continuum has some
    sixteen digits, so one short value is hardly ever chance; the number of decimals may be, since every tenth value of two
    decimals looks as if it had one. Ten different values that all end early by chance are one case in ``10**10``, and
    fewer say nothing. Beyond fifteen digits in all, a double is near every decimal of that length: such columns stay
    continuous, as do those of tiny units, whose decimals are none of the first six. Whole numbers in a column of floats are
    no decimals, what they are is for the user to say. Single precision is left alone: its 0.1 is no 0.1 in the canonical
    vector.
    """
    columns, values = block_of(frame)
    names, dtypes = frame.columns.tolist(), frame.dtypes.tolist()
    first = values[: TABLES.first_look]
    with np.errstate(invalid="ignore"):
        near = np.abs(np.round(first, _MOST_DECIMALS) - first) <= SHORT_SUM * np.abs(first)
    short = np.asarray((near | np.isnan(first)).all(axis=0))
    out: dict[str, int] = {}
    for i, c in enumerate(columns.tolist()):
        if short[i] and dtypes[c] == np.float64 and names[c] not in left_alone:
            x = values[:, i]
            decimals = _decimals(x[np.isfinite(x)])
            out |= {} if decimals is None else {names[c]: decimals}
    return out


def _decimals(values: FloatArray) -> int | None:
    """Return the decimals of some values; None: they have too many or none, or are too few to tell."""
    if not any(len(np.unique(part)) >= _FEWEST_VALUES for part in (values[: TABLES.first_look], values)):
        return None
    longest, size = 10.0 ** np.finfo(np.float64).precision, float(np.abs(values).max())
    few = (d for d in range(_MOST_DECIMALS + 1) if size * 10.0**d < longest)
    return next((d for d in few if np.array_equal(np.round(values, d), values)), None) or None
