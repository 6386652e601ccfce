"""Checks and their complaints: a check has a name, and complains by an `AssertionError` with a sentence on what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ifonly.tolerances import FEASIBILITY

__all__ = ["TOLERANCE", "Check", "require", "run_all"]

TOLERANCE = FEASIBILITY

Check = tuple[str, Callable[[], None]]


def require(condition: object, sentence: str) -> None:
    """Raise the sentence unless the condition holds."""
    if not condition:
        raise AssertionError(sentence)


def run_all(checks: Iterable[Check], whose: str = "") -> None:
    """Run checks in order; the complaint of the first that fails begins with its name."""
    for name, check in checks:
        try:
            check()
        except AssertionError as error:
            raise AssertionError(f"{whose}{name}: {error}") from error
