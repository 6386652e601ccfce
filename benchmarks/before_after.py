"""Two checkouts in one run: ``python -m benchmarks.before_after --before FOLDER --after FOLDER``.

One process per checkout fits the same models on German Credit (or breast cancer) and answers the same rows, in turn, so that
a noisy machine is as noisy for both. Printed are medians of processor milliseconds per answer, the ratio of the two (after /
before) of each row, as median, how many answers cost the same, and how often the model is asked per answer. With ``--bare``,
the milliseconds in the model itself do not count; with ``--repeat``, all rows are asked several times, and the least counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_SAME = 2e-6  # of a cost: within it, two proven costs are the same


def table(data: str) -> tuple[Any, Any, Any]:
    """Return rows, labels and the wanted one."""
    if data == "german":
        from ifonly.datasets import german_credit

        known = german_credit()
        return known.frame, known.target, known.wanted
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    return bunch.data, bunch.target, 1


def models(data: str, only: str = "") -> dict[str, Any]:
    """Return what is asked about, by name: linear, trees, forests, boosting, networks, and networks inside of composites.

    Only those whose name has `only` in it. Calibrated, voting and binned networks are to get the bounds of bare ones.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
        VotingClassifier,
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    def network(units: int) -> Any:
        return MLPClassifier((units,), max_iter=400, random_state=0)

    X, y, _ = table(data)
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
        "network, 1 x 10": network(10),
        "network, 1 x 20": network(20),
        "network, 1 x 100": network(100),
        "network, 1 x 10, calibrated": CalibratedClassifierCV(network(10), cv=3),
        "network, 1 x 20, voting": VotingClassifier(
            [("logistic", LogisticRegression(max_iter=2000)), ("network", network(20))], voting="soft"
        ),
        "network, 1 x 10, binned": network(10),
    }
    out = {}
    for name, kind in kinds.items():
        if only not in name:
            continue
        scaler = KBinsDiscretizer(4) if name.endswith("binned") else StandardScaler()
        scale = make_column_transformer((OneHotEncoder(), words), (scaler, numbers))
        out[name] = make_pipeline(scale, kind).fit(X, y)
    return out


def serve(seconds: float, data: str, only: str = "") -> None:
    """Answer lines of model and row: cost, processor time, that in the model itself, its calls, and whether it is proven."""
    from benchmarks.calls import Calls
    from ifonly import Explainer

    warnings.simplefilter("ignore")
    (X, _, wanted), fitted = table(data), models(data, only)
    explainers = {name: Explainer(model, X) for name, model in fitted.items()}
    rows = {n: np.flatnonzero(m.predict(X) != wanted).tolist() for n, m in fitted.items()}
    calls = {name: Calls(model) for name, model in fitted.items()}
    print(json.dumps(rows), flush=True)
    for line in sys.stdin:
        name, row = json.loads(line)
        calls[name].reset()
        began = time.process_time()
        try:
            answer = explainers[name].explain(X.iloc[[row]], want=wanted, time_limit=seconds)
            cost, proven = answer[0].certificate.objective, answer.status == "optimal"
        except Exception as error:  # noqa: BLE001 - whatever comes is compared
            cost, proven = None, type(error).__name__
        spent, model = time.process_time() - began, calls[name]
        print(json.dumps([cost, spent, model.cpu, model.count, proven]), flush=True)


class Answered(NamedTuple):
    """One answer: its cost, processor seconds, those in the model itself, its calls, and whether it is proven."""

    cost: float | None
    seconds: float
    model: float
    calls: int
    proven: Any


def started(folder: Path, arguments: Sequence[str]) -> subprocess.Popen[str]:
    """Return the process that answers with the package of a checkout, and the benchmarks of this one."""
    path = os.pathsep.join((str(folder / "src"), str(Path(__file__).resolve().parents[1])))
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def asked(process: subprocess.Popen[str], name: str, row: int) -> Answered:
    """Return one answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([name, row]) + "\n")
    process.stdin.flush()
    return Answered(*json.loads(process.stdout.readline()))


def least(answers: Sequence[Answered], bare: bool) -> Answered:
    """Return the answer that took least, with or without what the model took."""
    taken = [one._replace(seconds=one.seconds - one.model) if bare else one for one in answers]
    return min(taken, key=lambda one: one.seconds)


def compared(both: Sequence[subprocess.Popen[str]], factuals: int, repeat: int, bare: bool) -> list[str]:
    """Return the table, a line per model."""
    rows = [json.loads(p.stdout.readline()) for p in both if p.stdout is not None][-1]
    lines = [
        "| model | before, ms | after, ms | after / before | same cost | proven before, after | calls before, after |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, mine in rows.items():
        answers: dict[tuple[int, int], list[Answered]] = {}
        for _ in range(repeat):  # all rows before the first again: what is remembered of the last few is no help
            for k, row in enumerate(mine[: factuals + 1]):
                for p in both if k % 2 else both[::-1]:
                    answers.setdefault((row, id(p)), []).append(asked(p, name, row))
        rows_after_first = mine[1 : factuals + 1]  # the first one pays for what is kept
        pairs = [tuple(least(answers[row, id(p)], bare) for p in both) for row in rows_after_first]
        took = np.array([[1e3 * old.seconds, 1e3 * new.seconds] for old, new in pairs])
        same = sum(_same(old.cost, new.cost) for old, new in pairs)
        proven = [sum(pair[i].proven is True for pair in pairs) for i in (0, 1)]
        calls = [np.mean([pair[i].calls for pair in pairs]) for i in (0, 1)]
        old, new = np.median(took, axis=0)
        ratio = float(np.median(took[:, 1] / took[:, 0]))
        lines.append(
            f"| {name} | {old:.1f} | {new:.1f} | {ratio:.2f} | {same} of {len(pairs)} | {proven[0]}, {proven[1]} "
            f"| {calls[0]:.1f}, {calls[1]:.1f} |"
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
    parser.add_argument("--data", choices=("german", "breast"), default="german")
    parser.add_argument("--bare", action="store_true", help="leave out what the model itself takes")
    parser.add_argument("--repeat", type=int, default=1, help="answers per row, of which the least counts")
    parser.add_argument("--serve", action="store_true", help="(for the processes that it starts)")
    options = parser.parse_args()
    if options.serve:
        serve(options.time_limit, options.data, options.only)
        return 0
    arguments = ["--serve", "--time-limit", str(options.time_limit), "--data", options.data, "--only", options.only]
    both = [started(folder.resolve(), arguments) for folder in (options.before, options.after)]
    print("\n".join(compared(both, options.factuals, options.repeat, options.bare)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
