"""What a run leaves: per-instance figures, the two tables, the radar figures, the bars."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd

from benchmarks.paper import answers, bars, measure, radar, tables

__all__ = ["write"]


def write(path: Path, out: Path) -> bool:
    """Write everything about the answers in a file, and say whether no bar about ours alone is broken."""
    known = out / "instances.csv"
    before = None
    if known.exists():
        before = pd.read_csv(known, dtype={"note": object, "answers": object})
    table = measure.instances(answers.read(path), before)
    table.to_csv(known, index=False)
    cells = measure.summary(table)
    cells.to_csv(out / "cells.csv", index=False)
    measure.counts(table).to_csv(out / "models.csv", index=False)
    for n, name in ((1, "table2_one_answer"), (3, "table3_three_answers")):
        both = tables.combined(cells, n)
        (out / f"{name}.md").write_text(tables.markdown(both, n), encoding="utf-8")
        (out / f"{name}.tex").write_text(tables.latex(both, n), encoding="utf-8")
    (out / "quality.md").write_text(tables.faults_markdown(cells), encoding="utf-8")
    _figures(cells, out)
    found = bars.all_bars(table, cells)
    text = bars.markdown(found)
    (out / "bars.md").write_text(text, encoding="utf-8")
    print(text)
    return all(bar.holds is not False for bar in bars.faultless(cells))


def _figures(cells: pd.DataFrame, out: Path) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        print("Without matplotlib there are no figures: pip install 'ifonly[plots]'.")
        return
    triples = cells[["data", "model", "n"]].drop_duplicates()
    for data, model, n in zip(triples["data"], triples["model"], triples["n"], strict=True):
        figure = radar.draw(cells, data, model, int(n))
        if figure is not None:
            radar.save(figure, out / "radar", f"{data}-{model}-{n}")
