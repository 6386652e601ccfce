"""Main line of one question: search, verify, widen the margin where the model refuses, and put the answer together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.data.features import plain
from ifonly.errors import CriterionError, Infeasible, NotVerified, OutOfTime
from ifonly.events import OnEvent
from ifonly.models.abilities import distance_from_ties
from ifonly.question.abilities import verified
from ifonly.question.criterion import Remarks
from ifonly.question.found import Ended, Found
from ifonly.question.goal import ClassGoal, Goal
from ifonly.question.margins import first_margin
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Ranges, Search, Sought, Wraps
from ifonly.result.values import Certificate, Change, Counterfactual, Explanation, Status, worst_status
from ifonly.runtime.deadline import Deadline
from ifonly.search.blame import explain_infeasibility
from ifonly.search.engines import find
from ifonly.search.nudge import nudged
from ifonly.solvers.backend import Backend, Limits
from ifonly.tolerances import OPTIMALITY, SCORE_OPERATIONS, SOLVER_ROUNDINGS

__all__ = ["Answer", "NoMore", "Question", "Several"]

NEVER = Deadline.never()


class NoMore(Exception):
    """There is no further answer that differs from those found; proven."""


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
    """Answers, best first, and why there are not more."""

    answers: tuple[Counterfactual, ...]
    notes: tuple[str, ...] = ()
    status: Status = "optimal"
    interrupted: bool = False

    @classmethod
    def of(cls, found: Sequence[Answer], notes: tuple[str, ...] = ()) -> Several:
        """Return answers, with the worst of their statuses."""
        counterfactuals = tuple(a.counterfactual for a in found)
        status = worst_status(c.certificate for c in counterfactuals)
        return cls(counterfactuals, notes, status, any(a.found.interrupted for a in found))


@dataclass(frozen=True)
class Question:
    """One question being answered."""

    backend: Backend
    frame: pd.DataFrame
    reference: pd.DataFrame
    query: Query
    goal: Goal
    statement: Statement
    wish: Any = None
    deadline: Deadline = NEVER
    gap: float = OPTIMALITY
    on_event: OnEvent | None = None
    proof: bool = False

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
    def _encode(self, answer: Counterfactual) -> FloatArray:
        return self.query.schema.encode(answer.row, missing=True)

    def one(self, statement: Statement, *, first: bool = True) -> Answer:
        """Return one verified counterfactual.

        At a point that the model refuses, forms that are relaxations are made finer; where they are exact, the point is ruled
        out if the scores around it are all the same, and elsewhere the margin is widened. What was proven before still holds
        for everything that clears the first margin.
        """
        search: Search = self._find
        for demand in statement.demands:
            search = demand.wrapped(search, self.backend) if isinstance(demand, Wraps) else search
        statement = self._with_first_margin(statement)
        certified, bound, trail = statement, -np.inf, b""
        u: FloatArray | None = None
        noise, tuning = self.goal.rounding(statement.form, statement.box()), self.query.tuning.answering
        at_the_edge = statement.margin == statement.tie == 0.0 < noise  # then a margin of noise has not been tried
        margins = iter([noise * tuning.widening**k for k in range(not at_the_edge, tuning.widenings + 1)])
        repairs = tuning.repairs
        while True:
            limits = self._limits()
            found, statement = search(statement, limits, self.deadline)
            # A wider margin, or a form that keeps away from ties, leaves points out: no bound comes from there.
            whole = statement.margin == certified.margin and distance_from_ties(statement.form) == 0.0
            if found.infeasible:
                if not first and whole:
                    raise NoMore
                if not whole and u is not None and (not first or statement.margin > noise * SOLVER_ROUNDINGS):
                    break
                beyond = 0.0 if whole else max(statement.margin, distance_from_ties(statement.form))
                error = explain_infeasibility(statement, self.backend, limits, self.deadline, margin=beyond)
                asked = whole and statement.demands == certified.demands
                raise self._with_trail(error, certified, found.trail if asked else None)
            if whole:
                trail = found.trail if found.bound >= bound else trail
                bound = max(bound, found.bound)
            best = self._first_verified(
                found, statement, firm=noise / SCORE_OPERATIONS if at_the_edge and whole else 0.0
            )
            u = found.u if found.u is not None else u
            if best is not None:
                found = self._proven(replace(found, bound=min(found.bound, bound), trail=trail), certified)
                answer = self._counterfactual(best[0], replace(statement, margin=certified.margin), found)
                return Answer(answer, best[0], found, statement)
            if found.interrupted:
                raise KeyboardInterrupt
            if found.u is None or self.deadline.passed:
                late = self.deadline.passed or found.ended is not Ended.TOO_LARGE
                why = "" if late else " (the program is too large for memory, or for the time left)"
                raise OutOfTime(
                    f"No verified answer within the time limit{why}; no answer costs less than {bound:.6g}. Raise "
                    "time_limit, or loosen a demand.",
                    bound,
                )
            finer = statement.refined(found.u)
            stricter = finer if finer is not statement else self._ruled_out(statement, found.u)
            if stricter is not None and repairs:
                statement, repairs = stricter, repairs - 1
                continue
            margin = next(margins, None)
            if margin is None:
                break
            statement = replace(finer, margin=margin)
        assert u is not None
        raise self._unverified(u, statement, noise)

    def _proven(self, found: Found, statement: Statement) -> Found:
        """Return what was found with its proof, where one is asked for."""
        return replace(found, trail=self._kept(statement, found.trail, found.bound) if self.proof else b"")

    def _with_trail(self, error: Infeasible, statement: Statement, trail: bytes | None) -> Infeasible:
        """Return an impossibility with its proof, where one is asked for; None: it is that of a stricter question."""
        if self.proof:
            error.trail = b"" if trail is None else self._kept(statement, trail, np.inf)
        return error

    def _kept(self, statement: Statement, trail: bytes, bound: float) -> bytes:
        """Return the trail of a search, or the duals of the question as one linear program where a solver closed it."""
        if trail:
            return trail
        from ifonly.search.duals import dual_trail  # noqa: PLC0415 - loaded when a proof is asked for

        return dual_trail(statement, bound, self.deadline)

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

    def _find(self, statement: Statement, limits: Limits, deadline: Deadline) -> Sought:
        return Sought(find(statement, self.backend, limits, self.on_event, deadline, proof=self.proof), statement)

    def _with_first_margin(self, statement: Statement) -> Statement:
        """Return the statement with the least lead that can be told from a tie, where a tie would be lost."""
        return first_margin(statement, self.goal)

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
        verified = []
        for candidate in candidates:
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
            return self._nudged(found.u, statement, firm) if firm and found.optimal and found.u is not None else None
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
        row = u[None, :]
        if not bool(self.goal.confirmed(row)[0]):
            return False
        return all(bool(verified(d, self.query, row)[0]) for d in statement.demands if d is not self.goal)

    # -- answering ----------------------------------------------------------------------------------------------
    def another(self, u: FloatArray, answer: Answer) -> Answer | None:
        """Return a point of the same search as an answer, or None if it is refused."""
        found, statement = replace(answer.found, u=u, pool=(), trail=b""), answer.statement
        best = self._first_verified(found, statement)
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
            self.query.training.decode(schema, row),
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
        """Return what the model says of the factual, by its form: the label or the value."""
        read = self.query.model.read
        decided = read.decide(read.form(row))[0]
        return read.classes[int(decided)] if read.classes else float(decided)

    def of_factual(self) -> tuple[Any, float]:
        """Return what the model says of the factual, and its score."""
        u = self.query.factual[None, :]
        return self._said(u), float(self.goal.score_of(u)[0])

    def explanation(self, several: Several, seconds: float) -> Explanation:
        """Put the answers together."""
        answers = several.answers
        model = self.query.model
        has_probabilities = model.read.link.has_probabilities
        speaking = [c for c in self.statement.criteria if isinstance(c, Remarks)]
        rows = np.vstack([self._encode(a) for a in answers]) if speaking else np.empty((0, 0))
        return Explanation(
            answers,
            self.frame,
            *self.of_factual(),
            self.goal.text.removeprefix("want "),
            self.query.schema,
            several.status,
            seconds,
            answers[0].certificate.solver,
            notes=(*several.notes, *(r for c in speaking for r in c.remarks(self.query, rows))),
            score_name="probability" if has_probabilities else "score" if model.read.classes else "value",
            reference=self.reference,
            interrupted=several.interrupted,
        )
