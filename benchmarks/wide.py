"""Wide linear models: a logistic regression over thousands of numbers. ``python -m benchmarks.wide --help``.

The seconds and the memory that an `Explainer` takes to be made, and the processor seconds of an answer: l1 and squared l2,
with a price per change, and with at most five changes. Beside them, in the same run, the same questions by the solver alone
(``solver="highs only"``). Each answer is put to the model again.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ifonly import Explainer, NoCounterfactual, NotProvenOptimal, Proximity, Sparsity

CRITERIA = {
    "l1": [Proximity("l1")],
    "l2": [Proximity("l2")],
    "l1, at most 60 changes": [Proximity("l1"), Sparsity(at_most=60)],
    "l2, at most 60 changes": [Proximity("l2"), Sparsity(at_most=60)],
    "mahalanobis": [Proximity("mahalanobis"), Sparsity(price=0.0)],
}
_MOST_COUPLED = 1_000  # numbers of a covariance
# (features, question, seconds): what a median may not exceed on a machine of its own
BARS = ((10_000, "made", 2.0), (10_000, "l1", 0.2), (1_000, "l2", 0.3), (1_000, "mahalanobis", 5.0))


@dataclass(frozen=True)
class Asked:
    """One question: processor seconds, and whether it was proven, confirmed by the model and at which cost."""

    seconds: float
    proven: bool
    confirmed: bool
    cost: float


def model_of(features: int, whole: bool) -> tuple[object, pd.DataFrame]:
    """Return a model of normal numbers, or of whole ones, a tenth of which matter, and its data."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, features)), columns=[f"f{j}" for j in range(features)])
    if whole:
        X = (10.0 * X).round().astype(int)
    w = rng.normal(size=features) * (rng.random(features) < 0.1)
    y = (X.to_numpy() @ w + rng.normal(size=len(X)) > 0).astype(int)
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=200)).fit(X, y), X


def asked(explainer: Explainer, X: pd.DataFrame, criteria: str, rows: int, limit: float) -> Iterator[Asked]:
    """Yield a question per row."""
    for i in range(rows):
        began = time.process_time()
        before = explainer.model.estimator.predict(X.iloc[[i]])[0]
        try:
            answer = explainer.explain(X.iloc[i], criteria=CRITERIA[criteria], time_limit=limit)
        except NoCounterfactual:
            yield Asked(time.process_time() - began, False, True, np.inf)
            continue
        seconds = time.process_time() - began
        confirmed = bool(explainer.model.estimator.predict(answer.frame())[0] != before)
        proof = answer[0].certificate
        yield Asked(seconds, proof.proven, confirmed, proof.objective)


def main(arguments: list[str] | None = None) -> int:
    """Run the table, print it and the bars, and return 1 if an answer was refused by the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds per question")
    parser.add_argument(
        "--solver-up-to", type=int, default=1_000, help="features up to which the solver is asked as well"
    )
    parser.add_argument("--whole", action="store_true", help="whole numbers")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", NotProvenOptimal)
    refused = 0
    medians: dict[tuple[int, str], float] = {}
    for features in options.features:
        model, X = model_of(features, options.whole)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.process_time()
        ours = Explainer(model, X)
        made = medians[features, "made"] = time.process_time() - began
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
        print(f"{features} features: made in {made:.2f} s, peak memory grew by {grown:.2f} GB", flush=True)
        alone = Explainer(model, X, solver="highs only") if features <= options.solver_up_to else None
        for criteria in CRITERIA:
            if criteria == "mahalanobis" and features > _MOST_COUPLED:
                continue
            mine = list(asked(ours, X, criteria, options.rows, options.limit))
            medians[features, criteria] = float(np.median([a.seconds for a in mine]))
            line = f"  {criteria}: {_told(mine)}"
            refused += sum(not a.confirmed for a in mine)
            if alone is not None:
                theirs = list(asked(alone, X, criteria, options.rows, options.limit))
                ratio = float(np.median([a.seconds for a in theirs])) / medians[features, criteria]
                worse = sum(t.cost < m.cost * (1.0 - 2e-6) for m, t in zip(mine, theirs, strict=True) if m.proven)
                refused += worse
                line += f"; the solver alone {_told(theirs)}, {ratio:.0f} times as long, better than proven: {worse}"
            print(line, flush=True)
    for features, name, bar in BARS:
        if (features, name) in medians:
            seconds = medians[features, name]
            print(
                f"bar: {features} features, {name}: {seconds:.2f} s of {bar} s, {'met' if seconds <= bar else 'NOT met'}"
            )
    return 1 if refused else 0


def _told(questions: list[Asked]) -> str:
    seconds = [a.seconds for a in questions]
    proven = sum(a.proven for a in questions)
    return f"{np.median(seconds):.2f} s (max {max(seconds):.2f}), {proven} of {len(seconds)} proven"


if __name__ == "__main__":
    sys.exit(main())
