"""Rows asked together get the answers of rows asked alone: guesses are confirmed, copies are exact, executors agree."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge

import questions
from ifonly import CriterionError, Explainer, Explanations, Manifold, Robustness, Target
from ifonly.batch.asking import ask_many, ask_one
from portions import one_in

WISHES = ["good", None, Target("good", probability=0.7), Target("bad")]


def people(n: int = 14) -> pd.DataFrame:
    return questions.people(n, seed=5)


def same(one: Explanations, two: Explanations) -> None:
    assert one.status().equals(two.status())
    pd.testing.assert_frame_equal(one.frame(), two.frame())
    pd.testing.assert_frame_equal(one.changes(), two.changes())
    assert [str(o.error) for o in one] == [str(o.error) for o in two]


@cache
def explained(name: str) -> Explainer:
    return questions.explainer(
        last={"line": None, "forest": RandomForestClassifier(12, max_depth=4, random_state=0)}[name]
    )


@pytest.mark.parametrize("want", one_in(2, WISHES), ids=str)
@pytest.mark.parametrize("last", ["line", "forest"])
def test_rows_asked_together_get_the_answers_of_rows_asked_alone(last: str, want: Any) -> None:
    explainer, rows = explained(last), people()
    together = [asked.outcome for asked in ask_many(explainer, rows, want=want)]
    alone = [ask_one(explainer, rows.iloc[[i]], want=want).outcome for i in range(len(rows))]
    same(Explanations(tuple(together), 0.0), Explanations(tuple(alone), 0.0))
    assert [o.explanation and o.explanation.score for o in together] == [
        o.explanation and o.explanation.score for o in alone
    ]


@pytest.mark.parametrize(
    "criterion",
    [Robustness(radius=0.02), pytest.param(Manifold(epsilon=0.05), marks=pytest.mark.slow)],
    ids=lambda c: type(c).__name__,
)
def test_criteria_that_look_at_the_model_agree_too(criterion: Any) -> None:
    explainer, rows = explained("line"), people(6)
    together = explainer.explain_all(rows, want="good", criteria=[criterion])
    alone = [ask_one(explainer, rows.iloc[[i]], want="good", criteria=[criterion]).outcome for i in range(len(rows))]
    same(together, Explanations(tuple(alone), 0.0))
    assert [[c.ranges for c in e] for e in together.found()] == [
        [c.ranges for c in o.explanation] for o in alone if o.explanation is not None
    ]


class Counted(LogisticRegression):
    """A model that counts how it is asked."""

    calls: list[int] = []  # noqa: RUF012 - shared on purpose

    def predict(self, X: Any) -> np.ndarray:
        self.calls.append(len(X))
        return super().predict(X)


def test_the_model_confirms_many_rows_in_one_call() -> None:
    explainer, rows = questions.explainer(last=Counted()), people()
    Counted.calls.clear()
    batch = explainer.explain_all(rows, want="good")
    answered = len(batch.found())
    assert answered > 5
    assert len(Counted.calls) <= 3
    assert sum(Counted.calls) >= answered


class Stricter(LogisticRegression):
    """A model that says no a little longer than its coefficients do: its form is wrong near the threshold."""

    def predict(self, X: Any) -> np.ndarray:
        score = self.decision_function(X)
        return self.classes_[(score > 1e-4).astype(int)]


def test_where_the_model_and_its_form_disagree_the_model_is_asked_alone() -> None:
    explainer, rows = questions.explainer(last=Stricter()), people(9)
    together = explainer.explain_all(rows, want="good")
    alone = [ask_one(explainer, rows.iloc[[i]], want="good").outcome for i in range(len(rows))]
    same(together, Explanations(tuple(alone), 0.0))
    assert (explainer.model.estimator.predict(together.frame()) == "good").all()


def test_a_regression_is_never_guessed() -> None:
    explainer = questions.explainer(last=Ridge(), y=lambda X: X["income"] * 2.0)
    batch = explainer.explain_all(people(8), want=Target(at_least=6.0))
    frame = batch.frame()
    said = explainer.model.estimator.predict(frame)
    assert (said >= 6.0).all()
    assert [c.prediction for e in batch.found() for c in e] == pytest.approx(said.tolist(), abs=0.0)


# -- equal questions ------------------------------------------------------------------------------------------------
def test_equal_questions_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = questions.explainer()
    rows = people(6).iloc[[0, 1, 0, 2, 1, 0]].set_axis(list("abcdef"))
    real, asked = Explainer.explain, []

    def explain(self: Explainer, row: pd.DataFrame, **options: Any) -> Any:
        asked.append(row.index[0])
        return real(self, row, **options)

    monkeypatch.setattr(Explainer, "explain", explain)
    batch = explainer.explain_all(rows, want="good")
    assert asked == ["a", "b", "d"]
    assert [o.index for o in batch] == list("abcdef")
    assert [e.factual.index[0] for e in batch.found()] == [o.index for o in batch if o.explanation is not None]
    monkeypatch.undo()
    same(batch, Explanations(tuple(ask_one(explainer, rows.iloc[[i]], want="good").outcome for i in range(6)), 0.0))


# -- executors --------------------------------------------------------------------------------------------------------
class Later:
    """A future as submitit has them: done, result and cancel, and no more."""

    def __init__(self, work: Any, *task: Any) -> None:
        self._call = lambda: work(*task)

    def done(self) -> bool:
        return True

    def result(self) -> Any:
        return self._call()

    def cancel(self) -> None:
        pass


class Elsewhere:
    def submit(self, work: Any, *task: Any) -> Later:
        return Later(work, *task)


def test_any_executor_gives_the_same_result() -> None:
    explainer, rows = explained("line"), people(12)
    here = explainer.explain_all(rows, want="good")
    with ThreadPoolExecutor(2) as threads:
        same(explainer.explain_all(rows, want="good", executor=threads), here)
    same(explainer.explain_all(rows, want="good", executor=Elsewhere()), here)
    same(explainer.explain_all(rows, want="good", executor="threading", n_jobs=2), here)


@pytest.mark.slow
def test_a_joblib_backend_without_generators_works_in_lists() -> None:
    explainer, rows = explained("line"), people(12)
    here = explainer.explain_all(rows, want="good")
    same(explainer.explain_all(rows, want="good", executor="multiprocessing", n_jobs=2), here)
    with joblib.parallel_config(backend="multiprocessing", n_jobs=2):
        same(explainer.explain_all(rows, want="good", n_jobs=2), here)


@pytest.mark.parametrize("executor", [3, "no such backend"])
def test_what_is_no_executor_is_refused(executor: Any) -> None:
    with pytest.raises(CriterionError, match=r"submit method|no backend"):
        questions.explainer().explain_all(people(2), want="good", executor=executor)


def test_no_processes_at_all_are_refused() -> None:
    with pytest.raises(CriterionError, match="'n_jobs' must be"):
        questions.explainer().explain_all(people(2), want="good", n_jobs=0)
