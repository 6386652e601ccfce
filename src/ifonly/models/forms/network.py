"""The network form: affine maps, (leaky) rectifiers and residual sums over the canonical vector.

A unit ``s = w @ h + c`` whose sign the box does not decide is split as ``s = p - n`` with

    0 <= p <= U a,    0 <= n <= -L (1 - a),    a in {0, 1},    rho(s) = p - slope * n,

where ``L <= s <= U`` are propagated bounds (Fischetti and Jo 2018; Tjeng et al. 2019). All other units are folded into
the rows that use them, so only undecided units cost a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric, Schema
from ifonly.models.forms.propagate import Block, Bounds, Budget, preactivations
from ifonly.program.box import Box
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip
from ifonly.tolerances import NOISE, SURELY_OFF

__all__ = ["Block", "Bounds", "Budget", "Graph", "Network", "Signal"]


@dataclass(frozen=True, eq=False)
class Signal:
    """A vector inside a network under construction: ``weights @ h + constant`` with ``h = (u, units so far)``."""

    weights: FloatArray
    constant: FloatArray

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.constant)

    def affine(self, matrix: npt.ArrayLike, shift: npt.ArrayLike = 0.0) -> Signal:
        """Return ``matrix @ signal + shift``."""
        M = np.asarray(matrix, dtype=np.float64)
        return Signal(M @ self.weights, M @ self.constant + np.asarray(shift, dtype=np.float64).reshape(-1))

    def scaled(self, factor: npt.ArrayLike, shift: npt.ArrayLike = 0.0) -> Signal:
        """Return ``factor * signal + shift``, entry by entry."""
        f = np.broadcast_to(np.asarray(factor, dtype=np.float64).reshape(-1), (self.size,))
        return Signal(f[:, None] * self.weights, f * self.constant + np.asarray(shift, np.float64).reshape(-1))

    def __add__(self, other: Signal) -> Signal:
        width = max(self.weights.shape[1], other.weights.shape[1])
        return Signal(_wide(self.weights, width) + _wide(other.weights, width), self.constant + other.constant)

    def pick(self, entries: npt.ArrayLike) -> Signal:
        """Return some of the entries."""
        chosen = np.asarray(entries, dtype=np.int64)
        return Signal(self.weights[chosen], self.constant[chosen])

    @staticmethod
    def stack(parts: Sequence[Signal]) -> Signal:
        """Return signals one below the other."""
        width = max(p.weights.shape[1] for p in parts)
        weights = np.concatenate([_wide(p.weights, width) for p in parts])
        return Signal(weights, np.concatenate([p.constant for p in parts]))


def _wide(weights: FloatArray, width: int) -> FloatArray:
    return np.pad(weights, ((0, 0), (0, width - weights.shape[1])))


class Graph:
    """Builds a `Network` step by step; affine maps and sums are composed on the way, so only rectifiers remain.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> graph = Graph(Schema.infer(pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 1.0]})))
    >>> z = graph.input(np.eye(2), np.zeros(2))
    >>> hidden = graph.rectify(z.affine([[1.0, -1.0]], [0.0]))
    >>> network = graph.network(hidden.affine([[2.0]], [1.0]))
    >>> network(np.array([[1.0, 0.25], [0.0, 1.0]]))
    array([[2.5],
           [1. ]])
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._blocks: list[Block] = []
        self._width = schema.width

    def input(self, A: FloatArray, b: FloatArray) -> Signal:
        """Return ``A u + b``, what the network receives."""
        return Signal(np.asarray(A, dtype=np.float64), np.asarray(b, dtype=np.float64))

    def rectify(self, signal: Signal, slope: npt.ArrayLike = 0.0) -> Signal:
        """Return ``max(s, 0) + slope * min(s, 0)``, entry by entry."""
        per_unit = np.broadcast_to(np.asarray(slope, dtype=np.float64).reshape(-1), (signal.size,)).copy()
        self._blocks.append(Block(_wide(signal.weights, self._width), signal.constant, per_unit))
        first, self._width = self._width, self._width + signal.size
        return Signal(np.eye(signal.size, self._width, k=first), np.zeros(signal.size))

    def network(self, scores: Signal) -> Network:
        """Return the network with these scores."""
        return Network(self.schema, tuple(self._blocks), _wide(scores.weights, self._width), scores.constant)


@dataclass(frozen=True, eq=False)
class Network:
    """``scores = weights @ h + constant`` where ``h`` is ``u`` followed by the units of every block.

    Attributes
    ----------
    schema
        The features.
    blocks
        The rectified units, in an order in which each block needs only earlier ones.
    weights, constant
        The scores.
    bounds
        Bounds of each block's pre-activations that hold wherever this network is embedded; see `with_bounds`.
    """

    schema: Schema
    blocks: tuple[Block, ...]
    weights: FloatArray
    constant: FloatArray
    bounds: tuple[Bounds, ...] = ()

    @property
    def n_outputs(self) -> int:
        """Number of scores."""
        return len(self.constant)

    def __call__(self, U: FloatArray) -> FloatArray:
        """Return the scores; a missing numeric value counts as 0."""
        width = self.schema.width
        H = np.empty((len(U), self.weights.shape[1]))
        H[:, :width] = np.nan_to_num(U)
        for block in self.blocks:
            first = block.weights.shape[1]
            S = H[:, :first] @ block.weights.T + block.constant
            H[:, first : first + len(block.constant)] = block.activate(S)
        return np.asarray(H @ self.weights.T + self.constant)

    def cuts(self) -> Mapping[int, FloatArray]:
        """A network has no thresholds."""
        return {}

    def raw(self) -> frozenset[int]:
        """Return the numeric features that reach a score."""
        return frozenset(j for j in self.features() if isinstance(self.schema.features[j], Numeric))

    def features(self) -> frozenset[int]:
        """Return the features that reach a score."""
        influence, width = self._influence(), self.schema.width
        rows = [self.weights[:, :width]]
        for block in self.blocks:
            first = block.weights.shape[1]
            live = influence[first : first + len(block.constant)] > 0
            rows.append(block.weights[live, :width])
        stacked = np.concatenate(rows)
        moving = set()
        for j, feature in enumerate(self.schema.features):
            part = stacked[:, self.schema.slice(j)]
            if part.any() and (isinstance(feature, Numeric) or bool((part != part[:, :1]).any())):
                moving.add(j)
        return frozenset(moving)

    def refined(self, u: FloatArray) -> None:
        """A network is exact, up to the rounding of its framework."""

    # -- bounds -------------------------------------------------------------------------------------------------
    def preactivations(self, box: Box, budget: Budget | None = None) -> list[Bounds]:
        """Return sound (lower, upper) of every block's pre-activations over the box, and within the budget."""
        return preactivations(self.blocks, box, budget, self.bounds)

    def with_bounds(self, bounds: Sequence[Bounds]) -> Network:
        """Return the same network with tighter pre-activation bounds to embed with, first block first.

        The bounds need only hold at the points that the program can reach. Bounds that rest on a cost budget ask for
        a program that has that budget as a row: beyond it, the scores would be wrong.
        """
        return replace(self, bounds=tuple(bounds))

    def score_bounds(self, box: Box, budget: Budget | None = None) -> Bounds:
        """Return sound (lower, upper) of the scores over the box, and within the budget."""
        last = Block(self.weights, self.constant, np.ones(self.n_outputs))
        return preactivations((*self.blocks, last), box, budget, self.bounds)[-1]

    def for_budget(self, box: Box, budget: Budget) -> Network:
        """Return the network with unit bounds that hold within the budget."""
        return self.with_bounds(self.preactivations(box, budget))

    # -- the program --------------------------------------------------------------------------------------------
    def embed(self, mip: Mip, x: Inputs) -> list[Affine]:
        """Add the undecided units to the program and return the scores as expressions."""
        writer = _Writer(mip, x, self._influence(), self._noise(x.box))
        for block, (lower, upper) in zip(self.blocks, self.preactivations(x.box), strict=True):
            writer.add(block, lower, upper)
        sums = writer.sums(self.weights, self.constant)
        return [writer.expression(sums, k) for k in range(self.n_outputs)]

    def _influence(self) -> FloatArray:
        """Return, per entry of ``h``, by how much the scores can change when it changes by one."""
        influence = np.abs(self.weights).sum(axis=0)
        for block in reversed(self.blocks):
            first = block.weights.shape[1]
            onward = influence[first : first + len(block.constant)] * np.maximum(1.0, np.abs(block.slope))
            influence[:first] += onward @ np.abs(block.weights)
        return np.asarray(influence)

    def magnitude(self, box: Box, *, centred: bool = False) -> FloatArray:
        """Return the largest sum of absolute terms that each score is made of in a box, through all layers.

        Centred, the columns are counted from the middle of the box, as behind a scaler. A unit that is below zero by more
        than rounding everywhere in the box passes on its slope's share only, a ReLU nothing.
        """
        origin = box.middle() * centred
        n, size = len(origin), box.reach() - np.abs(origin)
        for block, (_, most) in zip(self.blocks, preactivations(self.blocks, box), strict=True):
            total = np.abs(block.weights) @ size + np.abs(block.weights[:, :n] @ origin + block.constant)
            off = most < -SURELY_OFF * total
            size = np.concatenate([size, total * np.maximum(~off, np.abs(block.slope))])
        return np.asarray(np.abs(self.weights) @ size + np.abs(self.weights[:, :n] @ origin + self.constant))

    def _noise(self, box: Box) -> float:
        return float(NOISE * self.magnitude(box).max())


@dataclass(frozen=True, eq=False)
class _Sums:
    """Rows ``on_u @ u + on_v @ v + constant`` over the canonical vector and the columns added for units."""

    on_u: FloatArray
    on_v: FloatArray
    constant: FloatArray


class _Writer:
    """Writes blocks into a program, and keeps every entry of ``h`` as a row over ``u`` and the new columns."""

    def __init__(self, mip: Mip, x: Inputs, influence: FloatArray, noise: float) -> None:
        self.mip, self.x = mip, x
        self._influence, self._noise = influence, noise
        width = x.schema.width
        self._written = 0
        self._columns: IntArray = np.empty(0, dtype=np.int64)
        self._h = _Sums(np.eye(width), np.zeros((width, 0)), np.zeros(width))

    def sums(self, weights: FloatArray, constant: FloatArray) -> _Sums:
        """Return ``weights @ h + constant``."""
        h = self._h
        return _Sums(weights @ h.on_u, weights @ h.on_v, weights @ h.constant + constant)

    def expression(self, sums: _Sums, i: int) -> Affine:
        """Return one row as an expression of the program."""
        used = np.flatnonzero(sums.on_v[i])
        own = Affine(self._columns[used], sums.on_v[i, used])
        return self.x.affine(sums.on_u[i], float(sums.constant[i])) + own

    def undecided(self, block: Block, lower: FloatArray, upper: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which units need a binary: their sign is open, and folding them would move the scores."""
        first = block.weights.shape[1]
        influence = self._influence[first : first + len(lower)]
        error = np.abs(1.0 - block.slope) * np.maximum(np.minimum(upper, -lower), 0.0)
        return np.asarray(error * influence > self._noise)

    def add(self, block: Block, lower: FloatArray, upper: FloatArray) -> None:
        """Add one block, given bounds of its pre-activations."""
        sums = self.sums(block.weights, block.constant)
        split = self.undecided(block, lower, upper)
        factor = np.where(upper > -lower, 1.0, block.slope) * ~split
        units = np.flatnonzero(split)
        p, n = self._split(sums, units, lower[units], upper[units])
        h, old = self._h, len(self._columns)
        self._columns = np.concatenate([self._columns, p, n])
        on_v = np.zeros((len(lower), len(self._columns)))
        on_v[:, :old] = factor[:, None] * sums.on_v
        on_v[units, old + np.arange(len(units))] = 1.0
        on_v[units, old + len(units) + np.arange(len(units))] = -block.slope[units]
        self._h = _Sums(
            np.concatenate([h.on_u, factor[:, None] * sums.on_u]),
            np.concatenate([_wide(h.on_v, len(self._columns)), on_v]),
            np.concatenate([h.constant, factor * sums.constant]),
        )

    def _split(self, sums: _Sums, units: IntArray, lower: FloatArray, upper: FloatArray) -> tuple[IntArray, IntArray]:
        """Add ``s = p - n`` with only one of the two above 0, for the undecided units of a block."""
        k = len(units)
        self._written += 1
        name = f"relu{self._written}"
        p = self.mip.columns(k, 0.0, upper, name=f"{name}_above")
        n = self.mip.columns(k, 0.0, -lower, name=f"{name}_below")
        on = self.mip.columns(k, 0.0, 1.0, integer=True, name=f"{name}_on")
        for i, unit in enumerate(units):
            halves = Affine(np.array([p[i], n[i]]), np.array([-1.0, 1.0]))
            # s = p - n, its positive and negative parts
            self.mip.row(self.expression(sums, int(unit)) + halves, 0.0, 0.0)
        each = np.tile(np.arange(k, dtype=np.int64), 2)
        one = np.ones(k)
        # p <= upper * on: 0 where the unit is off
        self.mip.rows(each, np.concatenate([p, on]), np.concatenate([one, -upper]), -np.inf, 0.0, k)
        # n <= -lower * (1 - on): 0 where the unit is on
        self.mip.rows(each, np.concatenate([n, on]), np.concatenate([one, -lower]), -np.inf, -lower, k)
        return p, n
