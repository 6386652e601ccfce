"""Readable models behind a wall: what is only observed costs hardly more than the proven optimum."""

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from black_boxes import Opaque, people, piped, refused
from ifonly import Explainer, Schema
from portions import one_in

_FACTOR = 1.25  # an answer that is only observed costs at most this much more than the optimum, in these tests


@pytest.mark.parametrize("probabilities", one_in(2, [True, False]), ids=["probabilities", "labels alone"])
@pytest.mark.parametrize(
    "make", one_in(2, [LogisticRegression, lambda: RandomForestClassifier(15, max_depth=4, random_state=0)])
)
def test_cost_against_the_exact_optimum(make: Any, probabilities: bool) -> None:
    X, y = people()
    model = piped(make(), X, y)
    schema = Schema.infer(X, precision=None)  # what is only observed has continuous columns
    exact = Explainer(model, X, schema=schema)
    observed = Explainer(Opaque(model, probabilities), X, schema=schema, surrogate="auto")
    rows = refused(model, X, 4)
    ratios = []
    for i in rows.index:
        best = exact.explain(X.loc[[i]], want="yes")
        found = observed.explain(X.loc[[i]], want="yes")
        assert model.predict(found.frame())[0] == "yes"
        assert best.status == "optimal"
        cost, least = found[0].certificate.objective, best[0].certificate.objective
        assert cost >= least * (1.0 - 1e-6)
        ratios.append(cost / least)
    assert max(ratios) <= _FACTOR
    assert np.median(ratios) <= 1.01
