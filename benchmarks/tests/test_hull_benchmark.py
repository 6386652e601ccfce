"""The benchmark of hulls: its tables and bars, on records that are made up, and one small run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pandas as pd
from benchmarks import hull


def records(median: float) -> pd.DataFrame:
    lines = []
    for rows, seconds in ((88, 0.1), (700, median)):
        lines += [
            hull.Record("german_credit", rows, i, "optimal", seconds, seconds, 1.0, 1.0, True, 0.0, 100.0)
            for i in range(3)
        ]
    return pd.DataFrame(lines)


def test_bars_pass_and_fail() -> None:
    good = list(hull.bars(hull.summarise(records(0.3), "seconds")))
    assert len(good) == 5
    assert all(met for _, _, met in good)
    slow = [text for text, _, met in hull.bars(hull.summarise(records(0.6), "seconds")) if not met]
    assert slow == [
        "german_credit, 700 rows: median under 0.5 s",
        "german_credit, 88 to 700 rows: at most 4 times the time",
    ]
    text = hull.markdown(hull.summarise(records(0.6), "cpu"), "cpu")
    assert "| german_credit | 700 | 0.60 | 0.60 | 0.60 | 3/3 | 3/3 | 3/3 | 100 |" in text
    assert "FAIL" in text


def test_a_small_run() -> None:
    found = hull.measure("german_credit", [60], 1, 30.0)
    assert [(r.status, r.valid, r.rows) for r in found] == [("optimal", True, 60)]
    assert found[0].outside <= 1e-7
    assert hull.draw(hull.summarise(pd.DataFrame(found), "cpu")).axes
