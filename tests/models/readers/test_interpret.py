"""Readers of explainable boosting machines: main effects and pairs, classes and values, gaps and unknown levels."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ifonly import Explainer, Target, UnsupportedModel
from ifonly.models.forms.trees import Trees
from ifonly.testing import check_reader
from reading import mixed_frame, outcome

pytestmark = pytest.mark.frameworks
glassbox = pytest.importorskip("interpret.glassbox")

FRAME = mixed_frame(300).assign(income=lambda f: f["income"] / 1000.0)
THREE = outcome(FRAME)
YES = (THREE > 0).astype(int)
VALUE = 3.0 + FRAME["income"] / 2 - 2 * FRAME["debt"] + (FRAME["job"] == "full")
SMALL = {"max_bins": 16, "max_interaction_bins": 5, "outer_bags": 2, "max_rounds": 60, "n_jobs": 1, "random_state": 0}


def classifier(**options):
    return glassbox.ExplainableBoostingClassifier(**SMALL | options)


def regressor(**options):
    return glassbox.ExplainableBoostingRegressor(**SMALL | options)


@pytest.mark.parametrize("interactions", [0, 3])
def test_two_classes(interactions):
    check_reader(classifier(interactions=interactions).fit(FRAME, YES), FRAME, points=5000, rows=1)


def test_more_classes():
    check_reader(classifier(interactions=0).fit(FRAME, THREE), FRAME, points=5000, rows=1)


@pytest.mark.parametrize("objective", ["rmse", "poisson_deviance"])
def test_values(objective):
    model = regressor(interactions=2, objective=objective).fit(FRAME, VALUE.clip(lower=0.1))
    check_reader(model, FRAME, points=5000, rows=1)


def test_another_link_is_refused_by_name():
    model = classifier(interactions=0).fit(FRAME, YES)
    model.link_ = "probit"
    with pytest.raises(UnsupportedModel, match=r"link 'probit'.*log_loss"):
        Explainer(model, FRAME)


def test_gaps_have_a_bin_of_their_own():
    rng = np.random.default_rng(0)
    holes = FRAME.assign(age=FRAME["age"].astype(float)).mask(
        pd.DataFrame(rng.random(FRAME.shape) < 0.1, columns=FRAME.columns)
    )
    with pytest.warns(UserWarning, match="Missing values"):
        model = classifier(interactions=2).fit(holes, YES)
    check_reader(model, holes, points=5000, rows=1)
    assert Explainer(model, holes).model.read.accepts_missing == frozenset(range(5))


def test_numbers_taken_for_names():
    frame = FRAME[["debt"]].assign(code=FRAME["age"] % 4)
    model = classifier(interactions=1, feature_types=["continuous", "nominal"]).fit(frame, YES)
    check_reader(model, frame, points=2000, rows=1)


def test_behind_a_scaler_the_cuts_are_in_raw_units():
    two = FRAME[["income", "debt"]]
    scale = StandardScaler().set_output(transform="pandas")
    check_reader(make_pipeline(scale, classifier(interactions=1)).fit(two, YES), two, points=3000, rows=1)


@pytest.mark.parametrize("interactions", [0, 3])
def test_random_factuals_are_answered_confirmed_and_proven(interactions):
    model = classifier(interactions=interactions).fit(FRAME, YES)
    explainer = Explainer(model, FRAME)
    assert isinstance(explainer.model.read.form, Trees)
    rows = FRAME[model.predict(FRAME) == 0].sample(50, random_state=0)
    batch = explainer.explain_all(rows, want=1)
    assert len(batch.found()) == 50
    for explanation in batch.found():
        assert model.predict(explanation.frame())[0] == 1
        assert explanation[0].certificate.proven


def test_a_value_is_reached_from_below():
    model = regressor(interactions=2).fit(FRAME, VALUE)
    said = model.predict(FRAME)
    goal = float(np.quantile(said, 0.9))
    answer = Explainer(model, FRAME).explain(FRAME.iloc[[int(said.argmin())]], want=Target(at_least=goal))
    assert model.predict(answer.frame())[0] >= goal
    assert answer[0].certificate.proven
