"""Robust networks without a program: against enumeration of all balls, against the solver, and what stopped ones prove."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier

from ball_cases import enumerated
from ifonly import Explainer, Infeasible, Proximity, Robustness, Sparsity
from ifonly.criteria.robustness.worst_point import worst_point
from ifonly.models.forms import signs
from ifonly.question.found import Ended
from ifonly.question.wrapping import Enclosed
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT
from ifonly.search.balls.networks import NetworkBalls, _balls_of, _Search
from ifonly.search.incumbents import Incumbents
from ifonly.search.inputs.nodes import Nodes
from ifonly.search.progress import Progress

SAME = 1e-5
NEVER = Deadline.never()
SMALL = replace(DEFAULT, centres=replace(DEFAULT.centres, least_units=0))  # networks of few units too
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=["compiled", "numpy"])
def kernel(request: Any, monkeypatch: Any) -> str:
    """The compiled search over signs, and its twin over boxes."""
    if request.param == "compiled" and signs._built is None:
        pytest.skip("the kernel is not built")
    monkeypatch.setenv("IFONLY_KERNEL", request.param)
    return str(request.param)


@cache
def world(seed: int, *, real: bool = False, classes: int = 2) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.integers(0, 8, 90), "b": rng.integers(-3, 4, 90), "c": rng.integers(0, 4, 90)})
    if real:
        X = X + rng.normal(0.0, 0.3, X.shape)
    score = X["a"] - 1.3 * X["b"] + X["c"] * (X["a"] > 4) + rng.normal(0.0, 1.0, 90)
    y = np.searchsorted(np.quantile(score, np.linspace(0.0, 1.0, classes + 1)[1:-1] * 1.2), score)
    layers = ((6,), (5, 4))[seed % 2]
    return X, MLPClassifier(layers, random_state=seed, max_iter=150, solver="lbfgs").fit(X, y)


def asked(seed: int, norm: Any, radius: float, *, tuning: Any = SMALL, **kind: Any) -> tuple[Any, Any, Any, Any]:
    X, model = world(seed, **kind)
    sparse = [Sparsity(at_most=1 + seed % 3, price=0.05)] if seed % 4 == 1 else []
    criteria = [Proximity(("l1", "l2")[seed % 3 == 0]), *sparse, Robustness(radius=radius, norm=norm)]
    explainer = Explainer(model, X, criteria=criteria, tuning=tuning)
    row = X[model.predict(X) == 0].iloc[[seed % 5]]
    return X, model, explainer, row


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_answers_are_those_of_the_enumeration_of_all_balls(norm: Any) -> None:
    answered = 0
    for seed in range(4):
        X, model, explainer, row = asked(seed, norm, (0.15, 0.26, 0.3, 0.4)[seed % 4])
        statement = explainer._ask(row, 1, ()).statement
        assert NetworkBalls().accepts(statement, statement.box())
        strict, weak = enumerated(X, model, statement, 1e-3), enumerated(X, model, statement, -1e-3)
        try:
            answer = explainer.explain(row, want=1, time_limit=60)
        except Infeasible:
            assert strict == np.inf
            continue
        proof = answer[0].certificate
        assert proof.proven
        assert proof.solver == "no solver needed"
        assert weak * (1.0 - SAME) <= proof.objective <= strict * (1.0 + SAME)
        answered += 1
    assert answered >= 2


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(("norm", "seed"), [("linf", 1), ("l2", 0)])
def test_answers_on_continuous_numbers_are_those_of_the_solver(norm: Any, seed: int) -> None:
    X, model, _, row = asked(seed, norm, 0.04, real=True)
    criteria = [Proximity("l1"), Robustness(radius=0.04, norm=norm)]
    ours, theirs = (
        Explainer(model, X, criteria=criteria, solver=solver, tuning=SMALL).explain(row, want=1, time_limit=60)
        for solver in ("auto", "highs only")
    )
    assert ours.status == theirs.status == "optimal"
    assert ours[0].certificate.solver == "no solver needed"
    assert ours[0].certificate.objective == pytest.approx(theirs[0].certificate.objective, rel=SAME, abs=1e-7)


@pytest.mark.usefixtures("kernel")
def test_three_classes_categories_and_what_may_not_change_are_answered_like_by_the_solver() -> None:
    X, _ = world(3, real=True)
    rng = np.random.default_rng(0)
    X = X.assign(d=pd.Categorical(rng.choice(["u", "v", "w"], len(X))))
    y = np.digitize(X["a"] - X["b"] + (X["d"] == "v") * 2.0, [1.0, 4.0])
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from ifonly import Actionability

    columns = make_column_transformer((OneHotEncoder(), ["d"]), remainder="passthrough")
    model = make_pipeline(columns, MLPClassifier((6,), random_state=0, max_iter=150, solver="lbfgs")).fit(X, y)
    row = X[model.predict(X) == 0].iloc[[1]]
    criteria = [Proximity("l1"), Actionability(frozen=["c"]), Robustness(radius=0.05)]
    ours, theirs = (
        Explainer(model, X, criteria=criteria, solver=solver, tuning=SMALL)
        .explain(row, want=1, time_limit=60)[0]
        .certificate
        for solver in ("auto", "highs only")
    )
    assert ours.solver == "no solver needed"
    assert ours.objective == pytest.approx(theirs.objective, rel=SAME)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("real", [False, True])
def test_the_adversary_says_safe_exactly_where_no_dense_point_of_the_ball_flips(norm: Any, *, real: bool) -> None:
    said = set()
    rng = np.random.default_rng(1)
    for seed in range(4):
        _, _, explainer, row = asked(seed, norm, 0.4, real=real)
        statement = explainer._ask(row, 1, ()).statement
        (ball,) = _balls_of(statement, statement.box())
        for u in statement.query.training.U[:40:4]:
            own = rng.uniform(-0.5, 1.2) * float(ball.goal.lead(ball.form(u[None]))[0])
            one = ball._replace(enough=own - 2.0 * abs(own) * rng.random() + 0.5 * ball.room)
            found = worst_point(one, u, NEVER, DEFAULT.balls, DEFAULT.signs)
            assert found is not None
            around = dense(one, u, rng)
            least = float(one.goal.lead(one.goal.read.form(around)).min())
            said.add(found.point is None)
            if found.point is None:
                assert found.closed
                assert least >= one.enough - 0.3 * one.room - 1e-12
            else:
                assert found.least < one.enough
                assert found.least == pytest.approx(float(one.goal.lead(one.goal.read.form(found.point[None]))[0]))
                assert in_ball(one, u, found.point)
    assert said == {True, False}


def dense(ball: Enclosed, u: np.ndarray, rng: Any) -> np.ndarray:
    """Points of a ball: corners and ends of axes, and thousands in between, on the grids of whole numbers."""
    d = np.vstack([rng.uniform(-1.0, 1.0, (2000, 3)), list(itertools.product((-1.0, 0.0, 1.0), repeat=3))])
    if ball.norm == "l2":
        d = np.vstack([d, rng.normal(size=(2000, 3))])
        d /= np.maximum(np.linalg.norm(d, axis=1, keepdims=True), 1.0)
    d = d * ball.reach
    steps = [f.step for f in ball.limits.schema.features]
    d = np.array([np.trunc(d[:, j] / s) * s if s else d[:, j] for j, s in enumerate(steps)]).T
    return np.clip(u + d, np.minimum(ball.limits.lower, u), np.maximum(ball.limits.upper, u))


def in_ball(ball: Enclosed, u: np.ndarray, y: np.ndarray) -> bool:
    share = (y - u) / ball.reach
    inside = np.abs(share).max() if ball.norm == "linf" else np.linalg.norm(share)
    on_grids = all(f.step is None or y[j] == np.rint(y[j]) for j, f in enumerate(ball.limits.schema.features))
    ends = ((y >= ball.limits.lower - 1e-9) & (y <= ball.limits.upper + 1e-9)).all()
    return bool(inside <= 1.0 + 1e-9 and on_grids and ends)


def opened(seed: int, norm: Any, **tuning: Any) -> tuple[_Search, Progress, Any]:
    mine = replace(SMALL, centres=replace(SMALL.centres, **tuning))
    X, model, explainer, row = asked(seed, norm, 0.26, tuning=mine)
    statement = explainer._ask(row, 1, ()).statement
    box, progress = statement.box(), Progress()
    search = _Search(statement, box, _balls_of(statement, box), Incumbents.of(statement, box, progress))
    return search, progress, (X, model, statement)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_search_that_is_stopped_or_refused_proves_no_more_than_there_is(norm: Any, monkeypatch: Any) -> None:
    stopped = 0
    for seed in range(2):
        _, _, (X, model, statement) = opened(seed, norm)
        best = enumerated(X, model, statement, 1e-3)
        for most in (1, 20):
            search, progress, _ = opened(seed, norm, most_nodes=most)
            ended = search.run()
            stopped += ended is Ended.GAVE_UP
            assert min(search.bound, search.left_open, progress.budget) <= best * (1.0 + SAME)
        search, _, _ = opened(seed, norm, most_nodes=60)  # an answer that is refused leaves its point open
        monkeypatch.setattr(search.incumbents, "offer", lambda u: False)
        search.run()
        assert min(search.bound, search.left_open) <= best * (1.0 + SAME)
    assert stopped >= 2


class Looks:
    """A deadline that has passed once it was looked at so often."""

    def __init__(self, often: int) -> None:
        self.often = often

    @property
    def passed(self) -> bool:
        self.often -= 1
        return self.often < 0


@pytest.mark.skipif(signs._built is None, reason="the kernel is not built")
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_compiled_search_that_is_stopped_or_refused_proves_no_more_than_there_is(
    norm: Any, monkeypatch: Any
) -> None:
    ended = set()
    for seed in range(2):
        _, _, (X, model, statement) = opened(seed, norm)
        best = enumerated(X, model, statement, 1e-3)
        for often in (1, 4, 200):
            search, progress, _ = opened(seed, norm, kernel_work=1)
            search.deadline = Looks(often)  # type: ignore[assignment]
            ended.add(search.run_signs())
            assert min(search.bound, search.left_open, progress.budget) <= best * (1.0 + SAME)
        search, _, _ = opened(seed, norm)  # an answer that is refused leaves its point open
        monkeypatch.setattr(search.incumbents, "offer", lambda u: False)
        search.deadline = Looks(200)  # type: ignore[assignment]
        search.run_signs()
        assert min(search.bound, search.left_open) <= best * (1.0 + SAME)
    assert ended == {Ended.LIMIT, Ended.CLOSED}


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("real", [False, True])
def test_bounds_of_nodes_are_about_points_of_the_balls_of_all_their_centres(norm: Any, *, real: bool) -> None:
    rng = np.random.default_rng(2)
    for seed in range(2):
        _, _, explainer, row = asked(seed, norm, 0.4, real=real)
        statement = explainer._ask(row, 1, ()).statement
        box = statement.box()
        search = _Search(statement, box, _balls_of(statement, box), Incumbents.of(statement, box, Progress()))
        (a,) = search.around
        whole, origin = search._whole(), search.free.origin
        ends = np.sort(rng.uniform(whole.low, whole.high, (2, 60, 3)), axis=0)
        ends[0, ::5], ends[1, 1::5] = whole.low, whole.high  # where values end
        if not real:
            ends = np.rint(ends + origin) - origin
        nodes = Nodes(search.free, *ends, np.ones((60, 0), dtype=bool), np.zeros(60, dtype=np.int64))
        x = a.inputs(nodes.near, np.zeros((60, 0), dtype=np.int64))
        shifts, _ = a.worst(x, [], 2)
        moved, rows = a.moved(nodes, shifts)
        for t in rng.random((20, 3)):
            centres = nodes.low + t * (nodes.high - nodes.low)
            centres = centres if real else np.rint(centres + origin) - origin
            there = moved.at(centres) + origin
            assert all(in_ball(a.enclosed, c + origin, y) for c, y in zip(centres, there, strict=True))
            true = a.enclosed.goal.lead(a.enclosed.goal.read.form(there)) - a.enough
            for planes in (rows.planes(), rows.planes_at(moved.at(centres))):
                slopes, constant = moved.pulled_back(planes.slopes)
                bound = (slopes[:, 0] * centres).sum(axis=1) + constant[:, 0] + planes.constant[:, 0]
                assert (bound >= true - 1e-9).all()
