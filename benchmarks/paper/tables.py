"""The paper's two tables: mean (standard error), the best in bold, next to the paper's own figures; Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.paper.measure import printed
from benchmarks.paper.metrics import DIVERSITY, PROXIMITY
from benchmarks.paper.models import NAMES
from benchmarks.paper.run import ONE, THREE
from benchmarks.paper.sets import SETS

__all__ = ["HEADS", "combined", "faults_markdown", "latex", "markdown"]

HEADS = {
    "validity": "validity",
    "cat_proximity": "cat. proximity",
    "cont_proximity": "cont. proximity",
    "sparsity": "sparsity",
    "cat_diversity": "cat. diversity",
    "cont_diversity": "cont. diversity",
    "sparsity_diversity": "sparsity-based diversity",
}
_QUALITY_HEADS = {
    "answered": "answered",
    "immutable": "frozen changed",
    "integer": "integer broken",
    "category": "category broken",
    "outside": "out of range",
    "hull_distance": "to hull",
    "row_distance": "to nearest row",
    "seconds": "seconds",
    "cpu": "of the processor",
}
_PAPER = {"CE-OCL": "CE-OCL", "CE-OCL_tr": "CE-OCL_tr", "dice-genetic": "DiCE"}
_PAPER |= {"growing-spheres": "Growing Spheres", "face": "FACE", "actionable-recourse": "Actionable Recourse"}


def measures(n: int) -> tuple[str, ...]:
    """Return the columns of a table."""
    return PROXIMITY if n == 1 else (*PROXIMITY, *DIVERSITY)


def combined(cells: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return our figures and the paper's, data set by data set and model by model; `source` says whose."""
    ours = cells[cells["n"] == n].assign(source="here")
    theirs = printed(n).assign(source="paper", n=n, note="", found=np.nan, instances=np.nan)
    shown = set(zip(ours["data"], ours["model"], strict=True))
    theirs = theirs[[pair in shown for pair in zip(theirs["data"], theirs["model"], strict=True)]]
    both = pd.concat([ours, theirs], ignore_index=True)
    order = {name: k for k, name in enumerate(ONE if n == 1 else THREE)}
    # Of an empty table a map keeps the dtype of text.
    rank = both["data"].map(list(SETS).index).astype(float) * 1e6
    rank += both["model"].map(NAMES.index).astype(float) * 1e4
    rank += (both["source"] == "paper") * 1e3 + both["method"].map(lambda m: order.get(m, 0)).astype(float)
    return both.loc[rank.sort_values(kind="stable").index].reset_index(drop=True)


def _best(block: pd.DataFrame, name: str) -> float:
    """Return the best figure of a block among methods that gave valid answers here."""
    own = block[(block["source"] == "here") & (block["validity"] > 0)]
    return float(own[name].round(2).max()) if own[name].notna().sum() > 1 else np.nan


def _shown(line: Mapping[Hashable, Any], name: str, best: float, bold: str) -> str:
    value, error = float(line[name]), float(line.get(f"{name}_se", np.nan))
    if np.isnan(value):
        return "--"
    text = f"{value:.2f}"
    if line["source"] == "here" and round(value, 2) == best:
        text = bold % text
    return text if np.isnan(error) else f"{text} ({error:.2f})"


def _label(line: Mapping[Hashable, Any]) -> str:
    method = str(line["method"])
    return f"paper: {_PAPER.get(method, method)}" if line["source"] == "paper" else method


def _count(line: Mapping[Hashable, Any]) -> str:
    if line["source"] == "paper":
        return "30"
    return f"{int(line['found'])}/{int(line['instances'])}" if line["instances"] else "--"


def markdown(table: pd.DataFrame, n: int) -> str:
    """Return a section per data set and model."""
    names = measures(n)
    parts = []
    for (data, model), block in table.groupby(["data", "model"], sort=False):
        head = f"### {data}, {model}\n\n| method | answered | " + " | ".join(HEADS[m] for m in names) + " | |\n"
        head += "|---|---:|" + "---:|" * len(names) + "---|\n"
        best = {m: _best(block, m) for m in names}
        lines = [
            f"| {_label(line)} | {_count(line)} | "
            + " | ".join(_shown(line, m, best[m], "**%s**") for m in names)
            + f" | {line['note']} |\n"
            for line in block.to_dict("records")
        ]
        parts.append(head + "".join(lines))
    return "\n".join(parts)


def latex(table: pd.DataFrame, n: int) -> str:
    """Return one LaTeX table."""
    names = measures(n)
    rows = []
    for (data, model), block in table.groupby(["data", "model"], sort=False):
        best = {m: _best(block, m) for m in names}
        rows.append("\\midrule")
        rows += [
            " & ".join(
                _escaped(text)
                for text in (
                    str(data),
                    str(model),
                    _label(line),
                    *(_shown(line, m, best[m], "\\textbf{%s}") for m in names),
                )
            )
            + " \\\\"
            for line in block.to_dict("records")
        ]
    head = " & ".join(["data", "model", "method", *(HEADS[m] for m in names)])
    body = "\n".join(rows)
    return (
        f"\\begin{{tabular}}{{lll{'c' * len(names)}}}\n\\toprule\n{head} \\\\\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
    )


def _escaped(text: str) -> str:
    return text.replace("_", "\\_").replace("--", "---") if "textbf" not in text else text


def faults_markdown(cells: pd.DataFrame) -> str:
    """Return what the paper did not measure, one line per method, averaged over its cells of one answer."""
    part = cells[(cells["n"] == 1) & (cells["instances"] > 0)]
    names = list(_QUALITY_HEADS)
    head = (
        "| data | method | cells | "
        + " | ".join(_QUALITY_HEADS[m] for m in names)
        + " |\n|---|---|"
        + "---:|" * 10
        + "\n"
    )
    lines = []
    for data in SETS:
        for method in ONE:
            block = part[(part["data"] == data) & (part["method"] == method)]
            if len(block):
                figures = " | ".join(f"{block[m].mean():.3g}" for m in names)
                lines.append(f"| {data} | {method} | {len(block)} | {figures} |\n")
    return head + "".join(lines)
