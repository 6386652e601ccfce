"""The kit's part for solvers: problems whose answers are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.program.mip import Affine, Convex, Mip, MipArrays, Square
from ifonly.solvers.backend import Backend, Capability, Limits, Solution, Status
from ifonly.solvers.tangents import solve
from ifonly.testing.claims import TOLERANCE, Check, require, run_all
from ifonly.tolerances import FEASIBILITY, NO_GAP, OPTIMALITY, SAME_FOOT

__all__ = ["check_solver", "solver_checks"]


def check_solver(backend: Backend) -> None:
    """Check a solver backend against problems whose answers are known: all of `solver_checks`.

    Parameters
    ----------
    backend
        An available backend; capabilities it declares are checked, others are not asked for.

    Raises
    ------
    AssertionError
        With the name of the check that failed, and a sentence on what differs.

    Examples
    --------
    >>> from ifonly.extend import find_solver
    >>> check_solver(find_solver("highs"))
    """
    run_all(solver_checks(backend), f"{backend.label}, ")


def solver_checks(backend: Backend) -> Iterator[Check]:
    """Yield the checks of a solver backend, each with its name, for a test of its own.

    Examples
    --------
    >>> from ifonly.extend import find_solver
    >>> names = [name for name, check in solver_checks(find_solver("highs"))]
    >>> names[:3]
    ['is there', 'solves a linear program', 'solves an integer program']
    """
    for check in (_is_there, *_SOLVER_CHECKS):
        yield check.__name__.removeprefix("_").replace("_", " "), partial(check, backend)


def _is_there(backend: Backend) -> None:
    require(backend.available(), f"{backend.label} is not available here")
    require(backend.version(), f"{backend.label} is available but has no version")


def _expect(answer: Solution, program: MipArrays, objective: float, values: FloatArray | None = None) -> None:
    """The answer is optimal, is a point of the program, costs `objective` and carries a bound that proves it."""
    require(answer.status is Status.OPTIMAL, f"expected an optimal answer, got {answer.status}")
    require(answer.values is not None, "an optimal answer has no point")
    assert answer.values is not None
    require(program.violation(answer.values) <= TOLERANCE, "the point breaks a row, a bound or integrality")
    require(abs(answer.objective - objective) <= TOLERANCE, f"expected {objective}, got {answer.objective}")
    require(answer.bound <= answer.objective + NO_GAP, "the bound lies above the objective")
    require(
        answer.objective - answer.bound <= 2.0 * OPTIMALITY * max(1.0, abs(objective)), "the bound proves too little"
    )
    if values is not None:
        far = float(np.max(np.abs(answer.values - values)))
        require(far <= 10.0 * FEASIBILITY, f"expected the point {values.tolist()}, got {answer.values.tolist()}")


def _linear_program(offset: float = 0.0, *, integer: bool = False) -> MipArrays:
    """``min 2x + 3y`` over ``x + y >= 7.5, x - y <= 3``: 17.25 at (5.25, 2.25); in integers 19 at (5, 3)."""
    mip = Mip()
    x, y = mip.column(0.0, 10.0, integer=integer), mip.column(0.0, 10.0, integer=integer)
    # x + y >= 7.5, tight at the optimum
    mip.row(x + y, lower=7.5)
    # x - y <= 3, tight at the optimum
    mip.row(x - y, upper=3.0)
    mip.minimise(x * 2.0 + y * 3.0 + offset)
    return mip.arrays()


def _knapsack() -> MipArrays:
    """Five things of values 10, 13, 7, 8, 2 and weights 5, 7, 4, 5, 2, at most 13 of weight: 23 (the first two)."""
    mip = Mip()
    things = mip.columns(5, 0.0, 1.0, integer=True)
    # the weights of what is packed sum to at most 13
    mip.row(Affine(things, np.array([5.0, 7.0, 4.0, 5.0, 2.0])), upper=13.0)
    mip.minimise(Affine(things, -np.array([10.0, 13.0, 7.0, 8.0, 2.0])))
    return mip.arrays()


def _solves_a_linear_program(backend: Backend) -> None:
    for offset in (0.0, 100.0, -50.0):
        program = _linear_program(offset)
        _expect(backend.solve(program, Limits()), program, 17.25 + offset, np.array([5.25, 2.25]))


def _solves_an_integer_program(backend: Backend) -> None:
    for offset in (0.0, 100.0, -50.0):
        program = _linear_program(offset, integer=True)
        _expect(backend.solve(program, Limits()), program, 19.0 + offset, np.array([5.0, 3.0]))
    _expect(backend.solve(_knapsack(), Limits()), _knapsack(), -23.0, np.array([1.0, 1.0, 0.0, 0.0, 0.0]))


def _adds_up_repeated_entries(backend: Backend) -> None:
    mip = Mip()
    x = mip.column(-5.0, 5.0)
    # -7.5 <= 3 x <= 4.5, said by three entries of one column
    mip.row(x + x + x, lower=-7.5, upper=4.5)
    mip.minimise(x * 0.5 + x * 0.5)
    _expect(backend.solve(mip.arrays(), Limits()), mip.arrays(), -2.5, np.array([-2.5]))


def _solves_without_rows(backend: Backend) -> None:
    mip = Mip()
    mip.minimise(mip.column(-1.0, 4.0) - mip.column(-2.0, 3.0, integer=True))
    _expect(backend.solve(mip.arrays(), Limits()), mip.arrays(), -4.0, np.array([-1.0, 3.0]))


def _solves_without_columns(backend: Backend) -> None:
    mip = Mip()
    mip.minimise(Affine(constant=3.0))
    _expect(backend.solve(mip.arrays(), Limits()), mip.arrays(), 3.0)
    # the empty row 1 <= 0
    mip.row(Affine(constant=1.0), upper=0.0)
    answer = backend.solve(mip.arrays(), Limits())
    require(answer.status is Status.INFEASIBLE, f"1 <= 0 is impossible, got {answer.status}")


def _proves_infeasibility(backend: Backend) -> None:
    by_rows = Mip()
    x = by_rows.column(0.0, 1.0)
    # x >= 2, against its bounds
    by_rows.row(x, lower=2.0)
    by_integrality = Mip()
    # 2 x = 3
    by_integrality.row(by_integrality.column(0.0, 3.0, integer=True) * 2.0, 3.0, 3.0)
    for program in (by_rows.arrays(), by_integrality.arrays()):
        answer = backend.solve(program, Limits())
        require(answer.status is Status.INFEASIBLE, f"expected infeasible, got {answer.status}")
        require(answer.values is None, "an infeasible program has a point")
        require(answer.bound == np.inf, "an infeasible program has a finite bound")


def _claims_nothing_about_an_unbounded_program(backend: Backend) -> None:
    mip = Mip()
    mip.minimise(mip.column(-np.inf, 0.0))
    answer = backend.solve(mip.arrays(), Limits())
    require(
        answer.status not in (Status.OPTIMAL, Status.INFEASIBLE),
        f"no optimum and no proof exist, got {answer.status}",
    )


def _keeps_the_cutoff(backend: Backend) -> None:
    program = _linear_program(100.0, integer=True)
    _expect(backend.solve(program, Limits(cutoff=125.0)), program, 119.0)
    answer = backend.solve(program, Limits(cutoff=118.5))
    require(answer.status is Status.INFEASIBLE, f"nothing costs at most 118.5, got {answer.status}")
    relaxed = _linear_program(100.0)
    answer = backend.solve(relaxed, Limits(cutoff=110.0))
    if answer.status is not Status.INFEASIBLE:  # a linear program may ignore it, but must not lie
        _expect(answer, relaxed, 117.25)


def _hard_program(n: int = 40) -> MipArrays:
    """An equality knapsack with large coprime weights, which no solver closes at once."""
    rng = np.random.default_rng(0)
    mip = Mip()
    things = mip.columns(n, 0.0, 1.0, integer=True)
    weights = rng.integers(10_000, 99_999, n).astype(np.float64)
    # two halves of the same weight
    mip.row(Affine(things, weights), float(weights.sum() // 2), float(weights.sum() // 2))
    mip.minimise(Affine(things, rng.uniform(1.0, 2.0, n)))
    return mip.arrays()


def _wide_program(n: int = 150) -> MipArrays:
    """A linear program with dense random rows, which takes more than an instant."""
    rng = np.random.default_rng(0)
    mip = Mip()
    columns = mip.columns(n, 0.0, 5.0)
    for _ in range(n):
        # a'x <= c, both random
        mip.row(Affine(columns, rng.normal(size=n)), upper=float(rng.uniform(1.0, 5.0)))
    mip.minimise(Affine(columns, rng.normal(size=n)))
    return mip.arrays()


def _stops_when_time_is_up(backend: Backend) -> None:
    for program in (_hard_program(), _wide_program()):
        answer = backend.solve(program, Limits(seconds=0.0))
        if program.integer.any():
            timely = answer.status in (Status.OUT_OF_TIME, Status.FEASIBLE)
            require(timely, f"no time, yet the status is {answer.status}")
        if answer.values is not None:
            require(program.violation(answer.values) <= TOLERANCE, "the point breaks a row, a bound or integrality")
        if answer.status is not Status.OPTIMAL and not program.integer.any():
            least = backend.solve(program, Limits()).objective
            require(answer.bound <= least + TOLERANCE, f"out of time, yet {answer.bound} is claimed as a bound")


def _tells_of_incumbents(backend: Backend) -> None:
    if Capability.INCUMBENT_EVENTS not in backend.capabilities:
        return
    program, heard = _knapsack(), list[tuple[float, float, FloatArray]]()
    answer = backend.solve(
        program,
        Limits(),
        on_incumbent=lambda objective, bound, values: heard.append((objective, bound, values)),
    )
    _expect(answer, program, -23.0)
    for objective, bound, values in heard:
        require(program.violation(values) <= TOLERANCE, "an incumbent breaks a row, a bound or integrality")
        require(abs(program.objective(values) - objective) <= TOLERANCE, "an incumbent's cost is not its own")
        require(bound <= objective + TOLERANCE, "the bound lies above an incumbent")
    require(len(answer.pool) >= len(heard), "incumbents are missing from the pool")


def _leaves_the_program_alone(backend: Backend) -> None:
    program, same = _linear_program(integer=True), _linear_program(integer=True)
    first, second = (backend.solve(program, Limits(seed=3)) for _ in range(2))
    for name in ("cost", "row_lower", "row_upper", "lower", "upper", "integer"):
        require(np.array_equal(getattr(program, name), getattr(same, name)), f"{name} was changed")
    require(np.array_equal(program.matrix.toarray(), same.matrix.toarray()), "the matrix was changed")
    assert first.values is not None
    assert second.values is not None
    require(np.array_equal(first.values, second.values), "the same program gave two answers")


def _lowers_squares(backend: Backend) -> None:
    """``(x - 0.3)^2 + 2 (y + 1.25)^2`` over ``x + y = 1``: the foot of the perpendicular, and its integer neighbour."""
    for integer, objective, point in (
        (False, 1.3**2 + 2.0 * 0.65**2, np.array([1.6, -0.6])),  # x = (0.3 + 2 * 2.25) / 3
        (True, 1.7**2 + 2.0 * 0.25**2, np.array([2.0, -1.0])),
    ):
        mip = Mip()
        x, y = mip.column(-4.0, 4.0, integer=integer), mip.column(-4.0, 4.0, integer=integer)
        # x + y = 1
        mip.row(x + y, 1.0, 1.0)
        mip.minimise_square(Square(x - 0.3, 1.0))
        mip.minimise_square(Square(y + 1.25, 2.0))
        program = mip.arrays()
        answer = solve(program, backend, Limits())
        require(answer.status is Status.OPTIMAL, f"expected an optimal answer, got {answer.status}")
        assert answer.values is not None
        require(abs(answer.objective - objective) <= TOLERANCE, f"expected {objective}, got {answer.objective}")
        require(float(np.max(np.abs(answer.values - point))) <= SAME_FOOT, f"expected {point.tolist()}")


def _lowers_convex_rows(backend: Backend) -> None:
    """``min x`` over ``exp(-x) <= 0.1``: ``log 10``, by tangents."""
    mip = Mip()
    x = mip.column(0.0, 10.0)
    # exp(-x) <= 0.1 as a convex row
    mip.convex(Convex((x,), lambda d: float(np.exp(-d[0]) - 0.1), lambda d: -np.exp(-d)))
    mip.minimise(x)
    answer = solve(mip.arrays(), backend, Limits())
    require(answer.status is Status.OPTIMAL, f"expected an optimal answer, got {answer.status}")
    require(abs(answer.objective - np.log(10.0)) <= FEASIBILITY, f"expected log 10, got {answer.objective}")


_SOLVER_CHECKS: tuple[Callable[[Backend], None], ...] = (
    _solves_a_linear_program,
    _solves_an_integer_program,
    _adds_up_repeated_entries,
    _solves_without_rows,
    _solves_without_columns,
    _proves_infeasibility,
    _claims_nothing_about_an_unbounded_program,
    _keeps_the_cutoff,
    _stops_when_time_is_up,
    _tells_of_incumbents,
    _leaves_the_program_alone,
    _lowers_squares,
    _lowers_convex_rows,
)
