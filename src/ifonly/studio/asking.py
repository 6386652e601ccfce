"""Asking, watching and stopping: a question goes into the queue, and what becomes of it comes as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from ifonly.studio.desk import desk_of, fields, form, render, visitor_of, words_for
from ifonly.studio.fragments import shown
from ifonly.studio.pool import OPEN, Busy, Job
from ifonly.studio.rules import question
from ifonly.studio.state import read_state
from ifonly.studio.told import Told

__all__ = ["ask", "cancel", "events"]

_ALIVE = 10.0  # seconds between signs of life


async def ask(request: Request) -> HTMLResponse:
    """Put the question of the page into the queue."""
    desk, given, words = desk_of(request), await form(request), words_for(request)
    subject = desk.subject(given)
    state = read_state(given, subject)
    if not subject.classes and state.at_least is None and state.at_most is None:
        raise Told("ask.interval_needed")
    row = subject.frame(state.values(subject))
    forecast = await run_in_threadpool(subject.forecast, row)
    asked = question(state, subject, forecast.outcome)
    try:
        job = desk.pool.ask(visitor_of(request), state, asked)
    except Busy:
        return render(
            request, "problem.html", 429, title=words("watch.refused"), text=words("ask.busy"), language=words.language
        )
    response = render(request, "watch.html", job=job)
    response.headers["HX-Push-Url"] = f"row?{state.query(desk.first)}&ask=1"
    return response


async def events(request: Request) -> Response:
    """Stream the progress of a question as fragments; each replaces the one before, so none is missed."""
    job = _job(request)
    if job is None:
        return HTMLResponse("", 404)
    stream = _stream(request, job)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _stream(request: Request, job: Job) -> AsyncIterator[str]:
    seen = -1
    while True:
        closed = job.status not in OPEN  # read first: an answer that comes while this yields is still to be shown
        if job.version != seen:
            seen = job.version
            yield _message(shown(desk_of(request), words_for(request), job), seen)
        if closed:
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
