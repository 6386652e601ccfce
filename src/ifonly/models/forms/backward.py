"""Linear bounds of a network over many boxes at once, by backward substitution, for branch and bound over boxes.

In each box the rectifiers are enclosed between two lines (`ifonly.models.forms.propagate`), and the lines are substituted
backwards until rows ``scores >= 0`` are bounded from above by linear functions of the inputs alone (Zhang et al. 2018; Singh
et al. 2019):

    row(x) <= slope @ x + constant   for all x of the box that the budget leaves.

All arrays have the boxes as their first axis, so one matrix product serves all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.forms.propagate import Block, Bounds, enclosing_lines
from ifonly.tolerances import ROUNDING, TERMS_OF_ROUNDING, TINY

__all__ = ["Boxes", "EnclosedRows", "Layers", "Planes"]


class Boxes(Protocol):
    """Many boxes of inputs."""

    def __len__(self) -> int:
        """Return how many."""
        ...

    def largest(self, slopes: FloatArray) -> FloatArray:
        """Return upper bounds of ``slopes[i, k] @ x`` in box ``i``; one set of slopes, ``slopes[0]``, may serve all."""
        ...

    def largest_of(self, slopes: FloatArray, which: IntArray) -> FloatArray:
        """Return upper bounds of ``slopes[m] @ x`` in box ``which[m]``."""
        ...

    def roughly(self, slopes: FloatArray) -> FloatArray:
        """Return the same as `largest` in less time, budgets aside."""
        ...

    def extent(self, slopes: FloatArray) -> FloatArray:
        """Return how much each feature can change ``slopes[i, k] @ x`` in box ``i``, budgets aside."""
        ...


@dataclass(frozen=True, eq=False)
class Planes:
    """Upper bounds of rows in many boxes: ``slopes[i, r] @ x + constant[i, r]``, and where they are loose.

    Attributes
    ----------
    looseness
        Per box, row and feature: how much of the bound's looseness would go if the feature were fixed, as an estimate.
    """

    slopes: FloatArray
    constant: FloatArray
    looseness: FloatArray


@dataclass(frozen=True, eq=False)
class Layers:
    """Rows ``rows @ h + constant`` of a network, where ``h`` is the free inputs followed by the units of every block.

    Attributes
    ----------
    blocks
        The units, over the free inputs, first block first.
    room
        Per block, and for the rows at the end: how far a computed bound may be off by rounding.
    """

    blocks: tuple[Block, ...]
    rows: FloatArray
    constant: FloatArray
    room: tuple[FloatArray, ...]

    @classmethod
    def of(
        cls,
        blocks: Sequence[Block],
        rows: tuple[FloatArray, FloatArray],
        free: IntArray,
        origin: FloatArray,
        size: FloatArray,
    ) -> Layers:
        """Return the rows as functions of the `free` inputs, counted from an `origin` that has the values of the others.

        `size` bounds the absolute value of each input, from which the rounding of every sum follows.
        """
        n, room = len(origin), []
        own: list[Block] = []
        for weights, constants, slope in [*((b.weights, b.constant, b.slope) for b in blocks), (*rows, None)]:
            total = np.abs(weights) @ size + np.abs(constants)
            # sums of as many terms as there are inputs and units, several times over: lines, substitution, extremes
            room.append(ROUNDING * max(1.0, len(size) / TERMS_OF_ROUNDING) * total)
            shifted = constants + weights[:, :n] @ origin
            kept = np.concatenate([weights[:, free], weights[:, n:]], axis=1)
            if slope is None:
                return cls(tuple(own), kept, shifted, tuple(room))
            own.append(Block(kept, shifted, slope))
            size = np.concatenate([size, total * np.maximum(1.0, np.abs(slope))])
        raise AssertionError("the rows come last")

    @property
    def n_units(self) -> int:
        """Number of units."""
        return sum(len(block.constant) for block in self.blocks)

    @property
    def straight(self) -> Layers | None:
        """The rows, which are linear in the units."""
        return self

    @property
    def off_by(self) -> FloatArray:
        """Per row: how far it may be off."""
        return self.room[-1]

    @property
    def work(self) -> int:
        """Multiplications for the bounds of one box."""
        total, units = 0, 0
        for block in self.blocks:
            width = block.weights.shape[1]
            # each unit is substituted through all earlier ones, for an upper and for a lower bound
            total += 2 * len(block.constant) * (units + 1) * width
            units += len(block.constant)
        return total

    def planes(self, boxes: Boxes) -> Planes:
        """Return upper bounds of the rows that hold in each of the boxes."""
        return self.enclosed(boxes).planes()

    def enclosed(self, boxes: Boxes) -> EnclosedRows:
        """Return the rows with every unit between two lines that hold in each of the boxes."""
        lines: list[tuple[Bounds, Bounds]] = []
        spans: list[tuple[FloatArray, FloatArray]] = []  # per unit: the height of its lines, the extent of its inputs
        for block, room in zip(self.blocks, self.room, strict=False):
            before = self.blocks[: len(lines)]
            above = _substituted(block.weights[None], (block.constant + room)[None], before, lines)
            below = _substituted(-block.weights[None], (-block.constant + room)[None], before, lines)
            lower, upper = _ends(boxes, below, above)
            lines.append(enclosing_lines(block.slope, lower, upper))
            spans.append((_height(block.slope, lower, upper), boxes.extent(above[0])))
        return EnclosedRows(self, boxes, tuple(lines), tuple(spans))

    def tangents(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes and constants of the linear pieces that the rows are around points, a point per box."""
        h = x
        lines: list[tuple[Bounds, Bounds]] = []
        for block in self.blocks:
            s = h @ block.weights.T + block.constant
            piece = np.where(s > 0.0, 1.0, block.slope), np.zeros_like(s)
            lines.append((piece, piece))
            h = np.concatenate([h, block.activate(s)], axis=1)
        slopes, constant = _substituted(self.rows[None], self.constant[None], self.blocks, lines)
        # without layers there is one piece, the same around all points
        return np.broadcast_to(slopes, (len(x), *slopes.shape[1:])), np.broadcast_to(constant, (len(x), len(self.rows)))


@dataclass(frozen=True, eq=False)
class EnclosedRows:
    """Rows over many boxes, with every unit between two lines.

    With the lines above fixed and all that are possible below, the bounds of rows with one layer are concave functions of
    the inputs; `planes` and `planes_at` are planes above them, the latter ones touching them at given points.

    Attributes
    ----------
    lines
        Per block: slopes and constants of the lines below and above its units.
    spans
        Per block: the heights between the lines, and the extents of the units' inputs.
    """

    layers: Layers
    boxes: Boxes
    lines: tuple[tuple[Bounds, Bounds], ...]
    spans: tuple[tuple[FloatArray, FloatArray], ...]

    def planes(self) -> Planes:
        """Return upper bounds of the rows that hold in each of the boxes."""
        return self._planes(self.lines)

    def planes_at(self, x: FloatArray) -> Planes:
        """Return the same with those lines below the units that are higher at a point of each box.

        Where a rectifier bends upwards, it lies above both of its pieces.
        """
        h, lines = x, []
        for block, (under, over), (height, _) in zip(self.layers.blocks, self.lines, self.spans, strict=True):
            s = h @ block.weights.T + block.constant
            bends = (height > 0.0) & (block.slope < 1.0)
            slope = np.where(bends, np.where(s > 0.0, 1.0, block.slope), under[0])
            lines.append(((slope, np.where(bends, 0.0, under[1])), over))
            h = np.concatenate([h, block.activate(s)], axis=1)
        return self._planes(lines)

    def above(self, weights: FloatArray, constant: FloatArray) -> Planes:
        """Return upper bounds of ``weights[i] @ rows + constant[i]``, sums of rows that differ from box to box.

        They are off by no more than the sums of what the rows are off by.
        """
        layers = self.layers
        own = constant + weights @ layers.constant + np.abs(weights) @ layers.room[-1]
        return self._planes(self.lines, weights @ layers.rows, own)

    def _planes(
        self,
        lines: Sequence[tuple[Bounds, Bounds]],
        weights: FloatArray | None = None,
        constant: FloatArray | None = None,
    ) -> Planes:
        layers, taken = self.layers, list[FloatArray]()
        if weights is None or constant is None:
            weights, constant = layers.rows[None], (layers.constant + layers.room[-1])[None]
        slopes, constant = _substituted(weights, constant, layers.blocks, lines, taken)
        n = len(self.boxes)
        slopes, constant = (np.broadcast_to(a, (n, *a.shape[1:])) for a in (slopes, constant))
        return Planes(slopes, constant, _looseness(self.boxes.extent(slopes), taken[::-1], self.spans))


def _ends(
    boxes: Boxes, below: tuple[FloatArray, FloatArray], above: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest values of units: budgets count only where a sign is not decided without them."""
    ends = [boxes.roughly(slopes) + constant for slopes, constant in (below, above)]
    box, unit = np.nonzero((ends[0] > 0.0) & (ends[1] > 0.0))
    for end, (slopes, constant) in zip(ends, (below, above), strict=True):
        one = (box if len(slopes) > 1 else np.zeros_like(box)), unit
        both = boxes.largest_of(slopes[one], box) + constant[(box if len(constant) > 1 else np.zeros_like(box)), unit]
        end[box, unit] = np.minimum(end[box, unit], both)
    return -ends[0], ends[1]


def _substituted(
    weights: FloatArray,
    constant: FloatArray,
    blocks: Sequence[Block],
    lines: Sequence[tuple[Bounds, Bounds]],
    taken: list[FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return slopes and constants of upper bounds of ``weights @ h + constant`` over the inputs, box by box.

    Weights and constants are those of a box each, or one of each for all boxes.

    The coefficients with which the units of each block entered are appended to `taken`, last block first.
    """
    slopes, total = weights, constant
    for block, (under, over) in zip(reversed(blocks), reversed(lines), strict=True):
        width = block.weights.shape[1]
        on_units, slopes = slopes[:, :, width:], slopes[:, :, :width]
        if taken is not None:
            taken.append(on_units)
        positive, negative = np.maximum(on_units, 0.0), np.minimum(on_units, 0.0)
        factor = positive * over[0][:, None] + negative * under[0][:, None]
        offset = positive @ over[1][:, :, None] + negative @ under[1][:, :, None]
        slopes = slopes + factor @ block.weights
        total = total + factor @ block.constant + offset[:, :, 0]
    return slopes, total


def _height(slope: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return how far apart the enclosing lines of units are at most: 0 where the sign is decided."""
    open_ = (lower < 0.0) & (upper > 0.0)
    span = np.where(open_, upper - lower, 1.0)
    return np.asarray(np.where(open_, -lower * upper / span, 0.0) * np.abs(1.0 - slope))


def _looseness(
    rows: FloatArray, taken: Sequence[FloatArray], spans: Sequence[tuple[FloatArray, FloatArray]]
) -> FloatArray:
    """Return, per box, row and feature, the heights of the lines that rows rest on, shared out by the inputs' extents."""
    total = np.zeros_like(rows)
    for on_units, (height, extent) in zip(taken, spans, strict=True):
        share = extent / np.maximum(extent.sum(axis=2, keepdims=True), TINY)
        total = total + (np.abs(on_units) * height[:, None]) @ share
    return total
