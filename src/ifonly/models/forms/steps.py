"""Literals as further entries of the canonical vector: "x is at most this edge", "this feature is missing".

A column that a discretiser made of a numeric feature is constant between its bin edges, hence a constant plus a weight
per edge on "x is below it". A column that an imputer fills in is affine plus a weight on "x is missing". With these
literals appended to ``u`` such columns are affine again, so that linear models and networks are read over the longer
vector; in a program the literals are those of the feature's cells, or known beforehand, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Integer, Numeric, Schema
from ifonly.models.abilities import Layered, adds_exactly, spacing_of
from ifonly.models.form import Form
from ifonly.models.forms.additive import Axis, Table, additive
from ifonly.models.forms.compose import combine, for_budget, magnitude, score_bounds, stack
from ifonly.models.forms.curves import Curve
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.nearest import Nearest
from ifonly.models.forms.network import Network
from ifonly.models.forms.polynomials import Polynomials
from ifonly.models.forms.propagate import Block, Bounds, Budget
from ifonly.models.forms.trees import Trees
from ifonly.models.read import Read
from ifonly.models.reading.on_grids import on_grids
from ifonly.models.reading.source import Column, Source
from ifonly.models.reading.sparse_row import SparseRow, transposed
from ifonly.program.box import Box
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip
from ifonly.program.variables import Variables

__all__ = ["Lift", "Stepped", "Units", "linear_form"]


@dataclass(frozen=True, eq=False)
class Lift:
    """The literals that are appended to the canonical vector.

    Attributes
    ----------
    schema
        The features.
    feature, cut
        ``[x_feature[i] <= cut[i]]``, which is 0 for a missing value.
    absent
        ``[feature absent[i] is missing]``.
    filled
        Per column of the source: what it holds more when one of `absent` is missing.
    """

    schema: Schema
    feature: IntArray
    cut: FloatArray
    absent: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    filled: tuple[SparseRow, ...] = ()

    @classmethod
    def of(cls, source: Source) -> Lift:
        """Return the literals that the columns of a source need."""
        keys = sorted({key for c in source.columns for key in c.steps})
        feature = np.array([j for j, _ in keys], dtype=np.int64)
        filled = source.filled()
        absent = np.array(sorted(j for j, more in filled.items() if more.any()), dtype=np.int64)
        table = transposed([filled[int(j)] for j in absent], len(source.columns)) if absent.size else ()
        return cls(source.schema, feature, np.array([cut for _, cut in keys], dtype=np.float64), absent, table)

    @classmethod
    def none(cls, schema: Schema) -> Lift:
        """Return no literals."""
        return cls(schema, np.empty(0, dtype=np.int64), np.empty(0))

    @property
    def size(self) -> int:
        """Number of literals."""
        return len(self.cut) + len(self.absent)

    @property
    def longer(self) -> Schema:
        """The features, and one of value 0 or 1 per literal."""
        steps = [Integer(f"step {i}", 0.0, 1.0) for i in range(len(self.cut))]
        flags = [Integer(f"missing {self.schema.names[j]}", 0.0, 1.0) for j in self.absent]
        return Schema((*self.schema.features, *steps, *flags))

    def source(self, source: Source) -> Source:
        """Return the source over the longer vector: its columns are affine where they were stepped or filled in."""
        if not self.size:
            return source
        keys = list(zip(self.feature.tolist(), self.cut.tolist(), strict=True))
        table = self.filled or (SparseRow.of(np.empty(0)),) * len(source.columns)

        def lifted(c: Column, filled: SparseRow) -> Column:
            if c.weights is None:
                return c
            weights = c.weights if isinstance(c.weights, SparseRow) else SparseRow.of(c.weights)
            own = SparseRow.of(np.array([c.steps.get(key, 0.0) for key in keys]))
            return replace(c, weights=weights.longer(own, filled), steps={})

        return replace(
            source,
            schema=self.longer,
            columns=tuple(lifted(c, more) for c, more in zip(source.columns, table, strict=True)),
            evaluate=lambda V: source.evaluate(V[:, : self.schema.width]),
            base=self.rows(source.base[None, :])[0],
        )

    def around(self, form: Form) -> Form:
        """Return a form of the longer vector as one of the canonical vector."""
        return Stepped(form, self) if self.size else form

    def read(self, read: Read, source: Source) -> Read:
        """Return what was read over the longer vector, of a source whose gaps are filled in, over the canonical one."""
        return replace(read, form=self.around(read.form), accepts_missing=source.may_miss(False))

    def rows(self, U: FloatArray) -> FloatArray:
        """Return canonical rows with their literals."""
        x = U[:, np.asarray(self.schema.starts)[self.feature]]
        flags = np.zeros((len(U), len(self.absent)))
        for i, j in enumerate(self.absent):
            part = U[:, self.schema.slice(int(j))]
            flags[:, i] = np.isnan(part[:, 0]) if self._is_number(int(j)) else ~part.any(axis=1)
        return np.hstack([U, (x <= self.cut).astype(np.float64), flags])

    def _is_number(self, j: int) -> bool:
        return isinstance(self.schema.features[j], Numeric)

    def box(self, box: Box) -> Box:
        """Return the box of the longer vector, in which it is known what is missing."""
        low, high = box.lower[self.feature], box.upper[self.feature]
        flags = box.missing[self.absent].astype(np.float64)
        return Box(
            self.longer,
            np.concatenate([box.lower, (high <= self.cut).astype(np.float64), flags]),
            np.concatenate([box.upper, (low <= self.cut).astype(np.float64), flags]),
            np.concatenate([box.allowed, np.ones(self.size, dtype=np.bool_)]),
            np.concatenate([box.missing, box.missing[self.feature], np.zeros(len(flags), dtype=np.bool_)]),
        )

    def budget(self, budget: Budget) -> Budget:
        """Return the budget of the longer vector, in which literals change for nothing."""
        none = np.zeros(self.size)
        return replace(
            budget,
            factual=self.rows(budget.factual[None, :])[0],
            rate=np.concatenate([budget.rate, none]),
            fixed=None if budget.fixed is None else np.concatenate([budget.fixed, none]),
        )


class _Longer(Variables):
    """The variables of the longer vector: the raw value of a literal's feature is the literal."""

    def __init__(self, mip: Mip, x: Inputs, lift: Lift) -> None:
        box = lift.box(x.box)
        super().__init__(mip, box, np.full(box.schema.width, np.nan), {}, ())  # a form asks for no factual
        self._short, self._lift = x, lift

    def raw(self, j: int) -> Affine:
        """Return the raw value of a numeric feature, or a literal."""
        i = j - len(self._lift.schema)
        if i < 0:
            return self._short.raw(j)
        if i < len(self._lift.cut):
            return self._short.at_most(int(self._lift.feature[i]), float(self._lift.cut[i]))
        return Affine(constant=float(self.box.lower[j]))

    def level_table(self, j: int, values: FloatArray) -> Affine:
        """Return the table of a categorical feature."""
        return self._short.level_table(j, values)


@dataclass(frozen=True, eq=False)
class Units:
    """Scores of a network, ``weights @ h + constant``, over the canonical vector, cells and its units."""

    blocks: tuple[Block, ...]
    weights: FloatArray
    constant: FloatArray

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return len(self.constant)


@dataclass(frozen=True, eq=False)
class Stepped:
    """A form of the longer vector, as a form of the canonical one."""

    inner: Form
    lift: Lift

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return self.inner.n_outputs

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores of canonical rows."""
        return self.inner(self.lift.rows(U))

    @property
    def adds_exactly(self) -> bool:
        """Whether the scores are whole numbers of votes, divided by their number."""
        return adds_exactly(self.inner)

    @property
    def spacing(self) -> float:
        """The least difference of two scores, where they add exactly."""
        return spacing_of(self.inner)

    def inside(self) -> tuple[Form, ...]:
        """Return the form of the longer vector."""
        return (self.inner,)

    def cuts(self) -> Mapping[int, FloatArray]:
        """Return the bin edges per numeric feature."""
        return {int(j): np.unique(self.lift.cut[self.lift.feature == j]) for j in np.unique(self.lift.feature)}

    def raw(self) -> frozenset[int]:
        """Return the numeric features whose raw value enters beside their steps."""
        return frozenset(j for j in self.inner.raw() if j < len(self.lift.schema))

    def features(self) -> frozenset[int]:
        """Return the features that enter by value, level or step; what is missing stays so."""
        n = len(self.lift.schema)
        entries = [j for j in self.inner.features() if j < n + len(self.lift.cut)]
        return frozenset(j if j < n else int(self.lift.feature[j - n]) for j in entries)

    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Embed the inner form over raw values, levels and literals."""
        return self.inner.embed(mip, _Longer(mip, x, self.lift))

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return bounds of the scores over a box, and within a budget."""
        return score_bounds(self.inner, self.lift.box(box), None if budget is None else self.lift.budget(budget))

    def magnitude(self, box: Box, *, centred: bool = False) -> FloatArray:
        """Return the magnitudes of the inner form over the longer vector."""
        return magnitude(self.inner, self.lift.box(box), centred=centred)

    def for_budget(self, box: Box, budget: Budget) -> Stepped:
        """Return the form with bounds that hold within the budget."""
        inner = for_budget(self.inner, self.lift.box(box), self.lift.budget(budget))
        return self if inner is self.inner else replace(self, inner=inner)

    def refined(self, u: FloatArray) -> Stepped | None:
        """Refine the inner form."""
        inner = self.inner.refined(self.lift.rows(u[None, :])[0])
        return None if inner is None else replace(self, inner=inner)

    def over_cells(self, start: FloatArray, owner: IntArray, value: FloatArray) -> Units | None:
        """Return the scores over the canonical vector and the cells of some numbers, where they are those of a network."""
        inner, lift = self.inner, self.lift
        if not isinstance(inner, Layered):
            return None
        width = lift.schema.width
        own = np.isin(lift.feature, owner)
        fixed = lift.rows(start[None])[0, width:]
        fixed[: len(own)][own] = 0.0
        table = np.zeros((lift.size, len(owner)))
        table[: len(own)] = (lift.feature[:, None] == owner) & (value <= lift.cut[:, None])

        def carried(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
            on, steps, units = np.split(weights, [width, width + lift.size], axis=1)
            return np.concatenate([on, steps @ table, units], axis=1), steps @ fixed

        blocks = []
        for block in inner.blocks:
            weights, shift = carried(block.weights)
            blocks.append(replace(block, weights=weights, constant=block.constant + shift))
        weights, shift = carried(inner.weights)
        return Units(tuple(blocks), weights, inner.constant + shift)

    def complete(self) -> Form:
        """Return the same function of rows without a missing value, over the canonical vector if there is no step."""
        schema, inner = self.lift.schema, self.inner
        if len(self.lift.cut):
            return self
        flags = np.arange(schema.width, self.lift.longer.width)
        if isinstance(inner, Linear):
            sums = None if inner.sums is None else np.delete(inner.sums, flags, axis=1)
            return Linear(schema, np.delete(inner.weights, flags, axis=1), inner.intercept, sums)
        if isinstance(inner, Network):
            blocks = tuple(replace(b, weights=np.delete(b.weights, flags, axis=1)) for b in inner.blocks)
            return replace(inner, schema=schema, blocks=blocks, weights=np.delete(inner.weights, flags, axis=1))
        if isinstance(inner, Nearest):
            scores = Linear(schema, np.delete(inner.inner.weights, flags, axis=1), inner.inner.intercept)
            return replace(inner, inner=scores)
        return self


def linear_form(source: Source, coefficients: npt.ArrayLike, intercept: npt.ArrayLike, who: str) -> Form:
    """Return the form of ``z @ C' + b0`` over the columns of a source, binned and filled-in ones included.

    Where every number enters by its cells alone, that is a sum of tables, one per feature, hence of trees of one feature
    each: the search needs no solver for those.
    """
    if any(c.curve is not None and c.weights is None for c in source.columns):
        return _curved(source, np.atleast_2d(np.asarray(coefficients, dtype=np.float64)), intercept, who)
    source = on_grids(source)
    lift = Lift.of(source)
    longer = lift.source(source)
    linear = Linear(longer.schema, *longer.linear(coefficients, intercept, who))
    numbers = [source.schema.starts[j] for j, f in enumerate(source.schema.features) if isinstance(f, Numeric)]
    if len(lift.cut) and not linear.weights[:, numbers].any():
        return _tables(lift, linear)
    return lift.around(linear)


def _tables(lift: Lift, linear: Linear) -> Trees:
    """Return a linear form of levels and literals as one tree per feature."""
    schema, weights = lift.schema, linear.weights
    steps, flags = np.split(weights[:, schema.width :], [len(lift.cut)], axis=1)
    tables = []
    for j, feature in enumerate(schema.features):
        missing = flags[:, lift.absent == j].sum(axis=1)[None, :]
        if not isinstance(feature, Numeric):
            tables.append(Table((Axis(j, np.empty(0)),), np.vstack([weights[:, schema.slice(j)].T, missing])))
            continue
        own = np.flatnonzero(lift.feature == j)
        order = own[np.argsort(lift.cut[own])]
        # x in cell k is at most every cut from k on.
        values = np.cumsum(steps[:, order[::-1]], axis=1).T[::-1]
        tables.append(Table((Axis(j, lift.cut[order]),), np.vstack([values, np.zeros_like(missing), missing])))
    return additive(schema, tables, linear.intercept)


def _curved(source: Source, C: FloatArray, intercept: npt.ArrayLike, who: str) -> Form:
    """Return a linear model over splines: per spline one curve of its column, and what is linear beside them."""
    groups: dict[int, list[int]] = {}
    for k, c in enumerate(source.columns):
        if c.curve is not None:
            groups.setdefault(id(c.curve[0]), []).append(k)
    zero = np.zeros(source.schema.width)
    flat = tuple(
        c if c.curve is None else replace(c, weights=zero, constant=0.0, monotone=True) for c in source.columns
    )
    parts = [linear_form(replace(source, columns=flat), C, intercept, who)]
    for places in groups.values():
        splines = [source.columns[k].curve for k in places]
        inner = splines[0][0] if splines[0] is not None else source.columns[0]
        bends = tuple(Polynomials.combined([s[1] for s in splines if s is not None], row[places]) for row in C)
        assert inner.weights is not None
        along = Linear(source.schema, np.tile(inner.weights, (len(C), 1)), np.full(len(C), inner.constant))
        parts.append(Curve(along, bends))
    return combine(stack(parts), np.hstack([np.eye(len(C))] * len(parts)))
