"""Source: an estimator's input columns as functions of the canonical vector, read through the user's transformers.

A `Source` holds one symbolic `Column` per column that reaches the estimator, and `evaluate`, the user's own fitted
preprocessing applied to canonical rows. Linear and network readers need columns that are affine in `u`; tree readers
need only that a column depends on one feature, and pull every threshold back to raw units through `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema
from ifonly.errors import UnsupportedModel
from ifonly.models.forms.polynomials import Polynomials
from ifonly.runtime.memo import Memo, cached_property
from ifonly.runtime.tuning import DEFAULT, Reading
from ifonly.runtime.warning_filters import silenced

__all__ = ["Column", "Source", "representatives"]


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
    reach
        The raw values between which all this is known to hold; None when it does everywhere.
    curve
        The affine column that it is a piecewise polynomial of, and that function.
    turns
        Raw values between which a column that is not monotone is.
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
    reach: tuple[float, float] | None = None
    curve: tuple[Column, Polynomials] | None = None
    turns: tuple[float, ...] = ()

    def scaled(self, factor: float, shift: float) -> Column:
        """Return ``factor * column + shift``."""
        if self.curve is not None:
            return replace(self, identity=False, curve=None)
        if self.weights is None:
            return replace(self, identity=False)
        weights, steps = self.weights * factor, {key: w * factor for key, w in self.steps.items()}
        return replace(self, weights=weights, constant=self.constant * factor + shift, identity=False, steps=steps)


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
    tuning
        The tuned numbers of reading.
    memo
        What `evaluate` gave for the levels of categories; not handed on to a source that is made of this one.
    """

    schema: Schema
    columns: tuple[Column, ...]
    evaluate: Callable[[FloatArray], Any]
    base: FloatArray
    where: str = ""
    tuning: Reading = DEFAULT.reading
    memo: Memo = field(default_factory=Memo, init=False, repr=False)

    @classmethod
    def raw(
        cls, schema: Schema, prepare: Callable[[FloatArray], Any], base: FloatArray, tuning: Reading = DEFAULT.reading
    ) -> Source:
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
        return cls(schema, tuple(columns), prepare, base, tuning=tuning)

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

    def at_levels(self, j: int, column: int) -> FloatArray:
        """Return what a column holds at each level of categorical feature `j`."""
        evaluate, place = self.columns[column].branch or (self.evaluate, column)
        received = self.memo.get(f"levels of {j}", id(evaluate), lambda: evaluate(self.vary_levels(j)), keep=evaluate)
        return _column(received, place)

    @cached_property
    def _received_missing(self) -> dict[int, Any]:
        """Return the estimator's input when one feature of the base row is missing; without those that raise."""
        rows = np.repeat(self.base[None, :], len(self.schema), axis=0)
        numeric = np.array([isinstance(f, Numeric) for f in self.schema.features], dtype=np.bool_)
        for j, is_number in enumerate(numeric):
            rows[j, self.schema.slice(j)] = np.nan if is_number else 0.0
        received: dict[int, Any] = {}
        # All numbers together, all categories together; one by one only where a transformer refuses some of them.
        groups = [[int(j) for j in np.flatnonzero(kind)] for kind in (numeric, ~numeric) if kind.any()]
        while groups:
            group = groups.pop()
            try:
                with np.errstate(all="ignore"), silenced():
                    together = self.evaluate(rows[group])
            except (TypeError, ValueError):
                groups += [[j] for j in group] if len(group) > 1 else []
                continue
            pick = together.iloc if hasattr(together, "iloc") else together
            received |= {j: pick[k : k + 1] for k, j in enumerate(group)}
        return received

    def when_missing(self, j: int, column: int) -> float:
        """Return what a column holds when feature `j` is missing: a value that was filled in, or NaN."""
        if j not in self._received_missing or self.columns[column].labels:
            return np.nan
        return float(_column(self._received_missing[j], column)[0])

    def flagged(self, column: int) -> list[int]:
        """Return the features whose absence a column tells that otherwise stays the same: a missing indicator."""
        usual = float(self.values(self.base[None, :], column)[0])
        return [j for j in self._received_missing if self.when_missing(j, column) != usual]

    def may_miss(self, allowed: bool) -> frozenset[int]:
        """Return the features that may be missing, for an estimator that itself takes NaN (`allowed`) or does not."""
        if any(column.curve is not None for column in self.columns):
            return frozenset()
        flags = [self.flagged(c) for c, column in enumerate(self.columns) if not column.features]
        mixed = {j for owners in flags if len(owners) > 1 for j in owners}
        out = set()
        for j in self._received_missing:
            own = [self.when_missing(j, c) for c, column in enumerate(self.columns) if j in column.features]
            if j not in mixed and (allowed or not np.isnan(own).any()):
                out.add(j)
        return frozenset(out)

    def filled(self) -> dict[int, FloatArray]:
        """Return, per feature that a transformer fills in, what each affine column holds more when it is missing.

        That is beside ``constant + weights @ u`` in which the missing feature counts as 0; no column depends on the
        gaps of two features at once.
        """
        gaps = self.may_miss(False)
        if not gaps or any(c.weights is None for c in self.columns):
            return {}
        with silenced():
            usual = self.dense(self.base[None, :])[0]
        out = {}
        for j in gaps:
            own = [self._own(c, j) for c in self.columns]
            more = np.array([self.when_missing(j, c) for c in range(len(self.columns))]) - usual
            out[j] = np.where(more == 0.0, 0.0, more) + own
        return out

    def _own(self, column: Column, j: int) -> float:
        """Return what feature `j` contributes to an affine column in the base row."""
        part = self.schema.slice(j)
        assert column.weights is not None
        steps = sum(w for (i, cut), w in column.steps.items() if i == j and self.base[part.start] <= cut)
        return float(column.weights[part] @ self.base[part] + steps)

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

    def linear(self, coefficients: npt.ArrayLike, intercept: npt.ArrayLike, who: str) -> tuple[FloatArray, FloatArray]:
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

    def cells(self, column: int) -> tuple[int, FloatArray, FloatArray] | None:
        """Return feature, cuts and cell values of a column that is constant on the cells of one number, else None.

        The values come from the user's own transformers, to the last float.
        """
        c = self.columns[column]
        if c.weights is None or c.weights.any() or len(c.features) != 1 or not c.steps:
            return None
        (j,) = c.features
        feature = self.schema.features[j]
        if not isinstance(feature, Numeric):
            return None
        cuts = np.array(sorted(cut for _, cut in c.steps), dtype=np.float64)
        return j, cuts, self.values(self.vary(j, representatives(feature, cuts)), column)


def representatives(feature: Numeric, cuts: FloatArray) -> FloatArray:
    """Return one admissible value of each cell between cuts: its last one, and for the last cell the first one."""
    step = feature.step
    beyond = np.nextafter(cuts[-1], np.inf) if step is None else feature.snap(float(cuts[-1]) + step)
    return np.append(cuts, beyond)


def _column(Z: Any, column: int) -> FloatArray:
    if hasattr(Z, "iloc"):
        return np.asarray(Z.iloc[:, column].to_numpy(dtype=np.float64, na_value=np.nan))
    Z = Z.toarray() if hasattr(Z, "toarray") else Z
    return np.asarray(Z[:, column], dtype=np.float64)
