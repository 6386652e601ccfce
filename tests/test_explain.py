"""The Explainer as a whole: forms of input, dtypes, several answers, events, limits, Ctrl-C."""

from __future__ import annotations

import itertools
import signal
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import questions
from ifonly import (
    Actionability,
    Explainer,
    Infeasible,
    NotProvenOptimal,
    NotVerified,
    OutOfTime,
    OutsideTrainingRange,
    Proximity,
    Schema,
    Sparsity,
    Target,
)
from ifonly.events import Built, Event, Finished, Incumbent
from ifonly.solvers.backend import Limits
from ifonly.solvers.registry import find_solver
from portions import one_in

NOW = questions.FACTUAL


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return questions.explainer()


# -- rows and frames --------------------------------------------------------------------------------------------------
def rows() -> dict[str, Any]:
    polars = pytest.importorskip("polars")
    frame = pd.DataFrame([NOW])
    return {
        "dict": NOW,
        "reordered dict": dict(reversed(NOW.items())),
        "series": pd.Series(NOW),
        "frame": frame,
        "indexed frame": frame.set_axis(["applicant 7"]),
        "array": frame.to_numpy(dtype=object)[0],
        "matrix": frame.to_numpy(dtype=object),
        "list": list(NOW.values()),
        "polars": polars.DataFrame(frame.to_dict("list")),
        "polars dict": polars.DataFrame(frame.to_dict("list")).row(0, named=True),
    }


@pytest.mark.parametrize("form", list(rows()))
def test_every_form_of_a_row_gives_the_same_answer(explainer: Explainer, form: str) -> None:
    answer = explainer.explain(rows()[form], want="good")
    expected = explainer.explain(NOW, want="good")
    pd.testing.assert_frame_equal(answer.rows(), expected.frame())
    assert answer[0].certificate.objective == expected[0].certificate.objective


def test_a_polars_frame_to_train_on() -> None:
    polars = pytest.importorskip("polars")
    X = questions.people()[["age", "income", "debts"]]
    y = questions.labels(questions.people())
    table = polars.DataFrame(X.to_dict("list"))
    model = LogisticRegression(max_iter=1000).fit(X, y)
    row = table.row(0, named=True)
    here, there = Explainer(model, table), Explainer(model, X)
    pd.testing.assert_frame_equal(here.explain(row).rows(), there.explain(row).frame())


def test_a_model_fitted_on_arrays() -> None:
    X = questions.people()[["age", "income", "debts"]].to_numpy()
    y = questions.labels(questions.people())
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    explainer = Explainer(model, X)
    answer = explainer.explain(X[0])
    assert list(answer.frame().columns) == ["x0", "x1", "x2"]
    assert model.predict(answer.frame().to_numpy())[0] != model.predict(X[:1])[0]


@pytest.mark.parametrize(
    "dtypes",
    [
        {"age": "int8", "debts": "uint8", "income": "float32"},
        {"age": "Int64", "debts": "Int16", "income": "Float64"},
        {"age": "float64", "debts": "float32", "income": "float64"},
    ],
    ids=["narrow", "nullable", "floats"],
)
def test_answers_come_in_the_dtypes_of_the_data(dtypes: dict[str, str]) -> None:
    X = questions.people()[["age", "income", "debts"]].astype(dtypes)
    y = questions.labels(questions.people())
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    answer = Explainer(model, X).explain(X.iloc[[0]])
    assert (answer.frame().dtypes == X.dtypes).all()
    assert model.predict(answer.frame())[0] != model.predict(X.iloc[[0]])[0]
    assert (answer.factual.dtypes == X.dtypes).all()


def test_an_answer_survives_single_precision() -> None:
    # Rounding to float32 moves the point; an answer right on the plane must be repaired with a wider margin.
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(1e4, 30, (80, 3)).astype("float32"), columns=list("abc"))
    y = X.sum(axis=1) > X.sum(axis=1).median()
    model = LogisticRegression(C=1e6, max_iter=5000).fit(X - 1e4, y)
    model.intercept_ = model.intercept_ - model.coef_.sum() * 1e4
    explainer = Explainer(model, X, criteria=[Proximity("l2")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotProvenOptimal)  # the gap that rounding costs is told
        for i in range(6):
            answer = explainer.explain(X.iloc[[i]])
            assert model.predict(answer.frame())[0] != model.predict(X.iloc[[i]])[0]
            assert answer.frame().dtypes.eq("float32").all()


def test_declared_precision_is_kept_by_solving_not_by_rounding() -> None:
    X = questions.people()[["age", "income", "debts"]].round({"income": 1})
    y = questions.labels(questions.people())
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    explainer = Explainer(model, X, schema=Schema.infer(X, precision={"income": 1}))
    for i in range(8):
        answer = explainer.explain(X.iloc[[i]], criteria=[Actionability(frozen=["age", "debts"])] if i % 2 else ())
        income = answer.frame()["income"].iloc[0]
        assert round(income, 1) == income
        assert model.predict(answer.frame())[0] != model.predict(X.iloc[[i]])[0]


@pytest.mark.parametrize("magnitude", one_in(2, [1e-7, 1e9]))
@pytest.mark.parametrize(
    "criteria",
    [
        [Proximity("l1"), Sparsity(at_most=2)],
        [Proximity("l1"), Sparsity(price=0.3)],
        [Proximity("l2"), Sparsity(at_most=2)],
        [Proximity("linf")],
    ],
    ids=repr,
)
def test_units_do_not_matter(criteria: list[Any], magnitude: float) -> None:
    # The distance is in shares of the range, so money in billions must cost what it costs in units.
    rng = np.random.default_rng(5)
    base = pd.DataFrame(rng.uniform(1, 2, (60, 3)), columns=list("abc"))
    y = base.sum(axis=1) > 4.5
    costs = []
    for scale in (1.0, magnitude):
        X = base * scale
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
        answer = Explainer(model, X, criteria=criteria, solver="highs only").explain(X.iloc[[0]])
        assert model.predict(answer.frame())[0] != model.predict(X.iloc[[0]])[0]
        assert answer.status == "optimal"
        costs.append(answer[0].certificate.objective)
    assert costs[1] == pytest.approx(costs[0], abs=1e-5)


def test_whole_numbers_in_billions() -> None:
    rng = np.random.default_rng(6)
    X = pd.DataFrame(rng.integers(0, 2_000_000_000, (60, 3)), columns=list("abc"))
    y = X.sum(axis=1) > 3_000_000_000
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    answer = Explainer(model, X, criteria=[Proximity("l1"), Sparsity(at_most=2)]).explain(X.iloc[[0]])
    assert answer.status == "optimal"
    assert answer.frame().dtypes.eq("int64").all()
    assert model.predict(answer.frame())[0] != model.predict(X.iloc[[0]])[0]


def test_the_factual_keeps_its_index_and_prediction(explainer: Explainer) -> None:
    answer = explainer.explain(pd.DataFrame([NOW], index=["applicant 7"]), want="good")
    assert answer.factual.index.tolist() == ["applicant 7"]
    assert answer.prediction == "bad"
    assert answer.want == "'good'"
    assert answer.solver == "no solver needed"
    model = explainer.model.estimator
    assert answer.score == pytest.approx(model.predict_proba(pd.DataFrame([NOW]))[0, 1])
    assert answer[0].score == pytest.approx(model.predict_proba(answer.frame())[0, 1])


# -- several answers --------------------------------------------------------------------------------------------------
def test_several_answers_change_different_features_and_get_dearer(explainer: Explainer) -> None:
    answers = explainer.explain(NOW, want="good", n=3)
    assert len(answers) == 3
    sets = [frozenset(c.feature for c in a.changes) for a in answers]
    assert not any(a <= b for a, b in itertools.permutations(sets, 2))  # none only adds to what another changes
    costs = [a.certificate.objective for a in answers]
    assert all(b >= a - 2e-6 for a, b in itertools.pairwise(costs))
    assert (explainer.model.estimator.predict(answers.frame()) == "good").all()
    assert len(answers[:2]) == 2
    assert answers[-1] is answers.counterfactuals[-1]
    assert next(iter(answers)) is answers[0]
    assert answers.changes()["counterfactual"].unique().tolist() == [0, 1, 2]


def test_there_may_be_fewer_answers_than_asked_for(explainer: Explainer) -> None:
    only = Actionability(frozen=[c for c in NOW if c not in ("income", "debts")])
    answers = explainer.explain({**NOW, "income": 4.6}, want="good", n=9, criteria=[only])
    sets = [frozenset(c.feature for c in a.changes) for a in answers]
    assert sorted(sets, key=min) == [frozenset({"debts"}), frozenset({"income"})]
    assert answers.status == "optimal"
    assert any(note.startswith("only 2 of 9") for note in answers.notes)


def test_the_same_question_has_the_same_answer(explainer: Explainer) -> None:
    first, second = (questions.explainer().explain(NOW, want="good", n=3) for _ in range(2))
    pd.testing.assert_frame_equal(first.frame(), second.frame())


# -- defaults and policy ----------------------------------------------------------------------------------------------
def test_without_criteria_answers_are_short() -> None:
    default = questions.explainer().explain(NOW, want="good")
    plain = questions.explainer(criteria=[]).explain(NOW, want="good")
    assert len(default[0].changes) <= len(plain[0].changes)
    assert plain[0].certificate.objective == pytest.approx(plain[0].distance)  # the default distance is still there


def test_one_criterion_needs_no_list(explainer: Explainer) -> None:
    answer = explainer.explain(NOW, want="good", criteria=Sparsity(at_most=2))
    assert len(answer[0].changes) <= 2


# -- events and limits ------------------------------------------------------------------------------------------------
def test_events_tell_the_story_in_order(explainer: Explainer) -> None:
    heard: list[Event] = []
    answer = explainer.explain(NOW, want="good", on_event=heard.append)
    assert isinstance(heard[-1], Finished)
    assert heard[-1].status == answer.status == "optimal"
    assert heard[-1].seconds == answer.seconds
    assert [e for e in heard if isinstance(e, Built)]
    assert all(e.columns > 0 for e in heard if isinstance(e, Built))
    costs = [e.objective for e in heard if isinstance(e, Incumbent)]
    assert min(costs, default=answer[0].certificate.objective) >= answer[0].certificate.bound - 1e-6


def hard() -> tuple[Explainer, pd.DataFrame, Target]:
    """Forty whole-numbered features and a narrow window of outcomes: easy to approach, hard to prove."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({f"f{i}": rng.integers(0, 30, 60) for i in range(40)})
    model = LinearRegression().fit(X, X.sum(axis=1))
    model.coef_, model.intercept_ = rng.integers(1000, 99_999, 40).astype(float), 0.0
    weights = {c: float(rng.uniform(0.5, 2)) for c in X}
    explainer = Explainer(model, X, criteria=[Proximity("l1", weights=weights)])
    now = float(model.predict(X.iloc[[0]])[0])
    return explainer, X.iloc[[0]], Target(at_least=1.3 * now, at_most=1.3 * now + 40.0)


def test_out_of_time_is_told_with_what_was_proven() -> None:
    explainer, row, target = hard()
    target = replace(target, at_most=target.at_least)
    with pytest.raises(
        OutOfTime, match="No verified answer within the time limit; no answer costs less than"
    ) as caught:
        explainer.explain(row, want=target, time_limit=1e-9)
    assert caught.value.bound < np.inf


def test_what_was_found_in_time_is_returned_with_a_warning() -> None:
    explainer, row, target = hard()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            answer = explainer.explain(row, want=target, time_limit=2.0)
        except OutOfTime:  # on a slow machine that may be nothing
            return
    certificate = answer[0].certificate
    assert answer.status == certificate.status
    assert certificate.status in ("optimal", "feasible", "no_bound")
    assert [w.category for w in heard] == ([] if certificate.proven else [NotProvenOptimal])
    assert certificate.bound <= certificate.objective
    value = explainer.model.estimator.predict(answer.frame())[0]
    assert target.at_least <= value <= target.at_most


class Interrupting:
    """Presses Ctrl-C at the first event of a kind."""

    def __init__(self, kind: type[Event]) -> None:
        self.kind, self.pressed = kind, 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, self.kind) and not self.pressed:
            self.pressed += 1
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_returns_the_best_verified_point() -> None:
    explainer, row, target = hard()
    hook = Interrupting(Incumbent)
    with pytest.warns(NotProvenOptimal, match=r"valid, but not proven optimal after .* s: (within|no b).*\. Give it"):
        answer = explainer.explain(row, want=target, time_limit=600.0, n=3, on_event=hook)
    assert hook.pressed
    assert answer.status in ("feasible", "no_bound")
    assert len(answer) == 1  # it does not go on to look for more
    assert not answer[0].certificate.proven
    assert answer[0].certificate.bound < answer[0].certificate.objective
    value = explainer.model.estimator.predict(answer.frame())[0]
    assert target.at_least <= value <= target.at_most


def test_ctrl_c_with_nothing_found_is_ctrl_c() -> None:
    explainer, row, target = hard()
    narrow = replace(target, at_most=target.at_least)
    with pytest.raises(KeyboardInterrupt):
        explainer.explain(row, want=narrow, time_limit=600.0, on_event=Interrupting(Built))


def test_ctrl_c_during_a_second_answer_keeps_the_first(explainer: Explainer) -> None:
    class Later(Interrupting):
        def __call__(self, event: Event) -> None:
            self.pressed += isinstance(event, Built)
            if isinstance(event, Built) and self.pressed > first:
                signal.raise_signal(signal.SIGINT)

    heard: list[Event] = []
    explainer.explain(NOW, want="good", on_event=heard.append)
    first = sum(isinstance(e, Built) for e in heard)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotProvenOptimal)
        answer = explainer.explain(NOW, want="good", n=4, on_event=Later(Built))
    assert 1 <= len(answer) < 4
    assert (explainer.model.estimator.predict(answer.frame()) == "good").all()


# -- verification -----------------------------------------------------------------------------------------------------
class Contrary(LogisticRegression):
    """Says the opposite of its own coefficients: no form can be right about it."""

    def predict(self, X: Any) -> np.ndarray:
        return np.where(super().predict(X) == "good", "bad", "good")


def test_an_answer_the_model_refuses_is_never_returned() -> None:
    explainer = questions.explainer(last=Contrary())
    row = {**NOW, "income": 6.0, "debts": 0, "job": "full", "education": "degree"}  # good by its coefficients
    with pytest.raises(NotVerified, match="refused by the model itself, even with the margin widened") as caught:
        explainer.explain(NOW, want="good")
    assert len(caught.value.form_score) == 1
    assert caught.value.model_score
    with pytest.raises(NotVerified):
        explainer.explain(row, want="bad")


# -- inside -----------------------------------------------------------------------------------------------------------
def test_the_program_can_be_written_and_read(explainer: Explainer, tmp_path: Path) -> None:
    problem = explainer.problem(NOW, want="good", criteria=[Sparsity(at_most=2)])
    problem.write(tmp_path / "question.lp")
    text = (tmp_path / "question.lp").read_text()
    assert "income" in text
    assert "job_is_0" in text
    problem.write(str(tmp_path / "question.mps"))
    assert "ROWS" in (tmp_path / "question.mps").read_text()
    answer = find_solver("highs").solve(problem.arrays(), Limits())
    u = problem.point(answer.values)
    assert explainer.model.read.form(u[None, :])[0, 0] >= -1e-6  # the plain program asks for no margin
    assert problem.statement.objective(u[None, :])[0] == pytest.approx(answer.objective, abs=1e-6)
    assert list(explainer.schema.decode(u).columns) == list(NOW)


def test_widened_bounds_apply_to_one_call_only(explainer: Explainer) -> None:
    with pytest.warns(OutsideTrainingRange):
        explainer.explain({**NOW, "age": 99}, want="good")
    assert explainer.schema["age"].upper == 70


def test_labels_are_kept_for_criteria_that_use_them() -> None:
    X = questions.people()
    y = questions.labels(X)
    explainer = Explainer(questions.pipeline(X, y), X, y, schema=questions.schema(X))
    assert explainer.training.labels.tolist() == y.tolist()
    assert explainer.training.predictions.shape == (len(X),)
    assert explainer.training.score_scale > 0


def test_impossible_is_an_answer(explainer: Explainer) -> None:
    with pytest.raises(Infeasible):
        explainer.explain(NOW, want="good", criteria=[Actionability(frozen=list(NOW))])
