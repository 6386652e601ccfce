"""Lint of a policy: what it leaves open that it should not, and what it says that can never matter.

Nothing is solved: every finding follows from the bounds and levels of the schema alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ifonly.criteria.actionability.criterion import Actionability, LinearRow
from ifonly.criteria.proximity import Proximity
from ifonly.criteria.sparsity import Sparsity
from ifonly.data.schema import Numeric, Schema
from ifonly.question.criterion import Criterion
from ifonly.question.words import number

__all__ = ["PROTECTED", "lint"]

# Words that name attributes which the law of many places protects; whole words of a feature's name.
PROTECTED = (
    "age", "birth", "born", "citizenship", "colour", "disability", "disabled", "ethnic", "ethnicity", "foreign", "gender",
    "marital", "nationality", "native", "orientation", "personal_status", "pregnant", "pregnancy", "race", "religion", "sex",
)  # fmt: skip


def lint(schema: Schema, criteria: Sequence[Criterion], protected: Sequence[str] | None = None) -> list[str]:
    """Return a sentence for everything in a policy that is likely a slip.

    Parameters
    ----------
    schema
        The features, with the bounds and levels that answers keep to.
    criteria
        The criteria of the house.
    protected
        The features that nobody may be asked to change; None: those whose names say so, see `PROTECTED`.

    Examples
    --------
    >>> from ifonly.data.schema import Integer
    >>> lint(Schema((Integer("age", 19, 75), Integer("duration", 4, 72))), [Actionability(max_step={"duration": 100})])[
    ...     1
    ... ]
    "max_step of 'duration' never binds: it may only move between 4 and 72. Lower it, or take it out."
    """
    acts = [c for c in criteria if isinstance(c, Actionability)]
    fixed = {name for a in acts for name in a.fixed(schema.names)}
    return [
        *_open_attributes(schema, acts, fixed, protected),
        *(text for a in acts for text in _single_rules(schema, a, fixed)),
        *(text for a in acts for row in a.rows for text in _linear(schema, row)),
        *(text for a in acts for rule in a.implies for text in _implication(schema, rule.if_, rule.then)),
        *_costs(schema, criteria, fixed),
    ]


def _is_protected(name: str) -> bool:
    words = set(re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))
    return any(word in words or ("_" in word and word in name.lower()) for word in PROTECTED)


def _open_attributes(
    schema: Schema, acts: Sequence[Actionability], fixed: set[str], protected: Sequence[str] | None
) -> Iterator[str]:
    named = [n for n in schema.names if _is_protected(n)] if protected is None else list(protected)
    directed = {n for a in acts for n in (*a.increase, *a.decrease)}
    for name in named:
        schema.index(name)
        if name in fixed:
            continue
        if name in directed and isinstance(schema[name], Numeric):
            continue  # "may only increase" is how one treats an age
        yield (
            f"{name!r} may change, and its name says that it is protected. Freeze it, demands.frozen = [{name!r}], or give a "
            "direction."
        )


def _single_rules(schema: Schema, rules: Actionability, fixed: set[str]) -> Iterator[str]:
    for name, (low, high) in rules.ranges.items():
        yield from _range(schema, name, -np.inf if low is None else float(low), np.inf if high is None else float(high))
    for name, step in rules.max_step.items():
        yield from _step(schema, name, float(step))
    for name, levels in rules.allow.items():
        feature = schema[name]
        if not isinstance(feature, Numeric) and len({feature.position(level) for level in levels}) == feature.width:
            yield f"allow of {name!r} never binds: it names all of its levels. Leave some out, or take it out."
    for where in ("max_step", "allow", "conditional"):
        for name in (n for n in getattr(rules, where) if n in fixed):
            yield f"{where} of {name!r} never binds: the feature is frozen. Take one of the two out."
    for name in (n for n in (*rules.increase, *rules.decrease) if n in fixed):
        yield f"{name!r} has a direction, but is frozen by another demand. Take one of the two out."


def _range(schema: Schema, name: str, low: float, high: float) -> Iterator[str]:
    lowest, highest = _bounds(schema, name)
    said = f"the data go from {number(lowest)} to {number(highest)}"
    if low > highest or high < lowest:
        yield f"The range of {name!r} lies outside the data: {said}. No answer can be in it; mend it, or widen the bounds."
    elif low <= lowest and high >= highest:
        yield f"The range of {name!r} never binds: {said}. Narrow it, or take it out."
    elif (np.isfinite(low) and low < lowest) or (np.isfinite(high) and high > highest):
        yield f"The range of {name!r} goes beyond the data: {said}, and answers stay there. Set bounds if more is meant."


def _step(schema: Schema, name: str, step: float) -> Iterator[str]:
    feature = schema[name]
    if isinstance(feature, Numeric):
        if step >= feature.upper - feature.lower:
            ends = f"{number(feature.lower)} and {number(feature.upper)}"
            yield f"max_step of {name!r} never binds: it may only move between {ends}. Lower it, or take it out."
    elif step >= feature.width - 1:
        yield f"max_step of {name!r} never binds: it has {feature.width} levels. Lower it, or take it out."


def _bounds(schema: Schema, name: str) -> tuple[float, float]:
    feature = schema[name]
    assert isinstance(feature, Numeric)
    return float(feature.lower), float(feature.upper)


def _linear(schema: Schema, row: LinearRow) -> Iterator[str]:
    low = high = 0.0
    for name, weight in row.weights.items():
        feature = schema[name]
        ends = _bounds(schema, name) if isinstance(feature, Numeric) else _numbers(feature.levels)
        low, high = low + min(weight * e for e in ends), high + max(weight * e for e in ends)
    words = " ".join(f"{w:+g} {n}" for n, w in row.weights.items()).lstrip("+")
    least = -np.inf if row.at_least is None else row.at_least
    most = np.inf if row.at_most is None else row.at_most
    said = f"within the bounds, {words} lies between {number(low)} and {number(high)}"
    if low >= least and high <= most:
        yield f"A rule never binds: {said}. Tighten it, or take it out."
    elif high < least or low > most:
        yield f"A rule can never be met: {said}. Mend it, or widen the bounds."


def _numbers(levels: Sequence[Any]) -> tuple[float, ...]:
    return tuple(float(level) for level in levels)


def _implication(schema: Schema, if_: Mapping[str, Any], then: Mapping[str, Any]) -> Iterator[str]:
    def shows(condition: Mapping[str, Any]) -> str:
        return " and ".join(f"{name} is {value}" for name, value in condition.items())

    if any(_can_hold(schema, name, value) == "never" for name, value in if_.items()):
        yield f"An implication never binds: 'if {shows(if_)}' cannot happen within the bounds. Mend it, or take it out."
    elif all(_can_hold(schema, name, value) == "always" for name, value in then.items()):
        yield f"An implication never binds: 'then {shows(then)}' holds anyway. Tighten it, or take it out."


def _can_hold(schema: Schema, name: str, value: Any) -> str:
    """Return whether a condition holds always, sometimes or never within bounds and levels."""
    feature = schema[name]
    if isinstance(feature, Numeric):
        low, high = value if isinstance(value, (tuple, list)) else (value, value)
        a, b = -np.inf if low is None else float(low), np.inf if high is None else float(high)
        if a > feature.upper or b < feature.lower:
            return "never"
        return "always" if a <= feature.lower and b >= feature.upper else "sometimes"
    levels = value if isinstance(value, (tuple, list, set, frozenset)) else [value]
    held = {feature.position(level) for level in levels}
    return "never" if not held else "always" if len(held) == feature.width else "sometimes"


def _costs(schema: Schema, criteria: Sequence[Criterion], fixed: set[str]) -> Iterator[str]:
    free = len(schema.names) - len(fixed)
    for criterion in criteria:
        if isinstance(criterion, Sparsity) and criterion.at_most is not None and criterion.at_most >= free:
            yield f"at_most = {criterion.at_most} never binds: only {free} features may change. Lower it, or take it out."
        if isinstance(criterion, Proximity):
            own = {} if isinstance(criterion.scale, str) else criterion.scale
            for name in dict.fromkeys((*criterion.weights, *own, *criterion.tables)):
                if name in fixed:
                    yield f"{name!r} has a cost of its own, but is frozen. Take one of the two out."
    if free == 0:
        yield "Every feature is frozen, so no question has an answer. Release some."
