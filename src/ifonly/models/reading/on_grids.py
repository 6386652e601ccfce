"""Bent columns of numbers on a grid as steps: every value that the number can have is pushed through the transformers.

A logarithm, a power transform or a quantile transform bends a column, which no linear model can be read behind while
the number is continuous. Where it lies on a grid of not too many values, whole numbers or decimals, the column is a table.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.models.reading.source import Column, Source
from ifonly.models.reading.stepwise import step_column
from ifonly.runtime.warning_filters import silenced

__all__ = ["on_grids"]


def on_grids(source: Source) -> Source:
    """Return the source with its bent columns of single numbers on small grids as step functions."""
    columns = tuple(_stepped(source, i, c) if _bent(c) else c for i, c in enumerate(source.columns))
    return (
        source
        if all(a is b for a, b in zip(columns, source.columns, strict=True))
        else replace(source, columns=columns)
    )


def _bent(column: Column) -> bool:
    return column.weights is None and column.curve is None and not column.labels and len(column.features) == 1


def _stepped(source: Source, i: int, column: Column) -> Column:
    """Return a column as steps, or itself where its number has no grid, too many values, or values of no finite output."""
    (j,) = column.features
    feature = source.schema.features[j]
    if not isinstance(feature, Numeric) or feature.step is None:
        return column
    if 3.0 * (feature.upper - feature.lower) / feature.step >= source.tuning.most_steps:
        return column
    span = feature.upper - feature.lower
    ends = ((feature.lower - span, feature.upper + span), (feature.lower, feature.upper + span))
    for low, high in (*ends, (feature.lower, feature.upper)):
        first, last = round(low / feature.step), round(high / feature.step)
        x = np.round(np.arange(first, last + 1) * feature.step, feature.precision or 0)
        values = _values(source, i, j, x)
        if values is not None and np.isfinite(values).all():
            who = f"{source.where}{column.why.removeprefix('bent by ')}"
            return replace(step_column(column.name, source, j, x[:-1], values, who), branch=column.branch)
    return column


def _values(source: Source, i: int, j: int, x: FloatArray) -> FloatArray | None:
    """Return a column along a number, or None where the user's transformers refuse some of the values."""
    with np.errstate(all="ignore"), silenced():
        try:
            return source.values(source.vary(j, x), i)
        except (ValueError, TypeError):
            return None
