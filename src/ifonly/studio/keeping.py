"""Downloads and bookmarks: reports, data, and the code and policy that give the same answer again."""

from __future__ import annotations

import json
from dataclasses import fields as members
from dataclasses import is_dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ifonly import IfOnlyError, Infeasible, Target
from ifonly.policy import write_policy
from ifonly.studio.desk import desk_of, fields, form, render, visitor_of, words_for
from ifonly.studio.pool import Job
from ifonly.studio.rules import merged
from ifonly.studio.state import read_state
from ifonly.studio.subject import Subject
from ifonly.studio.told import Told

__all__ = ["bookmarks", "bookmarks_file", "code", "export", "forget", "keep", "policy", "written_as"]


async def keep(request: Request) -> HTMLResponse:
    """Keep the question of the page."""
    desk, given, words = desk_of(request), await form(request), words_for(request)
    subject = desk.subject(given)
    state = read_state(given, subject)
    title = words("row.typed") if state.row is None else words("row.title", row=state.row)
    desk.shelf.keep(f"{title} · {subject.title}", state.query(desk.first), dict(given).get("note", "").strip())
    return render(request, "kept_one.html")


def bookmarks(request: Request) -> HTMLResponse:
    """Everything that was kept."""
    desk = desk_of(request)
    subject = desk.subjects[desk.first]
    kept = desk.shelf.all()
    return render(request, "bookmarks.html", kept=kept, subject=subject, here="", switch_to="./", row=None)


async def forget(request: Request) -> Response:
    """Forget a bookmark."""
    desk_of(request).shelf.forget(dict(await form(request)).get("id", ""))
    return RedirectResponse("bookmarks", 303)


def bookmarks_file(request: Request) -> Response:
    """All bookmarks as a file."""
    return _file(desk_of(request).shelf.text(), "application/json", "ifonly-bookmarks.json")


def export(request: Request) -> Response:
    """An answer as a file."""
    given = dict(fields(request))
    job = desk_of(request).pool.job(given.get("job", ""), visitor_of(request))
    kind = given.get("as", "")
    if job is None or kind not in _KINDS:
        words = words_for(request)
        return render(
            request, "problem.html", 404, title=words("error.title"), text=words("error.gone"), language=words.language
        )
    name, media, text = written_as(kind, job, desk_of(request).subjects[job.state.subject])
    return _file(text, media, name)


def written_as(kind: str, job: Job, subject: Subject) -> tuple[str, str, str]:
    """Return the name, the media type and the text of an answer as a file."""
    answered, refused = job.explanation is not None, isinstance(job.error, Infeasible)
    if kind not in _KINDS or (not answered and (kind in ("html", "csv") or (kind == "json" and not refused))):
        raise Told("slip.kind", text=kind, known=", ".join(_KINDS))
    media, write = _KINDS[kind]
    return f"ifonly-{job.id[:8]}.{kind}", media, write(job, subject)


def _file(text: str, media: str, name: str) -> Response:
    return Response(text, 200, {"Content-Disposition": f'attachment; filename="{name}"'}, media)


def _html(job: Job, subject: Subject) -> str:
    assert job.explanation is not None
    return replace(job.explanation, reference=subject.data).to_html()


def _json(job: Job, subject: Subject) -> str:
    """Return the record: of an answer, or of a question that is proven impossible."""
    del subject
    if isinstance(job.error, Infeasible):
        return json.dumps(job.error.record(), ensure_ascii=False, indent=2)
    assert job.explanation is not None
    return job.explanation.to_json()


def _csv(job: Job, subject: Subject) -> str:
    del subject
    assert job.explanation is not None
    return job.explanation.rows(ranges=True).to_csv(index=False)


# -- code -------------------------------------------------------------------------------------------------------------
def code(job: Job, subject: Subject) -> str:
    """Return Python code that asks the same question."""
    asked = job.asked
    row = {name: _plain(asked.row[name].iloc[0]) for name in subject.schema.names}
    house, person = [_written(c) for c in subject.explainer.criteria], [_written(c) for c in asked.criteria]
    used = {type(c).__name__ for c in (*subject.explainer.criteria, *asked.criteria)}
    text = "\n".join([*house, *person, _written(asked.want)])
    extra = {name for name in ("LinearRow", "Implies", "Cause", "Target") if f"{name}(" in text}
    recipe = subject.recipe or (
        "# model, X and schema: the fitted model, the data it saw, and what the columns mean.",
        "model, X, schema = ..., ..., None",
    )
    lines = [
        f"from ifonly import {', '.join(sorted({'Explainer', *used, *extra}))}",
        *recipe,
        "",
        "house = [",
        *(f"    {line}," for line in house),
        "]",
        "explainer = Explainer(model, X, schema=schema, criteria=house)",
        f"row = {row!r}",
        "answer = explainer.explain(",
        "    row,",
        f"    want={_written(asked.want)},",
        f"    n={asked.n},",
        f"    criteria=[{', '.join(person)}],",
        f"    time_limit={asked.seconds:g},",
        ")",
        "print(answer)",
    ]
    return "\n".join(lines) + "\n"


def _written(value: Any) -> str:
    """Return a criterion or target as code, without what is at its default."""
    if not is_dataclass(value) or isinstance(value, type):
        if isinstance(value, dict):
            return "{" + ", ".join(f"{_written(k)}: {_written(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list | tuple):
            inner = ", ".join(map(_written, value))
            return f"[{inner}]" if isinstance(value, list) or len(value) != 1 else f"({inner},)"
        return repr(_plain(value))
    plain = type(value)() if isinstance(value, Target) else None
    given = []
    for member in members(value):
        own = getattr(value, member.name)
        if not member.init or _is_default(member, own) or (plain is not None and own is None):
            continue
        given.append(f"{member.name}={_written(own)}")
    return f"{type(value).__name__}({', '.join(given)})"


def _is_default(member: Any, own: Any) -> bool:
    factory = member.default_factory
    default = factory() if callable(factory) else member.default
    return bool(type(default) is type(own) and default == own)


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if value != value else value  # noqa: PLR0124 - only NaN differs from itself


# -- policy -----------------------------------------------------------------------------------------------------------
def policy(job: Job, subject: Subject) -> str:
    """Return the rules of house and person as one policy, which the command line and Python read."""
    criteria, law, left_out = merged(subject, job.asked)
    lines = [f"# Left out, because a policy cannot hold it: {type(c).__name__}." for c in left_out]
    lines += [f"# Asked for: {_written(job.asked.want)}, {job.asked.n} answer(s).".replace("\n", " ")]
    try:
        text = write_policy(subject.schema, criteria, law)
    except IfOnlyError as error:
        text = f"# This question cannot be written as a policy: {error}\n".replace("\n#", " ")
    return "\n".join([*lines, text])


_KINDS: dict[str, tuple[str, Any]] = {
    "html": ("text/html", _html),
    "json": ("application/json", _json),
    "csv": ("text/csv", _csv),
    "py": ("text/x-python", code),
    "toml": ("application/toml", policy),
}
