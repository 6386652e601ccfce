"""Jobs: what all shards of a batch have in common, and one shard run by one worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifonly.batch.asking import ask_many, question_keys
from ifonly.batch.factuals import tell_factuals
from ifonly.batch.journal import JOURNAL, Journal, journals, kept_rows
from ifonly.batch.parcels import Parcel
from ifonly.batch.plan import Plan, Shard
from ifonly.batch.reading import Piece, Source
from ifonly.batch.records import Record, records_of, unreadable
from ifonly.batch.shards import State, shard_folder, state_of, write_shard

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["Job", "Report", "rows_under_way", "run_shard", "run_task"]


@dataclass(frozen=True)
class Job:
    """A planned batch and what it takes to run it; `source` is None where every task brings its own rows."""

    plan: Plan
    explainer: Explainer
    options: Mapping[str, Any]
    source: Source | None = None

    @property
    def timed(self) -> bool:
        """Whether the clock may end a search, and times are kept."""
        return not self.plan.settings["reproducible"]


@dataclass(frozen=True)
class Report:
    """The end of one shard: its rows by status, how many of them were there already, and whether it is done."""

    shard: int
    done: bool
    statuses: Mapping[str, int] = field(default_factory=dict)
    kept: int = 0
    rows: int = 0
    seconds: float = 0.0
    busy: bool = False


def run_task(
    parcel: Parcel, folder: str, number: int, piece: Piece | None = None, stop: str = "", *, claim: bool = False
) -> Report:
    """Run one shard in a worker, which Ctrl-C does not reach: the driver tells it to stop by the file `stop`."""
    with _deaf():
        return run_shard(parcel.open(), Path(folder), number, piece, Path(stop) if stop else None, claim=claim)


@contextmanager
def _deaf() -> Iterator[None]:
    """Ignore Ctrl-C while a worker process is at work: a terminal sends it to driver and workers alike."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run_shard(
    job: Job, folder: Path, number: int, piece: Piece | None = None, stop: Path | None = None, *, claim: bool = False
) -> Report:
    """Run one shard: take what journals keep, ask the rest, write the shard as a whole, remove the journals.

    It does not matter who runs it, how often, or what was left behind by somebody who was killed: the shard's file is a
    function of the plan and the number.
    """
    shard, began = job.plan.shard(number), time.monotonic()
    if state_of(folder, job.plan, shard) is State.DONE:
        return Report(number, True, rows=shard.rows, kept=shard.rows)
    place = shard_folder(folder)
    place.mkdir(parents=True, exist_ok=True)
    with _claimed(place / f"{shard.name}.lock", wanted=claim) as ours:
        if not ours:
            return Report(number, False, busy=True)
        if state_of(folder, job.plan, shard) is State.DONE:  # by a runner that let go of the lock a moment ago
            return Report(number, True, rows=shard.rows, kept=shard.rows)
        kept = kept_rows(place, shard, job.plan.fingerprint)
        there = len(kept)
        if piece is None:
            assert job.source is not None
            piece = job.source.read(shard)
        with Journal(place, shard, job.plan.fingerprint, job.explainer.tuning.batches.sync_seconds) as journal:
            whole = _ask_rest(job, shard, piece, kept, journal, stop)
        if not whole:
            return Report(number, False, rows=len(kept), kept=there)
        records = [record for row in sorted(kept) for record in kept[row]]
        tell_factuals(job.explainer, job.options["want"], piece.frame, shard.first, records, job.plan.labels)
        write_shard(folder, job.plan, shard, records)
        for path in journals(place, shard):
            path.unlink(missing_ok=True)
    counts = Counter(rows[0]["status"] for rows in kept.values())
    return Report(number, True, dict(counts), there, shard.rows, time.monotonic() - began)


@contextmanager
def _claimed(path: Path, *, wanted: bool) -> Iterator[bool]:
    """Hold the lock of a shard while it is run, where the system has locks; a process that dies lets go of it.

    The lock only saves work: two runners of one shard write the same file, each as a whole.
    """
    try:
        import fcntl  # noqa: PLC0415 - not on every system

        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except (ImportError, OSError):
        yield True
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield not wanted
            return
        except OSError:  # a file system without locks
            yield True
            return
        yield True
        path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _ask_rest(
    job: Job, shard: Shard, piece: Piece, kept: dict[int, list[Record]], journal: Journal, stop: Path | None
) -> bool:
    """Ask the rows that no journal has, equal ones once; say whether all rows are there."""
    plan, keys = job.plan, question_keys(piece.frame)
    known = {keys[row - shard.first]: kept[row] for row in kept if row - shard.first not in piece.faults}

    def keep(line: int, records: list[Record]) -> None:
        kept[shard.first + line] = records
        journal.keep(records)

    copies: dict[bytes, list[int]] = {}
    for line, key in enumerate(keys):
        row = shard.first + line
        if row in kept:
            continue
        if line in piece.faults:
            keep(line, [unreadable(row, piece.keys[line], piece.faults[line])])
        elif key in known:
            keep(line, _copied(known[key], row, piece.keys[line], timed=job.timed))
        else:
            copies.setdefault(key, []).append(line)
    looked = time.monotonic()
    waiting = iter(copies.values())
    for asked in ask_many(job.explainer, piece.frame.iloc[[lines[0] for lines in copies.values()]], **job.options):
        if asked.outcome.explanation is not None and asked.outcome.explanation.interrupted:
            raise KeyboardInterrupt  # the answer at hand is not the answer of the plan
        first, *others = next(waiting)
        limit = job.options["time_limit"]
        records = records_of(
            asked, shard.first + first, piece.keys[first], labels=plan.labels, time_limit=limit, timed=job.timed
        )
        keep(first, records)
        for line in others:
            keep(line, _copied(records, shard.first + line, piece.keys[line], timed=job.timed))
        if stop is not None and time.monotonic() - looked > job.explainer.tuning.batches.look_seconds:
            looked = time.monotonic()
            if stop.exists():
                return False
    return len(kept) == shard.rows


def _copied(records: list[Record], row: int, key: str | None, *, timed: bool) -> list[Record]:
    seconds = 0.0 if timed else None
    return [record | {"row": row, "key": key, "seconds": seconds} for record in records]


def rows_under_way(folder: Path) -> int:
    """Return how many rows the journals of shards under way hold: a count of lines, for a progress bar."""
    total, place = 0, shard_folder(folder)
    for path in place.glob(f"*{JOURNAL}"):
        name = path.name.partition(".")[0]
        if (place / f"{name}.csv").exists() or (place / f"{name}.parquet").exists():
            continue  # left behind by a runner that was overtaken
        with suppress(OSError):
            total += max(0, path.read_bytes().count(b"\n") - 1)
    return total
