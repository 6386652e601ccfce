"""Shifts on a decimal grid: thresholds that are moved against a shift part the grid where the moved values do."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ifonly.data.features import Numeric
from ifonly.data.schema import Schema
from ifonly.program.box import Box
from ifonly.program.shifted import moved, moved_cuts


def test_a_cut_of_three_tenths_is_met_by_one_tenth_and_two() -> None:
    # 0.1 + 0.2 > 0.3 in floating point, and 0.3 - 0.2 < 0.1; on the grid it is 0.3, which is at most 0.3.
    feature = Numeric("x", 0.0, 1.0, precision=1)
    assert moved_cuts(feature, np.array([0.3]), 0.2) >= 0.1


@given(
    precision=st.integers(0, 4),
    value=st.integers(-500, 500),
    steps=st.integers(-500, 500),
    cut=st.integers(-1000, 1000),
    ulps=st.integers(-1, 1),
)
def test_moved_cuts_part_the_grid_as_moved_values_do(
    precision: int, value: int, steps: int, cut: int, ulps: int
) -> None:
    feature = Numeric("x", -1e4, 1e4, precision=precision)
    schema = Schema((feature,))
    x, shift, threshold = (round(n / 10**precision, precision) for n in (value, steps, cut))
    threshold = float(np.nextafter(threshold, ulps * np.inf)) if ulps else threshold
    limits = Box.of(schema, np.array([x]))
    there = moved(limits, np.array([[x]]), np.array([shift]))[0, 0]
    assert there == round((value + steps) / 10**precision, precision)
    assert (x <= moved_cuts(feature, np.array([threshold]), shift)[0]) == (there <= threshold)
