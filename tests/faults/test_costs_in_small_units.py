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

from ifonly import Explainer, Proximity, Schema, Sparsity
from ifonly.program.box import Box
from portions import diagonals

FAMILIES = {
    "linear": LogisticRegression(),
    "forest": RandomForestClassifier(20, max_depth=4, random_state=0),
    "network": MLPClassifier((6,), random_state=0, max_iter=500),
}


@pytest.mark.parametrize(("family", "norm"), diagonals(3, FAMILIES, ["l1", "l2", "linf"]))
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


@pytest.mark.parametrize(("unit", "norm"), diagonals(3, [1e-6, 1e-3, 0.1], ["l1", "l2", "linf"]))
def test_the_end_of_a_range_lies_on_the_grid_that_it_was_meant_for(unit: float, norm: str) -> None:
    """5 * 1e-6 is a float below 5e-6: the factual at the end of its column had no value left, so everything was too dear."""
    rng = np.random.default_rng(7)
    for seed in range(4):
        X = pd.DataFrame({"a": rng.integers(0, 6, 120) * unit, "b": rng.integers(0, 4, 120)})
        y = (X["a"] / unit + 2 * X["b"] + rng.normal(0.0, 1.0, 120) > 6).astype(int)
        model = RandomForestClassifier(4, max_depth=3, random_state=seed).fit(X, y)
        digits = round(-np.log10(unit))
        schema = Schema.infer(X, precision={"a": digits})
        house = [Proximity(norm, scale="range"), Sparsity(price=0.0)]
        explainer = Explainer(model, X, schema=schema, criteria=house)
        grid = pd.DataFrame([(round(k * unit, digits), b) for k in range(6) for b in range(4)], columns=["a", "b"])
        for k in np.flatnonzero((X["a"] == X["a"].max()) | (X["a"] == X["a"].min()))[:6]:
            row = X.iloc[[int(k)]]
            want = 1 - int(model.predict(row)[0])
            moved = (grid - row.iloc[0]).abs().to_numpy() / (X.max() - X.min()).to_numpy()
            costs = {"l1": moved.sum(axis=1), "l2": (moved**2).sum(axis=1), "linf": moved.max(axis=1)}[norm]
            reached = costs[model.predict(grid) == want]
            answer = explainer.explain(row, want=want)
            assert answer[0].certificate.proven
            assert answer[0].certificate.objective == pytest.approx(reached.min(), rel=2e-6)


@pytest.mark.parametrize("digits", range(1, 10))
def test_a_box_around_the_end_of_a_decimal_range_is_not_empty(digits: int) -> None:
    """Half a step to either side of a value that the column holds there is that value, by whichever float it came."""
    step = 10.0**-digits
    X = pd.DataFrame({"a": np.arange(-7, 8) * step})
    for first in range(7):
        for last in range(8, 15):
            part = X.iloc[first : last + 1]
            schema = Schema.infer(part, precision={"a": digits})
            for hat in (part["a"].iloc[0], part["a"].iloc[-1]):
                box = Box.of(schema, np.array([hat]))
                box.narrow(0, hat - 0.5 * step * 0.9, hat + 0.5 * step * 0.9)
                assert box.empty() is None
                assert box.lower[0] <= round(float(hat), digits) <= box.upper[0]
