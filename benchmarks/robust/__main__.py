"""Robust answers beside the published ones: ``python -m benchmarks.robust --help``.

Questions that are in the records file already are not asked again, so a run that was stopped goes on where it was. On a busy
machine ``--patience 4`` gives each question four times the limit by the clock; what counts is processor time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.robust.asking import _POINTS, ask, ask_larger
from benchmarks.robust.cells import LARGER, Cell, cells, factuals
from benchmarks.robust.page import line, page


def main(arguments: list[str] | None = None) -> int:
    """Ask what is left, print a line per cell, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="by commas: banknote, diabetes, ionosphere")
    parser.add_argument("--norm", help="by commas: linf, l2")
    parser.add_argument("--radius", help="by commas: 0.01, 0.05")
    parser.add_argument("--model", help="by commas: linear, cart, rf, gbm, mlp")
    parser.add_argument("--size", help="by semicolons, as in published.csv")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--limit", type=float, default=60.0, help="processor seconds")
    parser.add_argument("--patience", type=float, default=1.0, help="times the limit, by the clock")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--solver", default="auto")
    parser.add_argument(
        "--larger", action="store_true", help="German Credit, HELOC and Adult too, and nothing else with --rows 0"
    )
    parser.add_argument("--records", type=Path, help="a file of JSON lines to add to, and to go on from")
    parser.add_argument("--page", type=Path, help="a file for the table in Markdown")
    options = parser.parse_args(arguments)
    records = _read(options.records)
    end = time.monotonic() + 60.0 * options.minutes
    for cell in [] if options.larger else [c for c in cells() if _is_wanted(c, options)]:
        own = [r for r in records if r["cell"] == cell.name]
        for row in range(options.rows):
            if time.monotonic() < end and not any(r["row"] == row for r in own):
                own.append(
                    _keep(ask(cell, row, options.limit, options.patience, options.solver), records, options.records)
                )
        if own:
            print(line(cell, own), flush=True)
    for which in LARGER if options.larger else ():
        for row in factuals(which, options.rows, options.solver):
            if time.monotonic() < end and not any(r["cell"] == which.name and r["row"] == row for r in records):
                _keep(ask_larger(which, row, options.limit, options.patience, options.solver), records, options.records)
    if options.page:
        options.page.write_text(page(cells(), records, options.limit, _POINTS))
    return int(any(r["robust"] is False for r in records))


def _is_wanted(cell: Cell, options: Any) -> bool:
    given = {"data": cell.data, "norm": cell.norm, "radius": f"{cell.radius:g}", "model": cell.model}
    named = all(getattr(options, k) is None or v in getattr(options, k).split(",") for k, v in given.items())
    return named and (options.size is None or cell.size in options.size.split(";"))


def _read(path: Path | None) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()] if path and path.exists() else []


def _keep(record: dict[str, Any], records: list[dict[str, Any]], path: Path | None) -> dict[str, Any]:
    records.append(record)
    if path:
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
    return record


if __name__ == "__main__":
    sys.exit(main())
