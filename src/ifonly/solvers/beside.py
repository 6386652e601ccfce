"""A watchdog: a solve runs in a thread beside its caller, who leaves it when its time is over.

A solver looks at the clock between its steps, and a step can be long: HiGHS separated cuts for 0.2 s and probed for 0.3 s
on a program of 1,300 columns without a look. The caller does not wait for that. It goes on with what it has heard; the
solver is told to stop, does so at its next look, and the thread ends with it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

__all__ = ["Beside"]

Message = TypeVar("Message")


class Beside(Generic[Message]):
    """A solve in a thread of its own, whose messages are heard in the thread of the caller.

    The thread is no daemon: at its end the interpreter waits for the last step of a solver that was left, instead of taking
    the library away from under it.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[Message | None] = SimpleQueue()
        self._left = threading.Event()

    @property
    def left(self) -> bool:
        """Whether the caller has gone on: the solver is to stop, and nobody hears it any more."""
        return self._left.is_set()

    def tell(self, message: Message) -> None:
        """Leave a message for the caller; called by the solver."""
        self._queue.put(message)

    def run(self, work: Callable[[], object], seconds: float, hear: Callable[[Message], None]) -> bool:
        """Return whether `work` has ended within some seconds; its exceptions, and those of `hear`, are raised here."""
        failed: list[BaseException] = []

        def whole() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
                failed.append(error)
            finally:
                self._queue.put(None)

        ends = time.perf_counter() + min(seconds, threading.TIMEOUT_MAX)
        thread = threading.Thread(target=whole, name="ifonly solve")
        thread.start()
        try:
            while (message := self._queue.get(timeout=max(ends - time.perf_counter(), 0.0))) is not None:
                hear(message)
        except Empty:
            self._left.set()
            return False
        except BaseException:
            self._left.set()
            raise
        thread.join()
        if failed:
            raise failed[0]
        return True
