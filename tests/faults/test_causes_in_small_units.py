"""Rounding is a matter of a feature's unit: a step of 1e-9 that follows from another is no rounding."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from ifonly import Causality, Cause, Explainer, Proximity, Schema


@pytest.mark.parametrize("power", [0, 9])
@pytest.mark.parametrize("grid", [True, False])
def test_a_consequence_is_drawn_in_every_unit(power: int, grid: bool) -> None:
    unit = 10.0**-power
    whole = pd.DataFrame({"cause": np.tile(np.arange(5), 4), "effect": np.repeat([1, 2, 3, 4, 5], 4)})
    X = (whole * unit).round(power) if grid else whole * unit
    model = make_pipeline(MinMaxScaler(), DecisionTreeClassifier()).fit(X, whole.cause >= 1)
    schema = Schema.infer(X, precision=dict.fromkeys(X.columns, power)) if grid else Schema.infer(X.astype(float))
    follows = Causality({"effect": Cause(["cause"], coefficients={"cause": 1.0})})
    now = {"cause": 0.0, "effect": round(2 * unit, power)}
    answer = Explainer(model, X.astype(float), schema=schema).explain(
        now, want=True, criteria=[Proximity("l1"), follows]
    )
    found = answer.frame().iloc[0]
    moved = found.cause - now["cause"]
    assert moved > 0.4 * unit
    assert found.effect - now["effect"] == pytest.approx(moved, rel=1e-6)
