"""Models that cannot be read: ours with a surrogate, and peers that take any model (`python -m benchmarks.surrogate`).

An RBF support vector machine (calibrated, so that its classes are those of its probabilities, which the peers go by), k-NN, a
tanh network and a Gaussian process, on German Credit, Heart, COMPAS and HELOC. Every method is asked for the same rows, those
that the model puts in the unwanted class, with nothing demanded but the outcome. Every answer is predicted anew by the
model; the distance is the change in each number over its range, plus 1 per switched category.

Growing Spheres knows no whole numbers and no ranges, so that 1.3 former credits, and a loan over -17 months, are answers to
it. `ifonly-fractions` is ours with the first of these freedoms: numbers of every column may be fractions, within its range.
`ifonly-free` is ours with both: fractions, and up to one range beyond the ends. `growing-spheres-within` is theirs without
the second.

``--records FILE`` keeps every answer as it comes; what is there already is not asked again, so a table can be run in pieces.
"""

from __future__ import annotations

import os

# One core, no threads inside linear algebra. Before NumPy is imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse  # noqa: E402 - after the environment is set
import itertools  # noqa: E402
import json  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from dataclasses import asdict, dataclass  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from benchmarks.peers.encoding import FloatArray  # noqa: E402
from benchmarks.peers.environments import EnvironmentFailed  # noqa: E402
from benchmarks.peers.growing_spheres import grow  # noqa: E402
from benchmarks.peers.session import Disagrees  # noqa: E402
from benchmarks.speed.methods import open_session  # noqa: E402
from benchmarks.speed.problems import Case, Problem, Table, german, prepare  # noqa: E402
from ifonly import Explainer, NoCounterfactual, Proximity, datasets  # noqa: E402
from ifonly.data.schema import Integer, Numeric, Schema  # noqa: E402
from ifonly.runtime.tuning import Reading, Tuning  # noqa: E402

__all__ = ["METHODS", "MODELS", "Answered", "main", "measure", "summary"]

OURS, FRACTIONS, FREE = "ifonly", "ifonly-fractions", "ifonly-free"
SPHERES, WITHIN = "growing-spheres", "growing-spheres-within"
METHODS = (OURS, "nice", "dice-random", "dice-genetic", SPHERES, WITHIN, FRACTIONS, FREE)
Ask = Callable[[int], FloatArray | None]
_ROWS = 1000


def heart() -> Table:
    """Heart, as it is shipped."""
    data = datasets.heart()
    return Table(data.frame, data.target, data.schema, data.wanted)


def _first(data: Any) -> Table:
    """The first thousand rows of a data set: a Gaussian process takes the cube of their number."""
    return Table(data.frame.head(_ROWS), data.target.head(_ROWS), data.schema, data.wanted)


def compas() -> Table:
    """COMPAS, the first rows of its train part."""
    return _first(datasets.compas())


def heloc() -> Table:
    """HELOC, the first rows of its train part."""
    return _first(datasets.heloc())


def _svm() -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    return CalibratedClassifierCV(SVC(), ensemble=False)


def _knn() -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(7)


def _tanh() -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((20,), activation="tanh", alpha=1.0, max_iter=500, random_state=0)


def _process() -> Any:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    return GaussianProcessClassifier(4.0 * RBF(5.0), optimizer=None, random_state=0)


TABLES: dict[str, Callable[[], Table]] = {"german": german, "heart": heart, "compas": compas, "heloc": heloc}
MODELS: dict[str, Callable[[], Any]] = {"svm": _svm, "knn": _knn, "tanh": _tanh, "gp": _process}


@dataclass(frozen=True)
class Answered:
    """One row put to one method: its answer as it was judged."""

    problem: str
    method: str
    row: int
    answered: bool
    confirmed: bool
    coherent: bool
    distance: float
    seconds: float


def measure(case: Case, method: str, ask: Ask, rows: list[int] | None = None) -> Iterator[Answered]:
    """Put rows of a case, by default all, to a method, and judge the answers by the model itself."""
    for row in map(int, case.factuals) if rows is None else rows:
        began = time.perf_counter()
        found = ask(row)
        seconds = time.perf_counter() - began
        if found is None:
            yield Answered(case.name, method, row, False, False, False, np.nan, seconds)
            continue
        factual = case.matrix[row]
        confirmed = bool(case.model.predict(case.frame_of(found))[0] == case.table.wanted)
        yield Answered(
            case.name,
            method,
            row,
            True,
            confirmed,
            case.encoding.coherent(found, factual),
            case.encoding.distance(found, factual),
            seconds,
        )


def ours(case: Case, seconds: float, *, fractions: bool = False, beyond: float = 0.0) -> Ask:
    """Return ifonly with a surrogate, with the distance of the table as its only cost.

    With `fractions` numbers need not be whole, and may lie `beyond` their ends by so many ranges.
    """
    frame, schema = case.table.frame, case.table.schema
    if fractions:
        free = [_fractional(f, beyond) if isinstance(f, Numeric) else f for f in schema.features]
        frame, schema = frame.astype({f.name: float for f in free if isinstance(f, Numeric)}), Schema(tuple(free))
    # The ranges by which the table measures: those of the whole data set, not of the rows that the model was fitted on.
    spans = {field.name: field.span for field in case.encoding.fields if field.kind != "category"}
    criteria = [Proximity("l1", scale=spans)]
    observed = Tuning(reading=Reading(most_rows=0))  # k-NN with few rows would be read, and proven
    explainer = Explainer(case.model, frame, schema=schema, criteria=criteria, surrogate="auto", tuning=observed)

    def ask(row: int) -> FloatArray | None:
        try:
            answer = explainer.explain(frame.iloc[[row]], want=case.table.wanted, time_limit=seconds)
        except NoCounterfactual:
            return None
        return case.row_of(answer[0].row)

    return ask


def _fractional(feature: Numeric, beyond: float) -> Numeric:
    """Return a number as a fraction, with its ends moved outwards by so many ranges."""
    if not beyond and not isinstance(feature, Integer):
        return feature
    more = beyond * (feature.upper - feature.lower)
    return Numeric(feature.name, feature.lower - more, feature.upper + more)


def spheres(case: Case, seconds: float, *, within: bool = False) -> Ask:
    """Return Growing Spheres; as published it leaves the ranges of the data, `within` it does not."""

    def wanted(codes: FloatArray) -> Any:
        return np.asarray(case.estimator.predict(case.encoding.matrix(codes))) == case.table.wanted

    def ask(row: int) -> FloatArray | None:
        codes = case.encoding.codes(case.matrix[row][None, :])[0]
        found = grow(codes, case.encoding, wanted, within=within, seconds=seconds)
        return None if found is None else case.encoding.matrix(found[None, :])[0]

    return ask


def run(case: Case, method: str, rows: list[int], seconds: float, cache: Path | None) -> Iterator[Answered]:
    """Measure a method on a case; a peer that cannot be had here is left out, and named."""
    if method in (SPHERES, WITHIN):
        yield from measure(case, method, spheres(case, seconds, within=method == WITHIN), rows)
        return
    if method in (OURS, FRACTIONS, FREE):
        ask = ours(case, seconds, fractions=method != OURS, beyond=float(method == FREE))
        yield from measure(case, method, ask, rows)
        return
    try:
        session = open_session(method, case, cache=cache)
    except (Disagrees, EnvironmentFailed) as error:
        print(f"{case.name}: {method} left out: {error}", flush=True)
        return
    try:
        yield from measure(case, method, lambda row: session.explain(row, seconds).row, rows)
    finally:
        session.close()


def summary(answers: list[Answered]) -> pd.DataFrame:
    """Return a line per problem and method.

    The distance is the median over the method's confirmed answers; `on common rows` over the rows that every method of the
    problem answers with a confirmed row.
    """
    table = pd.DataFrame(answers)
    lines = []
    for problem, part in table.groupby("problem", sort=False):
        good = part[part["confirmed"]]
        common = set.intersection(*(set(good[good["method"] == m]["row"]) for m in part["method"].unique()))
        for method, own in part.groupby("method", sort=False):
            sure = own[own["confirmed"]]
            lines.append(
                {
                    "model": problem,
                    "method": method,
                    "rows": len(own),
                    "answered": int(own["answered"].sum()),
                    "confirmed": int(own["confirmed"].sum()),
                    "coherent": int((own["confirmed"] & own["coherent"]).sum()),
                    "median distance": sure["distance"].median(),
                    "on common rows": sure[sure["row"].isin(common)]["distance"].median(),
                    "median s": own["seconds"].median(),
                }
            )
    return pd.DataFrame(lines)


def markdown(table: pd.DataFrame) -> str:
    """Return the table as the documentation shows it."""
    lines = [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in row] for row in table.itertuples(index=False)]
    head = [list(table.columns), ["---"] * table.shape[1]]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [*head, *lines])


def kept(records: Path | None) -> list[Answered]:
    """Return the answers of a file of records; none where there is no file."""
    if records is None or not records.is_file():
        return []
    return [Answered(**json.loads(line)) for line in records.read_text().splitlines()]


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.surrogate", description="Models that cannot be read.")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--rows", type=int, default=10, help="rows per model (10)")
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds per answer (30)")
    parser.add_argument(
        "--records", type=Path, help="file of answers, a JSON object per line; continued when it is there"
    )
    parser.add_argument("--cache", type=Path, help="folder of the peers' environments (IFONLY_PEERS)")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = _all(options)
    print(markdown(summary(answers)))


def _all(options: argparse.Namespace) -> list[Answered]:
    answers = kept(options.records)
    done = {(a.problem, a.method, a.row) for a in answers}
    for table, model in itertools.product(options.tables, options.models):
        case = prepare(Problem(f"{table} {model}", TABLES[table], MODELS[model], "network"), options.rows)
        for method in options.methods:
            rows = [r for r in map(int, case.factuals) if (case.name, method, r) not in done]
            for answer in run(case, method, rows, options.time_limit, options.cache) if rows else ():
                answers.append(answer)
                if options.records is not None:
                    with options.records.open("a") as file:
                        file.write(json.dumps(asdict(answer)) + "\n")
        print(markdown(summary([a for a in answers if a.problem == case.name])), flush=True)
    return answers


if __name__ == "__main__":
    main()
