"""Branch and bound over inputs of nearest neighbours: no solver is needed, bounds hold, and what is given up is handed on."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier

from ifonly import Actionability, Explainer, Proximity, Sparsity
from ifonly.program.box import Box
from ifonly.runtime.tuning import NeighbourSearch, Tuning
from ifonly.search.engine import separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.inputs.nearest import Neighbours, _Search
from ifonly.search.progress import Progress

GRID = pd.DataFrame(list(itertools.product(range(7), range(5), ["u", "v"])), columns=["a", "b", "c"])
NONE = "no solver needed"


def fitted(seed: int, k: int) -> Any:
    """A model of three columns: the levels are told apart by a column of their own."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(seed)
    X = GRID.iloc[rng.choice(len(GRID), 25, replace=False)]
    y = (X["a"] + 2 * (X["c"] == "v") + rng.normal(0, 1.5, len(X)) > 4).to_numpy()
    return make_pipeline(
        make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough"), KNeighborsClassifier(k)
    ).fit(X, y)


def cost(row: pd.Series[Any], price: float) -> pd.Series[Any]:
    d = pd.DataFrame({"a": (GRID["a"] - row["a"]).abs() / 6, "b": (GRID["b"] - row["b"]).abs() / 4})
    d["c"] = (GRID["c"] != row["c"]).astype(float)
    return d.sum(axis=1) + price * (d > 0).sum(axis=1)


@pytest.mark.parametrize(("seed", "k"), [(0, 1), (1, 2), (2, 3), (3, 5)])
def test_closed_without_a_solver_under_prices_counts_and_ranges(seed: int, k: int) -> None:
    model = fitted(seed, k)
    said = model.predict(GRID)
    house = [Proximity("l1", scale="range"), Sparsity(price=0.1, at_most=2), Actionability(ranges={"b": (0, 3)})]
    explainer = Explainer(model, GRID, criteria=house)
    row = int(np.flatnonzero(~said & (GRID["b"] <= 3))[seed])
    changed = (GRID.iloc[row] != GRID).sum(axis=1)
    good = said & (changed <= 2) & (GRID["b"] <= 3)
    answer = explainer.explain(GRID.iloc[[row]], want=True)
    assert answer[0].certificate.solver == NONE
    assert answer[0].certificate.objective == pytest.approx(cost(GRID.iloc[row], 0.1)[good].min(), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_given_up_is_closed_by_the_solver(seed: int) -> None:
    model = fitted(seed, 3)
    said = model.predict(GRID)
    tuning = Tuning(neighbours=NeighbourSearch(most_nodes=1))
    explainer = Explainer(model, GRID, criteria=[Proximity("l1", scale="range")], tuning=tuning)
    row = int(np.flatnonzero(~said)[0])
    answer = explainer.explain(GRID.iloc[[row]], want=True)
    assert answer[0].certificate.objective == pytest.approx(cost(GRID.iloc[row], 0.0)[said].min(), abs=1e-9)


@pytest.mark.parametrize(("seed", "k"), [(0, 1), (1, 2), (2, 3), (3, 5)])
def test_bounds_of_boxes_are_below_every_point_with_the_outcome(seed: int, k: int) -> None:
    model = fitted(seed, k)
    said = model.predict(GRID)
    explainer = Explainer(model, GRID, criteria=[Proximity("l1", scale="range")])
    row = int(np.flatnonzero(~said)[seed])
    statement = explainer.problem(GRID.iloc[[row]], want=True).statement
    question, U = separable(statement), explainer.schema.encode(GRID)
    assert question is not None
    assert Neighbours().accepts(statement, statement.box())
    costs, rng = statement.objective(U), np.random.default_rng(seed)
    for _ in range(25):
        box: Box = statement.box().copy()
        ends = np.sort(rng.integers(0, 7, 2)), np.sort(rng.integers(0, 5, 2))
        for j, (low, high) in enumerate(ends):
            box.narrow(j, float(low), float(high))
        if rng.random() < 0.5:
            box.keep_levels(2, np.arange(2) == rng.integers(2))
        search = _Search(statement, question, box, Incumbents.of(statement, box, Progress()))
        node = search._whole()
        bounds = search._bounds(node, search.given[0])
        inside = box.contains(U) & said
        least = costs[inside].min() if inside.any() else np.inf
        assert max(float(node.base[0]), *(b.cost for b in bounds)) <= least + 1e-9
