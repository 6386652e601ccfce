"""The command: ``python -m benchmarks.battery --questions 1000 --seed 7 --jobs 2``, run from the repository's root.

Every question has a generator of its own, made of the seed and its number, so ``--replay 7:123`` asks number 123 of seed 7
again, alone, and prints all of it. With ``--records lines.jsonl`` a run that was stopped goes on where it was.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any framework is loaded: threads that wait cost processor time

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.battery import report
from benchmarks.battery.ask import BLOCK, KINDS, draw_question, draw_world, is_meant
from benchmarks.battery.latest import ALL, LATEST
from benchmarks.battery.run import Result, ask, judged, run_block
from benchmarks.battery.workers import all_results


def main(argv: Sequence[str] | None = None) -> int:
    """Ask, judge, report; return 1 when anything was wrong or failed."""
    options = _parsed(argv)
    if options.replay:
        seed, index = (int(part) for part in options.replay.split(":"))
        return replay(seed, index)
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(3), "big")
    _say(f"seed {seed}")
    began = time.perf_counter()
    results = _known(options.records)
    done = {r.index for r in results if r.seed == seed}
    only = [name for name in options.only.split(",") if name]
    work = _blocks(seed, options.first, options.questions, done, only)
    until = began + 60.0 * options.minutes if options.minutes else float("inf")
    for result in all_results(seed, work, options.jobs, until):
        results.append(result)
        _note(result, options.records)
    taken = time.perf_counter() - began
    for line in report.lines(results, taken):
        _say(line)
    if options.page:
        report.page(results, options.page, taken)
    return 1 if any(r.faults or r.late_by_processor for r in results) else 0


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.battery", description=__doc__)
    parser.add_argument("--questions", type=int, default=1000, help="how many draws (some make no question)")
    parser.add_argument(
        "--first", type=int, default=LATEST, help="the number of the first; below the default: older kinds"
    )
    parser.add_argument("--seed", type=int, default=None, help="a fresh one is drawn and printed when not given")
    parser.add_argument("--minutes", type=float, default=None, help="stop after so many minutes")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    names = ", ".join((*KINDS, *ALL))
    parser.add_argument("--only", default="", help=f"kinds and families, by commas: {names}")
    parser.add_argument("--replay", default="", help="SEED:NUMBER of one question, to be asked again and shown")
    parser.add_argument("--records", type=Path, default=None, help="a file of JSON lines to add to, and to go on from")
    parser.add_argument("--page", type=Path, default=None, help="a file for the report in Markdown")
    options = parser.parse_args(argv)
    unknown = [o for o in options.only.split(",") if o and o not in KINDS and o not in ALL]
    if unknown:
        parser.error(f"unknown kind or family {unknown[0]!r}; known: {names}")
    return options


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


# -- many --------------------------------------------------------------------------------------------------------------
def _blocks(seed: int, first: int, n: int, done: set[int], only: Sequence[str]) -> Iterator[tuple[int, list[int]]]:
    for block in range(first // BLOCK, (first + n - 1) // BLOCK + 1):
        numbers = range(max(first, block * BLOCK), min(first + n, (block + 1) * BLOCK))
        left = [i for i in numbers if i not in done and (not only or is_meant(seed, i, only))]
        if left:
            yield block, left


def _known(path: Path | None) -> list[Result]:
    if path is None or not path.exists():
        return []
    return [Result(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _note(result: Result, path: Path | None) -> None:
    if result.faults:
        _say(report.told(result))
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result.record(), ensure_ascii=False, default=str) + "\n")


# -- one ---------------------------------------------------------------------------------------------------------------
def replay(seed: int, index: int) -> int:
    """Ask one question again and print everything about it."""
    world = draw_world(seed, index // BLOCK)
    q = draw_question(seed, index, world)
    for head, value in q.tags.items():
        _say(f"{head}: {value}")
    for word in (
        *world.words,
        f"columns {world.data.columns}",
        f"want {q.target!r}",
        f"factual {q.factual.to_dict('records')}",
    ):
        _say(str(word))
    for criterion in q.criteria:
        _say(f"  {criterion!r}")
    answer, seconds, processor = ask(q)
    _say(f"{type(answer).__name__} after {seconds:.3f} s (processor {processor:.3f} s)")
    _say(str(answer))
    if isinstance(answer, Exception):
        for way in getattr(answer, "relaxations", ()):
            _say(f"  way out: {way!r}")
    else:
        for one in answer:
            _say(f"  {one.row.to_dict('records')[0]} {one.certificate}")
    verdict, faults, note = judged(q, answer)
    _say(f"{verdict} {note}")
    for fault in faults:
        _say(f"FAULT {fault.kind}: {fault.text}")
    result = run_block(seed, index // BLOCK, [index])[0]
    for told in result.faults:
        _say(f"fault on the whole: {told['kind']}: {told['text']}")
    return 1 if faults or result.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
