"""A linear row over complete columns holds or not whatever is missing elsewhere in the row."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from ifonly import Actionability, Explainer, FactualViolatesDemand, LinearRow


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 10, 300), "b": rng.integers(0, 10, 300), "c": rng.uniform(0, 1, 300)})
    X.loc[::7, "c"] = np.nan
    return Explainer(HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(X, X.a + X.b > 9), X)


@pytest.mark.parametrize("c", [0.5, np.nan])
@pytest.mark.parametrize("least", [-20, -3, 2])
def test_the_answer_is_the_best_that_enumeration_finds(explainer: Explainer, c: float, least: int) -> None:
    row = {"a": 5, "b": 3, "c": c}
    grid = pd.DataFrame(list(itertools.product(range(10), range(10))), columns=["a", "b"]).assign(c=c)
    said = explainer.model.estimator.predict(grid)
    moves = np.abs(grid[["a", "b"]] - [5, 3]).to_numpy() / 9
    cost = moves.sum(axis=1) + 0.1 * (moves > 0).sum(axis=1)
    best = cost[said & (grid.a - grid.b >= least).to_numpy()].min()
    rule = Actionability(rows=[LinearRow({"a": 1, "b": -1}, at_least=least)], frozen=["c"])
    answer = explainer.explain(row, want=True, criteria=[rule])  # a warning is an error here
    assert answer[0].certificate.objective == pytest.approx(best, abs=1e-9)
    assert answer[0].certificate.proven


def test_a_row_that_the_factual_breaks_is_told(explainer: Explainer) -> None:
    rule = Actionability(rows=[LinearRow({"a": 1, "b": -1}, at_least=3)])
    with pytest.warns(FactualViolatesDemand, match="1 a -1 b in"):
        answer = explainer.explain({"a": 5, "b": 3, "c": np.nan}, want=True, criteria=[rule])
    assert (answer.frame().a - answer.frame().b).iloc[0] >= 3
