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
from ifonly.studio.worker import _answer, receive, send
from studio_world import classifier


@cache
def hard() -> tuple[Explainer, Question]:
    """A question whose proof takes far longer than anybody waits."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 30)), columns=[f"x{i}" for i in range(30)])
    y = np.where(np.sin(X.sum(axis=1)) + (X**2).sum(axis=1) / 30 > 1.2, "yes", "no")
    model = RandomForestClassifier(200, random_state=0).fit(X, y)
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
    _answer(pipe, "1", subject.explainer, asked)
    *before, last = messages(pipe)
    assert {m[0] for m in before} <= {"incumbent", "built"}
    assert last[0] == "answer"
    assert last[2].status == "optimal"
    assert last[4][0].buys
    for bad, kind in ((Question(asked.row, "nobody", 1, (), 5.0), "refused"), (None, "failed")):
        pipe = io.BytesIO()
        _answer(pipe, "2", subject.explainer, bad)
        assert messages(pipe)[-1][:2] == (kind, "2")


async def ended(job: Job) -> None:
    while job.status in OPEN:
        await job.news(job.version, 5.0)


async def first_point(job: Job) -> None:
    while not job.points:
        assert job.status in OPEN
        await job.news(job.version, 5.0)


@pytest.mark.parametrize("deaf", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["heard", "deaf"])
def test_a_cancelled_search_gives_its_best_answer(monkeypatch: pytest.MonkeyPatch, deaf: bool) -> None:
    explainer, asked = hard()

    async def scene() -> Job:
        pool = Pool({"hard": explainer}, 1)
        await pool.start()
        try:
            job = pool.ask("me", State("hard"), asked)
            await asyncio.wait_for(first_point(job), 60)
            if deaf:  # a worker that hears nothing, as one deep in a solver
                monkeypatch.setattr(pools, "_HEED", 0.1)
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
