"""Checks by which engines tell the questions they can take: what their demands are, and how far these and costs reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from ifonly.models.abilities import Ensemble
from ifonly.models.forms.enclosing import Enclosure
from ifonly.program.box import Box
from ifonly.question.abilities import Counts
from ifonly.question.criterion import HasConsequences
from ifonly.question.demand import BoxDemand
from ifonly.question.found import NO_SOLVER, Found
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Enclosed, Encloses
from ifonly.search.progress import Engine, Progress

__all__ = [
    "NO_SOLVER",
    "Engine",
    "OnlyWith",
    "Separable",
    "by_cells",
    "enclosure_of",
    "fills_gaps",
    "largest_only",
    "linear_in_scores",
    "over_balls",
    "quadratic_only",
    "separable",
]


@dataclass(frozen=True)
class OnlyWith:
    """Engine for questions with a demand of some ability: it is not asked about others, which do not pass through it."""

    ability: type
    engine: Engine

    @property
    def name(self) -> str:
        """The name of the engine itself."""
        return self.engine.name

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether there is such a demand, and the engine takes the question."""
        return any(isinstance(d, self.ability) for d in statement.demands) and self.engine.accepts(statement, box)

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Search by the engine itself."""
        return self.engine.search(statement, box, progress)


class Separable(NamedTuple):
    """A question in which nothing but the goal reaches beyond single features: the goal, and how many may change."""

    goal: Goal
    most: int


def separable(statement: Statement) -> Separable | None:
    """Return the goal and the number of changes, or None where a cost or a demand couples features in another way."""
    return _on_single_features(statement) if statement.separable() else None


def largest_only(statement: Statement) -> Separable | None:
    """Return the same where the only cost is the largest one of single features (l-infinity), else None."""
    coupled = statement.coupled
    if (
        len(coupled) != 1
        or not coupled[0].is_largest()
        or any(isinstance(c, HasConsequences) for c in statement.criteria)
    ):
        return None
    return _on_single_features(statement) if statement.costs().free() else None


def quadratic_only(statement: Statement) -> Separable | None:
    """Return the same where the only cost of numbers is a square of a linear map of their moves (Mahalanobis), else None."""
    coupled = statement.coupled
    if len(coupled) != 1 or any(isinstance(c, HasConsequences) for c in statement.criteria):
        return None
    costs, numbers = statement.costs(), statement.query.schema.numeric
    if costs.curves or any(part[numbers].any() for part in (costs.linear, costs.square, costs.price)):
        return None
    return _on_single_features(statement) if coupled[0].factor(statement.query) is not None else None


def _on_single_features(statement: Statement) -> Separable | None:
    found = statement.on_single_features
    return None if found is None else Separable(cast("Goal", found.goal), found.most)


def linear_in_scores(statement: Statement, box: Box) -> Separable | None:
    """Return the goal and the number of changes where the goal is linear in the scores and costs are no tables, else None."""
    question = None if fills_gaps(statement, box) else separable(statement)
    if question is None or statement.costs().curves or question.goal.is_curved():
        return None
    return question if question.goal.rows() else None


def enclosure_of(statement: Statement) -> Enclosure | None:
    """Return the steps of a statement's form over its atoms; those of boxes that questions ask for again are remembered."""
    form, box = statement.form, statement.box()
    return statement.query.model.memo.get("enclosure", (id(form), box.key), lambda: Enclosure.of(form, box), keep=form)


def over_balls(statement: Statement, box: Box) -> list[Enclosed]:
    """Return the leads that are demanded all over balls, linear in scores; none where more than single features matters else.

    The goal at the answer itself is part of one of the balls.
    """
    if not statement.separable() or statement.exempt() or statement.costs().curves or fills_gaps(statement, box):
        return []
    balls: list[Enclosed] = []
    for demand in statement.demands:
        ball = demand.enclosed() if isinstance(demand, Encloses) else None
        if ball is not None:
            balls.append(ball)
        elif not isinstance(demand, Goal | Counts | BoxDemand):
            return []
    own = any(ball.goal is statement.query.goal for ball in balls)
    linear = all(ball.goal.rows() for ball in balls)
    return balls if own and linear else []


def by_cells(statement: Statement, box: Box, question: Separable | None) -> bool:
    """Whether a search cell by cell can close it: sums of trees, a goal linear in them, cells that have an order of cost."""
    form = statement.form
    if question is None or not isinstance(form, Ensemble) or fills_gaps(statement, box):
        return False
    return bool(question.goal.rows())


def fills_gaps(statement: Statement, box: Box) -> bool:
    """Whether a value may take the place of a missing one: it has no distance, so cells have no order of cost."""
    factual, schema = statement.query.factual, statement.query.schema
    if not np.isnan(factual).any():
        return False
    return not all(box.missing[j] for j in schema.numeric if np.isnan(factual[schema.starts[j]]))
