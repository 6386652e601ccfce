"""Later: a value that is computed when it is first asked for, and a field of a frozen value that may hold one.

An answer of a batch of millions is written as a line of a file, and nobody looks at it as a frame; making two frames per
answer was half of the time of an easy question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

__all__ = ["Later", "deferred"]

T = TypeVar("T")
C = TypeVar("C", bound=type)


class Later(Generic[T]):
    """Value that is computed when it is first asked for; a pickle of it holds the value.

    Examples
    --------
    >>> sorted_later = Later(sorted, [3, 1, 2])
    >>> sorted_later.get()
    [1, 2, 3]
    """

    __slots__ = ("_compute", "_value")

    def __init__(self, compute: Callable[..., T] | None, *arguments: Any) -> None:
        self._compute = None if compute is None else (compute, arguments)
        self._value: T | None = None

    @classmethod
    def there(cls, value: T) -> Later[T]:
        """Return a value that is there already."""
        made: Later[T] = cls(None)
        made._value = value
        return made

    def get(self) -> T:
        """Return the value, the same object every time; threads that ask at the same moment may both compute it."""
        todo = self._compute
        if todo is not None:
            compute, arguments = todo
            self._value = compute(*arguments) if self._value is None else self._value
            self._compute = None  # and with it goes all that the value was computed from
        return cast("T", self._value)

    def field(self) -> T:
        """Return itself as what a `deferred` field of a dataclass takes."""
        return cast("T", self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _there, (self.get(),)


def _there(value: T) -> Later[T]:
    return Later.there(value)


class _Field:
    """Descriptor of a field that holds a value or a `Later` of it, and reads as the value."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            raise AttributeError(self._name)  # as a field without a default
        held = instance.__dict__[self._name]
        return held.get() if isinstance(held, Later) else held

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self._name] = value


def deferred(*names: str) -> Callable[[C], C]:
    """Return a decorator of a frozen dataclass of which some fields may be given as a `Later`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @deferred("rows")
    ... @dataclass(frozen=True)
    ... class Table:
    ...     rows: list[int]
    >>> Table(Later(sorted, [2, 1]).field()).rows
    [1, 2]
    """

    def decorate(cls: C) -> C:
        for name in names:
            setattr(cls, name, _Field(name))
        return cls

    return decorate
