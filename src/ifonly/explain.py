"""The Explainer: declare, embed, apply, reduce, solve, decode, verify; and blame when it is impossible."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ifonly.box import Box
from ifonly.criteria import Criterion, Query
from ifonly.criteria.proximity import Proximity
from ifonly.criteria.sparsity import Sparsity
from ifonly.criteria.validity import Goal, Target, resolve
from ifonly.errors import (
    CriterionError,
    NotProvenOptimal,
    OutsideTrainingRange,
)
from ifonly.events import Finished, OnEvent
from ifonly.fitted import open_model
from ifonly.mip import FloatArray
from ifonly.problem import Problem, Statement, build
from ifonly.question import Question
from ifonly.result import Explanation, Explanations
from ifonly.schema import Numeric, Schema
from ifonly.several import answers as several_answers
from ifonly.solvers import find_solver
from ifonly.training import Training

if TYPE_CHECKING:
    from ifonly.studio.server import Studio

__all__ = ["Explainer"]

DEFAULT_CRITERIA: tuple[Criterion, ...] = (Proximity("l1", scale="range"), Sparsity(price=0.1))


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
        from ifonly.models.complete import complete  # noqa: PLC0415 - composites are loaded with the readers

        self.schema, self.model, self._frame, U = open_model(model, X, schema)
        self._complete = complete(self.model.read.form)
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

    def studio(
        self,
        *,
        switches: Mapping[str, Criterion] | None = None,
        port: int = 0,
        open_browser: bool = True,
        keep: Path | None = None,
    ) -> Studio:
        """Open the studio on this model in a browser, on this machine only (needs ``ifonly[studio]``).

        Parameters
        ----------
        switches
            Name -> a criterion that a person can switch on; by default a `Manifold` and a `Robustness`.
        port
            The port to listen on; 0 takes a free one.
        open_browser
            Whether to open it; otherwise open its ``link()`` yourself.
        keep
            A file for bookmarks.

        Returns
        -------
        Studio
            The running studio: ``link()`` opens it once, ``stop()`` ends it.
        """
        from ifonly.studio.opening import open_studio  # noqa: PLC0415 - the web framework is an extra

        return open_studio(self, self._frame, switches=switches, port=port, open_browser=open_browser, keep=keep)

    # -- asking -------------------------------------------------------------------------------------------------
    def _ask(self, row: Any, want: Any, criteria: Sequence[Criterion]) -> Question:
        given = self.schema.row(row)
        factual = self.schema.encode(given, missing=self.model.read.accepts_missing)[0]
        schema = _widened(self.schema, factual)
        frame = schema.returned(given, factual)
        goal = self._goal(want, factual)
        query = Query(schema, factual, self.model, self.training, self.random_state, goal)
        merged = _combined(self.criteria, _checked(criteria))
        for criterion in merged:
            criterion.check(query)
        query = replace(query, exempt=frozenset().union(*(c.exempt(query) for c in merged)))
        demands = [d for criterion in merged for d in criterion.demands(query)]
        for criterion in merged:
            criterion.check_together(query, demands)
        form = self.model.read.form if Box.of(schema, factual).missing.any() else self._complete
        statement = Statement(query, (goal, *demands), merged, form)
        return Question(self, frame, query, goal, statement)

    def _goal(self, want: Any, factual: FloatArray) -> Goal:
        classes = self.model.read.classes
        label = want.label if isinstance(want, Target) else want
        interval = isinstance(want, Target) and (want.at_least is not None or want.at_most is not None)
        if label is None and not interval and len(classes) == 2:
            now = int(self.model.read.decide(self.model.read.form(factual[None, :]))[0])
            other = classes[1 - now]
            want = replace(want, label=other) if isinstance(want, Target) else other
        return resolve(want, self.model)


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
