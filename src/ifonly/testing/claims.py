"""How a check complains: an `AssertionError` with a sentence on what differs."""

from __future__ import annotations

from ifonly.tolerances import FEASIBILITY

__all__ = ["TOLERANCE", "require"]

TOLERANCE = FEASIBILITY


def require(condition: object, sentence: str) -> None:
    """Raise the sentence unless the condition holds."""
    if not condition:
        raise AssertionError(sentence)
