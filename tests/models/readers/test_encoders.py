"""Readers of category_encoders and feature_engine: whatever is encoded, the form has the fitted encoder's numbers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ifonly import Explainer, UnsupportedModel
from ifonly.data.schema import Schema
from ifonly.models.reading.transforms import _TRANSFORMS
from ifonly.models.registry import known_readers
from ifonly.testing import check_reader
from reading import mixed_frame, outcome

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

WORDS = ["job", "home"]
FRAME = mixed_frame(400).assign(income=lambda f: f["income"] / 1000.0)
FRAME[WORDS] = FRAME[WORDS].astype(object)
YES = pd.Series((outcome(FRAME) > 0).astype(int))
known_readers()
NAMES = {
    package: sorted(n for p, n in _TRANSFORMS if p == package) for package in ("category_encoders", "feature_engine")
}
DISCRETISERS = [n for n in NAMES["feature_engine"] if n.endswith("Discretiser")]
ENCODERS = [n for n in NAMES["feature_engine"] if n.endswith("Encoder") and n != "RareLabelEncoder"]
FOREST = RandomForestClassifier(6, max_depth=4, random_state=0)


def made(package, name):
    home = pytest.importorskip(package)
    if package == "category_encoders":
        # A hash mixes columns, so it is given one; noise is for training only.
        cols = ["job"] if name == "HashingEncoder" else WORDS
        options = {"max_process": 1} if name == "HashingEncoder" else {}
        return getattr(home, name)(cols=cols, **options), cols
    home = pytest.importorskip("feature_engine.encoding")
    options = {"regression": False, "random_state": 0} if name == "DecisionTreeEncoder" else {}
    return getattr(home, name)(variables=WORDS, **options), WORDS


@pytest.mark.parametrize(
    ("package", "name"),
    [("category_encoders", n) for n in NAMES["category_encoders"]] + [("feature_engine", n) for n in ENCODERS],
)
def test_an_encoder_in_front_of_a_linear_model_and_of_trees(package, name):
    encoder, cols = made(package, name)
    frame = FRAME[["income", "debt", *cols]]
    for last in (LogisticRegression(max_iter=2000), FOREST):
        model = make_pipeline(encoder, last).fit(frame, YES)
        check_reader(model, frame, points=5000 if last is FOREST else 1500, rows=1)


@pytest.mark.parametrize("name", DISCRETISERS)
def test_a_discretiser(name):
    home = pytest.importorskip("feature_engine.discretisation")
    numbers = FRAME[["income", "debt"]]
    options = {"variables": ["income"]}
    if name == "ArbitraryDiscretiser":
        options = {"binning_dict": {"income": [-np.inf, 1.0, 2.5, 4.0, np.inf]}}
    for last in (LogisticRegression(), FOREST):
        model = make_pipeline(getattr(home, name)(**options), last).fit(numbers, YES)
        check_reader(model, numbers, points=5000, rows=1)


def test_rare_labels_before_a_weight_of_evidence():
    encoding = pytest.importorskip("feature_engine.encoding")
    frame = FRAME[["debt", *WORDS]].assign(job=np.where(np.arange(400) % 40 == 0, "odd", FRAME["job"]))
    rare = encoding.RareLabelEncoder(tol=0.05, n_categories=1, variables=WORDS)
    model = make_pipeline(rare, encoding.WoEEncoder(variables=WORDS), LogisticRegression()).fit(frame, YES)
    check_reader(model, frame, points=5000)


def test_inside_a_column_transformer_and_without_a_frame():
    ce = pytest.importorskip("category_encoders")
    parts = make_column_transformer((ce.TargetEncoder(return_df=False), WORDS), ("passthrough", ["debt"]))
    check_reader(make_pipeline(parts, LogisticRegression()).fit(FRAME, YES), FRAME, points=3000)


def test_a_gap_is_encoded_as_the_encoder_does_it():
    ce = pytest.importorskip("category_encoders")
    holes = FRAME[["debt", *WORDS]].assign(job=FRAME["job"].mask(np.arange(400) % 9 == 0))
    model = make_pipeline(ce.WOEEncoder(cols=WORDS), LogisticRegression()).fit(holes, YES)
    check_reader(model, holes, points=3000)
    assert 1 in Explainer(model, holes).model.read.accepts_missing


def test_numbers_that_are_encoded_are_categories():
    ce = pytest.importorskip("category_encoders")
    frame = FRAME[["debt"]].assign(code=FRAME["age"] % 4)
    model = make_pipeline(ce.CountEncoder(cols=["code"]), LogisticRegression()).fit(frame, YES)
    with pytest.raises(UnsupportedModel, match=r"categorical=\['code'\]"):
        Explainer(model, frame)
    check_reader(model, frame, schema=Schema.infer(frame, categorical=["code"]), points=2000)


def test_columns_hashed_together_are_refused():
    ce = pytest.importorskip("category_encoders")
    frame = pd.DataFrame({"a": [*"pqrstuvw"] * 50, "b": np.repeat([*"ijklmnop"], 50)}, dtype=object)
    model = make_pipeline(ce.HashingEncoder(cols=["a", "b"], n_components=3, max_process=1), LogisticRegression())
    with pytest.raises(UnsupportedModel, match=r"'a', 'b' together"):
        Explainer(model.fit(frame, YES), frame)


@pytest.mark.parametrize(("package", "name"), [("category_encoders", "WOEEncoder"), ("feature_engine", "WoEEncoder")])
def test_random_factuals_are_answered_confirmed_and_proven(package, name):
    model = make_pipeline(made(package, name)[0], LogisticRegression()).fit(FRAME, YES)
    rows = FRAME[model.predict(FRAME) == 0].sample(50, random_state=0)
    found = Explainer(model, FRAME).explain_all(rows, want=1).found()
    assert len(found) == 50
    assert all(model.predict(e.frame())[0] == 1 and e[0].certificate.proven for e in found)
