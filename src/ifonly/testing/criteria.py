"""The kit's part for criteria: what is said to the optimiser against what is said to NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.question.criterion import Criterion
from ifonly.question.problem import Problem
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.runtime.memo import cached_property
from ifonly.solvers.backend import Limits, Solution
from ifonly.solvers.tangents import solve
from ifonly.testing.claims import TOLERANCE, Check, require, run_all
from ifonly.tolerances import DUST, LP_EXACT, OPTIMALITY

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["check_criterion", "criterion_checks"]


def check_criterion(
    criterion: Criterion, explainer: Explainer, row: Any, *, want: Any = None, points: int = 20, seed: int = 0
) -> None:
    """Check that a criterion says the same to the optimiser and to NumPy.

    At random rows of the schema's box, the program with its variables pinned to the row must be feasible exactly when
    every demand `holds`, and must cost exactly what the criterion measures.

    Parameters
    ----------
    criterion
        The criterion, as a user would write it.
    explainer, row, want
        A question to ask it in.
    points
        How many rows to look at.
    seed
        Seed of their choice.

    Raises
    ------
    AssertionError
        With the name of the check that failed (see `criterion_checks`), and a sentence on what differs.
    """
    run_all(criterion_checks(criterion, explainer, row, want=want, points=points, seed=seed))


def criterion_checks(
    criterion: Criterion, explainer: Explainer, row: Any, *, want: Any = None, points: int = 20, seed: int = 0
) -> Iterator[Check]:
    """Yield the checks of a criterion, each with its name, for a test of its own; for parameters see `check_criterion`.

    The checks are independent of each other; the programs that they compare with are solved once, by the first of them.
    """
    twins = _Twins(criterion, explainer, row, want, points, seed)
    yield "is well-posed", twins.well_posed
    yield "box keeps what the demands allow", twins.box
    yield "program is feasible where the demands hold", twins.feasible
    yield "program costs what NumPy measures", twins.cost
    yield "some row meets the demands", twins.met


class _Twins:
    """Both sides of a criterion at some rows: NumPy's verdict and cost, and those of a program pinned to the row."""

    def __init__(self, criterion: Criterion, explainer: Explainer, row: Any, want: Any, points: int, seed: int) -> None:
        self.criterion, self.explainer, self.row, self.want = criterion, explainer, row, want
        self.points, self.seed = points, seed

    @cached_property
    def query(self) -> Query:
        """The question that the criterion is asked in."""
        return self.explainer.problem(self.row, want=self.want).statement.query

    @cached_property
    def statement(self) -> Statement:
        """The question with the demands and costs of this criterion alone."""
        demands = tuple(self.criterion.demands(self.query))
        return Statement(self.query, demands, (self.criterion,), self.explainer.model.read.form)

    @cached_property
    def rows(self) -> list[FloatArray]:
        """The rows to look at."""
        return _rows_near(self.query, self.points, np.random.default_rng(self.seed))

    @cached_property
    def holds(self) -> list[bool]:
        """NumPy's verdict on each row."""
        return [all(bool(d.holds(self.query, u[None, :])[0]) for d in self.statement.demands) for u in self.rows]

    @cached_property
    def inside(self) -> list[bool]:
        """Whether the box of the demands keeps each row."""
        box = self.statement.box()
        return [bool(box.contains(u[None, :], DUST)[0]) for u in self.rows]

    @cached_property
    def solved(self) -> list[Solution | None]:
        """The solution of the program pinned to each row; None for a row outside the box."""
        backend, limits = self.explainer.backend, Limits(gap=0.1 * OPTIMALITY)
        return [
            solve(_pinned(self.statement, u).arrays(), backend, limits) if inside else None
            for u, inside in zip(self.rows, self.inside, strict=True)
        ]

    def well_posed(self) -> None:
        """The criterion accepts the question: `check` raises nothing."""
        self.criterion.check(self.query)

    def box(self) -> None:
        """No row that every demand allows lies outside the box."""
        for u, holds, inside in zip(self.rows, self.holds, self.inside, strict=True):
            require(inside or not holds, f"the box excludes a row that every demand allows: {u.tolist()}")

    def feasible(self) -> None:
        """The pinned program has a point exactly where every demand holds."""
        for u, holds, answer in zip(self.rows, self.holds, self.solved, strict=True):
            if answer is not None:
                feasible = answer.values is not None
                require(feasible == holds, f"NumPy says {holds}, the optimiser {feasible} about {u.tolist()}")

    def cost(self) -> None:
        """The pinned program costs what the criterion measures."""
        for u, answer in zip(self.rows, self.solved, strict=True):
            if answer is not None and answer.values is not None:
                twin = float(self.statement.objective(u[None, :])[0])
                close = abs(answer.objective - twin) <= TOLERANCE * max(1.0, abs(twin))
                require(close, f"NumPy says it costs {twin}, the optimiser {answer.objective}: {u.tolist()}")

    def met(self) -> None:
        """Some row meets the demands, or nothing was compared."""
        some = any(self.holds) or not self.statement.demands
        require(some, "no row meets the demands, so nothing was compared; try more points")


def _rows_near(query: Query, n: int, rng: np.random.Generator) -> list[FloatArray]:
    """Return the factual with a few features changed at random, more from row to row."""
    schema, out = query.schema, [query.factual.copy()]
    for k in range(n):
        u = query.factual.copy()
        for j in rng.choice(len(schema), size=min(len(schema), 1 + k % len(schema)), replace=False):
            feature = schema.features[int(j)]
            if isinstance(feature, Numeric):
                u[schema.starts[int(j)]] = feature.snap(float(rng.uniform(feature.lower, feature.upper)))
            else:
                u[schema.slice(int(j))] = np.eye(feature.width)[int(rng.integers(feature.width))]
        out.append(u)
    return out


def _pinned(statement: Statement, u: FloatArray) -> Problem:
    """Return the whole program with rows that pin every variable to `u`."""
    schema = statement.query.schema
    numeric = frozenset(schema.numeric)
    problem = Problem(replace(statement, margin=0.0), statement.box(), extra_raw=numeric)
    problem.touch(frozenset(range(len(schema))))  # the pins move features that the model may not look at
    for demand in statement.demands:
        demand.apply(problem)
    for criterion in statement.coupled:
        criterion.add_cost(problem)
    for j in range(len(schema)):
        part = u[schema.slice(j)]
        if j in numeric:
            # x_j = u_j, up to rounding
            problem.mip.row(problem.x.raw(j), float(part[0]) - LP_EXACT, float(part[0]) + LP_EXACT)
        else:
            # the level of u
            problem.mip.row(problem.x.level_in(j, part > 0.5), 1.0, 1.0)
    problem.minimise(statement.costs())
    return problem
