"""One model and its data, as the studio sees them: predictions, scores, distributions, values in words.

Everything the studio takes from an `Explainer` beyond asking it goes through this file.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ifonly import Causality, Explainer, Manifold, Robustness, Schema
from ifonly.question.criterion import Criterion
from ifonly.runtime.memo import cached_property
from ifonly.studio.insight import forecasts
from ifonly.studio.library import LARGEST_WHOLE, Feature, Integer, Numeric
from ifonly.studio.told import Told

__all__ = ["Distribution", "Forecast", "Subject", "parse_value"]

Array = npt.NDArray[np.float64]
BINS = 24
_CHUNK = 20_000
_MISSING = ""


@dataclass(frozen=True)
class Forecast:
    """The model's own word on one row: its label or value, and its score of each class (empty: it has none)."""

    outcome: Any
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Distribution:
    """The training distribution of one feature: bin edges and counts, or one count per level."""

    counts: tuple[int, ...]
    edges: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Subject:
    """A model to ask about.

    Attributes
    ----------
    key, title
        Its short name in addresses, and its name in print.
    explainer
        What is asked.
    data
        The rows to pick from, in the model's columns.
    wanted
        The outcome that people wish for, if that is known.
    first
        A row worth beginning with.
    recipe
        Python lines that make ``model``, ``X``, ``schema`` anew, for the exported code.
    switches
        Criteria that a person can switch on.
    law
        Those of the explainer's criteria that the law makes; all others are the house's own.
    """

    key: str
    title: str
    explainer: Explainer
    data: pd.DataFrame
    wanted: Any = None
    first: int | None = None
    recipe: tuple[str, ...] = ()
    switches: Mapping[str, Any] = field(default_factory=dict)
    law: tuple[Any, ...] = ()
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def schema(self) -> Schema:
        """The features."""
        return self.explainer.schema

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels in the model's order; none for a regression model."""
        return tuple(self.explainer.model.read.classes)

    @property
    def has_probabilities(self) -> bool:
        """Whether scores are probabilities, so that one can be asked for."""
        return bool(self.classes) and self.explainer.model.read.link.has_probabilities

    def maker(self, criterion: Any) -> str:
        """Return who makes one of the explainer's criteria: "law" or "house"."""
        return "law" if criterion in self.law else "house"

    def want_index(self, now: Any) -> int:
        """Return the class that a person would ask for first: the wished-for one, or the first other one."""
        if self.wanted in self.classes and self.wanted != now:
            return self.classes.index(self.wanted)
        return next((i for i, label in enumerate(self.classes) if label != now), 0)

    # -- predictions ------------------------------------------------------------------------------------------------
    def forecasts(self, frame: pd.DataFrame) -> tuple[npt.NDArray[Any], Array]:
        """Return the model's own outcomes and scores (one column per class, one for a regression, or none)."""
        return forecasts(self.explainer, frame)

    def forecast(self, frame: pd.DataFrame) -> Forecast:
        """Return the model's own word on a one-row frame."""
        outcomes, scores = self.forecasts(frame)
        return Forecast(outcomes[0], tuple(float(s) for s in scores[0]))

    @cached_property
    def _known(self) -> tuple[npt.NDArray[Any], Array]:
        parts = [self.forecasts(self.data.iloc[k : k + _CHUNK]) for k in range(0, len(self.data), _CHUNK)]
        return np.concatenate([o for o, _ in parts]), np.concatenate([s for _, s in parts])

    def known(self) -> tuple[npt.NDArray[Any], Array]:
        """Return outcomes and scores of all rows, computed once."""
        with self._lock:
            return self._known

    # -- rows ---------------------------------------------------------------------------------------------------------
    @cached_property
    def typical(self) -> tuple[Any, ...]:
        """The median of each number and the most frequent level of each category: where typing in begins."""
        values: list[Any] = []
        for feature in self.schema.features:
            column = self.data[feature.name].dropna()
            if isinstance(feature, Numeric):
                middle = feature.snap(float(column.median()))
                values.append(int(middle) if isinstance(feature, Integer) else middle)
            else:
                values.append(column.mode().iloc[0])
        return tuple(values)

    def values(self, row: int | None) -> tuple[Any, ...]:
        """Return the values of a row of the data by its position, or typical ones."""
        if row is None:
            return self.typical
        one = self.data.iloc[row]
        return tuple(one[name] for name in self.schema.names)

    def frame(self, values: Sequence[Any]) -> pd.DataFrame:
        """Return values as a one-row frame in the dtypes of the data."""
        columns = {}
        for name, value in zip(self.schema.names, values, strict=True):
            dtype = self._dtypes[name]
            absent = value is None or value is pd.NA or value != value  # noqa: PLR0124 - only NaN differs from itself
            if absent and isinstance(dtype, np.dtype) and dtype.kind in "iub":
                dtype = np.dtype("float64")
            try:
                columns[name] = pd.array([np.nan if absent else value], dtype=dtype)
            except (TypeError, ValueError, OverflowError):
                columns[name] = pd.Series([value]).array
        return pd.DataFrame(columns)

    @cached_property
    def _dtypes(self) -> dict[str, Any]:
        return dict(self.data.dtypes)

    @cached_property
    def distributions(self) -> tuple[Distribution, ...]:
        """The training distribution of each feature."""
        return tuple(self._distribution(f) for f in self.schema.features)

    def _distribution(self, feature: Feature) -> Distribution:
        column = self.data[feature.name]
        if isinstance(feature, Numeric):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            low, high = feature.lower, feature.upper
            bins = BINS
            if isinstance(feature, Integer) and high - low < BINS:
                low, high, bins = low - 0.5, high + 0.5, int(high - low) + 1
            counts, edges = np.histogram(
                values[np.isfinite(values)], bins=bins, range=(low, high if high > low else low + 1)
            )
            return Distribution(tuple(int(c) for c in counts), tuple(float(e) for e in edges))
        found = column.value_counts()
        return Distribution(tuple(int(found.get(level, 0)) for level in feature.levels))


def parse_value(text: str, feature: Feature) -> Any:
    """Return typed text as a value of a feature.

    Raises
    ------
    SchemaError
        When the text is no number, or names no level.
    """
    text = text.strip()
    if text == _MISSING:
        return None
    if not isinstance(feature, Numeric):
        for level in feature.levels:
            if str(level) == text:
                return level
        known = ", ".join(map(str, feature.levels))
        raise Told("slip.level", text=text, label=feature.label or feature.name, known=known)
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        raise Told("slip.number_of", text=text, label=feature.label or feature.name) from None
    if not np.isfinite(number):
        raise Told("slip.finite", text=text)
    if isinstance(feature, Integer) and abs(number) > LARGEST_WHOLE:
        raise Told("slip.large", text=text, label=feature.label or feature.name)
    number = feature.snap(number)
    return int(number) if isinstance(feature, Integer) else number


def standard_switches() -> dict[str, Any]:
    """Return the criteria that make sense for any model: plausible answers, and answers that bear a little error."""
    return {"manifold": Manifold(epsilon=0.05), "robust": Robustness(radius=0.01)}


def switch_kind(criterion: Any) -> str:
    """Return which sentence describes a switch."""
    kinds: dict[type[Criterion], str] = {Manifold: "manifold", Robustness: "robust", Causality: "causal"}
    return next((name for kind, name in kinds.items() if isinstance(criterion, kind)), "other")
