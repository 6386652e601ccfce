"""Incumbents where few features may change: climbs that begin with another feature, and trades that keep the number."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from ifonly import Explainer, Proximity, Sparsity, Target
from ifonly.runtime.deadline import Deadline
from ifonly.search.cells.trades import trade
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from ifonly.search.reduce import Reducer


def incumbents_of(model: Any, X: pd.DataFrame, most: int, probability: float) -> Incumbents:
    row = pd.DataFrame([dict.fromkeys(X, 0)])
    explainer = Explainer(model, X, criteria=[Proximity("l1"), Sparsity(at_most=most)])
    statement = explainer._ask(row, Target(1, probability=probability), ()).statement
    return Incumbents(Reducer(statement), statement.box(), Progress(deadline=Deadline.never()))


def test_a_climb_that_begins_with_the_wrong_feature_begins_again_with_another_one() -> None:
    rows = [(*values, i < 4) for values in itertools.product(range(2), repeat=3) for i in range(10)]
    table = pd.DataFrame(rows, columns=[*"abc", "some"])
    X, y = table[list("abc")], ((table["b"] & table["c"]) | (table["a"] & table["some"])).astype(int)
    found = incumbents_of(DecisionTreeClassifier(random_state=0).fit(X, y), X, 2, 0.9)
    assert found.climb() is None  # "a" alone lifts the score, and after it nothing does
    best = found.climb_from_each()
    assert best is not None
    assert found.best is best
    assert np.flatnonzero(best.u != found.start).tolist() == [1, 2]


@pytest.mark.parametrize("seed", range(6))
def test_trades_keep_the_number_of_changes_and_are_no_better_than_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 4, size=(400, 4)), columns=list("abcd"))
    y = (X.sum(axis=1) + rng.normal(0, 1, len(X)) > 7).astype(int)
    model = RandomForestClassifier(15, max_depth=5, random_state=seed).fit(X, y)
    found = incumbents_of(model, X, 2, 0.55)
    costs = []
    for values in itertools.product(range(4), repeat=4):
        if sum(v > 0 for v in values) <= 2:
            point = np.array([values], dtype=np.float64)
            if found.reducer.goal.holds(found.query, point)[0]:
                costs.append(float(found.statement.objective(point)[0]))
    found.climb_from_each()
    assert (found.best is None) <= (not costs)
    if found.best is not None:
        before = found.best.cost
        best = trade(found)
        assert best is not None
        assert (best.u != found.start).sum() <= 2
        assert min(costs) <= best.cost <= before
