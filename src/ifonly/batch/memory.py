"""Many rows in memory: equal questions asked once, spread over workers, the same result for any number of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from ifonly.batch.asking import ask_many, question_keys
from ifonly.batch.executors import sent, spread, workers
from ifonly.batch.parcels import Parcel
from ifonly.data.tables import align, as_frame
from ifonly.question.criterion import Criterion
from ifonly.result.many import Explanations, Outcome
from ifonly.result.values import Explanation

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["explain_batch"]


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
    executor: Any = None,
) -> Explanations:
    """Explain each row of a frame; see `Explainer.explain_all`."""
    began = time.perf_counter()
    frame = align(as_frame(rows, explainer.schema.names), explainer.schema.names)
    keys = question_keys(frame)
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    asked = frame.iloc[sorted(first.values())]
    options = {"want": want, "n": n, "criteria": criteria, "time_limit": time_limit, "gap": gap}
    found: list[Outcome] = []
    try:
        answers = _answers(explainer, asked, options, executor, n_jobs)
        for outcome in _shown(_repeated(answers, frame, [first[key] for key in keys]), len(frame), progress):
            found.append(outcome)
            if outcome.explanation is not None and outcome.explanation.interrupted:
                break
    except KeyboardInterrupt:  # between two rows, or while waiting for workers: what is there is kept
        pass
    found += [Outcome(index, "interrupted") for index in frame.index[len(found) :]]
    return Explanations(tuple(found), time.perf_counter() - began, tuple(frame.index.names))


def _repeated(answers: Iterator[Outcome], frame: pd.DataFrame, same_as: Sequence[int]) -> Iterator[Outcome]:
    """Yield an outcome per row: the next answer for a row that was asked, a copy for one that repeats an earlier row."""
    kept: list[Outcome] = []
    for i, source in enumerate(same_as):
        outcome = next(answers) if source == i else kept[source]
        if source != i:
            outcome = _renamed(outcome, frame.index[[i]])
        kept.append(outcome)
        yield outcome


def _renamed(outcome: Outcome, index: pd.Index[Any]) -> Outcome:
    explanation = outcome.explanation
    if explanation is not None:
        explanation = replace(explanation, factual=explanation.factual.set_axis(index, axis=0))
    return replace(outcome, index=index[0], explanation=explanation)


def _answers(
    explainer: Explainer, frame: pd.DataFrame, options: dict[str, Any], executor: Any, n_jobs: int | None
) -> Iterator[Outcome]:
    """Yield the outcome of each row, in order; workers get the explainer once for many rows, not once for each."""
    count = workers(executor, n_jobs)
    if count == 1 and executor is None:
        yield from (asked.outcome for asked in ask_many(explainer, frame, **options))
        return
    tuning = explainer.tuning.batches
    size = max(1, min(tuning.part_rows, len(frame) // (max(1, tuning.parts_per_worker) * count)))
    parcel = sent(Parcel.of((explainer, options)), executor)
    parts = ((parcel, frame.iloc[k : k + size]) for k in range(0, len(frame), size))
    for outcomes in spread(_travelling, parts, tuning=tuning, executor=executor, n_jobs=n_jobs):
        for outcome in outcomes:
            if outcome.explanation is None:
                yield outcome
            else:
                yield replace(outcome, explanation=_back(outcome.explanation, explainer))


def _travelling(parcel: Parcel, part: pd.DataFrame) -> list[Outcome]:
    """Return outcomes without the training data, which is not sent back with every answer."""
    explainer, options = parcel.open()
    outcomes = (asked.outcome for asked in ask_many(explainer, part, **options))
    return [o if o.explanation is None else replace(o, explanation=_light(o.explanation)) for o in outcomes]


def _light(explanation: Explanation) -> Explanation:
    """Return an explanation without the training data and the explainer."""
    origin = explanation.origin
    return replace(explanation, reference=None, origin=None if origin is None else origin.alone())


def _back(explanation: Explanation, explainer: Explainer) -> Explanation:
    """Return an explanation with the training data and the explainer that were left out on the way."""
    origin = explanation.origin
    there = None if origin is None else replace(origin, explainer=explainer)
    return replace(explanation, reference=explainer._frame, origin=there)


def _shown(outcomes: Iterable[Outcome], total: int, progress: bool) -> Iterator[Outcome]:
    """Pass outcomes through, with a progress bar when asked for."""
    if not progress:
        yield from outcomes
        return
    from rich.progress import track  # noqa: PLC0415 - only with a progress bar

    yield from track(outcomes, total=total, description="Explaining")
