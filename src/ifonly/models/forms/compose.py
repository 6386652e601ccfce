"""Forms made of forms: outputs side by side, affine maps of outputs, and weighted means.

Each part of a composite is embedded once, and its outputs are expressions; so a part may be any form, a composite too.
What stays linear, or a sum of trees, becomes one linear form or one ensemble, for which there are faster ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.models.abilities import (
    Bounded,
    BoundsScores,
    HasPlateaus,
    Relaxed,
    SumsTerms,
    parts_of,
)
from ifonly.models.form import Form
from ifonly.models.forms.around import Around
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.propagate import Block, Bounds, Budget, preactivations
from ifonly.models.forms.trees import Addition, Nodes, Trees
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip

__all__ = [
    "Combination",
    "Mean",
    "Stack",
    "combine",
    "for_budget",
    "magnitude",
    "mean",
    "plateau",
    "refused",
    "score_bounds",
    "stack",
]


@dataclass(frozen=True, eq=False)
class Stack:
    """The outputs of several forms, one after the other."""

    parts: tuple[Form, ...]

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return sum(p.n_outputs for p in self.parts)

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores of canonical rows."""
        return np.hstack([p(U) for p in self.parts])

    def inside(self) -> tuple[Form, ...]:
        """Return the parts."""
        return self.parts

    def cuts(self) -> Mapping[int, FloatArray]:
        """Return the thresholds of all parts."""
        found: dict[int, list[FloatArray]] = {}
        for part in self.parts:
            for j, cuts in part.cuts().items():
                found.setdefault(j, []).append(np.asarray(cuts))
        return {j: np.unique(np.concatenate(c)) for j, c in found.items()}

    def raw(self) -> frozenset[int]:
        """Return the numeric features whose raw value enters some part."""
        return frozenset().union(*(p.raw() for p in self.parts))

    def features(self) -> frozenset[int]:
        """Return the features that some part looks at."""
        return frozenset().union(*(p.features() for p in self.parts))

    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Embed each part."""
        return [score for p in self.parts for score in p.embed(mip, x)]

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return bounds of the scores over a box, and within a budget."""
        lower, upper = zip(*(score_bounds(p, box, budget) for p in self.parts), strict=True)
        return np.concatenate(lower), np.concatenate(upper)

    def for_budget(self, box: Box, budget: Budget) -> Stack:
        """Return the stack with bounds that hold within the budget."""
        parts = tuple(for_budget(p, box, budget) for p in self.parts)
        return self if all(new is old for new, old in zip(parts, self.parts, strict=True)) else Stack(parts)

    def magnitude(self, box: Box, *, centred: bool = False) -> FloatArray:
        """Return the magnitudes of all parts' scores."""
        return np.concatenate([magnitude(p, box, centred=centred) for p in self.parts])

    def refined(self, u: FloatArray) -> Stack | None:
        """Refine every part that is not exact at `u`."""
        finer = [p.refined(u) for p in self.parts]
        if all(f is None for f in finer):
            return None
        return Stack(tuple(f or p for f, p in zip(finer, self.parts, strict=True)))


@dataclass(frozen=True, eq=False)
class Combination(Around):
    """``weights @ s + constant`` of the scores ``s`` of a form."""

    weights: FloatArray
    constant: FloatArray

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return len(self.constant)

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores of canonical rows."""
        return np.asarray(self.inner(U) @ self.weights.T + self.constant)

    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Return affine expressions of the inner scores; no further row."""
        return _mapped(self.inner.embed(mip, x), self.weights, self.constant)

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return bounds of the scores over a box, and within a budget, by interval arithmetic."""
        lower, upper = score_bounds(self.inner, box, budget)
        up, down = np.maximum(self.weights, 0.0), np.minimum(self.weights, 0.0)
        low = _dot(up, lower) + _dot(down, upper) + self.constant
        return low, _dot(up, upper) + _dot(down, lower) + self.constant

    def for_budget(self, box: Box, budget: Budget) -> Combination:
        """Return the combination with bounds that hold within the budget."""
        inner = for_budget(self.inner, box, budget)
        return self if inner is self.inner else replace(self, inner=inner)

    def magnitude(self, box: Box, *, centred: bool = False) -> FloatArray:
        """Return the largest sum of absolute terms of each score."""
        size = magnitude(self.inner, box, centred=centred)
        return np.asarray(np.abs(self.weights) @ size + np.abs(self.constant))

    def refined(self, u: FloatArray) -> Combination | None:
        """Refine the inner form."""
        inner = self.inner.refined(u)
        return None if inner is None else replace(self, inner=inner)

    def summands(self) -> tuple[Form, ...]:
        """Return the parts of a stack; nothing is summed of another form."""
        return self.inner.parts if isinstance(self.inner, Stack) else ()

    def directions(self, good: FloatArray) -> tuple[FloatArray, ...]:
        """Return the gradient of ``good @ scores`` in the scores of each part."""
        ends = np.cumsum([part.n_outputs for part in self.summands()])[:-1]
        return tuple(np.split(good @ self.weights, ends))

    def of_summands(self, parts: tuple[Form, ...]) -> Combination:
        """Return the same combination of other forms."""
        return replace(self, inner=Stack(parts))


@dataclass(frozen=True, eq=False)
class Mean(Around):
    """The weighted mean of forms with the same outputs, added up in the order in which ensembles do it."""

    inner: Stack
    weights: FloatArray

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return self.inner.parts[0].n_outputs

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores of canonical rows."""
        return _mean([p(U) for p in self.inner.parts], self.weights)

    def _map(self) -> FloatArray:
        share = self.weights / self.weights.sum()
        return np.hstack([w * np.eye(self.n_outputs) for w in share])

    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Return affine expressions of the parts' scores; no further row."""
        return _mapped(self.inner.embed(mip, x), self._map(), np.zeros(self.n_outputs))

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return bounds of the scores over a box, and within a budget."""
        lower, upper = self.inner.score_bounds(box, budget)
        return _dot(self._map(), lower), _dot(self._map(), upper)

    def for_budget(self, box: Box, budget: Budget) -> Mean:
        """Return the mean with bounds that hold within the budget."""
        inner = self.inner.for_budget(box, budget)
        return self if inner is self.inner else replace(self, inner=inner)

    def magnitude(self, box: Box, *, centred: bool = False) -> FloatArray:
        """Return the mean of the parts' magnitudes."""
        return np.asarray(np.abs(self._map()) @ magnitude(self.inner, box, centred=centred))

    def refined(self, u: FloatArray) -> Mean | None:
        """Refine every part that is not exact at `u`."""
        inner = self.inner.refined(u)
        return None if inner is None else replace(self, inner=inner)

    def summands(self) -> tuple[Form, ...]:
        """Return the parts."""
        return self.inner.parts

    def directions(self, good: FloatArray) -> tuple[FloatArray, ...]:
        """Return the direction itself: the gradient, but for the positive weights of the parts."""
        return (good,) * len(self.inner.parts)

    def of_summands(self, parts: tuple[Form, ...]) -> Mean:
        """Return the same mean of other forms."""
        return replace(self, inner=Stack(parts))


def _mapped(scores: Sequence[Affine], weights: FloatArray, constant: FloatArray) -> list[Affine]:
    return [
        Affine.total(s * float(w) for s, w in zip(scores, row, strict=True) if w != 0) + float(b)
        for row, b in zip(weights, constant, strict=True)
    ]


def _mean(scores: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Add up as `numpy.average` does over the members, to the last float."""
    if not len(scores[0]):  # NumPy has no average of no rows
        return np.asarray(scores[0])
    plain = bool((weights == 1.0).all())
    return np.asarray(np.average(np.stack(scores), axis=0, weights=None if plain else weights))


# -- putting together ------------------------------------------------------------------------------------------------
def stack(parts: Iterable[Form]) -> Form:
    """Return the outputs of several forms as one form, as simple as it can be."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, Stack) else (part,))]
    linear = [p for p in flat if isinstance(p, Linear)]
    trees = [p for p in flat if isinstance(p, Trees)]
    if len(flat) == 1:
        return flat[0]
    if len(linear) == len(flat):
        weights, intercept = (
            np.concatenate(part) for part in zip(*((p.weights, p.intercept) for p in linear), strict=True)
        )
        return Linear(linear[0].schema, weights, intercept, _sums(linear, np.concatenate))
    if len(trees) == len(flat):
        place = np.split(np.eye(sum(p.n_outputs for p in trees)), np.cumsum([p.n_outputs for p in trees])[:-1])
        return _one_ensemble(trees, [block.T for block in place], np.hstack)
    return Stack(tuple(flat))


def combine(form: Form, weights: FloatArray, constant: FloatArray | None = None) -> Form:
    """Return ``weights @ s + constant`` of the scores of a form, as simple as it can be."""
    W = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    b = np.zeros(len(W)) if constant is None else np.asarray(constant, dtype=np.float64).reshape(-1)
    if isinstance(form, Linear):
        return Linear(form.schema, W @ form.weights, W @ form.intercept + b, _sums([form], lambda s: np.abs(W) @ s[0]))
    if isinstance(form, Trees):
        value, base = form.nodes.value @ W.T, W @ form.base + b
        add = form.addition or Addition(form.nodes.value, form.base)
        return Trees(
            form.schema, replace(form.nodes, value=value), base, _Combined(value, base, of=add, weights=W, constant=b)
        )
    if isinstance(form, Combination):
        return Combination(form.inner, W @ form.weights, W @ form.constant + b)
    return Combination(form, W, b)


def mean(parts: Sequence[Form], weights: FloatArray | None = None) -> Form:
    """Return the weighted mean of forms with the same outputs, as simple as it can be."""
    w = np.ones(len(parts)) if weights is None else np.asarray(weights, dtype=np.float64)
    linear = [p for p in parts if isinstance(p, Linear)]
    trees = [p for p in parts if isinstance(p, Trees)]
    if len(linear) == len(parts):
        W, b = (
            np.average(part, axis=0, weights=w)
            for part in zip(*((p.weights, p.intercept) for p in linear), strict=True)
        )
        sums = _sums(linear, lambda s: np.average(s, axis=0, weights=np.abs(w)))
        return Linear(linear[0].schema, W, b, sums)
    if len(trees) == len(parts):
        share = [s * np.eye(parts[0].n_outputs) for s in w / w.sum()]
        return _one_ensemble(trees, share, partial(_mean, weights=w))
    return Mean(Stack(tuple(parts)), w)


def _sums(linear: Sequence[Linear], put: Callable[[list[FloatArray]], FloatArray]) -> FloatArray | None:
    """Put together the sums that linear forms are made of, where any of them says what they are."""
    return put([p.terms for p in linear]) if any(p.sums is not None for p in linear) else None


@dataclass(frozen=True, eq=False)
class _Combined(Addition):
    """Scores ``weights @ s + constant`` of the scores that another addition gives."""

    of: Addition = field(kw_only=True)
    weights: FloatArray = field(kw_only=True)
    constant: FloatArray = field(kw_only=True)

    @property
    def precision(self) -> float:
        """The coarser one of the two units of rounding."""
        return max(super().precision, self.of.precision)

    def __call__(self, leaf: IntArray) -> FloatArray:
        """Return the scores of rows that fall into these leaves, shape (rows, trees)."""
        return np.asarray(self.of(leaf) @ self.weights.T + self.constant)


@dataclass(frozen=True, eq=False)
class _Gathered(Addition):
    """Scores of several ensembles, each by its own addition, put together by `gather`.

    Ensemble ``i`` has the trees from ``trees[i]`` to ``trees[i + 1]``, whose nodes begin at ``nodes[i]``.
    """

    adds: tuple[Addition, ...] = field(kw_only=True)
    trees: IntArray = field(kw_only=True)
    nodes: IntArray = field(kw_only=True)
    gather: Callable[[list[FloatArray]], FloatArray] = field(kw_only=True)

    @property
    def precision(self) -> float:
        """The coarsest one of all units of rounding."""
        return max(super().precision, *(add.precision for add in self.adds))

    def __call__(self, leaf: IntArray) -> FloatArray:
        """Return the scores of rows that fall into these leaves, shape (rows, trees)."""
        parts = [leaf[:, self.trees[i] : self.trees[i + 1]] - self.nodes[i] for i in range(len(self.adds))]
        return np.asarray(self.gather([add(part) for add, part in zip(self.adds, parts, strict=True)]))


def _one_ensemble(
    forms: Sequence[Trees], maps: Sequence[FloatArray], gather: Callable[[list[FloatArray]], FloatArray]
) -> Trees:
    """Return the trees of several ensembles as one, whose scores are ``sum_i maps[i] @ scores_i``.

    `gather` is the same sum as the ensemble computes it, to the last float.
    """
    nodes = [f.nodes for f in forms]
    first = np.cumsum([0, *(len(n.feature) for n in nodes)])
    first_mask = np.cumsum([0, *(len(n.masks) for n in nodes)])
    first_tree = np.cumsum([0, *(f.n_trees for f in forms)])
    width = max(n.masks.shape[1] for n in nodes)
    merged = Nodes(
        feature=np.concatenate([n.feature for n in nodes]),
        cut=np.concatenate([n.cut for n in nodes]),
        mask=np.concatenate([np.where(n.mask >= 0, n.mask + first_mask[i], -1) for i, n in enumerate(nodes)]),
        masks=np.concatenate([np.pad(n.masks, ((0, 0), (0, width - n.masks.shape[1]))) for n in nodes]),
        missing_left=np.concatenate([n.missing_left for n in nodes]),
        left=np.concatenate([n.left + first[i] for i, n in enumerate(nodes)]),
        right=np.concatenate([n.right + first[i] for i, n in enumerate(nodes)]),
        value=np.concatenate([n.value @ M.T for n, M in zip(nodes, maps, strict=True)]),
        roots=np.concatenate([n.roots + first[i] for i, n in enumerate(nodes)]),
    )
    base = np.asarray(sum(M @ f.base for f, M in zip(forms, maps, strict=True)))
    adds = tuple(f.addition or Addition(f.nodes.value, f.base) for f in forms)
    own = _Gathered(merged.value, base, adds=adds, trees=first_tree, nodes=first, gather=gather)
    return Trees(forms[0].schema, merged, base, own)


# -- bounds of scores ------------------------------------------------------------------------------------------------
def _dot(weights: FloatArray, bounds: FloatArray) -> FloatArray:
    """Return ``weights @ bounds``, where 0 times infinity is 0."""
    return np.asarray(np.where(weights == 0, 0.0, weights * np.where(weights == 0, 0.0, bounds)).sum(axis=1))


def score_bounds(form: Form, box: Box, budget: Budget | None = None) -> Bounds:
    """Return sound bounds of a form's scores over a box, and within a budget; infinite where nothing is known."""
    if isinstance(form, BoundsScores):
        lower, upper = form.score_bounds(box, budget)
        return np.asarray(lower), np.asarray(upper)
    if isinstance(form, Linear):
        block = Block(form.weights, form.intercept, np.ones(form.n_outputs))
        return preactivations((block,), box, budget)[0]
    if isinstance(form, Trees):
        values = form.nodes.value[form.leaves.node]
        low = np.minimum.reduceat(values, form.leaves.first, axis=0).sum(axis=0)
        high = np.maximum.reduceat(values, form.leaves.first, axis=0).sum(axis=0)
        return low + form.base, high + form.base
    return np.full(form.n_outputs, -np.inf), np.full(form.n_outputs, np.inf)


def magnitude(form: Form, box: Box, *, centred: bool = False) -> FloatArray:
    """Return how large the terms are that each score of a form is summed from in a box: rounding is a share of it.

    Centred, numbers count from the middle of the box: then it is the size of what is summed behind a scaler. A form that
    does not say so itself, such as a curve, is as large as its scores, and at least as the forms it is made of.
    """
    if isinstance(form, SumsTerms):
        return np.asarray(form.magnitude(box, centred=True) if centred else form.magnitude(box), dtype=np.float64)
    lower, upper = score_bounds(form, box)
    size = np.maximum(np.abs(lower), np.abs(upper))
    largest = max((float(magnitude(part, box, centred=centred).max()) for part in parts_of(form)), default=1.0)
    return np.where(np.isfinite(size), size, largest) + largest


def plateau(form: Form, box: Box, u: FloatArray) -> Box:
    """Return a part of a box around `u` on which a form without raw values is constant: leaves in common, or cells."""
    if isinstance(form, HasPlateaus):
        return form.plateau(box, u)
    part = box.copy()
    cuts = form.cuts()
    for j in sorted(form.features()):
        feature, values = box.schema.features[j], u[box.schema.slice(j)]
        if part.missing[j]:
            continue
        if not isinstance(feature, Numeric):
            part.keep_levels(j, values > 0.5)
            continue
        cells = Cells.of(feature, float(box.lower[j]), float(box.upper[j]), cuts.get(j, np.empty(0)))
        k = int(cells.index(values[0]))
        part.lower[j], part.upper[j] = cells.low[k], cells.high[k]
    return part


def refused(form: Form) -> tuple[FloatArray, ...]:
    """Return the points at which the curves inside a form were refined, the latest of each first."""
    if isinstance(form, Relaxed) and form.refused:
        return form.refused
    return next((points for points in map(refused, parts_of(form)) if points), ())


def for_budget(form: Form, box: Box, budget: Budget) -> Form:
    """Return the form with tighter bounds inside, which hold at all points of the box within the budget.

    The program it is embedded in must keep to that budget: beyond it, the scores would be wrong.
    """
    if not isinstance(form, Bounded):
        return form
    tighter: Form = form.for_budget(box, budget)
    return tighter
