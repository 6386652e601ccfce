"""The first margin of a question: the least lead of a score that can be told from a tie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ifonly.models.form import Form
from ifonly.models.rules import Sign
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.tolerances import ON_GRID as _MULTIPLE

__all__ = ["first_margin", "lead_in_steps"]


def first_margin(statement: Statement, goal: Goal) -> Statement:
    """Return the statement with the least lead that can be told from a tie, where a tie would be lost.

    Scores that are whole multiples of a unit, added up without rounding, are a unit apart, or equal. Other scores of
    trees may be off by rounding, and the model itself tells them apart, point by point. What is continuous must clear
    its threshold by more than rounding.
    """
    noise = goal.rounding(statement.form, statement.box())
    if not statement.form.raw():
        return replace(statement, margin=-noise, tie=lead_in_steps(goal, statement.form, noise))
    schema = statement.query.schema
    on_grid = all(schema.features[j].step is not None for j in statement.form.raw())  # type: ignore[union-attr]
    if not on_grid and goal.model.rounding > np.finfo(np.float64).eps:
        # Single precision: within its noise there may be answers. They are asked for first, and the model has the last word.
        return replace(statement, margin=0.0, tie=0.0)
    # On a grid a tie is a point of its own; between its points it is the edge of what there is.
    return replace(statement, margin=0.0 if on_grid else noise, tie=noise)


def lead_in_steps(goal: Goal, form: Form, noise: float) -> float:
    """Return the lead to ask for where scores are constant in cells: half a unit if a tie is lost, else less than none.

    Scores that are off by rounding are then told apart by the model itself.
    """
    exact = bool(getattr(form, "adds_exactly", False))
    spacing = float(getattr(form, "spacing", 0.0)) if exact else 0.0
    lost = spacing > 2.0 * noise and _loses_at_the_threshold(goal, spacing)
    return 0.5 * spacing if lost else -noise


def _loses_at_the_threshold(goal: Goal, spacing: float) -> bool:
    """Whether scores that are multiples of a unit meet the threshold at one of them, and that one is not enough.

    Such a score may be a float away from the threshold, on either side: one tuned on the data is taken from the scores.
    """
    read = goal.read
    if not isinstance(read.rule, Sign):
        return True
    count = round(read.threshold / spacing)
    score = count / round(1.0 / spacing) if spacing < 1.0 else count * spacing
    near = abs(read.threshold / spacing - count) < _MULTIPLE
    return near and not bool(goal.holds_scores(np.array([[score]]))[0])
