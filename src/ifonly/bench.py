"""Timing of an answer, phase by phase, on German Credit; and the models that the demo and this share."""

# ruff: noqa: PLC0415 - scikit-learn is loaded with the first model

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pandas as pd

from ifonly.criteria.proximity import Proximity
from ifonly.criteria.sparsity import Sparsity
from ifonly.datasets import german_credit
from ifonly.errors import NoCounterfactual
from ifonly.events import Built, Event, Incumbent
from ifonly.explain import Explainer
from ifonly.program.mip import MipArrays
from ifonly.result.values import Status
from ifonly.runtime.warning_filters import heard
from ifonly.solvers.backend import Backend, IncumbentHook, Limits, Solution

__all__ = ["MODELS", "Benchmark", "ModelName", "Timing", "benchmark", "credit_model"]

ModelName = Literal["linear", "forest"]
MODELS: tuple[ModelName, ...] = get_args(ModelName)


def credit_model(name: ModelName, X: pd.DataFrame, y: Any) -> Any:
    """Return a scikit-learn Pipeline that takes raw columns: a logistic regression, or a forest of 100 trees."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    linear = name == "linear"
    categories = list(X.select_dtypes("category"))
    numbers = [column for column in X if column not in categories]
    columns = ColumnTransformer(
        [
            ("category", OneHotEncoder(handle_unknown="ignore"), categories),
            ("number", StandardScaler() if linear else "passthrough", numbers),
        ]
    )
    forest = RandomForestClassifier(100, max_depth=5, random_state=0)
    model = LogisticRegression(max_iter=1000) if linear else forest
    return Pipeline([("columns", columns), ("model", model)]).fit(X, y)


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds one answer took.

    Attributes
    ----------
    status
        That of the explanation ("optimal", ...), or the name of the error that came instead of an answer.
    build
        Reading the row, reducing, and building the program.
    solve
        In the solver.
    verify
        Decoding the point, putting it to the model, and everything else after the last solve.
    """

    status: str
    build: float
    solve: float
    verify: float

    @property
    def total(self) -> float:
        """All of it, as a caller of `explain` waits for it."""
        return self.build + self.solve + self.verify


@dataclass(frozen=True)
class Benchmark:
    """The timings of many answers."""

    model: ModelName
    solver: str
    timings: tuple[Timing, ...]

    def answered(self) -> list[Timing]:
        """Return the timings of the rows that have an answer."""
        return [t for t in self.timings if t.status in get_args(Status)]

    def table(self) -> pd.DataFrame:
        """Return the median, 90th percentile and maximum of each phase, in milliseconds."""
        phases = ("build", "solve", "verify", "total")
        seconds = pd.DataFrame([{p: getattr(t, p) for p in phases} for t in self.answered()], columns=list(phases))
        figures = {"median": seconds.median(), "p90": seconds.quantile(0.9), "max": seconds.max()}
        return pd.DataFrame(figures) * 1e3


class _Stopwatch:
    """Stopwatch of phases, of which it hears by events and by watching the solver: each gets the time since the last look."""

    def __init__(self) -> None:
        self.seconds = {"build": 0.0, "solve": 0.0, "verify": 0.0}
        self._after = "build"
        self._last = time.perf_counter()

    def lap(self, phase: str, after: str) -> None:
        """Count the time that has passed as `phase`; what follows is `after` unless said otherwise."""
        now = time.perf_counter()
        self.seconds[phase] += now - self._last
        self._last, self._after = now, after

    def hear(self, event: Event) -> None:
        """A program was built: all before it was building; an answer: what follows, if no solver is at work, checks it."""
        if isinstance(event, Built):
            self.lap("build", "solve")
        elif isinstance(event, Incumbent) and self._after == "solve":
            self.lap("solve", "verify")

    def stop(self, status: str) -> Timing:
        """Return the timing."""
        self.lap(self._after, "")
        return Timing(status, **self.seconds)


class _Watched:
    """A solver that tells a stopwatch when it is done."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.name, self.label, self.capabilities = backend.name, backend.label, backend.capabilities
        self.watch = _Stopwatch()
        self.used: set[str] = set()

    def available(self) -> bool:
        return self.backend.available()

    def version(self) -> str:
        return self.backend.version()

    def solve(self, program: MipArrays, limits: Limits, on_incumbent: IncumbentHook | None = None) -> Solution:
        answer = self.backend.solve(program, limits, on_incumbent)
        self.watch.lap("solve", "verify")
        return answer


def benchmark(
    rows: int = 100,
    *,
    model: ModelName = "linear",
    solver: str = "auto",
    at_most: int = 3,
    time_limit: float = 30.0,
    on_answer: Callable[[int, int], None] | None = None,
) -> Benchmark:
    """Explain applicants of German Credit whom a model refuses, one by one, on one core.

    Parameters
    ----------
    rows
        How many applicants, at most.
    model
        A logistic regression, or a forest of 100 trees of depth 5.
    solver
        As in `Explainer`.
    at_most
        How many features may change.
    time_limit
        Seconds per applicant.
    on_answer
        Called after each answer with how many are done and how many there are.
    """
    credit = german_credit()
    X, fitted = credit.frame, credit_model(model, credit.frame, credit.target)
    house = (Proximity("l1", scale="range"), Sparsity(at_most=at_most))
    explainer = Explainer(fitted, X, schema=credit.schema, criteria=house, solver=solver)
    watched = _Watched(explainer.backend)
    explainer.backend = watched
    refused = X[fitted.predict(X) != credit.wanted].iloc[:rows]
    timings = []
    # The first answer loads the solver and fills the caches, which is not what a second one waits for.
    for done, i in enumerate((0, *range(len(refused)))):
        timings.append(_timed(explainer, watched, refused.iloc[[i]], credit.wanted, time_limit))
        if on_answer is not None:
            on_answer(done, len(refused))
    return Benchmark(model, " and ".join(sorted(watched.used)) or watched.label, tuple(timings[1:]))


def _timed(explainer: Explainer, watched: _Watched, row: pd.DataFrame, want: Any, time_limit: float) -> Timing:
    watched.watch = watch = _Stopwatch()
    try:
        with heard():
            answer = explainer.explain(row, want=want, time_limit=time_limit, on_event=watch.hear)
        status: str = answer.status
        watched.used.add(answer.solver)
    except NoCounterfactual as error:
        status = type(error).__name__
    return watch.stop(status)
