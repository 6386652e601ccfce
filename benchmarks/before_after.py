"""Two checkouts in one run: ``python -m benchmarks.before_after --before FOLDER --after FOLDER``.

One process per checkout fits the same models on German Credit and answers the same rows, in turn, so that a noisy machine is
as noisy for both. Printed are medians of processor milliseconds per answer, the ratio of the two (after / before) of each
row, as median, and how many answers cost the same.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

_SAME = 2e-6  # of a cost: within it, two proven costs are the same


def models(only: str = "") -> dict[str, Any]:
    """Return what is asked about, by name: linear, trees, forests, boosting, networks; those whose name has `only` in it."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    from ifonly.datasets import german_credit

    data = german_credit()
    words = make_column_selector(dtype_exclude="number")
    numbers = make_column_selector(dtype_include="number")
    kinds = {
        "logistic": LogisticRegression(max_iter=2000),
        "tree, depth 6": DecisionTreeClassifier(max_depth=6, random_state=0),
        "forest, default": RandomForestClassifier(n_jobs=1, random_state=0),
        "forest, 100 x 5": RandomForestClassifier(100, max_depth=5, n_jobs=1, random_state=0),
        "forest, 300 x 8": RandomForestClassifier(300, max_depth=8, n_jobs=1, random_state=0),
        "boosting, 100 x 3": GradientBoostingClassifier(random_state=0),
        "hist boosting, 100": HistGradientBoostingClassifier(max_iter=100, random_state=0),
        "network, 1 x 20": MLPClassifier((20,), max_iter=400, random_state=0),
        "network, 1 x 100": MLPClassifier((100,), max_iter=400, random_state=0),
    }
    out = {}
    for name, kind in kinds.items():
        if only not in name:
            continue
        scale = make_column_transformer((OneHotEncoder(), words), (StandardScaler(), numbers))
        out[name] = make_pipeline(scale, kind).fit(data.frame, data.target)
    return out


def serve(seconds: float, only: str = "") -> None:
    """Answer lines of model and row with cost, processor time and whether it is proven."""
    from ifonly import Explainer
    from ifonly.datasets import german_credit

    warnings.simplefilter("ignore")
    data, fitted = german_credit(), models(only)
    explainers = {name: Explainer(model, data.frame) for name, model in fitted.items()}
    rows = {n: np.flatnonzero(m.predict(data.frame) != data.wanted).tolist() for n, m in fitted.items()}
    print(json.dumps(rows), flush=True)
    for line in sys.stdin:
        name, row = json.loads(line)
        began = time.process_time()
        try:
            answer = explainers[name].explain(data.frame.iloc[[row]], want=data.wanted, time_limit=seconds)
            cost, proven = answer[0].certificate.objective, answer.status == "optimal"
        except Exception as error:  # noqa: BLE001 - whatever comes is compared
            cost, proven = None, type(error).__name__
        print(json.dumps([cost, time.process_time() - began, proven]), flush=True)


def started(folder: Path, seconds: float, only: str = "") -> subprocess.Popen[str]:
    """Return the process that answers with the package of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--serve", str(seconds), "--only", only]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def asked(process: subprocess.Popen[str], name: str, row: int) -> tuple[float | None, float, Any]:
    """Return cost, processor seconds and proof of one answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([name, row]) + "\n")
    process.stdin.flush()
    cost, seconds, proven = json.loads(process.stdout.readline())
    return cost, seconds, proven


def compared(before: Path, after: Path, factuals: int, seconds: float, only: str = "") -> list[str]:
    """Return the table, a line per model."""
    both = [started(folder, seconds, only) for folder in (before, after)]
    rows = [json.loads(p.stdout.readline()) for p in both if p.stdout is not None][-1]
    lines = [
        "| model | before, ms | after, ms | after / before | same cost | proven before, after |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, mine in rows.items():
        pairs = []
        for k, row in enumerate(mine[: factuals + 1]):
            order = both if k % 2 else both[::-1]
            answers = {id(p): asked(p, name, row) for p in order}
            pairs.append((answers[id(both[0])], answers[id(both[1])]))
        pairs = pairs[1:]  # the first one pays for what is kept
        took = np.array([[1e3 * old[1], 1e3 * new[1]] for old, new in pairs])
        same = sum(_same(old[0], new[0]) for old, new in pairs)
        proven = [sum(pair[i][2] is True for pair in pairs) for i in (0, 1)]
        old, new = np.median(took, axis=0)
        ratio = float(np.median(took[:, 1] / took[:, 0]))
        lines.append(
            f"| {name} | {old:.1f} | {new:.1f} | {ratio:.2f} | {same} of {len(pairs)} | {proven[0]}, {proven[1]} |"
        )
        print(lines[-1], flush=True)
    for process in both:
        process.terminate()
    return lines


def _same(one: float | None, two: float | None) -> bool:
    return one is two is None or (one is not None and two is not None and abs(one - two) <= _SAME * abs(one))


def main() -> int:
    """Compare two checkouts and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.before_after", description=__doc__)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--after", type=Path, default=Path())
    parser.add_argument("--factuals", type=int, default=20)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--only", default="", help="models with this in their name")
    parser.add_argument("--serve", type=float, default=None, help="(for the processes that it starts)")
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.only)
        return 0
    folders = (options.before.resolve(), options.after.resolve())
    print("\n".join(compared(*folders, options.factuals, options.time_limit, options.only)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
