"""Many rows from a CSV file by the command line: rows per second, memory of driver and workers, one interruption.

    python -m benchmarks.batch.scale --rows 10000 1000000 --jobs 2 --interrupt

A logistic regression on three small numbers, so that a million rows hold some 1,400 different questions: this measures the
machinery around the searches, not the searches. The largest run is interrupted by Ctrl-C halfway and resumed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import skops.io
from sklearn.linear_model import LogisticRegression

MEGABYTE = 1024.0


@dataclass
class Usage:
    """Wall time, processor time, and the largest resident memory of the driver and of any worker, in MB."""

    seconds: float = 0.0
    processor: float = 0.0
    driver: float = 0.0
    worker: float = 0.0
    codes: list[int] = field(default_factory=list)


def write_rows(path: Path, rows: int, seed: int = 0) -> None:
    """Write rows piece by piece."""
    draw = np.random.default_rng(seed)
    with path.open("w") as file:
        file.write("id,income,debts,children\n")
        for start in range(0, rows, 100_000):
            n = min(100_000, rows - start)
            part = np.column_stack(
                [np.arange(start, start + n), draw.integers(10, 41, n), draw.integers(0, 9, n), draw.integers(0, 5, n)]
            )
            np.savetxt(file, part, fmt="%d", delimiter=",")


def write_model(folder: Path) -> None:
    draw = np.random.default_rng(1)
    X = pd.DataFrame({"income": draw.integers(10, 41, 500), "debts": draw.integers(0, 9, 500)})
    X["children"] = draw.integers(0, 5, 500)
    good = X["income"] - 3 * X["debts"] - 2 * X["children"] + draw.normal(0, 2, 500) > 9
    skops.io.dump(LogisticRegression().fit(X, np.where(good, "good", "bad")), folder / "model.skops")
    X.to_csv(folder / "train.csv", index=False)


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "ifonly", "batch", *map(str, words)]


def watched(words: list[str], stop_when: Path | None = None, stop_at: int = 0) -> Usage:
    """Run a command and watch its processes; Ctrl-C when a folder has so many finished shards."""
    usage, began = Usage(), time.perf_counter()
    before = os.times()
    running = subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while running.poll() is None:
        usage.driver = max(usage.driver, _resident(running.pid))
        for worker in _descendants(running.pid):
            usage.worker = max(usage.worker, _resident(worker))
        if stop_when is not None and len(list(stop_when.glob("*.csv"))) >= stop_at:
            os.killpg(running.pid, signal.SIGINT)
            stop_when = None
        time.sleep(0.1)
    after = os.times()
    usage.seconds = time.perf_counter() - began
    usage.processor = after.children_user + after.children_system - before.children_user - before.children_system
    usage.codes.append(running.returncode)
    return usage


def _resident(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = [line for line in text.splitlines() if line.startswith("VmRSS")]
    return int(found[0].split()[1]) / MEGABYTE if found else 0.0


def _descendants(pid: int) -> list[int]:
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *_descendants(int(child))]
    except OSError:
        pass
    return found


def measure(rows: int, jobs: int, shard_rows: int, *, interrupt: bool) -> list[tuple[str, Usage]]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_model(folder)
        write_rows(folder / "rows.csv", rows)
        out = folder / "out"
        done = [
            (
                "plan",
                watched(
                    command(
                        *("plan", folder / "rows.csv", out, "--model", folder / "model.skops", "--want", "good"),
                        *("--background", folder / "train.csv", "--key", "id", "--shard-rows", shard_rows),
                        *("--format", "csv", "--reproducible"),
                    )
                ),
            )
        ]
        half = out / "shards" if interrupt else None
        done.append(("run", watched(command("run", out, "--jobs", jobs), half, rows // shard_rows // 2)))
        assert done[-1][1].codes == [130 if interrupt else 0]
        if interrupt:
            done.append(("resume", watched(command("run", out, "--jobs", jobs))))
        done.append(("verify --shallow", watched(command("verify", out, "--shallow"))))
        done.append(("collect", watched(command("collect", out))))
        found = pd.read_csv(out / "answers.csv", usecols=["row", "key", "status"])
        assert found["row"].tolist() == list(range(rows)), "a row is lost or doubled"
        assert found["key"].tolist() == list(range(rows)), "a key is at the wrong row"
        print(
            f"{rows:,} rows, {jobs} jobs: " + ", ".join(f"{n:,} {s}" for s, n in found["status"].value_counts().items())
        )
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shard-rows", type=int, default=5_000)
    parser.add_argument("--interrupt", action="store_true", help="interrupt the largest run halfway, and resume it")
    options = parser.parse_args()
    # A program that a shell started in the background ignores Ctrl-C, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    lines = []
    for rows in options.rows:
        stopped = options.interrupt and rows == max(options.rows)
        for step, usage in measure(rows, options.jobs, options.shard_rows, interrupt=stopped):
            lines.append(
                {
                    "rows": rows,
                    "step": step,
                    "exit": usage.codes[0],
                    "seconds": round(usage.seconds, 1),
                    "processor seconds": round(usage.processor, 1),
                    "driver MB": round(usage.driver),
                    "worker MB": round(usage.worker),
                }
            )
        print(pd.DataFrame(lines).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
