"""Thresholds that a model in float32 compares as probabilities: turned into scores of float64, they are a rounding away."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import FixedThresholdClassifier

from ifonly import Actionability, Diversity, Explainer, Implies, Proximity, Target

GRID = pd.DataFrame(list(itertools.product(range(4), range(4))), columns=list("ab"))
Y = (GRID["a"] * 3 + GRID["b"] * 2 > 8).astype(int)


def pure_forest(seed: int) -> object:
    """A forest of XGBoost whose leaves are pure, so that scores lie on a lattice."""
    xgboost = pytest.importorskip("xgboost")
    of = {"n_estimators": 4, "max_depth": 12, "reg_lambda": 0, "min_child_weight": 0, "base_score": 0.5, "n_jobs": 1}
    model = xgboost.XGBRFClassifier(**of, random_state=seed, subsample=0.6, colsample_bynode=0.6)
    return model.fit(GRID, Y)


def costs_from(i: int) -> np.ndarray:
    return np.abs(GRID.to_numpy() - GRID.to_numpy()[i]).sum(axis=1).astype(float)


@pytest.mark.frameworks
@pytest.mark.parametrize("seed", [9, 20, 30, 32])
def test_a_probability_within_rounding_of_a_lattice_of_scores(seed: int) -> None:
    model = pure_forest(seed)
    said = model.predict_proba(GRID)[:, 1].astype(float)
    explainer = Explainer(model, GRID, criteria=[Proximity("l1", scale="none")])
    for p in np.unique(said):
        for i in np.flatnonzero(said < p)[:3]:
            answer = explainer.explain(GRID.iloc[[i]], want=Target(1, probability=float(p)))[0]
            assert answer.certificate.objective == costs_from(i)[said >= p].min()


@pytest.mark.frameworks
@pytest.mark.parametrize("seed", range(4))
def test_a_fixed_threshold_on_a_probability_that_a_row_has(seed: int) -> None:
    model = pure_forest(seed)
    for p in np.unique(model.predict_proba(GRID)[:, 1].astype(float))[1:-1]:
        fixed = FixedThresholdClassifier(model, threshold=float(p), response_method="predict_proba").fit(GRID, Y)
        good = fixed.predict(GRID) == 1
        i = int(np.flatnonzero(~good)[0])
        answer = Explainer(fixed, GRID, criteria=[Proximity("l1", scale="none")]).explain(GRID.iloc[[i]], want=1)[0]
        assert answer.certificate.objective == costs_from(i)[good].min()


def test_the_least_float_is_no_probability_to_fail_at() -> None:
    model = RandomForestClassifier(5, random_state=0).fit(GRID, Y)
    row = GRID.iloc[[int(model.predict_proba(GRID)[:, 1].argmin())]]
    answer = Explainer(model, GRID).explain(row, want=Target(1, probability=5e-324))[0]
    assert model.predict_proba(answer.row)[0, 1] > 0.0


def test_a_further_answer_at_a_distance_beside_a_rule_that_costs_nothing() -> None:
    X = pd.DataFrame(list(itertools.product(range(5), range(5))), columns=["a", "b"])
    model = RandomForestClassifier(5, random_state=0, bootstrap=False, max_features=None)
    model.fit(X, ((X["b"] >= 3) & ~((X["a"] == 4) & (X["b"] == 3))).astype(int))
    rule = Actionability(implies=[Implies({"b": (3, 4)}, {"a": (2, 4)})])
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="range", weights={"b": 0.0}), rule])
    found = explainer.explain(X.iloc[[0]], want=1, n=2, criteria=[Diversity("iterate", distance=0.25)])
    assert [a.certificate.objective for a in found] == pytest.approx([0.5, 0.75])
    assert all(a.certificate.proven for a in found)


@pytest.mark.slow
def test_a_radius_is_not_halved_for_ever_where_changes_are_free() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 12)), columns=[f"x{i}" for i in range(12)])
    score = X.iloc[:, :6].sum(axis=1) + X["x6"] * X["x7"] + rng.normal(0.0, 1.0, 600)
    model = RandomForestClassifier(100, random_state=0).fit(X, (score > 0.0).astype(int))
    row = X.iloc[[int(np.argsort(model.predict_proba(X)[:, 1])[5])]]
    free = {f"x{k}": 0.0 for k in range(4, 12)}
    explainer = Explainer(model, X, criteria=[Proximity("linf", scale="range", weights=free)])
    answer = explainer.explain(row, want=Target(1, probability=0.8), time_limit=60.0)[0]
    assert answer.certificate.proven
    assert answer.certificate.objective == 0.0
