"""Answers on disk: one line per data set, model, method, number of answers asked for, and factual.

Lines hold the answers themselves (coded), so that every measure can be taken again without asking again.
"""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.paper.replies import Reply
from benchmarks.peers.encoding import FloatArray

__all__ = ["KEYS", "Cell", "Line", "append", "done", "line_of", "not_opened", "read", "rows_of"]

KEYS = ["data", "model", "method", "n", "factual"]
NOT_OPENED = -1


@dataclass(frozen=True)
class Cell:
    """A method on a model, asked for `n` answers."""

    data: str
    model: str
    method: str
    n: int


@dataclass(frozen=True)
class Line:
    """One line; `factual` is a position in the test part, or -1 for a method that could not be opened."""

    data: str
    model: str
    method: str
    n: int
    factual: int
    status: str
    seconds: float
    limit: float
    cpu: float = np.nan
    proven: bool = False
    answers: str = "[]"
    note: str = ""


def line_of(cell: Cell, factual: int, reply: Reply, limit: float) -> Line:
    """Return the line of a reply."""
    rows = [[None if np.isnan(v) else float(v) for v in row] for row in reply.rows]
    note = " ".join(reply.note.split())
    return Line(
        **asdict(cell),
        factual=factual,
        status=reply.status,
        seconds=round(reply.seconds, 6),
        limit=limit,
        cpu=round(reply.cpu, 6),
        proven=bool(reply.proven),
        answers=json.dumps(rows),
        note=note,
    )


def not_opened(cell: Cell, status: str, note: str, limit: float) -> Line:
    """Return the line of a method that could not be opened, so that it is not dropped silently."""
    return Line(**asdict(cell), factual=NOT_OPENED, status=status, seconds=np.nan, limit=limit, note=note[:300])


def append(path: Path, line: Line) -> None:
    """Add a line, with a header when the file is new."""
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [f.name for f in fields(Line)])
        if new:
            writer.writeheader()
        writer.writerow(asdict(line))


def read(path: Path) -> pd.DataFrame:
    """Return all lines; of repeated ones the last."""
    frame = pd.read_csv(
        path, dtype={"note": object, "answers": object}, keep_default_na=False, na_values={"seconds": [""]}
    )
    for name in ("seconds", "cpu"):
        frame[name] = pd.to_numeric(frame[name], errors="coerce")
    return frame.drop_duplicates(KEYS, keep="last").reset_index(drop=True)


def done(path: Path) -> set[tuple[Cell, int]]:
    """Return what has been answered already."""
    if not path.exists():
        return set()
    frame = read(path)
    columns = zip(frame["data"], frame["model"], frame["method"], frame["n"], frame["factual"], strict=True)
    return {(Cell(d, m, method, int(n)), int(f)) for d, m, method, n, f in columns}


def rows_of(text: str, width: int) -> FloatArray:
    """Return the answers of a line."""
    rows = json.loads(text)
    return np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=np.float64).reshape(-1, width)
