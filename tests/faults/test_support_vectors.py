"""Support vectors that cancel: libsvm adds up ``alpha_i * (x_i @ x)``, whose rounding does not cancel with them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from ifonly import Explainer, Proximity, Target
from ifonly.errors import OutOfTime
from ifonly.models.forms.compose import magnitude
from ifonly.program.box import Box
from ifonly.runtime.tuning import Answering, Tuning
from reading import read

N = 60


def moved(model: Any, by: float) -> Any:
    """Return a machine for a first column that is larger by an offset: the same planes, other sums."""
    weights = np.ravel(model.coef_)
    model.support_vectors_ = model.support_vectors_ + np.array([by, 0.0])
    model.intercept_ = model.intercept_ - weights[0] * by
    model._intercept_ = -model.intercept_
    return model


def table(seed: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"far": rng.integers(0, 50, N), "b": rng.integers(0, 9, N)})
    score = X["far"] + 3 * X["b"]
    return X, np.where(score + rng.normal(0, 10, N) > score.median(), "yes", "no")


@pytest.mark.parametrize("seed", range(4))
def test_no_proof_leaves_out_what_the_rounding_of_support_vectors_decides(seed: int) -> None:
    X, y = table(seed)
    offset = 1e6
    model = moved(SVC(kernel="linear").fit(X, y), offset)
    X["far"] += int(offset)
    grid = itertools.product(range(X["far"].min(), X["far"].max() + 1), range(X["b"].min(), X["b"].max() + 1))
    points = pd.DataFrame(list(grid), columns=["far", "b"])
    predicted = model.predict(points)
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="none")])
    for i in range(2):
        row = X.iloc[[i]]
        want = "no" if model.predict(row)[0] == "yes" else "yes"
        best = (points[predicted == want] - row.iloc[0]).abs().sum(axis=1).min()
        answer = explainer.explain(row, want=want)[0]
        assert model.predict(answer.row)[0] == want
        assert answer.certificate.bound <= best + 1e-6
        assert not answer.certificate.proven or answer.certificate.objective == pytest.approx(best)


def test_what_was_refused_is_not_called_impossible() -> None:
    X, y = table(0)
    model = moved(SVC(kernel="linear", C=100.0).fit(X, y), 1e6)
    X["far"] += 1_000_000
    assert set(model.predict(X)) == {"no", "yes"}
    tuning = Tuning(answering=Answering(repairs=10))
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="none")], tuning=tuning)
    with pytest.raises(OutOfTime, match=r"rounding by up to .* Scale the columns"):
        explainer.explain(X.iloc[[3]], want="yes")


@pytest.mark.parametrize(
    "model",
    [
        SVC(kernel="linear", C=1e3),
        SVR(kernel="linear", C=1e3),
        make_pipeline(StandardScaler(), SVC(kernel="linear", C=1e3)),
        BaggingRegressor(SVR(kernel="linear", C=1e3), n_estimators=2, random_state=0),
    ],
    ids=["SVC", "SVR", "scaled", "bagged"],
)
def test_sizes_are_those_of_what_is_added_up(model: Any) -> None:
    X, y = table(0)
    target = (y == "yes") * 1.0 if isinstance(model, SVR | BaggingRegressor) else y
    opened, schema = read(model.fit(X, target), X)
    rows = schema.encode(X)
    last = model[-1] if hasattr(model, "steps") else model
    inputs = model[0].transform(X) if hasattr(model, "steps") else X.to_numpy()
    added = [
        (np.abs(m.dual_coef_) @ np.abs(m.support_vectors_) @ np.abs(inputs).T).max()
        for m in getattr(last, "estimators_", [last])
    ]
    size = float(magnitude(opened.form, Box.of(schema, rows[0])).max())
    assert size >= np.mean(added)
    assert size > 10.0 * np.abs(opened.form(rows)).max()  # the plane itself does not tell


def test_values_of_a_regression_by_support_vectors_reach_their_target() -> None:
    X, y = table(1)
    model = SVR(kernel="linear", C=10.0).fit(X, X["far"] + 1.0)
    explainer = Explainer(model, X)
    answer = explainer.explain(X.iloc[[int(X["far"].argmin())]], want=Target(at_least=20.0))[0]
    assert answer.certificate.proven
    assert model.predict(answer.row)[0] >= 20.0
    assert len(y) == N
