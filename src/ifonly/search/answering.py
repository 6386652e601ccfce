"""Main line of one question: search, verify, answer; where the model refuses, its `Course` goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Literal

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.data.features import plain
from ifonly.data.tables import ANY_TABLE, TableKind
from ifonly.errors import CriterionError
from ifonly.events import OnEvent
from ifonly.question.abilities import verified
from ifonly.question.criterion import Criterion, Remarks
from ifonly.question.found import Ended, Found
from ifonly.question.goal import ClassGoal, Goal
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Ranges, Search, Sought, Wraps
from ifonly.result.origin import Origin
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation, Status, worst_status
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.later import Later
from ifonly.search.course import Answer, Course, NoMore, NoneOnGrids, Opening, Verified
from ifonly.search.nudge import nudged
from ifonly.search.progress import Engine, find
from ifonly.search.refusals import Refusals
from ifonly.solvers.backend import Backend, Limits
from ifonly.tolerances import OPTIMALITY, SCORE_OPERATIONS

__all__ = ["Answer", "NoMore", "NoneOnGrids", "Question", "Several"]

NEVER = Deadline.never()


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
        ends = [a.found.ended for a in found]
        closed = all(ended is Ended.CLOSED for ended in ends)
        return cls(counterfactuals, points, notes, status, Ended.INTERRUPTED in ends, closed)


@dataclass(frozen=True)
class Question:
    """One question being answered.

    Attributes
    ----------
    backend, engines
        The solver, and the engines that are tried.
    takers
        Those of them of which it is known that they take this question; None: they are asked.
    frame, scores
        The factual as a frame, and its scores by the form.
    reference, given
        The training data, and the kind of table that the row came in.
    query, goal, statement
        The question.
    wish
        What is wanted, as it was said.
    opening
        The first margins of a plain question, of which they are known before; None: they are looked for.
    deadline, gap, on_event, proof
        The options of the call.
    on_grids
        Whether it has decimals that nobody demands.
    """

    backend: Backend
    engines: tuple[Engine, ...]
    frame: Later[pd.DataFrame]
    scores: Later[FloatArray]
    reference: pd.DataFrame
    query: Query
    goal: Goal
    statement: Statement
    wish: Any = None
    given: TableKind = ANY_TABLE
    opening: Opening | None = None
    takers: tuple[Engine, ...] | None = None
    deadline: Deadline = NEVER
    gap: float = OPTIMALITY
    on_event: OnEvent | None = None
    proof: bool | Literal["exact"] = False
    on_grids: bool = False

    def refuse_what_is_there(self) -> None:
        """Say so when the factual already has the wanted outcome."""
        if self._lead() < 0.0:
            return
        u = self.query.factual[None, :]
        if bool(self.goal.holds(self.query, u)[0]) and bool(self.goal.confirmed(u)[0]):
            now = self.query.model.predict(u)[0]
            raise CriterionError(
                f"The wanted outcome is already there: the model says {plain(now)!r} for this row ({self.goal.text}). "
                "Ask for another outcome, or for more of it: Target(label, probability=...)."
            )

    def _lead(self) -> float:
        """Return by how much the scores of the factual clear the goal, where rounding is less; elsewhere 0."""
        if self.opening is None or not self.query.model.by_form:
            return 0.0
        lead = float(self.goal.lead(self.scores.get())[0])
        return lead if abs(lead) > self.opening.noise else 0.0

    def answers(self, n: int) -> Several:
        """Return up to `n` verified answers; one needs no module of diversity."""
        if n == 1:
            return Several.of([self.one(self.statement)])
        from ifonly.search.several import answers  # noqa: PLC0415 - loaded when several answers are asked for

        return answers(self, n)

    # -- searching ----------------------------------------------------------------------------------------------
    def one(self, statement: Statement, *, first: bool = True) -> Answer:
        """Return one verified counterfactual.

        Most questions end with the first point that is found; where the model refuses it, there is a course to take.
        """
        search: Search = self._find
        for demand in statement.demands:
            search = demand.wrapped(search, self.backend) if isinstance(demand, Wraps) else search
        known = self.opening if statement is self.statement else None
        opening = Opening.of(self.goal, statement) if known is None else known
        asked = statement.with_margin(*opening.first)
        sought = search(asked, self.limits(), self.search_deadline())
        plainly = search == self._find and opening.whole and not opening.edge
        best = self.first_verified(sought.found, asked) if plainly else None
        if best is not None:
            return self.answer(best, sought.found, asked, proven=asked)
        course = Course.of(search, statement, opening, self.query.tuning.answering)
        return Refusals(self, course).answer(sought, refused=plainly, first=first)

    def answer(
        self, best: Verified, found: Found, statement: Statement, proven: Statement | None, margin: float | None = None
    ) -> Answer:
        """Return a verified point as an answer, proven as far as the bound of what was found goes.

        `proven` is the question that the bound holds for, None where a proof could not be replayed; `margin` is that of the
        bound, if it is another one.
        """
        if self.proof:
            found = replace(found, trail=b"" if proven is None else self.kept(proven, found.trail, found.bound))
            found = found if proven is None or found.trail else self._exactly(proven, found)
        asked = statement if margin is None else statement.with_margin(margin, statement.tie)
        return Answer(self._counterfactual(*best, asked, found), best[0], found, statement)

    def kept(self, statement: Statement, trail: bytes, bound: float) -> bytes:
        """Return the trail of a search, or the duals of the question as one linear program where a solver closed it."""
        if trail:
            return trail
        from ifonly.search.boxes.duals import dual_trail  # noqa: PLC0415 - loaded when a proof is asked for

        return dual_trail(statement, bound, self.deadline)

    def _exactly(self, statement: Statement, found: Found) -> Found:
        """Return what a solver closed, run again in rational arithmetic where that was asked for."""
        if self.proof != "exact":
            return found
        from ifonly.search.boxes.exactly import run_again  # noqa: PLC0415 - loaded when an exact proof is asked for

        return run_again(statement, found, self.backend.label, self.deadline)

    def limits(self) -> Limits:
        """Return the limits of a search that begins now."""
        return Limits(self.deadline.left(), self.gap, seed=self.query.seed, tuning=self.query.tuning)

    def search_deadline(self) -> Deadline:
        """Return the deadline of a search: the answer is put to the model afterwards, and a share of the time is for that."""
        tuning = self.query.tuning.answering
        kept = min(tuning.calls * self.query.model.seconds, tuning.kept * self.deadline.left())
        return self.deadline.earlier(kept)

    def _find(self, statement: Statement, limits: Limits, deadline: Deadline) -> Sought:
        keeps = bool(self.proof)
        found = find(statement, self.backend, limits, self._tried(statement), self.on_event, deadline, proof=keeps)
        return Sought(found, statement)

    def _tried(self, statement: Statement) -> tuple[Engine, ...]:
        """Return the engines for a statement: those that are known to take the question, whatever its margin, or all."""
        own = self.statement
        same = statement.demands is own.demands and statement.criteria is own.criteria
        same = same and statement.form is own.form and statement.query is own.query
        return self.takers if same and self.takers is not None else self.engines

    def first_verified(self, found: Found, statement: Statement, *, firm: float = 0.0) -> Verified | None:
        """Return the best point that the user's own model confirms, exactly as it will be returned.

        A `firm` one clears its threshold by as much: in single precision, a row alone and the same row among others may get
        scores that differ in the last digits. An optimum on the edge of its outcome is then moved on a little.
        """
        candidates = [] if found.u is None else [found.u]
        if found.u is None or found.ended is not Ended.CLOSED:
            candidates += list(found.pool)
            candidates.sort(key=lambda u: float(statement.objective(u[None, :])[0]))
        verified: list[Verified] = []
        for candidate in candidates:
            # the cheapest ones came first, and every one costs a call of the model
            if verified and self.deadline.passed:
                break
            for u in self._stored(candidate, statement):
                if self._is_firm(u, statement, firm) and self._confirmed(u, statement):
                    verified.append((u, float(statement.objective(u[None, :])[0])))
                    break
        if not verified:
            within = firm > 0.0 or statement.margin < 0.0  # of rounding, so that the model's own decides
            return self._nudged(found.u, statement, firm) if within and found.optimal and found.u is not None else None
        return min(verified, key=itemgetter(1))

    def _stored(self, candidate: FloatArray, statement: Statement) -> Iterator[FloatArray]:
        """Yield a point as it is returned: with consequences, as columns store it; then as they might have rounded it."""
        stored = self.query.schema.stored(candidate)
        if statement.consequences:
            followed = statement.with_consequences(stored[None, :], by_model=True)[0]
            if not np.array_equal(followed, stored, equal_nan=True):
                yield followed
        # On the very edge of a demand, consequences may round a value beyond it; then the solver's own is as good.
        yield stored
        yield from self.query.schema.stored_beside(candidate)

    def _is_firm(self, u: FloatArray, statement: Statement, firm: float) -> bool:
        """Whether a point clears its threshold by this much."""
        return not firm or bool(self.goal.clears(statement.form(u[None, :]), firm)[0])

    def _nudged(self, u: FloatArray, statement: Statement, firm: float) -> Verified | None:
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
        return all(d.withstands(u, self.backend, self.limits(), self.deadline) for d in around)

    def _confirmed(self, u: FloatArray, statement: Statement) -> bool:
        row, others = u[None, :], (d for d in statement.demands if d is not self.goal)
        return bool(self.goal.confirmed(row)[0]) and all(bool(verified(d, self.query, row)[0]) for d in others)

    # -- answering ----------------------------------------------------------------------------------------------
    def another(self, u: FloatArray, answer: Answer) -> Answer | None:
        """Return a point of the same search as an answer, or None if it is refused."""
        found, statement = replace(answer.found, u=u, pool=(), trail=b""), answer.statement
        edge = statement.margin == statement.tie == 0.0
        noise = self.goal.rounding(statement.form, statement.whole) if edge else 0.0
        best = self.first_verified(found, statement, firm=noise / SCORE_OPERATIONS)
        if best is None or not self._withstands(best[0], statement):
            return None
        return Answer(self._counterfactual(*best, statement, found), best[0], found, statement)

    def _counterfactual(self, u: FloatArray, objective: float, statement: Statement, found: Found) -> Counterfactual:
        """Return a verified point as it is shown; faces of a plain question that follow from it are made when looked at."""
        certificate = Certificate.of(
            objective,
            found.bound,
            margin=max(statement.margin, 0.0 if self.goal.ties_are_ours() else statement.tie, 0.0),
            solver=found.solver or self.backend.label,
            asked_gap=self.gap,
        )
        schema, row = self.query.schema, u[None, :]
        measures = Later(self._measured, statement.criteria, row)
        distance, score = Later(_distance, measures, objective), Later(self._score_of, row)
        others = Later(_without_distance, measures)
        if self.opening is None:
            distance.get(), score.get(), others.get()
        return Counterfactual(
            Later(self.query.model.decode, schema, row).field(),
            Later(self._changes, u).field(),
            self._predicted(row),
            score.field(),
            distance.field(),
            certificate,
            ranges=self._ranges(statement, u),
            measures=others.field(),
            trail=found.trail if self.proof else None,
        )

    def _changes(self, u: FloatArray) -> tuple[Change, ...]:
        schema, factual = self.query.schema, self.query.factual
        changed = np.flatnonzero(schema.changed(u[None, :], factual)[0]).tolist()
        values = ((schema.level_values(j, factual), schema.level_values(j, u)) for j in changed)
        return tuple(Change(schema.names[j], *pair) for j, pair in zip(changed, values, strict=True))

    def _measured(self, criteria: Sequence[Criterion], row: FloatArray) -> dict[str, float]:
        found = [criterion.measure(self.query, row) for criterion in criteria]
        return {name: float(values[0]) for measures in found for name, values in measures.items()}

    def _score_of(self, row: FloatArray) -> float:
        return float(self.goal.score_of(row)[0])

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
            return read.classes[self.goal.class_of(row[0], self.statement.whole, self.statement.form)]
        return float(read.decide(self.query.model.scores(row))[0])

    def of_factual(self) -> tuple[Any, float]:
        """Return what the model says of the factual, and its score."""
        u = self.query.factual[None, :]
        return self._said(u), float(self.goal.score_of(u)[0])

    def _of_factual(self) -> tuple[Later[Any], Later[float]]:
        """Return the same, made when it is looked at where scores decide it; elsewhere the model is asked at once."""
        u = self.query.factual[None, :]
        said, score = Later(self._said, u), Later(self._score_of, u)
        sure = self._lead() < 0.0 and len(self.query.model.read.classes) <= 2
        if not sure:
            said.get(), score.get()
        return said, score

    def _notes(self, several: Several) -> tuple[str, ...]:
        """Return why there are not more answers, and what criteria remark on those that there are."""
        speaking = [c for c in self.statement.criteria if isinstance(c, Remarks)]
        points = np.vstack(several.points)
        return (*several.notes, *(remark for c in speaking for remark in c.remarks(self.query, points)))

    def explanation(self, several: Several, seconds: float, origin: Origin | None = None) -> Explanation:
        """Put the answers together."""
        answers, model = several.answers, self.query.model
        (said, score), notes = self._of_factual(), Later(self._notes, several)
        if self.opening is None:
            notes.get()
        has_probabilities = model.read.link.has_probabilities
        return Explanation(
            answers,
            self.frame.field(),
            said.field(),
            score.field(),
            self.goal.text.removeprefix("want "),
            self.query.schema,
            several.status,
            seconds,
            answers[0].certificate.solver,
            notes=notes.field(),
            score_name="probability" if has_probabilities else "score" if model.read.classes else "value",
            reference=self.reference,
            origin=origin,
            given=self.given,
            interrupted=several.interrupted,
        )


def _distance(measures: Later[dict[str, float]], objective: float) -> float:
    """Return the distance among the measures of an answer; where no criterion measures one, its cost is."""
    return measures.get().get("distance", objective)


def _without_distance(measures: Later[dict[str, float]]) -> dict[str, float]:
    """Return the measures of an answer that are not told elsewhere."""
    return {name: value for name, value in measures.get().items() if name not in ("distance", "changed")}
