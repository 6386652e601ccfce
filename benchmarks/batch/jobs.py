"""Throughput per core with two jobs, as a share of that with one job.

    python -m benchmarks.batch.jobs

Every applicant of German Credit is asked for the other class, into a folder. What starting processes costs is measured by a
batch of a few rows and taken off. Seconds are only worth reading on a machine with nothing else to do; processor seconds
per row are steadier, and show what sharing memory, caches and the folder costs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile

from benchmarks.batch.scale import Usage, watched

_SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
import pandas as pd
from ifonly import Explainer
from ifonly.bench import credit_model
from ifonly.datasets import german_credit

if __name__ == "__main__":
    credit, (name, rows, jobs, out) = german_credit(), sys.argv[1:]
    explainer = Explainer(credit_model(name, credit.frame, credit.target), credit.frame, schema=credit.schema)
    few = credit.frame.iloc[: int(rows)]
    explainer.explain_all(few, to=out, n_jobs=int(jobs), shard_rows=max(1, len(few) // 20), output="csv")
"""


def ask(name: str, rows: int, jobs: int) -> Usage:
    with tempfile.TemporaryDirectory() as out:
        return watched([sys.executable, "-c", _SCRIPT, name, str(rows), str(jobs), f"{out}/out"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--model", choices=["linear", "forest"], default="linear")
    options = parser.parse_args()
    rates, few = {}, 4
    for jobs in (1, 2):
        start, whole = ask(options.model, few, jobs), ask(options.model, options.rows, jobs)
        assert start.codes == whole.codes == [0]
        rows = options.rows - few
        rates[jobs] = (rows / (whole.seconds - start.seconds) / jobs, rows / (whole.processor - start.processor))
        print(f"{jobs} jobs: {rates[jobs][0]:.1f} rows per second and core, {rates[jobs][1]:.1f} per processor second")
    share = [rates[2][i] / rates[1][i] for i in (0, 1)]
    print(f"two jobs against one: {share[0]:.0%} by the clock, {share[1]:.0%} by processor time")


if __name__ == "__main__":
    main()
