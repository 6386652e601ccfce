"""Actionability: what a person can and cannot change, feature by feature and between features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from numbers import Real
from typing import Any

import numpy as np

from ifonly.criteria.actionability.demands import Between, Direction, Frozen, Imply, LevelSet, LinearDemand
from ifonly.data.features import plain
from ifonly.data.schema import Numeric, Ordinal
from ifonly.errors import CriterionError, FactualViolatesDemand, warn
from ifonly.question.criterion import Criterion
from ifonly.question.demand import Demand
from ifonly.question.query import Query
from ifonly.question.words import number

__all__ = ["Actionability", "Implies", "LinearRow"]

Condition = Mapping[str, Any]


@dataclass(frozen=True)
class LinearRow:
    """``at_least <= sum_j weights[j] * x_j <= at_most`` between numeric (or 0/1) features, in raw units.

    Examples
    --------
    ``years_employed <= age - 16``: ``LinearRow({"age": 1, "years_employed": -1}, at_least=16)``.
    """

    weights: Mapping[str, float]
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if not self.weights:
            raise CriterionError("A LinearRow needs at least one feature with a weight.")
        if self.at_least is None and self.at_most is None:
            raise CriterionError("A LinearRow needs at_least= or at_most=; without them it demands nothing.")


@dataclass(frozen=True)
class Implies:
    """``if_`` implies ``then``: both map features to a level, a list of levels, or an interval (low, high).

    Several features in `if_` must all hold; each feature in `then` must then hold. None in an interval is open.

    Examples
    --------
    ``Implies({"job": "student"}, {"income": (None, 20_000)})``
    """

    if_: Condition
    then: Condition


@dataclass(frozen=True)
class Actionability(Criterion):
    """Constraints on changes: which features may change, in which direction and how far.

    Parameters
    ----------
    frozen
        Features that stay as they are.
    increase, decrease
        Numeric or ordinal features that may only go up, or only down.
    ranges
        Numeric feature -> (low, high) its new value must lie in; None is open.
    max_step
        Numeric feature -> the largest change either way; ordinal feature -> the largest number of levels.
    allow
        Categorical feature -> the levels it may take.
    conditional
        Categorical feature -> {its level now: levels it may then take}; a level not named may go anywhere.
    rows
        Linear rows between features.
    implies
        Implications between features.
    only
        The features that may change; all others stay as they are. None: any may.
    """

    frozen: Sequence[str] = ()
    increase: Sequence[str] = ()
    decrease: Sequence[str] = ()
    ranges: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    max_step: Mapping[str, float] = field(default_factory=dict)
    allow: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    conditional: Mapping[str, Mapping[Any, Sequence[Any]]] = field(default_factory=dict)
    rows: Sequence[LinearRow] = ()
    implies: Sequence[Implies] = ()
    only: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for name in ("frozen", "increase", "decrease", "only"):
            if isinstance(getattr(self, name), str):
                raise CriterionError(
                    f"The '{name}' of Actionability must be a list of features, got the text {getattr(self, name)!r}. "
                    f"Write {name}=[{getattr(self, name)!r}]."
                )
        moving = {**dict.fromkeys(self.increase, "increase"), **dict.fromkeys(self.decrease, "decrease")}
        for name in self.frozen:
            if name in moving:
                raise CriterionError(
                    f"{name!r} is both frozen and to {moving[name]}: it cannot stay and move. Take it out of one list."
                )
        both = sorted(set(self.increase) & set(self.decrease))
        if both:
            raise CriterionError(f"{both[0]!r} may only increase and only decrease: that is frozen. Say frozen=[...].")
        if self.only is not None:
            _check_only(self.only, {**dict.fromkeys(self.frozen, "frozen"), **moving})
        for name, ends in self.ranges.items():
            _check_range(name, ends)
        for name, step in self.max_step.items():
            _check_step(name, step)

    def fixed(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the features, of all these, that stay as they are: frozen, or not among `only`."""
        return tuple(n for n in names if n in self.frozen or (self.only is not None and n not in self.only))

    # -- checks before solving ----------------------------------------------------------------------------------
    def check(self, query: Query) -> None:
        """Every feature known and of the right kind; warn of demands that the factual itself breaks."""
        schema = query.schema
        for name in (*self.frozen, *(self.only or ())):
            schema.index(name)
        for name in (*self.increase, *self.decrease, *self.max_step):
            if not isinstance(schema[name], (Numeric, Ordinal)):
                raise CriterionError(
                    f"{name!r} is {schema[name].kind}: its levels have no order to go up, down or step in. Use "
                    f"allow={{{name!r}: [...]}}, or declare it ordinal: Schema.infer(X, ordinal={{{name!r}: [...]}})."
                )
        for name in self.ranges:
            if not isinstance(schema[name], Numeric):
                raise CriterionError(f"{name!r} is {schema[name].kind}, not numeric: use allow={{{name!r}: [...]}}.")
        for name in (*self.allow, *self.conditional):
            if isinstance(schema[name], Numeric):
                raise CriterionError(f"{name!r} is numeric: use ranges={{{name!r}: (low, high)}}.")
        for demand in self.demands(query):
            if not bool(demand.holds(query, query.factual[None, :])[0]):
                warn(
                    f"The factual itself breaks the demand '{demand.text}', so every answer must repair that first.",
                    FactualViolatesDemand,
                )

    # -- demands ------------------------------------------------------------------------------------------------
    def demands(self, query: Query) -> list[Demand]:
        """Return one demand per feature and rule."""
        return [*self._single(query), *self._between(query)]

    def _single(self, query: Query) -> Iterator[Demand]:
        schema = query.schema
        for name in dict.fromkeys((*self.frozen, *self.fixed(schema.names))):
            yield Frozen(f"frozen {name}", schema.index(name))
        for name in self.increase:
            yield Direction(f"{name} may only increase", schema.index(name), 1)
        for name in self.decrease:
            yield Direction(f"{name} may only decrease", schema.index(name), -1)
        for name, (low, high) in self.ranges.items():
            a, b = -np.inf if low is None else float(low), np.inf if high is None else float(high)
            yield Between(f"range of {name} {_interval(a, b)}", schema.index(name), a, b, "range")
        for name, step in self.max_step.items():
            j = schema.index(name)
            if (
                isinstance(schema.features[j], Numeric) or query.factual[schema.slice(j)].any()
            ):  # from no level, no step
                yield self._step(query, name, float(step))
        for name, levels in self.allow.items():
            mask = self._mask(query, name, levels)
            yield LevelSet(f"{name} only {_names(levels)}", schema.index(name), mask)
        for name, table in self.conditional.items():
            now = query.value(schema.index(name))
            for level in table:
                schema[name].position(level)  # type: ignore[union-attr]
            if now in table:
                mask = self._mask(query, name, [*table[now], now])
                yield LevelSet(f"{name} from {now!r} only to {_names(table[now])}", schema.index(name), mask)

    def _step(self, query: Query, name: str, step: float) -> Demand:
        j = query.schema.index(name)
        feature = query.schema.features[j]
        if isinstance(feature, Numeric):
            hat = float(query.factual[query.schema.starts[j]])
            return Between(f"{name} moves by at most {number(step)}", j, hat - step, hat + step, "max_step")
        home = int(query.factual[query.schema.slice(j)].argmax())
        mask = np.abs(np.arange(feature.width) - home) <= step
        return LevelSet(f"{name} moves by at most {number(step)} levels", j, mask)

    def _mask(self, query: Query, name: str, levels: Sequence[Any]) -> Any:
        feature = query.schema[name]
        assert not isinstance(feature, Numeric)
        mask = np.zeros(feature.width, dtype=np.bool_)
        for level in levels:
            mask[feature.position(level)] = True
        if not mask.any():
            raise CriterionError(f"No level of {name!r} is allowed. Name at least one, or freeze it.")
        return mask

    def _between(self, query: Query) -> Iterator[Demand]:
        for row in self.rows:
            weights = np.zeros(query.schema.width)
            for name, weight in row.weights.items():
                weights[query.schema.slice(query.schema.index(name))] = _row_weights(query, name, float(weight))
            low = -np.inf if row.at_least is None else float(row.at_least)
            high = np.inf if row.at_most is None else float(row.at_most)
            words = " ".join(f"{w:+g} {n}" for n, w in row.weights.items()).lstrip("+")
            yield LinearDemand(f"{words} in {_interval(low, high)}", weights, low, high)
        for rule in self.implies:
            if_ = tuple(_condition(query, name, value) for name, value in rule.if_.items())
            then = tuple(_condition(query, name, value) for name, value in rule.then.items())
            words = f"if {_words(query, rule.if_)} then {_words(query, rule.then)}"
            yield Imply(words, if_, then)


def _check_range(name: str, ends: Any) -> None:
    """Refuse a range that is not a pair of numbers, low before high; None is open."""
    pair = isinstance(ends, (tuple, list)) and len(ends) == 2
    if not pair or not all(end is None or (isinstance(end, Real) and not isnan(end)) for end in ends):
        raise CriterionError(
            f"The range of {name!r} must be a pair (low, high) of numbers, got {ends!r}. Write e.g. "
            f"ranges={{{name!r}: (12, 24)}}; None leaves an end open."
        )
    low, high = ends
    if low is not None and high is not None and low > high:
        raise CriterionError(f"The range of {name!r} is empty: {low!r} is above {high!r}.")


def _check_only(only: Sequence[str], said: Mapping[str, str]) -> None:
    """Refuse a list that leaves nothing to change, or that contradicts another list of the same criterion."""
    if not only:
        raise CriterionError("only=[] lets nothing change, so nothing can be answered. Name features, or leave it out.")
    for name, how in said.items():
        if how == "frozen" and name in only:
            raise CriterionError(f"{name!r} is both frozen and among only=[...]. Take it out of one list.")
        if how != "frozen" and name not in only:
            raise CriterionError(
                f"{name!r} may only {how}, but is not among only=[...], so it stays. Add it there, or take it out of {how}."
            )


def _check_step(name: str, step: Any) -> None:
    if not isinstance(step, Real) or not float(step) >= 0:
        raise CriterionError(f"The max_step of {name!r} must be a number and not negative, got {step!r}.")


def _row_weights(query: Query, name: str, weight: float) -> Any:
    feature = query.schema[name]
    if isinstance(feature, Numeric):
        return weight
    if all(isinstance(level, (bool, int, float)) for level in feature.levels):
        return [weight * float(level) for level in feature.levels]
    raise CriterionError(
        f"{name!r} is {feature.kind} with text levels, so it has no number to put into a LinearRow. Use implies=[...]."
    )


def _condition(query: Query, name: str, value: Any) -> Imply.Condition:
    j = query.schema.index(name)
    feature = query.schema.features[j]
    if isinstance(feature, Numeric):
        low, high = value if isinstance(value, (tuple, list)) else (value, value)
        return Imply.Condition(j, -np.inf if low is None else float(low), np.inf if high is None else float(high))
    levels = value if isinstance(value, (tuple, list, set, frozenset)) else [value]
    mask = np.zeros(feature.width, dtype=np.bool_)
    for level in levels:
        mask[feature.position(level)] = True
    return Imply.Condition(j, levels=mask)


def _interval(low: float, high: float) -> str:
    left = "-inf" if np.isneginf(low) else number(low)
    right = "inf" if np.isposinf(high) else number(high)
    return f"({left}, {right})"


def _names(levels: Sequence[Any]) -> str:
    return ", ".join(map(str, levels))


def _words(query: Query, condition: Condition) -> str:
    """Return a condition in words, the same for equal ones: a record gives back tuples for lists, and numbers for NumPy's."""
    return " and ".join(f"{name} is {_value(query, name, value)}" for name, value in condition.items())


def _value(query: Query, name: str, value: Any) -> Any:
    if not isinstance(value, (tuple, list, set, frozenset)):
        return value
    values = [plain(v) for v in (sorted(value, key=str) if isinstance(value, (set, frozenset)) else value)]
    return tuple(values) if isinstance(query.schema[name], Numeric) else values
