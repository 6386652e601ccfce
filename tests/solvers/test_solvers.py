"""Known answers for every solver that is here; discovery, limits, and what a missing one says."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

import numpy as np
import pytest

from ifonly import SolverMissing
from ifonly.arrays import FloatArray
from ifonly.errors import SolverError, SolverFailed
from ifonly.program.mip import Affine, Mip, MipArrays
from ifonly.solvers import highs
from ifonly.solvers.backend import Backend, Capability, IncumbentHook, Limits, Solution, Status
from ifonly.solvers.highs import BACKEND as HIGHS
from ifonly.solvers.highs import write_program
from ifonly.solvers.registry import available_solvers, find_solver, known_solvers
from ifonly.testing import check_solver


def test_known_answers() -> None:  # those of the optional solvers are in test_optional.py
    check_solver(HIGHS)


def test_highs_is_always_there() -> None:
    assert "highs" in available_solvers()
    for name in ("auto", "highs"):
        assert find_solver(name).available()
        assert find_solver(name).version()
        assert find_solver(name).label == "HiGHS"


def test_the_automatic_choice_knows_its_answers() -> None:
    check_solver(find_solver("auto"))


def test_unknown_solver_is_named_with_the_nearest() -> None:
    with pytest.raises(SolverMissing, match=r"Unknown solver 'higs'\. Did you mean 'highs'\? Known: auto, .*highs"):
        find_solver("higs")


def test_missing_solver_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(HIGHS), "available", lambda self: False)
    with pytest.raises(ImportError, match=r"pip install 'ifonly\[highs\]'") as caught:
        find_solver("highs")
    assert isinstance(caught.value, SolverError)
    assert HIGHS.version() == ""
    assert "highs" not in available_solvers()


def test_limits_never_go_below_zero() -> None:
    limits = Limits(seconds=5.0, gap=1e-3, cutoff=7.0, seed=2)
    assert limits.within(2.0) == replace(limits, seconds=2.0)
    assert limits.within(9.0) == limits
    assert limits.within(-1.0).seconds == 0.0


# -- a conformance kit must be able to fail ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Liar:
    """HiGHS with one lie."""

    lie: str
    name: str = "liar"
    label: str = "Liar"
    capabilities: frozenset[Capability] = HIGHS.capabilities

    def available(self) -> bool:
        return self.lie != "away"

    def version(self) -> str:
        return "1"

    def solve(
        self,
        program: MipArrays,
        limits: Limits,
        on_incumbent: IncumbentHook | None = None,
    ) -> Solution:
        if self.lie == "offset":
            program = replace(program, offset=0.0)
        if self.lie == "relaxes":
            program = replace(program, integer=np.zeros_like(program.integer))
        if self.lie == "ignores cutoff":
            limits = replace(limits, cutoff=np.inf)
        answer = HIGHS.solve(program, limits, None if self.lie == "silent" else on_incumbent)
        if self.lie == "no bound" and answer.status is Status.OPTIMAL:
            return replace(answer, bound=-np.inf)
        if self.lie == "always feasible" and answer.status is Status.INFEASIBLE:
            return replace(answer, status=Status.FAILED)
        if self.lie == "always done" and answer.status is Status.OUT_OF_TIME:
            return replace(answer, status=Status.OPTIMAL)
        return answer


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        ("away", "not available"),
        ("offset", "linear program: expected 117.25"),
        ("relaxes", "integer program: .*integrality"),
        ("ignores cutoff", "cutoff: nothing costs at most"),
        ("no bound", "the bound proves too little"),
        ("always feasible", "is impossible, got"),
        ("always done", "time is up"),
    ],
)
def test_the_kit_finds_a_solver_that_lies(lie: str, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_solver(Liar(lie))


# -- HiGHS itself -----------------------------------------------------------------------------------------------------
def hard_knapsack(seed: int = 0) -> MipArrays:
    rng = np.random.default_rng(seed)
    mip = Mip()
    things = mip.columns(60, 0.0, 1.0, integer=True)
    values = rng.integers(10_000, 99_999, 60).astype(float)
    for _ in range(4):
        weights = rng.integers(10_000, 99_999, 60).astype(float)
        mip.row(Affine(things, weights), upper=float(weights.sum() // 2))
    mip.minimise(Affine(things, -values))
    return mip.arrays()


def test_interrupt_returns_the_best_point_so_far() -> None:
    program = hard_knapsack()

    def interrupt(objective: float, bound: float, values: FloatArray) -> None:
        signal.raise_signal(signal.SIGINT)  # what Ctrl-C does

    answer = HIGHS.solve(program, Limits(seconds=60.0), on_incumbent=interrupt)
    assert answer.interrupted
    assert answer.status is Status.FEASIBLE
    assert answer.values is not None
    assert program.violation(answer.values) <= 1e-6
    assert answer.bound < answer.objective
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # and the usual Ctrl-C is back


def test_a_refused_program_is_an_error_not_an_answer() -> None:
    mip = Mip()
    mip.row(mip.column(0.0, 1.0) * float("nan"), lower=0.0)
    with pytest.raises(SolverFailed, match="refused the program"):
        HIGHS.solve(mip.arrays(), Limits())


def test_a_stumble_of_presolve_gets_a_second_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    # Seen with whole numbers in millions: kSolveError with presolve, the optimum without.
    real, seen = highs._answer, []

    def stumbling(solver, *rest) -> Solution:
        seen.append(solver.getOptionValue("presolve")[1])
        return real(solver, *rest) if len(seen) > 1 else Solution(Status.FAILED)

    monkeypatch.setattr(highs, "_answer", stumbling)
    mip = Mip()
    mip.minimise(mip.column(2.5, 9.0, integer=True))
    answer = HIGHS.solve(mip.arrays(), Limits())
    assert (answer.status, answer.objective) == (Status.OPTIMAL, 3.0)
    assert seen == ["choose", "off"]


def test_solves_outside_the_main_thread() -> None:
    import threading

    answers: list[Solution] = []
    program = hard_knapsack()
    worker = threading.Thread(target=lambda: answers.append(HIGHS.solve(program, Limits(seconds=0.2))))
    worker.start()
    worker.join()
    assert answers[0].status in (Status.FEASIBLE, Status.OPTIMAL)


def test_writes_a_file_with_readable_names(tmp_path) -> None:
    mip = Mip()
    age = mip.column(0.0, 9.0, integer=True, name="age in years")
    mip.row(age, lower=2.5)
    mip.minimise(age)
    write_program(mip.arrays(), tmp_path / "problem.lp")
    text = (tmp_path / "problem.lp").read_text()
    assert "age_in_years >= +2.5" in text
    assert "gen" in text


def test_every_backend_is_a_backend() -> None:
    backends: dict[str, Backend] = known_solvers()
    for name, backend in backends.items():
        assert backend.name == name
        assert backend.label
        assert all(isinstance(c, Capability) for c in backend.capabilities)
