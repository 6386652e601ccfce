"""A small world for the tests of the studio: loans with hostile names, a model of each kind, and clients of a gate."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from starlette.testclient import TestClient

from ifonly import Actionability, Explainer, Implies, LinearRow, Proximity, Schema, Sparsity
from ifonly.studio.app import build
from ifonly.studio.desk import Desk, Shelf
from ifonly.studio.security import Hosts, Keys
from ifonly.studio.subject import Subject, standard_switches

HOSTILE = "<script>alert(1)</script>"
HOST = "127.0.0.1:8123"
ORIGIN = {"Origin": f"http://{HOST}"}


def loans(rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    income, debts = rng.integers(10, 90, rows), rng.uniform(0, 9, rows).round(2)
    job = rng.choice(["clerk", "nurse", HOSTILE], rows)
    grade = pd.Categorical(rng.choice(["low", "mid", "high"], rows), ["low", "mid", "high"], ordered=True)
    return pd.DataFrame({"income": income, "debts": debts, f"job {HOSTILE}": job, "grade": grade})


def classifier(switches: dict[str, Any] | None = None, criteria: Any = None, rows: int = 200) -> Subject:
    X = loans(rows)
    y = np.where(X.income - 5 * X.debts + 10 * (X.iloc[:, 2] == "nurse") > 25, f"yes {HOSTILE}", "no")
    encode = ColumnTransformer([("c", OneHotEncoder(), [f"job {HOSTILE}", "grade"])], remainder=StandardScaler())
    model = Pipeline([("encode", encode), ("decide", LogisticRegression())]).fit(X, y)
    schema = Schema.infer(X, labels={"debts": f"Debts & {HOSTILE}"}, precision={"debts": 2})
    house = criteria or [
        Proximity("l1", scale="range"),
        Sparsity(price=0.1),
        Actionability(
            decrease=["debts"],
            rows=[LinearRow({"income": 1, "debts": -1}, at_least=-5)],
            implies=[Implies({"grade": "low"}, {"income": (None, 90)})],
        ),
    ]
    explainer = Explainer(model, X, y, schema=schema, criteria=house)
    offered = standard_switches() if switches is None else switches
    return Subject("yes", f"Loans {HOSTILE}", explainer, X, f"yes {HOSTILE}", switches=offered)


def regression() -> Subject:
    X = loans()[["income", "debts"]]
    model = LinearRegression().fit(X, X.income - 3 * X.debts)
    return Subject("value", "A regression", Explainer(model, X), X, switches={})


@contextmanager
def opened(*subjects: Subject, keep: Path | None = None, workers: int = 1) -> Iterator[tuple[TestClient, Keys]]:
    """A client that has exchanged its token, in a running studio."""
    keys = Keys()
    desk = Desk(subjects or (classifier(),), Shelf(keep), workers)
    app: Any = build(desk, keys=keys, hosts=Hosts(8123, frozenset({"studio.example"})))
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=True) as client:
        client.get("/", params={"token": keys.token})
        yield client, keys
