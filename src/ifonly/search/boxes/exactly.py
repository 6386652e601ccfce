"""Exact second run: what a mixed-integer solver closed, asked again of SCIP in rational arithmetic."""

from __future__ import annotations

from dataclasses import replace

from ifonly.errors import NotProvenOptimal, warn
from ifonly.models.abilities import distance_from_ties
from ifonly.question.found import EXACTLY, Found
from ifonly.question.problem import build
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Wraps
from ifonly.runtime.deadline import Deadline
from ifonly.search.boxes.affordable import affordable
from ifonly.solvers.exact import exact_minimum

__all__ = ["run_again"]


def run_again(statement: Statement, found: Found, label: str, deadline: Deadline) -> Found:
    """Return what was found with a bound that holds in rational arithmetic too; say so where there is no such verdict."""
    least, why = None, "it is not one linear program"
    if _is_one_program(statement, deadline):
        least, why = exact_minimum(build(statement, statement.box()).arrays(), deadline.left()), "it came to no verdict"
    if least is None:
        warn(
            f"The exact run proves nothing: {why}. The answer is proven as it is without proof='exact'.",
            NotProvenOptimal,
        )
        return found
    return replace(found, bound=min(found.bound, least), solver=f"{found.solver or label}, {EXACTLY}")


def _is_one_program(statement: Statement, deadline: Deadline) -> bool:
    """Whether one linear program says all that is demanded, and there is room to build it."""
    if any(isinstance(demand, Wraps) for demand in statement.demands) or distance_from_ties(statement.form) != 0.0:
        return False
    box = statement.box()
    return box.empty() is None and not deadline.passed and affordable(statement, box, deadline)
