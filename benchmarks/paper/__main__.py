"""Runs the comparison: ``python -m benchmarks.paper --help``, or ``ifonly bench paper``."""

from __future__ import annotations

import os

# One core each: no threads inside linear algebra. Before NumPy is imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402 - after the environment is set
import sys  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from pathlib import Path  # noqa: E402

from benchmarks.paper import report  # noqa: E402
from benchmarks.paper.answers import Cell  # noqa: E402
from benchmarks.paper.authors import FOLDER, ForestMissing  # noqa: E402
from benchmarks.paper.models import AUTHORS, MODELS, NAMES  # noqa: E402
from benchmarks.paper.ours import OBJECTIVES  # noqa: E402
from benchmarks.paper.run import ONE, THREE, Settings, plan, run  # noqa: E402
from benchmarks.paper.sets import SETS  # noqa: E402

METHODS = tuple(dict.fromkeys((*ONE, *THREE)))
# What needs no environment of its own.
_HERE = (*OBJECTIVES, "growing-spheres", "face", "actionable-recourse")
_QUICK_MODELS = ("lr", "rf")


def _listed(known: Sequence[str]) -> object:
    def names(text: str) -> list[str]:
        found = [name for name in text.split(",") if name]
        strange = [name for name in found if name not in known]
        if strange:
            raise argparse.ArgumentTypeError(f"{strange[0]!r} is none of {', '.join(known)}")
        return found

    return names


def options(arguments: Sequence[str] | None = None, prog: str = "python -m benchmarks.paper") -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog=prog, description="The paper's comparison, with the peers' real code.")
    several: dict[str, object] = {"metavar": "A,B"}
    parser.add_argument("--data", type=_listed(SETS), help=f"of {', '.join(SETS)} (all)", **several)  # type: ignore[arg-type]
    parser.add_argument(
        "--models", type=_listed(NAMES), help=f"of {', '.join(NAMES)} (all that are trained here)", **several
    )  # type: ignore[arg-type]
    parser.add_argument("--methods", type=_listed(METHODS), help=f"of {', '.join(METHODS)} (all)", **several)  # type: ignore[arg-type]
    parser.add_argument("--answers", type=int, choices=(1, 3), help="one or three answers (both)")
    parser.add_argument("--factuals", type=int, default=30, help="of the paper's 30 (30)")
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds of ours per factual (30)")
    parser.add_argument("--peer-limit", type=float, default=60.0, help="seconds of a peer per factual (60)")
    parser.add_argument(
        "--give-up", type=int, default=3, metavar="N", help="skip a peer after N in a row over the limit (3)"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/paper"), help="folder of the results")
    parser.add_argument("--cache", type=Path, help="folder of the peers' environments (IFONLY_PEERS)")
    parser.add_argument(
        "--forests", type=Path, metavar="FOLDER", help=f"the authors' forests, for {AUTHORS} ({FOLDER})"
    )
    parser.add_argument("--report", action="store_true", help="ask nothing, write tables and figures of what is there")
    parser.add_argument(
        "--pages", type=Path, metavar="DOCS", help="also write the page of tables and its figures there"
    )
    parser.add_argument("--quick", action="store_true", help="3 factuals, no peer with an environment: does it work?")
    chosen = parser.parse_args(arguments)
    if chosen.quick:
        chosen.factuals = min(chosen.factuals, 3)
        chosen.time_limit = min(chosen.time_limit, 5.0)
        chosen.peer_limit = min(chosen.peer_limit, 5.0)
        chosen.models = chosen.models or list(_QUICK_MODELS)
        chosen.methods = chosen.methods or list(_HERE)
    return chosen


def main(arguments: Sequence[str] | None = None, prog: str = "python -m benchmarks.paper") -> int:
    """Ask for what is missing, then write tables, figures and bars of all that is there."""
    chosen = options(arguments, prog)
    if chosen.forests is not None:
        os.environ[FOLDER] = str(chosen.forests)
    path = chosen.out / "answers.csv"
    cells = plan(chosen.data or SETS, chosen.models or list(MODELS), chosen.methods or METHODS)
    cells = [cell for cell in cells if chosen.answers in (None, cell.n)]
    if chosen.quick:
        # Hulls of tens of thousands of rows, and three answers far apart, are for the long run.
        cells = [c for c in cells if c.data == "compas" or (c.n == 1 and c.method != "ifonly_tr")]
    if not chosen.report:
        limits = (chosen.time_limit, chosen.peer_limit, chosen.give_up, chosen.cache)
        try:
            _ask(cells, Settings(chosen.factuals, *limits), path)
        except ForestMissing as error:
            print(error, file=sys.stderr)
            return 4
    if not path.exists():
        print("There is nothing to report yet: run without --report first.", file=sys.stderr)
        return 4
    holds = report.write(path, chosen.out)
    if chosen.pages is not None:
        report.pages(chosen.out, chosen.pages)
    return 0 if holds else 1


def _ask(cells: Sequence[Cell], settings: Settings, path: Path) -> None:
    """Run with a bar that says what is being asked and how long the rest takes; in a log, a line per cell."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("starting", total=None)
        last: list[Cell] = []

        def tell(cell: Cell, done: int, total: int) -> None:
            name = f"{cell.data}, {cell.model}, {cell.method}, {cell.n}"
            progress.update(bar, description=name, completed=done, total=total)
            if not console.is_terminal and last[-1:] != [cell]:
                print(f"{done} of {total}: {name}", flush=True)
                last.append(cell)

        run(cells, settings, path, tell)


if __name__ == "__main__":
    sys.exit(main())
