"""Query: one factual, one model, its training data and its goal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Schema
from ifonly.models.read import Model
from ifonly.program.box import Box
from ifonly.question.training import Training
from ifonly.runtime.tuning import DEFAULT, Tuning

__all__ = ["Query", "Wanted"]


class Wanted(Protocol):
    """The wanted outcome, as much of it as a query tells; `ifonly.question.goal.Goal` is the whole of it."""

    @property
    def text(self) -> str:
        """The wanted outcome, in words."""
        ...

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say, by the form's scores, which rows have the wanted outcome."""
        ...

    def confirmed(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows the user's own model confirms."""
        ...


@dataclass(frozen=True, eq=False)
class Query:
    """One question: this factual, this model, this training data, this goal.

    `limits` is the schema's own box, which holds the factual and is not to be narrowed; `exempt` are the features whose
    change is a consequence of other changes, neither counted nor charged; `tuning` are the tuned numbers of the Explainer.
    """

    schema: Schema
    factual: FloatArray
    model: Model
    training: Training
    limits: Box
    seed: int = 0
    goal: Wanted | None = None
    exempt: frozenset[int] = frozenset()
    tuning: Tuning = field(default=DEFAULT, repr=False)

    def value(self, j: int) -> Any:
        """Return the factual's raw value of feature `j`."""
        return self.schema.level_values(j, self.factual)

    def changed(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Return, per row and feature, whether it differs from the factual."""
        return self.schema.changed(U, self.factual)

    def counted(self, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Return, per row and feature, whether it is changed and counts as a change."""
        changed = self.changed(U)
        changed[:, sorted(self.exempt)] = False
        return changed
