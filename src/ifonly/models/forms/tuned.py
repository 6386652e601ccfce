"""Forms with other tuned numbers than the default ones."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from ifonly.models.forms.curves import Curve, Softmax
from ifonly.models.forms.polynomials import Polynomials
from ifonly.models.forms.trees import Trees
from ifonly.runtime.tuning import Shaping

__all__ = ["tuned"]

T = TypeVar("T")


def tuned(form: T, numbers: Shaping) -> T:
    """Return the same form, or what it was read as, with these numbers in all of its parts."""
    result: T = _with(form, numbers)
    return result


def _with(value: Any, numbers: Shaping) -> Any:
    if type(value) is tuple:
        parts = tuple(_with(one, numbers) for one in value)
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if isinstance(value, Trees):
        return replace(value, rows_at_once=numbers.rows_at_once)
    if isinstance(value, Polynomials):
        return replace(value, closely=numbers.closely, bending=numbers.bending_of_splines)
    changed = {f.name: _with(getattr(value, f.name), numbers) for f in fields(value) if f.init}
    changed = {name: part for name, part in changed.items() if part is not getattr(value, name)}
    if isinstance(value, Curve):
        changed |= {"pieces": numbers.pieces, "tuning": numbers}
    elif isinstance(value, Softmax):
        changed |= {"pieces": numbers.softmax_pieces, "tuning": numbers}
    return replace(value, **changed) if changed else value
