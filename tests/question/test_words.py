"""Numbers in messages: short, and never to the wrong side of what they stand for."""

import pytest

from ifonly.question.words import number


@pytest.mark.parametrize("value", [0.1, 0.7, 0.8, 0.9, 2.3, 123.45, 1e-7, 0.25])
@pytest.mark.parametrize("towards", ["nearest", "up", "down"])
def test_a_short_decimal_is_printed_as_it_is(value: float, towards: str) -> None:
    assert float(number(value, towards)) == value  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1 / 3, 2 / 3, 1e6 / 7, -1 / 3, 0.1 + 0.2])
def test_a_long_one_is_rounded_to_the_side_that_is_asked_for(value: float) -> None:
    assert float(number(value, "down")) <= value <= float(number(value, "up"))
    assert float(number(value, "up")) - float(number(value, "down")) <= 1e-5 * abs(value)
