"""Memo and cached_property: caches that threads may share, and that never travel with a pickle.

State has an owner. What is worth remembering between questions lives in the `Memo` of a `Training`, or of a `Model` where
the model alone decides it; what follows from one value alone is a `cached_property` of it. Module globals and the
``__dict__`` of other objects hold none.

Some frozen values own a `Memo`, too: a model, its training, its source, and the shapes of data. What they remember follows
from their other fields, or is where a search starts and no more, so the same questions, asked in any order, have the same
answers. It is no part of their equality, their `repr` or their pickle. All others are as frozen as they say: their fields are
values, and a container among them is read by a type that cannot write (`Mapping`, `Sequence`). What does change while it
works (a finder of conflicts, a block of columns, a notebook of guesses) is no frozen dataclass.
``tests/runtime/test_state.py`` names every exception, with its reason.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, Self, TypeVar, cast, overload

from ifonly.runtime.tuning_tables import CACHES

__all__ = ["Lean", "Memo", "cached_property"]

T = TypeVar("T")


class Memo:
    """Cache of computed values by kind and key; of each kind, the most recently used ones are kept.

    A value is computed outside the lock, so nobody waits for somebody else's computation and none can wait for itself.
    Two threads that ask for the same at the same moment may both compute it; both get the value that came first.

    Examples
    --------
    >>> memo = Memo()
    >>> memo.get("square", 3, lambda: 9), memo.get("square", 3, lambda: 0)
    (9, 9)
    """

    def __init__(self, most: int = CACHES.kept) -> None:
        self.most = most
        self._lock = Lock()
        self._known: dict[str, OrderedDict[Hashable, tuple[Any, object]]] = {}

    def get(self, kind: str, key: Hashable, compute: Callable[[], T], keep: object = None) -> T:
        """Return the value of a key, computed if it is not known.

        Give as `keep` whatever the key knows by its ``id``: while it is kept, nothing else can come to have that id.
        """
        with self._lock:
            values = self._known.setdefault(kind, OrderedDict())
            if key in values:
                values.move_to_end(key)
                return cast("T", values[key][0])
        value = compute()
        with self._lock:
            first = values.setdefault(key, (value, keep))
            values.move_to_end(key)
            while len(values) > self.most:
                values.popitem(last=False)
        return cast("T", first[0])

    def put(self, kind: str, key: Hashable, value: object) -> None:
        """Keep a better value than the one that is known: the start of the next search, say."""
        with self._lock:
            self._known.setdefault(kind, OrderedDict())[key] = (value, None)

    def __getstate__(self) -> dict[str, Any]:
        """A pickle holds no cached value: they can all be computed again."""
        return {"most": self.most}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["most"])  # type: ignore[misc]


class cached_property(Generic[T]):  # noqa: N801 - a stand-in for that of functools
    """Attribute computed when it is first read, as functools.cached_property of Python 3.12 and later.

    In Python 3.11 that takes a lock for all instances of a class: threads with questions of their own wait for each other,
    and two composites that hold each other's kind wait forever. This one takes none; the value that comes first stays.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object, owner: type | None = None) -> Self | T:
        if instance is None:
            return self
        return cast("T", instance.__dict__.setdefault(self.name, self.compute(instance)))


class Lean:
    """Mixin for values whose cached properties are left out of a pickle."""

    def __getstate__(self) -> dict[str, Any]:
        cls = type(self)
        return {k: v for k, v in self.__dict__.items() if not isinstance(getattr(cls, k, None), cached_property)}
