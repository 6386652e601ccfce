"""Questions in a queue, and the worker processes that answer them.

A visitor has one question at a time; a further one waits, and the visitor who has waited longest is served first. A worker
that dies is replaced, and whoever it was working for is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import subprocess
import sys
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Literal
from uuid import uuid4

import cloudpickle

from ifonly import Explainer, Explanation, Infeasible
from ifonly.studio.insight import Insight
from ifonly.studio.rules import Question
from ifonly.studio.state import State
from ifonly.studio.worker import receive, send

__all__ = ["Busy", "Job", "Pool"]

Status = Literal["queued", "running", "answered", "impossible", "refused", "cancelled", "lost"]
OPEN = ("queued", "running")
_REMEMBERED = 300  # questions, with their answers
_VISITORS = 1000  # of whom it is known when they were served last; as many as hold a cookie
_MOST_POINTS = 400  # of one chart
_MOST_WAITING, _MOST_OF_ONE = 60, 4
_PATIENCE = 5.0  # seconds beyond its limit before a worker is replaced
_HEED = 2.0  # seconds in which a worker heeds a cancel; a solver that is deep in its work may not


class Busy(Exception):
    """The queue is full, for everybody or for this visitor."""


@dataclass(eq=False)
class Job:
    """One question on its way: where it stands, what was heard of it, and how it ended."""

    id: str
    visitor: str
    state: State
    _asked: bytes = field(repr=False)
    status: Status = "queued"
    points: list[tuple[float, float, float]] = field(default_factory=list)  # seconds, best, bound
    size: tuple[int, int] | None = None
    notes: list[str] = field(default_factory=list)
    insights: list[Insight] = field(default_factory=list)
    began: float | None = None
    cancelled: float | None = None
    salvage: Question | None = None
    version: int = 0
    # Packed, like the question, because the last ones are remembered: an answer with its tables takes 100 kB, packed 10.
    _answer: bytes | None = field(default=None, repr=False)
    _error: bytes | None = field(default=None, repr=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    @property
    def asked(self) -> Question:
        """The question; unpacked anew each time."""
        question: Question = _unpacked(self._asked)
        return question

    @property
    def explanation(self) -> Explanation | None:
        """The answer, if there is one; unpacked anew each time."""
        return None if self._answer is None else _unpacked(self._answer)

    @explanation.setter
    def explanation(self, found: Explanation) -> None:
        self._answer = _packed(found)

    @property
    def error(self) -> Exception | str | None:
        """The reason why there is no answer; unpacked anew each time."""
        return None if self._error is None else _unpacked(self._error)

    @error.setter
    def error(self, error: Exception | str) -> None:
        self._error = _packed(error)

    def progress(self, seconds: float, best: float, bound: float) -> None:
        """Add a point to the chart; of very many, every other one is left out."""
        self.points.append((seconds, best, bound))
        if len(self.points) > _MOST_POINTS:
            del self.points[1:-1:2]

    def touch(self) -> None:
        """Wake whoever watches."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def news(self, seen: int, timeout: float) -> bool:
        """Wait until there is more than was seen; False when nothing came in time."""
        if self.version != seen:
            return True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout)
        return self.version != seen


def _packed(value: Any) -> bytes:
    return zlib.compress(cloudpickle.dumps(value), 1)


def _unpacked(data: bytes) -> Any:
    return pickle.loads(zlib.decompress(data))  # noqa: S301 - packed here


class _Worker:
    """One worker process, and the thread that reads from it."""

    def __init__(self, subjects: bytes, hear: Callable[[_Worker, Any], None]) -> None:
        self.job: Job | None = None
        self.ready = False
        environment = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")}
        environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from ifonly.studio.worker import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C in the terminal is the studio's to handle
        )
        self._hear, self._lock = hear, threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self.tell, args=(("subjects", subjects),), daemon=True).start()

    def tell(self, message: Any) -> None:
        """Send a message; a worker that is gone hears nothing, and its reader says so."""
        assert self.process.stdin is not None
        with self._lock, contextlib.suppress(OSError, ValueError):
            send(self.process.stdin, message)  # type: ignore[arg-type]

    def _read(self) -> None:
        assert self.process.stdout is not None
        message: Any = ()
        while message is not None:
            try:
                message = receive(self.process.stdout)  # type: ignore[arg-type]
            except Exception:  # noqa: BLE001 - a message torn by a kill ends the worker
                message = None
            self._hear(self, message)

    def end(self) -> None:
        """Kill the process and wait for it."""
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()


class Pool:
    """The queue and its workers. All methods belong to the event loop's thread."""

    def __init__(self, explainers: Mapping[str, Explainer], size: int = 2) -> None:
        from joblib import wrap_non_picklable_objects  # noqa: PLC0415 - only a running studio needs it

        # Models of a notebook are found by value, not by a name that the worker does not know.
        self._subjects = pickle.dumps(wrap_non_picklable_objects(dict(explainers), keep_wrapper=False))
        self._size = size
        self._workers: list[_Worker] = []
        self._queue: list[Job] = []
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._served: OrderedDict[str, float] = OrderedDict()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clock: asyncio.Task[None] | None = None

    # -- life -------------------------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Start a worker, and the others once it is ready: until then the first page needs the processor, too."""
        self._loop = asyncio.get_running_loop()
        self._workers = [self._new()]
        self._clock = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """End the workers."""
        if self._clock is not None:
            self._clock.cancel()
        workers, self._workers, self._loop = self._workers, [], None
        for worker in workers:
            worker.end()
        for job in self._jobs.values():
            if job.status in OPEN:
                job.status = "lost"
                job.touch()

    def _new(self) -> _Worker:
        return _Worker(self._subjects, self._hear_from_thread)

    def _hear_from_thread(self, worker: _Worker, message: Any) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(self._hear, worker, message)

    # -- asking -----------------------------------------------------------------------------------------------------
    def ask(self, visitor: str, state: State, asked: Question) -> Job:
        """Put a question into the queue.

        Raises
        ------
        Busy
            When too many wait already.
        """
        waiting = [job for job in self._queue if job.visitor == visitor]
        if len(self._queue) >= _MOST_WAITING or len(waiting) >= _MOST_OF_ONE:
            raise Busy
        job = Job(uuid4().hex, visitor, state, _packed(asked))
        self._jobs[job.id] = job
        while len(self._jobs) > _REMEMBERED:
            oldest = next((k for k, j in self._jobs.items() if j.status not in OPEN), None)
            if oldest is None:
                break
            del self._jobs[oldest]
        self._queue.append(job)
        self._serve()
        return job

    def job(self, job_id: str, visitor: str) -> Job | None:
        """Return a job of this visitor."""
        job = self._jobs.get(job_id)
        return job if job is not None and job.visitor == visitor else None

    def place(self, job: Job) -> int:
        """Return how many are served before this one, itself included; 0 when it is being served."""
        order = self._order()
        return order.index(job) + 1 if job in order else 0

    def cancel(self, job: Job) -> None:
        """Stop a question; the best confirmed answer so far is kept."""
        if job in self._queue:
            self._queue.remove(job)
            job.status = "cancelled"
            job.touch()
            self._tell_places()
        elif job.status == "running" and job.cancelled is None:
            job.cancelled = time.monotonic()
            for worker in self._workers:
                if worker.job is job:
                    threading.Thread(target=worker.tell, args=(("cancel", job.id),), daemon=True).start()
            job.touch()

    def _order(self) -> list[Job]:
        """Return the queue in the order of service: who was served longest ago comes first, then who asked first."""
        ahead: dict[str, int] = {}
        ranked = []
        for position, job in enumerate(self._queue):
            mine = ahead.get(job.visitor, 0)
            ahead[job.visitor] = mine + 1
            mine = mine if job.salvage is None else -1  # only to bring back what was there already
            ranked.append((mine, self._served.get(job.visitor, 0.0), position, job))
        return [job for *_, job in sorted(ranked, key=lambda entry: entry[:3])]

    def _serve(self) -> None:
        for worker in self._workers:
            if not worker.ready or worker.job is not None:
                continue
            busy = {w.job.visitor for w in self._workers if w.job is not None}
            job = next((j for j in self._order() if j.visitor not in busy), None)
            if job is None:
                break
            self._queue.remove(job)
            worker.job, job.status, job.began = job, "running", time.monotonic()
            self._served[job.visitor] = job.began
            self._served.move_to_end(job.visitor)
            if len(self._served) > _VISITORS:
                self._served.popitem(last=False)
            message = ("ask", job.id, job.state.subject, job.salvage or job.asked)
            threading.Thread(target=worker.tell, args=(message,), daemon=True).start()
            job.touch()
        self._tell_places()

    def _tell_places(self) -> None:
        for job in self._queue:
            job.touch()

    # -- hearing ----------------------------------------------------------------------------------------------------
    def _hear(self, worker: _Worker, message: Any) -> None:
        if worker not in self._workers:
            return
        if message is None:
            self._replace(worker)
            return
        kind, *rest = message
        if kind == "ready":
            worker.ready = True
            self._workers += [self._new() for _ in range(self._size - len(self._workers))]
            self._serve()
            return
        job = worker.job
        if job is None or rest[0] != job.id:
            return
        if kind == "incumbent":
            _, seconds, best, bound = rest
            job.progress(seconds, best, bound if isfinite(bound) else 0.0)
        elif kind == "built":
            job.size = (rest[2], rest[3])
        elif kind == "cancelled" and job.points and job.salvage is None:
            self._salvage(worker, job)
            self._serve()
        else:
            self._close(job, kind, rest[1:])
            worker.job = None
            self._serve()
        job.touch()

    def _close(self, job: Job, kind: str, rest: list[Any]) -> None:
        if kind == "answer":
            job.status, job.notes, job.insights = "answered", rest[1], rest[2]
            job.explanation = rest[0] if job.salvage is None else replace(rest[0], interrupted=True)
        elif kind == "cancelled":
            job.status = "cancelled"
        elif kind == "refused":
            job.error = rest[0]
            job.status = "impossible" if isinstance(rest[0], Infeasible) else "refused"
        else:
            job.status, job.error = "refused", rest[0]

    def _deaf(self, worker: _Worker, job: Job) -> None:
        """End a worker that does not heed a cancel; what it had found is found again."""
        if job.points and job.salvage is None:
            self._salvage(worker, job)
        self._replace(worker)

    def _salvage(self, worker: _Worker, job: Job) -> None:
        """Queue a stopped question once more, for about the time in which its best answer had been found."""
        job.salvage = replace(job.asked, seconds=2.0 * job.points[-1][0] + 1.0)
        job.status = "queued"
        self._queue.append(job)
        worker.job = None

    def _replace(self, worker: _Worker) -> None:
        worker.end()
        if worker.job is not None:
            job = worker.job
            job.status = "cancelled" if job.cancelled is not None else "lost"
            job.touch()
        self._workers[self._workers.index(worker)] = self._new()
        self._serve()

    async def _watch(self) -> None:
        """Replace a worker that heeds neither its time limit nor a cancel; tell the seconds of those that run."""
        while True:
            await asyncio.sleep(0.5)
            now = time.monotonic()
            for worker in list(self._workers):
                job = worker.job
                if job is None or job.began is None:
                    continue
                asked = job.salvage or job.asked
                if now - job.began > 2 * asked.seconds + _PATIENCE:
                    self._replace(worker)
                elif job.salvage is None and job.cancelled is not None and now - job.cancelled > _HEED:
                    self._deaf(worker, job)
                else:
                    job.touch()
