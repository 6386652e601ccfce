"""Course of one search for a verified answer: what is proven so far, and what is left to try where the model refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import OutOfTime
from ifonly.models.abilities import distance_from_ties
from ifonly.question.found import Found
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.question.words import number
from ifonly.question.wrapping import Embeds, Search, Wraps
from ifonly.result.values import Counterfactual, relative_gap
from ifonly.runtime.tuning import Answering
from ifonly.tolerances import COARSE, DUST, MARGINS_AT_THE_EDGE, REFUTES, SCORE_OPERATIONS, SOLVER_ROUNDINGS

__all__ = ["Answer", "Course", "NoMore", "NoneOnGrids", "Opening", "Verified"]

Verified = tuple[FloatArray, float]  # a point that the model confirms, and its cost


class NoMore(Exception):
    """End of the answers: no further one differs from those found and clears its threshold by `margin`; proven."""

    def __init__(self, margin: float = 0.0) -> None:
        self.margin = margin

    @property
    def proven(self) -> str:
        """Words of what is proven, for the end of a sentence."""
        return f"; of those that clear their threshold by {number(self.margin)}, proven" if self.margin else " (proven)"


class NoneOnGrids(Exception):
    """End of a search on the grids of the data: no answer has their decimals; there may be one with more."""


@dataclass(frozen=True, eq=False)
class Answer:
    """One verified answer, with the search it comes from.

    Attributes
    ----------
    counterfactual
        The answer as it is returned.
    u
        Its canonical row.
    found, statement
        The result of the search, and all that was demanded in the end.
    """

    counterfactual: Counterfactual
    u: FloatArray
    found: Found
    statement: Statement


@dataclass(frozen=True)
class Opening:
    """Margins with which a question is asked first: they depend on its form, goal and box, and not on its factual.

    Attributes
    ----------
    noise
        How far the gaps of the goal may be off by rounding.
    margin, tie
        The first margin, and that where a tie would be lost.
    first
        The two that are asked for before: where what lies within rounding of the threshold may well be an answer, that.
    edge
        Whether it begins without a margin, so that an answer has to clear its threshold by itself.
    whole
        Whether the forms of the question keep away from no tie, so that bounds are proven for all points.
    coarse
        Whether rounding by itself decides the outcome of many points, so that no margin makes a proof of it.
    """

    noise: float
    margin: float
    tie: float
    first: tuple[float, float]
    edge: bool
    whole: bool
    coarse: bool

    @classmethod
    def of(cls, goal: Goal, statement: Statement) -> Opening:
        """Return the opening of a question."""
        noise = goal.rounding(statement.form, statement.whole)
        asked = goal.with_first_margin(statement, noise)
        coarse = _is_coarse(statement, noise)
        if coarse:
            # the model has the last word on all that lies within rounding, and no bound leaves any of it out
            asked = statement.with_margin(-noise, -noise)
        first = (-noise, -noise) if _is_wide(asked, noise) else (asked.margin, asked.tie)
        edge = asked.margin == asked.tie == 0.0 < noise
        return cls(noise, asked.margin, asked.tie, first, edge, _from_ties(asked) == 0.0, coarse)


@dataclass(eq=False)
class Course:
    """State of the search for one verified answer.

    Attributes
    ----------
    search
        The search, wrapped by the demands that go around it.
    statement
        The question as it is asked next.
    certified
        The question that the bound holds for.
    origin
        The question with its first margin, or, once it has climbed, with that of firm answers.
    noise
        How far the gaps of the goal may be off by rounding.
    at_the_edge
        Whether it begins without a margin, so that one of the noise has not been tried.
    margins
        The wider margins that are left to try.
    repairs, ties, further
        How many points or relaxations may still be ruled out or made finer, how many within rounding of their threshold, and
        how many once it has risen from there.
    bound, trail
        The best lower bound, and the parts of the search that showed it.
    u
        The last point found.
    none
        The parts of the search that showed that nothing clears the first margin; None: it was not shown.
    out_of_reach
        The least margin of which it was shown that nothing clears it, points that were ruled out aside.
    spare
        An answer that is confirmed, with its cost, while a firmer or a proven one is looked for.
    below
        Whether it began within rounding of the threshold, and has not risen from there. An optimum there that the model
        confirms is proven for all points.
    coarse
        Whether rounding by itself decides the outcome of many points.
    floor
        The lower bound of what lies nearer to its threshold than the margin that is proven, once there is one.
    """

    search: Search
    statement: Statement
    certified: Statement
    origin: Statement
    noise: float
    at_the_edge: bool
    margins: Iterator[float]
    repairs: int
    ties: int
    further: int
    bound: float = -np.inf
    trail: bytes = b""
    u: FloatArray | None = None
    none: bytes | None = None
    out_of_reach: float = np.inf
    spare: Verified | None = None
    below: bool = False
    coarse: bool = False
    floor: float = -np.inf

    @classmethod
    def of(cls, search: Search, statement: Statement, opening: Opening, tuning: Answering) -> Course:
        """Return the beginning of a course, from a statement without a margin."""
        noise, edge = opening.noise, opening.edge
        margins = [noise * tuning.widening**k for k in range(not edge, tuning.widenings + 1)]
        if edge:
            # the noise is a bound for all rows: answers that the model confirms may clear their threshold by less
            margins = [*(k * noise / SCORE_OPERATIONS for k in MARGINS_AT_THE_EDGE), *margins]
        origin = statement.with_margin(opening.margin, opening.tie)
        below = opening.first != (opening.margin, opening.tie)
        first = statement.with_margin(*opening.first) if below else origin
        own = iter(margins), tuning.nearest if below else tuning.repairs, tuning.ties, tuning.repairs
        return cls(search, first, first, origin, noise, edge, *own, below=below, coarse=opening.coarse)

    @property
    def whole(self) -> bool:
        """Whether every point in question is asked for: wider margins, and forms that keep away from ties, leave some out."""
        return self.statement.margin == self.certified.margin and _from_ties(self.statement) == 0.0

    @property
    def firm(self) -> float:
        """By how much an answer clears its threshold: at the edge, by the rounding of one row among others, if any does."""
        return self.noise / SCORE_OPERATIONS if self.at_the_edge and self.whole and not self.descended else 0.0

    @property
    def descended(self) -> bool:
        """Whether nothing clears the first margin, and what lies within rounding of its threshold is asked for."""
        return self.certified.margin < self.origin.margin

    @property
    def proven(self) -> Statement:
        """The question that the bound holds for, without the points that were ruled out on the way."""
        return replace(self.origin, margin=self.certified.margin, tie=self.certified.tie)

    @property
    def shows_none(self) -> bool:
        """Whether it was shown that nothing clears some margin, and the model refused what lies nearer."""
        return self.descended and np.isfinite(self.out_of_reach)

    def beyond(self, *, closed: bool) -> float:
        """Return the margin, or the distance from ties, by which an answer is proven to be missing; 0: there is none at all.

        With `closed`, the last search went to its end.
        """
        if closed and self.whole and self.certified.margin <= -self.noise:
            return 0.0
        if self.descended and self.none is None:
            return max(self.out_of_reach, self.origin.margin, self.origin.tie) or self.noise
        if self.whole or self.descended:
            return max(self.origin.margin, self.origin.tie) or self.noise
        return max(self.statement.margin, _from_ties(self.statement))

    def gives_up(self, *, first: bool) -> bool:
        """Whether there is nothing to say of an empty question but that the model refuses what was found before."""
        if self.u is None or (self.descended and self.none is not None) or (self.whole and not self.descended):
            return False
        margin = self.out_of_reach if self.descended else self.statement.margin
        return not first or margin > self.noise * SOLVER_ROUNDINGS

    def unanswered(self, *, undecided: bool, large: bool) -> OutOfTime:
        """Return the error of a search without an answer: `undecided` where only the model can tell an answer."""
        known = f"no answer costs less than {self.bound:.6g}"
        if undecided and self.coarse:
            why = f"rounding by up to {number(self.noise)} decides outcomes here, and the model refused what was tried"
            return OutOfTime(f"No verified answer: {why}; {known}. Scale the columns before the model.", self.bound)
        if undecided:
            why = "rows that the model counts are equally far, and it refused what was tried"
            return OutOfTime(f"No verified answer: {why}; {known}. Loosen a demand.", self.bound)
        why = " (the program is too large for memory, or for the time left)" if large else ""
        text = f"No verified answer within the time limit{why}; {known}. Raise time_limit, or loosen a demand."
        return OutOfTime(text, self.bound)

    def note(self, found: Found) -> None:
        """Keep what a search has shown."""
        if self.whole:
            self.trail = found.trail if found.bound >= self.bound else self.trail
            self.bound = max(self.bound, found.bound)
        self.u = found.u if found.u is not None else self.u

    def note_none(self, found: Found) -> None:
        """Keep what a search has shown that found nothing: its margin, and its parts if that is the first one."""
        self.out_of_reach = min(self.out_of_reach, self.statement.margin)
        if self.whole and self.statement.demands == self.origin.demands and self.none is None:
            self.none = found.trail

    def rise(self) -> bool:
        """Ask for what clears the first margin, after the model has refused some that lies nearer; False: that was asked."""
        below, self.below = self.below, False
        if below:
            self.floor = self.bound
            self.statement, self.repairs = self.origin, self.further
            self.certified = self.origin
        return below

    def climb(self, best: Verified, firm: Statement) -> None:
        """Ask for what clears the threshold as an answer has to: proven is what a bound shows for all of that."""
        self.spare, self.floor = best, self.bound
        self.statement = self.certified = firm
        self.origin = replace(self.origin, margin=firm.margin, tie=firm.tie)

    def hides(self, cost: float) -> bool:
        """Whether the margin that is proven may hide an answer that is cheaper by more than a proof can leave open."""
        return self.certified.margin >= 0.0 and np.isfinite(self.floor) and relative_gap(cost, self.floor) > REFUTES

    def descend(self) -> bool:
        """Ask for what lies within rounding of its threshold, before anything is called impossible; False: that is done.

        The model has the last word on it. Nothing may go beyond a threshold at the end of a range, or where demands meet; a
        point there may have been refused by a rounding, and nothing clears a wider margin.
        """
        if self.certified.margin <= -self.noise or _from_ties(self.statement) > 0.0:
            return False
        self.statement = self.certified = replace(self.statement, margin=-self.noise, tie=-self.noise)
        self.bound, self.trail = -np.inf, b""  # what was shown before is not of what is asked for now
        self.margins, self.repairs = iter((0.0,)), min(self.repairs, self.ties)
        return True

    def go_on(self, stricter: Statement | None, finer: Statement) -> bool:
        """Ask without what was refused, or with a wider margin; False: nothing is left to try."""
        if stricter is not None and self.repairs:
            self.statement, self.repairs = stricter, self.repairs - 1
            return True
        if self.rise():
            return True
        margin = next(self.margins, None)
        if margin is not None:
            self.statement = replace(finer, margin=margin)
        return margin is not None


def _from_ties(statement: Statement) -> float:
    """Return how far the forms of a statement, those of its demands included, keep away from ties."""
    of_demands = (form for d in statement.demands if isinstance(d, Embeds) for form in d.embedded(statement.query))
    return max(map(distance_from_ties, (statement.form, *of_demands)))


def _is_coarse(statement: Statement, noise: float) -> bool:
    """Whether the rounding of scores is so wide beside their spread that it decides the outcome of many points."""
    if any(isinstance(d, Wraps) for d in statement.demands) or distance_from_ties(statement.form) > 0.0:
        return False
    return noise > COARSE * statement.query.model.spread(statement.form, statement.whole)


def _is_wide(statement: Statement, noise: float) -> bool:
    """Whether points of a grid that rounding cannot tell from a lost tie may well be answers: columns lie far from zero."""
    form = statement.form
    if not statement.margin == 0.0 < statement.tie or any(isinstance(d, Wraps) for d in statement.demands):
        return False
    spread = statement.query.model.spread(form, statement.whole)
    return distance_from_ties(form) == 0.0 and noise > DUST * spread
