"""Sources of rows: a CSV or Parquet file read shard by shard, or a frame that is there already."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pandas as pd

from ifonly.batch.plan import Shard
from ifonly.batch.values import typed_columns
from ifonly.data.schema import Schema
from ifonly.data.tables import align
from ifonly.errors import PlanError, did_you_mean
from ifonly.record.fingerprints import of_file, of_frame

__all__ = ["CsvSource", "FrameSource", "Measured", "ParquetSource", "Piece", "Source", "file_source"]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class Piece:
    """The rows of a shard.

    Attributes
    ----------
    frame
        The features, one line per row; lines in `faults` hold nothing of use.
    keys
        The key of each row, None without a key column.
    faults
        Line -> why the row could not be read.
    """

    frame: pd.DataFrame
    keys: Sequence[str | None]
    faults: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """Measurements of the input that planning takes in one pass."""

    rows: int
    sha256: str
    offsets: tuple[int, ...] = ()


class Source(Protocol):
    """A table of rows that can be read piece by piece, in any order, by any process."""

    def measure(self, shard_rows: int) -> Measured:
        """Count and fingerprint the rows in one pass that keeps none of them."""
        ...

    def fingerprint(self) -> str:
        """Return the SHA-256 of the rows."""
        ...

    def read(self, shard: Shard) -> Piece:
        """Return the rows of a shard."""
        ...


@dataclass(frozen=True)
class FrameSource:
    """Rows in memory; their keys are the labels of the index."""

    frame: pd.DataFrame

    def measure(self, shard_rows: int) -> Measured:
        """Count and fingerprint the rows."""
        del shard_rows
        return Measured(len(self.frame), self.fingerprint())

    def fingerprint(self) -> str:
        """Return the SHA-256 of names, dtypes, index and values."""
        return of_frame(self.frame)

    def read(self, shard: Shard) -> Piece:
        """Return the rows of a shard."""
        part = self.frame.iloc[shard.first : shard.first + shard.rows]
        return Piece(part, [str(label) for label in part.index])


@dataclass(frozen=True)
class CsvSource:
    """A CSV or TSV file in UTF-8 with a header; values are read as the schema's features, not guessed from each piece."""

    path: Path
    schema: Schema
    key: str | None = None

    @property
    def _delimiter(self) -> str:
        return _DELIMITERS[self.path.suffix.lower()]

    def measure(self, shard_rows: int) -> Measured:
        """Count the records, note where every `shard_rows`-th begins, and fingerprint the file, in one pass."""
        self.header()
        with self.path.open("rb") as file:
            lines = _Lines(file)
            offsets, rows = [], 0
            for _ in self._records(lines):
                if rows % shard_rows == 0:
                    offsets.append(lines.before)
                rows += 1
        return Measured(rows, lines.digest.hexdigest(), (*offsets, lines.position))

    def fingerprint(self) -> str:
        """Return the SHA-256 of the file."""
        return of_file(self.path)

    def read(self, shard: Shard) -> Piece:
        """Return the rows of a shard: the records between two places of the file."""
        header = self.header()
        with self.path.open("rb") as file:
            file.seek(shard.offset)
            lines = _Lines(io.BytesIO(file.read(shard.end - shard.offset)), first=False)
            records = list(self._parsed(lines))
        if len(records) != shard.rows:
            raise PlanError(
                f"{self.path} is not the file that was planned: shard {shard.number} has {len(records)} rows, not "
                f"{shard.rows}. Put the file back, or plan anew."
            )
        return self._piece(header, records)

    def header(self) -> list[str]:
        """Return the names of the columns, after checking that all features are there."""
        with self.path.open("rb") as file:
            header = next(self._parsed(_Lines(file)), None)
        if header is None:
            raise PlanError(f"{self.path} is empty: its first line must name the columns.")
        _check_names(self.path, header, self.schema, self.key)
        return header

    def _records(self, lines: _Lines) -> Iterator[list[str]]:
        return islice(self._parsed(lines), 1, None)

    def _parsed(self, lines: _Lines) -> Iterator[list[str]]:
        """Yield the records that are not blank."""
        reader = csv.reader(lines, delimiter=self._delimiter)
        while True:
            lines.before = lines.position
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise PlanError(
                    f"{self.path} cannot be read after byte {lines.before}: {error}. Mend the file."
                ) from None
            if record:
                yield record

    def _piece(self, header: list[str], records: list[list[str]]) -> Piece:
        faults = {
            i: f"The row has {len(record)} values, but the file names {len(header)} columns. Mend the row."
            for i, record in enumerate(records)
            if len(record) != len(header)
        }
        blank = [""] * len(header)
        columns = dict(
            zip(header, zip(*(blank if i in faults else r for i, r in enumerate(records)), strict=True), strict=True)
        )
        keys = columns[self.key] if self.key else [None] * len(records)
        return Piece(typed_columns(self.schema, columns), list(keys), faults)


class _Lines:
    """The lines of a file as text, with the place in the file and a fingerprint of what was read.

    Bytes that are no UTF-8 become replacement characters: they spoil the value they are in, and no more.
    """

    def __init__(self, file: BinaryIO, *, first: bool = True) -> None:
        self._file, self._first = file, first
        self.position, self.before = 0, 0
        self.digest = sha256()

    def __iter__(self) -> Iterator[str]:
        for line in self._file:
            self.position += len(line)
            self.digest.update(line)
            text = line.decode("utf-8", "replace")
            yield text.removeprefix("\ufeff") if self._first else text
            self._first = False


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file; only the row groups that a shard touches are read, batch by batch."""

    path: Path
    schema: Schema
    key: str | None = None

    def measure(self, shard_rows: int) -> Measured:
        """Count the rows by the file's own footer, and fingerprint its bytes."""
        del shard_rows
        from ifonly.batch import parquet  # noqa: PLC0415 - pyarrow is optional

        _check_names(self.path, parquet.column_names(self.path), self.schema, self.key)
        return Measured(parquet.count_rows(self.path), self.fingerprint())

    def fingerprint(self) -> str:
        """Return the SHA-256 of the file."""
        return of_file(self.path)

    def read(self, shard: Shard) -> Piece:
        """Return the rows of a shard."""
        from ifonly.batch import parquet  # noqa: PLC0415 - pyarrow is optional

        extra = [self.key] if self.key and self.key not in self.schema.names else []
        frame = parquet.read_rows(self.path, [*self.schema.names, *extra], shard.first, shard.rows)
        keys = [None] * len(frame) if self.key is None else [_text(v) for v in frame[self.key]]
        return Piece(align(frame[list(self.schema.names)], self.schema.names), keys)


def _text(value: Any) -> str | None:
    return None if value is None or value != value else str(value)  # noqa: PLR0124 - NaN differs from itself


def _check_names(path: Path, names: Sequence[str], schema: Schema, key: str | None) -> None:
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise PlanError(f"{path} names the column {twice[0]!r} twice. Rename one of them.")
    for name in (*schema.names, *([] if key is None else [key])):
        if name not in names:
            what = "key" if name == key else "feature"
            raise PlanError(f"{path} has no column {name!r}, which is a {what}.{did_you_mean(name, names)}")


def file_source(path: Path, schema: Schema, key: str | None = None) -> CsvSource | ParquetSource:
    """Return the source of a file, by the end of its name."""
    if not path.is_file():
        raise PlanError(f"There is no file {path}.")
    suffix = path.suffix.lower()
    if suffix in _DELIMITERS:
        return CsvSource(path, schema, key)
    if suffix == ".parquet":
        return ParquetSource(path, schema, key)
    raise PlanError(
        f"{path} cannot be read in pieces: its name must end in .csv, .tsv or .parquet. Unpack it first if it is packed."
    )
