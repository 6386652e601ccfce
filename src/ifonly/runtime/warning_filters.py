"""Warning filters in a process of several threads.

Python's warning filters belong to the process. Two threads that change them at once can restore each other's, and leave
warnings silenced for good. So whoever changes them here holds one lock, and who only wants to hear ifonly's own warnings
changes nothing: these come through `warn`, which looks for a listener in its own context first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock

__all__ = ["CHANGING", "few_filters", "heard", "listener", "silenced"]

CHANGING = RLock()  # held while the filters are not those of the user
_LISTENER: ContextVar[list[Warning] | None] = ContextVar("listener", default=None)


@contextmanager
def silenced(category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore warnings of a category; other threads that change filters wait."""
    with CHANGING, warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield


@contextmanager
def few_filters() -> Iterator[None]:
    """Collect warnings and pass them on at the end.

    scikit-learn's forests put every warning filter in place anew for every tree, a fifth of the time that 100 trees take
    for one row; while all warnings are collected, there is only one.
    """
    with CHANGING:
        with warnings.catch_warnings(record=True) as caught:
            warnings.resetwarnings()
            warnings.simplefilter("always")
            yield
        for w in caught:
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)


@contextmanager
def heard() -> Iterator[list[Warning]]:
    """Collect the warnings of ifonly itself that are issued in this context, instead of issuing them."""
    found: list[Warning] = []
    token = _LISTENER.set(found)
    try:
        yield found
    finally:
        _LISTENER.reset(token)


def listener() -> list[Warning] | None:
    """Return the list that collects warnings in this context, if there is one."""
    return _LISTENER.get()
