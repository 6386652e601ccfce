"""Slips of a visitor, told in the language of the page."""

from __future__ import annotations

from typing import Any

from ifonly import SchemaError
from ifonly.studio.language import Words, words_of

__all__ = ["Told"]


class Told(SchemaError):
    """An error of the studio itself: a text of the catalogues and what fills its gaps."""

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(words_of("en")(key, **values))
        self.key, self.values = key, values

    def __reduce__(self) -> tuple[Any, ...]:
        return _told, (self.key, self.values)

    def text(self, words: Words) -> str:
        """Return the sentence in a language."""
        return words(self.key, **self.values)


def _told(key: str, values: dict[str, Any]) -> Told:
    return Told(key, **values)
