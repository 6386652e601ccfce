"""Verifying a batch: shards whole, every row there once, every answer predicted and measured anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ifonly.batch.plan import Plan, Shard
from ifonly.batch.reading import Piece, Source
from ifonly.batch.records import Record
from ifonly.batch.shards import State, read_shard, shard_path, state_of
from ifonly.batch.values import value_reader
from ifonly.data.features import Numeric, plain
from ifonly.errors import BatchFailed, IfOnlyError
from ifonly.question.abilities import verified
from ifonly.runtime.warning_filters import heard
from ifonly.tolerances import DUST, OPTIMALITY, ROUNDING

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["Verdict", "verify_plan"]

_MOST_TOLD = 100
_COST_TOLERANCE = OPTIMALITY


@dataclass
class Verdict:
    """Verdict on a batch: its faults in sentences; none, if the list is empty.

    Attributes
    ----------
    rows_in, rows_out
        How many rows the plan has, and how many different ones the shards have.
    answers, checked
        How many answers there are, and how many were predicted and measured anew.
    states
        Shards by what their files are.
    faults
        Sentences, a hundred at most; `count` says how many there were.
    """

    rows_in: int
    rows_out: int = 0
    answers: int = 0
    checked: int = 0
    count: int = 0
    states: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.count == 0

    def tell(self, sentence: str) -> None:
        """Note a fault."""
        self.count += 1
        if len(self.faults) < _MOST_TOLD:
            self.faults.append(sentence)

    def __str__(self) -> str:
        head = (
            f"{self.rows_out:,} of {self.rows_in:,} rows are there, {self.checked:,} of {self.answers:,} answers were "
            f"confirmed by the model and measured anew: {'all is well' if self.ok else f'{self.count:,} faults'}"
        )
        more = [f"  ... and {self.count - len(self.faults):,} more"] if self.count > len(self.faults) else []
        return "\n".join([head, *(f"  - {fault}" for fault in self.faults), *more])


def verify_plan(
    folder: Path, plan: Plan, explainer: Explainer | None, source: Source | None, options: Mapping[str, Any]
) -> Verdict:
    """Check a batch, a shard in memory at a time; without an explainer, only what needs none."""
    verdict = Verdict(plan.rows)
    if source is not None and source.fingerprint() != plan.prints["input"]:
        verdict.tell("The input is not the one that was planned: its SHA-256 is another.")
        source = None
    for shard in plan.shards():
        state = state_of(folder, plan, shard)
        verdict.states[str(state)] += 1
        path = shard_path(folder, plan, shard)
        if state is not State.DONE:
            verdict.tell(f"Shard {shard.number} is {state} ({path.name}).")
            continue
        try:
            records = read_shard(folder, plan, shard)
        except BatchFailed as error:
            verdict.states[str(State.CORRUPT)] += 1
            verdict.tell(str(error))
            continue
        _count_rows(verdict, plan, shard, records)
        if explainer is not None and source is not None:
            _check_answers(verdict, explainer, shard, source.read(shard), records, options)
    return verdict


def _count_rows(verdict: Verdict, plan: Plan, shard: Shard, records: Sequence[Record]) -> None:
    """Rows in are rows out: every row of the shard is there once, or once per answer."""
    lines = Counter((r["row"], r["answer"]) for r in records)
    rows = {row for row, _ in lines}
    expected = set(range(shard.first, shard.first + shard.rows))
    verdict.rows_out += len(rows & expected)
    verdict.answers += sum(answer is not None for _, answer in lines)
    for row in sorted(expected - rows):
        verdict.tell(f"Row {row} is missing in shard {shard.number}.")
    for row in sorted(rows - expected):
        verdict.tell(f"Row {row} is in shard {shard.number}, where it does not belong.")
    for (row, _), count in lines.items():
        if count > 1:
            verdict.tell(f"Row {row} is doubled in shard {shard.number}.")
    for row, number in Counter(row for row, _ in lines).items():
        if number > plan.settings["n"]:
            verdict.tell(f"Row {row} has {number} answers, more than the {plan.settings['n']} that were asked for.")


# -- answers ----------------------------------------------------------------------------------------------------------
def _check_answers(
    verdict: Verdict,
    explainer: Explainer,
    shard: Shard,
    piece: Piece,
    records: Sequence[Record],
    options: Mapping[str, Any],
) -> None:
    """Put every answer to the model, all of a shard in one call, and measure its demands and cost."""
    answered = [r for r in records if r["answer"] is not None and 0 <= r["row"] - shard.first < shard.rows]
    if not answered:
        return
    rows = [_answer_row(explainer, piece.frame.iloc[[r["row"] - shard.first]], r) for r in answered]
    U = np.vstack([explainer.schema.encode(row, missing=True) for row in rows])
    said = explainer.model.predict(U)
    for record, u, label in zip(answered, U, said, strict=True):
        verdict.checked += 1
        if not _same(label, record["prediction"]):
            verdict.tell(
                f"Row {record['row']}: the model says {plain(label)!r} of its answer, not {record['prediction']!r}."
            )
        factual = piece.frame.iloc[[record["row"] - shard.first]]
        for fault in _measured(explainer, factual, u, record, options):
            verdict.tell(f"Row {record['row']}: {fault}")


def _same(label: Any, written: Any) -> bool:
    if isinstance(written, float):
        return bool(np.isclose(float(label), written, rtol=DUST, atol=ROUNDING))
    return bool(label == written) or str(label) == str(written)


def _answer_row(explainer: Explainer, factual: pd.DataFrame, record: Record) -> pd.DataFrame:
    """Return the row of an answer: the factual with its changes."""
    row = factual.astype(object)
    for change in record["changes"]:
        feature = explainer.schema[change["feature"]]
        text = change["to"]
        value = (np.nan if isinstance(feature, Numeric) else None) if text is None else value_reader(feature)(text)
        row[feature.name] = pd.Series([value], index=row.index, dtype=object)
    return row


def _measured(
    explainer: Explainer, factual: pd.DataFrame, u: Any, record: Record, options: Mapping[str, Any]
) -> list[str]:
    """Return what an answer does not keep: the wish, a demand, its cost, the bound."""
    try:
        with heard():
            # Without the decimals of the data: an answer that has them keeps the demands of one that need not.
            question = explainer._ask(factual, options["want"], options["criteria"], decimals=False)
    except IfOnlyError as error:
        return [f"the question cannot be asked any more: {error}"]
    point, faults = u[None, :], []
    if not bool(question.goal.confirmed(point)[0]):
        faults.append(f"the model does not confirm '{question.goal.text}'.")
    faults += [
        f"the demand '{demand.text}' is not met."
        for demand in question.statement.demands
        if demand is not question.goal and not bool(verified(demand, question.query, point)[0])
    ]
    cost = float(question.statement.objective(point)[0])
    if record["objective"] is None or abs(cost - record["objective"]) > _COST_TOLERANCE * abs(cost):
        faults.append(f"its cost is {cost:.9g}, not {record['objective']!r} as written.")
    if record["bound"] is not None and record["bound"] > cost + _COST_TOLERANCE * abs(cost):
        faults.append(f"its cost {cost:.9g} is below the bound {record['bound']:.9g}.")
    return faults
