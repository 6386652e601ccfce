"""Question to a black box: a surrogate is learned, searched exactly, put to the test and learned anew.

Rows near the factual and between training rows are labelled by the black box. A readable model of their leads is searched
for the cheapest point that meets all demands and costs less than the best confirmed row so far. The black box judges it;
rows on the way to it and around it are labelled, and the surrogate is learned again. The rounds end when the surrogate
knows nothing cheaper, when no round has made the answer cheaper for a while, or when the rows that cost less are so few that
the black box was asked about every one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.features import plain
from ifonly.errors import CriterionError, OutOfTime, SolverError
from ifonly.models.form import Form
from ifonly.models.forms.complete import complete
from ifonly.models.read import Model
from ifonly.question.found import Ended, Found
from ifonly.question.goal import IntervalGoal
from ifonly.question.statement import Statement
from ifonly.question.training import Training
from ifonly.question.wrapping import Wraps
from ifonly.result.origin import Origin
from ifonly.result.values import Certificate, Counterfactual, Explanation
from ifonly.search.answering import Answer, Question, Several
from ifonly.search.progress import find
from ifonly.solvers.backend import Limits
from ifonly.surrogate.exhausting import all_cheaper, as_many
from ifonly.surrogate.learning import LEARNERS, Learned, learn
from ifonly.surrogate.oracle import Oracle, known_leads, sample_said
from ifonly.surrogate.pulling import Puller
from ifonly.surrogate.sampling import Sampler

__all__ = ["ObservedQuestion", "warm"]

OBSERVED = "not proven: the model was only observed, so a cheaper answer may exist"


def warm(training: Training) -> None:
    """Do before the first question what would cost it time: ask about the sample, and load the learners."""
    sample_said(training)
    for make in LEARNERS.values():
        make(0, False, training.tuning.learning)


@dataclass(frozen=True)
class ObservedQuestion(Question):
    """One question to a model that is only observed."""

    @classmethod
    def of(cls, question: Question) -> ObservedQuestion:
        """Return the same question, to be answered by observation."""
        return cls(**{f.name: getattr(question, f.name) for f in fields(question)})

    def refuse_what_is_there(self) -> None:
        """Say so when the factual already has the wanted outcome, by the black box's own word."""
        u = self.query.factual[None, :]
        if bool(self.goal.confirmed(u)[0]):
            raise CriterionError(
                f"The wanted outcome is already there: the model says {plain(self.query.model.predict(u)[0])!r} for this "
                f"row ({self.goal.text}). Ask for another outcome, or for more of it: Target(label, probability=...)."
            )

    def one(self, statement: Statement, *, first: bool = True) -> Answer:
        """Return one confirmed counterfactual that keeps all demands; nothing is proven about its cost."""
        del first
        refuse_balls(statement)
        statement = replace(statement, query=self.query, demands=(self.goal, *statement.demands[1:]))
        if statement.box().empty() is not None:
            raise OutOfTime(_none(statement))
        tuning = self.query.tuning.observing
        until = self.deadline.earlier(tuning.kept * min(self.deadline.left(), tuning.kept_of))
        oracle = Oracle(self.goal, until, self.query.training)
        rounds = _Rounds(self, statement, oracle)
        rounds.run()
        if rounds.u is None:
            raise OutOfTime(_none(statement))
        found = Found(Ended.LIMIT, rounds.u, solver=rounds.who)
        cost = float(statement.objective(rounds.u[None, :])[0])
        return Answer(self._counterfactual(rounds.u, cost, statement, found), rounds.u, found, statement)

    def _counterfactual(self, u: FloatArray, objective: float, statement: Statement, found: Found) -> Counterfactual:
        made = super()._counterfactual(u, objective, statement, found)
        proof = Certificate.observed_only(made.certificate.objective, made.certificate.solver, asked_gap=self.gap)
        return replace(made, certificate=proof)

    def _said(self, row: FloatArray) -> Any:
        return plain(self.query.model.predict(row)[0])

    def explanation(self, several: Several, seconds: float, origin: Origin | None = None) -> Explanation:
        """Put the answers together, and say that nothing is proven."""
        made = super().explanation(several, seconds, origin)
        return replace(made, notes=(*made.notes, OBSERVED))


def refuse_balls(statement: Statement) -> None:
    """Refuse demands that only a proof about the model could show to be met."""
    for demand in statement.demands:
        if isinstance(demand, Wraps):
            raise CriterionError(
                f"'{demand.text}' asks for a proof about every point of a region, but the model is only observed, point by "
                "point. Leave Robustness out, or ask for a higher probability: Target(label, probability=...)."
            )


def _none(statement: Statement) -> str:
    return (
        f"None was found that meets all demands ({statement.demands[0].text}); the model was only observed, so that proves "
        "nothing. Raise time_limit, loosen a demand, or give training rows that have the outcome."
    )


@dataclass
class _Rounds:
    """Rounds of learning and searching for one answer: what is labelled so far, and the best confirmed row."""

    question: ObservedQuestion
    statement: Statement
    oracle: Oracle
    u: FloatArray | None = None
    cost: float = np.inf
    name: str = ""
    asked: int | None = None  # rows that cost less, if all of them were put to the black box and refused
    rows: list[FloatArray] = field(default_factory=list)
    leads: list[FloatArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.query = self.question.query
        self.tuning = self.query.tuning.observing
        self.rng = np.random.default_rng(self.query.seed)
        self.sampler = Sampler(self.statement, self.rng)
        self.puller = Puller(self.statement, self.sampler, self.oracle)

    def run(self) -> None:
        """Label, pull, then learn and search until nothing gets better."""
        self._begin()
        self._exhaust()
        self._rounds()
        self._refine()
        self._exhaust(at_last=True)

    @property
    def who(self) -> str:
        """The finder of the answer, in words for people."""
        by = f"surrogate ({self.name})" if self.name else "surrogate"
        return by if self.asked is None else f"{by}; refused all {self.asked:,} cheaper rows"

    def _refine(self) -> None:
        if self.u is not None:
            self.u, self.cost = self.puller.refined(self.u, self.cost)

    def _exhaust(self, *, at_last: bool = False) -> None:
        """Put all rows that cost less to the black box, if they are few enough; the first that it confirms is the cheapest.

        At last, where they are too many, the cheapest of them.
        """
        if self.asked is not None or self.oracle.spent:
            return
        most = min(self.tuning.exhausted, self.oracle.affordable)
        rows = all_cheaper(self.statement, self.sampler.box, self.cost, most)
        whole = rows is not None
        if rows is None and at_last:
            rows = as_many(self.statement, self.sampler.box, self.cost, most, self.tuning.halvings)
        if rows is None:
            return
        rows = rows[self.puller.meets(rows)]
        found = self._first(rows)
        if found is not None:
            self._keep([rows[found]])
        # What could not be asked about is not known to be refused.
        known = found is not None or (whole and not self.oracle.spent)
        self.asked = (len(rows) if found is None else found) if known else None

    def _first(self, rows: FloatArray) -> int | None:
        """Return the place of the first row that the black box confirms; None if there is none, or no more can be asked."""
        for at in range(0, len(rows), self.tuning.most):
            good = np.flatnonzero(self.oracle.confirmed(rows[at : at + self.tuning.most]))
            if good.size or self.oracle.spent:
                return at + int(good[0]) if good.size else None
        return None

    def _rounds(self) -> None:
        names, idle, strict, seconds = list(LEARNERS), 0, 0.0, self.tuning.fit
        agreed: dict[str, float] = {}
        for turn in range(self.tuning.rounds):
            tired = idle >= self.tuning.patience or self.asked is not None
            if tired or self.oracle.spent or self.oracle.deadline.left() < self.tuning.longer * seconds:
                return
            # First each learner in turn; then those that agree most with the black box, the best one mostly.
            order = sorted(agreed, key=lambda n: -agreed[n])
            name = names[turn] if turn < len(names) else order[(turn - len(names)) % 2 if len(order) > 1 else 0]
            learned = self._learn(name)
            if learned is None:
                agreed[name] = 0.0
                continue
            agreed[name], seconds = learned.agreement, learned.seconds
            before = self.cost
            refused, knows_more = self._search(learned, strict)
            strict = strict + self.tuning.stricter if refused else 0.0
            better = self.cost < before
            if better:
                self._exhaust()
            idle = 0 if better else idle + 1 + (not knows_more and turn >= len(names))

    # -- labelling ------------------------------------------------------------------------------------------------
    def _label(self, rows: FloatArray) -> FloatArray:
        """Put rows to the black box; return those that it confirms."""
        if not len(rows):
            return rows
        leads = self.oracle.leads(rows)
        asked = ~np.isnan(leads)
        self.rows.append(rows[asked])
        self.leads.append(leads[asked])
        return np.asarray(rows[asked][leads[asked] > 0])

    def _begin(self) -> None:
        """Label training rows, rows with one change and mixtures; pull the cheapest confirmed ones."""
        goal, training, tuning = self.question.goal, self.query.training, self.tuning
        self.known = known = known_leads(goal, training)
        near = self.sampler.into_box(training.sample[known > 0])
        if len(near):
            order = np.argsort(self.statement.objective(near), kind="stable")
            near = near[order[: tuning.near_rows * tuning.starts]]
        first = self._confirmed(near, 1)
        self._keep(first)  # first of all, so that there is an answer however little time is left
        others = near[: tuning.mixed_with * tuning.starts] if len(near) else training.sample
        start = self.sampler.start
        sweeps = self.sampler.sweeps(start, self._many(tuning.sweep, tuning.sweep_share))
        mixtures = self.sampler.mixtures(start, others, self._many(tuning.mixed, tuning.mixed_share))
        mixed = self._label(np.vstack([sweeps, mixtures]))
        if not (len(mixed) + len(near)):
            count = self._many(tuning.more_mixed * tuning.mixed, tuning.around_share)
            mixed = self._label(self.sampler.around(start, count, tuning.widely))
        starts = self._many(tuning.starts, tuning.start_share)
        self._pull([*first, *self._confirmed(mixed, starts), *self._confirmed(near[1:], starts)], tuning.traded)

    def _many(self, most: int, share: int) -> int:
        """Return a number of rows, fewer where the black box is slow: at most one in so many that can still be asked."""
        return int(np.clip(self.oracle.affordable // max(share, 1), 1, most))

    def _confirmed(self, rows: FloatArray, count: int) -> list[FloatArray]:
        """Return the few cheapest rows that meet all demands and that the black box confirms."""
        if not len(rows) or self.oracle.spent:
            return []
        rows = rows[np.argsort(self.statement.objective(rows), kind="stable")]
        rows = rows[self.puller.meets(rows)][: self.tuning.checked * count]
        return list(rows[self.oracle.confirmed(rows)][:count]) if len(rows) else []

    def _keep(self, rows: list[FloatArray]) -> None:
        """Keep the cheapest of some confirmed rows, if it is cheaper than what there is."""
        for u in rows:
            cost = float(self.statement.objective(u[None, :])[0])
            if cost < self.cost:
                self.u, self.cost = u, cost

    def _pull(self, rows: list[FloatArray], traded: int) -> None:
        """Pull confirmed rows towards the factual, exchange features of the cheapest few, and keep the cheapest of all."""
        self._keep(rows)
        drawn = self.puller.pull(rows)
        self._keep([u for u, _ in drawn])
        for u, cost in drawn[:traded]:
            if cost < self.tuning.near * self.cost and not self.oracle.spent:
                self._keep([self.puller.exchange(u, cost)[0]])

    # -- learning and searching -----------------------------------------------------------------------------------
    def _learn(self, name: str) -> Learned | None:
        training = self.query.training
        away = np.abs(np.nan_to_num(training.sample - self.query.factual)) / _spans(training.sample)
        near = np.argsort(away.sum(axis=1), kind="stable")[: self.tuning.nearest]
        rows = np.vstack([training.sample[near], *self.rows])
        leads = np.concatenate([self.known[near], *self.leads])
        if not (leads > 0).any() or not (leads < 0).any():
            return None
        return learn(
            name, self.query.schema, self.sampler.start, rows, leads, self.query.seed, self.query.tuning.learning
        )

    def _search(self, learned: Learned, strict: float) -> tuple[bool, bool]:
        """Search a surrogate; return whether its answer was refused, and whether it knew a cheaper one at all."""
        model = Model(learned.read, self.query.model.estimator, self.query.model.prepare)
        spread = float(np.std(np.concatenate([self.known, *self.leads])))
        goal = IntervalGoal(self.question.goal.text, model, low=strict * spread)
        training = replace(self.query.training, model=model)
        query = replace(self.query, model=model, training=training, goal=goal)
        form: Form = learned.read.form if np.isnan(query.factual).any() else complete(learned.read.form)
        inside = replace(self.statement, query=query, demands=(goal, *self.statement.demands[1:]), form=form)
        limits = Limits(
            min(self.tuning.searched, self.oracle.deadline.left()),
            self.tuning.gap,
            self.cost,
            self.query.seed,
            tuning=self.query.tuning,
        )
        try:
            asked = self.question
            found = find(inside, asked.backend, limits, asked.engines, deadline=self.oracle.deadline)
        except SolverError:
            return True, True
        points = [p for p in (found.u, *found.pool) if p is not None]
        if not points:
            return False, False
        rows = self.sampler.as_returned(np.array(points))
        rows = rows[np.argsort(self.statement.objective(rows), kind="stable")][: self.tuning.judged]
        best = self.puller.cheapest(rows, self.cost)
        if best is not None:
            self.name = learned.name
            self._pull([best[0]], 1)
        target = points[0]
        on_the_way = self.sampler.between(
            self.sampler.start, target, self.tuning.around // max(self.tuning.way_share, 1)
        )
        around = [self.sampler.around(target, self.tuning.around, size) for size in self.tuning.sizes]
        good = self._label(np.vstack([on_the_way, *around, self.sampler.sweeps(target, self.tuning.sweep_there)]))
        self._pull(self._confirmed(good[self.statement.objective(good) < self.tuning.near * self.cost], 1), 1)
        return best is None, True


def _spans(rows: FloatArray) -> FloatArray:
    spans = np.nanmax(rows, axis=0) - np.nanmin(rows, axis=0)
    return np.where(spans > 0, spans, 1.0)
