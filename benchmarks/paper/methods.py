"""Every method of the comparison behind one interface."""

from __future__ import annotations

from pathlib import Path

from benchmarks.paper.local import REBUILT
from benchmarks.paper.models import Fitted
from benchmarks.paper.ours import OBJECTIVES, Ours
from benchmarks.paper.remote import Remote
from benchmarks.paper.replies import Session

__all__ = ["open_session"]


def open_session(method: str, source: Fitted, n: int, cache: Path | None = None) -> Session:
    """Open a method on a model, to be asked for `n` answers per factual.

    Raises
    ------
    Unsupported
        When the method does not take this kind of model, or gives one answer only.
    """
    if method in OBJECTIVES:
        return Ours(method, source, n)
    if method in REBUILT:
        session: Session = REBUILT[method](source, n)
        return session
    return Remote(method, source, n, cache)
