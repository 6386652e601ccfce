"""The catalogue for extenders: every name is there, and so is every type that a hook of theirs is given or returns."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol, get_args, get_origin, get_type_hints

import pytest

import ifonly
import ifonly.extend


def test_every_name_of_the_catalogue_is_there() -> None:
    assert set(dir(ifonly.extend)) == set(ifonly.extend.__all__)
    assert all(getattr(ifonly.extend, name) is not None for name in ifonly.extend.__all__)
    with pytest.raises(AttributeError, match=r"'ifonly\.extend' has no attribute 'Solver'"):
        ifonly.extend.Solver  # noqa: B018


def test_the_catalogue_loads_no_framework_and_no_kit_until_asked() -> None:
    code = (
        "import sys, ifonly.extend as e; heavy = {'sklearn', 'scipy.optimize', 'highspy', 'ifonly.testing',"
        "'ifonly.search.engines'}; print(sorted(heavy & set(sys.modules))); e.check_form, e.ENGINES;"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["[]", "['ifonly.search.engines', 'ifonly.testing']"]


def test_the_reference_lists_all_names() -> None:
    text = (Path(__file__).resolve().parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| [a-z ]+ \| (`.*) \|$", text[text.index("\n## Extending\n") :], flags=re.MULTILINE)
    assert {name for row in table for name in re.findall(r"`(\w+)`", row)} == {*ifonly.extend.__all__}


def test_a_reader_of_ours_needs_no_other_names() -> None:
    """That of networks could be anybody's: all that it imports of ours is in the catalogue."""
    reader = Path(ifonly.__file__).parent / "models" / "readers" / "sklearn_mlp.py"
    tree = ast.parse(reader.read_text(encoding="utf-8"))
    froms = [node for node in tree.body if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ifonly")]
    assert len(froms) > 5
    assert not {alias.name for node in froms for alias in node.names} - {*ifonly.extend.__all__}


# Classes that people subclass, though they have no abstract method.
BASES = {"BoxDemand", "Criterion", "Demand", "Further", "Link", "Rule"}
CLASSES = {name: value for name in ifonly.extend.__all__ if inspect.isclass(value := getattr(ifonly.extend, name))}
KINDS = {
    name: kind
    for name, kind in CLASSES.items()
    if name in BASES or getattr(kind, "_is_protocol", False) or getattr(kind, "__abstractmethods__", ())
}
# Fields that whoever makes or reads a value of the catalogue leaves alone.
OURS = {
    "Column.curve": "of a column behind a transformer of our own",
    "Column.weights": "Column is made by Source",
    "Lift.filled": "made by Lift.of",
    "Further.known": "filled in by the search for several answers",
    "Further.solved": "the same",
    "Model.clock": "measured by the model itself",
    "Model.memo": "a cache",
    "Query.goal": "a Goal, as demands see it that are imported by goals",
    "Source.memo": "a cache",
    "Source.tuning": "a group of the Tuning",
    "Training.memo": "a cache",
}


def hooks(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, its own and those that it inherits from classes of ours."""
    for base in kind.__mro__:
        for name, member in vars(base).items():
            if base.__module__.startswith("ifonly.") and (not name.startswith("_") or name == "__call__"):
                function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
                if inspect.isfunction(function):
                    yield name, function


def named(hint: Any) -> Iterator[type]:
    """The classes of an annotation, those of its arguments included."""
    if isinstance(hint, list | tuple):
        for part in hint:
            yield from named(part)
    elif get_args(hint):
        yield from named([get_origin(hint), *get_args(hint)])
    elif inspect.isclass(hint):
        yield hint


def unknown(hint: Any) -> list[str]:
    """The classes of an annotation that are ours, and not in the catalogue."""
    return [c.__name__ for c in named(hint) if c.__module__.startswith("ifonly") and c not in CLASSES.values()]


@pytest.mark.parametrize("name", KINDS)
def test_what_a_hook_is_given_and_returns_is_in_the_catalogue(name: str) -> None:
    for hook, function in hooks(KINDS[name]):
        missing = {of: unknown(hint) for of, hint in get_type_hints(function).items()}
        assert not any(missing.values()), f"{name}.{hook}: {missing}"


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "Tuning"])
def test_so_is_what_its_values_are_made_of(name: str) -> None:
    kind = CLASSES[name]
    own = [f.name for f in fields(kind)] if is_dataclass(kind) else list(getattr(kind, "_fields", ()))
    hints = get_type_hints(kind) if own else {}
    missing = {field: unknown(hints[field]) for field in own if f"{name}.{field}" not in OURS}
    assert not any(missing.values()), missing


def test_every_field_that_is_excused_is_there() -> None:
    for name in OURS:
        kind, _, field = name.partition(".")
        assert unknown(get_type_hints(CLASSES[kind])[field]), name


def test_what_is_not_in_the_catalogue_is_seen() -> None:
    class Hidden:
        pass

    Hidden.__module__ = "ifonly.hidden"

    class Hook(Protocol):
        def hook(self, one: dict[str, tuple[Hidden, ...]]) -> ifonly.extend.Found: ...

    hints = get_type_hints(Hook.hook, localns={"Hidden": Hidden})
    assert [unknown(hint) for hint in hints.values()] == [["Hidden"], []]
