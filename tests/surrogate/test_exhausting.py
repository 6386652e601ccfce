"""Exhaustion: all rows that cost less are listed, and where they are few, all of them are asked about."""

import itertools
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ifonly import Actionability, Explainer, Proximity, Schema, Sparsity
from ifonly.runtime.tuning import DEFAULT, Tuning
from ifonly.surrogate import exhausting, question


def world(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.integers(0, 9, 60),
            "b": np.round(rng.uniform(-1, 1, 60), 1),
            "c": rng.choice(["x", "y", "z"], 60),
            "d": rng.integers(-3, 4, 60),
        }
    ).astype({"c": "category"})


def ripples(X: Any) -> Any:
    """Islands of "in": no search that goes downhill finds the nearest one."""
    level = np.asarray(X["c"].astype(str).map({"x": 0, "y": 1, "z": 2}), dtype=float)
    v = np.sin(1.7 * X["a"].to_numpy() + 9.0 * X["b"].to_numpy()) * np.cos(2.3 * X["d"].to_numpy() + 2.0 * level)
    return np.where(v > 0.93, "in", "out")


class Ripples:
    """The same, with its classes named."""

    classes_ = ("in", "out")

    def predict(self, X: Any) -> Any:
        return ripples(X)


def cheapest(X: pd.DataFrame, row: pd.Series, cost: Any) -> float:
    axes = [range(9), np.round(np.arange(-1.0, 1.05, 0.1), 1), ["x", "y", "z"], range(-3, 4)]
    grid = pd.DataFrame(list(itertools.product(*axes)), columns=list(X)).astype(X.dtypes.to_dict())
    return float(min(cost(r, row) for _, r in grid[ripples(grid) == "in"].iterrows()))


def explainer(X: pd.DataFrame, **options: Any) -> Explainer:
    schema = Schema.infer(X, precision={"b": 1}, bounds={"a": (0, 8), "b": (-1, 1), "d": (-3, 3)})
    scale = {"a": 8.0, "b": 2.0, "d": 6.0}
    return Explainer(Ripples(), X, schema=schema, criteria=[Proximity("l1", scale=scale)], surrogate="auto", **options)


def cost(r: pd.Series, row: pd.Series) -> float:
    return float(
        abs(r["a"] - row["a"]) / 8 + abs(r["b"] - row["b"]) / 2 + (r["c"] != row["c"]) + abs(r["d"] - row["d"]) / 6
    )


def test_the_cheapest_row_of_a_grid_is_found() -> None:
    X = world()
    asked = explainer(X)
    for i in X.index[ripples(X) == "out"][:5]:
        answer = asked.explain(X.loc[[i]], want="in")
        assert answer[0].certificate.objective == pytest.approx(cheapest(X, X.loc[i], cost), abs=1e-9)
        assert "cheaper rows" in answer[0].certificate.solver
        assert not answer[0].certificate.proven  # nothing is claimed all the same


def _along_b(row: pd.DataFrame) -> pd.DataFrame:
    rows = pd.concat([row] * 21, ignore_index=True)
    return rows.assign(b=np.round(np.arange(-1.0, 1.05, 0.1), 1))


def test_demands_are_kept_and_too_many_rows_are_left_alone() -> None:
    X = world()
    out = X[ripples(X) == "out"]
    # A row that one change of b mends, and no training row shows it.
    row = next(r for r in (out.loc[[i]] for i in out.index) if (ripples(_along_b(r)) == "in").any())
    answer = explainer(X).explain(row, want="in", criteria=[Actionability(frozen=["a"]), Sparsity(at_most=1)])
    changed = (answer.frame().iloc[0] != row.iloc[0]).sum()
    assert changed == 1
    assert answer.frame()["a"].iloc[0] == row["a"].iloc[0]
    few = Tuning(observing=replace(DEFAULT.observing, exhausted=1))
    answer = explainer(X, tuning=few).explain(row, want="in")
    assert "cheaper rows" not in answer[0].certificate.solver


def test_all_rows_below_a_cost_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    X = world()
    row = X.loc[[X.index[ripples(X) == "out"][1]]]
    seen = []

    def listed(statement: Any, box: Any, below: float, most: int) -> Any:
        rows = exhausting.all_cheaper(statement, box, below, most)
        seen.append((statement, box, below, rows))
        return rows

    monkeypatch.setattr(question, "all_cheaper", listed)
    explainer(X).explain(row, want="in")
    statement, box, _, _ = seen[0]
    below = 0.4
    rows = exhausting.all_cheaper(statement, box, below, 10_000)
    count = sum(
        p / 8 + q / 20 + r / 6 < below - 1e-12
        for p in [abs(v - row["a"].iloc[0]) for v in range(9)]
        for q in [abs(v - round(10 * row["b"].iloc[0])) for v in range(-10, 11)]
        for r in [abs(v - row["d"].iloc[0]) for v in range(-3, 4)]
    )
    costs = statement.objective(rows)
    assert (np.diff(costs) >= 0).all()
    assert (costs < below).all()
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert abs(len(rows) - count) <= (np.abs(costs - below) < 1e-9).sum()
    assert exhausting.all_cheaper(statement, box, below, len(rows) - 1) is None
    fewer = exhausting.as_many(statement, box, below, len(rows) - 1, 8)
    assert fewer is not None
    assert 0 < len(fewer) < len(rows)
    assert (fewer == rows[: len(fewer)]).all()


class Rich:
    """A yes for large amounts alone, so that all amounts below cost less than the best row."""

    classes_ = ("no", "yes")

    def predict(self, X: Any) -> Any:
        return np.where(X["amount"].to_numpy() + X["other"].to_numpy() > 35_000, "yes", "no")


def test_rows_are_counted_before_they_are_put_together() -> None:
    """Two columns of 20,000 amounts each: their product was built, 3 GB and half a minute beyond the limit."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"amount": rng.integers(0, 20_000, 200), "other": rng.integers(0, 20_000, 200)})
    X.iloc[0] = [0, 0]
    asked = Explainer(Rich(), X, criteria=[Proximity("l1")], surrogate="auto")
    tracemalloc.start()
    try:
        answer = asked.explain(X.iloc[[0]], want="yes", time_limit=20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer[0].row.to_numpy().sum() > 35_000
    assert peak < 300e6
