"""From the state of the page to a question for the explainer, and the rules of the house in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ifonly import Actionability, Proximity, Sparsity, Target
from ifonly.studio.state import EFFORTS, State
from ifonly.studio.subject import Subject

__all__ = ["HouseRule", "Question", "house_rules", "merged", "question"]


@dataclass(frozen=True)
class Question:
    """Everything that `Explainer.explain` takes."""

    row: pd.DataFrame
    want: Any
    n: int
    criteria: tuple[Any, ...]
    seconds: float


@dataclass(frozen=True)
class HouseRule:
    """A rule of the house: what kind it is, the feature it is about (None: several), and what fills its sentence."""

    kind: str
    feature: int | None
    values: Mapping[str, Any]


def question(state: State, subject: Subject, now: Any) -> Question:
    """Return the question that a state stands for; `now` is the outcome of the row as it is."""
    criteria: list[Any] = [c for c in (_actionability(state, subject), _proximity(state, subject)) if c is not None]
    if state.changes is not None:
        criteria.append(Sparsity(at_most=state.changes))
    criteria += [subject.switches[name] for name in state.on]
    row = subject.frame(state.values(subject))
    return Question(row, wanted(state, subject, now), state.ways, tuple(criteria), float(state.seconds))


def wanted(state: State, subject: Subject, now: Any) -> Any:
    """Return the wish: a class, a class with a probability, or an interval."""
    if not subject.classes:
        return Target(at_least=state.at_least, at_most=state.at_most)
    label = subject.classes[subject.want_index(now) if state.want is None else state.want]
    return label if state.probability is None else Target(label, probability=state.probability)


def _actionability(state: State, subject: Subject) -> Actionability | None:
    names, own = subject.schema.names, sorted(state.limits.items())
    features = subject.schema.features
    found = Actionability(
        frozen=tuple(names[j] for j, limit in own if limit.move == "lock"),
        increase=tuple(names[j] for j, limit in own if limit.move == "up"),
        decrease=tuple(names[j] for j, limit in own if limit.move == "down"),
        ranges={
            names[j]: (limit.low, limit.high) for j, limit in own if limit.low is not None or limit.high is not None
        },
        max_step={names[j]: limit.step for j, limit in own if limit.step is not None},
        allow={names[j]: tuple(features[j].levels[i] for i in limit.levels) for j, limit in own if limit.levels},  # type: ignore[union-attr]
    )
    return None if found == Actionability() else found


def _proximity(state: State, subject: Subject) -> Proximity | None:
    """Return the house's own distance, with the weights of what this person finds easy or hard."""
    efforts = {subject.schema.names[j]: EFFORTS[own.effort] for j, own in state.limits.items() if own.effort != 3}
    if not efforts:
        return None
    house = next((c for c in subject.explainer.criteria if isinstance(c, Proximity)), Proximity("l1", scale="auto"))
    weights = {**house.weights, **{name: house.weights.get(name, 1.0) * w for name, w in efforts.items()}}
    return replace(house, weights=weights)


# -- the house --------------------------------------------------------------------------------------------------------
def house_rules(subject: Subject) -> list[HouseRule]:
    """Return the rules of the house, one by one, in the order of the policy."""
    return [rule for c in subject.explainer.criteria for rule in _rules(c, subject)]


def _rules(criterion: Any, subject: Subject) -> Iterator[HouseRule]:
    index = subject.schema.index
    if isinstance(criterion, Sparsity) and criterion.at_most is not None:
        yield HouseRule("changes", None, {"k": criterion.at_most})
    if not isinstance(criterion, Actionability):
        return
    for kind, listed in (
        ("lock", criterion.fixed(subject.schema.names)),
        ("up", criterion.increase),
        ("down", criterion.decrease),
    ):
        for name in listed:
            yield HouseRule(kind, index(name), {})
    for name, (low, high) in criterion.ranges.items():
        yield HouseRule("range", index(name), {"low": low, "high": high})
    for name, step in criterion.max_step.items():
        yield HouseRule("step", index(name), {"step": step})
    for name, levels in criterion.allow.items():
        yield HouseRule("levels", index(name), {"levels": tuple(levels)})
    for name, table in criterion.conditional.items():
        for level, to in table.items():
            yield HouseRule("from", index(name), {"level": level, "levels": tuple(to)})
    for row in criterion.rows:
        yield HouseRule("row", None, {"weights": dict(row.weights), "low": row.at_least, "high": row.at_most})
    for rule in criterion.implies:
        yield HouseRule("implies", None, {"if": dict(rule.if_), "then": dict(rule.then)})


# -- one policy out of two --------------------------------------------------------------------------------------------
def merged(subject: Subject, asked: Question) -> tuple[list[Any], list[Any]]:
    """Return the criteria of house and person as a policy can hold them, one of a kind, and those it cannot hold."""
    everything = [*subject.explainer.criteria, *asked.criteria]
    nearest = [c for c in everything if isinstance(c, Proximity)][-1:]
    acts = [c for c in everything if isinstance(c, Actionability)]
    bounds = [c.at_most for c in everything if isinstance(c, Sparsity) and c.at_most is not None]
    prices = [c.price for c in everything if isinstance(c, Sparsity) and c.price is not None]
    kept: list[Any] = list(nearest)
    if bounds or prices:
        kept.append(Sparsity(at_most=min(bounds, default=None), price=prices[-1] if prices else None))
    if acts:
        kept.append(_together(acts, subject))
    rest = [c for c in everything if not isinstance(c, Proximity | Actionability | Sparsity)]
    holds = [c for c in rest if type(c).__name__ == "Manifold"][:1]
    return [*kept, *holds], [c for c in rest if all(c is not h for h in holds)]


def _together(acts: list[Actionability], subject: Subject) -> Actionability:
    """Return one criterion that demands what several demand together."""
    up = {name for a in acts for name in a.increase}
    down = {name for a in acts for name in a.decrease}
    order = subject.schema.names
    frozen = {name for a in acts for name in a.fixed(order)} | (up & down)
    ranges: dict[str, tuple[float | None, float | None]] = {}
    steps: dict[str, float] = {}
    allow: dict[str, tuple[Any, ...]] = {}
    for a in acts:
        for name, (low, high) in a.ranges.items():
            ranges[name] = _meet(ranges.get(name, (None, None)), (low, high))
        for name, step in a.max_step.items():
            steps[name] = min(step, steps.get(name, step))
        for name, levels in a.allow.items():
            allow[name] = tuple(level for level in levels if level in allow.get(name, levels))
    return Actionability(
        frozen=tuple(n for n in order if n in frozen),
        increase=tuple(n for n in order if n in up - frozen),
        decrease=tuple(n for n in order if n in down - frozen),
        ranges=ranges,
        max_step=steps,
        allow=allow,
        conditional={name: table for a in acts for name, table in a.conditional.items()},
        rows=tuple(row for a in acts for row in a.rows),
        implies=tuple(rule for a in acts for rule in a.implies),
    )


def _meet(
    one: tuple[float | None, float | None], other: tuple[float | None, float | None]
) -> tuple[float | None, float | None]:
    lows = [low for low in (one[0], other[0]) if low is not None]
    highs = [high for high in (one[1], other[1]) if high is not None]
    return max(lows, default=None), min(highs, default=None)
