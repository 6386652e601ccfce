"""Fragments of a page for the state of a question: in the queue, searching, answered, impossible, or ended otherwise.

The same fragments serve the browser and the notebook.
"""

from __future__ import annotations

import time
from dataclasses import replace

from ifonly import Infeasible, OutOfTime
from ifonly.result.values import relative_gap
from ifonly.studio import figures
from ifonly.studio.desk import Desk
from ifonly.studio.language import Words
from ifonly.studio.pool import OPEN, Job
from ifonly.studio.state import SECONDS, as_text
from ifonly.studio.views import ways
from ifonly.studio.wording import understand

__all__ = ["latest", "shown"]

_THERE = "The wanted outcome is already there"  # how the library begins to say so


def shown(desk: Desk, words: Words, job: Job) -> str:
    """Return how a question stands, as a fragment."""
    if job.status in OPEN:
        return _progress(desk, words, job)
    if job.status == "answered":
        return _answer(desk, words, job)
    error = job.error
    if job.status == "impossible" and isinstance(error, Infeasible):
        return _impossible(desk, words, job, error)
    return _ended(desk, words, job)


def _progress(desk: Desk, words: Words, job: Job) -> str:
    points = latest(job.points)
    seconds = 0.0 if job.began is None else time.monotonic() - job.began
    best, bound = (points[-1][1], max(p[2] for p in points)) if points else (None, None)
    gap = None if best is None or bound is None else relative_gap(best, bound)
    place = desk.pool.place(job)
    chart = figures.closing(points, seconds)
    values = {"best": best, "bound": bound, "gap": gap, "seconds": seconds, "place": place, "chart": chart}
    return desk.text(words, "progress.html", job=job, **values)


def latest(points: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Return the progress of the search that runs now: when several ways are asked for, each has its own."""
    start = 0
    for i in range(1, len(points)):
        if points[i][1] > points[i - 1][1]:
            start = i
    return points[start:]


def _answer(desk: Desk, words: Words, job: Job) -> str:
    subject = desk.subjects[job.state.subject]
    explanation = job.explanation
    assert explanation is not None
    onward = []
    for way in explanation:
        base = subject.values(job.state.row)
        now = [way.row[name].iloc[0] for name in subject.schema.names]
        edits = {j: value for j, value in enumerate(now) if as_text(value) != as_text(base[j])}
        onward.append(replace(job.state, edits=edits, limits={}, want=(), probability=None).query(desk.first))
    chart = None
    if len(explanation) == 1 and job.points:
        ended = explanation[0].certificate
        points = [*latest(job.points), (explanation.seconds, ended.objective, max(ended.bound, 0.0))]
        chart = figures.closing(points, points[-1][0])
    return desk.text(
        words,
        "answer.html",
        job=job,
        chart=chart,
        ways=ways(job, explanation, subject, words),
        onward=onward,
        explanation=explanation,
        notes=[*explanation.notes, *job.notes],
    )


def _impossible(desk: Desk, words: Words, job: Job, error: Infeasible) -> str:
    subject = desk.subjects[job.state.subject]
    clashes = understand(error, job.state, job.asked, subject, words)
    return desk.text(words, "impossible.html", job=job, clashes=clashes, minimal=error.minimal, first=desk.first)


def _ended(desk: Desk, words: Words, job: Job) -> str:
    longer, language, error = None, words.language, job.error
    there = str(error).startswith(_THERE)
    if there:
        title, text = words("answer.there"), words("answer.there_text")
    elif job.status == "cancelled":
        title, text = words("watch.cancelled"), ""
    elif job.status == "lost":
        title, text = words("watch.lost"), ""
    elif isinstance(error, OutOfTime):
        title, text = words("no.late"), ""
        if job.state.seconds < max(SECONDS):
            longer = replace(job.state, seconds=max(SECONDS)).query(desk.first)
    else:
        title, text, language = words("watch.refused"), str(error), "en"
    again = None if there else job.state.query(desk.first)
    return desk.text(words, "ended.html", title=title, text=text, language=language, again=again, longer=longer)
