"""Piecewise-constant columns: functions of one feature each, measured through the user's own fitted transformer.

A transformer that bins, or replaces what it knows by a number, is constant on the cells between its jumps and on the
levels of a category. So each output column is a table: the jumps are pulled back to raw units, one value of each cell is
pushed through the transformer, and with the cells ``x <= c_1 < c_2 < ...`` and their values ``v_0, v_1, ...``

    column(x) = v_m + sum_i (v_{i-1} - v_i) [x <= c_i].
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.errors import UnsupportedModel
from ifonly.models.reading.pullback import pull_back
from ifonly.models.reading.source import Column, Source, representatives

__all__ = ["Jumps", "as_floats", "step_column", "table_columns"]


@dataclass(frozen=True, eq=False)
class Jumps:
    """Breakpoints at which a function of one received column may jump.

    Attributes
    ----------
    at
        Values at which it may jump, itself on the side of the greater ones.
    after
        Values at which it may jump, itself on the side of the lesser ones.
    points
        Values at which it may differ from both sides, such as special codes.
    """

    at: Sequence[float] = ()
    after: Sequence[float] = ()
    points: Sequence[float] = field(default=())

    def cuts(self, source: Source, column: int) -> FloatArray:
        """Return the cells in raw units: the last value of each but the last cell."""
        found: list[float] = []
        for places, below in (((*self.at, *self.points), np.less), ((*self.after, *self.points), np.less_equal)):
            thresholds = np.unique(np.asarray(places, dtype=np.float64))
            thresholds = thresholds[np.isfinite(thresholds)]
            if thresholds.size:
                found += [s.cut for s in pull_back(source, column, thresholds, below) if s.constant is None]
        return np.unique(np.asarray(found, dtype=np.float64))


def as_floats(Z: Any, who: str, but: Collection[int] = ()) -> FloatArray:
    """Return what a transformer gave as a dense float matrix, with NaN in the columns that are not asked for."""
    Z = Z.toarray() if hasattr(Z, "toarray") else Z
    out = np.full(np.asarray(Z).reshape(len(Z), -1).shape, np.nan)
    for k in range(out.shape[1]):
        if k in but:
            continue
        column = Z.iloc[:, k].to_numpy() if hasattr(Z, "iloc") else np.asarray(Z).reshape(out.shape)[:, k]
        try:
            out[:, k] = column.astype(np.float64)
        except (TypeError, ValueError):
            raise UnsupportedModel(
                f"{who} gives text, not numbers, such as {column[0]!r}. Let it give numbers (of a binning: the metric)."
            ) from None
    return out


def table_columns(
    transformer: Any,
    source: Source,
    jumps: Mapping[int, Jumps],
    *,
    names: Sequence[str] | None = None,
    kept: Mapping[int, int] | None = None,
    transform: Callable[[Any], Any] | None = None,
) -> list[Column]:
    """Return the output columns of a transformer that looks at one column at a time.

    Parameters
    ----------
    transformer
        The fitted transformer.
    source
        What it receives.
    jumps
        Received column -> where functions of it may jump. Columns of categories need none.
    names
        Names of the output columns.
    kept
        Output column -> received column, for those that go through unchanged.
    transform
        Received values -> output, in place of the transformer's `transform`.
    """
    who = f"{source.where}{type(transformer).__name__}"
    apply = transformer.transform if transform is None else transform
    whole = dict(kept or {})

    def out(U: FloatArray) -> FloatArray:
        try:
            return as_floats(apply(source.evaluate(U)), who, whole)
        except ValueError as error:
            raise UnsupportedModel(
                f"{who} refuses a value that the schema knows ({error}). Drop levels that never occur, "
                "X[column].cat.remove_unused_categories(), or fit it so that it takes unknown ones."
            ) from error

    base = out(source.base[None, :])[0]
    labels = [f"column {k}" for k in range(len(base))] if names is None else [str(n) for n in names]
    columns = [Column(labels[k], frozenset(), np.zeros(source.schema.width), float(v)) for k, v in enumerate(base)]
    for k, i in whole.items():
        columns[k] = replace(source.columns[i], branch=None)
    for j in sorted(set().union(*(c.features for c in source.columns)) if source.columns else ()):
        _add_feature(columns, source, out, j, jumps, set(whole), who)
    return columns


def _add_feature(
    columns: list[Column],
    source: Source,
    out: Callable[[FloatArray], FloatArray],
    j: int,
    jumps: Mapping[int, Jumps],
    kept: set[int],
    who: str,
) -> None:
    """Give each column that depends on feature `j` its table."""
    feature = source.schema.features[j]
    if isinstance(feature, Numeric):
        own = [i for i, c in enumerate(source.columns) if j in c.features and i in jumps]
        cuts = [_cuts_of(source, i, jumps[i], who) for i in own]
        places = np.unique(np.concatenate([*cuts, np.empty(0)]))
        if not places.size:
            return
        table = out(source.vary(j, representatives(feature, places)))
    else:
        places = np.empty(0)
        table = out(source.vary_levels(j))
    same = (table == table[0]) | (np.isnan(table) & np.isnan(table[0]))
    for k in np.flatnonzero(~same.all(axis=0)):
        if int(k) in kept:
            continue
        if columns[k].features:
            others = ", ".join(repr(source.schema.names[i]) for i in sorted({*columns[k].features, j}))
            raise UnsupportedModel(f"{who} makes column {columns[k].name!r} of {others} together, not of one alone.")
        columns[k] = step_column(columns[k].name, source, j, places, table[:, k], who)


def _cuts_of(source: Source, i: int, jumps: Jumps, who: str) -> FloatArray:
    column = source.columns[i]
    if len(column.features) > 1:
        names = ", ".join(repr(source.schema.names[j]) for j in sorted(column.features))
        raise UnsupportedModel(
            f"{who} bins column {column.name!r}, which mixes {names} ({column.why}). Bin single columns, before they "
            "are mixed."
        )
    return jumps.cuts(source, i)


def step_column(name: str, source: Source, j: int, cuts: FloatArray, values: FloatArray, who: str) -> Column:
    """Return a table over the levels of a category, or over the cells of a number."""
    weights = np.zeros(source.schema.width)
    if not isinstance(source.schema.features[j], Numeric):
        weights[source.schema.slice(j)] = values
        return Column(name, frozenset({j}), weights)
    if not np.isfinite(values).all():
        raise UnsupportedModel(
            f"{who} gives {values[~np.isfinite(values)][0]} for some values of {source.schema.names[j]!r}, which no model "
            "can be read behind. Fit it with other bins, or with a number for what it does not know."
        )
    step = values[:-1] - values[1:]
    jump = step != 0.0
    steps = {(j, float(c)): float(w) for c, w in zip(cuts[jump], step[jump], strict=True)}
    monotone = bool((step >= 0.0).all() or (step <= 0.0).all())
    why = f"stepped by {who.rsplit(': ', maxsplit=1)[-1]}"
    return Column(name, frozenset({j}), weights, float(values[-1]), why, monotone=monotone, steps=steps)
