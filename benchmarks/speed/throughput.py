"""Throughput of `explain_all`: rows per second on one core and on two, and the memory that it takes."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from benchmarks.speed.problems import PROBLEMS, prepare
from ifonly import Explainer, Proximity

__all__ = ["measure", "once"]

_PROBLEM = "german-rf-100x5"
_ALL = 10**9
_MEGABYTE = 1024.0 if sys.platform != "darwin" else 1024.0**2


def once(rows: int, jobs: int) -> dict[str, float]:
    """Explain so many refused applicants in this process, and return seconds and megabytes.

    The model refuses fewer than that, so they come round again; nothing is remembered from row to row. Starting
    workers takes a few seconds that a long batch does not notice, so it is counted apart.
    """
    import resource

    from joblib.externals.loky import get_reusable_executor

    case = prepare(PROBLEMS[_PROBLEM], _ALL)
    frame = case.table.frame
    refused = frame.iloc[case.factuals]
    explainer = Explainer(case.model, frame, schema=case.table.schema, criteria=[Proximity("l1", scale="range")])
    began = time.perf_counter()
    explainer.explain_all(refused.iloc[: 4 * jobs], want=case.table.wanted, n_jobs=jobs)
    start = time.perf_counter() - began
    chosen = refused.iloc[[i % len(refused) for i in range(rows)]]
    answers = explainer.explain_all(chosen, want=case.table.wanted, n_jobs=jobs)
    if jobs > 1:
        # Only a process that has ended is counted among the children.
        get_reusable_executor().shutdown(wait=True)
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "rows": rows,
        "jobs": jobs,
        "start": start,
        "seconds": answers.seconds,
        "rate": rows / answers.seconds,
        "optimal": float((answers.status() == "optimal").mean()),
        "peak_mb": own.ru_maxrss / _MEGABYTE,
        "worker_peak_mb": children.ru_maxrss / _MEGABYTE,
    }


def measure(path: Path, rows: int = 1000) -> pd.DataFrame:
    """Measure one and two jobs, with a fifth of the rows and with all, each in a fresh process."""
    lines = []
    for jobs in (1, 2):
        for size in (max(rows // 5, 1), rows):
            command = [sys.executable, "-m", "benchmarks.speed.throughput", "--rows", str(size), "--jobs", str(jobs)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            lines.append(json.loads(done.stdout.splitlines()[-1]))
            print(f"  explain_all {size} rows, {jobs} jobs: {lines[-1]['rate']:.1f} rows/s", flush=True)
    table = pd.DataFrame(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    print(json.dumps(once(options.rows, options.jobs)))
