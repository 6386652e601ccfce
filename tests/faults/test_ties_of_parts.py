"""Ties inside a part of a model: a further model's tuned threshold, a tied member of a vote, a constant score.

Found by the battery. A further model of `Robustness` whose threshold lies a float above one of its scores accepted points
that the program left out, and a dearer answer was called proven. A forest that is tied inside a vote with a continuous
member, and a score that does not depend on anything, ended in `NotVerified`.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import ElasticNet, LinearRegression, LogisticRegression, Perceptron
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.tree import DecisionTreeClassifier

from ifonly import Causality, Cause, Explainer, Infeasible, Proximity, Robustness, Sparsity, Target
from portions import diagonals, one_in

GRID = pd.DataFrame(list(itertools.product(range(5), range(4), range(3))), columns=list("abc"))


def table(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = GRID.sample(70, replace=True, random_state=seed).reset_index(drop=True)
    noisy = X["a"] + rng.integers(-1, 2, 70) * X["b"] + rng.normal(0, 1, 70)
    # Rows that are the same have the same label, so that leaves of full trees are pure and scores whole shares.
    return X, np.where(noisy.groupby([X[c] for c in X]).transform("first") > 2, "yes", "no")


@pytest.mark.parametrize(("seed", "side"), diagonals(3, range(4), [-1, 0, 1]))
def test_a_further_model_with_a_threshold_beside_a_score(seed: int, side: int) -> None:
    X, y = table(seed)
    model = DecisionTreeClassifier(max_depth=3, random_state=seed).fit(X, y)
    forest = RandomForestClassifier(6, random_state=seed).fit(X, y == "yes")
    shares = np.sort(np.unique(forest.predict_proba(GRID)[:, 1]))
    at = float(shares[len(shares) // 2])
    threshold = at if side == 0 else float(np.nextafter(at, np.inf * side))
    labelled = RandomForestClassifier(6, random_state=seed).fit(X, y)
    other = FixedThresholdClassifier(labelled, threshold=threshold, pos_label="yes").fit(X, y)
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="none"), Sparsity(price=0.0)])
    for want in ("yes", "no"):
        both = (model.predict(GRID) == want) & (other.predict(GRID) == want)
        for k in np.flatnonzero(model.predict(X) != want)[:3]:
            row = X.iloc[[int(k)]]
            try:
                answer = explainer.explain(row, want=want, criteria=[Robustness(models=[other])])
            except Infeasible:
                assert not both.any()
                continue
            costs = (GRID - row.iloc[0]).abs().sum(axis=1)[both]
            assert answer[0].certificate.proven
            assert answer[0].distance == pytest.approx(costs.min())


@pytest.mark.parametrize("seed", one_in(4, range(8)))
def test_a_vote_with_a_tied_forest_and_a_continuous_member(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = table(seed)
    X = X.assign(r=rng.normal(0.0, 1.0, len(X)))
    members = [
        ("forest", RandomForestClassifier(4, max_depth=1, max_features=1, random_state=seed)),
        ("logistic", LogisticRegression()),
        ("tree", DecisionTreeClassifier(max_depth=2, random_state=seed)),
    ]
    model = VotingClassifier(members, voting="hard").fit(X, y)
    explainer = Explainer(model, X, criteria=[Proximity("l1", scale="none"), Sparsity(price=0.0)])
    for want in ("yes", "no"):
        wide = GRID.merge(pd.DataFrame({"r": np.linspace(X["r"].min(), X["r"].max(), 41)}), how="cross")
        said = model.predict(wide) == want
        for k in np.flatnonzero(model.predict(X) != want)[:2]:
            row = X.iloc[[int(k)]]
            try:
                answer = explainer.explain(row, want=want)
            except Infeasible:
                assert not said.any()
                continue
            costs = (wide - row.iloc[0]).abs().sum(axis=1)[said]
            assert model.predict(answer[0].row)[0] == want
            assert answer[0].certificate.proven
            assert not len(costs) or answer[0].distance <= costs.min() * (1 + 1e-6)


def test_a_score_that_depends_on_nothing_is_impossible_to_move() -> None:
    X, _ = table(0)
    model = ElasticNet(alpha=50.0).fit(X, 1e-3 * X["a"])
    assert not model.coef_.any()
    value = float(model.predict(X.iloc[[0]])[0])
    explainer = Explainer(model, X, criteria=[Proximity("linf"), Sparsity(price=0.05)])
    for above in (1e-16, 1e-12, 1e-9, 1e-3):
        with pytest.raises(Infeasible):
            explainer.explain(X.iloc[[0]], want=Target(at_least=value + above))


def test_no_rows_have_no_scores() -> None:
    """A mean of members has a score for each of no rows, too: a robust search asks for the rows that are left."""
    X, y = table(1)
    members = [("logistic", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=2, random_state=0))]
    model = VotingClassifier(members, voting="soft").fit(X, y)
    form = Explainer(model, X).model.read.form
    assert form(np.empty((0, 3))).shape == (0, form.n_outputs)


@pytest.mark.parametrize("seed", one_in(3, range(6)))
def test_nothing_follows_where_no_parent_has_changed(seed: int) -> None:
    """Edges of quantile bins are values of the data: one lies at the factual's own value, a float away from another bin."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"w": rng.integers(0, 6, 60), "d": rng.integers(0, 4, 60)})
    X["r"] = 1e-4 * (X["w"] + rng.normal(0.0, 1.0, 60))
    y = (X["r"] + 1e-4 * X["d"] > X["r"].median()).astype(int)
    bins = KBinsDiscretizer(4, encode="onehot-dense", quantile_method="linear")
    model = make_pipeline(make_column_transformer((bins, ["r"]), remainder="passthrough"), Perceptron()).fit(X, y)
    edges = model[0].named_transformers_["kbinsdiscretizer"].bin_edges_[0]
    row = X.iloc[[0]].assign(r=float(edges[2]))
    want = 1 - int(model.predict(row)[0])
    cause = Cause(["w"], model=LinearRegression().fit(X[["w"]], X["r"]))
    explainer = Explainer(
        model, X, criteria=[Proximity("l1"), Sparsity(price=0.0), Causality({"r": cause}, count="actions")]
    )
    try:
        answer = explainer.explain(row, want=want)
    except Infeasible:
        return
    there = answer[0].row
    if int(there["w"].iloc[0]) == int(row["w"].iloc[0]):
        assert float(there["r"].iloc[0]) == float(row["r"].iloc[0])
    assert model.predict(there)[0] == want
