"""Squares and convex rows by tangents, against closed forms and fine grids."""

from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from ifonly.arrays import FloatArray
from ifonly.program.mip import Affine, Convex, Mip, MipArrays, Square
from ifonly.solvers.backend import IncumbentHook, Limits, Solution, Status
from ifonly.solvers.highs import BACKEND as HIGHS
from ifonly.solvers.tangents import solve


def projection(
    normal: FloatArray, offset: float, weights: FloatArray, integer: bool = False, width: float = 20.0
) -> MipArrays:
    """``min sum_i w_i x_i^2`` over ``normal @ x >= offset``."""
    mip = Mip()
    x = [mip.column(-width, width, integer=integer) for _ in normal]
    mip.row(Affine.total(e * float(a) for e, a in zip(x, normal, strict=True)), lower=offset)
    for e, w in zip(x, weights, strict=True):
        mip.minimise_square(Square(e, float(w)))
    return mip.arrays()


@pytest.mark.parametrize("seed", range(6))
def test_projection_on_a_halfspace(seed: int) -> None:
    rng = np.random.default_rng(seed)
    normal, weights = rng.normal(size=4), rng.uniform(0.1, 5.0, 4)
    answer = solve(projection(normal, 3.0, weights), HIGHS, Limits())
    closed = normal / weights * 3.0 / (normal @ (normal / weights))
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(weights @ closed**2, rel=2e-6)
    assert answer.bound <= weights @ closed**2 + 1e-9
    assert answer.values == pytest.approx(closed, abs=1e-2)


def test_widely_different_units() -> None:
    # Income in cents beside a rate: squares of raw values span twelve orders of magnitude. With plain (unweighted)
    # epigraphs HiGHS called a point 60,000 times too dear optimal.
    normal, weights = np.array([-1.2e-5, 2.0, -0.7]), np.array([4e-9, 0.11, 3e-4])
    answer = solve(projection(normal, 0.13, weights, width=1e6), HIGHS, Limits())
    closed = normal / weights * 0.13 / (normal @ (normal / weights))
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(weights @ closed**2, abs=2e-6)


@pytest.mark.parametrize("seed", range(4))
def test_integer_squares_equal_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    normal, weights = rng.normal(size=3), rng.uniform(0.2, 3.0, 3)
    answer = solve(projection(normal, 4.0, weights, integer=True, width=8.0), HIGHS, Limits())
    grid = np.stack(np.meshgrid(*[np.arange(-8, 9)] * 3), -1).reshape(-1, 3)
    best = (weights * grid[grid @ normal >= 4.0] ** 2).sum(axis=1)
    assert answer.status is (Status.OPTIMAL if best.size else Status.INFEASIBLE)
    if best.size:
        assert answer.objective == pytest.approx(best.min(), abs=1e-6)


def test_a_switch_gives_the_perspective_tangent() -> None:
    # x = 0 unless z: the tangent at d0 is 2 d0 x - d0^2 z, tighter than the plain one for every fractional z.
    square = Square(Affine.of(0), 1.0, Affine.of(1))
    plain = Square(Affine.of(0), 1.0)
    point = np.array([1.0, 0.5])
    assert square.tangent(2.0).value(point) == 2 * 2.0 * 1.0 - 4.0 * 0.5
    assert square.tangent(2.0).value(point) > plain.tangent(2.0).value(point)
    for x in np.linspace(-3, 3, 7):  # valid wherever z = 1, and at the origin with z = 0
        assert square.tangent(2.0).value(np.array([x, 1.0])) <= x * x + 1e-12
    assert square.tangent(2.0).value(np.array([0.0, 0.0])) == 0.0


def softmax_row(scores: tuple[Affine, ...], want: int, p: float) -> Convex:
    """``p(want) >= p`` written as log-sum-exp of score differences."""
    inner = tuple(s - scores[want] for k, s in enumerate(scores) if k != want)

    def function(d: FloatArray) -> float:
        return float(np.log1p(np.exp(d).sum()) + np.log(p))

    def gradient(d: FloatArray) -> FloatArray:
        return np.exp(d) / (1.0 + np.exp(d).sum())

    return Convex(inner, function, gradient)


@pytest.mark.parametrize("seed", range(3))
def test_convex_row_against_a_nonlinear_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W, cost, p = rng.normal(size=(3, 2)), rng.uniform(0.5, 2.0, 2), 0.6
    mip = Mip()
    x = [mip.column(0.0, 6.0) for _ in range(2)]
    scores = tuple(Affine.total(e * float(w) for e, w in zip(x, row, strict=True)) for row in W)
    mip.convex(softmax_row(scores, 0, p))
    mip.minimise(x[0] * float(cost[0]) + x[1] * float(cost[1]))
    answer = solve(mip.arrays(), HIGHS, Limits(gap=1e-8))

    def room(v: FloatArray) -> float:
        e = np.exp(W @ v)
        return float(e[0] / e.sum() - p)

    starts = [
        minimize(lambda v: cost @ v, s, bounds=[(0, 6)] * 2, constraints={"type": "ineq", "fun": room})
        for s in ([0.1, 0.1], [5.0, 5.0], [5.0, 0.1], [0.1, 5.0])
    ]
    reached = [s.fun for s in starts if s.success and room(s.x) > -1e-7]
    if answer.status is Status.INFEASIBLE:
        assert not reached
    else:
        assert answer.objective == pytest.approx(min(reached), abs=1e-5)
        assert room(answer.values) >= -1e-8


def test_an_integer_assignment_that_no_convex_row_allows_is_left_behind() -> None:
    # The cheapest integers break the row even after all continuous freedom is used; the loop must move on.
    mip = Mip()
    z, x = mip.column(0.0, 5.0, integer=True), mip.column(0.0, 0.5)
    mip.convex(Convex((z + x,), lambda d: float(np.exp(-d[0]) - 0.1), lambda d: -np.exp(-d)))
    mip.minimise(z + x * 0.1)
    answer = solve(mip.arrays(), HIGHS, Limits(gap=1e-8))
    assert answer.status is Status.OPTIMAL
    assert answer.objective == pytest.approx(2 + 0.1 * (np.log(10) - 2), abs=1e-6)


def test_impossible_convex_row() -> None:
    mip = Mip()
    x = mip.column(0.0, 1.0)
    mip.convex(Convex((x,), lambda d: float(np.exp(-d[0]) - 0.1), lambda d: -np.exp(-d)))
    answer = solve(mip.arrays(), HIGHS, Limits())
    assert answer.status is Status.INFEASIBLE
    assert answer.bound == np.inf


def test_cutoff_reaches_through_the_tangents() -> None:
    program = projection(np.array([1.0, 2.0]), 5.0, np.array([1.0, 1.0]), integer=True)  # (1, 2): cost 5
    assert solve(program, HIGHS, Limits(cutoff=6.0)).objective == pytest.approx(5.0)
    assert solve(program, HIGHS, Limits(cutoff=4.5)).status is Status.INFEASIBLE


def test_incumbents_are_told_with_a_true_bound() -> None:
    program = projection(np.array([1.0, 2.0, -0.3]), 5.3, np.array([1.0, 1.0, 2.0]), integer=True)
    heard: list[tuple[float, float]] = []
    answer = solve(program, HIGHS, Limits(), on_incumbent=lambda o, b, v: heard.append((o, b)))
    assert heard
    assert all(bound <= answer.objective + 1e-6 <= objective + 2e-6 for objective, bound in heard)
    assert [o for o, _ in heard] == [o for o, _ in answer.pool]


class Watched:
    """HiGHS, with a hook before each solve."""

    name, label = "watched", "Watched"
    capabilities = HIGHS.capabilities

    def __init__(self, before) -> None:
        self.before, self.calls = before, 0

    def available(self) -> bool:
        return True

    def version(self) -> str:
        return HIGHS.version()

    def solve(
        self,
        program: MipArrays,
        limits: Limits,
        on_incumbent: IncumbentHook | None = None,
    ) -> Solution:
        self.calls += 1
        changed = self.before(self.calls)
        return HIGHS.solve(program, limits, on_incumbent) if changed is None else changed


def with_an_integer(program: MipArrays) -> MipArrays:
    """The same program with its first column whole, so that more than linear programs are asked."""
    integer = program.integer.copy()
    integer[0] = True
    return replace(program, integer=integer)


SLOW = with_an_integer(projection(np.array([1.0, 2.0, -0.3, 0.4]), 5.3, np.array([1.0, 1.1, 2.0, 0.7])))


def test_interrupt_between_solves_keeps_the_best_point() -> None:
    def before(call: int) -> None:
        if call == 4:
            signal.raise_signal(signal.SIGINT)

    answer = solve(SLOW, Watched(before), Limits(gap=1e-7))
    exact = solve(SLOW, HIGHS, Limits(gap=1e-7))
    assert answer.interrupted
    assert answer.status is Status.FEASIBLE
    assert SLOW.violation(answer.values) <= 1e-9
    assert answer.bound - 1e-7 <= exact.objective <= answer.objective + 1e-7


def test_interrupt_before_anything_was_found() -> None:
    def before(call: int) -> None:
        signal.raise_signal(signal.SIGINT)

    answer = solve(SLOW, Watched(before), Limits())
    assert answer.interrupted
    assert answer.status is Status.INTERRUPTED
    assert answer.values is None


def test_interrupt_within_the_continuous_rest_is_not_swallowed() -> None:
    def before(call: int) -> Solution | None:
        return Solution(Status.INTERRUPTED, interrupted=True) if call == 3 else None

    backend = Watched(before)
    answer = solve(SLOW, backend, Limits(gap=1e-7))
    assert answer.interrupted
    assert backend.calls == 3
    assert answer.values is not None


def test_out_of_time_after_a_first_point() -> None:
    def before(call: int) -> Solution | None:
        return Solution(Status.OUT_OF_TIME) if call > 3 else None

    answer = solve(SLOW, Watched(before), Limits(gap=1e-7))
    exact = solve(SLOW, HIGHS, Limits(gap=1e-7))
    assert answer.status is Status.FEASIBLE
    assert answer.bound - 1e-7 <= exact.objective <= answer.objective + 1e-7


@pytest.mark.parametrize(("cutoff", "status"), [(np.inf, Status.OPTIMAL), (0.0, Status.INFEASIBLE)])
def test_nothing_left_below_the_cutoff(cutoff: float, status: Status) -> None:
    # After a first round the relaxation is called empty: what lies within the cut-off was optimal, the rest is nothing.
    calls = []

    def before(call: int) -> Solution | None:
        calls.append(call)
        return Solution(Status.INFEASIBLE, bound=np.inf) if call > 3 else None

    answer = solve(SLOW, Watched(before), Limits(gap=1e-7, cutoff=cutoff))
    assert answer.status is status
    assert (answer.values is None) == (status is Status.INFEASIBLE)


def test_no_time_at_all() -> None:
    answer = solve(SLOW, Watched(lambda call: Solution(Status.OUT_OF_TIME)), Limits())
    assert answer.status is Status.OUT_OF_TIME
    assert answer.values is None


def test_a_linear_program_is_asked_twice_and_no_more() -> None:
    program = replace(SLOW, squares=())
    backend = Watched(lambda call: None)
    assert solve(replace(program, cost=np.ones(4)), backend, Limits()).status is Status.OPTIMAL
    assert backend.calls == 2


def test_a_square_in_a_tiny_unit() -> None:
    # Its tangents have entries below 1e-9, which HiGHS takes for nothing.
    mip = Mip()
    x = mip.column(-1e6, 1e6)
    mip.row(x, lower=-7.5e5, upper=-7.5e5)
    mip.minimise_square(Square(x * 1e-5, 1e-6))
    mip.minimise(mip.column(1.0, 2.0, integer=True))
    found = solve(mip.arrays(), HIGHS, Limits(gap=1e-8))
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(1.0 + 56.25e-6, abs=1e-9)
