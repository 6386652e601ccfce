"""Replay of a proof: a checker that shares nothing with the searches but the model's form and the question itself.

The claim: no point of the box that reaches the goal and changes at most so many features costs less than `bound`. The
trail (`ifonly.question.trail`) divides the box; its leaves cover it by construction, whatever the splits are. A part is
closed if one of these holds, computed here:

* it is empty, or more features must change in it than may;
* the least costs of its features add up to `bound`;
* among what costs less than `bound` the goal is out of reach: every tree at its best leaf that is left does not suffice;
* each tree has one leaf left, and these, added up as the model does, do not give the wanted outcome;
* for a linear score: a Lagrangian bound, at the multiplier that the trail names, reaches `bound`.

Arithmetic. For linear scores everything is a fraction, hence exact. For trees the costs of cells are rounded down, the
values of leaves up, and sums are `math.fsum`, the float nearest to the exact sum: its sign is that of the exact sum. A
cell is dropped only if it is too dear by more than all roundings together. So every error is on the side of refusing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any

from ifonly.models.abilities import Ensemble, LinearScores
from ifonly.program.mip import Affine
from ifonly.question.abilities import Counts
from ifonly.question.demand import BoxDemand
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.question.trail import Split, events
from ifonly.record.linear_parts import LinearParts
from ifonly.record.parts import NotReplayable, Parts, Refused
from ifonly.record.tree_parts import TreeParts
from ifonly.runtime.deadline import Deadline
from ifonly.tolerances import DUST

__all__ = ["NotReplayable", "Refused", "Replayed", "replay"]

_DEEPEST = 100_000


@dataclass(frozen=True)
class Replayed:
    """A proof that holds: how many parts there are, the claim that was checked, and its margin."""

    parts: int
    bound: float
    margin: float


def replay(statement: Statement, goal: Goal, bound: float, trail: bytes, deadline: Deadline) -> Replayed:
    """Check that a trail proves that no answer costs less than `bound` (less one part in 10^9 of it, for rounding).

    Raises
    ------
    Refused
        When a part is not closed, or the trail does not end where it should.
    NotReplayable
        When this checker does not know the kind of question, or the deadline comes first.
    SchemaError
        When the bytes are no trail.
    """
    if not trail:
        raise NotReplayable("a solver closed it, or a limit ended it, and there are no parts to look at")
    if not isfinite(bound):
        raise Refused("there is no bound to prove")
    statement = goal.with_first_margin(statement)
    parts = _parts_of(statement, goal, bound - DUST * abs(bound))
    states, n = parts.whole(), 0
    pending: list[tuple[int, Any, Any]] = []
    done = False
    for event in events(trail):
        if done:
            raise Refused("it goes on after its last part")
        if isinstance(event, Split):
            if event.feature >= len(states) or states[event.feature] is None:
                raise Refused(f"it splits on feature {event.feature}, on which nothing can be decided")
            if len(pending) >= _DEEPEST:
                raise Refused(f"it is more than {_DEEPEST:,} splits deep")
            state = states[event.feature]
            first, second = parts.sides(state, event)
            if event.second_first:
                first, second = second, first
            states[event.feature] = first
            pending.append((event.feature, second, state))
            continue
        n += 1
        if not parts.closed(states, event.price):
            raise Refused(f"part {n:,} is not closed: something in it may be a cheaper answer")
        if deadline.passed:
            raise NotReplayable(f"the time was over after {n:,} parts")
        done = _next(states, pending)
    if not done:
        raise Refused(f"parts are missing: it ends after {n:,} of them, and they do not cover the question")
    return Replayed(n, bound, _told_margin(statement, goal))


def _next(states: list[Any], pending: list[tuple[int, Any, Any]]) -> bool:
    """Go on to the next part that is pending; return whether there is none."""
    while pending:
        j, other, before = pending.pop()
        if other is not None:
            states[j] = other
            pending.append((j, None, before))
            return False
        states[j] = before
    return True


def _told_margin(statement: Statement, goal: Goal) -> float:
    """Return the margin as certificates tell it."""
    return max(statement.margin, 0.0 if goal.ties_are_ours() else statement.tie, 0.0)


def _parts_of(statement: Statement, goal: Goal, bound: float) -> Parts:
    """Return the parts of a question, derived anew from its demands and costs."""
    if statement.exempt() or not statement.separable():
        raise NotReplayable("its costs do not belong to single features")
    if statement.costs().curves:
        raise NotReplayable("some of its costs are tables or percentiles")
    most = len(statement.query.schema)
    for demand in statement.demands:
        if isinstance(demand, Counts):
            most = min(most, demand.at_most())
        elif demand is not goal and not isinstance(demand, BoxDemand):
            raise NotReplayable(f"the demand {demand.text!r} couples features")
    box = statement.box()
    for j in statement.query.schema.numeric:
        if isnan(statement.query.factual[statement.query.schema.starts[j]]) and not box.missing[j]:
            raise NotReplayable("a value may take the place of a missing one")
    form = statement.form
    gaps = goal.gaps([Affine.of(k) for k in range(form.n_outputs)], statement.margin, statement.tie)
    if isinstance(form, Ensemble):
        return TreeParts(statement, goal, box, most, bound, form, gaps)
    if isinstance(form, LinearScores) and len(gaps) == 1 and not goal.is_curved():
        return LinearParts(statement, box, most, bound, form, gaps[0])
    raise NotReplayable("its scores are neither sums of trees nor one linear row")
