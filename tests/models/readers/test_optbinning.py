"""Readers of optbinning: binned columns, scorecards and their points, as the fitted objects themselves compute them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ifonly import Explainer, Target, UnsupportedModel
from ifonly.adapters.scorecard import ScorecardPoints
from ifonly.models.forms.trees import Trees
from ifonly.testing import check_reader
from reading import mixed_frame, outcome

# optbinning itself sets text into columns of numbers, which pandas will not allow one day.
pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    optbinning = pytest.importorskip("optbinning")

WORDS = ["job", "home"]
FRAME = mixed_frame(600).assign(income=lambda f: f["income"] / 1000.0)
YES = (outcome(FRAME) > 0).astype(int)
HOLES = FRAME.assign(
    income=FRAME["income"].mask(np.arange(600) % 7 == 0),
    debt=np.where(np.arange(600) % 5 == 0, -9.0, FRAME["debt"]),
)


def process(frame: pd.DataFrame = FRAME, **options):
    words = [name for name in WORDS if name in frame]
    return optbinning.BinningProcess(list(frame.columns), categorical_variables=words, **options)


def card(frame: pd.DataFrame = FRAME, y=YES, estimator=None, **options):
    special = options.pop("special_codes", None)
    scale = {"scaling_method": "min_max", "scaling_method_params": {"min": 300, "max": 850}}
    made = optbinning.Scorecard(process(frame, special_codes=special), estimator or LogisticRegression(), **scale)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.fit(frame, y, **options)


@pytest.mark.parametrize(
    "last", [LogisticRegression(), RandomForestClassifier(8, max_depth=4, random_state=0)], ids=repr
)
def test_a_binning_process_in_front_of_a_model(last):
    check_reader(make_pipeline(process(), last).fit(FRAME, YES), FRAME, points=5000)


def test_trees_behind_bins_that_go_up_and_down():
    """Weights of evidence need not be monotone: a threshold on them is a union of intervals."""
    x = np.linspace(0, 10, 800)
    frame = pd.DataFrame({"x": x, "z": np.cos(7 * x)})
    y = ((x % 4 < 2) ^ (frame["z"] > 0.7)).astype(int)
    options = {"x": {"monotonic_trend": None}, "z": {"monotonic_trend": None}}
    bins = process(frame, binning_fit_params=options)
    model = make_pipeline(bins, RandomForestClassifier(6, max_depth=3, random_state=0)).fit(frame, y.to_numpy())
    woe = model[0].transform(frame.sort_values("x"))["x"].to_numpy()
    assert (np.diff(woe) > 0).any()
    assert (np.diff(woe) < 0).any()
    check_reader(model, frame, points=5000)


@pytest.mark.parametrize("metric", ["woe", "event_rate", "indices"])
def test_every_metric_that_is_a_number(metric):
    options = {name: {"metric": metric} for name in FRAME}
    model = make_pipeline(process(binning_transform_params=options), LogisticRegression(max_iter=1000)).fit(FRAME, YES)
    check_reader(model, FRAME, points=1500, rows=1)


def test_bins_as_text_and_curves_are_refused_by_name():
    words = {name: {"metric": "bins"} for name in FRAME}
    process_of_words = process(binning_transform_params=words).fit(FRAME, YES)
    last = LogisticRegression().fit(np.eye(2), [0, 1])
    last.feature_names_in_ = np.array(FRAME.columns)
    with pytest.raises(UnsupportedModel, match=r"BinningProcess gives text"):
        Explainer(make_pipeline(process_of_words, last), FRAME)


def test_a_scorecard_and_its_points():
    fitted = card()
    check_reader(fitted, FRAME, points=5000)
    check_reader(ScorecardPoints(fitted), FRAME, points=5000)
    assert isinstance(Explainer(fitted, FRAME).model.read.form, Trees)
    points = ScorecardPoints(fitted)
    total = points.points(FRAME).sum(axis=1) + fitted.intercept_
    np.testing.assert_allclose(total, fitted.score(FRAME), rtol=1e-12)


@pytest.mark.parametrize("metrics", [{}, {"metric_missing": "empirical", "metric_special": "empirical"}])
def test_gaps_and_special_codes_go_where_the_scorecard_sends_them(metrics):
    fitted = card(HOLES, special_codes=[-9.0], **metrics)
    check_reader(fitted, HOLES, points=5000)
    check_reader(ScorecardPoints(fitted), HOLES, points=2000)
    explainer = Explainer(fitted, HOLES)
    assert 0 in explainer.model.read.accepts_missing
    assert -9.0 in explainer.model.read.form.cuts()[1]
    refused = HOLES[fitted.predict(HOLES) == 0]
    for _, row in refused.head(4).iterrows():
        answer = explainer.explain(row.to_frame().T.astype(HOLES.dtypes), want=1)
        assert fitted.predict(answer.frame())[0] == 1


def test_a_continuous_target():
    value = 3.0 + FRAME["income"] / 2 - 2 * FRAME["debt"]
    check_reader(card(FRAME, value.to_numpy(), LinearRegression()), FRAME, points=5000)


def test_an_estimator_without_probabilities():
    from sklearn.svm import LinearSVC

    fitted = card(estimator=LinearSVC())
    answer = Explainer(fitted, FRAME).explain(FRAME[fitted.predict(FRAME) == 0].iloc[[0]], want=1)
    assert fitted.predict(answer.frame())[0] == 1


def test_a_column_behind_a_scaler_is_binned_in_raw_units():
    two = FRAME[["income", "debt"]]
    scaled = StandardScaler().set_output(transform="pandas").fit(two)
    bins = process(two).fit(scaled.transform(two), YES)
    last = LogisticRegression().fit(bins.transform(scaled.transform(two)), YES)
    check_reader(make_pipeline(scaled, bins, last), two, points=2000)


def test_random_factuals_are_answered_confirmed_and_proven():
    fitted = card()
    explainer = Explainer(fitted, FRAME)
    rows = FRAME[fitted.predict(FRAME) == 0].sample(50, random_state=0)
    batch = explainer.explain_all(rows, want=1)
    assert all(outcome.explanation is not None for outcome in batch.outcomes)
    for explanation in batch.found():
        assert fitted.predict(explanation.frame())[0] == 1
        assert explanation[0].certificate.proven
        assert explanation[0].certificate.solver == "no solver needed"


def test_points_are_asked_for_as_a_value():
    points = ScorecardPoints(card())
    said = points.predict(FRAME)
    goal = float(np.quantile(said, 0.8))
    answer = Explainer(points, FRAME).explain(FRAME.iloc[[int(said.argmin())]], want=Target(at_least=goal))
    assert points.predict(answer.frame())[0] >= goal
    assert answer[0].certificate.proven
