"""Answers to many rows: one outcome per row, in order, as tables and files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

import pandas as pd

from ifonly.data.tables import ANY_TABLE, TableKind
from ifonly.errors import Infeasible
from ifonly.result.values import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Explanations", "Outcome"]

_ROW = "row"


@dataclass(frozen=True)
class Outcome:
    """Outcome of one row of a batch: its explanation, or the reason why there is none; and what it was warned of."""

    index: Any
    status: str
    explanation: Explanation | None = None
    error: Exception | None = None
    warnings: tuple[Warning, ...] = ()

    def reason(self) -> str:
        """Return why there is no answer, in one line; nothing if there is one."""
        return "" if self.error is None else (str(self.error) or type(self.error).__name__).splitlines()[0]


@dataclass(frozen=True, repr=False)
class Explanations(Sequence[Outcome]):
    """The answers to a batch, one outcome per row, in order; a bad row never stops the others.

    Attributes
    ----------
    outcomes
        One per row.
    seconds
        How long all of it took.
    names
        The names of the levels of the rows' index.
    """

    outcomes: tuple[Outcome, ...]
    seconds: float
    names: tuple[Any, ...] = field(default=(None,), compare=False)
    given: TableKind = field(default=ANY_TABLE, repr=False, compare=False)

    def given_as(self, given: TableKind) -> Explanations:
        """Return the same answers, given back in the form in which the caller has tables."""
        outcomes = (
            o if o.explanation is None else replace(o, explanation=replace(o.explanation, given=given)) for o in self
        )
        return replace(self, outcomes=tuple(outcomes), given=given)

    @overload
    def __getitem__(self, index: int) -> Outcome: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Outcome]: ...
    def __getitem__(self, index: int | slice) -> Outcome | Sequence[Outcome]:
        return self.outcomes[index]

    def __len__(self) -> int:
        return len(self.outcomes)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __repr__(self) -> str:
        answered = sum(o.explanation is not None for o in self.outcomes)
        return f"Explanations({len(self)} rows, {answered} answered, {self.seconds:.2f} s)"

    def __str__(self) -> str:
        from ifonly.result.text import render_batch  # noqa: PLC0415 - a face, loaded when asked for

        return render_batch(self)

    def _repr_html_(self) -> str:
        from ifonly.result.html_batch import batch_fragment  # noqa: PLC0415 - a face, loaded when asked for

        return batch_fragment(self)

    # -- tables -----------------------------------------------------------------------------------------------------
    def status(self) -> pd.Series[str]:
        """Return the status of each row.

        One of optimal, within_gap, feasible and no_bound, as in `Explanation`; or, without an answer, infeasible,
        out_of_time, not_verified, interrupted or error.
        """
        return pd.Series([o.status for o in self], index=self._index(list(self)), name="status", dtype=object)

    def found(self) -> list[Explanation]:
        """Return the explanations of the rows that have one."""
        return [o.explanation for o in self if o.explanation is not None]

    def frame(self) -> pd.DataFrame:
        """Return all counterfactuals, indexed by (row, counterfactual).

        For rows of a polars frame, which has no index, a polars frame with the index as its first columns.
        """
        table = self._stacked([(o, o.explanation.rows()) for o in self if o.explanation is not None])
        if self.given.polars:
            table = table.reset_index() if len(table) else table
        return cast("pd.DataFrame", self.given.back(table))

    def _stacked(self, parts: Sequence[tuple[Outcome, pd.DataFrame]]) -> pd.DataFrame:
        """Return frames below each other, indexed by the rows' own index and the number of the counterfactual."""
        if not parts:
            return pd.DataFrame()
        table = pd.concat([frame for _, frame in parts], ignore_index=True)
        owners = [o for o, frame in parts for _ in range(len(frame))]
        keys = [o.index if isinstance(o.index, tuple) else (o.index,) for o in owners]
        number = [i for _, frame in parts for i in range(len(frame))]
        names = [*self._names(), "counterfactual"]
        rows = [(*key, i) for key, i in zip(keys, number, strict=True)]
        table.index = pd.MultiIndex.from_tuples(rows, names=names)
        return table

    def changes(self) -> pd.DataFrame:
        """Return all changes: row, counterfactual, feature, from, to."""
        parts = []
        for o in self:
            if o.explanation is not None:
                lines = o.explanation.changes()
                parts.append(
                    lines.assign(row=pd.Series([o.index] * len(lines), dtype=object if not len(lines) else None))
                )
        if not parts:
            return pd.DataFrame(columns=["row", "counterfactual", "feature", "from", "to"])
        return pd.concat(parts, ignore_index=True)[["row", "counterfactual", "feature", "from", "to"]]

    def metrics(self) -> pd.DataFrame:
        """Return the paper's measures, one line per row that has an explanation."""
        rows = [o for o in self if o.explanation is not None]
        index = self._index(rows)
        return pd.DataFrame([e.metrics() for e in self.found()], index=index.set_names(self._names()))

    def table(self) -> pd.DataFrame:
        """Return one tidy line per row: how it ended, what the model says now and would say, cost, bound, and why not.

        Of several answers to a row, the first is meant; `changed` names the features it changes.
        """
        return pd.DataFrame([_line(o) for o in self], columns=list(_COLUMNS), index=self._index(list(self)))

    def importance(self) -> pd.DataFrame:
        """Return how often, and how much, each feature changes, the most frequent first.

        ``times`` counts the rows whose first answer changes the feature, ``share`` is that of all rows with an answer, and
        ``median_change`` the median size of a number's change in its own unit (missing for categories).
        """
        found = [e for e in self.found() if len(e)]
        if not found:
            return pd.DataFrame(columns=["feature", "times", "share", "median_change"])
        lines = []
        for name in found[0].schema.names:
            moves = [c for e in found for c in e[0].changes if c.feature == name]
            sizes = [abs(c.after - c.before) for c in moves if _is_number(c.before) and _is_number(c.after)]
            middle = float(pd.Series(sizes, dtype=float).median()) if sizes else float("nan")
            lines.append((name, len(moves), len(moves) / len(found), middle))
        table = pd.DataFrame(lines, columns=["feature", "times", "share", "median_change"])
        return table.sort_values("times", ascending=False, kind="stable", ignore_index=True)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how often each feature changes (needs matplotlib)."""
        from ifonly.result.plots import plot_importance  # noqa: PLC0415 - matplotlib is optional

        return plot_importance(self, ax=ax)

    # -- files ------------------------------------------------------------------------------------------------------
    def to_csv(self, path: str | Path | None = None) -> str:
        """Return (and, given a path, write) `table` as CSV, numbers with all their digits."""
        return _written(self.table().to_csv(index_label=self._names()), path)

    def to_json(self, path: str | Path | None = None, *, indent: int | None = 2) -> str:
        """Return (and, given a path, write) every row with its record: answers, impossibilities with their reasons."""
        lines = [
            {
                "row": _plain_index(o.index),
                "status": o.status,
                "reason": o.reason() or None,
                "record": _record(o),
            }
            for o in self
        ]
        text = json.dumps(lines, indent=indent, ensure_ascii=False, allow_nan=False)
        return _written(text, path, end="\n")

    def to_html(self, path: str | Path | None = None) -> str:
        """Return (and, given a path, write) one self-contained HTML page of all rows."""
        from ifonly.result.html_batch import batch_page  # noqa: PLC0415 - a face, loaded when asked for

        return _written(batch_page(self), path)

    def to_parquet(self, path: str | Path) -> None:
        """Write `table` as Parquet (needs pyarrow: ``ifonly[batch]``)."""
        table = self.table()
        for name in ("prediction", "wanted"):
            table[name] = table[name].map(lambda v: v if v is None else str(v))
        table.to_parquet(path, index=True)

    # -- the rows' own index ----------------------------------------------------------------------------------------
    def _names(self) -> list[Any]:
        return [_ROW if name is None and len(self.names) == 1 else name for name in self.names]

    def _index(self, rows: Sequence[Outcome]) -> pd.Index[Any]:
        keys = [o.index for o in rows]
        if len(self.names) > 1:
            return pd.MultiIndex.from_tuples(keys, names=list(self.names))
        index: pd.Index[Any] = pd.Index(keys, name=self.names[0], dtype=None if keys else object)
        return index


_COLUMNS = (
    "status",
    "prediction",
    "score",
    "wanted",
    "new_score",
    "changes",
    "changed",
    "distance",
    "objective",
    "bound",
    "proven",
    "seconds",
    "reason",
)


def _line(outcome: Outcome) -> dict[str, Any]:
    """Return one row of the tidy table."""
    line: dict[str, Any] = dict.fromkeys(_COLUMNS)
    line |= {"status": outcome.status, "reason": outcome.reason() or None}
    explanation = outcome.explanation
    if explanation is None or not len(explanation):
        return line
    best = explanation[0]
    proof = best.certificate
    return line | {
        "prediction": explanation.prediction,
        "score": explanation.score,
        "wanted": best.prediction,
        "new_score": best.score,
        "changes": len(best.changes),
        "changed": ", ".join(c.feature for c in best.changes),
        "distance": best.distance,
        "objective": proof.objective,
        "bound": proof.bound,
        "proven": proof.proven,
        "seconds": explanation.seconds,
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _record(outcome: Outcome) -> Any:
    if outcome.explanation is not None:
        return outcome.explanation.to_dict()
    if isinstance(outcome.error, Infeasible) and outcome.error.origin is not None:
        return outcome.error.record()
    return None


def _plain_index(index: Any) -> Any:
    if isinstance(index, tuple):
        return [_plain_index(part) for part in index]
    index = index.item() if hasattr(index, "item") else index
    return index if isinstance(index, (str, int, float, bool)) or index is None else str(index)


def _written(text: str, path: str | Path | None, end: str = "") -> str:
    if path is not None:
        Path(path).write_text(text + end, encoding="utf-8")
    return text
