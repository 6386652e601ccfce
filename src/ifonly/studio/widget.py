"""One question in a notebook cell: the studio's controls and answers over the notebook's own connection, without a port.

It needs the extra ``ifonly[notebook]``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import anywidget
import pandas as pd
import traitlets

from ifonly import Explainer, IfOnlyError
from ifonly.studio.desk import Desk, Shelf
from ifonly.studio.fragments import shown
from ifonly.studio.keeping import written_as
from ifonly.studio.language import words_of
from ifonly.studio.library import frame_of
from ifonly.studio.opening import subject_of
from ifonly.studio.pages import row_values
from ifonly.studio.pool import OPEN, Busy, Job
from ifonly.studio.rules import question as asked_of
from ifonly.studio.state import State, as_text, read_state
from ifonly.studio.told import Told
from ifonly.studio.views import verdict

__all__ = ["Question", "question"]

_STATIC = Path(__file__).parent / "static"
_ME = "notebook"
_HIDDEN = (
    ".lead, .keep, [data-edited], [data-action] { display: none; } "
    ".side { position: static; max-height: none; } .body { background: none; }"
)


def question(
    explainer: Explainer, row: Any = None, *, language: str = "en", switches: Mapping[str, Any] | None = None
) -> Question:
    """Return a widget that shows one row, what may change in it, and the answer.

    Parameters
    ----------
    explainer
        What is asked.
    row
        The row, as `Explainer.explain` takes it; a typical one when not given.
    language
        The language of its texts: "en" or "de".
    switches
        Name -> a criterion that can be switched on.
    """
    return Question(explainer, row, language, switches)


class Question(anywidget.AnyWidget):  # type: ignore[misc] # its base is untyped
    """The widget; `explanation` is the newest answer."""

    _esm = (_STATIC / "controls.js").read_text("utf-8") + (_STATIC / "widget.js").read_text("utf-8")
    html = traitlets.Unicode().tag(sync=True)
    style_text = traitlets.Unicode().tag(sync=True)

    def __init__(self, explainer: Explainer, row: Any, language: str, switches: Mapping[str, Any] | None) -> None:
        self._words = words_of(language)
        subject = subject_of(explainer, frame_of(explainer), switches)
        self._desk = Desk((subject,), Shelf(), workers=1)
        self._subject = subject
        self._job: Job | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._desk.pool.start(), self._loop).result()
        super().__init__(html=self._page(self._first(row)), style_text=_styles())
        self.on_msg(self._heard)

    @property
    def explanation(self) -> Any:
        """The newest answer, or None."""
        return None if self._job is None else self._job.explanation

    def close(self) -> None:
        """End the search and its process; a second time, as when the widget is thrown away, nothing is left to end."""
        if self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self._desk.pool.stop(), self._loop).result(timeout=10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=10)
            self._loop.close()
        super().close()

    # -- showing ------------------------------------------------------------------------------------------------------
    def _first(self, row: Any) -> State:
        if row is None:
            return State(self._subject.key)
        frame: pd.DataFrame = self._subject.schema.row(row)
        typical = self._subject.typical
        values = [frame[name].iloc[0] for name in self._subject.schema.names]
        edits = {j: v for j, v in enumerate(values) if as_text(v) != as_text(typical[j])}
        return State(self._subject.key, None, edits)

    def _page(self, state: State) -> str:
        values = row_values(self._desk, self._words, state)
        return self._desk.text(self._words, "question.html", **values, asks=False)

    # -- hearing ------------------------------------------------------------------------------------------------------
    def _heard(self, _: Any, message: Mapping[str, Any], __: Any = None) -> None:
        """Do what the cell asks for; what cannot be done is said in the place of the answer."""
        kind, given = str(message.get("kind", "")), parse_qsl(str(message.get("query", "")), keep_blank_values=True)
        try:
            if kind == "predict":
                self._predict(given)
            elif kind == "ask":
                self._ask(read_state(given, self._subject))
            elif kind == "open":
                state = read_state(given, self._subject)
                self.html = self._page(state)
                if ("ask", "1") in given:
                    self._ask(state)
            elif kind == "cancel" and self._job is not None:
                self._loop.call_soon_threadsafe(self._desk.pool.cancel, self._job)
            elif kind == "export" and self._job is not None:
                name, media, text = written_as(dict(given).get("as", ""), self._job, self._subject)
                self.send({"kind": "file", "name": name, "media": media, "text": text})
        except Told as error:
            self._complain(error.text(self._words), self._words.language)
        except IfOnlyError as error:
            self._complain(str(error), "en")

    def _complain(self, text: str, language: str) -> None:
        title = self._words("error.title")
        problem = self._desk.text(self._words, "problem.html", title=title, text=text, language=language)
        self.send({"kind": "answer", "html": problem})

    def _predict(self, given: list[tuple[str, str]]) -> None:
        state = read_state(given, self._subject)
        forecast = self._subject.forecast(self._subject.frame(state.values(self._subject)))
        said = verdict(self._subject, forecast, self._words)
        html = self._desk.text(self._words, "now.html", subject=self._subject, verdict=said)
        self.send({"kind": "now", "html": html})

    def _ask(self, state: State) -> None:
        now = self._subject.forecast(self._subject.frame(state.values(self._subject))).outcome
        asked = asked_of(state, self._subject, now)

        async def follow() -> None:
            if self._job is not None:
                self._desk.pool.cancel(self._job)
            try:
                self._job = job = self._desk.pool.ask(_ME, state, asked)
            except Busy:
                self._complain(self._words("ask.busy"), self._words.language)
                return
            seen = -1
            while True:
                closed = job.status not in OPEN  # read first: what comes later is still to be shown
                if job.version != seen:
                    seen = job.version
                    self.send({"kind": "answer", "html": shown(self._desk, self._words, job)})
                if closed:
                    return
                await job.news(seen, 10.0)

        asyncio.run_coroutine_threadsafe(follow(), self._loop)


def _styles() -> str:
    """Return the styles of the studio for a part of a page that is closed off from the rest."""
    text = (_STATIC / "studio.css").read_text("utf-8")
    text = text.replace(':root:not([data-theme="light"])', ':host(:not([data-theme="light"]))')
    text = text.replace(':root:not([data-theme="dark"])', ':host(:not([data-theme="dark"]))')
    text = text.replace(':root[data-theme="dark"]', ':host([data-theme="dark"])').replace(":root", ":host")
    return text.replace("\nbody {", "\n.body {") + _HIDDEN
