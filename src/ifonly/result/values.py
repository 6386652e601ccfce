"""Results: counterfactuals with their certificates, as values; the faces live in their own modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from math import inf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args, overload

import pandas as pd

from ifonly.data.schema import Schema
from ifonly.data.tables import ANY_TABLE, TableKind
from ifonly.result.origin import Origin
from ifonly.runtime.later import deferred
from ifonly.tolerances import OPTIMALITY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Certificate",
    "Change",
    "Counterfactual",
    "Explanation",
    "Status",
    "relative_gap",
    "worst_status",
]

_SHOWN = 6  # changes that a repr names

Status = Literal["optimal", "within_gap", "feasible", "no_bound"]


@dataclass(frozen=True, slots=True)
class Change:
    """One feature that would be different."""

    feature: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Certificate:
    """Proof that comes with an answer: its cost, a bound on the cost of every answer, and the gap between them.

    Printed, it is one of "proven optimal", "within 24% of the best, proven", "no bound yet" and "not proven: the model was
    only observed".

    Attributes
    ----------
    objective
        The cost of the answer, re-measured on the returned row.
    bound
        No answer that meets all demands costs less than this.
    gap
        ``(objective - bound) / |objective|``: by which share of its own cost the answer may be too dear. 0 when the
        objective is 0, infinite when there is no bound.
    proven
        Whether the answer is proven optimal: the gap is at most 1e-6, whatever gap was asked for.
    margin
        By how much the model's score had to clear its threshold.
    solver
        Which solver proved it.
    asked_gap
        The gap at which the search was allowed to stop.
    observed
        Whether the model was only observed, through a surrogate: then nothing is proven, and there is no bound.
    """

    objective: float
    bound: float
    gap: float
    proven: bool
    margin: float = 0.0
    solver: str = "HiGHS"
    asked_gap: float = OPTIMALITY
    observed: bool = False

    @classmethod
    def of(
        cls,
        objective: float,
        bound: float,
        *,
        margin: float = 0.0,
        solver: str = "HiGHS",
        asked_gap: float = OPTIMALITY,
    ) -> Self:
        """Return the certificate of an answer that costs `objective` when no answer costs less than `bound`."""
        bound, gap = min(bound, objective), relative_gap(objective, bound)
        proven = gap == 0.0 or objective - bound <= OPTIMALITY * abs(objective)
        return cls(objective, bound, gap, proven, margin, solver, asked_gap)

    @classmethod
    def observed_only(cls, objective: float, solver: str, *, asked_gap: float = OPTIMALITY) -> Self:
        """Return the certificate of an answer about which nothing is proven: the model was only observed."""
        return cls(objective, -inf, inf, False, 0.0, solver, asked_gap, observed=True)

    @property
    def status(self) -> Status:
        """State of the proof in one word: the values of `Explanation.status`."""
        if self.proven:
            return "optimal"
        if not self.gap < 1.0:
            return "no_bound"
        return "within_gap" if self.gap <= self.asked_gap else "feasible"

    def __str__(self) -> str:
        if self.observed:
            return "not proven: the model was only observed"
        if self.proven:
            return "proven optimal"
        return "no bound yet" if self.status == "no_bound" else f"within {_percent(self.gap)}% of the best, proven"


def relative_gap(objective: float, bound: float) -> float:
    """Return the gap ``(objective - bound) / |objective|``; 0 at or above the bound, infinite without one.

    An objective of 0 has no gap: no cost is negative. From a gap of 1 on, the bound says no more than that.
    """
    if objective == 0.0 or objective <= bound:
        return 0.0
    gap = (objective - bound) / abs(objective)
    return inf if isnan(gap) else gap


def _percent(gap: float) -> str:
    """Return a gap below 1 in per cent, rounded up to the fewest digits (at least two) that stay below 100."""
    exact = Decimal(repr(gap)) * 100
    rounded = (Context(digits, ROUND_CEILING).plus(exact) for digits in range(2, 18))
    return f"{next((p for p in rounded if p < 100), exact).normalize():f}"


def worst_status(certificates: Iterable[Certificate]) -> Status:
    """Return the status of several answers together: that of the one about which least is known."""
    return max((c.status for c in certificates), key=get_args(Status).index, default="optimal")


@deferred("row", "changes", "score", "distance", "measures")
@dataclass(frozen=True, repr=False)
class Counterfactual:
    """One answer: a row that the user's own model has confirmed.

    Attributes
    ----------
    row
        A one-row frame in the columns, order and dtypes of the training data.
    changes
        What differs from the factual.
    prediction, score
        The model's own prediction for the row, and its probability of the wanted class (or its decision score, or
        its value for a regression model).
    distance
        The distance to the factual in the proximity that was asked for.
    certificate
        What was proven.
    ranges
        Feature -> (lowest, highest) value that keeps the outcome, when robustness was asked for.
    measures
        Further numbers that criteria report about the answer, e.g. the distance to the hull.
    trail
        The parts of the search that found it, for `Explanation.proof`; empty where a solver closed some of them, None where
        no proof was asked for.
    """

    row: pd.DataFrame
    changes: tuple[Change, ...]
    prediction: Any
    score: float | None
    distance: float
    certificate: Certificate
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    measures: dict[str, float] = field(default_factory=dict)
    trail: bytes | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        changes = ", ".join(f"{c.feature}: {c.before!r} -> {c.after!r}" for c in self.changes[:_SHOWN])
        more = f", ... ({len(self.changes)} changes)" if len(self.changes) > _SHOWN else ""
        return f"Counterfactual({changes or 'no change'}{more}; {self.prediction!r}, {self.certificate})"


@deferred("factual", "prediction", "score", "notes")
@dataclass(frozen=True, repr=False)
class Explanation(Sequence[Counterfactual]):
    """The answer to one question: counterfactuals, best first, and the factual they start from.

    `status` says what is proven about all of them:

    * ``"optimal"``: each is proven optimal;
    * ``"within_gap"``: each is proven to be within the `gap` that was asked for, which was larger than 1e-6;
    * ``"feasible"``: the search stopped before the gap that was asked for; a bound is known, and each certificate says how
      far away it is;
    * ``"no_bound"``: nothing is known about the cost of other answers: the search stopped early, or the model was only
      observed.

    With `Diversity("incumbents")`, only the first answer is meant.
    """

    counterfactuals: tuple[Counterfactual, ...]
    factual: pd.DataFrame
    prediction: Any
    score: float | None
    want: str
    schema: Schema
    status: Status
    seconds: float
    solver: str = "HiGHS"
    notes: tuple[str, ...] = ()
    score_name: str = "probability"
    reference: pd.DataFrame | None = field(default=None, repr=False, compare=False)
    origin: Origin | None = field(default=None, repr=False, compare=False)
    interrupted: bool = field(default=False, repr=False)
    given: TableKind = field(default=ANY_TABLE, repr=False, compare=False)

    @overload
    def __getitem__(self, index: int) -> Counterfactual: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Counterfactual]: ...
    def __getitem__(self, index: int | slice) -> Counterfactual | Sequence[Counterfactual]:
        return self.counterfactuals[index]

    def __len__(self) -> int:
        return len(self.counterfactuals)

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.counterfactuals)

    def frame(self, *, ranges: bool = False) -> pd.DataFrame:
        """Return one row per counterfactual, in the columns, order and dtypes of the training data.

        A polars frame where the row came in one, or, if it came in no frame, the training data did.

        With `ranges`, each feature that has one is followed by its ``_low`` and ``_high``: while it stays between them,
        and the others as they are, so does the outcome (see `Robustness`). They are missing where nothing changes.
        """
        return cast("pd.DataFrame", self.given.back(self.rows(ranges=ranges)))

    def rows(self, *, ranges: bool = False) -> pd.DataFrame:
        """Return `frame` in pandas, with strings as names of the columns, whatever the data came in."""
        rows = pd.concat([c.row for c in self.counterfactuals], ignore_index=True)
        for name in [n for n in rows.columns if any(n in c.ranges for c in self.counterfactuals)] if ranges else ():
            ends = [c.ranges.get(name, (float("nan"), float("nan"))) for c in self.counterfactuals]
            after = list(rows.columns).index(name) + 1
            rows.insert(after, f"{name}_low", [low for low, _ in ends])
            rows.insert(after + 1, f"{name}_high", [high for _, high in ends])
        return rows

    def changes(self) -> pd.DataFrame:
        """Return one line per change: counterfactual, feature, from, to."""
        lines = [
            (i, change.feature, change.before, change.after)
            for i, c in enumerate(self.counterfactuals)
            for change in c.changes
        ]
        return pd.DataFrame(lines, columns=["counterfactual", "feature", "from", "to"])

    def metrics(self) -> dict[str, float]:
        """Return the paper's seven measures: validity, proximities, sparsity and diversities."""
        from ifonly.result.metrics import explanation_metrics  # noqa: PLC0415 - a face, loaded when asked for

        return explanation_metrics(self)

    def plot(self, ax: Axes | None = None, *, which: int = 0) -> Axes:
        """Draw what changes, from where to where, against the training distribution (needs matplotlib)."""
        from ifonly.result.plots import plot_changes  # noqa: PLC0415 - matplotlib is optional

        return plot_changes(self, ax=ax, which=which)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold."""
        from ifonly.result.serial import explanation_to_dict  # noqa: PLC0415 - a face, loaded when asked for

        return explanation_to_dict(self)

    def to_json(self, path: str | Path | None = None, *, indent: int | None = 2) -> str:
        """Return (and, given a path, write) the explanation as JSON."""
        from ifonly.result.serial import to_json  # noqa: PLC0415 - a face, loaded when asked for

        return to_json(self, path, indent=indent)

    def record(self, *, factual: str = "full", salt: bytes | None = None) -> dict[str, Any]:
        """Return the answer with everything a stranger needs to check it, as plain values (see `ifonly.verify`).

        Parameters
        ----------
        factual
            ``"full"``: the row is part of it. ``"omitted"``: neither the row nor any value that answers leave as it is.
            ``"salted"``: in its place a keyed SHA-256.
        salt
            The key of a salted record, at least 16 bytes, to be kept apart from it.
        """
        from ifonly.record.writing import record_of  # noqa: PLC0415 - a face, loaded when asked for

        return record_of(self, factual, salt)  # type: ignore[arg-type]

    @property
    def proof(self) -> bytes | None:
        """The parts of the search, for `ifonly.verify` to replay; None unless ``explain(..., proof=True)`` was asked."""
        trails = [c.trail for c in self.counterfactuals if c.trail is not None]
        if len(trails) < len(self.counterfactuals) or not trails:
            return None
        from ifonly.record.proof import pack  # noqa: PLC0415 - a face, loaded when asked for

        return pack(trails)

    def write_record(self, path: str | Path) -> list[Path]:
        """Write the record as JSON and, where a proof was asked for, the proof beside it; return what was written.

        The proof has the name of the record with the ending ``.proof``.
        """
        from ifonly.record.writing import write_record  # noqa: PLC0415 - a face, loaded when asked for

        return write_record(self, Path(path))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Explanation:
        """Return the explanation that `to_dict` described."""
        from ifonly.result.serial import explanation_from_dict  # noqa: PLC0415 - a face, loaded when asked for

        return explanation_from_dict(data)

    @classmethod
    def from_json(cls, text: str | Path) -> Explanation:
        """Return the explanation from JSON text, or from a file when given a `Path`."""
        from ifonly.result.serial import from_json  # noqa: PLC0415 - a face, loaded when asked for

        return from_json(text)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return (and, given a path, write) one self-contained HTML page."""
        from ifonly.result.html import page  # noqa: PLC0415 - a face, loaded when asked for

        text = page(self)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _repr_html_(self) -> str:
        from ifonly.result.html import fragment  # noqa: PLC0415 - a face, loaded when asked for

        return fragment(self)

    def __repr__(self) -> str:
        answers = f"{len(self)} answer{'s' * (len(self) != 1)}"
        return f"Explanation({self.prediction!r} -> {self.want}, {answers}, {self.status}, {self.seconds:.3g} s)"

    def __str__(self) -> str:
        from ifonly.result.text import render  # noqa: PLC0415 - a face, loaded when asked for

        return render(self)
