"""Leaves around 1e9, ties of a support vector machine, a booster of one member, rows beyond the bounds, a factual at a tie.

All were found by the battery (seed 20261117): a row that breaks a causal rule was offered until "impossible" was said, a tie
was given to the wrong class, a median had weights that are no numbers, a split beyond the schema's bounds was forgotten where
a power overflows further out, and "the other class" was the one that the model gives already.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import AdaBoostRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

from ifonly import Causality, Cause, Explainer, Proximity, Target
from ifonly.data.schema import Numeric, Schema
from ifonly.models.forms.bends import LOG_SIGMOID, SIGMOID, SOFTPLUS, Smooth
from ifonly.models.forms.curves import Curve
from ifonly.models.forms.leaf_rows import near_zero
from ifonly.models.forms.linear import Linear
from ifonly.program.box import Box
from ifonly.program.mip import Mip
from ifonly.program.variables import Variables
from ifonly.solvers.backend import Limits
from ifonly.solvers.registry import find_solver
from ifonly.solvers.tangents import solve

GRID = pd.DataFrame(list(product(range(4), range(4))), columns=["a", "b"])


def test_what_leaves_have_in_common_is_a_constant() -> None:
    values = np.array([[1e9 + 3.0], [1e9 + 7.5], [-0.5], [2.0], [-1e9], [-1e9 - 0.125], [5.0]])
    tree = np.array([0, 0, 2, 2, 3, 3, 4])
    moved, constant = near_zero(values, tree, np.array([0.25]))
    assert moved[:, 0].tolist() == [0.0, 4.5, -0.5, 2.0, 0.0, -0.125, 0.0]
    assert constant[0] == 0.25 + (1e9 + 3.0) - 1e9 + 5.0
    nothing, same = near_zero(np.empty((0, 1)), np.empty(0, dtype=np.int64), np.array([1.0]))
    assert nothing.shape == (0, 1)
    assert same[0] == 1.0


@pytest.mark.parametrize("bend", [SOFTPLUS, SIGMOID, LOG_SIGMOID])
@pytest.mark.parametrize("far", [0.0, -1e12, 1e12])
def test_a_curve_that_is_held_closely_far_from_zero_is_what_it_is_there(bend: Smooth, far: float) -> None:
    """Breakpoints nearer to each other than a solver sees left a chain of none (seed 20261401, 2405862)."""
    schema, factual = Schema((Numeric("a", 0.0, 0.5),)), np.zeros(1)
    inner = Linear(schema, np.array([[1.0]]), np.array([far]))
    form = Curve(inner, (bend,)).refined(np.array([0.25]))
    assert form is not None
    mip = Mip()
    (y,) = form.embed(mip, Variables(mip, Box.of(schema, factual), factual, {}, (0,)))
    for sign in (1.0, -1.0):
        mip.clear_objective()
        mip.minimise(y * sign)
        assert solve(mip.arrays(), find_solver("highs only"), Limits()).objective * sign == pytest.approx(
            float(bend(np.array([far, far + 0.5]))[:: int(sign)][0]), rel=1e-4, abs=1e-4
        )


@pytest.mark.parametrize("solver", ["auto", "highs only"])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_a_cause_around_a_billion_is_kept(offset: float, solver: str) -> None:
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": rng.integers(1, 4, 60), "b": rng.integers(0, 5, 60)})
    X["w"] = (offset + 2.0 * X["a"] + rng.integers(0, 3, 60)).astype(np.int64)
    y = (X["w"] - offset) + 0.2 * X["b"]
    cause = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X[["a"]], X["w"] - offset)
    cause.tree_.value[...] += offset  # fitted around 1e9, variances drown in rounding and nothing is split
    model = LinearRegression().fit(X, y)
    row = X.iloc[[int(y.argmin())]]
    criteria = [Proximity("l1", scale="none", weights={"w": 0.0}), Causality({"w": Cause(["a"], model=cause)})]
    explainer = Explainer(model, X, criteria=criteria, solver=solver)
    found = explainer.explain(row, want=Target(at_least=float(model.predict(X).mean())))[0]
    after = found.row.iloc[0]
    # whole numbers follow as whole numbers: within half a step of what the tree adds
    expected = row["w"].iloc[0] + cause.predict(found.row[["a"]])[0] - cause.predict(row[["a"]])[0]
    assert abs(after["w"] - expected) <= 0.5 + 1e-6
    assert after["a"] > row["a"].iloc[0]


def test_a_tie_of_a_support_vector_machine_is_the_second_class() -> None:
    X = pd.DataFrame({"x": [0, 0, 2, 2, 0, 2]})
    model: Any = SVC(kernel="linear", C=10.0).fit(X, ["a", "a", "b", "b", "a", "b"])
    assert model.decision_function(pd.DataFrame({"x": [1]}))[0] == 0.0
    assert model.predict(pd.DataFrame({"x": [1]}))[0] == "b"
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="none")])
    assert explainer.explain(X.iloc[[0]], want="b")[0].row["x"].item() == 1
    assert explainer.explain(X.iloc[[2]], want="a")[0].row["x"].item() == 0


def test_a_booster_of_one_member_that_is_no_better_than_chance() -> None:
    y = (GRID["a"] + GRID["b"]) % 2 + 0.01 * GRID["a"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AdaBoostRegressor(Ridge(), n_estimators=3, random_state=0).fit(GRID, y)
    assert model.estimator_weights_.sum() == 0.0
    row, least = GRID.iloc[[int(model.predict(GRID).argmin())]], float(np.median(model.predict(GRID)))
    met = GRID[model.predict(GRID) >= least]
    costs = (met - row.iloc[0].to_numpy()).abs().sum(axis=1)
    for solver in ("auto", "highs only"):
        explainer = Explainer(model, GRID, criteria=[Proximity("l1", scale="none")], solver=solver)
        answer = explainer.explain(row, want=Target(at_least=least))[0]
        assert answer.certificate.objective == pytest.approx(costs.min())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("transformer", [PowerTransformer(), FunctionTransformer(np.log, np.exp)])
def test_a_split_between_a_row_and_the_bounds_is_known(transformer: Any) -> None:
    """The power of 1e-5 has an exponent of -1e5 or so, and is infinite at 0.01; the logarithm ends at 0."""
    values = np.repeat([1.1e-5, 1.2e-5, 1.3e-5, 1.4e-5, 1.5e-5], 8)
    X, y = pd.DataFrame({"x": values}), np.where(values < 1.15e-5, 0.0, np.where(values > 1.35e-5, 2.0, 1.0))
    model = make_pipeline(transformer, DecisionTreeRegressor(random_state=0)).fit(X, y)
    schema = Schema((Numeric("x", 1.2e-5, 1.5e-5, precision=6),))
    answer = Explainer(model, X, schema=schema).explain(X.iloc[[0]], want=Target(at_least=0.5))[0]
    assert answer.row["x"].item() == pytest.approx(1.2e-5)


class Shy(LogisticRegression):  # type: ignore[misc]
    """Logistic regression that says no at a tie, however its own score is rounded."""

    def predict(self, X: Any) -> Any:
        return np.where(self.decision_function(X) > 1e-12, self.classes_[1], self.classes_[0])


@pytest.mark.parametrize("shift", [-4e-16, 4e-16])
def test_the_other_class_is_other_than_what_the_model_says(shift: float) -> None:
    X = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
    model = Shy().fit(X, ["no", "no", "yes", "yes"])
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([-1.5 + shift])
    row = pd.DataFrame({"x": [1.5]})
    found = Explainer(model, X).explain(row)
    assert found.prediction == "no"
    assert model.predict(found[0].row)[0] == "yes"
