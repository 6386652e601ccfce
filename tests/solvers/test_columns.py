"""Column generation: a relaxation that ends without a verdict is asked again, in ever other ways."""

import highspy
import numpy as np
import pytest
from scipy.optimize import linprog

from ifonly.program.mip import Affine, Mip
from ifonly.solvers.priced_lp import Block, PricedProgram
from portions import one_in

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


# -- random linear programs, against SciPy ----------------------------------------------------------------------------
class RandomProgram:
    """``min c'x`` over ``low <= A x + sum_k B_k' w_k <= high``, the weights ``w_k >= 0`` of each block summing to one."""

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        self.n, self.m = int(rng.integers(2, 7)), int(rng.integers(2, 6))
        self.cost = rng.normal(size=self.n)
        self.A = rng.normal(size=(self.m, self.n)) * (rng.random((self.m, self.n)) < 0.8)
        self.lower, self.upper = -rng.uniform(0.5, 3.0, self.n), rng.uniform(0.5, 3.0, self.n)
        sizes = rng.integers(1, 40, int(rng.integers(1, 3)))
        self.rows = [np.sort(rng.choice(self.m, int(rng.integers(1, self.m + 1)), replace=False)) for _ in sizes]
        self.points = [rng.normal(0.0, 2.0, (size, len(rows))) for size, rows in zip(sizes, self.rows, strict=True)]
        middle = rng.normal(0.0, rng.choice([0.5, 6.0]), self.m)  # some are out of reach
        equal = rng.random(self.m) < 0.5
        self.low = np.where(equal, middle, middle - rng.uniform(0.0, 1.0, self.m))
        self.high = np.where(equal, middle, middle + rng.uniform(0.0, 1.0, self.m))
        self.low[~equal & (rng.random(self.m) < 0.3)] = -np.inf

    def priced(self) -> PricedProgram:
        mip = Mip()
        x = mip.columns(self.n, self.lower, self.upper)
        for a, low, high in zip(self.A, self.low, self.high, strict=True):
            mip.row(Affine(x, a), low, high)
        blocks = []
        for rows, points in zip(self.rows, self.points, strict=True):
            mip.row(Affine(), 1.0, 1.0)
            blocks.append(Block(rows, mip.n_rows - 1, points))
        mip.minimise(Affine(x, self.cost))
        return PricedProgram(mip.arrays(), blocks)

    def truth(self, lower: np.ndarray, upper: np.ndarray) -> float:
        """SciPy's optimum with every column written down; infinity when there is no point."""
        wide = [self.A]
        for rows, points in zip(self.rows, self.points, strict=True):
            entries = np.zeros((self.m, len(points)))
            entries[rows] = points.T
            wide.append(entries)
        full = np.hstack(wide)
        sums = np.zeros((len(self.points), full.shape[1]))
        start = self.n
        for k, points in enumerate(self.points):
            sums[k, start : start + len(points)] = 1.0
            start += len(points)
        bounded = np.isfinite(self.low)
        found = linprog(
            np.append(self.cost, np.zeros(full.shape[1] - self.n)),
            A_ub=np.vstack([full, -full[bounded]]),
            b_ub=np.append(self.high, -self.low[bounded]),
            A_eq=sums,
            b_eq=np.ones(len(sums)),
            bounds=[*zip(lower, upper, strict=True), *[(0.0, None)] * (full.shape[1] - self.n)],
        )
        assert found.status in (0, 2), found.message
        return float(found.fun) if found.status == 0 else np.inf


@pytest.mark.parametrize("seed", one_in(3, range(60)))
def test_random_programs_against_scipy(seed):
    case = RandomProgram(seed)
    rng, priced = np.random.default_rng([seed, 1]), case.priced()
    lower, upper = case.lower.copy(), case.upper.copy()
    for _ in range(4):  # the same program again and again, under other bounds
        truth, found = case.truth(lower, upper), priced.solve()
        assert found.bound == pytest.approx(truth, rel=1e-6, abs=1e-6)
        assert (found.values is None) == (truth == np.inf)
        if found.values is not None:
            assert case.cost @ found.values[: case.n] == pytest.approx(truth, rel=1e-6, abs=1e-6)
            cut = priced.solve(truth - 1.0)
            assert truth - 1.0 - 1e-9 <= cut.bound <= truth + 1e-6, "a bound that reaches the cut-off, and holds"
        j = int(rng.integers(case.n))
        ends = np.sort(rng.uniform(case.lower[j], case.upper[j], 2))
        lower[j], upper[j] = ends
        priced.set_bounds(np.array([j], dtype=np.int32), ends[:1], ends[1:])


def test_random_programs_are_of_both_kinds():
    truths = [case.truth(case.lower, case.upper) for case in map(RandomProgram, range(60))]
    assert 10 <= np.isfinite(truths).sum() <= 50
