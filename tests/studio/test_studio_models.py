"""Models of other kinds in the studio: several classes, no probabilities, gaps in the data, arrays, truth values."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from starlette.testclient import TestClient

from ifonly import Explainer
from ifonly.studio.insight import forecasts
from ifonly.studio.library import frame_of, in_one_pass
from ifonly.studio.opening import subject_of
from ifonly.studio.subject import Subject
from studio_world import ORIGIN, opened

RNG = np.random.default_rng(1)
X = pd.DataFrame({"a": RNG.normal(size=120).round(3), "b": RNG.integers(0, 9, 120), "c": RNG.random(120) < 0.5})
GAPS = X[["a", "b"]].astype(float).mask(RNG.random((120, 2)) < 0.2)
THREE = np.digitize(X.a + X.b / 5, [0.5, 1.2])


def last_fragment(client: TestClient, **fields: Any) -> str:
    watching = client.post("/ask", data=fields, headers=ORIGIN)
    job = re.search(r"events\?job=(\w+)", watching.text)
    assert job is not None, watching.text
    return client.get("/events", params={"job": job[1]}).text.rpartition("id: ")[2]


CASES = {
    "three classes": (lambda: Explainer(DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, THREE), X), 3),
    "no probabilities": (lambda: Explainer(LinearSVC().fit(X, THREE > 0), X), 2),
    "gaps": (lambda: Explainer(HistGradientBoostingClassifier(max_iter=5).fit(GAPS, THREE > 0), GAPS), 2),
    "arrays": (
        lambda: Explainer(LogisticRegression().fit(X[["a", "b"]].to_numpy(), THREE > 0), X[["a", "b"]].to_numpy()),
        2,
    ),
}


KEYS = {name: name.replace(" ", "-") for name in CASES}


@pytest.fixture(scope="module")
def subjects() -> dict[str, Subject]:
    made = {name: make() for name, (make, _) in CASES.items()}
    return {name: replace(subject_of(own, frame_of(own)), key=KEYS[name]) for name, own in made.items()}


@pytest.fixture(scope="module")
def client(subjects: dict[str, Subject]) -> Iterator[TestClient]:
    with opened(*subjects.values()) as (client, _):
        yield client


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_model_is_shown_asked_and_confirmed(
    name: str, subjects: dict[str, Subject], client: TestClient
) -> None:
    classes, subject, key = CASES[name][1], subjects[name], KEYS[name]
    assert len(subject.classes) == classes
    row = int(np.flatnonzero(subject.known()[0] == subject.classes[0])[0])
    if name == "gaps":
        row = next(
            int(i) for i in np.flatnonzero(subject.known()[0] == subject.classes[0]) if GAPS.iloc[i].isna().any()
        )
    assert client.get("/", params={"s": key, "sort": "p"}).status_code == 200
    page = client.get("/row", params={"s": key, "row": row})
    assert page.status_code == 200
    assert ("with a probability" in page.text) == (name != "no probabilities")
    if name == "gaps":
        assert "missing" in page.text
    text = last_fragment(client, s=key, row=row, want=classes - 1)
    assert "the model itself was asked" in text
    edited = client.get("/predict", params={"s": key, "row": row, "v0": "0.5"})
    assert "The model says" in edited.text


def ties() -> RandomForestClassifier:
    """Two full trees on different rows: where they differ, both classes are as likely."""
    return RandomForestClassifier(2, max_features=1, random_state=3)


def strict() -> FixedThresholdClassifier:
    """A model whose label is not the more probable one."""
    return FixedThresholdClassifier(LogisticRegression(), threshold=0.9)


@pytest.mark.parametrize("last", [ties(), ExtraTreesClassifier(4, max_depth=2), strict(), GaussianNB()])
def test_one_pass_says_what_predict_and_predict_proba_say(last: Any) -> None:
    model = Pipeline([("scale", StandardScaler()), ("nothing", "passthrough"), ("none", None), ("last", last)])
    model.fit(X, THREE > 0)
    own = Explainer(model, X, surrogate="auto") if isinstance(last, GaussianNB) else Explainer(model, X)
    found = in_one_pass(own.model, own.schema.encode(X))
    assert found is not None
    labels, shares = found
    assert (labels == model.predict(X)).all()
    assert (shares == model.predict_proba(X)).all()
    if isinstance(last, RandomForestClassifier):
        assert (shares[:, 0] == 0.5).any()
    if isinstance(last, FixedThresholdClassifier):
        assert (labels != (shares[:, 1] > 0.5)).any()


class Contrary(Pipeline):
    """A pipeline with a word of its own."""

    def predict(self, X: Any, **params: Any) -> Any:
        return ~super().predict(X, **params)


def test_a_pipeline_of_another_kind_is_asked_twice() -> None:
    model = Contrary([("scale", StandardScaler()), ("last", LogisticRegression())]).fit(X, THREE > 0)
    own = Explainer(model, X, surrogate="auto")
    assert in_one_pass(own.model, own.schema.encode(X)) is None
    assert (forecasts(own, X)[0] == model.predict(X)).all()
