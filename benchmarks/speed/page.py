"""The page of the documentation that shows a run: ``python -m benchmarks.speed.page FOLDER docs``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.speed import bars, plot, records, sections, table

__all__ = ["GROWTH", "growth_section", "write"]

GROWTH = "How it grows"
_BUSY = 1.5

_HEAD = """# Benchmarks

One run puts the same questions to `ifonly`, to its peers, and to the leaf-big-M formulation of trees that the paper's own
code uses, rebuilt here on HiGHS. Everybody gets the same fitted model, the same rows, the same distance (the normalised
l1 of `Proximity("l1", scale="range")`: |change| / training range, and 1 per switched category) and {limit:g} seconds per
answer. Every answer is judged here by the model's own `predict`, whatever the method says of itself.

What is timed is one whole answer. For `ifonly` that is `explain(row)` on the fitted pipeline with raw columns: encoding the
row, the search, the proof, decoding, and the confirmation by `pipeline.predict`. Peers get the bare estimator on a matrix
that is one-hot encoded already, and are not charged for preprocessing or for a confirmation. Reading the model is not
timed for anybody. `ifonly` uses one thread, and HiGHS where it needs a solver.

| peer | version | what it is |
|---|---|---|
| treecf | 0.3.2 | exact search over tree ensembles in Rust, `backend="exact"`, no node limit |
| oceanpy | 2.0.7 | OCEAN, the constraint programming explainer with its default workers |
| dice-random, dice-genetic | dice-ml 0.12 | two heuristics of DiCE, one counterfactual, otherwise their defaults |
| nice | NICEx 0.2.3 | nearest unlike neighbour made sparse, a heuristic |
| leafbigm | | leaf-big-M formulation on HiGHS with its default options, and tighter constants than published |

{machine}

## Rerun it

```bash
pip install -e ".[test-all]"
python -m benchmarks.speed                                     # everything: hours, since peers run into their limits
python -m benchmarks.speed --quick                             # does it work? some minutes
python -m benchmarks.speed --give-up 2 --budget 100 --resume   # peers give up early; goes on with an interrupted run
python -m benchmarks.speed.page benchmarks/results/speed docs
```

Peers run in environments of their own, made on demand in the folder `IFONLY_PEERS` (a cache folder by default) and spoken to
over JSON. The data sets beyond German Credit and breast cancer are fetched once, or taken from `IFONLY_DATA`. A peer
without a line in a table below was not asked about that problem.
"""


def write(folder: Path, docs: Path) -> Path:
    """Write ``benchmarks.md`` and its figures from the results of a run."""
    found = records.load(folder / "results.csv")
    parts = [_HEAD.format(limit=_limit(folder), machine=_machine(folder, found)), _bars(folder, found)]
    plot.save(plot.draw_speed(table.summarise(_undisturbed(found))), docs, "benchmarks-speed")
    parts.append("## Seconds per answer\n\n![Seconds per problem and method](benchmarks-speed.svg)\n")
    if _busy(found):
        parts.append("The figure shows processor seconds, the tables have both.\n")
    parts.append(table.markdown(table.summarise(found)))
    if (folder / "growth.csv").exists():
        parts.append(f"## {GROWTH}\n\n{growth_section(pd.read_csv(folder / 'growth.csv'), docs)}")
    if (folder / "throughput.csv").exists():
        parts.append(_throughput(pd.read_csv(folder / "throughput.csv")))
    for png in docs.glob("benchmarks-*.png"):
        png.unlink()
    path = docs / "benchmarks.md"
    others = sections.read(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text("\n".join(part.rstrip("\n") + "\n" for part in parts), encoding="utf-8")
    # What other benchmarks have written on the page stays.
    for title in [name for name in others if name and name not in sections.titles(path)]:
        sections.put(path, title, others[title])
    return path


def _busy(found: pd.DataFrame) -> bool:
    """Whether other programs had a part of the machine while this was measured."""
    return bool(found.loc[found["factual"] >= 0, "load"].median() > _BUSY)


def _undisturbed(found: pd.DataFrame) -> pd.DataFrame:
    """Return the records with the processor's seconds in the place of the clock's, if the machine was busy."""
    return found.assign(seconds=found["cpu"].fillna(found["seconds"])) if _busy(found) else found


def _limit(folder: Path) -> float:
    return float(_known(folder).get("time_limit", 60.0))


def _known(folder: Path) -> dict[str, Any]:
    path = folder / "machine.json"
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return known


def _machine(folder: Path, found: pd.DataFrame) -> str:
    known = _known(folder)
    versions = ", ".join(f"{name} {version}" for name, version in known.get("versions", {}).items())
    text = (
        f"Machine: {known.get('cores', '?')} cores of {known.get('processor', '?')}, {known.get('system', '?')}, Python "
        f"{known.get('python', '?')}; {versions}."
    )
    if _busy(found):
        load = found.loc[found["factual"] >= 0, "load"].median()
        text += (
            f"\n\n**The machine was not quiet.** Its load average was {load:.1f} (median over all answers), so by the clock "
            "everybody is slower than alone, and not evenly. The processor's own seconds suffer little from that. The limit "
            "is one of the clock, though: a peer that ran into it had fewer processor seconds than the limit says, so its "
            "share of proven answers may be understated. `ifonly` was under the same limit."
        )
    return text


def _bars(folder: Path, found: pd.DataFrame) -> str:
    text = "## What was to be shown\n\n"
    if _busy(found):
        text += f"By processor time:\n\n{bars.report(folder, 'cpu')[0]}\nBy the clock, on the busy machine:\n\n"
    text += bars.report(folder)[0]
    if (found["status"] == "given up").any():
        text += (
            "\nA peer whose first answers to a problem all ran into the limit, or that had used up its share of the whole "
            "run, was not asked for the rest; its *rows* below are those that it was asked for.\n"
        )
    return text


def growth_section(grown: pd.DataFrame, docs: Path) -> str:
    """Return the text and the table of the growth curves, and write their figure."""
    kind = "processor seconds" if _busy(grown) else "seconds"
    grown = _undisturbed(grown)
    plot.save(plot.draw_growth(grown), docs, "benchmarks-growth")
    lines = ["| grows | size | method | median | max | proven |", "|---|---:|---|---:|---:|---:|"]
    asked = grown[(grown["factual"] >= 0) & (grown["status"] != "given up")]
    for (curve, size, method), part in asked.groupby(["curve", "size", "method"], sort=False):
        shown = [table.shown_seconds(float(value)) for value in (part["seconds"].median(), part["seconds"].max())]
        lines.append(f"| {curve} | {size:g} | {method} | {' | '.join(shown)} | {part['proven'].mean():.0%} |")
    return (
        "One quantity at a time; the panels say what the others are. The made-up data has as many numbers as the curve says, "
        "half of which inform, and two clusters per class. A ring marks sizes at which not every answer is proven, the band "
        f"goes from the least to the most. Times are {kind}.\n\n![Growth curves](benchmarks-growth.svg)\n\n"
        + "\n".join(lines)
        + "\n"
    )


def _throughput(batch: pd.DataFrame) -> str:
    lines = ["| rows | jobs | rows per second | start | peak memory | of a worker |", "|---:|---:|---:|---:|---:|---:|"]
    lines += [
        f"| {line['rows']:.0f} | {line['jobs']:.0f} | {line['rate']:.1f} | {line['start']:.1f} s | "
        f"{line['peak_mb']:.0f} MB | {line['worker_peak_mb']:.0f} MB |"
        for line in batch.to_dict("records")
    ]
    return "## Whole batches\n\n`explain_all` on German Credit, 100 trees of depth 5.\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("docs", type=Path)
    options = parser.parse_args()
    print(write(options.folder, options.docs))
