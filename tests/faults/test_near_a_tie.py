"""Points near a tie that a program leaves out, and values at the edge of what a dtype can hold.

Found by the battery. A vote near a tie that the model refused was kept away from the tie by some 1e-6 of the scores'
range, and the optimum of what was left was called proven, though the model accepted cheaper points in between. A column
around 1e9 before a network in float32 made a margin larger than any score, and everything impossible, though the scaler
before the network counts in float64. A value on the edge of a linear demand was rounded to the float32 beyond it.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ifonly import Actionability, Explainer, Infeasible, LinearRow, Proximity, Sparsity, Target
from ifonly.solvers.registry import available_solvers
from portions import one_in


def three_votes(seed: int) -> tuple[VotingClassifier, pd.DataFrame]:
    """Return a hard vote with a logistic member, whose own ties are met on the way to every third class."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"r": rng.normal(20.0, 30.0, 90), "w": rng.integers(0, 4, 90)})
    y = np.digitize(X["r"] + rng.normal(0.0, 12.0, 90), [5.0, 35.0])
    members = [
        ("logistic", LogisticRegression(max_iter=2000)),
        ("tree", DecisionTreeClassifier(max_depth=2, random_state=seed)),
        ("stump", DecisionTreeClassifier(max_depth=1, random_state=seed)),
    ]
    return VotingClassifier(members).fit(X, y), X


@pytest.mark.parametrize("seed", one_in(5, range(1, 13)))
def test_a_proven_answer_of_voters_is_the_nearest_that_they_accept(seed: int) -> None:
    model, X = three_votes(seed)
    explainer = Explainer(model, X, criteria=[Proximity("l1"), Sparsity(price=0.0), Actionability(frozen=["w"])])
    row = X.iloc[[seed]]
    now = model.predict(row)[0]
    for want in sorted({0, 1, 2} - {int(now)}):
        try:
            answer = explainer.explain(row, want=want)
        except Infeasible:
            grid = pd.DataFrame({"r": np.linspace(X["r"].min(), X["r"].max(), 4001), "w": row["w"].iloc[0]})
            assert not (model.predict(grid) == want).any()
            continue
        assert answer[0].certificate.status == "optimal"
        # By bisection on the user's own model: the last value on the way from the factual that is still refused.
        there, here = float(answer[0].row["r"].iloc[0]), float(row["r"].iloc[0])
        near = there + (here - there) * np.geomspace(1e-9, 1e-2, 200)
        said = model.predict(pd.DataFrame({"r": near, "w": row["w"].iloc[0]})) == want
        cheaper = np.abs(near[said] - here)
        cost = abs(there - here)
        assert not len(cheaper) or cheaper.min() >= cost * (1.0 - 2e-6), (want, cost, cheaper.min())


def test_a_far_origin_before_a_scaler_takes_no_answer_away() -> None:
    torch = pytest.importorskip("torch")
    from ifonly.adapters import TorchClassifier

    rng = np.random.default_rng(3)
    X = pd.DataFrame({"account": 10**9 + rng.integers(-3, 4, 80), "debt": rng.integers(0, 10, 80)})
    y = np.where((X["account"] - 10**9) - X["debt"] / 2.0 > -2.0, "yes", "no")
    scaler = StandardScaler().fit(X)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
    inputs = torch.tensor(scaler.transform(X), dtype=torch.float32)
    wanted = torch.tensor((y == "yes").astype(np.float32))[:, None]
    steps = torch.optim.Adam(network.parameters(), lr=0.05)
    for _ in range(150):
        steps.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(network(inputs), wanted).backward()
        steps.step()
    model = make_pipeline(scaler, TorchClassifier(network, classes=["no", "yes"]))
    grid = pd.DataFrame([(a, d) for a in range(10**9 - 3, 10**9 + 4) for d in range(10)], columns=X.columns)
    said = model.predict(grid)
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="range"), Sparsity(price=0.0), Actionability()])
    asked = 0
    for k in np.flatnonzero(model.predict(X) == "no")[:8]:
        row = X.iloc[[k]]
        answer = explainer.explain(row, want="yes")
        span = X.max() - X.min()
        costs = ((grid - row.iloc[0]).abs() / span).sum(axis=1)[said == "yes"]
        assert answer[0].certificate.status == "optimal"
        assert answer[0].distance == pytest.approx(costs.min(), rel=1e-6)
        asked += 1
    assert asked >= 4


def test_a_value_on_the_edge_of_a_demand_is_rounded_to_the_side_that_keeps_it() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"w": rng.integers(1, 4, 60), "r": rng.normal(1.0, 0.7, 60).astype(np.float32)})
    model = DecisionTreeRegressor(max_depth=2, min_samples_leaf=2, random_state=0).fit(X, X["r"] + 0.1 * X["w"])
    low = X[X["r"] < 0.5].iloc[[0]]
    held = 0
    for k in range(40):
        # r - w >= edge, for an edge that float32 rounds down as often as up
        edge = 0.05 + 1e-7 * k + 0.333e-8
        rows = [LinearRow({"r": 1.0, "w": -1.0}, at_least=edge)]
        criteria = [Proximity("l2"), Sparsity(price=0.0), Actionability(rows=rows)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the factual itself breaks the row
            answer = Explainer(model, X, criteria=criteria).explain(low, want=Target(at_least=1.0))
        there = answer[0].row
        assert str(there["r"].dtype) == "float32"
        assert float(there["r"].iloc[0]) - float(there["w"].iloc[0]) >= edge * (1.0 - 1e-9)
        held += abs(float(there["r"].iloc[0]) - float(there["w"].iloc[0]) - edge) < 1e-6
    assert held >= 20  # the demand binds, so the edge is really met


@pytest.mark.parametrize("solver", ["auto", "highs", "scip"])
def test_a_target_just_out_of_reach_is_impossible_and_names_the_margin(solver: str) -> None:
    """At the corner of its box a linear model misses the target by less than a solver sees."""
    if solver not in ("auto", *available_solvers()):
        pytest.skip(f"{solver} is not installed")
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": rng.normal(0.0, 0.01, 60), "b": rng.normal(3.0, 1.0, 60)})
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, 5.0 * X["a"] - X["b"] + rng.normal(0.0, 0.1, 60))
    corners = pd.DataFrame([(a, b) for a in (X["a"].min(), X["a"].max()) for b in (X["b"].min(), X["b"].max())])
    best = float(model.predict(corners.set_axis(X.columns, axis=1)).max())
    explainer = Explainer(model, X, criteria=[Proximity("linf"), Sparsity(price=0.1)], solver=solver)
    with pytest.raises(Infeasible) as error:
        explainer.explain(X.iloc[[0]], want=Target(at_least=np.nextafter(best, np.inf) + 1e-15 * abs(best)))
    assert error.value.conflict
    assert all("prediction" in demand for demand in error.value.conflict)
    assert 0.0 <= error.value.margin <= 1e-6
    assert ("clears its threshold" in str(error.value)) == (error.value.margin > 0.0)
    reached = explainer.explain(X.iloc[[0]], want=Target(at_least=best - 1e-6 * abs(best)))
    assert model.predict(reached[0].row)[0] >= best - 1e-6 * abs(best)
