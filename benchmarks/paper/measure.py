"""From answers to figures: every measure per instance, and mean and standard error per cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.paper import answers
from benchmarks.paper.metrics import DIVERSITY, PROXIMITY, QUALITY, WHOLE, Real, faults, paper_measures
from benchmarks.paper.models import AUTHORS, fitted
from benchmarks.paper.sets import load
from benchmarks.peers.encoding import Encoding, FloatArray

__all__ = ["CELL", "MEASURES", "counts", "instances", "printed", "published", "summary"]

CELL = ["data", "model", "method", "n"]
MEASURES = (*PROXIMITY, *DIVERSITY, *QUALITY, "seconds", "cpu", "answered")
_HERE = Path(__file__).resolve().parent


@cache
def _real(data: str) -> Real:
    """Return the training rows whose true outcome is the wanted one."""
    source = load(data)
    rows = source.train.frame[(source.train.target == source.train.wanted).to_numpy()]
    return Real.of(source.matrix(rows), source.encoding)


def instances(
    lines: pd.DataFrame, known: pd.DataFrame | None = None, tell: Callable[[str], None] = print
) -> pd.DataFrame:
    """Return one line per factual with all measures; validity by the model's own `predict` on the returned rows.

    Parameters
    ----------
    lines
        What was answered.
    known
        An earlier table of this function; its lines are kept where the answers are the same.
    tell
        Hears of every model.
    """
    keys = [*answers.KEYS, "answers"]
    old = {} if known is None else {tuple(r[k] for k in keys): r for r in known.to_dict("records")}
    out = []
    for (data, model), part in lines.groupby(["data", "model"], sort=False):
        tell(f"measuring {data}, {model}")
        for line in part.to_dict("records"):
            before = old.get(tuple(line[k] for k in keys))
            out.append(line | (_measured(line) if before is None else {m: before[m] for m in MEASURES}))
    return pd.DataFrame(out)


def _measured(line: dict[object, object]) -> dict[str, float]:
    if line["factual"] == answers.NOT_OPENED:
        return dict.fromkeys(MEASURES, np.nan)
    source = fitted(str(line["model"]), str(line["data"]))  # type: ignore[arg-type]
    data = source.data
    rows = _made_whole(answers.rows_of(str(line["answers"]), len(data.encoding.fields)), data.encoding)
    factual = data.codes(data.test.frame.iloc[[int(str(line["factual"]))]])[0]
    categorical = np.array([f.kind == "category" for f in data.encoding.fields])
    # A row with a category that does not exist is no row that a model could be asked about.
    whole = ~np.isnan(rows).any(axis=1)
    valid = np.zeros(len(rows), dtype=bool)
    if whole.any():
        valid[whole] = source.wanted(data.frame(rows[whole]))
    # Distances to real rows are told of single answers.
    real = _real(data.name)
    near = [[real.hull_distance(row), real.row_distance(row)] for row in rows if line["n"] == 1]
    hull, nearest = np.mean(near, axis=0) if near else (np.nan, np.nan)
    return {
        **paper_measures(factual, rows, categorical, valid),
        **faults(factual, rows, data.encoding, data.frozen),
        "hull_distance": float(hull),
        "row_distance": float(nearest),
        "seconds": float(str(line["seconds"])),
        "cpu": float(str(line["cpu"])),
        "answered": len(rows) / int(str(line["n"])),
    }


def _made_whole(rows: FloatArray, encoding: Encoding) -> FloatArray:
    """Return answers in which a whole number that is off by rounding is whole: 0.9999999 payments are one payment.

    A model with a threshold at 1 may say otherwise, but nobody can act on that.
    """
    whole = np.array([f.kind == "integer" for f in encoding.fields])
    near = whole & (np.abs(rows - np.round(rows)) <= WHOLE)
    return np.where(near, np.round(rows), rows)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard error (ddof 1) of every measure per cell, over the instances that have it."""
    lines = []
    for keys, part in table.groupby(CELL, sort=False):
        asked = part[part["factual"] != answers.NOT_OPENED]
        found = asked["answered"] > 0
        failures = part.loc[~found.reindex(part.index, fill_value=False), "status"].value_counts()
        line: dict[str, object] = dict(zip(CELL, keys, strict=True))
        line |= {
            "instances": len(asked),
            "found": int(found.sum()),
            "proven": asked["proven"].mean() if len(asked) else np.nan,
        }
        line["note"] = ", ".join(f"{count} {status}" for status, count in failures.items())
        for name in MEASURES:
            values = asked[name].dropna()
            line[name] = values.mean() if len(values) else np.nan
            line[f"{name}_se"] = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        lines.append(line)
    return pd.DataFrame(lines)


def published(n: int) -> pd.DataFrame:
    """Return the figures that the paper printed (Maragno, Röber and Birbil 2022, tables 2 and 3)."""
    return pd.read_csv(_HERE / ("published_one.csv" if n == 1 else "published_three.csv"))


def printed(n: int) -> pd.DataFrame:
    """Return what was printed for each model of a run: the rows of the forest stand beside the authors' own forests too."""
    rows = published(n)
    return pd.concat([rows, rows[rows["model"] == "rf"].assign(model=AUTHORS)], ignore_index=True)


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Return per model how many of the paper's factuals it refuses, and how many have the wanted class already."""
    pairs = table[["data", "model"]].drop_duplicates()
    lines = []
    for data, model in zip(pairs["data"], pairs["model"], strict=True):
        source = fitted(model, data)
        test = source.data.test
        right = float(np.mean(np.asarray(source.model.predict(test.frame)) == test.target.to_numpy()))
        lines.append(
            {
                "data": data,
                "model": model,
                "accuracy": right,
                "asked": len(source.asked),
                "dropped": len(source.dropped),
            }
        )
    return pd.DataFrame(lines)
