"""Many rows at once: joblib over rows, a status per row, the same result for any number of workers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from ifonly.criteria import Criterion
from ifonly.errors import IfOnlyWarning, Infeasible, NotVerified, OutOfTime
from ifonly.result import Explanations, Outcome
from ifonly.tables import align, as_frame

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["explain_batch"]

_PARTS_PER_WORKER = 8
_MOST_AT_ONCE = 50

_STATUS: dict[type[Exception], str] = {
    Infeasible: "infeasible",
    OutOfTime: "out_of_time",
    NotVerified: "not_verified",
}


def explain_batch(
    explainer: Explainer,
    rows: Any,
    *,
    want: Any,
    n: int,
    criteria: Sequence[Criterion],
    n_jobs: int | None,
    time_limit: float,
    gap: float,
    progress: bool,
) -> Explanations:
    """Explain each row of a frame; see `Explainer.explain_all`."""
    began = time.perf_counter()
    frame = align(as_frame(rows, explainer.schema.names), explainer.schema.names)
    ask = partial(_some, want=want, n=n, criteria=criteria, time_limit=time_limit, gap=gap)
    found: list[Outcome] = []
    try:
        for outcome in _shown(_asked(explainer, frame, ask, n_jobs), len(frame), progress):
            found.append(outcome)
            if outcome.explanation is not None and outcome.explanation.interrupted:
                break
    except KeyboardInterrupt:  # between two rows, or while waiting for workers: what is there is kept
        pass
    found += [Outcome(index, "interrupted") for index in frame.index[len(found) :]]
    return Explanations(tuple(found), time.perf_counter() - began)


def _asked(
    explainer: Explainer, frame: pd.DataFrame, ask: Callable[..., list[Outcome]], n_jobs: int | None
) -> Iterator[Outcome]:
    """Yield the outcome of each row, in order; workers get the explainer once for many rows, not once for each."""
    import joblib  # noqa: PLC0415 - loaded only for batches

    workers = joblib.effective_n_jobs(n_jobs)
    if workers == 1:
        for i in range(len(frame)):
            yield from ask(explainer, frame.iloc[[i]])
        return
    size = max(1, min(_MOST_AT_ONCE, len(frame) // (_PARTS_PER_WORKER * workers)))
    parts = (frame.iloc[k : k + size] for k in range(0, len(frame), size))
    answers = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(
        joblib.delayed(_travelling)(ask, explainer, part) for part in parts
    )
    for outcomes in answers:
        for outcome in outcomes:
            if outcome.explanation is None:
                yield outcome
            else:
                yield replace(outcome, explanation=replace(outcome.explanation, reference=explainer._frame))


def _travelling(ask: Callable[..., list[Outcome]], explainer: Explainer, part: pd.DataFrame) -> list[Outcome]:
    """Return outcomes without the training data, which is not sent back with every answer."""
    return [
        o if o.explanation is None else replace(o, explanation=replace(o.explanation, reference=None))
        for o in ask(explainer, part)
    ]


def _some(explainer: Explainer, part: pd.DataFrame, **options: Any) -> list[Outcome]:
    return [_one(explainer, part.iloc[[i]], **options) for i in range(len(part))]


def _one(explainer: Explainer, row: pd.DataFrame, **options: Any) -> Outcome:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", IfOnlyWarning)
        outcome = _ended(explainer, row, options)
    for w in heard:  # those of others go their way
        if not issubclass(w.category, IfOnlyWarning):
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    ours = (w.message for w in heard if isinstance(w.message, IfOnlyWarning))
    return replace(outcome, warnings=tuple(ours))


def _ended(explainer: Explainer, row: pd.DataFrame, options: dict[str, Any]) -> Outcome:
    index = row.index[0]
    try:
        explanation = explainer.explain(row, **options)
    except Exception as error:  # noqa: BLE001 - whatever the user's model raises, one bad row never stops the others
        return Outcome(index, _STATUS.get(type(error), "error"), error=error)
    return Outcome(index, explanation.status, explanation)


def _shown(outcomes: Iterable[Outcome], total: int, progress: bool) -> Iterator[Outcome]:
    """Pass outcomes through, with a progress bar when asked for."""
    if not progress:
        yield from outcomes
        return
    from rich.progress import track  # noqa: PLC0415 - only with a progress bar

    yield from track(outcomes, total=total, description="Explaining")
