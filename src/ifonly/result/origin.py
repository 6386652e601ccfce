"""Origin: the circumstances of a question, kept beside its answer, from which a record is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

__all__ = ["Origin"]


@dataclass(frozen=True, eq=False)
class Origin:
    """Circumstances of one question.

    Attributes
    ----------
    explainer
        Who was asked; None once the origin has been described, as it is when an answer is pickled or read from a file.
    want, criteria
        The wish and the criteria of the call, as they were given.
    options
        How many answers were asked for, the time limit and the gap.
    demands
        The demands in words.
    asked_at
        The moment, in UTC.
    described
        The origin as plain values, where the explainer is not at hand any more.
    """

    explainer: Any
    want: Any = None
    criteria: Sequence[Any] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    demands: Sequence[str] = ()
    asked_at: datetime = field(default_factory=partial(datetime.now, UTC))
    described: Mapping[str, Any] | None = None

    def data(self) -> Mapping[str, Any]:
        """Return the origin as plain values; fingerprints are computed once for each explainer."""
        if self.described is not None:
            return self.described
        from ifonly.record.writing import describe  # noqa: PLC0415 - a face, loaded when asked for

        return describe(self)

    def alone(self) -> Origin:
        """Return the origin without the explainer, for a journey after which it is put back."""
        return replace(self, explainer=None)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.explainer is None and self.described is None:  # on a journey
            return Origin, (None, self.want, self.criteria, self.options, self.demands, self.asked_at)
        return _described, (dict(self.data()),)


def _described(data: Mapping[str, Any]) -> Origin:
    return Origin(None, described=data)
