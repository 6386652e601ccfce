"""Ties that rounding breaks: two sums that are equal on paper, of which the model takes the one that is larger in floats."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.tree import DecisionTreeClassifier

from ifonly import Explainer, Proximity
from ifonly.solvers.registry import available_solvers

# The trees' shares of "b" at x = 1 are 1/3, 2/4 and 4/6. On paper "a" and "b" tie at 3/2, which the first would win; in
# floats "b" has 1.5 and "a" has 1.4999999999999998.
SHARES = ((1, 3), (2, 4), (4, 6))


def _forest() -> tuple[RandomForestClassifier, pd.DataFrame]:
    trees = []
    for some, of in SHARES:
        x = np.repeat([0.0, 1.0, 2.0], of)
        y = np.concatenate([np.zeros(of), np.arange(of) < some, np.ones(of)])
        trees.append(DecisionTreeClassifier().fit(x[:, None], y))
    X = pd.DataFrame({"x": [0, 1, 2] * 2})
    forest = RandomForestClassifier(n_estimators=len(trees)).fit(X, list("aababb"))
    forest.estimators_ = trees
    return forest, X


@pytest.mark.parametrize("solver", ["auto", "highs only", "scip only"])
@pytest.mark.parametrize("votes", [False, True])
def test_what_rounding_gives_is_taken(solver: str, votes: bool) -> None:
    if solver != "auto" and solver.removesuffix(" only") not in available_solvers():
        pytest.skip(f"{solver} is not installed")
    forest, X = _forest()
    model = forest
    if votes:
        model = VotingClassifier([("one", forest)], voting="hard").fit(X, list("aababb"))
        model.estimators_ = [forest]
        forest.classes_ = np.array([0, 1])
    assert model.predict(X)[1] == "b"
    answer = Explainer(model, X, solver=solver).explain({"x": 0}, want="b", criteria=[Proximity("l1")])
    assert answer.frame().x[0] == 1
    assert answer[0].certificate.proven


def test_ties_of_whole_votes_are_exact() -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.integers(0, 9, (60, 2)), columns=["p", "q"])
    X = X.drop_duplicates()
    grown = RandomForestClassifier(n_estimators=6, random_state=0).fit(X, rng.integers(0, 2, len(X)))
    assert Explainer(grown, X).model.read.form.adds_exactly  # leaves of 0 and 1
    shares, Y = _forest()
    assert not Explainer(shares, Y).model.read.form.adds_exactly
