"""The table: per problem and method, how long, how often proven, how often valid, and how far from the best."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.speed.methods import EXACT, METHODS

__all__ = ["markdown", "shown_seconds", "summarise", "write"]

_SMALL = 1e-6


def summarise(records: pd.DataFrame) -> pd.DataFrame:
    """Return one line per problem and method.

    Times include answers that were not found, with the time spent on them. `cpu` is the median of the processor's time,
    all threads together. `relative` is the objective of the valid
    answers divided by the best valid one for the same row, by any method; distances below 1e-6 count as that.
    """
    usable = records[records["valid"] & records["coherent"]]
    best = usable.groupby(["problem", "factual"])["objective"].min().rename("best")
    joined = records.join(best, on=["problem", "factual"])
    ratio = joined["objective"].clip(lower=_SMALL) / joined["best"].clip(lower=_SMALL)
    joined["relative"] = np.where(joined["valid"], ratio, np.nan)
    lines = [
        _line(str(problem), str(method), part)
        for (problem, method), part in joined.groupby(["problem", "method"], sort=False)
    ]
    table = pd.DataFrame(lines)
    order = {name: k for k, name in enumerate(dict.fromkeys((*METHODS, *EXACT)))}
    problems = {name: k for k, name in enumerate(dict.fromkeys(records["problem"]))}
    key = table["problem"].map(problems) * 100 + table["method"].map(lambda m: order.get(m, 99))
    return table.loc[key.sort_values(kind="stable").index].reset_index(drop=True)


def _line(problem: str, method: str, part: pd.DataFrame) -> dict[str, object]:
    asked = part[(part["factual"] >= 0) & (part["status"] != "given up")]
    if asked.empty:
        return {"problem": problem, "method": method, "rows": 0, "note": part["status"].iloc[-1]}
    failures = asked.loc[asked["objective"].isna(), "status"].value_counts()
    return {
        "problem": problem,
        "method": method,
        "rows": len(asked),
        "median": asked["seconds"].median(),
        "p90": asked["seconds"].quantile(0.9),
        "max": asked["seconds"].max(),
        "cpu": asked["cpu"].median(),
        "proven": asked["proven"].mean(),
        "valid": asked["valid"].mean(),
        "coherent": asked["coherent"].mean(),
        "relative": asked["relative"].median(),
        "worst": asked["relative"].max(),
        "note": ", ".join(f"{count} {status}" for status, count in failures.items()),
    }


def shown_seconds(value: float) -> str:
    """Return seconds as people read them."""
    if np.isnan(value):
        return ""
    return f"{1e3 * value:.1f} ms" if value < 0.1 else f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def markdown(table: pd.DataFrame) -> str:
    """Return the table as Markdown, one section per problem."""
    head = "| method | rows | median | p90 | max | processor | proven | valid | objective / best (median, worst) | |\n"
    head += "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n"
    parts = []
    for problem, lines in table.groupby("problem", sort=False):
        rows = int(lines["rows"].max())
        parts.append(f"### {problem} ({rows} rows)\n\n{head}" + "".join(map(_shown, lines.to_dict("records"))))
    return "\n".join(parts)


def _shown(line: Mapping[Hashable, Any]) -> str:
    values = pd.Series(line)
    if not values["rows"]:
        return f"| {values['method']} | | | | | | | | | {values['note']} |\n"
    times = " | ".join(shown_seconds(float(values[name])) for name in ("median", "p90", "max", "cpu"))
    shares = " | ".join(f"{float(values[name]):.0%}" for name in ("proven", "valid"))
    relative = ""
    if not np.isnan(float(values["relative"])):
        relative = f"{float(values['relative']):.3f}, {float(values['worst']):.3f}"
    note = str(values["note"])
    if float(values["coherent"]) < float(values["valid"]):
        broken = f"{float(values['valid'] - values['coherent']):.0%} outside the features' own values"
        note = f"{note}; {broken}" if note else broken
    return f"| {values['method']} | {values['rows']:.0f} | {times} | {shares} | {relative} | {note} |\n"


def write(table: pd.DataFrame, folder: Path) -> None:
    """Write the table as CSV and Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "table.csv", index=False)
    (folder / "table.md").write_text(markdown(table), encoding="utf-8")
