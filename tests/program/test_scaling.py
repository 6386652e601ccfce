"""Scaling: a balanced program is the same program, in numbers near one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifonly.program.mip import Affine, Convex, Mip, MipArrays, Square
from ifonly.program.scaling import balance, row_near_one

units = st.integers(-9, 12).map(lambda k: 10.0**k)


def program(a: float, b: float) -> MipArrays:
    """Three columns in units `a`, `b` and 1: the same program for all units, but for these."""
    mip = Mip()
    x, y = mip.column(-2.0 * a, 5.0 * a), mip.column(3.0 * b, 4.0 * b)
    z = mip.column(7.0, 9.0, integer=True)
    mip.row(x * (1.0 / a) + y * (2.0 / b) - z, -1.0, 4.0)
    mip.row(x * 3.0 - y * (a / b), upper=2.0 * a)
    mip.minimise(x * (1.5 / a) + z * 0.25 + 2.0)
    mip.minimise_square(Square(y - 3.5 * b, 4.0 / b**2))
    mip.convex(
        Convex((x, z), lambda d: float(d[0] ** 2 / a**2 + d[1] - 20.0), lambda d: np.array([2 * d[0] / a**2, 1.0]))
    )
    return mip.arrays()


@given(units, units, st.floats(0, 1), st.floats(0, 1), st.integers(7, 9))
@settings(max_examples=60, deadline=None)
def test_points_costs_and_rows_are_those_of_the_program(a: float, b: float, s: float, t: float, z: int) -> None:
    own = program(a, b)
    balanced = balance(own)
    v = np.array([a * (-2.0 + 7.0 * s), b * (3.0 + t), float(z)])
    w = balanced.scaled(v)
    assert balanced.original(w) == pytest.approx(v, rel=1e-12)
    assert balanced.cost(balanced.program.objective(w)) == pytest.approx(own.objective(v), rel=1e-9)
    held = ((own.matrix @ v >= own.row_lower) & (own.matrix @ v <= own.row_upper)).tolist()
    there = balanced.program
    activity = there.matrix @ w
    near = np.minimum(np.abs(activity - there.row_lower), np.abs(activity - there.row_upper)) < 1e-9
    assert [h for h, n in zip(held, near, strict=True) if not n] == [
        bool(h)
        for h, n in zip((activity >= there.row_lower) & (activity <= there.row_upper), near, strict=True)
        if not n
    ]
    assert there.convex[0].function(there.convex[0].at(w)) == pytest.approx(own.convex[0].function(own.convex[0].at(v)))


@given(units, units)
@settings(max_examples=40, deadline=None)
def test_the_scaled_program_speaks_in_numbers_near_one_whatever_the_units(a: float, b: float) -> None:
    there, usual = balance(program(a, b)).program, balance(program(1.0, 1.0)).program
    assert np.abs(there.matrix).max(axis=1).toarray().ravel() == pytest.approx(1.0, rel=0.5)
    assert np.abs([there.lower, there.upper]).max() <= 4.0
    assert np.abs(there.cost).max() == pytest.approx(np.abs(usual.cost).max(), rel=1.0)
    assert there.squares[0].weight <= 2.0 * np.abs(usual.cost).max() + 2.0 * usual.squares[0].weight


def test_factors_lose_no_digit() -> None:
    balanced = balance(program(1e9, 1e-9))
    assert (np.log2(balanced.factor) % 1.0 == 0.0).all()
    assert np.log2(balanced.objective_factor) % 1.0 == 0.0


def test_whole_numbers_stay_whole() -> None:
    mip = Mip()
    mip.column(1e9, 1e9 + 8.0, integer=True)
    balanced = balance(mip.arrays())
    assert balanced.factor[0] == 1.0
    assert (balanced.program.lower[0], balanced.program.upper[0]) == (0.0, 8.0)


def test_an_entry_that_a_solver_takes_for_zero_becomes_room() -> None:
    mip = Mip()
    x, y = mip.column(0.0, 1.0), mip.column(-1.0, 1.0, integer=True)
    mip.row(x + y * 1e-12, lower=0.5, upper=0.75)
    there = balance(mip.arrays()).program
    assert there.matrix.nnz == 1
    assert there.row_lower[0] == pytest.approx(0.5 - 1e-12, abs=1e-15)
    assert there.row_lower[0] < 0.5 < 0.75 < there.row_upper[0]


def test_a_further_row_without_dust_admits_everything_that_the_row_admits() -> None:
    mip = Mip()
    mip.columns(2, [-3.0, 0.0], [5.0, 2.0])
    whole = mip.arrays()
    row = Affine(np.array([0, 1]), np.array([4e6, 1e-5]), 2.0)
    near, limit = row_near_one(whole, row, 10.0)
    assert np.abs(near.values).max() == pytest.approx(1.0, rel=0.5)
    for v in np.random.default_rng(0).uniform(whole.lower, whole.upper, (500, 2)):
        assert row.value(v) > 10.0 or near.value(v) <= limit + 1e-15


@pytest.mark.parametrize("seed", range(8))
def test_rounding_of_a_column_far_from_zero_becomes_room(seed: int) -> None:
    """``a x + b y = a 1e9``, where ``a 1e9`` was rounded, has ``x = 1e9, y = 0`` among its points."""
    a, b = np.random.default_rng(seed).uniform(0.5, 3.0, 2)
    mip = Mip()
    x, y = mip.column(999_999_998.0, 1e9, integer=True), mip.column(0.0, 1.0)
    mip.row(x * a + y * b, a * 1e9, a * 1e9)
    balanced = balance(mip.arrays())
    point = Fraction(2), Fraction(0)  # in the scaled columns, which count from 999,999,998
    row, scale = balanced.program.matrix.toarray()[0], balanced.program.row_factor[0]
    exact = sum(Fraction(float(c)) * p for c, p in zip(row, point, strict=True))
    assert Fraction(float(balanced.program.row_lower[0])) <= exact <= Fraction(float(balanced.program.row_upper[0]))
    assert balanced.program.row_upper[0] - balanced.program.row_lower[0] < 1e-4 * scale
