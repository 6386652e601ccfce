"""LightGBM writes "credit amount" as "credit_amount"; a frame on which its predict works is not refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ifonly import Explainer, SchemaError

pytestmark = pytest.mark.frameworks
lightgbm = pytest.importorskip("lightgbm")


def data() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"credit amount": rng.integers(0, 80, 200), "g": rng.uniform(0, 2, 200)})
    return X, (X["credit amount"] / 20 + X.g > 3).astype(int)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_space_in_a_name_is_no_other_name(wrapped: bool) -> None:
    X, y = data()
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1)
    model = (make_pipeline(model) if wrapped else model).fit(X, y)
    assert list(model.feature_names_in_) != list(X.columns)  # or this test shows nothing
    answer = Explainer(model, X).explain(X.iloc[0])
    assert list(answer.frame().columns) == list(X.columns)
    assert model.predict(answer.frame())[0] != model.predict(X.iloc[:1])[0]


def test_another_name_is_still_refused() -> None:
    X, y = data()
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(X, y)
    with pytest.raises(SchemaError, match="not those the model was fitted on"):
        Explainer(model, X.rename(columns={"credit amount": "credit sum"}))


def test_scikit_learn_does_not_take_the_underscore_for_a_space() -> None:
    X, y = data()
    model = LogisticRegression(max_iter=1000).fit(X.rename(columns={"credit amount": "credit_amount"}), y)
    with pytest.raises(SchemaError, match="not those the model was fitted on"):
        Explainer(model, X)
