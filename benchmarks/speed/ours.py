"""Ours, as people call it: the whole `explain`, with what the model itself takes of it, and the memory."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.calls import Calls
from benchmarks.peers.memory import forget_peak, peak_memory
from benchmarks.speed.problems import Case
from benchmarks.speed.replies import Reply
from ifonly import Explainer
from ifonly.errors import IfOnlyWarning, Infeasible, NoCounterfactual

__all__ = ["Ours"]


class _Clocked:
    """A solver that counts the seconds spent in it."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.spent = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def solve(self, *args: Any, **options: Any) -> Any:
        """Solve and count."""
        began = time.perf_counter()
        try:
            return self._backend.solve(*args, **options)
        finally:
            self.spent += time.perf_counter() - began


class Ours:
    """ifonly, opened on a case; `made` tells of the constructor."""

    def __init__(self, case: Case, solver: str) -> None:
        self.case = case
        schema = case.table.schema if case.ask.schema else None
        forget_peak()
        before, began, worked = peak_memory(), time.perf_counter(), time.process_time()
        self.explainer = Explainer(
            case.model,
            case.table.frame,
            case.table.target,
            schema=schema,
            criteria=case.ask.criteria(),
            solver=solver,
        )
        seconds, cpu = time.perf_counter() - began, time.process_time() - worked
        self.made = Reply("opened", seconds, cpu=cpu, peak=peak_memory() - before)
        self.calls = Calls(case.model)
        self.clock = _Clocked(self.explainer.backend)
        self.explainer.backend = self.clock

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IfOnlyWarning)
            yield

    def explain(self, row: int, seconds: float) -> Reply:
        """Explain; `verify` is what the model itself takes, `solve` what a solver takes, `build` all the rest."""
        ask, factual = self.case.ask, self.case.table.frame.iloc[[row]]
        self.clock.spent = 0.0
        self.calls.reset()
        began, worked = time.perf_counter(), time.process_time()
        try:
            with self._quiet():
                answer = self.explainer.explain(
                    factual, want=ask.want(self.case.table.wanted), n=ask.answers, time_limit=seconds
                )
        except NoCounterfactual as error:
            spent, cpu = time.perf_counter() - began, time.process_time() - worked
            status = type(error).__name__
            return Reply(status, spent, proven=isinstance(error, Infeasible), cpu=cpu, note=str(error)[:200])
        total, cpu = time.perf_counter() - began, time.process_time() - worked
        return self._told(answer, total, cpu, self.clock.spent, peak_memory())

    def explain_all(self, rows: Sequence[int], seconds: float) -> Iterator[Reply]:
        """Explain all rows together; each is told as an equal share of the whole."""
        frame = self.case.table.frame.iloc[list(rows)]
        self.calls.reset()
        began, worked = time.perf_counter(), time.process_time()
        outcomes = self.explainer.explain_all(
            frame, want=self.case.ask.want(self.case.table.wanted), time_limit=seconds
        )
        total, cpu = (time.perf_counter() - began) / len(frame), (time.process_time() - worked) / len(frame)
        peak = peak_memory()
        for outcome in outcomes:
            if outcome.explanation is None:
                proven = outcome.status == "infeasible"
                yield Reply(str(outcome.status), total, proven=proven, cpu=cpu, note=str(outcome.error)[:200])
            else:
                yield self._told(outcome.explanation, total, cpu, 0.0, peak, len(frame))

    def _told(self, answer: Any, total: float, cpu: float, solving: float, peak: float, among: int = 1) -> Reply:
        certificates = [c.certificate for c in answer]
        verify = min(self.calls.seconds / among, total - solving)
        row: pd.DataFrame = answer.frame() if len(answer) > 1 else answer[0].row
        return Reply(
            "found",
            total,
            self.case.row_of(answer[0].row),
            all(c.proven for c in certificates) and len(answer) == self.case.ask.answers,
            certificates[0].bound,
            row,
            {"build": total - solving - verify, "solve": solving, "verify": verify},
            cpu,
            cost=float(np.mean([c.objective for c in certificates])),
            calls=self.calls.count / among,
            model_cpu=self.calls.cpu / among,
            peak=peak,
        )

    def close(self) -> None:
        """Leave the model as it was."""
        self.calls.end()
