"""Many rows at once: joblib over rows, a status per row, the same result for any number of workers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ifonly.criteria import Criterion
from ifonly.errors import IfOnlyWarning, Infeasible, NotVerified, OutOfTime
from ifonly.result import Explanations, Outcome
from ifonly.tables import align, as_frame

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["explain_batch"]

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
    n_jobs: int,
    time_limit: float,
    progress: bool,
) -> Explanations:
    """Explain each row of a frame; see `Explainer.explain_all`."""
    import joblib  # noqa: PLC0415 - loaded only for batches

    began = time.perf_counter()
    frame = align(as_frame(rows, explainer.schema.names), explainer.schema.names)
    jobs = (
        joblib.delayed(_one)(explainer, frame.iloc[[i]], want=want, n=n, criteria=criteria, time_limit=time_limit)
        for i in range(len(frame))
    )
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    outcomes = tuple(_shown(parallel(jobs), len(frame), progress))
    return Explanations(outcomes, time.perf_counter() - began)


def _one(explainer: Explainer, row: pd.DataFrame, **options: Any) -> Outcome:
    index = row.index[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IfOnlyWarning)
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
