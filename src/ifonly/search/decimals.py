"""Decimals of the data as the grid of a question, where the grid costs nothing.

Between points of a grid there is nothing to prove for trees, whose cells have a nearest point each, and little for a knapsack
of one linear row, in which a single feature makes the last step. Elsewhere a grid turns a convex question into one of whole
numbers: squares, the largest of all changes and Mahalanobis lose their closed forms, thin hulls and equations between
features lose their points, and a robust ball that is smaller than a step is no ball any more.
"""

from __future__ import annotations

from ifonly.models.abilities import Ensemble, LinearScores
from ifonly.question.any_class import AnyClassGoal
from ifonly.question.statement import Statement
from ifonly.search.engine import by_cells, fills_gaps, separable
from ifonly.search.linear.engine import one_linear_row

__all__ = ["takes_decimals"]


def takes_decimals(statement: Statement) -> bool:
    """Whether a question is one that is closed without a solver on grids as well as on intervals."""
    question = separable(statement)
    if question is None:
        return False
    if isinstance(statement.form, Ensemble):
        # A union of classes is searched class by class.
        any_class = isinstance(question.goal, AnyClassGoal) and not fills_gaps(statement, statement.whole)
        return any_class or by_cells(statement, statement.whole, question)
    if not isinstance(statement.form, LinearScores) or not one_linear_row(question.goal):
        return False
    costs = statement.costs()
    return not costs.curves and not costs.square.any() and statement.starts_in(statement.whole)
