"""Progress of a batch: a live bar where there is a terminal, a log line per shard elsewhere."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol, Self

from ifonly.batch.jobs import Report
from ifonly.tolerances import DUST

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Bar", "Lines", "Listener", "Silent", "listener"]

_LOG = logging.getLogger("ifonly.batch")


class Listener(Protocol):
    """Listener of a batch: hears how it goes on."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *details: object) -> None: ...

    def began(self, rows: int, done: int, shards: int) -> None:
        """Take how many rows there are, how many of them are done, and how many shards are left."""
        ...

    def ended(self, report: Report) -> None:
        """Take the end of a shard."""
        ...

    def beat(self, rows: int) -> None:
        """Take how many rows are done in shards under way; called about once a second."""
        ...

    def told(self, sentence: str) -> None:
        """Take a sentence for the person who waits."""
        ...


class Silent:
    """Listener that logs all that it hears to ``ifonly.batch``, which is quiet unless it is given a handler."""

    def __init__(self) -> None:
        self.rows = self.done = self.asked = 0
        self.counts: Counter[str] = Counter()
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        pass

    def began(self, rows: int, done: int, shards: int) -> None:
        """Take what there is to do."""
        self.rows, self.done, self._began = rows, done, time.monotonic()
        _LOG.info("%s of %s rows are done, %s shards to go", f"{done:,}", f"{rows:,}", shards)

    def ended(self, report: Report) -> None:
        """Take the end of a shard."""
        if not report.done:
            return
        self.done += report.rows
        self.asked += report.rows - report.kept
        self.counts.update(report.statuses)
        _LOG.info("%s", self.line(report))

    def beat(self, rows: int) -> None:
        """Take how many rows are done in shards under way."""

    def told(self, sentence: str) -> None:
        """Take a sentence."""
        _LOG.warning("%s", sentence)

    def rate(self, extra: int = 0) -> float:
        """Return rows per second since the beginning."""
        return (self.asked + extra) / max(time.monotonic() - self._began, DUST)

    def left(self, extra: int = 0) -> float:
        """Return the seconds that the rest will take at that rate."""
        rate = self.rate(extra)
        return (self.rows - self.done - extra) / rate if rate > 0 else float("inf")

    def line(self, report: Report) -> str:
        """Return a shard's end in words."""
        counts = ", ".join(f"{n} {status}" for status, n in sorted(report.statuses.items()))
        return (
            f"shard {report.shard}: {report.rows:,} rows in {report.seconds:.1f} s ({counts}); {self.done:,} of "
            f"{self.rows:,} rows, {self.rate():.1f} rows/s, {_duration(self.left())} left"
        )


class Lines(Silent):
    """Listener that prints a line per shard to a console, for logs of jobs without a terminal."""

    def __init__(self, out: Console) -> None:
        super().__init__()
        self._out = out

    def ended(self, report: Report) -> None:
        """Take the end of a shard."""
        super().ended(report)
        if report.done:
            self._out.print(self.line(report), soft_wrap=True)

    def told(self, sentence: str) -> None:
        """Take a sentence."""
        self._out.print(sentence, soft_wrap=True)


class Bar(Silent):
    """Listener that shows a live bar with rows per second, time left, and counts by status."""

    def __init__(self, out: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415 - only with a bar

        super().__init__()
        self._bar: Any = Progress(
            TextColumn("Explaining"),
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows · {task.fields[note]}"),
            console=out,
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._bar.stop()

    def began(self, rows: int, done: int, shards: int) -> None:
        """Take what there is to do."""
        super().began(rows, done, shards)
        self._task = self._bar.add_task("", total=rows, completed=done, note="")

    def ended(self, report: Report) -> None:
        """Take the end of a shard."""
        super().ended(report)
        self.beat(0)

    def beat(self, rows: int) -> None:
        """Take how many rows are done in shards under way."""
        counts = ", ".join(f"{n:,} {status}" for status, n in self.counts.most_common())
        note = f"{self.rate(rows):.1f} rows/s · {_duration(self.left(rows))} left" + (f" · {counts}" if counts else "")
        self._bar.update(self._task, completed=min(self.rows, self.done + rows), note=note)

    def told(self, sentence: str) -> None:
        """Take a sentence."""
        self._bar.console.print(sentence)


def listener(shown: bool) -> Listener:
    """Return a bar on the standard error of a terminal, lines where there is none, or silence."""
    if not shown:
        return Silent()
    from rich.console import Console  # noqa: PLC0415 - only with a bar

    out = Console(stderr=True, highlight=False, markup=False)
    return Bar(out) if out.is_terminal else Lines(out)


def _duration(seconds: float) -> str:
    """Return a time in words, coarse enough to stand still."""
    if seconds == float("inf"):
        return "?"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
