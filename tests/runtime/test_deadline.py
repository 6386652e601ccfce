"""The time limit is for the whole call: fifty kinds of questions, each with limits that are too short for many of them.

A call may take the limit, a tenth of it or 50 ms beyond (whichever is more), and the time that the model's own predictions
take, which nobody can interrupt. On a busy machine the clock on the wall says little, so the processor time counts where
it is less: from the moment at which the limit is over, a search that does not stop uses the processor all the while.
"""

from __future__ import annotations

import os
import pickle
import resource
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import questions
from ifonly import (
    Actionability,
    Causality,
    Cause,
    Diversity,
    Explainer,
    Explanation,
    FactualViolatesDemand,
    Implies,
    Infeasible,
    LinearRow,
    Manifold,
    OutOfTime,
    Proximity,
    Robustness,
    SolverFailed,
    Sparsity,
    Target,
)
from ifonly.criteria.manifold.hull import Ball, Costing, Hull, Slice
from ifonly.criteria.robustness.adversary import attack
from ifonly.criteria.robustness.keeps_lead import KeepsLead
from ifonly.criteria.robustness.ranges import safe_ranges
from ifonly.models.forms.bends import SIGMOID
from ifonly.models.forms.curves import Curve
from ifonly.models.read import Model
from ifonly.question.problem import build
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import ProgramSize, Tuning
from ifonly.search import blame
from ifonly.search.blame import explain_infeasibility
from ifonly.search.boxes import engine
from ifonly.search.boxes.affordable import affordable, expected_entries
from ifonly.search.several import answers
from ifonly.solvers.backend import Capability, Limits, Solution, Status
from ifonly.solvers.highs import BACKEND as HIGHS
from portions import one_in

pytestmark = pytest.mark.no_cover  # what is promised is promised without somebody who notes every line
LIMITS = (0.05, 0.5, 2.0)
TRIES = 5  # a search that does not look at the clock is late every time, a crowded processor is not
NUMBERS = [f"x{i}" for i in range(8)]


# -- the clock -------------------------------------------------------------------------------------------------------
def test_a_deadline_is_a_moment() -> None:
    soon = Deadline.after(60.0)
    assert 59.0 < soon.left() <= 60.0
    assert not soon.passed
    assert soon.within(1.0).left() <= 1.0
    assert soon.within(1000.0) == soon
    assert soon.earlier(60.0).passed
    assert Deadline.after(-1.0).passed
    assert Deadline.after(-1.0).left() == 0.0
    assert Deadline.never().left() == np.inf
    assert Deadline.never().within(5.0).left() <= 5.0


@dataclass
class Watch:
    """Seconds that a call ran past its limit, by the wall and by the processor, without the model's own predictions."""

    wall: float = 0.0
    processor: float = 0.0
    took: float = 0.0

    @property
    def late(self) -> float:
        return min(self.wall, self.processor)


class Clock:
    """The time since some moment, by the wall and by the processor; a thread notes the latter when the moment comes."""

    def __init__(self, limit: float) -> None:
        self.began = time.perf_counter()
        self.limit = limit
        self.used: float | None = None
        self.bell = threading.Timer(limit, self._ring)
        self.bell.daemon = True
        self.bell.start()

    def _ring(self) -> None:
        self.used = time.process_time()

    def past(self) -> tuple[float, float]:
        """Return the seconds since the moment, 0 before it."""
        wall = time.perf_counter() - self.began - self.limit
        return max(wall, 0.0), 0.0 if self.used is None else time.process_time() - self.used


@contextmanager
def watched(limit: float, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    watch = Watch()

    def timed(predict: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Model, U: Any) -> Any:
            before = clock.past()
            try:
                return predict(self, U)
            finally:
                after = clock.past()
                watch.wall -= after[0] - before[0]
                watch.processor -= after[1] - before[1]

        return call

    with monkeypatch.context() as patch:
        for name in ("predict", "predict_proba"):
            patch.setattr(Model, name, timed(getattr(Model, name)))
        clock = Clock(limit)
        try:
            yield watch
        finally:
            wall, processor = clock.past()
            clock.bell.cancel()
            watch.wall += wall
            watch.processor += processor
            watch.took = time.perf_counter() - clock.began


def slack(limit: float) -> float:
    return max(0.1 * limit, 0.05)


# -- worlds ----------------------------------------------------------------------------------------------------------
@cache
def table(rows: int = 500) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(5)
    base = rng.normal(size=(rows, 3))
    X = pd.DataFrame(base @ rng.normal(size=(3, 8)) + 0.7 * rng.normal(size=(rows, 8)), columns=NUMBERS).round(4)
    X["x7"] = (10 * X["x7"]).round().astype(int)
    X["shade"] = rng.choice(["light", "grey", "dark"], rows)
    score = base[:, 0] + np.sin(2 * base[:, 1]) + 0.5 * (X["shade"] == "light") + 0.2 * rng.normal(size=rows)
    return X, np.asarray(score)


def pipe(last: Any, target: str = "two") -> Any:
    X, score = table()
    y = {
        "two": np.where(score > np.quantile(score, 0.6), "yes", "no"),
        "three": np.select([score > 1.0, score > 0.0], ["high", "middle"], "low"),
        "value": score,
    }[target]
    columns = make_column_transformer((OneHotEncoder(), ["shade"]), (StandardScaler(), NUMBERS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network need not have converged
        return make_pipeline(columns, last).fit(X, y)


MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: pipe(LogisticRegression()),
    "tree": lambda: pipe(DecisionTreeClassifier(max_depth=8, random_state=0)),
    "small forest": lambda: pipe(RandomForestClassifier(9, max_depth=4, random_state=0)),
    "forest": lambda: pipe(RandomForestClassifier(30, max_depth=5, random_state=0)),
    "big forest": lambda: pipe(RandomForestClassifier(70, random_state=0)),
    "boosting": lambda: pipe(GradientBoostingClassifier(n_estimators=60, max_depth=3, random_state=0)),
    "bins": lambda: pipe(HistGradientBoostingClassifier(max_iter=25, random_state=0)),
    "network": lambda: pipe(MLPClassifier((20, 20), max_iter=200, random_state=0)),
    "wide network": lambda: pipe(MLPClassifier((150,), max_iter=100, random_state=0)),
    "calibrated": lambda: pipe(CalibratedClassifierCV(GradientBoostingClassifier(n_estimators=5, random_state=0))),
    "votes": lambda: pipe(
        VotingClassifier([("a", LogisticRegression()), ("b", RandomForestClassifier(10, max_depth=4, random_state=0))])
    ),
    "classes": lambda: pipe(RandomForestClassifier(20, max_depth=5, random_state=0), "three"),
    "softmax": lambda: pipe(LogisticRegression(), "three"),
    "line": lambda: pipe(LinearRegression(), "value"),
    "values": lambda: pipe(RandomForestRegressor(20, max_depth=6, random_state=0), "value"),
}


@cache
def fitted(model: str) -> Any:
    return MODELS[model]()


@cache
def explainer(model: str, norm: str = "l1", solver: str = "auto") -> Explainer:
    X, score = table()
    labels = np.where(score > np.quantile(score, 0.6), "yes", "no")
    criteria = [Proximity(norm), Sparsity(price=0.05)] if norm != "mahalanobis" else [Proximity("mahalanobis")]  # type: ignore[arg-type]
    return Explainer(fitted(model), X, labels, criteria=criteria, solver=solver)


@cache
def factual(model: str) -> pd.DataFrame:
    """A row that is far from the wanted outcome."""
    X, score = table()
    return X.iloc[[int(np.argsort(score)[len(score) // 6])]]


@dataclass(frozen=True)
class Kind:
    """One kind of question."""

    model: str
    criteria: Callable[[], list[Any]] = list
    want: Any = "yes"
    n: int = 1
    norm: str = "l1"
    solver: str = "auto"


def frozen(*but: str) -> Actionability:
    return Actionability(frozen=[name for name in [*NUMBERS, "shade"] if name not in but])


def impossible() -> list[Any]:
    far = [LinearRow({"x0": 1.0, "x1": 1.0}, at_least=2.0), LinearRow({"x0": 1.0, "x2": -1.0}, at_most=-4.0)]
    rule = Implies({"x3": (0.0, None)}, {"x4": (None, -1.0)})
    return [Actionability(rows=far, implies=[rule], frozen=["x5", "x6", "shade"], increase=["x2"]), Sparsity(at_most=1)]


def law(last: Any) -> Causality:
    X, _ = table()
    fitted = last.fit(X[["x0", "x1"]], X["x2"])
    return Causality({"x2": Cause(["x0", "x1"], model=fitted), "x3": Cause(["x2"], coefficients={"x2": 0.4})})


def other_forest() -> Any:
    return pipe(RandomForestClassifier(15, max_depth=4, random_state=7))


KINDS: dict[str, Kind] = {
    "a line": Kind("logistic"),
    "a line, few changes": Kind("logistic", lambda: [Sparsity(at_most=2)]),
    "a line in l2": Kind("logistic", norm="l2"),
    "a line in l2 by tangents": Kind("logistic", norm="l2", solver="highs only"),
    "a line in linf": Kind("logistic", norm="linf"),
    "a line in the Mahalanobis distance": Kind("logistic", norm="mahalanobis"),
    "a line, three answers": Kind("logistic", n=3),
    "a line in a hull": Kind("logistic", lambda: [Manifold()]),
    "a line, robust": Kind("logistic", lambda: [Robustness(radius=0.05, norm="l2")]),
    "three classes": Kind("softmax", want="high"),
    "a probability of three": Kind("softmax", want=Target("high", probability=0.7)),
    "a value": Kind("line", want=Target(at_least=1.0)),
    "a tree": Kind("tree"),
    "a tree in a hull": Kind("tree", lambda: [Manifold(epsilon=0.05)]),
    "a forest": Kind("forest"),
    "a forest by HiGHS": Kind("forest", solver="highs only"),
    "a forest in l2": Kind("forest", norm="l2"),
    "a forest in linf": Kind("forest", norm="linf"),
    "a forest in the Mahalanobis distance": Kind("forest", norm="mahalanobis", solver="highs only"),
    "a probability of a forest": Kind("forest", lambda: [Sparsity(at_most=3)], want=Target("yes", probability=0.8)),
    "a forest in a hull": Kind("forest", lambda: [Manifold()]),
    "a forest in an l2 hull": Kind("forest", lambda: [Manifold(epsilon=0.1, norm="l2")]),
    "a forest in clusters": Kind("forest", lambda: [Manifold(clusters=3)]),
    "one answer per cluster": Kind("forest", lambda: [Manifold(clusters=3), Diversity("clusters")], n=3),
    "an isolation forest": Kind("forest", lambda: [Manifold(isolation=0.3)]),
    "a robust forest": Kind("forest", lambda: [Robustness(radius=0.03)]),
    "a robust forest in l2": Kind("forest", lambda: [Robustness(radius=0.03, norm="l2")]),
    "two forests": Kind("forest", lambda: [Robustness(models=[other_forest()])]),
    "robust in a hull": Kind("forest", lambda: [Robustness(radius=0.02), Manifold(epsilon=0.05)]),
    "three sets of features": Kind("forest", lambda: [Diversity("features")], n=3),
    "three answers apart": Kind("forest", lambda: [Diversity("iterate", distance=0.3)], n=3),
    "three answers met": Kind("forest", lambda: [Diversity("incumbents")], n=3),
    "three robust answers": Kind("forest", lambda: [Robustness(radius=0.02), Diversity("features")], n=3),
    "causes": Kind("forest", lambda: [law(LinearRegression())]),
    "causes by a forest": Kind("forest", lambda: [law(RandomForestRegressor(10, max_depth=4, random_state=0))]),
    "causes of a line in a hull": Kind("logistic", lambda: [law(LinearRegression()), Manifold(epsilon=0.2)]),
    "impossible for a forest": Kind("forest", impossible),
    "impossible in a hull": Kind("forest", lambda: [frozen("x0", "x1"), Manifold()]),
    "impossible with all frozen": Kind("boosting", lambda: [frozen("x6")]),
    "impossible and robust": Kind("forest", lambda: [frozen("x0", "x5"), Robustness(radius=0.2)]),
    "impossible for a network": Kind("network", impossible),
    "a big forest": Kind("big forest"),
    "a big forest, confident": Kind("big forest", lambda: [Sparsity(at_most=4)], want=Target("yes", probability=0.9)),
    "a big forest in a hull": Kind("big forest", lambda: [Manifold()]),
    "a big robust forest": Kind("big forest", lambda: [Robustness(radius=0.02)]),
    "a big forest, impossible": Kind("big forest", impossible),
    "boosting": Kind("boosting"),
    "boosting in l2 by tangents": Kind("boosting", norm="l2", solver="highs only"),
    "robust boosting": Kind("boosting", lambda: [Robustness(radius=0.05)]),
    "bins": Kind("bins"),
    "a network": Kind("network"),
    "a network in l2": Kind("network", norm="l2", solver="highs only"),
    "a network in linf": Kind("network", norm="linf"),
    "a robust network": Kind("network", lambda: [Robustness(radius=0.05)]),
    "a wide network": Kind("wide network"),
    "a network in a hull": Kind("network", lambda: [Manifold()]),
    "calibrated": Kind("calibrated"),
    "votes": Kind("votes"),
    "classes of a forest": Kind("classes", want="high"),
    "values of a forest": Kind("values", want=Target(at_least=1.2)),
}


IMPOSSIBLE = [kind for name, kind in KINDS.items() if "impossible" in name]
LONG = {  # asked with every limit in the plain run as well
    "a forest in a hull",
    "robust boosting",
}


def ask(kind: Kind, criteria: list[Any], limit: float) -> Explanation | Infeasible | OutOfTime:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return explainer(kind.model, kind.norm, kind.solver).explain(
                factual(kind.model), want=kind.want, n=kind.n, criteria=criteria, time_limit=limit
            )
        except (Infeasible, OutOfTime) as error:
            return error


@cache
def learnt(name: str) -> list[Any]:
    """Return the criteria of a kind, asked once: what is learnt of the training data then is no part of the promise."""
    criteria = KINDS[name].criteria()
    ask(KINDS[name], criteria, 0.05)
    return criteria


def kept(name: str, limit: float, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Assert that the limit is kept, and return whether the call made use of it."""
    kind, criteria = KINDS[name], learnt(name)
    for _ in range(TRIES):
        with watched(limit, monkeypatch) as watch:
            found = ask(kind, criteria, limit)
        check(kind, found)
        if watch.late <= slack(limit):
            break
    assert watch.late <= slack(limit), f"{name}: time_limit={limit}: {watch} -> {type(found).__name__}"
    return watch.took >= 0.5 * limit


@pytest.mark.parametrize("name", one_in(2, KINDS))
def test_the_limit_is_for_the_whole_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in LIMITS if name in LONG else LIMITS[:1]:
        if not kept(name, limit, monkeypatch):
            break  # it ended by itself, and would do so again


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KINDS if name not in LONG])
def test_longer_limits_are_for_the_whole_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in LIMITS[1:]:
        if not kept(name, limit, monkeypatch):
            break


def check(kind: Kind, found: Explanation | Infeasible | OutOfTime) -> None:
    """Answers that come back in time are true as well."""
    if isinstance(found, OutOfTime):
        assert 0.0 <= found.bound < np.inf
        return
    if isinstance(found, Infeasible):
        assert kind in IMPOSSIBLE
        assert found.conflict
        assert found.minimal == ("not shown to be minimal" not in str(found))
        return
    assert 1 <= len(found) <= kind.n
    for answer in found:
        assert answer.certificate.bound <= answer.certificate.objective + 1e-9
    if isinstance(kind.want, str):
        model = explainer(kind.model, kind.norm, kind.solver).model.estimator
        assert (np.asarray(model.predict(found.frame())) == kind.want).all()


# -- what is known is not lost ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Failing:
    """HiGHS that ends every program without an answer and without a proof."""

    name: str = "failing only"
    label: str = "Failing"
    capabilities: frozenset[Capability] = HIGHS.capabilities

    def available(self) -> bool:
        return True

    def version(self) -> str:
        return "1"

    def solve(self, program: Any, limits: Limits, start: Any = None, on_incumbent: Any = None) -> Solution:
        del program, limits, start, on_incumbent
        return Solution(Status.FAILED)


def question(kind: Kind, criteria: list[Any], solver: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FactualViolatesDemand)
        own = explainer(kind.model, kind.norm, "highs only")
        asked = own._ask(factual(kind.model), kind.want, criteria, decimals=False)
    return asked if solver is None else replace(asked, backend=solver)


def test_an_answer_outlives_a_solver_that_fails() -> None:
    asked = question(KINDS["a forest"], [], Failing())
    answer = asked.one(asked.statement)
    assert not answer.counterfactual.certificate.proven
    assert answer.counterfactual.prediction == "yes"
    assert 0.0 <= answer.counterfactual.certificate.bound <= answer.counterfactual.certificate.objective


def test_without_an_answer_a_failing_solver_is_an_error() -> None:
    asked = question(KINDS["a forest"], [frozen("x0"), Sparsity(at_most=1)], Failing())
    with pytest.raises(SolverFailed):
        asked.one(asked.statement)


def test_the_first_answer_outlives_the_time_for_a_second() -> None:
    asked = question(Kind("small forest"), [Diversity("features")])
    known = asked.one(asked.statement)

    class Late:
        statement, deadline = asked.statement, Deadline.after(0.0)

        def one(self, statement: Any, *, first: bool = True) -> Any:
            assert first, "no further search after the deadline"
            return known

        def another(self, u: Any, answer: Any) -> None:
            raise AssertionError

    several = answers(Late(), 3)
    assert several.answers == (known.counterfactual,)
    assert several.notes == ("only 1 of 3: out of time",)


@pytest.mark.parametrize("name", ["a robust forest", "a robust network"])
def test_a_range_that_there_is_no_time_for_is_the_answers_own_value(name: str) -> None:
    kind = KINDS[name]
    asked = question(kind, kind.criteria())
    X, score = table()
    u = asked.query.schema.encode(X.iloc[[int(np.argmax(score))]])[0]
    u = np.where(np.isnan(u), asked.query.factual, u)
    backend = asked.backend
    late = safe_ranges(asked.statement, u, backend, Deadline.after(0.0))
    ample = safe_ranges(asked.statement, u, backend, Deadline.never())
    assert late.keys() == ample.keys()
    assert len(late) >= 5
    for feature, (low, high) in late.items():
        value = u[asked.query.schema.starts[asked.query.schema.index(feature)]]
        assert low == high == pytest.approx(value)
        assert ample[feature][0] <= value <= ample[feature][1]


def test_an_attack_without_time_proves_nothing() -> None:
    asked = question(KINDS["a robust forest"], [Robustness(radius=0.03)])
    ball = next(d for d in asked.statement.demands if isinstance(d, KeepsLead) and d.reach.any())
    found = attack(ball, asked.query.factual, HIGHS, Limits(), Deadline.after(0.0))
    assert (found.safe, found.point) == (False, None)


def clashing() -> Any:
    """A question that any one of five features would make possible, all of them frozen."""
    criteria = [Actionability(frozen=["income", "debts", "education", "age", "job", "phone"])]
    return questions.explainer(criteria=[Proximity("l1")])._ask({**questions.FACTUAL, "income": 4.6}, "good", criteria)


def test_blame_without_time_names_a_clash_that_may_not_be_minimal() -> None:
    asked = clashing()
    ample = explain_infeasibility(asked.statement, HIGHS, Limits(), Deadline.never())
    late = explain_infeasibility(asked.statement, HIGHS, Limits(), Deadline.after(0.0))
    assert ample.minimal
    assert not late.minimal
    assert set(ample.conflict) < set(late.conflict) == {d.text for d in asked.statement.demands}
    assert late.relaxations == ()
    assert "a clash, not shown to be minimal" in str(late)
    assert "a clash, not shown to be minimal" not in str(ample)
    assert pickle.loads(pickle.dumps(late)).minimal is False


def test_blame_keeps_the_ways_out_that_were_found_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = clashing()
    ample = explain_infeasibility(asked.statement, HIGHS, Limits(), Deadline.never())
    loosen, calls = blame.ConflictFinder.loosen, [0]

    def tiring(self: Any, demand: Any, others: Any) -> Any:
        calls[0] += 1
        finder = self if calls[0] == 1 else replace(self, deadline=Deadline.after(0.0))
        return loosen(finder, demand, others)

    monkeypatch.setattr(blame.ConflictFinder, "loosen", tiring)
    monkeypatch.setattr(blame, "_together", lambda *_: None)
    some = explain_infeasibility(asked.statement, HIGHS, Limits(), Deadline.never())
    assert some.conflict == ample.conflict
    assert 0 < len(some.relaxations) < len(ample.relaxations)
    assert some.relaxations[0] == ample.relaxations[0]


def test_column_generation_that_is_stopped_keeps_a_true_bound() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 12))
    hull = Hull(points, np.arange(12), np.ones(12))
    far = np.full(12, 4.0)
    costing = Costing(far, np.ones(12), np.zeros(12), np.zeros(12))
    ends = np.full(12, -5.0), np.full(12, 5.0)
    best, _ = Slice(hull, Ball(), costing, *ends).cheapest()
    stopped = 0
    for seconds in (0.0, 1e-4, 1e-3, 3e-3, 1e-2):
        part = Slice(hull, Ball(), costing, *ends)
        part.deadline = Deadline.after(seconds)
        bound, x = part.cheapest()
        assert bound <= best + 1e-6
        stopped += x is None
        low, high = part.extent(2.0 * best)
        assert ((low <= high) & (low >= -5.0) & (high <= 5.0)).all(), "no time is no proof that nothing is there"
    assert stopped


# -- larger data -----------------------------------------------------------------------------------------------------
@pytest.mark.data
@pytest.mark.parametrize("name", ["pima_diabetes", "ionosphere"])
def test_robust_boosting_stops_in_its_proposals(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pd.read_csv(Path(os.environ["IFONLY_DATA"]) / f"{name}.csv")
    y = data.pop(data.columns[-1])
    model = GradientBoostingClassifier(n_estimators=100, max_depth=2, random_state=0).fit(data, y)
    own = Explainer(model, data, y)
    order = np.argsort(model.predict_proba(data)[:, 1])
    for place in (0, len(order) // 8, len(order) // 4):
        with watched(3.0, monkeypatch) as watch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(OutOfTime, Infeasible):
                own.explain(
                    data.iloc[[int(order[place])]],
                    want=model.classes_[1],
                    criteria=[Robustness(radius=0.05)],
                    time_limit=3.0,
                )
        assert watch.late <= slack(3.0), f"{name}, row {order[place]}: {watch}"


@pytest.mark.data
def test_memory_of_one_question_stays_within_its_share() -> None:
    """A forest of 200 deep trees: with no answer known, its program would have 36 million entries."""
    data = pd.read_csv(Path(os.environ["IFONLY_DATA"]) / "heloc_train.csv")
    y = data.pop(data.columns[-1]).astype(int)
    model = RandomForestClassifier(200, random_state=0).fit(data, y)
    own = Explainer(model, data, y)
    surest = int(np.argmin(model.predict_proba(data)[:, 1]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings(), suppress(OutOfTime):
        warnings.simplefilter("ignore")
        own.explain(
            data.iloc[[surest]],
            want=Target(1, probability=0.8),
            criteria=[Sparsity(at_most=4)],
            time_limit=20.0,
        )
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 1000, f"the process grew by {grown:.0f} MB"


# -- the size of a program -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "model", one_in(2, ["forest", "big forest", "boosting", "bins", "values", "calibrated", "votes"])
)
def test_the_size_of_a_program_is_told_before_it_is_built(model: str) -> None:
    want = Target(at_least=1.2) if model == "values" else "yes"
    statement = question(Kind(model, want=want), []).statement
    expected = expected_entries(statement, statement.box())
    written = build(statement).mip.arrays().matrix.nnz
    assert 0.4 * written <= expected <= 2.5 * written
    assert affordable(statement, statement.box(), Deadline.never())
    assert not affordable(statement, statement.box(), Deadline.after(0.0))


def test_a_table_of_cells_is_not_taken_for_a_tree() -> None:
    statement = question(Kind("forest"), []).statement
    roughly, closely = (expected_entries(statement, statement.box(), closely=c) for c in (False, True))
    assert 0.5 * roughly < closely <= roughly  # nearly every split of a tree has a threshold of its own
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 30, 9000), "b": rng.integers(0, 30, 9000)})
    cells = rng.normal(size=30 * 30)
    table = DecisionTreeRegressor(random_state=0).fit(X, cells[30 * X.a + X.b])
    splits = {(j, t) for j, t in zip(table.tree_.feature, table.tree_.threshold, strict=True) if j >= 0}
    tuning = Tuning(size=ProgramSize(most_entries=50_000))
    statement = Explainer(table, X, tuning=tuning)._ask(X.iloc[[0]], Target(at_least=2.0), []).statement
    box = statement.box()
    assert statement.form.leaves.n_cuts.tolist() == [len(splits)]  # type: ignore[attr-defined]
    roughly, closely = (expected_entries(statement, box, closely=c) for c in (False, True))
    assert closely < 50_000 < roughly
    assert build(statement).mip.arrays().matrix.nnz <= closely
    assert affordable(statement, box, Deadline.never())
    assert not affordable(statement, box, Deadline.after(0.5))  # no time to look closely


def test_the_units_of_a_network_must_be_bounded_in_time() -> None:
    statement = question(Kind("network"), []).statement
    box, size = statement.box(), statement.query.tuning.size
    entries = expected_entries(statement, box)
    solving = min(size.per_entry_of_few * entries, size.start + size.per_entry * entries)
    assert not affordable(statement, box, Deadline.after(solving + 0.5 * size.per_layer))
    assert affordable(statement, box, Deadline.after(solving + 1.0))


def test_curves_around_a_network_bound_it_again() -> None:
    statement = question(Kind("network"), []).statement
    box, size, form = statement.box(), statement.query.tuning.size, statement.form
    entries = expected_entries(statement, box)
    solving = min(size.per_entry_of_few * entries, size.start + size.per_entry * entries)
    once = 1.05 * (
        solving + size.per_layer * len(form.blocks) + size.per_weight * sum(b.weights.size for b in form.blocks)
    )  # type: ignore[attr-defined]
    assert affordable(statement, box, Deadline.after(once))
    curved = replace(statement, form=Curve(Curve(form, (SIGMOID,) * form.n_outputs), (SIGMOID,) * form.n_outputs))
    assert expected_entries(curved, box) == entries
    assert not affordable(curved, box, Deadline.after(1.5 * once))
    assert affordable(curved, box, Deadline.after(3.0 * once))


def test_copies_of_a_model_count() -> None:
    plain, robust = (question(KINDS["a robust forest"], some).statement for some in ([], [Robustness(radius=0.03)]))
    ball = next(d for d in robust.demands if isinstance(d, KeepsLead) and d.reach.any())
    shift = np.where(ball.reach > 0, ball.reach, 0.0)
    more = replace(robust, demands=tuple(d.stricter(shift) if d is ball else d for d in robust.demands))  # type: ignore[attr-defined]
    one, two = expected_entries(plain, plain.box()), expected_entries(more, more.box())
    assert expected_entries(robust, robust.box()) == one
    assert two == pytest.approx(2.0 * one)


def test_a_program_that_is_too_large_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a program the cells are searched to the end, with the same answer and the same proof."""
    asked = question(Kind("small forest"), [Sparsity(at_most=2)])
    solved = asked.one(asked.statement).counterfactual.certificate
    monkeypatch.setattr(engine, "affordable", lambda *_: False)
    searched = asked.one(asked.statement).counterfactual.certificate
    assert solved.proven
    assert searched.proven
    assert searched.objective == pytest.approx(solved.objective, abs=1e-6)


def test_a_program_that_is_too_large_and_needed_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "affordable", lambda *_: False)
    kind = KINDS["a network"]
    asked = question(kind, [])
    answer = asked.one(asked.statement)
    assert not answer.counterfactual.certificate.proven
    assert answer.counterfactual.prediction == "yes"
