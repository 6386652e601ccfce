"""Nearest neighbours: the model's own predictions, enumeration of small grids, and what is refused."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ifonly import CriterionError, Explainer, Infeasible, Proximity, Robustness, Target, UnsupportedModel
from ifonly.runtime.tuning import Reading, Tuning
from ifonly.testing import check_reader
from portions import one_in

LENGTHS = {1: (31,), 2: (9, 8), 3: (6, 5, 4)}


def grid(n: int, *, colour: bool = False) -> pd.DataFrame:
    axes: list[Any] = [range(length) for length in LENGTHS[n]]
    names = [f"x{j}" for j in range(n)]
    if colour:
        axes, names = [*axes, ["red", "green", "blue"]], [*names, "colour"]
    return pd.DataFrame(list(itertools.product(*axes)), columns=names)


def known(points: pd.DataFrame, seed: int, classes: int, rows: int = 24) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of a grid, some of them twice, and labels with some noise."""
    rng = np.random.default_rng(seed)
    X = points.iloc[rng.integers(0, len(points), rows)].reset_index(drop=True)
    X = pd.concat([X, X.iloc[:3]], ignore_index=True)
    score = X["x0"] + rng.normal(0.0, 1.5, len(X)) + (0.0 if "colour" not in X else 2.0 * (X["colour"] == "green"))
    y = np.searchsorted(np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]), score)
    return X, y


def costs(points: pd.DataFrame, factual: pd.Series[Any]) -> np.ndarray:
    numbers = [c for c in points if c != "colour"]
    total = sum((points[c] - factual[c]).abs() / (points[c].max() - points[c].min()) for c in numbers)
    return np.asarray(total + (points["colour"] != factual["colour"] if "colour" in points else 0.0), dtype=float)


def agrees_with_enumeration(model: Any, points: pd.DataFrame, seed: int, solver: str) -> None:
    explainer = Explainer(model, points, criteria=[Proximity("l1", scale="range")], solver=solver)
    said = model.predict(points)
    for row in np.random.default_rng(seed).integers(0, len(points), 2):
        for want in sorted(set(model.classes_) - {said[row]}):
            cost = costs(points, points.iloc[row])
            if not (said == want).any():
                with pytest.raises(Infeasible):
                    explainer.explain(points.iloc[[row]], want=want)
                continue
            answer = explainer.explain(points.iloc[[row]], want=want)
            assert answer[0].certificate.objective == pytest.approx(cost[said == want].min(), abs=1e-9)
            assert answer.status == "optimal"


@pytest.mark.parametrize("seed", one_in(2, range(16)))
def test_optimum_equals_enumeration_with_ties_as_the_model_breaks_them(seed: int) -> None:
    points = grid(1 + seed % 3)
    X, y = known(points, seed, 2 + seed % 2)
    algorithm = ("brute", "kd_tree", "ball_tree")[seed % 3]
    agrees_with_enumeration(KNeighborsClassifier(1 + seed % 5, algorithm=algorithm).fit(X, y), points, seed, "auto")


@pytest.mark.parametrize("seed", one_in(2, range(10)))
def test_optimum_equals_enumeration_behind_a_scaler_and_a_one_hot_category(seed: int) -> None:
    points = grid(2, colour=True)
    X, y = known(points, seed, 2 + seed % 2, rows=40)
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), remainder=StandardScaler())
    model = make_pipeline(columns, KNeighborsClassifier(1 + seed % 5)).fit(X, y)
    agrees_with_enumeration(model, points, seed, "auto")


@pytest.mark.parametrize("seed", range(4))
def test_the_program_of_a_solver_has_the_same_optimum(seed: int) -> None:
    points = grid(2)
    X, y = known(points, seed, 2 + seed % 2, rows=12)
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(1 + seed)).fit(X, y)
    agrees_with_enumeration(model, points, seed, "highs only")


@pytest.mark.parametrize("k", [1, 2, 5])
def test_values_of_a_regressor_equal_enumeration(k: int) -> None:
    points = grid(2)
    X, y = known(points, k, 2)
    model = KNeighborsRegressor(k).fit(X, X["x0"] + 0.25 * y)
    said = model.predict(points)
    explainer = Explainer(model, points, criteria=[Proximity("l1", scale="range")])
    low = float(np.quantile(said, 0.8))
    row = int(said.argmin())
    answer = explainer.explain(points.iloc[[row]], want=Target(at_least=low))
    assert answer[0].certificate.objective == pytest.approx(
        costs(points, points.iloc[row])[said >= low].min(), abs=1e-9
    )


def test_a_probability_can_be_asked_for() -> None:
    points = grid(2)
    X, y = known(points, 3, 2)
    model = KNeighborsClassifier(5).fit(X, y)
    share = model.predict_proba(points)[:, 1]
    row = int(share.argmin())
    answer = Explainer(model, points, criteria=[Proximity("l1", scale="range")]).explain(
        points.iloc[[row]], want=Target(1, probability=0.8)
    )
    best = costs(points, points.iloc[row])[share >= 0.8].min()
    assert answer[0].certificate.objective == pytest.approx(best, abs=1e-9)


# -- the conformance kit -----------------------------------------------------------------------------------------------
def people(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["u", "v", "w"], n)})
    return X, (X["a"] + X["b"] > 0).to_numpy().astype(int) + (X["c"] == "w").to_numpy()


def prepared(last: Any) -> Any:
    return make_pipeline(make_column_transformer((OneHotEncoder(), ["c"]), remainder=StandardScaler()), last)


@pytest.mark.parametrize(
    "last", [KNeighborsClassifier(3), KNeighborsClassifier(4, algorithm="brute"), KNeighborsRegressor(3)]
)
def test_conforms(last: Any) -> None:
    X, y = people()
    check_reader(prepared(last).fit(X, y), X, points=600, rows=1)


def test_gaps_that_are_filled_in_are_read() -> None:
    X, y = people()
    holes = X[["a", "b"]].mask(np.random.default_rng(1).random((len(X), 2)) < 0.1)
    model = make_pipeline(SimpleImputer(), KNeighborsClassifier(3)).fit(holes, y > 0)
    check_reader(model, holes, points=600, rows=1)


def test_continuous_numbers_are_proven_and_confirmed() -> None:
    X, y = people(40)
    model = prepared(KNeighborsClassifier(3)).fit(X, y > 0)
    explainer = Explainer(model, X)
    for row in np.flatnonzero(~model.predict(X))[:3]:
        answer = explainer.explain(X.iloc[[row]], want=True)
        assert model.predict(answer[0].row)[0]
        assert answer.status == "optimal"
        assert answer[0].certificate.bound <= answer[0].certificate.objective + 1e-9


def test_an_explainer_is_pickled() -> None:
    X, y = people(40)
    explainer = Explainer(prepared(KNeighborsClassifier(3)).fit(X, y), X)
    again = pickle.loads(pickle.dumps(explainer))
    row = X.iloc[[0]]
    want = next(c for c in (0, 1, 2) if c != explainer.model.estimator.predict(row)[0])
    same = [e.explain(row, want=want)[0].certificate.objective for e in (explainer, again)]
    assert same[0] == same[1]


# -- refusals ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (KNeighborsClassifier(weights="distance"), "weights='uniform'"),
        (KNeighborsRegressor(weights="distance"), "weights='uniform'"),
        (KNeighborsClassifier(metric="manhattan"), "metric='euclidean'"),
        (KNeighborsClassifier(p=1), "metric='euclidean'"),
        (KNeighborsClassifier(metric_params={"w": np.array([1.0, 2.0])}), "metric='euclidean'"),
        (KNeighborsRegressor(metric="chebyshev"), "metric='euclidean'"),
    ],
)
def test_what_has_no_linear_comparison_is_refused_with_a_way_out(model: Any, words: str) -> None:
    X, y = people()
    with pytest.raises(UnsupportedModel, match=words) as refusal:
        Explainer(model.fit(X[["a", "b"]], y), X[["a", "b"]])
    assert 'surrogate="auto"' in str(refusal.value)


def test_several_outputs_are_refused() -> None:
    X, y = people()
    with pytest.raises(UnsupportedModel, match="2 outputs at once"):
        Explainer(KNeighborsRegressor().fit(X[["a", "b"]], np.column_stack([y, y])), X[["a", "b"]])


def test_many_rows_are_refused_or_observed() -> None:
    X, y = people()
    X = X[["a", "b"]]
    model, tuning = KNeighborsClassifier(3).fit(X, y > 0), Tuning(reading=Reading(most_rows=50))
    with pytest.raises(UnsupportedModel, match="keeps 60 rows; up to 50") as refusal:
        Explainer(model, X, tuning=tuning)
    assert 'surrogate="auto"' in str(refusal.value)
    row = X.iloc[[int(np.flatnonzero(~model.predict(X))[0])]]
    answer = Explainer(model, X, tuning=tuning, surrogate="auto").explain(row, want=True)
    assert model.predict(answer[0].row)[0]


def test_what_can_be_read_is_not_observed() -> None:
    X, y = people()
    X = X[["a", "b"]]
    model = KNeighborsClassifier(3).fit(X, y > 0)
    row = X.iloc[[int(np.flatnonzero(~model.predict(X))[0])]]
    assert Explainer(model, X, surrogate="auto").explain(row, want=True).status == "optimal"


def test_a_ball_is_refused_since_only_the_model_orders_rows_at_equal_distance() -> None:
    X, y = people()
    X = X[["a", "b"]]
    model = KNeighborsClassifier(3).fit(X, y > 0)
    row = X.iloc[[int(np.flatnonzero(~model.predict(X))[0])]]
    with pytest.raises(CriterionError, match="equally far"):
        Explainer(model, X).explain(row, want=True, criteria=[Robustness(radius=0.05)])
