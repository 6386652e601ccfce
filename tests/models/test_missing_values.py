"""Missing values end to end: they stay where they are unless the feature is given a value."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from ifonly import Actionability, Explainer, Infeasible, Proximity, SchemaError, Sparsity, Target
from ifonly.errors import FactualViolatesDemand
from tree_cases import labels, mixed, mixed_holes, mixed_labels, table, with_holes

NUMBERS = table(150)
HOLES = with_holes(NUMBERS, 0.2)
MIXED = mixed(150)
MIXED_HOLES = mixed_holes(MIXED, 0.2)


def xgb():
    options = {"n_estimators": 12, "max_depth": 3, "n_jobs": 1, "enable_categorical": True}
    return pytest.importorskip("xgboost").XGBClassifier(**options)


def lgbm(**options):
    options = {"n_estimators": 12, "max_depth": 3, "verbose": -1, "n_jobs": 1, "min_child_samples": 5} | options
    return pytest.importorskip("lightgbm").LGBMClassifier(**options)


def cat():
    options = {"iterations": 12, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return pytest.importorskip("catboost").CatBoostClassifier(**options)


OPTIONAL = pytest.mark.frameworks
MODELS = [
    pytest.param(lambda: DecisionTreeClassifier(max_depth=5), HOLES, id="tree"),
    pytest.param(lambda: RandomForestClassifier(12, max_depth=4, random_state=0), HOLES, id="forest"),
    pytest.param(lambda: HistGradientBoostingClassifier(max_iter=12, max_depth=3), MIXED_HOLES, id="hist"),
    pytest.param(
        lambda: make_pipeline(SimpleImputer(), GradientBoostingClassifier(n_estimators=12)), HOLES, id="imputer"
    ),
    pytest.param(xgb, MIXED_HOLES, id="xgboost", marks=OPTIONAL),
    pytest.param(lgbm, MIXED_HOLES, id="lightgbm", marks=OPTIONAL),
    pytest.param(lambda: lgbm(zero_as_missing=True), MIXED_HOLES, id="lightgbm zero", marks=OPTIONAL),
    pytest.param(cat, HOLES, id="catboost", marks=OPTIONAL),
]


def fitted(make, frame):
    return make().fit(frame, mixed_labels(MIXED) if "job" in frame else labels(NUMBERS))


def said(estimator, rows):
    return np.asarray(estimator.predict(rows)).reshape(-1)


@pytest.mark.parametrize(("make", "frame"), MODELS)
def test_missing_stays_missing(make, frame):
    """Every answer is confirmed, and what was missing is missing in it; what was not is still there."""
    estimator = fitted(make, frame)
    explainer = Explainer(estimator, frame)
    gone = frame.isna()
    asked = frame[gone.sum(axis=1).between(1, 3)].iloc[:8]
    assert len(asked) == 8
    for k in range(len(asked)):
        factual = asked.iloc[[k]]
        try:
            answer = explainer.explain(factual)[0]
        except Infeasible:
            assert_nothing_helps(estimator, frame, factual)
            continue
        assert said(estimator, answer.row) != said(estimator, factual)
        assert answer.certificate.proven
        assert (answer.row.isna().to_numpy() == factual.isna().to_numpy()).all()
        assert answer.changes
        assert not {c.feature for c in answer.changes} & set(factual.columns[factual.isna().iloc[0]])


def assert_nothing_helps(estimator, frame, factual):
    """With these values missing, no mixture of what occurs elsewhere gives another class."""
    rng = np.random.default_rng(0)
    rows = pd.concat([factual] * 3000, ignore_index=True)
    for name in factual.columns[~factual.isna().iloc[0]]:
        rows[name] = frame[name].dropna().sample(len(rows), replace=True, random_state=rng).to_numpy()
    assert set(said(estimator, rows.astype(frame.dtypes))) == set(said(estimator, factual))


@pytest.mark.parametrize(("make", "frame"), MODELS)
def test_a_range_gives_a_missing_number_a_value(make, frame):
    estimator = fitted(make, frame)
    explainer = Explainer(estimator, frame)
    factual = frame[frame["income"].isna()].iloc[[0]]
    given = Actionability(ranges={"income": (2000.0, 9000.0)})
    with pytest.warns(FactualViolatesDemand, match="range of income"):
        answer = explainer.explain(factual, criteria=[given])[0]
    assert 2000.0 <= answer.row["income"].iloc[0] <= 9000.0
    assert said(estimator, answer.row) != said(estimator, factual)
    others = factual.columns.drop("income")
    assert (answer.row[others].isna().to_numpy() == factual[others].isna().to_numpy()).all()
    assert "income" in {c.feature for c in answer.changes}


@pytest.mark.parametrize(
    "make", [lambda: HistGradientBoostingClassifier(max_iter=12), pytest.param(xgb, marks=OPTIONAL)]
)
def test_allowed_levels_give_a_missing_category_one_of_them(make):
    estimator = make().fit(MIXED_HOLES, mixed_labels(MIXED))
    factual = MIXED_HOLES[MIXED_HOLES["job"].isna()].iloc[[0]]
    explainer = Explainer(estimator, MIXED_HOLES)
    stays = explainer.explain(factual)[0]
    assert stays.row["job"].isna().all()
    with pytest.warns(FactualViolatesDemand, match="job only"):
        answer = explainer.explain(factual, criteria=[Actionability(allow={"job": ["full", "boss"]})])[0]
    assert answer.row["job"].iloc[0] in {"full", "boss"}
    assert answer.row["job"].dtype == MIXED_HOLES["job"].dtype


def test_a_value_for_a_missing_number_is_found_by_enumeration():
    """One number, missing, with a range: the answer is in a cell that the model says is right."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.integers(0, 10, 200).astype(float), "y": rng.normal(size=200)})
    target = (frame["x"] >= 6).astype(int)
    frame.loc[::6, "x"] = np.nan
    estimator = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5).fit(frame, target)
    factual = frame.iloc[[0]].assign(y=0.0)
    wanted = 1 - estimator.predict(factual)[0]
    explainer = Explainer(estimator, frame, criteria=[Proximity("l1", scale="range"), Sparsity(at_most=1)])
    with pytest.warns(FactualViolatesDemand):
        answer = explainer.explain(factual, want=wanted, criteria=[Actionability(ranges={"x": (0, 9)})])[0]
    assert [c.feature for c in answer.changes] == ["x"]
    assert estimator.predict(answer.row)[0] == wanted


def test_regression_with_a_link():
    """A logarithmic link and a missing value: the interval is in the units of the prediction."""
    y = np.exp(labels(NUMBERS, 5) / 2)
    estimator = HistGradientBoostingRegressor(loss="poisson", max_iter=20, min_samples_leaf=5).fit(HOLES, y)
    usual = estimator.predict(HOLES)
    factual = HOLES[HOLES["debt"].isna()].iloc[[0]]
    low, high = np.quantile(usual, [0.85, 0.97])
    answer = Explainer(estimator, HOLES).explain(factual, want=Target(at_least=low, at_most=high))[0]
    assert low <= estimator.predict(answer.row)[0] <= high
    assert answer.row["debt"].isna().all()


def test_a_model_without_a_meaning_for_missing_values_says_so():
    estimator = GradientBoostingClassifier(n_estimators=5).fit(NUMBERS, labels(NUMBERS))
    with pytest.raises(SchemaError, match=r"Missing value in column 'income'.*no meaning"):
        Explainer(estimator, NUMBERS).explain(NUMBERS.iloc[[0]].assign(income=np.nan))
    with pytest.raises(SchemaError, match="Missing value in column"):
        Explainer(estimator, HOLES)


def test_no_row_is_complete():
    frame = HOLES.copy()
    for k, name in enumerate(frame.columns):
        frame.loc[frame.index % 5 == k, name] = np.nan
    assert frame.isna().any(axis=1).all()
    estimator = RandomForestClassifier(10, max_depth=4, random_state=0).fit(frame, labels(NUMBERS))
    answer = Explainer(estimator, frame).explain(frame.iloc[[7]])[0]
    assert estimator.predict(answer.row)[0] != estimator.predict(frame.iloc[[7]])[0]
