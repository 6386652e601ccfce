"""The catalogue of engines: which are tried with which solver, what is no engine, and what every one of them refutes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from ifonly import Explainer, Proximity
from ifonly.search.balls import Balls
from ifonly.search.engine import OnlyWith
from ifonly.search.engines import ENGINES, WITH_SOLVER, checked_engines, engines_for, find
from ifonly.search.linear import Knapsack
from ifonly.search.progress import Progress
from ifonly.solvers.backend import Limits
from ifonly.solvers.registry import find_solver


def test_a_solver_by_name_gets_what_no_search_of_our_own_closes() -> None:
    assert engines_for(find_solver("auto")) == engines_for(find_solver("highs")) == ENGINES


def test_a_solver_alone_solves_every_question() -> None:
    assert engines_for(find_solver("highs only")) == WITH_SOLVER
    assert [engine.name for engine in WITH_SOLVER] == ["boxes"]


def test_engines_have_names_of_their_own() -> None:
    names = [engine.name for engine in ENGINES]
    assert len({*names}) == len(names)


def test_engines_that_are_given_are_checked() -> None:
    assert checked_engines(None) is None
    assert checked_engines([Knapsack()]) == (Knapsack(),)


@pytest.mark.parametrize("given", [(), [], "linear", Knapsack(), (Knapsack,), (Knapsack(), None), (object(),)])
def test_what_is_no_engine_is_refused(given: object) -> None:
    with pytest.raises(TypeError, match=r"sequence of engines.*\(Mine\(\), \*ENGINES\)"):
        checked_engines(given)


def test_an_engine_for_a_demand_is_not_asked_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> bool:
        raise AssertionError("it was asked")

    monkeypatch.setattr(Balls, "accepts", asked)
    statement = _statement(DecisionTreeClassifier(random_state=0))
    balls = [engine for engine in ENGINES if isinstance(engine, OnlyWith) and isinstance(engine.engine, Balls)]
    assert [engine.name for engine in balls] == [Balls().name]
    assert not balls[0].accepts(statement, statement.box())


X = pd.DataFrame([(i, j) for i in range(4) for j in range(4)], columns=["i", "j"])
Y = np.where(X["i"] + X["j"] > 3, "yes", "no")
MODELS: dict[str, Callable[[], object]] = {
    "tree": lambda: DecisionTreeClassifier(random_state=0),
    "linear": LogisticRegression,
    "network": lambda: MLPClassifier((4,), solver="lbfgs", max_iter=5000, random_state=0),
}


def _statement(model: object):  # type: ignore[no-untyped-def]
    explainer = Explainer(model.fit(X, Y), X, criteria=[Proximity("l1")])  # type: ignore[attr-defined]
    return replace(explainer.problem({"i": 0, "j": 1}, want="yes").statement, margin=1e-9)


@pytest.mark.parametrize("engines", [ENGINES, WITH_SOLVER], ids=["all", "solver"])
@pytest.mark.parametrize("name", MODELS)
def test_a_cutoff_below_the_optimum_is_refuted(name: str, engines: tuple) -> None:  # type: ignore[type-arg]
    statement, backend = _statement(MODELS[name]()), find_solver("auto")
    best = find(statement, backend, Limits(), ENGINES)
    assert best.u is not None
    cutoff = 0.99 * float(statement.objective(best.u[None, :])[0])
    assert find(statement, backend, Limits(cutoff=cutoff), engines).infeasible


def test_nothing_below_a_cutoff_is_shown_up_to_the_budget_only() -> None:
    progress = Progress(limits=Limits(gap=0.2, cutoff=2.0))
    found = progress.found()
    assert found.infeasible
    assert found.bound == progress.budget == pytest.approx(1.8)
    assert Progress().found().bound == np.inf
