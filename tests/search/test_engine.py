"""The engine contract, as a third party meets it: a toy engine, written with `ifonly.extend` alone.

It is asked in its turn and its result is used, or it is passed over; what an engine leaves behind is the next one's.
"""

from __future__ import annotations

import ast
import itertools
import pickle
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from ifonly import Diversity, Explainer, Infeasible, OutOfTime, PlanError, Proximity
from ifonly.extend import ENGINES, Box, Built, Ended, Engine, Found, Goal, Limits, Numeric, Progress, Statement, find

X = pd.DataFrame(list(itertools.product(range(4), range(4), ["a", "b", "c"])), columns=["i", "j", "level"])
Y = np.where(X["i"] + X["j"] + (X["level"] == "a") > 3, "yes", "no")
ROW = {"i": 0, "j": 1, "level": "c"}
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
    asked: list[str] = field(default_factory=list, compare=False)  # noted while it works: no part of what it is
    gives_up: bool = False

    def accepts(self, statement: Statement, box: Box) -> bool:
        del statement
        self.asked.append("accepts")
        return int(np.prod([len(values) for values in self.values(box)])) <= self.most

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        self.asked.append("search")
        points = np.array([np.concatenate(parts) for parts in itertools.product(*self.values(box))])
        progress.tell(Built(box.schema.width, len(points)))
        for demand in statement.demands:
            if isinstance(demand, Goal):
                points = points[demand.clears(statement.form(points), statement.margin, statement.tie)]
            else:
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
    def values(box: Box) -> list[Any]:
        """Per feature: its admissible canonical parts."""
        out = []
        for j, feature in enumerate(box.schema.features):
            if isinstance(feature, Numeric):
                out.append(np.arange(box.lower[j], box.upper[j] + 1)[:, None])
            else:
                out.append(np.eye(feature.width)[box.allowed[box.schema.slice(j)]])
        return out


def explainer(name: str, engines: tuple[Engine, ...] | None = None) -> Explainer:
    columns = make_column_transformer((OneHotEncoder(), ["level"]), remainder="passthrough")
    model = make_pipeline(columns, MODELS[name]).fit(X, Y)
    return Explainer(model, X, criteria=[Proximity("l1")], engines=engines)


@cache
def statement(name: str) -> tuple[Statement, Explainer]:
    asked = explainer(name)
    return replace(asked.problem(ROW, want="yes").statement, margin=1e-9), asked


def test_this_file_is_written_as_by_a_third_party() -> None:
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    assert {i.module for i in imports if str(i.module).startswith("ifonly")} == {"ifonly", "ifonly.extend"}
    private = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr.startswith("_")]
    assert not private, [n.attr for n in private]


# -- the search -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MODELS)
def test_a_toy_engine_is_asked_first_and_its_result_is_used(name: str) -> None:
    asked, house = statement(name)
    toy = Enumeration()
    engines: tuple[Engine, ...] = (toy, *ENGINES)
    found = find(asked, house.backend, Limits(), engines)
    assert toy.asked == ["accepts", "search"]
    assert (found.solver, found.optimal) == ("enumeration", True)
    ours = find(asked, house.backend, Limits(), ENGINES)
    assert ours.optimal
    costs = [float(asked.objective(f.u[None, :])[0]) for f in (found, ours) if f.u is not None]
    assert costs[0] == pytest.approx(costs[1], abs=1e-6)
    assert ours.bound <= costs[0]


def test_a_toy_engine_that_does_not_accept_is_passed_over() -> None:
    asked, house = statement("tree")
    toy = Enumeration(most=10)
    found = find(asked, house.backend, Limits(), (toy, *ENGINES))
    assert toy.asked == ["accepts"]
    assert found.solver == "no solver needed"


@pytest.mark.parametrize("name", ["network", "linear"])
def test_an_engine_that_gives_up_leaves_its_incumbent_to_the_next(name: str) -> None:
    asked, house = statement(name)
    toy = Enumeration(gives_up=True)
    found = find(asked, house.backend, Limits(), (toy, *ENGINES))
    best = find(asked, house.backend, Limits(), (Enumeration(),))
    assert toy.asked == ["accepts", "search"]
    assert found.optimal
    assert found.u is not None
    assert best.u is not None
    costs = [float(asked.objective(u[None, :])[0]) for u in (found.u, best.u)]
    assert costs[0] == pytest.approx(costs[1], abs=1e-6)


def test_when_all_engines_give_up_nothing_is_claimed() -> None:
    asked, house = statement("tree")
    found = find(asked, house.backend, Limits(), (Enumeration(gives_up=True),))
    assert found.ended is Ended.GAVE_UP
    assert found.u is not None
    assert found.bound == -np.inf
    nobody = find(asked, house.backend, Limits(), ())
    assert (nobody.ended, nobody.u, nobody.bound) == (Ended.GAVE_UP, None, -np.inf)


def test_ctrl_c_in_an_engine_keeps_the_incumbent_and_no_bound() -> None:
    asked, house = statement("tree")

    class Pressed(Enumeration):
        def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
            super().search(statement, box, progress)
            raise KeyboardInterrupt

    found = find(asked, house.backend, Limits(), (Pressed(gives_up=True), *ENGINES))
    assert found.interrupted
    assert found.u is not None
    assert found.bound == -np.inf


@pytest.mark.parametrize("shares", [(0.5, 0.99), (0.99, 0.5), (0.7, 0.7)])
def test_the_bound_of_alternatives_is_the_least_of_all_that_were_searched(shares: tuple[float, float]) -> None:
    wanted = np.where(Y == "yes", np.where(X["i"] > 1, "high", "low"), "no")
    model = DecisionTreeClassifier(random_state=0).fit(X[["i", "j"]], wanted)
    house = Explainer(model, X[["i", "j"]], criteria=[Proximity("l1")])
    asked = replace(house.problem({"i": 0, "j": 1}, want=["high", "low"]).statement, margin=1e-9)

    class Lax(Enumeration):
        def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
            found = super().search(statement, box, replaced(progress))
            bounds.append(found.bound * shares[len(bounds)])
            return replace(found, bound=bounds[-1])

    bounds: list[float] = []
    found = find(asked, house.backend, Limits(gap=0.6), (Lax(),))
    assert len(bounds) == 2
    assert found.bound == min(bounds)


def replaced(progress: Progress) -> Progress:
    """Progress without its cut-off, so that every alternative shows its best point."""
    return Progress(progress.backend, replace(progress.limits, cutoff=np.inf))


@pytest.mark.parametrize("name", MODELS)
def test_a_cutoff_below_the_optimum_is_refuted(name: str) -> None:
    asked, house = statement(name)
    best = find(asked, house.backend, Limits(), ENGINES)
    assert best.u is not None
    cutoff = 0.99 * float(asked.objective(best.u[None, :])[0])
    assert find(asked, house.backend, Limits(cutoff=cutoff), (Enumeration(),)).infeasible


# -- an Explainer's own -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MODELS)
def test_an_explainer_tries_the_engines_that_it_is_given(name: str) -> None:
    toy, heard = Enumeration(), list[Any]()
    answer = explainer(name, (toy, *ENGINES)).explain(ROW, want="yes", on_event=heard.append)
    usual = explainer(name).explain(ROW, want="yes")
    assert (answer.solver, answer.status) == ("enumeration", "optimal")
    assert toy.asked[0] == "accepts"
    assert "search" in toy.asked
    assert isinstance(heard[0], Built)
    assert answer[0].certificate.objective == pytest.approx(usual[0].certificate.objective, abs=1e-6)


def test_later_questions_of_a_kind_know_that_it_takes_them() -> None:
    toy = Enumeration()
    asked = explainer("linear", (toy, *ENGINES))
    asked.explain(ROW, want="yes")
    before = toy.asked.count("search")
    answers = [asked.explain({**ROW, "i": i, "j": j}, want="yes") for i, j in ((1, 0), (0, 0), (1, 1))]
    assert [answer.solver for answer in answers] == ["enumeration"] * 3
    assert toy.asked.count("search") == before + 3


def test_further_answers_and_batches_are_its_own_too() -> None:
    asked = explainer("tree", (Enumeration(), *ENGINES))
    several = asked.explain(ROW, want="yes", n=3, criteria=[Diversity("features")])
    assert [a.certificate.solver for a in several] == ["enumeration"] * len(several)
    batch = asked.explain_all(X[Y == "no"].head(4), want="yes")
    assert {found.solver for found in batch.found()} == {"enumeration"}


def test_an_engine_that_takes_nothing_leaves_the_question_open() -> None:
    with pytest.raises(OutOfTime):
        explainer("tree", (Enumeration(most=0),)).explain(ROW, want="yes", time_limit=5.0)


def test_what_it_proves_impossible_is_blamed() -> None:
    from ifonly import Actionability

    with pytest.raises(Infeasible) as caught:
        explainer("tree", (Enumeration(), *ENGINES)).explain(
            ROW, want="yes", criteria=[Actionability(frozen=["i", "j", "level"])]
        )
    assert caught.value.minimal


def test_engines_travel_with_a_pickle() -> None:
    asked = pickle.loads(pickle.dumps(explainer("linear", (Enumeration(), *ENGINES))))
    assert [engine.name for engine in asked.engines or ()] == ["enumeration", *(engine.name for engine in ENGINES)]
    assert asked.explain(ROW, want="yes").solver == "enumeration"
    assert pickle.loads(pickle.dumps(explainer("linear"))).engines is None, "those of the solver are no part of it"


def test_a_plan_knows_of_them(tmp_path: Path) -> None:
    rows = X[Y == "no"].head(4)
    usual, ours = explainer("linear"), explainer("linear", (Enumeration(), *ENGINES))
    usual.explain_all(rows, want="yes", to=tmp_path / "usual", output="csv")
    ours.explain_all(rows, want="yes", to=tmp_path / "ours", output="csv")
    for house, folder in ((ours, "usual"), (usual, "ours")):
        with pytest.raises(PlanError, match="the engines changed since"):
            house.explain_all(rows, want="yes", to=tmp_path / folder, output="csv")
    ours.explain_all(rows, want="yes", to=tmp_path / "ours", output="csv")


def test_what_is_no_engine_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"each with a name and the methods accepts and search.*\(Mine\(\), \*ENGINES\)"
    ):
        explainer("tree", (object(),))  # type: ignore[arg-type]
