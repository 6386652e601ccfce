"""Sections of a Markdown page: several benchmarks write the same page, each its own part."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["put", "read", "titles"]

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def read(text: str) -> dict[str, str]:
    """Return the sections of second rank, by title, in order; what stands before the first has the title ""."""
    starts = [m for m in _HEADING.finditer(text) if not _in_code(text, m.start())]
    ends = [m.start() for m in starts[1:]] + [len(text)]
    out = {"": text[: starts[0].start()] if starts else text}
    return out | {m[1].strip(): text[m.end() : end].strip("\n") + "\n" for m, end in zip(starts, ends, strict=True)}


def _in_code(text: str, at: int) -> bool:
    """Whether a place is between two fences."""
    return text.count("\n```", 0, at) % 2 == 1


def titles(path: Path) -> list[str]:
    """Return the titles of a page."""
    return [name for name in read(path.read_text(encoding="utf-8")) if name] if path.exists() else []


def put(path: Path, title: str, text: str) -> None:
    """Write a section of a page in the place of that of the same title, or at the end."""
    known = read(path.read_text(encoding="utf-8")) if path.exists() else {"": ""}
    known[title] = text.strip("\n") + "\n"
    head = known.pop("").rstrip("\n")
    parts = ([head] if head else []) + [f"## {name}\n\n{body.strip(chr(10))}" for name, body in known.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
