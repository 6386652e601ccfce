"""Factuals of rows without an answer: the model's own word on them, put to it for many rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ifonly.arrays import FloatArray
from ifonly.batch.plan import LabelKind
from ifonly.batch.records import Record, with_predictions
from ifonly.criteria.validity import resolve
from ifonly.data.given import given_rows

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["tell_factuals"]


def tell_factuals(
    explainer: Explainer, want: Any, frame: pd.DataFrame, first: int, records: Sequence[Record], labels: LabelKind
) -> None:
    """Fill in prediction and score of the rows that have no answer; `first` is the number of the frame's first row."""
    rows = [r["row"] for r in records if r["factual_prediction"] is None and r["status"] != "invalid"]
    schema, missing = explainer.schema, explainer.model.read.accepts_missing
    given = given_rows(schema.frame(frame.iloc[[row - first for row in rows]]), schema, missing=missing)
    codes = {row: found.factual for row, found in zip(rows, given, strict=True) if found is not None}
    if not codes:
        return
    said: dict[int, Any] = {}
    with suppress(Exception):  # a model that fails on a row has said so in the row's message
        said = dict(zip(codes, explainer.model.predict(np.array(list(codes.values()))), strict=True))
    with_predictions(records, said, {row: _score(explainer, want, u) for row, u in codes.items()}, labels)


def _score(explainer: Explainer, want: Any, u: FloatArray) -> float | None:
    """Return the score of one row for what is wanted, as beside an answer; alone, so that it is the same in any company."""
    if explainer.surrogate is None:
        with suppress(Exception):  # as above
            return float(resolve(explainer._wish(want, u), explainer.model).score_of(u[None, :])[0])
    return None
