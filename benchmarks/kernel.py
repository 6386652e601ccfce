"""The compiled kernel and its NumPy twin, side by side: ``python -m benchmarks.kernel --help``.

Two tables. The first runs both on the same parts of the same searches, up to a number of parts, and prints the processor
time of each, the tables that both need included. The second asks whole questions, l1 and l-infinity, with and without the
kernel. HELOC is read from the folder IFONLY_DATA, or fetched.
"""

from __future__ import annotations

import os

# One core, no threads inside linear algebra. Before NumPy is imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse  # noqa: E402 - after the environment is set
import statistics  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from typing import Any, Literal  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from sklearn.compose import make_column_transformer  # noqa: E402
from sklearn.datasets import load_breast_cancer  # noqa: E402
from sklearn.ensemble import RandomForestClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder  # noqa: E402

from ifonly import Explainer, IfOnlyWarning, NoCounterfactual, Proximity, Schema, datasets  # noqa: E402
from ifonly.question.statement import Statement  # noqa: E402
from ifonly.runtime.deadline import Deadline  # noqa: E402
from ifonly.search.cells import kernel  # noqa: E402
from ifonly.search.cells.splitting import Splitting  # noqa: E402
from ifonly.search.incumbents import Incumbents  # noqa: E402
from ifonly.search.progress import Progress  # noqa: E402
from ifonly.search.reduce import Reducer  # noqa: E402

Norm = Literal["l1", "linf"]


def _forest(trees: int, depth: int | None) -> Any:
    return RandomForestClassifier(trees, max_depth=depth, random_state=0)


def _xgboost(trees: int, depth: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=trees, max_depth=depth, random_state=0, n_jobs=1)


PROBLEMS: dict[str, tuple[str, Callable[[], Any]]] = {
    "breast rf 50x5": ("breast", lambda: _forest(50, 5)),
    "breast rf 100x8": ("breast", lambda: _forest(100, 8)),
    "breast xgb 100x4": ("breast", lambda: _xgboost(100, 4)),
    "german rf": ("german_credit", lambda: _forest(100, None)),
    "german xgb 300x6": ("german_credit", lambda: _xgboost(300, 6)),
    "heloc xgb 100x6": ("heloc", lambda: _xgboost(100, 6)),
    "heloc xgb 300x6": ("heloc", lambda: _xgboost(300, 6)),
    "heloc rf 300x8": ("heloc", lambda: _forest(300, 8)),
}


def fitted(name: str) -> tuple[Any, pd.DataFrame, int]:
    """Return a model, its data and the wanted class, as a number."""
    data, make = PROBLEMS[name]
    if data == "breast":
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        return make().fit(X, y), X, 1
    table = getattr(datasets, data)()
    X, classes = table.frame, sorted(set(table.target))
    y = np.array([classes.index(label) for label in table.target])
    levels = list(X.select_dtypes(exclude="number"))
    encode = make_column_transformer((OneHotEncoder(sparse_output=False), levels), remainder="passthrough")
    return make_pipeline(encode, make()).fit(X, y), X, classes.index(table.wanted)


def asked(name: str, norm: Norm, rows: int) -> Iterator[tuple[Explainer, pd.DataFrame, int]]:
    """Yield questions: an explainer, a row of the other class, the wanted class."""
    model, X, want = fitted(name)
    explainer = Explainer(model, X, schema=Schema.infer(X, precision=None), criteria=[Proximity(norm)])
    refused = np.flatnonzero(model.predict(X) != want)
    for i in np.random.default_rng(0).permutation(refused)[:rows]:
        yield explainer, X.iloc[[int(i)]], want


def search_time(statement: Statement, most_parts: int) -> tuple[int, float]:
    """Return the parts and the processor seconds of one search with the kernel that is switched on."""
    progress, box = Progress(), statement.box()
    incumbents = Incumbents(Reducer(statement), box, progress)
    incumbents.open()
    search = Splitting(incumbents, len(statement.query.schema), patient=True, most_parts=most_parts)
    start = time.process_time()
    search.run(box, Deadline.never())
    return search.parts, time.process_time() - start


def answer_time(explainer: Explainer, row: pd.DataFrame, want: int, limit: float) -> tuple[bool, float]:
    """Return whether an answer was proven, and its processor seconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IfOnlyWarning)
        try:
            proven = explainer.explain(row, want=want, time_limit=limit).status == "optimal"
        except NoCounterfactual:
            proven = False
    return proven, time.process_time() - start


def switch(which: str) -> None:
    """Turn the kernel on ("") or off ("numpy")."""
    os.environ["IFONLY_KERNEL"] = which


def parts_table(names: list[str], rows: int, most_parts: int) -> None:
    """Print the parts of searches and the seconds of both."""
    print(f"{'search, l1':<20} {'parts':>8} {'kernel':>9} {'NumPy':>9} {'ratio':>7}")
    for name in names:
        parts, seconds = 0, [0.0, 0.0]
        for explainer, row, want in asked(name, "l1", rows):
            question = explainer._ask(row, want, ())
            statement = question.goal.with_first_margin(question.statement)
            counts = []
            for side, which in enumerate(("", "numpy")):
                switch(which)
                count, took = search_time(statement, most_parts)
                counts.append(count)
                seconds[side] += took
            assert counts[0] == counts[1], f"{name}: {counts[0]} and {counts[1]} parts"
            parts += counts[0]
        print(
            f"{name:<20} {parts:>8} {seconds[0]:>9.3f} {seconds[1]:>9.3f} {seconds[1] / seconds[0]:>7.1f}", flush=True
        )


def answers_table(names: list[str], norms: list[Norm], rows: int, limit: float) -> None:
    """Print the seconds of whole answers with and without the kernel."""
    print(f"{'answer':<27} {'':>8} {'proven':>7} {'median':>8} {'mean':>8} {'worst':>8}")
    for name in names:
        for norm in norms:
            for label, which in (("kernel", ""), ("NumPy", "numpy")):
                switch(which)
                found = [answer_time(*question, limit) for question in asked(name, norm, rows)]
                took = [seconds for _, seconds in found]
                print(
                    f"{name + ', ' + norm:<27} {label:>8} {sum(p for p, _ in found):>3}/{len(found):<3} "
                    f"{statistics.median(took):>8.3f} {statistics.mean(took):>8.3f} {max(took):>8.3f}",
                    flush=True,
                )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel", description=__doc__)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--norms", nargs="+", choices=("l1", "linf"), default=["l1", "linf"])
    parser.add_argument("--rows", type=int, default=10, help="rows per problem (10)")
    parser.add_argument("--parts", type=int, default=2000, help="parts of each search in the first table (2,000)")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per answer (60)")
    parser.add_argument("--tables", nargs="+", choices=("parts", "answers"), default=["parts", "answers"])
    options = parser.parse_args()
    if not kernel.compiled():
        parser.error("the compiled kernel is not there: build it with a C compiler (python hatch_build.py)")
    if "parts" in options.tables:
        parts_table(options.problems, options.rows, options.parts)
    if "answers" in options.tables:
        answers_table(options.problems, options.norms, options.rows, options.time_limit)


if __name__ == "__main__":
    main()
