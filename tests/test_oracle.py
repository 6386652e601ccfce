"""The oracle: on small grids of integers and categories, enumeration with the model's own `predict` is the truth.

Nothing here uses the NumPy twins of the library: distances, demands and outcomes are written out a second time, in raw
units, on the frame of every possible row.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from ifonly import (
    Actionability,
    Explainer,
    FactualViolatesDemand,
    Implies,
    Infeasible,
    LinearRow,
    Proximity,
    Schema,
    Sparsity,
    Target,
)
from portions import one_in

NORMS = ("l1", "l2", "linf", "mahalanobis")
PER_NORM = 80
PER_FAMILY = 16
PLAIN = 5  # of each norm in the plain run
ORDER = ["none", "some", "much"]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass
class Case:
    """One random question, and the same question spelt out for enumeration."""

    rng: np.random.Generator
    norm: str
    X: pd.DataFrame = field(init=False)
    schema: Schema = field(init=False)
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.make_data()
        self.grid = pd.DataFrame(
            list(itertools.product(*(self.values[c] for c in self.X.columns))), columns=self.X.columns
        ).astype(self.X.dtypes.to_dict())
        self.make_model()
        self.make_target()
        self.make_criteria()

    # -- what is asked ------------------------------------------------------------------------------------------
    def make_data(self) -> None:
        rng = self.rng
        self.values: dict[str, list[Any]] = {}
        for i in range(int(rng.integers(2, 4))):
            low = int(rng.integers(-3, 4))
            self.values[f"n{i}"] = list(range(low, low + int(rng.integers(3, 7))))
        if rng.random() < 0.5:
            self.values["tenths"] = [round(0.1 * k, 1) for k in range(-1, 3)]
        if rng.random() < 0.7:
            self.values["colour"] = ["blue", "green", "red"][: int(rng.integers(2, 4))]
        if rng.random() < 0.5:
            self.values["amount"] = ORDER
        if rng.random() < 0.4:
            self.values["flag"] = [False, True]
        n = int(rng.integers(25, 50))
        columns = {c: [v[i] for i in rng.integers(0, len(v), n)] for c, v in self.values.items()}
        for c, v in self.values.items():  # both ends occur, so the training range is the grid's
            columns[c][: len(v)] = v
        self.X = pd.DataFrame(columns)
        ordinal = {"amount": ORDER} if "amount" in self.values else {}
        precision = {"tenths": 1} if "tenths" in self.values else {}
        self.schema = Schema.infer(self.X, ordinal=ordinal, precision=precision)
        self.numeric = [c for c in self.values if c[0] == "n" or c == "tenths"]

    def make_model(self) -> None:
        rng = self.rng
        scaler = [StandardScaler(), MinMaxScaler(), "passthrough"][int(rng.integers(3))]
        text = [c for c in self.X if c in ("colour", "amount")]
        rest = [c for c in self.X if c not in text]
        steps = [("rest", scaler, rest)] + ([("text", OneHotEncoder(), text)] if text else [])
        effect = sum(rng.normal() * pd.factorize(self.X[c], sort=True)[0].astype(float) for c in self.X) + rng.normal(
            0, 0.3, len(self.X)
        )
        self.regression = False
        last, y = self.make_last(effect)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a network need not be a good one
            self.model = Pipeline([("pre", ColumnTransformer(steps)), ("last", last)]).fit(self.X, y)
        self.words.append(f"{last} after {scaler}")

    def make_last(self, effect: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[Any, Any]:
        """Return a linear model and its target, made from a noisy effect."""
        kind = ["logistic", "svc", "ridge", "multinomial", "ridge classifier"][int(self.rng.integers(5))]
        self.regression = kind == "ridge"
        if kind == "ridge":
            last: Any = Ridge()
            y: Any = effect
        elif kind == "multinomial":
            last, y = (
                LogisticRegression(C=5.0, max_iter=5000),
                pd.qcut(effect, 3, labels=["low", "mid", "top"]).astype(str),
            )
        else:
            makers: dict[str, Callable[[], Any]] = {
                "logistic": lambda: LogisticRegression(max_iter=5000),
                "svc": lambda: LinearSVC(dual=False),
                "ridge classifier": RidgeClassifier,
            }
            last, y = makers[kind](), np.where(effect > np.median(effect), "yes", "no")
        return last, y

    def make_target(self) -> None:
        """Choose an outcome, rare on purpose, and a factual that does not have it."""
        rng = self.rng
        said = self.model.predict(self.grid)
        if self.regression:
            a, b = sorted(float(v) for v in np.quantile(said, rng.uniform(0.05, 0.95, 2)))
            self.target = [Target(at_least=b), Target(at_most=a), Target(at_least=a, at_most=b)][int(rng.integers(3))]
            low = -np.inf if self.target.at_least is None else self.target.at_least
            high = np.inf if self.target.at_most is None else self.target.at_most
            self.wanted: Mask = (said >= low) & (said <= high)
        else:
            label = str(rng.choice(self.model.classes_))
            self.target, self.wanted = Target(label), said == label
            if hasattr(self.model, "predict_proba") and rng.random() < 0.5:
                p = self.model.predict_proba(self.grid)[:, list(self.model.classes_).index(label)]
                asked = float(np.clip(np.quantile(p, rng.uniform(0.3, 0.98)), 0.01, 0.99))
                self.target, self.wanted = Target(label, probability=asked), p >= asked
        others = np.flatnonzero(~self.wanted)
        if not len(others):
            pytest.skip("every row has the outcome")
        self.factual = self.grid.iloc[[int(rng.choice(others))]]
        self.words.append(repr(self.target))

    # -- the criteria, each said a second time as a mask or a cost over the grid --------------------------------
    def make_criteria(self) -> None:
        self.mask: Mask = np.ones(len(self.grid), dtype=bool)
        now = self.factual.iloc[0]
        self.changed = np.column_stack([self.grid[c] != now[c] for c in self.grid])
        self.criteria: list[Any] = [self.proximity()]
        self.objective = self.distance()
        self.sparsity()
        self.actionability(now)

    def proximity(self) -> Proximity:
        rng = self.rng
        weights = {c: float(rng.choice([0.5, 2.0])) for c in self.X if rng.random() < 0.3}
        scale: Any = rng.choice(["range", "mad", "std", "none", "own"])
        if scale == "own":
            scale = {c: float(rng.uniform(0.5, 3)) for c in self.numeric if rng.random() < 0.6}
        self.weights, self.scale = weights, scale
        self.words.append(f"{self.norm} by {scale} weighted {weights}")
        return Proximity(self.norm, scale=scale, weights=weights)  # type: ignore[arg-type]

    def scale_of(self, c: str) -> float:
        x = self.X[c].to_numpy(dtype=float)
        if isinstance(self.scale, dict):
            return self.scale.get(c, float(x.max() - x.min()))
        if self.scale == "mad":
            mad = float(np.median(np.abs(x - np.median(x))))
            return mad if mad > 0 else float(x.std())
        return {"range": float(x.max() - x.min()), "std": float(x.std()), "none": 1.0}[self.scale]

    def distance(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        now = self.factual.iloc[0]
        per = np.zeros(self.grid.shape)
        for k, c in enumerate(self.grid):
            w = self.weights.get(c, 1.0)
            if c in self.numeric:
                per[:, k] = w * np.abs(self.grid[c] - now[c]) / self.scale_of(c)
            elif c == "amount":
                step = self.grid[c].map(ORDER.index) - ORDER.index(now[c])
                per[:, k] = w * np.abs(step) / (len(ORDER) - 1)
            else:
                per[:, k] = w * (self.grid[c] != now[c])
        if self.norm == "l1":
            return per.sum(axis=1)
        if self.norm == "l2":
            return (per**2).sum(axis=1)
        if self.norm == "linf":
            return per.max(axis=1)
        is_numeric = np.array([c in self.numeric for c in self.grid])
        covariance = np.cov(self.X[self.numeric].to_numpy(dtype=float), rowvar=False)
        inverse = np.linalg.inv(covariance + 1e-6 * np.diag(np.diag(covariance)))
        moves = (self.grid[self.numeric] - now[self.numeric]).to_numpy(dtype=float)
        moves = moves * np.array([self.weights.get(c, 1.0) for c in self.numeric])
        return np.einsum("ij,jk,ik->i", moves, inverse, moves) + per[:, ~is_numeric].sum(axis=1)

    def sparsity(self) -> None:
        rng = self.rng
        if rng.random() < 0.35:
            most = int(rng.integers(1, 3))
            self.criteria.append(Sparsity(at_most=most))
            self.mask &= self.changed.sum(axis=1) <= most
            self.words.append(f"at most {most}")
        if rng.random() < 0.35:
            price = float(rng.uniform(0.05, 1.0))
            self.criteria.append(Sparsity(price=price))
            self.objective = self.objective + price * self.changed.sum(axis=1)
            self.words.append(f"price {price:.3f}")

    def actionability(self, now: pd.Series[Any]) -> None:
        options: dict[str, Any] = {}
        for rule in self.rng.choice(RULES, size=int(self.rng.integers(0, 4)), replace=False):
            made = getattr(self, f"rule_{rule}")(now)
            if made is None:
                continue
            key, value, mask = made
            moved = {*options.get("increase", ()), *options.get("decrease", ())}
            if key in ("frozen", "increase", "decrease") and {*value} & {*options.get("frozen", ()), *moved}:
                continue  # refused before solving, and tested elsewhere
            options[key] = value
            self.mask &= np.asarray(mask, dtype=bool)
        if options:
            self.criteria.append(Actionability(**options))
            self.words.append(repr(options))

    def pick(self, among: list[str]) -> str | None:
        return str(self.rng.choice(among)) if among else None

    def rule_frozen(self, now: pd.Series[Any]) -> Any:
        c = self.pick(list(self.grid))
        return "frozen", [c], self.grid[c] == now[c]

    def rule_increase(self, now: pd.Series[Any]) -> Any:
        c = self.pick([c for c in self.grid if c in self.numeric or c == "amount"])
        if c == "amount":
            return "increase", [c], self.grid[c].map(ORDER.index) >= ORDER.index(now[c])
        return "increase", [c], self.grid[c] >= now[c]

    def rule_decrease(self, now: pd.Series[Any]) -> Any:
        c = self.pick(self.numeric[:1])
        return "decrease", [c], self.grid[c] <= now[c]

    def rule_ranges(self, now: pd.Series[Any]) -> Any:
        c = self.pick(self.numeric)
        ends = [float(v) + float(self.rng.choice([-0.04, 0.0, 0.04])) for v in self.rng.choice(self.values[c], 2)]
        low, high = min(ends), max(ends)
        if self.rng.random() < 0.3:
            return "ranges", {c: (low, None)}, self.grid[c] >= low - 1e-9
        return "ranges", {c: (low, high)}, (self.grid[c] >= low - 1e-9) & (self.grid[c] <= high + 1e-9)

    def rule_max_step(self, now: pd.Series[Any]) -> Any:
        c = self.pick([c for c in self.grid if c in self.numeric or c == "amount"])
        if c == "amount":
            moved = np.abs(self.grid[c].map(ORDER.index) - ORDER.index(now[c]))
            return "max_step", {c: 1}, moved <= 1
        step = float(self.rng.choice([0.25, 1.0, 2.0]))
        return "max_step", {c: step}, np.abs(self.grid[c] - now[c]) <= step + 1e-9

    def rule_allow(self, now: pd.Series[Any]) -> Any:
        c = self.pick([c for c in self.grid if c in ("colour", "amount")])
        if c is None:
            return None
        levels = [str(v) for v in self.rng.choice(self.values[c], 2, replace=False)]
        return "allow", {c: levels}, self.grid[c].isin(levels)

    def rule_conditional(self, now: pd.Series[Any]) -> Any:
        if "colour" not in self.values:
            return None
        level = str(self.rng.choice(self.values["colour"]))
        mask = np.ones(len(self.grid), bool)
        if now["colour"] == "blue":
            mask = self.grid["colour"].isin(["blue", level]).to_numpy()
        return "conditional", {"colour": {"blue": [level]}}, mask

    def rule_rows(self, now: pd.Series[Any]) -> Any:
        names = [str(c) for c in self.rng.choice(self.numeric, 2, replace=False)]
        weights = {c: float(self.rng.choice([-1.0, 1.0, 2.0])) for c in names}
        if "flag" in self.values:
            weights["flag"] = 1.0
        total = sum(w * self.grid[c].astype(float) for c, w in weights.items())
        low = float(np.quantile(total, self.rng.uniform(0.1, 0.7))) - 0.05
        row = LinearRow(weights, at_least=low)
        return "rows", [row], total >= low

    def rule_implies(self, now: pd.Series[Any]) -> Any:
        c = self.numeric[0]
        cut = float(self.rng.choice(self.values[c]))
        if "colour" in self.values:
            level = str(self.rng.choice(self.values["colour"]))
            rule = Implies({c: (cut, None)}, {"colour": level})
            return "implies", [rule], ~(self.grid[c] >= cut) | (self.grid["colour"] == level)
        other = self.numeric[1]
        top = float(self.rng.choice(self.values[other]))
        rule = Implies({c: (cut, None)}, {other: (None, top)})
        return "implies", [rule], ~(self.grid[c] >= cut) | (self.grid[other] <= top)

    # -- both answers -------------------------------------------------------------------------------------------
    def truth(self) -> float:
        possible = self.mask & self.wanted
        return float(self.objective[possible].min()) if possible.any() else np.inf

    def cost_of(self, row: pd.DataFrame) -> float:
        same = np.logical_and.reduce([self.grid[c].to_numpy() == row[c].iloc[0] for c in self.grid])
        assert same.sum() == 1, "the answer is not a row of the grid"
        assert self.wanted[same].all(), "the answer does not have the outcome"
        assert self.mask[same].all(), "the answer breaks a demand"
        return float(self.objective[same][0])

    def __str__(self) -> str:
        return "; ".join(self.words) + f"; factual {self.factual.iloc[0].to_dict()}"


RULES = (
    "frozen",
    "increase",
    "decrease",
    "ranges",
    "max_step",
    "allow",
    "conditional",
    "rows",
    "implies",
)


@dataclass
class Bent(Case):
    """The same with a model that is not linear: trees or a network."""

    family: str = "forest"

    def make_last(self, effect: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[Any, Any]:
        rng = self.rng
        self.regression = rng.random() < 0.3
        three = not self.regression and rng.random() < 0.3
        bent = effect + 0.7 * np.abs(effect - np.median(effect))  # so that there is something to bend for
        labels = pd.qcut(
            pd.Series(bent).rank(method="first"), 3 if three else 2, labels=["low", "mid", "top"][: 2 + three]
        )
        seed, depth, trees = int(rng.integers(1000)), int(rng.integers(2, 5)), int(rng.integers(2, 8))
        if self.family == "network":
            width = tuple(int(w) for w in rng.integers(2, 5, int(rng.integers(1, 3))))
            kind: Any = MLPRegressor if self.regression else MLPClassifier
            last = kind(hidden_layer_sizes=width, max_iter=400, learning_rate_init=0.02, random_state=seed)
        elif self.family == "boosting":
            kind = GradientBoostingRegressor if self.regression else GradientBoostingClassifier
            last = kind(n_estimators=trees, max_depth=min(depth, 3), learning_rate=0.4, random_state=seed)
        else:
            kind = RandomForestRegressor if self.regression else RandomForestClassifier
            last = kind(n_estimators=trees, max_depth=depth, random_state=seed)
        return last, bent if self.regression else labels.astype(str)


@pytest.mark.parametrize(
    "seed", [seed if seed < PLAIN else pytest.param(seed, marks=pytest.mark.slow) for seed in range(PER_NORM)]
)
@pytest.mark.parametrize("norm", NORMS)
def test_optimum_is_that_of_enumeration(norm: str, seed: int) -> None:
    compare(Case(np.random.default_rng([NORMS.index(norm), seed]), norm), seed)


@pytest.mark.parametrize("seed", one_in(5, range(PER_FAMILY)))
@pytest.mark.parametrize("family", ["forest", "boosting", "network"])
def test_optimum_of_trees_and_networks_is_that_of_enumeration(family: str, seed: int) -> None:
    rng = np.random.default_rng([len(family), seed])
    compare(Bent(rng, NORMS[seed % len(NORMS)], family=family), seed)


def compare(case: Case, seed: int) -> None:
    """Ask, and hold the answer against the best row of the grid."""
    best = case.truth()
    solver = "auto" if seed % 2 else "highs only"  # squares by whatever is here, and by tangents
    explainer = Explainer(case.model, case.X, schema=case.schema, criteria=case.criteria, solver=solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FactualViolatesDemand)
        try:
            answer = explainer.explain(case.factual, want=case.target, time_limit=600.0)
        except Infeasible:
            assert best == np.inf, f"called impossible, but {best} is possible: {case}"
            return
    found = case.cost_of(answer.frame())
    certificate = answer[0].certificate
    assert certificate.proven, case
    assert found == pytest.approx(best, abs=2e-6), f"{case}: {answer.frame().to_dict('records')}"
    assert certificate.objective == pytest.approx(found, rel=1e-7, abs=1e-9), case
    assert certificate.bound <= best + 1e-7, case
