"""Asking, watching and stopping: a question goes into the queue, and what becomes of it comes as server-sent events."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from ifonly import Infeasible, OutOfTime, SchemaError
from ifonly.studio import figures
from ifonly.studio.desk import desk_of, fields, form, render, text_of, visitor_of, words_for
from ifonly.studio.pool import OPEN, Busy, Job
from ifonly.studio.rules import question
from ifonly.studio.state import SECONDS, as_text, read_state
from ifonly.studio.views import ways
from ifonly.studio.wording import understand

__all__ = ["ask", "cancel", "events"]

_ALIVE = 10.0  # seconds between signs of life


async def ask(request: Request) -> HTMLResponse:
    """Put the question of the page into the queue."""
    desk, given, words = desk_of(request), await form(request), words_for(request)
    subject = desk.subject(given)
    state = read_state(given, subject)
    if not subject.classes and state.at_least is None and state.at_most is None:
        raise SchemaError(words("ask.interval_needed"))
    row = subject.frame(state.values(subject))
    forecast = await run_in_threadpool(subject.forecast, row)
    asked = question(state, subject, forecast.outcome)
    try:
        job = desk.pool.ask(visitor_of(request), state, asked)
    except Busy:
        return render(request, "problem.html", 429, title=words("watch.refused"), text=words("ask.busy"))
    response = render(request, "watch.html", job=job)
    response.headers["HX-Push-Url"] = f"row?{state.query(desk.first)}&ask=1"
    return response


async def events(request: Request) -> Response:
    """What becomes of a question, as a stream of fragments; each replaces the one before, so none is missed."""
    job = _job(request)
    if job is None:
        return HTMLResponse("", 404)
    stream = _stream(request, job)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _stream(request: Request, job: Job) -> AsyncIterator[str]:
    seen = -1
    while True:
        if job.version != seen:
            seen = job.version
            yield _message(_shown(request, job), seen)
        if job.status not in OPEN:
            yield "event: done\ndata: done\n\n"
            return
        if not await job.news(seen, _ALIVE):
            yield ": still there\n\n"


def _message(text: str, number: int) -> str:
    lines = "\n".join(f"data: {line}" for line in text.splitlines() if line.strip())
    return f"id: {number}\n{lines}\n\n"


async def cancel(request: Request) -> Response:
    """Stop a question."""
    job = _job(request)
    if job is None:
        return HTMLResponse("", 404)
    desk_of(request).pool.cancel(job)
    return Response(status_code=204)


def _job(request: Request) -> Job | None:
    given = dict(fields(request))
    return desk_of(request).pool.job(given.get("job", ""), visitor_of(request))


def _shown(request: Request, job: Job) -> str:
    """Return how a question stands, as a fragment."""
    if job.status in OPEN:
        return _progress(request, job)
    if job.status == "answered":
        return _answer(request, job)
    if job.status == "impossible" and isinstance(job.error, Infeasible):
        return _impossible(request, job, job.error)
    return _ended(request, job)


def _progress(request: Request, job: Job) -> str:
    points = latest(job.points)
    seconds = 0.0 if job.began is None else time.monotonic() - job.began
    best, bound = (points[-1][1], max(p[2] for p in points)) if points else (None, None)
    gap = None if best is None or bound is None else max(best - bound, 0.0) / max(1.0, abs(best))
    place = desk_of(request).pool.place(job)
    chart = figures.closing(points, seconds)
    values = {"best": best, "bound": bound, "gap": gap, "seconds": seconds, "place": place, "chart": chart}
    return text_of(request, "progress.html", job=job, **values)


def latest(points: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Return the progress of the search that runs now: when several ways are asked for, each has its own."""
    start = 0
    for i in range(1, len(points)):
        if points[i][1] > points[i - 1][1]:
            start = i
    return points[start:]


def _answer(request: Request, job: Job) -> str:
    desk, words = desk_of(request), words_for(request)
    subject = desk.subjects[job.state.subject]
    assert job.explanation is not None
    onward = []
    for way in job.explanation:
        base = subject.values(job.state.row)
        now = [way.row[name].iloc[0] for name in subject.schema.names]
        edits = {j: value for j, value in enumerate(now) if as_text(value) != as_text(base[j])}
        onward.append(replace(job.state, edits=edits, limits={}, want=None, probability=None).query(desk.first))
    return text_of(
        request,
        "answer.html",
        job=job,
        ways=ways(job, subject, words),
        onward=onward,
        explanation=job.explanation,
        notes=[*job.explanation.notes, *job.notes],
    )


def _impossible(request: Request, job: Job, error: Infeasible) -> str:
    desk = desk_of(request)
    subject = desk.subjects[job.state.subject]
    clashes = understand(error, job.state, subject, words_for(request))
    return text_of(request, "impossible.html", clashes=clashes, first=desk.first)


def _ended(request: Request, job: Job) -> str:
    desk, words = desk_of(request), words_for(request)
    longer = None
    if job.status == "cancelled":
        title, text = words("watch.cancelled"), ""
    elif job.status == "lost":
        title, text = words("watch.lost"), ""
    elif isinstance(job.error, OutOfTime):
        title, text = words("no.late"), ""
        if job.state.seconds < max(SECONDS):
            longer = replace(job.state, seconds=max(SECONDS)).query(desk.first)
    else:
        title, text = words("watch.refused"), str(job.error)
    again = job.state.query(desk.first)
    return text_of(request, "ended.html", title=title, text=text, again=again, longer=longer)
