"""The worker: a process of its own that holds the explainers and answers one question at a time.

It reads pickled messages from standard input and writes pickled messages to what was its standard output; both ends are
ours, and nothing from a browser is ever unpickled. The search runs in the main thread, where an interrupt ends it with the
best confirmed answer; a second thread listens, so that "cancel" is heard meanwhile. A cancel that comes when the answer is
there already, or when another question is at work, interrupts nothing. When the studio is gone, so is the worker.
"""

from __future__ import annotations

import gc
import os
import pickle
import queue
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, BinaryIO

import cloudpickle

__all__ = ["main", "receive", "send"]

_LENGTH = 8
_EVENTS_APART = 0.05  # seconds between two reports of progress


def send(pipe: BinaryIO, message: Any) -> None:
    """Write one message: its length, and its pickle; a class of a notebook, which no module has, goes along by value."""
    data = cloudpickle.dumps(message)
    pipe.write(len(data).to_bytes(_LENGTH, "big") + data)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """Read one message; None at the end."""
    head = pipe.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    data = pipe.read(int.from_bytes(head, "big"))
    return pickle.loads(data)  # noqa: S301 - from our own process


class _Reporter:
    """Passes on what is heard of a search, but not more often than a page can show; `over` is called at its end."""

    def __init__(self, pipe: BinaryIO, job: str, over: Callable[[], None]) -> None:
        self._pipe, self._job, self._over = pipe, job, over
        self._began, self._last = time.perf_counter(), -1.0

    def __call__(self, event: Any) -> None:
        now = time.perf_counter() - self._began
        kind = type(event).__name__
        if kind == "Finished":
            self._over()
        elif kind == "Incumbent":
            send(self._pipe, ("incumbent", self._job, now, float(event.objective), float(event.bound)))
        elif kind == "Built" and now - self._last > _EVENTS_APART:
            self._last = now
            send(self._pipe, ("built", self._job, now, int(event.columns), int(event.rows)))


class Cancels:
    """The search that a cancel may interrupt: none before it begins, none once its answer is there.

    An interrupt between an answer and its sending would lose the answer, and one that comes late would end the next
    visitor's search; so the handler of the signal asks here first.
    """

    def __init__(self) -> None:
        self.searching: str | None = None
        self.cancelled: str | None = None

    def begin(self, job: str) -> None:
        """Let a cancel of this job interrupt from here on; one that came before does so now."""
        self.searching = job
        self.handle()

    def over(self) -> None:
        """Let nothing interrupt any more."""
        self.searching = None

    def handle(self, *_: Any) -> None:
        """Interrupt the main thread if the search that runs is the one that was cancelled."""
        if self.searching is not None and self.searching == self.cancelled:
            self.searching = None  # once
            raise KeyboardInterrupt


def _answer(pipe: BinaryIO, job: str, explainer: Any, asked: Any, cancels: Cancels) -> None:
    """Answer one question with one message, whatever becomes of it."""
    try:
        message = _searched(pipe, job, explainer, asked, cancels)
    except KeyboardInterrupt:
        message = ("cancelled", job)
    finally:
        cancels.over()
    send(pipe, message)


def _searched(pipe: BinaryIO, job: str, explainer: Any, asked: Any, cancels: Cancels) -> tuple[Any, ...]:
    from ifonly import IfOnlyError, IfOnlyWarning  # noqa: PLC0415 - loaded with the explainers

    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            cancels.begin(job)
            found = explainer.explain(
                asked.row,
                want=asked.want,
                n=asked.n,
                criteria=asked.criteria,
                time_limit=asked.seconds,
                on_event=_Reporter(pipe, job, cancels.over),
            )
        notes = [str(w.message) for w in heard if issubclass(w.category, IfOnlyWarning)]
        return "answer", job, replace(found, reference=None), notes, _around(explainer, found, asked.want)
    except IfOnlyError as error:
        return "refused", job, error
    except Exception as error:  # noqa: BLE001 - whatever the user's model raises, the worker lives on
        return "failed", job, f"{type(error).__name__}: {error}"


def _around(explainer: Any, found: Any, want: Any) -> list[Any]:
    """Return what the model says around the answers; an answer is never lost to a failure of that."""
    from ifonly.studio.insight import Insight, insights  # noqa: PLC0415 - loaded with the explainers

    try:
        return list(insights(explainer, found, want))
    except Exception:  # noqa: BLE001 - see above
        return [Insight() for _ in found]


class _Listener(threading.Thread):
    """Takes messages in: questions go to the main thread, a cancel interrupts it."""

    def __init__(self, pipe: BinaryIO, cancels: Cancels) -> None:
        super().__init__(daemon=True)
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._pipe, self._cancels = pipe, cancels

    def run(self) -> None:
        while (message := receive(self._pipe)) is not None:
            if message[0] != "cancel":
                self.inbox.put(message)
            else:
                self._cancels.cancelled = message[1]
                if self._cancels.searching == message[1]:  # no other question is read meanwhile, so none is hit
                    _interrupt()
        os._exit(0)  # the studio is gone: whatever is being searched for, nobody waits for it


def _interrupt() -> None:
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        import _thread  # noqa: PLC0415 - where signals cannot be sent to a thread

        _thread.interrupt_main()


def main() -> None:
    """Serve questions until the studio closes the pipe."""
    # Whoever prints, a model or a solver, must not end up between our messages.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    cancels = Cancels()
    signal.signal(signal.SIGINT, cancels.handle)
    listener = _Listener(sys.stdin.buffer, cancels)
    listener.start()
    explainers: dict[str, Any] = {}
    while True:
        kind, *rest = listener.inbox.get()
        if kind == "subjects":
            gc.disable()  # while scikit-learn and the like are loaded, which stay
            explainers = pickle.loads(rest[0])  # noqa: S301 - from our own process
            gc.freeze()
            gc.enable()
            send(out, ("ready",))
        elif kind == "ask":
            job, key, asked = rest
            _answer(out, job, explainers[key], asked, cancels)


if __name__ == "__main__":
    main()
