"""Asking many rows in one process: an outcome each, in order, confirmed by the model in blocks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pandas as pd

from ifonly.batch.guesses import Guess, Notebook, guessing, may_guess, right
from ifonly.data.given import Given, given_rows
from ifonly.errors import Infeasible, NotVerified, OutOfTime
from ifonly.result.many import Outcome
from ifonly.runtime.tuning import Batches
from ifonly.runtime.warning_filters import heard

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["STATUS", "Asked", "ask_many", "ask_one", "question_keys"]

_Row = Given | pd.DataFrame

STATUS: dict[type[Exception], str] = {
    Infeasible: "infeasible",
    OutOfTime: "out_of_time",
    NotVerified: "not_verified",
}


@dataclass(frozen=True)
class Asked:
    """The outcome of one row, and how long its search took."""

    outcome: Outcome
    seconds: float


@dataclass
class _Block:
    """Rows whose searches are done and whose guesses are not yet confirmed."""

    tuning: Batches
    rows: list[_Row] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    guesses: list[list[Guess]] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def is_full(self) -> bool:
        late = time.perf_counter() - self.began > self.tuning.block_seconds
        return late or len(self.rows) >= self.tuning.block_rows


def ask_many(explainer: Explainer, frame: pd.DataFrame, **options: Any) -> Iterator[Asked]:
    """Yield the outcome of each row of a frame, in order.

    Outcomes are held back until the model has confirmed the block that they belong to, for two seconds at most beyond the row
    under way. Ctrl-C yields the rows that are done before it is raised again.
    """
    rows = _rows(explainer, frame)
    if not may_guess(explainer):
        for row in rows:
            yield ask_one(explainer, row, **options)
        return
    twin, notebook = guessing(explainer)
    block = _Block(explainer.tuning.batches)
    try:
        for row in rows:
            _guess(block, twin, notebook, row, options)
            if block.is_full() or _interrupted(block.asked[-1]):
                yield from _outcomes(block, explainer, options)
                block = _Block(explainer.tuning.batches)
    except KeyboardInterrupt:
        yield from _outcomes(block, explainer, options)
        raise
    yield from _outcomes(block, explainer, options)


def _rows(explainer: Explainer, frame: pd.DataFrame) -> Iterator[_Row]:
    """Yield the rows of a frame, encoded many at a time; a row that is refused as it is, to say why when it is asked."""
    table, missing = explainer.schema.frame(frame), explainer.model.read.accepts_missing
    at_once = max(1, explainer.tuning.batches.encoded_rows)
    for start in range(0, len(table), at_once):
        part = table.iloc[start : start + at_once]
        for i, given in enumerate(given_rows(part, explainer.schema, missing=missing)):
            yield part.iloc[[i]] if given is None else given


def _guess(block: _Block, twin: Explainer, notebook: Notebook, row: _Row, options: dict[str, Any]) -> None:
    notebook.taken()  # whatever a row that was interrupted left behind is nobody's
    asked = ask_one(twin, row, **options)
    block.rows.append(row)
    block.asked.append(asked)
    block.guesses.append(notebook.taken())


def _outcomes(block: _Block, explainer: Explainer, options: dict[str, Any]) -> list[Asked]:
    """Return the outcomes of a block: as they are where all guesses were right, asked again elsewhere."""
    verdicts = right(explainer.model, options.get("want"), block.guesses)
    return [
        asked if sure else ask_one(explainer, row, **options)
        for row, asked, sure in zip(block.rows, block.asked, verdicts, strict=True)
    ]


def _interrupted(asked: Asked) -> bool:
    return asked.outcome.explanation is not None and asked.outcome.explanation.interrupted


def ask_one(explainer: Explainer, row: _Row, **options: Any) -> Asked:
    """Return the outcome of one row; whatever is raised, short of running out of memory, becomes its status."""
    with heard() as ours:  # those of others go their way
        asked = _ended(explainer, row, options)
    return replace(asked, outcome=replace(asked.outcome, warnings=tuple(ours)))


def _ended(explainer: Explainer, row: _Row, options: dict[str, Any]) -> Asked:
    index, began = row.index[0], time.perf_counter()
    try:
        explanation = explainer.explain(row, **options)
    except MemoryError:  # no fault of the row: it may well have an answer where there is more room
        raise
    except Exception as error:  # noqa: BLE001 - whatever the user's model raises, one bad row never stops the others
        outcome = Outcome(index, STATUS.get(type(error), "error"), error=error)
        return Asked(outcome, time.perf_counter() - began)
    return Asked(Outcome(index, explanation.status, explanation), time.perf_counter() - began)


def question_keys(frame: pd.DataFrame) -> list[bytes]:
    """Return a key per row; rows with equal values in all columns, missing ones included, have equal keys."""
    return [
        blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for values in frame.itertuples(index=False, name=None)
    ]
