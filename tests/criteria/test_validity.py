"""The wanted outcome: classes, probabilities, intervals; ties exactly as `predict` breaks them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.svm import LinearSVC

import questions
from ifonly import Actionability, CriterionError, Explainer, Infeasible, Proximity, Target
from ifonly.criteria.validity import resolve
from portions import one_in

NOW = questions.FACTUAL


def three(X: pd.DataFrame) -> np.ndarray:
    score = X["income"] - 0.6 * X["debts"] + 0.03 * X["age"]
    return np.digitize(score, np.quantile(score, [0.4, 0.7]))


# -- classes ----------------------------------------------------------------------------------------------------------
def test_none_means_the_other_class() -> None:
    explainer = questions.explainer()
    assert explainer.explain(NOW)[0].prediction == "good"
    good = explainer.explain(NOW).frame().iloc[0]
    assert explainer.explain(good)[0].prediction == "bad"
    likely = explainer.explain(NOW, want=Target(probability=0.8)).frame()
    assert explainer.model.estimator.predict_proba(likely)[0, 1] >= 0.8


@pytest.mark.parametrize(
    "last", one_in(2, [LogisticRegression(), LinearSVC(dual=False), RidgeClassifier(), SGDClassifier()])
)
@pytest.mark.parametrize("label", [0, 1, 2])
def test_each_of_three_classes(last: Any, label: int) -> None:
    explainer = questions.explainer(last=last, y=three)
    model = explainer.model.estimator
    if model.predict(pd.DataFrame([NOW]))[0] == label:
        with pytest.raises(CriterionError, match=f"already there: the model says {label}"):
            explainer.explain(NOW, want=label)
        return
    answer = explainer.explain(NOW, want=label)
    assert model.predict(answer.frame())[0] == label
    assert answer[0].score is not None
    assert answer.status == "optimal"


class TestTies:
    """A score exactly on the threshold, on a grid where it can be reached."""

    X = pd.DataFrame({"a": np.arange(0, 9), "b": np.arange(0, 9)[::-1].copy()})

    def model(self, classes: Any) -> LogisticRegression:
        model = LogisticRegression().fit(self.X, np.resize(classes, 9))
        model.coef_, model.intercept_ = np.array([[1.0, 1.0]]), np.array([-8.0])
        return model

    def test_a_tie_goes_to_the_first_class(self) -> None:
        explainer = Explainer(self.model([0, 1]), self.X, criteria=[Proximity("l1")])
        up = explainer.explain({"a": 4, "b": 3}, want=1)  # a + b > 8 needs 9
        assert up.frame().sum(axis=1).iloc[0] == 9
        down = explainer.explain({"a": 5, "b": 5}, want=0)  # a + b <= 8: the tie itself is enough
        assert down.frame().sum(axis=1).iloc[0] == 8
        assert down[0].certificate.objective == pytest.approx(2 / 8)

    def test_the_first_of_equal_scores_wins(self) -> None:
        X = self.X
        model = LogisticRegression().fit(X, np.resize([0, 1, 2], 9))
        model.coef_ = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        model.intercept_ = np.zeros(3)
        explainer = Explainer(model, X, criteria=[Proximity("l1")])
        assert explainer.explain({"a": 2, "b": 5}, want=0).frame().iloc[0].tolist() in (
            [5, 5],
            [4, 4],
            [3, 3],
            [2, 2],
        )
        away = explainer.explain({"a": 5, "b": 2}, want=1).frame().iloc[0]
        assert away["b"] - away["a"] == 1  # the second class must win by one

    def test_an_exact_value_of_a_regression(self) -> None:
        model = LinearRegression().fit(self.X, np.arange(9))
        model.coef_, model.intercept_ = np.array([1.0, 2.0]), 0.0
        explainer = Explainer(model, self.X, criteria=[Proximity("l1")])
        answer = explainer.explain({"a": 0, "b": 0}, want=Target(at_least=7, at_most=7))
        assert model.predict(answer.frame()).tolist() == [7.0]
        assert answer[0].certificate.objective == pytest.approx((3 + 1) / 8)


# -- probabilities ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("p", one_in(2, [0.2, 0.5, 0.7, 0.95]))
@pytest.mark.parametrize("label", ["bad", "good"])
def test_a_probability_is_reached_and_not_overshot(label: str, p: float) -> None:
    explainer = questions.explainer(criteria=[Proximity("l1")])
    model = explainer.model.estimator
    index = list(model.classes_).index(label)
    row = pd.DataFrame([NOW if label == "good" else {**NOW, "debts": 0, "income": 6.0, "job": "full"}])
    assert model.predict_proba(row)[0, index] < p
    answer = explainer.explain(row, want=Target(label, probability=p))
    reached = model.predict_proba(answer.frame())[0, index]
    assert p <= reached
    if any(c.feature == "income" for c in answer[0].changes):  # a continuous feature stops right there
        assert reached == pytest.approx(p, abs=1e-4)


def test_softmax_probability_against_a_fine_grid() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(0, 1, (150, 2)), columns=["x", "y"])
    X.iloc[0], X.iloc[1] = 0.0, 1.0
    score = np.stack([X["x"], X["y"], 1 - X["x"] - X["y"]]) + rng.normal(0, 0.1, (3, 150))
    model = LogisticRegression(C=10.0).fit(X, score.argmax(axis=0))
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="none")])
    start = {"x": 0.1, "y": 0.2}
    answer = explainer.explain(start, want=Target(0, probability=0.75))
    axis = np.linspace(0, 1, 401)
    grid = pd.DataFrame(np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2), columns=["x", "y"])
    reached = model.predict_proba(grid)[:, 0] >= 0.75
    nearest = (abs(grid["x"] - 0.1) + abs(grid["y"] - 0.2))[reached].min()
    assert model.predict_proba(answer.frame())[0, 0] >= 0.75
    assert nearest - 2 / 400 <= answer[0].certificate.objective <= nearest + 1e-9


@pytest.mark.parametrize("last", [LinearSVC(dual=False), RidgeClassifier(), SGDClassifier(loss="hinge")])
def test_models_without_probabilities_say_so(last: Any) -> None:
    explainer = questions.explainer(last=last)
    with pytest.raises(CriterionError, match=r"A probability was asked for, but Pipeline gives no probabilities"):
        explainer.explain(NOW, want=Target("good", probability=0.7))


def test_normalised_probabilities_are_not_faked() -> None:
    explainer = questions.explainer(last=SGDClassifier(loss="log_loss", random_state=0), y=three)
    message = r"each of its 3 classes against the rest, .* want=2; or wrap the model in CalibratedClassifierCV"
    with pytest.raises(CriterionError, match=message):
        explainer.explain(NOW, want=Target(2, probability=0.7))


def test_what_a_refused_probability_is_told_to_do_works() -> None:
    last = CalibratedClassifierCV(SGDClassifier(loss="log_loss", random_state=0), ensemble=False)
    explainer = questions.explainer(last=last, y=three)
    answer = explainer.explain(NOW, want=Target(2, probability=0.5))
    assert explainer.model.estimator.predict_proba(answer.frame())[0, 2] >= 0.5


def test_clipped_probabilities() -> None:
    explainer = questions.explainer(last=SGDClassifier(loss="modified_huber", random_state=0))
    answer = explainer.explain(NOW, want=Target("good", probability=0.9))
    assert explainer.model.estimator.predict_proba(answer.frame())[0, 1] >= 0.9


# -- intervals --------------------------------------------------------------------------------------------------------
def regression() -> Explainer:
    return questions.explainer(last=Ridge(), y=lambda X: 2.0 * X["income"] - X["debts"])


@pytest.mark.parametrize(
    "target", [Target(at_least=5.0), Target(at_most=-4.0), Target(at_least=3.0, at_most=3.01)], ids=repr
)
def test_intervals_of_a_regression(target: Target) -> None:
    explainer = regression()
    answer = explainer.explain(NOW, want=target)
    value = explainer.model.estimator.predict(answer.frame())[0]
    assert value >= (-np.inf if target.at_least is None else target.at_least)
    assert value <= (np.inf if target.at_most is None else target.at_most)
    assert answer[0].prediction == pytest.approx(value)
    assert answer.score_name == "value"


def test_an_exact_value_that_no_float_hits_is_not_called_impossible() -> None:
    with pytest.raises(CriterionError, match="so narrow that no row was found"):
        regression().explain(
            NOW,
            want=Target(at_least=3.123456789, at_most=3.123456789),
            criteria=[Actionability(frozen=[c for c in NOW if c not in ("income", "age")])],
        )


# -- what makes no sense ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"probability": 0.0}, "strictly between 0 and 1, got 0.0. For 70 per cent write 0.7."),
        ({"probability": 1.0}, "strictly between 0 and 1, got 1.0"),
        ({"probability": 70}, "strictly between 0 and 1, got 70"),
        ({"label": "good", "at_least": 1.0}, "either a class (label, probability) or an interval"),
        ({"at_least": 2.0, "at_most": 1.0}, "The interval of the Target is empty"),
    ],
)
def test_ill_posed_targets(options: dict, says: str) -> None:
    with pytest.raises(CriterionError) as caught:
        Target(**options)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("want", "says"),
    [
        ("goood", "does not know the class 'goood'; it knows 'bad', 'good'. Did you mean 'good'?"),
        (True, "does not know the class True"),
        (Target(at_least=1.0), "predicts classes ('bad', 'good'), not numbers"),
    ],
)
def test_targets_that_do_not_fit_a_classifier(want: Any, says: str) -> None:
    with pytest.raises(CriterionError) as caught:
        questions.explainer().explain(NOW, want=want)
    assert says in str(caught.value)


def test_targets_that_do_not_fit_other_models() -> None:
    with pytest.raises(CriterionError, match=r"Say which outcome is wanted: the model knows 0, 1, 2\."):
        questions.explainer(y=three).explain(NOW)
    with pytest.raises(CriterionError, match="predicts a number, so say which numbers are wanted"):
        regression().explain(NOW, want=5.0)
    with pytest.raises(CriterionError, match="Did you mean 2"):
        resolve("2", questions.explainer(y=three).model)


def test_the_outcome_that_is_already_there_is_said_before_solving() -> None:
    with pytest.raises(CriterionError, match=r"already there: the model says 'bad' for this row \(want 'bad'\)"):
        questions.explainer().explain(NOW, want="bad")
    with pytest.raises(CriterionError, match="already there"):
        regression().explain(NOW, want=Target(at_most=100.0))


# -- loosening --------------------------------------------------------------------------------------------------------
def within_reach(explainer: Explainer, want: Target, **options: Any) -> Infeasible:
    with pytest.raises(Infeasible) as caught:
        explainer.explain(NOW, want=want, criteria=[Actionability(**options)])
    return caught.value


@pytest.mark.parametrize("y", [None, three], ids=["sigmoid", "softmax"])
def test_the_highest_probability_within_reach_is_named(y: Any) -> None:
    explainer = questions.explainer(y=y)
    label = "good" if y is None else 2
    frozen = [c for c in NOW if c not in ("debts", "phone")]
    error = within_reach(explainer, Target(label, probability=0.999), frozen=frozen)
    way = next(r for r in error.relaxations if r.change.startswith("probability"))
    rows = pd.DataFrame([{**NOW, "debts": d} for d in range(9)])
    index = list(explainer.model.read.classes).index(label)
    best = explainer.model.estimator.predict_proba(rows)[:, index].max()
    assert way.amount == pytest.approx(0.999 - best, abs=1e-6)
    named = float(way.change.split("->")[1])
    assert best - 1e-4 <= named <= best
    answer = explainer.explain(NOW, want=Target(label, probability=named), criteria=[Actionability(frozen=frozen)])
    assert answer.status == "optimal"


@pytest.mark.parametrize(("target", "end"), [(Target(at_least=50.0), "low"), (Target(at_most=-50.0), "high")])
def test_the_nearest_value_within_reach_is_named(target: Target, end: str) -> None:
    explainer = regression()
    error = within_reach(explainer, target, frozen=["job", "home"])
    way = next(r for r in error.relaxations if r.change.startswith("outcome"))
    low, high = way.change.split("-> ")[1].strip("()").split(", ")
    loosened = Target(at_least=float(low)) if end == "low" else Target(at_most=float(high))
    policy = [Actionability(frozen=["job", "home"])]
    assert explainer.explain(NOW, want=loosened, criteria=policy).status == "optimal"
    less = Target(at_least=50.0 - way.amount * 0.999) if end == "low" else Target(at_most=-50.0 + way.amount * 0.999)
    with pytest.raises(Infeasible):
        explainer.explain(NOW, want=less, criteria=policy)
