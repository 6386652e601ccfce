"""Typed columns: the text of a CSV file as values of the schema's features, value by value and not by guessing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ifonly.data.features import Categorical, Feature, Numeric
from ifonly.data.schema import Schema

__all__ = ["MISSING", "typed_columns", "value_reader"]

# As pandas reads them, so that training data and rows agree.
MISSING = frozenset(
    {
        "",
        " ",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
    }
    | {"NULL", "NaN", "None", "n/a", "nan", "null"}
)


def typed_columns(schema: Schema, columns: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return the features among columns of text as a frame.

    A value that is none of its feature stays the text it is, so that only its own row is refused, by the schema and with the
    schema's sentence.
    """
    return pd.DataFrame({f.name: _typed(f, columns[f.name]) for f in schema.features})


def _typed(feature: Feature, texts: Sequence[str]) -> Any:
    if isinstance(feature, Numeric):
        try:
            return np.array(texts, dtype=np.float64)
        except ValueError:  # a gap, or a value that is no number
            pass
    read = value_reader(feature)
    values = [read(text) for text in texts]
    if isinstance(feature, Numeric) and all(isinstance(v, float) for v in values):
        return np.array(values, dtype=np.float64)
    return pd.Series(values, dtype=object)


def value_reader(feature: Feature) -> Callable[[str], Any]:
    """Return what turns the text of one value into that value."""
    if isinstance(feature, Numeric):
        return _number
    return _level_reader(feature)


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return np.nan if text in MISSING else text


def _level_reader(feature: Categorical) -> Callable[[str], Any]:
    by_text = {str(level): level for level in feature.levels}
    by_text |= {str(level).lower(): level for level in feature.levels if isinstance(level, bool)}
    numbers = {float(v): v for v in feature.levels if isinstance(v, (int, float)) and not isinstance(v, bool)}

    def read(text: str) -> Any:
        if text in by_text:
            return by_text[text]
        if text in MISSING:
            return None
        if numbers:
            try:
                return numbers.get(float(text), text)
            except ValueError:
                return text
        return by_text.get(text.lower(), text) if text.lower() in ("true", "false") else text

    return read
