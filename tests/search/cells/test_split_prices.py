"""Prices of splits: bounds against exact fractions over all points, answers against enumeration, and what is left open."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from ifonly import Explainer, Proximity, Schema, Sparsity
from ifonly.question.found import Ended
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import PriceSearch
from ifonly.search.cells.improving import Improving
from ifonly.search.cells.kernel import compiled
from ifonly.search.cells.split_prices import Method, Prices, PriceTables
from ifonly.search.cells.splitting import Splitting
from ifonly.search.engine import separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from ifonly.search.reduce import Reducer
from portions import one_in

AT_ONCE = PriceSearch(plain_parts=1, plain_parts_compiled=1)


def statement_of(seed: int, *, scale: float = 1.0) -> Any:
    """Three numbers and a category, few trees, two to four classes, and sometimes at most so many changes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.integers(0, 6, 60) * scale,
            "b": rng.normal(size=60).round(1) / scale,
            "c": rng.integers(0, 4, 60).astype(float),
            "d": pd.Categorical.from_codes(rng.integers(0, 3, 60), ["x", "y", "z"]),
        }
    )
    score = X["a"] / scale + X["b"] * scale + X["c"] * (X["d"] == "x") + rng.normal(size=60)
    classes = 2 + (seed // 2) % 3
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
    coded = X.assign(d=X["d"] == "x").astype(float) if seed % 2 else X[["a", "b", "c"]]
    model: Any
    if seed % 3:
        model = RandomForestClassifier(4 + seed % 5, max_depth=3, random_state=seed).fit(coded, y)
    else:
        model = GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=seed).fit(coded, y)
    row = coded[model.predict(coded) == 0].iloc[[0]]
    criteria: list[Any] = [Proximity("l1")]
    if seed % 4 < 2:
        criteria.append(Sparsity(at_most=1 + seed % 3, price=0.1))
    # Continuous: on the grid of "b" two answers cost the same but for 3e-8, less than the gap at which a search may end.
    return (
        Explainer(model, coded, schema=Schema.infer(coded, precision=None), criteria=criteria)
        ._ask(row, 1, ())
        .statement
    )


def opened(seed: int, scale: float = 1.0) -> tuple[Splitting, Progress, Any]:
    statement = statement_of(seed, scale=scale)
    box, progress = statement.box(), Progress()
    question = separable(statement)
    assert question is not None
    search = Splitting(Incumbents(Reducer(statement), box, progress), question.most)
    assert search.reducer.brackets is not None
    search._tabulate(box, search.reducer.brackets)
    return search, progress, box


Scores = tuple[Fraction, ...]  # one per goal


def points(search: Splitting) -> list[tuple[tuple[int, ...], Scores, Fraction, tuple[int, ...]]]:
    """All points of the grid within the number of changes: cells and levels, exact scores, the exact cost, the leaves."""
    grid, order, all_of = search.grid, search._inhabited(), []
    menus: list[Any] = [range(size) for size in grid.size.tolist()]
    menus += [np.flatnonzero(grid.open & (grid.owner == c)).tolist() for c in range(len(grid.categories))]
    n = len(grid.numbers)
    for point in itertools.product(*menus):
        away = sum(point[k] != grid.unchanged[k] for k in range(n)) + sum(not grid.home[e] for e in point[n:])
        if away + grid.changed_elsewhere > search.most:
            continue
        at = np.array(point[:n], dtype=np.int64)[:, None]
        inside = ((grid.begin[:, order] <= at) & (grid.end[:, order] >= at)).all(axis=0)
        inside &= grid.holds[list(point[n:])][:, order].all(axis=0)
        held = order[inside]
        scores = tuple(sum(map(Fraction, column), Fraction(0)) for column in search.sums.values[held].T.tolist())
        cost = Fraction(grid.elsewhere) + sum(Fraction(float(grid.cost[grid.first[k] + point[k]])) for k in range(n))
        cost += sum(Fraction(float(grid.level_cost[e])) for e in point[n:])
        all_of.append((point, scores, cost, tuple(held.tolist())))
    return all_of


def meets(search: Splitting, scores: Scores) -> bool:
    """Whether a point meets all goals, in exact numbers."""
    return all(score >= Fraction(need) for score, need in zip(scores, search.sums.need.tolist(), strict=True))


@pytest.mark.parametrize("scale", one_in(2, [1.0, 1e6]))
def test_bounds_at_any_prices_hold_for_every_point_in_exact_numbers(scale: float) -> None:
    rng, several = np.random.default_rng(5), 0
    for seed in range(8):
        search, _, _ = opened(seed, scale)
        method = Method.of(AT_ONCE, search.grid, search.sums.values, search.sums.tree)
        order, grid = search._inhabited(), search.grid
        tables = PriceTables(grid, search.sums, order, search.most, method.error)
        every, n = points(search), len(tables.split_tree)
        costs = sorted({float(cost) for _, _, cost, _ in every})
        for size in (0.0, 0.01, 1.0, 1e9):
            budget = float(rng.choice(costs)) + 1e-9
            weights = rng.exponential(size=len(search.sums.need)) if len(search.sums.need) > 1 else np.ones(1)
            prices = Prices(
                float(rng.exponential(size)) if size else 0.0,
                weights / weights.sum(),
                np.arange(n),
                rng.exponential(size, n) if size else np.zeros(n),
                np.where(rng.uniform(size=n) < 0.5, 0.0, rng.exponential(size, n)) if size else np.zeros(n),
            )
            bound = tables.bound(grid.whole(), order, prices, budget - grid.elsewhere)
            exact = [Fraction(weight) for weight in prices.weights.tolist()]
            spare = [
                sum(w * (s - Fraction(n)) for w, s, n in zip(exact, scores, search.sums.need.tolist(), strict=True))
                for _, scores, cost, _ in every
                if cost <= Fraction(budget)
            ]
            assert not spare or max(spare) <= Fraction(bound.value) - Fraction(bound.need) + Fraction(bound.rounding)
            several += len(search.sums.need) > 1
    assert several >= 10


def test_what_prices_close_holds_no_answer_within_the_budget() -> None:
    rng, closed = np.random.default_rng(6), 0
    for seed in range(12):
        search, _, _ = opened(seed)
        method = Method.of(AT_ONCE, search.grid, search.sums.values, search.sums.tree)
        order, grid = search._inhabited(), search.grid
        tables = PriceTables(grid, search.sums, order, search.most, method.error)
        every, improving = points(search), Improving(tables, method)
        answers = [it for it in every if meets(search, it[1])]
        least = min((float(it[2]) for it in answers), default=1.0)
        for budget in least * np.array([0.5, 0.9, 1.0, 1.0 + 1e-12, 1.1, 1.5]):
            reached = [it for it in answers if it[2] <= Fraction(float(budget))]
            got = improving.improved(grid.whole(), order, tables.whole(), int(rng.integers(1, 120)), budget, -np.inf)
            closed += got is None or len(got.leaves) < len(order)
            if got is None:
                assert not reached
                continue
            left, leaves = got.part, set(got.leaves.tolist())
            for point, _, cost, held in reached:
                cells = point[: len(grid.numbers)]
                assert all(low <= c <= high for low, c, high in zip(left.low, cells, left.high, strict=True))
                assert leaves.issuperset(held)
                assert float(cost) >= got.cost * (1.0 - 1e-12)
    assert closed >= 20  # some of it in so many of these runs


def test_leaves_out_of_reach_hold_no_point_of_a_part_within_the_budget_and_the_number_of_changes() -> None:
    rng, closed = np.random.default_rng(11), 0
    for seed in range(12):
        search, _, _ = opened(seed)
        grid, every, order = search.grid, points(search), search._inhabited()
        n, costs = len(grid.numbers), sorted({float(it[2]) for it in points(search)})
        for _ in range(6):
            part = grid.whole()
            ends = np.sort(rng.integers(0, grid.size, size=(2, n)), axis=0)
            part = replace(part, low=ends[0], high=ends[1])
            for c in range(len(grid.categories)):
                part = part.levels(~((grid.owner == c) & (rng.uniform(size=len(grid.owner)) < 0.5)))
            budget, leaves = float(rng.choice([*costs, np.inf])), grid.alive(part, grid.whole(), order)
            left = set(grid.reached(part, leaves, search.most, budget).tolist())
            closed += len(left) < len(leaves)
            for point, _, cost, held in every:
                cells = np.array(point[:n])
                inside = bool(
                    ((cells >= part.low) & (cells <= part.high)).all() and part.allowed[list(point[n:])].all()
                )
                assert not inside or float(cost) > budget or left.issuperset(held)
    assert closed >= 30


def test_prices_that_move_to_splits_of_open_leaves_never_make_a_bound_worse() -> None:
    rng, better = np.random.default_rng(12), 0
    for seed in range(12):
        search, _, _ = opened(seed)
        method = Method.of(AT_ONCE, search.grid, search.sums.values, search.sums.tree)
        order, grid = search._inhabited(), search.grid
        tables = PriceTables(grid, search.sums, order, search.most, method.error)
        n, goals, part = len(tables.split_tree), len(search.sums.need), grid.whole()
        for _ in range(6):
            prices = Prices(
                float(rng.exponential()),
                np.full(goals, 1.0 / goals),
                np.arange(n),
                rng.exponential(0.1, n),
                rng.exponential(0.1, n),
            )
            some = order[rng.uniform(size=len(order)) < 0.6]
            if len(np.unique(search.sums.tree[some])) < tables.n_trees:
                continue
            moved, as_they_are = tables.active(prices, part, some), tables.active(prices, part, some, every=True)
            ours, theirs = (tables.bound(part, some, it, 1.0) for it in (moved, as_they_are))
            assert ours.value <= theirs.value + theirs.rounding
            better += ours.value < theirs.value - theirs.rounding
    assert better >= 20


@pytest.mark.parametrize("first", one_in(2, [0, 20]))
def test_answers_with_prices_are_those_of_enumeration(first: int) -> None:
    priced = 0
    for seed in range(first, first + 20):
        search, progress, box = opened(seed)
        best = min((it[2] for it in points(search) if meets(search, it[1])), default=None)
        search.pricing = AT_ONCE
        assert search.run(box, Deadline.never()) is Ended.CLOSED
        priced += search.method is not None
        if progress.best is not None:  # a tie is within the need, and refused by the model
            assert best is not None
            assert float(best) <= progress.best.cost + 1e-9
        if best is not None and progress.best is not None:
            plain, other, _ = opened(seed)
            plain.pricing = replace(AT_ONCE, plain_parts=10**6, plain_parts_compiled=10**6)
            assert plain.run(box, Deadline.never()) is Ended.CLOSED
            assert other.best is not None
            assert progress.best.cost == pytest.approx(other.best.cost, rel=progress.limits.gap)
    assert priced >= 5


@pytest.mark.slow
def test_a_search_that_is_stopped_proves_no_more_than_there_is() -> None:
    bounds = 0
    for seed in range(20):
        whole, progress, box = opened(seed)
        assert whole.run(box, Deadline.never()) is Ended.CLOSED
        if progress.best is None:
            continue
        for parts in (1, 3, 7, 15):
            search, _, _ = opened(seed)
            search.pricing = replace(AT_ONCE, most_parts=parts, first_steps=10)
            if search.run(box, Deadline.never()) is Ended.GAVE_UP:
                assert min(search.bound, search.progress.budget) <= progress.best.cost * (1.0 + 1e-9)
                bounds += search.bound > 0.0
    assert bounds >= 3


@pytest.mark.skipif(not compiled(), reason="the package was installed without a compiler")
def test_out_of_memory_nothing_is_proven() -> None:
    ends = set()
    for most in (2_000, 3_000, 5_000, 8_000, 12_000, 20_000):
        for seed in range(6):
            search, _, box = opened(seed)
            search.pricing = AT_ONCE
            search.tuning = replace(search.tuning, kernel_bytes=most)
            ended = search.run(box, Deadline.never())
            ends.add(ended)
            if ended is Ended.GAVE_UP:
                assert search.bound == -np.inf
    assert Ended.GAVE_UP in ends
