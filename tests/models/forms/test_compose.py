"""Composite forms: what the program says is what NumPy says; curves hold the graph and are exact where refined."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ifonly.data.schema import Numeric, Schema
from ifonly.models.forms.bends import EXP, EXPM1, LOG_SIGMOID, SIGMOID, SOFTPLUS, SQUARE, Broken, chain
from ifonly.models.forms.compose import (
    Combination,
    Mean,
    Stack,
    combine,
    for_budget,
    mean,
    refused,
    score_bounds,
    stack,
)
from ifonly.models.forms.curves import Curve, Softmax
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.network import Graph
from ifonly.models.forms.propagate import Budget
from ifonly.models.forms.steps import Lift, Stepped
from ifonly.models.forms.trees import Nodes, Trees
from ifonly.models.forms.votes import Votes
from ifonly.models.read import Read
from ifonly.models.reading.outcomes import Bent, least
from ifonly.program.box import Box
from ifonly.program.mip import Affine, Mip
from ifonly.program.variables import Variables
from ifonly.solvers.backend import Limits, Status
from ifonly.solvers.highs import BACKEND
from portions import diagonals, one_in

FRAME = pd.DataFrame({"a": [-2.0, 2.0, 0.5], "b": [0, 4, 1], "c": ["x", "y", "z"]})
SCHEMA = Schema.infer(FRAME)
ISOTONIC = Broken(np.array([-2.0, -0.5, 0.1, 0.2, 1.5]), np.array([0.0, 0.1, 0.1, 0.7, 1.0]))
BENDS = {
    "sigmoid": SIGMOID,
    "log sigmoid": LOG_SIGMOID,
    "softplus": SOFTPLUS,
    "exp": EXP,
    "expm1": EXPM1,
    "square": SQUARE,
    "isotonic": ISOTONIC,
}


def points(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    U = np.zeros((n, SCHEMA.width))
    U[:, 0], U[:, 1] = rng.uniform(-2.0, 2.0, n), rng.integers(0, 5, n)
    U[:, 2:] = np.eye(3)[rng.integers(3, size=n)]
    return U


def linear(n: int, seed: int = 0) -> Linear:
    rng = np.random.default_rng(seed)
    return Linear(SCHEMA, rng.normal(size=(n, SCHEMA.width)), rng.normal(size=n))


def stump(feature: int, cut: float, left: list[float], right: list[float]) -> Trees:
    """One split of a numeric feature."""
    nodes = Nodes(
        feature=np.array([feature, -1, -1]),
        cut=np.array([cut, np.inf, np.inf]),
        mask=np.full(3, -1),
        masks=np.zeros((1, 1), dtype=bool),
        missing_left=np.zeros(3, dtype=bool),
        left=np.array([1, 1, 2]),
        right=np.array([2, 1, 2]),
        value=np.array([[0.0] * len(left), left, right]),
        roots=np.array([0]),
    )
    return Trees(SCHEMA, nodes, np.zeros(len(left)))


def program(form, u, fixed=True):
    """Embed a form over the whole box and fix the input by rows, so that no bound knows of it."""
    mip = Mip()
    box = Box.of(SCHEMA, u)
    x = Variables(mip, box, u, form.cuts(), form.raw())
    scores = form.embed(mip, x)
    for j, feature in enumerate(SCHEMA.features if fixed else ()):
        part = u[SCHEMA.slice(j)]
        if not isinstance(feature, Numeric):
            table = x.level_table(j, part)
            if not table.is_constant:
                mip.row(table, 1.0, 1.0)
        elif x.is_raw(j):
            mip.row(x.raw(j), part[0], part[0])
        elif x.cells(j).cuts.size:
            mip.row(x.in_cell(j, int(x.cells(j).index(part[0]))), 1.0, 1.0)
    return mip, scores


def reachable(mip: Mip, expression: Affine) -> tuple[float, float]:
    """The least and greatest value of an expression."""
    out = []
    for sign in (1.0, -1.0):
        mip.clear_objective()
        mip.minimise(expression * sign)
        answer = BACKEND.solve(mip.arrays(), Limits(30.0, 1e-9))
        assert answer.status is Status.OPTIMAL
        out.append(sign * answer.objective)
    return out[0], out[1]


# -- bends ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("pieces", "name"), diagonals(2, [1, 5], BENDS))
def test_a_chain_holds_the_graph_and_touches_it_at_breakpoints(name: str, pieces: int) -> None:
    bend = BENDS[name]
    at = bend.breakpoints(-2.5, 3.0, pieces)
    assert at[0] == -2.5
    assert at[-1] == 3.0
    for value in [*at, *np.linspace(-2.5, 3.0, 8)]:
        mip = Mip()
        s = mip.column(-2.5, 3.0)
        y = chain(mip, s, bend, at)
        mip.row(s, value, value)
        low, high = reachable(mip, y)
        true = float(bend(np.array([value]))[0])
        assert low - 1e-7 <= true <= high + 1e-7
        if value in at:
            assert high - low <= 1e-6 * max(1.0, abs(true))


@pytest.mark.parametrize("name", BENDS)
def test_more_pieces_are_thinner_and_bounds_hold(name: str) -> None:
    bend = BENDS[name]
    s = np.linspace(-2.5, 3.0, 501)
    least_value, most = bend.span(-2.5, 3.0)
    assert least_value <= bend(s).min()
    assert most >= bend(s).max()

    def error(pieces: int) -> float:
        at = bend.breakpoints(-2.5, 3.0, pieces)
        return float(np.abs(np.interp(s, at, bend(at)) - bend(s)).max())

    assert error(16) <= error(4) + 1e-12
    assert error(32) <= 0.02 * (most - least_value)


def test_piecewise_linear_bends_are_exact_with_all_knots() -> None:
    at = ISOTONIC.breakpoints(-3.0, 3.0, 20)
    assert set(ISOTONIC.xs) <= set(at)
    assert ISOTONIC.corners(-0.5, 0.1).size == 0
    assert ISOTONIC.around(0.15, np.empty(0), 20).size == 0
    assert set(ISOTONIC.around(0.15, np.empty(0), 2)) >= {0.1, 0.2}


# -- thresholds of increasing functions ------------------------------------------------------------------------------
def test_least_is_the_first_float_that_is_enough() -> None:
    for value in (-3.0, -1e-9, 0.0, 0.3, 17.0):
        s = least(np.cbrt, value)
        assert np.cbrt(s) >= value
        assert np.cbrt(np.nextafter(s, -np.inf)) < value


def test_least_knows_always_never_flat_and_undefined() -> None:
    assert least(ISOTONIC, 0.0) == -np.inf
    assert least(ISOTONIC, 1.0 + 1e-9) == np.inf
    assert ISOTONIC(np.array([least(ISOTONIC, 0.1)]))[0] >= 0.1
    assert least(ISOTONIC, 0.1) == pytest.approx(-0.5)
    assert least(ISOTONIC, float(np.nextafter(0.1, 1.0))) == pytest.approx(0.1)
    assert least(np.log, 0.0, start=5.0) == 1.0
    assert least(np.sqrt, 2.0, start=1.0) == pytest.approx(4.0)


def test_bent_gives_probabilities_or_values() -> None:
    link = Bent(ISOTONIC, classes=True, bend=ISOTONIC)
    np.testing.assert_allclose(link(np.array([[0.15]])), [[0.6, 0.4]])
    assert link.inverse(0.4) == pytest.approx(0.15)
    np.testing.assert_allclose(Bent(np.exp, classes=False)(np.array([[1.0]])), [[np.e]])


# -- putting together ------------------------------------------------------------------------------------------------
def test_linear_parts_stay_linear() -> None:
    a, b, U = linear(2), linear(2, seed=1), points(20)
    both = stack([a, b])
    assert isinstance(both, Linear)
    np.testing.assert_allclose(both(U), np.hstack([a(U), b(U)]))
    W = np.array([[1.0, -2.0, 0.0, 3.0]])
    assert isinstance(combine(both, W, np.array([4.0])), Linear)
    np.testing.assert_allclose(combine(both, W, np.array([4.0]))(U), both(U) @ W.T + 4.0)
    average = mean([a, b], np.array([1.0, 3.0]))
    assert isinstance(average, Linear)
    np.testing.assert_allclose(average(U), (a(U) + 3 * b(U)) / 4)


def test_trees_stay_trees_and_add_up_as_the_framework_does() -> None:
    a, b, U = stump(0, 0.3, [0.1, 0.9], [0.6, 0.4]), stump(1, 2.0, [0.7, 0.3], [0.2, 0.8]), points(50)
    average = mean([a, b], np.array([1.0, 2.0]))
    assert isinstance(average, Trees)
    np.testing.assert_array_equal(average(U), np.average([a(U), b(U)], axis=0, weights=[1.0, 2.0]))
    second = combine(average, np.array([[0.0, 1.0]]))
    assert isinstance(second, Trees)
    np.testing.assert_array_equal(second(U)[:, 0], average(U)[:, 1])
    assert average.features() == {0, 1}
    both = stack([a, second])
    assert isinstance(both, Trees)
    np.testing.assert_array_equal(both(U), np.hstack([a(U), second(U)]))
    mip, scores = program(both, U[0])
    assert [reachable(mip, s)[0] for s in scores] == pytest.approx(both(U[:1])[0].tolist())


def test_other_parts_are_kept_and_flattened() -> None:
    a, t, U = linear(1), stump(1, 2.0, [1.0], [3.0]), points(30)
    both = stack([stack([a, t]), a])
    assert isinstance(both, Stack)
    assert both.n_outputs == len(both.parts) == 3
    twice = combine(combine(both, np.eye(3) * 2.0), np.array([[1.0, 1.0, 0.0]]))
    assert isinstance(twice, Combination)
    assert twice.inner is both
    np.testing.assert_allclose(twice(U)[:, 0], 2 * (a(U) + t(U))[:, 0])
    assert isinstance(mean([a, t]), Mean)
    assert set(both.cuts()) == {1}
    assert both.raw() == a.raw()
    assert both.refined(U[0]) is None


# -- twins ------------------------------------------------------------------------------------------------------------
EXACT = {
    "stack": Stack((linear(1), stump(1, 2.0, [1.0], [3.0]))),
    "combination": Combination(Stack((linear(1), stump(0, 0.3, [1.0], [3.0]))), np.array([[2.0, -1.0]]), np.ones(1)),
    "mean": mean([linear(1), stump(0, -0.2, [1.0], [3.0])], np.array([1.0, 3.0])),
    "isotonic": Curve(linear(1), (ISOTONIC,), pieces=99),
    "votes of a sign": Votes(Read(linear(1), ("n", "y"), "sign", threshold=0.2)),
    "votes of an argmax": Votes(Read(linear(3), ("k", "l", "m"), "argmax")),
    "votes of trees": Votes(Read(stump(1, 2.0, [0.5, 0.5], [0.2, 0.8]), ("n", "y"), "argmax")),
    "votes with a tie for the second": Votes(Read(stump(1, 2.0, [0.0], [-1.0]), ("n", "y"), "sign", strict=False)),
}


@pytest.mark.parametrize("name", EXACT)
def test_the_program_says_what_numpy_says(name: str) -> None:
    form = EXACT[name]
    for u in points(6, seed=3):
        mip, scores = program(form, u)
        for k, true in enumerate(form(u[None, :])[0]):
            low, high = reachable(mip, scores[k])
            assert low == pytest.approx(true, abs=1e-6)
            assert high == pytest.approx(true, abs=1e-6)


CURVED = {
    "sigmoid": Curve(linear(2), (SIGMOID, SIGMOID), pieces=3),
    "many knots": Curve(linear(1), (Broken(np.linspace(-4, 4, 60), np.linspace(0, 1, 60) ** 3),), pieces=3),
    "of trees": Curve(Stack((stump(1, 2.0, [-1.0], [3.0]), linear(1))), (SIGMOID, EXP), pieces=2),
    "softmax": Softmax(linear(3), pieces=3),
    "shares": Softmax(Curve(linear(3), (LOG_SIGMOID,) * 3, pieces=3), pieces=3),
    "mean of curves": mean([Curve(linear(1), (SIGMOID,), pieces=2), Curve(linear(1, 1), (SIGMOID,), pieces=2)]),
    "curve of a curve": Curve(Curve(linear(1), (SIGMOID,), pieces=2), (SQUARE,), pieces=2),
    "votes of a curve": Votes(
        Read(mean([Curve(linear(1), (SIGMOID,)), stump(1, 1.0, [0.2], [0.6])]), ("n", "y"), "sign", threshold=0.5)
    ),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "shares" else n for n in CURVED])
def test_a_curved_form_never_excludes_and_is_exact_where_refined(name: str) -> None:
    form = CURVED[name]
    for u in points(2, seed=5):
        true = form(u[None, :])[0]
        for finer, room in ((form, np.inf), (form.refined(u), 2e-5)):
            assert finer is not None
            np.testing.assert_array_equal(finer(u[None, :])[0], true)
            mip, scores = program(finer, u)
            for k, value in enumerate(true):
                low, high = reachable(mip, scores[k])
                assert low - 1e-6 <= value <= high + 1e-6
                assert high - low <= room


def test_refining_where_it_is_exact_is_not_needed() -> None:
    u = points(1)[0]
    for name, form in CURVED.items():
        finer = form.refined(u)
        assert finer is not None
        assert finer.refined(u) is None, name
        if not name.startswith("votes"):
            np.testing.assert_array_equal(refused(finer)[0], u)


def test_a_softmax_sums_to_one_in_the_program() -> None:
    mip, scores = program(Softmax(linear(3)), points(1)[0], fixed=False)
    low, high = reachable(mip, Affine.total(scores))
    assert low == pytest.approx(1.0, abs=1e-7)
    assert high == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("size", [1e7, 1e12, 1e15])
def test_a_softmax_of_huge_scores_is_a_program_of_finite_numbers(size: float) -> None:
    weights = size * np.array([[1.0], [-0.3], [0.7]]) * np.eye(1, SCHEMA.width)
    for offset in (0.0, size):
        mip, scores = program(Softmax(Linear(SCHEMA, weights, np.array([0.0, offset, 1.0]))), points(1)[0])
        arrays = mip.arrays()
        assert np.isfinite(arrays.matrix.data).all()
        assert np.isfinite([mip.bounds(score) for score in scores]).all()


def test_a_curve_of_what_hardly_changes_is_an_interval() -> None:
    """Around 8e6 the argument changes by 1: a solver does not see that, and called a chain over it infeasible."""
    near, form = points(1)[0], Linear(SCHEMA, 0.1 * np.eye(1, SCHEMA.width), np.array([8e6]))
    mip, (score,) = program(Curve(form, (SIGMOID,)), near, fixed=False)
    assert mip.bounds(score) == (1.0, 1.0)
    assert not mip.arrays().integer.any()
    curve = Curve(form, (SOFTPLUS,))
    mip, (score,) = program(curve, near)
    low, high = mip.bounds(score)
    assert low <= curve(near[None, :])[0, 0] <= high
    finer = curve.refined(near)  # where the model was asked, it is exact again
    assert finer is not None
    mip, (score,) = program(finer, near)
    assert reachable(mip, score) == pytest.approx((curve(near[None, :])[0, 0],) * 2)


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize(("slope", "offset"), [(1.0, 0.0), (0.1, 8e6)])
def test_a_curve_is_exact_at_the_ends_of_its_argument_once_refined(slope: float, offset: float, end: int) -> None:
    curve = Curve(Linear(SCHEMA, slope * np.eye(1, SCHEMA.width), np.array([offset])), (SOFTPLUS,))
    u = points(1)[0]
    box = Box.of(SCHEMA, u)
    u[0] = (box.lower[0], box.upper[0])[end]
    finer = curve.refined(u)
    assert finer is not None
    mip, (score,) = program(finer, u)
    exact = curve(u[None, :])[0, 0]
    assert reachable(mip, score) == pytest.approx((exact, exact), rel=1e-9, abs=1e-9)


def test_votes_keep_away_from_ties_only_after_a_refusal() -> None:
    form = Votes(Read(Linear(SCHEMA, np.eye(1, SCHEMA.width), np.zeros(1)), ("n", "y"), "sign"))
    u = points(1)[0]
    u[0] = 0.0
    mip, scores = program(form, u)
    assert reachable(mip, scores[0]) == pytest.approx((0.0, 1.0))  # at a tie of continuous scores both are left open
    finer = form.refined(u)
    assert finer is not None
    assert finer.level == 1
    u[0] = 9e-6  # of a score as large as 1, solvers overlook this much of its range
    assert form.refined(u) is not None
    u[0] = 1.5
    assert form.refined(u) is None


# -- bounds -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [*EXACT, *CURVED])
@pytest.mark.parametrize("budget", [None, 0.7])
def test_bounds_hold_over_the_box_and_within_a_budget(name: str, budget: float | None) -> None:
    form = {**EXACT, **CURVED}[name]
    U = points(400, seed=8)
    factual = U[0]
    rate = np.concatenate([[0.25, 0.25], 1.0 - factual[2:]])
    cost = np.abs(U[:, :2] - factual[:2]) @ rate[:2] + U[:, 2:] @ rate[2:]
    given = None if budget is None else Budget(budget, factual, rate)
    inside = U if budget is None else U[cost <= budget]
    low, high = score_bounds(form, Box.of(SCHEMA, factual), given)
    scores = form(inside)
    assert (scores >= low - 1e-9).all()
    assert (scores <= high + 1e-9).all()
    if budget is None:
        assert (low <= high).all()


@pytest.mark.parametrize("name", one_in(2, ["votes of an argmax", *CURVED]))
def test_a_form_for_a_budget_is_thinner_and_holds_what_the_budget_allows(name: str) -> None:
    form = {**EXACT, **CURVED}[name]
    factual, near = points(2, seed=11)
    near = np.concatenate([factual[:1] + 0.4, factual[1:]])
    rate = np.concatenate([[0.25, 0.25], 1.0 - factual[2:]])
    box = Box.of(SCHEMA, factual)
    for finer in (form, form.refined(near) or form):
        bounded = for_budget(finer, box, Budget(0.2, factual, rate))
        assert bounded is not finer
        np.testing.assert_array_equal(bounded(near[None, :]), form(near[None, :]))
        mip, scores = program(bounded, near)
        wide, same = program(finer, near)
        for k, true in enumerate(form(near[None, :])[0]):
            low, high = reachable(mip, scores[k])
            least_value, most = reachable(wide, same[k])
            assert low - 1e-6 <= true <= high + 1e-6
            assert high - low <= most - least_value + 1e-6
    assert for_budget(linear(1), box, Budget(0.2, factual, rate)).n_outputs == 1


# -- steps ------------------------------------------------------------------------------------------------------------
def test_a_stepped_form_is_its_inner_form_over_the_literals() -> None:
    lift = Lift(SCHEMA, np.array([0, 1, 1]), np.array([0.25, 1.0, 3.0]))
    rng = np.random.default_rng(0)
    inner = Linear(lift.longer, rng.normal(size=(1, lift.longer.width)), np.zeros(1))
    form = Stepped(replace(inner, weights=np.where(np.arange(8) == 1, 0.0, inner.weights)), lift)
    U = points(50)
    literals = np.column_stack([U[:, 0] <= 0.25, U[:, 1] <= 1.0, U[:, 1] <= 3.0])
    W = form.inner.weights[0]
    np.testing.assert_allclose(form(U)[:, 0], U @ W[:5] + literals @ W[5:])
    assert form.raw() == {0}
    assert form.features() == {0, 1, 2}
    for u in points(5, seed=2):
        mip, scores = program(form, u)
        true = float(form(u[None, :])[0, 0])
        assert reachable(mip, scores[0]) == pytest.approx((true, true), abs=1e-6)
    low, high = score_bounds(form, Box.of(SCHEMA, U[0]))
    assert low[0] <= form(U).min()
    assert high[0] >= form(U).max()
    assert form.refined(U[0]) is None
    assert isinstance(for_budget(form, Box.of(SCHEMA, U[0]), Budget(0.2, U[0], np.ones(SCHEMA.width))), Stepped)


def test_a_network_over_literals() -> None:
    lift = Lift(SCHEMA, np.array([0, 1]), np.array([0.25, 2.0]))
    rng = np.random.default_rng(1)
    graph = Graph(lift.longer)
    signal = graph.rectify(graph.input(rng.normal(size=(4, lift.longer.width)), rng.normal(size=4)))
    form = Stepped(graph.network(signal.affine(rng.normal(size=(1, 4)), [0.1])), lift)
    factual = points(1)[0]
    bounded = for_budget(form, Box.of(SCHEMA, factual), Budget(9.0, factual, np.zeros(SCHEMA.width)))
    for u in points(5, seed=2):
        true = float(form(u[None, :])[0, 0])
        for same in (form, bounded):
            mip, scores = program(same, u)
            assert reachable(mip, scores[0]) == pytest.approx((true, true), abs=1e-6)
