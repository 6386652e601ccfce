"""The pages on which a row is found and a question is put together."""

from __future__ import annotations

import csv
import io
import json
import random
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ifonly.studio import table
from ifonly.studio.desk import Desk, desk_of, fields, form, render, words_for
from ifonly.studio.language import Words
from ifonly.studio.state import EFFORTS, SECONDS, WAYS, State, as_text, read_state
from ifonly.studio.subject import Subject, parse_value, switch_kind
from ifonly.studio.told import Told
from ifonly.studio.views import controls, verdict
from ifonly.studio.wording import house_words

__all__ = ["paste", "pasted", "predict", "remember", "row_values", "rows", "some_row", "the_row"]


def rows(request: Request) -> HTMLResponse:
    """The table of rows."""
    desk, given = desk_of(request), fields(request)
    subject = desk.subject(given)
    search = table.read_search(given, subject)
    page = table.find(search, subject)
    outcomes, scores = subject.known()
    has_scores = bool(scores.shape[1]) and (not subject.classes or subject.has_probabilities)
    shown = [
        {
            "row": i,
            "outcome": outcomes[i],
            "score": float(scores[i, table.score_column(subject)]) if has_scores else None,
            "values": subject.values(i),
        }
        for i in page.rows
    ]

    def sorting(key: str) -> dict[str, Any]:
        down = search.sort == key and not search.down
        query = search.query(subject, desk.first, sort=key, down=1 if down else None, page=None)
        state = ("descending" if search.down else "ascending") if search.sort == key else "none"
        return {"query": query, "state": state}

    here = search.query(subject, desk.first)
    response = render(
        request,
        "rows.html",
        subject=subject,
        search=search,
        page=page,
        shown=shown,
        has_scores=has_scores,
        score_label="" if not subject.classes else subject.classes[table.score_column(subject)],
        sorting=sorting,
        previous=search.query(subject, desk.first, page=page.number - 1 or None) if page.number else None,
        next=search.query(subject, desk.first, page=page.number + 1) if page.number + 1 < page.pages else None,
        here=here,
        prefix="" if subject.key == desk.first else f"s={subject.key}&",
        switch_to="./",
        row=None,
    )
    if "hx-request" in request.headers:
        response.headers["HX-Push-Url"] = f"./?{here}" if here else "./"
    return response


def some_row(request: Request) -> Response:
    """A random row among those that the filters leave."""
    desk, given = desk_of(request), fields(request)
    subject = desk.subject(given)
    search = table.read_search([(k, v) for k, v in given if k != "page"], subject)
    page = table.find(search, subject)
    if not page.total:
        return RedirectResponse("./", 303)
    pick = random.randrange(page.total)  # noqa: S311 - no secret
    chosen = table.find(table.read_search([*given, ("page", str(pick // table.PAGE))], subject), subject)
    state = State(subject.key, chosen.rows[pick % table.PAGE])
    return RedirectResponse(f"row?{state.query(desk.first)}", 303)


def the_row(request: Request) -> HTMLResponse:
    """One row, what may change in it, and what to ask."""
    desk, given = desk_of(request), fields(request)
    state = read_state(given, desk.subject(given))
    asks = dict(given).get("ask") == "1"
    return render(request, "row.html", **row_values(desk, words_for(request), state), asks=asks)


def row_values(desk: Desk, words: Words, state: State) -> dict[str, Any]:
    """Return what the page of one row shows."""
    subject = desk.subjects[state.subject]
    single, between = house_words(subject, words)
    forecast = subject.forecast(subject.frame(state.values(subject)))
    return {
        "subject": subject,
        "state": state,
        "controls": controls(state, subject, single),
        "between": between,
        "verdict": verdict(subject, forecast, words),
        "want": state.want or (subject.want_index(forecast.outcome),),
        "ways": WAYS,
        "seconds": SECONDS,
        "efforts": tuple(EFFORTS),
        "kinds": {name: switch_kind(c) for name, c in subject.switches.items()},
        "here": state.query(desk.first),
        "switch_to": "row",
        "row": state.row,
        "original": State(subject.key, state.row).query(desk.first),
        "length": len(subject.schema),
        "kept_here": [] if state.row is None else desk.shelf.of(subject.key, state.row, desk.first),
    }


def predict(request: Request) -> HTMLResponse:
    """Return the model's prediction for the row as it is being edited."""
    desk, given = desk_of(request), fields(request)
    subject = desk.subject(given)
    state = read_state(given, subject)
    forecast = subject.forecast(subject.frame(state.values(subject)))
    return render(request, "now.html", subject=subject, verdict=verdict(subject, forecast, words_for(request)))


def remember(request: Request) -> Response:
    """Put the question into the address of the page; the browser's history is the undo."""
    desk, given = desk_of(request), fields(request)
    state = read_state(given, desk.subject(given))
    return Response("", 200, {"HX-Push-Url": f"row?{state.query(desk.first)}"}, "text/html")


async def paste(request: Request) -> Response:
    """A row from text, as a spreadsheet or a file holds it."""
    desk, given = desk_of(request), await form(request)
    subject = desk.subject(given)
    values = pasted(dict(given).get("text", ""), subject)
    pairs = [] if subject.key == desk.first else [("s", subject.key)]
    pairs += [(f"v{j}", as_text(values[name])) for j, name in enumerate(subject.schema.names) if name in values]
    return RedirectResponse(f"row?{urlencode(pairs)}", 303)


def pasted(text: str, subject: Subject) -> dict[str, Any]:
    """Return feature -> value out of pasted text.

    Raises
    ------
    SchemaError
        When the text is no row of this data.
    """
    names = subject.schema.names
    text = text.strip()
    if not text:
        raise Told("slip.nothing_pasted")
    found = _from_json(text) if text[0] in "{[" else _from_lines(text, names)
    unknown = [name for name in found if name not in names]
    known = {name: value for name, value in found.items() if name in names}
    if not known:
        raise Told("slip.columns", names=", ".join(unknown[:5]))
    return {name: parse_value(value, subject.schema[name]) for name, value in known.items()}


def _from_json(text: str) -> dict[str, str]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise Told("slip.json") from None
    one = data[0] if isinstance(data, list) and data else data
    if not isinstance(one, dict):
        raise Told("slip.json_row")
    return {str(name): "" if value is None else as_text(value) for name, value in one.items()}


def _from_lines(text: str, names: tuple[str, ...]) -> dict[str, str]:
    first = text.splitlines()[0]
    mark = max("\t;,", key=first.count)
    try:
        lines = [line for line in csv.reader(io.StringIO(text), delimiter=mark) if line]
    except csv.Error:
        raise Told("slip.no_table") from None
    head = [cell.strip() for cell in lines[0]]
    if len(lines) > 1 and set(head) & set(names):
        return dict(zip(head, lines[1], strict=False))
    if len(lines[0]) < len(names):
        raise Told("slip.short", n=len(lines[0]), all=len(names))
    return dict(zip(names, lines[0], strict=False))
