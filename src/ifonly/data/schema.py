"""Features and their canonical vector `u`: one raw value per numeric feature, one 0/1 per level of a categorical one.

Coherence lives here: a categorical feature has exactly one level at 1, so no answer can be half of two categories.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar, Literal, TypeGuard

import numpy as np
import numpy.typing as npt
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.data.blocks import Block, Grid, block_of, same_dtype
from ifonly.data.features import (
    LARGEST_WHOLE,
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
    other_neighbour,
    restore_levels,
    restore_numbers,
)
from ifonly.data.inference import infer_features, overridden
from ifonly.data.storage import Storage, storage_of
from ifonly.data.tables import DEEP, align, as_frame, as_row
from ifonly.errors import SchemaError, did_you_mean
from ifonly.runtime.memo import Lean, cached_property
from ifonly.runtime.tuning_tables import TABLES

__all__ = ["Binary", "Categorical", "Feature", "Integer", "Numeric", "Ordinal", "Schema"]

_MOST_NAMES = 5  # of columns in one message
_SHOWN = 12  # features that a repr names
_FLOATS, _WHOLE = np.dtype("float64"), np.dtype("int64")  # of most columns of numbers


@dataclass(frozen=True)
class Schema(Lean):
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
        kinds = ", ".join(f"{f.name}: {f.kind}{_digits(f)}" for f in self.features[:_SHOWN])
        more = f", ... ({len(self.features)} features)" if len(self.features) > _SHOWN else ""
        return f"Schema({kinds}{more})"

    def __post_init__(self) -> None:
        starts = np.concatenate([[0], np.cumsum([f.width for f in self.features])]).astype(int)
        object.__setattr__(self, "starts", tuple(int(s) for s in starts[:-1]))
        object.__setattr__(self, "width", int(starts[-1]))
        object.__setattr__(self, "names", tuple(f.name for f in self.features))
        object.__setattr__(self, "numeric", [j for j, f in enumerate(self.features) if isinstance(f, Numeric)])
        object.__setattr__(self, "categorical", [j for j, f in enumerate(self.features) if not isinstance(f, Numeric)])
        object.__setattr__(self, "owner", np.repeat(np.arange(len(self.features)), np.diff(starts)))
        object.__setattr__(self, "_index", {f.name: j for j, f in enumerate(self.features)})
        levels = ({} if isinstance(f, Numeric) else {v: i for i, v in enumerate(f.levels)} for f in self.features)
        object.__setattr__(self, "_codes", tuple(levels))
        object.__setattr__(self, "_numbers", frozenset(self.numeric))
        object.__setattr__(self, "_slices", tuple(map(slice, starts[:-1].tolist(), starts[1:].tolist())))
        object.__setattr__(self, "_grid", Grid(self.features))
        ends = [(f.lower, f.upper) for f in self.features if isinstance(f, Numeric)]
        object.__setattr__(self, "ends", np.array(ends, dtype=np.float64).reshape(-1, 2).T)
        object.__setattr__(self, "number_starts", np.array([self.starts[j] for j in self.numeric], dtype=np.intp))
        object.__setattr__(self, "_dtype", same_dtype(self.features))
        object.__setattr__(self, "steps", tuple(f.step if isinstance(f, Numeric) else None for f in self.features))

    starts: ClassVar[tuple[int, ...]]
    width: ClassVar[int]
    names: ClassVar[tuple[str, ...]]
    numeric: ClassVar[Sequence[int]]
    categorical: ClassVar[Sequence[int]]
    ends: ClassVar[FloatArray]  # lower and upper ends of the numeric features
    number_starts: ClassVar[npt.NDArray[np.intp]]  # and where they live in the canonical vector
    steps: ClassVar[tuple[float | None, ...]]  # spacing of the grid of each feature; None: it has none
    owner: ClassVar[npt.NDArray[np.int64]]
    _index: ClassVar[Mapping[str, int]]
    _codes: ClassVar[tuple[dict[Any, int], ...]]
    _numbers: ClassVar[frozenset[int]]
    _slices: ClassVar[tuple[slice, ...]]
    _grid: ClassVar[Grid]
    _dtype: ClassVar[np.dtype[np.generic] | None]  # of all features, where all are numbers stored in one of floats

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, name: str) -> Feature:
        return self.features[self.index(name)]

    def index(self, name: str) -> int:
        """Return the position of a feature, or suggest the nearest name."""
        try:
            return self._index[str(name)]  # columns may be called 0, or ("a", "x")
        except KeyError:
            raise SchemaError(
                f"Unknown feature {name!r}.{did_you_mean(name, self.names)} Known: {', '.join(self.names)}."
            ) from None

    def slice(self, j: int) -> slice:
        """Return where feature `j` lives in the canonical vector."""
        return self._slices[j]

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
        precision: Mapping[str, int | None] | Literal["auto", "data"] | None = "auto",
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
            Column -> number of decimals its values may have (None: any), in every question; rows to be explained must have
            no more. The decimals of other columns are read off the data, from ten different values on: where all have
            at most six, answers have no more, in questions for which that costs nothing (the model is linear with two
            outcomes, or made of trees; costs and demands are about single features). All other questions, and rows with
            more decimals, find a continuous column. ``"auto"``: so for all columns. ``"data"``: what is read is declared, for
            every question. None: no decimals.
        labels
            Column -> what to call it in print.
        """
        forced = {
            **dict.fromkeys(integer, "integer"),
            **dict.fromkeys(numeric, "numeric"),
            **dict.fromkeys(categorical, "categorical"),
        }
        return cls(infer_features(as_frame(X), forced, ordinal or {}, bounds or {}, precision, labels or {}))

    def with_bounds(self, name: str, lower: float, upper: float) -> Schema:
        """Return a schema in which one numeric feature has other bounds."""
        return self.with_all_bounds({name: (lower, upper)})

    def with_all_bounds(self, bounds: Mapping[str, tuple[float, float]]) -> Schema:
        """Return a schema in which some numeric features have other bounds."""
        changed = {self.index(name): overridden(self[name], own, None) for name, own in bounds.items()}
        return Schema(tuple(changed.get(j, feature) for j, feature in enumerate(self.features)))

    def frame(self, data: Any) -> pd.DataFrame:
        """Return `data` as a frame with exactly this schema's columns, in order."""
        return data if self._is_aligned(data) else align(as_frame(data, self.names), self.names)

    def row(self, row: Any) -> pd.DataFrame:
        """Return one row as a one-row frame with exactly this schema's columns, in order."""
        if self._is_aligned(row) and len(row) == 1:
            return row
        return align(as_row(row, self.names), self.names)

    def _is_aligned(self, data: Any) -> TypeGuard[pd.DataFrame]:
        """Whether it is a frame with exactly this schema's columns, in order: one comparison, and no loop over names."""
        return isinstance(data, pd.DataFrame) and data.columns.equals(self._columns)

    @cached_property
    def _columns(self) -> pd.Index[str]:
        return pd.Index(self.names)

    def keeps(self, frame: pd.DataFrame, u: FloatArray) -> bool:
        """Whether the frame that a row was encoded from is what `decode` would give back, but for its index."""
        # of lists, which look first whether two are the same object: categories are compared one by one
        return frame.dtypes.tolist() == self._dtypes and np.array_equal(self.stored(u), u, equal_nan=True)

    @cached_property
    def _dtypes(self) -> list[Any]:
        return [feature.dtype for feature in self.features]

    def spans(self, u: FloatArray) -> bool:
        """Whether all numbers of a canonical row lie within the bounds of their features; those that are missing do."""
        values, (low, high) = u[self.number_starts], self.ends
        return not ((values < low) | (values > high)).any()

    def lacks(self, u: FloatArray) -> bool:
        """Whether a canonical row lacks a value: a number, or the level of a category."""
        levels = np.count_nonzero(u) - np.count_nonzero(u[self.number_starts])
        return bool(np.isnan(u).any() or levels < len(self.categorical))

    def changed(self, U: FloatArray, factual: FloatArray) -> npt.NDArray[np.bool_]:
        """Return, per canonical row and feature, whether it differs from a factual; missing is the same as missing."""
        different = factual != U
        if np.isnan(factual).any():
            different &= ~(np.isnan(factual) & np.isnan(U))
        return np.logical_or.reduceat(different, self.starts, axis=1)

    def stored(self, u: FloatArray) -> FloatArray:
        """Return canonical rows as they come back from the columns' dtypes and declared precision; the array is a new one."""
        out, kept = np.array(u, dtype=np.float64), self._storage
        for decimals, at in kept.rounded:
            out[..., at] = np.round(out[..., at], decimals)
        if kept.whole.size:
            out[..., kept.whole] += 0.0  # whole numbers know no -0
        for kind, at in kept.narrow:
            out[..., at] = out[..., at].astype(kind)
        for feature, start in kept.odd:
            values = restore_numbers(np.atleast_1d(out[..., start]), feature)
            out[..., start] = np.asarray(values, dtype=np.float64).reshape(out.shape[:-1])
        return out

    @cached_property
    def _storage(self) -> Storage:
        return storage_of(self.features, self.starts)

    def stored_beside(self, u: FloatArray) -> Iterator[FloatArray]:
        """Yield a canonical row with numbers rounded to the other side in narrow dtypes: all of them, then one at a time.

        A value on the edge of a demand may be rounded beyond it; its neighbour is as near, and on the right side.
        """
        stored = self.stored(u)
        other: dict[int, float] = {}
        for start, feature in zip(self.starts, self.features, strict=True):
            if isinstance(feature, Numeric):
                value = other_neighbour(float(u[start]), float(stored[start]), feature)
                other |= {} if value is None else {int(start): value}
        for places in (list(other), *([i] for i in other if len(other) > 1)):
            if places:
                beside = stored.copy()
                beside[places] = [other[i] for i in places]
                yield beside

    def encode(self, X: Any, *, missing: bool | Collection[int] = False) -> FloatArray:
        """Return the canonical matrix, one row per row of `X`.

        A missing value is an error unless `missing`, which may also name the features that it is allowed in; then it is
        NaN for a numeric feature and no level at all for a categorical one.
        """
        frame = self.frame(X)
        if len(frame) == 1 and len(self) < TABLES.wide:
            return self._encode_one(frame, missing)
        u = np.zeros((len(frame), self.width))
        done = self._encode_block(block_of(frame), u, missing)
        for j, feature in enumerate(self.features):
            if j in done:
                continue
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

    def _encode_block(self, block: Block, u: FloatArray, missing: bool | Collection[int]) -> set[int]:
        """Encode the columns of numbers that fit their features in one piece, and return which; missing ones are met."""
        odd = set(self._grid.unfit(block).tolist())  # these are read one by one, and refused with their reason
        good = np.array([j in self._numbers and j not in odd for j in block.columns.tolist()], dtype=np.bool_)
        columns = block.columns[good]
        values = block.values if good.all() else block.values[:, good]
        u[:, np.asarray(self.starts)[columns]] = values
        absent = np.isnan(values)
        for i in np.flatnonzero(absent.any(axis=0)):
            self._meet_missing(int(columns[i]), int(np.argmax(absent[:, i])), missing)
        return set(columns.tolist())

    def _encode_one(self, frame: pd.DataFrame, missing: bool | Collection[int]) -> FloatArray:
        """Encode one row value by value, without the accessors that a column is worth."""
        u = np.zeros((1, self.width))
        plain = frame.to_numpy() if self._dtype is not None else None
        if plain is not None and plain.dtype.kind == "f" and np.isfinite(plain).all():  # in one piece
            block = Block(np.arange(len(self)), plain.astype(np.float64))
            if not len(self._grid.unfit(block)):
                return block.values
        values = frame.iat
        for j, (feature, at) in enumerate(zip(self.features, self.starts, strict=True)):
            value: Any = values[0, j]
            if isinstance(feature, Numeric):
                u[0, at] = number = float(value) if _fits(value, feature.precision) else number_of(value, feature)
                absent = number != number  # noqa: PLR0124 - only NaN differs from itself
            else:
                known = self._codes[j].get(value)
                code = code_of(value, feature, self._codes[j]) if known is None else known
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
        if self._dtype is not None:
            index = None if like is None else like.index
            return pd.DataFrame(self._restored(matrix), index=index, columns=self._columns.view())
        frame = pd.DataFrame({feature.name: self._column(j, matrix) for j, feature in enumerate(self.features)})
        return frame if like is None else frame.set_axis(like.index)

    def _column(self, j: int, matrix: FloatArray) -> Any:
        """Return the column of feature `j` in canonical rows."""
        feature, part = self.features[j], matrix[:, self.slice(j)]
        return restore_numbers(part[:, 0], feature) if isinstance(feature, Numeric) else restore_levels(part, feature)

    def decode_beside(self, row: FloatArray, other: FloatArray, frame: pd.DataFrame) -> pd.DataFrame:
        """Return one canonical row as `decode` would, given what it makes of another: only what differs is decoded.

        Most answers differ from their factual in a few features, and making a frame takes some 50 microseconds a column.
        """
        differs = np.flatnonzero(np.logical_or.reduceat(row != other, self.starts))  # NaN differs from itself
        if self._dtype is not None or len(differs) > len(self) // TABLES.many:
            return self.decode(row)
        out = frame.copy(deep=DEEP)
        out.index = pd.RangeIndex(1)
        for j in differs.tolist():
            out[self.names[j]] = self._column_of_one(j, row)
        return out

    def _column_of_one(self, j: int, row: FloatArray) -> Any:
        """Return the column of feature `j` in one canonical row: the same, at once for the dtypes that most columns have."""
        feature, value = self.features[j], float(row[self.starts[j]])
        plainly = _FLOATS if type(feature) is Numeric else _WHOLE if type(feature) is Integer else None
        if feature.dtype != plainly or not -LARGEST_WHOLE <= value <= LARGEST_WHOLE:
            return self._column(j, row[None, :])
        decimals = feature.precision  # type: ignore[union-attr]  # it is a number
        return np.array([value if decimals is None else round(value, decimals)], dtype=plainly)

    def _restored(self, matrix: FloatArray) -> npt.NDArray[Any]:
        """Return rows of numbers that are all stored in one dtype, on their grids; the array is a new one."""
        return self._grid.round(matrix).astype(self._dtype)

    def level_values(self, j: int, row: FloatArray) -> Any:
        """Return the raw value of feature `j` in a canonical row: a number or a level (None when missing)."""
        feature = self.features[j]
        part = row[self.slice(j)]
        if isinstance(feature, Numeric):
            value = feature.snap(float(part[0]))
            return int(value) if isinstance(feature, Integer) and np.isfinite(value) else value
        return feature.levels[int(np.argmax(part))] if part.any() else None


def _fits(value: Any, decimals: int | None) -> bool:
    """Whether a value is plainly a number of a feature with so many decimals, as almost all are; others get a closer look."""
    if not isinstance(value, float | np.integer):  # NumPy's float64 is a float
        return False
    if decimals is None:
        return bool(isfinite(value))
    return bool(-LARGEST_WHOLE <= value <= LARGEST_WHOLE and round(value, decimals) == value)


def _digits(feature: Feature) -> str:
    """Return the decimals of a number for a repr: declared ones, or those that the data have."""
    if not isinstance(feature, Numeric) or isinstance(feature, Integer):
        return ""
    if feature.precision is not None:
        return f" with {_counted(feature.precision)}"
    return "" if feature.decimals is None else f" with {_counted(feature.decimals)} in the data"


def _counted(decimals: int) -> str:
    return f"{decimals} decimal{'' if decimals == 1 else 's'}"
