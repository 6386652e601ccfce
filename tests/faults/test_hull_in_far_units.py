"""Hulls whose columns are far from 0 or in huge units, and linear programs that no setting of the solver can end."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from ifonly import Explainer, Manifold, Proximity, Target
from ifonly.criteria.manifold.hull import Ball, Costing, Hull, Meter, Slice
from ifonly.solvers.priced_lp import PricedProgram

# The triangle (0, 0), (1, 0), (0, 1), and the cheapest point of it with x + y >= 1/2 ... seen from (1, 1): (1/2, 1/2).
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("size", [1e-24, 1.0, 1e24])
def test_a_bound_does_not_depend_on_the_unit_of_the_costs(size: float) -> None:
    costing = Costing(np.array([1.0, 1.0]), np.array([2.0, 1.0]) * size, np.zeros(2), np.zeros(2))
    hull = Hull(TRIANGLE, np.arange(2), np.ones(2))
    part = Slice(hull, Ball(), costing, np.zeros(2), np.ones(2))
    bound, x = part.cheapest()
    assert bound == pytest.approx(size, rel=1e-6)  # stay at x = 1, let y fall to 0
    assert x == pytest.approx([1.0, 0.0], abs=1e-6)
    lower, upper = part.extent(
        1.5 * size
    )  # y falls by 1 - t at least while x = t, so that 2 (1 - t) + 1 - (1 - t) <= 1.5
    assert lower == pytest.approx([0.5, 0.0], abs=1e-6)
    assert upper == pytest.approx([1.0, 0.5], abs=1e-6)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_distances_do_not_depend_on_the_origin(norm: str) -> None:
    far = np.array([16777216.0, 1e9])
    hull = Hull(TRIANGLE, np.arange(2), np.ones(2), far)
    wanted = {"l1": 1.0, "l2": np.sqrt(0.5), "linf": 0.5}[norm]
    assert hull.distance(np.array([[1.0, 1.0]]) + far, norm)[0] == pytest.approx(wanted, abs=1e-7)  # type: ignore[arg-type]


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_an_answer_in_a_hull_far_from_zero(offset: float) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 20, 60) + int(offset), "b": rng.integers(0, 10, 60)})
    model = LinearRegression().fit(X - [offset, 0.0], X.a - offset + X.b)
    model.coef_, model.intercept_ = np.array([1.0, 1.0]), -offset
    now = {"a": int(offset) + 2, "b": 1}
    answer = Explainer(model, X).explain(now, want=Target(at_least=12.0), criteria=[Proximity("l1"), Manifold()])
    moved = answer.frame().iloc[0] - [offset, 0.0]
    assert moved.tolist() == [11.0, 1.0] or moved.sum() == pytest.approx(12.0)
    assert answer[0].certificate.proven


def test_a_program_that_cannot_be_ended_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PricedProgram, "_run", lambda self, deadline: None)
    assert Meter(Hull(TRIANGLE, np.arange(2), np.ones(2)), "l1").distance(np.array([0.2, 0.2])) == np.inf
    costing = Costing(np.ones(2), np.ones(2), np.zeros(2), np.zeros(2))
    part = Slice(Hull(TRIANGLE, np.arange(2), np.ones(2)), Ball(), costing, np.zeros(2), np.ones(2))
    assert part.cheapest() == (-np.inf, None)
