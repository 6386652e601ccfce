"""Threads share Explainers: each gets the answers it would have got alone, and nobody's warnings are lost."""

import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from ifonly import (
    Actionability,
    Causality,
    Cause,
    Diversity,
    Explainer,
    IfOnlyError,
    Manifold,
    OutOfTime,
    OutsideTrainingRange,
    Proximity,
    Robustness,
)
from ifonly.runtime.memo import Memo, cached_property
from ifonly.runtime.warning_filters import few_filters, heard, silenced
from questions import FACTUAL as ROW
from questions import labels, people, pipeline, schema

THREADS = 8


def made() -> dict[str, Explainer]:
    """Explainers with nothing in their caches."""
    X = people()
    y = labels(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = {
            "linear": pipeline(X, y),
            "forest": pipeline(X, y, RandomForestClassifier(5, max_depth=3, random_state=0)),
            "network": pipeline(X, y, MLPClassifier((4,), max_iter=300, random_state=0)),
        }
    out = {name: Explainer(model, X, y, schema=schema(X)) for name, model in models.items()}
    Z = X[["age", "income", "debts"]].astype(float)
    Z.loc[::7, "income"] = np.nan
    out["missing"] = Explainer(HistGradientBoostingClassifier(max_iter=15, random_state=0).fit(Z, y), Z, y)
    return out


@dataclass(frozen=True)
class Asked:
    explainer: str
    row: dict[str, Any]
    options: dict[str, Any]


def asked() -> list[Asked]:
    again = [pipeline(people(seed=s), labels(people(seed=s))) for s in (1, 2)]
    law = Causality({"income": Cause(["age"], coefficients={"age": 0.02})})
    options: list[tuple[str, dict[str, Any]]] = [
        ("linear", {}),
        ("linear", {"criteria": [Manifold(clusters=2)]}),
        ("linear", {"criteria": [Robustness(radius=0.05, models=again)]}),
        ("linear", {"criteria": [Diversity("iterate", distance=0.1)], "n": 3}),
        ("forest", {"n": 2}),
        ("linear", {"criteria": [law]}),
        ("linear", {"criteria": [Actionability(frozen=list(ROW))]}),
        ("forest", {}),
        ("linear", {"criteria": [Manifold(isolation=0.2, rows=people(8))]}),
        ("forest", {"criteria": [Robustness(radius=0.03)]}),
        ("forest", {"criteria": [Proximity("linf")]}),
        ("network", {}),
        ("network", {"criteria": [Manifold(epsilon=0.05)]}),
    ]
    rows = [{**ROW, "age": age, "debts": debts} for age, debts in ((30, 4), (45, 6))]
    out = [Asked(name, row, {"want": "good", **more}) for name, more in options for row in rows]
    numbers = [{"age": 30.0, "income": np.nan, "debts": 5.0}, {"age": 41.0, "income": 1.0, "debts": np.nan}]
    return out + [Asked("missing", row, {"want": "good"}) for row in numbers]


def answer(explainers: dict[str, Explainer], question: Asked) -> Any:
    try:
        found = explainers[question.explainer].explain(question.row, **question.options)
    except IfOnlyError as error:
        return type(error).__name__, str(error)
    points = [(c.row.to_dict("list"), c.distance, c.ranges, c.measures) for c in found]
    return found.status, repr((points, found.notes))  # as text, in which a missing value is itself


def at_once(work: Callable[[Any], Any], tasks: list[Any]) -> list[Any]:
    gate = threading.Barrier(THREADS)

    def begin() -> None:
        gate.wait()

    with ThreadPoolExecutor(THREADS, initializer=begin) as pool:
        return list(pool.map(work, tasks))


@pytest.mark.filterwarnings("ignore::ifonly.IfOnlyWarning")
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_eight_threads_get_the_answers_of_one_after_the_other(every: int) -> None:
    questions, alone, shared = asked()[::every], made(), made()
    expected = [answer(alone, q) for q in questions]
    order = np.random.default_rng(0).permutation(len(questions)).tolist()
    before = list(warnings.filters)
    found = at_once(
        lambda k: answer(shared, questions[k]), order + order[::3]
    )  # some twice: with empty caches and with full ones
    assert warnings.filters == before
    for k, got in zip(order + order[::3], found, strict=True):
        assert got == expected[k], questions[k]
    kinds = {e[0] for e in expected}
    assert {"optimal", "Infeasible"} <= kinds, kinds


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ifonly.IfOnlyWarning")
def test_a_thread_that_runs_out_of_time_leaves_the_others_alone() -> None:
    X = people(200)
    hard = Explainer(
        pipeline(X, labels(X), RandomForestClassifier(30, random_state=0)),
        X,
        schema=schema(X),
        criteria=[Proximity("l2")],
    )
    easy = made()
    questions, alone = asked()[::4], made()
    expected = [answer(alone, q) for q in questions]
    hurried_answers: list[str] = []
    done = threading.Event()

    def hurried() -> None:
        while not done.is_set():
            try:
                found = hard.explain(ROW, want="good", criteria=[Manifold(isolation=0.2)], time_limit=0.2)
                hurried_answers.append(found.status)
            except OutOfTime:
                hurried_answers.append("out_of_time")

    thread = threading.Thread(target=hurried)
    thread.start()
    try:
        found = [answer(easy, q) for q in questions]
    finally:
        done.set()
        thread.join()
    assert found == expected
    assert hurried_answers
    assert set(hurried_answers) <= {"feasible", "no_bound", "out_of_time"}


def test_each_thread_hears_its_own_warnings() -> None:
    explainer = made()["linear"]
    rows = [{**ROW, "age": 71 + k} for k in range(16)]

    def ask(row: dict[str, Any]) -> list[str]:
        with heard() as mine:
            explainer.explain(row, want="good")
        return [str(w) for w in mine if isinstance(w, OutsideTrainingRange)]

    for row, mine in zip(rows, at_once(ask, rows), strict=True):
        assert len(mine) == 1
        assert f"is {row['age']} in this row" in mine[0]


def test_a_batch_in_threads_keeps_each_rows_warnings() -> None:
    explainer = made()["linear"]
    rows = pd.DataFrame([{**ROW, "age": 60 + k} for k in range(20)])
    with ThreadPoolExecutor(4) as pool:
        found = explainer.explain_all(rows, want="good", executor=pool)
    assert [len(o.warnings) for o in found.outcomes] == [int(age > 70) for age in rows["age"]]


def test_filters_of_many_threads_are_restored() -> None:
    before = list(warnings.filters)

    def work(k: int) -> None:
        for _ in range(50):
            with silenced() if k % 2 else few_filters():
                warnings.warn("passed on, or not", UserWarning, stacklevel=1) if k % 2 else None

    at_once(work, list(range(THREADS)))
    assert warnings.filters == before
    with pytest.warns(UserWarning, match="still heard"):
        warnings.warn("still heard", UserWarning, stacklevel=1)


def test_a_memo_gives_all_threads_the_value_that_came_first() -> None:
    memo, gate = Memo(), threading.Barrier(THREADS)

    def compute() -> object:
        gate.wait()  # all of them compute at the same time
        return object()

    with ThreadPoolExecutor(THREADS) as pool:
        values = list(pool.map(lambda _: memo.get("kind", "key", compute), range(THREADS)))
    assert len({id(v) for v in values}) == 1


def test_a_memo_forgets_what_was_not_asked_for_longest_and_keeps_what_an_id_stands_for() -> None:
    memo = Memo(most=2)
    for key in "abc":
        memo.get("kind", key, lambda: None)
    asked_again: list[str] = []
    for key in "cba":
        memo.get("kind", key, lambda key=key: asked_again.append(key))  # type: ignore[misc]
    assert asked_again == ["a"]


def test_composites_of_each_others_kind_never_wait_for_each_other() -> None:
    # With a lock per attribute, as in Python 3.11's functools, two such chains end in a deadlock.
    gate = threading.Barrier(2)

    class First:
        inner: Any = None

        @cached_property
        def size(self) -> int:
            gate.wait()
            return 1 if self.inner is None else 1 + self.inner.size

    class Second(First):
        @cached_property
        def size(self) -> int:
            gate.wait()
            return 1 if self.inner is None else 1 + self.inner.size

    one, two = First(), Second()
    one.inner, two.inner = Second(), First()
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda o: o.size, [one, two], timeout=20)) == [2, 2]


def test_a_row_decoded_in_one_thread_is_not_anothers() -> None:
    # Before, 1 in 2,400 rows came back with the values of another thread's.
    explainer = made()["missing"]
    prepare, U = explainer.model.prepare, explainer.training.U
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def wrong(k: int) -> int:
        rows = [U[[(7 * k + i) % len(U)]] for i in range(100)]
        return sum(not np.array_equal(np.asarray(prepare(u), dtype=float), u, equal_nan=True) for u in rows)

    try:
        assert at_once(wrong, list(range(THREADS))) == [0] * THREADS
    finally:
        sys.setswitchinterval(switch)
