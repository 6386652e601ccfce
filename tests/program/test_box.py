"""Boxes: intersections stay on the grid, the factual is always inside, emptiness names the feature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifonly.data.schema import Categorical, Integer, Numeric, Schema
from ifonly.program.box import Box

SCHEMA = Schema(
    (
        Numeric("real", -1.0, 1.0),
        Integer("whole", 0.0, 10.0),
        Numeric("cents", 0.0, 2.0, precision=2),
        Categorical("colour", ("r", "g", "b")),
    )
)
FACTUAL = np.array([0.5, 4.0, 1.25, 0.0, 1.0, 0.0])


def test_the_factual_is_inside_even_when_it_lies_outside() -> None:
    outside = np.array([3.0, -2.0, 1.0, 1.0, 0.0, 0.0])
    box = Box.of(SCHEMA, outside)
    assert box.contains(outside[None, :])[0]
    assert (box.lower[:2].tolist(), box.upper[:2].tolist()) == ([-1.0, -2.0], [3.0, 10.0])


def test_missing_entries_stay_missing() -> None:
    gone = np.array([np.nan, 4.0, 1.25, 0.0, 0.0, 0.0])
    box = Box.of(SCHEMA, gone)
    assert box.missing.tolist() == [True, False, False, True]
    assert box.contains(gone[None, :])[0]
    assert not box.contains(FACTUAL[None, :])[0]
    assert box.is_fixed(0)
    assert box.empty() is None


@given(st.floats(-3, 13), st.floats(-3, 13))
def test_narrowing_keeps_exactly_the_grid_points_within(low: float, high: float) -> None:
    box = Box.of(SCHEMA, FACTUAL)
    box.narrow(1, low, high)
    kept = [k for k in range(11) if box.lower[1] <= k <= box.upper[1]]
    assert kept == [k for k in range(11) if low - 1e-9 <= k <= high + 1e-9]
    if kept:
        assert (box.lower[1], box.upper[1]) == (kept[0], kept[-1])
    else:
        assert box.empty() == 1


@given(st.integers(0, 200), st.integers(0, 200))
def test_ends_on_a_decimal_grid_are_not_lost_to_floating_point(a: int, b: int) -> None:
    box = Box.of(SCHEMA, FACTUAL)
    box.narrow(2, a / 100, b / 100)
    assert (box.lower[2], box.upper[2]) == (a / 100, b / 100)


def test_levels_intersect_and_may_run_out() -> None:
    box = Box.of(SCHEMA, FACTUAL)
    box.keep_levels(3, np.array([True, True, False]))
    assert not box.is_fixed(3)
    box.keep_levels(3, np.array([False, True, True]))
    assert box.is_fixed(3)
    assert box.contains(FACTUAL[None, :])[0]
    assert not box.contains(np.array([[0.5, 4.0, 1.25, 1.0, 0.0, 0.0]]))[0]
    box.keep_levels(3, np.array([True, False, False]))
    assert box.empty() == 3


def test_a_copy_is_independent() -> None:
    box = Box.of(SCHEMA, FACTUAL)
    narrow = box.copy()
    narrow.narrow(0, 0.5, 0.5)
    narrow.keep_levels(3, np.array([False, True, False]))
    assert narrow.is_fixed(0)
    assert not box.is_fixed(0)
    assert box.allowed.all()


def test_tolerance_is_for_numbers_only() -> None:
    box = Box.of(SCHEMA, FACTUAL)
    near = FACTUAL.copy()
    near[0] = 1.0 + 1e-10
    assert not box.contains(near[None, :])[0]
    assert box.contains(near[None, :], 1e-9)[0]


@pytest.mark.parametrize("j", range(4))
def test_a_full_box_is_not_empty(j: int) -> None:
    box = Box.of(SCHEMA, FACTUAL)
    assert box.empty() is None
    assert not box.is_fixed(j)


def test_many_steps_from_zero_the_last_value_of_a_grid_is_kept() -> None:
    # 8192.9062 / 0.0001 is a little less than 81929062 in floating point
    schema = Schema((Numeric("x", 0.0, 9000.0, precision=4),))
    box = Box.of(schema, np.array([1.0]))
    box.narrow(0, 0.1 + 0.2, 8192.9062)
    assert (box.lower[0], box.upper[0]) == (0.3, 8192.9062)
    box.narrow(0, 0.30001, 8192.90619)
    assert (box.lower[0], box.upper[0]) == (0.3001, 8192.9061)


def test_all_features_together_are_each_alone() -> None:
    table = pd.DataFrame(
        {"a": [0.5, 2.5, np.nan], "b": [1, 4, 2], "c": ["x", "y", "z"], "d": [0.0, 9.0, 3.0], "e": ["u", "v", "u"]}
    )
    schema = Schema.infer(table)
    rng = np.random.default_rng(0)
    rows = schema.encode(table, missing=True)
    U = np.vstack([rows] + [rows[rng.integers(0, 3, 3)] + rng.normal(size=rows.shape) for _ in range(30)])
    for factual in rows:
        box = Box.of(schema, factual)
        assert box.empty() is None
        box.narrow(1, 2, 3)
        box.keep_levels(2, np.array([True, False, True]))
        for tolerance in (0.0, 0.1):
            each = np.all([box.contains_at(j, U, tolerance) for j in range(len(schema))], axis=0)
            np.testing.assert_array_equal(box.contains(U, tolerance), each)
        for j, narrow in ((4, lambda b: b.keep_levels(4, np.array([False, False]))), (1, lambda b: b.narrow(1, 9, 5))):
            narrow(box)
            assert box.empty() == j  # the first of them
