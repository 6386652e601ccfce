"""Nearest rows at equal distances, or a float apart: only the model knows which of them count, and its word is shown."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ifonly import Explainer, Infeasible, OutOfTime, Proximity, Schema, Target

VALUE = 103.83580310366325
VALUES = [96.14403968963288, VALUE, float(np.nextafter(VALUE, 200.0)), 111.52756651769363, 269.54466345337]


def table(seed: int) -> pd.DataFrame:
    """Return 38 rows on 15 places, so that most rows have twins, or neighbours by the last bit of a number."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"w": rng.integers(3, 6, 38), "r": rng.choice(VALUES, 38)})


def labels(X: pd.DataFrame, seed: int) -> Any:
    """Return labels that twins do not share."""
    return np.where(np.random.default_rng(seed).random(len(X)) + 0.1 * (X["w"] - 4) < 0.5, "no", "yes")


def asked(model: Any, X: pd.DataFrame, row: pd.DataFrame, want: Any, solver: str) -> Any:
    """Return the answer, None: there is none; nothing else may be raised."""
    house = [Proximity("l1", scale="range")]
    explainer = Explainer(model, X, schema=Schema.infer(X, precision=None), criteria=house, solver=solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return explainer.explain(row, want=want, time_limit=1.0)
        except Infeasible:
            return None


@pytest.mark.parametrize("solver", ["auto", "highs only"])
@pytest.mark.parametrize("seed", range(4))
def test_the_class_that_is_shown_and_every_answer_are_the_models_own(seed: int, solver: str) -> None:
    X = table(seed)
    model = make_pipeline(StandardScaler(), KNeighborsClassifier()).fit(X, labels(X, seed))
    places = X.drop_duplicates().reset_index(drop=True)
    for i in range(0, len(places), 5):
        row = places.iloc[[i]]
        now = model.predict(row)[0]
        other = "no" if now == "yes" else "yes"
        answer = asked(model, X, row, other, solver)
        if answer is None:
            assert not (model.predict(places) == other).any()
            continue
        assert answer.prediction == now
        assert answer.score == pytest.approx(model.predict_proba(row)[0, list(model.classes_).index(other)])
        assert list(model.predict(answer.rows())) == [other] == [answer[0].prediction]
        if answer.status == "optimal":
            span = (X.max() - X.min()).to_numpy()
            good = places[model.predict(places) == other]
            costs = (np.abs(good.to_numpy() - row.to_numpy()) / span).sum(axis=1)
            assert answer[0].certificate.objective <= costs.min() * (1.0 + 1e-6) + 1e-9


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_within_a_vote_the_models_word_counts(voting: str) -> None:
    X = table(11)
    members = [("near", KNeighborsClassifier(3)), ("one", KNeighborsClassifier(1)), ("line", LogisticRegression())]
    model = make_pipeline(StandardScaler(), VotingClassifier(members, voting=voting)).fit(X, labels(X, 11))
    for i in range(0, len(X), 9):
        row = X.iloc[[i]]
        now = model.predict(row)[0]
        other = "no" if now == "yes" else "yes"
        answer = asked(model, X, row, other, "auto")
        if answer is not None:
            assert answer.prediction == now
            assert list(model.predict(answer.rows())) == [other]


def test_the_value_that_is_shown_is_the_regressors_own() -> None:
    X = table(5)
    y = np.random.default_rng(5).normal(size=len(X))
    model = make_pipeline(StandardScaler(), KNeighborsRegressor(3)).fit(X, y)
    for i in range(0, len(X), 6):
        row = X.iloc[[i]]
        now = float(model.predict(row)[0])
        answer = asked(model, X, row, Target(at_least=now + 0.2), "auto")
        if answer is not None:
            assert answer.prediction == pytest.approx(now, rel=1e-12)
            assert float(model.predict(answer.rows())[0]) >= now + 0.2


@pytest.mark.parametrize("seed", range(3))
def test_what_is_lost_in_the_squares_of_a_large_column_is_a_tie(seed: int) -> None:
    """Brute force subtracts squares around 1e18: what columns of a few units decide is rounding, and not proven."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"w": rng.integers(0, 6, 30), "r": rng.choice([0.9e9, 1.24468985e9, 2.9e9], 30)})
    y = np.where(rng.random(30) < 0.5, "no", "yes")
    model = KNeighborsClassifier(1, algorithm="brute").fit(X, y)
    for i in range(0, len(X), 8):
        row = X.iloc[[i]]
        now = model.predict(row)[0]
        answer = asked(model, X, row, "no" if now == "yes" else "yes", "highs only")
        if answer is None or answer.status != "optimal":
            continue
        line = pd.DataFrame({"w": float(row["w"].iloc[0]), "r": np.linspace(0.9e9, 2.9e9, 20_001)}).astype(
            {"w": "int64"}
        )
        cost = np.abs(line["r"] - float(row["r"].iloc[0])) / float(X["r"].max() - X["r"].min())
        good = model.predict(line) != now
        assert not good.any() or answer[0].certificate.objective <= cost[good].min() * 1.01 + 1e-9


def test_nothing_away_from_a_tie_is_no_proof_that_there_is_nothing() -> None:
    """By hand: of twins the first one counts, so 10 is never said. Away from their tie there is nothing: no proof."""
    X = pd.DataFrame({"a": [0.0, 0.0, 1.0, 1.0], "b": [0.5, 0.5, 0.5, 0.5]})
    model = KNeighborsRegressor(1, algorithm="brute").fit(X, [0.0, 10.0, 1.0, 1.0])
    with pytest.raises(OutOfTime, match="equally far") as error:
        asked(model, X, X.iloc[[2]], Target(at_least=9.0), "highs only")
    assert error.value.bound <= 0.5
