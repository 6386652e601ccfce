"""One question as a person has put it together: the state of the page, which is the query of its address.

Names are short because they are all in the address; features go by their position, since a column may be called anything.
Whatever is at its default is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args
from urllib.parse import urlencode

from ifonly import Schema
from ifonly.studio.library import Numeric
from ifonly.studio.subject import Subject, parse_value
from ifonly.studio.told import Told

__all__ = ["EFFORTS", "Limits", "State", "as_text", "read_state"]

Move = Literal["", "lock", "up", "down"]
EFFORTS = {1: 0.25, 2: 0.5, 3: 1.0, 4: 2.0, 5: 4.0}  # difficulty -> weight in the distance
WAYS, SECONDS = 5, (5, 30, 120)
_USUAL_SECONDS = 30


@dataclass(frozen=True)
class Limits:
    """Limits that this person sets on one feature."""

    move: Move = ""
    low: float | None = None
    high: float | None = None
    step: float | None = None
    levels: tuple[int, ...] = ()
    effort: int = 3


@dataclass(frozen=True)
class State:
    """A row, what may change in it, and what is asked for.

    Attributes
    ----------
    subject
        The key of the model.
    row
        The position of the row in the data; None: typed in.
    edits
        Feature position -> its value, where it differs from the row.
    limits
        Feature position -> what this person says of it.
    want
        The positions of the wanted classes, any of which will do; none: the first choice.
    probability, at_least, at_most
        The least probability of the class, or the interval of a regression.
    ways, changes, seconds
        How many answers, how many changed features at most, how long to search.
    on
        The criteria that are switched on.
    """

    subject: str
    row: int | None = None
    edits: Mapping[int, Any] = field(default_factory=dict)
    limits: Mapping[int, Limits] = field(default_factory=dict)
    want: tuple[int, ...] = ()
    probability: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    ways: int = 1
    changes: int | None = None
    seconds: int = _USUAL_SECONDS
    on: tuple[str, ...] = ()

    def values(self, subject: Subject) -> tuple[Any, ...]:
        """Return the row as edited."""
        base = subject.values(self.row)
        return tuple(self.edits.get(j, value) for j, value in enumerate(base))

    def limit(self, j: int) -> Limits:
        """Return what the person says of a feature."""
        return self.limits.get(j, Limits())

    def with_limit(self, j: int, limits: Limits) -> State:
        """Return the state with other limits of one feature."""
        rest = {k: v for k, v in self.limits.items() if k != j}
        return replace(self, limits=rest if limits == Limits() else {**rest, j: limits})

    def query(self, first: str | None = None) -> str:
        """Return the state as the query of an address; `first` is the model that needs no mention."""
        pairs: list[tuple[str, Any]] = [] if self.subject == first else [("s", self.subject)]
        pairs += [("row", self.row)] if self.row is not None else []
        pairs += [(f"v{j}", as_text(value)) for j, value in sorted(self.edits.items())]
        for j, own in sorted(self.limits.items()):
            pairs += [(f"{name}{j}", value) for name, value in _pairs(own)]
        pairs += [("want", i) for i in self.want]
        named = {"p": self.probability, "ge": self.at_least, "le": self.at_most, "k": self.changes}
        pairs += [(name, _short(value)) for name, value in named.items() if value is not None]
        pairs += [("n", self.ways)] if self.ways != 1 else []
        pairs += [("t", self.seconds)] if self.seconds != _USUAL_SECONDS else []
        pairs += [("on", name) for name in self.on]
        return urlencode(pairs)


def _pairs(own: Limits) -> Iterable[tuple[str, Any]]:
    if own.move:
        yield "m", own.move
    for name, value in (("lo", own.low), ("hi", own.high), ("st", own.step)):
        if value is not None:
            yield name, _short(value)
    for level in own.levels:
        yield "lv", level
    if own.effort != 3:
        yield "e", own.effort


def _short(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def as_text(value: Any) -> str:
    """Return a value as it stands in a form field; a missing one is empty."""
    if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
        return ""
    if isinstance(value, bool) or not hasattr(value, "__float__") or isinstance(value, str):
        return str(value)
    return _short(float(value))


# -- reading ----------------------------------------------------------------------------------------------------------
def read_state(given: Sequence[tuple[str, str]], subject: Subject) -> State:
    """Return the state that an address or a form describes.

    Raises
    ------
    SchemaError
        When a value does not fit its feature or its field.
    """
    fields: dict[str, list[str]] = {}
    for name, value in given:
        fields.setdefault(name, []).append(value)
    one = {name: values[-1].strip() for name, values in fields.items()}
    row = _whole(one, "row", 0, len(subject.data) - 1)
    base, edits = subject.values(row), {}
    for j, feature in enumerate(subject.schema.features):
        if f"v{j}" in one:
            value = parse_value(one[f"v{j}"], feature)
            if as_text(value) != as_text(base[j]):
                edits[j] = value
    limits = {j: _limits(one, fields.get(f"lv{j}", []), j, subject.schema) for j in range(len(subject.schema))}
    on = tuple(name for name in subject.switches if name in fields.get("on", ()))
    ways, seconds = _whole(one, "n", 1, WAYS), _whole(one, "t", 1, max(SECONDS))
    return State(
        subject.key,
        row,
        edits,
        {j: own for j, own in limits.items() if own != Limits()},
        want=_wants(fields.get("want", ()), len(subject.classes)),
        probability=_number(one, "p", 0.0, 1.0),
        at_least=_number(one, "ge"),
        at_most=_number(one, "le"),
        ways=1 if ways is None else ways,
        changes=_whole(one, "k", 1, len(subject.schema)),
        seconds=_USUAL_SECONDS if seconds is None else seconds,
        on=on,
    )


def _wants(given: Sequence[str], classes: int) -> tuple[int, ...]:
    found = {_whole({"want": text.strip()}, "want", 0, classes - 1) for text in given}
    return tuple(sorted(i for i in found if i is not None))


def _limits(one: dict[str, str], levels: Sequence[str], j: int, schema: Schema) -> Limits:
    feature = schema.features[j]
    move = one.get(f"m{j}", "")
    if move not in get_args(Move):
        raise Told("slip.move", text=move)
    effort = _whole(one, f"e{j}", 1, 5)
    if not isinstance(feature, Numeric):
        known = {str(i): i for i in range(len(feature.levels))}
        chosen = tuple(sorted({known[text] for text in levels if text in known}))
        everything = len(chosen) == len(feature.levels)
        step = _number(one, f"st{j}", 1) if feature.kind == "ordinal" else None
        return Limits(move, step=step, levels=() if everything else chosen, effort=effort or 3)  # type: ignore[arg-type]
    low, high, step = _number(one, f"lo{j}"), _number(one, f"hi{j}"), _number(one, f"st{j}", 0.0)
    low = None if low is not None and low <= feature.lower else low
    high = None if high is not None and high >= feature.upper else high
    if low is not None and high is not None and low > high:
        low, high = high, low
    return Limits(move, low, high, step or None, effort=effort or 3)  # type: ignore[arg-type]


def _number(one: dict[str, str], name: str, least: float | None = None, most: float | None = None) -> float | None:
    text = one.get(name, "")
    if not text:
        return None
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        raise Told("slip.number", text=text) from None
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - only NaN differs from itself
        raise Told("slip.finite", text=text)
    if (least is not None and value < least) or (most is not None and value > most):
        ends = {"low": "−∞" if least is None else as_text(least), "high": "∞" if most is None else as_text(most)}
        raise Told("slip.range", text=text, **ends)
    return value


def _whole(one: dict[str, str], name: str, least: int, most: int) -> int | None:
    value = _number(one, name, least, most)
    if value is not None and value != int(value):
        raise Told("slip.whole", text=one[name])
    return None if value is None else int(value)
