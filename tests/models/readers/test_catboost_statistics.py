"""CatBoost as people fit it: statistics of categories and of their combinations, against the model's own predictions."""

import json

import numpy as np
import pandas as pd
import pytest

from ifonly import Explainer
from ifonly.data.schema import Schema
from ifonly.errors import UnsupportedModel
from ifonly.models.readers.catboost_statistics import Statistics
from ifonly.testing import check_reader

catboost = pytest.importorskip("catboost")
pytestmark = pytest.mark.frameworks

WORDS = ["job", "home", "town"]
FEW = {"iterations": 25, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}


def data(n: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": rng.normal(3, 1, n),
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["none", "part", "full", "own", "state"], n),
            "home": rng.choice(["rent", "own", "kin"], n),
            "town": rng.choice([f"t{i}" for i in range(12)], n),
        }
    )


FRAME = data()
MIXED = (FRAME["job"] == "full") ^ (FRAME["home"] == "own")  # neither of the two tells it alone
SCORE = FRAME["income"] + 2 * MIXED + FRAME["town"].str[1:].astype(int) / 6 + FRAME["age"] / 40
YES = (SCORE.median() < SCORE).astype(int)
THREE = np.digitize(SCORE, SCORE.quantile([0.4, 0.7]))

MODELS = {
    "default": ("Classifier", YES, {}),
    "combinations": ("Classifier", YES, {"max_ctr_complexity": 4}),
    "three classes": ("Classifier", THREE, {"max_ctr_complexity": 3}),
    "value": ("Regressor", SCORE, {"max_ctr_complexity": 2}),
    "buckets": ("Classifier", YES, {"simple_ctr": ["Buckets"]}),
    "many borders": ("Regressor", SCORE, {"simple_ctr": ["Borders:TargetBorderCount=3"]}),
    "target mean": ("Regressor", SCORE, {"simple_ctr": ["BinarizedTargetMeanValue", "Counter"]}),
    "depthwise": ("Classifier", YES, {"grow_policy": "Depthwise", "max_ctr_complexity": 2}),
    "lossguide": ("Classifier", YES, {"grow_policy": "Lossguide", "max_ctr_complexity": 2}),
    "with one-hot": ("Classifier", YES, {"one_hot_max_size": 3, "max_ctr_complexity": 3}),
}


def fitted(name: str, frame: pd.DataFrame = FRAME):
    task, y, options = MODELS[name]
    return getattr(catboost, f"CatBoost{task}")(**FEW, **options, cat_features=WORDS).fit(frame, y)


def export(model, tmp_path):
    model.save_model(str(tmp_path / "m.json"), format="json", pool=catboost.Pool(FRAME, cat_features=WORDS))
    return json.loads((tmp_path / "m.json").read_text())


@pytest.mark.parametrize("name", MODELS)
def test_the_form_is_the_model(name, tmp_path):
    model = fitted(name)
    ctrs = export(model, tmp_path)["features_info"]["ctrs"]
    assert ctrs
    if name in ("combinations", "value", "with one-hot"):
        assert max(len(c["elements"]) for c in ctrs) > 1
    check_reader(model, FRAME, points=5000, rows=1)


def test_combinations_with_numbers_and_single_values_are_among_them(tmp_path):
    """Of all models here, some statistics are of a category with a number's border, or with one value of another."""
    kinds = set()
    for name in MODELS:
        for ctr in export(fitted(name), tmp_path)["features_info"]["ctrs"]:
            kinds |= {e["combination_element"] for e in ctr["elements"]}
    assert {"cat_feature_value", "float_feature"} <= kinds


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("default", "Counter", "FeatureFreq"), ("target mean", "BinarizedTargetMeanValue", "FloatTargetMeanValue")],
)
def test_kinds_that_only_a_graphics_card_fits(name, before, after, tmp_path):
    """The same tables under the other kind's name, which CatBoost itself then evaluates."""
    model, path = fitted(name), tmp_path / "renamed.json"
    text = json.dumps(export(model, tmp_path))
    assert before in text
    path.write_text(text.replace(before, after))
    renamed = type(model)().load_model(str(path), format="json")
    check_reader(renamed, FRAME, points=5000, rows=1)


def test_a_level_that_the_model_has_never_seen_counts_nothing():
    known = FRAME[FRAME["town"] != "t7"]
    model = catboost.CatBoostClassifier(**FEW, max_ctr_complexity=3, cat_features=WORDS).fit(known, YES[known.index])
    check_reader(model, FRAME, points=5000, rows=1)


def test_gaps_in_numbers_beside_statistics():
    holes = FRAME.assign(income=FRAME["income"].mask(np.arange(500) % 6 == 0))
    model = fitted("combinations", holes)
    check_reader(model, holes, points=5000, rows=1)
    assert 0 in Explainer(model, holes).model.read.accepts_missing


def test_numbers_taken_for_categories():
    frame = FRAME[["income", "age", "job"]].assign(age=FRAME["age"] % 5)
    model = catboost.CatBoostClassifier(**FEW, cat_features=["age", "job"]).fit(frame, YES)
    with pytest.raises(UnsupportedModel, match=r"categorical=\['age'\]"):
        Explainer(model, frame)
    check_reader(model, frame, schema=Schema.infer(frame, categorical=["age"]), points=5000, rows=1)


def test_a_kind_that_cannot_be_read_is_refused_by_name():
    ctr = {
        "ctr_type": "Mystery",
        "elements": [{"combination_element": "cat_feature_value", "cat_feature_index": 0}],
        "identifier": "i",
        "prior_numerator": 0,
        "prior_denomerator": 1,
        "target_border_idx": 0,
        "borders": [0.5],
    }
    model = {"features_info": {"ctrs": [ctr]}, "ctr_data": {}}
    nothing = Statistics(model, lambda f: (f, []), lambda *_: None, lambda *_: None, "", most_nodes=1000)
    with pytest.raises(UnsupportedModel, match=r"'Mystery' over cat_feature_value.*Borders, Buckets"):
        nothing.unfold({"split_index": 0, "border": 0.5}, None, 0, 1)
    with pytest.raises(UnsupportedModel, match="not the statistic"):
        nothing.unfold({"split_index": 1, "border": 0.5}, None, 0, 1)


def test_random_factuals_are_answered_confirmed_and_proven():
    model = fitted("combinations")
    rows = FRAME[np.asarray(model.predict(FRAME)).reshape(-1) == 0].sample(50, random_state=0)
    found = Explainer(model, FRAME).explain_all(rows, want=1).found()
    assert len(found) == 50
    assert all(int(model.predict(e.frame())[0]) == 1 and e[0].certificate.proven for e in found)
