"""Statistics of the training data: ranges, deviations, covariance of the features; computed once, used by all."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Schema
from ifonly.models.read import Model
from ifonly.runtime.memo import Lean, Memo, cached_property
from ifonly.runtime.tuning import DEFAULT, Tuning
from ifonly.tolerances import RIDGE

__all__ = ["Training"]


def _ranks(n: int) -> npt.NDArray[np.int64]:
    """Return the places of the twentieths among `n` sorted values, both ends included: 21 of them."""
    return np.round(np.linspace(0, n - 1, 21)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Training(Lean):
    """The training rows in canonical form, with the statistics that criteria ask for.

    Attributes
    ----------
    schema, U
        The features and the canonical training rows.
    labels
        The true outcome of each row, when the user gave it.
    model
        The model, for its own predictions on these rows.
    memo
        What criteria have computed for earlier questions; shared by threads, left out of pickles.
    tuning
        The tuned numbers of all questions about this model.
    """

    schema: Schema
    U: FloatArray
    model: Model
    labels: npt.NDArray[np.object_] | None = None
    memo: Memo = field(default_factory=Memo, repr=False)
    tuning: Tuning = field(default=DEFAULT, repr=False)

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """The numeric features."""
        return tuple(self.schema.numeric)

    @cached_property
    def numeric_columns(self) -> list[int]:
        """Positions of the numeric features in the canonical vector."""
        return [self.schema.starts[j] for j in self.numeric]

    def _per_feature(self, values: FloatArray) -> FloatArray:
        out = np.zeros(len(self.schema))
        out[list(self.numeric)] = values
        return out

    @cached_property
    def range(self) -> FloatArray:
        """Highest minus lowest value per feature (0 for categorical ones)."""
        V = self.U[:, self.numeric_columns]
        return self._per_feature(np.nanmax(V, axis=0) - np.nanmin(V, axis=0) if V.size else np.empty(0))

    @cached_property
    def std(self) -> FloatArray:
        """Standard deviation per feature."""
        V = self.U[:, self.numeric_columns]
        return self._per_feature(np.nanstd(V, axis=0) if V.size else np.empty(0))

    @cached_property
    def mad(self) -> FloatArray:
        """Median absolute deviation per feature; where it is 0, the standard deviation."""
        V = self.U[:, self.numeric_columns]
        if not V.size:
            return self._per_feature(np.empty(0))
        mad = self._per_feature(np.nanmedian(np.abs(V - np.nanmedian(V, axis=0)), axis=0))
        return np.where(mad > 0, mad, self.std)

    @cached_property
    def middle(self) -> FloatArray:
        """Width of the middle nine tenths of the rows per feature (0 for categorical ones)."""
        V = self.U[:, self.numeric_columns]
        return self._per_feature(np.subtract(*np.nanquantile(V, [0.95, 0.05], axis=0)) if V.size else np.empty(0))

    def shares(self, j: int) -> tuple[FloatArray, FloatArray]:
        """Return the values of a number at every twentieth of the rows, and the shares of rows below them.

        A value that several rows share has the share of those below it and half of its own, so that the shares rise strictly.
        """
        x = self.U[:, self.schema.starts[j]]
        x = np.sort(x[~np.isnan(x)])
        at, ranks = np.unique(x), _ranks(len(x))
        at = at if len(at) <= len(ranks) else np.unique(x[ranks])
        below, most = np.searchsorted(x, at, side="left"), np.searchsorted(x, at, side="right")
        return at, 0.5 * (below + most) / len(x)

    @cached_property
    def precision(self) -> FloatArray:
        """Inverse covariance of the numeric features, with a ridge of 1e-6 of each variance to keep it invertible."""
        V = self.U[:, self.numeric_columns]
        V = V[~np.isnan(V).any(axis=1)]
        # In units of the deviations, so that the units of the features do not matter; a constant feature is its own unit.
        units = np.atleast_1d(np.std(V, axis=0))
        units = np.where(units > 0.0, units, 1.0)
        correlation = np.atleast_2d(np.cov((V - V.mean(axis=0)) / units, rowvar=False))
        variances = np.diag(correlation)
        ridge = np.where(variances > 0.0, RIDGE * variances, 1.0)
        return np.asarray(np.linalg.inv(correlation + np.diag(ridge)) / np.outer(units, units))

    @cached_property
    def sample(self) -> FloatArray:
        """At most a few thousand training rows, drawn evenly, for heuristics."""
        return self.U[:: max(1, len(self.U) // self.tuning.asking.sample)]

    @cached_property
    def sample_scores(self) -> FloatArray:
        """The scores of the sample."""
        return self.model.scores(self.sample)

    @cached_property
    def scores(self) -> FloatArray:
        """The scores of the training rows."""
        return self.model.scores(self.U)

    @cached_property
    def score_scale(self) -> float:
        """A typical size of the scores, in which margins are counted."""
        scores = self.sample_scores
        spread = float(np.max(np.std(scores, axis=0))) if len(scores) > 1 else 0.0
        return spread if spread > 0 and np.isfinite(spread) else 1.0

    @cached_property
    def predictions(self) -> npt.NDArray[np.object_]:
        """The model's own predictions for the training rows."""
        return np.asarray(self.model.predict(self.U), dtype=object)
