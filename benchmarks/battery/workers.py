"""Questions over several processes: one that dies costs one question, and the rest of its block is asked again."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from benchmarks.battery.run import Result, run_block

__all__ = ["all_results"]


def all_results(seed: int, work: Iterator[tuple[int, list[int]]], jobs: int, until: float) -> Iterator[Result]:
    """Yield results as they come: in this process, or from several, of which one that dies costs one question."""
    if jobs == 1:
        for block, numbers in work:
            if time.perf_counter() > until:
                return
            yield from run_block(seed, block, numbers)
        return
    workers = [_Worker(seed) for _ in range(jobs)]
    busy: dict[Any, _Worker] = {}
    for worker in workers:
        _feed(worker, work, busy, until)
    while busy:
        for pipe in wait(list(busy)):
            worker = busy.pop(pipe)
            yield from worker.results()
            _feed(worker, work, busy, until)
    for worker in workers:
        worker.stop()


def _feed(worker: _Worker, work: Iterator[tuple[int, list[int]]], busy: dict[Any, _Worker], until: float) -> None:
    if not worker.left and time.perf_counter() < until:
        block, numbers = next(work, (0, []))
        worker.give(block, numbers)
    elif worker.left:
        worker.give(worker.block, worker.left)
    if worker.left:
        busy[worker.pipe] = worker


class _Worker:
    """A process that asks the questions of one block after the other."""

    def __init__(self, seed: int) -> None:
        self.seed, self.block, self.left = seed, 0, list[int]()
        self._start()

    def _start(self) -> None:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(name, "1")  # the processes are the parallel part
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, self.seed), daemon=True)
        self.process.start()
        other.close()

    def give(self, block: int, numbers: Sequence[int]) -> None:
        """Hand over questions."""
        self.block, self.left = block, list(numbers)
        if self.left:
            self.pipe.send((block, self.left))

    def results(self) -> list[Result]:
        """Take what the process has found; if it died, the first question left is to blame."""
        try:
            found = [Result(**r) for r in self.pipe.recv()]
            self.left = []
        except (EOFError, OSError):
            crashed = self.left.pop(0)
            found = [Result(self.seed, crashed, "failed", faults=[{"kind": "crash", "text": "the process died"}])]
            self._start()
        return found

    def stop(self) -> None:
        """Let the process end."""
        self.pipe.close()
        self.process.join(5)


def _serve(pipe: Connection, seed: int) -> None:
    while True:
        try:
            block, numbers = pipe.recv()
        except EOFError:
            return
        pipe.send([r.record() for r in run_block(seed, block, numbers)])
