"""The journal of a shard: the records of rows that are done, appended while the shard is under way.

Every line is a row: its records as JSON, a tab, and the CRC-32 of the JSON. A process that is killed while it writes leaves a
line without its end or with a wrong checksum, which is skipped. Each runner appends to a file of its own, so two runners
of one shard do not get into each other's lines; both read what the other has done.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self
from zlib import crc32

from ifonly.batch.plan import Shard
from ifonly.batch.records import Record
from ifonly.batch.writing import refused

__all__ = ["JOURNAL", "Journal", "journals", "kept_rows"]

JOURNAL = ".journal"


def journals(folder: Path, shard: Shard) -> list[Path]:
    """Return the journals of a shard, those of other runners included."""
    return sorted(folder.glob(f"{shard.name}.*{JOURNAL}"))


def kept_rows(folder: Path, shard: Shard, fingerprint: str) -> dict[int, list[Record]]:
    """Return row -> records of the rows that are done, by all journals of the shard that belong to the plan."""
    kept: dict[int, list[Record]] = {}
    for path in journals(folder, shard):
        with suppress(OSError):  # another runner may have finished the shard and cleaned up
            lines = _lines(path)
            head = next(lines, None)
            if not head or head[0] != {"plan": fingerprint, "shard": shard.number}:
                continue
            for records in lines:
                row = records[0].get("row")
                if isinstance(row, int) and shard.first <= row < shard.first + shard.rows:
                    kept.setdefault(row, records)
    return kept


def _lines(path: Path) -> Iterator[list[Record]]:
    for line in path.read_bytes().splitlines(keepends=True):
        text, _, check = line.rstrip(b"\n").rpartition(b"\t")
        if line.endswith(b"\n") and check == b"%08x" % crc32(text):
            yield json.loads(text)


class Journal:
    """Journal of one runner: rows are appended to a file of its own, and forced to the disk every `seconds`."""

    def __init__(self, folder: Path, shard: Shard, fingerprint: str, seconds: float) -> None:
        self._path = folder / f"{shard.name}.{os.getpid()}-{secrets.token_hex(4)}{JOURNAL}"
        self._head: Record = {"plan": fingerprint, "shard": shard.number}
        self._seconds, self._synced = seconds, time.monotonic()
        self._handle: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            with suppress(OSError):  # what did not reach the disk is asked again
                os.fsync(self._handle)
            os.close(self._handle)
            self._handle = None

    def keep(self, records: list[Record]) -> None:
        """Append one row, and now and then force all to the disk."""
        try:
            if self._handle is None:
                self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
                self._write([self._head])
            self._write(records)
            if time.monotonic() - self._synced > self._seconds:
                os.fsync(self._handle)
                self._synced = time.monotonic()
        except OSError as error:
            raise refused(self._path, error) from error

    def _write(self, records: list[Record]) -> None:
        assert self._handle is not None
        text = json.dumps(records, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
        line = memoryview(text + b"\t%08x\n" % crc32(text))
        while line:
            line = line[os.write(self._handle, line) :]
