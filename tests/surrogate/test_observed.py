"""Models that are only observed: every answer is confirmed, keeps every demand, and claims nothing else."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from black_boxes import Opaque, people, piped, refused
from ifonly import Actionability, Explainer, Explanation, Robustness, Sparsity, Target, verify
from ifonly.errors import CriterionError, OutOfTime, UnsupportedModel
from ifonly.runtime.tuning import DEFAULT, Tuning
from portions import one_in

MODELS = {
    "svm": SVC,
    "knn": lambda: KNeighborsClassifier(7, weights="distance"),
    "tanh": lambda: MLPClassifier((8,), activation="tanh", solver="lbfgs", alpha=0.1, max_iter=300, random_state=0),
    "gp": lambda: GaussianProcessClassifier(random_state=0),
}


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, pd.Series]:
    return people()


def claims_nothing(answer: Explanation) -> bool:
    return answer.status == "no_bound" and all(
        c.certificate.observed
        and not c.certificate.proven
        and c.certificate.bound == -np.inf
        and str(c.certificate) == "not proven: the model was only observed"
        for c in answer
    )


@pytest.mark.parametrize("name", one_in(3, MODELS))
def test_answers_are_confirmed_and_keep_every_demand(name: str, data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = data
    model = piped(MODELS[name](), X, y)
    explainer = Explainer(model, X, surrogate="auto")
    demands = [Actionability(frozen=["age"], increase=["income"]), Sparsity(at_most=2)]
    for i in refused(model, X, 3).index:
        row = X.loc[[i]]
        answer = explainer.explain(row, want="yes", criteria=demands)
        after, before = answer.frame().iloc[0], row.iloc[0]
        assert model.predict(answer.frame())[0] == "yes"
        assert after["age"] == before["age"]
        assert after["income"] >= before["income"]
        assert (after != before).sum() <= 2
        assert after["home"] in {"own", "rent", "free"}
        assert (answer.frame().dtypes == X.dtypes).all()
        assert claims_nothing(answer)


def test_an_answer_is_on_the_edge_of_a_known_region() -> None:
    # The least change of a point outside a disc of radius 1 along one axis is known.
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-2, 2, (300, 2)), columns=["a", "b"])

    def inside(Z: Any) -> Any:
        return np.where((np.asarray(Z) ** 2).sum(axis=1) <= 1.0, "in", "out")

    explainer = Explainer(inside, X, surrogate="auto")
    answer = explainer.explain({"a": 1.5, "b": 0.0}, want="in")
    assert inside(answer.frame())[0] == "in"
    assert answer.frame().loc[0, "b"] == 0.0
    assert 0.999 <= answer.frame().loc[0, "a"] <= 1.0
    assert answer.score_name == "score"


def test_probability_and_interval_are_met_by_the_models_own_word(data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = data
    model = piped(KNeighborsClassifier(10, weights="distance"), X, y)
    row = refused(model, X, 1)
    answer = Explainer(model, X, surrogate="auto").explain(row, want=Target("yes", probability=0.75))
    probability = model.predict_proba(answer.frame())[0, 1]
    assert probability >= 0.75
    assert answer[0].score == probability

    numbers = X[["age", "income", "debts"]].astype(float)
    value = 2.0 * numbers["income"] - numbers["debts"]
    for regression in (SVR(C=100.0), GaussianProcessRegressor(alpha=0.1, normalize_y=True)):
        model = make_pipeline(StandardScaler(), regression).fit(numbers, value)
        explainer = Explainer(model, numbers, surrogate="auto")
        row = numbers[model.predict(numbers) < 60.0].head(1)
        answer = explainer.explain(row, want=Target(at_least=80.0, at_most=85.0))
        assert 80.0 <= model.predict(answer.frame())[0] <= 85.0
        assert answer.prediction == model.predict(row)[0]
        assert claims_nothing(answer)


def test_a_model_that_can_be_read_is_still_proven(data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = data
    model = piped(LogisticRegression(), X, y)
    explainer = Explainer(model, X, surrogate="auto")
    assert explainer.surrogate is None
    assert explainer.explain(refused(model, X, 1), want="yes").status == "optimal"


def test_same_seed_same_answers(data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = data
    model = piped(SVC(), X, y)
    row = refused(model, X, 2).tail(1)
    twice = [Explainer(model, X, surrogate="auto", random_state=3).explain(row) for _ in range(2)]
    pd.testing.assert_frame_equal(twice[0].frame(), twice[1].frame())
    assert twice[0][0].certificate == twice[1][0].certificate


def test_several_answers_differ(data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = data
    model = piped(SVC(), X, y)
    answer = Explainer(model, X, surrogate="auto").explain(refused(model, X, 1), n=2)
    assert len(answer) == 2
    assert (model.predict(answer.frame()) == "yes").all()
    assert {c.feature for c in answer[0].changes} != {c.feature for c in answer[1].changes}
    assert claims_nothing(answer)


def test_time_limit_and_budget_are_kept(data: tuple[pd.DataFrame, pd.Series]) -> None:
    import time

    X, y = data
    model = piped(SVC(), X, y)

    class Slow(Opaque):
        def predict(self, X: Any) -> Any:
            time.sleep(0.002 * len(X))
            return super().predict(X)

    slow = Slow(model, probabilities=False)
    explainer = Explainer(slow, X, surrogate="auto")
    row = refused(model, X, 1)
    began = time.perf_counter()
    answer = explainer.explain(row, time_limit=2.0)
    assert time.perf_counter() - began < 2.5
    assert model.predict(answer.frame())[0] == "yes"

    fast = Opaque(model, probabilities=False)
    for most in (DEFAULT.observing.rows, 500):
        tuning = Tuning(observing=replace(DEFAULT.observing, rows=most))
        explainer = Explainer(fast, X, surrogate="auto", tuning=tuning)
        fast.rows = 0
        explainer.explain(row)
        assert 0 < fast.rows <= 2 * most  # the word and the scores of a row are two questions


def test_impossible_is_not_claimed(data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = data
    model = piped(SVC(), X, y)
    row = refused(model, X, 1)
    with pytest.raises(OutOfTime, match=r"None was found .* the model was only observed"):
        Explainer(model, X, surrogate="auto").explain(
            row, criteria=[Actionability(frozen=list(X.columns))], time_limit=5
        )


def test_what_needs_a_proof_is_refused(data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = data
    model = piped(SVC(), X, y)
    explainer = Explainer(model, X, surrogate="auto")
    row = refused(model, X, 1)
    with pytest.raises(CriterionError, match="only observed"):
        explainer.explain(row, criteria=[Robustness(radius=0.05)])
    with pytest.raises(UnsupportedModel, match="only observed"):
        explainer.problem(row)
    with pytest.raises(CriterionError, match="already there"):
        explainer.explain(row, want="no")
    with pytest.raises(CriterionError, match="must be None or 'auto'"):
        Explainer(model, X, surrogate="forest")


def test_function_and_its_answers(data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, _ = data
    frames = Explainer(lambda F: F["income"].to_numpy() > 50.0, X, surrogate="auto")
    answer = frames.explain(X[X["income"] < 40].head(1), want=True)
    assert answer.frame().loc[0, "income"] == pytest.approx(50.0, abs=0.1)
    with pytest.raises(UnsupportedModel, match="says 1 of every training row"):
        Explainer(lambda F: np.ones(len(F), dtype=int), X, surrogate="auto")
    with pytest.raises(UnsupportedModel, match="one class or one number per row"):
        Explainer(lambda F: np.ones((len(F), 2)), X, surrogate="auto")


def test_records_say_it_and_stand(data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = data
    model = piped(SVC(), X, y)
    answer = Explainer(model, X, surrogate="auto").explain(refused(model, X, 1))
    assert "not proven: the model was only observed" in str(answer)
    record = answer.record()
    assert record["counterfactuals"][0]["certificate"]["observed"] is True
    assert record["counterfactuals"][0]["certificate"]["status"] == "no_bound"
    assert record["origin"]["options"]["surrogate"] == "auto"
    verdict = verify(record, model, X)
    assert verdict.ok
    assert "not proven: the model was only observed" in str(verdict)
    again = Explanation.from_json(answer.to_json())
    assert again[0].certificate == answer[0].certificate

    record["counterfactuals"][0]["certificate"] |= {"bound": 0.0, "gap": 1.0}
    assert not verify(record, model, X).ok


def test_many_rows(data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = data
    model = piped(KNeighborsClassifier(5, weights="distance"), X, y)
    rows = refused(model, X, 2)
    answers = Explainer(model, X, surrogate="auto").explain_all(rows, want="yes")
    assert list(answers.status()) == ["no_bound", "no_bound"]


def test_missing_values_stay_missing() -> None:
    from sklearn.impute import SimpleImputer

    X, y = people()
    X = X[["age", "income", "debts"]].astype(float)
    X.loc[::7, "age"] = np.nan
    model = make_pipeline(SimpleImputer(), StandardScaler(), SVC()).fit(X, y)
    row = X[X["age"].isna() & (model.predict(X) == "no")].head(1)
    answer = Explainer(model, X, surrogate="auto").explain(row)
    assert model.predict(answer.frame())[0] == "yes"
    assert np.isnan(answer.frame().loc[0, "age"])
