"""Points that a solver met on the way keep its rows to its tolerances only: none is kept that breaks a demand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from ifonly import Actionability, Explainer, LinearRow, Proximity
from ifonly.question.found import Found
from ifonly.search.boxes import engine


def test_a_point_that_breaks_a_row_by_a_tolerance_is_not_the_incumbent(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"r": rng.uniform(0, 1, 80), "s": rng.uniform(0, 1, 80)})
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, (X.r > 0.5).astype(int))
    honest = engine.solve_problem

    def with_a_rough_point(problem: Any, *rest: Any) -> Found:
        found = honest(problem, *rest)
        return found if found.u is None else replace(found, pool=(found.u - [0.0, 3e-7], *found.pool))

    monkeypatch.setattr(engine, "solve_problem", with_a_rough_point)
    row = Actionability(rows=[LinearRow({"r": 1.0, "s": 1.0}, at_least=1.4)])
    with pytest.warns(match="The factual itself breaks the demand"):
        answer = Explainer(model, X, solver="highs only").explain(
            {"r": 0.2, "s": 0.3}, want=1, criteria=[row, Proximity("linf")]
        )
    found = answer.frame().iloc[0]
    assert found.r + found.s >= 1.4 - 1e-12
    assert answer[0].certificate.proven
