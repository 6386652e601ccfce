"""Runs the table: ``python -m benchmarks.hard --help``."""

from __future__ import annotations

import os

# One core for ours: no threads inside linear algebra. Before NumPy is imported, and for the processes that are started.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse  # noqa: E402 - after the environment is set
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from benchmarks.hard import page  # noqa: E402
from benchmarks.hard.goals import evaluate  # noqa: E402
from benchmarks.hard.lines import LINES, Line  # noqa: E402
from benchmarks.hard.run import Options, each_in_a_process, run_line  # noqa: E402
from benchmarks.speed import bars, records  # noqa: E402
from benchmarks.speed.growth import CURVES, grow  # noqa: E402
from benchmarks.speed.methods import EXACT  # noqa: E402
from benchmarks.speed.run import Settings  # noqa: E402


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hard", description=__doc__)
    parser.add_argument("--only", help="lines whose name or group contains one of these, by commas (all)")
    parser.add_argument("--rows", type=int, help="rows per line (20)")
    parser.add_argument("--limit", type=float, help="seconds per answer (that of the line: 60, some 5 or 90)")
    parser.add_argument(
        "--peers", nargs="*", choices=EXACT, metavar="NAME", help=f"of {', '.join(EXACT)} (all that apply)"
    )
    parser.add_argument(
        "--give-up",
        type=int,
        default=2,
        metavar="N",
        help="record a peer's other rows as given up when its first N all ran into the limit (2; 0: never)",
    )
    parser.add_argument(
        "--resume",
        type=Path,
        default=Path("benchmarks/results/hard/records.jsonl"),
        metavar="RECORDS",
        help="the file of records: what it holds is not asked again (benchmarks/results/hard/records.jsonl)",
    )
    parser.add_argument("--fresh", action="store_true", help="forget the records that are there")
    parser.add_argument("--solver", default="auto", help="the solver of ours (auto)")
    parser.add_argument("--cache", type=Path, help="folder of the peers' environments (IFONLY_PEERS)")
    parser.add_argument("--curves", nargs="*", choices=CURVES, metavar="NAME", help=f"growth: of {', '.join(CURVES)}")
    parser.add_argument(
        "--page", type=Path, metavar="DOCS", help="write the section of docs/benchmarks.md and its figures"
    )
    parser.add_argument("--list", action="store_true", help="print the lines, and end")
    parser.add_argument("--line", choices=LINES, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _chosen(only: str | None) -> list[Line]:
    words = [word.strip().lower() for word in (only or "").split(",") if word.strip()]
    return [
        line for line in LINES.values() if not words or any(w in f"{line.group} {line.name}".lower() for w in words)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Run the lines that were asked for, print the table and the bars; 1 if a proof of ours was beaten."""
    asked = _options(arguments)
    chosen = _chosen(asked.only)
    if asked.list:
        for line in chosen:
            print(f"{line.name:26} {line.group:18} {line.rows} rows, {line.limit:g} s; before: {line.before}")
        return 0
    peers = tuple(EXACT if asked.peers is None else asked.peers)
    options = Options(asked.resume, asked.rows, asked.limit, peers, asked.give_up, asked.solver, asked.cache)
    if asked.line is not None:
        run_line(LINES[asked.line], options)
        return 0
    if asked.fresh:
        asked.resume.unlink(missing_ok=True)
    if asked.curves is None:
        each_in_a_process(chosen, options)
    else:
        few = Settings(asked.rows or 5, asked.limit or 60.0, asked.solver)
        grow([CURVES[name] for name in asked.curves or CURVES], ["ifonly"], few, asked.resume.with_name("growth.csv"))
    return _told(asked.resume, asked.page)


def _told(path: Path, docs: Path | None) -> int:
    if docs is not None:
        print(page.write(path, docs))
    if not path.exists():
        return 0
    frame = records.load(path)
    there = [line for line in LINES.values() if (frame["problem"] == line.name).any()]
    held = evaluate(frame, {line.name: line.goal for line in there})
    print(page.table(frame, there))
    print(bars.markdown(held))
    met = sum(bool(bar.passed) for bar in held)  # NumPy says True in its own way
    print(f"{met} of {sum(bar.passed is not None for bar in held)} bars are met.")
    return 0 if held[0].passed and held[1].passed else 1


if __name__ == "__main__":
    sys.exit(main())
