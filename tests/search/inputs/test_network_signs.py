"""Plain questions by signs of units: against boxes, the solver and samples; and what a search that is stopped proves."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier

from ifonly import Explainer, Proximity, Sparsity
from ifonly.models.forms import signs as kernel
from ifonly.question.found import Ended, Found
from ifonly.runtime.tuning import DEFAULT, PlainSigns
from ifonly.search.engines import WITH_SOLVER, find
from ifonly.search.inputs.best_first import opened
from ifonly.search.inputs.networks import Networks, Search
from ifonly.search.inputs.signs import BySigns
from ifonly.search.progress import Progress
from ifonly.solvers.backend import Limits

pytestmark = pytest.mark.skipif(kernel._built is None, reason="the kernel is not built")
N = 8  # numbers of the data


def asked(seed: int, *extra: Any, layers: tuple[int, ...] = (12, 8), norm: Any = "l1", **tuned: Any) -> Any:
    """Return a statement about a network of drawn weights over continuous numbers; one row in five has the outcome."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(0.0, 1.0, (120, N)), columns=list("abcdefgh"))
    with warnings.catch_warnings(action="ignore"):
        model = MLPClassifier(layers, max_iter=1, random_state=0).fit(X, rng.integers(0, 2, len(X)))
    for weights in (*model.coefs_, *model.intercepts_):
        weights[...] = rng.normal(0.0, 1.0, weights.shape)
    h = X.to_numpy()
    for weights, constant in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
        h = np.maximum(h @ weights + constant, 0.0)
    scores = (h @ model.coefs_[-1])[:, 0]
    model.intercepts_[-1][:] = -np.quantile(scores, 0.8)
    tuning = replace(DEFAULT, plain_signs=PlainSigns(**tuned))
    explainer = Explainer(model, X, criteria=[Proximity(norm, scale="range"), *extra], tuning=tuning)
    row = X.iloc[[int(scores.argmin())]]
    question = explainer._ask(row, 1, ())
    return explainer, question.goal.with_first_margin(question.statement)


def begun(statement: Any) -> tuple[Search, BySigns]:
    box = statement.box()
    opening = opened(statement, box, Progress(limits=Limits(gap=1e-6)))
    assert not isinstance(opening, Found)
    question, incumbents, box = opening
    search = Search(statement, question, box, incumbents)
    return search, BySigns(search, search.layers, statement.query.tuning.plain_signs)


@pytest.mark.parametrize("seed", range(4))
def test_the_solver_agrees_about_continuous_numbers(seed: int) -> None:
    explainer, statement = asked(seed, layers=((9,), (6, 5), (4, 4, 4))[seed % 3])
    search, signs = begun(statement)
    assert signs.comes_first()
    assert signs.run(10**12) is Ended.CLOSED
    theirs = find(statement, explainer.backend, Limits(), engines=WITH_SOLVER)
    best = search.progress.best
    assert best is not None
    assert theirs.u is not None
    assert best.cost == pytest.approx(float(statement.objective(theirs.u[None])[0]), rel=3e-6)
    assert bool(statement.query.goal.holds(statement.query, best.u[None])[0])


def test_no_sampled_point_is_cheaper() -> None:
    rng = np.random.default_rng(0)
    for seed in range(4, 10):
        _, statement = asked(seed)
        search, signs = begun(statement)
        assert signs.run(10**12) is Ended.CLOSED
        best, box = search.progress.best, statement.box()
        assert best is not None
        # of the points that cost as much: towards single features, and towards mixtures of a few of them
        way = rng.dirichlet(np.full(N, 0.2), 20_000) * rng.choice([-1.0, 1.0], (20_000, N))
        u = statement.query.factual + way * (box.upper - box.lower)
        u = (
            statement.query.factual
            + (u - statement.query.factual) * (0.999 * best.cost / statement.objective(u))[:, None]
        )
        inside = box.contains(u)
        assert inside.sum() > 1000
        assert not statement.query.goal.holds(statement.query, u[inside]).any()


@pytest.mark.parametrize("refuses", [False, True])
def test_a_search_that_is_stopped_or_refused_proves_no_more_than_there_is(
    refuses: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = set()
    for seed in range(4):
        for extra in ([], [Sparsity(price=0.05)], [Sparsity(at_most=2)]):  # bounds hold, though it does not take them
            explainer, statement = asked(seed, *extra, kernel_work=1)
            answer = find(statement, explainer.backend, Limits(), engines=(Networks(),))
            assert answer.u is not None
            least = float(statement.objective(answer.u[None])[0]) * (1.0 + 1e-6)
            for work in (1, 3_000, 3_000_000):
                search, signs = begun(statement)
                if refuses:
                    monkeypatch.setattr(search.incumbents, "offer", lambda u: False)
                ended.add(signs.run(work))
                assert min(signs.bound, search.progress.value) <= least
                assert signs.run(work) is Ended.CLOSED or signs.bound <= least
    assert Ended.GAVE_UP in ended
    assert refuses or Ended.CLOSED in ended


def test_it_takes_even_costs_only() -> None:
    def takes(statement: Any) -> bool:
        search, _ = begun(statement)
        return BySigns.takes(search, search.layers, statement.query.tuning.plain_signs)

    assert takes(asked(0)[1])
    assert not takes(asked(0, most_inputs=N - 1)[1])
    for other in (asked(0, norm="l2"), asked(0, Sparsity(price=0.1)), asked(0, Sparsity(at_most=3))):
        assert not takes(other[1])


def test_a_proof_is_kept_by_boxes_alone() -> None:
    explainer, statement = asked(1, layers=(4,))
    runs: list[BySigns] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BySigns, "run", lambda self, work: runs.append(self) or Ended.GAVE_UP)
        kept = find(statement, explainer.backend, Limits(), engines=(Networks(),), proof=True)
        assert not runs
        find(statement, explainer.backend, Limits(), engines=(Networks(),))
    assert runs
    assert kept.trail


def test_one_that_is_stuck_is_given_up_and_boxes_go_on() -> None:
    explainer, statement = asked(2, layers=(4,), first_look=1, least_done=2.0, kernel_work=1)
    search, signs = begun(statement)
    assert signs.run(10**12) is Ended.GAVE_UP
    assert signs.run(10**12) is Ended.GAVE_UP
    found = find(statement, explainer.backend, Limits(), engines=(Networks(),))
    other = find(asked(2, layers=(4,))[1], explainer.backend, Limits(), engines=(Networks(),))
    assert found.ended is other.ended is Ended.CLOSED
    assert search.progress.best is not None
