"""Rows and frames as people have them (pandas, polars, NumPy, dict, Series) turned into a pandas frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ifonly.errors import SchemaError, did_you_mean

__all__ = ["ANY_TABLE", "DEEP", "TableKind", "align", "as_frame", "as_row", "column_diff", "shorten"]


DEEP = int(pd.__version__.partition(".")[0]) < 3  # of a copy that may be changed: pandas 3 copies what is changed


@dataclass(frozen=True, eq=False)
class TableKind:
    """Kind of table that a caller has: the labels of the columns where they are no strings, and whether it is polars."""

    columns: pd.Index[Any] | None = None
    polars: bool = False

    @classmethod
    def of(cls, data: Any) -> TableKind:
        """Return the kind of a table; a row that is none (a dict, a list) has no kind of its own."""
        if _is_polars(data):
            return cls(polars=True)
        columns = data.columns if isinstance(data, pd.DataFrame) else None
        strange = columns is not None and not all(isinstance(c, str) for c in columns)
        return cls(columns if strange else None)

    def beside(self, row: Any) -> TableKind:
        """Return the kind for the answer to a row: its own, where it is a frame."""
        is_frame = _is_polars(row) or isinstance(row, pd.DataFrame)
        return TableKind(self.columns, _is_polars(row) if is_frame else self.polars)

    def back(self, frame: pd.DataFrame) -> Any:
        """Return a frame with string names as the caller has them; other columns that it may have keep their names."""
        if self.columns is not None:
            label = {str(c): c for c in self.columns}
            named = [label.get(str(c), c) for c in frame.columns]
            same = len(named) == len(self.columns) and set(label) == {str(c) for c in frame.columns}
            frame = frame.set_axis(self.columns if same and named == list(self.columns) else pd.Index(named), axis=1)
        return _to_polars(frame) if self.polars else frame


ANY_TABLE = TableKind()  # of no caller in particular: pandas, names that are strings


def _is_polars(data: Any) -> bool:
    return type(data).__module__.split(".")[0] == "polars"


def _to_polars(frame: pd.DataFrame) -> Any:
    """Return a pandas frame as a polars one, column by column: polars' own conversion needs pyarrow."""
    import polars as pl  # noqa: PLC0415 - the caller has it

    return pl.DataFrame({name: _polars_values(column) for name, column in frame.items()}, strict=False)


def _polars_values(column: pd.Series[Any]) -> Any:
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return column.to_numpy()
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]


def as_frame(data: Any, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return `data` as a pandas frame with string column names.

    Parameters
    ----------
    data
        A pandas or polars frame, a two-dimensional array, or a list of dicts.
    columns
        Names for an array, which has none of its own.
    """
    if isinstance(data, pd.DataFrame):
        frame = data
    elif _is_polars(data):
        frame = _from_polars(data)
    elif hasattr(data, "to_pandas"):
        frame = data.to_pandas()
    elif isinstance(data, (list, tuple)) and data and isinstance(data[0], Mapping):
        frame = pd.DataFrame(list(data))
    else:
        frame = _from_array(data, columns)
    names = [str(c) for c in frame.columns]
    if len(set(names)) < len(names):
        repeated = sorted({c for c in names if names.count(c) > 1})
        raise SchemaError(
            f"Duplicated column{'s' * (len(repeated) > 1)} {', '.join(map(repr, repeated))}: a feature must have one "
            "column. Rename or drop the copies."
        )
    return frame if list(frame.columns) == names else frame.set_axis(names, axis=1)


def _from_polars(data: Any) -> pd.DataFrame:
    """Return a polars frame as a pandas one; by hand, because polars' own `to_pandas` needs pyarrow."""
    table = data.collect() if hasattr(data, "collect") else data
    if not hasattr(table, "get_columns"):
        raise SchemaError("Expected a table, got a polars Series. Pass a DataFrame, or a dict for one row.")
    return pd.DataFrame({column.name: _polars_column(column) for column in table.get_columns()})


def _polars_column(column: Any) -> Any:
    values, dtype = column.to_list(), column.dtype
    if hasattr(dtype, "categories"):  # an Enum names its levels; a Categorical only has those it has seen
        named = dtype.categories
        return pd.Categorical(values, categories=named.to_list() if hasattr(named, "to_list") else None)
    if dtype.is_numeric() and not column.null_count():
        return column.to_numpy()
    return pd.Series(values, dtype="float64") if dtype.is_numeric() else pd.Series(values)


def _from_array(data: Any, columns: Sequence[str] | None) -> pd.DataFrame:
    array = np.asarray(data)
    if array.ndim != 2:
        raise SchemaError(
            f"Expected a table (pandas, polars or two-dimensional array), got {type(data).__name__} with "
            f"{array.ndim} dimension(s). Pass a DataFrame."
        )
    names = [f"x{i}" for i in range(array.shape[1])] if columns is None else list(columns)
    if len(names) != array.shape[1]:
        raise SchemaError(
            f"The array has {array.shape[1]} columns but {len(names)} are known ({shorten(names)}). "
            "Pass a DataFrame with named columns, or the same columns as in training."
        )
    return pd.DataFrame(array, columns=pd.Index(names))


def as_row(row: Any, columns: Sequence[str]) -> pd.DataFrame:
    """Return one row (dict, Series, one-row frame or one-dimensional array) as a one-row frame."""
    if isinstance(row, Mapping):
        frame = pd.DataFrame({str(k): pd.Series([v]) for k, v in row.items()})
    elif isinstance(row, pd.Series):
        repeated = row.index[row.index.duplicated()]
        if len(repeated):
            raise SchemaError(f"Duplicated entry {repeated[0]!r} in the row: a feature must have one value.")
        frame = _from_series(row)
    elif _is_flat(row):
        frame = _from_array(np.asarray(row, dtype=object).reshape(1, -1), columns)
    else:
        frame = as_frame(row, columns)
    if len(frame) != 1:
        raise SchemaError(
            f"Expected exactly one row, got {len(frame)}. Pick one (X.iloc[[0]]) or use explain_all for many."
        )
    return frame


def _from_series(row: pd.Series[Any]) -> pd.DataFrame:
    """Return a series as one row, each value in the dtype that it would have in a column of its own."""
    if isinstance(row.dtype, np.dtype) and row.dtype.kind in "fiu":  # in one piece: a column by itself takes its time
        return pd.DataFrame(row.to_numpy().reshape(1, -1), columns=pd.Index([str(k) for k in row.index]))
    return pd.DataFrame({str(k): pd.Series([v]) for k, v in row.items()})


def _is_flat(row: Any) -> bool:
    """Whether it is a plain list of values, one per column."""
    if not isinstance(row, (np.ndarray, list, tuple)) or np.ndim(row) != 1:
        return False
    return not any(isinstance(value, Mapping) for value in row)


def align(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return `frame` with exactly `columns` in that order, or say what is missing, unknown or misspelt."""
    have = list(frame.columns)
    if have == list(columns):
        return frame
    missing = [c for c in columns if c not in have]
    unknown = [c for c in have if c not in set(columns)]
    if missing or unknown:
        hints = [f"unknown column {c!r}.{did_you_mean(c, missing or columns)}" for c in unknown]
        hints += [f"missing column {c!r}." for c in missing if not any(repr(c) in h for h in hints)]
        raise SchemaError(
            "The columns do not match those of the training data: "
            + " ".join(hints)
            + "\n"
            + column_diff(columns, have)
        )
    return frame[list(columns)]


def column_diff(expected: Sequence[str], found: Sequence[str]) -> str:
    """Return a small diff of two column lists: `-` expected but not there, `+` there but not expected."""
    lines = [f"  - {c}" for c in expected if c not in found] + [f"  + {c}" for c in found if c not in expected]
    if not lines:
        moved = [(e, f) for e, f in zip(expected, found, strict=True) if e != f]
        lines = [f"  position {list(expected).index(e)}: expected {e}, found {f}" for e, f in moved[:6]]
    return "\n".join(lines)


def shorten(names: Sequence[str], most: int = 5) -> str:
    """Return the first few names, for an error."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ..."
