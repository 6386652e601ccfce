"""Gaps: the estimator's input when a feature of a row is missing, behind the user's own transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema
from ifonly.runtime.warning_filters import silenced

__all__ = ["Gaps", "column_values"]

Evaluate = Callable[[FloatArray], Any]


@dataclass(frozen=True, eq=False)
class Gaps:
    """The input of an estimator with one feature of the base row missing, feature by feature.

    Attributes
    ----------
    rows
        Feature -> the row that is received without it; those that a transformer refuses are not there.
    together
        The features of `usual` and `without`, with the columns that depend on each.
    usual, without
        The base row, and the row without any of `together`: a column depends on at most one of them.
    """

    rows: Mapping[int, Any]
    together: Mapping[int, frozenset[int]] = field(default_factory=dict)
    usual: FloatArray = field(default_factory=lambda: np.empty(0))
    without: FloatArray = field(default_factory=lambda: np.empty(0))

    def __contains__(self, j: int) -> bool:
        return j in self.together or j in self.rows

    @property
    def features(self) -> list[int]:
        """The features that may be left out."""
        return [*self.together, *self.rows]

    def changed(self, j: int) -> frozenset[int] | None:
        """Return the columns that may change when a feature is missing; None: all of them."""
        return self.together.get(j)

    def value(self, j: int, column: int) -> float:
        """Return what a column holds when a feature is missing."""
        if j in self.together:
            return float((self.without if column in self.together[j] else self.usual)[column])
        return float(column_values(self.rows[j], column)[0])

    @classmethod
    def of(
        cls, schema: Schema, base: FloatArray, evaluate: Evaluate, depends: Sequence[frozenset[int]], many: int
    ) -> Gaps:
        """Return the gaps of the base row.

        `depends` are the features that each column depends on; from `many` numbers on, they are left out together.
        """
        numeric = [j for j, feature in enumerate(schema.features) if isinstance(feature, Numeric)]
        others = [j for j, feature in enumerate(schema.features) if not isinstance(feature, Numeric)]
        shared = _all_at_once(schema, base, evaluate, depends, numeric, many)
        groups = [numeric, others] if shared is None else [others]
        rows = _one_by_one(schema, base, evaluate, [group for group in groups if group])
        return cls(rows) if shared is None else cls(rows, *shared)


def _all_at_once(
    schema: Schema,
    base: FloatArray,
    evaluate: Evaluate,
    depends: Sequence[frozenset[int]],
    numeric: Sequence[int],
    many: int,
) -> tuple[dict[int, frozenset[int]], FloatArray, FloatArray] | None:
    """Return what is received without any number, where no column depends on two; None: they must be left out singly.

    That no column sees the gap of another number is not taken on trust: each half of the numbers is left out as well.
    """
    if len(numeric) < many or not all(depends):  # a column of no feature may be the flag of any gap
        return None
    owners: dict[int, set[int]] = {j: set() for j in numeric}
    owner = np.full(len(depends), -1)
    for c, features in enumerate(depends):
        for j in features & owners.keys():
            if owner[c] >= 0:
                return None
            owner[c] = j
            owners[j].add(c)
    half = np.random.default_rng(0).random(len(schema)) < 0.5
    rows = np.repeat(base[None, :], 4, axis=0)
    starts = np.asarray(schema.starts)
    number = np.zeros(len(schema), dtype=np.bool_)
    number[numeric] = True
    for row, left_out in zip(rows[1:], (number, number & half, number & ~half), strict=True):
        row[starts[left_out]] = np.nan
    try:
        with np.errstate(all="ignore"), silenced():
            received = _floats(evaluate(rows))
    except (TypeError, ValueError):
        return None
    usual, without, *halves = received
    for row, left_out in zip(halves, (half, ~half), strict=True):
        expected = np.where((owner >= 0) & left_out[owner], without, usual)
        if not np.array_equal(row, expected, equal_nan=True):
            return None
    return {j: frozenset(columns) for j, columns in owners.items()}, usual, without


def _one_by_one(schema: Schema, base: FloatArray, evaluate: Evaluate, groups: list[Sequence[int]]) -> dict[int, Any]:
    """Return the row that is received without each feature, without those that a transformer refuses."""
    received: dict[int, Any] = {}
    # The features of a group in one table; one by one only where a transformer refuses some of them.
    while groups:
        group = groups.pop()
        rows = np.repeat(base[None, :], len(group), axis=0)
        for row, j in zip(rows, group, strict=True):
            row[schema.slice(j)] = np.nan if isinstance(schema.features[j], Numeric) else 0.0
        try:
            with np.errstate(all="ignore"), silenced():
                table = evaluate(rows)
        except (TypeError, ValueError):
            groups += [[j] for j in group] if len(group) > 1 else []
            continue
        pick = table.iloc if hasattr(table, "iloc") else table
        received |= {j: pick[k : k + 1] for k, j in enumerate(group)}
    return received


def _floats(Z: Any) -> FloatArray:
    Z = Z.toarray() if hasattr(Z, "toarray") else Z
    return np.asarray(Z, dtype=np.float64)


def column_values(Z: Any, column: int) -> FloatArray:
    """Return one column of a table as floats."""
    if hasattr(Z, "iloc"):
        return np.asarray(Z.iloc[:, column].to_numpy(dtype=np.float64, na_value=np.nan))
    Z = Z.toarray() if hasattr(Z, "toarray") else Z
    return np.asarray(Z[:, column], dtype=np.float64)
