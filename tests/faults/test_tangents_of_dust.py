"""Tangents with entries of dust: a decimal number that may only rise had made HiGHS refuse the program of an l2 question."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ifonly import Actionability, CriterionError, Explainer, Infeasible, Proximity, Schema, Sparsity
from portions import one_in


@pytest.mark.parametrize("first", one_in(2, range(4)))
def test_decimals_that_may_only_rise(first: int) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": np.round(rng.uniform(0, 3, 60), 1), "b": np.round(rng.uniform(0, 3, 60), 1)})
    model = LogisticRegression().fit(X, (X.a + X.b > 3.5).astype(int))
    schema = Schema.infer(X, precision={"a": 1, "b": 1})
    explainer = Explainer(model, X, schema=schema, solver="highs only", criteria=[Proximity("l2"), Sparsity(price=0.1)])
    answered = 0
    for k in range(first, 31, 4):
        try:
            answer = explainer.explain({"a": k / 10, "b": 0.3}, want=1, criteria=[Actionability(increase=["a"])])
        except (CriterionError, Infeasible):
            continue
        assert answer[0].certificate.proven
        assert answer.frame().a[0] >= k / 10
        answered += 1
    assert answered
