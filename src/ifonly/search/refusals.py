"""Refusals: what is tried where the model refuses the first point of a question, until one is confirmed or none is left.

At a point that the model refuses, forms that are relaxations are made finer; where they are exact, the point is ruled out if
the scores around it are all the same, and elsewhere the margin is widened. What was proven before still holds for everything
that clears the first margin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Literal, Protocol

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import CriterionError, NotVerified
from ifonly.question.found import Ended, Found
from ifonly.question.goal import Goal
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Sought
from ifonly.result.values import relative_gap
from ifonly.runtime.deadline import Deadline
from ifonly.search.blame import explain_infeasibility
from ifonly.search.course import Answer, Course, NoMore, NoneOnGrids, Verified
from ifonly.search.incumbents import from_rows
from ifonly.solvers.backend import Backend, Limits
from ifonly.tolerances import OPTIMALITY, SOLVER_ROUNDINGS

__all__ = ["Asked", "Refusals"]


class Asked(Protocol):
    """A question as its course sees it: `ifonly.search.answering.Question` is all of it."""

    @property
    def query(self) -> Query:
        """The query."""
        ...

    @property
    def goal(self) -> Goal:
        """The wanted outcome."""
        ...

    @property
    def backend(self) -> Backend:
        """The solver."""
        ...

    @property
    def deadline(self) -> Deadline:
        """Deadline of the whole call."""
        ...

    @property
    def gap(self) -> float:
        """Relative gap at which a search may stop."""
        ...

    @property
    def proof(self) -> bool | Literal["exact"]:
        """Whether the parts of the search are kept."""
        ...

    @property
    def on_grids(self) -> bool:
        """Whether it has decimals that nobody demands."""
        ...

    def limits(self) -> Limits:
        """Return the limits of a search that begins now."""
        ...

    def search_deadline(self) -> Deadline:
        """Return when such a search must have ended."""
        ...

    def first_verified(self, found: Found, statement: Statement, *, firm: float = 0.0) -> Verified | None:
        """Return the best point of a search that the model confirms, and its cost."""
        ...

    def kept(self, statement: Statement, trail: bytes, bound: float) -> bytes:
        """Return the trail of a search for a proof."""
        ...

    def answer(
        self, best: Verified, found: Found, statement: Statement, proven: Statement | None, margin: float | None = None
    ) -> Answer:
        """Return a verified point as an answer."""
        ...


@dataclass(frozen=True, eq=False)
class Refusals:
    """Repair of answers that the model refuses: a question that goes on after its first search, along its course."""

    asked: Asked
    course: Course

    def answer(self, sought: Sought | None, *, refused: bool, first: bool) -> Answer:
        """Return the answer; `sought` is what the first search found, and whether the model `refused` it already.

        Raises `NoMore` where there is none and it is not the `first`.
        """
        asked, course = self.asked, self.course
        while True:
            found, course.statement = sought or course.search(course.statement, asked.limits(), asked.search_deadline())
            tried, sought = refused and sought is not None, None
            if found.u is None and course.spare is not None:
                break
            if found.infeasible:
                course.note_none(found)
                if not asked.deadline.passed and course.descend():
                    continue
                break
            course.note(found)
            best = None if tried else asked.first_verified(found, course.statement, firm=course.firm)
            if best is not None and self._is_worth_climbing(found, best[1]):
                course.climb(best, asked.goal.with_firm_margin(course.statement, course.noise))
                continue
            if best is not None:
                best = min(best, course.spare or best, key=itemgetter(1))
                found = replace(found, bound=min(found.bound, course.bound), trail=course.trail)
                return self._answer(best, found)
            if course.spare is None:
                course.spare = self._spare(found)
            if found.interrupted or found.u is None or asked.deadline.passed:
                break
            finer = course.statement.refined(found.u)
            # a point that is ruled out loses no other; a form that keeps away from ties does
            exact = finer is course.statement or not asked.query.model.by_form
            stricter = self._ruled_out(course.statement, found.u) if exact else None
            stricter = finer if stricter is None and finer is not course.statement else stricter
            if not course.go_on(stricter, finer):
                break
        return self._end_of(found, first=first)

    def _spare(self, found: Found) -> Verified | None:
        """Return an answer that is confirmed, where the model refuses the optimum: what was met on the way, or from rows."""
        asked, course = self.asked, self.course
        spare = asked.first_verified(found if course.firm else replace(found, ended=Ended.LIMIT), course.statement)
        if spare is not None or asked.query.model.by_form or asked.deadline.passed:
            return spare
        found = from_rows(course.statement, asked.limits(), asked.search_deadline())
        return asked.first_verified(found, course.statement)

    def _say_impossible(self, found: Found, *, first: bool) -> None:
        """Say that there is no answer; return where there is one that the model refuses, however wide the margin."""
        asked, course = self.asked, self.course
        if not first and (course.none is not None or (found.infeasible and course.whole)):
            raise NoMore
        if not course.gives_up(first=first):
            beyond = course.beyond(closed=found.infeasible)
            if not first:
                raise NoMore(beyond)  # what is missing is another answer: those that were found are kept
            if asked.on_grids:
                raise NoneOnGrids
            margin = max(course.statement.margin, course.origin.margin, beyond if course.none is None else -np.inf)
            # what nearest rows refuse at a number that may not change is asked again where it may
            demands = course.statement.demands if asked.query.model.by_form else course.origin.demands
            statement = replace(course.statement, margin=margin, tie=course.origin.tie, demands=demands)
            error = explain_infeasibility(statement, asked.backend, asked.limits(), asked.deadline, margin=beyond)
            if asked.proof:
                error.trail = b"" if course.none is None else asked.kept(course.origin, course.none, np.inf)
            raise error

    def _answer(self, best: Verified, found: Found) -> Answer:
        """Return a verified point as an answer, proven for what is certified."""
        course = self.course
        if course.hides(best[1]):
            # told is what is known of all that lies within rounding of the threshold, too
            found = replace(found, bound=min(found.bound, course.floor), trail=b"")
            whole = course.statement.with_margin(-course.noise, -course.noise)
            return self.asked.answer(best, found, whole, None)
        # a wider margin than the first is proven for fewer points than a replay looks at
        proven = course.proven if course.certified.margin <= course.origin.margin else None
        return self.asked.answer(best, found, course.statement, proven, course.certified.margin)

    def _is_worth_climbing(self, found: Found, cost: float) -> bool:
        """Whether an answer beyond the edge is dearer than proven, and there is time to prove it for a named margin."""
        asked, course = self.asked, self.course
        if not course.firm or course.certified.margin or not found.optimal or asked.deadline.passed:
            return False
        return relative_gap(cost, course.bound) > max(asked.gap, OPTIMALITY)

    def _end_of(self, found: Found, *, first: bool) -> Answer:
        """Return the spare answer of a search that ends without a better one; without one, say what is known."""
        asked, course = self.asked, self.course
        if course.spare is not None:
            return self._answer(course.spare, replace(found, bound=course.bound, trail=course.trail))
        if found.interrupted:
            raise KeyboardInterrupt
        # away from ties there may be nothing, and on one of them an answer: that is no proof
        by_model = course.coarse or not asked.query.model.by_form
        undecided = by_model and not course.whole and not asked.deadline.passed
        if (found.infeasible or course.shows_none) and not undecided:
            self._say_impossible(found, first=first)
        elif found.u is None or asked.deadline.passed or undecided:
            large = not asked.deadline.passed and found.ended is Ended.TOO_LARGE
            raise course.unanswered(undecided=undecided, large=large)
        assert course.u is not None
        raise self._unverified(course.u)

    def _unverified(self, u: FloatArray) -> Exception:
        """Return the error of a point that the model refuses, whatever was tried."""
        asked, noise = self.asked, self.course.noise
        if asked.goal.is_narrower(noise * SOLVER_ROUNDINGS):
            return CriterionError(
                f"The outcome that is wanted ({asked.goal.text.removeprefix('want ')}) is so narrow that no row was found "
                f"that the model confirms: its scores are off by up to {noise:.1g} by rounding alone, and more in a solver. "
                "Widen the interval, or ask for one end of it: Target(at_least=...)."
            )
        scores = asked.query.model.read.form(u[None, :])[0]
        shown = asked.goal.score_of(u[None, :])
        return NotVerified(
            f"The optimiser's answer is refused by the model itself, even with the margin widened to "
            f"{self.course.statement.margin:.1g}: our score {np.round(scores, 6).tolist()}, the model's "
            f"{np.round(shown, 6).tolist()}. "
            "Please report this with the model's class and version.",
            scores.tolist(),
            shown.tolist(),
        )

    def _ruled_out(self, statement: Statement, u: FloatArray) -> Statement | None:
        """Return the statement without a point that the model refuses, and without all that is the same to it."""
        asked = self.asked
        stored = asked.query.schema.stored(u)
        if not bool(asked.goal.confirmed(stored[None, :])[0]):
            return statement.without(stored)
        other = statement.refusing(stored)
        return None if other is None else statement.without(stored, other)
