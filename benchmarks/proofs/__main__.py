"""Proofs replayed, and forged ones refused: ``python -m benchmarks.proofs --questions 1000 --real 100 --output page.md``.

Questions of the battery about linear models, trees, forests, boosters and networks are asked with ``proof=True``; each proof
goes, with its record, to `ifonly.verify`, as a stranger would. Then each is forged in one way, in turn, by someone who writes
fresh checksums wherever they help, and must be refused. Real questions, of a forest and of a network, come from German
Credit, and from HELOC and Adult where ``IFONLY_DATA`` names them.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any framework is loaded: threads that wait cost processor time

import argparse
import itertools
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.proofs.asking import FAMILIES, SETS
from benchmarks.proofs.forging import KINDS
from benchmarks.proofs.judging import Result, of_task


def run(
    questions: int, real: int, seed: int, jobs: int, kept: Path | None, families: Sequence[str] = FAMILIES
) -> Iterator[Result]:
    """Yield results until there are enough of both kinds; each is also appended to a file, where one is named."""
    sets = [s for s in SETS if ("network" if s.endswith("network") else "forest") in families] or SETS
    shares = [real // len(sets) + (k < real % len(sets)) for k in range(len(sets))]
    tasks: Iterable[tuple[str, int, int]] = itertools.chain(
        ((name, seed, n) for name, n in zip(sets, shares, strict=True) if n), (("", seed, b) for b in itertools.count())
    )
    counts: Counter[bool] = Counter()
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        running = [pool.apply_async(of_task, (task, families)) for task in itertools.islice(tasks, 2 * jobs)]
        while running:
            done = next((r for r in running if r.ready()), None)
            if done is None:
                time.sleep(0.02)
                continue
            running.remove(done)
            running += [pool.apply_async(of_task, (task, families)) for task in itertools.islice(tasks, 1)]
            for result in done.get():
                is_real = result["task"][0] in SETS
                if counts[is_real] < (real if is_real else questions):
                    counts[is_real] += 1
                    if kept is not None:
                        with kept.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(result) + "\n")
                    yield result
            if counts[False] >= questions and counts[True] >= real:
                return


def report(results: list[Result]) -> list[str]:
    """Return the report in Markdown."""
    held = [r for r in results if r["held"]]
    broken = len(results) - len(held)
    families, impossible = Counter(r["family"] for r in held), Counter(r["family"] for r in held if r["impossible"])
    tried, refused = Counter(r["forgery"] for r in held), Counter(r["forgery"] for r in held if r["refused"])
    parts, size = sum(r["parts"] for r in held), sum(r["bytes"] for r in held)
    plain, kept = sum(r["plain"] for r in held), sum(r["kept"] for r in held)
    checking = sum(r["checking"] for r in held)
    return [
        "| proofs replayed | accepted | of which impossible |",
        "|---|---:|---:|",
        *(f"| {name} | {n:,} | {impossible[name]:,} |" for name, n in families.most_common()),
        f"| **all** | **{len(held):,}** | **{impossible.total():,}** |",
        f"| not accepted | {broken} | |",
        "",
        "| forgery | refused | accepted |",
        "|---|---:|---:|",
        *(f"| {name} | {refused[name]:,} | {tried[name] - refused[name]} |" for name in KINDS),
        f"| **all** | **{refused.total():,}** | **{tried.total() - refused.total()}** |",
        "",
        (
            f"{parts:,} parts, {size / max(parts, 1):.1f} bytes each, file and checksum included. Keeping the proof took "
            f"{kept / max(plain, 1e-9):.2f} times the processor time of the same question without; checking a record, "
            f"replay included, {1e3 * checking / max(len(held), 1):.0f} ms."
        ),
    ]


def main(argv: list[str] | None = None) -> int:
    """Replay, forge, report; return 1 when a proof was not accepted or a forged one was."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proofs", description=__doc__)
    parser.add_argument("--questions", type=int, default=1000, help="proofs of the battery's questions")
    parser.add_argument("--real", type=int, default=100, help="proofs of real questions")
    parser.add_argument("--seed", type=int, default=20261116)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default=",".join(FAMILIES), help="families of the battery, by commas")
    parser.add_argument("--records", type=Path, default=None, help="a file to which each result is appended, as JSON")
    parser.add_argument("--output", type=Path, default=None, help="a file for the report in Markdown")
    options = parser.parse_args(argv)
    families = options.only.split(",")
    results = list(run(options.questions, options.real, options.seed, options.jobs, options.records, families))
    lines = report(results)
    broken = [f"{r['task']} {r['family']}: {r['why']}" for r in results if not r["held"]]
    accepted = [
        f"{r['task']} {r['family']}: accepted: {r['forgery']}" for r in results if r["held"] and not r["refused"]
    ]
    print("\n".join([*lines, *broken, *accepted]))
    if options.output is not None:
        head = f"`python -m benchmarks.proofs --questions {options.questions} --real {options.real} --seed {options.seed}`:"
        options.output.write_text("\n".join([head, "", *lines, ""]), encoding="utf-8")
    return 1 if broken or accepted else 0


if __name__ == "__main__":
    sys.exit(main())
