"""The knapsack over features against enumeration, and against cases solved by hand."""

from __future__ import annotations

import itertools
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifonly.question.found import Ended
from ifonly.runtime.deadline import Deadline
from ifonly.search.linear.knapsack import Answer, Jump, Slide, cheapest_moves

AMOUNTS = st.floats(0.01, 4.0).map(lambda x: round(x, 3))
COSTS = st.sampled_from([0.0, 0.1, 0.25, 1.0]) | AMOUNTS
JUMPS = st.lists(st.builds(Jump, AMOUNTS, COSTS), min_size=1, max_size=4).map(tuple)
REACHES = st.integers(1, 6).map(lambda n: n * 0.5)
SLIDES = st.builds(Slide, AMOUNTS, COSTS, COSTS, REACHES, st.just(0.5), COSTS)


def options(feature: tuple[Jump, ...] | Slide) -> list[tuple[float, float, int]]:
    """Moves of a feature, as (gain, cost, moved)."""
    if isinstance(feature, Slide):
        assert feature.step is not None
        steps = [feature.step * k for k in range(1, round(feature.reach / feature.step) + 1)]
        return [
            (0.0, 0.0, 0),
            *((feature.rate * d, feature.price + feature.fee * d + feature.square * d**2, 1) for d in steps),
        ]
    return [(0.0, 0.0, 0), *((jump.gain, jump.cost, 1) for jump in feature)]


def enumerated(features: list[tuple[Jump, ...] | Slide], need: float, most: int) -> float:
    best = inf
    for chosen in itertools.product(*map(options, features)):
        gain, cost, moved = (sum(column) for column in zip(*chosen, strict=True))
        if gain >= need and moved <= most:
            best = min(best, cost)
    return best


@given(st.lists(JUMPS | SLIDES, min_size=1, max_size=4), st.floats(0.001, 1.05), st.sampled_from([1, 2, None]))
def test_optimum_equals_enumeration(features: list[tuple[Jump, ...] | Slide], share: float, most: int | None) -> None:
    need = share * sum(max(gain for gain, _, _ in options(feature)) for feature in features)
    expected = enumerated(features, need, len(features) if most is None else most)
    found = cheapest_moves(features, need, most)
    if expected == inf:
        assert found.moves is None or found.cost == pytest.approx(enumerated(features, need - 1e-9, most or 9))
        return
    assert found.ended is Ended.CLOSED
    assert found.moves is not None
    assert found.cost == pytest.approx(expected, abs=2e-6)
    assert found.bound <= expected + 1e-12
    gained = 0.0
    for j, move in found.moves.items():
        feature = features[j]
        gained += feature.rate * move if isinstance(feature, Slide) else feature[int(move)].gain
    assert gained >= need - 1e-9


@given(
    st.lists(JUMPS | SLIDES, min_size=1, max_size=4),
    st.floats(0.001, 1.0),
    st.sampled_from([1, 2, None]),
)
def test_optimum_equals_enumeration_where_the_root_fixes_features(
    features: list[tuple[Jump, ...] | Slide], share: float, most: int | None
) -> None:
    need = share * sum(max(gain for gain, _, _ in options(feature)) for feature in features)
    expected = enumerated(features, need, len(features) if most is None else most)
    hopeless = [Slide(0.01, 5.0, 5.0, 1.0, 0.5, 1.0)] * 70  # these make the table wide, and are never worth it
    if expected < 5.0:
        found = cheapest_moves([*hopeless, *features], need, most)
        assert found.ended is Ended.CLOSED
        assert found.cost == pytest.approx(expected, abs=2e-6)
        assert found.bound <= expected + 1e-12


def subset_optimum(slides: list[Slide], need: float, most: int) -> float:
    """Continuous slides with squares, set by set: bisect the multiplier at which those that move gain what is needed."""
    best = inf
    for k in range(most + 1):
        for chosen in itertools.combinations(slides, k):
            if sum(s.rate * s.reach for s in chosen) < need:
                continue
            low, high = 0.0, 1e6
            for _ in range(200):
                middle = 0.5 * (low + high)
                ways = [min(max((middle * s.rate - s.fee) / (2 * s.square), 0.0), s.reach) for s in chosen]
                low, high = (
                    (low, middle)
                    if sum(s.rate * d for s, d in zip(chosen, ways, strict=True)) >= need
                    else (middle, high)
                )
            ways = [min(max((high * s.rate - s.fee) / (2 * s.square), 0.0), s.reach) for s in chosen]
            best = min(best, sum(s.price + s.fee * d + s.square * d**2 for s, d in zip(chosen, ways, strict=True)))
    return best


SQUARES = st.builds(Slide, AMOUNTS, COSTS, COSTS, AMOUNTS, st.none(), st.floats(0.05, 4.0))


@given(st.lists(SQUARES, min_size=1, max_size=5), st.floats(0.001, 0.95), st.sampled_from([2, None]))
def test_continuous_squares_equal_the_best_of_all_sets(slides: list[Slide], share: float, most: int | None) -> None:
    need = share * sum(s.rate * s.reach for s in slides)
    expected = subset_optimum(slides, need, len(slides) if most is None else min(most, len(slides)))
    found = cheapest_moves(slides, need, most)
    if expected == inf:
        assert found.moves is None
        return
    assert found.ended is Ended.CLOSED
    assert found.cost == pytest.approx(expected, rel=2e-6, abs=1e-9)
    assert found.bound <= expected * (1 + 1e-9) + 1e-12
    assert found.moves is not None
    assert sum(slides[j].rate * d for j, d in found.moves.items()) >= need - 1e-9


def test_squares_share_the_way_by_their_multiplier() -> None:
    """min x^2 + 2 y^2 with x + y = 3: the derivatives 2x and 4y are equal at x = 2, y = 1."""
    found = cheapest_moves([Slide(1.0, 0.0, 0.0, 9.0, None, 1.0), Slide(1.0, 0.0, 0.0, 9.0, None, 2.0)], 3.0)
    assert found.moves == {0: pytest.approx(2.0), 1: pytest.approx(1.0)}
    assert found.cost == pytest.approx(6.0)


def test_a_continuous_slide_goes_exactly_as_far_as_needed() -> None:
    found = cheapest_moves([Slide(2.0, 0.5, 0.0, 10.0, None), Slide(1.0, 0.5, 0.0, 10.0, None)], 5.0)
    assert found.moves == {0: pytest.approx(2.5)}
    assert found.cost == pytest.approx(1.25)


def test_a_price_is_paid_once() -> None:
    """Two slides at 0.1 each would cost 0.2 more than one that goes further at a higher fee."""
    cheap, dear = Slide(1.0, 0.1, 1.0, 2.0, None), Slide(1.0, 0.3, 0.0, 5.0, None)
    found = cheapest_moves([cheap, cheap, dear], 4.0)
    assert found.moves == {2: pytest.approx(4.0)}


def test_what_is_there_already_costs_nothing() -> None:
    found = cheapest_moves([(Jump(1.0, 1.0),)], -0.5)
    assert (found.moves, found.cost) == ({}, 0.0)


def test_answers_above_the_cutoff_are_none() -> None:
    features = [(Jump(1.0, 1.0),), (Jump(1.0, 2.0),)]
    assert cheapest_moves(features, 2.0, cutoff=2.9) == Answer(Ended.CLOSED, bound=inf, better=[])
    assert cheapest_moves(features, 2.0, cutoff=3.1).moves == {0: 0.0, 1: 0.0}


def test_out_of_time_is_said() -> None:
    found = cheapest_moves([(Jump(1.0, 1.0),)], 0.5, deadline=Deadline.after(-1.0))
    assert (found.ended, found.moves, found.bound) == (Ended.LIMIT, None, -inf)
