"""Given rows: factuals in canonical form, beside the table that they come from."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.data.schema import Feature, Numeric, Schema
from ifonly.errors import OutsideTrainingRange, warn

__all__ = ["Given", "given_rows", "on_grids", "widened"]


@dataclass(frozen=True, eq=False)
class Given:
    """Factual of a question: its canonical row, and where it is in a table.

    Attributes
    ----------
    factual
        The canonical row.
    table, line
        The table that it comes from, in the schema's columns, and its place there. It must not change, since rows are cut
        out of it when somebody looks at them; the table of a single row is a copy of the caller's.
    """

    factual: FloatArray
    table: pd.DataFrame
    line: int | None = None

    @classmethod
    def of(cls, row: Any, schema: Schema, *, missing: bool | Collection[int]) -> Given:
        """Return one row as people have it: a dict, a Series, a one-row frame or an array."""
        table = schema.row(row)
        factual = schema.encode(table, missing=missing)[0]
        return cls(factual, table.copy())

    @property
    def index(self) -> pd.Index[Any]:
        """The row's label, as the index of a one-row frame."""
        return self.table.index if self.line is None else self.table.index[self.line : self.line + 1]

    def returned(self, schema: Schema) -> pd.DataFrame:
        """Return the factual as a frame of the caller's own, in the dtypes of the training data."""
        row = self.table if self.line is None else self.table.iloc[[self.line]]
        return row.copy() if schema.keeps(row, self.factual) else schema.decode(self.factual, like=row)


def given_rows(table: pd.DataFrame, schema: Schema, *, missing: bool | Collection[int]) -> Iterator[Given | None]:
    """Yield the rows of a table of the schema's columns, encoded together; None for a row that is refused.

    A table that is refused is halved until the rows that are at fault are alone.
    """
    yield from _halved(table, 0, len(table), schema, missing)


def _halved(
    table: pd.DataFrame, low: int, high: int, schema: Schema, missing: bool | Collection[int]
) -> Iterator[Given | None]:
    if low == high:
        return
    try:
        U = schema.encode(table.iloc[low:high], missing=missing)
    except Exception:  # noqa: BLE001 - asked alone, the row says what is wrong with it
        if high - low == 1:
            yield None
            return
        middle = (low + high) // 2
        yield from _halved(table, low, middle, schema, missing)
        yield from _halved(table, middle, high, schema, missing)
        return
    yield from (Given(u, table, low + i) for i, u in enumerate(U))


def widened(schema: Schema, factual: FloatArray) -> Schema:
    """Widen the bounds of features in which the factual lies outside them, and say so."""
    values, (low, high) = factual[schema.number_starts], schema.ends
    if not np.any((values < low) | (values > high)):
        return schema
    wider = {}
    for j, feature in enumerate(schema.features):
        value = float(factual[schema.starts[j]])
        if isinstance(feature, Numeric) and (value < feature.lower or value > feature.upper):
            warn(
                f"{feature.name!r} is {value:g} in this row, outside the range ({feature.lower:g}, {feature.upper:g}) of "
                "the training data or the schema; the range was widened to include it. Correct the row if it is wrong, or "
                "give the schema wider bounds if it is not.",
                OutsideTrainingRange,
            )
            wider[feature.name] = (min(value, feature.lower), max(value, feature.upper))
    return schema.with_all_bounds(wider) if wider else schema


def on_grids(schema: Schema, factual: FloatArray) -> Schema:
    """Return the schema with the decimals of the data as the precision of its features; itself, where none has any.

    The bounds move inwards to the grid. A feature stays continuous where the factual itself has more decimals, and where
    its bounds have no point of the grid between them.
    """
    features = [_on_grid(f, float(factual[at])) for f, at in zip(schema.features, schema.starts, strict=True)]
    return schema if all(a is b for a, b in zip(features, schema.features, strict=True)) else Schema(tuple(features))


def _on_grid(feature: Feature, value: float) -> Feature:
    if not isinstance(feature, Numeric) or feature.decimals is None or feature.precision is not None:
        return feature
    gridded = replace(feature, precision=feature.decimals)
    lower, upper = gridded.snap_up(feature.lower), gridded.snap_down(feature.upper)
    if lower > upper or not (np.isnan(value) or gridded.snap(value) == value):
        return feature
    return replace(gridded, lower=lower, upper=upper)
