"""The compiled kernel against its NumPy twin: the same parts in the same order, the same incumbents, the same end."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ifonly import Actionability, Explainer, IfOnlyWarning, Proximity, Sparsity, Target
from ifonly.question.criterion import Criterion
from ifonly.question.found import Ended
from ifonly.question.trail import Ledger
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import PriceSearch
from ifonly.search.cells import kernel
from ifonly.search.cells.engine import Cells, Splitting
from ifonly.search.engine import largest_only, separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from ifonly.search.reduce import Reducer
from portions import one_in

needs_kernel = pytest.mark.skipif(kernel._built is None, reason="the package was installed without a compiler")


@dataclass(frozen=True)
class Outcome:
    ended: Ended
    parts: int
    trail: bytes
    cost: float | None
    u: bytes
    bound: float | None  # with prices only


def searched(
    statement: Any, patient: bool, any_point: bool = False, pricing: PriceSearch | None = None, keeps: bool = True
) -> Outcome:
    box = statement.box()
    progress = Progress()
    incumbents = Incumbents(Reducer(statement), box, progress)
    question = separable(statement) or largest_only(statement)
    assert question is not None
    ledger = Ledger()
    kept = ledger if keeps and not any_point else None
    search = Splitting(
        incumbents,
        question.most,
        patient=patient,
        ledger=kept,
        any_point=any_point,
        most_parts=1000 if any_point else None,
    )
    search.tuning = replace(search.tuning, first_look_compiled=search.tuning.first_look)  # give up at the same part
    if pricing is None:
        search._can_price = lambda: False  # type: ignore[method-assign] - the parts of the search without prices are compared
    else:
        search.pricing = pricing
    ended = search.run(box, Deadline.never())
    best = progress.best
    cost, u = (None, b"") if best is None else (best.cost, best.u.tobytes())
    bound = None if search.method is None else search.bound
    return Outcome(ended, search.parts, bytes(ledger.data), cost, u, bound)


def both(
    statement: Any,
    monkeypatch: pytest.MonkeyPatch,
    any_point: bool = False,
    pricing: PriceSearch | None = None,
    keeps: bool = True,
) -> tuple[Outcome, Outcome]:
    monkeypatch.delenv("IFONLY_KERNEL", raising=False)
    assert kernel.compiled()
    mine = searched(statement, any_point, any_point, pricing, keeps)
    monkeypatch.setenv("IFONLY_KERNEL", "numpy")
    assert not kernel.compiled()
    return mine, searched(statement, any_point, any_point, pricing, keeps)


# -- random worlds ---------------------------------------------------------------------------------------------------
TOWNS = [f"town {i:02}" for i in range(80)]  # more than one word of bits


def world(rng: np.random.Generator, n: int = 150) -> pd.DataFrame:
    columns: dict[str, Any] = {
        "whole": rng.integers(-3, 9, n),
        "decimal": rng.uniform(0, 1, n).round(2),
        "real": rng.normal(size=n),
        "single": rng.normal(size=n).astype(np.float32),
        "far": rng.normal(1e6, 1.0, n),
        "colour": pd.Categorical(rng.choice(["red", "green", "blue", "black"], n)),
        "town": pd.Categorical(rng.choice(TOWNS[: int(rng.choice([5, 80]))], n)),
        "flag": rng.choice([False, True], n),
    }
    names = [str(name) for name in rng.permutation(list(columns))[: int(rng.integers(2, len(columns) + 1))]]
    return pd.DataFrame({name: columns[name] for name in names})


def numbers(X: pd.DataFrame) -> Any:
    """Each row as a sum of its columns in units of their own."""
    total = np.zeros(len(X))
    for name in X:
        codes = X[name].cat.codes if isinstance(X[name].dtype, pd.CategoricalDtype) else X[name].astype(float)
        total += ((codes - codes.mean()) / (codes.std() or 1.0)).to_numpy()
    return total


def model_of(kind: str, X: pd.DataFrame, y: Any, seed: int) -> Any:
    levels = [name for name in X if isinstance(X[name].dtype, pd.CategoricalDtype)]
    if kind == "histogram":
        mask = [name in levels for name in X]
        return HistGradientBoostingClassifier(
            max_iter=12, max_leaf_nodes=12, min_samples_leaf=4, categorical_features=mask, random_state=seed
        ).fit(X, y)
    last = {
        "forest": RandomForestClassifier(7 + seed % 11, max_depth=3 + seed % 4, random_state=seed),
        "deep": RandomForestClassifier(6, random_state=seed),
        "extra": ExtraTreesClassifier(140, max_depth=3, random_state=seed),
        "boosted": GradientBoostingClassifier(n_estimators=20, max_depth=3, random_state=seed),
        "value": RandomForestRegressor(9, max_depth=5, random_state=seed),
    }[kind]
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), levels), remainder="passthrough")
    return make_pipeline(encode, last).fit(X, y)


def criteria_of(rng: np.random.Generator, X: pd.DataFrame) -> list[Criterion]:
    names = list(X)
    house: list[Criterion] = [
        Proximity(str(rng.choice(["l1", "l2"])), weights={names[0]: float(rng.choice([0, 1, 3]))})
    ]
    if rng.uniform() < 0.6:
        at_most = int(rng.integers(1, len(names) + 1)) if rng.uniform() < 0.7 else None
        house.append(Sparsity(at_most=at_most, price=float(rng.choice([0.0, 0.05, 0.3]))))
    if rng.uniform() < 0.3:
        house.append(Actionability(frozen=[names[-1]]))
    if "colour" in names and rng.uniform() < 0.5:
        house.append(Actionability(allow={"colour": ["red", "blue"]}))
    return house


def statement_of(kind: str, seed: int) -> Any:
    """A random question that the engine of cells takes, or None."""
    rng = np.random.default_rng([seed, len(kind)])
    X = world(rng)
    score = numbers(X) + rng.normal(0, 0.5, len(X))
    n_classes = int(rng.integers(2, 5))
    y = score if kind == "value" else np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))
    if "real" in X and kind == "histogram" and rng.uniform() < 0.5:
        X.loc[rng.uniform(size=len(X)) < 0.2, "real"] = np.nan
    model = model_of(kind, X, y, seed)
    row = X.iloc[[int(rng.integers(len(X)))]]
    want: Any
    if kind == "value":
        middle = float(np.quantile(score, rng.uniform(0.1, 0.9)))
        want = Target(at_least=middle, at_most=middle + float(score.std()) * rng.uniform(0.1, 1.0))
    else:
        now = model.predict(row)[0]
        label = int(rng.choice([c for c in set(y) if c != now]))
        want = Target(label, probability=0.6) if rng.uniform() < 0.3 else label
    explainer = Explainer(model, X, criteria=criteria_of(rng, X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IfOnlyWarning)
        statement = explainer._ask(row, want, ()).statement
    box = statement.box()
    return statement if box.empty() is None and Cells().accepts(statement, box) else None


@needs_kernel
@pytest.mark.parametrize(
    "kind",
    ["value", *(pytest.param(k, marks=pytest.mark.slow) for k in ("forest", "boosted", "deep", "extra", "histogram"))],
)
def test_both_visit_the_same_parts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = long = 0
    for seed in range(10):
        statement = statement_of(kind, seed)
        if statement is None:
            continue
        mine, twin = both(statement, monkeypatch)
        assert mine == twin, f"seed {seed}: {mine.parts} and {twin.parts} parts"
        compared += 1
        long += mine.parts > 50
    assert compared >= 5
    assert long >= 1


@needs_kernel
@pytest.mark.parametrize(
    "kind", ["forest", *(pytest.param(k, marks=pytest.mark.slow) for k in ("boosted", "deep", "extra", "histogram"))]
)
@pytest.mark.parametrize("most_parts", one_in(2, [40, 100_000]))
def test_both_visit_the_same_parts_with_prices(kind: str, most_parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pricing = PriceSearch(plain_parts=1, plain_parts_compiled=1, most_parts=most_parts)
    priced, ends = 0, set()
    for seed in range(14):
        statement = statement_of(kind, seed)
        if statement is None:
            continue
        mine, twin = both(statement, monkeypatch, pricing=pricing, keeps=seed % 2 == 0)
        assert mine == twin, f"seed {seed}: {mine.parts} and {twin.parts} parts"
        priced += mine.bound is not None
        ends.add(mine.ended)
    assert priced >= 3
    assert Ended.CLOSED in ends


@needs_kernel
@pytest.mark.parametrize("trees", one_in(2, [12, 30]))  # even: ties, so that intersections are refused as a whole
def test_both_look_for_any_point_in_the_same_parts(trees: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = set()
    for seed in range(8):
        rng = np.random.default_rng([seed, trees])
        X = world(rng)
        y = (numbers(X) + rng.normal(0, 1.0, len(X)) > 0).astype(int)
        levels = [name for name in X if isinstance(X[name].dtype, pd.CategoricalDtype)]
        encode = make_column_transformer((OneHotEncoder(), levels), remainder="passthrough")
        model = make_pipeline(encode, RandomForestClassifier(trees, max_depth=6, random_state=seed)).fit(X, y)
        row = X[model.predict(X) == 0].iloc[[0]]
        explainer = Explainer(model, X, criteria=[Proximity("linf")])
        statement = explainer._ask(row, 1, [Actionability(max_step=dict.fromkeys(step_of(X), 1))]).statement
        mine, twin = both(statement, monkeypatch, any_point=True)
        assert mine == twin, f"seed {seed}: {mine.parts} and {twin.parts} parts"
        ended.add((mine.ended, mine.parts > 20))
    assert len(ended) > 1


def step_of(X: pd.DataFrame) -> list[str]:
    return [name for name in ("whole", "real") if name in X]


# -- limits ----------------------------------------------------------------------------------------------------------
@cache
def endless(trees: int = 50, depth: int | None = 5) -> Any:
    """A question that cells without prices would take hours for."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(trees, max_depth=depth, random_state=0).fit(X, y)
    return Explainer(model, X, criteria=[Proximity("l1")])._ask(X.iloc[[6]], None, ()).statement


def search_of(statement: Any) -> tuple[Splitting, Any]:
    box = statement.box()
    incumbents = Incumbents(Reducer(statement), box, Progress())
    incumbents.quick()
    return Splitting(incumbents, 30, patient=True), box


@needs_kernel
def test_the_first_parts_of_a_long_search_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, twin = both(endless(), monkeypatch)
    assert mine.ended is Ended.GAVE_UP
    shorter = min(len(mine.trail), len(twin.trail))
    assert shorter > 1000
    assert mine.trail[:shorter] == twin.trail[:shorter]


@needs_kernel
def test_the_deadline_ends_a_long_search() -> None:
    search, box = search_of(endless(300, None))  # seconds with prices, too
    start = time.process_time()
    assert search.run(box, Deadline.after(0.3)) is Ended.LIMIT
    assert time.process_time() - start < 0.6
    assert search.parts > 100


@needs_kernel
def test_ctrl_c_ends_a_long_search() -> None:
    search, box = search_of(endless(300, None))  # seconds with prices, too
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        search.run(box, Deadline.after(30.0))


@needs_kernel
@pytest.mark.parametrize("most", [1_000, 40_000])  # too little for the first list, and for those that follow
def test_a_search_that_runs_out_of_memory_is_given_up(most: int) -> None:
    search, box = search_of(endless())
    search.tuning = replace(search.tuning, kernel_bytes=most)
    assert search.run(box, Deadline.after(30.0)) is Ended.GAVE_UP


@needs_kernel
def test_tables_that_do_not_fit_are_refused() -> None:
    built = kernel._built
    assert built is not None
    with pytest.raises(ValueError, match="number of tables"):
        built.opened([], [], None, None, 0.0, 0.0, 0, 1, False, 1000)
    with pytest.raises(ValueError, match="no leaves"):
        built.opened([np.empty(0)] * 16, [], None, None, 0.0, 0.0, 0, 1, False, 1000)
    tables = [np.zeros(1)] * 16
    with pytest.raises(ValueError, match="bytes, not"):
        built.opened(tables, [], None, None, 0.0, 0.0, 0, 1, False, 1000)
    with pytest.raises(ValueError, match="PyCapsule"):
        built.run(None, 1.0, False, 1, 1)


def test_the_kernel_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IFONLY_KERNEL", "numpy")
    assert (kernel.compiled(), kernel.kernel_in_use()) == (False, "NumPy")
    monkeypatch.delenv("IFONLY_KERNEL")
    assert kernel.kernel_in_use() == ("NumPy" if kernel._built is None else "compiled")
    monkeypatch.setattr(kernel, "_built", None)
    assert kernel.kernel_in_use() == "NumPy"
