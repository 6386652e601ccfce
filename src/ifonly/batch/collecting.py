"""Collecting: shards into one table of answers, one tidy table of changes, and a summary."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ifonly.batch.journal import JOURNAL
from ifonly.batch.plan import Plan
from ifonly.batch.records import CHANGE_COLUMNS, Column, Record, answer_columns
from ifonly.batch.shards import CsvWriter, State, read_shard, shard_folder, state_of
from ifonly.batch.summary import Summary
from ifonly.batch.writing import TEMPORARY, write_atomically
from ifonly.errors import BatchFailed

__all__ = ["Collected", "collect_plan"]

_MOST_NAMED = 10


@dataclass(frozen=True)
class Collected:
    """The files of a collected batch, and what is in them in short."""

    answers: Path
    changes: Path
    summary_file: Path
    summary: Summary


class _Writer(Protocol):
    """Writer of one collected table."""

    def write(self, records: Iterable[Record]) -> None: ...
    def close(self) -> None: ...


def collect_plan(folder: Path, plan: Plan, *, partial: bool = False) -> Collected:
    """Write ``answers``, ``changes`` and ``summary.json``, one shard in memory at a time, each file whole or not at all.

    With `partial`, shards that are not done are left out; otherwise they are an error.
    """
    shards = plan.shards()
    missing = [s.number for s in shards if state_of(folder, plan, s) is not State.DONE]
    if missing and not partial:
        named = ", ".join(map(str, missing[:_MOST_NAMED])) + (", ..." if len(missing) > _MOST_NAMED else "")
        raise BatchFailed(
            f"{len(missing)} of {len(shards)} shards are not done: {named}. Run the batch again, or collect what is there "
            "with --partial (collect(partial=True) in Python)."
        )
    left_out = set(missing)
    summary = Summary(rows=plan.rows)

    def answers() -> Iterator[list[Record]]:
        for shard in shards:
            if shard.number not in left_out:
                yield read_shard(folder, plan, shard)

    files = {name: folder / f"{name}.{plan.output}" for name in ("answers", "changes")}
    columns = answer_columns(plan.labels)

    def write_answers(file: BinaryIO) -> None:
        with closing(_writer(plan, file, columns)) as writer:
            for records in answers():
                summary.add(records)
                writer.write(records)

    def write_changes(file: BinaryIO) -> None:
        with closing(_writer(plan, file, CHANGE_COLUMNS)) as writer:
            for records in answers():
                writer.write(list(_tidy(records)))

    write_atomically(files["answers"], write_answers)
    write_atomically(files["changes"], write_changes)
    text = json.dumps(summary.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    path = folder / "summary.json"
    write_atomically(path, lambda file: file.write(text.encode()))
    if not missing:
        _clean(folder)
    return Collected(files["answers"], files["changes"], path, summary)


def _writer(plan: Plan, file: BinaryIO, columns: Sequence[Column]) -> _Writer:
    if plan.output == "csv":
        return CsvWriter(file, columns)
    from ifonly.batch import parquet  # noqa: PLC0415 - pyarrow is optional

    return parquet.Writer(file, columns)


def _tidy(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Yield a line per change."""
    for record in records:
        for change in record["changes"] or ():
            yield {"row": record["row"], "key": record["key"], "answer": record["answer"], **change}


def _clean(folder: Path) -> None:
    """Remove what killed runners left behind, now that nobody needs it."""
    for end in (JOURNAL, ".lock", TEMPORARY):
        for path in shard_folder(folder).glob(f"*{end}"):
            with suppress(OSError):
                path.unlink()
