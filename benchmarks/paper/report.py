"""Report of a run: per-instance figures, the two tables, the radar figures, the bars."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pandas as pd

from benchmarks.paper import answers, bars, enumeration, measure, radar, tables
from benchmarks.paper.models import AUTHORS, fitted
from benchmarks.paper.sets import SETS

__all__ = ["FIGURES", "pages", "write"]

# The two figures of the paper: one answer by the forest, three by the logistic regression.
FIGURES = ("compas-rf-1", "compas-lr-3")


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
    _enumerated(cells, out)
    _figures(cells, out)
    found = bars.all_bars(table, cells)
    text = bars.markdown(found)
    (out / "bars.md").write_text(text, encoding="utf-8")
    print(text)
    return all(bar.holds is not False for bar in bars.faultless(cells))


def _enumerated(cells: pd.DataFrame, out: Path) -> None:
    """Write how few changes turn the authors' forests, by enumeration, where these were asked."""
    asked = set(cells.loc[cells["model"] == AUTHORS, "data"])
    if asked:
        found = [enumeration.fewest(fitted(AUTHORS, data)) for data in SETS if data in asked]
        text = enumeration.markdown(found)
        (out / "enumeration.md").write_text(text, encoding="utf-8")
        print(text)


def _figures(cells: pd.DataFrame, out: Path) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        print("Without matplotlib there are no figures: pip install 'ifonly[plots]'.")
        return
    triples = cells[["data", "model", "n"]].drop_duplicates()
    for data, model, n in zip(triples["data"], triples["model"], triples["n"], strict=True):
        figure = radar.draw(cells, data, model, int(n))
        if figure is not None:
            radar.save(figure, out / "radar", f"{data}-{model}-{n}")


def pages(out: Path, docs: Path) -> None:
    """Write the page of all tables, and the paper's two figures, into the documentation."""
    models = pd.read_csv(out / "models.csv")
    accuracy = "| data | model | accuracy on the test part | asked | dropped |\n|---|---|---:|---:|---:|\n"
    accuracy += "".join(
        f"| {line['data']} | {line['model']} | {line['accuracy']:.3f} | {line['asked']} | {line['dropped']} |\n"
        for line in models.to_dict("records")
    )
    parts = [(out / name).read_text("utf-8") for name in ("bars.md", "quality.md")]
    one, three = ((out / f"{name}.md").read_text("utf-8") for name in ("table2_one_answer", "table3_three_answers"))
    text = _PAGE.format(bars=parts[0], quality=parts[1], models=accuracy, one=one, three=three)
    (docs / "paper-tables.md").write_text(text, encoding="utf-8")
    folder = docs / "figures"
    folder.mkdir(exist_ok=True)
    for name in FIGURES:
        for kind in ("png", "svg"):
            source = out / "radar" / f"{name}.{kind}"
            if source.exists():
                shutil.copyfile(source, folder / f"paper-{source.name}")


_PAGE = """# The paper's tables, rerun

Written by `python -m benchmarks.paper --pages docs`; [what it shows](paper.md) is told on another page. Figures are means
over instances, with the standard error in parentheses; the best of a block is bold. *Answered* counts the
instances with an answer. An instance without one has validity 0 and no other figure. Lines that begin with *paper* are
those that Maragno, Röber and Birbil (2022) printed, with their own models.

## The bars

{bars}
## Models and factuals

{models}
## What the paper did not measure

One answer, averaged over a method's models. *To hull* is the Euclidean distance to the convex hull of the training rows
of the wanted class, *to nearest row* the l1 distance to one of them, both in units of the ranges.

{quality}
## One answer (the paper's table 2, and more models)

{one}
## Three answers (the paper's table 3)

{three}"""
