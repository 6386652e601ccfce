"""Branch and bound over inputs of composites of networks: the optimum is that of enumeration and of the solver."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from ifonly import Actionability, Explainer, Infeasible, Proximity, Schema, Sparsity, Target
from ifonly.models.forms import signs as kernel
from ifonly.models.forms.backward import Layers
from ifonly.models.forms.composed import Composed
from ifonly.question.found import Ended
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import NetworkSearch, Tuning
from ifonly.search.composites import Composites
from ifonly.search.engines import find
from ifonly.search.inputs import Networks
from ifonly.search.inputs.networks import Search
from ifonly.search.inputs.signs import BySigns
from ifonly.solvers.backend import Limits
from portions import diagonals, one_in
from questions import HOUSES, labels, people, pipeline

GRID = pd.DataFrame(
    list(itertools.product(range(7), np.round(np.arange(-2, 3) * 0.1, 1), ["red", "green", "blue", "black"], [0, 1])),
    columns=["size", "weight", "colour", "new"],
)
NONE = "no solver needed"


def network(seed: int, layers: tuple[int, ...] = (6,)) -> MLPClassifier:
    return MLPClassifier(layers, solver="lbfgs", max_iter=120, random_state=seed, alpha=0.01)


def logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=2000)


KINDS: dict[str, Callable[[int], Any]] = {
    "sigmoid": lambda s: CalibratedClassifierCV(network(s), cv=2),
    "sigmoid, one fold": lambda s: CalibratedClassifierCV(network(s, (5, 4)), cv=2, ensemble=False),
    "isotonic": lambda s: CalibratedClassifierCV(network(s), method="isotonic", cv=2),
    "isotonic, one fold": lambda s: CalibratedClassifierCV(network(s), method="isotonic", cv=2, ensemble=False),
    "soft": lambda s: VotingClassifier(
        [("a", network(s)), ("b", network(s + 1, (4, 3)))], voting="soft", weights=[2, 1]
    ),
    "soft, mixed": lambda s: VotingClassifier([("a", network(s)), ("b", logistic())], voting="soft"),
    "hard": lambda s: VotingClassifier([("a", network(s)), ("b", logistic()), ("c", network(s + 2))], voting="hard"),
    "stacked": lambda s: StackingClassifier([("a", network(s)), ("b", logistic())], cv=2),
    "binned": network,
    "binned, ordinal": network,
    "binned, beside": lambda s: network(s, (5, 4)),
    "binned and calibrated": lambda s: CalibratedClassifierCV(network(s), cv=2),
    "binned votes": lambda s: VotingClassifier([("a", network(s)), ("b", network(s + 1, (4, 3)))], voting="soft"),
}


@pytest.fixture(autouse=True)
def looked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[type, Ended]]:
    """The kind of bounds and the end of each search of the engine, as they come."""
    seen: list[tuple[type, Ended]] = []
    found = Search.found

    def told(self: Search, ended: Ended) -> Any:
        seen.append((type(self.layers), ended))
        return found(self, ended)

    monkeypatch.setattr(Search, "found", told)
    return seen


@pytest.fixture(params=["compiled", "signs first", "numpy"])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """With compiled kernels, signs of units after boxes or before them where rows are straight, or without."""
    if request.param == "numpy":
        monkeypatch.setenv("IFONLY_KERNEL", "numpy")
    elif kernel._built is None:
        pytest.skip("the kernel is not built")
    elif request.param == "signs first":
        monkeypatch.setattr(BySigns, "comes_first", lambda self: True)
    return str(request.param)


def outcomes(seed: int, classes: int) -> np.ndarray:
    score = GRID["size"] + 2 * (GRID["colour"] == "green") - 20 * GRID["weight"] * GRID["new"]
    noise = np.random.default_rng(seed).normal(0, 1.5, len(GRID))
    return np.digitize(score + noise, [2.5, 5.0][: classes - 1])


def columns(kind: str) -> Any:
    """Return what stands before a model: binned, both numbers by their bins, or one of them, and the other scaled."""
    if not kind.startswith("binned"):
        return make_column_transformer((OneHotEncoder(), ["colour"]), remainder=StandardScaler())
    encode = "ordinal" if kind.endswith("ordinal") else "onehot-dense"
    with warnings.catch_warnings(action="ignore"):
        bins = KBinsDiscretizer(4, encode=encode, strategy="uniform", subsample=None)
    which = ["size"] if kind.endswith("beside") else ["size", "weight"]
    return make_column_transformer((OneHotEncoder(), ["colour"]), (bins, which), remainder=StandardScaler())


@cache
def painted(kind: str, seed: int, classes: int) -> Any:
    while True:  # small networks may die: then another one is fitted
        with warnings.catch_warnings(action="ignore"):
            model = make_pipeline(columns(kind), KINDS[kind](seed)).fit(GRID, outcomes(seed, classes))
        if len(set(model.predict(GRID))) > 1:
            return model
        seed += 1000


# -- against enumeration -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("kind", "seed"), diagonals(3, KINDS, range(6)))
def test_optimum_equals_enumeration(kind: str, seed: int, way: str, looked: list[tuple[type, Ended]]) -> None:
    rng, classes = np.random.default_rng(seed), 2 + seed % 2
    if kind == "isotonic" and classes > 2:
        pytest.skip("not exact in a program, and not read")
    model = painted(kind, 100 + seed, classes)
    said = model.predict(GRID)
    weights = {"size": float(rng.choice([0.2, 1.0, 3.0])), "colour": float(rng.choice([0.3, 1.0]))}
    price, at_most = float(rng.choice([0.0, 0.1])), int(rng.integers(1, 5))
    square = seed % 3 == 2
    if way == "signs first":  # which takes even costs only
        price, at_most, square = 0.0, 4, False
    house = [Proximity("l2" if square else "l1", scale="range", weights=weights)]
    house.append(Sparsity(at_most=at_most, price=price))
    rows = np.ones(len(GRID), dtype=np.bool_)
    if seed % 4 == 1:
        house.append(Actionability(frozen=["new"], ranges={"size": (1, 5)}))
        rows &= GRID["size"].between(1, 5).to_numpy()
    explainer = Explainer(model, GRID, schema=Schema.infer(GRID, precision={"weight": 1}), criteria=house)
    asked = 0
    for i in rng.permutation(np.flatnonzero(rows))[:3]:
        factual = GRID.iloc[int(i)]
        want = int(rng.choice([c for c in set(said) if c != said[i]]))
        d = {c: (GRID[c] - factual[c]).abs() / (GRID[c].max() - GRID[c].min()) for c in ("size", "weight", "new")}
        d["colour"] = (GRID["colour"] != factual["colour"]).astype(float)
        table = pd.DataFrame(d).mul(pd.Series(weights).reindex(list(d)).fillna(1.0))
        cost = (table**2 if square else table).sum(axis=1)
        changed = (table > 0).sum(axis=1)
        good = (said == want) & (changed <= at_most).to_numpy() & rows
        if seed % 4 == 1:
            good &= (GRID["new"] == factual["new"]).to_numpy()
        row = factual.to_frame().T.astype(GRID.dtypes)
        if not good.any():
            with pytest.raises(Infeasible):
                explainer.explain(row, want=want)
            continue
        best = float((cost + price * changed)[good].min())
        answer = explainer.explain(row, want=want)
        asked += 1
        assert answer.status == "optimal"
        assert answer[0].certificate.solver == NONE
        assert answer[0].certificate.objective == pytest.approx(best, rel=2e-6, abs=1e-12)
        assert answer[0].certificate.bound <= best * (1 + 1e-9)
    assert not asked or looked
    assert all(ended is not Ended.GAVE_UP for _, ended in looked)


# -- against the solver ------------------------------------------------------------------------------------------------
X = people(200)


@cache
def fitted(kind: str) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return pipeline(X, labels(X), KINDS[kind](1))


@pytest.mark.filterwarnings("ignore::ifonly.FactualViolatesDemand")
@pytest.mark.parametrize(("kind", "house"), diagonals(6, ["sigmoid", "soft, mixed", "hard", "stacked"], HOUSES))
def test_the_solver_agrees(kind: str, house: str) -> None:
    model = fitted(kind)
    explainer = Explainer(model, X)
    for i in np.flatnonzero(model.predict(X) == "bad")[1:2]:
        question = explainer._ask(X.iloc[[i]], "good", HOUSES[house])
        statement = question.goal.with_first_margin(question.statement)
        assert Networks().accepts(statement, statement.box())
        assert not Composites().accepts(statement, statement.box())
        ours = find(statement, explainer.backend, Limits(), engines=(Networks(),))
        assert ours.solver == NONE
        answer = Explainer(model, X, solver="highs only").explain(X.iloc[[i]], want="good", criteria=HOUSES[house])
        assert answer.status == "optimal"
        theirs = answer[0].certificate
        assert ours.optimal
        assert ours.u is not None
        cost = float(statement.objective(ours.u[None, :])[0])
        assert cost == pytest.approx(theirs.objective, rel=3e-6)
        assert ours.bound <= theirs.objective * (1 + 1e-9)


@pytest.mark.parametrize("parts", one_in(2, ["networks", "mixed"]))
def test_an_interval_of_a_vote_of_regressions(parts: str, looked: list[tuple[type, Ended]]) -> None:
    y = X["income"] - 0.6 * X["debts"] + 0.5 * X["home"]
    nets = [
        MLPRegressor(hidden_layer_sizes=(6,), solver="lbfgs", alpha=0.1, max_iter=300, random_state=s) for s in (0, 1)
    ]
    both = nets if parts == "networks" else [nets[0], LinearRegression()]
    with warnings.catch_warnings(action="ignore"):
        model = pipeline(X, y, VotingRegressor([(str(k), part) for k, part in enumerate(both)]))
    row, value = X.iloc[[int(np.argmin(y))]], float(np.quantile(model.predict(X), 0.6))
    want = Target(at_least=value, at_most=value + 0.1)
    answer = Explainer(model, X).explain(row, want=want)
    assert answer.status == "optimal"
    assert answer[0].certificate.solver == NONE
    assert looked
    other = Explainer(model, X, solver="highs only").explain(row, want=want)
    assert answer[0].certificate.objective == pytest.approx(other[0].certificate.objective, rel=3e-6)


# -- limits ------------------------------------------------------------------------------------------------------------
def test_networks_beside_trees_are_left_to_the_solver() -> None:
    trees = RandomForestClassifier(3, max_depth=2, random_state=0)
    mixed = VotingClassifier([("a", network(1)), ("b", trees)], voting="soft")
    for model, engine in (
        (mixed, None),
        (VotingClassifier([("a", trees), ("b", logistic())], voting="soft"), Composites),
    ):
        with warnings.catch_warnings(action="ignore"):
            explainer = Explainer(pipeline(X, labels(X), model), X)
        statement = explainer._ask(X.iloc[[0]], "good", []).statement
        taken = [type(e) for e in (Networks(), Composites()) if e.accepts(statement, statement.box())]
        assert taken == ([engine] if engine else [])


def test_it_gives_up_with_a_bound_that_holds() -> None:
    model, given_up = fitted("soft"), 0
    for i in np.flatnonzero(model.predict(X) == "bad")[:4]:
        row = X.iloc[[i]]
        explainer = Explainer(model, X, tuning=Tuning(networks=NetworkSearch(most_nodes=3, nodes_at_once=1)))
        statement = explainer._ask(row, "good", []).statement
        found = find(statement, explainer.backend, Limits(), engines=(Networks(),))
        whole = Explainer(model, X).explain(row, want="good")
        assert found.bound <= whole[0].certificate.objective * (1 + 1e-9)
        given_up += found.ended is Ended.GAVE_UP
    assert given_up


@pytest.mark.parametrize("most", [1, 100])
def test_rows_of_thresholds_change_no_answer(most: int) -> None:
    for kind in ("sigmoid", "soft"):
        model = fitted(kind)
        row = X[model.predict(X) == "bad"].iloc[[0]]
        tuned = Explainer(model, X, tuning=Tuning(networks=NetworkSearch(most_thresholds=most)))
        answers = [explainer.explain(row, want="good") for explainer in (Explainer(model, X), tuned)]
        costs = [answer[0].certificate.objective for answer in answers]
        assert all(answer[0].certificate.solver == NONE for answer in answers)
        assert costs[0] == pytest.approx(costs[1], rel=2e-6)


def test_a_deadline_is_kept() -> None:
    model = fitted("sigmoid")
    explainer = Explainer(model, X)
    row = X[model.predict(X) == "bad"].iloc[[0]]
    statement = explainer._ask(row, "good", []).statement
    found = find(statement, explainer.backend, Limits(), deadline=Deadline.after(0.0), engines=(Networks(),))
    assert found.ended is Ended.GAVE_UP


def test_a_single_score_is_searched_as_that_of_a_bare_network(looked: list[tuple[type, Ended]]) -> None:
    for kind in ("sigmoid, one fold", "sigmoid"):
        model = fitted(kind)
        explainer = Explainer(model, X)
        for i in np.flatnonzero(model.predict(X) == "bad")[:6]:
            explainer.explain(X.iloc[[i]], want="good")
        kinds = {kind for kind, _ in looked}
        assert (Layers in kinds) == (kind == "sigmoid, one fold")  # else the box is closed before a threshold is of use
        looked.clear()


def test_no_proof_is_kept_that_could_not_be_replayed(looked: list[tuple[type, Ended]]) -> None:
    for kind in ("sigmoid", "sigmoid, one fold"):
        model = fitted(kind)
        explainer = Explainer(model, X)
        for i in np.flatnonzero(model.predict(X) == "bad")[:4]:
            statement = explainer._ask(X.iloc[[i]], "good", []).statement
            found = find(statement, explainer.backend, Limits(), engines=(Networks(),), proof=True)
            assert found.optimal
            assert not found.trail
    assert {kind for kind, _ in looked} == {Composed, Layers}
