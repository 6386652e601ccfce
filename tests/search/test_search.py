"""The search on forests too large for one program: scans, boxes, budgets, splits, limits, and what they prove."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ifonly import Actionability, Explainer, Proximity, Sparsity
from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.models.forms.scan import Brackets, TreeScan
from ifonly.models.forms.trees import Trees
from ifonly.program.box import Box
from ifonly.program.mip import Affine, MipArrays
from ifonly.question.found import Ended, Found
from ifonly.question.problem import build
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import BoxSearch, IncumbentSearch, Tuning
from ifonly.search.boxes import engine
from ifonly.search.cells.trades import trade
from ifonly.search.engines import WITH_SOLVER, find
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from ifonly.search.reduce import Reducer
from ifonly.solvers.backend import Capability, IncumbentHook, Limits, Solution, Status
from ifonly.solvers.registry import find_solver
from ifonly.solvers.tangents import solve

L1 = (Proximity("l1", scale="range"),)
GAP = 2e-6

HIGHS = find_solver("highs only")


# -- a world in which the box hardly shrinks -------------------------------------------------------------------------
@cache
def table() -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Eight correlated numbers (one of them whole) and two categories."""
    rng = np.random.default_rng(7)
    base = rng.normal(size=(500, 3))
    numbers = base @ rng.normal(size=(3, 8)) + 0.4 * rng.normal(size=(500, 8))
    X = pd.DataFrame(numbers.round(4), columns=[f"x{j}" for j in range(8)])
    X["x7"] = (10 * X["x7"]).round().astype(int)
    X["shade"] = rng.choice(["light", "grey", "dark"], 500)
    X["side"] = rng.choice(["left", "right"], 500)
    score = base[:, 0] + base[:, 1] + 0.3 * (X["shade"] == "light") + 0.3 * (X["side"] == "left")
    return X, pd.Series(np.where(score > 0.6, "yes", "no"))


@cache
def forest(trees: int = 20, depth: int = 5) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    X, y = table()
    columns = make_column_transformer((OneHotEncoder(), ["shade", "side"]), remainder="passthrough")
    return make_pipeline(columns, RandomForestClassifier(trees, max_depth=depth, random_state=0)).fit(X, y)


@cache
def confident(trees: int = 20) -> list[int]:
    """The refused rows, the most confidently refused first."""
    X, _ = table()
    return [int(i) for i in np.argsort(-forest(trees).predict_proba(X)[:, 0], kind="stable")]


def statement(row: int, criteria: tuple[Any, ...] = L1, trees: int = 20, tuning: Tuning | None = None) -> Statement:
    X, _ = table()
    tuning = tuning or Tuning()
    explainer = Explainer(forest(trees), X, criteria=list(criteria), solver="highs only", tuning=tuning)
    asked = explainer.problem(X.iloc[[row]], want="yes").statement
    return replace(asked, margin=1e-5)  # a tie of the trees is not a yes, and a solver can tell it from one


# -- scans, against the form -----------------------------------------------------------------------------------------
def brackets_of(asked: Statement) -> Brackets:
    brackets = Reducer(asked).brackets
    assert brackets is not None
    return brackets


def gap_by_form(asked: Statement, brackets: Brackets, U: FloatArray) -> FloatArray:
    """The sum of the brackets, computed from the scores of the form itself."""
    form = asked.form
    assert isinstance(form, Trees)
    gaps = Reducer(asked).goal.gaps
    scores = form(U)
    rows = gaps([Affine.of(k) for k in range(form.n_outputs)], asked.margin)
    return np.stack([scores[:, row.columns] @ row.values + row.constant for row in rows], axis=-1)


def points_of(incumbents: Incumbents, options: list[int], start: FloatArray) -> FloatArray:
    out = []
    for option in options:
        u = start.copy()
        incumbents.carry_out(u, option)
        out.append(u)
    return np.array(out)


def test_single_changes_score_as_the_form_does() -> None:
    asked = statement(confident()[0])
    incumbents, brackets = Incumbents(Reducer(asked), asked.box()), brackets_of(asked)
    menu, rng = incumbents.menu, np.random.default_rng(0)
    u = asked.query.training.U[confident()[3]].copy()
    scan = TreeScan(brackets, u)
    for _ in range(3):
        assert np.allclose(scan.here(), gap_by_form(asked, brackets, u[None, :])[0], rtol=0, atol=1e-10)
        table_ = np.concatenate(scan.singles())[menu.place]
        chosen = [int(o) for o in rng.choice(len(menu.cost), 80, replace=False)]
        expected = gap_by_form(asked, brackets, points_of(incumbents, chosen, u))
        assert np.allclose(table_[chosen], expected, rtol=0, atol=1e-10)
        move = chosen[0]
        incumbents.carry_out(u, move)
        scan.move(int(menu.feature[move]), int(menu.position[move]))


def test_pairs_of_changes_score_as_the_form_does() -> None:
    asked = statement(confident()[0])
    incumbents, brackets = Incumbents(Reducer(asked), asked.box()), brackets_of(asked)
    menu, u = incumbents.menu, asked.query.factual
    scan = TreeScan(brackets, u)
    by_feature = {int(j): np.flatnonzero(menu.feature == j)[::9] for j in np.unique(menu.feature)}
    for i, j in ((0, 3), (7, 2), (1, 8), (9, 8)):  # two numbers, a whole one, a number and a category, two categories
        first, second = by_feature[i], by_feature[j]
        found = scan.pair(i, j, menu.position[first], menu.position[second])
        for k, a in enumerate(first):
            both = u.copy()
            incumbents.carry_out(both, int(a))
            expected = gap_by_form(asked, brackets, points_of(incumbents, [int(b) for b in second], both))
            assert np.allclose(found[k], expected, rtol=0, atol=1e-10)


def test_changes_beside_one_of_a_number_score_as_the_form_does() -> None:
    asked = statement(confident()[0])
    incumbents, brackets = Incumbents(Reducer(asked), asked.box()), brackets_of(asked)
    menu, u = incumbents.menu, asked.query.factual.copy()
    scan, rng = TreeScan(brackets, u), np.random.default_rng(4)
    numeric = brackets.leaves.is_numeric[menu.feature]
    for i in (0, 3, 7):
        rows = np.sort(rng.choice(np.flatnonzero(menu.feature == i), 4))
        columns = np.flatnonzero(numeric & (menu.feature != i) & (rng.uniform(size=len(numeric)) < 0.1))
        found = scan.beside(i, menu.position[rows], menu.feature[columns], menu.position[columns])
        for k, a in enumerate(rows):
            both = u.copy()
            incumbents.carry_out(both, int(a))
            expected = gap_by_form(asked, brackets, points_of(incumbents, columns.tolist(), both))
            assert np.allclose(found[k], expected, rtol=0, atol=1e-10)
        move = int(rng.choice(columns))  # from another point next
        incumbents.carry_out(u, move)
        scan.move(int(menu.feature[move]), int(menu.position[move]))


def test_the_menu_costs_what_the_objective_says() -> None:
    asked = statement(confident()[1], (Proximity("l2", scale="range"), Sparsity(price=0.1)))
    incumbents = Incumbents(Reducer(asked), asked.box())
    options = list(range(0, len(incumbents.menu.cost), 7))
    costs = asked.objective(points_of(incumbents, options, asked.query.factual))
    assert np.allclose(incumbents.menu.cost[options], costs, rtol=0, atol=1e-12)


# -- boxes, against points -------------------------------------------------------------------------------------------
def random_box(asked: Statement, rng: np.random.Generator) -> tuple[Box, FloatArray]:
    """A random part of the box, and points in it."""
    box, U = asked.box(), asked.query.training.U
    a, b = U[rng.integers(len(U), size=2)]
    for j, feature in enumerate(box.schema.features):
        part = box.schema.slice(j)
        if isinstance(feature, Numeric):
            box.narrow(j, float(min(a[part][0], b[part][0])), float(max(a[part][0], b[part][0])))
        else:
            box.keep_levels(j, (a[part] + b[part]) > 0)
    mixed = np.where(rng.random((200, len(box.schema))) < 0.5, 0, 1)
    points = np.empty((200, box.schema.width))
    for j in range(len(box.schema)):
        part = box.schema.slice(j)
        points[:, part] = np.where(mixed[:, [j]] == 0, a[part], b[part])
    return box, points


def test_no_point_of_a_box_is_in_a_leaf_that_it_rules_out() -> None:
    asked = statement(confident()[0])
    form = asked.form
    assert isinstance(form, Trees)
    rng = np.random.default_rng(1)
    for _ in range(6):
        box, points = random_box(asked, rng)
        alive = set(form.leaves.node[form.leaves.alive(box)].tolist())
        assert set(form.leaf_of(points).ravel().tolist()) <= alive
        assert len(alive) < len(form.leaves.node)


def test_trees_within_a_box_are_the_same_program() -> None:
    asked = statement(confident()[0], trees=8)
    form, rng = asked.form, np.random.default_rng(2)
    assert isinstance(form, Trees)
    smaller = 0
    for _ in range(4):
        box, _ = random_box(asked, rng)
        whole = build(asked, box)
        part = build(replace(asked, form=form.within(box)), box)
        smaller += part.arrays().n_columns < whole.arrays().n_columns
        answers = [HIGHS.solve(p.arrays(), Limits()) for p in (whole, part)]
        assert answers[0].status is answers[1].status
        if answers[0].values is not None:
            assert answers[1].objective == pytest.approx(answers[0].objective, abs=1e-6)
            u = part.point(np.asarray(answers[1].values))
            assert asked.demands[0].holds(asked.query, u[None, :])[0]
    assert smaller


# -- the whole search ------------------------------------------------------------------------------------------------
QUESTIONS: dict[str, tuple[Any, ...]] = {
    "l1": L1,
    "priced": (Proximity("l1", scale="range"), Sparsity(price=0.1)),
    "few": (Proximity("l1", scale="range"), Sparsity(at_most=2)),
    "l2": (Proximity("l2", scale="range"),),
    "frozen": (*L1, Actionability(frozen=["x0", "side"], increase=["x1"])),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_reduced_search_finds_the_optimum_of_the_whole_program(question: str) -> None:
    """The whole program has every leaf and every cut, and no budget."""
    asked = statement(confident(6)[5], QUESTIONS[question], 6)
    whole = solve(build(asked).arrays(), HIGHS, Limits(seconds=120.0))
    found = find(asked, HIGHS, Limits(seconds=60.0), WITH_SOLVER)
    assert whole.status is Status.OPTIMAL
    assert found.optimal
    assert found.u is not None
    cost = float(asked.objective(found.u[None, :])[0])
    assert cost == pytest.approx(whole.objective, abs=GAP)
    assert cost - GAP <= found.bound <= cost
    assert all(bool(d.holds(asked.query, found.u[None, :])[0]) for d in asked.demands)


@pytest.fixture
def large() -> tuple[Statement, float]:
    """A question whose box counts as large: it takes exchanges of pairs, splits and several programs."""
    return _large(BoxSearch(tiny=10, large=60)), _optimum()


def _large(boxes: BoxSearch) -> Statement:
    return statement(confident()[16], tuning=Tuning(boxes=boxes, incumbents=IncumbentSearch(small=30)))


@cache
def _optimum() -> float:
    answer = HIGHS.solve(build(statement(confident()[16])).arrays(), Limits(seconds=120.0))
    assert answer.status is Status.OPTIMAL
    return answer.objective


def test_exchanges_of_pairs_improve_and_stay_valid(large: tuple[Statement, float]) -> None:
    asked, optimum = large
    incumbents = Incumbents(Reducer(asked), asked.box())
    incumbents.quick()
    rows = incumbents.rows()
    assert rows is not None
    known = trade(incumbents)
    assert known is not None
    assert optimum - GAP <= known.cost <= rows.cost
    assert asked.demands[0].holds(asked.query, known.u[None, :])[0]
    assert known.cost == pytest.approx(float(asked.objective(known.u[None, :])[0]))
    late = Incumbents(Reducer(asked), asked.box())
    late.rows()
    late.deadline = Deadline.after(0.0)
    assert late.best is not None
    before = late.best.cost
    assert trade(late) is late.best
    assert late.best.cost == before


@dataclass(eq=False)
class Tiring:
    """HiGHS that runs out of time after so many programs."""

    left: int
    name: str = "tiring only"
    label: str = "Tiring"
    capabilities: frozenset[Capability] = HIGHS.capabilities
    solved: list[int] = field(default_factory=list)

    def available(self) -> bool:
        return True

    def version(self) -> str:
        return "1"

    def solve(
        self,
        program: MipArrays,
        limits: Limits,
        on_incumbent: IncumbentHook | None = None,
    ) -> Solution:
        self.solved.append(program.n_columns)
        if len(self.solved) > self.left:
            return Solution(Status.OUT_OF_TIME)
        return HIGHS.solve(program, limits, on_incumbent)


def test_more_time_is_never_worse_and_bounds_are_true() -> None:
    # So that it is the programs that improve the answer, and all of them go to the backend.
    asked, optimum = _large(BoxSearch(tiny=10**9, large=10**9)), _optimum()
    enough = Tiring(10**6)
    assert find(asked, enough, Limits(seconds=120.0), WITH_SOLVER).optimal
    assert len(enough.solved) >= 2
    costs, bounds = [], []
    for left in sorted({0, 1, 2, len(enough.solved) // 2, len(enough.solved) - 1, len(enough.solved)}):
        found = find(asked, Tiring(left), Limits(seconds=120.0), WITH_SOLVER)
        assert found.u is not None
        assert asked.demands[0].holds(asked.query, found.u[None, :])[0]
        costs.append(float(asked.objective(found.u[None, :])[0]))
        bounds.append(found.bound)
        assert found.bound <= optimum + 1e-9
        assert found.optimal == (left == len(enough.solved))
    assert all(after <= before + 1e-12 for before, after in pairwise(costs))
    assert costs[0] >= costs[-1] == pytest.approx(optimum, abs=GAP)
    assert bounds[-1] >= optimum - GAP


class Interrupted(Tiring):
    """HiGHS that solves a program to its end, and hears Ctrl-C just then: what it says is true of that program alone."""

    def solve(
        self,
        program: MipArrays,
        limits: Limits,
        on_incumbent: IncumbentHook | None = None,
    ) -> Solution:
        self.solved.append(program.n_columns)
        answer = HIGHS.solve(program, limits, on_incumbent)
        if len(self.solved) <= self.left:
            return answer
        ended = Status.INTERRUPTED if answer.values is None else Status.FEASIBLE
        return replace(answer, status=ended, interrupted=True)


def test_after_an_interruption_bounds_are_true() -> None:
    asked, optimum = _large(BoxSearch(tiny=10, large=10**9)), _optimum()
    enough = Tiring(10**6)
    find(asked, enough, Limits(seconds=120.0), WITH_SOLVER)
    for left in range(len(enough.solved)):
        found = find(asked, Interrupted(left), Limits(seconds=120.0), WITH_SOLVER)
        assert found.interrupted
        assert found.u is not None
        assert found.bound <= optimum + 1e-9


def test_after_an_interruption_boxes_that_nobody_looked_at_leave_no_bound(large: tuple[Statement, float]) -> None:
    asked, _ = large
    progress = Progress(HIGHS)
    search = engine._Search(asked, asked.box(), progress)
    search.incumbents.rows()
    progress.interrupted = True
    progress.leave(0.5 * progress.value)
    assert progress.found().bound == 0.5 * progress.value
    search._explore = lambda: search.stack.append((asked.box(), -np.inf))  # type: ignore[method-assign]
    assert search.run().bound == -np.inf


def test_ctrl_c_between_two_programs_leaves_no_bound(
    large: tuple[Statement, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine._Search, "_parts", pressed)
    monkeypatch.setattr(engine._Search, "_solve", pressed)
    found = find(large[0], HIGHS, Limits(seconds=60.0), WITH_SOLVER)
    assert found.interrupted
    assert found.bound == -np.inf


def test_no_time_at_all_still_gives_a_point_and_a_true_bound(large: tuple[Statement, float]) -> None:
    asked, optimum = large
    found = find(asked, HIGHS, Limits(seconds=0.0), WITH_SOLVER)
    assert found.ended is Ended.LIMIT
    assert found.u is not None
    assert asked.demands[0].holds(asked.query, found.u[None, :])[0]
    assert 0.0 <= found.bound <= optimum + 1e-9


def test_a_cutoff_below_the_optimum_is_refuted(large: tuple[Statement, float]) -> None:
    asked, optimum = large
    assert find(asked, HIGHS, Limits(seconds=60.0, cutoff=0.9 * optimum), WITH_SOLVER).infeasible


def test_the_same_question_has_the_same_answer(large: tuple[Statement, float]) -> None:
    asked, _ = large
    found: list[Found] = [find(asked, HIGHS, Limits(seconds=120.0, seed=3), WITH_SOLVER) for _ in range(2)]
    assert np.array_equal(np.asarray(found[0].u), np.asarray(found[1].u))
    assert found[0].bound == found[1].bound
