"""Nodes of a search over centres of balls, seen where a shift takes them: linear bounds of a network over many balls at once.

A goal that must hold all over a ball must hold at any one point of it. So for each node a point of the ball is chosen, as
an affine function of the centre,

    y_j = a_j x_j + b_j    with    |y_j - x_j| <= |d_j|    for all x in the node,

where ``d`` is a shift of the ball: ``a_j = 1, b_j = d_j``, but where values end, the interval of the node is mapped onto what
the end leaves of it. Any shift gives a bound, and the worst one of the node's cheapest point a good one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.criteria.robustness.shifts import best_shift, inside, on_steps
from ifonly.models.abilities import Layered
from ifonly.models.forms.backward import EnclosedRows, Layers
from ifonly.models.forms.signs import Ball
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Enclosed
from ifonly.search.inputs.nodes import Nodes, as_inputs
from ifonly.search.inputs.places import Places
from ifonly.tolerances import BEYOND_ROUNDING, NEAR_A_STEP

__all__ = ["MovedNodes", "Surrounding"]


@dataclass(frozen=True, eq=False)
class MovedNodes:
    """Nodes as boxes of the inputs that their shifts lead to: numbers, levels, and numbers that only a shift moves.

    Attributes
    ----------
    scale, offset
        Per node and number: ``a`` and ``b``.
    others
        Per node: how far the numbers are moved that are fixed in the search.
    """

    nodes: Nodes
    scale: FloatArray
    offset: FloatArray
    others: FloatArray

    def __len__(self) -> int:
        return len(self.nodes)

    def pulled_back(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return linear functions of the inputs as functions of the centre: slopes and constants."""
        n, m = self.scale.shape[1], slopes.shape[2] - self.others.shape[1]
        on, levels, other = slopes[:, :, :n], slopes[:, :, n:m], slopes[:, :, m:]
        constant = (on @ self.offset[:, :, None] + other @ self.others[:, :, None])[:, :, 0]
        back = on * self.scale[:, None]
        return np.concatenate([back, np.broadcast_to(levels, (*back.shape[:2], m - n))], axis=2), constant

    def at(self, x: FloatArray) -> FloatArray:
        """Return where the shifts lead from points of the search, one per node."""
        n = self.scale.shape[1]
        return np.concatenate([x[:, :n] * self.scale + self.offset, x[:, n:], self.others], axis=1)

    def largest(self, slopes: FloatArray) -> FloatArray:
        """Return upper bounds of ``slopes[i, k] @ y`` in node ``i``, within the budget."""
        back, constant = self.pulled_back(slopes)
        return np.asarray(self.nodes.largest(back) + constant)

    def roughly(self, slopes: FloatArray) -> FloatArray:
        """Return the same, budgets aside; slopes that serve all nodes do so here as well, away from ends of values."""
        if len(slopes) > 1 or bool((self.scale != 1.0).any()):
            back, constant = self.pulled_back(slopes)
            return np.asarray(self.nodes.roughly(back) + constant)
        n, m = self.scale.shape[1], slopes.shape[2] - self.others.shape[1]
        constant = self.offset @ slopes[0, :, :n].T + self.others @ slopes[0, :, m:].T
        return np.asarray(self.nodes.roughly(slopes[:, :, :m]) + constant)

    def largest_of(self, slopes: FloatArray, which: IntArray) -> FloatArray:
        """Return upper bounds of ``slopes[m] @ y`` in node ``which[m]``, within the budget."""
        some = MovedNodes(self.nodes.pick(which), self.scale[which], self.offset[which], self.others[which])
        return np.asarray(some.largest(slopes[:, None])[:, 0])

    def extent(self, slopes: FloatArray) -> FloatArray:
        """Return how much each feature of the search can change ``slopes[i, k] @ y`` in node ``i``."""
        return self.nodes.extent(self.pulled_back(slopes)[0])


class Surrounding:
    """One ball of a statement as a search over centres sees it.

    Parameters
    ----------
    enclosed
        The lead that is demanded all over it.
    statement, at
        The question, and the features that the search may change.
    prices
        Steps towards the price at which a shift fills an l2 ball.

    Attributes
    ----------
    numbers
        The features that the ball moves.
    layers
        The lead minus what is enough, over numbers and levels of the search and over further numbers of the ball.
    """

    def __init__(self, enclosed: Enclosed, statement: Statement, at: Places, prices: int) -> None:
        self.enclosed, self.at, self.prices = enclosed, at, prices
        schema, form = at.schema, enclosed.form
        assert isinstance(form, Layered)
        self.numbers = [int(j) for j in np.flatnonzero(enclosed.reach) if not np.isnan(at.start[schema.starts[j]])]
        self.reach = enclosed.reach[self.numbers]
        self.step = np.array([schema.steps[j] or 0.0 for j in self.numbers])
        others = [j for j in self.numbers if j not in at.numbers]
        other_places = np.array([schema.starts[j] for j in others], dtype=np.int64)
        free = np.concatenate([at.places, at.entries, other_places])
        # columns of the moved numbers among the inputs; those of the search first, then those that are fixed in it
        self._of_search = np.array([k for k, j in enumerate(self.numbers) if j in at.numbers], dtype=np.int64)
        self._of_others = np.array([k for k, j in enumerate(self.numbers) if j not in at.numbers], dtype=np.int64)
        self._column = np.array(
            [
                at.numbers.index(j) if j in at.numbers else len(at.places) + len(at.entries) + others.index(j)
                for j in self.numbers
            ],
            dtype=np.int64,
        )
        weights, constant = enclosed.goal.matrix()
        own = enclosed.goal is statement.query.goal
        self.enough = max(enclosed.enough, statement.margin) if own else enclosed.enough
        size = at.size.copy()
        places = np.array([schema.starts[j] for j in self.numbers], dtype=np.int64)
        size[places] += self.reach
        rows = weights @ form.weights, weights @ form.constant + constant - self.enough
        self.layers = Layers.of(form.blocks, rows, free, at.origin, size)
        origin = at.origin[places]
        self._ends = enclosed.limits.lower[self.numbers] - origin, enclosed.limits.upper[self.numbers] - origin
        self._width = len(free)

    @property
    def round(self) -> FloatArray | None:
        """Half-axes of an l2 ball; None: the ball is a box."""
        return self.reach if self.enclosed.norm == "l2" else None

    def spread(self, values: FloatArray, elsewhere: float = 0.0) -> FloatArray:
        """Return values of the ball's numbers as one per input."""
        out = np.full(self._width, elsewhere)
        out[self._column] = values
        return out

    def ball(self) -> Ball:
        """Return the ball as the compiled search sees it."""
        least, most = (
            self.spread(end, elsewhere) for end, elsewhere in zip(self._ends, (-np.inf, np.inf), strict=True)
        )
        # so that rounding does not keep an attack from its end
        asked = BEYOND_ROUNDING * float(self.layers.room[-1].max())
        shape = (self.spread(self.reach), least, most, self.spread(self.step), self.round is not None)
        return Ball(self.layers, *shape, self.enclosed.passes, asked)

    # -- nodes ---------------------------------------------------------------------------------------------------
    def moved(self, nodes: Nodes, shifts: FloatArray) -> tuple[MovedNodes, EnclosedRows]:
        """Return nodes where one shift each leads, and the rows there; on a grid, what would leave it is moved less."""
        n, own, column = len(self.at.places), self._of_search, self._column[self._of_search]
        scale, offset = np.ones((len(nodes), n)), np.zeros((len(nodes), n))
        low, high = nodes.low[:, column], nodes.high[:, column]
        least, most = (end[own] for end in self._ends)
        shift, step = shifts[:, own], self.step[own]
        width = np.where(step > 0.0, step, 1.0)
        # on a grid, by as many steps as all of the node can go
        down = np.minimum(np.ceil((least - low) / width - NEAR_A_STEP), 0.0) * width
        up = np.maximum(np.floor((most - high) / width + NEAR_A_STEP), 0.0) * width
        shift = np.where(step > 0.0, np.clip(shift, down, up), shift)
        from_, to = np.clip(low + shift, least, most), np.clip(high + shift, least, most)
        ends = ((low + shift < least) | (high + shift > most)) & (step == 0.0)
        wide = high > low
        share = np.clip(np.divide(to - from_, high - low, out=np.zeros_like(low), where=wide), 0.0, 1.0)
        scale[:, column] = np.where(ends, share, 1.0)
        offset[:, column] = np.where(ends, from_ - share * low, shift)
        others = self._of_others
        there = self._fitting(np.zeros(len(others)), shifts[:, others], others)
        moved = MovedNodes(nodes, scale, offset, there)
        return moved, self.layers.enclosed(moved)

    def _fitting(self, values: FloatArray, shifts: FloatArray, which: IntArray) -> FloatArray:
        """Return shifts of some of the ball's numbers as far as values go on."""
        least, most = (end[which] for end in self._ends)
        there = np.clip(shifts, np.minimum(least - values, 0.0), np.maximum(most - values, 0.0))
        return on_steps(there, self.step[which])

    # -- points --------------------------------------------------------------------------------------------------
    def inputs(self, numbers: FloatArray, levels: IntArray) -> FloatArray:
        """Return points of the search as inputs of the layers, without a shift."""
        return as_inputs(numbers, levels, self._width)

    def worst(self, x: FloatArray, known: Sequence[FloatArray], steps: int) -> tuple[FloatArray, FloatArray]:
        """Return bad shifts for points, by following the linear pieces downhill, and the least row there.

        The shifts that are known are compared with those that are found from the points themselves.
        """
        which, every = np.arange(len(x)), np.arange(len(self.numbers))
        values = x[:, self._column]
        low, high = (self._fitting(values, np.broadcast_to(s * self.reach, values.shape), every) for s in (-1.0, 1.0))
        best, least = np.zeros_like(values), self._rows(x, np.zeros_like(values)).min(axis=1)
        for shifts in known:
            fitting = self._fitting(values, shifts, every)
            best, least = self._better(x, best, least, fitting)
        tried = np.zeros_like(values)
        for _ in range(steps):
            slopes, constant = self.layers.tangents(self._shifted(x, tried))
            row = ((slopes @ self._shifted(x, tried)[:, :, None])[:, :, 0] + constant).argmin(axis=1)
            downhill = -slopes[which, row][:, self._column]
            tried = on_steps(best_shift(downhill, low, high, self.round, self.prices)[1], self.step)
            best, least = self._better(x, best, least, tried)
        return best, least

    def _better(
        self, x: FloatArray, best: FloatArray, least: FloatArray, shifts: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the worse ones of two shifts per point."""
        value = self._rows(x, shifts).min(axis=1)
        better = value < least
        return np.where(better[:, None], shifts, best), np.where(better, value, least)

    def tangents(self, x: FloatArray, shifts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least row's linear piece around shifted points, as a function of the centre: slopes and constant."""
        y = self._shifted(x, shifts)
        slopes, constant = self.layers.tangents(y)
        which = np.arange(len(x))
        row = ((slopes @ y[:, :, None])[:, :, 0] + constant).argmin(axis=1)
        slopes, constant = slopes[which, row], constant[which, row]
        constant = constant + (slopes[:, self._column] * shifts).sum(axis=1)
        return slopes[:, : len(self.at.places) + len(self.at.entries)], constant

    def _shifted(self, x: FloatArray, shifts: FloatArray) -> FloatArray:
        y = x.copy()
        y[:, self._column] += shifts
        return y

    def _rows(self, x: FloatArray, shifts: FloatArray) -> FloatArray:
        h = self._shifted(x, shifts)
        for block in self.layers.blocks:
            h = np.concatenate([h, block.activate(h @ block.weights.T + block.constant)], axis=1)
        return np.asarray(h @ self.layers.rows.T + self.layers.constant)

    def drawn_in(self, shift: FloatArray) -> FloatArray:
        """Return a shift of the ball's numbers on their grids and surely inside of the ball."""
        own = np.clip(shift, -self.reach, self.reach)
        own = own if self.round is None else inside(own, self.reach)
        return on_steps(own, self.step)

    # -- shifts --------------------------------------------------------------------------------------------------
    def first_shifts(self, slots: int) -> FloatArray:
        """Return the shifts of a first node: none at all, in the first of so many slots; the others are empty."""
        out = np.full((1, max(1, slots), len(self.numbers)), np.nan)
        out[:, 0] = 0.0
        return out

    def with_shift(self, slots: FloatArray, shift: FloatArray, same: float) -> FloatArray:
        """Return the shifts of a node with another one in front, in the place of one near it, or of the last."""
        away = np.abs((slots - shift) / self.reach).max(axis=1)
        away = np.where(np.isnan(away), np.inf, away)
        near = int(away.argmin())
        gone = near if away[near] <= same else len(slots) - 1
        return np.concatenate([shift[None], np.delete(slots, gone, axis=0)])
