"""A way out is one to the last digit: by the model's own arithmetic, and with every end as it was given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from ifonly import Actionability, Explainer, Infeasible, Schema, Target


class Single(DecisionTreeRegressor):  # type: ignore[misc]
    """A tree whose predictions are rounded to a few digits upwards, as single precision may do."""

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(super().predict(X)) + 2e-6


def test_the_outcome_within_reach_is_the_models_own() -> None:
    X = pd.DataFrame({"a": np.arange(10)})
    explainer = Explainer(DecisionTreeRegressor().fit(X, np.arange(10) / 7 + 0.3), X)
    explainer.model.estimator.__class__ = Single
    with pytest.raises(Infeasible) as error:
        explainer.explain({"a": 9}, want=Target(at_most=0.1))
    (way,) = error.value.relaxations
    least = float(way.change.split(", ")[-1].removesuffix(")"))
    assert explainer.model.estimator.predict(X).min() <= least <= 0.3 + 1e-5
    assert way.amount == pytest.approx(0.2, abs=1e-5)


@pytest.mark.filterwarnings("ignore::ifonly.errors.FactualViolatesDemand")
def test_the_other_end_of_a_range_is_not_rounded() -> None:
    X = pd.DataFrame({"a": np.arange(16777216, 16777236)})
    model = LinearRegression().fit(X, X.a - 16777216)
    explainer = Explainer(model, X, schema=Schema.infer(X))
    rules = Actionability(ranges={"a": (16777221.4, 16777221.4)})
    with pytest.raises(Infeasible) as error:
        explainer.explain({"a": 16777217}, want=Target(at_least=2.5), criteria=[rules])
    (way,) = error.value.relaxations
    assert way.change in (
        "range of a (16777221.4, 16777221.4) -> (16777221, 16777221.4)",
        "range of a (16777221.4, 16777221.4) -> (16777221.4, 16777222)",
    )
