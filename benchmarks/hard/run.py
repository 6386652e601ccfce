"""The run: each line in a process of its own, ours first, then the peers that take it, on the same rows."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.hard.lines import Line
from benchmarks.peers.catalogue import PEERS
from benchmarks.speed import records
from benchmarks.speed.methods import OURS
from benchmarks.speed.problems import prepare
from benchmarks.speed.records import Record
from benchmarks.speed.run import Settings, finished, run_method, say

__all__ = ["Options", "each_in_a_process", "run_line"]


@dataclass(frozen=True)
class Options:
    """Options of a run; rows and limit are those of the line where they are None."""

    records: Path
    rows: int | None = None
    limit: float | None = None
    peers: tuple[str, ...] = ()
    give_up: int = 2
    solver: str = "auto"
    cache: Path | None = None

    def arguments(self) -> list[str]:
        """Return them as a command line takes them."""
        out = ["--resume", str(self.records), "--give-up", str(self.give_up), "--solver", self.solver]
        for name, value in (("--rows", self.rows), ("--limit", self.limit), ("--cache", self.cache)):
            out += [] if value is None else [name, str(value)]
        return [*out, "--peers", *self.peers]


def run_line(line: Line, options: Options) -> None:
    """Ask all rows of a line that are not among the records yet."""
    settings = Settings(
        options.rows or line.rows,
        options.limit or line.limit,
        options.solver,
        options.cache,
        options.give_up,
        opening=True,
    )
    done = finished(options.records)
    case = prepare(line.problem, settings.factuals)
    say(f"{line.name}: {len(case.factuals)} rows of {len(case.table.frame)}, {settings.seconds:g} s")
    for method in (OURS, *options.peers):
        # A peer that cannot take the problem is not a line of its table.
        if method == OURS or (case.ask.plain and not _refused(line, method, len(case.classes))):
            run_method(case, method, settings, options.records, done)


def _refused(line: Line, peer: str, classes: int) -> str:
    return PEERS[peer].refuses(line.problem.kind, line.problem.ask.norm, classes)


def each_in_a_process(lines: Sequence[Line], options: Options) -> None:
    """Run lines one after the other, each in a fresh process, so that its peak of memory is its own."""
    options.records.parent.mkdir(parents=True, exist_ok=True)
    for line in lines:
        began = time.perf_counter()
        command = [sys.executable, "-m", "benchmarks.hard", "--line", line.name, *options.arguments()]
        ended = subprocess.run(command, check=False)
        if ended.returncode:
            say(f"  {line.name}: the process ended with {ended.returncode} after {time.perf_counter() - began:.0f} s")
            note = f"the process ended with {ended.returncode}"
            records.append(options.records, [Record(line.name, OURS, -1, "died", float("nan"), note=note)])
