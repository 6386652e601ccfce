"""Replay of a proof: a checker that shares nothing with the searches but the model's form and the question itself.

The claim: no point of the box that reaches the goal and changes at most so many features costs less than `bound`. The
trail (`ifonly.question.trail`) divides the box; its leaves cover it by construction, whatever the splits are. A part is
closed if one of these holds, computed here:

* it is empty, or more features must change in it than may;
* the least costs of its features add up to `bound`;
* among what costs less than `bound` the goal is out of reach: every tree at its best leaf that is left does not suffice;
* each tree has one leaf left, and these, added up as the model does, do not give the wanted outcome;
* the same of what prices of splits leave: a Lagrangian bound, at the prices that the trail names for the part, or for one
  around it (`ifonly.record.price_parts`), takes leaves and options away, or closes it;
* for a linear score: a Lagrangian bound, at the multiplier that the trail names, reaches `bound`;
* for a network: bounds carried back through its layers stay below the goal wherever a point costs less than `bound`.

An impossible question is one whose bound is infinite: then only the goal and the number of changes close a part. A wish for
any of several classes has a trail for each. Where the whole question is one linear program, its duals take the place of
parts (`ifonly.record.duals`).

Arithmetic. For linear scores everything is a fraction, hence exact. For trees the costs of cells are rounded down, the
values of leaves up, and sums are `math.fsum`, the float nearest to the exact sum: its sign is that of the exact sum. A
cell is dropped only if it is too dear by more than all roundings together; bounds at prices are sums of whole numbers. For
networks, what floats may be off by is derived (`ifonly.record.network_bounds`) and added to every bound. So every error is
on the side of refusing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from math import inf, isfinite, isnan
from typing import Any, NamedTuple

from ifonly.models.abilities import Ensemble, Layered, LinearScores
from ifonly.program.mip import Affine
from ifonly.question.abilities import Counts
from ifonly.question.any_class import AnyClassGoal
from ifonly.question.costs import Costs
from ifonly.question.criterion import HasConsequences
from ifonly.question.demand import BoxDemand
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.question.trail import Alternative, Duals, Event, Prices, Split, events
from ifonly.record.duals import check_duals
from ifonly.record.linear_parts import LinearParts
from ifonly.record.network_parts import NetworkParts
from ifonly.record.parts import EmptyParts, NotReplayable, Part, Parts, Refused
from ifonly.record.price_parts import Left
from ifonly.record.tree_parts import TreeParts
from ifonly.runtime.deadline import Deadline
from ifonly.tolerances import DUST

__all__ = ["NotReplayable", "Refused", "Replayed", "replay"]

# Limits that no file of a stranger may pass: not tuned, and so not in a Tuning.
_DEEPEST = 100_000  # splits on the way to one part, each of which is kept
_MOST_BYTES = 2**28  # of what prices have left, along one path


@dataclass(frozen=True)
class Replayed:
    """A proof that holds: how many parts there are, the claim that was checked, and its margin."""

    parts: int
    bound: float
    margin: float


def replay(
    statement: Statement, goal: Goal, bound: float, trail: bytes, deadline: Deadline, told: float | None = None
) -> Replayed:
    """Check that a trail proves that no answer costs less than `bound` (less one part in 10^9 of it, for rounding).

    With an infinite bound, that there is no answer at all. The margin is the question's first one; or, where the certificate
    has `told` of it, that of firm answers in single precision, or none.

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
        raise NotReplayable("there are no parts to look at")
    if isnan(bound) or bound == -inf:
        raise Refused("there is no bound to prove")
    statement = _with_margin(statement, goal, told)
    least = bound - DUST * abs(bound) if isfinite(bound) else bound
    margin = _told_margin(statement, goal)
    stream = events(trail)
    event = next(stream)
    if isinstance(event, Duals):
        if next(stream, None) is not None:
            raise Refused("it goes on after its linear program")
        check_duals(statement, least, event)
        return Replayed(1, bound, margin)
    if isinstance(goal, AnyClassGoal) and goal.leader is None and statement.box().empty() is None:
        return Replayed(_alternatives(statement, goal, least, event, stream, deadline), bound, margin)
    n, more = _walk(_parts_of(statement, goal, least, deadline), chain([event], stream), deadline)
    if more is not None:
        raise Refused("it goes on after its last part")
    return Replayed(n, bound, margin)


def _alternatives(
    statement: Statement,
    goal: AnyClassGoal,
    bound: float,
    event: Event | None,
    stream: Iterator[Event],
    deadline: Deadline,
) -> int:
    """Check the trail of each class that is wanted, and return how many parts all of them have."""
    missing, n = set(goal.indices), 0
    while event is not None:
        if not isinstance(event, Alternative) or event.name not in missing:
            raise Refused("it has parts of no class that is wanted, or of one class twice")
        missing.remove(event.name)
        leading = replace(goal, leader=event.name)
        others = tuple(leading if demand is goal else demand for demand in statement.demands)
        parts = _parts_of(replace(statement, demands=others), leading, bound, deadline)
        more, event = _walk(parts, stream, deadline)
        n += more
    if missing:
        raise Refused(f"{len(missing)} of the wanted classes are missing")
    return n


def _walk(parts: Parts, stream: Iterator[Event], deadline: Deadline) -> tuple[int, Event | None]:
    """Check the parts of one trail; return how many there are, and the alternative that comes next."""
    states, left, n, done, following = parts.whole(), None, 0, False, None
    pending: list[_Pending] = []
    batch: list[Part] = []
    for event in stream:
        if isinstance(event, Alternative):
            following = event
            break
        if done:
            raise Refused("it goes on after its last part")
        if isinstance(event, Duals):
            raise Refused("a linear program closes nothing but the whole")
        if isinstance(event, Prices):
            left = _priced(parts, states, left, event, n, deadline)
            continue
        if isinstance(event, Split):
            pending.append(_divided(parts, states, event, pending, left))
            continue
        n += 1
        batch.append(Part(list(states), event.price, left))
        done, left = _next(states, pending)
        if done or len(batch) >= parts.at_once:
            _close(parts, batch, n, deadline)
            batch.clear()
    if not done:
        raise Refused(f"parts are missing: it ends after {n:,} of them, and they do not cover the question")
    return n, following


def _priced(parts: Parts, states: list[Any], left: Left | None, prices: Prices, n: int, deadline: Deadline) -> Left:
    """Return what is left of a part at the prices that are named for it."""
    if not isinstance(parts, TreeParts):
        raise Refused("it has prices of splits, and no trees")
    if deadline.passed:
        raise NotReplayable(f"the time was over after {n:,} parts")
    return parts.priced(states, left, prices)


def _close(parts: Parts, batch: list[Part], n: int, deadline: Deadline) -> None:
    """Check the last of the first `n` parts."""
    for k, closed in enumerate(parts.closed(batch)):
        if not closed:
            better = "an answer" if parts.bound in (None, inf) else "a cheaper answer"
            raise Refused(f"part {n - len(batch) + k + 1:,} is not closed: something in it may be {better}")
    if deadline.passed:
        raise NotReplayable(f"the time was over after {n:,} parts")


class _Pending(NamedTuple):
    """A split on the way to the part at hand: its feature, the other side if that comes later, and what there was before.

    `left` is what prices left of the part that was split, and `n_bytes` the memory of all of these on the way.
    """

    feature: int
    other: Any
    before: Any
    left: Left | None
    n_bytes: int


def _divided(parts: Parts, states: list[Any], split: Split, pending: list[_Pending], left: Left | None) -> _Pending:
    """Go on to the first side of a split; return what has to be known of it later."""
    if split.feature >= len(states) or states[split.feature] is None:
        raise Refused(f"it splits on feature {split.feature}, on which nothing can be decided")
    if len(pending) >= _DEEPEST:
        raise Refused(f"it is more than {_DEEPEST:,} splits deep")
    n_bytes = pending[-1].n_bytes if pending else 0
    if left is not None and (not pending or pending[-1].left is not left):
        n_bytes += left.n_bytes
    if n_bytes > _MOST_BYTES:
        raise Refused(f"its prices take more than {_MOST_BYTES:,} bytes on the way to one part")
    state = states[split.feature]
    first, second = parts.sides(state, split)
    if split.second_first:
        first, second = second, first
    states[split.feature] = first
    return _Pending(split.feature, second, state, left, n_bytes)


def _next(states: list[Any], pending: list[_Pending]) -> tuple[bool, Left | None]:
    """Go on to the next part that is pending; return whether there is none, and what prices left around it."""
    while pending:
        last = pending.pop()
        if last.other is not None:
            states[last.feature] = last.other
            pending.append(last._replace(other=None))
            return False, last.left
        states[last.feature] = last.before
    return True, None


def _with_margin(statement: Statement, goal: Goal, told: float | None) -> Statement:
    """Return the statement with its first margin, or with the firm one, or within rounding, if that is what was told.

    Where nothing clears the first margin, an answer on the very threshold is told to have none: then nothing that rounding
    could lift over the threshold may cost less.
    """
    noise = goal.rounding(statement.form, statement.box())
    first, firm = goal.with_first_margin(statement, noise), goal.with_firm_margin(statement, noise)
    at_the_edge = first.margin == first.tie == 0.0 < noise
    if at_the_edge and told is not None and abs(told - firm.margin) <= DUST * firm.margin:
        return firm
    if told == 0.0 < _told_margin(first, goal):
        return replace(statement, margin=-noise, tie=-noise)
    return first


def _told_margin(statement: Statement, goal: Goal) -> float:
    """Return the margin as certificates tell it."""
    return max(statement.margin, 0.0 if goal.ties_are_ours() else statement.tie, 0.0)


def _parts_of(statement: Statement, goal: Goal, bound: float, deadline: Deadline) -> Parts:
    """Return the parts of a question, derived anew from its demands and costs."""
    box = statement.box()
    if box.empty() is not None:  # whatever else is asked
        return EmptyParts()
    costs, largest = _costs(statement)
    most = len(statement.query.schema)
    for demand in statement.demands:
        if isinstance(demand, Counts):
            most = min(most, demand.at_most())
        elif demand is not goal and not isinstance(demand, BoxDemand):
            raise Refused(f"the demand {demand.text!r} couples features, which no part by part search closes")
    for j in statement.query.schema.numeric:
        if isnan(statement.query.factual[statement.query.schema.starts[j]]) and not box.missing[j]:
            raise Refused(
                "a value may take the place of a missing one, and no search closes such a question part by part"
            )
    form = statement.form
    gaps = goal.gaps([Affine.of(k) for k in range(form.n_outputs)], statement.margin, statement.tie)
    if isinstance(form, Ensemble):
        return TreeParts(statement, goal, box, most, bound, form, gaps, costs, largest=largest)
    if isinstance(form, LinearScores) and len(gaps) == 1 and not goal.is_curved() and not largest and not costs.curves:
        return LinearParts(statement, box, most, bound, form, gaps[0])
    if isinstance(form, Layered) and gaps and not goal.is_curved() and not largest and not costs.curves:
        return NetworkParts(statement, goal, box, most, bound, form, gaps, costs, deadline)
    raise Refused("its scores and costs are of no kind that is closed part by part")


def _costs(statement: Statement) -> tuple[Costs, bool]:
    """Return the costs of single features, and whether the largest counts in place of their sum."""
    if not statement.exempt() and statement.separable():
        return statement.costs(), False
    coupled = statement.coupled
    consequences = any(isinstance(c, HasConsequences) for c in statement.criteria)
    if not statement.exempt() and not consequences and statement.costs().free() and len(coupled) == 1:
        own = coupled[0].coupled_bound(statement.query)
        if coupled[0].is_largest() and own is not None:
            return own, True
    raise Refused("its costs do not belong to single features, and no search closes such a question part by part")
