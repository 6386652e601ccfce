"""Throughput per core with two jobs, as a share of that with one job.

    python -m benchmarks.batch.jobs

Applicants of German Credit (drawn with other amounts, so that no two are the same) are asked for "good" into a folder, by
one process and by two, in turns. Processes are started and have the model before the clock starts. Linux counts for each
process how long it ran and how long it *waited for a core*; the latter is the fault of others on the machine, and is taken
off. What is left by the clock is time at work and time spent waiting for the driver, for locks and for the disk: what two
jobs may cost each other. On a quiet machine nothing is taken off.

Two cores of a virtual machine are rarely twice one: they share caches, or a core. So there is a control in every turn: two
processes that know nothing of each other, each with half of the rows and a folder of its own. What they lose against one
process is the machine's; what two jobs of one batch lose against them is the batch's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

_SCRIPT = """
import json, os, sys, tempfile, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from ifonly import Explainer
from ifonly.bench import credit_model
from ifonly.datasets import german_credit


def spent(pid):
    ran, waited, _ = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()
    return np.array([int(ran), int(waited)]) / 1e9


def alone(explainer, frame, shard_rows):
    with tempfile.TemporaryDirectory() as scratch:
        explainer.explain_all(frame.iloc[-2 * shard_rows :], want="good", to=Path(scratch, "warm"), output="csv")
        before, began = spent(os.getpid()), time.perf_counter()
        explainer.explain_all(frame, want="good", to=Path(scratch, "out"), shard_rows=shard_rows, output="csv")
        clock = time.perf_counter() - began
        ran, waited = spent(os.getpid()) - before
        return {"clock": clock, "ran": ran, "waited": waited, "driver": 0.0}


def apart(explainer, frame, shard_rows):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(abs, range(8)))  # both have started
        halves = (frame.iloc[: len(frame) // 2], frame.iloc[len(frame) // 2 :])
        both = [f.result() for f in [pool.submit(alone, explainer, half, shard_rows) for half in halves]]
        return {key: float(np.mean([one[key] for one in both])) for key in both[0]}


def run(explainer, frame, jobs, shard_rows):
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        def go(rows, name, executor):
            explainer.explain_all(
                rows, want="good", to=Path(scratch, name), executor=executor, shard_rows=shard_rows, output="csv"
            )

        executor = pool if jobs > 1 else None
        go(frame.iloc[-4 * shard_rows :], "warm", executor)
        pids = list(pool._processes) if jobs > 1 else [os.getpid()]
        before, driver, began = [spent(p) for p in pids], time.process_time(), time.perf_counter()
        go(frame, "out", executor)
        clock, driver = time.perf_counter() - began, time.process_time() - driver
        ran, waited = np.mean([spent(p) - b for p, b in zip(pids, before)], axis=0)
        return {"clock": clock, "ran": ran, "waited": waited, "driver": driver}


if __name__ == "__main__":
    credit, (name, rows, shard_rows) = german_credit(), sys.argv[1:]
    rows, draw = int(rows), np.random.default_rng(0)
    explainer = Explainer(credit_model(name, credit.frame, credit.target), credit.frame, schema=credit.schema)
    frame = credit.frame.iloc[draw.integers(0, len(credit.frame), rows)].reset_index(drop=True)
    low, high = credit.frame["credit_amount"].min(), credit.frame["credit_amount"].max()
    frame["credit_amount"] = draw.integers(low, high, rows).astype(credit.frame["credit_amount"].dtype)
    found = [run(explainer, frame, jobs, int(shard_rows)) for jobs in (1, 2)]
    print(json.dumps([*found, apart(explainer, frame, int(shard_rows))]))
"""


def ask(name: str, rows: int, shard_rows: int) -> list[dict[str, float]]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:  # a file, so that spawned processes find it
        file.write(_SCRIPT)
        file.flush()
        command = [sys.executable, file.name, name, str(rows), str(shard_rows)]
        done = subprocess.run(command, env=os.environ | threads, check=True, stdout=subprocess.PIPE, text=True)
    found: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--shard-rows", type=int, default=500)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--model", choices=["linear", "forest"], default="linear")
    options = parser.parse_args()
    shares: list[tuple[float, float, float]] = []
    for _ in range(options.turns):
        runs = ask(options.model, options.rows, options.shard_rows)
        one, two, apart = (
            options.rows / jobs / (r["clock"] - r["waited"]) for jobs, r in zip((1, 2, 2), runs, strict=True)
        )
        shares.append((two / one, apart / one, two / apart))
        waited = " and ".join(f"{r['waited']:.1f}" for r in runs)
        print(
            f"rows per second and core: one job {one:.0f}, two jobs {two:.0f}, two processes apart {apart:.0f}; two jobs are "
            f"{two / one:.1%} of one, two apart {apart / one:.1%}, two jobs {two / apart:.1%} of two apart; taken off for "
            f"waiting for a core: {waited} s; driver of two jobs {runs[1]['driver']:.2f} processor seconds",
            flush=True,
        )
    jobs, machine, batch = (statistics.median(share[i] for share in shares) for i in range(3))
    print(
        f"per core, by the clock: two jobs {jobs:.1%} of one; the machine gives {machine:.1%} to two processes apart; "
        f"two jobs of one batch are {batch:.1%} of that"
    )


if __name__ == "__main__":
    main()
