"""The knapsack over features against enumeration, and against cases solved by hand."""

from __future__ import annotations

import itertools
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifonly.question.found import Ended
from ifonly.runtime.deadline import Deadline
from ifonly.search.knapsack import Answer, Jump, Slide, cheapest_moves

AMOUNTS = st.floats(0.01, 4.0).map(lambda x: round(x, 3))
COSTS = st.sampled_from([0.0, 0.1, 0.25, 1.0]) | AMOUNTS
JUMPS = st.lists(st.builds(Jump, AMOUNTS, COSTS), min_size=1, max_size=4).map(tuple)
SLIDES = st.builds(Slide, AMOUNTS, COSTS, COSTS, st.integers(1, 6).map(lambda n: n * 0.5), st.just(0.5))


def options(feature: tuple[Jump, ...] | Slide) -> list[tuple[float, float, int]]:
    """What a feature can do, as (gain, cost, moved)."""
    if isinstance(feature, Slide):
        assert feature.step is not None
        steps = [feature.step * k for k in range(1, round(feature.reach / feature.step) + 1)]
        return [(0.0, 0.0, 0), *((feature.rate * d, feature.price + feature.fee * d, 1) for d in steps)]
    return [(0.0, 0.0, 0), *((jump.gain, jump.cost, 1) for jump in feature)]


def enumerated(features: list[tuple[Jump, ...] | Slide], need: float, most: int) -> float:
    best = inf
    for chosen in itertools.product(*map(options, features)):
        gain, cost, moved = (sum(column) for column in zip(*chosen, strict=True))
        if gain >= need and moved <= most:
            best = min(best, cost)
    return best


@given(st.lists(JUMPS | SLIDES, min_size=1, max_size=4), st.floats(0.05, 1.05), st.sampled_from([1, 2, None]))
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
