"""Parquet, by pyarrow: reading some rows of a file, and shards with typed columns and a footer of our own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ifonly.batch.records import Column
from ifonly.errors import BatchFailed

__all__ = ["Writer", "column_names", "count_rows", "read_footer", "read_records", "read_rows", "write_records"]

_FOOTER = b"ifonly"
_CHANGE = pa.struct([("feature", pa.string()), ("from", pa.string()), ("to", pa.string())])
_TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "texts": pa.list_(pa.string()),
    "changes": pa.list_(_CHANGE),
}


def column_names(path: Path) -> list[str]:
    """Return the names of a file's columns."""
    return list(pq.read_schema(path).names)


def count_rows(path: Path) -> int:
    """Return how many rows a file has, by its footer."""
    return int(pq.read_metadata(path).num_rows)


def read_rows(path: Path, columns: Sequence[str], first: int, count: int) -> pd.DataFrame:
    """Return some rows of a file: only the row groups that hold them are read, in batches."""
    with pq.ParquetFile(path) as file:
        groups: list[int] = []
        start, before = 0, 0
        for g in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(g).num_rows
            if start < first + count and start + rows > first:
                before = start if not groups else before
                groups.append(g)
            start += rows
        parts = []
        for batch in file.iter_batches(max(count, 1), row_groups=groups, columns=list(columns)) if groups else ():
            low, high = max(first - before, 0), min(first + count - before, len(batch))
            if low < high:
                parts.append(batch.slice(low, high - low))
            before += len(batch)
            if before >= first + count:
                break
        table = pa.Table.from_batches(parts) if parts else file.schema_arrow.empty_table().select(list(columns))
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    return frame.reset_index(drop=True)[list(columns)]


# -- shards and tables ------------------------------------------------------------------------------------------------
def _schema(columns: Sequence[Column], footer: Mapping[str, Any] | None) -> pa.Schema:
    schema = pa.schema([(c.name, _TYPES[c.kind]) for c in columns])
    return schema if footer is None else schema.with_metadata({_FOOTER: json.dumps(footer, sort_keys=True).encode()})


def _table(records: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(list(records), schema=schema)


def write_records(
    file: BinaryIO, columns: Sequence[Column], records: Iterable[Mapping[str, Any]], footer: Mapping[str, Any]
) -> None:
    """Write records as one row group, with our footer among the file's own."""
    schema = _schema(columns, footer)
    pq.write_table(_table(records, schema), file, compression="snappy", write_page_checksum=True)


def read_footer(path: Path) -> Any:
    """Return our footer, None where there is none; raises `BatchFailed` for a file that is no Parquet."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
        return json.loads(metadata[_FOOTER]) if _FOOTER in metadata else None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BatchFailed(f"{path} is no whole Parquet file: {error}") from None


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a shard."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return list(file.read().to_pylist())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BatchFailed(f"{path} is corrupt: {error}") from None


class Writer:
    """A Parquet file that grows by a row group at a time."""

    def __init__(self, file: BinaryIO, columns: Sequence[Column]) -> None:
        self._schema = _schema(columns, None)
        self._writer = pq.ParquetWriter(file, self._schema, compression="snappy")

    def write(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append records."""
        self._writer.write_table(_table(records, self._schema))

    def close(self) -> None:
        """Write what a Parquet file ends with."""
        self._writer.close()
