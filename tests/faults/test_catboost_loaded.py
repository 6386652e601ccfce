"""A CatBoost model that was saved and loaded says that it has no features; it is explained as the fitted one is."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ifonly import Explainer, SchemaError

pytestmark = pytest.mark.frameworks
catboost = pytest.importorskip("catboost")


def fitted() -> tuple[catboost.CatBoostClassifier, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 8, 200), "g": rng.uniform(0, 2, 200)})
    model = catboost.CatBoostClassifier(iterations=7, depth=3, verbose=0, allow_writing_files=False)
    return model.fit(X, (X.a + X.g > 4).astype(int)), X


def test_a_loaded_model_gets_the_answers_of_the_fitted_one(tmp_path: Path) -> None:
    model, X = fitted()
    model.save_model(tmp_path / "model.cbm")
    loaded = catboost.CatBoostClassifier().load_model(tmp_path / "model.cbm")
    copied = pickle.loads(pickle.dumps(model))
    assert loaded.n_features_in_ == copied.n_features_in_ == 0  # or this test shows nothing
    expected = Explainer(model, X).explain(X.iloc[0])
    for other in (loaded, copied):
        answer = Explainer(other, X).explain(X.iloc[0])
        pd.testing.assert_frame_equal(answer.frame(), expected.frame())
        assert other.predict(answer.frame())[0] != model.predict(X.iloc[:1])[0]


def test_a_loaded_model_still_knows_how_many_columns_it_takes() -> None:
    model, X = fitted()
    with pytest.raises(SchemaError, match="fitted on 2 columns, but X has 3"):
        Explainer(pickle.loads(pickle.dumps(model)), X.assign(h=1.0))


def test_columns_in_another_order_are_refused() -> None:
    """CatBoost finds the columns of a frame by name, but those of an array by position: an answer would be for neither."""
    model, X = fitted()
    turned = X[["g", "a"]]
    assert (model.predict(turned) == model.predict(X)).all()
    assert (model.predict(turned.to_numpy()) != model.predict(X)).any()
    for each in (model, pickle.loads(pickle.dumps(model))):
        with pytest.raises(SchemaError, match=r"(?s)not in the order .*Pass X\[model\.feature_names_\]"):
            Explainer(each, turned)
