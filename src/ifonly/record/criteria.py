"""Criteria as plain data and back: every field of a public criterion, by its name.

A value that data cannot hold (a fitted model, a function) is written as its kind and its SHA-256: whoever has it can show
that it is the same one, but nobody can get it out of a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from ifonly.criteria.actionability.criterion import Actionability, Implies, LinearRow
from ifonly.criteria.causality.causes import Cause
from ifonly.criteria.causality.criterion import Causality
from ifonly.criteria.diversity.criterion import Diversity
from ifonly.criteria.manifold.criterion import Manifold
from ifonly.criteria.proximity import Proximity
from ifonly.criteria.robustness.criterion import Robustness
from ifonly.criteria.sparsity import Sparsity
from ifonly.errors import SchemaError
from ifonly.question.criterion import Criterion
from ifonly.record.fingerprints import of_value
from ifonly.result.serial import plain_value, value_of

__all__ = ["criteria_from_data", "criteria_to_data", "in_words"]

_KNOWN: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Actionability,
        Causality,
        Cause,
        Diversity,
        Implies,
        LinearRow,
        Manifold,
        Proximity,
        Robustness,
        Sparsity,
    )
}


class _Closed(Exception):
    """A value that a record holds only by its fingerprint."""


def criteria_to_data(criteria: Sequence[Criterion]) -> list[Any]:
    """Return criteria as values that JSON can hold."""
    return [_to_data(criterion) for criterion in criteria]


def criteria_from_data(data: Sequence[Any]) -> tuple[Criterion, ...]:
    """Return the criteria that `criteria_to_data` described.

    Raises
    ------
    SchemaError
        When one is of a kind that is not known here, or holds a value that a record cannot hold.
    """
    try:
        found = tuple(_from_data(part) for part in data)
    except _Closed as closed:
        raise SchemaError(
            f"The record holds {closed} only by its SHA-256. Pass the criteria themselves: criteria=[...]."
        ) from None
    for criterion in found:
        if not isinstance(criterion, Criterion):
            raise SchemaError(f"The policy of the record holds {criterion!r}, which is no criterion.")
    return found


def _to_data(value: Any) -> Any:
    if is_dataclass(value) and type(value) in _KNOWN.values():
        return {
            "kind": type(value).__name__,
            **{f.name: _to_data(getattr(value, f.name)) for f in fields(value) if f.init},
        }
    if isinstance(value, Mapping):
        return {"map": [[_to_data(k), _to_data(v)] for k, v in value.items()]}
    if isinstance(value, (list, tuple, np.ndarray, pd.Series)):
        return [_to_data(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return [_to_data(v) for v in sorted(value, key=str)]
    try:
        return plain_value(value)
    except SchemaError:
        return {"closed": type(value).__name__, "sha256": of_value(value)}


def _from_data(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(_from_data(part) for part in data)
    if not isinstance(data, Mapping):
        return data
    if "closed" in data:
        raise _Closed(f"a {data['closed']}")
    if "map" in data:
        return {_from_data(k): _from_data(v) for k, v in data["map"]}
    if "kind" not in data:
        return value_of(data)
    kind = _KNOWN.get(str(data["kind"]))
    if kind is None:
        raise SchemaError(
            f"The record's policy holds a {data['kind']!r}, which is not one of ifonly's own criteria. Pass the criteria "
            "themselves: criteria=[...]."
        )
    known = {f.name for f in fields(kind) if f.init}
    given = {name: _from_data(part) for name, part in data.items() if name != "kind"}
    unknown = sorted(set(given) - known)
    if unknown:
        raise SchemaError(f"The {data['kind']} of the record has {unknown[0]!r}, which this version does not know.")
    return kind(**given)


def in_words(criteria: Sequence[Criterion]) -> list[str]:
    """Return the costs of an answer in words, one sentence for each criterion that costs."""
    return [words for criterion in criteria if (words := _cost(criterion))]


def _cost(criterion: Criterion) -> str:
    if isinstance(criterion, Sparsity):
        return "" if criterion.price is None else f"{criterion.price!r} for each feature that changes"
    if not isinstance(criterion, Proximity):
        return ""
    scales = {
        "auto": "the range of the training data, or its middle nine tenths where outliers rule the range",
        "range": "the range of the training data",
        "mad": "the median absolute deviation of the training data",
        "std": "the standard deviation of the training data",
        "none": "nothing",
    }
    by = scales.get(criterion.scale, "its own scale") if isinstance(criterion.scale, str) else "its own scale"
    weights = f", times {dict(criterion.weights)!r}" if criterion.weights else ""
    if criterion.scale == "percentile":
        said = (
            f"{criterion.norm} distance, the change of a number counted in shares of the training rows that it passes"
        )
    else:
        said = f"{criterion.norm} distance, the change of a number divided by {by}"
    tables = f"; by tables of their own: {', '.join(criterion.tables)}" if criterion.tables else ""
    return f"{said}{weights}{tables}"
