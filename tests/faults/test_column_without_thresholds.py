"""A column on which no tree splits is not asked about: a transformer takes no empty table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.tree import DecisionTreeClassifier

from ifonly import Explainer


@pytest.mark.filterwarnings("ignore:Bins whose width")
def test_one_bin_has_no_edges_inside() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"rare": np.r_[np.zeros(59), 1.0], "b": rng.uniform(0, 1, 60)})
    bins = KBinsDiscretizer(n_bins=4, encode="ordinal", quantile_method="averaged_inverted_cdf")
    model = make_pipeline(SimpleImputer(), bins, DecisionTreeClassifier(random_state=0)).fit(X, X.b > 0.5)
    assert len(model[1].bin_edges_[0]) == 2  # empty bins are removed
    answer = Explainer(model, X).explain({"rare": 0.0, "b": 0.2}, want=True)
    assert model.predict(answer.frame())[0]
    assert answer[0].certificate.proven
