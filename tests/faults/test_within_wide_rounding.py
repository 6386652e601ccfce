"""Columns around 1e9: answers within rounding of a lost tie, ways out for a row among others, clashes that are none.

All were found by the battery (seed 20261202): a whole-numbered column far from zero made the margin wide, and a cheaper row
that the model accepts lay inside it; a network gave the row of a way out another last digit among other rows; a solver called
demands impossible together that the end of a column meets. Between the rows of a grid, the bound of rounding was the
margin, and answers that the model accepts by thirty roundings were left out.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ifonly import Actionability, Explainer, Implies, Infeasible, Proximity, Schema, Target
from ifonly.question.abilities import verified
from ifonly.search.candidates import first_candidate

FAR = 16_777_215


def line(edge: tuple[int, int, int], lead: float) -> tuple[Any, pd.DataFrame]:
    """A line over columns far from zero in which one row of the grid is class 1 by a lead; class 0 wins a tie."""
    X = pd.DataFrame(
        list(product(range(10**9, 10**9 + 4), range(FAR, FAR + 3), range(3, 7))), columns=["far", "near", "small"]
    )
    y = (X["small"] + 0.7 * (X["near"] - FAR) > 4.5).astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    last = model[-1]
    last.coef_[:] = [[-1.5e-5, 0.7756, 1.139]]
    at = pd.DataFrame([edge], columns=X.columns)
    last.intercept_[:] += lead - model.decision_function(at)[0]
    return model, X


@pytest.mark.parametrize("solver", ["auto", "highs only"])
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_the_best_row_may_lie_within_rounding_of_a_lost_tie(norm: Any, solver: str) -> None:
    for lead in (1e-7, 3e-8):
        model, X = line((10**9 + 1, FAR, 5), lead)
        row = pd.DataFrame([(10**9 + 1, FAR, 4)], columns=X.columns)
        assert model.predict(row)[0] == 0
        explainer = Explainer(model, X, criteria=[Proximity(norm, scale="none")], solver=solver)
        found = explainer.explain(row, want=1)[0]
        moved = (X - row.iloc[0]).abs().to_numpy(dtype=float)
        costs = moved.sum(axis=1) if norm == "l1" else moved.max(axis=1)
        best = costs[model.predict(X) == 1].min()
        assert model.predict(found.row)[0] == 1
        assert found.certificate.proven
        assert found.certificate.objective == pytest.approx(best, rel=1e-6)


def test_what_the_model_refuses_within_rounding_is_no_answer() -> None:
    model, X = line((10**9 + 1, FAR, 5), -1e-8)  # class 0 by a hair: another row is the best
    row = pd.DataFrame([(10**9 + 1, FAR, 4)], columns=X.columns)
    answer = Explainer(model, X, criteria=[Proximity("l1", scale="none")]).explain(row, want=1, proof=True)
    best = (X - row.iloc[0]).abs().sum(axis=1)[model.predict(X) == 1].min()
    assert answer[0].certificate.objective == pytest.approx(best)
    assert answer[0].certificate.proven


def test_a_proof_within_rounding_is_replayed() -> None:
    from ifonly import verify

    model, X = line((10**9 + 1, FAR, 5), 1e-7)
    row = pd.DataFrame([(10**9 + 1, FAR, 4)], columns=X.columns)
    answer = Explainer(model, X, criteria=[Proximity("l1", scale="none")]).explain(row, want=1, proof=True)
    assert answer[0].certificate.margin == 0.0
    verdict = verify(answer.record(), model, X, proof=answer.proof)
    assert verdict.ok, str(verdict)
    assert next(check.ok for check in verdict.checks if check.name == "proof") is True


def told(weights: tuple[float, float], intercept: float, X: pd.DataFrame) -> LogisticRegression:
    """A logistic regression with these coefficients."""
    model = LogisticRegression()
    model.classes_, model.n_features_in_, model.feature_names_in_ = np.array([0, 1]), 2, np.array(X.columns, object)
    model.coef_, model.intercept_ = np.array([weights]), np.array([intercept])
    return model


@pytest.mark.filterwarnings("ignore:.*The search has closed")
@pytest.mark.parametrize("width", [10.0, 0.1, 0.01])
@pytest.mark.parametrize("solver", ["auto", "highs only"])
def test_between_rows_the_bound_of_rounding_is_no_margin(width: float, solver: str) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"far": 1e9 + width * rng.random(200), "near": rng.random(200)})
    model = told((3.0 / width, 2.0), -3.0 / width * 1e9 - 2.5, X)
    schema = Schema.infer(X, numeric=["far", "near"])
    explainer = Explainer(model, X, schema=schema, criteria=[Proximity("l1", scale="range")], solver=solver)
    w, intercept = [Fraction(float(v)) for v in model.coef_[0]], Fraction(float(model.intercept_[0]))
    ranges = [Fraction(float(np.ptp(X[c]))) for c in X]
    rounding = 2.0**-52 * 2.0 * 3.0 / width * 1e9  # of two large terms
    for i in np.flatnonzero(model.predict(X) == 0)[:3]:
        row = X.iloc[[i]]
        found = explainer.explain(row, want=1)[0]
        x = [Fraction(float(v)) for v in row.iloc[0]]
        missing = -(w[0] * x[0] + w[1] * x[1] + intercept)
        rates = [wk * rk for wk, rk in zip(w, ranges, strict=True)]
        # of these two features, the one with the larger rate does it alone; no bound is above that cost and the margin's
        exact = float(missing / max(rates))
        assert model.predict(found.row)[0] == 1
        # floats around 1e9 are so far apart that a cost is known to a few of them
        assert found.certificate.gap <= 1e-6 + 16.0 * np.spacing(1e9) / width / exact
        assert found.certificate.margin <= 4.001 * rounding
        assert found.certificate.objective <= (exact + float(8.0 * rounding / max(rates))) * (1.0 + 1e-6)
        assert found.certificate.bound <= exact + float(found.certificate.margin / max(rates)) + 1e-12


@pytest.mark.filterwarnings("ignore:.*The search has closed")
@pytest.mark.parametrize("far", [0, 10**9])
def test_the_end_of_a_range_on_the_very_threshold_is_an_answer(far: int) -> None:
    """Found by the battery (20261303:2402673): called impossible by a margin of 1e-7, in one unit of two."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"far": far + rng.integers(0, 3, 60), "near": 10.0 * rng.random(60)})
    for _ in range(8):
        model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, X["near"])
        model[-1].coef_, model[-1].intercept_ = rng.normal(size=2), float(rng.normal())
        explainer = Explainer(model, X, criteria=[Proximity("linf")])
        row = X.sort_values("near").iloc[[30]]
        end = row.assign(near=X["near"].max() if model[-1].coef_[1] > 0 else X["near"].min())
        rules = Actionability(frozen=["far"])
        found = explainer.explain(row, want=Target(at_least=float(model.predict(end)[0])), criteria=[rules])[0]
        assert model.predict(found.row)[0] >= model.predict(end)[0]
        assert found.certificate.gap <= (1e-6 if far == 0 else 1e-3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [13, 18, 28])
def test_a_way_out_leaves_room_for_digits_that_come_and_go(seed: int) -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"w": rng.integers(0, 5, 80), "far": rng.integers(2, 6, 80) * 1e9})
    y = 0.2 * X["w"] - X["far"] / 1e10
    model = MLPRegressor(hidden_layer_sizes=(6,), solver="lbfgs", max_iter=60, random_state=seed).fit(X, y)
    grid = pd.DataFrame(list(product(range(5), np.arange(2, 6) * 1e9)), columns=X.columns)
    among, alone = model.predict(grid), [model.predict(grid.iloc[[i]])[0] for i in range(len(grid))]
    best = min(float(among.max()), max(alone))
    with pytest.raises(Infeasible) as raised:
        Explainer(model, X).explain(X.iloc[[0]], want=Target(at_least=best + 1.0))
    ends = [re.fullmatch(r"outcome \(.*\) -> \((.*), (.*)\)", way.change) for way in raised.value.relaxations]
    (low,) = (float(found[1]) for found in ends if found is not None)
    assert best - 1e-4 < low < best - 2e-7


@pytest.mark.filterwarnings("ignore")
def test_candidates_meet_all_demands_or_there_is_none() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(1, 4, 50), "b": rng.integers(-3, 4, 50)})
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, X["a"] + X["b"] > 2)
    seen = 0
    for at_least, then in product((1, 2, 3), (-2, 0, 2)):
        rules = Actionability(
            frozen=["b"], ranges={"a": (1, at_least)}, implies=[Implies({"a": (None, 2)}, {"b": (None, then)})]
        )
        asked = Explainer(model, X)._ask({"a": 1, "b": 1}, True, [rules])
        for demands in (asked.statement.demands, [d for d in asked.statement.demands if d is not asked.goal]):
            statement = replace(asked.statement, demands=tuple(demands))
            found = first_candidate(statement, statement.box())
            whole = pd.DataFrame(list(product(range(1, at_least + 1), [1])), columns=["a", "b"])
            fine = (whole["a"] > 2) | (whole["b"] <= then)
            if asked.goal in demands:
                fine &= model.predict(whole)
            if found is None:
                continue
            seen += 1
            assert fine.any()
            for demand in demands:
                assert verified(demand, asked.query, found[None, :])[0]
    assert seen
