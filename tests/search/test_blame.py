"""Impossible: the conflict is minimal, each loosening is enough, and nothing less is."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest

import questions
from ifonly import (
    Actionability,
    Explainer,
    FactualViolatesDemand,
    Implies,
    Infeasible,
    LinearRow,
    NoCounterfactual,
    OutOfTime,
    Proximity,
    Sparsity,
)
from portions import one_in

NOW = {**questions.FACTUAL, "income": 4.6}  # a single change of debts, income, age or education would do
OTHERS = ["age", "job", "education", "home", "phone"]


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return questions.explainer(criteria=[Proximity("l1")])


def ask(explainer: Explainer, criteria: Sequence[Any], want: Any = "good") -> Infeasible | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FactualViolatesDemand)
        try:
            explainer.explain(NOW, want=want, criteria=criteria)
        except Infeasible as error:
            return error
    return None


def refused(explainer: Explainer, *criteria: Any) -> Infeasible:
    error = ask(explainer, criteria)
    assert error is not None, "the question is possible"
    return error


def change(error: Infeasible, about: str) -> str:
    return next(r.change for r in error.relaxations if about in r.demand)


def amount(error: Infeasible, about: str) -> float:
    return next(r.amount for r in error.relaxations if about in r.demand)


# -- the conflict -----------------------------------------------------------------------------------------------------
def test_it_is_an_answer_in_words(explainer: Explainer) -> None:
    error = refused(explainer, Actionability(frozen=["income", "debts", "education", "age", "job"]))
    assert isinstance(error, NoCounterfactual)
    assert isinstance(error, RuntimeError)
    lines = str(error).splitlines()
    assert lines[0] == "No counterfactual exists: these demands cannot be met together (proven)."
    assert "  - frozen debts" in lines
    assert any(line.startswith("  - unfreeze debts (it would become ") for line in lines)
    assert len(error.relaxations) == len(error.conflict) - 1  # wanting something else is no way out


def test_it_survives_pickling(explainer: Explainer) -> None:
    error = refused(explainer, Actionability(frozen=["income", "debts", "education", "age", "job"]))
    same = pickle.loads(pickle.dumps(error))
    assert (str(same), same.conflict, same.relaxations) == (str(error), error.conflict, error.relaxations)
    late = pickle.loads(pickle.dumps(OutOfTime("late", 2.5)))
    assert (str(late), late.bound) == ("late", 2.5)


IMPLICATION = "if education is ['college', 'degree'] then home is False and debts is (5, None)"
# One maker per demand, so that a conflict's words can be turned back into criteria.
MAKERS: dict[str, Callable[[], Any]] = {
    "frozen income": lambda: Actionability(frozen=["income"]),
    "frozen debts": lambda: Actionability(frozen=["debts"]),
    "frozen job": lambda: Actionability(frozen=["job"]),
    "frozen education": lambda: Actionability(frozen=["education"]),
    "frozen home": lambda: Actionability(frozen=["home"]),
    "age may only decrease": lambda: Actionability(decrease=["age"]),
    "debts may only increase": lambda: Actionability(increase=["debts"]),
    "range of income (4, 5)": lambda: Actionability(ranges={"income": (4, 5)}),
    "education moves by at most 1 levels": lambda: Actionability(max_step={"education": 1}),
    "job only none, part": lambda: Actionability(allow={"job": ["none", "part"]}),
    "job from 'part' only to none": lambda: Actionability(conditional={"job": {"part": ["none"]}}),
    "change at most 1 feature": lambda: Sparsity(at_most=1),
    "change at most 2 features": lambda: Sparsity(at_most=2),
    "1 age in (-inf, 35)": lambda: Actionability(rows=[LinearRow({"age": 1}, at_most=35)]),
    "1 age +3 debts in (38, inf)": lambda: Actionability(rows=[LinearRow({"age": 1, "debts": 3}, at_least=38)]),
    IMPLICATION: lambda: Actionability(
        implies=[Implies({"education": ["college", "degree"]}, {"home": False, "debts": (5, None)})]
    ),
}
QUESTIONS = [
    [
        "frozen income",
        "frozen debts",
        "frozen job",
        "age may only decrease",
        "frozen home",
        "frozen education",
    ],
    [
        "change at most 1 feature",
        "frozen debts",
        "range of income (4, 5)",
        "job only none, part",
        "frozen home",
        "frozen education",
        "1 age in (-inf, 35)",
    ],
    [
        "debts may only increase",
        "range of income (4, 5)",
        "job from 'part' only to none",
        "frozen home",
        "frozen education",
        "1 age +3 debts in (38, inf)",
        "age may only decrease",
    ],
    [
        "change at most 2 features",
        "range of income (4, 5)",
        "job only none, part",
        IMPLICATION,
        "debts may only increase",
        "age may only decrease",
        "education moves by at most 1 levels",
    ],
]


@pytest.mark.parametrize("demands", one_in(3, QUESTIONS), ids=lambda d: d[0])
def test_the_conflict_is_minimal(explainer: Explainer, demands: list[str]) -> None:
    error = refused(explainer, *(MAKERS[d]() for d in demands))
    conflict = [d for d in error.conflict if d != "want 'good'"]
    assert set(conflict) <= set(demands)
    assert "want 'good'" in error.conflict  # without it, staying put meets every other demand here
    assert ask(explainer, [MAKERS[d]() for d in conflict]) is not None, "the conflict alone is possible"
    for left_out in conflict:
        rest = [MAKERS[d]() for d in conflict if d != left_out]
        assert ask(explainer, rest) is None, f"still impossible without {left_out!r}"


# -- the smallest loosening -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("steps", "needed"),
    [
        ({"income": 0.9, "debts": 1, "age": 10}, 2),
        pytest.param({"income": 0.5, "debts": 1, "age": 10}, 3, marks=pytest.mark.slow),
    ],
)
def test_a_bound_on_changes(explainer: Explainer, steps: dict[str, float], needed: int) -> None:
    others = Actionability(max_step=steps, frozen=["job", "home", "education"])
    error = refused(explainer, Sparsity(at_most=1), others)
    assert change(error, "change at most") == f"at_most 1 -> {needed}"
    assert amount(error, "change at most") == needed - 1
    assert ask(explainer, [Sparsity(at_most=needed), others]) is None
    assert ask(explainer, [Sparsity(at_most=needed - 1), others]) is not None


def test_a_range_of_whole_numbers(explainer: Explainer) -> None:
    frozen = Actionability(frozen=["income", *OTHERS])
    error = refused(explainer, Actionability(ranges={"debts": (3, 6)}), frozen)
    found = re.fullmatch(r"range of debts \(3, 6\) -> \((\d), 6\)", change(error, "range of debts"))
    assert found
    low = int(found[1])
    assert amount(error, "range of debts") == 3 - low
    assert ask(explainer, [Actionability(ranges={"debts": (low, 6)}), frozen]) is None
    assert ask(explainer, [Actionability(ranges={"debts": (low + 1, 6)}), frozen]) is not None


def test_a_range_of_real_numbers_is_printed_so_that_it_suffices(explainer: Explainer) -> None:
    frozen = Actionability(frozen=["debts", *OTHERS])
    error = refused(explainer, Actionability(ranges={"income": (4, 5)}), frozen)
    found = re.fullmatch(r"range of income \(4, 5\) -> \(4, ([\d.]+)\)", change(error, "range of income"))
    assert found
    assert ask(explainer, [Actionability(ranges={"income": (4, float(found[1]))}), frozen]) is None
    less = 5 + amount(error, "range of income") - 1e-4
    assert ask(explainer, [Actionability(ranges={"income": (4, less)}), frozen]) is not None


def test_a_range_open_at_one_end(explainer: Explainer) -> None:
    frozen = Actionability(frozen=["income", *OTHERS])
    error = refused(explainer, Actionability(ranges={"debts": (3, None)}), frozen)
    assert re.fullmatch(r"range of debts \(3, None\) -> \(\d, None\)", change(error, "range of debts"))


def test_a_range_beyond_the_schema_is_blamed_alone(explainer: Explainer) -> None:
    error = refused(explainer, Actionability(ranges={"debts": (20, 30)}))
    assert error.conflict == ("range of debts (20, 30)",)
    low = int(re.search(r"-> \((\d+), 30\)", change(error, "range"))[1])
    assert ask(explainer, [Actionability(ranges={"debts": (low, 30)})]) is None


def test_the_largest_step(explainer: Explainer) -> None:
    frozen = Actionability(frozen=["debts", *OTHERS])
    error = refused(explainer, Actionability(max_step={"income": 0.25}), frozen)
    step = float(re.fullmatch(r"max_step of income 0.25 -> ([\d.]+)", change(error, "moves by"))[1])
    assert amount(error, "moves by") == pytest.approx(step - 0.25, abs=1e-4)
    assert ask(explainer, [Actionability(max_step={"income": step}), frozen]) is None
    assert ask(explainer, [Actionability(max_step={"income": step - 1e-4}), frozen]) is not None


def test_unfreezing_names_the_nearest_value(explainer: Explainer) -> None:
    rest = Actionability(frozen=["debts", *OTHERS])
    error = refused(explainer, Actionability(frozen=["income"]), rest)
    value = float(re.fullmatch(r"unfreeze income \(it would become ([\d.]+)\)", change(error, "frozen income"))[1])
    assert amount(error, "frozen income") == pytest.approx(value - NOW["income"], abs=1e-4)
    good = pd.DataFrame([{**NOW, "income": value}])
    assert explainer.model.estimator.predict(good)[0] == "good"
    assert explainer.model.estimator.predict(good.assign(income=value - 1e-3))[0] == "bad"


def test_a_direction(explainer: Explainer) -> None:
    rest = Actionability(frozen=["income", *OTHERS])
    error = refused(explainer, Actionability(increase=["debts"]), rest)
    value = int(re.fullmatch(r"let debts decrease to (\d)", change(error, "debts may only"))[1])
    assert amount(error, "debts may only") == NOW["debts"] - value
    predict = explainer.model.estimator.predict
    assert predict(pd.DataFrame([{**NOW, "debts": value}]))[0] == "good"
    assert predict(pd.DataFrame([{**NOW, "debts": value + 1}]))[0] == "bad"
    down = refused(explainer, Actionability(decrease=["income"]), Actionability(frozen=["debts", *OTHERS]))
    assert change(down, "income may only").startswith("let income increase to ")


def test_levels(explainer: Explainer) -> None:
    most = Actionability(frozen=["income", "age", "home", "phone", "education"], max_step={"debts": 1})
    error = refused(explainer, Actionability(allow={"job": ["none", "part"]}), most)
    assert change(error, "job only") == "also allow job to be full"
    assert amount(error, "job only") == 1.0
    assert ask(explainer, [Actionability(allow={"job": ["none", "part", "full"]}), most]) is None


@pytest.mark.parametrize("side", one_in(2, ["at_most", "at_least"]))
def test_a_linear_row(explainer: Explainer, side: str) -> None:
    rest = Actionability(frozen=["debts", *OTHERS])
    sign, limit = (1.0, 5.0) if side == "at_most" else (-1.0, -5.0)
    error = refused(explainer, Actionability(rows=[LinearRow({"income": sign}, **{side: limit})]), rest)
    found = re.fullmatch(rf"{side} {limit:g} -> (-?[\d.]+)", change(error, "income in"))
    assert found
    loosened = Actionability(rows=[LinearRow({"income": sign}, **{side: float(found[1])})])
    assert ask(explainer, [loosened, rest]) is None
    less = limit + sign * (amount(error, "income in") - 1e-4)
    assert ask(explainer, [Actionability(rows=[LinearRow({"income": sign}, **{side: less})]), rest]) is not None


def test_an_implication_can_only_be_dropped(explainer: Explainer) -> None:
    rest = Actionability(frozen=["debts", "age", "job", "education", "home"])
    rule = Implies({"income": (5.0, None)}, {"age": (60, None)})
    error = refused(explainer, Actionability(implies=[rule]), rest)
    assert change(error, "if income") == "drop: if income is (5.0, None) then age is (60, None)"


# -- several conflicts at once ----------------------------------------------------------------------------------------
def test_when_one_loosening_is_not_enough_all_are_named(explainer: Explainer) -> None:
    # Two clashes of their own: a range beyond the schema, and a row that nothing meets.
    actions = Actionability(ranges={"debts": (20, 30)}, rows=[LinearRow({"age": 1}, at_most=5)])
    error = refused(explainer, actions)
    assert len(error.conflict) == 1
    (way,) = error.relaxations
    assert way.change.count("drop: ") == 2
    assert "range of debts (20, 30)" in way.change
    assert "age in (-inf, 5)" in way.change
    assert way.amount == 2.0
    assert str(way) == way.change


def test_two_ways_of_being_frozen(explainer: Explainer) -> None:
    twice = [Actionability(frozen=["income", "debts", *OTHERS]), Actionability(frozen=["debts"])]
    error = refused(explainer, *twice)
    assert error.relaxations
    assert ask(explainer, [Actionability(frozen=["income", "debts", *OTHERS])]) is not None


def test_frozen_outside_its_range(explainer: Explainer) -> None:
    error = refused(explainer, Actionability(frozen=["debts"], ranges={"debts": (0, 2)}))
    assert sorted(error.conflict) == ["frozen debts", "range of debts (0, 2)"]
    assert change(error, "frozen debts").startswith("unfreeze debts (it would become ")
    assert change(error, "range of debts") == "range of debts (0, 2) -> (0, 4)"


def test_the_wanted_outcome_itself_may_be_out_of_reach() -> None:
    explainer = questions.explainer(bounds={"income": (4.5, 4.7), "debts": (4, 5), "age": (18, 35)})
    with pytest.raises(Infeasible) as caught:
        explainer.explain(NOW, want="good", criteria=[Actionability(frozen=["job", "home", "education"])])
    assert caught.value.conflict[0] == "want 'good'"
