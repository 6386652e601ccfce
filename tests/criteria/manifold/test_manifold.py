"""Manifold against oracles: enumeration of grids, one program with all rows written down, scikit-learn's own scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import LinearConstraint, linprog, milp, nnls
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import questions
from ifonly import (
    Actionability,
    CriterionError,
    Diversity,
    Explainer,
    Explanation,
    Infeasible,
    Manifold,
    Proximity,
    Schema,
    Sparsity,
    Target,
)
from ifonly.runtime.tuning import ColumnGeneration, Tuning
from ifonly.testing import check_criterion
from portions import one_in
from worlds import World, world_of

INSIDE = 1e-7
NORMS = ("l1", "l2", "linf")


# Branch and price even where all rows could be written down.
PRICED = Tuning(columns=ColumnGeneration(written_down=0))


def outside(x: np.ndarray, P: np.ndarray, norm: str = "linf") -> float:
    """Distance of a point from the hull of the lines of P, by a program that shares nothing with the library."""
    n, d = P.shape
    if norm == "l2":
        heavy = 1e5  # the weights must sum to one
        weights, _ = nnls(np.vstack([P.T, np.full((1, n), heavy)]), np.append(x, heavy), maxiter=20 * (n + d))
        return float(np.linalg.norm(weights / weights.sum() @ P - x))
    slack = -np.ones((d, 1)) if norm == "linf" else -np.eye(d)
    k = slack.shape[1]
    found = linprog(
        np.append(np.zeros(n), np.ones(k)),
        A_ub=np.vstack([np.hstack([P.T, slack]), np.hstack([-P.T, slack])]),
        b_ub=np.concatenate([x, -x]),
        A_eq=[[*np.ones(n), *np.zeros(k)]],
        b_eq=[1.0],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    return float(found.fun)


def scaled(X: pd.DataFrame, reference: pd.DataFrame) -> np.ndarray:
    """Numbers divided by their range, categories as 0/1 columns."""
    numbers = reference.select_dtypes("number").columns
    span = (reference[numbers].max() - reference[numbers].min()).to_numpy(float)
    levels = [
        (X[name].to_numpy() == level)[:, None].astype(float)
        for name in reference.columns.difference(numbers)
        for level in sorted(reference[name].unique())
    ]
    return np.hstack([X[numbers].to_numpy(float) / span, *levels])


# -- grids: every row of a small world ---------------------------------------------------------------------------------
def world(seed: int, family: str) -> World:
    return world_of(seed, family, (6, 5, 4))


def cheapest(w: World, row: pd.DataFrame, hulls: list[np.ndarray], epsilon: float, norm: str) -> float:
    """The least cost of a row of the grid that the model accepts and that lies in one of the enlarged hulls."""
    costs, points = w.costs(row, price=0.0), scaled(w.grid, w.X)
    for i in np.argsort(costs, kind="stable"):
        if w.said[i] and min(outside(points[i], P, norm) for P in hulls) <= epsilon + INSIDE:
            return float(costs[i])
    return np.inf


def explain(w: World, row: pd.DataFrame, *criteria: Any, **more: Any) -> Explanation:
    return w.explainer(Proximity("l1"), labelled=True).explain(row, want="yes", criteria=criteria, **more)


@pytest.mark.parametrize(
    ("family", "epsilon", "norm"),
    [
        ("logistic", 0.0, "l1"),
        ("boosting", 0.15, "l1"),
        ("tree", 0.1, "l2"),
        ("network", 0.08, "linf"),
        ("forest", 2.2, "l1"),
        *(pytest.param(f, 0.0, "l1", marks=pytest.mark.slow) for f in ("tree", "forest", "boosting", "network")),
        *(pytest.param(family, 0.15, "l1", marks=pytest.mark.slow) for family in ("logistic", "network")),
        pytest.param("forest", 0.1, "l2", marks=pytest.mark.slow),
        pytest.param("forest", 0.08, "linf", marks=pytest.mark.slow),
    ],
)
def test_optimum_is_that_of_enumeration(family: str, epsilon: float, norm: Any) -> None:
    w = world(1, family)
    rows = w.X[w.y == "yes"].iloc[:14]
    points = scaled(rows, w.X)
    for row in w.factuals(2):
        best = cheapest(w, row, [points], epsilon, norm)
        found = explain(w, row, Manifold(epsilon=epsilon, norm=norm, rows=rows))
        assert found.status == "optimal"
        assert found[0].certificate.objective == pytest.approx(best, abs=1e-6)
        far = outside(scaled(found.frame(), w.X)[0], points, norm)
        assert far <= epsilon + INSIDE
        assert found[0].measures["hull_distance"] == pytest.approx(far, abs=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "norm"),
    [
        (0.0, "l1"),
        pytest.param(0.15, "l1", marks=pytest.mark.slow),
        (0.08, "linf"),
        pytest.param(0.1, "l2", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("family", ["forest", "network"])
def test_branch_and_price_finds_the_same(family: str, epsilon: float, norm: Any) -> None:
    w = world(2, family)
    rows = w.X[w.y == "yes"].iloc[:12]
    explainer = Explainer(w.model, w.X, w.y, criteria=[Proximity("l1")], tuning=PRICED)
    for row in w.factuals(2):
        best = cheapest(w, row, [scaled(rows, w.X)], epsilon, norm)
        found = explainer.explain(row, want="yes", criteria=[Manifold(epsilon=epsilon, norm=norm, rows=rows)])
        assert found.status == "optimal"
        assert found[0].certificate.objective == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, pytest.param(2.2, marks=pytest.mark.slow)])
def test_union_of_clusters_is_the_best_of_single_clusters(epsilon: float) -> None:
    w = world(3, "forest")
    rows = w.X[w.y == "yes"].iloc[:15].reset_index(drop=True)
    labels = np.arange(15) % 3
    for row in w.factuals(1):
        union = explain(w, row, Manifold(epsilon=epsilon, rows=rows, clusters=labels))[0].certificate.objective
        single = []
        for k in range(3):
            try:
                alone = explain(w, row, Manifold(epsilon=epsilon, rows=rows[labels == k]))
                single.append(alone[0].certificate.objective)
            except Infeasible:
                continue
        assert union == pytest.approx(min(single), abs=1e-6)
        hulls = [scaled(rows[labels == k], w.X) for k in range(3)]
        assert union == pytest.approx(cheapest(w, row, hulls, epsilon, "l1"), abs=1e-6)


@pytest.mark.parametrize("norm", one_in(2, NORMS))
def test_a_larger_epsilon_is_never_worse(norm: Any) -> None:
    w = world(4, "boosting")
    for row in w.factuals(1):
        costs = [explain(w, row, Manifold(epsilon=e, norm=norm))[0].certificate.objective for e in (0, 0.05, 0.2, 3)]
        assert costs == sorted(costs, reverse=True)
        free = explain(w, row)[0].certificate.objective
        assert costs[-1] == pytest.approx(free, abs=1e-6)


def test_one_answer_per_cluster() -> None:
    w = world(3, "forest")
    row = w.factuals(1)[0]
    rows = w.X[w.y == "yes"].reset_index(drop=True)
    labels = (rows["n0"] > 3).to_numpy()
    found = explain(w, row, Manifold(rows=rows, clusters=labels), Diversity("clusters"), n=2)
    single = sorted(explain(w, row, Manifold(rows=rows[labels == k]))[0].certificate.objective for k in (False, True))
    assert [answer.certificate.objective for answer in found] == pytest.approx(single, abs=1e-6)
    homes = {
        k for answer in found for k in (False, True)
        if outside(scaled(answer.row, w.X)[0], scaled(rows[labels == k], w.X)) <= INSIDE
    }  # fmt: skip
    assert homes == {False, True}
    few = explain(w, row, Manifold(rows=rows, clusters=labels), Diversity("clusters"), n=3)
    assert "only 2 of 3: there are 2 clusters" in few.notes[0]


# -- numbers without a grid: one program with all rows written down ------------------------------------------------------
@dataclass
class Continuous:
    """Three real numbers and a category, and a logistic model: everything in one mixed-integer linear program."""

    seed: int
    n: int = 60

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        X = rng.normal(size=(self.n, 3)) * [1.0, 5e4, 1e-3]  # far apart, so that rows get scaled
        self.X = pd.DataFrame(X, columns=["a", "b", "c"])
        self.X["kind"] = rng.choice(["p", "q", "r"], self.n)
        truth = rng.normal(size=6) / np.append([1.0, 5e4, 1e-3], np.ones(3))
        self.y = np.where(self.design(self.X) @ truth + rng.normal(0, 0.5, self.n) > 0.3, "yes", "no")
        encode = make_column_transformer(
            (StandardScaler(), ["a", "b", "c"]), (OneHotEncoder(categories=[["p", "q", "r"]]), ["kind"])
        )
        self.model = make_pipeline(encode, LogisticRegression(C=10.0, max_iter=10_000)).fit(self.X, self.y)
        scaler, last = encode.named_transformers_["standardscaler"], self.model[-1]
        unit = np.append(scaler.scale_, np.ones(3))
        self.w = last.coef_[0] / unit
        self.b = float(last.intercept_[0] - last.coef_[0, :3] @ (scaler.mean_ / scaler.scale_))
        self.span = (self.X[["a", "b", "c"]].max() - self.X[["a", "b", "c"]].min()).to_numpy(float)

    @staticmethod
    def design(X: pd.DataFrame) -> np.ndarray:
        levels = np.column_stack([(X["kind"] == k).to_numpy(float) for k in "pqr"])
        return np.hstack([X[["a", "b", "c"]].to_numpy(float), levels])

    def optimum(self, row: pd.DataFrame, hulls: list[pd.DataFrame], epsilon: float, norm: str) -> float:
        """min sum |x - xhat| / span + [switched]: columns x(3) level(3) d(3) s(6) |s|(6) w(k) lambda."""
        hat, k = self.design(row)[0], len(hulls)
        scale = np.append(self.span, np.ones(3))
        points = np.vstack([self.design(h) / scale for h in hulls])
        owner = np.repeat(np.arange(k), [len(h) for h in hulls])
        at = {"x": 0, "d": 6, "s": 9, "t": 15, "w": 21, "v": 21 + k}
        n = at["v"] + len(points)
        rows: list[tuple[np.ndarray, float, float]] = []

        def add(entries: dict[int, float], low: float, high: float) -> None:
            line = np.zeros(n)
            for column, value in entries.items():
                line[column] += value
            rows.append((line, low, high))

        for i in range(3):
            add({at["d"] + i: 1, at["x"] + i: -1 / scale[i]}, -hat[i] / scale[i], np.inf)
            add({at["d"] + i: 1, at["x"] + i: 1 / scale[i]}, hat[i] / scale[i], np.inf)
        for i in range(6):
            weights = {at["v"] + m: p[i] for m, p in enumerate(points) if p[i]}
            add({at["x"] + i: -1 / scale[i], at["s"] + i: -1, **weights}, 0, 0)
            add({at["t"] + i: 1, at["s"] + i: -1}, 0, np.inf)
            add({at["t"] + i: 1, at["s"] + i: 1}, 0, np.inf)
            if norm == "linf":
                add({at["t"] + i: 1}, -np.inf, epsilon)
        if norm == "l1":
            add({at["t"] + i: 1 for i in range(6)}, -np.inf, epsilon)
        add({at["x"] + i: 1 for i in (3, 4, 5)}, 1, 1)
        add({at["x"] + i: self.w[i] for i in range(6)}, -self.b, np.inf)
        add({at["w"] + c: 1 for c in range(k)}, 1, 1)
        for c in range(k):
            add({at["w"] + c: -1, **{at["v"] + m: 1 for m in np.flatnonzero(owner == c)}}, 0, 0)
        cost, whole = np.zeros(n), np.zeros(n)
        cost[at["d"] : at["d"] + 3] = 1
        cost[3:6] = 1 - hat[3:6]
        whole[3:6] = whole[at["w"] : at["w"] + k] = 1
        low, high = np.full(n, 0.0), np.full(n, np.inf)
        low[:3], high[:3] = self.X[["a", "b", "c"]].min(), self.X[["a", "b", "c"]].max()
        low[at["s"] : at["s"] + 6] = -np.inf
        high[3:6] = high[at["w"] : at["w"] + k] = 1
        A, lower, upper = (np.array(part) for part in zip(*rows, strict=True))
        found = milp(
            cost, integrality=whole, bounds=(low, high), constraints=LinearConstraint(A, lower, upper),
            options={"mip_rel_gap": 1e-9},
        )  # fmt: skip
        assert found.status == 0
        return float(found.fun)


@cache
def continuous(seed: int, n: int = 60, tuning: Tuning | None = None) -> tuple[Continuous, Explainer]:
    c = Continuous(seed, n)
    return c, Explainer(c.model, c.X, c.y, criteria=[Proximity("l1")], tuning=tuning or Tuning())


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("epsilon", "norm"),
    [
        (0.0, "l1"),
        (0.3, "l1"),
        (0.1, "linf"),
        *(pytest.param(*e, marks=pytest.mark.slow) for e in ((0.6, "linf"), (2.5, "l1"))),
    ],
)
@pytest.mark.parametrize("n_hulls", [1, 3])
def test_optimum_is_that_of_one_program_with_all_rows(seed: int, epsilon: float, norm: Any, n_hulls: int) -> None:
    c, explainer = continuous(seed)
    rows = c.X[c.y == "yes"]
    labels = np.arange(len(rows)) % n_hulls
    hulls = [rows[labels == k] for k in range(n_hulls)]
    for i in np.flatnonzero(c.model.predict(c.X) == "no")[:2]:
        row = c.X.iloc[[i]]
        hull = Manifold(epsilon=epsilon, norm=norm, clusters=None if n_hulls == 1 else labels)
        found = explainer.explain(row, want="yes", criteria=[hull])
        assert found.status == "optimal"
        assert found[0].certificate.objective == pytest.approx(c.optimum(row, hulls, epsilon, norm), abs=2e-5)
        far = min(outside(scaled(found.frame(), c.X)[0], scaled(h, c.X), norm) for h in hulls)
        assert far <= epsilon + INSIDE


@pytest.mark.parametrize(("epsilon", "norm"), [(0.0, "l1"), (0.3, "l1"), (0.6, "linf")])
def test_pricing_finds_that_optimum_too(epsilon: float, norm: Any) -> None:
    c, explainer = continuous(5, n=400, tuning=PRICED)
    rows = c.X[c.y == "yes"]
    for i in np.flatnonzero(c.model.predict(c.X) == "no")[:2]:
        row = c.X.iloc[[i]]
        found = explainer.explain(row, want="yes", criteria=[Manifold(epsilon=epsilon, norm=norm)])
        assert found[0].certificate.objective == pytest.approx(c.optimum(row, [rows], epsilon, norm), abs=2e-5)


def test_squares_in_the_objective() -> None:
    # One category, a linear model, no rows in the way: the nearest point of a triangle beyond a line, by hand.
    X = pd.DataFrame({"a": [0.0, 4.0, 4.0, 0.0, 0.0], "b": [0.0, 0.0, 4.0, 4.0, 1.0]})
    model = LinearRegression().fit(X, X["a"])
    explainer = Explainer(model, X, schema=Schema.infer(X, numeric=["a", "b"]), criteria=[Proximity("l2")])
    triangle = pd.DataFrame({"a": [0.0, 4.0, 4.0], "b": [4.0, 4.0, 0.0]})
    found = explainer.explain(X.iloc[[0]], want=Target(at_least=1.0), criteria=[Manifold(rows=triangle)])
    assert found.frame().iloc[0].tolist() == pytest.approx([2.0, 2.0], abs=1e-3)
    assert found[0].certificate.objective == pytest.approx(0.5, abs=1e-6)


def test_many_rows_of_many_numbers() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(3000, 6)).round(3), columns=list("abcdef"))
    y = (X["a"] + X["b"] * X["c"] + rng.normal(0, 0.3, len(X)) > 0.5).to_numpy()
    model = RandomForestClassifier(15, max_depth=5, random_state=0).fit(X, y)
    explainer = Explainer(model, X, y, criteria=[Proximity("l1")])
    span = (X.max() - X.min()).to_numpy()
    for i in np.flatnonzero(~model.predict(X))[:3]:
        found = explainer.explain(X.iloc[[i]], want=True, criteria=[Manifold()])
        assert found.status == "optimal"
        assert outside(found.frame().to_numpy()[0] / span, X[y].to_numpy() / span) <= INSIDE
        # no row of the hull itself is nearer, and no point half way to one
        for rows in (X[y], (X[y] + X[y].sample(frac=1, random_state=1).to_numpy()) / 2):
            good = rows[model.predict(rows)]
            assert found[0].certificate.objective <= (np.abs(good - X.iloc[i]) / span).sum(axis=1).min() + 1e-9


# -- which rows --------------------------------------------------------------------------------------------------------
def test_the_rows_of_the_wanted_class_by_label_or_by_prediction_or_all() -> None:
    w = world(6, "logistic")
    row, said = w.factuals(1)[0], np.asarray(w.model.predict(w.X)) == "yes"
    assert (said != (w.y == "yes")).any()
    ways = {
        Manifold(): w.X[w.y == "yes"],
        Manifold(by="label"): w.X[w.y == "yes"],
        Manifold(by="prediction"): w.X[said],
        Manifold(of="all"): w.X,
    }
    words = ("labelled 'yes'", "labelled 'yes'", "for which the model says 'yes'", f"{len(w.X)} training rows (")
    for (criterion, rows), named in zip(ways.items(), words, strict=True):
        found = explain(w, row, criterion)
        best = cheapest(w, row, [scaled(rows, w.X)], 0.0, "l1")
        assert found[0].certificate.objective == pytest.approx(best, abs=1e-6)
        assert named in found.notes[0]
        assert str(len(rows)) in found.notes[0]
    unlabelled = Explainer(w.model, w.X, criteria=[Proximity("l1")])
    assert "the model says" in unlabelled.explain(row, want="yes", criteria=[Manifold()]).notes[0]
    with pytest.raises(CriterionError, match="needs the true outcomes"):
        unlabelled.explain(row, want="yes", criteria=[Manifold(by="label")])


def test_a_range_of_outcomes_is_a_wanted_class_too() -> None:
    X = questions.people()[["age", "income", "debts"]]
    y = X["income"] * 10 - X["debts"]
    explainer = Explainer(LinearRegression().fit(X, y), X, y, criteria=[Proximity("l1")])
    found = explainer.explain(X.iloc[[0]], want=Target(at_least=30.0), criteria=[Manifold(by="label")])
    assert "whose outcome is in (30, inf)" in found.notes[0]
    assert outside(scaled(found.frame(), X)[0], scaled(X[y >= 30], X)) <= INSIDE


def test_missing_values_take_no_part() -> None:
    X = questions.people(200)[["age", "income", "debts", "job"]].assign(debts=lambda t: t["debts"].astype(float))
    y = questions.labels(questions.people(200))
    X["job"] = X["job"].astype("category")
    X.loc[::5, "income"] = np.nan
    model = HistGradientBoostingClassifier(max_iter=20, max_depth=3, categorical_features="from_dtype", random_state=0)
    explainer = Explainer(model.fit(X, y), X, y, criteria=[Proximity("l1")])
    i = int(np.flatnonzero((model.predict(X) == "bad") & X["income"].isna().to_numpy())[0])
    found = explainer.explain(X.iloc[[i]], want="good", criteria=[Manifold()])
    assert found.frame()["income"].isna().all()
    assert found[0].measures["hull_distance"] <= INSIDE
    rows, rest = X[y == "good"], ["age", "debts", "job"]
    assert outside(scaled(found.frame()[rest], X[rest])[0], scaled(rows[rest], X[rest])) <= INSIDE


# -- clusters ----------------------------------------------------------------------------------------------------------
def test_clusters_by_number_and_by_silhouette() -> None:
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [5.0, 5.0], [0.0, 9.0]], 30, axis=0)
    X = pd.DataFrame(centres + rng.uniform(-0.5, 0.5, size=(90, 2)), columns=["a", "b"])
    y = np.where(X["a"] + 0.01 * X["b"] > 0.5, "yes", "no")
    explainer = Explainer(LogisticRegression().fit(X, y), X, criteria=[Proximity("l1")])
    row = pd.DataFrame({"a": [0.0], "b": [0.2]})
    asked = {"auto": "auto", "three": 3, "labels": np.repeat([7, 8, 9], 30)}
    found = {
        name: explainer.explain(row, want="yes", criteria=[Manifold(of="all", clusters=value)])
        for name, value in asked.items()
    }
    for answer in found.values():
        assert "one of the 3 cluster hulls" in answer.notes[0]
        assert answer[0].certificate.objective == pytest.approx(found["labels"][0].certificate.objective, abs=1e-6)
    one = explainer.explain(row, want="yes", criteria=[Manifold(of="all")])
    assert one[0].certificate.objective <= found["auto"][0].certificate.objective


# -- isolation ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("share", one_in(2, [0.1, 0.6]))
def test_isolation_quantile_holds_by_the_forest_itself(share: float) -> None:
    w = world(7, "forest")
    for row in w.factuals(1):
        explainer = w.explainer(Proximity("l1"), labelled=True)
        found = explainer.explain(row, want="yes", criteria=[Manifold(isolation=share)])
        (demand,) = Manifold(isolation=share).demands(explainer.problem(row, want="yes").statement.query)
        forest = demand.model.estimator  # type: ignore[attr-defined]
        least = np.quantile(forest.score_samples(w.X[w.y == "yes"]), share)
        scores = forest.score_samples(w.grid)
        assert forest.score_samples(found.frame())[0] >= least - 1e-9
        best = w.costs(row, price=0.0)[w.said & (scores >= least - 1e-9)].min()
        assert found[0].certificate.objective == pytest.approx(best, abs=1e-6)
        assert found[0].measures["isolation"] == pytest.approx(forest.score_samples(found.frame())[0])


def test_isolation_needs_values() -> None:
    X = questions.people(80)[["age", "income"]].assign(age=lambda t: t["age"].astype(float))
    X.loc[0, "income"] = np.nan
    model = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X, X["age"] > 40)
    with pytest.raises(CriterionError, match="without missing values"):
        Explainer(model, X).explain(X.iloc[[0]], criteria=[Manifold(isolation=0.2)])


# -- impossible --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("norm", one_in(3, ["l1", "l2", "linf"]))
def test_the_smallest_epsilon_is_named(norm: Any) -> None:
    w = world(8, "forest")
    row = w.factuals(1)[0]
    rows = w.X[(w.y == "yes") & (w.X["colour"] != row["colour"].iloc[0])].iloc[:4]
    frozen = Actionability(frozen=["colour"])
    with pytest.raises(Infeasible) as refused:
        explain(w, row, Manifold(rows=rows, norm=norm), frozen)
    (named,) = [str(r) for r in refused.value.relaxations if "epsilon" in str(r)]
    least = float(named.removeprefix("epsilon 0 -> "))
    stays = (w.grid["colour"] == row["colour"].iloc[0]).to_numpy()
    points, P = scaled(w.grid, w.X), scaled(rows, w.X)
    truth = min(outside(points[i], P, norm) for i in np.flatnonzero(stays & w.said))
    assert truth - 1e-6 <= least <= truth + 1e-4
    again = explain(w, row, Manifold(rows=rows, norm=norm, epsilon=least), frozen)
    assert again[0].measures["hull_distance"] <= least + INSIDE


def test_the_smallest_share_is_named() -> None:
    w = world(7, "forest")
    row = w.factuals(1)[0]
    rules = Actionability(frozen=["n0", "n1"])
    with pytest.raises(Infeasible) as refused:
        explain(w, row, Manifold(isolation=0.99), rules)
    (named,) = [str(r) for r in refused.value.relaxations if "isolation" in str(r)]
    if "->" in named:
        share = float(named.partition("-> ")[2])
        assert explain(w, row, Manifold(isolation=share), rules).status == "optimal"


# -- together with others, and as a whole ------------------------------------------------------------------------------
def test_with_sparsity_and_actionability() -> None:
    w = world(9, "boosting")
    rows = w.X[w.y == "yes"]
    points = scaled(rows, w.X)
    for row in w.factuals(2):
        moves = w.moves(row)
        allowed = w.said & ((moves > 0).sum(axis=1) <= 3) & (w.grid["n1"] >= row["n1"].iloc[0]).to_numpy()
        found = explain(w, row, Manifold(), Sparsity(at_most=3), Actionability(increase=["n1"]))
        order = np.argsort(moves.sum(axis=1), kind="stable")
        best = next(i for i in order if allowed[i] and outside(scaled(w.grid, w.X)[i], points) <= INSIDE)
        assert found[0].certificate.objective == pytest.approx(moves.sum(axis=1)[best], abs=1e-6)


@cache
def accepted_and_inside(seed: int, family: str) -> np.ndarray:
    """Rows of the grid that the model accepts and the hull of the accepted training rows holds."""
    w = world(seed, family)
    P, grid = scaled(w.X[w.y == "yes"], w.X), scaled(w.grid, w.X)
    return np.array([bool(s) and outside(x, P) <= INSIDE for s, x in zip(w.said, grid, strict=True)])


@pytest.mark.parametrize(
    "proximity",
    [pytest.param(Proximity("l2"), marks=pytest.mark.slow), Proximity("linf"), Proximity("mahalanobis")],
    ids=repr,
)
def test_with_any_distance(proximity: Proximity) -> None:
    w = world(9, "forest")
    inside = accepted_and_inside(9, "forest")
    explainer = w.explainer(proximity, labelled=True)
    for row in w.factuals(1):
        found = explainer.explain(row, want="yes", criteria=[Manifold()])
        statement = explainer.problem(row, want="yes").statement
        costs = statement.objective(explainer.schema.encode(w.grid[inside]))
        assert found[0].certificate.objective == pytest.approx(costs.min(), abs=1e-5)


@pytest.mark.parametrize(
    "criterion",
    [
        Manifold(of="all"),
        Manifold(epsilon=0.3, of="all"),
        Manifold(epsilon=0.2, norm="linf", of="all", clusters=2),
        Manifold(epsilon=0.5, norm="l2", of="all"),
        Manifold(isolation=0.2),
    ],
    ids=repr,
)
def test_twins_agree(criterion: Manifold) -> None:
    X = questions.people()
    check_criterion(criterion, questions.explainer(), X.iloc[[3]], want="good", points=6)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"norm": "l3"}, "'norm' of Manifold must be one of 'l1', 'l2', 'linf'"),
        ({"of": "some"}, "'of' of Manifold"),
        ({"by": "guess"}, "'by' of Manifold"),
        ({"epsilon": -1.0}, "must not be negative"),
        ({"epsilon": np.nan}, "must not be negative"),
        ({"isolation": 1.0}, "strictly between 0 and 1"),
        ({"clusters": 0}, "at least 1"),
        ({"clusters": "many"}, "at least 1, 'auto'"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(CriterionError, match=complaint):
        Manifold(**arguments)


def test_what_does_not_fit_the_data_is_refused() -> None:
    w = world(6, "logistic")
    row = w.factuals(1)[0]
    for criterion, complaint in (
        (Manifold(clusters=[1, 2, 3]), "'clusters' has 3 labels, but there are 72 training rows"),
        (Manifold(clusters=500), "'clusters' is 500, but there are only"),
        (Manifold(rows=w.X.iloc[:0]), "are empty"),
    ):
        with pytest.raises(CriterionError, match=complaint):
            explain(w, row, criterion)
    never = Explainer(w.model, w.X, np.full(len(w.X), "no"))
    with pytest.raises(CriterionError, match="No training row is labelled 'yes'"):
        never.explain(row, want="yes", criteria=[Manifold()])
