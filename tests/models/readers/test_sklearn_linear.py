"""Linear models of scikit-learn: on thousands of rows the form is the framework's own score, and so is the decision."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model as lm
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

import reading
from ifonly import Explainer, Proximity, Target, UnsupportedModel
from ifonly.models.readers import sklearn_linear
from ifonly.models.registry import known_readers
from ifonly.testing import check_reader

NUMERIC = ["income", "debt", "age"]
CLASSIFIERS = [
    lm.LogisticRegression(max_iter=500),
    lm.LogisticRegressionCV(max_iter=500, Cs=2, cv=2),
    lm.RidgeClassifier(),
    lm.RidgeClassifierCV(),
    lm.SGDClassifier(random_state=0),
    lm.SGDClassifier(loss="log_loss", random_state=0),
    lm.SGDClassifier(loss="modified_huber", random_state=0),
    lm.Perceptron(random_state=0),
    LinearSVC(dual=False),
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
]
GENERALISED = [
    lm.PoissonRegressor(alpha=1e-3),
    lm.GammaRegressor(alpha=1e-3),
    lm.TweedieRegressor(power=1.5, alpha=1e-3),
]
REGRESSORS = [
    lm.LinearRegression(),
    lm.Ridge(),
    lm.RidgeCV(),
    lm.Lasso(alpha=0.01),
    lm.LassoCV(cv=2, alphas=5),
    lm.ElasticNet(alpha=0.01),
    lm.ElasticNetCV(cv=2, alphas=5),
    lm.Lars(),
    lm.LarsCV(cv=2),
    lm.LassoLars(alpha=0.001),
    lm.LassoLarsCV(cv=2),
    lm.LassoLarsIC(),
    lm.BayesianRidge(),
    lm.ARDRegression(),
    lm.HuberRegressor(),
    lm.SGDRegressor(random_state=0),
    lm.TheilSenRegressor(random_state=0, max_subpopulation=50),
    lm.OrthogonalMatchingPursuit(),
    lm.OrthogonalMatchingPursuitCV(cv=2),
    lm.QuantileRegressor(alpha=0.01),
    LinearSVR(random_state=0),
    SVR(kernel="linear"),
]


def name(model: Any) -> str:
    return f"{type(model).__name__}-{getattr(model, 'loss', getattr(model, 'solver', ''))}"


def data(classes: int) -> tuple[pd.DataFrame, np.ndarray]:
    frame = reading.mixed_frame(200)[NUMERIC]
    frame["income"] = frame["income"] / 1000
    frame["age"] = frame["age"] / 10
    return frame, np.minimum(reading.outcome(reading.mixed_frame(200)), classes - 1)


def fitted(model: Any, X: pd.DataFrame, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        return model.fit(X, y)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
def test_classifier(model: Any, classes: int) -> None:
    X, y = data(classes)
    words = np.array(["no", "maybe", "yes"])[y]
    fitted(model, X, words)
    read, schema = reading.read(model, X)
    U = reading.rows(schema, X, 3000)
    frame = schema.decode(U)
    scores = model.decision_function(frame)
    assert np.allclose(read.form(U), scores.reshape(len(U), -1), rtol=1e-9, atol=1e-9)
    assert [read.classes[i] for i in read.decide(read.form(U))] == model.predict(frame).tolist()
    assert read.classes == tuple(model.classes_.tolist())
    probabilities = read.probabilities(read.form(U))
    if probabilities is not None:
        assert np.allclose(probabilities, model.predict_proba(frame), atol=1e-9)


@pytest.mark.parametrize("model", REGRESSORS, ids=name)
def test_regressor(model: Any) -> None:
    X, _ = data(2)
    y = 2.0 * X["income"] - X["debt"] + np.random.default_rng(0).normal(0, 0.1, len(X))
    fitted(model, X, y)
    read, schema = reading.read(model, X)
    U = reading.rows(schema, X, 2000)
    assert np.allclose(read.form(U)[:, 0], model.predict(schema.decode(U)), rtol=1e-9, atol=1e-9)
    assert read.classes == ()
    assert read.rule.name == "value"
    assert np.array_equal(read.decide(read.form(U)), read.form(U)[:, 0])
    assert read.probabilities(read.form(U)) is None


@pytest.mark.parametrize("dense", [True, False])
def test_linear_kernel_svc(dense: bool) -> None:
    from scipy import sparse

    X, y = data(2)
    model = SVC(kernel="linear").fit(X if dense else sparse.csr_matrix(X.to_numpy()), y)
    read, schema = reading.read(model, X)
    U = reading.rows(schema, X, 2000)
    given = schema.decode(U) if dense else sparse.csr_matrix(schema.decode(U).to_numpy())
    assert np.allclose(read.form(U)[:, 0], model.decision_function(given), rtol=1e-6, atol=1e-6)
    assert (read.decide(read.form(U)) == model.predict(given)).all()
    answer = Explainer(model if dense else SVC(kernel="linear").fit(X, y), X).explain(X.iloc[[0]])
    assert answer.status == "optimal"


def test_one_against_the_rest_is_not_a_softmax() -> None:
    X, y = data(3)
    model = fitted(lm.LogisticRegression(max_iter=500), X, y)
    model.solver = "liblinear"  # which older versions could fit to three classes
    read, schema = reading.read(model, X)
    assert read.link.name == "normalised"
    p = read.probabilities(read.form(schema.encode(X)))
    assert np.allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize("labels", [[False, True], [1, 2], ["a", "b"], [0.0, 1.0]])
def test_labels_become_plain_values(labels: list[Any]) -> None:
    X, y = data(2)
    model = lm.LogisticRegression(max_iter=500).fit(X, np.array(labels)[y])
    read, _ = reading.read(model, X)
    assert read.classes == tuple(labels)
    assert [type(c) for c in read.classes] == [type(v) for v in labels]
    answer = Explainer(model, X).explain(X.iloc[[0]])
    assert answer[0].prediction in labels


def test_regression_target_in_the_shape_of_a_column() -> None:
    X, _ = data(2)
    model = lm.LinearRegression().fit(X, X[["income"]] * 2)
    answer = Explainer(model, X).explain(X.iloc[[0]], want=Target(at_least=float(X["income"].max())))
    assert model.predict(answer.frame())[0, 0] >= X["income"].max()


def test_several_targets_are_refused() -> None:
    X, _ = data(2)
    model = lm.LinearRegression().fit(X, X[["income", "debt"]])
    with pytest.raises(UnsupportedModel, match=r"predicts 2 values at once\. Fit one model per output"):
        Explainer(model, X)


def test_every_linear_reader_is_tested() -> None:
    mine = {n for (_, n), reader in known_readers().items() if reader.__module__ == sklearn_linear.__name__}
    tested = {type(m).__name__ for m in (*CLASSIFIERS, *REGRESSORS, *GENERALISED, SVC())}
    deprecated = {"PassiveAggressiveClassifier", "PassiveAggressiveRegressor"}
    assert mine - tested <= deprecated


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_passive_aggressive(kind: str) -> None:
    maker = getattr(lm, f"PassiveAggressive{kind}", None)
    if maker is None:
        pytest.skip("gone from this scikit-learn")
    X, y = data(2)
    model = fitted(maker(random_state=0), X, y)
    read, schema = reading.read(model, X)
    U = reading.rows(schema, X, 500)
    assert np.allclose(read.decide(read.form(U)), model.predict(schema.decode(U)))


@pytest.mark.parametrize("model", GENERALISED, ids=repr)
def test_a_log_link_is_answered_by_its_linear_score(model):
    """By hand: exp(b0 + b @ x) >= t iff b0 + b @ x >= log t, so the cheapest single move is the best gain per cost."""
    frame = reading.mixed_frame(200)[["debt", "age"]].astype(float)
    y = np.exp(0.5 - frame["debt"] + frame["age"] / 60) + 0.1
    fitted = model.fit(frame, y)
    check_reader(fitted, frame, points=5000)
    row = frame.iloc[[int(np.argmin(fitted.predict(frame)))]]
    goal = 1.2 * float(fitted.predict(row)[0])
    explainer = Explainer(fitted, frame, criteria=[Proximity("l1", scale="range")])
    answer = explainer.explain(row, want=Target(at_least=goal))
    assert fitted.predict(answer.frame())[0] >= goal
    assert answer[0].certificate.proven
    gain = np.abs(fitted.coef_) * (frame.max() - frame.min()).to_numpy()
    assert answer[0].certificate.objective == pytest.approx(np.log(1.2) / gain.max(), rel=1e-4)


def test_a_link_that_is_not_monotone_enough_is_refused():
    frame = reading.mixed_frame(80)[["debt", "age"]].astype(float)
    fitted = lm.PoissonRegressor().fit(frame, np.exp(frame["debt"]))
    fitted._base_loss.link = object()
    with pytest.raises(UnsupportedModel, match="'log' and 'identity'"):
        Explainer(fitted, frame)


@pytest.mark.parametrize("estimator", [SVR(kernel="linear"), SVC(kernel="linear")])
def test_support_vectors_fitted_on_a_sparse_matrix(estimator: Any) -> None:
    """Their coefficients are a sparse matrix of one row."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 9, 80), "c": pd.Categorical(rng.choice(list("uvwxyz"), 80))})
    columns = make_column_transformer((OneHotEncoder(), ["c"]), (StandardScaler(), ["a"]), sparse_threshold=1.0)
    model = make_pipeline(columns, estimator).fit(X, (X["a"] > 4).astype(int))
    assert hasattr(model[-1].coef_, "toarray")
    U = Explainer(model, X).schema.encode(X)
    said = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    np.testing.assert_allclose(Explainer(model, X).model.read.form(U)[:, 0], said, rtol=1e-9, atol=1e-9)
