"""Verdicts that can be believed: safe bounds against SciPy, repaired points, lies of a first setting found by the second."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from ifonly.program.mip import Affine, Mip, MipArrays
from ifonly.solvers.backend import Capability, IncumbentHook, Limits, Solution, Status
from ifonly.solvers.bounds import safe_bound
from ifonly.solvers.highs import BACKEND as HIGHS
from ifonly.solvers.linear import solve_linear
from ifonly.solvers.tangents import solve
from ifonly.solvers.trusted import repaired, without_assignment
from portions import one_in


def random_program(seed: int, integers: int = 0) -> MipArrays:
    rng = np.random.default_rng(seed)
    mip, n = Mip(), 6
    columns = [mip.column(-3.0, float(rng.integers(1, 6)), integer=i < integers) for i in range(n)]
    for _ in range(5):
        row = Affine.total(c * float(w) for c, w in zip(columns, rng.normal(size=n), strict=True))
        mip.row(row, lower=float(rng.normal() - 2.0), upper=float(rng.normal() + 3.0))
    mip.minimise(Affine.total(c * float(w) for c, w in zip(columns, rng.normal(size=n), strict=True)) + 1.5)
    return mip.arrays()


def by_scipy(program: MipArrays) -> float | None:
    """The optimum, or None when there is no point."""
    A = sparse.csr_matrix(program.matrix)
    found = milp(
        program.cost,
        integrality=program.integer.astype(int),
        bounds=Bounds(program.lower, program.upper),
        constraints=LinearConstraint(A, program.row_lower, program.row_upper),
    )
    return float(found.fun + program.offset) if found.success else None


@pytest.mark.parametrize("seed", range(40))
def test_linear_programs_are_those_of_scipy(seed: int) -> None:
    program = random_program(seed)
    found = solve_linear(program, Limits())
    A = program.matrix.toarray()
    known = linprog(
        program.cost,
        A_ub=np.vstack([A, -A]),
        b_ub=np.concatenate([program.row_upper, -program.row_lower]),
        bounds=np.column_stack([program.lower, program.upper]),
    )
    assert (found.status is Status.INFEASIBLE) == (known.status == 2)
    if known.status == 0:
        assert found.objective == pytest.approx(known.fun + program.offset, abs=1e-6)
        assert found.bound <= known.fun + program.offset + 1e-9
        assert found.bound == pytest.approx(known.fun + program.offset, abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_any_duals_give_a_bound_that_holds(seed: int) -> None:
    program, rng = random_program(seed), np.random.default_rng(seed)
    best = by_scipy(program)
    for scale in (0.0, 0.01, 1.0, 100.0):
        bound = safe_bound(program, scale * rng.normal(size=program.n_rows))
        assert best is None or bound <= best + 1e-9
    zero = np.zeros(program.n_columns)
    assert best is None or safe_bound(program, rng.normal(size=program.n_rows), zero) <= 0.0


def test_a_column_without_an_end_gives_no_bound_where_it_could_go_on_for_ever() -> None:
    mip = Mip()
    x = mip.column(0.0, np.inf)
    mip.row(x, lower=1.0)
    mip.minimise(x)
    assert safe_bound(mip.arrays(), np.array([1.0])) == pytest.approx(1.0)
    assert safe_bound(mip.arrays(), np.array([1.5])) == -np.inf


@pytest.mark.parametrize("seed", one_in(4, range(25)))
@pytest.mark.parametrize("integers", [2, 6])
def test_mixed_integer_programs_are_those_of_scipy(seed: int, integers: int) -> None:
    program = random_program(seed, integers)
    best, found = by_scipy(program), solve(program, HIGHS, Limits())
    if best is None:
        assert found.status is Status.INFEASIBLE
        return
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert found.bound <= best + 1e-6
    assert program.violation(found.values) <= 1e-8


@dataclass(frozen=True)
class Lying:
    """HiGHS whose first setting lies: about the optimum, or about there being a point at all."""

    lie: str
    name: str = "lying"
    label: str = "Lying"
    capabilities: frozenset[Capability] = HIGHS.capabilities

    def available(self) -> bool:
        return True

    def version(self) -> str:
        return "1"

    def solve(self, program: MipArrays, limits: Limits, on_incumbent: IncumbentHook | None = None) -> Solution:
        if limits.second_setting:
            return HIGHS.solve(program, limits, on_incumbent)
        if self.lie == "impossible":
            return Solution(Status.INFEASIBLE, bound=np.inf)
        worst = HIGHS.solve(replace(program, cost=-program.cost), Limits())
        cost = program.objective(worst.values)
        return Solution(Status.OPTIMAL, worst.values, cost, cost)


@pytest.mark.parametrize("lie", ["impossible", "optimal"])
@pytest.mark.parametrize("seed", one_in(2, range(6)))
def test_a_lie_of_the_first_setting_is_found_by_the_second(lie: str, seed: int) -> None:
    program = random_program(seed, 4)
    best, found = by_scipy(program), solve(program, Lying(lie), Limits())
    if best is not None:
        assert found.objective == pytest.approx(best, rel=1e-6, abs=1e-6) or found.status is not Status.OPTIMAL
        assert found.status is not Status.INFEASIBLE


def test_a_point_that_only_the_tolerances_admit_is_none() -> None:
    """``x <= 1e5 a`` and ``x >= 0.05``: with ``a = 5e-7``, whole within the tolerance, ``a = 0`` would seem to do."""
    mip = Mip()
    x, a = mip.column(0.0, 1e5), mip.column(integer=True)
    mip.row(x - a * 1e5, upper=0.0)
    mip.row(x, lower=0.05)
    mip.minimise(a)
    program = mip.arrays()
    repair = repaired(program, np.array([0.05, 5e-7]), Limits())
    assert repair.point is None
    assert repair.empty
    assert solve(program, HIGHS, Limits()).objective == pytest.approx(1.0)


@pytest.mark.parametrize("seed", one_in(2, range(10)))
def test_an_assignment_is_excluded_and_no_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mip = Mip()
    columns = mip.columns(3, [0.0, -2.0, 0.0], [1.0, 1.0, 3.0], integer=True)
    mip.minimise(Affine(columns, rng.normal(size=3)))
    program = mip.arrays()
    grid = np.stack(np.meshgrid([0, 1], [-2, -1, 0, 1], [0, 1, 2, 3]), -1).reshape(-1, 3).astype(float)
    costs = [program.objective(v) for v in grid]
    order = np.argsort(costs)
    for k in range(6):  # again and again without the best that is left
        found = solve(program, HIGHS, Limits())
        assert found.objective == pytest.approx(costs[order[k]])
        program = without_assignment(program, found.values, columns)
