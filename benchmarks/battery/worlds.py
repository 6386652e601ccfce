"""Random small worlds: columns with a short list of values each, so that every possible row can be written down."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ifonly import Schema

__all__ = ["Column", "Data", "draw_data", "frame_of", "in_unit"]

Floats = npt.NDArray[np.float64]

LEVELS = ("blue", "green", "red", "violet")
ORDER = ("none", "some", "much", "all")
_UNITS = (-9, -6, -4, -3, -2, -1, 0, 0, 1, 2, 3, 4, 6, 9, 12)
_OFFSETS = (0, 0, 0, -2, 1, 100, 2**24, 10**9)


@dataclass(frozen=True)
class Column:
    """One feature: its kind, every value the enumeration will try, and what the schema is told about it.

    Attributes
    ----------
    kind
        ``whole``, ``decimal`` (on a grid of ``10**unit``), ``real``, ``flag``, ``category`` or ``order``.
    values
        The values of the grid, in order; for a real column only some of what is possible.
    unit
        The power of ten of a numeric column.
    low, high
        The bounds given to the schema.
    """

    name: str
    kind: str
    values: tuple[Any, ...]
    unit: int = 0
    low: float = 0.0
    high: float = 0.0
    dtype: str = "float64"

    @property
    def numeric(self) -> bool:
        """Whether the column holds numbers."""
        return self.kind in ("whole", "decimal", "real")

    @property
    def step(self) -> float | None:
        """The spacing of the grid of a numeric column; None for a real one and for levels."""
        return {"whole": 1.0, "decimal": 10.0**self.unit}.get(self.kind)

    def on_grid(self, value: float) -> bool:
        """Whether a number is one that the column can hold: whole, or with its decimals and no more."""
        if self.kind == "whole":
            return float(value).is_integer()
        return self.kind != "decimal" or float(value) == round(float(value), -self.unit)


@dataclass(frozen=True)
class Data:
    """The training table of a world, its columns and its schema; `latent` is what outcomes are made of."""

    columns: tuple[Column, ...]
    X: pd.DataFrame
    latent: Floats
    words: tuple[str, ...] = ()
    gaps: frozenset[str] = field(default_factory=frozenset)

    def __getitem__(self, name: str) -> Column:
        return next(c for c in self.columns if c.name == name)

    @property
    def numbers(self) -> list[str]:
        """The names of the numeric columns."""
        return [c.name for c in self.columns if c.numeric]

    @property
    def levels(self) -> list[str]:
        """The names of the others."""
        return [c.name for c in self.columns if not c.numeric]

    @property
    def has_real(self) -> bool:
        """Whether some column is continuous, so that enumeration sees only a part."""
        return any(c.kind == "real" for c in self.columns)

    def schema(self) -> Schema:
        """Return the schema that says what the columns mean."""
        return Schema.infer(
            self.X,
            integer=[c.name for c in self.columns if c.kind == "whole"],
            numeric=[c.name for c in self.columns if c.kind in ("decimal", "real")],
            ordinal={c.name: list(c.values) for c in self.columns if c.kind == "order"},
            precision={c.name: -c.unit for c in self.columns if c.kind == "decimal"},
            bounds={c.name: (c.low, c.high) for c in self.columns if c.numeric},
        )

    def with_values(self, name: str, values: Sequence[float]) -> Data:
        """Return the data with other values of one real column to enumerate."""
        column = replace(self[name], values=tuple(values))
        return replace(self, columns=tuple(column if c.name == name else c for c in self.columns))

    def rescaled(self, name: str, power: int) -> Data:
        """Return the same world with one column in another unit: every value times ``10**power``."""
        old = self[name]
        new = replace(
            old,
            unit=old.unit + power,
            values=tuple(in_unit(v, old, power) for v in old.values),
            low=in_unit(old.low, old, power),
            high=in_unit(old.high, old, power),
        )
        X = self.X.copy()
        X[name] = [v if np.isnan(v) else in_unit(float(v), old, power) for v in X[name]]
        columns = tuple(new if c.name == name else c for c in self.columns)
        return replace(self, columns=columns, X=X)


def in_unit(value: float, column: Column, power: int) -> float:
    """Return a value of a column times ``10**power``: in decimals, the float that stands for it."""
    if column.kind == "decimal":
        return _decimal(round(value / 10.0**column.unit), column.unit + power)
    return float(value) * 10.0**power if power >= 0 else float(value) / 10.0**-power


def _decimal(k: int, unit: int) -> float:
    """Return ``k * 10**unit`` as the float that its decimals stand for."""
    return float(k * 10**unit) if unit >= 0 else round(k / 10**-unit, -unit)


def frame_of(data: Data, rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """Return rows of plain values as a frame in the dtypes of the training table."""
    columns: dict[str, Any] = {}
    for i, c in enumerate(data.columns):
        values = [row[i] for row in rows]
        dtype = data.X[c.name].dtype
        if c.numeric and any(v is None or v != v for v in values):  # noqa: PLR0124 - only NaN differs from itself
            columns[c.name] = pd.Series(values, dtype="float64" if c.kind == "whole" else dtype)
        else:
            columns[c.name] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(columns)


def grid_of(data: Data, absent: Sequence[str] = ()) -> pd.DataFrame:
    """Return every combination of values; a column that the factual lacks may also stay missing."""
    lists = [(*c.values, None if not c.numeric else np.nan) if c.name in absent else c.values for c in data.columns]
    return frame_of(data, list(itertools.product(*lists)))


# -- drawing -----------------------------------------------------------------------------------------------------------
def draw_data(rng: np.random.Generator, *, largest: int = 900, gaps: bool = False, real: bool = True) -> Data:
    """Draw columns until the grid is as large as it may be, and a training table over them."""
    kinds = ["whole", "decimal", "flag", "category", "order"] + ["real"] * real
    weights = np.array([3.0, 3.0, 1.0, 2.0, 1.0] + [4.0] * real)
    tame = bool(
        rng.random() < 0.5
    )  # half of the worlds are ordinary, so that a fault of logic is not taken for one of units
    columns = [_column(rng, "whole" if rng.random() < 0.5 else "decimal", 0, tame)]
    wanted = int(rng.integers(2, 6))
    for i in range(1, 8):
        column = _column(rng, str(rng.choice(kinds, p=weights / weights.sum())), i, tame)
        size = int(np.prod([len(c.values) for c in (*columns, column)]))
        if size <= largest and len(columns) < wanted:
            columns.append(column)
    n = int(rng.integers(28, 55))
    codes = {c.name: rng.integers(0, len(c.values), n) for c in columns}
    for c in columns:
        codes[c.name][: len(c.values)] = rng.permutation(len(c.values))
    latent = _latent(rng, columns, codes, n)
    table = {c.name: [c.values[k] for k in codes[c.name]] for c in columns}
    words: list[str] = []
    if rng.random() < 0.25:
        words.append(_outlier(rng, columns, table))
    X = pd.DataFrame({c.name: _series(rng, c, table[c.name]) for c in columns})
    holes = _holes(rng, columns, X) if gaps else frozenset()
    if rng.random() < 0.3:
        columns = [_narrowed(rng, c) for c in columns]
    return Data(tuple(columns), X, latent, tuple(w for w in words if w), holes)


def _column(rng: np.random.Generator, kind: str, i: int, tame: bool) -> Column:
    name = f"{kind[0]}{i}" if rng.random() < 0.9 else f"{kind} {i}"
    size = int(rng.integers(3, 8))
    if kind == "whole":
        low = int(rng.choice(_OFFSETS[:6] if tame else _OFFSETS)) + int(rng.integers(-3, 4))
        values: tuple[Any, ...] = tuple(range(low, low + size))
        return Column(name, kind, values, 0, float(low), float(low + size - 1), "int64")
    if kind == "decimal":
        unit, low = _unit(rng, tame), int(rng.integers(-6, 12))
        values = tuple(_decimal(low + k, unit) for k in range(size))
        return Column(name, kind, values, unit, values[0], values[-1])
    if kind == "real":
        unit = _unit(rng, tame)
        dtype = "float32" if rng.random() < 0.2 else "float64"
        drawn = np.unique((rng.uniform(-1, 3, min(size, 6)) * 10.0**unit).astype(dtype).astype(np.float64))
        values = tuple(float(v) for v in drawn)
        return Column(name, kind, values, unit, values[0], values[-1], dtype)
    if kind == "flag":
        return Column(name, kind, (False, True), dtype="bool")
    if kind == "order":
        return Column(name, kind, ORDER[: int(rng.integers(3, 5))], dtype=str(rng.choice(["text", "category"])))
    return Column(name, kind, LEVELS[: int(rng.integers(2, 5))], dtype=str(rng.choice(["text", "category"])))


def _unit(rng: np.random.Generator, tame: bool) -> int:
    return int(rng.integers(-2, 3)) if tame else int(rng.choice(_UNITS))


def _series(rng: np.random.Generator, c: Column, values: list[Any]) -> pd.Series[Any]:
    del rng
    if c.dtype == "category":
        return pd.Series(pd.Categorical(values, categories=list(c.values)))
    return pd.Series(values) if c.dtype == "text" else pd.Series(values, dtype=c.dtype)


def _latent(rng: np.random.Generator, columns: list[Column], codes: dict[str, Any], n: int) -> Floats:
    """Return an outcome behind the data: straight parts, one bend, one interaction, noise."""
    parts = {c.name: codes[c.name] / max(len(c.values) - 1, 1) for c in columns}
    total = sum(rng.normal() * p for p in parts.values())
    first, last = parts[columns[0].name], parts[columns[-1].name]
    total = total + 0.7 * rng.normal() * np.abs(first - 0.5) + rng.normal() * first * last
    return np.asarray(total + rng.normal(0, 0.15, n))


def _outlier(rng: np.random.Generator, columns: list[Column], table: dict[str, list[Any]]) -> str:
    """Give one row a value far outside of the schema's bounds."""
    numeric = [c for c in columns if c.numeric]
    c = numeric[int(rng.integers(len(numeric)))]
    far = int(rng.choice([30, 1000, 100_000]))
    if c.kind == "whole":
        table[c.name][-1] = c.values[-1] + far
    elif c.kind == "decimal":
        table[c.name][-1] = _decimal(round(c.values[-1] / 10.0**c.unit) + far, c.unit)
    else:
        table[c.name][-1] = float(np.dtype(c.dtype).type((far + 1.5) * 10.0**c.unit))
    return f"outlier {far} in {c.name}"


def _holes(rng: np.random.Generator, columns: list[Column], X: pd.DataFrame) -> frozenset[str]:
    """Take values out of some columns of the training table."""
    names = [c.name for c in columns if c.kind in ("decimal", "real", "whole")]
    chosen = [n for n in names if rng.random() < 0.6] or names[:1]
    for name in chosen:
        X[name] = X[name].astype("float64") if X[name].dtype == np.int64 else X[name]
        X.loc[rng.random(len(X)) < 0.15, name] = np.nan
        X.loc[0, name] = next(c for c in columns if c.name == name).values[0]
    return frozenset(chosen)


def _narrowed(rng: np.random.Generator, c: Column) -> Column:
    """Leave a value at an end of a column outside of the bounds: a factual may lie there, an answer may not."""
    if not c.numeric or len(c.values) < 4 or rng.random() < 0.5:
        return c
    return replace(c, low=float(c.values[1])) if rng.random() < 0.5 else replace(c, high=float(c.values[-2]))
