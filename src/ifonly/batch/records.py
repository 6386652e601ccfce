"""Records: one line of the output per answer, typed, documented here once for all formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ifonly.batch.asking import Asked
from ifonly.batch.plan import LabelKind
from ifonly.data.features import plain
from ifonly.errors import CriterionError, Infeasible, OutOfTime, SchemaError
from ifonly.result.values import Change, Counterfactual

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = [
    "CHANGE_COLUMNS",
    "Column",
    "Record",
    "answer_columns",
    "label_kind",
    "records_of",
    "unreadable",
    "with_predictions",
    "word",
]

Record = dict[str, Any]
Kind = Literal["int", "float", "bool", "text", "texts", "changes"]

_ALREADY = "The wanted outcome is already there"
_CLOCK_SHARE = 0.9  # of the time limit, from which on the column `clock` says that it was spent: its meaning, not tuned


@dataclass(frozen=True)
class Column:
    """A column of the output: its name, its type, and its meaning in a line."""

    name: str
    kind: Kind
    meaning: str


def _columns(labels: LabelKind) -> tuple[Column, ...]:
    return (
        Column("row", "int", "position of the row in the input, counted from 0"),
        Column("key", "text", "value of the key column, or label of the index"),
        Column("answer", "int", "0 for the best answer, 1 for the second, ...; empty without one"),
        Column(
            "status",
            "text",
            "optimal, within_gap, feasible, no_bound, infeasible, already, invalid, out_of_time, not_verified, error",
        ),
        Column("clock", "bool", "whether the row ran into its time limit, so that another run may end otherwise"),
        Column("factual_prediction", labels, "the model's prediction for the row as it is"),
        Column("factual_score", "float", "its score for the wanted outcome"),
        Column("prediction", labels, "the model's prediction for the answer"),
        Column("score", "float", "its score for the wanted outcome"),
        Column("changed", "int", "how many features change"),
        Column("changes", "changes", "which, from what, to what"),
        Column("distance", "float", "distance between row and answer"),
        Column("objective", "float", "cost of the answer"),
        Column("bound", "float", "no answer costs less than this"),
        Column("gap", "float", "(objective - bound) / |objective|"),
        Column("proven", "bool", "whether the answer is proven optimal"),
        Column(
            "seconds", "float", "time of the search; 0 for a row that repeats another, empty in a reproducible batch"
        ),
        Column("conflict", "texts", "for an impossible row, the demands that clash"),
        Column("relaxations", "texts", "for each of them, the loosening that is enough by itself"),
        Column("message", "text", "why there is no answer"),
    )


_COLUMNS = {kind: _columns(kind) for kind in get_args(LabelKind)}
_BLANK: Record = dict.fromkeys(column.name for column in _columns("text"))


def answer_columns(labels: LabelKind) -> tuple[Column, ...]:
    """Return the columns of the table of answers; predictions have the type of the model's classes."""
    return _COLUMNS[labels]


CHANGE_COLUMNS = (
    Column("row", "int", "position of the row in the input"),
    Column("key", "text", "value of the key column, or label of the index"),
    Column("answer", "int", "which answer"),
    Column("feature", "text", "the feature that changes"),
    Column("from", "text", "its value now"),
    Column("to", "text", "its value in the answer"),
)


def label_kind(explainer: Explainer) -> LabelKind:
    """Return the type of predictions: numbers for a regression, else the type that all classes have, or text."""
    classes = explainer.model.read.classes
    if not classes:
        return "float"
    kinds: dict[type, LabelKind] = {bool: "bool", int: "int", float: "float"}
    found = {kinds.get(type(plain(c)), "text") for c in classes}
    return found.pop() if len(found) == 1 else "text"


def word(asked: Asked) -> str:
    """Return the status of a row, with words of their own for what `explain_all` calls an error."""
    error, status = asked.outcome.error, asked.outcome.status
    if status != "error":
        return status
    if isinstance(error, CriterionError) and str(error).startswith(_ALREADY):
        return "already"
    return "invalid" if isinstance(error, SchemaError) else "error"


def records_of(
    asked: Asked, row: int, key: str | None, *, labels: LabelKind, time_limit: float, timed: bool
) -> list[Record]:
    """Return the lines of one row: one per answer, or one that says why there is none."""
    explanation = asked.outcome.explanation
    status = word(asked)
    late = status == "out_of_time" or (timed and asked.seconds >= _CLOCK_SHARE * time_limit)
    head = _BLANK | {"row": row, "key": key, "status": status, "clock": late}
    head |= {"seconds": round(asked.seconds, 6) if timed else None}
    if explanation is None:
        return [head] if status == "already" else [head | _reason(asked.outcome.error)]
    head["factual_prediction"] = _label(explanation.prediction, labels)
    head["factual_score"] = _finite(explanation.score)
    return [head | {"answer": i} | _answer(c, labels) for i, c in enumerate(explanation)]


def unreadable(row: int, key: str | None, why: str) -> Record:
    """Return the line of a row that could not be read."""
    return _BLANK | {"row": row, "key": key, "status": "invalid", "clock": False, "message": why}


def _answer(found: Counterfactual, labels: LabelKind) -> Record:
    proof = found.certificate
    return {
        "prediction": _label(found.prediction, labels),
        "score": _finite(found.score),
        "changed": len(found.changes),
        "changes": [_change(c) for c in found.changes],
        "distance": _finite(found.distance),
        "objective": _finite(proof.objective),
        "bound": _finite(proof.bound),
        "gap": _finite(proof.gap),
        "proven": bool(proof.proven),
    }


def _change(change: Change) -> dict[str, str | None]:
    return {"feature": change.feature, "from": _text(change.before), "to": _text(change.after)}


def _reason(error: Exception | None) -> Record:
    if isinstance(error, Infeasible):
        return {
            "conflict": [str(demand) for demand in error.conflict],
            "relaxations": [way.change for way in error.relaxations],
            "message": str(error).splitlines()[0],
        }
    known = isinstance(error, (SchemaError, CriterionError))
    # A question of one row counts it from 0, which is no place in the input.
    text = str(error).replace(" (row 0)", "") if known else f"{type(error).__name__}: {error}"
    bound = _finite(error.bound) if isinstance(error, OutOfTime) else None
    return {"message": text} if bound is None else {"message": text, "bound": bound}


def _label(value: Any, kind: LabelKind) -> Any:
    value = plain(value)
    if value is None:
        return None
    return str(value) if kind == "text" else float(value) if kind == "float" else value


def _text(value: Any) -> str | None:
    """Return a value as text from which it can be read back: numbers in the fewest digits that tell them apart."""
    value = plain(value)
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    return repr(value) if isinstance(value, float) else str(value)


def _finite(value: Any) -> float | None:
    """Return a number, or None where there is no finite one."""
    return float(value) if value is not None and isfinite(value) else None


def with_predictions(
    records: Sequence[Record], said: Mapping[int, Any], scores: Mapping[int, float | None], labels: LabelKind
) -> None:
    """Fill in the model's word on rows that have no answer, and their scores."""
    for record in records:
        if record["factual_prediction"] is None and record["row"] in said:
            record["factual_prediction"] = _label(said[record["row"]], labels)
            record["factual_score"] = _finite(scores[record["row"]])
