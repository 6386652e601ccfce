"""The Explainer: declare, embed, apply, reduce, solve, decode, verify; and blame when it is impossible."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.criteria.house import DEFAULT_CRITERIA, checked
from ifonly.data.schema import Schema
from ifonly.data.tables import TableKind
from ifonly.errors import CriterionError, Infeasible, NotProvenOptimal, warn
from ifonly.events import Finished, OnEvent
from ifonly.models.opening import open_model
from ifonly.models.read import Model, Observed
from ifonly.question.criterion import Criterion
from ifonly.question.problem import Problem, build
from ifonly.question.training import Training
from ifonly.result.many import Explanations
from ifonly.result.origin import Origin
from ifonly.result.values import Explanation
from ifonly.runtime.deadline import FOREVER, Deadline
from ifonly.runtime.memo import Lean, Memo, cached_property
from ifonly.runtime.tuning import DEFAULT, Tuning
from ifonly.search.answering import NoneOnGrids, Question, Several
from ifonly.search.asking import Asker, Subject
from ifonly.search.engines import checked_engines
from ifonly.search.progress import Engine
from ifonly.solvers.registry import find_solver
from ifonly.tolerances import OPTIMALITY

if TYPE_CHECKING:
    from ifonly.batch import Batch
    from ifonly.studio.server import Studio

__all__ = ["Explainer"]


class _Many(TypedDict, total=False):
    """Options of many questions, whether their answers go to a folder or not."""

    want: Any
    n: int
    criteria: Sequence[Criterion]
    n_jobs: int | None
    time_limit: float
    progress: bool
    executor: Any


class _Planned(_Many, total=False):
    """Options of many questions whose answers go to a folder."""

    key: str | None
    shard_rows: int
    output: Literal["csv", "parquet"] | None
    reproducible: bool


class Explainer(Lean):
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
        ``(Proximity("l1", scale="auto"), Sparsity(price=0.1))``.
    solver
        ``"auto"``, ``"highs"``, ``"scip"`` or ``"gurobi"``: who solves the programs of questions that need one. With
        ``"highs only"`` (or another name), also the questions that need none, for comparisons.
    random_state
        Seed of everything that draws.
    surrogate
        None: a model that cannot be read is refused. ``"auto"``: it is observed, whatever it is, a plain function included;
        a readable model is learned from its own answers, and what is found there is confirmed by it, but nothing is proven.
        A model that can be read is read all the same.
    tuning
        The numbers that searches go by: when an engine gives up, how time is shared out. Nothing proven depends on them.
    engines
        The engines in the order in which they are tried, such as ``(Mine(), *ENGINES)`` of `ifonly.extend`; None: all there
        are, or the solver alone. Their word is believed, as a solver's is.

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
        surrogate: str | None = None,
        tuning: Tuning = DEFAULT,
        engines: Sequence[Engine] | None = None,
    ) -> None:
        from ifonly.models.forms.complete import complete  # noqa: PLC0415 - composites are loaded with the readers

        if not isinstance(tuning, Tuning):
            raise TypeError(
                f"The 'tuning' must be a Tuning, got {tuning!r}. Write tuning=Tuning(...), from ifonly.extend."
            )
        self.schema, self.model, self._frame, U = _opened(model, X, schema, surrogate, tuning)
        self._given = TableKind.of(X)
        self.surrogate = surrogate if isinstance(self.model, Observed) else None
        self._complete = complete(self.model.read.form)
        labels = None if y is None else np.asarray(y, dtype=object).reshape(-1)
        if labels is not None and len(labels) != len(U):
            raise CriterionError(f"y has {len(labels)} entries but X has {len(U)} rows. Pass matching data.")
        self.training = Training(self.schema, U, self.model, labels, tuning=tuning)
        self.training.sample_scores  # noqa: B018 - computed here, so that the first question keeps its time limit as well
        if self.surrogate is not None:
            from ifonly.surrogate import warm  # noqa: PLC0415 - loaded when it is asked for

            warm(self.training)
        self.criteria = checked(DEFAULT_CRITERIA if criteria is None else criteria)
        self.backend, self.engines = find_solver(solver), checked_engines(engines)
        self.random_state = random_state
        self._house: Asker | None = None
        self._askers = Memo()

    def __repr__(self) -> str:
        model = type(self.model.estimator).__name__
        return f"Explainer({model}, {len(self.schema)} features, {len(self.training.U)} rows, solver={self.backend.name!r})"

    @property
    def tuning(self) -> Tuning:
        """The tuned numbers that its searches go by."""
        return self.training.tuning

    # -- one row ------------------------------------------------------------------------------------------------
    def explain(
        self,
        row: Any,
        *,
        want: Any = None,
        n: int = 1,
        criteria: Sequence[Criterion] = (),
        time_limit: float = 30.0,
        gap: float = OPTIMALITY,
        on_event: OnEvent | None = None,
        proof: bool | Literal["exact"] = False,
    ) -> Explanation:
        """Return the least change of `row` that gives the wanted outcome.

        Parameters
        ----------
        row
            The factual: a dict, Series, one-row frame or array.
        want
            The wanted class, a list of classes of which any will do, or a `Target`; None means the other class of a
            two-class model.
        n
            How many different counterfactuals to return.
        criteria
            Criteria for this call, on top of the house policy.
        time_limit
            Seconds for the whole call.
        gap
            Relative gap at which the search may stop: 0.05 for an answer that is proven to be within 5% of the best. An
            answer counts as proven optimal within 1e-6, whatever is given here.
        on_event
            Called with `Built`, `Incumbent` and `Finished` events.
        proof
            Whether to keep the parts of the search, for `ifonly.verify`; ``"exact"``: the rest is run again by SCIP.

        Raises
        ------
        Infeasible
            Proven impossible; carries the clashing demands and how to loosen them.
        OutOfTime
            Nothing was found in time.
        NotVerified
            The model refused every repaired answer.
        """
        _check_options(n, time_limit, gap, proof)
        began, deadline = time.perf_counter(), Deadline.after(min(float(time_limit), FOREVER))
        asker = self._asker(criteria, several=n > 1)
        ask = partial(asker.ask, row, want, deadline=deadline, gap=gap, on_event=on_event, proof=proof)
        asked = ask()
        asked.refuse_what_is_there()
        options = {"n": int(n), "time_limit": float(time_limit), "gap": float(gap), "proof": proof}
        demands = [d.text for d in asked.statement.demands]
        origin = Origin(self, asked.wish, asker.call, options, demands)
        asked, several = _answered(asked, n, origin, ask)
        explanation = asked.explanation(several, time.perf_counter() - began, origin)
        if on_event is not None:
            on_event(Finished(explanation.status, explanation.seconds))
        if explanation.status in ("feasible", "no_bound") and self.surrogate is None:
            proofs = [c.certificate for c in explanation if c.certificate.status == explanation.status]
            warn(
                f"The answer is valid, but not proven optimal after {explanation.seconds:.1f} s: "
                f"{max(proofs, key=attrgetter('gap'))}. {several.advice}",
                NotProvenOptimal,
            )
        return explanation

    def problem(self, row: Any, *, want: Any = None, criteria: Sequence[Criterion] = ()) -> Problem:
        """Return the exact program of a question, writable as an LP file."""
        return build(self._ask(row, want, criteria).statement)

    @overload
    def explain_all(
        self, rows: Any, *, to: None = None, gap: float = ..., **options: Unpack[_Many]
    ) -> Explanations: ...
    @overload
    def explain_all(self, rows: Any, *, to: str | PathLike[str], **options: Unpack[_Planned]) -> Batch: ...
    def explain_all(
        self,
        rows: Any,
        *,
        want: Any = None,
        n: int = 1,
        criteria: Sequence[Criterion] = (),
        n_jobs: int | None = 1,
        time_limit: float = 30.0,
        gap: float = OPTIMALITY,
        progress: bool = False,
        executor: Any = None,
        to: str | PathLike[str] | None = None,
        **planned: Any,
    ) -> Explanations | Batch:
        """Explain many rows; each gets a status of its own, and one bad row never stops the others.

        Rows with equal values are asked once. A row's warnings are not issued but kept beside its answer, in
        `Outcome.warnings`. Ctrl-C ends the batch: the rows that are done keep their answers, the others
        have the status "interrupted".

        With `to`, answers go to a folder, shard by shard, and nothing is kept in memory. The same call goes on where an
        earlier one was stopped or killed. It takes further options: ``key``, the column that names the rows (of a frame,
        the index does by default); ``shard_rows``, how many make a shard; ``output``, the format of the shards (Parquet
        where pyarrow is installed); ``reproducible``, so that no search ends by the clock, no times are written, and every
        run gives the same bytes. See `docs/many-rows.md`.

        Parameters
        ----------
        rows
            A frame or array of factuals; with `to`, also the path of a CSV or Parquet file, which is read in pieces.
        want, n, criteria, time_limit, gap
            As in `explain`; the time limit is that of one row.
        n_jobs
            How many processes share the rows; -1 is one per core.
        progress
            Whether to show a bar.
        executor
            Who runs the parts: any executor of `concurrent.futures` (Dask's ``client.get_executor()`` is one), or the name
            of a joblib backend. The default is joblib's own, with `n_jobs` processes.
        to
            A folder for the answers; then a `Batch` is returned, with ``status``, ``verify`` and ``collect``.
        """
        _check_options(n, time_limit, gap)
        _check_workers(n_jobs)
        criteria = checked(criteria)
        options = {"want": want, "n": n, "criteria": criteria, "n_jobs": n_jobs, "time_limit": time_limit}
        options |= {"progress": progress, "executor": executor}
        if to is not None:
            from ifonly.batch import explain_to  # noqa: PLC0415 - joblib is loaded only for batches

            return explain_to(self, rows, to, **options, **planned)
        if planned:
            raise CriterionError(f"{', '.join(map(repr, planned))} needs a folder for the answers: to='out'.")
        from ifonly.batch import explain_batch  # noqa: PLC0415 - joblib is loaded only for batches

        return explain_batch(self, rows, gap=gap, **options).given_as(self._given.beside(rows))

    def studio(
        self,
        *,
        switches: Mapping[str, Criterion] | None = None,
        law: Sequence[Criterion] = (),
        port: int = 0,
        open_browser: bool = True,
        keep: Path | None = None,
        behind_proxy: Sequence[str] | None = None,
    ) -> Studio:
        """Open the studio on this model in a browser, on this machine only (needs ``ifonly[studio]``).

        Parameters
        ----------
        switches
            Name -> a criterion that a person can switch on; by default a `Manifold` and a `Robustness`.
        law
            Those of the explainer's criteria that the law makes: shown as such. All others are shown as the house's.
        port
            The port to listen on; 0 takes a free one.
        open_browser
            Whether to open it; otherwise open its ``link()`` yourself, which opens it once; ``stop()`` ends it.
        keep
            A file for bookmarks.
        behind_proxy
            The host names under which a proxy such as jupyter-server-proxy asks for it; None: there is none.
        """
        from ifonly.studio.opening import open_studio  # noqa: PLC0415 - the web framework is an extra

        return open_studio(self, self._frame, switches, law, port, open_browser, keep, behind_proxy)

    @cached_property
    def fingerprints(self) -> Mapping[str, str]:
        """SHA-256 of the model (what it says of the training rows), the schema and the training data."""
        from ifonly.record.writing import fingerprints  # noqa: PLC0415 - a face, loaded when asked for

        return fingerprints(self)

    # -- asking -------------------------------------------------------------------------------------------------
    def _asker(self, criteria: Sequence[Criterion], *, several: bool = False) -> Asker:
        """Return who puts questions together under the house's criteria and a call's; that of the house is at hand."""
        of_house = isinstance(criteria, tuple | list) and not criteria and not several
        if (
            of_house
            and self._house is not None
            and self._house.serves(self.model, self.backend, self.engines, self.criteria)
        ):
            return self._house
        call = checked(criteria)
        known = (self.model, self.backend, self.engines, self.criteria)
        key = (*map(id, known), several, *map(id, call))
        asker = self._askers.get("asker", key, lambda: self._made(call, several), keep=(*known, call))
        self._house = asker if of_house else self._house
        return asker

    def _made(self, call: tuple[Criterion, ...], several: bool) -> Asker:
        about = (self.schema, self.model, self.training, self._complete, self._frame, self._given)
        subject = Subject(*about, self.random_state, observed=self.surrogate is not None)
        return Asker(subject, self.backend, self.engines, self.criteria, call, several=several)

    def _ask(
        self, row: Any, want: Any, criteria: Sequence[Criterion], *, several: bool = False, decimals: bool = True
    ) -> Question:
        """Return a question, with the `decimals` of the data where they are allowed and cost nothing."""
        return self._asker(criteria, several=several).ask(row, want, decimals=decimals)

    def _wish(self, want: Any, factual: FloatArray) -> Any:
        """Return what is wanted, with the other class of two in place of None."""
        return self._asker(()).wish(want, factual)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_house": None}


def _answered(asked: Question, n: int, origin: Origin, ask: Callable[..., Question]) -> tuple[Question, Several]:
    """Return the answers, and the question that they answer: decimals that nobody demands make nothing impossible."""
    try:
        return asked, asked.answers(n)
    except NoneOnGrids:
        pass
    except Infeasible as error:
        error.origin, error.factual, error.schema = origin, asked.frame.get(), asked.query.schema
        error.prediction, error.score = asked.of_factual()
        raise
    return _answered(ask(decimals=False), n, origin, ask)


def _opened(
    model: Any, X: Any, schema: Schema | None, surrogate: str | None, tuning: Tuning
) -> tuple[Schema, Model, pd.DataFrame, FloatArray]:
    if surrogate is None:
        return open_model(model, X, schema, tuning=tuning)
    from ifonly.surrogate import open_any  # noqa: PLC0415 - loaded when it is asked for

    return open_any(model, X, schema, surrogate, tuning)


# -- options -----------------------------------------------------------------------------------------------------------
def _is_number(value: Any, kind: type[Real | Integral]) -> bool:
    return isinstance(value, kind) and not isinstance(value, (bool, np.bool_))


def _check_options(n: Any, time_limit: Any, gap: Any, proof: Any = False) -> None:
    """Refuse a slip in the options that every call has."""
    _check_count(n)
    _check_seconds(time_limit)
    _check_gap(gap)
    _check_proof(proof)


def _check_proof(proof: Any) -> None:
    """Refuse a wish for a proof that there is not."""
    if isinstance(proof, bool):
        return
    if proof != "exact":
        raise CriterionError(f"'proof' must be True, False or 'exact', got {proof!r}. Write e.g. proof=True.")
    from ifonly.solvers.exact import need_exact  # noqa: PLC0415 - loaded when it is asked for

    need_exact()


def _check_count(n: Any) -> None:
    """Refuse a number of answers that is not a whole number of at least 1."""
    if not _is_number(n, Integral) or n < 1:
        raise CriterionError(f"'n' must be a whole number of at least 1, got {n!r}. Write e.g. n=3 for three answers.")


def _check_seconds(time_limit: Any) -> None:
    """Refuse a time limit that is not a positive number."""
    if not _is_number(time_limit, Real) or not time_limit > 0:
        raise CriterionError(
            f"'time_limit' must be a positive number of seconds, got {time_limit!r}. Write e.g. time_limit=30, or "
            "float('inf') for no limit."
        )


def _check_gap(gap: Any) -> None:
    """Refuse a gap that is not a share."""
    if not _is_number(gap, Real) or not 0 <= gap < 1:
        raise CriterionError(
            f"'gap' must be a share of the cost, at least 0 and below 1, got {gap!r}. Write e.g. gap=0.05 to stop within "
            "5% of the best."
        )


def _check_workers(n_jobs: Any) -> None:
    """Refuse a number of workers that is neither a whole number other than 0 nor None."""
    if n_jobs is not None and (not _is_number(n_jobs, Integral) or n_jobs == 0):
        raise CriterionError(
            f"'n_jobs' must be a whole number of workers other than 0, got {n_jobs!r}. Write e.g. n_jobs=2, or -1 for one "
            "per core."
        )
