"""Every error and warning of ifonly; each says what happened, why, and what to do next."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ifonly.runtime.warning_filters import CHANGING, listener

__all__ = [
    "BatchFailed",
    "CriterionError",
    "FactualViolatesDemand",
    "IfOnlyError",
    "IfOnlyWarning",
    "Infeasible",
    "NoCounterfactual",
    "NotProvenOptimal",
    "NotVerified",
    "OutOfTime",
    "OutsideTrainingRange",
    "PlanError",
    "Relaxation",
    "SchemaError",
    "SolverError",
    "SolverFailed",
    "SolverMissing",
    "UnsupportedModel",
    "did_you_mean",
    "warn",
]

_HERE = __file__.removesuffix("errors.py")  # as the files of the package's frames begin


class IfOnlyError(Exception):
    """The root of everything ifonly raises."""


class SchemaError(IfOnlyError, ValueError):
    """A row or frame does not fit the schema: unknown column, missing value, unseen level, out of range."""


class UnsupportedModel(IfOnlyError, NotImplementedError):
    """A model or a preprocessing step that cannot be read exactly; names the step and what is near."""


class CriterionError(IfOnlyError, ValueError):
    """A criterion or target that is ill-posed by itself, before anything is solved."""


class SolverError(IfOnlyError, RuntimeError):
    """The optimiser could not do its work."""


class SolverMissing(SolverError, ImportError):
    """The solver that was asked for is not installed."""


class SolverFailed(SolverError):
    """The solver stopped without an answer and without a proof."""


class NoCounterfactual(IfOnlyError, RuntimeError):
    """Error of a question without an answer to return; the subclasses say whether that is proven."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A way out of a contradiction.

    Attributes
    ----------
    demand
        The demand to loosen, in words.
    change
        How to loosen it, in words, e.g. "at_most 1 -> 2".
    amount
        How far that is, in the demand's own unit.
    """

    demand: str
    change: str
    amount: float

    def __str__(self) -> str:
        return self.change


class Infeasible(NoCounterfactual):
    """Proven: nothing satisfies all demands.

    Attributes
    ----------
    conflict
        A set of clashing demands, in words; a minimal one unless time ran out: drop any one and the rest is possible.
    relaxations
        For each demand of the conflict, the smallest loosening that makes the whole possible; those found in time.
    minimal
        Whether the conflict is proven minimal; if not, the time limit passed before that was shown.
    margin
        By how much the outcome had to clear its threshold for this to be proven. Usually 0; more where the only points left
        lie so near to the threshold that the model itself refused those that were tried.
    origin, factual, schema, prediction, score
        The circumstances of the question, for `record`, and what the model says of the row; None unless
        `Explainer.explain` raised this.
    trail
        The parts of the search that found nothing, for `proof`; empty where a solver closed some of them, None where no
        proof was asked for.
    """

    def __init__(
        self,
        message: str,
        conflict: Sequence[str] = (),
        relaxations: Sequence[Relaxation] = (),
        minimal: bool = True,
        margin: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.conflict = tuple(conflict)
        self.relaxations = tuple(relaxations)
        self.minimal = minimal
        self.margin = margin
        self.origin: Any = None
        self.factual: Any = None
        self.schema: Any = None
        self.prediction: Any = None
        self.score: float | None = None
        self.trail: bytes | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (str(self), self.conflict, self.relaxations, self.minimal, self.margin)
        kept = {name: getattr(self, name) for name in ("origin", "factual", "schema", "prediction", "score", "trail")}
        return type(self), arguments, kept

    @property
    def proof(self) -> bytes | None:
        """The parts of the search, for `ifonly.verify` to replay; None unless ``explain(..., proof=True)`` was asked."""
        if self.trail is None:
            return None
        from ifonly.record.proof import pack  # noqa: PLC0415 - a face, loaded when asked for

        return pack([self.trail])

    def write_record(self, path: str | Path) -> list[Path]:
        """Write the record as JSON and, where a proof was asked for, the proof beside it; return what was written."""
        from ifonly.record.writing import write_record  # noqa: PLC0415 - a face, loaded when asked for

        return write_record(self, Path(path))

    def record(self, *, factual: str = "full", salt: bytes | None = None) -> dict[str, Any]:
        """Return the impossibility with everything a stranger needs to check it; see `Explanation.record`."""
        from ifonly.record.writing import infeasible_to_dict  # noqa: PLC0415 - a face, loaded when asked for

        return infeasible_to_dict(self, factual, salt)  # type: ignore[arg-type]

    def to_json(self, path: str | Path | None = None, *, indent: int | None = 2) -> str:
        """Return the record as JSON text and, given a path, write it there."""
        text = json.dumps(self.record(), indent=indent, ensure_ascii=False, allow_nan=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text


class OutOfTime(NoCounterfactual):
    """The time limit passed before any verified answer was found; `bound` is what was proven so far."""

    def __init__(self, message: str, bound: float = float("-inf")) -> None:
        super().__init__(message)
        self.bound = bound

    def __reduce__(self) -> tuple[type[OutOfTime], tuple[object, ...]]:
        return type(self), (str(self), self.bound)


class NotVerified(IfOnlyError, RuntimeError):
    """The user's own model refused the answer, even after repair; carries both scores."""

    def __init__(self, message: str, form_score: Sequence[float] = (), model_score: Sequence[float] = ()) -> None:
        super().__init__(message)
        self.form_score = tuple(form_score)
        self.model_score = tuple(model_score)

    def __reduce__(self) -> tuple[type[NotVerified], tuple[object, ...]]:
        return type(self), (str(self), self.form_score, self.model_score)


class PlanError(IfOnlyError, ValueError):
    """A batch that is not the one that was planned: its rows, model, policy or settings changed, or it has no plan."""


class BatchFailed(IfOnlyError, RuntimeError):
    """A batch that could not go on: the disk is full, a worker died again and again, a shard is corrupt."""


class IfOnlyWarning(UserWarning):
    """The root of everything ifonly warns about."""


class NotProvenOptimal(IfOnlyWarning):
    """The answer is valid, but the search stopped before it was proven optimal, or within the gap that was asked for."""


class OutsideTrainingRange(IfOnlyWarning):
    """The factual lies outside the bounds of the schema, which were widened to include it."""


class FactualViolatesDemand(IfOnlyWarning):
    """The factual itself breaks a demand, so every answer must change that feature."""


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return a hint such as " Did you mean 'age'?", or an empty string when nothing is near."""
    things = {str(k): k for k in known}
    close = get_close_matches(str(name), list(things), n=1, cutoff=0.6)
    return f" Did you mean {things[close[0]]!r}?" if close else ""


def warn(message: str, category: type[IfOnlyWarning]) -> None:
    """Warn at the line of the user's code that called into the package, however deep inside the package this is."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, level = frame.f_back, level + 1
    found = listener()
    if found is not None:
        found.append(category(message))
        return
    with CHANGING:  # another thread may have put the filters aside for a moment
        warnings.warn(message, category, stacklevel=level)
