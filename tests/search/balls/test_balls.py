"""Robust trees without a program: against enumeration of all balls, against the solver, and what stopped ones prove."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from ifonly import Explainer, Infeasible, Proximity, Robustness, Sparsity
from ifonly.criteria.robustness.keeps_lead import KeepsLead
from ifonly.question.found import Ended
from ifonly.runtime.tuning import DEFAULT, NoGoodSearch
from ifonly.search.balls import trees
from ifonly.search.balls.tables import BallTables
from ifonly.search.balls.trees import Balls, _balls_of, _Search
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from portions import one_in

needs_kernel = pytest.mark.skipif(trees._built is None, reason="the package was installed without a compiler")
SAME = 1e-6


def world(seed: int, *, real: bool = False) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.integers(0, 9, 90), "b": rng.integers(-4, 5, 90), "c": rng.integers(0, 4, 90)})
    if real:
        X = X[["a", "b"]] + rng.normal(0.0, 0.3, (90, 2))
    score = X["a"] - 1.3 * X["b"] + (0.0 if real else X["c"] * (X["a"] > 4)) + rng.normal(0.0, 1.0, 90)
    y = (score > np.quantile(score, 0.6)).astype(int)
    model: Any
    if seed % 2:
        model = RandomForestClassifier(5 + 2 * (seed % 4), max_depth=4, random_state=seed)
    else:
        model = GradientBoostingClassifier(n_estimators=10, max_depth=3, random_state=seed)
    return X, model.fit(X, y)


def criteria(seed: int) -> list[Any]:
    norm = ("l1", "l2")[seed % 3 == 0]
    return [Proximity(norm), *([Sparsity(at_most=1 + seed % 3, price=0.05)] if seed % 4 == 1 else [])]


def enumerated(X: pd.DataFrame, model: Any, statement: Any, slack: float) -> float:
    """The least cost of a point all of whose ball has the wanted class, by more than `slack`; infinity: there is none."""
    (ball,) = (d for d in statement.demands if isinstance(d, KeepsLead))
    query = statement.query
    axes = [np.arange(X[name].min(), X[name].max() + 1) for name in X]
    grid = np.array(list(itertools.product(*axes)))
    lead = model.predict_proba(pd.DataFrame(grid, columns=list(X)))[:, 1] - 0.5
    fine = (lead > slack).reshape([len(axis) for axis in axes])
    best = np.inf
    reach = ball.reach
    shifts = list(itertools.product(*(range(-int(r), int(r) + 1) for r in np.floor(reach + 1e-9))))
    if ball.norm == "l2":
        shifts = [s for s in shifts if sum((v / r) ** 2 for v, r in zip(s, reach, strict=True) if v) <= 1.0]
    U = grid.astype(float)
    costs = statement.costs().per_feature(query, U).sum(axis=1)
    changed = (np.rint(U) != query.factual).sum(axis=1)
    most = min((d.at_most() for d in statement.demands if hasattr(d, "at_most")), default=len(axes))
    for at, cost, moved in zip(itertools.product(*(range(len(a)) for a in axes)), costs, changed, strict=True):
        if moved > most or cost >= best:
            continue
        around = (tuple(i + s for i, s in zip(at, shift, strict=True)) for shift in shifts)
        inside = (p for p in around if all(0 <= i < len(a) for i, a in zip(p, axes, strict=True)))
        if all(fine[p] for p in inside):
            best = float(cost)
    return best


@needs_kernel
@pytest.mark.parametrize("norm", one_in(2, ["linf", "l2"]))
@pytest.mark.parametrize("first", one_in(2, [0, 12]))
def test_answers_are_those_of_the_enumeration_of_all_balls(norm: Any, first: int) -> None:
    answered = 0
    for seed in range(first, first + 12):
        X, model = world(seed)
        radius = (0.13, 0.26, 0.3, 0.4)[seed % 4]
        explainer = Explainer(model, X, criteria=[*criteria(seed), Robustness(radius=radius, norm=norm)])
        row = X[model.predict(X) == 0].iloc[[seed % 5]]
        statement = explainer._ask(row, 1, ()).statement
        assert Balls().accepts(statement, statement.box())
        strict, weak = enumerated(X, model, statement, SAME), enumerated(X, model, statement, -SAME)
        try:
            answer = explainer.explain(row, want=1, time_limit=30)
        except Infeasible:
            assert strict == np.inf
            continue
        proof = answer[0].certificate
        assert proof.proven
        assert weak * (1.0 - SAME) <= proof.objective <= strict * (1.0 + SAME)
        answered += 1
    assert answered >= 6


@needs_kernel
@pytest.mark.parametrize("norm", one_in(2, ["linf", "l2"]))
def test_answers_on_continuous_numbers_are_those_of_the_solver(norm: Any) -> None:
    for seed in (0, 1, 2, 4, 5):  # the solver takes long for the fourth
        X, model = world(seed, real=True)
        costs: list[float] = []
        row = X[model.predict(X) == 0].iloc[[seed % 5]]
        for solver in ("auto", "highs only"):
            ours = [Proximity("l1"), Robustness(radius=0.04, norm=norm)]
            try:
                answer = Explainer(model, X, criteria=ours, solver=solver).explain(row, want=1, time_limit=120)
                assert answer.status == "optimal"
                costs.append(answer[0].certificate.objective)
            except Infeasible:
                costs.append(np.inf)
        assert costs[0] == pytest.approx(costs[1], rel=1e-5, abs=1e-7)


@needs_kernel
@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize(
    "numbers",
    [
        NoGoodSearch(
            **{one.name: 0 for one in fields(NoGoodSearch) if one.name not in ("next_slack", "most_patience")}
        ),
        NoGoodSearch(first_slack=5.0, next_slack=0.6, unit=3.0, least_part=0.8, most_patience=1, pull_attacks=1),
    ],
    ids=["nothing", "odd"],
)
def test_other_numbers_take_another_way_to_the_same_cost(norm: Any, numbers: NoGoodSearch) -> None:
    for seed in (1, 2, 5):
        X, model = world(seed)
        row, mine = X[model.predict(X) == 0].iloc[[seed % 5]], [*criteria(seed), Robustness(radius=0.26, norm=norm)]
        proofs = []
        for tuning in (DEFAULT, replace(DEFAULT, no_goods=numbers)):
            try:
                proofs.append(Explainer(model, X, criteria=mine, tuning=tuning).explain(row, want=1)[0].certificate)
            except Infeasible:
                proofs.append(None)
        if None in proofs:
            assert proofs == [None, None]
            continue
        assert all(proof.proven for proof in proofs)
        assert proofs[1].objective == pytest.approx(proofs[0].objective, rel=2e-6)


def opened(seed: int, norm: Any, **tuning: Any) -> tuple[_Search, Progress, Any]:
    X, model = world(seed)
    mine = replace(DEFAULT, balls=replace(DEFAULT.balls, **tuning))
    explainer = Explainer(model, X, criteria=[*criteria(seed), Robustness(radius=0.26, norm=norm)], tuning=mine)
    statement = explainer._ask(X[model.predict(X) == 0].iloc[[0]], 1, ()).statement
    box, progress = statement.box(), Progress()
    incumbents = Incumbents.of(statement, box, progress)
    wanted = _balls_of(statement, box)
    assert wanted
    tables = BallTables(statement, box, wanted, incumbents.start)
    return _Search(statement, tables, incumbents, progress), progress, (X, model, statement)


@needs_kernel
@pytest.mark.parametrize("norm", [pytest.param("linf", marks=pytest.mark.slow), "l2"])
def test_a_search_that_is_stopped_or_refused_proves_no_more_than_there_is(norm: Any, monkeypatch: Any) -> None:
    stopped = 0
    for seed in range(8):
        _, _, (X, model, statement) = opened(seed, norm)
        best = enumerated(X, model, statement, SAME)
        for runs in (1, 3, 10):
            search, progress, _ = opened(seed, norm, kernel_work=200)
            ended = search.run(most_runs=runs)
            assert min(search.bound, progress.budget) <= best * (1.0 + SAME)
            stopped += ended is Ended.LIMIT
        search, _, _ = opened(seed, norm)  # an answer that is refused leaves its node open
        monkeypatch.setattr(search.incumbents, "offer", lambda u: False)
        assert search.run(most_runs=200) is not Ended.CLOSED
        assert search.bound <= best * (1.0 + SAME) or best == np.inf
    assert stopped >= 4


@needs_kernel
def test_out_of_memory_the_bound_still_holds() -> None:
    ends = set()
    for most in (20_000, 60_000, 200_000):
        for seed in range(6):
            search, progress, (X, model, statement) = opened(seed, "l2", kernel_bytes=most)
            ends.add(search.run(most_runs=500))
            best = enumerated(X, model, statement, SAME)
            assert min(search.bound, progress.budget) <= best * (1.0 + SAME)
    assert ends
