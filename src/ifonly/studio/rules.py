"""From the state of the page to a question for the explainer, and the rules of the house in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ifonly import (
    Actionability,
    Causality,
    Diversity,
    IfOnlyError,
    Manifold,
    Proximity,
    Robustness,
    Sparsity,
    Target,
)
from ifonly.policy import write_policy
from ifonly.studio.state import EFFORTS, State
from ifonly.studio.subject import Subject
from ifonly.studio.told import Told

__all__ = ["HouseRule", "Question", "house_rules", "merged", "question"]


@dataclass(frozen=True)
class Question:
    """Arguments of one `Explainer.explain`."""

    row: pd.DataFrame
    want: Any
    n: int
    criteria: tuple[Any, ...]
    seconds: float


@dataclass(frozen=True)
class HouseRule:
    """A rule of the law or the house: its kind, its feature (None: several), what fills its sentence, and who makes it."""

    kind: str
    feature: int | None
    values: Mapping[str, Any]
    by: str = "house"


def question(state: State, subject: Subject, now: Any) -> Question:
    """Return the question that a state stands for; `now` is the outcome of the row as it is."""
    criteria: list[Any] = [c for c in (_actionability(state, subject), _proximity(state, subject)) if c is not None]
    if state.changes is not None:
        criteria.append(Sparsity(at_most=state.changes))
    criteria += [subject.switches[name] for name in state.on]
    row = subject.frame(state.values(subject))
    return Question(row, wanted(state, subject, now), state.ways, tuple(criteria), float(state.seconds))


def wanted(state: State, subject: Subject, now: Any) -> Any:
    """Return the wish: a class, several of which any will do, a class with a probability, or an interval."""
    if not subject.classes:
        return Target(at_least=state.at_least, at_most=state.at_most)
    if len(state.want) > 1:
        if state.probability is not None:
            raise Told("slip.several_probability")
        return [subject.classes[i] for i in state.want]
    label = subject.classes[state.want[0] if state.want else subject.want_index(now)]
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
    """Return the rules of the law and the house, one by one, the law first."""
    made = [(subject.maker(c), c) for c in subject.explainer.criteria]
    rules = [replace(rule, by=by) for by, c in made for rule in _rules(c, subject)]
    return sorted(rules, key=lambda rule: rule.by != "law")


def _rules(criterion: Any, subject: Subject) -> Iterator[HouseRule]:
    if isinstance(criterion, Actionability):
        yield from _demands(criterion, subject)
    if isinstance(criterion, Sparsity) and criterion.at_most is not None:
        yield HouseRule("changes", None, {"k": criterion.at_most})
    if isinstance(criterion, Manifold):
        yield HouseRule("manifold", None, {})
    if isinstance(criterion, Robustness):
        values = {} if criterion.radius is None else {"radius": criterion.radius}
        yield HouseRule("robust_by" if values else "robust", None, values)
    if isinstance(criterion, Causality):
        for name, cause in criterion.causes.items():
            yield HouseRule("follows", subject.schema.index(name), {"causes": tuple(cause.parents)})


def _demands(criterion: Actionability, subject: Subject) -> Iterator[HouseRule]:
    index = subject.schema.index
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
def merged(subject: Subject, asked: Question) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the criteria of house and person as a policy can hold them, those of the law, and those it cannot hold."""
    law = [c for c in subject.explainer.criteria if subject.maker(c) == "law"]
    everything = [c for c in (*subject.explainer.criteria, *asked.criteria) if c not in law]
    kept: list[Any] = [c for c in everything if isinstance(c, Proximity)][-1:]
    bounds = [c.at_most for c in everything if isinstance(c, Sparsity) and c.at_most is not None]
    prices = [c.price for c in everything if isinstance(c, Sparsity) and c.price is not None]
    if bounds or prices:
        kept.append(Sparsity(at_most=min(bounds, default=None), price=prices[-1] if prices else None))
    acts = [c for c in everything if isinstance(c, Actionability)]
    if acts:
        kept.append(_together(acts, subject))
    rest = [c for c in everything if not isinstance(c, Proximity | Actionability | Sparsity)]
    for kind in (Manifold, Causality, Robustness, Diversity):
        kept += [c for c in rest if isinstance(c, kind) and _is_written(subject, c)][:1]
    return kept, law, [c for c in rest if all(c is not k for k in kept)]


def _is_written(subject: Subject, criterion: Any) -> bool:
    """Whether a policy can hold a criterion: one with a fitted model in it stays in Python."""
    try:
        write_policy(subject.schema, [criterion])
    except IfOnlyError:
        return False
    return True


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
