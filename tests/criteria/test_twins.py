"""Every criterion is said twice; at pinned rows the optimiser and NumPy agree on what holds and what it costs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import questions
from ifonly import Actionability, FactualViolatesDemand, Implies, LinearRow, Proximity, Sparsity
from ifonly.explain import Explainer
from ifonly.question.criterion import Couples, Criterion
from ifonly.question.demand import Demand
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.testing import check_criterion
from portions import one_in

CRITERIA = [
    *(Proximity(norm, scale=scale) for norm in ("l1", "l2") for scale in ("range", "mad", "std", "none")),
    Proximity("linf"),
    Proximity("linf", scale={"income": 2.0}, weights={"job": 0.5, "age": 0.0}),
    Proximity("mahalanobis"),
    Proximity("mahalanobis", weights={"age": 2.0, "education": 3.0}),
    Proximity("l2", weights={"age": 0.5, "education": 2.0, "home": 3.0}),
    Sparsity(at_most=2),
    Sparsity(price=0.3),
    Sparsity(at_most=4, price=0.1),
    Actionability(frozen=["age", "job"]),
    Actionability(increase=["age", "education"], decrease=["debts"]),
    Actionability(ranges={"income": (1.0, 3.0), "debts": (None, 6), "age": (25, None)}),
    Actionability(max_step={"age": 10, "income": 1.25, "education": 1}),
    Actionability(allow={"job": ["part", "full"], "education": ["school", "degree"]}),
    Actionability(conditional={"job": {"part": ["full"], "none": ["part"]}}),
    Actionability(rows=[LinearRow({"age": 1, "debts": -2, "home": 5}, at_least=20, at_most=60)]),
    Actionability(rows=[LinearRow({"income": 1.0, "debts": 0.5}, at_most=5.1)]),
    Actionability(implies=[Implies({"job": "full", "age": (40, None)}, {"home": True, "income": (2.0, 5.0)})]),
    Actionability(implies=[Implies({"education": ["college", "degree"]}, {"debts": (None, 5)})]),
    Actionability(implies=[Implies({"debts": 4}, {"phone": "no"})]),
]


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return questions.explainer()


@pytest.mark.parametrize("criterion", one_in(2, CRITERIA), ids=repr)
def test_twins_agree(criterion: Criterion, explainer: Explainer) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FactualViolatesDemand)
        check_criterion(criterion, explainer, questions.FACTUAL, want="good", points=12)


# -- a conformance kit must be able to fail ---------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _OnlyNumpy(Demand):
    def holds(self, query: Query, U: np.ndarray) -> np.ndarray:
        return U[:, 0] < 30


@dataclass(frozen=True, eq=False)
class _OnlyBox(Demand):
    def narrow(self, query: Query, box) -> None:
        box.narrow(0, 40, 50)

    def holds(self, query: Query, U: np.ndarray) -> np.ndarray:
        return np.ones(len(U), dtype=bool)


@dataclass(frozen=True, eq=False)
class _Never(Demand):
    def holds(self, query: Query, U: np.ndarray) -> np.ndarray:
        return np.zeros(len(U), dtype=bool)

    def apply(self, problem: Program) -> None:
        problem.mip.row(problem.x.raw(0), upper=-1.0)


@dataclass(frozen=True)
class Broken(Couples, Criterion):
    what: str

    def couples(self, query: Query) -> frozenset[int]:
        return frozenset()

    def add_cost(self, problem: Program) -> None:
        pass

    def demands(self, query: Query) -> list[Demand]:
        made = {"only NumPy": _OnlyNumpy, "only the box": _OnlyBox, "never": _Never}
        return [made[self.what]("broken")] if self.what in made else []

    def coupled_cost(self, query: Query, U: np.ndarray) -> np.ndarray:
        return np.full(len(U), 1.0 if self.what == "cost" else 0.0)


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("only NumPy", "NumPy says False, the optimiser True"),
        ("only the box", "the box excludes a row that every demand allows"),
        ("cost", "NumPy says it costs 1.0, the optimiser 0.0"),
        ("never", "no row meets the demands"),
    ],
)
def test_the_kit_finds_a_criterion_that_says_two_things(what: str, says: str, explainer: Explainer) -> None:
    with pytest.raises(AssertionError, match=says):
        check_criterion(Broken(what), explainer, questions.FACTUAL, want="good")
