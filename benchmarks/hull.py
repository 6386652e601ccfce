"""Hulls of many rows: time, memory and proofs as the rows grow. ``python -m benchmarks.hull --help``.

A forest of 100 trees of depth 5 per data set, and rows that it refuses. Each asks for the nearest row (l1) in the convex
hull of the rows with the wanted label, epsilon 0; every answer is predicted anew by the forest and its distance to the
hull is measured anew by a linear program over all rows that shares nothing with the library.
"""

from __future__ import annotations

import os

# One core, no threads inside linear algebra. Before NumPy is imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse  # noqa: E402 - after the environment is set
import resource  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Iterator, Sequence  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from dataclasses import asdict, dataclass  # noqa: E402
from multiprocessing import get_context  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from scipy.optimize import linprog  # noqa: E402
from sklearn.compose import make_column_transformer  # noqa: E402
from sklearn.ensemble import RandomForestClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder  # noqa: E402

from ifonly import Explainer, Manifold, NoCounterfactual, NotProvenOptimal, Proximity, datasets  # noqa: E402

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETS = ("german_credit", "heloc", "adult", "give_me_some_credit")
SIZES = {
    "german_credit": (88, 175, 350, 700),
    "heloc": (600, 1200, 2400, 4735),
    "adult": (1461, 2922, 5844, 11_687),
    "give_me_some_credit": (1250, 2500, 5000, 10_000, 20_000, 40_000, 80_000),
}
# (set, rows, seconds): the medians that a run must not exceed
BARS = (
    ("german_credit", 700, 0.5),
    ("adult", 11_687, 2.0),
    ("heloc", 4735, 10.0),
    ("give_me_some_credit", 10_000, 10.0),
)
_TIMES, _ROWS = 4.0, 8  # at most so many times the time for so many times the rows
_FLOOR = 0.05  # seconds below which a ratio of medians is noise
_INSIDE = 1e-7


@dataclass(frozen=True)
class Record:
    """One answer.

    Attributes
    ----------
    data, rows, factual
        The data set, how many rows span the hull, and which row was asked about.
    status
        That of the explanation ("optimal", ...), or the name of the error.
    seconds, cpu
        Wall time and processor time of the call.
    outside
        The distance to the hull (linf, scaled), by a linear program over all rows.
    peak
        The most memory the process had used by then, in MB.
    """

    data: str
    rows: int
    factual: int
    status: str
    seconds: float
    cpu: float
    objective: float = np.nan
    bound: float = np.nan
    valid: bool = False
    outside: float = np.nan
    peak: float = np.nan


def measure(name: str, sizes: Sequence[int], factuals: int, time_limit: float) -> list[Record]:
    """Fit the forest and ask for every size, smallest first, so that the peak of memory tells of each."""
    warnings.simplefilter("ignore", NotProvenOptimal)
    data, X, y = all_of(name)
    words = list(X.select_dtypes(["category", "object", "string"]).columns)
    forest = RandomForestClassifier(100, max_depth=5, random_state=0)
    encode = make_column_transformer((OneHotEncoder(), words), remainder="passthrough")
    model = (make_pipeline(encode, forest) if words else forest).fit(X, y)
    explainer = Explainer(model, X, y, criteria=[Proximity("l1")], solver="highs only")
    refused = np.flatnonzero(model.predict(X) != data.wanted)
    asked = np.random.default_rng(0).permutation(refused)[:factuals]
    good = X[(y == data.wanted) & X.notna().all(axis=1)]
    found = []
    for size in sorted(min(size, len(good)) for size in sizes):
        rows = good.sample(size, random_state=0)
        criterion = Manifold(rows=rows)
        for i in asked:
            found.append(_ask(name, size, int(i), explainer, data.wanted, criterion, rows, time_limit))
            print(f"  {name} {size}: row {i} {found[-1].status} {found[-1].cpu:.2f} s", flush=True)
    return found


def all_of(name: str) -> tuple[datasets.Dataset, pd.DataFrame, pd.Series[Any]]:
    """Return a data set and all its rows, of both parts where it has two."""
    load = getattr(datasets, name)
    data = load()
    if name == "german_credit":
        return data, data.frame, data.target
    other = load("test")
    X = pd.concat([data.frame, other.frame], ignore_index=True).astype(data.frame.dtypes.to_dict())
    return data, X, pd.concat([data.target, other.target], ignore_index=True)


def _ask(
    name: str, size: int, i: int, explainer: Explainer, want: Any, hull: Manifold, rows: pd.DataFrame, limit: float
) -> Record:
    X = explainer.training.schema.decode(explainer.training.U[[i]])
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        answer = explainer.explain(X, want=want, criteria=[hull], time_limit=limit)
    except NoCounterfactual as error:
        status, spent = type(error).__name__, (time.perf_counter() - wall, time.process_time() - cpu)
        return Record(name, size, i, status, *spent)
    spent = (time.perf_counter() - wall, time.process_time() - cpu)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024.0 if sys.platform != "darwin" else 1024.0**2)
    certificate, row = answer[0].certificate, answer.frame()
    valid = bool(explainer.model.estimator.predict(row)[0] == want)
    away = outside(row, rows)
    return Record(name, size, i, answer.status, *spent, certificate.objective, certificate.bound, valid, away, peak)


def outside(row: pd.DataFrame, rows: pd.DataFrame) -> float:
    """Return how far a row is from the hull of others: numbers in units of their range, 0/1 columns for categories."""
    both = pd.concat([row, rows], ignore_index=True)
    numbers = both.select_dtypes("number").astype(float)
    span = np.maximum(numbers.max() - numbers.min(), 1e-12)
    levels = both.drop(columns=numbers.columns).astype(str)
    shares = (levels == levels.iloc[0]).all(axis=1)[1:].to_numpy()  # no other row can take part in a sum of 0/1 columns
    x, P = (numbers / span).iloc[0].to_numpy(), (numbers / span).iloc[1:].to_numpy()[shares]
    if not len(P):
        return np.inf
    n, d = P.shape
    slack = -np.ones((d, 1))
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.vstack([np.hstack([P.T, slack]), np.hstack([-P.T, slack])]),
        b_ub=np.concatenate([x, -x]),
        A_eq=[[*np.ones(n), 0.0]],
        b_eq=[1.0],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return float(found.fun) if found.status == 0 else np.inf


# -- tables, bars, plot ------------------------------------------------------------------------------------------------
def summarise(records: pd.DataFrame, clock: str) -> pd.DataFrame:
    """Return one line per data set and size."""
    lines = []
    for (name, rows), part in records.groupby(["data", "rows"], sort=False):
        lines.append(
            {
                "data": name,
                "rows": rows,
                "answers": len(part),
                "median": part[clock].median(),
                "p90": part[clock].quantile(0.9),
                "most": part[clock].max(),
                "proven": int((part["status"] == "optimal").sum()),
                "valid": int(part["valid"].sum()),
                "inside": int((part["outside"] <= _INSIDE).sum()),
                "peak": part["peak"].max(),
            }
        )
    return pd.DataFrame(lines)


def bars(summary: pd.DataFrame) -> Iterator[tuple[str, str, bool]]:
    """Yield each bar: what is demanded, what was measured, and whether it is met."""
    at = summary.set_index(["data", "rows"])
    for name, rows, limit in BARS:
        if (name, rows) in at.index:
            line = at.loc[(name, rows)]
            yield f"{name}, {rows:,} rows: median under {limit:g} s", f"{line['median']:.2f} s", line["median"] < limit
    for column, words in (
        ("proven", "proven optimal"),
        ("valid", "confirmed by the forest"),
        ("inside", "in the hull"),
    ):
        have, of = int(summary[column].sum()), int(summary["answers"].sum())
        yield f"every answer {words}", f"{have} of {of}", have == of
    for name, part in summary.groupby("data", sort=False):
        medians = dict(zip(part["rows"], part["median"], strict=True))
        for few, many in ((a, b) for a in medians for b in medians if 0.95 * _ROWS <= b / a <= 1.05 * _ROWS):
            ratio = medians[many] / max(medians[few], _FLOOR)
            text = f"{name}, {few:,} to {many:,} rows: at most {_TIMES:g} times the time"
            yield text, f"{ratio:.1f} times", ratio <= _TIMES


def markdown(summary: pd.DataFrame, clock: str) -> str:
    """Return the tables."""
    out = [
        f"Seconds are {'processor' if clock == 'cpu' else 'wall'} time of `explain`; the peak is of the whole process.",
        "",
        "| data | rows in the hull | median s | p90 s | most s | proven | confirmed | in the hull | peak MB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for line in summary.itertuples():
        of = line.answers
        out.append(
            f"| {line.data} | {line.rows:,} | {line.median:.2f} | {line.p90:.2f} | {line.most:.2f} | {line.proven}/{of} "
            f"| {line.valid}/{of} | {line.inside}/{of} | {line.peak:.0f} |"
        )
    out += ["", "| bar | measured | |", "|---|---|---|"]
    out += [f"| {text} | {measured} | {'pass' if met else 'FAIL'} |" for text, measured, met in bars(summary)]
    return "\n".join(out) + "\n"


def draw(summary: pd.DataFrame) -> Figure:
    """Return time and memory over the rows, one line per data set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    panels = figure.subplots(1, 2)
    colours = ("#0072b2", "#d55e00", "#009e73", "#000000")
    for (name, part), colour in zip(summary.groupby("data", sort=False), colours, strict=False):
        style = {"color": colour, "marker": "o", "markersize": 4, "linewidth": 1.4}
        panels[0].plot(part["rows"], part["median"], label=name, **style)
        panels[0].fill_between(part["rows"], part["median"], part["p90"], color=colour, alpha=0.12, linewidth=0)
        panels[1].plot(part["rows"], part["peak"], **style)
    panels[0].set_yscale("log")
    panels[0].set_ylabel("seconds: median, band to p90")
    panels[1].set_ylabel("peak of the process, MB")
    panels[1].set_ylim(0)
    for axes in panels:
        axes.set_xscale("log")
        axes.set_xlabel("rows that span the hull")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize="small")
    return figure


def main() -> None:
    """Measure what is asked for; write records, tables and the plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hull", description="Hulls of many rows.")
    parser.add_argument(
        "--sets", nargs="+", choices=SETS, default=list(SETS), metavar="NAME", help=f"of {', '.join(SETS)}"
    )
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of rows (per set: up to all it has)")
    parser.add_argument("--factuals", type=int, default=20, help="rows to explain per set and size (20)")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per answer (60)")
    parser.add_argument("--clock", choices=("seconds", "cpu"), default="seconds", help="which time the tables show")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/hull"), help="folder of the results")
    parser.add_argument("--append", action="store_true", help="keep the sets of an earlier run that are not asked for")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "records.csv"
    earlier = pd.read_csv(path) if options.append and path.exists() else pd.DataFrame()
    parts = [] if earlier.empty else [earlier[~earlier["data"].isin(options.sets)]]
    for name in options.sets:  # a process for each, so that its peak of memory is its own
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            sizes = options.sizes or SIZES[name]
            found = pool.submit(measure, name, sizes, options.factuals, options.time_limit).result()
        parts.append(pd.DataFrame([asdict(record) for record in found]))
        pd.concat(parts).to_csv(path, index=False)
    summary = summarise(pd.concat(parts), options.clock)
    text = markdown(summary, options.clock)
    (options.out / "table.md").write_text(text, encoding="utf-8")
    figure = draw(summary)
    figure.savefig(options.out / "growth.svg")
    figure.savefig(options.out / "growth.png", dpi=160)
    print(text)
    sys.exit(0 if all(met for _, _, met in bars(summary)) else 1)


if __name__ == "__main__":
    main()
