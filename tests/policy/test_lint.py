"""The lint of a policy: each slip is named, with what to do; a sound policy has nothing to say."""

from __future__ import annotations

from typing import Any

import pytest

from ifonly import Actionability, Implies, LinearRow, Proximity, SchemaError, Sparsity
from ifonly.data.schema import Binary, Categorical, Integer, Numeric, Ordinal, Schema
from ifonly.policy import lint

SCHEMA = Schema(
    (
        Integer("age", 19, 75),
        Integer("duration", 4, 72),
        Numeric("income", 0.0, 9.5),
        Categorical("job", ("none", "part", "full")),
        Ordinal("grade", ("low", "middle", "high")),
        Binary("own_home", (False, True)),
    )
)
SOUND = Actionability(increase=["age"])


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"ranges": {"duration": (80, 90)}}, "range of 'duration' lies outside the data: the data go from 4 to 72"),
        ({"ranges": {"duration": (None, 72)}}, "range of 'duration' never binds"),
        ({"ranges": {"duration": (12, 100)}}, "goes beyond the data"),
        ({"max_step": {"duration": 68}}, "max_step of 'duration' never binds: it may only move between 4 and 72"),
        ({"max_step": {"grade": 2}}, "max_step of 'grade' never binds: it has 3 levels"),
        ({"allow": {"job": ["none", "part", "full"]}}, "allow of 'job' never binds: it names all"),
        ({"allow": {"job": ["part"]}, "frozen": ["job"]}, "allow of 'job' never binds: the feature is frozen"),
        ({"rows": [LinearRow({"age": 1, "own_home": 5}, at_most=80)]}, "between 19 and 80"),
        ({"rows": [LinearRow({"age": -1, "income": 1}, at_least=0)]}, "A rule can never be met"),
        ({"implies": [Implies({"income": (10, None)}, {"job": "full"})]}, "cannot happen"),
        ({"implies": [Implies({"job": "full"}, {"income": (0, 9.5)})]}, "holds anyway"),
    ],
)
def test_a_slip_is_named(rule: dict[str, Any], words: str) -> None:
    found = lint(SCHEMA, [SOUND, Actionability(**rule)])
    assert len(found) == 1
    assert words in found[0]
    assert found[0].count(". ") >= 1  # and what to do


@pytest.mark.parametrize(
    "rule",
    [
        {"ranges": {"duration": (12, 60), "income": (1.0, None)}},
        {"max_step": {"duration": 67, "grade": 1}},
        {"allow": {"job": ["none", "part"]}},
        {"rows": [LinearRow({"age": 1, "own_home": 5}, at_most=79)]},
        {"implies": [Implies({"income": (9.5, None)}, {"job": ["part", "full"]})]},
        {"only": ["age", "duration", "income"]},
    ],
)
def test_what_can_bind_is_left_alone(rule: dict[str, Any]) -> None:
    assert lint(SCHEMA, [SOUND, Actionability(**rule), Sparsity(at_most=2), Proximity()]) == []


def test_protected_attributes() -> None:
    names = ("sex", "race", "MaritalStatus", "native-country", "personal_status", "Age", "wage", "language", "usage")
    schema = Schema(tuple(Categorical(n, ("a", "b")) for n in names))
    found = " ".join(lint(schema, []))
    assert [n for n in names if f"{n!r} may change" in found] == list(names[:6])
    assert lint(schema, [Actionability(frozen=names[:6])]) == []
    assert lint(schema, [Actionability(only=["wage", "usage"])]) == []
    # An age that may only increase is no slip; a category has no direction.
    assert "'age' may change" in lint(SCHEMA, [])[0]
    assert lint(SCHEMA, [SOUND]) == []
    assert lint(SCHEMA, [SOUND], protected=["own_home"])[0].startswith("'own_home' may change")
    with pytest.raises(SchemaError):
        lint(SCHEMA, [], protected=["home"])


def test_costs_of_what_cannot_change() -> None:
    house = Actionability(frozen=["age", "job", "grade", "own_home"])
    found = lint(SCHEMA, [house, Sparsity(at_most=2), Proximity(weights={"age": 2.0}, tables={"job": {"full": 1.0}})])
    assert [text.split(" ")[0] for text in found] == ["at_most", "'age'", "'job'"]
    assert "no question has an answer" in lint(SCHEMA, [Actionability(frozen=SCHEMA.names)])[-1]
