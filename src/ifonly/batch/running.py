"""Running a plan: shards that are not done go to workers, and whatever dies on the way is done again."""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ifonly.batch.executors import finished, is_futures, sent, spread, window, workers
from ifonly.batch.jobs import Job, Report, rows_under_way, run_shard, run_task
from ifonly.batch.parcels import Parcel
from ifonly.batch.plan import Plan, Shard
from ifonly.batch.progress import Listener
from ifonly.batch.reading import FrameSource
from ifonly.batch.shards import State, shard_folder, state_of
from ifonly.errors import BatchFailed
from ifonly.runtime.tuning import Batches

__all__ = ["Run", "plan_state", "run_plan"]


@dataclass
class Run:
    """Result of a run: the shards it did, left to other runners, or had to give up."""

    done: list[int] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)
    dead: list[int] = field(default_factory=list)
    interrupted: bool = False

    def take(self, report: Report, listener: Listener) -> None:
        """Note the end of a shard."""
        if report.busy:
            self.busy.append(report.shard)
        elif report.done:
            self.done.append(report.shard)
        listener.ended(report)


def run_plan(
    job: Job,
    folder: Path,
    listener: Listener,
    *,
    shards: Sequence[int] | None = None,
    executor: Any = None,
    n_jobs: int | None = 1,
) -> Run:
    """Run the shards of a plan that are not done; with `shards`, only these.

    Ctrl-C lets the workers finish the rows they are at and keeps them, and `Run.interrupted` says so; a second one ends all
    at once, which costs the last two seconds of work.
    """
    plan = job.plan
    chosen = plan.shards() if shards is None else [plan.shard(k) for k in shards]
    todo = [s for s in chosen if state_of(folder, plan, s) is not State.DONE]
    run = Run()
    with listener:
        listener.began(sum(s.rows for s in chosen), sum(s.rows for s in chosen) - sum(s.rows for s in todo), len(todo))
        if not todo:
            return run
        # A shard that is asked for by its number is run even if somebody else is at it: the result is the same.
        claim = shards is None
        if executor is None and workers(None, n_jobs) == 1:
            _run_here(run, job, folder, todo, listener, claim)
        else:
            _Crew(run, job, folder, listener, executor, n_jobs, claim).run(todo)
    if run.dead:
        raise BatchFailed(
            f"{len(run.dead)} of {len(todo)} shards killed their worker {job.explainer.tuning.batches.deaths} times, alone: "
            f"{_some(run.dead)}. Look for a lack of memory, or a model that crashes the process on one of their rows. All "
            "other shards are done; run the batch again once that is mended."
        )
    return run


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")


def _run_here(run: Run, job: Job, folder: Path, todo: Sequence[Shard], listener: Listener, claim: bool) -> None:
    """Run shards one after the other in this process."""
    try:
        for shard in todo:
            listener.beat(0)
            run.take(run_shard(job, folder, shard.number, claim=claim), listener)
    except KeyboardInterrupt:
        run.interrupted = True


def _few_threads(processes: int) -> dict[str, str]:
    """Return an environment in which linear algebra shares the cores among processes, unless the user has said how."""
    share = str(max(1, (os.cpu_count() or 1) // processes))
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return {name: os.environ.get(name, share) for name in names}


@dataclass
class _Crew:
    """Workers of any kind, and the shards that are under way."""

    result: Run
    job: Job
    folder: Path
    listener: Listener
    executor: Any
    n_jobs: int | None
    claim: bool

    @property
    def tuning(self) -> Batches:
        """The tuned numbers of the explainer."""
        return self.job.explainer.tuning.batches

    def run(self, todo: Sequence[Shard]) -> None:
        """Hand out all shards, and collect their ends."""
        packed = self.job
        self.frame: FrameSource | None = None
        if isinstance(packed.source, FrameSource):  # rows in memory travel shard by shard, not all with each
            self.frame, packed = packed.source, replace(packed, source=None)
        stop = shard_folder(self.folder) / f"stop-{secrets.token_hex(4)}"
        stop.parent.mkdir(parents=True, exist_ok=True)
        self.work = partial(run_task, claim=self.claim)
        self.parcel, self.stop = Parcel.of(packed), stop
        try:
            if is_futures(self.executor):
                self._by_futures(deque(todo), own=False)
            elif self._is_loky():
                self._by_futures(deque(todo), own=True)
            else:
                self._by_joblib(todo)
        finally:
            stop.unlink(missing_ok=True)

    def _task(self, parcel: Any, shard: Shard) -> tuple[Any, ...]:
        piece = None if self.frame is None else self.frame.read(shard)
        return parcel, str(self.folder.resolve()), shard.number, piece, str(self.stop.resolve())

    # -- joblib backends without futures ----------------------------------------------------------------------------
    def _is_loky(self) -> bool:
        from joblib.parallel import get_active_backend  # noqa: PLC0415 - loaded only for batches

        return self.executor == "loky" or (
            self.executor is None and type(get_active_backend()[0]).__name__ == "LokyBackend"
        )

    def _by_joblib(self, todo: Sequence[Shard]) -> None:
        tasks = (self._task(self.parcel, shard) for shard in todo)
        try:
            for report in spread(self.work, tasks, tuning=self.tuning, executor=self.executor, n_jobs=self.n_jobs):
                self.result.take(report, self.listener)
        except KeyboardInterrupt:
            self.stop.touch()
            self.result.interrupted = True

    # -- futures ------------------------------------------------------------------------------------------------------
    def _by_futures(self, waiting: deque[Shard], *, own: bool) -> None:
        self.pool = self._pool() if own else self.executor
        parcel = sent(self.parcel, self.pool)
        under_way: dict[Any, Shard] = {}
        most = window(None if own else self.executor, self.n_jobs, self.tuning)
        with self._stopping(under_way, own=own):
            while waiting or under_way:
                try:
                    while waiting and len(under_way) < most:
                        under_way[self.pool.submit(self.work, *self._task(parcel, waiting[0]))] = waiting[0]
                        waiting.popleft()
                    self._collect(under_way)
                except BrokenExecutor:
                    if not own:
                        raise BatchFailed(
                            "The executor broke: a worker died, perhaps for lack of memory. What is done is kept; run the "
                            "batch again with a new executor."
                        ) from None
                    self._after_a_death(list(under_way.values()))
                    under_way.clear()

    def _collect(self, under_way: dict[Any, Shard]) -> None:
        done = finished(under_way, self.tuning)
        for future in done:
            report = future.result()
            del under_way[future]
            self.result.take(report, self.listener)
        if not done:
            self.listener.beat(rows_under_way(self.folder))

    def _pool(self, count: int | None = None) -> Any:
        """Return a pool of our own: joblib's is shared by all that runs in this process, and a death would break it."""
        from joblib.externals.loky import ProcessPoolExecutor  # noqa: PLC0415 - loaded only for batches

        count = workers(None, self.n_jobs) if count is None else count
        return ProcessPoolExecutor(max_workers=count, env=_few_threads(count))

    def _after_a_death(self, suspects: Sequence[Shard]) -> None:
        """Run the shards that were under way when a worker died one by one; give up the one that kills again."""
        self.listener.told(
            "A worker died (killed, or out of memory). Nothing is lost: the shards it was at are run again, one by one."
        )
        self.pool = self._pool(1)
        most = max(1, self.tuning.deaths)
        for shard in suspects:
            for death in range(1, most + 1):
                try:
                    report = self.pool.submit(self.work, *self._task(self.parcel, shard)).result()
                except BrokenExecutor:
                    self.pool = self._pool(1)
                    if death == most:
                        self.result.dead.append(shard.number)
                    continue
                self.result.take(report, self.listener)
                break
        self.pool.shutdown(wait=False)
        self.pool = self._pool()  # whose processes start with the first task, if there is one

    def _wait(self, under_way: dict[Any, Shard]) -> None:
        """Take back what has not begun, and wait for the rest, which the stop file ends after the row it is at."""
        for future in under_way:
            future.cancel()
        for future in [f for f in under_way if not f.cancelled()]:
            with suppress(Exception):
                self.result.take(future.result(), self.listener)

    @contextmanager
    def _stopping(self, under_way: dict[Any, Shard], *, own: bool) -> Iterator[None]:
        """On Ctrl-C, tell the workers to stop and wait for them; on a second one, end them at once."""
        at_once = False
        try:
            yield
        except KeyboardInterrupt:
            self.result.interrupted = True
            self.stop.touch()
            self.listener.told("Stopping after the rows under way, which are kept. Ctrl-C again stops at once.")
            try:
                self._wait(under_way)
            except KeyboardInterrupt:
                at_once = True
        except BaseException:  # of one shard; the others stop as for Ctrl-C
            self.stop.touch()
            self._wait(under_way)
            raise
        finally:
            if own:  # told once: a second call without the order to kill would take the order back
                self.pool.shutdown(wait=False, kill_workers=at_once)


def plan_state(folder: Path, plan: Plan) -> dict[State, list[int]]:
    """Return the shards of a plan by what their files are."""
    found: dict[State, list[int]] = {state: [] for state in State}
    for shard in plan.shards():
        found[state_of(folder, plan, shard)].append(shard.number)
    return found
