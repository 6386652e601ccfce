"""AdaBoost, bagging and the isolation forest, as they add up and as they refuse."""

import numpy as np
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    IsolationForest,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from ifonly.data.schema import Schema
from ifonly.errors import UnsupportedModel
from ifonly.models.readers.sklearn_ensembles import mean_path
from portions import one_in
from tree_cases import agree, labels, opened, points, table, with_holes

FRAME = table()
HOLES = with_holes(FRAME)
VALUE = np.log(FRAME["income"]) + FRAME["debt"]


def check(estimator, frame, raw, missing=0.0):
    model = opened(estimator, frame)
    U = points(model.read.form.schema, frame, model.read.form.cuts(), missing=missing)
    agree(model, U, raw)
    return model, U


@pytest.mark.parametrize("classes", one_in(2, [2, 3, 4]))
@pytest.mark.parametrize("member", [None, DecisionTreeClassifier(max_depth=3), ExtraTreeClassifier(max_depth=4)])
def test_adaboost_votes(member, classes):
    estimator = AdaBoostClassifier(member, n_estimators=20, random_state=0).fit(FRAME, labels(FRAME, classes))
    spread = 1 if classes == 2 else classes - 1
    model, _ = check(estimator, FRAME, lambda Z: estimator.decision_function(Z) / spread)
    assert not model.read.accepts_missing


def test_adaboost_that_stops_at_once():
    y = FRAME["income"] > FRAME["income"].median()
    estimator = AdaBoostClassifier(n_estimators=5).fit(FRAME, y)
    assert len(estimator.estimators_) == 1
    check(estimator, FRAME, estimator.decision_function)


@pytest.mark.parametrize(
    "member", [None, DecisionTreeRegressor(max_depth=6), Ridge()], ids=["default", "deep trees", "linear"]
)
def test_adaboost_median(member):
    estimator = AdaBoostRegressor(member, n_estimators=12, random_state=0).fit(FRAME, VALUE)
    assert len(estimator.estimators_) > 2
    model = opened(estimator, FRAME)
    U = points(Schema.infer(FRAME), FRAME, model.read.form.cuts())
    assert len(U) >= 5000
    agree(model, U, estimator.predict)


@pytest.mark.parametrize("classes", one_in(2, [2, 3]))
@pytest.mark.parametrize(
    "options",
    [{}, {"max_features": 3}, {"max_features": 4, "bootstrap_features": True, "max_samples": 0.1}],
    ids=["whole", "subset", "repeated"],
)
def test_bagging_shares(options, classes):
    y = np.array(["low", "mid", "top"])[labels(FRAME, classes)]
    estimator = BaggingClassifier(n_estimators=15, random_state=0, **options).fit(HOLES, y)
    model, _ = check(estimator, HOLES, estimator.predict_proba, missing=0.1)
    assert model.read.accepts_missing


def test_bagging_values():
    estimator = BaggingRegressor(n_estimators=15, max_features=3, random_state=0).fit(FRAME, VALUE)
    check(estimator, FRAME, estimator.predict)


@pytest.mark.parametrize(
    "options", one_in(3, [{}, {"contamination": 0.1}, {"contamination": 0.2, "max_features": 3, "max_samples": 100}])
)
def test_isolation_forest(options):
    estimator = IsolationForest(n_estimators=25, random_state=0, **options).fit(HOLES)
    unit = mean_path(estimator, -0.5)

    def path(Z):
        return -np.log2(-estimator.score_samples(Z)) * unit

    model, U = check(estimator, HOLES, path, missing=0.1)
    assert model.read.classes == (-1, 1)
    # The demand of a criterion: one linear row says that the anomaly score is no worse than this.
    shown = estimator.score_samples(model.prepare(U))
    for score in (-0.6, -0.5, -0.45, *shown[:20]):
        assert ((model.read.form(U)[:, 0] >= mean_path(estimator, score)) == (shown >= score)).all()


def test_path_of_scores_that_no_row_has():
    estimator = IsolationForest(n_estimators=3).fit(FRAME)
    assert mean_path(estimator, 0.1) == np.inf
    assert mean_path(estimator, -2.0) == -np.inf


def test_boosting_over_linear_classifiers_is_refused_by_name():
    frame = FRAME[["debt", "share"]]
    estimator = AdaBoostClassifier(LogisticRegression(max_iter=9999), n_estimators=2).fit(frame, labels(FRAME))
    with pytest.raises(UnsupportedModel, match="over LogisticRegression"):
        opened(estimator, frame)
