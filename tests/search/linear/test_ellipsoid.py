"""The engine of Mahalanobis distances: a hand-solved case, the solver beside it, ends of the box, and bounds that hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ifonly import Actionability, Explainer, Infeasible, Proximity
from ifonly.question.found import NO_SOLVER
from ifonly.runtime.tuning import EllipsoidSearch
from ifonly.search.linear.ellipsoid import Ellipsoid, _Numbers
from portions import one_in

pytestmark = pytest.mark.filterwarnings(
    "ignore::ifonly.errors.NotProvenOptimal"
)  # of the solver, which is off by a little
MAHALANOBIS = [Proximity("mahalanobis")]


def world(seed: int) -> tuple[Any, pd.DataFrame]:
    """Correlated numbers in units that are far apart, every other time with categories beside them."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    Z = rng.normal(size=(150, k)) @ rng.normal(size=(k, k))
    score = Z / Z.std(axis=0) @ rng.normal(size=k)
    X = pd.DataFrame(Z * 10.0 ** rng.integers(-4, 5, size=k), columns=[f"x{i}" for i in range(k)])
    names = ["c", "d"][: seed % 3]
    for name in names:
        X[name] = rng.choice(list("abc"), len(X))
        score = score + 0.7 * (X[name] == "b") + 1.5 * (X[name] == "c")
    columns = make_column_transformer((OneHotEncoder(), names), remainder=StandardScaler())
    return make_pipeline(columns, LogisticRegression()).fit(X, score > np.quantile(score, 0.8)), X


def asked(seed: int, criteria: list[Any], solver: str = "auto") -> tuple[Explainer, pd.DataFrame]:
    model, X = world(seed)
    return Explainer(model, X, criteria=criteria, solver=solver), X[~model.predict(X)].iloc[:1]


@pytest.mark.parametrize("seed", one_in(3, range(6)))
def test_it_agrees_with_the_solver(seed: int) -> None:
    rows = asked(seed, MAHALANOBIS)[1]
    for i in range(len(rows)):
        said = [
            asked(seed, MAHALANOBIS, solver)[0].explain(rows.iloc[[i]], want=True) for solver in ("auto", "highs only")
        ]
        ours, solved = (s[0].certificate for s in said)
        assert (
            said[0].solver == NO_SOLVER
        ) == ours.proven  # where jumps meet an end of the box, it is left to the solver
        assert ours.proven or seed % 3
        assert solved.bound <= ours.objective * (1 + 1e-9)
        assert ours.bound <= ours.objective <= solved.objective * (1 + 1e-6)


def test_a_case_by_hand() -> None:
    """Two numbers with the covariance S; a row a'd >= g costs g^2 / (a'Sa) at least, at d = g Sa / (a'Sa)."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.multivariate_normal([0.0, 0.0], [[4.0, 1.0], [1.0, 1.0]], 400), columns=["a", "b"])
    model = LogisticRegression().fit(X, X.a + X.b > 2.0)
    row = X[~model.predict(X)].iloc[[0]]
    answer = Explainer(model, X, criteria=MAHALANOBIS).explain(row, want=True)[0]
    S, w = (
        np.cov(X.to_numpy(), rowvar=False) + 1e-6 * np.diag(np.diag(np.cov(X.to_numpy(), rowvar=False))),
        model.coef_[0],
    )
    need = -float(w @ row.to_numpy()[0] + model.intercept_[0])
    assert answer.certificate.objective == pytest.approx(need**2 / (w @ S @ w), rel=1e-6)
    assert np.allclose(answer.row.to_numpy()[0] - row.to_numpy()[0], need * S @ w / (w @ S @ w), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("seed", [0, 6])
def test_ends_of_the_box_bind(seed: int) -> None:
    explainer, rows = asked(seed, MAHALANOBIS)
    solving, _ = asked(seed, MAHALANOBIS, "highs only")
    free = explainer.explain(rows.iloc[[0]], want=True)[0]
    change = max(free.changes, key=lambda c: abs(c.after - c.before))
    ends = sorted([change.before, 0.5 * (change.before + change.after)])
    rule = [Actionability(ranges={change.feature: tuple(ends)})]
    try:
        held = explainer.explain(rows.iloc[[0]], want=True, criteria=rule)
    except Infeasible:
        with pytest.raises(Infeasible):
            solving.explain(rows.iloc[[0]], want=True, criteria=rule)
        return
    assert held.solver == NO_SOLVER
    assert held[0].certificate.objective > free.certificate.objective
    solved = solving.explain(rows.iloc[[0]], want=True, criteria=rule)[0].certificate
    assert solved.bound * (1 - 1e-9) <= held[0].certificate.objective <= solved.objective * (1 + 1e-6)


def test_more_than_all_numbers_can_gain_is_impossible() -> None:
    model, X = world(0)
    rows = X[~model.predict(X)].iloc[[0]]
    held = {name: (float(rows[name].iloc[0]) - 1e-12, float(rows[name].iloc[0]) + 1e-12) for name in X}
    with pytest.raises(Infeasible):
        Explainer(model, X, criteria=[*MAHALANOBIS, Actionability(ranges=held)]).explain(rows, want=True)


@pytest.mark.parametrize("seed", range(30))
def test_no_point_costs_less_than_the_bound(seed: int) -> None:
    """By any tangent and multiplier, also those of a method that was stopped."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    factor = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-3, 4, size=n)
    low, high = -rng.uniform(0, 2, n), rng.uniform(0, 2, n)
    slope = rng.normal(size=n)
    places = np.arange(n)
    numbers = _Numbers(places, places, factor, slope, low, high, EllipsoidSearch(rounds=int(rng.integers(0, 9))))
    points = rng.uniform(low, high, size=(2000, n))
    gains, costs = points @ slope, ((points @ factor.T) ** 2).sum(axis=1)
    gain = float(np.quantile(gains, 0.7))
    moves, price = numbers.cheapest(gain)
    enough = gains >= gain
    assert numbers.bound(moves, price, gain) <= costs[enough].min()
    assert numbers.bound(rng.normal(size=n), abs(float(rng.normal())), gain) <= costs[enough].min()
    whole = numbers.whole()
    assert whole is not None
    assert (whole.square * np.maximum(gains, 0.0) ** 2 <= costs * (1 + 1e-9)).all()
    assert whole.reach >= gains.max()


def test_grids_and_prices_are_for_others() -> None:
    model, X = world(0)
    rows = X[~model.predict(X)].iloc[[0]]
    priced = Explainer(model, X).explain  # the default policy has a price per change
    assert priced(rows, want=True, criteria=MAHALANOBIS, time_limit=20).solver != NO_SOLVER
    whole = X.assign(x0=(10 * X.x0 / X.x0.std()).round().astype(int))
    model = model.fit(whole, world(0)[0].predict(X))
    statement = Explainer(model, whole, criteria=MAHALANOBIS)._ask(whole.iloc[[0]], None, []).statement
    assert not Ellipsoid().accepts(statement, statement.box())
