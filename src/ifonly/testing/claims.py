"""Complaint of a check: an `AssertionError` with a sentence on what differs."""

from __future__ import annotations

__all__ = ["TOLERANCE", "require"]

TOLERANCE = 1e-6


def require(condition: object, sentence: str) -> None:
    """Raise the sentence unless the condition holds."""
    if not condition:
        raise AssertionError(sentence)
