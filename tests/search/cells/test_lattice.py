"""Lattice of scores: what it closes holds no row that the model itself gives the outcome; answers equal enumeration."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import FixedThresholdClassifier

from ifonly import Explainer, Infeasible, Proximity
from ifonly.question.criterion import Criterion
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT, LargestChangeSearch, PriceSearch
from ifonly.search.cells.grids import Part
from ifonly.search.cells.kernel import compiled
from ifonly.search.cells.split_prices import Method, PriceTables
from ifonly.search.cells.splitting import Splitting
from ifonly.search.engine import largest_only, separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from ifonly.search.reduce import Reducer

GRID = pd.DataFrame(list(itertools.product(range(5), range(4), range(4), range(2))), columns=["a", "b", "c", "d"])


def forest(seed: int, *, threshold: float | None = None) -> Any:
    """Forests whose leaves are pure for the most part, so that their votes tie; some leaves are not."""
    rng = np.random.default_rng(seed)
    score = GRID["a"] - GRID["b"] + 2 * GRID["c"] * GRID["d"] + rng.normal(0, 1.0, len(GRID))
    y = (score > score.median()).astype(int)
    make = RandomForestClassifier if seed % 2 else ExtraTreesClassifier
    model = make(int(rng.choice([2, 4, 6, 10])), max_depth=int(rng.choice([4, 5, 6])), random_state=seed)
    if threshold is not None:
        model = FixedThresholdClassifier(model, threshold=threshold, response_method="predict_proba")
    return model.fit(GRID, y)


def search_of(model: Any, row: int, norm: str) -> tuple[Splitting, Any, int]:
    want = 1 - int(model.predict(GRID.iloc[[row]])[0])
    house: list[Criterion] = [Proximity(norm)]  # type: ignore[arg-type]
    statement = Explainer(model, GRID, criteria=house)._ask(GRID.iloc[[row]], want, ()).statement
    box, question = statement.box(), separable(statement) or largest_only(statement)
    assert question is not None
    return Splitting(Incumbents(Reducer(statement), box, Progress()), question.most, patient=True), box, want


def inside(search: Splitting, part: Part) -> np.ndarray:
    """The rows of the grid that lie in a part."""
    grid, held = search.grid, np.ones(len(GRID), dtype=np.bool_)
    for k, j in enumerate(grid.numbers):
        first = int(grid.first[k])
        values = GRID.iloc[:, j].to_numpy(dtype=np.float64)
        held &= (values >= grid.lowest[first + part.low[k]]) & (values <= grid.highest[first + part.high[k]])
    return held


@pytest.mark.parametrize("threshold", [None, 0.5, 0.3, 0.7, 0.45])
def test_a_part_that_is_closed_holds_no_row_of_the_outcome(threshold: float | None) -> None:
    lattices = more = 0
    for seed in range(40):
        model, rng = forest(seed, threshold=threshold), np.random.default_rng(seed)
        said = model.predict(GRID)
        if len(set(said)) < 2:
            continue
        search, box, want = search_of(model, int(rng.integers(len(GRID))), "l1")
        brackets = search.reducer.brackets
        assert brackets is not None
        assert search._open(box, brackets)
        if search.sums.lattice is None:
            continue
        lattices += 1
        order, whole = search._inhabited(), search.grid.whole()
        method = Method.of(PriceSearch(), search.grid, search.sums.values, search.sums.tree)
        tables = PriceTables(search.grid, search.sums, order, 4, method.error)
        for _ in range(60):
            ends = np.sort(rng.integers(0, search.grid.size, (2, len(search.grid.size))), axis=0)
            part = replace(whole, low=ends[0], high=ends[1])
            leaves = search.grid.alive(part, whole, order)
            reached = bool((said[inside(search, part)] == want).any())
            closed = search.sums.best(leaves) is None
            assert not (closed and reached)
            prices = tables.whole()
            prices = replace(
                prices, below=rng.exponential(0.02, len(prices.split)), above=rng.exponential(0.02, len(prices.split))
            )
            bound = tables.bound(part, leaves, tables.active(prices, part, leaves), 0.0)
            assert not (bound.is_missed and reached)
            tree = search.sums.tree[leaves]
            tops = search.sums.values[leaves[np.flatnonzero(np.diff(tree, prepend=-1))], 0]
            more += closed and tops.sum() >= search.sums.need[0]
    assert lattices >= 4
    assert threshold not in (None, 0.5) or more >= 5  # closed by the lattice alone


TUNINGS = {
    "as it is": DEFAULT,
    "prices at once": replace(
        DEFAULT,
        largest=LargestChangeSearch(first_parts=1, first_priced=1, more_priced=2),
        prices=PriceSearch(plain_parts=1, plain_parts_compiled=1),
    ),
}


@pytest.mark.parametrize("kernel", ["", "numpy"])
@pytest.mark.parametrize("tuning", TUNINGS)
@pytest.mark.parametrize("norm", ["linf", "l1"])
def test_answers_are_those_of_enumeration(norm: str, tuning: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IFONLY_KERNEL", kernel)
    ranges, answered = np.array([4.0, 3.0, 3.0, 1.0]), 0
    for seed in range(10):
        model = forest(seed, threshold=[None, 0.5, 0.4][seed % 3])
        said = model.predict(GRID)
        row = int(np.random.default_rng(seed).integers(len(GRID)))
        ways = np.abs(GRID.to_numpy() - GRID.to_numpy()[row]) / ranges
        cost = np.where(said != said[row], ways.max(axis=1) if norm == "linf" else ways.sum(axis=1), np.inf)
        explainer = Explainer(
            model,
            GRID,
            criteria=[Proximity(norm, scale="range")],  # type: ignore[arg-type]
            tuning=TUNINGS[tuning],
        )
        if not np.isfinite(cost.min()):
            with pytest.raises(Infeasible):
                explainer.explain(GRID.iloc[[row]], want=1 - int(said[row]))
            continue
        answer = explainer.explain(GRID.iloc[[row]], want=1 - int(said[row]))
        assert answer[0].certificate.proven
        assert answer[0].certificate.objective == pytest.approx(cost.min(), abs=1e-9)
        answered += 1
    assert answered >= 8


@pytest.mark.skipif(not compiled(), reason="the package was installed without a compiler")
@pytest.mark.parametrize("any_point", [False, True])
def test_both_kernels_look_at_the_same_parts(any_point: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    long = 0
    for seed in range(60):
        ends = []
        for kernel in ("", "numpy"):
            monkeypatch.setenv("IFONLY_KERNEL", kernel)
            search, box, _ = search_of(forest(seed), 7 * seed % len(GRID), "linf" if any_point else "l1")
            search.any_point, search.most_priced = any_point, 3000
            search.pricing = PriceSearch(plain_parts=5, plain_parts_compiled=5)
            search.tuning = replace(search.tuning, first_look_compiled=search.tuning.first_look)
            ended, best = search.run(box, Deadline.never()), search.progress.best
            ends.append((ended, search.parts, search.met, None if best is None else best.u.tolist()))
        assert ends[0] == ends[1], seed
        long += ends[0][1] > 5
    assert long >= 3
