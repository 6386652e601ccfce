"""The engine contract: a toy engine in one class is asked in its turn and its result is used, or it is passed over."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from ifonly import Explainer, Proximity
from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.search.engine import Engine
from ifonly.search.engines import ENGINES, WITH_SOLVER, engines_for, find
from ifonly.search.progress import Progress
from ifonly.solvers.backend import Limits
from ifonly.solvers.registry import find_solver

X = pd.DataFrame(list(itertools.product(range(4), range(4), ["a", "b", "c"])), columns=["i", "j", "level"])
Y = np.where(X["i"] + X["j"] + (X["level"] == "a") > 3, "yes", "no")
MODELS = {
    "tree": DecisionTreeClassifier(random_state=0),
    "linear": LogisticRegression(),
    "network": MLPClassifier((4,), solver="lbfgs", max_iter=5000, random_state=0),
}


@dataclass(eq=False)
class Enumeration:
    """Engine for tiny grids: looks at every point of the box."""

    most: int = 1000
    name: str = "enumeration"
    asked: list[str] = field(default_factory=list)
    gives_up: bool = False

    def accepts(self, statement: Statement, box: Box) -> bool:
        del statement
        self.asked.append("accepts")
        return int(np.prod([len(values) for values in self.values(box)])) <= self.most

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        self.asked.append("search")
        points = np.array([np.concatenate(parts) for parts in itertools.product(*self.values(box))])
        for demand in statement.demands:
            points = points[demand.holds(statement.query, points)]
        cost = statement.objective(points)
        if not len(points) or cost.min() > progress.limits.cutoff:
            return Found.nothing(self.name)
        u = points[int(cost.argmin())]
        if self.gives_up:
            progress.keep(u, float(cost.min()))
            return Found(Ended.GAVE_UP)
        return Found(Ended.CLOSED, u, float(cost.min()), (u,), self.name)

    @staticmethod
    def values(box: Box) -> list[FloatArray]:
        """Per feature: its admissible canonical parts."""
        out = []
        for j, feature in enumerate(box.schema.features):
            if isinstance(feature, Numeric):
                out.append(np.arange(box.lower[j], box.upper[j] + 1)[:, None])
            else:
                out.append(np.eye(feature.width)[box.allowed[box.schema.slice(j)]])
        return out


@cache
def statement(name: str) -> tuple[Statement, Explainer]:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    columns = make_column_transformer((OneHotEncoder(), ["level"]), remainder="passthrough")
    explainer = Explainer(make_pipeline(columns, MODELS[name]).fit(X, Y), X, criteria=[Proximity("l1")])
    asked = explainer._ask({"i": 0, "j": 1, "level": "c"}, "yes", ()).statement
    return replace(asked, margin=1e-9), explainer


@pytest.mark.parametrize("name", MODELS)
def test_a_toy_engine_is_asked_first_and_its_result_is_used(name: str) -> None:
    asked, explainer = statement(name)
    toy = Enumeration()
    engines: tuple[Engine, ...] = (toy, *ENGINES)
    found = find(asked, explainer.backend, Limits(), engines=engines)
    assert toy.asked == ["accepts", "search"]
    assert (found.solver, found.optimal) == ("enumeration", True)
    ours = find(asked, explainer.backend, Limits())
    assert ours.optimal
    costs = [float(asked.objective(f.u[None, :])[0]) for f in (found, ours) if f.u is not None]
    assert costs[0] == pytest.approx(costs[1], abs=1e-6)
    assert ours.bound <= costs[0]


def test_a_toy_engine_that_does_not_accept_is_passed_over() -> None:
    asked, explainer = statement("tree")
    toy = Enumeration(most=10)
    found = find(asked, explainer.backend, Limits(), engines=(toy, *ENGINES))
    assert toy.asked == ["accepts"]
    assert found.solver == "no solver needed"


@pytest.mark.parametrize("name", ["network", "linear"])
def test_an_engine_that_gives_up_leaves_its_incumbent_to_the_next(name: str) -> None:
    asked, explainer = statement(name)
    toy = Enumeration(gives_up=True)
    found = find(asked, explainer.backend, Limits(), engines=(toy, *ENGINES))
    best = find(asked, explainer.backend, Limits(), engines=(Enumeration(),))
    assert toy.asked == ["accepts", "search"]
    assert found.optimal
    assert found.u is not None
    assert best.u is not None
    costs = [float(asked.objective(u[None, :])[0]) for u in (found.u, best.u)]
    assert costs[0] == pytest.approx(costs[1], abs=1e-6)


def test_when_all_engines_give_up_nothing_is_claimed() -> None:
    asked, explainer = statement("tree")
    found = find(asked, explainer.backend, Limits(), engines=(Enumeration(gives_up=True),))
    assert found.ended is Ended.GAVE_UP
    assert found.u is not None
    assert found.bound == -np.inf
    nobody = find(asked, explainer.backend, Limits(), engines=())
    assert (nobody.ended, nobody.u, nobody.bound) == (Ended.GAVE_UP, None, -np.inf)


def test_ctrl_c_in_an_engine_keeps_the_incumbent_and_no_bound() -> None:
    asked, explainer = statement("tree")

    class Pressed(Enumeration):
        def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
            super().search(statement, box, progress)
            raise KeyboardInterrupt

    found = find(asked, explainer.backend, Limits(), engines=(Pressed(gives_up=True), *ENGINES))
    assert found.interrupted
    assert found.u is not None
    assert found.bound == -np.inf


@pytest.mark.parametrize("shares", [(0.5, 0.99), (0.99, 0.5), (0.7, 0.7)])
def test_the_bound_of_alternatives_is_the_least_of_all_that_were_searched(shares: tuple[float, float]) -> None:
    wanted = np.where(Y == "yes", np.where(X["i"] > 1, "high", "low"), "no")
    model = DecisionTreeClassifier(random_state=0).fit(X[["i", "j"]], wanted)
    explainer = Explainer(model, X[["i", "j"]], criteria=[Proximity("l1")])
    asked = replace(explainer._ask({"i": 0, "j": 1}, ["high", "low"], ()).statement, margin=1e-9)

    class Lax(Enumeration):
        def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
            found = super().search(statement, box, replaced(progress))
            bounds.append(found.bound * shares[len(bounds)])
            return replace(found, bound=bounds[-1])

    bounds: list[float] = []
    found = find(asked, explainer.backend, Limits(gap=0.6), engines=(Lax(),))
    assert len(bounds) == 2
    assert found.bound == min(bounds)


def replaced(progress: Progress) -> Progress:
    """Progress without its cut-off, so that every alternative shows its best point."""
    return Progress(progress.backend, replace(progress.limits, cutoff=np.inf))


def test_nothing_below_a_cutoff_is_shown_up_to_the_budget_only() -> None:
    progress = Progress(limits=Limits(gap=0.2, cutoff=2.0))
    found = progress.found()
    assert found.infeasible
    assert found.bound == progress.budget == pytest.approx(1.8)
    assert Progress().found().bound == np.inf


def test_a_solver_by_name_gets_what_no_search_of_our_own_closes() -> None:
    assert engines_for(find_solver("auto")) == engines_for(find_solver("highs")) == ENGINES


def test_a_solver_alone_solves_every_question() -> None:
    assert engines_for(find_solver("highs only")) == WITH_SOLVER
    assert [engine.name for engine in WITH_SOLVER] == ["boxes"]


def test_a_cutoff_below_the_optimum_is_refuted_by_every_engine() -> None:
    for name in MODELS:
        asked, explainer = statement(name)
        best = find(asked, explainer.backend, Limits())
        assert best.u is not None
        cutoff = 0.99 * float(asked.objective(best.u[None, :])[0])
        for engines in (ENGINES, WITH_SOLVER, (Enumeration(),)):
            assert find(asked, explainer.backend, Limits(cutoff=cutoff), engines=engines).infeasible
