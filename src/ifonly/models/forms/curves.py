"""Curves of scores: a bend of each score of a form, and the softmax of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.form import Form
from ifonly.models.forms.around import Around
from ifonly.models.forms.bends import EXP, SOFTPLUS, Bend, Smooth, chain
from ifonly.models.forms.compose import combine, for_budget, score_bounds
from ifonly.models.forms.propagate import Bounds, Budget
from ifonly.program.box import Box
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip
from ifonly.runtime.tuning import DEFAULT, Shaping
from ifonly.tolerances import CHAINED_ROUNDING, DUST, FEASIBILITY, SAME_BREAKPOINT

__all__ = ["Curve", "Softmax"]


@dataclass(frozen=True, eq=False)
class Curve(Around):
    """``bends[k](s[k])`` of the scores ``s`` of a form: exact to NumPy, a chain of polygons to the program.

    Attributes
    ----------
    inner
        The form.
    bends
        One function per score.
    points
        Per score: further breakpoints, from refinements.
    pieces
        About how many polygons a chain starts with.
    refused
        The points at which it was refined, the latest first: near by there may be good answers.
    budget
        What all changes may cost in the program it is embedded in.
    tuning
        The numbers of its refinements.
    """

    bends: tuple[Bend, ...]
    points: tuple[FloatArray, ...] = ()
    pieces: int = DEFAULT.forms.pieces
    refused: tuple[FloatArray, ...] = ()
    budget: Budget | None = None
    tuning: Shaping = DEFAULT.forms

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return len(self.bends)

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores of canonical rows."""
        s = self.inner(U)
        return np.column_stack([bend(s[:, k]) for k, bend in enumerate(self.bends)])

    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Add one chain per score, over what the box lets the inner score be."""
        scores = self.inner.embed(mip, x)
        lower, upper = score_bounds(self.inner, x.box, self.budget)
        points = self.points or (np.empty(0),) * len(self.bends)
        return [
            _bent(mip, s, _with(bend, self.tuning), (lower[k], upper[k]), points[k], self.pieces)
            for k, (s, bend) in enumerate(zip(scores, self.bends, strict=True))
        ]

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return bounds of the scores over a box, and within a budget."""
        lower, upper = score_bounds(self.inner, box, budget)
        spans = [bend.span(lower[k], upper[k]) for k, bend in enumerate(self.bends)]
        return np.array([s[0] for s in spans]), np.array([s[1] for s in spans])

    def for_budget(self, box: Box, budget: Budget) -> Curve:
        """Return the curve with bounds that hold within the budget."""
        return replace(self, inner=for_budget(self.inner, box, budget), budget=budget)

    def refined(self, u: FloatArray) -> Curve | None:
        """Return the curve with breakpoints at the inner scores of `u`, and around them."""
        inner = self.inner.refined(u)
        bends = [_with(bend, self.tuning) for bend in self.bends]
        points = _more_points(self.inner(u[None, :])[0], bends, self.points, self.pieces)
        if inner is None and points is None:
            return None
        finer = replace(self, inner=inner or self.inner, refused=(u, *self.refused))
        return finer if points is None else replace(finer, points=points, pieces=int(self.tuning.finer * self.pieces))


@dataclass(frozen=True, eq=False)
class Softmax(Around):
    """``exp(s_k) / sum_l exp(s_l)`` of the scores of a form, by curves of one number each.

    ``L_1 = s_1``, ``L_k = s_k + softplus(L_{k-1} - s_k)`` is the logarithm of the sum of the first ``k`` exponentials,
    so ``p_k = exp(s_k - L_K)``; and the ``p_k`` sum to one. All curves are exact at their breakpoints, so the whole is.
    """

    points: tuple[FloatArray, ...] = ()
    pieces: int = DEFAULT.forms.softmax_pieces
    refused: tuple[FloatArray, ...] = ()
    budget: Budget | None = None
    tuning: Shaping = DEFAULT.forms

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return self.inner.n_outputs

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the probabilities of canonical rows."""
        s = self.inner(U)
        e = np.exp(s - s.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))

    def differences(self) -> Form:
        """Return the form of all ``s_k - s_l``, row by row: their bounds are tighter than those of the scores."""
        n = self.n_outputs
        eye = np.eye(n)
        return combine(self.inner, (eye[:, None, :] - eye[None, :, :]).reshape(n * n, n))

    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Add the curves, each over what the box lets its argument be."""
        s = self.inner.embed(mip, x)
        n = len(s)
        low, high = (b.reshape(n, n) for b in score_bounds(self.differences(), x.box, self.budget))
        points = self.points or (np.empty(0),) * (2 * n - 1)
        softplus, exp = _with(SOFTPLUS, self.tuning), _with(EXP, self.tuning)
        total = s[0]
        for k in range(1, n):
            ends = _log_sum(low[:k, k]), _log_sum(high[:k, k])
            total = s[k] + _bent(mip, total - s[k], softplus, ends, points[k - 1], self.pieces)
        out = []
        for k in range(n):
            ends = -_log_sum(high[:, k]), -_log_sum(low[:, k])
            out.append(_bent(mip, s[k] - total, exp, ends, points[n - 1 + k], self.pieces))
        # probabilities sum to 1, but for rounding: redundant for exact curves, tighter for their relaxations
        mip.row(Affine.total(out), 1.0 - CHAINED_ROUNDING, 1.0 + CHAINED_ROUNDING)
        return out

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return bounds of the probabilities over a box, and within a budget."""
        n = self.n_outputs
        low, high = (b.reshape(n, n) for b in score_bounds(self.differences(), box, budget))
        return (
            np.array([np.exp(-_log_sum(high[:, k])) for k in range(n)]),
            np.array([np.exp(-_log_sum(low[:, k])) for k in range(n)]),
        )

    def for_budget(self, box: Box, budget: Budget) -> Softmax:
        """Return the softmax with bounds that hold within the budget."""
        return replace(self, inner=for_budget(self.inner, box, budget), budget=budget)

    def refined(self, u: FloatArray) -> Softmax | None:
        """Return the form with breakpoints at what the curves are given at `u`, and around it."""
        inner = self.inner.refined(u)
        s = self.inner(u[None, :])[0]
        sums = np.logaddexp.accumulate(s)
        given = np.concatenate([sums[:-1] - s[1:], s - sums[-1]])
        softplus, exp = _with(SOFTPLUS, self.tuning), _with(EXP, self.tuning)
        bends = (softplus,) * (len(s) - 1) + (exp,) * len(s)
        points = _more_points(given, bends, self.points, self.pieces)
        if inner is None and points is None:
            return None
        finer = replace(self, inner=inner or self.inner, refused=(u, *self.refused))
        return finer if points is None else replace(finer, points=points, pieces=int(self.tuning.finer * self.pieces))


def _log_sum(differences: FloatArray) -> float:
    return float(np.logaddexp.reduce(differences))


def _with(bend: Bend, numbers: Shaping) -> Bend:
    """Return a bend with these numbers; the bends themselves are told by what they are, and stay."""
    return replace(bend, closely=numbers.closely, bending=numbers.bending) if isinstance(bend, Smooth) else bend


def _bent(mip: Mip, inner: Affine, bend: Bend, ends: tuple[float, float], points: FloatArray, pieces: int) -> Affine:
    """Add one curve over the bounds of its argument, whichever way they are known.

    The chain goes on a little beyond both ends, by what a solver can see: with less, it calls a point at the very end of what
    the argument can be impossible. Not by more than the curve's own scale: of arguments around 1e12 a solver sees a million,
    and no exponential goes on for that long.
    """
    if inner.is_constant:
        return Affine(constant=float(bend(np.array([inner.constant]))[0]))
    known = mip.bounds(inner)
    low, high = sorted((max(ends[0], known[0]), min(ends[1], known[1])))
    near, size = points[(points >= low) & (points <= high)], max(1.0, abs(low), abs(high))
    at = np.empty(0)
    if high - low > FEASIBILITY * size or near.size:
        beyond = min(FEASIBILITY * size, bend.scale if isinstance(bend, Smooth) else np.inf)
        at = np.unique(np.concatenate([bend.breakpoints(low - beyond, high + beyond, pieces), near]))
        at = at[np.concatenate([[True], np.diff(at) > SAME_BREAKPOINT * size])]
    if len(at) < 2:
        # the argument changes by less than a solver can see of it: the curve is any value that it has there
        return mip.column(*bend.span(low - DUST * size, high + DUST * size), name="curve")
    return chain(mip, inner, bend, at)


def _more_points(
    s: FloatArray, bends: Sequence[Bend], points: tuple[FloatArray, ...], pieces: int
) -> tuple[FloatArray, ...] | None:
    """Return the breakpoints with those that make every curve exact at `s`, or None when they already are."""
    old = points or (np.empty(0),) * len(bends)
    new = [bend.around(float(s[k]), old[k], pieces) for k, bend in enumerate(bends)]
    if not any(p.size for p in new):
        return None
    return tuple(np.union1d(a, b) for a, b in zip(old, new, strict=True))
