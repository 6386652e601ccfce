"""The user's own model has the last word, and keeps its voice."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from ifonly import Explainer

X = pd.DataFrame({"income": [10, 20, 30, 40], "debts": [5, 1, 4, 0]})
Y = ["no", "no", "yes", "yes"]


class Noisy(LogisticRegression):
    """Warns whenever it is asked."""

    def predict(self, X):
        warnings.warn("this model is old", DeprecationWarning, stacklevel=2)
        return super().predict(X)

    def predict_proba(self, X):
        warnings.warn("so are its probabilities", UserWarning, stacklevel=2)
        return super().predict_proba(X)


def test_warnings_of_the_model_reach_the_user():
    explainer = Explainer(Noisy().fit(X, Y), X)
    with pytest.warns(DeprecationWarning, match="this model is old"):
        answer = explainer.explain(X.iloc[[1]], want="yes")
    assert answer[0].prediction == "yes"
    with pytest.warns(UserWarning, match="so are its probabilities"):
        explainer.model.predict_proba(explainer.schema.encode(X))


def test_filters_of_the_user_are_kept():
    explainer = Explainer(Noisy().fit(X, Y), X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeprecationWarning):
            explainer.model.predict(explainer.schema.encode(X))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        before = list(warnings.filters)
        assert (explainer.model.predict(explainer.schema.encode(X)) == np.array(Y)).sum() >= 2
        assert warnings.filters == before
    assert not caught
