"""The stepped linear form: a linear form plus weights on literals ``[x_j <= cut]``, for binned columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.box import Box
from ifonly.mip import Affine, FloatArray, IntArray, Mip
from ifonly.models import Form
from ifonly.models.linear import Linear
from ifonly.models.propagate import Block, Bounds, Budget, preactivations
from ifonly.models.source import Source
from ifonly.variables import Variables

__all__ = ["StepLinear", "linear_form"]


@dataclass(frozen=True, eq=False)
class StepLinear:
    """``scores = weights @ u + intercept + step_weights @ l(u)`` with the literals ``l_i = [x_feature[i] <= cut[i]]``.

    A column that a discretiser made of a numeric feature is constant between its bin edges, hence a constant plus one
    weight per edge on "x is below it". The edges are cuts of the program, so no row is needed.
    """

    linear: Linear
    feature: IntArray
    cut: FloatArray
    step_weights: FloatArray

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return self.linear.n_outputs

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores of canonical rows."""
        x = U[:, np.asarray(self.linear.schema.starts)[self.feature]]
        return np.asarray(self.linear(U) + (x <= self.cut) @ self.step_weights.T)

    def cuts(self) -> Mapping[int, FloatArray]:
        """Return the bin edges per numeric feature."""
        return {int(j): np.unique(self.cut[self.feature == j]) for j in np.unique(self.feature)}

    def raw(self) -> frozenset[int]:
        """Return the numeric features with a weight beside their steps."""
        return self.linear.raw()

    def features(self) -> frozenset[int]:
        """Return the features with a weight or a step."""
        stepped = self.feature[self.step_weights.any(axis=0)]
        return self.linear.features() | frozenset(int(j) for j in np.unique(stepped))

    def embed(self, mip: Mip, x: Variables) -> list[Affine]:
        """Return the scores as expressions of raw values, levels and literals."""
        known = [
            Affine() if x.box.missing[j] else x.at_most(int(j), float(cut))
            for j, cut in zip(self.feature, self.cut, strict=True)
        ]
        return [
            Affine.total([score, *(literal * float(w) for literal, w in zip(known, row, strict=True) if w != 0)])
            for score, row in zip(self.linear.embed(mip, x), self.step_weights, strict=True)
        ]

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return bounds of the scores over a box, and within a budget: linear part and steps by themselves."""
        block = Block(self.linear.weights, self.linear.intercept, np.ones(self.n_outputs))
        low, high = preactivations((block,), box, budget)[0]
        for j in np.unique(self.feature):
            if box.missing[j]:
                continue
            own = self.feature == j
            cuts, weights = self.cut[own], self.step_weights[:, own]
            inside = cuts[(cuts >= box.lower[j]) & (cuts < box.upper[j])]
            at = np.concatenate([inside, [box.upper[j]]])
            values = weights @ (at[None, :] <= cuts[:, None])
            low, high = low + values.min(axis=1), high + values.max(axis=1)
        return low, high

    def refined(self, u: FloatArray) -> None:  # noqa: ARG002 - the form protocol
        """Steps are exact."""


def linear_form(source: Source, coefficients: npt.ArrayLike, intercept: npt.ArrayLike, who: str) -> Form:
    """Return the form of ``z @ C' + b0`` over the columns of a source: linear, or with steps where there are bins."""
    plain = replace(source, columns=tuple(replace(c, steps={}) for c in source.columns))
    linear = Linear(source.schema, *plain.linear(coefficients, intercept, who))
    keys = sorted({key for c in source.columns for key in c.steps})
    if not keys:
        return linear
    table = np.array([[c.steps.get(key, 0.0) for key in keys] for c in source.columns])
    C = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    feature = np.array([j for j, _ in keys], dtype=np.int64)
    return StepLinear(linear, feature, np.array([cut for _, cut in keys]), np.asarray(C @ table))
