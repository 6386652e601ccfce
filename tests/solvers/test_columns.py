"""Column generation: a relaxation that ends without a verdict is asked again, in ever other ways."""

import highspy
import numpy as np
import pytest

from ifonly.program.mip import Mip
from ifonly.solvers.priced_lp import Block, PricedProgram

UNKNOWN = highspy.HighsModelStatus.kUnknown


class Undecided:
    """HiGHS, except that it does not say how it ended until something about its options is right."""

    def __init__(self, highs, decides):
        self._highs, self._decides, self.options, self.runs = highs, decides, {}, 0

    def __getattr__(self, name):
        return getattr(self._highs, name)

    def setOptionValue(self, key, value):  # noqa: N802 - as HiGHS spells it
        self.options[key] = value
        return self._highs.setOptionValue(key, value)

    def run(self):
        self.runs += 1
        return self._highs.run()

    def getModelStatus(self):  # noqa: N802 - as HiGHS spells it
        return self._highs.getModelStatus() if self._decides(self) else UNKNOWN


def program(least: float) -> PricedProgram:
    """Minimise x where x is a convex combination of 1, 2 and 5, and at least so much."""
    mip = Mip()
    x = mip.column(0.0, 10.0)
    mip.minimise(x)
    mip.row(x, lower=least)
    mip.row(x, 0.0, 0.0)
    mip.rows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), 1.0, 1.0, 1)
    block = Block(np.array([1]), 2, np.array([[-1.0], [-2.0], [-5.0]]))
    return PricedProgram(mip.arrays(), [block])


def test_the_optimum_over_all_columns():
    assert program(0.0).solve().bound == pytest.approx(1.0)
    assert program(3.0).solve().bound == pytest.approx(3.0)
    assert program(6.0).solve().bound == np.inf


@pytest.mark.parametrize("runs", [2, 3, 4])
def test_from_scratch_and_with_wider_tolerances(runs):
    priced = program(3.0)
    priced.highs = Undecided(priced.highs, lambda highs: highs.runs >= runs)
    assert priced.solve().bound == pytest.approx(3.0)
    assert priced.highs.options["presolve"] == "off"


@pytest.mark.parametrize(("least", "bound"), [(3.0, 3.0), (11.0, np.inf)])
def test_with_a_presolve_at_last(least, bound):
    priced = program(least)
    priced.highs = Undecided(priced.highs, lambda highs: highs.options.get("presolve") == "on")
    assert priced.solve().bound == pytest.approx(bound)


def test_no_verdict_at_all_proves_nothing():
    priced = program(3.0)
    priced.highs = Undecided(priced.highs, lambda _: False)
    found = priced.solve()
    assert (found.bound, found.values, found.stopped) == (-np.inf, None, True)
