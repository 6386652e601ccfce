"""Incumbents are judged as they will be stored: half a float of a float32 column can lie on the other side."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression

from ifonly import Explainer, Proximity, Target


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"r": rng.uniform(0.2, 0.3, 120).astype("float32"), "w": rng.integers(0, 4, 120)})
    y = (X.r * 100 + X.w + rng.normal(0, 1, 120) > 26.5).astype(int)
    members = [
        ("forest", RandomForestClassifier(n_estimators=4, max_depth=2, random_state=0)),
        ("logistic", LogisticRegression(C=1e4)),
    ]
    return Explainer(StackingClassifier(members, cv=3).fit(X, y), X, solver="highs only")


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_an_edge_between_two_floats_of_the_column(explainer: Explainer, share: float) -> None:
    low, high = np.float32(0.245), np.float32(0.255)
    ends = pd.DataFrame({"r": np.array([low, high]), "w": [1, 1]})
    said = explainer.model.estimator.predict_proba(ends)[:, 1]
    wanted = float(said[0] + share * (said[1] - said[0]))
    now = pd.DataFrame({"r": np.array([0.21], dtype="float32"), "w": [1]})
    answer = explainer.explain(now, want=Target(1, probability=wanted), criteria=[Proximity("l1")])
    assert explainer.model.estimator.predict_proba(answer.frame())[0, 1] >= wanted
    assert answer[0].certificate.proven
