"""The texts of the page: one catalogue per language, each a TOML file of the same keys."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ifonly.studio.library import format_value

__all__ = ["LANGUAGES", "LANGUAGE_COOKIE", "Words", "negotiated", "words_of"]

_FOLDER = Path(__file__).parent / "texts"
LANGUAGES = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
LANGUAGE_COOKIE = "ifonly_language"
_FALLBACK = "en"
_LEAST_SHOWN = 0.01  # per cent


@dataclass(frozen=True)
class Words:
    """The texts of one language; call it with a key, and with what fills the gaps of the sentence."""

    language: str
    texts: Mapping[str, str]

    def __call__(self, key: str, **values: Any) -> str:
        """Return a text. Values are put in as they are: what shows the text escapes it."""
        text = self.texts[key]
        for name, value in values.items():
            text = text.replace("{" + name + "}", str(value))
        return text

    def number(self, value: Any, feature: Any = None) -> str:
        """Return a number or level as a reader of this language writes it."""
        text = format_value(value, feature)
        is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        return text.replace(".", self("decimal")) if is_number else text

    def score(self, value: float | None, digits: int = 2) -> str:
        """Return a score with a fixed number of decimals."""
        if value is None:
            return "–"
        text = f"{value:.{digits}f}"
        return text.replace(".", self("decimal"))

    def percent(self, value: float) -> str:
        """Return a share as a percentage."""
        share = 100 * value
        if 0 < share < _LEAST_SHOWN:
            return f"< {_LEAST_SHOWN} %".replace(".", self("decimal"))
        return f"{share:.0f} %" if share >= 1 or share == 0 else f"{share:.2g} %".replace(".", self("decimal"))


@cache
def words_of(language: str) -> Words:
    """Return the texts of a language that there is a catalogue for."""
    nested = tomllib.loads((_FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    return Words(language, _flat(nested))


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    out: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[prefix + key] = str(value)
    return out


def negotiated(chosen: str | None, accepted: str) -> str:
    """Return the language of a page: the one chosen, or the best of an ``Accept-Language`` header."""
    if chosen in LANGUAGES:
        return str(chosen)
    ranked: list[tuple[float, int, str]] = []
    for position, part in enumerate(accepted.split(",")[:20]):
        name, _, weight = part.partition(";q=")
        try:
            quality = float(weight) if weight else 1.0
        except ValueError:
            quality = 0.0
        ranked.append((-quality, position, name.strip().lower().split("-")[0]))
    return next((name for _, _, name in sorted(ranked) if name in LANGUAGES), _FALLBACK)
