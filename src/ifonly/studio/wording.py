"""Wording of demands, in the language of the page; and each loosening as the next state to ask with.

The library names demands and loosenings in text (`Infeasible.conflict`, `Infeasible.relaxations`). A text is matched with
the rules that were in force, so that it can be said in the reader's language and acted on. A text that no rule accounts
for is shown as it is, without a button.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import floor, isfinite
from typing import Any

from ifonly import Infeasible, Target
from ifonly.studio.language import Words
from ifonly.studio.library import Numeric, makers_of
from ifonly.studio.rules import HouseRule, Question, house_rules
from ifonly.studio.state import State
from ifonly.studio.subject import Subject
from ifonly.tolerances import FEASIBILITY

__all__ = ["Clash", "Loosening", "house_words", "understand"]

_ROOM = FEASIBILITY
_NUMBER = r"(-?[\d.]+(?:e[-+]?\d+)?|-?inf|None)"


@dataclass(frozen=True)
class Loosening:
    """One way out: a sentence, and the state that takes it (None: not this person's to take)."""

    text: str
    state: State | None


@dataclass(frozen=True)
class Clash:
    """One demand of the conflict, who makes it, and its loosenings."""

    text: str
    by: str
    loosenings: tuple[Loosening, ...]


def understand(error: Infeasible, state: State, asked: Question, subject: Subject, words: Words) -> list[Clash]:
    """Return the clashing demands in words, each with what would help."""
    found = []
    makers = _makers(state, asked, subject)
    for text in error.conflict:
        said, by, feature = _demand(text, state, subject, words, makers)
        if by == "wish" and subject.classes:
            said = _wished(asked.want, words)
        ways = [
            _loosening(r.change, feature, text, by, state, subject, words, makers)
            for r in error.relaxations
            if r.demand == text
        ]
        found.append(Clash(said, by, tuple(ways)))
    return found


def _makers(state: State, asked: Question, subject: Subject) -> Mapping[str, str]:
    """Return the text of each demand -> who makes it; the law and the house come before the person."""
    house = {by: [c for c in subject.explainer.criteria if subject.maker(c) == by] for by in ("law", "house")}
    offered = [subject.switches[name] for name in state.on]
    person = [c for c in asked.criteria if all(c is not one for one in offered)]
    return makers_of(
        subject.explainer, asked.row, asked.want, [*house.items(), ("person", person), ("switch", offered)]
    )


# -- demands ----------------------------------------------------------------------------------------------------------
def _patterns() -> list[tuple[str, str]]:
    return [
        ("lock", r"frozen (?P<name>.+)"),
        ("up", r"(?P<name>.+) may only increase"),
        ("down", r"(?P<name>.+) may only decrease"),
        ("range", rf"range of (?P<name>.+) \({_NUMBER}, {_NUMBER}\)"),
        ("step", rf"(?P<name>.+) moves by at most {_NUMBER}(?: levels)?"),
        ("levels", r"(?P<name>.+) only (?P<rest>.+)"),
        ("changes", r"change at most (\d+) features?"),
        ("want", r"want (?P<rest>.+)"),
    ]


def _demand(
    text: str, state: State, subject: Subject, words: Words, makers: Mapping[str, str]
) -> tuple[str, str, int | None]:
    """Return a demand in words, who makes it (person, law, house, wish or a switch), and its feature."""
    by = makers.get(text, "switch" if state.on else "house")
    for kind, pattern in _patterns():
        match = re.fullmatch(pattern, text, flags=re.DOTALL)
        if match is None:
            continue
        if kind == "want":
            inside = re.fullmatch(rf"a prediction in \({_NUMBER}, {_NUMBER}\)", match["rest"])
            if inside is not None:
                return words("no.want_interval", a=inside[1], b=inside[2]), "wish", None
            return words("no.want", what=match["rest"]), "wish", None
        if kind == "changes":
            return words("no.changes_1" if match[1] == "1" else "no.changes", k=match[1]), by, None
        name = match["name"]
        if name not in subject.schema.names:
            continue
        j = subject.schema.index(name)
        label = subject.schema.label(name)
        numbers = [g for g in match.groups() if g is not None and g != name]
        values = {"feature": label, "a": numbers[0] if numbers else "", "b": numbers[-1] if numbers else ""}
        return words(f"no.{kind}", **values), by, j
    return text, by, None


def _wished(want: Any, words: Words) -> str:
    labels = want if isinstance(want, list) else [want.label if isinstance(want, Target) else want]
    what = f" {words('no.or')} ".join(map(str, labels))
    if isinstance(want, Target) and want.probability is not None:
        return words("no.want_probability", what=what, p=words.number(want.probability))
    return words("no.want", what=what)


# -- loosenings -------------------------------------------------------------------------------------------------------
def _loosening(
    change: str,
    j: int | None,
    demand: str,
    by: str,
    state: State,
    subject: Subject,
    words: Words,
    makers: Mapping[str, str],
) -> Loosening:
    parts = [_part(piece, j, demand, by, state, subject, makers) for piece in change.split("; ")]
    sentences = [words(key, **values) if key else str(values["text"]) for key, values, _ in parts]
    after: State | None = state
    for _, _, act in parts:
        after = None if after is None or act is None else act(after)
    return Loosening(" · ".join(sentences), after)


Act = Callable[[State], State]
Part = tuple[str, dict[str, Any], Act | None]


def _part(
    change: str, j: int | None, demand: str, by: str, state: State, subject: Subject, makers: Mapping[str, str]
) -> Part:
    """Return what a loosening is called, what fills its sentence, and how to take it."""
    if change.startswith("drop: "):
        return _dropped(change.removeprefix("drop: "), state, subject, makers)
    if demand.startswith("change at most"):
        found = re.search(r"-> (\d+)", change)
        if found is None:
            return "", {"text": change}, None
        k = int(found[1])
        act = (lambda s: replace(s, changes=k)) if by == "person" else None
        return "loosen.changes", {"k": k}, act
    if by == "switch":
        return "loosen.switch", {}, lambda s: replace(s, on=())
    if by == "wish":
        return _wish(change, state)
    if j is None:
        return "", {"text": change}, None
    key, values, act = _on_feature(change, j, subject)
    return key, values, act if by == "person" else None


def _wish(change: str, state: State) -> Part:
    """Return a wish that is within reach: a smaller probability, or a wider interval."""
    wider = re.search(rf"-> \({_NUMBER}, {_NUMBER}\)$", change)
    if wider is not None:
        low, high = _end(wider[1]), _end(wider[2])
        values = {"a": "−∞" if low is None else wider[1], "b": "∞" if high is None else wider[2]}
        # The end that is named is the last value within reach; a wish that ends exactly there leaves no room to clear it.
        low = None if low is None else low - _ROOM * max(1.0, abs(low))
        high = None if high is None else high + _ROOM * max(1.0, abs(high))
        return "loosen.interval", values, lambda s: replace(s, at_least=low, at_most=high)
    smaller = re.search(rf"-> {_NUMBER}$", change)
    if smaller is not None and state.probability is not None:
        p = floor(float(smaller[1]) * 1000) / 1000
        return "loosen.probability", {"p": p}, lambda s: replace(s, probability=p)
    return "", {"text": change}, None


def _on_feature(change: str, j: int, subject: Subject) -> Part:
    feature = subject.schema.features[j]
    label = subject.schema.label(feature.name)
    become = re.search(r"\(it would become (.+)\)$", change, flags=re.DOTALL)
    towards = re.search(rf" (increase|decrease) to {_NUMBER}$", change)
    wider = re.search(rf"-> \({_NUMBER}, {_NUMBER}\)$", change)
    step = re.search(rf"-> {_NUMBER}$", change)
    level = re.search(r" to be (.+)$", change, flags=re.DOTALL)
    if become is not None:
        return "loosen.lock", {"feature": label, "value": become[1]}, _free(j)
    if " increase to " in change or " decrease to " in change:
        value = towards[2] if towards is not None else change.rpartition(" to ")[2]
        return "loosen.move", {"feature": label, "value": value}, _free(j)
    if wider is not None:
        low, high = _end(wider[1]), _end(wider[2])
        values = {"feature": label, "a": "−∞" if low is None else wider[1], "b": "∞" if high is None else wider[2]}
        return "loosen.range", values, lambda s: s.with_limit(j, replace(s.limit(j), low=low, high=high))
    if step is not None:
        value = float(step[1])
        return (
            "loosen.step",
            {"feature": label, "value": step[1]},
            lambda s: s.with_limit(j, replace(s.limit(j), step=value)),
        )
    if level is not None and not isinstance(feature, Numeric):
        added = next((i for i, known in enumerate(feature.levels) if str(known) == level[1]), None)
        if added is not None:
            return "loosen.levels", {"feature": label, "value": level[1]}, _allowed(j, added)
    return "", {"text": change}, None


def _free(j: int) -> Act:
    return lambda s: s.with_limit(j, replace(s.limit(j), move=""))


def _allowed(j: int, level: int) -> Act:
    def act(state: State) -> State:
        own = state.limit(j)
        # An ordinal step is said in levels too, and gives way to the level that is named.
        levels = tuple(sorted({*own.levels, level})) if own.levels else ()
        return state.with_limit(j, replace(own, levels=levels, step=None))

    return act


def _dropped(demand: str, state: State, subject: Subject, makers: Mapping[str, str]) -> Part:
    """Return how to do without a demand altogether, where it is the person's own."""
    own = makers.get(demand) == "person"
    for kind, pattern in _patterns():
        match = re.fullmatch(pattern, demand, flags=re.DOTALL)
        if match is None or kind == "want":
            continue
        if kind == "changes":
            return "loosen.no_changes", {}, (lambda s: replace(s, changes=None)) if own else None
        if match["name"] in subject.schema.names:
            j = subject.schema.index(match["name"])
            return "loosen.drop", {"feature": subject.schema.label(match["name"])}, _without(kind, j) if own else None
    if state.on and demand not in makers:
        return "loosen.switch", {"text": demand}, lambda s: replace(s, on=())
    return "", {"text": demand}, None


def _without(kind: str, j: int) -> Act:
    """Return what takes one kind of limit off a feature."""
    if kind == "range":
        return lambda s: s.with_limit(j, replace(s.limit(j), low=None, high=None))
    if kind == "step":
        return lambda s: s.with_limit(j, replace(s.limit(j), step=None))
    if kind == "levels":
        return lambda s: s.with_limit(j, replace(s.limit(j), levels=()))
    return _free(j)


def _end(text: str) -> float | None:
    if text == "None":
        return None
    value = float(text)
    return value if isfinite(value) else None


# -- the house --------------------------------------------------------------------------------------------------------
Said = tuple[str, str]  # who makes a rule, and the rule in words


def house_words(subject: Subject, words: Words) -> tuple[dict[int, list[Said]], list[Said]]:
    """Return the rules of law and house in words: those of one feature by its position, and those between features."""
    single: dict[int, list[Said]] = {}
    between: list[Said] = []
    for rule in house_rules(subject):
        said = rule.by, _house(rule, subject, words)
        if rule.feature is None:
            between.append(said)
        else:
            single.setdefault(rule.feature, []).append(said)
    return single, between


def _house(rule: HouseRule, subject: Subject, words: Words) -> str:
    label = subject.schema.label
    values = dict(rule.values)
    if rule.kind == "row":
        terms = [f"{weight:+g} × {label(name)}" for name, weight in values["weights"].items()]
        return words("house.row", sum=" ".join(terms).lstrip("+"), **_ends(values, words))
    if rule.kind == "implies":
        both = {side: _conditions(values[side], subject, words) for side in ("if", "then")}
        return words("house.implies", given=both["if"], then=both["then"])
    if rule.kind == "range":
        return words("house.range", **_ends(values, words))
    if rule.kind == "changes" and values["k"] == 1:
        return words("no.changes_1")
    if rule.kind == "follows":
        return words("house.follows", causes=", ".join(label(name) for name in values["causes"]))
    if rule.kind == "robust_by":
        return words("house.robust_by", share=words.percent(values["radius"]))
    if "levels" in values:
        values["levels"] = ", ".join(map(str, values["levels"]))
    return words(f"house.{rule.kind}", **values)


def _ends(values: dict[str, Any], words: Words) -> dict[str, str]:
    low, high = values["low"], values["high"]
    return {"low": "−∞" if low is None else words.number(low), "high": "∞" if high is None else words.number(high)}


def _conditions(given: dict[str, Any], subject: Subject, words: Words) -> str:
    texts = []
    for name, value in given.items():
        if isinstance(subject.schema[name], Numeric):
            low, high = value if isinstance(value, tuple | list) else (value, value)
            text = words("house.between", **_ends({"low": low, "high": high}, words))
        else:
            text = ", ".join(map(str, value)) if isinstance(value, tuple | list | set | frozenset) else str(value)
        texts.append(f"{subject.schema.label(name)}: {text}")
    return "; ".join(texts)
