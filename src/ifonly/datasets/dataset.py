"""Data set: the value a loader returns, and the recipe that turns a table into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ifonly.data.schema import Schema
from ifonly.data.tables import column_diff
from ifonly.errors import SchemaError

__all__ = ["Column", "Dataset", "Recipe"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """A table ready for `ifonly.Explainer`, with what its columns mean and where it comes from.

    Attributes
    ----------
    name
        The loader's name.
    frame
        The features, without the target.
    target
        The outcome of each row.
    schema
        Kinds, ranges and human labels of the features, read off `frame`. Of two parts, use that of the train part.
    wanted
        The outcome a person would wish for.
    immutable
        The features that the paper's experiments hold fixed.
    description
        One sentence on what a row is.
    citation
        Whom to cite.
    licence
        The terms of the data.

    Examples
    --------
    >>> from ifonly.datasets import heart
    >>> heart()
    <Dataset heart: 270 rows, 13 features (8 categorical), presence: absent 150, present 120; wanted 'absent'>
    """

    name: str
    frame: pd.DataFrame
    target: pd.Series[Any]
    schema: Schema
    wanted: str | int
    immutable: tuple[str, ...]
    description: str
    citation: str
    licence: str

    def __repr__(self) -> str:
        rows, features = self.frame.shape
        categorical = self.frame.select_dtypes("category").shape[1]
        counts = ", ".join(f"{label} {count}" for label, count in self.target.value_counts().items())
        return (
            f"<Dataset {self.name}: {rows} rows, {features} features ({categorical} categorical), "
            f"{self.target.name}: {counts}; wanted {self.wanted!r}>"
        )


@dataclass(frozen=True, slots=True)
class Column:
    """Recipe of one feature: a category when it has `levels`, otherwise a number."""

    label: str
    levels: tuple[str, ...] = ()
    whole: bool = False
    precision: int | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """Description of a data set: all but its rows."""

    name: str
    columns: Mapping[str, Column]
    target: str
    classes: tuple[str | int, ...]
    wanted: str | int
    immutable: tuple[str, ...]
    description: str
    citation: str
    licence: str

    def build(self, table: pd.DataFrame, origin: str) -> Dataset:
        """Return the data set of a table, or say how the table (from `origin`) differs from this recipe."""
        expected, found = [*self.columns, self.target], [str(name) for name in table.columns]
        if sorted(expected) != sorted(found):
            raise SchemaError(
                f"{origin} is not the {self.name} data: its columns differ (- expected, + found).\n"
                f"{column_diff(expected, found)}\nPut the right file there, or remove this one."
            )
        frame = pd.DataFrame({name: self._feature(table[name], origin) for name in self.columns})
        outcome = table[self.target]
        self._refuse_strangers(outcome, self.classes, origin)
        target = outcome.astype("int64") if isinstance(self.wanted, int) else outcome
        return self.dataset(frame, target, self.wanted)

    def dataset(self, frame: pd.DataFrame, target: pd.Series[Any], wanted: str | int) -> Dataset:
        """Return features and outcomes, taken as they are, together with what this recipe knows of them."""
        columns = self.columns.items()
        schema = Schema.infer(
            frame,
            integer=[name for name, column in columns if column.whole],
            categorical=[name for name, column in columns if column.levels],
            precision={name: column.precision for name, column in columns if column.precision is not None},
            labels={name: column.label for name, column in columns},
        )
        return Dataset(
            name=self.name,
            frame=frame,
            target=target,
            schema=schema,
            wanted=wanted,
            immutable=self.immutable,
            description=self.description,
            citation=self.citation,
            licence=self.licence,
        )

    def _feature(self, values: pd.Series[Any], origin: str) -> pd.Series[Any]:
        levels = self.columns[str(values.name)].levels
        if levels:
            self._refuse_strangers(values, levels, origin)
            # The same levels in every part, seen or not, so that a train and a test frame have equal dtypes.
            return values.astype(pd.CategoricalDtype(list(levels)))
        if not pd.api.types.is_numeric_dtype(values):
            raise SchemaError(
                f"Column {values.name!r} of {origin} must be a number, but it holds text or an empty field. "
                "Put the right file there, or remove this one."
            )
        return values

    def _refuse_strangers(self, values: pd.Series[Any], known: tuple[str | int, ...], origin: str) -> None:
        strangers = [value for value in values.unique().tolist() if value not in known]
        if strangers:
            raise SchemaError(
                f"Column {values.name!r} of {origin} holds {strangers[0]!r}, but the {self.name} data knows "
                f"only {', '.join(map(repr, known))}. Put the right file there, or remove this one."
            )
