"""Abilities: a demand or a criterion has one by inheriting it or by its methods, and callers do without it otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import ifonly.extend
from ifonly import Explainer, Infeasible, NotVerified, OutOfTime, Proximity
from ifonly.criteria.actionability.demands import Between, Direction, Frozen, Imply, LevelSet, LinearDemand
from ifonly.criteria.causality.criterion import Causality
from ifonly.criteria.causality.mechanism import CausalEquation
from ifonly.criteria.diversity.criterion import Diversity
from ifonly.criteria.diversity.distinct import Apart, LeaveOne, OtherFeatures
from ifonly.criteria.manifold.branches import InCloud
from ifonly.criteria.manifold.criterion import Manifold
from ifonly.criteria.manifold.in_hull import InHull
from ifonly.criteria.manifold.isolation import Normal
from ifonly.criteria.robustness.criterion import Robustness
from ifonly.criteria.robustness.keeps_lead import KeepsLead
from ifonly.criteria.sparsity import Sparsity, _AtMost
from ifonly.data.schema import Schema
from ifonly.errors import Relaxation
from ifonly.program.mip import Affine
from ifonly.question.abilities import Ability, Counts, Loosens, Refines, Remains, Shrinks, Tightens, Verifies
from ifonly.question.criterion import ChecksTogether, Couples, Criterion, HasConsequences, Remarks, Tabulates
from ifonly.question.demand import BoxDemand, Demand
from ifonly.question.further import Clustered, Diversifies
from ifonly.question.goal import ClassGoal, IntervalGoal, ProbabilityGoal
from ifonly.question.guidance import Branches, KeepsDistance, Proposes, Squeezes, UnionOfBoxes
from ifonly.question.outside import Outside
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Embeds, Encloses, Ranges, Wraps
from ifonly.search.engine import separable
from ifonly.testing import check_criterion

OF_DEMANDS = (
    Loosens,
    Shrinks,
    Remains,
    Refines,
    Counts,
    Tightens,
    Verifies,
    Proposes,
    Branches,
    UnionOfBoxes,
    KeepsDistance,
    Squeezes,
    Wraps,
    Embeds,
    Encloses,
    Clustered,
)
OF_CRITERIA = (Tabulates, Couples, HasConsequences, Remarks, ChecksTogether, Diversifies, Ranges)


def methods(ability: type) -> list[str]:
    return [name for name in vars(ability) if not name.startswith("_")]


# -- all of them ------------------------------------------------------------------------------------------------------
def test_every_ability_is_tried_here_and_stands_in_the_documented_tables() -> None:
    ours = {ability for ability in Ability.__subclasses__() if ability.__module__.startswith("ifonly.")}
    assert ours == {*OF_DEMANDS, *OF_CRITERIA}
    assert all(getattr(ifonly.extend, ability.__name__) is ability for ability in ours)
    text = (Path(__file__).resolve().parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", text, flags=re.MULTILINE))
    for ability in ours:
        abstract = getattr(ability, "__abstractmethods__", frozenset())
        assert abstract <= set(re.findall(r"`(\w+)`", rows.get(ability.__name__, ""))), ability.__name__


# -- who has which ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ability", [*OF_DEMANDS, *OF_CRITERIA], ids=lambda a: a.__name__)
def test_an_ability_is_inherited_or_defined_in_whole(ability: type) -> None:
    base = Demand if ability in OF_DEMANDS else Criterion
    own = {name: lambda *_: None for name in methods(ability)}
    assert not issubclass(base, ability)
    assert issubclass(type("Inherits", (ability,), own), ability)
    assert issubclass(type("Defines", (base,), own), ability)
    for name in own:
        rest = {n: f for n, f in own.items() if n != name}
        if not rest:
            continue
        with pytest.raises(
            TypeError, match=f"LacksOne defines .* but not '{name}'.* Inherit ifonly.extend.{ability.__name__},"
        ):
            issubclass(type("LacksOne", (base,), rest), ability)


def test_a_demand_of_the_box_has_no_rows() -> None:
    with pytest.raises(TypeError, match="adds rows, so it is not a BoxDemand"):
        type("Both", (BoxDemand,), {"apply": lambda *_: None})


@pytest.mark.parametrize("ability", [*OF_DEMANDS, *OF_CRITERIA], ids=lambda a: a.__name__)
def test_who_inherits_an_ability_must_fill_it_in(ability: type) -> None:
    with pytest.raises(TypeError, match="abstract"):
        type("Empty", (ability,), {})("text" if ability in OF_DEMANDS else ())


DECLARED: dict[type[Demand], set[type]] = {
    Demand: set(),
    BoxDemand: {BoxDemand},
    **{kind: {BoxDemand, Loosens} for kind in (Frozen, Direction)},
    **{kind: {BoxDemand, Loosens, Remains} for kind in (Between, LevelSet)},
    LinearDemand: {Loosens},
    Imply: {UnionOfBoxes},
    Outside: set(),
    _AtMost: {Counts, Loosens},
    **{kind: {Proposes, UnionOfBoxes} for kind in (OtherFeatures, LeaveOne)},
    Apart: {Proposes, KeepsDistance},
    InHull: {Proposes, Squeezes, Loosens},
    InCloud: {Proposes, Squeezes, Loosens, Branches, Clustered},
    Normal: {Verifies, Loosens},
    KeepsLead: {Proposes, Loosens, Shrinks, Refines, Verifies, Wraps, Embeds, Encloses},
    CausalEquation: {Tightens, Proposes, Refines, Verifies, Loosens},
    ClassGoal: {Proposes},
    **{kind: {Proposes, Loosens} for kind in (ProbabilityGoal, IntervalGoal)},
}


@pytest.mark.parametrize("kind", DECLARED, ids=lambda kind: kind.__name__)
def test_what_each_demand_declares(kind: type[Demand]) -> None:
    assert {a for a in (BoxDemand, *OF_DEMANDS) if issubclass(kind, a)} == DECLARED[kind]


def test_what_each_criterion_declares() -> None:
    found = {
        c: {a for a in OF_CRITERIA if issubclass(c, a)}
        for c in (Proximity, Sparsity, Diversity, Manifold, Robustness, Causality)
    }
    assert found == {
        Proximity: {Tabulates, Couples, Remarks},
        Sparsity: {Tabulates},
        Diversity: {ChecksTogether, Diversifies},
        Manifold: {Remarks},
        Robustness: {Remarks, Ranges},
        Causality: {HasConsequences, Remarks, ChecksTogether},
    }


# -- what callers do with and without them ------------------------------------------------------------------------------
RNG = np.random.default_rng(1)
X = pd.DataFrame({"a": RNG.integers(0, 9, 120).astype(float), "b": RNG.integers(0, 9, 120).astype(float)})
SCHEMA = Schema.infer(X, precision={"a": 0, "b": 0})
MODEL = LogisticRegression().fit(X, np.where(X.a + 2 * X.b > 12, "yes", "no"))
TREE = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, np.where(X.a + 2 * X.b > 12, "yes", "no"))
ROW = pd.Series({"a": 2.0, "b": 1.0})


@dataclass(frozen=True)
class Just(Criterion):
    """A criterion of one demand."""

    demand: Demand

    def demands(self, query: Query) -> list[Demand]:
        del query
        return [self.demand]


@dataclass(frozen=True, eq=False)
class SumAtMost(Demand):
    """``a + b <= most``, with no ability at all."""

    most: float

    def raw(self, query: Query) -> frozenset[int]:
        del query
        return frozenset({0, 1})

    def apply(self, problem: Program) -> None:
        problem.mip.row(problem.x.raw(0) + problem.x.raw(1), upper=self.most)

    def holds(self, query: Query, U: Any) -> Any:
        del query
        return U.sum(axis=1) <= self.most


@dataclass(frozen=True, eq=False)
class LooseSum(SumAtMost, Loosens):
    def excess(self, problem: Program) -> Affine:
        return problem.x.raw(0) + problem.x.raw(1)

    def loosened(self, query: Query, u: Any) -> Relaxation:
        del query
        return Relaxation(self.text, f"sum {self.most:g} -> {u.sum():g}", float(u.sum() - self.most))


def explainer(demand: Demand, model: Any = MODEL) -> Explainer:
    return Explainer(model, X, schema=SCHEMA, criteria=[Proximity("l1", scale="none"), Just(demand)])


GRID = pd.DataFrame([(a, b) for a in range(9) for b in range(9)], columns=["a", "b"], dtype=float)


def brute(allowed: Any) -> float:
    """The least distance of any point that the model and a demand allow."""
    good = GRID[(MODEL.predict(GRID) == "yes") & allowed(GRID.to_numpy())]
    return float(np.abs(good - ROW).sum(axis=1).min())


@pytest.mark.parametrize("demand", [SumAtMost("small sum", 9.0), LooseSum("small sum", 9.0)])
def test_the_answer_is_the_same_with_and_without(demand: SumAtMost) -> None:
    check_criterion(Just(demand), explainer(demand), ROW, want="yes")
    answer = explainer(demand).explain(ROW, want="yes")[0]
    assert answer.distance == pytest.approx(brute(lambda U: U.sum(axis=1) <= 9.0))


def test_what_has_a_size_is_loosened_by_it_and_the_rest_is_dropped() -> None:
    least = int(GRID[MODEL.predict(GRID) == "yes"].sum(axis=1).min())
    for kind, change in ((SumAtMost, "drop: small sum"), (LooseSum, f"sum 1 -> {least}")):
        with pytest.raises(Infeasible) as caught:
            explainer(kind("small sum", 1.0)).explain(ROW, want="yes")
        assert [r.change for r in caught.value.relaxations if r.demand == "small sum"] == [change]


@dataclass(frozen=True, eq=False)
class AtMostSix(Demand):
    """``a <= 6``, by the box."""

    def narrow(self, query: Query, box: Any) -> None:
        del query
        box.narrow(0, 0.0, 6.0)


@dataclass(frozen=True, eq=False)
class DeclaredAtMostSix(BoxDemand):
    narrow = AtMostSix.narrow


@dataclass(frozen=True, eq=False)
class OneChange(Counts, Demand):
    def at_most(self) -> int:
        return 1

    def apply(self, problem: Program) -> None:
        problem.mip.row(Affine.total(problem.x.changed(j) for j in problem.moving()), upper=1.0)

    def holds(self, query: Query, U: Any) -> Any:
        return query.changed(U).sum(axis=1) <= 1


def test_only_what_is_declared_to_lie_in_the_box_needs_no_solver() -> None:
    for demand, direct in ((AtMostSix("a <= 6"), False), (DeclaredAtMostSix("a <= 6"), True), (OneChange("one"), True)):
        asked = explainer(demand)
        statement: Statement = asked.problem(ROW, want="yes").statement
        found = separable(statement)
        assert (found is not None) == direct
        assert found is None or found.most == (1 if isinstance(demand, Counts) else 2)
        answer = asked.explain(ROW, want="yes")[0]
        assert answer.distance == pytest.approx(brute(partial(demand.holds, statement.query)))
        assert answer.certificate.proven


@dataclass(frozen=True, eq=False)
class Proposing(SumAtMost, Proposes):
    asked: tuple[list[int], ...] = ([],)

    def candidates(self, statement: Any, box: Any, deadline: Any) -> Iterable[Any]:
        del statement, box, deadline
        self.asked[0].append(1)
        return [np.array([0.0, 8.0])]


def test_who_proposes_is_asked() -> None:
    demand = Proposing("small sum", 9.0, ([],))
    answer = explainer(demand).explain(ROW, want="yes")[0]
    assert demand.asked[0]
    assert answer.distance == pytest.approx(brute(lambda U: U.sum(axis=1) <= 9.0))


@dataclass(frozen=True, eq=False)
class Doubted(SumAtMost, Verifies):
    def verified(self, query: Query, U: Any) -> Any:
        return np.zeros(len(U), dtype=bool)


def test_the_word_of_who_verifies_is_the_last() -> None:
    with pytest.raises((NotVerified, OutOfTime)):
        explainer(Doubted("small sum", 9.0), TREE).explain(ROW, want="yes", time_limit=5)
    assert explainer(SumAtMost("small sum", 9.0), TREE).explain(ROW, want="yes")
