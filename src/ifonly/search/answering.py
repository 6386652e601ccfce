"""Main line of one question: search, verify, widen the margin where the model refuses, and put the answer together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import Any, Literal

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.data.features import plain
from ifonly.data.tables import ANY_TABLE, TableKind
from ifonly.errors import CriterionError, NotVerified
from ifonly.events import OnEvent
from ifonly.question.abilities import verified
from ifonly.question.criterion import Remarks
from ifonly.question.found import Ended, Found
from ifonly.question.goal import ClassGoal, Goal
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.question.words import number
from ifonly.question.wrapping import Ranges, Search, Sought, Wraps
from ifonly.result.origin import Origin
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation, Status, worst_status
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.later import Later
from ifonly.search.blame import explain_infeasibility
from ifonly.search.course import Course
from ifonly.search.engines import find
from ifonly.search.incumbents import from_rows
from ifonly.search.nudge import nudged
from ifonly.solvers.backend import Backend, Limits
from ifonly.tolerances import OPTIMALITY, SCORE_OPERATIONS, SOLVER_ROUNDINGS, relative_gap

__all__ = ["Answer", "NoMore", "NoneOnGrids", "Question", "Several"]

NEVER = Deadline.never()


class NoMore(Exception):
    """There is no further answer that differs from those found, and clears its threshold by `margin`; proven."""

    def __init__(self, margin: float = 0.0) -> None:
        self.margin = margin

    @property
    def proven(self) -> str:
        """Words of what is proven, for the end of a sentence."""
        return f"; of those that clear their threshold by {number(self.margin)}, proven" if self.margin else " (proven)"


class NoneOnGrids(Exception):
    """There is no answer with the decimals of the data; there may be one with more."""


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
class Several:
    """Answers, best first, their canonical rows, and why there are not more."""

    answers: tuple[Counterfactual, ...]
    points: tuple[FloatArray, ...]
    notes: tuple[str, ...] = ()
    status: Status = "optimal"
    interrupted: bool = False
    closed: bool = False

    @property
    def advice(self) -> str:
        """Sentence for answers that are not proven: more time closes what a limit has ended."""
        if self.closed and self.status == "feasible":
            return "The search has closed: the rest is the rounding of floats, or a solver's tolerance, not a matter of time."
        return "Give it a longer time_limit to close the gap."

    @classmethod
    def of(cls, found: Sequence[Answer], notes: tuple[str, ...] = ()) -> Several:
        """Return answers, with the worst of their statuses."""
        counterfactuals, points = tuple(a.counterfactual for a in found), tuple(a.u for a in found)
        status = worst_status(c.certificate for c in counterfactuals)
        closed = all(a.found.ended is Ended.CLOSED for a in found)
        return cls(counterfactuals, points, notes, status, any(a.found.interrupted for a in found), closed)


@dataclass(frozen=True)
class Question:
    """One question being answered."""

    backend: Backend
    frame: Later[pd.DataFrame]
    reference: pd.DataFrame
    query: Query
    goal: Goal
    statement: Statement
    wish: Any = None
    deadline: Deadline = NEVER
    gap: float = OPTIMALITY
    on_event: OnEvent | None = None
    proof: bool | Literal["exact"] = False
    on_grids: bool = False  # of decimals that nobody demands

    def refuse_what_is_there(self) -> None:
        """Say so when the factual already has the wanted outcome."""
        u = self.query.factual[None, :]
        if bool(self.goal.holds(self.query, u)[0]) and bool(self.goal.confirmed(u)[0]):
            now = self.query.model.predict(u)[0]
            raise CriterionError(
                f"The wanted outcome is already there: the model says {plain(now)!r} for this row ({self.goal.text}). "
                "Ask for another outcome, or for more of it: Target(label, probability=...)."
            )

    def answers(self, n: int) -> Several:
        """Return up to `n` verified answers; one needs no module of diversity."""
        if n == 1:
            return Several.of([self.one(self.statement)])
        from ifonly.search.several import answers  # noqa: PLC0415 - loaded when several answers are asked for

        return answers(self, n)

    # -- searching ----------------------------------------------------------------------------------------------
    def one(self, statement: Statement, *, first: bool = True) -> Answer:
        """Return one verified counterfactual.

        At a point that the model refuses, forms that are relaxations are made finer; where they are exact, the point is ruled
        out if the scores around it are all the same, and elsewhere the margin is widened. What was proven before still holds
        for everything that clears the first margin.
        """
        search: Search = self._find
        for demand in statement.demands:
            search = demand.wrapped(search, self.backend) if isinstance(demand, Wraps) else search
        noise = self.goal.rounding(statement.form, statement.box())
        statement = self.goal.with_first_margin(statement, noise)
        course = Course.of(search, statement, noise, self.query.tuning.answering)
        while True:
            found, course.statement = search(course.statement, self._limits(), self._search_deadline())
            if found.u is None and course.spare is not None:
                break
            if found.infeasible:
                course.note_none(found)
                if not self.deadline.passed and course.descend():
                    continue
                break
            course.note(found)
            best = self._first_verified(found, course.statement, firm=course.firm)
            if best is not None and self._is_worth_climbing(course, found, best[1]):
                course.climb(best, self.goal.with_firm_margin(course.statement, course.noise))
                continue
            if best is not None:
                best = min(best, course.spare or best, key=itemgetter(1))
                found = replace(found, bound=min(found.bound, course.bound), trail=course.trail)
                return self._answer(best[0], found, course)
            if course.spare is None:
                course.spare = self._spare(found, course)
            if found.interrupted or found.u is None or self.deadline.passed:
                break
            if course.rise():
                continue
            finer = course.statement.refined(found.u)
            # a point that is ruled out loses no other; a form that keeps away from ties does
            exact = finer is course.statement or not self.query.model.by_form
            stricter = self._ruled_out(course.statement, found.u) if exact else None
            stricter = finer if stricter is None and finer is not course.statement else stricter
            if not course.go_on(stricter, finer):
                break
        return self._end_of(course, found, first=first)

    def _spare(self, found: Found, course: Course) -> tuple[FloatArray, float] | None:
        """Return an answer that is confirmed, where the model refuses the optimum: what was met on the way, or from rows."""
        spare = self._first_verified(found if course.firm else replace(found, ended=Ended.LIMIT), course.statement)
        if spare is not None or self.query.model.by_form or self.deadline.passed:
            return spare
        found = from_rows(course.statement, self._limits(), self._search_deadline())
        return self._first_verified(found, course.statement)

    def _say_impossible(self, course: Course, found: Found, *, first: bool) -> None:
        """Say that there is no answer; return where there is one that the model refuses, however wide the margin."""
        if not first and (course.none is not None or (found.infeasible and course.whole)):
            raise NoMore
        if not course.gives_up(first=first):
            beyond = course.beyond(closed=found.infeasible)
            if not first:
                raise NoMore(beyond)  # what is missing is another answer: those that were found are kept
            if self.on_grids:
                raise NoneOnGrids
            margin = max(course.statement.margin, course.origin.margin, beyond if course.none is None else -np.inf)
            # what nearest rows refuse at a number that may not change is asked again where it may
            demands = course.statement.demands if self.query.model.by_form else course.origin.demands
            asked = replace(course.statement, margin=margin, tie=course.origin.tie, demands=demands)
            error = explain_infeasibility(asked, self.backend, self._limits(), self.deadline, margin=beyond)
            if self.proof:
                error.trail = b"" if course.none is None else self._kept(course.origin, course.none, np.inf)
            raise error

    def _is_worth_climbing(self, course: Course, found: Found, cost: float) -> bool:
        """Whether an answer beyond the edge is dearer than proven, and there is time to prove it for a named margin."""
        if not course.firm or course.certified.margin or not found.optimal or self.deadline.passed:
            return False
        return relative_gap(cost, course.bound) > max(self.gap, OPTIMALITY)

    def _answer(self, u: FloatArray, found: Found, course: Course) -> Answer:
        """Return a verified point as an answer, proven as far as the bound of what was found goes."""
        asked = replace(course.statement, margin=course.certified.margin)
        if self.proof:
            # a wider margin than the first is proven for fewer points than a replay looks at
            shown, proven = course.certified.margin <= course.origin.margin, course.proven
            found = replace(found, trail=self._kept(proven, found.trail, found.bound) if shown else b"")
            found = self._exactly(proven, found) if shown and not found.trail else found
        return Answer(self._counterfactual(u, asked, found), u, found, course.statement)

    def _end_of(self, course: Course, found: Found, *, first: bool) -> Answer:
        """Return the spare answer of a search that ends without a better one; without one, say what is known."""
        if course.spare is not None:
            return self._answer(course.spare[0], replace(found, bound=course.bound, trail=course.trail), course)
        if found.interrupted:
            raise KeyboardInterrupt
        # away from ties there may be nothing, and on one of them an answer: that is no proof
        tied = not self.query.model.by_form and not course.whole and not self.deadline.passed
        if (found.infeasible or course.shows_none) and not tied:
            self._say_impossible(course, found, first=first)
        elif found.u is None or self.deadline.passed or tied:
            large = not self.deadline.passed and found.ended is Ended.TOO_LARGE
            raise course.unanswered(tied=tied, large=large)
        assert course.u is not None
        raise self._unverified(course.u, course.statement, course.noise)

    def _kept(self, statement: Statement, trail: bytes, bound: float) -> bytes:
        """Return the trail of a search, or the duals of the question as one linear program where a solver closed it."""
        if trail:
            return trail
        from ifonly.search.duals import dual_trail  # noqa: PLC0415 - loaded when a proof is asked for

        return dual_trail(statement, bound, self.deadline)

    def _exactly(self, statement: Statement, found: Found) -> Found:
        """Return what a solver closed, run again in rational arithmetic where that was asked for."""
        if self.proof != "exact":
            return found
        from ifonly.search.exactly import run_again  # noqa: PLC0415 - loaded when an exact proof is asked for

        return run_again(statement, found, self.backend.label, self.deadline)

    def _unverified(self, u: FloatArray, statement: Statement, noise: float) -> Exception:
        """Return the error of a point that the model refuses, whatever was tried."""
        if self.goal.is_narrower(noise * SOLVER_ROUNDINGS):
            return CriterionError(
                f"The outcome that is wanted ({self.goal.text.removeprefix('want ')}) is so narrow that no row was found "
                f"that the model confirms: its scores are off by up to {noise:.1g} by rounding alone, and more in a solver. "
                "Widen the interval, or ask for one end of it: Target(at_least=...)."
            )
        scores = self.query.model.read.form(u[None, :])[0]
        shown = self.goal.score_of(u[None, :])
        return NotVerified(
            f"The optimiser's answer is refused by the model itself, even with the margin widened to "
            f"{statement.margin:.1g}: our score {np.round(scores, 6).tolist()}, the model's {np.round(shown, 6).tolist()}. "
            "Please report this with the model's class and version.",
            scores.tolist(),
            shown.tolist(),
        )

    def _ruled_out(self, statement: Statement, u: FloatArray) -> Statement | None:
        """Return the statement without a point that the model refuses, and without all that is the same to it."""
        stored = self.query.schema.stored(u)
        if not bool(self.goal.confirmed(stored[None, :])[0]):
            return statement.without(stored)
        other = statement.refusing(stored)
        return None if other is None else statement.without(stored, other)

    def _limits(self) -> Limits:
        return Limits(self.deadline.left(), self.gap, seed=self.query.seed, tuning=self.query.tuning)

    def _search_deadline(self) -> Deadline:
        """Return the deadline of a search: the answer is put to the model afterwards, and a share of the time is for that."""
        tuning = self.query.tuning.answering
        kept = min(tuning.calls * self.query.model.seconds, tuning.kept * self.deadline.left())
        return self.deadline.earlier(kept)

    def _find(self, statement: Statement, limits: Limits, deadline: Deadline) -> Sought:
        return Sought(find(statement, self.backend, limits, self.on_event, deadline, proof=bool(self.proof)), statement)

    def _first_verified(
        self, found: Found, statement: Statement, *, firm: float = 0.0
    ) -> tuple[FloatArray, float] | None:
        """Return the best point that the user's own model confirms, exactly as it will be returned.

        A `firm` one clears its threshold by as much: in single precision, a row alone and the same row among others may get
        scores that differ in the last digits. An optimum on the edge of its outcome is then moved on a little.
        """
        candidates = [] if found.u is None else [found.u]
        if not found.optimal:
            candidates += list(found.pool)
            candidates.sort(key=lambda u: float(statement.objective(u[None, :])[0]))
        verified: list[tuple[float, FloatArray]] = []
        for candidate in candidates:
            # the cheapest ones came first, and every one costs a call of the model
            if verified and self.deadline.passed:
                break
            stored = self.query.schema.stored(candidate)
            settled = statement.settled(stored[None, :], by_model=True)[0]
            same = np.array_equal(settled, stored, equal_nan=True)
            # On the very edge of a demand, settling may round a value beyond it; then the solver's own is as good.
            ways = (stored,) if same else (settled, stored)
            for u in chain(ways, self.query.schema.stored_beside(candidate)):
                if self._is_firm(u, statement, firm) and self._confirmed(u, statement):
                    verified.append((float(statement.objective(u[None, :])[0]), u))
                    break
        if not verified:
            within = firm > 0.0 or statement.margin < 0.0  # of rounding, so that the model's own decides
            return self._nudged(found.u, statement, firm) if within and found.optimal and found.u is not None else None
        cost, u = min(verified, key=lambda pair: pair[0])
        return u, cost

    def _is_firm(self, u: FloatArray, statement: Statement, firm: float) -> bool:
        """Whether a point clears its threshold by this much."""
        return not firm or bool(self.goal.clears(statement.form(u[None, :]), firm)[0])

    def _nudged(self, u: FloatArray, statement: Statement, firm: float) -> tuple[FloatArray, float] | None:
        """Return the nearest point beyond one on the edge that is confirmed."""
        for beyond in nudged(statement, self.goal, u):
            if (
                self._is_firm(beyond, statement, firm)
                and self._confirmed(beyond, statement)
                and self._withstands(beyond, statement)
            ):
                return beyond, float(statement.objective(beyond[None, :])[0])
        return None

    def _withstands(self, u: FloatArray, statement: Statement) -> bool:
        """Whether a point is proven to meet the demands that wrap the search."""
        around = [d for d in statement.demands if isinstance(d, Wraps)]
        return all(d.withstands(u, self.backend, self._limits(), self.deadline) for d in around)

    def _confirmed(self, u: FloatArray, statement: Statement) -> bool:
        row, others = u[None, :], (d for d in statement.demands if d is not self.goal)
        return bool(self.goal.confirmed(row)[0]) and all(bool(verified(d, self.query, row)[0]) for d in others)

    # -- answering ----------------------------------------------------------------------------------------------
    def another(self, u: FloatArray, answer: Answer) -> Answer | None:
        """Return a point of the same search as an answer, or None if it is refused."""
        found, statement = replace(answer.found, u=u, pool=(), trail=b""), answer.statement
        edge = statement.margin == statement.tie == 0.0
        noise = self.goal.rounding(statement.form, statement.box()) if edge else 0.0
        best = self._first_verified(found, statement, firm=noise / SCORE_OPERATIONS)
        if best is None or not self._withstands(best[0], statement):
            return None
        return Answer(self._counterfactual(best[0], statement, found), best[0], found, statement)

    def _counterfactual(self, u: FloatArray, statement: Statement, found: Found) -> Counterfactual:
        row = u[None, :]
        objective = float(statement.objective(row)[0])
        certificate = Certificate.of(
            objective,
            found.bound,
            margin=max(statement.margin, 0.0 if self.goal.ties_are_ours() else statement.tie, 0.0),
            solver=found.solver or self.backend.label,
            asked_gap=self.gap,
        )
        schema = self.query.schema
        changed = self.query.changed(row)[0]
        changes = tuple(
            Change(schema.names[j], self.query.value(j), schema.level_values(j, u))
            for j in map(int, np.flatnonzero(changed))
        )
        measures: dict[str, float] = {}
        for criterion in statement.criteria:
            measures |= {name: float(v[0]) for name, v in criterion.measure(self.query, row).items()}
        distance = measures.pop("distance", objective)
        measures.pop("changed", None)
        return Counterfactual(
            Later(self.query.model.decode, schema, row).field(),
            changes,
            self._predicted(row),
            float(self.goal.score_of(row)[0]),
            distance,
            certificate,
            ranges=self._ranges(statement, u),
            measures=measures,
            trail=found.trail if self.proof else None,
        )

    def _ranges(self, statement: Statement, u: FloatArray) -> dict[str, tuple[float, float]]:
        """Return how far the numbers of an answer may go, where a criterion says so."""
        asked = next((c for c in self.statement.criteria if isinstance(c, Ranges)), None)
        return {} if asked is None else asked.ranges(statement, u, self.backend, self.deadline)

    def _predicted(self, row: FloatArray) -> Any:
        """Return the model's prediction: the wanted label, which it has just confirmed, or what it says."""
        if isinstance(self.goal, ClassGoal):
            return self.goal.label
        return plain(self.query.model.predict(row)[0])

    def _said(self, row: FloatArray) -> Any:
        """Return what the model says of the factual: the label or the value."""
        read = self.query.model.read
        if read.classes:
            return read.classes[self.goal.class_of(row[0], self.statement.box(), self.statement.form)]
        return float(read.decide(self.query.model.scores(row))[0])

    def of_factual(self) -> tuple[Any, float]:
        """Return what the model says of the factual, and its score."""
        u = self.query.factual[None, :]
        return self._said(u), float(self.goal.score_of(u)[0])

    def explanation(
        self, several: Several, seconds: float, origin: Origin | None = None, given: TableKind = ANY_TABLE
    ) -> Explanation:
        """Put the answers together."""
        answers = several.answers
        model = self.query.model
        has_probabilities = model.read.link.has_probabilities
        speaking = [c for c in self.statement.criteria if isinstance(c, Remarks)]
        return Explanation(
            answers,
            self.frame.field(),
            *self.of_factual(),
            self.goal.text.removeprefix("want "),
            self.query.schema,
            several.status,
            seconds,
            answers[0].certificate.solver,
            notes=(*several.notes, *(r for c in speaking for r in c.remarks(self.query, np.vstack(several.points)))),
            score_name="probability" if has_probabilities else "score" if model.read.classes else "value",
            reference=self.reference,
            origin=origin,
            given=given,
            interrupted=several.interrupted,
        )
