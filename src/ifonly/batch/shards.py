"""Shards on disk: one file each, complete by its footer, and what can be wrong with it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from ifonly.batch.plan import Plan, Shard
from ifonly.batch.records import Column, Record, answer_columns
from ifonly.batch.writing import write_atomically
from ifonly.errors import BatchFailed, PlanError

__all__ = [
    "SHARDS",
    "CsvWriter",
    "State",
    "need_parquet",
    "read_shard",
    "shard_folder",
    "shard_path",
    "state_of",
    "write_shard",
]

SHARDS = "shards"
_MARK = b"#ifonly "
_TAIL = 4096  # bytes, of the format: longer than the last line that `write_shard` writes can be


class State(StrEnum):
    """State of a shard's file."""

    DONE = "done"
    MISSING = "missing"
    FOREIGN = "foreign"
    CORRUPT = "corrupt"


def shard_folder(folder: Path) -> Path:
    """Return the folder of the shards of a batch."""
    return folder / SHARDS


def shard_path(folder: Path, plan: Plan, shard: Shard) -> Path:
    """Return the file of a shard."""
    return shard_folder(folder) / f"{shard.name}.{plan.output}"


def need_parquet() -> None:
    """Say how to get pyarrow when it is not there."""
    try:
        from ifonly.batch import parquet  # noqa: PLC0415, F401 - pyarrow is optional
    except ImportError:
        raise PlanError(
            "Parquet files need pyarrow. Install it (pip install 'ifonly[batch]'), or use CSV files."
        ) from None


def write_shard(folder: Path, plan: Plan, shard: Shard, records: Sequence[Record]) -> None:
    """Write a shard as a whole: its records, in order, and a footer with the plan's fingerprint."""
    footer = {
        "plan": plan.fingerprint,
        "shard": shard.number,
        "rows": shard.rows,
        "lines": len(records),
        "sha256": _digest(records),
    }
    columns = answer_columns(plan.labels)

    def write(file: BinaryIO) -> None:
        if plan.output == "parquet":
            from ifonly.batch import parquet  # noqa: PLC0415 - pyarrow is optional

            parquet.write_records(file, columns, records, footer)
        else:
            CsvWriter(file, columns).write(records)
            file.write(_MARK + json.dumps(footer, sort_keys=True).encode() + b"\n")

    write_atomically(shard_path(folder, plan, shard), write)


def _digest(records: Iterable[Record]) -> str:
    """Return the SHA-256 of records, whatever the format; a CSV file cannot tell an empty text from none."""
    digest = sha256()
    for record in records:
        plain = {name: None if value == "" else value for name, value in record.items()}
        digest.update(json.dumps(plain, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace"))
    return digest.hexdigest()


# -- reading ----------------------------------------------------------------------------------------------------------
def state_of(folder: Path, plan: Plan, shard: Shard) -> State:
    """Say what a shard's file is, by its footer alone."""
    path = shard_path(folder, plan, shard)
    try:
        footer = _footer(path, plan)
    except FileNotFoundError:
        return State.MISSING
    except BatchFailed:
        return State.CORRUPT
    if not isinstance(footer, Mapping):
        return State.CORRUPT
    return (
        State.DONE if (footer.get("plan"), footer.get("shard")) == (plan.fingerprint, shard.number) else State.FOREIGN
    )


def _footer(path: Path, plan: Plan) -> Any:
    if plan.output == "parquet":
        from ifonly.batch import parquet  # noqa: PLC0415 - pyarrow is optional

        if not path.exists():
            raise FileNotFoundError(path)
        return parquet.read_footer(path)
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _TAIL))
        last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    with suppress(ValueError):
        return json.loads(last.removeprefix(_MARK)) if last.startswith(_MARK) else None
    return None


def read_shard(folder: Path, plan: Plan, shard: Shard) -> list[Record]:
    """Return the records of a shard that is done; raises `BatchFailed` with the reason when it is not whole."""
    state = state_of(folder, plan, shard)
    path = shard_path(folder, plan, shard)
    if state is not State.DONE:
        raise BatchFailed(f"{path} is {state}. Run the batch again: it makes what is not there.")
    records = _read_records(path, plan)
    footer = _footer(path, plan)
    if len(records) != footer["lines"] or _digest(records) != footer["sha256"]:
        raise BatchFailed(
            f"{path} is corrupt: its content is not what its footer says. Delete it and run the batch again."
        )
    return records


def _read_records(path: Path, plan: Plan) -> list[Record]:
    if plan.output == "parquet":
        from ifonly.batch import parquet  # noqa: PLC0415 - pyarrow is optional

        return parquet.read_records(path)
    text = path.read_bytes().rpartition(_MARK)[0].decode("utf-8", "replace")
    columns = answer_columns(plan.labels)
    try:
        rows = csv.reader(io.StringIO(text, newline=""))
        names = next(rows)
        if names != [c.name for c in columns]:
            raise ValueError(f"its columns are {names}")  # noqa: TRY301 - told like every other fault of the file
        return [{c.name: _value(v, c) for c, v in zip(columns, row, strict=True)} for row in rows]
    except (ValueError, csv.Error, StopIteration) as error:
        raise BatchFailed(f"{path} is corrupt: {error}. Delete it and run the batch again.") from None


def _value(text: str, column: Column) -> Any:
    if text == "":
        return None
    if column.kind == "text":
        return text
    if column.kind == "bool":
        return {"true": True, "false": False}[text]
    return {"int": int, "float": float}.get(column.kind, json.loads)(text)


class CsvWriter:
    """A CSV file that grows: numbers in the fewest digits that tell them apart, lists as JSON, nothing for None."""

    def __init__(self, file: BinaryIO, columns: Sequence[Column]) -> None:
        self._file, self._columns = file, columns
        self._put([[c.name for c in columns]])

    def write(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append records."""
        self._put([_cell(record[c.name], c) for c in self._columns] for record in records)

    def close(self) -> None:
        """Do nothing: a CSV file ends where it ends."""

    def _put(self, rows: Iterable[list[str]]) -> None:
        buffer = io.StringIO(newline="")
        csv.writer(buffer, lineterminator="\n").writerows(rows)
        self._file.write(buffer.getvalue().encode("utf-8", "replace"))


def _cell(value: Any, column: Column) -> str:
    if value is None:
        return ""
    if column.kind in ("texts", "changes"):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else repr(value) if column.kind == "float" else str(value)
