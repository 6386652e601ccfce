"""Goals, and the bars that a run is held against: each goal of each line, and every peer of each line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.speed import records
from benchmarks.speed.bars import OURS, Bar, Run, faster, shares, under

__all__ = ["Goal", "evaluate"]


@dataclass(frozen=True)
class Goal:
    """A goal of the answers to one problem; seconds are those of the processor.

    Attributes
    ----------
    median, most
        Seconds of half of the answers, and of all.
    proven
        The share of answers that must be proven, each within `within` seconds.
    answered
        The share of rows that must get an answer: one that the model confirms, or a proof that there is none.
    own
        Seconds of the median answer without those in the model itself.
    peak
        The most memory of the process, in MB.
    made, made_mb
        Seconds and MB that the constructor takes.
    """

    median: float | None = None
    most: float | None = None
    proven: float | None = None
    within: float = 60.0
    answered: float | None = None
    own: float | None = None
    peak: float | None = None
    made: float | None = None
    made_mb: float | None = None

    def bars(self, run: Run, name: str) -> Iterator[Bar]:
        """Yield what this goal asks of a run."""
        for seconds, quantile, bare in ((self.median, 0.5, False), (self.most, 1.0, False), (self.own, 0.5, True)):
            if seconds is not None:
                yield under(run, name, seconds, quantile=quantile, bare=bare)
        if self.median is not None and self.proven is None:
            yield shares(run, [name], "proven")
        if self.proven is not None:
            yield shares(run, [name], "proven", self.proven, within=self.within)
        if self.answered is not None:
            yield shares(run, [name], "answered", self.answered)
        if self.peak is not None:
            yield _at_most(run, name, "peak memory", self.peak, run.part(name)["peak"].max(), "MB")
        opened = run.opened(name)
        if self.made is not None:
            yield _at_most(run, name, "constructor", self.made, opened["cpu"].max(), "s")
        if self.made_mb is not None:
            yield _at_most(run, name, "memory of the constructor", self.made_mb, opened["peak"].max(), "MB")


def _at_most(run: Run, name: str, what: str, most: float, measured: float, unit: str) -> Bar:
    text = f"{name}: {what} at most {most:g} {unit}"
    known = run.has([name]) and not np.isnan(measured)
    return Bar(text, measured <= most if known else None, f"{measured:.3g} {unit}" if known else "")


def evaluate(frame: pd.DataFrame, goals: Mapping[str, Goal]) -> list[Bar]:
    """Return every bar: no peer better than a proof of ours, each line's goal, and each line no slower than its peers."""
    frame = frame.assign(answered=frame["valid"] | (frame["proven"] & frame["objective"].isna()))
    run = Run(frame, "cpu")
    lost = records.beaten(frame)
    bars = [
        Bar(
            "no answer of a peer, confirmed by predict, is better than a proven one of ours",
            lost.empty,
            f"{len(lost)} are",
        )
    ]
    refused = frame[(frame["method"] == OURS) & (frame["status"] == "found") & ~frame["valid"]]
    bars.append(Bar("every answer of ours is confirmed by the model", refused.empty, f"{len(refused)} are not"))
    late = records.late(frame)
    worst = "" if late.empty else f", by up to {(late['seconds'] - late['limit']).max():.0f} s of the clock"
    bars.append(
        Bar("every answer of ours keeps its time limit, within 10% or 50 ms", late.empty, f"{len(late)} do not{worst}")
    )
    for name, goal in goals.items():
        bars += goal.bars(run, name)
        asked = run.frame[(run.frame["problem"] == name) & run.frame["cpu"].notna()]
        bars += [faster(run, name, peer, 1) for peer in dict.fromkeys(asked["method"]) if peer != OURS]
    return bars
