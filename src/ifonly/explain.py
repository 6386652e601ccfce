"""The Explainer: declare, embed, apply, reduce, solve, decode, verify; and blame when it is impossible."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ifonly.adversary import withstand, withstands
from ifonly.blame import explain_infeasibility
from ifonly.criteria import Criterion, Query
from ifonly.criteria.proximity import Proximity
from ifonly.criteria.robustness import Robustness
from ifonly.criteria.sparsity import Sparsity
from ifonly.criteria.validity import Goal, Target, resolve
from ifonly.engine import Found, find
from ifonly.errors import (
    CriterionError,
    NotProvenOptimal,
    NotVerified,
    OutOfTime,
    OutsideTrainingRange,
)
from ifonly.events import Finished, OnEvent
from ifonly.fitted import open_model
from ifonly.mip import FloatArray
from ifonly.problem import Problem, Statement, build
from ifonly.ranges import safe_ranges
from ifonly.result import Certificate, Change, Counterfactual, Explanation, Explanations
from ifonly.schema import Numeric, Schema
from ifonly.several import Answer, NoMore, Several
from ifonly.several import answers as several_answers
from ifonly.solvers import Limits, Status, find_solver
from ifonly.training import Training

__all__ = ["Explainer"]

DEFAULT_CRITERIA: tuple[Criterion, ...] = (Proximity("l1", scale="range"), Sparsity(price=0.1))
_FIRST_MARGIN = 1e-7
_WIDENINGS = 6


class Explainer:
    """Explains decisions of one trained model.

    Parameters
    ----------
    model
        A fitted estimator or Pipeline of a supported kind.
    X
        The data it was trained on (pandas, polars or array), in the columns that ``model.predict`` takes.
    y
        The true outcomes, for criteria that use them.
    schema
        What the columns mean; read off `X` when not given.
    criteria
        The house policy: criteria that hold for every call. The default is
        ``(Proximity("l1", scale="range"), Sparsity(price=0.1))``.
    solver
        ``"auto"``, ``"highs"``, ``"scip"`` or ``"gurobi"``.
    random_state
        Seed of everything that draws.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"income": [10, 20, 30, 40], "debts": [5, 1, 4, 0]})
    >>> model = LogisticRegression().fit(X, ["no", "no", "yes", "yes"])
    >>> answer = Explainer(model, X).explain({"income": 20, "debts": 1}, want="yes")
    >>> answer.changes()
       counterfactual feature  from  to
    0               0  income    20  26
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        schema: Schema | None = None,
        criteria: Sequence[Criterion] | None = None,
        solver: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.schema, self.model, self._frame, U = open_model(model, X, schema)
        labels = None if y is None else np.asarray(y, dtype=object).reshape(-1)
        if labels is not None and len(labels) != len(U):
            raise CriterionError(f"y has {len(labels)} entries but X has {len(U)} rows. Pass matching data.")
        self.training = Training(self.schema, U, self.model, labels)
        self.criteria = _checked(DEFAULT_CRITERIA if criteria is None else criteria)
        self.backend = find_solver(solver)
        self.random_state = random_state

    # -- one row ------------------------------------------------------------------------------------------------
    def explain(
        self,
        row: Any,
        *,
        want: Any = None,
        n: int = 1,
        criteria: Sequence[Criterion] = (),
        time_limit: float = 30.0,
        gap: float = 1e-6,
        on_event: OnEvent | None = None,
    ) -> Explanation:
        """Return the least change of `row` that gives the wanted outcome.

        Parameters
        ----------
        row
            The factual: a dict, Series, one-row frame or array.
        want
            The wanted class, or a `Target`; None means the other class of a two-class model.
        n
            How many different counterfactuals to return.
        criteria
            Criteria for this call, on top of the house policy.
        time_limit
            Seconds for the whole call.
        gap
            Relative gap within which an answer counts as proven optimal.
        on_event
            Called with `Built`, `Incumbent` and `Finished` events.

        Raises
        ------
        Infeasible
            Proven impossible; carries the clashing demands and how to loosen them.
        OutOfTime
            Nothing was found in time.
        NotVerified
            The model refused every repaired answer.
        """
        began = time.perf_counter()
        asked = self._ask(row, want, criteria)
        if n < 1:
            raise CriterionError(f"'n' must be at least 1, got {n!r}.")
        asked.refuse_what_is_there()
        several = several_answers(replace(asked, deadline=began + time_limit, gap=gap, on_event=on_event), n)
        explanation = asked.explanation(several, time.perf_counter() - began)
        if on_event is not None:
            on_event(Finished(explanation.status, explanation.seconds))
        if explanation.status != "optimal":
            worst = max(c.certificate.gap for c in explanation)
            warnings.warn(
                f"The answer is valid but not proven optimal: gap {worst:.2%} after {explanation.seconds:.1f} s. Give it "
                "a longer time_limit to close it.",
                NotProvenOptimal,
                stacklevel=2,
            )
        return explanation

    def problem(self, row: Any, *, want: Any = None, criteria: Sequence[Criterion] = ()) -> Problem:
        """Return the exact program of a question, writable as an LP file."""
        return build(self._ask(row, want, criteria).statement)

    def explain_all(
        self,
        rows: Any,
        *,
        want: Any = None,
        n: int = 1,
        criteria: Sequence[Criterion] = (),
        n_jobs: int = 1,
        time_limit: float = 30.0,
        progress: bool = False,
    ) -> Explanations:
        """Explain many rows; each gets a status of its own, and one bad row never stops the others.

        Ctrl-C ends the batch: the rows that are done keep their answers, the others have the status "interrupted".
        """
        from ifonly.batch import explain_batch  # noqa: PLC0415 - joblib is loaded only for batches

        return explain_batch(
            self, rows, want=want, n=n, criteria=criteria, n_jobs=n_jobs, time_limit=time_limit, progress=progress
        )

    # -- asking -------------------------------------------------------------------------------------------------
    def _ask(self, row: Any, want: Any, criteria: Sequence[Criterion]) -> _Question:
        given = self.schema.row(row)
        factual = self.schema.encode(given, missing=self.model.read.accepts_missing)[0]
        schema = _widened(self.schema, factual)
        frame = schema.decode(factual, like=given)
        goal = self._goal(want, factual)
        query = Query(schema, factual, self.model, self.training, self.random_state, goal)
        merged = _combined(self.criteria, _checked(criteria))
        for criterion in merged:
            criterion.check(query)
        query = replace(query, exempt=frozenset().union(*(c.exempt(query) for c in merged)))
        demands = [d for criterion in merged for d in criterion.demands(query)]
        for criterion in merged:
            criterion.check_together(query, demands)
        statement = Statement(query, (goal, *demands), merged, self.model.read.form)
        return _Question(self, frame, query, goal, statement)

    def _goal(self, want: Any, factual: FloatArray) -> Goal:
        classes = self.model.read.classes
        label = want.label if isinstance(want, Target) else want
        interval = isinstance(want, Target) and (want.at_least is not None or want.at_most is not None)
        if label is None and not interval and len(classes) == 2:
            now = int(self.model.read.decide(self.model.read.form(factual[None, :]))[0])
            other = classes[1 - now]
            want = replace(want, label=other) if isinstance(want, Target) else other
        return resolve(want, self.model)


@dataclass(frozen=True)
class _Question:
    """One question being answered."""

    explainer: Explainer
    frame: pd.DataFrame
    query: Query
    goal: Goal
    statement: Statement
    deadline: float = np.inf
    gap: float = 1e-6
    on_event: OnEvent | None = None

    def refuse_what_is_there(self) -> None:
        """Say so when the factual already has the wanted outcome."""
        u = self.query.factual[None, :]
        if bool(self.goal.holds(self.query, u)[0]) and bool(self.goal.confirmed(u)[0]):
            now = self.explainer.model.predict(u)[0]
            raise CriterionError(
                f"The wanted outcome is already there: the model says {_plain(now)!r} for this row ({self.goal.text}). "
                "Ask for another outcome, or for more of it: Target(label, probability=...)."
            )

    # -- searching ----------------------------------------------------------------------------------------------
    def _encode(self, answer: Counterfactual) -> FloatArray:
        return self.query.schema.encode(answer.row, missing=True)

    def one(self, statement: Statement, *, first: bool = True) -> Answer:
        """Return one verified counterfactual; widen the margin while the model refuses."""
        backend = self.explainer.backend
        best: tuple[FloatArray, float] | None = None
        u: FloatArray | None = None
        for margin in self._margins():
            statement = replace(statement, margin=margin)
            limits = self._limits()
            found, statement = withstand(statement, self._find, backend, limits)
            if found.status is Status.INFEASIBLE:
                if not first:
                    raise NoMore
                if u is not None:
                    break
                raise explain_infeasibility(statement, backend, replace(limits, seconds=max(limits.seconds, 1.0)))
            best = self._first_verified(found, statement)
            u = found.u if found.u is not None else u
            if best is not None:
                return Answer(self._counterfactual(best[0], statement, found), best[0], found, statement)
            if found.interrupted:
                raise KeyboardInterrupt
            if found.u is None or time.perf_counter() > self.deadline:
                raise OutOfTime(
                    f"No verified answer within the time limit; no answer costs less than {found.bound:.6g}. Raise "
                    "time_limit, or loosen a demand.",
                    found.bound,
                )
            statement = statement.refined(found.u)
        assert u is not None
        scores = self.explainer.model.read.form(u[None, :])[0]
        shown = self.goal.score_of(u[None, :])
        raise NotVerified(
            f"The optimiser's answer is refused by the model itself, even with the margin widened to "
            f"{statement.margin:.1g}: our score {np.round(scores, 6).tolist()}, the model's {np.round(shown, 6).tolist()}. "
            "Please report this with the model's class and version.",
            scores.tolist(),
            shown.tolist(),
        )

    def _limits(self) -> Limits:
        return Limits(max(self.deadline - time.perf_counter(), 0.0), self.gap, seed=self.explainer.random_state)

    def _find(self, statement: Statement, limits: Limits) -> Found:
        return find(statement, self.explainer.backend, limits, self.on_event)

    def _margins(self) -> list[float]:
        scale = self.explainer.training.score_scale
        widening = [_FIRST_MARGIN * scale * 10.0**k for k in range(_WIDENINGS)]
        discrete = self.explainer.model.read.piecewise_constant or self._on_grid()
        return [0.0, *widening] if discrete and self.goal.ties_are_ours() else widening

    def _on_grid(self) -> bool:
        """Whether the scores take finitely many values because every number the model looks at lies on a grid."""
        features = [self.query.schema.features[j] for j in self.statement.form.raw()]
        return all(isinstance(f, Numeric) and f.step is not None for f in features)

    def _first_verified(self, found: Found, statement: Statement) -> tuple[FloatArray, float] | None:
        """Return the best point that the user's own model confirms, exactly as it will be returned."""
        candidates = [] if found.u is None else [found.u]
        if found.status is not Status.OPTIMAL:
            candidates += list(found.pool)
        verified = []
        for candidate in candidates:
            stored = self.query.schema.stored(candidate)
            settled = statement.settled(stored[None, :], by_model=True)[0]
            same = np.array_equal(settled, stored, equal_nan=True)
            # On the very edge of a demand, settling may round a value beyond it; then the solver's own is as good.
            for u in (stored,) if same else (settled, stored):
                if self._confirmed(u, statement):
                    verified.append((float(statement.objective(u[None, :])[0]), u))
                    break
        if not verified:
            return None
        cost, u = min(verified, key=lambda pair: pair[0])
        return u, cost

    def _confirmed(self, u: FloatArray, statement: Statement) -> bool:
        row = u[None, :]
        if not bool(self.goal.confirmed(row)[0]):
            return False
        return all(bool(d.verified(self.query, row)[0]) for d in statement.demands if d is not self.goal)

    # -- answering ----------------------------------------------------------------------------------------------
    def another(self, u: FloatArray, answer: Answer) -> Answer | None:
        """Return a point of the same search as an answer, or None if it is refused."""
        found, statement = replace(answer.found, u=u, pool=()), answer.statement
        best = self._first_verified(found, statement)
        if best is None or not withstands(statement, best[0], self.explainer.backend, self._limits()):
            return None
        return Answer(self._counterfactual(best[0], statement, found), best[0], found, statement)

    def _counterfactual(self, u: FloatArray, statement: Statement, found: Found) -> Counterfactual:
        row = u[None, :]
        objective = float(statement.objective(row)[0])
        bound = min(found.bound, objective)
        width = (objective - bound) / max(1.0, abs(objective))
        proven = found.status is Status.OPTIMAL and width <= 2.0 * self.gap + 1e-9
        certificate = Certificate(
            objective, bound, max(width, 0.0), proven, statement.margin, found.solver or self.explainer.backend.label
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
            schema.decode(row),
            changes,
            self._predicted(row),
            float(self.goal.score_of(row)[0]),
            distance,
            certificate,
            ranges=safe_ranges(statement, u, self.explainer.backend) if self._robust else {},
            measures=measures,
        )

    @property
    def _robust(self) -> bool:
        return any(isinstance(c, Robustness) for c in self.statement.criteria)

    def _predicted(self, row: FloatArray) -> Any:
        """Return the model's prediction: the wanted label, which it has just confirmed, or what it says."""
        if self.goal.kind == "class":
            return self.goal.label
        return _plain(self.explainer.model.predict(row)[0])

    def _said(self, row: FloatArray) -> Any:
        """Return what the model says of the factual, by its form: the label or the value."""
        read = self.explainer.model.read
        decided = read.decide(read.form(row))[0]
        return read.classes[int(decided)] if read.classes else float(decided)

    def explanation(self, several: Several, seconds: float) -> Explanation:
        """Put the answers together."""
        u, answers = self.query.factual[None, :], several.answers
        model = self.explainer.model
        has_probabilities = model.read.link != "none"
        speaking = [c for c in self.statement.criteria if type(c).remarks is not Criterion.remarks]
        rows = np.vstack([self._encode(a) for a in answers]) if speaking else np.empty((0, 0))
        return Explanation(
            answers,
            self.frame,
            self._said(u),
            float(self.goal.score_of(u)[0]),
            self.goal.text.removeprefix("want "),
            self.query.schema,
            "optimal" if several.proven else "feasible",
            seconds,
            answers[0].certificate.solver,
            notes=(*several.notes, *(r for c in speaking for r in c.remarks(self.query, rows))),
            score_name="probability" if has_probabilities else "score" if model.read.classes else "value",
            reference=self.explainer._frame,
            interrupted=several.interrupted,
        )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _checked(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    if isinstance(criteria, Criterion):
        return (criteria,)
    for criterion in criteria:
        if not isinstance(criterion, Criterion):
            raise CriterionError(
                f"A criterion must be one of Proximity, Sparsity, Actionability, ...; got {criterion!r}. Write e.g. "
                "criteria=[Sparsity(at_most=2)]."
            )
    return tuple(criteria)


def _combined(house: Sequence[Criterion], call: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Demands add up; of the criteria that cost, the call's own replaces the house's of the same kind."""
    replaced = {type(c) for c in call if isinstance(c, Proximity)}
    prices = any(isinstance(c, Sparsity) and c.price is not None for c in call)
    kept: list[Criterion] = []
    for criterion in house:
        if type(criterion) in replaced:
            continue
        if prices and isinstance(criterion, Sparsity) and criterion.price is not None:
            if criterion.at_most is None:
                continue
            kept.append(Sparsity(at_most=criterion.at_most))
            continue
        kept.append(criterion)
    merged = (*kept, *call)
    if not any(isinstance(c, Proximity) for c in merged):
        merged = (Proximity("l1", scale="range"), *merged)
    return merged


def _widened(schema: Schema, factual: FloatArray) -> Schema:
    """Widen the bounds of features in which the factual lies outside them, and say so."""
    for j, feature in enumerate(schema.features):
        value = float(factual[schema.starts[j]])
        if isinstance(feature, Numeric) and (value < feature.lower or value > feature.upper):
            warnings.warn(
                f"{feature.name!r} is {value:g} in this row, outside the range ({feature.lower:g}, {feature.upper:g}) of "
                "the training data; the range was widened to include it. Give bounds to the schema if that is meant.",
                OutsideTrainingRange,
                stacklevel=4,
            )
            schema = schema.with_bounds(feature.name, min(value, feature.lower), max(value, feature.upper))
    return schema
