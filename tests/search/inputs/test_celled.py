"""Numbers that enter by steps alone are searched cell by cell: their scores, their costs, and what is missing beside them."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from ifonly import Actionability, Explainer, Infeasible, Proximity, Schema, Sparsity
from ifonly.models.abilities import Stepwise
from ifonly.runtime.deadline import Deadline
from ifonly.search.engine import linear_in_scores
from ifonly.search.incumbents import Incumbents
from ifonly.search.inputs.celled import Celled
from ifonly.search.inputs.networks import Networks, Search
from ifonly.search.progress import Progress
from ifonly.solvers.backend import Limits
from portions import one_in

GRID = pd.DataFrame(
    list(itertools.product(range(9), np.round(np.arange(-2, 3) * 0.1, 1), ["red", "green", "blue"])),
    columns=["size", "weight", "colour"],
).astype({"size": float})


def binned(seed: int, *, gaps: bool = False) -> Any:
    """Return a network over bins of the size, beside the weight, whose gaps are filled in."""
    rng, table = np.random.default_rng(seed), GRID.copy()
    score = (table["size"] - 4.0) ** 2 / 4.0 + 2 * (table["colour"] == "green") - 12 * table["weight"]
    outcome = (score + rng.normal(0, 1.0, len(table)) > 2.5).astype(int)
    if gaps:
        table.loc[rng.random(len(table)) < 0.2, "weight"] = np.nan
        table.loc[rng.random(len(table)) < 0.1, "size"] = np.nan
    with warnings.catch_warnings(action="ignore"):
        bins = KBinsDiscretizer(5, encode="onehot-dense", strategy="uniform", subsample=None)
        size = make_pipeline(SimpleImputer(strategy="constant", fill_value=8.0), bins) if gaps else bins
        weight = (
            make_pipeline(SimpleImputer(strategy="constant", fill_value=0.5), StandardScaler())
            if gaps
            else StandardScaler()
        )
        columns = make_column_transformer((OneHotEncoder(), ["colour"]), (size, ["size"]), (weight, ["weight"]))
        network = MLPClassifier((6,), solver="lbfgs", max_iter=150, random_state=seed, alpha=0.01)
        return make_pipeline(columns, network).fit(table, outcome)


def asked(model: Any, factual: pd.DataFrame, **options: Any) -> tuple[Any, Any, Search]:
    """Return the statement of a question, its form, and the search that takes it."""
    explainer = Explainer(model, GRID, schema=Schema.infer(GRID, precision={"weight": 1, "size": 0}), **options)
    statement = explainer._ask(factual, 1 - int(model.predict(factual)[0]), ()).statement
    box = statement.box()
    assert Networks().accepts(statement, box)
    question = linear_in_scores(statement, box)
    assert question is not None
    progress = Progress(explainer.backend, Limits(), Deadline.after(60.0), None)
    return statement, statement.form, Search(statement, question, box, Incumbents.of(statement, box, progress))


@pytest.mark.parametrize("seed", one_in(2, range(4)))
def test_scores_over_cells_are_those_of_their_values(seed: int) -> None:
    statement, form, search = asked(binned(seed), GRID.iloc[[7 * seed]])
    at, rng = search.places, np.random.default_rng(seed)
    assert isinstance(form, Stepwise)
    assert isinstance(at, Celled)
    units = form.over_cells(at.start, at.owner, at.value)
    assert units is not None
    spans = np.append(search.free.first, len(at.entries))
    for _ in range(50):
        levels = np.array([rng.integers(a, b) for a, b in itertools.pairwise(spans)])
        u = search.point(rng.uniform(-0.2, 0.2, len(at.numbers)), levels, search.free.home)
        h = np.concatenate([u, np.zeros(len(at.owner))])
        h[at.entries] = 0.0
        h[at.entries[levels]] = 1.0
        for block in units.blocks:
            h = np.concatenate([h, block.activate(block.weights @ h + block.constant)])
        assert units.weights @ h + units.constant == pytest.approx(form(u[None])[0], abs=1e-9)
        moved = statement.objective(u[None])[0]
        near = search.free.home + search.free.origin
        cost = search.free.level_cost[levels].sum() + search.free.elsewhere
        away = np.abs(u[at.places] - near)
        cost += float((search.free.rate * away + search.free.price * (away > 0.0)).sum())
        assert moved == pytest.approx(cost)


@pytest.mark.parametrize("seed", one_in(3, range(9)))
@pytest.mark.parametrize("gap", [None, "weight", "size"])
def test_what_is_missing_stays_so(seed: int, gap: str | None) -> None:
    rng, model = np.random.default_rng(seed), binned(seed, gaps=True)
    price = float(rng.choice([0.0, 0.1]))
    house = [Proximity("l1", scale="range"), Sparsity(price=price)]
    if gap is not None:
        house.append(Actionability(frozen=[gap]))
    explainer = Explainer(model, GRID, schema=Schema.infer(GRID, precision={"weight": 1, "size": 0}), criteria=house)
    seen: list[Any] = []
    for i in rng.permutation(len(GRID))[:4]:
        factual, points = GRID.iloc[[int(i)]].copy(), GRID.copy()
        if gap is not None:
            factual[gap] = points[gap] = np.nan
        said, want = model.predict(points), 1 - int(model.predict(factual)[0])
        d = {
            c: (points[c] - float(factual[c].iloc[0])).abs() / (GRID[c].max() - GRID[c].min())
            for c in ("size", "weight")
        }
        d["colour"] = (points["colour"] != factual["colour"].iloc[0]).astype(float)
        table = pd.DataFrame(d).fillna(0.0)
        cost = table.sum(axis=1) + price * (table > 0).sum(axis=1)
        good = said == want
        try:
            answer = explainer.explain(factual, want=want)
        except Infeasible:
            assert not good.any()
            continue
        seen.append(answer[0].certificate.solver)
        best = float(cost[good].min())
        assert answer.status == "optimal"
        assert answer[0].certificate.objective == pytest.approx(best, rel=2e-6, abs=1e-12)
    assert set(seen) <= {"no solver needed"}
