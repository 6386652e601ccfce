"""Words of the command line in place of those of Python, in what errors say to do next."""

from __future__ import annotations

import re

__all__ = ["translated"]

# Patterns of Python advice, and what one types instead; tried in order.
_WORDS: tuple[tuple[str, str], ...] = (
    (r"want=Target\(at_least=\.\.\.\) or Target\(at_most=\.\.\.\)", "--at-least NUMBER or --at-most NUMBER"),
    (r"(?:want=)?Target\(label, probability=\.\.\.\)", "--want CLASS --probability P"),
    (r"Ask for the class alone, want=(\S+?);", r"Ask for the class alone, --want \1;"),
    (r"want=None means 'the other class' and needs exactly two", "without --want, the other of two classes is meant"),
    (r"Say which outcome is wanted: the model knows", "Say which outcome is wanted, --want CLASS: the model knows"),
    (r'Explainer\(model, X, surrogate="auto"\)', "--surrogate"),
    (r"Raise\s+time_limit", "Raise --time-limit"),
    (r"raise time_limit", "raise --time-limit"),
    (r"Explainer\(\.\.\., solver=\.\.\.\)", "--solver NAME"),
    (r"Proximity\(scale=\{('[^']+'): ([^}]+)\}\)", r"scale = { \1 = \2 } under [proximity] of a --policy"),
    (r"Actionability\(frozen=\[([^\]]*)\]\)", r"frozen = [\1] under [demands] of a --policy"),
    (r"Actionability\(allow=\{([^}]*)\}\)", "[demands.allow] of a --policy"),
    (
        r"Schema\.infer\(X, ordinal=\{('[^']+'): [^}]*\}\)",
        r"kind = 'ordinal' with levels under [features.\1] of a --policy",
    ),
    (r"Schema\.infer\(X, bounds=\{('[^']+'): [^}]*\}\)", r"bounds = [low, high] under [features.\1] of a --policy"),
    (r"give the Explainer those rows", "give those rows as --background"),
    (
        r"or make the column a pandas category that lists it",
        "or list it: levels = [...] under [features] of a --policy",
    ),
    (r"criteria=\[\.\.\.\]", "a --policy"),
)


def translated(text: str) -> str:
    """Return a message with its advice in words of the command line."""
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text
