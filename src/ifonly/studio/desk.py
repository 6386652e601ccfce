"""Shared state of all pages: the models, the queue, the bookmarks, the templates; and reading and answering a request."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from uuid import uuid4

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from ifonly import SchemaError
from ifonly.studio.language import LANGUAGE_COOKIE, LANGUAGES, Words, negotiated, words_of
from ifonly.studio.pool import Pool
from ifonly.studio.subject import Subject
from ifonly.studio.told import Told

__all__ = ["Bookmark", "Desk", "Shelf", "desk_of", "fields", "form", "render", "words_for"]

Pairs = list[tuple[str, str]]
_FOLDER = Path(__file__).parent
_MOST_FIELDS = 4000
_MOST_KEPT, _LONGEST_NOTE = 500, 2000


@dataclass(frozen=True)
class Bookmark:
    """A question that was kept: its address, and a note."""

    id: str
    title: str
    query: str
    note: str


class Shelf:
    """The bookmarks of a studio; in a file, if it was given one."""

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._lock = path, threading.Lock()
        self._kept: list[Bookmark] = []
        if path is not None and path.exists():
            try:
                self._kept = [Bookmark(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
            except (ValueError, TypeError) as error:
                raise SchemaError(f"{path} does not hold bookmarks of a studio: {error}. Name another file.") from None

    def all(self) -> list[Bookmark]:
        """Return what is kept, the newest first."""
        with self._lock:
            return self._kept[::-1]

    def of(self, subject: str, row: int, first: str) -> list[Bookmark]:
        """Return what is kept of one row, the newest first."""
        found = ((dict(parse_qsl(one.query)), one) for one in self.all())
        return [one for asked, one in found if asked.get("row") == str(row) and asked.get("s", first) == subject]

    def keep(self, title: str, query: str, note: str) -> Bookmark:
        """Keep a question; the oldest gives way when there are very many."""
        new = Bookmark(uuid4().hex, title, query, note[:_LONGEST_NOTE])
        with self._lock:
            self._kept = [*self._kept, new][-_MOST_KEPT:]
            self._write()
        return new

    def forget(self, which: str) -> None:
        """Forget a bookmark."""
        with self._lock:
            self._kept = [b for b in self._kept if b.id != which]
            self._write()

    def text(self) -> str:
        """Return all bookmarks as JSON."""
        return json.dumps([asdict(b) for b in self.all()[::-1]], ensure_ascii=False, indent=2)

    def _write(self) -> None:
        if self._path is None:
            return
        # Written aside and renamed, so that a crash leaves the old file or the new one, never half of one.
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=".ifonly-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump([asdict(b) for b in self._kept], file, ensure_ascii=False, indent=2)
        Path(name).replace(self._path)


class Desk:
    """State behind the pages of one studio: subjects, workers, templates, and what is kept."""

    def __init__(self, subjects: tuple[Subject, ...], shelf: Shelf, workers: int) -> None:
        self.subjects = {s.key: s for s in subjects}
        self.first = subjects[0].key
        self.shelf = shelf
        self.pool = Pool({s.key: s.explainer for s in subjects}, workers)
        self.templates = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,  # a package that is replaced under a running studio must not mix with its texts
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def text(self, words: Words, template: str, **values: Any) -> str:
        """Return a filled template in a language."""
        given: dict[str, Any] = {"t": words, "languages": LANGUAGES, "subjects": self.subjects, "first": self.first}
        given["names"] = {name: words_of(name)("language") for name in LANGUAGES}
        return self.templates.get_template(template).render({**given, **values})

    def subject(self, given: Pairs) -> Subject:
        """Return the model that a query names, or the first."""
        key = dict(given).get("s") or self.first
        if key not in self.subjects:
            raise Told("slip.model", text=key, known=", ".join(self.subjects))
        return self.subjects[key]


def desk_of(request: Request) -> Desk:
    """Return the desk behind a request."""
    desk: Desk = request.app.state.desk
    return desk


def visitor_of(request: Request) -> str:
    """Return who asks, as the gate found."""
    return str(request.state.visitor)


def fields(request: Request) -> Pairs:
    """Return the query of a request, in order."""
    return _parsed(request.scope["query_string"].decode("latin-1"))


async def form(request: Request) -> Pairs:
    """Return the fields of a posted form, in order."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Told("slip.form")
    try:
        return _parsed((await request.body()).decode("utf-8"))
    except UnicodeDecodeError:
        raise Told("slip.form") from None


def _parsed(text: str) -> Pairs:
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except (ValueError, UnicodeDecodeError):
        raise Told("slip.unreadable") from None


def words_for(request: Request) -> Words:
    """Return the texts in the language of the reader."""
    chosen = request.query_params.get("lang") or request.cookies.get(LANGUAGE_COOKIE)
    return words_of(negotiated(chosen, request.headers.get("accept-language", "")))


def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Answer with a filled template."""
    response = HTMLResponse(desk_of(request).text(words_for(request), template, **values), status)
    chosen = request.query_params.get("lang")
    if chosen in LANGUAGES:
        response.set_cookie(LANGUAGE_COOKIE, str(chosen), samesite="strict", httponly=True)
    return response
