"""Costs far below one: a gap is relative to the cost, however small that is.

Costs below 1e-6 were once treated as if they were that large. In a column of nanometres, squared, every cost is below
1e-18, so the first answer that came along was called proven: one of them cost three times the best.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ifonly import Explainer, Proximity, Sparsity

FAMILIES = {
    "linear": LogisticRegression(),
    "forest": RandomForestClassifier(20, max_depth=4, random_state=0),
    "network": MLPClassifier((6,), random_state=0, max_iter=500),
}


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_proof_in_small_units_is_a_proof(family: str, norm: str) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    y = (X["a"] + X["b"] * X["c"] > 0.2).astype(int)
    costs = []
    for power in (0, -13, -30, 30):
        unit = 2.0**power  # exact in floats, so that the models are the same
        model: ClassifierMixin = make_pipeline(StandardScaler(), FAMILIES[family]).fit(X * unit, y)
        explainer = Explainer(model, X * unit, criteria=[Proximity(norm, scale="none"), Sparsity(price=0.0)])
        row = (X * unit)[model.predict(X * unit) == 0].iloc[[0]]
        answer = explainer.explain(row, want=1)
        assert answer[0].certificate.proven
        assert answer[0].certificate.gap <= 1e-6
        moved = np.abs((answer[0].row - row).to_numpy()[0] / unit)
        costs.append({"l1": moved.sum(), "l2": (moved**2).sum(), "linf": moved.max()}[norm])
    assert costs[1:] == pytest.approx([costs[0]] * 3, rel=2e-6)
