"""The linear form: ``scores = u @ W' + b`` over the canonical vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema
from ifonly.program.box import Box
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip

__all__ = ["Linear"]


@dataclass(frozen=True, eq=False)
class Linear:
    """``scores[k] = weights[k] @ u + intercept[k]``: one expression per score, no extra column or row.

    Attributes
    ----------
    schema, weights, intercept
        What the scores are made of.
    sums
        Per score and input, the absolute sum of what the model adds up in place of the weight; None: the weight itself.
        Only the rounding depends on it.
    """

    schema: Schema
    weights: FloatArray
    intercept: FloatArray
    sums: FloatArray | None = None

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return len(self.intercept)

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores; a missing numeric value counts as 0."""
        return np.asarray((np.nan_to_num(U) if np.isnan(U).any() else U) @ self.weights.T + self.intercept)

    def cuts(self) -> Mapping[int, FloatArray]:
        """A linear form has no thresholds."""
        return {}

    def raw(self) -> frozenset[int]:
        """Return the numeric features with a weight."""
        return frozenset(j for j in self.features() if isinstance(self.schema.features[j], Numeric))

    def features(self) -> frozenset[int]:
        """Return the features with a weight that can matter."""
        starts, numeric = np.asarray(self.schema.starts), np.zeros(len(self.schema), dtype=np.bool_)
        numeric[self.schema.numeric] = True
        first = self.weights[:, starts[self.schema.owner]]
        counts = np.where(numeric[self.schema.owner], self.weights != 0.0, self.weights != first).any(axis=0)
        return frozenset(np.flatnonzero(np.logical_or.reduceat(counts, starts)).tolist())

    def magnitude(self, box: Box, *, centred: bool = False) -> FloatArray:
        """Return the largest sum of absolute terms that each score is made of in a box, if need be from its middle."""
        origin = box.middle() * centred
        sums = np.abs(self.weights) if centred else self.terms
        return np.asarray(sums @ (box.reach() - np.abs(origin)) + np.abs(self.weights @ origin + self.intercept))

    @property
    def terms(self) -> FloatArray:
        """The absolute sums of what is added up per score and input."""
        return np.abs(self.weights) if self.sums is None else self.sums

    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:  # noqa: ARG002 - the form protocol
        """Return the scores as expressions of the variables."""
        return [x.affine(w, float(b)) for w, b in zip(self.weights, self.intercept, strict=True)]

    def refined(self, u: FloatArray) -> None:
        """A linear form is exact."""
