"""Every warning points to the line of the caller, and a batch keeps a row's warnings beside its answer."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import questions
from ifonly import Actionability, Explainer, FactualViolatesDemand, NotProvenOptimal, OutsideTrainingRange, errors
from ifonly.result.values import Certificate

NOW = questions.FACTUAL
BROKEN = [Actionability(ranges={"debts": (0, 2)})]  # the factual has 4
OUTSIDE = {**NOW, "age": 95}


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return questions.explainer()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer has a bound, as if time had always run out."""
    made = Certificate.of.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(
        Certificate, "of", classmethod(lambda cls, cost, bound, **rest: made(cls, cost, -np.inf, **rest))
    )


def heard(call: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught


def line_of(word: str, function: Callable[..., Any]) -> int:
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, line in enumerate(lines) if word in line and "line_of" not in line)


def test_every_warning_class_is_looked_at_here() -> None:
    every = {name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Warning)}
    assert every == {"IfOnlyWarning", "FactualViolatesDemand", "NotProvenOptimal", "OutsideTrainingRange"}


def test_a_value_outside_the_range(explainer: Explainer) -> None:
    def ask() -> None:
        explainer.explain(OUTSIDE, want="good")

    (w,) = heard(ask)
    assert (w.category, w.filename, w.lineno) == (OutsideTrainingRange, __file__, line_of("explain(", ask))


def test_a_demand_that_the_factual_breaks(explainer: Explainer) -> None:
    def ask() -> None:
        explainer.explain(NOW, want="good", criteria=BROKEN)

    (w,) = heard(ask)
    assert (w.category, w.filename, w.lineno) == (FactualViolatesDemand, __file__, line_of("explain(", ask))


@pytest.mark.usefixtures("hasty")
def test_an_answer_that_is_not_proven(explainer: Explainer) -> None:
    def ask() -> None:
        explainer.explain(NOW, want="good")

    (w,) = heard(ask)
    assert (w.category, w.filename, w.lineno) == (NotProvenOptimal, __file__, line_of("explain(", ask))
    assert "s: no bound yet. Give it a longer time_limit" in str(w.message)


def test_the_program_of_a_question(explainer: Explainer) -> None:
    caught = heard(lambda: explainer.problem(OUTSIDE, want="good", criteria=BROKEN))
    assert {w.category for w in caught} == {OutsideTrainingRange, FactualViolatesDemand}
    assert {w.filename for w in caught} == {__file__}


@pytest.mark.usefixtures("hasty")
def test_a_batch_keeps_the_warnings_of_a_row_beside_it(explainer: Explainer) -> None:
    rows = pd.DataFrame([{**NOW, "debts": 1}, OUTSIDE], index=["inside", "outside"])
    batch: list[Any] = []
    assert heard(lambda: batch.extend(explainer.explain_all(rows, want="good", criteria=BROKEN))) == []
    kinds = [[type(w) for w in outcome.warnings] for outcome in batch]
    assert kinds == [[NotProvenOptimal], [OutsideTrainingRange, FactualViolatesDemand, NotProvenOptimal]]
    assert [outcome.status for outcome in batch] == ["no_bound", "no_bound"]


@pytest.mark.slow
def test_workers_send_the_warnings_back(explainer: Explainer) -> None:
    rows = pd.DataFrame([NOW, OUTSIDE])
    batch = explainer.explain_all(rows, want="good", criteria=BROKEN, n_jobs=2)
    kinds = [[type(w) for w in outcome.warnings] for outcome in batch]
    assert kinds == [[FactualViolatesDemand], [OutsideTrainingRange, FactualViolatesDemand]]


def test_a_batch_passes_the_models_own_warnings_on() -> None:
    X = questions.people()[["age", "income", "debts"]]

    class Talkative(questions.LogisticRegression):
        def predict(self, X: Any) -> Any:
            warnings.warn("I am old", FutureWarning, stacklevel=2)
            return super().predict(X)

    explainer = Explainer(Talkative(max_iter=5000).fit(X, questions.labels(questions.people())), X)
    row = X[explainer.model.estimator.predict_proba(X)[:, 1] < 0.3].iloc[[0]]
    caught = heard(lambda: explainer.explain_all(row, want="good"))
    assert {w.category for w in caught} == {FutureWarning}
