"""Transformers of the user's own that declare to look at one column at a time: `column_wise`.

The declaration is an attribute of the transformer, or of the function in a `FunctionTransformer`:

* ``True``: each output column is a function of one input column. That is enough for categories, and for numbers on a grid
  (integers, decimals): every level and every value is pushed through the fitted transformer.
* ``"monotone"`` or ``"affine"``: and these functions never turn, or are straight lines. Then numbers may be continuous.
* ``{column: ...}``: the same per input column, or a list of the places where a step function jumps.

What is declared is checked as far as finitely many values can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.errors import UnsupportedModel
from ifonly.models.reading.source import Column, Source
from ifonly.models.reading.stepwise import Jumps, as_floats, step_column
from ifonly.runtime.warning_filters import silenced
from ifonly.tolerances import CHAINED_ROUNDING

__all__ = ["column_wise", "declaration", "read_columns"]

Declared = TypeVar("Declared")


def column_wise(how: Any = True) -> Callable[[Declared], Declared]:
    """Mark a function, or a class of transformers, as one that looks at one column at a time.

    Examples
    --------
    >>> @column_wise("monotone")
    ... def in_thousands(X):
    ...     return X / 1000
    >>> in_thousands.column_wise
    'monotone'
    """

    def mark(declared: Declared) -> Declared:
        declared.column_wise = how  # type: ignore[attr-defined]
        return declared

    return mark


def declaration(transformer: Any) -> Any:
    """Return what a transformer, or the function inside it, declares; None when it declares nothing."""
    own = getattr(transformer, "column_wise", None)
    return getattr(getattr(transformer, "func", None), "column_wise", None) if own is None else own


def read_columns(transformer: Any, source: Source) -> Sequence[Column]:
    """Return the output columns of a transformer with a declaration."""
    return _Reading(transformer, source).columns()


@dataclass(frozen=True, eq=False)
class _Along:
    """All outputs along one feature: at which of its values, and whether these are all there are."""

    x: FloatArray
    outputs: FloatArray
    shape: str


class _Reading:
    """One transformer behind one source."""

    def __init__(self, transformer: Any, source: Source) -> None:
        self.transformer, self.source = transformer, source
        self.declared = declaration(transformer)
        name = getattr(getattr(transformer, "func", None), "__name__", "")
        self.kind = f"{type(transformer).__name__}({name})" if name else type(transformer).__name__
        self.who = f"{source.where}{self.kind}"
        first = self._transform(source.base[None, :])
        self.base = as_floats(first, self.who)[0]
        self.names = self._names(first)

    def columns(self) -> list[Column]:
        """Return the columns, each with the feature that it depends on."""
        source, width = self.source, self.source.schema.width
        out = [Column(n, frozenset(), np.zeros(width), float(v)) for n, v in zip(self.names, self.base, strict=True)]
        for j in sorted(set().union(*(c.features for c in source.columns)) if source.columns else ()):
            along = self._along(j)
            moved = (along.outputs != along.outputs[0]) & ~(np.isnan(along.outputs) & np.isnan(along.outputs[0]))
            for k in np.flatnonzero(moved.any(axis=0)):
                if out[k].features:
                    both = ", ".join(repr(source.schema.names[i]) for i in sorted({*out[k].features, j}))
                    raise UnsupportedModel(
                        f"{self.who} declares column_wise, but column {out[k].name!r} depends on {both} together. Make "
                        "columns of several others before the data goes into the model."
                    )
                out[k] = self._column(out[k].name, j, along, int(k))
        return out

    def _transform(self, U: FloatArray) -> Any:
        with np.errstate(all="ignore"), silenced():
            return self.transformer.transform(self.source.evaluate(U))

    def _outputs(self, U: FloatArray) -> FloatArray:
        return as_floats(self._transform(U), self.who)

    def _names(self, first: Any) -> list[str]:
        if hasattr(first, "columns"):
            return [str(n) for n in first.columns]
        try:
            names = [str(n) for n in self.transformer.get_feature_names_out()]
        except (AttributeError, TypeError, ValueError):
            names = []
        return names if len(names) == len(self.base) else [f"column {k}" for k in range(len(self.base))]

    # -- along one feature --------------------------------------------------------------------------------------
    def _along(self, j: int) -> _Along:
        """Push a feature's values through: all of them, or those that the declaration makes enough."""
        source, feature = self.source, self.source.schema.features[j]
        if not isinstance(feature, Numeric):
            return _Along(np.empty(0), self._outputs(source.vary_levels(j)), "levels")
        shape = self._shape(j)
        if isinstance(shape, Jumps) and not self._enumerable(feature):
            return self._between_jumps(j, feature, shape)
        tried = [self._probed(j, feature, shape, *ends) for ends in self._ranges(feature)]
        return next((along for along in tried if np.isfinite(along.outputs).all()), tried[-1])

    def _enumerable(self, feature: Numeric) -> bool:
        most = self.source.tuning.most_values
        return feature.step is not None and 3.0 * (feature.upper - feature.lower) / feature.step < most

    def _probed(self, j: int, feature: Numeric, shape: Any, low: float, high: float) -> _Along:
        """Return the outputs at every value of a grid, or at some values of a function with a declared shape."""
        if self._enumerable(feature):
            step = feature.step or 1.0
            x = np.round(np.arange(round(low / step), round(high / step) + 1) * step, feature.precision or 0)
            return _Along(x, self._outputs(self.source.vary(j, x)), "grid")
        if shape not in ("monotone", "affine"):
            raise self._not_enough(j)
        x = np.linspace(low, high, self.source.tuning.probes)
        return _Along(x, self._outputs(self.source.vary(j, x)), str(shape))

    @staticmethod
    def _ranges(feature: Numeric) -> list[tuple[float, float]]:
        """Return where a feature is looked at: as far again beyond its bounds, or, if that fails, within them."""
        low, high = feature.lower, feature.upper
        span = high - low
        signed = not isinstance(feature.dtype, np.dtype) or feature.dtype.kind != "u"
        return [(low - span, high + span), (low, high)] if signed else [(low, high)]

    def _not_enough(self, j: int) -> UnsupportedModel:
        name = self.source.schema.names[j]
        return UnsupportedModel(
            f"{self.who} declares column_wise={self.declared!r}, which is enough for categories and for numbers on a "
            f"grid; {name!r} is continuous. Say how it goes along it: column_wise='monotone', 'affine', or "
            f"{{{name!r}: [its jumps]}}; or give it decimals: Schema.infer(X, precision={{{name!r}: 2}})."
        )

    def _shape(self, j: int) -> Any:
        """Return what is declared along a feature: a word, or jumps in the units of the received column."""
        declared = self.declared
        if isinstance(declared, Mapping):
            own = [c.name for c in self.source.columns if j in c.features]
            declared = next((declared[name] for name in own if name in declared), True)
        if isinstance(declared, (list, tuple, np.ndarray)):
            return Jumps(points=[float(v) for v in declared])
        return declared

    def _between_jumps(self, j: int, feature: Numeric, jumps: Jumps) -> _Along:
        """Return the outputs in every cell, whose ends and middle must agree."""
        source = self.source
        own = next(i for i, c in enumerate(source.columns) if j in c.features)
        cuts = jumps.cuts(source, own)
        starts = np.concatenate([[min(feature.lower, float(cuts[0]))], np.nextafter(cuts, np.inf)])
        ends = np.concatenate([cuts, [max(feature.upper, float(np.nextafter(cuts[-1], np.inf)))]])
        tables = [self._outputs(source.vary(j, x)) for x in (starts, 0.5 * (starts + ends), ends)]
        for table in tables[:2]:
            differs = ~((table == tables[2]) | (np.isnan(table) & np.isnan(tables[2]))).all(axis=1)
            if differs.any():
                i = int(np.argmax(differs))
                raise UnsupportedModel(
                    f"{self.who} is not constant between {starts[i]:.6g} and {ends[i]:.6g} of "
                    f"{source.schema.names[j]!r}, though no jump is declared there. Declare all jumps, or 'monotone'."
                )
        return _Along(ends, tables[2], "cells")

    # -- one output ---------------------------------------------------------------------------------------------
    def _column(self, name: str, j: int, along: _Along, k: int) -> Column:
        schema, values = self.source.schema, along.outputs[:, k]
        weights = np.zeros(schema.width)
        if along.shape == "levels":
            weights[schema.slice(j)] = values
            return Column(name, frozenset({j}), weights)
        if not np.isfinite(values).all():
            x = along.x[int(np.argmax(~np.isfinite(values)))]
            raise UnsupportedModel(
                f"{self.who} gives no finite number for {schema.names[j]!r} = {x:.6g}. Bound the feature to where it is "
                "defined, Schema.with_bounds, or let the transformer take all of its range."
            )
        reach = (float(along.x[0]), float(along.x[-1])) if along.shape == "grid" else None
        line = self._line(j, along, values)
        if line is not None:
            weights[schema.starts[j]] = line[0]
            return Column(name, frozenset({j}), weights, line[1], reach=reach)
        if along.shape == "affine":
            raise UnsupportedModel(
                f"{self.who} declares to be affine, but {name!r} is no straight line of {schema.names[j]!r}."
            )
        rise = np.diff(values)
        monotone = bool((rise >= 0).all() or (rise <= 0).all())
        if along.shape == "monotone":
            if not monotone:
                x = along.x[1 + int(np.argmax(np.sign(rise) == -np.sign(values[-1] - values[0])))]
                raise UnsupportedModel(
                    f"{self.who} declares to be monotone, but {name!r} turns near {schema.names[j]!r} = {x:.6g}."
                )
            return self._monotone(name, j, k, along)
        jumps = np.flatnonzero(rise != 0)
        if len(jumps) > self.source.tuning.most_steps:
            why = f"bent by {self.kind}"
            return Column(name, frozenset({j}), None, why=why, monotone=monotone, reach=reach)
        cells = values[np.append(jumps, len(values) - 1)]
        # Beyond the values that were looked at a step function may do anything: trees go by its cells alone.
        return replace(step_column(name, self.source, j, along.x[jumps], cells, self.who), monotone=False)

    def _line(self, j: int, along: _Along, values: FloatArray) -> tuple[float, float] | None:
        """Return slope and constant, if the values lie on a straight line in the raw feature."""
        if along.shape == "cells" or len(along.x) < 3:
            return None
        x = self.source.vary(j, along.x)[:, self.source.schema.starts[j]]
        slope = float((values[-1] - values[0]) / (x[-1] - x[0]))
        constant = float(values[0] - slope * x[0])
        off = np.abs(values - (slope * x + constant)).max()
        return (
            (slope, constant) if off <= CHAINED_ROUNDING * max(np.abs(values).max(), np.abs(slope * x).max()) else None
        )

    def _monotone(self, name: str, j: int, k: int, along: _Along) -> Column:
        """Return steps, when few values are taken: between two equal ones a monotone function stays."""
        values = along.outputs[:, k]

        def value(x: FloatArray) -> FloatArray:
            return self._outputs(self.source.vary(j, x))[:, k]

        if len(np.unique(values)) > self.source.tuning.probes // 4:
            return Column(name, frozenset({j}), None, why=f"bent by {self.kind}", monotone=True)
        cuts = _jumps_between(value, along.x, values, self.source.tuning.most_steps)
        if cuts is None:
            return Column(name, frozenset({j}), None, why=f"bent by {self.kind}", monotone=True)
        cells = value(np.append(cuts, along.x[-1]))
        return replace(step_column(name, self.source, j, cuts, cells, self.who), monotone=False)


def _jumps_between(
    value: Callable[[FloatArray], FloatArray], x: FloatArray, at: FloatArray, most: int
) -> FloatArray | None:
    """Return the last float before every jump of a monotone step function, None when they are too many.

    Pairs of neighbours with different values are halved, all at once, until they are neighbouring floats.
    """
    low, high, below, above = x[:-1], x[1:], at[:-1], at[1:]
    cuts: list[float] = []
    while True:
        apart = below != above
        low, high, below, above = low[apart], high[apart], below[apart], above[apart]
        if not low.size:
            return np.array(sorted(cuts))
        if len(low) + len(cuts) > most:
            return None
        middle = 0.5 * (low + high)
        done = (middle <= low) | (middle >= high)
        cuts += [float(c) for c in low[done]]
        low, high, below, above, middle = (a[~done] for a in (low, high, below, above, middle))
        if not low.size:
            return np.array(sorted(cuts))
        between = value(middle)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        below, above = np.concatenate([below, between]), np.concatenate([between, above])
