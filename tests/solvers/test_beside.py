"""A solve that does not look at the clock is left when its time is over, and what was heard of it is not lost."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ifonly.program.mip import MipArrays
from ifonly.solvers import highs
from ifonly.solvers.backend import Limits, Status
from ifonly.solvers.beside import Beside
from portions import one_in


def knapsack(n: int = 40, rows: int = 12, seed: int = 0) -> MipArrays:
    """Covering rows over 0/1 columns: many incumbents before the optimum."""
    rng = np.random.default_rng(seed)
    return MipArrays(
        cost=rng.uniform(1.0, 2.0, n),
        offset=0.0,
        lower=np.zeros(n),
        upper=np.ones(n),
        integer=np.ones(n, dtype=np.bool_),
        matrix=sparse.csr_matrix(rng.integers(1, 30, (rows, n)).astype(float)),
        row_lower=np.full(rows, 200.0),
        row_upper=np.full(rows, np.inf),
        names=tuple(f"x{i}" for i in range(n)),
        squares=(),
        convex=(),
    )


def test_messages_are_heard_in_the_thread_that_waits() -> None:
    beside: Beside[int] = Beside()
    heard: list[tuple[int, bool]] = []

    def work() -> None:
        assert threading.current_thread() is not threading.main_thread()
        for i in range(3):
            beside.tell(i)

    main = threading.current_thread()
    assert beside.run(work, 10.0, lambda i: heard.append((i, threading.current_thread() is main)))
    assert heard == [(0, True), (1, True), (2, True)]
    assert not beside.left


def test_what_takes_too_long_is_left_and_told_so() -> None:
    beside: Beside[int] = Beside()
    goes_on, ended, heard = threading.Event(), threading.Event(), list[int]()

    def work() -> None:
        beside.tell(1)
        goes_on.wait(10.0)
        assert beside.left
        beside.tell(2)
        ended.set()

    began = time.perf_counter()
    assert not beside.run(work, 0.05, heard.append)
    assert time.perf_counter() - began < 5.0
    assert beside.left
    goes_on.set()
    assert ended.wait(10.0)
    assert heard == [1]  # what came later is heard by nobody


def test_exceptions_of_both_sides_are_raised_where_one_waits() -> None:
    def fails() -> None:
        raise ArithmeticError("of the solver")

    with pytest.raises(ArithmeticError, match="of the solver"):
        Beside[int]().run(fails, 10.0, lambda _: None)

    beside: Beside[int] = Beside()

    def refuse(message: int) -> None:
        raise LookupError("of the listener")

    with pytest.raises(LookupError, match="of the listener"):
        beside.run(lambda: beside.tell(1), 10.0, refuse)
    assert beside.left


def deaf(monkeypatch: pytest.MonkeyPatch, ended: threading.Event) -> None:
    """Make HiGHS one that looks at no clock, and goes on for a while after its last incumbent."""
    load = highs.load

    class Deaf:
        def __init__(self, program: MipArrays) -> None:
            self.inner = load(program)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name == "inner":
                object.__setattr__(self, name, value)
            else:
                setattr(self.inner, name, value)

        def setOptionValue(self, name: str, value: object) -> None:  # noqa: N802 - HiGHS's own name
            if name != "time_limit":
                self.inner.setOptionValue(name, value)

        def run(self) -> None:
            self.inner.run()
            time.sleep(1.0)
            ended.set()

    monkeypatch.setattr(highs, "load", Deaf)


@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_what_was_heard_of_a_solve_is_feasible_and_its_bound_holds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = knapsack(seed=seed)
    optimum = highs.BACKEND.solve(program, Limits(seconds=60.0))
    assert optimum.status is Status.OPTIMAL
    ended = threading.Event()
    deaf(monkeypatch, ended)
    told: list[float] = []
    answer = highs.BACKEND.solve(program, Limits(seconds=0.5), lambda cost, bound, values: told.append(cost))
    assert not ended.is_set()
    assert answer.status is Status.FEASIBLE
    assert answer.values is not None
    assert (program.matrix @ answer.values >= program.row_lower - 1e-6).all()
    assert np.abs(answer.values - np.round(answer.values)).max() <= 1e-6
    assert answer.objective == pytest.approx(float(program.cost @ answer.values))
    assert answer.bound <= optimum.objective + 1e-9 <= answer.objective + 2e-9
    assert len(told) == len(answer.pool) > 0
    assert ended.wait(10.0)


def test_without_an_incumbent_it_is_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    deaf(monkeypatch, ended)
    program = knapsack()
    nothing = highs.BACKEND.solve(program, Limits(seconds=0.2, cutoff=-1.0))  # no point costs so little
    assert nothing.status is Status.OUT_OF_TIME
    assert nothing.values is None
    assert not nothing.interrupted
    assert ended.wait(10.0)


def test_a_process_ends_well_while_a_solve_that_was_left_still_runs() -> None:
    script = """if True:
        import sys
        sys.path.insert(0, sys.argv[1])
        from solvers.test_beside import knapsack
        from ifonly.solvers.beside import Beside
        from ifonly.solvers.highs import load

        highs, beside = load(knapsack(300, 60)), Beside()

        def stop(event):
            if beside.left:
                event.data_in.user_interrupt = True

        highs.cbMipInterrupt += stop
        print("ended" if beside.run(highs.run, 0.05, print) else "left")
    """
    command = [sys.executable, "-c", script, str(Path(__file__).parent.parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")
