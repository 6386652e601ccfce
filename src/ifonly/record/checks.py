"""Check: one thing of a record that was checked, and what was found."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Check"]


@dataclass(frozen=True)
class Check:
    """One thing that was checked.

    Attributes
    ----------
    name
        What it is about.
    ok
        Whether it holds; None if it could not be checked, or differs in a way that proves nothing.
    sentence
        What was found, in words.
    """

    name: str
    ok: bool | None
    sentence: str
