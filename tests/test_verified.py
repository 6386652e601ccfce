"""More than five hundred random factuals: every answer is confirmed by a fresh `predict`, and every demand is seen to hold.

What holds is checked twice: by the NumPy twins of the demands, and by hand in the columns of the returned frame.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_wine
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from ifonly import (
    Actionability,
    Explainer,
    Explanation,
    FactualViolatesDemand,
    Infeasible,
    LinearRow,
    Proximity,
    Sparsity,
)
from ifonly.datasets import german_credit, heart

PER_CHUNK = 25
PER_BENT_CHUNK = 8  # of trees and networks, which take longer
GERMAN = Actionability(
    frozen=["foreign_worker", "personal_status", "purpose"],
    increase=["age", "residence_since"],
    ranges={"duration": (6, 60), "credit_amount": (250, None)},
    max_step={"installment_commitment": 2},
    allow={"housing": ["rent", "own"]},
    rows=[LinearRow({"age": 1, "residence_since": -1}, at_least=16)],
)
HEART = Actionability(
    frozen=["age", "sex"],
    decrease=["chol"],
    max_step={"trestbps": 40},
    ranges={"thalach": (90, 200), "oldpeak": (0.0, 4.0)},
)
WINE = Actionability(frozen=["hue"], max_step={"alcohol": 1.5}, decrease=["ash"])


def german_demands(now: pd.Series, then: pd.Series) -> list[bool]:
    return [
        *(then[c] == now[c] for c in ("foreign_worker", "personal_status", "purpose")),
        then["age"] >= now["age"],
        then["residence_since"] >= now["residence_since"],
        6 <= then["duration"] <= 60,
        then["credit_amount"] >= 250,
        abs(then["installment_commitment"] - now["installment_commitment"]) <= 2,
        then["housing"] in ("rent", "own"),
        then["age"] - then["residence_since"] >= 16,
        all(float(then[c]).is_integer() for c in ("duration", "credit_amount", "age", "existing_credits")),
        sum(then[c] != now[c] for c in now.index) <= 4,
    ]


def heart_demands(now: pd.Series, then: pd.Series) -> list[bool]:
    return [
        then["age"] == now["age"],
        then["sex"] == now["sex"],
        then["chol"] <= now["chol"],
        abs(then["trestbps"] - now["trestbps"]) <= 40,
        90 <= then["thalach"] <= 200,
        0.0 <= then["oldpeak"] <= 4.0,
        round(float(then["oldpeak"]), 1) == then["oldpeak"],
        sum(then[c] != now[c] for c in now.index) <= 4,
    ]


def wine_demands(now: pd.Series, then: pd.Series) -> list[bool]:
    return [
        then["hue"] == now["hue"],
        abs(then["alcohol"] - now["alcohol"]) <= 1.5 + 1e-9,
        then["ash"] <= now["ash"],
        sum(then[c] != now[c] for c in now.index) <= 4,
    ]


@dataclass
class Field:
    """A data set with a model and a policy, and the policy once more by hand."""

    frame: pd.DataFrame
    explainer: Explainer
    demands: Callable[[pd.Series, pd.Series], list[bool]]


def encoded(frame: pd.DataFrame, last: Any, scaler: Any) -> Pipeline:
    numeric = frame.select_dtypes("number").columns.tolist()
    rest = [c for c in frame if c not in numeric]
    parts = [("number", scaler, numeric), ("category", OneHotEncoder(handle_unknown="ignore"), rest)]
    return Pipeline([("encode", ColumnTransformer(parts)), ("last", last)])


LASTS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "logistic": lambda: (StandardScaler(), LogisticRegression(max_iter=2000)),
    "svc": lambda: (MinMaxScaler(), LinearSVC(C=0.1, dual=False)),
    "forest": lambda: ("passthrough", RandomForestClassifier(8, max_depth=4, random_state=0)),
    "boosting": lambda: ("passthrough", GradientBoostingClassifier(n_estimators=20, max_depth=3, random_state=0)),
    "network": lambda: (StandardScaler(), MLPClassifier((5,), max_iter=60, random_state=0)),
}


def make(name: str) -> Field:
    if name.startswith("wine"):
        wine = load_wine(as_frame=True)
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.5)).fit(wine.data, wine.target)
        criteria = [Proximity("l1"), Sparsity(at_most=4, price=0.05), WINE]
        return Field(wine.data, Explainer(model, wine.data, criteria=criteria), wine_demands)
    data, policy, demands = (
        (german_credit(), GERMAN, german_demands) if name.startswith("german") else (heart(), HEART, heart_demands)
    )
    scaler, last = LASTS[name.split()[1]]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a network need not be a good one
        model = encoded(data.frame, last, scaler).fit(data.frame, data.target)
    criteria = [Proximity("l1"), Sparsity(at_most=4, price=0.05), policy]
    return Field(data.frame, Explainer(model, data.frame, schema=data.schema, criteria=criteria), demands)


CHUNKS = [
    *(("german logistic", k) for k in range(5)),
    *(("german svc", k) for k in range(5)),
    *(("heart logistic", k) for k in range(3)),
    *(("heart svc", k) for k in range(3)),
    *(("wine multinomial", k) for k in range(4)),
    ("german forest", 0),
    ("german boosting", 0),
    ("german network", 0),
    ("heart forest", 0),
    ("heart boosting", 0),
    ("heart network", 0),
]
PLAIN = {"german svc", "heart forest", "heart boosting", "heart network", "wine multinomial"}  # by their first chunks
_FIELDS: dict[str, Field] = {}


def size(name: str) -> int:
    """Number of factuals in a chunk."""
    return PER_CHUNK if name.endswith(("logistic", "svc", "multinomial")) else PER_BENT_CHUNK


def check(field: Field, row: pd.DataFrame, want: Any, answer: Explanation) -> None:
    frame = answer.frame()
    assert field.explainer.model.estimator.predict(frame)[0] == want, "refused by a fresh predict"
    assert (frame.dtypes == field.frame.dtypes).all(), "other dtypes"
    assert list(frame.columns) == list(field.frame.columns), "other columns"
    assert answer[0].certificate.proven
    assert answer[0].certificate.bound <= answer[0].certificate.objective + 1e-12
    broken = [i for i, held in enumerate(field.demands(row.iloc[0], frame.iloc[0])) if not held]
    assert not broken, f"by hand, demands {broken} are broken"
    statement = field.explainer.problem(row, want=want).statement
    u = statement.query.schema.encode(frame)
    for demand in statement.demands:
        assert demand.holds(statement.query, u).all(), demand.text
    changed = {c for c in frame if frame[c].iloc[0] != row[c].iloc[0]}
    assert changed == {c.feature for c in answer[0].changes}


@pytest.mark.parametrize(
    ("name", "chunk"),
    [(n, k) if k == 0 and n in PLAIN else pytest.param(n, k, marks=pytest.mark.slow) for n, k in CHUNKS],
)
def test_every_answer_is_confirmed(name: str, chunk: int) -> None:
    field = _FIELDS.setdefault(name, make(name)) if name not in _FIELDS else _FIELDS[name]
    model = field.explainer.model.estimator
    rng = np.random.default_rng([chunk, len(name)])
    found = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FactualViolatesDemand)
        for i in rng.choice(len(field.frame), size(name), replace=False):
            row = field.frame.iloc[[int(i)]]
            want = rng.choice([c for c in model.classes_ if c != model.predict(row)[0]])
            with contextlib.suppress(Infeasible):
                check(field, row, want, field.explainer.explain(row, want=want, time_limit=600.0))
                found += 1
    assert found >= size(name) // 3, "hardly a question was possible"


def test_there_are_five_hundred() -> None:
    assert sum(size(name) for name, _ in CHUNKS) >= 500
