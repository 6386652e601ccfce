"""Kill batches at random moments, resume them, and compare the collected tables byte for byte.

    python -m benchmarks.batch.kill --kills 200

Each round starts a run in a process group of its own and kills, with SIGKILL and after a random time, the whole group, only
the driver (its workers go on for a while, as a second runner of the same shards), or one worker. Runs follow until the batch
is complete; then it is verified and collected, and its tables are compared with those of an undisturbed run.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

from ifonly import Explainer, IfOnlyError
from ifonly.batch import Batch

VICTIMS = ("all", "driver", "worker")
SHARD_ROWS = 20
PATIENCE = 60.0  # seconds for orphans to end


@dataclass
class Tally:
    """Tally of kills and of their outcomes."""

    kills: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    faults: int = 0

    def __str__(self) -> str:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.kills.items()))
        return (
            f"{self.kills.total()} kills ({kinds}) in {self.batches} batches: {self.lost} rows lost, {self.doubled} doubled, "
            f"{self.different} tables different from the undisturbed one, {self.faults} faults found by verify"
        )


def explain(explainer: Explainer, rows: pd.DataFrame, folder: Path, **options: Any) -> Batch:
    return explainer.explain_all(
        rows, want="good", to=folder, shard_rows=SHARD_ROWS, reproducible=True, output="csv", **options
    )


def tables(batch: Batch) -> tuple[bytes, ...]:
    """The bytes of everything that is collected, and of every shard."""
    collected = batch.collect()
    shards = sorted(p for p in (batch.folder / "shards").iterdir())
    return tuple(p.read_bytes() for p in (collected.answers, collected.changes, collected.summary_file, *shards))


def kill_batches(explainer: Explainer, rows: pd.DataFrame, kills: int, seed: int = 0) -> Tally:
    """Kill this many runs, and finish and compare every batch they belong to."""
    tally, draw = Tally(), random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        whole = tables(explain(explainer, rows, Path(scratch) / "whole"))
        seconds = time.perf_counter() - began
        while tally.kills.total() < kills:
            folder = Path(scratch) / f"batch-{tally.batches}"
            while tally.kills.total() < kills and not _done(folder):
                _killed_run(explainer, rows, folder, draw, seconds, tally)
            _compare(_finished(explainer, rows, folder), whole, rows, tally)
    return tally


def _finished(explainer: Explainer, rows: pd.DataFrame, folder: Path) -> Batch:
    """Run the batch to its end; what orphans of a killed driver still hold is theirs until they are done with it."""
    batch, until = explain(explainer, rows, folder), time.monotonic() + PATIENCE
    while not batch.is_complete() and time.monotonic() < until:
        time.sleep(0.1)
        batch = explain(explainer, rows, folder)
    return batch


def _done(folder: Path) -> bool:
    return (folder / "plan.json").exists() and Batch.open(folder).is_complete()


def _compare(batch: Batch, whole: tuple[bytes, ...], rows: pd.DataFrame, tally: Tally) -> None:
    tally.batches += 1
    verdict = batch.verify()
    tally.faults += verdict.count
    found = pd.read_csv(batch.collect().answers)["row"]
    tally.lost += len(set(range(len(rows))) - set(found))
    tally.doubled += int(found.duplicated().sum())
    tally.different += tables(batch) != whole


def _killed_run(
    explainer: Explainer, rows: pd.DataFrame, folder: Path, draw: random.Random, seconds: float, tally: Tally
) -> None:
    """Start a run and kill it, or a part of it, somewhere within the time of a whole run, most often early."""
    victim = draw.choice(VICTIMS)
    pooled = victim != "all" or draw.random() < 0.5
    driver = get_context("fork").Process(target=_driver, args=(explainer, rows, folder, pooled))
    driver.start()
    assert driver.pid is not None
    time.sleep(0.5 * seconds * draw.random() ** 2 + 0.02)
    try:
        if victim == "worker":
            workers = _children(driver.pid)
            if not workers or driver.exitcode is not None:
                return
            os.kill(draw.choice(workers), signal.SIGKILL)
            driver.join(seconds * 20 + 30)  # the driver hears of it, says so, and ends
        elif driver.exitcode is None:
            (os.killpg if victim == "all" else os.kill)(driver.pid, signal.SIGKILL)
            driver.join()
        else:
            return
        tally.kills[victim] += 1
        if victim == "driver":
            time.sleep(0.1 * seconds * draw.random())  # orphans work on
    except ProcessLookupError:  # it was done a moment before
        return
    finally:
        _end(driver)


def _end(driver: Any) -> None:
    """Leave no process of the run behind."""
    for _ in range(2):
        try:
            os.killpg(driver.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            break
        driver.join()


def _driver(explainer: Explainer, rows: pd.DataFrame, folder: Path, pooled: bool) -> None:
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a broken pool complains on standard error
    try:
        if not pooled:
            explain(explainer, rows, folder)
            return
        with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
            explain(explainer, rows, folder, executor=pool)
    except IfOnlyError:  # a worker died: the next run goes on
        os._exit(1)


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(p) for p in found.read_text().split()] if found.exists() else []


def credit(rows: int) -> tuple[Explainer, pd.DataFrame]:
    """A forest on German Credit, and its first applicants."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from ifonly.datasets import german_credit

    data = german_credit()
    encode = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_include="category")), remainder="passthrough"
    )
    model = make_pipeline(encode, RandomForestClassifier(20, max_depth=5, random_state=0)).fit(data.frame, data.target)
    return Explainer(model, data.frame, schema=data.schema), data.frame.iloc[:rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    explainer, rows = credit(options.rows)
    tally = kill_batches(explainer, rows, options.kills, options.seed)
    print(tally)
    raise SystemExit(bool(tally.lost or tally.doubled or tally.different or tally.faults))


if __name__ == "__main__":
    main()
