"""Causality: what follows is computed, what cannot be is said, and the optimum is that of enumeration."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ifonly import (
    Actionability,
    CriterionError,
    Explainer,
    Infeasible,
    Proximity,
    Schema,
    SchemaError,
    Sparsity,
    UnsupportedModel,
)
from ifonly.criteria.causality.criterion import Causality, Cause
from ifonly.models.forms.bends import SQUARE
from ifonly.models.forms.curves import Curve
from ifonly.models.forms.linear import Linear
from ifonly.testing import check_criterion
from portions import one_in

COLOURS = ["blue", "green", "red"]
PRICE = 0.07


# -- the oracle: every action on a small grid, what follows by the model's own `predict` -------------------------------
@dataclass
class Case:
    """Two actions and a colour cause `e`, which with one of them causes `f`; all are seen by the model."""

    seed: int

    def __post_init__(self) -> None:
        rng = self.rng = np.random.default_rng(self.seed)
        n = 60
        self.grid = {"a": list(range(5)), "b": list(range(-2, 4)), "colour": COLOURS}
        X = pd.DataFrame({c: [v[i] for i in rng.integers(0, len(v), n)] for c, v in self.grid.items()})
        for c, v in self.grid.items():
            X.loc[: len(v) - 1, c] = v
        self.whole = bool(rng.integers(2))
        shade = X["colour"].map({"blue": 0.0, "green": 1.5, "red": -1.0})
        e = 1.3 * X["a"] + shade + 0.6 * (X["a"] > 2) + rng.normal(0, 1.5, n)
        f = 0.8 * e - 0.5 * X["b"] + rng.normal(0, 1.0, n)
        X["e"], X["f"] = (e.round().astype(int), f.round().astype(int)) if self.whole else (e, f)
        self.X = X
        self.schema = Schema.infer(X)
        outcome = X["a"] + X["e"] - X["f"] + (X["colour"] == "red") + rng.normal(0, 1.0, n)
        self.model = self.classifier().fit(X, np.where(outcome > np.quantile(outcome, 0.7), "yes", "no"))
        self.causes = {"e": self.cause(["a", "colour"], "e"), "f": self.cause(["e", "b"], "f")}
        if rng.random() < 0.3:
            del self.causes["f"]
        self.count = ("actions", "all")[int(rng.integers(2))]
        self.at_most = (None, 1, 2)[int(rng.integers(3))]
        refused = np.flatnonzero(self.model.predict(X) == "no")
        self.factual = X.iloc[[int(rng.choice(refused))]]

    def classifier(self) -> Any:
        text = ColumnTransformer([("c", OneHotEncoder(), ["colour"])], remainder="passthrough")
        last = [
            LogisticRegression(max_iter=2000),
            DecisionTreeClassifier(max_depth=4, random_state=0),
            RandomForestClassifier(7, max_depth=4, random_state=0),
        ][int(self.rng.integers(3))]
        return Pipeline([("text", text), ("last", last)])

    def cause(self, parents: list[str], name: str) -> Cause:
        text = [p for p in parents if p == "colour"]
        encode = ColumnTransformer([("c", OneHotEncoder(), text)], remainder=StandardScaler())
        models = [
            Ridge(),
            DecisionTreeRegressor(max_depth=3, random_state=0),
            GradientBoostingRegressor(n_estimators=5, max_depth=2, random_state=0),
            MLPRegressor(hidden_layer_sizes=(6,), solver="lbfgs", max_iter=60, random_state=0),
        ]
        model = models[int(self.rng.integers(4))]
        if isinstance(model, MLPRegressor):
            model = model.set_params(max_iter=5, tol=1e9)  # far from converged, which is no matter here
        return Cause(parents, model=make_pipeline(encode, model).fit(self.X[parents], self.X[name]))

    def rows(self) -> pd.DataFrame:
        """Every action, and every value of a whole-numbered effect that follows from it."""
        actions = pd.DataFrame(list(itertools.product(*self.grid.values())), columns=list(self.grid))
        frame = actions.assign(e=self.factual["e"].item(), f=self.factual["f"].item())
        frame["f"] = frame["f"].astype(self.X["f"].dtype)
        for name in (n for n in ("e", "f") if n in self.causes):
            parents, model = list(self.causes[name].parents), self.causes[name].model
            now = model.predict(self.factual[parents])[0]
            target = self.factual[name].item() + model.predict(frame[parents]) - now
            if not self.whole:
                now = self.factual[name].item()
                frame[name] = np.where(np.isclose(target, now, atol=1e-9), now, target)
            else:  # half a step off, both neighbours follow
                near = [np.ceil(target - 0.5 - 1e-9), np.floor(target + 0.5 + 1e-9)]
                frame = pd.concat([frame.assign(**{name: v.astype(int)}) for v in near])
                frame = frame.drop_duplicates(ignore_index=True)
            low, high = (self.schema[name].lower, self.schema[name].upper)  # type: ignore[union-attr]
            frame = frame[(frame[name] >= low) & (frame[name] <= high)].reset_index(drop=True)
        if "f" not in self.causes:  # then f is an action too
            low, high = int(self.X["f"].min()), int(self.X["f"].max())
            values = range(low, high + 1) if self.whole else [self.factual["f"].item()]
            frame = pd.concat([frame.assign(f=v) for v in values], ignore_index=True)
        return frame[list(self.X)].astype(self.X.dtypes.to_dict())

    def costs(self, rows: pd.DataFrame) -> Any:
        total, changed = np.zeros(len(rows)), np.zeros(len(rows))
        for c in rows:
            if self.count == "actions" and c in self.causes:
                continue
            moved = rows[c].to_numpy() != self.factual[c].item()
            changed += moved
            if c == "colour":
                total += moved
            else:
                span = self.X[c].max() - self.X[c].min()
                total += np.abs(rows[c].to_numpy(dtype=float) - self.factual[c].item()) / span
        return np.where(changed <= (self.at_most or 99), total + PRICE * changed, np.inf)


@pytest.mark.parametrize("seed", one_in(10, range(40)))
def test_optimum_is_that_of_enumeration(seed: int) -> None:
    case = Case(seed)
    frozen = [] if "f" in case.causes or case.whole else ["f"]  # a continuous f cannot be enumerated
    criteria = [
        Proximity("l1", scale="range"),
        Sparsity(at_most=case.at_most, price=PRICE),
        Actionability(frozen=frozen),
        Causality(case.causes, count=case.count),  # type: ignore[arg-type]
    ]
    explainer = Explainer(case.model, case.X, schema=case.schema, criteria=criteria)
    rows = case.rows()
    rows = rows[case.model.predict(rows) == "yes"]
    costs = case.costs(rows)
    if not np.isfinite(costs).any():
        with pytest.raises(Infeasible):
            explainer.explain(case.factual, want="yes")
        return
    answer = explainer.explain(case.factual, want="yes")
    assert answer.status == "optimal"
    assert answer[0].certificate.objective == pytest.approx(costs.min(), abs=2e-6)
    assert case.model.predict(answer.frame())[0] == "yes"
    assert answer[0].measures["causal_error"] <= 1e-6
    assert case.costs(answer.frame())[0] == pytest.approx(costs.min(), abs=2e-6)


@pytest.mark.parametrize("seed", one_in(3, range(60, 66)))
def test_optimiser_and_numpy_say_the_same(seed: int) -> None:
    case = Case(seed)
    explainer = Explainer(case.model, case.X, schema=case.schema)
    check_criterion(Causality(case.causes), explainer, case.factual, want="yes", points=12)


# -- one small world for everything else -------------------------------------------------------------------------------
def world(dtype: str = "float64") -> pd.DataFrame:
    rng = np.random.default_rng(0)
    hours = rng.uniform(0, 60, 200)
    job = rng.choice(["clerk", "smith"], 200)
    income = 20 * hours + 150 * (job == "smith") + rng.normal(0, 60, 200)
    tax = 0.2 * income + rng.normal(0, 10, 200)
    frame = pd.DataFrame({"hours": hours, "job": job, "income": income, "tax": tax})
    return frame.astype(dict.fromkeys(("hours", "income", "tax"), dtype))


NETWORK = [MLPRegressor(hidden_layer_sizes=(8,), solver="lbfgs", max_iter=100, random_state=0)]
LAW = {
    "income": Cause(["hours", "job"], coefficients={"hours": 20.0, "job": {"clerk": 0.0, "smith": 150.0}}),
    "tax": Cause(["income"], coefficients={"income": 0.2}),
}


@pytest.fixture(scope="module", name="X")
def people() -> pd.DataFrame:
    return world()


@pytest.fixture(scope="module")
def model(X: pd.DataFrame) -> Any:
    encode = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder=StandardScaler())
    net = X["income"] - X["tax"]
    return make_pipeline(encode, LogisticRegression()).fit(X, np.where(net > net.median(), "rich", "poor"))


@pytest.fixture(scope="module")
def factual(X: pd.DataFrame, model: Any) -> pd.DataFrame:
    poor = np.flatnonzero((model.predict(X) == "poor") & (X["hours"] > 15) & (X["job"] == "clerk"))
    return X.iloc[[int(poor[0])]]


def explain(model: Any, X: pd.DataFrame, factual: pd.DataFrame, *criteria: Any, **options: Any) -> Any:
    return Explainer(model, X, criteria=[Proximity(), *criteria], **options).explain(factual, want="rich")


def test_chain_follows_action(X: pd.DataFrame, model: Any, factual: pd.DataFrame) -> None:
    answer = explain(model, X, factual, Actionability(frozen=["job"]), Causality(LAW))
    before, after = factual.iloc[0], answer.frame().iloc[0]
    assert after["hours"] > before["hours"]
    assert after["income"] - before["income"] == pytest.approx(20 * (after["hours"] - before["hours"]), abs=1e-9)
    assert after["tax"] - before["tax"] == pytest.approx(0.2 * (after["income"] - before["income"]), abs=1e-9)
    assert len(answer[0].changes) == 3
    assert "follows from hours and job; not counted" in str(answer)


def test_nothing_upstream_nothing_downstream(X: pd.DataFrame, model: Any, factual: pd.DataFrame) -> None:
    # Without a cause, a higher income alone is the cheapest answer; with one, it cannot move by itself.
    free = explain(model, X, factual, Sparsity(price=1.0))
    assert "hours" not in [c.feature for c in free[0].changes]
    frozen = Actionability(frozen=["hours", "job"])
    with pytest.raises(Infeasible) as error:
        explain(model, X, factual, frozen, Causality(LAW))
    assert "income follows from hours, job" in error.value.conflict
    assert any("let income differ from what follows by" in str(r) for r in error.value.relaxations)


def test_count_is_of_actions_or_of_all(X: pd.DataFrame, model: Any, factual: pd.DataFrame) -> None:
    work = Actionability(frozen=["job"])
    alone = explain(model, X, factual, work, Causality(LAW), Sparsity(at_most=1))
    span = X["hours"].max() - X["hours"].min()
    moved = abs(alone.frame()["hours"].item() - factual["hours"].item()) / span
    assert alone[0].distance == pytest.approx(moved)
    assert alone[0].certificate.objective == pytest.approx(moved)
    with pytest.raises(Infeasible, match="at_most 1 -> 3"):
        explain(model, X, factual, work, Causality(LAW, count="all"), Sparsity(at_most=1))
    charged = explain(model, X, factual, work, Causality(LAW, count="all"), Sparsity(at_most=3))
    assert charged[0].distance > 2 * alone[0].distance
    assert charged.frame()["hours"].item() == pytest.approx(alone.frame()["hours"].item(), abs=1e-4)


@pytest.mark.parametrize("norm", ["l2", "linf", "mahalanobis"])
def test_every_distance_is_counted_on_actions(norm: Any, X: pd.DataFrame, model: Any, factual: pd.DataFrame) -> None:
    # One action only, so whatever the norm, the least of it is the same action.
    work = Actionability(frozen=["job"])
    answers = [
        Explainer(model, X, criteria=[Proximity(n), work, Causality(LAW)]).explain(factual, want="rich")
        for n in ("l1", norm)
    ]
    assert answers[1].status == "optimal"
    assert answers[1].frame()["hours"].item() == pytest.approx(answers[0].frame()["hours"].item(), abs=1e-3)


def test_frozen_effect_of_a_free_cause_is_a_contradiction(X: pd.DataFrame, model: Any, factual: pd.DataFrame) -> None:
    for name, causes in (("income", "'hours', 'job'"), ("tax", "'hours', 'job'")):
        with pytest.raises(CriterionError, match=f"'{name}' is frozen, but it follows from {causes}"):
            explain(model, X, factual, Actionability(frozen=[name]), Causality(LAW))
    with pytest.raises(CriterionError, match="Freeze 'hours' too"):
        explain(model, X, factual, Actionability(frozen=["income", "job"]), Causality(LAW))
    with pytest.raises(Infeasible):  # no contradiction, only nothing left to do
        explain(model, X, factual, Actionability(frozen=["income", "job", "hours"]), Causality(LAW))


def test_what_is_ill_posed_is_said() -> None:
    with pytest.raises(CriterionError, match="round in a circle"):
        Causality({"a": Cause(["b"], coefficients={"b": 1}), "b": Cause(["a"], coefficients={"a": 1})})
    with pytest.raises(CriterionError, match="round in a circle"):
        Causality({"a": Cause(["a"], coefficients={"a": 1})})
    with pytest.raises(CriterionError, match="at least one feature"):
        Causality({})
    with pytest.raises(CriterionError, match="one of actions, all"):
        Causality(LAW, count="some")  # type: ignore[arg-type]
    with pytest.raises(CriterionError, match=r"map features to a Cause, got \['b'\]"):
        Causality({"a": ["b"]})  # type: ignore[dict-item]
    with pytest.raises(CriterionError, match="must be a list"):
        Cause("income", coefficients={"income": 1.0})
    with pytest.raises(CriterionError, match="at least one parent"):
        Cause([], coefficients={})
    with pytest.raises(CriterionError, match="named twice"):
        Cause(["a", "a"], coefficients={"a": 1.0})
    with pytest.raises(CriterionError, match="exactly one of model=, coefficients= and function="):
        Cause(["a"])
    with pytest.raises(CriterionError, match="got 2"):
        Cause(["a"], model=Ridge(), coefficients={"a": 1.0})
    with pytest.raises(CriterionError, match="those of its parents"):
        Cause(["a"], coefficients={"b": 1.0})


@pytest.mark.parametrize(
    ("causes", "error", "words"),
    [
        ({"tax": Cause(["incme"], coefficients={"incme": 1.0})}, SchemaError, "Did you mean 'income'"),
        ({"taxes": Cause(["income"], coefficients={"income": 1.0})}, SchemaError, "Did you mean 'tax'"),
        ({"job": Cause(["hours"], coefficients={"hours": 1.0})}, CriterionError, "'job' is binary"),
        ({"tax": Cause(["job"], coefficients={"job": 1.0})}, CriterionError, "give each level a value"),
        (
            {"tax": Cause(["job"], coefficients={"job": {"smith": 1.0}})},
            CriterionError,
            "'clerk' of 'job' no value",
        ),
        ({"tax": Cause(["income"], coefficients={"income": {"x": 1.0}})}, CriterionError, "is one number"),
        ({"tax": Cause(["income"], model=Ridge())}, UnsupportedModel, "not fitted"),
    ],
)
def test_what_does_not_fit_the_data_is_said(
    causes: Any, error: Any, words: str, X: pd.DataFrame, model: Any, factual: pd.DataFrame
) -> None:
    with pytest.raises(error, match=words):
        explain(model, X, factual, Causality(causes))


def test_models_that_do_not_fit_are_said(X: pd.DataFrame, model: Any, factual: pd.DataFrame) -> None:
    ridge = Ridge().fit(X[["hours"]], X["tax"])
    with pytest.raises(CriterionError, match="was fitted on hours, but its parents are income"):
        explain(model, X, factual, Causality({"tax": Cause(["income"], model=ridge)}))
    nameless = Ridge().fit(X[["hours", "income"]].to_numpy(), X["tax"])
    with pytest.raises(CriterionError, match="was fitted on 2 columns"):
        explain(model, X, factual, Causality({"tax": Cause(["income"], model=nameless)}))
    classes = LogisticRegression().fit(X[["income"]], X["tax"] > 50)
    with pytest.raises(CriterionError, match="predicts classes"):
        explain(model, X, factual, Causality({"tax": Cause(["income"], model=classes)}))
    bent = MLPRegressor(hidden_layer_sizes=(2,), activation="tanh", max_iter=1, tol=1e9, n_iter_no_change=1)
    with pytest.warns(UserWarning, match="converged"):
        bent.fit(X[["income"]], X["tax"])
    with pytest.raises(UnsupportedModel, match="The cause of 'tax': MLPRegressor"):
        explain(model, X, factual, Causality({"tax": Cause(["income"], model=bent)}))
    wide = Linear(Schema.infer(X), np.ones((1, 5)), np.zeros(1))
    with pytest.raises(CriterionError, match=r"this one looks at hours, job, tax too|looks at hours, tax too"):
        explain(model, X, factual, Causality({"tax": Cause(["income"], function=wide)}))


# -- the user's own models ---------------------------------------------------------------------------------------------
def test_parents_in_any_order_and_models_fitted_on_arrays(X: pd.DataFrame, model: Any, factual: pd.DataFrame) -> None:
    named = LinearRegression().fit(X[["income", "hours"]], X["tax"])
    bare = LinearRegression().fit(X[["income", "hours"]].to_numpy(), X["tax"])
    answers = [
        explain(model, X, factual, Causality({"tax": Cause(parents, model=m)}))
        for parents, m in ((["hours", "income"], named), (["income", "hours"], bare))
    ]
    for answer in answers:
        after, before = answer.frame()[["income", "hours"]], factual[["income", "hours"]]
        followed = factual["tax"].item() + named.predict(after)[0] - named.predict(before)[0]
        assert answer.frame()["tax"].item() == pytest.approx(followed, abs=1e-9)
    pd.testing.assert_frame_equal(answers[0].frame(), answers[1].frame())


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
def test_equation_holds_by_the_model_itself(dtype: str) -> None:
    X = world(dtype)
    net = X["income"] - X["tax"]
    forest = RandomForestClassifier(10, max_depth=4, random_state=0)
    encode = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
    model = make_pipeline(encode, forest).fit(X, np.where(net > net.median(), "rich", "poor"))
    graph = {"income": ["hours", "job"], "tax": ["income"]}
    law = Causality.learn(X, graph, models=[GradientBoostingRegressor(n_estimators=10), *NETWORK])
    poor = X[model.predict(X) == "poor"]
    for i in range(4):
        factual = poor.iloc[[i]]
        answer = explain(model, X, factual, law, Sparsity(at_most=2))
        after = answer.frame()
        assert after.dtypes.equals(X.dtypes)
        for name, cause in law.causes.items():
            said = [cause.model.predict(rows[list(cause.parents)])[0] for rows in (after, factual)]
            off = after[name].item() - factual[name].item() - (said[0] - said[1])
            assert abs(off) <= (1e-6 if dtype == "float64" else 1e-3)


def test_curves_are_refined_until_the_model_agrees(X: pd.DataFrame, model: Any, factual: pd.DataFrame) -> None:
    schema = Schema.infer(X)
    weights = np.zeros((1, schema.width))
    weights[0, schema.starts[0]] = 0.7
    growth = Curve(Linear(schema, weights, np.zeros(1)), (SQUARE,))
    law = Causality({"income": Cause(["hours"], function=growth), "tax": LAW["tax"]})
    answer = explain(model, X, factual, law, Actionability(frozen=["job"]))
    hours, before = answer.frame()["hours"].item(), factual["hours"].item()
    assert answer.frame()["income"].item() - factual["income"].item() == pytest.approx(
        (0.7 * hours) ** 2 - (0.7 * before) ** 2, abs=1e-6
    )
    assert answer[0].certificate.proven
    assert model.decision_function(answer.frame())[0] == pytest.approx(0.0, abs=1e-3)


def test_missing_values(X: pd.DataFrame) -> None:
    rng = np.random.default_rng(1)
    X = X[["hours", "income", "tax"]].copy()
    X.loc[rng.choice(200, 30, replace=False), "hours"] = np.nan
    label = np.where(X["income"] - X["tax"] > 500, "rich", "poor")
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, label)
    copes = HistGradientBoostingRegressor(max_iter=5, random_state=0).fit(X[["hours", "income"]], X["tax"])
    row = X[X["hours"].isna() & (model.predict(X) == "poor")].iloc[[0]]
    law = {"tax": Cause(["hours", "income"], model=copes)}
    answer = explain(model, X, row, Causality(law))
    assert np.isnan(answer.frame()["hours"].item())
    assert answer[0].measures["causal_error"] <= 1e-6
    refuses = {"income": Cause(["hours"], coefficients={"hours": 20.0})}
    with pytest.raises(CriterionError, match="'hours' is missing in this row"):
        explain(model, X, row, Causality(refuses))
    with pytest.raises(CriterionError, match="'hours' is missing in this row, so what its parents"):
        explain(model, X, row, Causality({"hours": Cause(["income"], coefficients={"income": 0.05})}))


# -- learning ----------------------------------------------------------------------------------------------------------
def test_learning_chooses_by_cross_validation(X: pd.DataFrame) -> None:
    models = [DecisionTreeRegressor(max_depth=1), Ridge(alpha=1e-3)]
    law = Causality.learn(X, {"income": ["hours", "job"]}, models=models, count="all")
    cause = law.causes["income"]
    assert isinstance(cause.model[-1], Ridge)
    assert cause.r2 is not None
    assert 0.9 < cause.r2 < 1.0
    assert law.count == "all"
    step = X["hours"].where(X["hours"] > 30, 0.0)
    again = Causality.learn(X.assign(tax=np.sign(step)), {"tax": ["hours"]}, models=models)
    assert isinstance(again.causes["tax"].model[-1], DecisionTreeRegressor)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ({"incme": ["hours"]}, "Did you mean 'income'"),
        ({"income": ["hour"]}, "Did you mean 'hours'"),
        ({"job": ["hours"]}, "only numeric features"),
        ({"income": "hours"}, "must be a list"),
    ],
)
def test_learning_says_what_it_cannot_learn(graph: Any, words: str, X: pd.DataFrame) -> None:
    with pytest.raises(CriterionError, match=words):
        Causality.learn(X, graph, models=[Ridge()])


def test_learning_has_models_of_its_own(X: pd.DataFrame) -> None:
    cause = Causality.learn(X.iloc[:80], {"tax": ["income", "job"]}, cv=2).causes["tax"]
    assert cause.r2 is not None
    assert cause.r2 > 0.9
    assert list(cause.model.feature_names_in_) == ["income", "job"]


def test_learning_needs_rows_and_models(X: pd.DataFrame) -> None:
    with pytest.raises(CriterionError, match="too few"):
        Causality.learn(X.iloc[:3], {"income": ["hours"]}, models=[Ridge()])
    with pytest.raises(CriterionError, match="at least one model"):
        Causality.learn(X, {"income": ["hours"]}, models=[])
