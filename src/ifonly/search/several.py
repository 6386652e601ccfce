"""Several answers: search again with the earlier ones ruled out, or keep the incumbents that one search met on its way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Protocol

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.errors import NotVerified, OutOfTime, SolverFailed
from ifonly.program.box import Box
from ifonly.question.further import Clustered, Diversifies, Further, Way
from ifonly.question.query import Query
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.later import Later
from ifonly.runtime.memo import Memo
from ifonly.search.answering import Answer, NoMore, Several
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from ifonly.search.reduce import Reducer

__all__ = ["Asked", "answers"]

_INTERRUPTED = "interrupted"
_OUT_OF_TIME = "out of time"
_NONE_FOUND = "no other was found"
_FAILED = "the solver failed on the next one"


class Asked(Protocol):
    """A question that can be answered again under further demands."""

    @property
    def statement(self) -> Statement:
        """Statement of the question."""
        ...

    @property
    def deadline(self) -> Deadline:
        """Deadline of the whole call."""
        ...

    def one(self, statement: Statement, *, first: bool = True) -> Answer:
        """Return one verified answer; raise `NoMore` when there is none and it is not the first."""
        ...

    def another(self, u: FloatArray, answer: Answer) -> Answer | None:
        """Return a point of the same search as an answer, or None if it is refused."""
        ...


def answers(asked: Asked, n: int) -> Several:
    """Return up to `n` verified answers that differ as the last criterion that `Diversifies` says."""
    first = asked.one(asked.statement)
    how = next(c for c in reversed(asked.statement.criteria) if isinstance(c, Diversifies))
    way = how.way()
    if way is Way.MET:
        return _met_on_the_way(asked, first, n)
    if way is Way.CLUSTERS:
        return _one_per_cluster(asked, first, n)
    return _one_by_one(asked, first, how, n)


def _several(found: Sequence[Answer], n: int, why: str) -> Several:
    notes = (f"only {len(found)} of {n}: {why}",) if len(found) < n else ()
    several = Several.of(found, notes)
    return replace(several, interrupted=several.interrupted or why == _INTERRUPTED)


# -- again and again -------------------------------------------------------------------------------------------------
def _one_by_one(asked: Asked, first: Answer, how: Diversifies, n: int) -> Several:
    found = [first]
    while len(found) < n:
        last = found[-1]
        if last.found.interrupted:
            return _several(found, n, _INTERRUPTED)
        if asked.deadline.passed:
            return _several(found, n, _OUT_OF_TIME)
        try:
            found.append(asked.one(_without(last, how, found, asked.deadline), first=False))
        except NoMore as none:
            return _several(found, n, f"{how.none_left()}{none.proven}")
        except OutOfTime:
            return _several(found, n, _NONE_FOUND if asked.deadline.left() > 0.0 else _OUT_OF_TIME)
        except NotVerified:
            return _several(found, n, "the model itself refuses the next one")
        except SolverFailed:
            return _several(found, n, _FAILED)
        except KeyboardInterrupt:
            return _several(found, n, _INTERRUPTED)
    return _several(found, n, "")


def _without(last: Answer, how: Diversifies, found: Sequence[Answer], deadline: Deadline) -> Statement:
    """Return what was demanded of the last answer, and that the next one be another."""
    query = last.statement.query
    demand = how.another(query, last.statement.criteria, last.statement.demands, last.u)
    statement = replace(last.statement, demands=(*last.statement.demands, demand))
    known = Later(_worth_a_try, statement, how, [a.u for a in found], deadline)
    earlier = next((d for d in last.statement.demands if isinstance(d, Further)), None)
    solved = (None if earlier is None else earlier.solved) or Memo(query.tuning.answering.optima)
    return replace(statement, demands=(*last.statement.demands, replace(demand, known=known, solved=solved)))


def _worth_a_try(
    statement: Statement, how: Diversifies, earlier: Sequence[FloatArray], deadline: Deadline
) -> tuple[FloatArray, ...]:
    """Return points that are likely to be other answers."""
    return tuple(_tries(statement, how, earlier, deadline))


def _tries(
    statement: Statement, how: Diversifies, earlier: Sequence[FloatArray], deadline: Deadline
) -> Iterator[FloatArray]:
    """Yield points that are likely to be other answers: one feature of each earlier answer stays, or one moves on."""
    query, whole = statement.query, statement.box()
    reducer = Reducer(statement)
    sets = [map(int, np.flatnonzero(query.counted(u[None, :])[0])) for u in earlier]
    for stay in islice(product(*sets), query.tuning.answering.boxes):
        if deadline.passed:
            return
        box = whole
        for j in stay:
            box = box.staying(j, query.factual)
        if box.empty() is None:
            known = Incumbents(reducer, box, Progress(deadline=deadline)).quick()
            if known is not None:
                yield known.u
    if how.apart() > 0.0:
        yield from _moved_on(query, whole, how.apart(), earlier[-1])


def _moved_on(query: Query, box: Box, distance: float, u: FloatArray) -> Iterator[FloatArray]:
    """Yield an answer with one number moved a little more than the distance, either way."""
    for j in query.model.read.form.features():
        feature, at = query.schema.features[j], query.schema.starts[j]
        if not isinstance(feature, Numeric) or np.isnan(u[at]):
            continue
        step = query.tuning.answering.farther * distance * float(query.training.range[j])
        grid = feature.step or 0.0
        for value in (u[at] + step + grid, u[at] - step - grid):
            if box.lower[j] <= value <= box.upper[j]:
                row = u.copy()
                row[at] = feature.snap(float(value))
                yield row


# -- one per cluster -------------------------------------------------------------------------------------------------
def _one_per_cluster(asked: Asked, first: Answer, n: int) -> Several:
    """Return the best answer of each cluster, cheapest first; the best of all is the best of its own."""
    statement = first.statement
    demand = next(d for d in statement.demands if isinstance(d, Clustered))
    parts = demand.clusters(statement.query)
    found, done, why = [], [], f"there are {len(parts)} clusters"
    for part in parts:
        if asked.deadline.passed:
            why = _OUT_OF_TIME
            break
        others = tuple(part if d is demand else d for d in statement.demands)
        try:
            found.append(asked.one(replace(statement, demands=others), first=False))
            done.append(part)
        except NoMore as none:
            why = f"the other clusters hold no answer{none.proven}"
        except NotVerified:
            why = "the model itself refuses the answer of another cluster"
        except SolverFailed:
            why = _FAILED
        except (OutOfTime, KeyboardInterrupt):
            why = _OUT_OF_TIME
            break
    if len(done) < len(parts) and not any(part.holds(statement.query, first.u[None, :])[0] for part in done):
        found.append(first)  # its own cluster has no answer yet
    found.sort(key=lambda answer: answer.counterfactual.certificate.objective)
    return _several(found[:n], n, why)


# -- on the way ------------------------------------------------------------------------------------------------------
def _met_on_the_way(asked: Asked, first: Answer, n: int) -> Several:
    """Return the optimum and the next best of the points that its search met."""
    statement = first.statement
    start = _Collecting(Reducer(statement), statement.box(), asked.deadline)
    start.quick()
    start.rows(statement.query.tuning.answering.rows_per_answer * n)
    met = np.array([first.u, *first.found.pool, *start.met])
    found = [first]
    for u in met[np.argsort(statement.objective(met), kind="stable")]:
        if len(found) == n or asked.deadline.passed:
            break
        # As rows are stored, points that differ by less than their dtypes can tell are one.
        stored = statement.query.schema.stored(u)
        if any(np.array_equal(stored, a.u, equal_nan=True) for a in found):
            continue
        answer = asked.another(u, first)
        if answer is not None and not any(np.array_equal(answer.u, a.u, equal_nan=True) for a in found):
            found.append(answer)
    late = asked.deadline.passed
    several = _several(
        found, n, _OUT_OF_TIME if late else "the search met no other; Diversity('features') looks for more"
    )
    return replace(several, status=first.counterfactual.certificate.status)


class _Collecting(Incumbents):
    """The search for incumbents, keeping every point that meets all demands; none ends it by being good enough."""

    def __init__(self, reducer: Reducer, box: Box, deadline: Deadline) -> None:
        super().__init__(reducer, box, Progress(deadline=deadline))
        self.met: list[FloatArray] = []

    def offer(self, u: FloatArray) -> bool:
        """Note a point that meets all demands."""
        u = self.statement.with_consequences(u[None, :])[0]
        if not self._meets_all(u):
            return False
        self.met.append(u)
        return True
