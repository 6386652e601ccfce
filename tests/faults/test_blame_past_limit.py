"""Blame within the limit: once a question is proven impossible, every one of its many programs got the whole limit anew.

Four questions with a limit of 1 s took 13 to 15 s each, with 3 s up to 36 s. The promise is the limit and a tenth of it or
50 ms; what is not known by then is said.
"""

from __future__ import annotations

import time
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ifonly import Actionability, Explainer, Infeasible, OutOfTime, Proximity, Sparsity
from ifonly.datasets import german_credit
from portions import one_in

FROZEN = ["age", "job", "checking_status", "purpose"]


@cache
def world() -> tuple[Explainer, list[int]]:
    credit = german_credit()
    X, y = credit.frame, credit.target
    columns = make_column_transformer((OneHotEncoder(), list(X.select_dtypes("category"))), remainder="passthrough")
    model = make_pipeline(columns, RandomForestClassifier(50, max_depth=5, random_state=0)).fit(X, y)
    good = np.flatnonzero(model.predict(X) == "good")
    surest = good[np.argsort(-model.predict_proba(X)[good, 1])]
    return Explainer(model, X, y, criteria=[Proximity("l1")]), [int(i) for i in surest[:4]]


@pytest.mark.parametrize("place", one_in(4, range(4)))
def test_blame_ends_with_the_call(place: int) -> None:
    explainer, rows = world()
    X = explainer._frame
    criteria = [Sparsity(at_most=3), Actionability(frozen=FROZEN)]
    wall, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((Infeasible, OutOfTime)) as caught:  # on a busy machine the proof itself may not be there
            explainer.explain(X.iloc[rows[place]], want="bad", time_limit=1.0, criteria=criteria)
    assert min(time.perf_counter() - wall, time.process_time() - processor) <= 1.1 + 0.05  # one predict of 50 trees
    error = caught.value
    if isinstance(error, OutOfTime):
        return
    assert "want 'bad'" in error.conflict
    assert error.minimal == ("not shown to be minimal" not in str(error))
