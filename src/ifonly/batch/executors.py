"""Executors: one way to spread tasks, whoever runs them.

An executor is nothing (joblib with its own default, loky), the name of a joblib backend, or anything whose
``submit(function, *arguments)`` returns a future: those of `concurrent.futures`, Dask's ``client.get_executor()``, mpi4py,
submitit.
"""

from __future__ import annotations

import concurrent.futures
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from typing import Any, TypeVar

from ifonly.batch.parcels import Parcel
from ifonly.errors import CriterionError
from ifonly.runtime.tuning import Batches

__all__ = ["finished", "is_futures", "sent", "spread", "window", "workers"]

Task = tuple[Any, ...]
R = TypeVar("R")


def is_futures(executor: Any) -> bool:
    """Whether an executor hands out futures; says what an executor may be when it is none."""
    if executor is None or isinstance(executor, str):
        return False
    if callable(getattr(executor, "submit", None)):
        return True
    raise CriterionError(
        f"'executor' must have a submit method, as those of concurrent.futures and Dask's client.get_executor() do, or be "
        f"the name of a joblib backend such as 'multiprocessing'; got {type(executor).__name__}."
    )


def workers(executor: Any, n_jobs: int | None) -> int:
    """Return how many tasks run at the same time, as far as it can be known."""
    if not is_futures(executor):
        import joblib  # noqa: PLC0415 - loaded only for batches

        if n_jobs == 0:
            raise CriterionError("'n_jobs' must be a number of processes, or -1 for all cores; got 0.")
        with _backend(executor):
            return max(1, int(joblib.effective_n_jobs(n_jobs)))
    known = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)
    client = getattr(executor, "_client", None)
    if client is not None and callable(getattr(client, "ncores", None)):
        known = sum(client.ncores().values())
    return int(known) if isinstance(known, int) and known > 0 else os.cpu_count() or 1


def window(executor: Any, n_jobs: int | None, tuning: Batches) -> int:
    """Return how many tasks to have under way: enough to keep workers busy, few enough to keep memory flat."""
    return max(1, tuning.tasks_per_worker) * workers(executor, n_jobs)


def spread(
    work: Callable[..., R], tasks: Iterable[Task], *, tuning: Batches, executor: Any = None, n_jobs: int | None = 1
) -> Iterator[R]:
    """Yield the results of all tasks, in order; no more tasks are made than are under way."""
    if is_futures(executor):
        yield from _by_futures(work, tasks, executor, window(executor, n_jobs, tuning))
    else:
        yield from _by_joblib(work, tasks, executor, n_jobs, tuning)


def sent(parcel: Parcel, executor: Any) -> Any:
    """Return what stands for a parcel in a task: with Dask a future of it, sent to every worker once; else itself."""
    client = getattr(executor, "_client", None)
    if client is None or not callable(getattr(client, "scatter", None)):
        return parcel
    return client.scatter(parcel, broadcast=True)


def _by_futures(work: Callable[..., R], tasks: Iterable[Task], executor: Any, most: int) -> Iterator[R]:
    waiting: deque[Any] = deque()
    left = iter(tasks)
    try:
        for task in islice(left, most):
            waiting.append(executor.submit(work, *task))
        while waiting:
            result = waiting[0].result()
            waiting.popleft()
            for task in islice(left, 1):
                waiting.append(executor.submit(work, *task))
            yield result
    finally:
        for future in waiting:
            future.cancel()


def _by_joblib(
    work: Callable[..., R], tasks: Iterable[Task], backend: str | None, n_jobs: int | None, tuning: Batches
) -> Iterator[R]:
    """Use a generator where the backend has one, and lists of a few tasks per worker where it has none."""
    import joblib  # noqa: PLC0415 - loaded only for batches

    with _backend(backend):
        active, _ = joblib.parallel.get_active_backend()
        most = window(backend, n_jobs, tuning)
        if getattr(active, "supports_return_generator", False):
            parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
            yield from parallel(joblib.delayed(work)(*task) for task in tasks)
            return
        left = iter(tasks)
        with joblib.Parallel(n_jobs=n_jobs) as parallel:
            while chunk := list(islice(left, most)):
                yield from parallel(joblib.delayed(work)(*task) for task in chunk)


def _backend(name: str | None) -> Any:
    import joblib  # noqa: PLC0415 - loaded only for batches

    if name is None:
        return nullcontext()
    try:
        return joblib.parallel_config(backend=name)
    except ValueError as error:
        raise CriterionError(f"joblib knows no backend {name!r}: {error}") from None


def finished(futures: Iterable[Any], tuning: Batches) -> set[Any]:
    """Return the futures that are done, after waiting for the first one, or for the seconds of a beat."""
    seconds = tuning.beat_seconds
    pending = list(futures)
    if all(isinstance(f, concurrent.futures.Future) for f in pending):
        return set(concurrent.futures.wait(pending, seconds, concurrent.futures.FIRST_COMPLETED).done)
    until = time.monotonic() + seconds
    while True:
        done = {f for f in pending if f.done()}
        if done or time.monotonic() > until:
            return done
        time.sleep(tuning.poll_seconds)
