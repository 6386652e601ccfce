"""Networks closed without a solver: points that rounding lost, and ties that the form and the model see differently.

Found by a fuzzer of networks with weights set by hand, against enumeration by the model's own predictions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor

from ifonly import Explainer, Proximity, Schema, Sparsity, Target
from ifonly.models.forms.backward import Layers
from ifonly.question.found import Ended, Found
from ifonly.search.engines import find
from ifonly.search.incumbents import Incumbents
from ifonly.search.inputs.networks import Networks, Search
from ifonly.solvers.backend import Limits
from portions import one_in

PRICED = [Proximity("l1", scale="range"), Sparsity(price=0.1)]


def weighted(network: Any, X: pd.DataFrame, coefs: list[Any], intercepts: list[Any]) -> Any:
    """Return a network with these weights; it is fitted only to know its columns."""
    network.set_params(hidden_layer_sizes=tuple(len(b) for b in intercepts[:-1]), max_iter=1)
    network.fit(X * 0.0, np.arange(len(X)) % 2)
    network.coefs_ = [np.asarray(w, dtype=float) for w in coefs]
    network.intercepts_ = [np.asarray(b, dtype=float) for b in intercepts]
    return network


def needle(X: pd.DataFrame, at: float, width: float) -> Any:
    """Return a network that says 1 nowhere but around one value of the first column."""
    slopes = np.zeros((X.shape[1], 3))
    slopes[0] = 1.0 / width
    bends = -np.array([at - width, at, at + width]) / width
    return weighted(MLPClassifier(), X, [slopes, [[1.0], [-2.0], [1.0]]], [bends, [-0.5]])


def asked(explainer: Explainer, row: pd.DataFrame, want: Any = 1) -> Any:
    question = explainer._ask(row, want, ())
    return question.goal.with_first_margin(question.statement)


def closed(explainer: Explainer, statement: Any, cutoff: float = np.inf) -> Found:
    return find(statement, explainer.backend, Limits(cutoff=cutoff), engines=(Networks(),))


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("zero", one_in(2, [10**9, 10**14, 10**15]))
def test_whole_numbers_beside_the_factual_are_not_lost(zero: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Microseconds since 1970 are whole numbers around 1e15: the neighbours of one were within the room for its rounding."""
    monkeypatch.setattr(Incumbents, "open", lambda _: None)  # which may find them by luck
    monkeypatch.setattr(Search, "_offer", lambda *_: None)
    X = pd.DataFrame({"time": np.arange(zero, zero + 12), "kind": np.arange(12) % 3})
    for at in (3, 5, 6):
        model = needle(X, zero + at, 0.6)
        assert model.predict(X).tolist() == (np.arange(12) == at).astype(int).tolist()
        explainer = Explainer(model, X, criteria=PRICED)
        best = abs(at - 4) / 11 + 0.1
        found = closed(explainer, asked(explainer, X.iloc[[4]]))
        assert not found.infeasible
        assert found.bound <= best * (1 + 1e-9)
        if zero == 10**9:
            assert found.optimal


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_decimals_far_from_the_factual_are_not_lost() -> None:
    """Cents of amounts up to a hundred million: a point of the grid was lost to the rounding of its own size."""
    rng = np.random.default_rng(0)
    for top in np.repeat([1e5, 1e7, 1e8], 8):
        value = round(float(rng.uniform(0.2, 1.0) * top), 2)
        X = pd.DataFrame({"amount": np.round(np.linspace(0.0, top, 12), 2), "kind": np.arange(12) % 3})
        schema = Schema.infer(X, precision={"amount": 2})
        explainer = Explainer(needle(X, value, 0.006), X, schema=schema, criteria=PRICED)
        statement = asked(explainer, X.iloc[[0]])
        u = statement.query.factual.copy()
        u[0] = value
        assert statement.demands[0].confirmed(u[None, :])[0]
        found = closed(explainer, statement, float(statement.objective(u[None, :])[0]) * (1 + 1e-6))
        assert found.ended is Ended.GAVE_UP or (found.u is not None and found.u[0] == value)


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("seed", one_in(2, range(3)))
def test_a_tie_is_settled_by_the_model(seed: int) -> None:
    """The model adds in another order than the form: at a target that it just meets, the form may miss it by a digit."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": np.round(np.arange(4) * 0.001, 3), "b": np.arange(4) % 2})
    for _ in range(4):
        coefs = [rng.normal(size=(2, 5)) * [[1e3], [1.0]], rng.normal(size=(5, 4)), rng.normal(size=(4, 1))]
        model = weighted(MLPRegressor(), X, coefs, [rng.normal(size=n) for n in (5, 4, 1)])
        explainer = Explainer(model, X, schema=Schema.infer(X, precision={"a": 3}), criteria=PRICED)
        points = pd.DataFrame([(a, b) for a in X["a"] for b in (0, 1)], columns=["a", "b"])
        said = np.array([float(model.predict(points.iloc[[i]])[0]) for i in range(len(points))])
        low = points.iloc[[int(said.argmin())]]
        for least in said[said > said.min()]:
            statement = asked(explainer, low, Target(at_least=float(least)))
            costs = statement.objective(explainer.schema.encode(points))
            found = closed(explainer, statement)
            assert found.u is not None
            assert statement.objective(found.u[None, :])[0] <= costs[said >= least].min() * (1 + 1e-6)


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_where_nothing_costs_the_first_answer_is_optimal() -> None:
    """A gap of 0 was divided by, after thousands of nodes that cost no more than the answer."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": np.linspace(0, 1, 12), "b": np.linspace(0, 2, 12), "c": np.linspace(0, 3, 12)})
    ended = set()
    for _ in range(6):
        coefs = [rng.normal(size=(3, 30)), rng.normal(size=(30, 20)), rng.normal(size=(20, 1))]
        model = weighted(MLPClassifier(), X, coefs, [rng.normal(size=30), rng.normal(size=20), [-2.0]])
        explainer = Explainer(model, X, criteria=[Proximity("l1", weights=dict.fromkeys(X, 0.0))])
        row = X.iloc[[int(model.predict_proba(X)[:, 1].argmin())]]
        found = closed(explainer, asked(explainer, row, 1 - int(model.predict(row)[0])))
        assert found.ended is Ended.CLOSED  # with no answer at all, nodes that hold none are not split any further
        assert found.infeasible or found.bound == 0.0
        ended.add(found.infeasible)
    assert ended == {False, True}


def test_networks_without_layers_have_one_piece_for_all_points() -> None:
    rows = np.array([[1.0, -2.0]]), np.array([0.5])
    layers = Layers.of([], rows, np.arange(2), np.zeros(2), np.ones(2))
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    slopes, constant = layers.tangents(x)
    assert len(slopes) == len(constant) == 3
    assert np.allclose((slopes @ x[:, :, None])[:, :, 0] + constant, x @ rows[0].T + rows[1])


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer", "ignore:overflow", "ignore:invalid value")
def test_sums_that_overflow_close_nothing() -> None:
    """A bound that is not a number is neither above a budget nor below it: the node was dropped, as if it held nothing."""
    X = pd.DataFrame({"a": np.linspace(0.0, 1.0, 12), "b": np.arange(12) % 3})
    model = weighted(MLPClassifier(), X, [[[1e150], [0.0]], [[1e-150]]], [[-0.5e150], [-0.2]])
    assert model.predict(X).tolist() == (X["a"] > 0.7).astype(int).tolist()
    schema = Schema.infer(X, bounds={"a": (-1e200, 1e200)})
    explainer = Explainer(model, X, schema=schema, criteria=[Proximity("l1", scale={"a": 1.0, "b": 1.0})])
    assert closed(explainer, asked(explainer, X.iloc[[3]])).ended is Ended.GAVE_UP
