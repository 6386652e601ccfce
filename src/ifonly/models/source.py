"""What an estimator receives: columns that are functions of the canonical vector, read through the user's transformers.

A `Source` holds one symbolic `Column` per column that reaches the estimator, and `evaluate`, the user's own fitted
preprocessing applied to canonical rows. Linear and network readers need columns that are affine in `u`; tree readers
need only that a column depends on one feature, and pull every threshold back to raw units through `evaluate`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.errors import UnsupportedModel
from ifonly.mip import FloatArray
from ifonly.schema import Numeric, Schema

__all__ = ["Column", "Source", "Split"]

_NARROW, _WIDE = 1e-14, 1e-6  # relative rooms around an affine guess of a cut


@dataclass(frozen=True, eq=False)
class Column:
    """One column on its way to the estimator.

    Attributes
    ----------
    name
        What the preprocessing calls it.
    features
        The schema features it depends on.
    weights, constant
        ``constant + weights @ u`` when the column is affine; `weights` is None when it is not.
    why
        When not affine: the step that made it so.
    monotone
        Whether a column of one numeric feature is monotone in it, so that thresholds can be pulled back.
    labels
        Whether the column holds raw category labels that still need an encoder.
    identity
        Whether the column is a raw feature that no transformer has touched.
    branch
        The part of the preprocessing that makes this column alone, and the column's place in it, when there is one.
    steps
        What a binned column adds to ``constant + weights @ u``: (feature, cut) -> weight of ``[x_feature <= cut]``.
    """

    name: str
    features: frozenset[int]
    weights: FloatArray | None
    constant: float = 0.0
    why: str = ""
    monotone: bool = True
    labels: bool = False
    identity: bool = False
    steps: Mapping[tuple[int, float], float] = field(default_factory=dict)
    branch: tuple[Callable[[FloatArray], Any], int] | None = None

    def scaled(self, factor: float, shift: float) -> Column:
        """Return ``factor * column + shift``."""
        if self.weights is None:
            return replace(self, identity=False)
        weights, steps = self.weights * factor, {key: w * factor for key, w in self.steps.items()}
        return replace(
            self, weights=weights, constant=self.constant * factor + shift, identity=False, steps=steps
        )


@dataclass(frozen=True, eq=False)
class Split:
    """A tree split in raw units: ``x_j <= cut`` for a numeric feature, ``level in left`` for a categorical one.

    `constant` is set when the split does not depend on the input at all. `swap` says that the left child is taken
    when the raw predicate is *false* (a decreasing transform). `missing` says whether the comparison holds for what
    the estimator receives when the feature is missing, None when it then receives a missing value too. `absent_levels`
    are the levels for which the estimator receives a missing value.
    """

    feature: int
    cut: float = np.nan
    left_levels: npt.NDArray[np.bool_] | None = None
    swap: bool = False
    constant: bool | None = None
    missing: bool | None = None
    absent_levels: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Source:
    """The columns an estimator receives, symbolically and exactly.

    Attributes
    ----------
    schema
        The features.
    columns
        One symbolic column per column that reaches the estimator.
    evaluate
        Canonical rows -> exactly what the estimator receives, through the user's fitted transformers.
    base
        A canonical row with no missing value, on which single features are varied.
    where
        A prefix for error messages, such as "Step 'clf': ".
    """

    schema: Schema
    columns: tuple[Column, ...]
    evaluate: Callable[[FloatArray], Any]
    base: FloatArray
    where: str = ""

    @classmethod
    def raw(cls, schema: Schema, prepare: Callable[[FloatArray], Any], base: FloatArray) -> Source:
        """Return the source of an estimator that receives the user's frame as it is."""
        columns = []
        for j, feature in enumerate(schema.features):
            weights = np.zeros(schema.width)
            if isinstance(feature, Numeric):
                weights[schema.starts[j]] = 1.0
            elif all(isinstance(level, (bool, int, float)) for level in feature.levels):
                weights[schema.slice(j)] = [float(level) for level in feature.levels]
            else:
                columns.append(Column(feature.name, frozenset({j}), None, why="a text category", labels=True))
                continue
            columns.append(Column(feature.name, frozenset({j}), weights, identity=True))
        return cls(schema, tuple(columns), prepare, base)

    def within(self, step: str) -> Source:
        """Return the same source with a more precise prefix for error messages."""
        return replace(self, where=f"{self.where}Step {step!r}: ")

    def dense(self, U: FloatArray) -> FloatArray:
        """Return `evaluate` as a dense float matrix."""
        Z = self.evaluate(U)
        Z = Z.toarray() if hasattr(Z, "toarray") else Z
        return np.asarray(Z, dtype=np.float64)

    def values(self, U: FloatArray, column: int) -> FloatArray:
        """Return one column of `evaluate` as floats; the others need not be numbers, nor be computed."""
        branch = self.columns[column].branch
        return _column(self.evaluate(U), column) if branch is None else _column(branch[0](U), branch[1])

    @cached_property
    def _received_missing(self) -> dict[int, Any]:
        """What the estimator receives when one feature of the base row is missing; without those that raise."""
        rows = np.repeat(self.base[None, :], len(self.schema), axis=0)
        for j, feature in enumerate(self.schema.features):
            rows[j, self.schema.slice(j)] = np.nan if isinstance(feature, Numeric) else 0.0
        received: dict[int, Any] = {}
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(TypeError, ValueError):
                together = self.evaluate(rows)
                pick = together.iloc if hasattr(together, "iloc") else together
                return {j: pick[j : j + 1] for j in range(len(rows))}
            for j in range(len(rows)):
                with suppress(TypeError, ValueError):
                    received[j] = self.evaluate(rows[j : j + 1])
        return received

    def when_missing(self, j: int, column: int) -> float:
        """Return what a column holds when feature `j` is missing: a value that was filled in, or NaN."""
        if j not in self._received_missing or self.columns[column].labels:
            return np.nan
        return float(_column(self._received_missing[j], column)[0])

    def may_miss(self, allowed: bool) -> frozenset[int]:
        """Return the features that may be missing, for an estimator that itself takes NaN (`allowed`) or does not."""
        known = [c for c, column in enumerate(self.columns) if not column.features]
        fixed = {c: float(self.values(self.base[None, :], c)[0]) for c in known}
        out = set()
        for j in self._received_missing:
            own = [self.when_missing(j, c) for c, column in enumerate(self.columns) if j in column.features]
            # A column without features that moves all the same is an indicator of missing values.
            kept = all(self.when_missing(j, c) == value for c, value in fixed.items())
            if kept and (allowed or not np.isnan(own).any()):
                out.add(j)
        return frozenset(out)

    def affine(self, who: str) -> tuple[FloatArray, FloatArray]:
        """Return ``A, b`` with ``z = A u + b``, or say which column of which step is not affine."""
        for column in self.columns:
            if column.weights is None or column.steps:
                names = ", ".join(repr(self.schema.names[j]) for j in sorted(column.features))
                raise UnsupportedModel(
                    f"{self.where}{who} needs numeric inputs that are affine in the raw values, but column "
                    f"{column.name!r} (from {names}) is {column.why}. Use a scaler and a OneHotEncoder before it, or a "
                    "tree model, which takes any monotone transform."
                )
        A = np.array([c.weights for c in self.columns]).reshape(len(self.columns), self.schema.width)
        return A, np.array([c.constant for c in self.columns])

    def linear(
        self, coefficients: npt.ArrayLike, intercept: npt.ArrayLike, who: str
    ) -> tuple[FloatArray, FloatArray]:
        """Return canonical weights and intercept of ``z @ C' + b0``."""
        A, b = self.affine(who)
        C = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
        if C.shape[1] != len(self.columns):
            raise UnsupportedModel(
                f"{self.where}{who} was fitted on {C.shape[1]} columns, but the data has {len(self.columns)}. Pass the "
                "frame the model was trained on, or the whole Pipeline."
            )
        shift = C @ b + np.asarray(intercept, dtype=np.float64).reshape(-1)
        return np.asarray(C @ A), np.broadcast_to(shift, (C.shape[0],)).copy()

    # -- pulling thresholds back --------------------------------------------------------------------------------
    def vary(self, j: int, values: FloatArray) -> FloatArray:
        """Return base rows in which only numeric feature `j` varies."""
        U = np.repeat(self.base[None, :], len(values), axis=0)
        U[:, self.schema.starts[j]] = values
        return U

    def vary_levels(self, j: int) -> FloatArray:
        """Return base rows in which categorical feature `j` takes each of its levels."""
        n = self.schema.features[j].width
        U = np.repeat(self.base[None, :], n, axis=0)
        U[:, self.schema.slice(j)] = np.eye(n)
        return U

    def splits(
        self,
        column: int,
        thresholds: FloatArray,
        below: Callable[[FloatArray, FloatArray], npt.NDArray[np.bool_]],
    ) -> list[Split]:
        """Return the raw split of each ``below(z_column, threshold)``, exact to the last float.

        Parameters
        ----------
        column
            Which column of the source is compared.
        thresholds
            The framework's thresholds on that column.
        below
            The framework's own comparison, e.g. ``float32(z) <= threshold``; must hold below some z and fail above.
        """
        c = self.columns[column]
        if not c.features:
            z = self.values(self.base[None, :], column)
            holds = below(np.repeat(z, len(thresholds)), thresholds)
            return [Split(feature=0, constant=bool(h), missing=bool(h)) for h in holds]
        if len(c.features) > 1 or not c.monotone:
            names = ", ".join(repr(self.schema.names[k]) for k in sorted(c.features))
            raise UnsupportedModel(
                f"{self.where}a tree splits on column {c.name!r}, which mixes or bends {names} "
                f"({c.why or 'a linear map'}). Trees can be read behind any monotone transform of single columns."
            )
        (j,) = c.features
        if not isinstance(self.schema.features[j], Numeric):
            z, absent = (
                self.values(self.vary_levels(j), column),
                np.full(len(thresholds), self.when_missing(j, column)),
            )
            missing = _answers(below, absent, thresholds)
            sides = [below(z, np.full(len(z), t)) for t in thresholds]
            return [
                Split(j, left_levels=left, missing=m, absent_levels=np.isnan(z))
                for left, m in zip(sides, missing, strict=True)
            ]
        return self._numeric_splits(j, column, thresholds, below)

    def _numeric_splits(
        self,
        j: int,
        column: int,
        thresholds: FloatArray,
        below: Callable[[FloatArray, FloatArray], npt.NDArray[np.bool_]],
    ) -> list[Split]:
        c = self.columns[column]

        def z(x: FloatArray) -> FloatArray:
            if c.identity:
                return self._as_stored(j, x)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.values(self.vary(j, x), column)

        def holds(x: FloatArray) -> npt.NDArray[np.bool_]:
            with np.errstate(over="ignore"):
                return below(z(x), thresholds)

        first, last = self._reach(c, j, z)
        low, high = np.full(len(thresholds), first), np.full(len(thresholds), last)
        at_low, at_high = holds(low), holds(high)
        swap = ~at_low & at_high
        low, high = self._bracket(c, j, _last_below(below, thresholds), holds, swap, low, high)
        cut = self._bisect(j, holds, swap, low, high)
        absent = np.full(len(thresholds), self.when_missing(j, column))
        missing = _answers(below, absent, thresholds)
        return [
            Split(feature=j, constant=bool(at_low[k]), missing=missing[k])
            if at_low[k] == at_high[k]
            else Split(feature=j, cut=float(cut[k]), swap=bool(swap[k]), missing=missing[k])
            for k in range(len(thresholds))
        ]

    def _bisect(
        self,
        j: int,
        holds: Callable[[FloatArray], npt.NDArray[np.bool_]],
        swap: npt.NDArray[np.bool_],
        low: FloatArray,
        high: FloatArray,
    ) -> FloatArray:
        """Return the last admissible value at which the predicate (swapped: its negation) still holds."""
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        step = feature.step
        if step is None:
            left, right, back = _ordered(low), _ordered(high), _unordered
        else:
            left, right = (np.floor(low / step).astype(np.int64), np.ceil(high / step).astype(np.int64))

            def back(k: npt.NDArray[np.int64]) -> FloatArray:
                return np.round(k * step, feature.precision or 0)

        while bool((right > left + 1).any()):
            middle = (left & right) + ((left ^ right) >> 1)
            true_side = holds(back(middle)) != swap
            left, right = np.where(true_side, middle, left), np.where(true_side, right, middle)
        return back(left)

    def _bracket(
        self,
        c: Column,
        j: int,
        last: FloatArray,
        holds: Callable[[FloatArray], npt.NDArray[np.bool_]],
        swap: npt.NDArray[np.bool_],
        low: FloatArray,
        high: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return a narrower bracket around the affine guess of each cut, where the predicate confirms it.

        `last` is the last value of the column for which each comparison holds; the guess is off by rounding only.
        """
        slope = 0.0 if c.weights is None else float(c.weights[self.schema.starts[j]])
        if slope == 0.0:
            return low, high
        guess = np.clip((last - c.constant) / slope, low, high)
        size = np.maximum(np.abs(guess), np.abs(last / slope)) + abs(c.constant / slope)
        for room in (_NARROW * size, _WIDE * size + 1e-12):
            near_low, near_high = np.maximum(guess - room, low), np.minimum(guess + room, high)
            low = np.where(holds(near_low) != swap, np.maximum(low, near_low), low)
            high = np.where(holds(near_high) == swap, np.minimum(high, near_high), high)
            if bool((high - low <= 2.0 * room).all()):
                break
        return low, high

    def _as_stored(self, j: int, x: FloatArray) -> FloatArray:
        """Return values as the user's column dtype stores them."""
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        if feature.precision is not None:
            x = np.round(x, feature.precision)
        if isinstance(feature.dtype, np.dtype) and feature.dtype.kind == "f":
            return x.astype(feature.dtype).astype(np.float64)
        return x

    def _reach(self, c: Column, j: int, z: Callable[[FloatArray], FloatArray]) -> tuple[float, float]:
        """Return how far below and above its bounds feature `j` is looked at: as far as its transform is defined."""
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        floating = isinstance(feature.dtype, np.dtype) and feature.dtype.kind == "f"
        if c.identity and floating and feature.step is None:
            last = float(np.finfo(feature.dtype).max)
            return -last, last
        far = 1e3 * max(abs(feature.lower), abs(feature.upper), feature.upper - feature.lower, 1.0)
        low, high = -far, far
        if isinstance(feature.dtype, np.dtype) and feature.dtype.kind in "iu":
            kept = np.iinfo(feature.dtype)
            low, high = max(low, float(kept.min)), min(high, float(kept.max))
        defined = np.isfinite(z(np.array([low, high])))
        return (low if defined[0] else feature.lower), (high if defined[1] else feature.upper)


def _last_below(
    below: Callable[[FloatArray, FloatArray], npt.NDArray[np.bool_]], thresholds: FloatArray
) -> FloatArray:
    """Return the last float for which each comparison holds, by bisection near the threshold itself."""
    room = 1e-6 * np.abs(thresholds) + 1e-30
    low, high = thresholds - room, thresholds + room
    if not (below(low, thresholds).all() and not below(high, thresholds).any()):
        return thresholds
    left, right = _ordered(low), _ordered(high)
    while bool((right > left + 1).any()):
        middle = (left & right) + ((left ^ right) >> 1)
        true_side = below(_unordered(middle), thresholds)
        left, right = np.where(true_side, middle, left), np.where(true_side, right, middle)
    return _unordered(left)


def _column(Z: Any, column: int) -> FloatArray:
    if hasattr(Z, "iloc"):
        return np.asarray(Z.iloc[:, column].to_numpy(dtype=np.float64, na_value=np.nan))
    Z = Z.toarray() if hasattr(Z, "toarray") else Z
    return np.asarray(Z[:, column], dtype=np.float64)


def _answers(
    below: Callable[[FloatArray, FloatArray], npt.NDArray[np.bool_]], z: FloatArray, thresholds: FloatArray
) -> list[bool | None]:
    """Say whether each comparison holds, None for a missing value, which the framework sends its own way."""
    holds = below(z, thresholds)
    return [None if np.isnan(v) else bool(h) for v, h in zip(z, holds, strict=True)]


def _ordered(x: FloatArray) -> npt.NDArray[np.int64]:
    """Map floats to integers of the same order, so that bisection reaches neighbouring floats."""
    bits = x.view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _unordered(k: npt.NDArray[np.int64]) -> FloatArray:
    bits = np.where(k >= 0, k, np.int64(-(2**63)) - k)
    return np.ascontiguousarray(bits).view(np.float64)
