"""Many rows with Spark: a data frame in, a data frame of answers out, and nothing on the driver.

>>> answers = explain(df, explainer, want="good", keys=["id"])  # doctest: +SKIP
>>> answers.write.parquet("answers")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ifonly.batch.asking import Asked, ask_many, question_keys
from ifonly.batch.factuals import tell_factuals
from ifonly.batch.parcels import Parcel
from ifonly.batch.plan import LabelKind
from ifonly.batch.records import Column, Record, answer_columns, label_kind, records_of
from ifonly.errors import SchemaError, did_you_mean
from ifonly.question.criterion import Criterion

if TYPE_CHECKING:
    from ifonly.explain import Explainer

__all__ = ["columns", "explain"]

_TYPES = {
    "int": "bigint",
    "float": "double",
    "bool": "boolean",
    "text": "string",
    "texts": "array<string>",
    "changes": "array<struct<feature:string,`from`:string,`to`:string>>",
}


def columns(explainer: Explainer) -> tuple[Column, ...]:
    """Return the columns of the answers: those of a batch, without the row's position and key."""
    return tuple(c for c in answer_columns(label_kind(explainer)) if c.name not in ("row", "key"))


def explain(
    df: Any,
    explainer: Explainer,
    *,
    want: Any = None,
    n: int = 1,
    criteria: Sequence[Criterion] = (),
    time_limit: float = 30.0,
    keys: Sequence[str] = (),
) -> Any:
    """Explain every row of a Spark data frame where it lies.

    Parameters
    ----------
    df
        A Spark data frame with a column per feature; others are allowed.
    explainer
        Is packed once and broadcast: every worker receives and opens it once, not once per row.
    want, n, criteria, time_limit
        As in `Explainer.explain`; the time limit is that of one row.
    keys
        Columns that are passed through, to tell rows apart. Spark has no order of rows to fall back on.

    Returns
    -------
    pyspark.sql.DataFrame
        The key columns and those of `columns`: one line per answer, or one that says why there is none. It is computed,
        like every Spark data frame, when it is written or counted.
    """
    names = list(explainer.schema.names)
    for name in (*names, *keys):
        if name not in df.columns:
            raise SchemaError(f"The Spark data frame has no column {name!r}.{did_you_mean(name, df.columns)}")
    clash = sorted({c.name for c in columns(explainer)} & set(keys))
    if clash:
        raise SchemaError(f"The key column {clash[0]!r} has the name of a column of the answers. Rename it.")
    options = {"want": want, "n": n, "criteria": tuple(criteria), "time_limit": time_limit}
    parcel = Parcel.of((explainer, options))
    opened = _broadcast(df, parcel)
    chosen = df.select(*dict.fromkeys([*keys, *names]))
    declared = [
        f"`{field.name}` {field.dataType.simpleString()}" for field in chosen.schema.fields if field.name in keys
    ]
    declared += [f"`{c.name}` {_TYPES[c.kind]}" for c in columns(explainer)]
    return chosen.mapInPandas(_mapper(opened, names, list(keys)), ", ".join(declared))


def _broadcast(df: Any, parcel: Parcel) -> Callable[[], Parcel]:
    """Return what gives a worker the parcel: a broadcast, or, where Spark Connect has none, the function's own closure."""
    try:
        shared = df.sparkSession.sparkContext.broadcast((parcel.token, parcel.data))
    except Exception:  # noqa: BLE001 - Spark Connect raises errors of its own for what it does not have
        return lambda: parcel
    return lambda: Parcel(*shared.value)


def _mapper(
    opened: Callable[[], Parcel], names: list[str], keys: list[str]
) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    def work(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        explainer, options = opened().open()
        labels = label_kind(explainer)
        for part in parts:
            yield answers_of(explainer, part, names, keys, labels, options)

    return work


def answers_of(
    explainer: Explainer,
    part: pd.DataFrame,
    names: list[str],
    keys: list[str],
    labels: LabelKind,
    options: dict[str, Any],
) -> pd.DataFrame:
    """Return the answers to some rows as a pandas frame; equal questions are asked once."""
    rows = part[names].reset_index(drop=True)
    marks = question_keys(rows)
    first = {mark: i for i, mark in reversed(list(enumerate(marks)))}
    order = sorted(first.values())
    found: dict[int, Asked] = dict(zip(order, ask_many(explainer, rows.iloc[order], **options), strict=True))
    lines: list[Record] = []
    for i, mark in enumerate(marks):
        asked = found[first[mark]]
        records = records_of(asked, i, None, labels=labels, time_limit=options["time_limit"], timed=True)
        if first[mark] != i:
            records = [record | {"seconds": 0.0} for record in records]
        lines += records
    tell_factuals(explainer, options["want"], rows, 0, lines, labels)
    told = [c.name for c in columns(explainer)]
    frame = pd.DataFrame({name: pd.Series([line[name] for line in lines], dtype=object) for name in told})
    places = [line["row"] for line in lines]
    for k, key in enumerate(keys):
        frame.insert(k, key, part[key].iloc[places].to_numpy())
    return frame
