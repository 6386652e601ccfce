"""A decimal number whose only move is to the very end of its range still moves, for nested answers."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ifonly import Actionability, Diversity, Explainer, Schema
from portions import one_in


@pytest.mark.parametrize("direction", ["increase", "decrease"])
@pytest.mark.parametrize("start", one_in(2, [0.3, 0.4, 1.0, 1.1]))
def test_every_set_of_features_that_exists_is_found(start: float, direction: str) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": np.round(rng.integers(2, 13, 200) / 10, 1), "b": rng.integers(0, 10, 200)})
    model = LogisticRegression().fit(X, (X.b + X.a > 5.5).astype(int))
    explainer = Explainer(model, X, schema=Schema.infer(X, precision={"a": 1}))
    rule = Actionability(**{direction: ["a"]})
    answer = explainer.explain({"a": start, "b": 2}, want=1, n=3, criteria=[Diversity("features", nested=True), rule])
    may = [k / 10 for k in range(2, 13) if (k / 10 >= start if direction == "increase" else k / 10 <= start)]
    grid = pd.DataFrame(list(itertools.product(may, range(10))), columns=["a", "b"])
    good = grid[model.predict(grid) == 1]
    exist = {frozenset(n for n, now in (("a", start), ("b", 2)) if row[n] != now) for _, row in good.iterrows()}
    assert {frozenset(c.feature for c in a.changes) for a in answer} == exist
    assert len(answer) == len(exist) >= 2
    assert answer.notes[0].startswith(f"only {len(exist)} of 3: no further answer changes another set")


def test_the_twin_knows_how_little_is_no_move_of_a_continuous_number() -> None:
    X = pd.DataFrame({"r": np.linspace(0.0, 1.0, 50), "b": np.arange(50) % 5})
    model = LogisticRegression().fit(X, (X.r + X.b > 2.5).astype(int))
    explainer = Explainer(model, X)
    answer = explainer.explain({"r": 0.5, "b": 0}, want=1, n=2, criteria=[Diversity("features", nested=True)])
    moved = abs(answer[1].row.r[0] - 0.5)
    assert [c.feature for c in answer[0].changes] == ["b"]
    assert moved == pytest.approx(1e-4)
