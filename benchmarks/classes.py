"""Several classes and composites: ``python -m benchmarks.classes --help``.

Models of several classes (wine, digits) and of two classes that are made of others (German Credit, HELOC): calibrated,
voting, stacked. Each row is asked for its second most probable class or for a fixed one, of all engines and, with
``--solver``, of a solver alone. Printed are processor seconds, how many are proven, and how many proven costs differ.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ifonly import Explainer, NotProvenOptimal, OutOfTime, Schema, Sparsity, datasets

_SAME = 3e-6  # of a cost: within it, two proven costs are the same
Fitted = tuple[pd.DataFrame, Any, Any]


class Asked(NamedTuple):
    """One answer: processor seconds, cost, bound, whether it is proven, and by whom."""

    seconds: float
    cost: float
    bound: float
    proven: bool
    by: str


# -- models ----------------------------------------------------------------------------------------------------------
def _forest(trees: int, depth: int | None, seed: int = 0) -> RandomForestClassifier:
    return RandomForestClassifier(trees, max_depth=depth, n_jobs=1, random_state=seed)


def _logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))


def _wine(model: Any) -> Fitted:
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X, model.fit(X, y), 0


def _digits(model: Any) -> Fitted:
    X, y = load_digits(return_X_y=True, as_frame=True)
    return X, model.fit(X, y), 3


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=0, verbose=-1)


def _two(name: str, model: Any) -> Fitted:
    data = getattr(datasets, name)()
    words, numbers = make_column_selector(dtype_exclude="number"), make_column_selector(dtype_include="number")
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), (StandardScaler(), numbers))
    return data.frame, make_pipeline(columns, model).fit(data.frame, data.target), data.wanted


def _members() -> list[tuple[str, Any]]:
    return [("forest", _forest(20, 4)), ("logistic", LogisticRegression(max_iter=2000))]


def _composites() -> dict[str, Callable[[], Any]]:
    boosting = GradientBoostingClassifier(n_estimators=50, random_state=0)
    return {
        "calibrated forest, sigmoid": lambda: CalibratedClassifierCV(_forest(20, 4), cv=3),
        "calibrated forest, isotonic": lambda: CalibratedClassifierCV(_forest(20, 4), method="isotonic", cv=3),
        "calibrated boosting, sigmoid": lambda: CalibratedClassifierCV(boosting, cv=3),
        "calibrated boosting, isotonic": lambda: CalibratedClassifierCV(boosting, method="isotonic", cv=3),
        "soft voting": lambda: VotingClassifier(_members(), voting="soft"),
        "hard voting": lambda: VotingClassifier([(str(i), _forest(20, 4, i)) for i in range(3)], voting="hard"),
        "stacked forests": lambda: StackingClassifier([(str(i), _forest(20, 4, i)) for i in range(2)], cv=3),
        "stacked forest and logistic": lambda: StackingClassifier(_members(), cv=3),
    }


CASES: dict[str, Callable[[], Fitted]] = {
    "wine, ExtraTrees 40x6": lambda: _wine(ExtraTreesClassifier(40, max_depth=6, random_state=0)),
    "wine, soft voting": lambda: _wine(
        VotingClassifier([("logistic", _logistic()), ("forest", _forest(20, 4))], voting="soft")
    ),
    "wine, calibrated RF 20x4": lambda: _wine(CalibratedClassifierCV(_forest(20, 4), cv=3)),
    "wine, calibrated RF 20x4, one fold": lambda: _wine(
        CalibratedClassifierCV(_forest(20, 4), method="isotonic", cv=3, ensemble=False)
    ),
    "digits, RF 100x5": lambda: _digits(_forest(100, 5)),
    "digits, RF default": lambda: _digits(_forest(100, None)),
    "digits, LightGBM": lambda: _digits(_lightgbm()),
    **{
        f"{data}, {kind}": (lambda data=data, make=make: _two(data, make()))
        for data in ("german_credit", "heloc")
        for kind, make in _composites().items()
    },
}


# -- questions -------------------------------------------------------------------------------------------------------
def questions(X: pd.DataFrame, model: Any, fixed: Any, rows: int, seed: int) -> Iterator[tuple[int, Any]]:
    """Yield rows, drawn by a seed, with a wanted class: the second most probable one, and the fixed one, in turn."""
    said = model.predict(X)
    drawn = np.random.default_rng(seed).permutation(len(X))
    if len(model.classes_) == 2:
        yield from ((int(i), fixed) for i in [i for i in drawn if said[i] != fixed][:rows])
        return
    shown = model.predict_proba(X)
    for k, i in enumerate(drawn[:rows]):
        second = model.classes_[np.argsort(-shown[i], kind="stable")[1]]
        other = fixed if said[i] != fixed else next(c for c in model.classes_ if c not in (fixed, second))
        yield int(i), second if k % 2 == 0 else other


def answers(case: Fitted, solver: str, options: argparse.Namespace) -> Iterator[Asked]:
    """Answer the questions of a case by one solver."""
    X, model, fixed = case
    explainer = Explainer(model, X, schema=Schema.infer(X, precision=None), solver=solver)
    criteria = [] if options.price is None else [Sparsity(price=options.price)]
    for i, want in questions(X, model, fixed, options.rows, options.seed):
        began = time.process_time()
        try:
            answer = explainer.explain(X.iloc[[i]], want=want, criteria=criteria, time_limit=options.limit)
            proof = answer[0].certificate
            yield Asked(time.process_time() - began, proof.objective, proof.bound, proof.proven, proof.solver)
        except OutOfTime as error:
            yield Asked(time.process_time() - began, np.inf, error.bound, False, "out of time")


def told(asked: list[Asked]) -> str:
    """Return the line of one setting."""
    seconds = np.array([a.seconds for a in asked])
    proven = sum(a.proven for a in asked)
    gaps = [1.0 - a.bound / a.cost for a in asked if not a.proven and a.cost > 0.0]
    open_ = f", open: gap {np.median(gaps):.0%}" if gaps else ""
    own = sum(a.by == "no solver needed" for a in asked)
    return (
        f"{proven} of {len(asked)} proven ({own} without a solver), "
        f"median {np.median(seconds):.3f} s, most {seconds.max():.2f} s{open_}"
    )


def differ(one: list[Asked], other: list[Asked]) -> int:
    """Return how many costs contradict a proof."""
    wrong = 0
    for a, b in zip(one, other, strict=True):
        wrong += (a.proven and b.cost < a.cost * (1 - _SAME)) or (b.proven and a.cost < b.cost * (1 - _SAME))
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Print a line per case and setting; return 1 if a cost contradicts a proof."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the name of the cases to run")
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--price", type=float, default=None, help="per change; the default policy's when not given")
    parser.add_argument("--solver", action="store_true", help="ask a solver alone as well")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    warnings.simplefilter("ignore", NotProvenOptimal)
    wrong = 0
    for name, make in CASES.items():
        if options.only not in name:
            continue
        case = make()
        own = list(answers(case, "auto", options))
        print(f"{name}: {told(own)}", flush=True)
        if options.solver:
            theirs = list(answers(case, "highs only", options))
            wrong += differ(own, theirs)
            print(f"  a solver alone: {told(theirs)}; {differ(own, theirs)} differ", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
