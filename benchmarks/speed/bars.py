"""The bars: what one run must show, each with what was measured. ``python -m benchmarks.speed.bars FOLDER``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.speed import records

__all__ = ["OURS", "Bar", "Run", "evaluate", "faster", "markdown", "report", "shares", "under"]

OURS = "ifonly"
_GERMAN = tuple(f"german-rf-{trees}x{depth}" for depth in (5, 8) for trees in (10, 50, 100))
_LARGER = tuple(name for name in _GERMAN if not name.startswith("german-rf-10x"))
_STEADY_MB = 64.0
_QUICK = 0.01
_BARE = ", not counting the predict of the model itself"


@dataclass(frozen=True)
class Bar:
    """One bar; `passed` is None when the run does not hold what it takes to tell."""

    text: str
    passed: bool | None
    measured: str

    def __str__(self) -> str:
        mark = {True: "pass", False: "FAIL", None: "not measured"}[self.passed]
        return f"| {self.text} | {self.measured} | {mark} |"


class Run:
    """The records of one run, with the questions that bars ask of them."""

    def __init__(self, frame: pd.DataFrame, by: str = "seconds") -> None:
        self.frame = frame[frame["factual"] >= 0]
        self._opened = frame[frame["status"] == "opened"]
        self.by = by

    def part(self, problem: str, method: str = OURS) -> pd.DataFrame:
        """Return the lines of one problem and method."""
        return self.frame[(self.frame["problem"] == problem) & (self.frame["method"] == method)]

    def opened(self, problem: str) -> pd.DataFrame:
        """Return the line that tells of opening ours."""
        return self._opened[self._opened["problem"] == problem]

    def has(self, problems: Sequence[str], *methods: str) -> bool:
        """Whether all of these were run."""
        return all(len(self.part(p, m)) for p in problems for m in (methods or (OURS,)))

    def time(self, problem: str, method: str = OURS, quantile: float = 0.5, *, bare: bool = False) -> float:
        """Return a quantile of the seconds, by the clock or by the processor; `bare`: without the model's own predict."""
        part = self.part(problem, method)
        model = part["model_cpu" if self.by == "cpu" else "verify"].fillna(0.0) if bare else 0.0
        return float((part[self.by] - model).quantile(quantile))

    def count(self, problem: str, column: str, within: float | None = None) -> tuple[int, int]:
        """Return how many of ours are proven or valid (in so many seconds), and of how many."""
        part = self.part(problem)
        good = part[column] if within is None else part[column] & (part[self.by] <= within)
        return int(good.sum()), len(part)

    def ratio(self, problem: str, method: str, quantile: float = 0.5, *, bare: bool = False) -> float:
        """Return how many times longer a method takes than ours."""
        return self.time(problem, method, quantile) / self.time(problem, OURS, quantile, bare=bare)


def evaluate(frame: pd.DataFrame, throughput: pd.DataFrame | None = None, by: str = "seconds") -> list[Bar]:
    """Return every bar; `by` is the column that times are taken from, "seconds" or, on a busy machine, "cpu"."""
    run = Run(frame, by)
    lost = records.beaten(frame)
    bars = [Bar("no valid answer of a peer costs less than a proven one of ours", lost.empty, f"{len(lost)} do")]
    bars += [faster(run, p, "leafbigm", 50) for p in ("german-rf-100x5", "german-gbm-100x3")]
    bars += [shares(run, [p], "proven") for p in ("german-rf-100x5", "german-gbm-100x3")]
    bars += [shares(run, _GERMAN, column) for column in ("proven", "valid")]
    # In runs before the processor seconds in the model were counted, they can only be taken off clock times.
    bare = by == "seconds" or ("model_cpu" in frame and bool(frame["model_cpu"].notna().any()))
    bars += [_against_treecf(run, 0.5, 4, bare=b) for b in (False, True)[: 1 + bare]]
    bars += [_against_treecf(run, 0.9, len(_GERMAN))]
    bars += [faster(run, p, "oceanpy", 10) for p in _LARGER]
    bars += [shares(run, ["breast-rf-50x5"], "proven")]
    bars += [shares(run, [p], "proven", 0.9) for p in ("heloc-rf-100x5", "heloc-xgboost-100x4")]
    for problem, limit in _LIMITS.items():
        bars += [under(run, problem, limit), shares(run, [problem], "proven")]
        if bare and limit <= _QUICK:
            bars += [under(run, problem, limit, bare=True)]
    bars += list(_batch(throughput))
    return bars


_LIMITS = {
    "adult-rf-100x8": 0.3,
    "gmsc-rf-100x8": 0.3,
    "german-mlp-1x50": 0.3,
    "german-mlp-2x32": 0.5,
    "german-logistic": 0.01,
    "german-tree": 0.01,
    "breast-logistic": 0.01,
    "breast-tree": 0.01,
}


def faster(run: Run, problem: str, method: str, times: float) -> Bar:
    """Return the bar that ours is so many times faster than a method."""
    text = f"{problem}: median {'no slower' if times == 1 else f'at least {times:g} times faster'} than {method}"
    if not run.has([problem], OURS, method):
        return Bar(text, None, "")
    theirs, ours = run.part(problem, method), run.part(problem)
    theirs = theirs[theirs["status"] != "given up"]
    # A peer that was not asked for all rows is compared on those it was asked for.
    ours = ours[ours["factual"].isin(theirs["factual"])]
    if ours.empty:
        return Bar(text, None, "")
    ratio = float(theirs[run.by].median() / ours[run.by].median())
    unfinished = int((~theirs["proven"]).sum())
    note = f", {unfinished} of them not proven by {method}" if unfinished else ""
    return Bar(text, ratio >= times, f"{ratio:.1f} times on {len(theirs)} rows{note}")


def shares(run: Run, problems: Sequence[str], column: str, share: float = 1.0, within: float | None = None) -> Bar:
    """Return the bar that so many answers are proven, or valid, in the limit or in so many seconds."""
    name = problems[0] if len(problems) == 1 else "German Credit forests"
    text = f"{name}: {'all' if share == 1.0 else f'at least {share:.0%}'} {column}"
    text += "" if within is None else f" within {within:g} s"
    if not run.has(problems):
        return Bar(text, None, "")
    counts = [run.count(p, column, within) for p in problems]
    good, total = sum(c[0] for c in counts), sum(c[1] for c in counts)
    return Bar(text, good >= share * total, f"{good} of {total}")


def _against_treecf(run: Run, quantile: float, least: int, *, bare: bool = False) -> Bar:
    name = "median no slower" if quantile == 0.5 else "p90 faster"
    text = f"German Credit forests: {name} than treecf on at least {least} of {len(_GERMAN)}{_BARE * bare}"
    if not run.has(_GERMAN, OURS, "treecf"):
        return Bar(text, None, "")
    ratios = {p: run.ratio(p, "treecf", quantile, bare=bare) for p in _GERMAN}
    won = sum(r >= 1.0 for r in ratios.values())
    shown = ", ".join(f"{p.removeprefix('german-rf-')}: {r:.2f}" for p, r in ratios.items())
    return Bar(text, won >= least, f"{won} (treecf / ours: {shown})")


def under(run: Run, problem: str, seconds: float, *, quantile: float = 0.5, bare: bool = False) -> Bar:
    """Return the bar that the median, or another quantile, stays under so many seconds."""
    text = f"{problem}: {'median' if quantile == 0.5 else 'every answer'} under {seconds:g} s{_BARE * bare}"
    if not run.has([problem]):
        return Bar(text, None, "")
    spent = run.time(problem, quantile=quantile, bare=bare)
    return Bar(text, spent < seconds, f"{spent:.4f} s")


def _batch(table: pd.DataFrame | None) -> Iterator[Bar]:
    speed = "explain_all: two jobs at least 1.7 times the rows per second of one"
    steady = f"explain_all: five times the rows take at most {_STEADY_MB:g} MB more, in any process"
    if table is None:
        yield from (Bar(speed, None, ""), Bar(steady, None, ""))
        return
    most = table[table["rows"] == table["rows"].max()].set_index("jobs")
    ratio = float(most.loc[2, "rate"] / most.loc[1, "rate"])
    yield Bar(speed, ratio >= 1.7, f"{ratio:.2f} times ({most.loc[1, 'rate']:.1f} rows/s on one)")
    few = table[table["rows"] == table["rows"].min()].set_index("jobs")
    growth = (most[["peak_mb", "worker_peak_mb"]] - few[["peak_mb", "worker_peak_mb"]]).to_numpy().max()
    yield Bar(steady, bool(growth <= _STEADY_MB), f"{growth:.0f} MB")


def report(folder: Path, by: str = "seconds") -> tuple[str, bool]:
    """Return the bars of a run as Markdown, and whether none has failed."""
    batch = folder / "throughput.csv"
    bars = evaluate(records.load(folder / "results.csv"), pd.read_csv(batch) if batch.exists() else None, by)
    return markdown(bars), all(bar.passed is not False for bar in bars)


def markdown(bars: Sequence[Bar]) -> str:
    """Return bars as a table."""
    return "| bar | measured | |\n|---|---|---|\n" + "\n".join(map(str, bars)) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--by", choices=("seconds", "cpu"), default="seconds", help="clock or processor (clock)")
    options = parser.parse_args()
    text, fine = report(options.folder, options.by)
    print(text, end="")
    sys.exit(0 if fine else 1)
