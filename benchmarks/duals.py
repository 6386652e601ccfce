"""The hard questions about trees, with their bars, beside another checkout: ``python -m benchmarks.duals --help``.

Thirty numbers and confident factuals, a thousand deep trees, few changes and a high probability, l-infinity at ties: what
the search by cells took long for. One process per checkout and question fits the same model and answers the same rows, in
turn, so that a noisy machine is as noisy for both. Printed are processor seconds per answer, the ratio to the checkout
before, the most memory, and the bar. HELOC is read from the folder IFONLY_DATA, or fetched.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_SAME = 2e-6  # of a cost: within it, two proven costs are the same


# -- questions -------------------------------------------------------------------------------------------------------
def _forest(trees: int, depth: int | None = None) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(trees, max_depth=depth, random_state=0, n_jobs=1)


def _histogram(trees: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=trees, random_state=0)


def _catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(random_seed=0, verbose=False, thread_count=1, allow_writing_files=False)


def _xgboost(trees: int, depth: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=trees, max_depth=depth, random_state=0, n_jobs=1)


@dataclass(frozen=True)
class Hard:
    """A kind of question: the data, the model, the criteria, the target, and the bar in words."""

    data: str
    model: Callable[[], Any]
    bar: str
    norm: str | None = "l1"
    probability: float | None = None
    at_most: int | None = None
    batch: bool = False


HARD = {
    "breast rf 50x5": Hard("breast", lambda: _forest(50, 5), "median 0.5 s"),
    "breast rf": Hard("breast", lambda: _forest(100), "median 2 s"),
    "breast hist 200": Hard("breast", lambda: _histogram(200), "median 0.5 s"),
    "breast catboost": Hard("breast", _catboost, "80% in 60 s"),
    "heloc rf 1000": Hard("heloc", lambda: _forest(1000), "median 2 s"),
    "heloc rf 300x8": Hard("heloc", lambda: _forest(300, 8), "worst 2 s"),
    "heloc xgb 300x6, batch": Hard("heloc", lambda: _xgboost(300, 6), "mean 0.05 s", batch=True),
    "heloc rf 200, 0.8, at most 4": Hard(
        "heloc", lambda: _forest(200), "all in 5 s, below 1 GB", norm=None, probability=0.8, at_most=4
    ),
    "breast rf 100x8, linf": Hard("breast scaled", lambda: _forest(100, 8), "20 of 20 in 5 s", norm="linf"),
}


def fitted(hard: Hard, keep: Path | None, name: str) -> tuple[Any, Any, Any]:
    """Return the model, its data and the wanted class; with `keep`, models are kept in this folder."""
    import joblib
    from sklearn.datasets import load_breast_cancer

    from ifonly import datasets

    if hard.data.startswith("breast"):
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        if "scaled" in hard.data:
            X = (X - X.min()) / (X.max() - X.min())
        want: Any = 1
    else:
        table = getattr(datasets, hard.data)()
        X, classes = table.frame, sorted(set(table.target))
        y, want = np.array([classes.index(label) for label in table.target]), classes.index(table.wanted)
    path = None if keep is None else keep / f"{name.replace(' ', '_').replace(',', '')}.joblib"
    if path is not None and path.exists():
        return joblib.load(path), X, want
    model = hard.model().fit(X, y)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(model, path)
    return model, X, want


def explainer_of(hard: Hard, model: Any, X: Any) -> Any:
    """Return the explainer of a kind of question."""
    from ifonly import Explainer, Proximity, Schema, Sparsity

    norm: Any = hard.norm
    criteria: list[Any] = [] if norm is None else [Proximity(norm)]
    if hard.at_most is not None:
        criteria += [Proximity("l1"), Sparsity(at_most=hard.at_most, price=0.1)]
    schema = Schema.infer(X, precision=None)  # continuous, as in the tables of earlier versions
    return Explainer(model, X, schema=schema, criteria=criteria or None)


def rows_of(model: Any, X: Any, want: Any, rows: int) -> list[int]:
    """Return rows of another class, drawn with a seed."""
    refused = np.flatnonzero(np.ravel(model.predict(X)) != want)
    return [int(i) for i in np.random.default_rng(0).permutation(refused)[:rows]]


# -- a process per checkout ------------------------------------------------------------------------------------------
def serve(name: str, rows: int, seconds: float, keep: Path | None) -> None:
    """Answer lines of row numbers with cost, processor time, whether it is proven, and the most memory so far."""
    from ifonly import Target

    warnings.simplefilter("ignore")
    hard = HARD[name]
    model, X, want = fitted(hard, keep, name)
    explainer = explainer_of(hard, model, X)
    target = want if hard.probability is None else Target(want, probability=hard.probability)
    chosen = rows_of(model, X, want, rows)
    print(json.dumps(chosen), flush=True)
    for line in sys.stdin:
        row = json.loads(line)
        began = time.process_time()
        try:
            if hard.batch:
                answers = explainer.explain_all(X.iloc[chosen], want=target, time_limit=seconds)
                cost: float | None = sum(answer[0].certificate.objective for answer in answers.found())
                proven: Any = bool((answers.status() == "optimal").all())
            else:
                answer = explainer.explain(X.iloc[[row]], want=target, time_limit=seconds)
                cost, proven = answer[0].certificate.objective, answer.status == "optimal"
        except Exception as error:  # noqa: BLE001 - whatever comes is compared
            cost, proven = None, type(error).__name__
        took = (time.process_time() - began) / (len(chosen) if hard.batch else 1)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
        print(json.dumps([cost, took, proven, memory]), flush=True)


def started(folder: Path, name: str, options: argparse.Namespace) -> subprocess.Popen[str]:
    """Return the process that answers with the package of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--serve", name, "--rows", str(options.rows)]
    command += ["--time-limit", str(options.time_limit)]
    command += [] if options.keep is None else ["--keep", str(options.keep)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def asked(process: subprocess.Popen[str], row: int) -> list[Any]:
    """Return cost, processor seconds, proof and memory of one answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(row) + "\n")
    process.stdin.flush()
    answer: list[Any] = json.loads(process.stdout.readline())
    return answer


def _told(label: str, answers: list[list[Any]]) -> str:
    took = [a[1] for a in answers]
    proven = sum(a[2] is True for a in answers)
    return (
        f"  {label:<7} proven {proven:>2}/{len(answers):<2} median {statistics.median(took):7.3f} "
        f"mean {statistics.mean(took):7.3f} worst {max(took):7.3f} s, {max(a[3] for a in answers):6.0f} MB"
    )


def compared(name: str, folders: list[Path], options: argparse.Namespace) -> None:
    """Print the lines of one kind of question."""
    processes = [started(folder, name, options) for folder in folders]
    rows = [json.loads(p.stdout.readline()) for p in processes if p.stdout is not None][-1]
    answers: list[list[list[Any]]] = [[] for _ in folders]
    print(f"{name}: {HARD[name].bar}", flush=True)
    for k, row in enumerate(rows[:1] if HARD[name].batch else rows):
        for i in range(len(folders)) if k % 2 else reversed(range(len(folders))):
            answers[i].append(asked(processes[i], row))
        if options.each:
            print(
                f"    row {row}: " + "; ".join(f"{a[-1][1]:.3f} s {a[-1][0]} {a[-1][2]}" for a in answers), flush=True
            )
    for label, mine in zip(("now", "before"), answers, strict=False):
        print(_told(label, mine), flush=True)
    if len(answers) == 2:
        both = list(zip(*answers, strict=True))
        ratio = statistics.median(now[1] / before[1] for now, before in both)
        wrong = [
            (now[0], old[0]) for now, old in both if now[2] is True and old[2] is True and not _same(now[0], old[0])
        ]
        cheaper = [(n[0], b[0]) for n, b in both if n[2] is True and b[0] is not None and b[0] < n[0] * (1.0 - _SAME)]
        print(f"  ratio   {ratio:.2f} (median of rows); proven costs that differ: {wrong + cheaper}", flush=True)
    for process in processes:
        process.terminate()


def _same(one: float | None, two: float | None) -> bool:
    return one is two is None or (one is not None and two is not None and abs(one - two) <= _SAME * abs(one))


def main() -> int:
    """Ask all kinds of questions, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.duals", description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout, to compare with")
    parser.add_argument("--only", nargs="+", choices=HARD, default=list(HARD), metavar="NAME")
    parser.add_argument("--rows", type=int, default=5, help="rows per kind of question (5)")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per answer (60)")
    parser.add_argument("--each", action="store_true", help="print each answer")
    parser.add_argument("--keep", type=Path, help="a folder in which fitted models are kept for the next run")
    parser.add_argument("--serve", default=None, help="(for the processes that it starts)")
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.rows, options.time_limit, options.keep)
        return 0
    folders = [Path(__file__).resolve().parent.parent] + ([] if options.before is None else [options.before.resolve()])
    for name in options.only:
        compared(name, folders, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
