"""Names of the library that the studio needs and that are not in its public catalogue: the only file that knows where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ifonly import Actionability, Explainer, Sparsity
from ifonly.bench import credit_model
from ifonly.data.features import Feature, Integer, Numeric
from ifonly.result.text import format_change, format_range, format_value
from ifonly.runtime.warning_filters import silenced

__all__ = [
    "Feature",
    "Integer",
    "Numeric",
    "credit_model",
    "format_change",
    "format_range",
    "format_value",
    "frame_of",
    "makers_of",
]


def frame_of(explainer: Explainer) -> pd.DataFrame:
    """Return the data that an explainer was given."""
    return explainer._frame


def makers_of(
    explainer: Explainer, row: Any, want: Any, made: Iterable[tuple[str, Sequence[Any]]]
) -> Mapping[str, str]:
    """Return the text of each demand -> who makes it, for demands on single features, between them and on their number.

    `made` lists makers with their criteria, the strongest first: what the law demands stays the law's, whoever else
    demands it, too.
    """
    with silenced():
        query = explainer._ask(row, want, ()).query
        found: dict[str, str] = {}
        for maker, criteria in made:
            for criterion in criteria:
                if isinstance(criterion, Actionability | Sparsity):
                    for demand in criterion.demands(query):
                        found.setdefault(demand.text, maker)
    return found
