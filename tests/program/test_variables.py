"""Variables: cells, literals, levels and change indicators mean what they say, whatever the objective pushes for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifonly.data.schema import Categorical, Integer, Numeric, Ordinal, Schema
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.program.mip import Affine, Mip
from ifonly.program.variables import Variables
from ifonly.solvers.backend import Limits, Status
from ifonly.solvers.highs import BACKEND
from ifonly.solvers.tangents import solve

REAL, WHOLE, CENTS, COLOUR, SIZE = range(5)
SCHEMA = Schema(
    (
        Numeric("real", -2.0, 3.0),
        Integer("whole", 0.0, 9.0),
        Numeric("cents", 0.0, 1.0, precision=2),
        Categorical("colour", ("r", "g", "b")),
        Ordinal("size", ("S", "L")),
    )
)
FACTUAL = np.array([0.5, 4.0, 0.25, 0.0, 1.0, 0.0, 1.0, 0.0])
CUTS = {
    REAL: np.array([-1.0, 0.5, 0.75, 2.0, 9.0]),
    WHOLE: np.array([2.0, 2.5, 6.0]),
    CENTS: np.array([0.105]),
}


def variables(raw: tuple[int, ...] = (), factual: np.ndarray = FACTUAL, **narrow: tuple[float, float]) -> Variables:
    box = Box.of(SCHEMA, factual)
    for name, (low, high) in narrow.items():
        box.narrow(SCHEMA.index(name), low, high)
    return Variables(Mip(), box, factual, CUTS, raw)


def solved(x: Variables, objective: Affine | None = None) -> np.ndarray | None:
    if objective is not None:
        x.mip.minimise(objective)
    answer = solve(x.mip.arrays(), BACKEND, Limits())
    assert answer.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return answer.values


# -- cells ------------------------------------------------------------------------------------------------------------
@given(st.lists(st.floats(-3, 4), max_size=6), st.floats(-2, 3))
def test_continuous_cells_partition_the_box(cuts: list[float], value: float) -> None:
    cells = Cells.of(SCHEMA.features[REAL], -2.0, 3.0, np.array(cuts))
    k = int(cells.index(value))
    assert cells.low[k] <= value <= cells.high[k]
    assert (cells.low <= cells.high).all()
    assert cells.low[0] == -2.0
    assert cells.high[-1] == 3.0
    for cut in cuts:  # within a cell, no cut can be told apart
        assert (cells.low[k] <= cut) == (cells.high[k] <= cut) or not -2.0 <= cut < 3.0
    nearest = cells.nearest(value)
    assert nearest[k] == value
    assert ((nearest >= cells.low) & (nearest <= cells.high)).all()


@given(st.lists(st.floats(-1, 10), max_size=6))
def test_integer_cells_hold_exactly_the_integers_between_cuts(cuts: list[float]) -> None:
    cells = Cells.of(SCHEMA.features[WHOLE], 0.0, 9.0, np.array(cuts))
    groups: dict[tuple[bool, ...], list[int]] = {}
    for k in range(10):
        groups.setdefault(tuple(k <= c for c in cuts), []).append(k)
    assert [(int(a), int(b)) for a, b in zip(cells.low, cells.high, strict=True)] == sorted(
        (min(g), max(g)) for g in groups.values()
    )


@pytest.mark.parametrize("precision", [1, 2, 3])
def test_a_cut_on_a_decimal_grid_belongs_to_the_cell_below_it(precision: int) -> None:
    """``19 * 0.1`` is above 1.9, and ``1.9 / 0.1`` is below 19."""
    feature = Numeric("decimal", 0.0, 7.0, precision=precision)
    for k in range(1, 7 * 10**precision):
        cut = round(k / 10**precision, precision)
        cells = Cells.of(feature, 0.0, 7.0, np.array([cut]))
        assert cells.high[0] == cut
        assert cells.low[1] == round((k + 1) / 10**precision, precision)


# -- numeric features -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("j", [REAL, WHOLE, CENTS])
@pytest.mark.parametrize("raw", [True, False])
def test_literals_agree_with_the_value(j: int, raw: bool) -> None:
    feature = SCHEMA.features[j]
    # A pinned raw value right on a cut is within the solver's tolerance of both cells, so look to either side of it.
    near = [c + side for c in CUTS[j] for side in ((-1e-3, 1e-3) if raw and j == REAL else (0.0,))]
    values = {feature.snap(float(v)) for v in (feature.lower, feature.upper, *near, 0.3, 0.11, 3.0)}
    for value in sorted(v for v in values if feature.lower <= v <= feature.upper):
        x = variables(raw=(j,) if raw else ())
        literals = [x.at_most(j, float(c)) for c in CUTS[j]]
        if raw:
            x.mip.row(x.raw(j), value, value)
        else:
            x.mip.row(x.in_cell(j, int(x.cells(j).index(value))), 1.0, 1.0)
        v = solved(x)
        assert v is not None
        assert [round(e.value(v)) for e in literals] == [int(value <= c) for c in CUTS[j]]
        table = x.cells(j).high
        assert x.cell_table(j, table).value(v) == pytest.approx(table[int(x.cells(j).index(value))])


def test_a_raw_value_must_be_declared() -> None:
    with pytest.raises(RuntimeError, match="'real' is used by its raw value but was not declared so"):
        variables().raw(REAL)
    assert variables(real=(0.5, 0.5)).raw(REAL).is_constant  # unless only one value is left


@pytest.mark.parametrize(
    ("narrow", "value", "expected"),
    [
        ({}, -1.0, 1.5),
        ({}, 2.0, 1.5),
        ({"real": (0.5, 3.0)}, 2.0, 1.5),
        ({"real": (-2.0, 0.5)}, -1.0, 1.5),
        ({"real": (1.0, 3.0)}, 1.0, 0.5),
    ],
)
def test_deviation_is_the_distance_when_minimised(narrow: dict, value: float, expected: float) -> None:
    x = variables(raw=(REAL,), **narrow)
    d = x.deviation(REAL)
    x.mip.row(x.raw(REAL), value, value)
    v = solved(x, d)
    assert d.value(v) == pytest.approx(expected)
    assert x.deviation(REAL) is d


@pytest.mark.parametrize("value", [0.25, 0.75])
def test_deviation_of_a_fixed_value_is_a_constant(value: float) -> None:
    x = variables(raw=(REAL,), real=(value, value))
    assert x.deviation(REAL).is_constant
    assert x.deviation(REAL).constant == 0.25


@pytest.mark.parametrize(("low", "high", "hat"), [(-5e9, 5e9, 1e9 + 0.25), (1e9, 1e9 + 8, 1e9 + 1), (0.0, 1e-8, 3e-9)])
def test_extreme_numbers_are_solved_in_a_unit_of_their_own(low: float, high: float, hat: float) -> None:
    schema = Schema((Numeric("x", low, high),))
    factual = np.array([hat])
    near = max(1e-7 * (high - low), 8 * np.spacing(high))  # rows far from zero have room for their rounding
    for value in (low, high, hat, low + 0.75 * (high - low)):
        x = Variables(Mip(), Box.of(schema, factual), factual, {}, (0,))
        d, z = x.deviation(0), x.changed(0)
        x.mip.row(x.raw(0), value, value)
        v = solved(x, d * (1.0 / (high - low)) + z)
        assert v is not None
        assert x.raw(0).value(v) == pytest.approx(value, abs=near)
        assert d.value(v) == pytest.approx(abs(value - hat), abs=near)
        assert round(z.value(v)) == (value != hat)
        assert x.point(v)[0] == pytest.approx(value, abs=near)


def test_a_grid_too_fine_for_integrality_is_met_on_the_way_back() -> None:
    schema = Schema((Integer("n", 0.0, 3e9),))
    factual = np.array([1e9])
    x = Variables(Mip(), Box.of(schema, factual), factual, {}, (0,))
    x.mip.row(x.raw(0), lower=2e9 + 0.4)
    v = solved(x, x.raw(0))
    assert not x.mip.arrays().integer.any()
    assert float(x.point(v)[0]).is_integer()


# -- categorical features ---------------------------------------------------------------------------------------------
def test_levels_are_exactly_one() -> None:
    x = variables()
    table = x.level_table(COLOUR, np.array([5.0, 3.0, 4.0]))
    is_red_or_blue = x.level_in(COLOUR, np.array([True, False, True]))
    x.mip.row(is_red_or_blue, 1.0, 1.0)
    v = solved(x, table)
    assert table.value(v) == 4.0
    assert x.point(v)[SCHEMA.slice(COLOUR)].tolist() == [0.0, 0.0, 1.0]
    assert x.level_in(COLOUR, np.ones(3, bool)).constant == 1.0
    assert x.level_in(COLOUR, np.zeros(3, bool)).constant == 0.0
    assert x.level_table(COLOUR, np.full(3, 7.0)).is_constant


def test_missing_features_have_no_literals() -> None:
    gone = FACTUAL.copy()
    gone[REAL], gone[SCHEMA.slice(COLOUR)] = np.nan, 0.0
    x = variables(factual=gone)
    with pytest.raises(ValueError, match="feature 0 is missing"):
        x.at_most(REAL, 0.0)
    with pytest.raises(ValueError, match="feature 3 is missing"):
        x.level_in(COLOUR, np.ones(3, bool))
    assert x.level_table(COLOUR, np.arange(3.0)).is_constant
    assert x.changed(COLOUR).is_constant
    assert x.is_home(REAL)
    assert x.must_stay(COLOUR)
    assert x.affine(np.ones(SCHEMA.width) * (np.arange(SCHEMA.width) == REAL)).is_constant


# -- changes ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize(("j", "home", "away"), [(REAL, 0.5, 0.75), (WHOLE, 4.0, 7.0), (CENTS, 0.25, 0.1)])
def test_changed_is_at_least_what_it_says(j: int, home: float, away: float, raw: bool) -> None:
    for value, least in ((home, 0.0), (away, 1.0)):
        x = variables(raw=(j,) if raw else ())
        z = x.changed(j)
        assert x.changed(j) is z
        if raw:
            x.mip.row(x.raw(j), value, value)
        else:
            x.mip.row(x.in_cell(j, int(x.cells(j).index(value))), 1.0, 1.0)
        v = solved(x, z)
        assert round(z.value(v)) == least
        nearest = x.cells(j).nearest(home)[int(x.cells(j).index(value))]  # all that a cell says
        assert x.point(v)[SCHEMA.starts[j]] == pytest.approx(value if raw else nearest)
        assert (x.switch(j) is None) == z.is_constant


def test_changed_category() -> None:
    x = variables()
    z = x.changed(COLOUR)
    x.mip.row(x.level_in(COLOUR, np.array([True, False, False])), 1.0, 1.0)
    assert z.value(solved(x, z)) == 1.0


def test_changed_is_constant_where_the_box_decides() -> None:
    assert variables(real=(0.5, 0.5)).changed(REAL).constant == 0.0
    assert variables(real=(0.7, 0.7)).changed(REAL).constant == 1.0
    assert variables(real=(0.7, 2.0)).changed(REAL).constant == 1.0
    assert variables().switch(REAL) is None


@pytest.mark.parametrize(
    ("narrow", "value", "can_be_one"),
    [
        ({}, 0.5, False),
        ({}, 0.55, False),
        ({}, 0.6, True),
        ({}, 0.4, True),
        ({"real": (0.5, 3.0)}, 0.6, True),
        ({"real": (-2.0, 0.5)}, 0.4, True),
        ({"real": (0.45, 0.55)}, 0.45, False),
    ],
)
def test_surely_changed_needs_a_real_move(narrow: dict, value: float, can_be_one: bool) -> None:
    x = variables(raw=(REAL,), **narrow)
    sure = x.surely_changed(REAL, 0.1)
    x.mip.row(x.raw(REAL), value, value)
    v = solved(x, sure * -1.0)
    assert round(sure.value(v)) == can_be_one


def test_surely_changed_by_cells_and_levels_is_the_change_itself() -> None:
    x = variables()
    assert x.surely_changed(COLOUR, 0.1) is x.changed(COLOUR)
    assert x.surely_changed(WHOLE, 0.1) is x.changed(WHOLE)


def test_home_and_must_stay() -> None:
    x = variables(real=(0.5, 0.5), whole=(5.0, 5.0), cents=(0.5, 1.0))
    assert [x.is_home(j) for j in (REAL, WHOLE, CENTS)] == [True, False, False]
    assert [x.must_stay(j) for j in (REAL, WHOLE, CENTS)] == [True, False, False]
    x.box.keep_levels(COLOUR, np.array([True, False, False]))
    assert not x.is_home(COLOUR)
    assert not x.must_stay(COLOUR)
    x.box.keep_levels(SIZE, np.array([True, False]))
    assert x.must_stay(SIZE)


# -- points -----------------------------------------------------------------------------------------------------------
def test_what_nothing_touches_stays_or_moves_the_least() -> None:
    x = variables(real=(1.0, 2.0))
    x.box.keep_levels(COLOUR, np.array([True, False, True]))
    v = solved(x)
    u = x.point(np.empty(0) if v is None else v)
    assert u.tolist() == [1.0, 4.0, 0.25, 1.0, 0.0, 0.0, 1.0, 0.0]


def test_affine_over_the_canonical_vector() -> None:
    x = variables(raw=(REAL, WHOLE))
    weights = np.array([2.0, -1.0, 0.0, 1.0, 5.0, 3.0, 0.0, 0.0])
    total = x.affine(weights, 10.0)
    x.mip.row(x.raw(REAL), 1.5, 1.5)
    x.mip.row(x.raw(WHOLE), 7.0, 7.0)
    v = solved(x, total)
    assert total.value(v) == pytest.approx(10 + 3 - 7 + 1)
    assert x.used() == {REAL, WHOLE, COLOUR}


def test_a_cut_on_the_grid_keeps_its_own_value_on_the_left() -> None:
    """14.2 is no multiple of 0.01 in floating point, but ``x <= 14.2`` holds for the stored value 14.2."""
    feature = Numeric("x", 0.0, 30.0, precision=2)
    cuts = np.array([0.29, 1.1, 14.2, 16.18, 28.35])
    cells = Cells.of(feature, 0.0, 30.0, cuts)
    np.testing.assert_array_equal(cells.high[:-1], cuts)
    np.testing.assert_array_equal(cells.low[1:], [0.3, 1.11, 14.21, 16.19, 28.36])
    for k in range(1, 3000):
        value = round(k / 100, 2)
        here = Cells.of(feature, 0.0, 30.0, np.array([value]))
        assert here.high[0] == value
        assert here.low[1] == round(value + 0.01, 2)
