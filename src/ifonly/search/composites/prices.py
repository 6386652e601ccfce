"""Prices of leaves and cells: the duals of one linear program, by which the cost of every node is bounded.

Trees and features are told apart: each tree takes a leaf of its own, each feature a value of its own, and rows say that they
agree, ``sum {y_l : begin_l > c} <= z_c`` for a tree and a cut (`ifonly.models.forms.trees`), where ``z_c`` says that the
number lies behind cell ``c``. With any prices ``a, b >= 0`` of these rows, and ``m >= 0`` of the rows of the goal, no point
of a node costs less than

    sum over trees of min over open leaves (charge_l - m @ gain_l)
    + sum over features of min over values left (cost - rebate - m @ gain)  -  m @ constant,

where a leaf is charged the prices of the rows that it is in, and a value is rebated those of the rows that it fills. Good
prices are the duals of the linear program at the root; bad ones make the bound loose, never wrong. Curves are linear in that
program only: in a node the gains are those of its own bounds (`ifonly.models.forms.enclosing`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.forms.enclosing import Rows
from ifonly.runtime.memo import cached_property
from ifonly.search.composites.program import Program
from ifonly.search.composites.tables import Tables
from ifonly.search.inputs.free import Free
from ifonly.search.inputs.nodes import Nodes
from ifonly.solvers.linear import duals_of
from ifonly.tolerances import CHAINED_ROUNDING

__all__ = ["Prices"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of leaves and cells.

    Attributes
    ----------
    goal
        Of each row of the goal.
    charge
        Per leaf.
    rebate
        Per cell of all numbers.
    level_rebate
        Per level.
    cost
        The least cost of each cell.
    """

    tables: Tables
    free: Free
    raw: BoolArray
    goal: FloatArray
    charge: FloatArray
    rebate: FloatArray
    level_rebate: FloatArray
    cost: FloatArray
    rows: FloatArray
    constant: FloatArray
    at: FloatArray

    @cached_property
    def size(self) -> float:
        """Sum of the largest charge of each tree and the largest rebate of each feature, which a bound adds and subtracts."""
        tables, first = self.tables, self.free.first
        tops = [np.maximum.reduceat(self.charge, tables.root)] if tables.root.size else []
        tops += [np.maximum.reduceat(np.abs(self.rebate), tables.first)] if tables.first.size else []
        tops += [np.maximum.reduceat(np.abs(self.level_rebate), first)] if first.size else []
        return float(sum(part.sum() for part in tops))

    @classmethod
    def of(
        cls,
        tables: Tables,
        free: Free,
        raw: BoolArray,
        rows: tuple[FloatArray, FloatArray],
        at: FloatArray,
        spans: tuple[FloatArray, FloatArray],
        seconds: float,
    ) -> Prices | None:
        """Return the duals of a program in which the goal is linear: as steep as across the box, and right at some scores."""
        G, c = rows
        slopes = tables.enclosure.rows(Rows(G[None], c, G[None]), *spans).lean[0]
        atoms = np.zeros(len(at), dtype=np.bool_)
        for atom in tables.enclosure.atoms:
            atoms[atom.place] = True
        constant = G @ at[tables.enclosure.out] + c - slopes[:, atoms] @ at[atoms]
        cost = tables.cost
        program = Program(tables, free, raw, cost)
        program.goal(slopes, constant)
        found = duals_of(program.mip.arrays(), seconds)
        if found is None:
            return None
        goal = np.maximum(found[0][program.goal_rows :], 0.0)
        return cls(tables, free, raw, goal, *program.prices(found[0]), cost, G, c, at)

    def least(
        self, nodes: Nodes, cells: tuple[IntArray, IntArray], open_: BoolArray, spans: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the least cost of nodes, the better of two bounds of the goal, and what leaves cost by these prices."""
        weighed = np.broadcast_to(self.goal @ self.rows, (len(nodes), 1, self.rows.shape[1]))
        asked = Rows(weighed, self.goal @ self.constant, weighed)
        enclosure = self.tables.enclosure
        best: tuple[FloatArray, FloatArray] | None = None
        for at in (np.broadcast_to(self.at, spans[0].shape), None):
            bound = enclosure.rows(asked, *spans, at)
            least, leaf = self.bounds(nodes, cells, open_, bound.slopes[:, 0], bound.constant[:, 0])
            if best is not None:
                better = least > best[0]
                least, leaf = np.where(better, least, best[0]), np.where(better[:, None], leaf, best[1])
            best = least, leaf
            if not enclosure.steps:
                break
        assert best is not None
        return best

    def bounds(
        self, nodes: Nodes, cells: tuple[IntArray, IntArray], open_: BoolArray, slopes: FloatArray, constant: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the least cost of nodes, and what leaves cost by these prices.

        `slopes` of the atoms' scores and `constant` are an upper bound of the goal's rows, weighed by their prices.
        """
        tables = self.tables
        leaf = self.charge - tables.worth(slopes[:, None])[:, 0]
        value = np.where(open_, leaf, np.inf)
        tops = np.minimum.reduceat(value, tables.root, axis=1)
        total = tops.sum(axis=1) - constant - np.abs(slopes) @ tables.room
        size = np.abs(tops).sum(axis=1) + np.abs(constant) + self.size
        for atom, base in zip(tables.trees, tables.base, strict=True):
            total = total - slopes[:, atom.place] @ base
            size = size + np.abs(slopes[:, atom.place]) @ np.abs(base)
        for atom, shift in zip(tables.linear, tables.shift, strict=True):
            total = total - slopes[:, atom.place] @ shift
            size = size + np.abs(slopes[:, atom.place]) @ np.abs(shift)
        for least in self._features(nodes, cells, tables.of_inputs(slopes)):
            total = total + least.sum(axis=1)
            size = size + np.abs(least).sum(axis=1)
        return total + self.free.elsewhere - CHAINED_ROUNDING * size, leaf

    def _features(self, nodes: Nodes, cells: tuple[IntArray, IntArray], slopes: FloatArray) -> list[FloatArray]:
        """Return, per node, the least that each number and each category costs, less its rebate and its gain."""
        tables, free = self.tables, self.free
        reduced = np.append(self.cost - self.rebate, np.inf)
        ends = np.stack([tables.first + cells[0], tables.first + cells[1] + 1], axis=2).ravel()
        numbers = np.zeros((len(nodes), 0))
        if tables.size.size:
            numbers = np.minimum.reduceat(reduced, ends)[::2].reshape(len(nodes), -1)
        for k in np.flatnonzero(self.raw):
            numbers[:, k] = self._raw(nodes, int(k), slopes[:, k])
        if not free.first.size:
            return [numbers]
        levels = free.level_cost - self.level_rebate - slopes[:, free.n_numbers :]
        return [numbers, np.minimum.reduceat(np.where(nodes.allowed, levels, np.inf), free.first, axis=1)]

    def _raw(self, nodes: Nodes, k: int, slope: FloatArray) -> FloatArray:
        """Return the least of cost less rebate and gain of a number whose raw value matters: at an end of a cell, or at home.

        Squares are least where their slope is that of the gain.
        """
        tables, free = self.tables, self.free
        own = slice(int(tables.first[k]), int(tables.first[k] + tables.size[k]))
        low = np.maximum(tables.low[own], nodes.low[:, k, None])
        high = np.minimum(tables.high[own], nodes.high[:, k, None])
        home, rate, square = float(free.home[k]), float(free.rate[k]), float(free.square[k])
        points = [low, high, np.clip(home, low, high)]
        if square > 0.0:
            way = np.sign(slope) * np.maximum(np.abs(slope) - rate, 0.0) / (2.0 * square)
            points.append(np.clip(home + way[:, None], low, high))
        out = np.full(len(nodes), np.inf)
        for x in points:
            away = np.abs(x - home)
            value = (
                rate * away + square * away**2 + free.price[k] * (away > 0.0) - slope[:, None] * x - self.rebate[own]
            )
            out = np.minimum(out, np.where(low <= high, value, np.inf).min(axis=1))
        return out
