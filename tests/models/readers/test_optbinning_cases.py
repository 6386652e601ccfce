"""The questions of optbinning's own tests of counterfactuals, put to its scorecards by it and by us.

Its answers name bins; the row that is nearest to the factual within them is what they cost. Theirs minimise differences of
weights of evidence beside a closeness to the data, ours the distance in units of the range, so that ours must be no dearer
in the latter, with as few changes, and confirmed by the scorecard all the same. The Boston data of its regression can no
longer be had; the diabetes data stand in for them.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression

from ifonly import Explainer, Proximity, Sparsity, Target

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    optbinning = pytest.importorskip("optbinning")
    scorecards = pytest.importorskip("optbinning.scorecard")


@cache
def card(data: str) -> tuple[Any, pd.DataFrame]:
    X, y = (load_breast_cancer if data == "breast cancer" else load_diabetes)(return_X_y=True, as_frame=True)
    y = y + 0.5 * (data == "diabetes")  # whole values would be taken for classes
    last = LogisticRegression() if data == "breast cancer" else LinearRegression()
    return optbinning.Scorecard(optbinning.BinningProcess(list(X.columns)), last).fit(X, y), X


def nearest(model: Any, factual: pd.DataFrame, shown: pd.Series) -> pd.DataFrame:
    """Return the row within the bins of an answer that is nearest to the factual."""
    row = factual.copy()
    for name, text in shown.items():
        if name == "outcome" or text == "-":
            continue
        bins = model.binning_process_.get_binned_variable(name)
        edges = np.concatenate([[-np.inf], bins.splits, [np.inf]])
        place = list(bins.binning_table.build(add_totals=False)["Bin"]).index(text)
        low, high = edges[place], edges[place + 1]  # from the first, short of the second
        row[name] = np.clip(factual[name], low, np.nextafter(high, -np.inf))
    return row


def cost(X: pd.DataFrame, factual: pd.DataFrame, row: pd.DataFrame) -> float:
    return float((np.abs(row.iloc[0] - factual.iloc[0]) / (X.max() - X.min())).sum())


CASES: dict[str, tuple[str, Any, dict[str, Any], int]] = {
    "the other class, weighed": ("breast cancer", 1, {"y": 1, "outcome_type": "binary", "method": "weighted"}, 3),
    "the other class, in order": ("breast cancer", 1, {"y": 1, "outcome_type": "binary", "method": "hierarchical"}, 3),
    "the other class, four changes": ("breast cancer", 1, {"y": 1, "outcome_type": "binary"}, 4),
    "a probability": (
        "breast cancer",
        Target(1, probability=0.7),
        {"y": 0.7, "outcome_type": "probability", "method": "hierarchical", "hard_constraints": ["min_outcome"]},
        4,
    ),
    "a value of at least": (
        "diabetes",
        Target(at_least=250.5),
        {"y": 250.5, "outcome_type": "continuous", "method": "weighted", "hard_constraints": ["min_outcome"]},
        4,
    ),
    "a value of at most": (
        "diabetes",
        Target(at_most=120.5),
        {"y": 120.5, "outcome_type": "continuous", "method": "hierarchical", "hard_constraints": ["max_outcome"]},
        4,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_at_least_as_cheap_as_the_answer_of_optbinning(name: str) -> None:
    data, want, asked, most = CASES[name]
    model, X = card(data)
    factual = X.iloc[[0]]
    theirs = scorecards.Counterfactual(model).fit(X)
    theirs.generate(query=factual, n_cf=1, max_changes=most, time_limit=60, **asked)
    assert theirs.status == "OPTIMAL"
    row = nearest(model, factual, theirs.display(show_only_changes=True).iloc[0])
    assert 0 < int((row.iloc[0] != factual.iloc[0]).sum()) <= most

    policy = [Proximity("l1", scale="range"), Sparsity(at_most=most, price=0.0)]
    answer = Explainer(model, X, criteria=policy).explain(factual, want=want)
    ours = answer[0]
    assert answer.status == "optimal"
    assert len(ours.changes) <= most
    assert ours.certificate.objective == pytest.approx(cost(X, factual, ours.row), rel=1e-9)
    met = reached(model, want)
    assert met(ours.row)
    # By pieces of lines, optbinning takes a probability below 0.7 for one above: that answer is none.
    assert met(row) == (name != "a probability")
    if met(row):
        assert ours.certificate.objective <= cost(X, factual, row) * (1.0 + 1e-9)


def reached(model: Any, want: Any) -> Any:
    if isinstance(want, int):
        return lambda row: model.predict(row)[0] == want
    if want.probability is not None:
        return lambda row: model.predict_proba(row)[0, 1] >= want.probability
    low, high = (
        (-np.inf if want.at_least is None else want.at_least),
        (np.inf if want.at_most is None else want.at_most),
    )
    return lambda row: low <= float(np.ravel(model.predict(row))[0]) <= high
