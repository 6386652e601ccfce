"""Ties and margins: no confirmed row is cheaper than a proven answer, and what is impossible is impossible."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ifonly import Actionability, CriterionError, Explainer, Infeasible, Target
from ifonly.solvers.registry import available_solvers

TIED = pd.DataFrame({"x": [0, 0, 1, 1, 2, 2, 9, 9]})
LETTERS = np.array(["a", "a", "b", "c", "c", "c", "b", "b"])  # at x = 1 b and c tie, and predict says b


@pytest.mark.parametrize("solver", ["auto", "highs only", "scip only"])
def test_a_tie_with_a_later_class_is_ours(solver: str) -> None:
    if solver != "auto" and solver.removesuffix(" only") not in available_solvers():
        pytest.skip(f"{solver} is not installed")
    model = DecisionTreeClassifier().fit(TIED, LETTERS)
    explainer = Explainer(model, TIED, solver=solver)
    answer = explainer.explain({"x": 0}, want="b")
    assert answer.frame().x[0] == 1
    assert answer[0].certificate.objective == pytest.approx(1 / 9 + 0.1)
    assert answer[0].certificate.proven
    within = explainer.explain({"x": 0}, want="b", criteria=[Actionability(ranges={"x": (0, 5)})])
    assert within.frame().x[0] == 1


def test_a_huge_column_does_not_decide_what_counts_as_enough() -> None:
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"x1": rng.uniform(0, 1e9, 200), "x2": rng.uniform(0, 10, 200)})
    model = LinearRegression().fit(X, X.x1 + X.x2)
    model.coef_, model.intercept_ = np.array([1.0, 1.0]), 0.0
    row = {"x1": float(X.x1.iloc[0]), "x2": 3.0}
    wanted = model.predict(pd.DataFrame([row]))[0] + 2
    answer = Explainer(model, X).explain(row, want=Target(at_least=wanted), criteria=[Actionability(frozen=["x1"])])
    assert answer.frame().x2[0] == pytest.approx(5.0, abs=1e-4)  # 1e9 is known to 1e-7
    assert answer[0].certificate.proven


def test_one_outlier_does_not_move_a_proven_optimum() -> None:
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"income": np.r_[rng.normal(5e4, 1e4, 300), 1e10], "debts": rng.uniform(0, 10, 301)})
    model = LogisticRegression().fit(X.iloc[:10], [0, 1] * 5)
    model.coef_, model.intercept_ = np.array([[1e-4, -0.5]]), np.array([-5.0])
    answer = Explainer(model, X).explain(
        {"income": 51000.0, "debts": 1.0}, want=1, criteria=[Actionability(frozen=["income"])]
    )
    assert answer.frame().debts[0] == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("more", [0.5, 5, 50])
def test_a_heavy_tail_does_not_either(more: float) -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"assets": np.exp(rng.normal(14, 3, 500)), "stores": rng.uniform(1, 50, 500)})
    y = 0.05 * X.assets + 3 * X.stores + rng.normal(0, 1, 500)
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, y)
    row = X.iloc[int(np.argmin(np.abs(X.assets - 2e4)))].to_dict()
    row["stores"] = 20.0
    wanted = model.predict(pd.DataFrame([row]))[0] + more
    needed = 20 + more / (model[-1].coef_[1] / model[0].scale_[1])
    answer = Explainer(model, X).explain(row, want=Target(at_least=wanted), criteria=[Actionability(frozen=["assets"])])
    assert answer.frame().stores[0] == pytest.approx(needed, rel=1e-6)
    assert answer[0].certificate.margin < 1e-3


def test_what_blame_proposes_at_a_tie_helps() -> None:
    tried = 0
    for seed in range(14):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({name: rng.integers(0, 5, 40) for name in "abcd"})
        y = (X.a + X.b - X.c + rng.normal(0, 1, 40) > 2).astype(int)
        model = RandomForestClassifier(4, max_features=1, random_state=seed).fit(X, y)
        explainer = Explainer(model, X)
        p = model.predict_proba(X)[:, 1]
        for i in np.flatnonzero(np.abs(p - 0.5) < 1e-12)[:2]:
            frozen = ["a", "b", "c"]
            try:
                explainer.explain(X.iloc[i], want=1, criteria=[Actionability(frozen=frozen)])
            except Infeasible as impossible:
                for way in impossible.relaxations:
                    if way.change.startswith("unfreeze "):
                        rest = [name for name in frozen if name != way.change.split()[1]]
                        explainer.explain(X.iloc[i], want=1, criteria=[Actionability(frozen=rest)])
                        tried += 1
            except CriterionError:
                continue
    assert tried


def test_thresholds_taken_from_the_scores_themselves() -> None:
    """A tuned threshold of 0.33333333333333337 beside a forest's 0.3333333333333333: a float apart is not a tie."""
    grid = pd.DataFrame(list(itertools.product(range(6), repeat=3)), columns=list("abc"))
    asked = 0
    for seed in (30, 39):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.integers(0, 6, (60, 3)), columns=list("abc"))
        y = (X.a + X.b - X.c + rng.normal(0, 1, 60) > 3).astype(int)
        forest = RandomForestClassifier(3, max_features=1, random_state=seed)
        model = TunedThresholdClassifierCV(forest, cv=3).fit(X, y)
        said = model.predict(grid)
        for i in rng.integers(0, 216, 4):
            wanted = 1 - said[i]
            if not (said == wanted).any():
                continue
            cost = _cost(grid, grid.iloc[i], X)
            certificate = Explainer(model, X).explain(grid.iloc[i], want=int(wanted))[0].certificate
            assert certificate.objective == pytest.approx(cost[said == wanted].min(), abs=1e-6)
            asked += 1
    assert asked


@pytest.mark.frameworks
def test_probabilities_that_a_model_in_float32_attains() -> None:
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 6, 80), "b": rng.integers(0, 6, 80)})
    y = (X.a + X.b + rng.normal(0, 2, 80) > 5).astype(int)
    model = xgboost.XGBClassifier(n_estimators=4, max_depth=2, n_jobs=1).fit(X, y)
    grid = pd.DataFrame(list(itertools.product(range(6), repeat=2)), columns=list("ab"))
    p = model.predict_proba(grid)[:, 1].astype(float)
    row = grid.iloc[int(p.argmin())]
    for asked in np.unique(p)[1:]:
        best = _cost(grid, row, X)[p >= asked].min()
        answer = Explainer(model, X).explain(row, want=Target(1, probability=float(asked)))
        assert answer[0].certificate.objective == pytest.approx(best, abs=1e-6)


@pytest.mark.frameworks
def test_values_that_a_model_attains_by_adding_in_its_own_order() -> None:
    catboost = pytest.importorskip("catboost")
    grid = pd.DataFrame(list(itertools.product(range(6), repeat=2)), columns=list("ab"))
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.integers(0, 6, (60, 2)), columns=list("ab"))
        options: dict[str, Any] = {"verbose": 0, "allow_writing_files": False}
        model = catboost.CatBoostRegressor(iterations=4, depth=2, random_seed=seed, **options)
        model.fit(X, 1000 * (X.a * 1.3 - X.b * 0.7 + rng.normal(0, 0.3, 60)))
        said = model.predict(grid)
        for value in rng.choice(np.unique(said)[1:], 4):
            row = grid.iloc[int(rng.choice(np.flatnonzero(said < value)))]
            answer = Explainer(model, X).explain(row, want=Target(at_least=float(value)))
            best = _cost(grid, row, X)[said >= value].min()
            assert answer[0].certificate.objective == pytest.approx(best, abs=1e-6)


def _cost(grid: pd.DataFrame, row: pd.Series[Any], X: pd.DataFrame) -> Any:
    return ((grid - row).abs() / (X.max() - X.min())).sum(axis=1) + 0.1 * (grid != row).sum(axis=1)


def test_trees_that_split_on_nothing() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 5, 40), "b": rng.integers(0, 5, 40)})
    model = RandomForestClassifier(3, min_samples_leaf=40, random_state=0).fit(X, (X.a > 1).astype(int))
    other = int(1 - model.predict(X.iloc[[0]])[0])
    for solver in ("auto", "highs only"):
        with pytest.raises(Infeasible):
            Explainer(model, X, solver=solver).explain({"a": 1, "b": 1}, want=other)


def test_ranges_of_a_float32_column_are_kept_by_its_own_floats() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(0, 1, 100).astype(np.float32), "b": rng.uniform(0, 1, 100).astype(np.float32)})
    model = LogisticRegression(C=100.0).fit(X, (X.a + X.b > 1).astype(int))
    explainer = Explainer(model, X)
    for end in rng.uniform(0.3, 0.9, 30):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = explainer.explain(
                    {"a": 0.2, "b": 0.1}, want=1, criteria=[Actionability(ranges={"a": (None, float(end))})]
                )
        except Infeasible:
            continue
        assert float(answer.frame().a[0]) <= end
