"""Shared by the tests of proofs: small random questions with their proofs, and their optima by brute force."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from ifonly import (
    Actionability,
    Explainer,
    Explanation,
    IfOnlyWarning,
    NoCounterfactual,
    Proximity,
    Sparsity,
    Target,
)
from ifonly.data.schema import Numeric
from ifonly.question.statement import Statement
from ifonly.record.checker import Refused, Replayed, replay
from ifonly.record.proof import unpack
from ifonly.runtime.deadline import Deadline

NEVER = Deadline.never()
MODELS: dict[str, Callable[[int], Any]] = {
    "linear": lambda seed: LogisticRegression(C=10.0 ** (seed % 3 - 1), max_iter=1000),
    "tree": lambda seed: DecisionTreeClassifier(max_depth=2 + seed % 4, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(5 + seed % 10, max_depth=5, random_state=seed),
    "network": lambda seed: MLPClassifier(
        ((4,), (5, 3))[seed % 2], solver="lbfgs", alpha=0.1, max_iter=60, random_state=seed
    ),
    "boosting": lambda seed: GradientBoostingClassifier(n_estimators=10 + seed % 10, max_depth=3, random_state=seed),
}
CRITERIA: tuple[tuple[Any, ...], ...] = (
    (),
    (Proximity("l1", scale="range"), Sparsity(at_most=2)),
    (Proximity("l1", scale="mad"), Sparsity(price=0.3)),
    (Proximity("l2", scale="std"),),
    (Actionability(frozen=["whole"]), Sparsity(at_most=3, price=0.05)),
    (Actionability(ranges={"decimal": (0.2, 0.9)}),),
)


@dataclass(frozen=True)
class Case:
    """A question, its answer and all that a replay needs."""

    model: Any
    X: pd.DataFrame
    explainer: Explainer
    answer: Explanation
    row: pd.DataFrame
    want: Any

    @property
    def trail(self) -> bytes:
        assert self.answer.proof is not None
        return unpack(self.answer.proof)[0]

    @property
    def bound(self) -> float:
        return self.answer[0].certificate.bound

    def replayed(self, trail: bytes, bound: float | None = None) -> Replayed:
        asked = self.asked()
        return replay(asked.statement, asked.goal, self.bound if bound is None else bound, trail, NEVER)

    def asked(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IfOnlyWarning)
            return self.explainer._ask(self.row, self.want, ())


def table(seed: int, n: int = 50) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "whole": rng.integers(0, 6, n),
            "decimal": rng.uniform(0, 1, n).round(1),
            "real": rng.normal(size=n),
            "level": rng.choice(["a", "b", "c"], n),
        }
    )
    score = X.whole - 3 * X.decimal + X.real + 2 * (X.level == "b") + rng.normal(0, 0.5, n)
    return X, np.where(score > score.median(), "yes", "no")


@cache
def question(kind: str, seed: int) -> Case | None:
    X, y = table(seed)
    encode = ColumnTransformer([("level", OneHotEncoder(), ["level"])], remainder="passthrough")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # networks that learned for a while are as good
        model = Pipeline([("encode", encode), ("model", MODELS[kind](seed))]).fit(X, y)
    explainer = Explainer(model, X, criteria=CRITERIA[seed % len(CRITERIA)] or None)
    row = X.iloc[[seed % len(X)]]
    other = "no" if model.predict(row)[0] == "yes" else "yes"
    want = Target(other, probability=0.6) if seed % 4 == 3 else other
    gap = 0.2 if seed % 5 == 4 else 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IfOnlyWarning)  # some rows break a demand, which an answer then repairs
        try:
            answer = explainer.explain(row, want=want, proof=True, gap=gap)
        except NoCounterfactual:
            return None
    return Case(model, X, explainer, answer, row, want)


def cases(kind: str, seeds: range) -> Iterator[Case]:
    yield from (case for case in (question(kind, seed) for seed in seeds) if case is not None and case.trail)


def optimum(case: Case) -> float:
    """The least cost of all answers, by looking at a point of every cell."""
    asked = case.asked()
    statement: Statement = asked.statement
    box, schema = statement.box(), statement.query.schema
    values = []
    for j, feature in enumerate(schema.features):
        if isinstance(feature, Numeric):
            hat = statement.query.factual[schema.starts[j]]
            cuts = statement.form.cuts().get(j, np.empty(0))
            ends = np.concatenate([cuts, np.nextafter(cuts, np.inf), [hat, box.lower[j], box.upper[j]]])
            grid = np.arange(-60, 61) / 10.0 ** (feature.precision or 0)
            some = grid if feature.precision is not None else ends
            values.append([np.array([v]) for v in np.unique(some) if box.lower[j] <= v <= box.upper[j]])
        else:
            values.append(
                [row for row, ok in zip(np.eye(feature.width), box.allowed[schema.slice(j)], strict=True) if ok]
            )
    U = np.array([np.concatenate(parts) for parts in itertools.product(*values)])
    for demand in statement.demands:
        U = U[demand.holds(statement.query, U)]
    return float(statement.objective(U).min(initial=np.inf))


def judged(cases: Iterable[Case], best: Callable[[Case], float] = optimum) -> tuple[int, int]:
    """Return how many proofs are wrong by brute force, and how many are refused; none that is wrong is accepted."""
    wrong = refused = 0
    for case in cases:
        if not case.trail:
            continue
        is_wrong = best(case) < case.bound * (1.0 - 1e-6)
        wrong += is_wrong
        try:
            case.replayed(case.trail)
            assert not is_wrong, "a wrong proof was accepted"
        except Refused:
            refused += 1
    return wrong, refused
