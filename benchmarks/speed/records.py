"""Records: one line per problem, method and factual, judged by the model itself; kept as CSV while the run goes on."""

from __future__ import annotations

import csv
import json
import os
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.speed.problems import Case
from benchmarks.speed.replies import Reply

__all__ = ["Record", "append", "beaten", "given_up", "judge", "late", "load", "load_average", "missing", "opened"]

_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Record:
    """Record of one method on one row.

    Attributes
    ----------
    status
        "found"; or "infeasible", "out of time", "none found", "killed", "died", "error", "unsupported" and the like.
    proven
        Whether the method claims that nothing costs less (or that nothing exists).
    valid
        Whether the model's own `predict` gives the wanted class for the row that was returned.
    coherent
        Whether whole numbers are whole, categories are one level, and changed numbers stay in the training range.
    objective
        The distance of the returned row (normalised l1, unless the problem asks for another), measured here for everybody.
    cpu
        Seconds of processor time of the method's own process, all threads together: comparable even on a busy machine.
    load
        The machine's load average when the row was asked for.
    cost
        The method's own objective: the distance, and what else it pays for.
    calls, model_cpu
        How often the model was asked, and the processor seconds in it.
    peak
        The most memory of the method's process until then, in MB; of the line that tells of opening ours (its factual is
        -1), how much that took.
    limit
        Seconds that were given for the answer.
    """

    problem: str
    method: str
    factual: int
    status: str
    seconds: float
    proven: bool = False
    valid: bool = False
    coherent: bool = False
    objective: float = np.nan
    bound: float = np.nan
    cpu: float = np.nan
    build: float = np.nan
    solve: float = np.nan
    verify: float = np.nan
    load: float = np.nan
    note: str = ""
    cost: float = np.nan
    calls: float = np.nan
    model_cpu: float = np.nan
    peak: float = np.nan
    limit: float = np.nan


def judge(case: Case, method: str, row: int, reply: Reply, load: float = np.nan, limit: float = np.nan) -> Record:
    """Measure a reply: distance, coherence, and what the model says of the returned row."""
    common: dict[str, Any] = {
        "problem": case.name,
        "method": method,
        "factual": int(row),
        "status": reply.status,
        "seconds": reply.seconds,
        "proven": bool(reply.proven),
        "bound": reply.bound,
        "cpu": reply.cpu,
        "load": load,
        "note": reply.note.replace("\n", " "),
        "cost": reply.cost,
        "calls": reply.calls,
        "model_cpu": reply.model_cpu,
        "peak": reply.peak,
        "limit": limit,
        **reply.phases,
    }
    if reply.row is None:
        return Record(**common)
    factual = case.matrix[row]
    frame = case.frame_of(reply.row) if reply.frame is None else reply.frame
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        valid = case.ask.accepts(case.model, frame, case.table.wanted)
    return Record(
        **common,
        valid=valid,
        coherent=case.encoding.coherent(reply.row, factual),
        objective=case.encoding.distance(reply.row, factual, case.ask.norm),
    )


def missing(case: Case, method: str, status: str, note: str) -> Record:
    """Return the line of a method that could not be opened on a case, so that it is not dropped silently."""
    return Record(case.name, method, -1, status, np.nan, note=note.replace("\n", " ")[:300])


def given_up(case: Case, method: str, row: int) -> Record:
    """Return the line of a row that was not tried, because none of the first ones was proven within the limit."""
    return Record(case.name, method, row, "given up", np.nan)


def load_average() -> float:
    """Return the load of the machine, where it is known."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else np.nan


def opened(case: Case, method: str, reply: Reply) -> Record:
    """Return the line that tells of opening a method on a case: seconds and memory."""
    return Record(case.name, method, -1, reply.status, reply.seconds, cpu=reply.cpu, peak=reply.peak)


def append(path: Path, records: Iterable[Record]) -> None:
    """Add lines to a CSV file, with a header when it is new, or to a file of JSON objects, by its name."""
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        with path.open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(asdict(record)) + "\n" for record in records)
        return
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [f.name for f in fields(Record)])
        if new:
            writer.writeheader()
        writer.writerows(asdict(record) for record in records)


def load(path: Path) -> pd.DataFrame:
    """Return the lines of a file, one per problem, method and factual; of repeated ones the last."""
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8").splitlines()
        frame = pd.DataFrame([json.loads(line) for line in lines], columns=[f.name for f in fields(Record)])
    else:
        frame = pd.read_csv(path, dtype={"note": object})
    for name in ("proven", "valid", "coherent"):
        frame[name] = frame[name].astype(bool)
    frame["note"] = frame["note"].where(frame["note"].notna(), "")
    return frame.drop_duplicates(["problem", "method", "factual"], keep="last").reset_index(drop=True)


def late(records: pd.DataFrame, ours: str = "ifonly") -> pd.DataFrame:
    """Return answers of ours that came later than their limit, by more than a tenth of it or 50 ms, by the clock."""
    allowed = np.maximum(1.1 * records["limit"], records["limit"] + 0.05)
    return records[(records["method"] == ours) & (records["seconds"] > allowed)]


def beaten(records: pd.DataFrame, ours: str = "ifonly") -> pd.DataFrame:
    """Return valid, coherent answers of others that cost less than an answer of ours that was called optimal.

    Each would be an error in a proof of ours.
    """
    keys = ["problem", "factual"]
    sure = records[(records["method"] == ours) & records["proven"] & records["valid"]]
    others = records[(records["method"] != ours) & records["valid"] & records["coherent"]]
    both = others.merge(sure[[*keys, "objective"]], on=keys, suffixes=("", "_ours"))
    least = both["objective_ours"] * (1 - _TOLERANCE) - _TOLERANCE
    return both[both["objective"] < least][[*keys, "method", "objective", "objective_ours"]]
