"""The waist: affine algebra, interval bounds, and arrays that say exactly what was asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifonly.program.mip import Affine, Convex, Mip, Square

N = 4
numbers = st.floats(-100, 100, allow_nan=False)
points = st.lists(numbers, min_size=N, max_size=N).map(np.array)


@st.composite
def expressions(draw: st.DrawFn) -> Affine:
    size = draw(st.integers(0, 6))
    columns = draw(st.lists(st.integers(0, N - 1), min_size=size, max_size=size))
    values = draw(st.lists(numbers, min_size=size, max_size=size))
    return Affine(np.array(columns, dtype=np.int64), np.array(values, dtype=np.float64), draw(numbers))


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-6 * max(1.0, abs(a), abs(b))


@given(expressions(), expressions(), points, numbers)
def test_algebra_is_that_of_the_values(a: Affine, b: Affine, v: np.ndarray, k: float) -> None:
    x, y = a.value(v), b.value(v)
    assert close((a + b).value(v), x + y)
    assert close((a - b).value(v), x - y)
    assert close((a + k).value(v), x + k)
    assert close((k + a).value(v), x + k)
    assert close((a - k).value(v), x - k)
    assert close((k - a).value(v), k - x)
    assert close((a * k).value(v), x * k)
    assert close((k * a).value(v), x * k)
    assert close((-a).value(v), -x)
    assert close(Affine.total([a, b, a]).value(v), 2 * x + y)


def test_an_empty_sum_is_zero() -> None:
    assert Affine.total([]).is_constant
    assert Affine.total([]).value(np.zeros(3)) == 0.0
    assert not Affine.of(1).is_constant
    assert Affine.of(1, 2.0, 3.0).value(np.array([0.0, 5.0])) == 13.0


@given(expressions(), st.lists(st.tuples(numbers, numbers), min_size=N, max_size=N), st.data())
def test_interval_bounds_hold_everywhere_and_are_reached(
    expression: Affine, ends: list[tuple[float, float]], data: st.DataObject
) -> None:
    mip = Mip()
    lower, upper = np.array([min(e) for e in ends]), np.array([max(e) for e in ends])
    mip.columns(N, lower, upper)
    low, high = mip.bounds(expression)
    share = np.array(data.draw(st.lists(st.floats(0, 1), min_size=N, max_size=N)))
    value = expression.value(lower + share * (upper - lower))
    assert low - 1e-6 * max(1, abs(low)) <= value <= high + 1e-6 * max(1, abs(high))
    if len(set(expression.columns.tolist())) == expression.columns.size:  # no column twice: the ends are attained
        at_low = np.where(np.bincount(expression.columns, expression.values, N) >= 0, lower, upper)
        assert close(expression.value(at_low), low)


@given(points, st.floats(-10, 10), st.floats(0, 10))
def test_tangents_lie_below_the_square_and_touch_it(v: np.ndarray, at: float, weight: float) -> None:
    square = Square(Affine.of(0, 2.0, -1.0) + Affine.of(2), weight)
    inner = square.inner.value(v)
    assert square.tangent(at).value(v) <= inner**2 + 1e-6 * max(1, inner**2)
    assert close(square.tangent(inner).value(v), inner**2)


def test_tangent_of_a_convex_demand_cuts_nothing_valid() -> None:
    demand = Convex((Affine.of(0), Affine.of(1)), lambda d: float(d @ d - 1.0), lambda d: 2.0 * d)
    for point in np.random.default_rng(0).normal(size=(20, 2)):
        line = demand.tangent(point)
        assert close(line.value(point), demand.function(point))
        for angle in np.linspace(0, 2 * np.pi, 13):
            assert line.value(np.array([np.cos(angle), np.sin(angle)])) <= 1e-12
    assert demand.at(np.array([3.0, 4.0])).tolist() == [3.0, 4.0]


def test_arrays_say_what_was_asked() -> None:
    mip = Mip()
    x = mip.column(-1.0, 2.0, name="x")
    z = mip.columns(2, 0.0, [1.0, 5.0], integer=True, name="z")
    unnamed = mip.column()
    mip.row(x + Affine.of(int(z[0]), 3.0) + 0.5, lower=1.0, upper=4.0)
    mip.row(x + x, upper=3.0)
    mip.rows(np.array([0, 0, 1]), np.array([0, 1, 2]), np.array([1.0, -1.0, 2.0]), [-np.inf, 0.0], [0.0, 1.0], 2)
    mip.minimise(x * 2.0 + 1.0)
    mip.minimise(x + unnamed * 4.0)
    mip.minimise_square(Square(x, 3.0))
    arrays = mip.arrays()
    assert arrays.names == ("x", "z_0", "z_1", "v_3")
    assert arrays.matrix.toarray().tolist() == [[1, 3, 0, 0], [2, 0, 0, 0], [1, -1, 0, 0], [0, 0, 2, 0]]
    assert arrays.row_lower.tolist() == [0.5, -np.inf, -np.inf, 0.0]
    assert arrays.row_upper.tolist() == [3.5, 3.0, 0.0, 1.0]
    assert arrays.lower.tolist() == [-1, 0, 0, 0]
    assert arrays.upper.tolist() == [2, 1, 5, 1]
    assert arrays.integer.tolist() == [False, True, True, False]
    assert arrays.cost.tolist() == [3, 0, 0, 4]
    assert (arrays.n_columns, arrays.n_rows) == (4, 4)
    v = np.array([1.0, 0.5, 0.0, 2.0])
    assert arrays.objective(v) == 3 + 8 + 1 + 3
    assert arrays.violation(v) == 1.0  # the last column is 1 above its bound; integrality is off by one half
    assert arrays.violation(np.array([0.5, 1.0, 0.0, 0.0])) == 0.0
    assert arrays.violation(np.array([0.5, 1.0, 0.25, 0.0])) == 0.25
    low, high = mip.column_bounds(np.array([2]))
    assert (low.tolist(), high.tolist()) == ([0.0], [5.0])
    mip.clear_objective()
    assert mip.arrays().objective(v) == 0.0


def test_an_empty_program() -> None:
    arrays = Mip().arrays()
    assert (arrays.n_columns, arrays.n_rows) == (0, 0)
    assert arrays.objective(np.empty(0)) == 0.0
    assert arrays.violation(np.empty(0)) == 0.0
    assert Mip().bounds(Affine(constant=2.0)) == (2.0, 2.0)


def test_bounds_of_what_is_unbounded() -> None:
    mip = Mip()
    x = mip.column(-np.inf, 1.0)
    assert mip.bounds(x * -2.0) == (-2.0, np.inf)
    assert mip.bounds(x * 2.0 + 1.0)[1] == 3.0


@pytest.mark.parametrize("bad", [np.array([2.0]), np.array([-1.0])])
def test_violation_measures_bounds_without_rows(bad: np.ndarray) -> None:
    mip = Mip()
    mip.column()
    assert mip.arrays().violation(bad) == 1.0
