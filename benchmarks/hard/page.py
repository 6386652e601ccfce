"""The section of docs/benchmarks.md on the hard regime: the table, the bars, and the place of the robust one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.hard.goals import Goal, evaluate
from benchmarks.hard.lines import LINES, Line
from benchmarks.speed import bars, plot, records, sections
from benchmarks.speed.bars import OURS
from benchmarks.speed.page import GROWTH, growth_section
from benchmarks.speed.table import shown_seconds, summarise

__all__ = ["TITLE", "table", "write"]

TITLE = "The hard regime"
ROBUST = "Robust balls beside the published table"

_HEAD = """Where proofs are slow or missing: largest changes, many numbers, several classes, networks, balls, wide data,
hulls, many answers. `python -m benchmarks.hard` runs it: each line in a process of its own, on rows drawn by a fixed seed
among those that the model puts in another class than the wanted one. Times are processor seconds of one whole `explain`,
the confirmation by the model's own `predict` included. Peers are asked on the same rows, in environments of their own,
and their answers are put to the same `predict`. *Calls* is how often the model is asked per answer, *ours* what an answer
takes without the seconds in the model, *memory* the peak of the process, its data and model included. *Before* is what
was measured when the goals were set.

Peers: Veritas 0.3.1 (its bisection with its default of 10 steps, and `veritas-close` with 40, until the bracket is
closed), treecf 0.3.2 (`search="refine"`, and `treecf-classic`), oceanpy 2.0.7 (constraint programming, and MaxSAT).
Veritas is asked where the largest change counts, on numbers scaled to 0 to 1; the others under l1. None takes demands,
several answers, networks or linear models; treecf takes two classes.

```bash
python -m benchmarks.hard --list                          # the lines
python -m benchmarks.hard --only linf,latency --rows 5    # some of them; what the file of records holds is not asked again
python -m benchmarks.hard --page docs                     # all of it, and this section
python -m benchmarks.hard --curves --page docs            # the growth curves
```
"""


def _wished(goal: Goal, limit: float) -> str:
    parts = [
        (goal.median, "median {:g} s"),
        (goal.most, "all under {:g} s"),
        (goal.own, "ours {:g} s"),
        (goal.peak, "under {:g} MB"),
        (goal.made, "constructor {:g} s"),
        (goal.made_mb, "and {:g} MB"),
    ]
    out = [text.format(value) for value, text in parts if value is not None]
    if goal.answered is not None:
        out.append(f"answered in {limit:g} s")
    if goal.proven is not None:
        share = "all" if goal.proven == 1.0 else f"{goal.proven:.0%}"
        out.append(f"{share} proven in {goal.within:g} s")
    return ", ".join(out)


def table(frame: pd.DataFrame, lines: Sequence[Line]) -> str:
    """Return the table as Markdown: a row per line and method."""
    head = "| problem | goal | before | method | median | most | proven | confirmed | calls | ours | memory |\n"
    head += "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n"
    out, group = [], ""
    for line in lines:
        part = frame[frame["problem"] == line.name]
        for method in sorted(dict.fromkeys(part["method"]), key=lambda m: m != OURS):
            own = part[(part["method"] == method) & (part["factual"] >= 0) & (part["status"] != "given up")]
            label = f"| {line.name} | {_wished(line.goal, line.limit)} | {line.before} " if method == OURS else "| | | "
            if own.empty:
                status = part.loc[part["method"] == method, "status"].iloc[-1]
                out.append(f"{label}| {method} | {status} | | | | | | |\n")
                continue
            if method == OURS and line.group != group:
                group = line.group
                out.append(f"| **{group}** | | | | | | | | | | |\n")
            out.append(f"{label}| {method} | {_measured(own)} |\n")
    return head + "".join(out)


def _measured(own: pd.DataFrame) -> str:
    spent = own["cpu"].fillna(own["seconds"])
    bare = (own["cpu"] - own["model_cpu"]).median()
    cells = [shown_seconds(float(spent.median())), shown_seconds(float(spent.max()))]
    cells += [f"{int(own[c].sum())} of {len(own)}" for c in ("proven", "valid")]
    calls, peak = own["calls"].mean(), own["peak"].max()
    cells += [
        "" if np.isnan(calls) else f"{calls:.1f}",
        shown_seconds(float(bare)),
        "" if np.isnan(peak) else f"{peak:.0f} MB",
    ]
    return " | ".join(cells)


def write(path: Path, docs: Path) -> Path:
    """Write the section, and the figures beside the page."""
    text = [_HEAD]
    if path.exists():
        frame = records.load(path)
        there = [line for line in LINES.values() if (frame["problem"] == line.name).any()]
        order = {line.name: k for k, line in enumerate(there)}
        frame = frame[frame["problem"].isin(order)].sort_values("problem", key=lambda p: p.map(order), kind="stable")
        by_processor = frame.assign(seconds=frame["cpu"].fillna(frame["seconds"]))
        plot.save(
            plot.draw_speed(summarise(by_processor), {x.name: x.goal.median for x in there}), docs, "benchmarks-hard"
        )
        text += ["![Seconds per line and method, beside the goal](benchmarks-hard.svg)\n", table(frame, there)]
        asked = frame[(frame["factual"] >= 0) & (frame["method"] == OURS)]
        rows, load = asked.groupby("problem").size(), frame.loc[frame["factual"] >= 0, "load"].median()
        few = str(rows.max()) if rows.min() == rows.max() else f"{rows.min()} to {rows.max()}"
        text.append(
            f"Rows per line: {few}. The load average of the machine was {load:.1f} (median over all answers). Limits are "
            "those of the clock, so on a busy machine an answer has fewer processor seconds than its limit says.\n"
        )
        text.append(
            f"### What was to be shown there\n\n{bars.markdown(evaluate(frame, {x.name: x.goal for x in there}))}"
        )
    place, grown = docs / "benchmarks.md", path.with_name("growth.csv")
    if path.exists():
        sections.put(place, TITLE, "\n".join(part.rstrip("\n") + "\n" for part in text))
    if grown.exists():
        sections.put(place, GROWTH, growth_section(pd.read_csv(grown), docs))
    for png in docs.glob("benchmarks-*.png"):
        png.unlink()
    if ROBUST not in sections.titles(place):
        sections.put(place, ROBUST, "To be measured.\n")
    return place
