"""The kit's part for criteria: what is said to the optimiser against what is said to NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.question.criterion import Criterion
from ifonly.question.problem import Problem
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.solvers.backend import Limits
from ifonly.solvers.tangents import solve
from ifonly.testing.claims import TOLERANCE, require
from ifonly.tolerances import DUST, LP_EXACT, OPTIMALITY

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["check_criterion"]


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
    """
    asked = explainer.problem(row, want=want).statement.query
    criterion.check(asked)
    demands = tuple(criterion.demands(asked))
    model = explainer.model.read.form
    statement = Statement(asked, demands, (criterion,), model)
    box, met = statement.box(), 0
    for u in _rows_near(asked, points, np.random.default_rng(seed)):
        holds = all(bool(d.holds(asked, u[None, :])[0]) for d in demands)
        met += holds
        if not bool(box.contains(u[None, :], DUST)[0]):
            require(not holds, f"the box excludes a row that every demand allows: {u.tolist()}")
            continue
        problem = _pinned(statement, u)
        answer = solve(problem.arrays(), explainer.backend, Limits(gap=0.1 * OPTIMALITY))
        feasible = answer.values is not None
        require(feasible == holds, f"NumPy says {holds}, the optimiser {feasible} about {u.tolist()}")
        if feasible:
            twin = float(statement.objective(u[None, :])[0])
            close = abs(answer.objective - twin) <= TOLERANCE * max(1.0, abs(twin))
            require(close, f"NumPy says it costs {twin}, the optimiser {answer.objective}: {u.tolist()}")
    require(met or not demands, "no row meets the demands, so nothing was compared; try more points")


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
    for criterion in statement.criteria:
        criterion.add_cost(problem)
    for j in range(len(schema)):
        part = u[schema.slice(j)]
        if j in numeric:
            problem.mip.row(problem.x.raw(j), float(part[0]) - LP_EXACT, float(part[0]) + LP_EXACT)
        else:
            problem.mip.row(problem.x.level_in(j, part > 0.5), 1.0, 1.0)
    problem.minimise(statement.costs())
    return problem
