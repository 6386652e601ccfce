"""Robust linear models without a solver: against enumeration of all balls, closed formulas, and the cutting-set method."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ball_cases import enumerated
from ifonly import Actionability, Explainer, Infeasible, Proximity, Robustness, Schema, Sparsity
from ifonly.criteria.robustness.keeps_lead import KeepsLead
from ifonly.criteria.robustness.worst_point import worst_point
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT
from ifonly.search.balls.linear import LinearBalls

SAME = 1e-5
ROOM = 1e-4  # the cutting-set method asks for a little more lead than is enough
NEVER = Deadline.never()


def world(seed: int, *, real: bool = False) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.integers(0, 8, 90), "b": rng.integers(-3, 4, 90), "c": rng.integers(0, 4, 90)})
    if real:
        X = X + rng.normal(0.0, 0.3, X.shape)
    score = X @ rng.choice([-1.5, -0.7, 0.4, 1.0], 3) + rng.normal(0.0, 1.0, 90)
    y = (score > score.median()).astype(int)
    return X, LogisticRegression(random_state=0).fit(X, y)


def asked(seed: int, norm: Any, radius: float) -> tuple[pd.DataFrame, Any, Any, Any]:
    X, model = world(seed)
    sparse = [Sparsity(at_most=1 + seed % 3, price=0.05)] if seed % 4 == 1 else []
    criteria = [Proximity(("l1", "l2")[seed % 3 == 0]), *sparse, Robustness(radius=radius, norm=norm)]
    row = X[model.predict(X) == 0].iloc[[seed % 5]]
    return X, model, Explainer(model, X, criteria=criteria), row


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_answers_on_grids_are_those_of_the_enumeration_of_all_balls(norm: Any) -> None:
    answered = closed = 0
    for seed in range(16):
        X, model, explainer, row = asked(seed, norm, (0.15, 0.26, 0.35, 0.4)[seed % 4])
        statement = explainer._ask(row, 1, ()).statement
        strict, weak = enumerated(X, model, statement, 1e-3), enumerated(X, model, statement, -1e-3)
        try:
            answer = explainer.explain(row, want=1, time_limit=60)
        except Infeasible:
            assert strict == np.inf
            continue
        proof = answer[0].certificate
        assert proof.proven
        assert weak * (1.0 - SAME) <= proof.objective <= strict * (1.0 + SAME)
        answered += 1
        closed += proof.solver == "no solver needed"
    assert answered >= 8
    assert closed >= (answered if norm == "linf" else 3)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_without_ends_the_hurt_is_the_dual_norm_of_the_slopes(norm: Any) -> None:
    for seed in range(6):
        X, model = world(seed, real=True)
        schema = Schema.infer(X, bounds=dict.fromkeys(X, (-100.0, 100.0)), numeric=list(X))
        explainer = Explainer(
            model,
            X,
            schema=schema,
            criteria=[Proximity("l1", scale="none"), Robustness(radius=0.1, norm=norm)],
        )
        row = X[model.predict(X) == 0].iloc[[seed]]
        slopes, span = model.coef_[0], (X.max() - X.min()).to_numpy()
        hurt = np.linalg.norm(0.1 * span * slopes, 1 if norm == "linf" else 2)
        least = (hurt - model.decision_function(row)[0]) / np.abs(slopes).max()
        proof = explainer.explain(row, want=1)[0].certificate
        assert proof.proven
        assert proof.solver == "no solver needed"
        assert proof.objective == pytest.approx(least, rel=1e-4)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_answers_next_to_ends_of_values_are_those_of_the_cutting_set_method(norm: Any) -> None:
    closed = 0
    for seed in range(4):
        X, model = world(seed, real=True)
        fixed = Actionability(frozen=["c"]) if seed % 2 else Sparsity(price=0.02)
        criteria = [Proximity(("l1", "l2")[seed % 2]), fixed, Robustness(radius=0.12, norm=norm)]
        row = X[model.predict(X) == 0].nsmallest(3, "b").iloc[[seed % 3]]  # "b" is near its lower end
        ours, theirs = (
            Explainer(model, X, criteria=criteria, solver=solver).explain(row, want=1, time_limit=60)[0].certificate
            for solver in ("auto", "highs only")
        )
        assert ours.proven
        assert ours.objective == pytest.approx(theirs.objective, rel=ROOM, abs=1e-7)
        closed += ours.solver == "no solver needed"
    assert closed == 4 if norm == "linf" else closed >= 1


def test_a_number_whose_ball_is_cut_off_gains_nothing_until_it_is_whole() -> None:
    X = pd.DataFrame({"a": np.linspace(0.0, 10.0, 101), "b": np.tile([0.0, 1.0], 51)[:101]})
    model = LogisticRegression().fit(X, (X["a"] > 5.0).astype(int))
    model.coef_, model.intercept_ = np.array([[1.0, 0.0]]), np.array([-5.0])
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="none"), Robustness(radius=0.2)])
    answer = explainer.explain(X.iloc[[5]], want=1)  # a = 0.5, off by 2: the ball begins at 0 until a is 2
    assert answer.frame()["a"].iloc[0] == pytest.approx(7.0, abs=1e-3)
    assert answer[0].certificate.solver == "no solver needed"


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_adversary_of_a_linear_score_is_exact(norm: Any) -> None:
    for seed in range(6):
        X, model = world(seed, real=seed % 2 == 0)
        explainer = Explainer(model, X, criteria=[Proximity("l1"), Robustness(radius=0.2, norm=norm)])
        row = X[model.predict(X) == 0].iloc[[seed % 5]]
        statement = explainer._ask(row, 1, ()).statement
        (ball,) = (d for d in statement.demands if isinstance(d, KeepsLead))
        for u in X[model.predict(X) == 1].to_numpy(float)[:12]:
            found = worst_point(ball.over_ball, u, NEVER, DEFAULT.balls, DEFAULT.signs)
            assert found is not None
            axes = [np.arange(-r, r + 1e-9, 1.0 if seed % 2 else r / 12) if r else [0.0] for r in ball.reach]
            shifts = np.array(list(itertools.product(*axes)))
            if norm == "l2":
                shifts = shifts[((shifts / np.maximum(ball.reach, 1e-9)) ** 2).sum(axis=1) <= 1.0]
            around = np.clip(u + shifts, X.min().to_numpy(), X.max().to_numpy())
            broken = model.decision_function(pd.DataFrame(around, columns=X.columns)).min() < 0.0
            if broken:
                assert found.point is not None
            if found.point is not None:
                assert model.decision_function(pd.DataFrame([found.point], columns=X.columns))[0] < ball.enough


def test_other_models_and_other_shapes_are_left_to_the_cutting_set_method() -> None:
    X, model = world(0, real=True)
    row = X[model.predict(X) == 0].iloc[[0]]
    others = [LogisticRegression(C=0.1).fit(X, model.predict(X))]
    explainer = Explainer(model, X)
    plain = explainer._ask(row, 1, [Robustness(radius=0.02)]).statement
    assert LinearBalls().accepts(plain, plain.box())
    for robust in (Robustness(radius=0.02, models=others), Robustness(margin=0.1)):
        statement = explainer._ask(row, 1, [robust]).statement
        assert not LinearBalls().accepts(statement, statement.box())
    refined = tuple(
        d.stricter(np.full(3, 0.1)) if isinstance(d, KeepsLead) else d for d in plain.demands
    )  # in the middle of the cutting-set method
    assert not LinearBalls().accepts(replace(plain, demands=refined), plain.box())
