"""Asking: a row and a wish become a question, under criteria that are made ready once.

The first question of a kind is put together in full: criteria are checked and asked for their demands and costs, the margins
of its goal are computed, and whether it takes the decimals of the data. Where all criteria are the same in every question
(`Tabulates`), none of this depends on the row. It is kept, and of the next row no more is asked than its values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.criteria.house import combined, diversified
from ifonly.criteria.validity import Target, as_target, resolve
from ifonly.data.given import Given, on_grids, widened
from ifonly.data.schema import Schema
from ifonly.data.tables import ANY_TABLE, DEEP, TableKind
from ifonly.models.form import Form
from ifonly.models.read import Model
from ifonly.program.box import Box
from ifonly.question.costs import CostTable
from ifonly.question.criterion import ChecksTogether, Criterion, HasConsequences, Tabulates, is_tabulated
from ifonly.question.demand import Demand
from ifonly.question.goal import Goal
from ifonly.question.guidance import Branches
from ifonly.question.query import Query
from ifonly.question.statement import Parts, Statement
from ifonly.question.training import Training
from ifonly.runtime.later import Later
from ifonly.runtime.memo import Lean, cached_property
from ifonly.search.answering import Question
from ifonly.search.course import Opening
from ifonly.search.decimals import takes_decimals
from ifonly.search.engines import engines_for
from ifonly.search.progress import Engine
from ifonly.solvers.backend import Backend

__all__ = ["Asker", "Subject"]


@dataclass(frozen=True, eq=False)
class Subject(Lean):
    """Subject of all questions: a model, the features and data that it was trained on, and the kind of table they came in.

    `complete` is the model's form for rows without missing values, `observed` whether only the model's answers are known.
    """

    schema: Schema
    model: Model
    training: Training
    complete: Form
    frame: pd.DataFrame
    kind: TableKind
    seed: int = 0
    observed: bool = False

    @cached_property
    def gridded(self) -> Schema:
        """The schema with the decimals of the data, for factuals that have no more: made once, as are its tables."""
        return on_grids(self.schema, np.full(self.schema.width, np.nan))


@dataclass(frozen=True, eq=False)
class _Ready:
    """Parts of a question that are the same for every row without missing values and within the bounds of the schema.

    Attributes
    ----------
    schema, box
        The features, and their box: no demand narrows it.
    demands, form
        As in its statement.
    costs
        The separable costs at all factuals.
    known
        Parts of its statement; the costs are those of the first row.
    takers
        The engines that take it; None: they are to be asked.
    opening
        Its first margins.
    decimals
        Whether it takes the decimals of the data.
    """

    schema: Schema
    box: Box
    demands: tuple[Demand, ...]
    form: Form
    costs: CostTable
    known: Parts
    takers: tuple[Engine, ...] | None
    opening: Opening
    decimals: bool


class Asker:
    """Maker of questions about one subject, under the criteria of the house and of a call.

    Threads may share one: what it keeps are values, and two threads that make the same one keep either.
    """

    def __init__(
        self,
        subject: Subject,
        backend: Backend,
        engines: tuple[Engine, ...] | None,
        house: Sequence[Criterion],
        call: Sequence[Criterion],
        several: bool,
    ) -> None:
        merged = combined(house, call)
        self.subject, self.backend, self.house, self.call = subject, backend, house, tuple(call)
        self.criteria = diversified(merged) if several else merged
        self.given, self.engines = engines, engines_for(backend) if engines is None else engines
        together = any(isinstance(c, ChecksTogether) for c in self.criteria)
        self._tabulated = all(map(is_tabulated, self.criteria)) and not together and not subject.observed
        self._kinds = subject.training.tuning.answering.kinds
        self._goals: dict[Hashable, Goal] = {}
        self._ready: dict[tuple[int, int], tuple[Goal, Schema, _Ready | None]] = {}

    def serves(
        self, model: Model, backend: Backend, engines: tuple[Engine, ...] | None, house: Sequence[Criterion]
    ) -> bool:
        """Whether it asks this model, with this solver, these engines and under these criteria of the house."""
        same = self.subject.model is model and self.backend is backend
        return same and self.given is engines and self.house is house

    def ask(self, row: Any, want: Any, *, decimals: bool = True, **options: Any) -> Question:
        """Return a question, with the `decimals` of the data where they are allowed and cost nothing.

        `row` is a dict, Series, one-row frame or array, or a `Given`; `options` are those of a `Question`.
        """
        subject = self.subject
        if isinstance(row, Given):
            given, kind = row, subject.kind
        else:
            table = subject.schema.row(row)
            given = Given(
                subject.schema.encode(table, missing=subject.model.read.accepts_missing)[0], table.copy(deep=DEEP)
            )
            kind = ANY_TABLE if table is row else subject.kind.beside(row)
        factual = given.factual
        wish = self.wish(want, factual) if want is None or isinstance(want, Target) else want
        goal = self._goal(wish)
        lacking = bool(subject.model.read.accepts_missing) and subject.schema.lacks(factual)
        plain = self._tabulated and not lacking and subject.schema.spans(factual)
        options |= {"wish": wish, "given": kind}
        ready = self._plainly(given, goal, options, decimals=decimals) if plain else None
        return self._in_full(given, goal, options, decimals=decimals) if ready is None else ready

    # -- what is wanted -----------------------------------------------------------------------------------------
    def wish(self, want: Any, factual: FloatArray) -> Any:
        """Return what is wanted, with the other class of two in place of None."""
        model = self.subject.model
        classes, target = model.read.classes, as_target(want)
        named = any(part is not None for part in (target.label, target.at_least, target.at_most, target.any_of))
        if not named and len(classes) == 2:
            if self.subject.observed:
                now = classes.index(model.predict(factual[None, :])[0])
            else:
                now = self._goal(classes[0]).class_of(factual, Box.of(self.subject.schema, factual))
            other = classes[1 - now]
            want = replace(want, label=other) if isinstance(want, Target) else other
        return want

    def _goal(self, want: Any) -> Goal:
        """Return the goal of a wish; one that can be looked up is made once."""
        key: Hashable = (type(want), want)  # True is 1, and yet another class
        if isinstance(want, Target | list | tuple | set | frozenset | np.ndarray):
            target = as_target(want)
            key = (type(target.label), *map(type, target.any_of or ()), target)
        try:
            known = self._goals.get(key)
        except TypeError:  # a class that is no value
            return resolve(want, self.subject.model)
        if known is None:
            if len(self._goals) >= self._kinds:
                self._goals.clear()
            self._goals[key] = known = resolve(want, self.subject.model)
        return known

    # -- plainly ------------------------------------------------------------------------------------------------
    def _plainly(self, given: Given, goal: Goal, options: dict[str, Any], *, decimals: bool) -> Question | None:
        """Return a question from its ready parts; None where some part of it depends on the row."""
        schema, on_grid = self.subject.schema, False
        ready = self._made_ready(given, goal, schema)
        if ready is not None and ready.decimals and decimals and (gridded := self.subject.gridded) is not schema:
            if not np.array_equal(gridded.stored(given.factual), given.factual):
                return None
            ready, on_grid = self._made_ready(given, goal, gridded), True
        if ready is None:
            return None
        query = self._query(given, goal, ready.schema, ready.box)
        known = ready.known._replace(separable_costs=ready.costs.at(ready.schema, given.factual))
        statement = Statement(query, ready.demands, self.criteria, ready.form, known=known)
        own = {"opening": ready.opening, "takers": ready.takers, "on_grids": on_grid}
        return self._question(given, statement, goal, {**options, **own})

    def _made_ready(self, given: Given, goal: Goal, schema: Schema) -> _Ready | None:
        """Return the ready parts of questions with a goal in a schema, made from the first of them."""
        key = (id(goal), id(schema))
        known = self._ready.get(key)
        if known is None or known[0] is not goal:  # while they are kept, nothing else has their id
            if len(self._ready) >= self._kinds:
                self._ready.clear()
            self._ready[key] = known = goal, schema, self._parts(self._stated(given, goal, schema), goal)
        return known[2]

    def _parts(self, statement: Statement, goal: Goal) -> _Ready | None:
        """Return the parts of a statement that do not depend on its factual; None where demands narrow its box."""
        query, schema, box = statement.query, statement.query.schema, statement.whole
        if box.key != query.limits.key or not statement.starts_in(box):
            return None
        costs = CostTable.none(schema)
        for criterion in self.criteria:
            table = criterion.table(schema, query.training) if isinstance(criterion, Tabulates) else None
            if table is None:
                return None
            costs = costs.plus(table, schema)
        takers = None
        if not any(isinstance(d, Branches) for d in statement.demands):  # of alternatives, other engines may take each
            takers = tuple(engine for engine in self.engines if engine.accepts(statement, box))
        opening, decimals = Opening.of(goal, statement), takes_decimals(statement)
        return _Ready(
            schema, box, statement.demands, statement.form, costs, statement.parts(), takers, opening, decimals
        )

    # -- in full ------------------------------------------------------------------------------------------------
    def _in_full(self, given: Given, goal: Goal, options: dict[str, Any], *, decimals: bool) -> Question:
        """Return a question of which every part is asked for."""
        schema = widened(self.subject.schema, given.factual)
        statement = self._stated(given, goal, schema)
        asked = self._question(given, statement, goal, options)
        gridded = self._on_grids(schema, given.factual) if decimals else schema
        if gridded is schema or not takes_decimals(statement):
            return asked
        statement = self._stated(given, goal, gridded, again=True)
        return self._question(given, statement, goal, {**options, "on_grids": True})

    def _on_grids(self, schema: Schema, factual: FloatArray) -> Schema:
        whole, own = self.subject.gridded, self.subject.schema
        if whole is own:
            return schema
        same = schema is own and np.array_equal(whole.stored(factual), factual, equal_nan=True)
        return whole if same else on_grids(schema, factual)

    def _stated(self, given: Given, goal: Goal, schema: Schema, *, again: bool = False) -> Statement:
        """Return the question in a schema; what criteria have to say about it is not said `again`."""
        limits = Box.of(schema, given.factual).sealed()
        query = self._query(given, goal, schema, limits)
        for criterion in () if again else self.criteria:
            criterion.check(query)
        following = (c.exempt(query) for c in self.criteria if isinstance(c, HasConsequences))
        query = replace(query, exempt=frozenset().union(*following))
        demands = [d for criterion in self.criteria for d in criterion.demands(query)]
        for criterion in self.criteria:
            if isinstance(criterion, ChecksTogether) and not again:
                criterion.check_together(query, demands)
        form = self.subject.model.read.form if limits.missing.any() else self.subject.complete
        return Statement(query, (goal, *demands), self.criteria, form)

    def _query(self, given: Given, goal: Goal, schema: Schema, limits: Box) -> Query:
        model, training, seed = self.subject.model, self.subject.training, self.subject.seed
        return Query(schema, given.factual, model, training, limits, seed, goal, tuning=training.tuning)

    def _question(self, given: Given, statement: Statement, goal: Goal, options: Mapping[str, Any]) -> Question:
        subject, model, query = self.subject, self.subject.model, statement.query
        frame, scores = Later(given.returned, query.schema), Later(model.scores, query.factual[None, :])
        if not query.limits.missing.any():
            model.know(query.schema, query.factual, given.table, given.line)
        asked = Question(self.backend, self.engines, frame, scores, subject.frame, query, goal, statement, **options)
        if not subject.observed:
            return asked
        from ifonly.surrogate import ObservedQuestion  # noqa: PLC0415 - loaded when it is asked for

        return ObservedQuestion.of(asked)
