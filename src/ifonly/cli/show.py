"""Output of the commands: plain text for files and pipes, colour and a live status for people."""

# ruff: noqa: PLC0415 - rich is loaded by the commands that print with it, so that --help stays quick

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

from ifonly.events import Built, Event, Incumbent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.text import Text

    from ifonly.errors import Infeasible
    from ifonly.record import Verdict

__all__ = [
    "Counter",
    "Live",
    "Progress",
    "answer",
    "console",
    "done",
    "error",
    "impossible",
    "note",
    "steps",
    "table",
    "verdict",
    "wrote",
]

_ARROW = "  ->  "


def console(*, err: bool = False) -> Console:
    """Return a console on the standard output (or error) of this moment; long lines wrap only on a terminal."""
    from rich.console import Console

    return Console(stderr=err, highlight=False, markup=False, emoji=False)


def _print(text: str | Text, style: str = "", *, err: bool = False) -> None:
    out = console(err=err)
    out.print(text, style=style, soft_wrap=not out.is_terminal)


def error(message: str, hint: str = "") -> None:
    """Print what went wrong, in red, and what to try next, to standard error."""
    from rich.text import Text

    _print(Text.assemble(("Error: ", "bold red"), (message, "red")), err=True)
    if hint:
        _print(hint, "dim", err=True)


def note(
    message: Warning | str,
    category: type[Warning] = UserWarning,
    filename: str = "",
    lineno: int = 0,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning to standard error as a sentence; stands in for `warnings.showwarning`."""
    del category, filename, lineno, file, line
    from rich.text import Text

    _print(Text.assemble(("Note: ", "bold yellow"), (str(message), "yellow")), err=True)


def done(sentence: str) -> None:
    """Print a step that is finished."""
    from rich.text import Text

    out = console()
    mark = "*" if out.options.ascii_only else "✓"
    out.print(Text.assemble((f"{mark} ", "green"), sentence), soft_wrap=True)


def answer(text: str) -> None:
    """Print an explanation; on a terminal what would be stands out and the small print steps back."""
    from rich.text import Text

    out = console()
    for line in text.splitlines():
        styled = Text(line)
        header = re.match(r"(\d+\. )?If only \.\.\.", line)
        if header:
            styled.stylize("bold")
        elif line.lstrip().startswith("then  ") and _ARROW in line:
            styled.stylize("bold green", line.index(_ARROW) + len(_ARROW))
        elif " · " in line or line.startswith("note: "):
            styled.stylize("dim")
        out.print(styled, soft_wrap=True)


def impossible(reason: Infeasible) -> None:
    """Print which demands clash and, beside each, the loosening that is enough by itself."""
    from rich.text import Text

    ways = {way.demand: way.change for way in reason.relaxations}
    ways = {demand: "drop it" if way == f"drop: {demand}" else way for demand, way in ways.items()}
    _print(Text("Impossible, and proven: these demands cannot be met together.", "bold"))
    if not reason.conflict:
        return
    width = max(map(len, reason.conflict)) + 3
    lines = [Text(f"  {'demand':<{width}}enough by itself", "dim")] if ways else []
    lines += [
        Text.assemble("  ", (f"{demand:<{width}}", "bold red"), (ways.get(demand, ""), "green"))
        for demand in reason.conflict
    ]
    for line in lines:
        line.rstrip()
        console().print(line, soft_wrap=True)


def table(headings: list[str], rows: list[list[str]], *, numbers: bool = False) -> None:
    """Print a table; `numbers` aligns all columns but the first to the right."""
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for i, heading in enumerate(headings):
        grid.add_column(heading, justify="right" if numbers and i else "left", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    console().print(grid)


def steps(title: str, commands: Mapping[str, str]) -> None:
    """Print commands to try, each with what it is for."""
    from rich.text import Text

    console().print(Text(title, "bold"))
    width = max(map(len, commands)) + 3
    for command, use in commands.items():
        beside = width + len(use) <= 100
        console().print(
            Text.assemble("  ", (f"{command:<{width}}" if beside else command, "cyan")),
            soft_wrap=True,
            end="",
        )
        console().print(Text(use if beside else f"\n      {use}", "dim"), soft_wrap=True)


def wrote(path: Path) -> None:
    """Say where something was written, to standard error: standard output is for answers."""
    _print(f"Wrote {path}", "green", err=True)


class Live:
    """A line with a spinner where there is a terminal, and nothing elsewhere."""

    def __init__(self, out: Console, title: str) -> None:
        self._out, self.title = out, title
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if self._out.is_terminal:
            self._status = self._out.status(self.title)
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def tell(self, line: str) -> None:
        """Show another line."""
        if self._status is not None:
            self._status.update(line)


class Counter(Live):
    """Live count: how many of how many are done."""

    def __call__(self, done: int, total: int) -> None:
        """Take the count of the answers so far."""
        self.tell(f"{self.title} {done} of {total}")


class Progress(Live):
    """Live line of a search: hears its events, shows where it stands, and keeps count for afterwards."""

    def __init__(self, out: Console, title: str = "Searching for the least change") -> None:
        super().__init__(out, title)
        self.size, self.best, self.bound, self.found = "", inf, -inf, 0

    def __call__(self, event: Event) -> None:
        """Take an event of the search."""
        if isinstance(event, Built):
            self.size = f"{_counted(event.columns, 'column')}, {_counted(event.rows, 'row')}"
        elif isinstance(event, Incumbent):
            if event.bound > self.best:  # a bound above the best answer belongs to the search for a further one
                self.best, self.bound = inf, -inf
            self.found += event.objective < self.best
            self.best, self.bound = min(self.best, event.objective), max(self.bound, event.bound)
        elif event.status == "optimal":
            self.bound = self.best
        self.tell(f"{self.title} · {self.summary()}")

    def summary(self) -> str:
        """Return where the search stands, in words."""
        parts = [self.size] if self.size else []
        if self.found:
            parts.append(f"{self.found} answers, each better" if self.found > 1 else "1 answer")
        parts += [
            f"{name} {value:.4g}" for name, value in (("best", self.best), ("bound", self.bound)) if isfinite(value)
        ]
        return " · ".join(parts) or "no program had to be built"


def verdict(found: Verdict) -> None:
    """Print what was checked of a record, a line for each, and whether it stands."""
    from rich.text import Text

    marks = {True: ("ok    ", "green"), False: ("FAIL  ", "bold red"), None: ("note  ", "yellow")}
    for check in found.checks:
        _print(Text.assemble(marks[check.ok], check.sentence))
    _print(str(found).splitlines()[-1], "bold" if found.ok else "bold red")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
