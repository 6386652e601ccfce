"""The worker and its pool: answers, refusals and failures are messages; cancels, kills and deafness are survived."""

import asyncio
import io
import os
import signal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ifonly import Explainer
from ifonly.studio import pool as pools
from ifonly.studio.pool import OPEN, Job, Pool
from ifonly.studio.rules import Question, question
from ifonly.studio.state import State
from ifonly.studio.worker import Cancels, _answer, receive, send
from studio_world import classifier


@cache
def hard() -> tuple[Explainer, Question]:
    """A question whose proof takes far longer than anybody waits."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 60)), columns=[f"x{i}" for i in range(60)])
    y = np.where(np.sin(X.sum(axis=1)) + (X**2).sum(axis=1) / 60 > 1.2, "yes", "no")
    model = RandomForestClassifier(300, random_state=0).fit(X, y)
    row = X.iloc[[int(model.predict_proba(X)[:, 0].argmax())]]
    return Explainer(model, X), Question(row, "yes", 1, (), 120.0)


def messages(pipe: io.BytesIO) -> list[Any]:
    pipe.seek(0)
    found = []
    while (message := receive(pipe)) is not None:
        found.append(message)
    return found


def test_messages_come_back_as_they_were_sent() -> None:
    pipe = io.BytesIO()
    for message in (("a", 1), {"b": [2.5]}, "c" * 100_000):
        send(pipe, message)
    assert messages(pipe) == [("a", 1), {"b": [2.5]}, "c" * 100_000]
    assert receive(io.BytesIO(b"\0\0")) is None


def test_answers_refusals_and_failures_are_messages() -> None:
    subject = classifier()
    refused = int(np.flatnonzero(subject.known()[0] == "no")[0])
    asked = question(State("yes", refused), subject, "no")
    pipe = io.BytesIO()
    _answer(pipe, "1", subject.explainer, asked, Cancels())
    *before, last = messages(pipe)
    assert {m[0] for m in before} <= {"incumbent", "built"}
    assert last[0] == "answer"
    assert last[2].status == "optimal"
    assert last[4][0].buys
    for bad, kind in ((Question(asked.row, "nobody", 1, (), 5.0), "refused"), (None, "failed")):
        pipe = io.BytesIO()
        _answer(pipe, "2", subject.explainer, bad, Cancels())
        assert messages(pipe)[-1][:2] == (kind, "2")


class _Struck:
    """An explainer on which the cancel falls at a chosen moment of the call."""

    def __init__(self, explainer: Explainer, cancels: Cancels, moment: str) -> None:
        self._explainer, self._cancels, self._moment = explainer, cancels, moment

    def __getattr__(self, name: str) -> Any:
        if self._moment == "around" and name == "model":  # the measurements around the answer ask for it
            self._cancels.handle()
        return getattr(self._explainer, name)

    def explain(self, *given: Any, **options: Any) -> Any:
        if self._moment == "before":
            self._cancels.handle()
        found = self._explainer.explain(*given, **options)
        self._cancels.handle()  # as the interpreter does, between the return of a call and what is done with it
        return found


@pytest.mark.parametrize(("moment", "kind"), [("before", "cancelled"), ("after", "answer"), ("around", "answer")])
def test_a_cancel_between_an_answer_and_its_sending_loses_nothing(moment: str, kind: str) -> None:
    subject = classifier()
    refused = int(np.flatnonzero(subject.known()[0] == "no")[0])
    asked = question(State("yes", refused), subject, "no")
    cancels, pipe = Cancels(), io.BytesIO()
    struck = _Struck(subject.explainer, cancels, moment)
    begin = cancels.begin

    def began(job: str) -> None:
        begin(job)
        cancels.cancelled = job  # it arrives once the search runs

    cancels.begin = began  # type: ignore[method-assign]
    _answer(pipe, "1", struck, asked, cancels)
    *_, last = messages(pipe)
    assert last[:2] == (kind, "1")
    if kind == "answer":
        assert last[2].status == "optimal"
        assert last[4][0].buys


def test_a_cancel_ends_its_own_search_only() -> None:
    cancels = Cancels()
    cancels.cancelled = "earlier"
    cancels.begin("later")
    cancels.handle()
    cancels.cancelled = "later"
    with pytest.raises(KeyboardInterrupt):
        cancels.handle()
    cancels.handle()  # a second signal for the same search finds nothing to end
    with pytest.raises(KeyboardInterrupt):
        cancels.begin("later")  # cancelled before it began


def test_what_a_stopped_search_had_found_is_found_again() -> None:
    subject = classifier()
    refused = int(np.flatnonzero(subject.known()[0] == "no")[0])

    async def scene() -> Job:
        pool = Pool({"yes": subject.explainer}, 1)
        await pool.start()
        try:
            job = pool.ask("me", State("yes", refused), question(State("yes", refused), subject, "no"))
            while job.status == "queued":
                await job.news(job.version, 5.0)
            worker = pool._workers[0]
            # As when the interrupt falls after the search, before its answer is whole.
            job.cancelled = 0.0
            pool._hear(worker, ("incumbent", job.id, 0.1, 1.0, 0.5))
            pool._hear(worker, ("cancelled", job.id))
            assert job.salvage is not None
            await asyncio.wait_for(ended(job), 60)
            return job
        finally:
            await pool.stop()

    job = asyncio.run(scene())
    assert job.status == "answered"
    assert job.explanation is not None
    assert job.explanation.interrupted


async def ended(job: Job) -> None:
    while job.status in OPEN:
        await job.news(job.version, 5.0)


async def first_point(job: Job) -> None:
    while not job.points:
        assert job.status in OPEN
        await job.news(job.version, 5.0)


@pytest.mark.slow
@pytest.mark.parametrize("deaf", [False, True], ids=["heard", "deaf"])
def test_a_cancelled_search_gives_its_best_answer(monkeypatch: pytest.MonkeyPatch, deaf: bool) -> None:
    explainer, asked = hard()

    async def scene() -> Job:
        pool = Pool({"hard": explainer}, 1)
        await pool.start()
        try:
            job = pool.ask("me", State("hard"), asked)
            await asyncio.wait_for(first_point(job), 60)
            monkeypatch.setattr(pools, "_HEED", 0.1 if deaf else 30.0)
            if deaf:  # a worker that hears nothing, as one deep in a solver
                monkeypatch.setattr(pool._workers[0], "tell", lambda _: None)
            pool.cancel(job)
            await asyncio.wait_for(ended(job), 120)
            return job
        finally:
            await pool.stop()

    job = asyncio.run(scene())
    assert job.status == "answered"
    assert job.explanation is not None
    assert job.explanation.interrupted
    assert explainer.model.estimator.predict(job.explanation.frame())[0] == "yes"
    assert (job.salvage is not None) == deaf


def test_a_killed_worker_is_replaced_and_its_visitor_told() -> None:
    explainer, asked = hard()
    subject = classifier()
    refused = int(np.flatnonzero(subject.known()[0] == "no")[0])

    async def scene() -> tuple[Job, Job]:
        pool = Pool({"hard": explainer, "yes": subject.explainer}, 1)
        await pool.start()
        try:
            lost = pool.ask("me", State("hard"), asked)
            await asyncio.wait_for(first_point(lost), 60)
            waiting = pool.ask("you", State("yes", refused), question(State("yes", refused), subject, "no"))
            os.kill(pool._workers[0].process.pid, signal.SIGKILL)
            await asyncio.wait_for(ended(lost), 60)
            await asyncio.wait_for(ended(waiting), 60)
            return lost, waiting
        finally:
            await pool.stop()

    lost, waiting = asyncio.run(scene())
    assert lost.status == "lost"
    assert waiting.status == "answered"
