"""Source: an estimator's input columns as functions of the canonical vector, read through the user's transformers.

A `Source` holds one symbolic `Column` per column that reaches the estimator, and `evaluate`, the user's own fitted
preprocessing applied to canonical rows. Linear and network readers need columns that are affine in `u`; tree readers
need only that a column depends on one feature, and pull every threshold back to raw units through `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema
from ifonly.errors import UnsupportedModel
from ifonly.models.forms.polynomials import Polynomials
from ifonly.models.reading.gaps import Gaps, column_values
from ifonly.models.reading.sparse_row import SparseRow, matrix_product
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
    weights: FloatArray | SparseRow | None
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
            part = schema.slice(j)
            if isinstance(feature, Numeric):
                weights = SparseRow.unit(schema.width, part.start)
            elif all(isinstance(level, (bool, int, float)) for level in feature.levels):
                levels = np.array([float(level) for level in feature.levels])
                weights = SparseRow(schema.width, np.arange(part.start, part.stop), levels)
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
        return column_values(self.evaluate(U), column) if branch is None else column_values(branch[0](U), branch[1])

    def at_levels(self, j: int, column: int) -> FloatArray:
        """Return what a column holds at each level of categorical feature `j`."""
        evaluate, place = self.columns[column].branch or (self.evaluate, column)
        group = self._groups[j]
        received = self.memo.get(
            f"levels of {group[0]}", id(evaluate), lambda: self._at_levels_of(group, evaluate), keep=evaluate
        )
        return column_values(received[j], place)

    @cached_property
    def _groups(self) -> dict[int, tuple[int, ...]]:
        categories = [j for j, feature in enumerate(self.schema.features) if not isinstance(feature, Numeric)]
        return {j: group for group in self.level_groups(categories) for j in group}

    def _at_levels_of(self, group: tuple[int, ...], evaluate: Callable[[FloatArray], Any]) -> dict[int, Any]:
        try:
            return self.each(group, evaluate(self.vary_levels(*group)))
        except ValueError:  # a level of one feature may be refused where another one is asked for
            return {j: evaluate(self.vary_levels(j)) for j in group}

    @cached_property
    def _gaps(self) -> Gaps:
        return Gaps.of(
            self.schema, self.base, self.evaluate, [column.features for column in self.columns], self.tuning.many
        )

    def when_missing(self, j: int, column: int) -> float:
        """Return what a column holds when feature `j` is missing: a value that was filled in, or NaN."""
        if j not in self._gaps or self.columns[column].labels:
            return np.nan
        return self._gaps.value(j, column)

    def flagged(self, column: int) -> list[int]:
        """Return the features whose absence a column tells that otherwise stays the same: a missing indicator."""
        usual = float(self.values(self.base[None, :], column)[0])
        return [j for j in self._gaps.features if self.when_missing(j, column) != usual]

    def may_miss(self, allowed: bool) -> frozenset[int]:
        """Return the features that may be missing, for an estimator that itself takes NaN (`allowed`) or does not."""
        if any(column.curve is not None for column in self.columns):
            return frozenset()
        flags = [self.flagged(c) for c, column in enumerate(self.columns) if not column.features]
        mixed = {j for owners in flags if len(owners) > 1 for j in owners}
        columns_of: dict[int, list[int]] = {}
        for c, column in enumerate(self.columns):
            for j in column.features:
                columns_of.setdefault(j, []).append(c)
        out = set()
        for j in self._gaps.features:
            own = [self.when_missing(j, c) for c in columns_of.get(j, ())]
            if j not in mixed and (allowed or not np.isnan(own).any()):
                out.add(j)
        return frozenset(out)

    def filled(self) -> dict[int, SparseRow]:
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
            changed = self._gaps.changed(j)
            which = np.arange(len(self.columns)) if changed is None else np.array(sorted(changed), dtype=np.int64)
            own = [self._own(self.columns[c], j) for c in which]
            more = np.array([self.when_missing(j, int(c)) for c in which]) - usual[which]
            out[j] = SparseRow(len(self.columns), which, np.where(more == 0.0, 0.0, more) + own)
        return out

    def _own(self, column: Column, j: int) -> float:
        """Return what feature `j` contributes to an affine column in the base row."""
        part = self.schema.slice(j)
        weights = column.weights
        assert weights is not None
        steps = sum(w for (i, cut), w in column.steps.items() if i == j and self.base[part.start] <= cut)
        own = weights.within(part) if isinstance(weights, SparseRow) else weights[part]
        return float(own @ self.base[part] + steps)

    def affine(self, who: str) -> tuple[FloatArray, FloatArray]:
        """Return ``A, b`` with ``z = A u + b``, or say which column of which step is not affine."""
        self._check_affine(who)
        A = np.array([np.asarray(c.weights) for c in self.columns]).reshape(len(self.columns), self.schema.width)
        return A, np.array([c.constant for c in self.columns])

    def _check_affine(self, who: str) -> None:
        """Refuse a column that is not affine."""
        for column in self.columns:
            if column.weights is None or column.steps:
                names = ", ".join(repr(self.schema.names[j]) for j in sorted(column.features))
                raise UnsupportedModel(
                    f"{self.where}{who} needs numeric inputs that are affine in the raw values, but column "
                    f"{column.name!r} (from {names}) is {column.why}. Use a scaler and a OneHotEncoder before it, or a "
                    "tree model, which takes any monotone transform; numbers on a grid of at most "
                    f"{self.tuning.most_steps} values may be bent."
                )

    def linear(self, coefficients: npt.ArrayLike, intercept: npt.ArrayLike, who: str) -> tuple[FloatArray, FloatArray]:
        """Return canonical weights and intercept of ``z @ C' + b0``."""
        self._check_affine(who)
        C = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
        if C.shape[1] != len(self.columns):
            raise UnsupportedModel(
                f"{self.where}{who} was fitted on {C.shape[1]} columns, but the data has {len(self.columns)}. Pass the "
                "frame the model was trained on, or the whole Pipeline."
            )
        shift = C @ [c.constant for c in self.columns] + np.asarray(intercept, dtype=np.float64).reshape(-1)
        weights = matrix_product(C, [c.weights for c in self.columns], self.schema.width)
        return weights, np.broadcast_to(shift, (C.shape[0],)).copy()

    # -- pulling thresholds back --------------------------------------------------------------------------------
    def vary(self, j: int, values: FloatArray) -> FloatArray:
        """Return base rows in which only numeric feature `j` varies."""
        U = np.repeat(self.base[None, :], len(values), axis=0)
        U[:, self.schema.starts[j]] = values
        return U

    def vary_levels(self, *features: int) -> FloatArray:
        """Return base rows in which one categorical feature after the other takes each of its levels."""
        widths = [self.schema.features[j].width for j in features]
        U = np.repeat(self.base[None, :], sum(widths), axis=0)
        for j, n, end in zip(features, widths, np.cumsum(widths), strict=True):
            U[end - n : end, self.schema.slice(j)] = np.eye(n)
        return U

    def level_groups(self, features: Iterable[int]) -> list[tuple[int, ...]]:
        """Return categorical features in groups whose levels are put to a transformer at once: every call has its price."""
        groups: list[list[int]] = []
        rows = 0
        for j in features:
            n = self.schema.features[j].width
            if not groups or rows + n > self.tuning.level_rows:
                groups.append([])
                rows = 0
            groups[-1].append(j)
            rows += n
        return [tuple(group) for group in groups]

    def each(self, group: Iterable[int], table: Any) -> dict[int, Any]:
        """Return which rows of a table made of `vary_levels` belong to which feature."""
        rows = table.tocsr() if hasattr(table, "tocsr") else table
        out, end = {}, 0
        for j in group:
            begin, end = end, end + self.schema.features[j].width
            out[j] = rows.iloc[begin:end] if hasattr(rows, "iloc") else rows[begin:end]
        return out

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
