"""Branch and bound over inputs with nodes that are split along one feature: a number in two or three, a category in two."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.program.box import Box
from ifonly.question.statement import Statement
from ifonly.search.engine import Separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.inputs.best_first import BestFirst, Pace
from ifonly.search.inputs.nodes import Nodes
from ifonly.search.inputs.splits import Splits

__all__ = ["Open", "OverInputs"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Open:
    """An open node: its box, and the feature to split it along (a category: between one level and the others)."""

    name: int
    low: FloatArray
    high: FloatArray
    allowed: BoolArray
    along: int
    level: int


Node = TypeVar("Node", bound=Open)


class OverInputs(BestFirst[Node], Generic[Node]):
    """One branch and bound whose nodes are split along one feature; what bounds them is left to the engine."""

    def __init__(
        self,
        statement: Statement,
        question: Separable,
        box: Box,
        incumbents: Incumbents,
        features: Iterable[int],
        pace: Pace,
    ) -> None:
        super().__init__(statement, question, box, incumbents, features, pace)
        self.splits = Splits(self.progress.ledger)

    # -- points --------------------------------------------------------------------------------------------------
    def _offer_points(self, points: list[FloatArray]) -> None:
        """Offer single points, after which there is nothing left of their nodes; the model decides where rounding might."""
        refused = [u for u in points if not self.incumbents.offer(u)]
        if refused:
            self.incumbents.ask(np.array(refused))

    def point(self, numbers: FloatArray, levels: IntArray, near: FloatArray) -> FloatArray:
        """Return a canonical point; numbers on a grid are rounded away from their cheapest value."""
        u = self.start.copy()
        u[self.places.places] = self.free.raw(numbers, near)
        self.places.take(u, levels)
        return self.places.schema.stored(u)

    def _cheapest_levels(self, nodes: Nodes, i: int) -> IntArray:
        cost = np.where(nodes.allowed[i], self.free.level_cost, np.inf)
        return np.array([a + int(cost[a:b].argmin()) for a, b in self._categories()], dtype=np.int64)

    def _categories(self) -> list[tuple[int, int]]:
        """Return the first level of each category, and the one behind its last."""
        return list(pairwise(map(int, np.append(self.free.first, len(self.free.level_cost)))))

    # -- branching -----------------------------------------------------------------------------------------------
    def _along(self, nodes: Nodes, i: int, score: FloatArray) -> int:
        """Return the feature to split a node along, numbers first; -1: it is a single point."""
        width = nodes.high[i] - nodes.low[i]
        wide = np.where(self.free.step > 0.0, width >= 0.5 * self.free.step, width > 0.0)
        if self.free.first.size:
            wide = np.concatenate([wide, np.add.reduceat(nodes.allowed[i], self.free.first, dtype=np.int64) > 1])
        if not wide.any():
            return -1
        # where nothing is loose, a point was refused by rounding: any feature will do
        return int(np.where(wide, np.maximum(score, 0.0) + np.finfo(float).tiny, -1.0).argmax())

    def _children(self, popped: list[Node]) -> Nodes:
        """Return the children of nodes."""
        low, high, allowed, name = [], [], [], []
        for node in popped:
            if node.along >= self.free.n_numbers:
                for levels, child in self._levels(node):
                    low.append(node.low)
                    high.append(node.high)
                    allowed.append(levels)
                    name.append(child)
                continue
            for a, b, child in self._intervals(node):
                if a <= b:
                    low.append(_with(node.low, node.along, a))
                    high.append(_with(node.high, node.along, b))
                    allowed.append(node.allowed)
                    name.append(child)
        named = np.array(name, dtype=np.int64)
        return Nodes(self.free, np.array(low), np.array(high), np.array(allowed, dtype=np.bool_), named)

    def _levels(self, node: Node) -> list[tuple[BoolArray, int]]:
        """Split a category: the cheapest levels and the others; where all cost the same, the best one and the others."""
        free, k = self.free, node.along - self.free.n_numbers
        own = (free.owner == k) & node.allowed
        cost = free.level_cost
        cheap = own & (cost <= cost[own].min())
        if (cheap == own).all():
            cheap = np.arange(len(cost)) == (node.level if own[node.level] else int(np.flatnonzero(own)[0]))
        first, second = self.splits.levels(node.name, self.places.categories[k], cheap[free.owner == k])
        return [(node.allowed & ~(own & ~cheap), first), (node.allowed & ~(own & cheap), second)]

    def _intervals(self, node: Node) -> list[tuple[float, float, int]]:
        """Split a number, and note where it is divided, as a value of the data."""
        free, k = self.free, node.along
        parts, at = free.split(k, float(node.low[k]), float(node.high[k]))
        hat = float(self.statement.query.factual[self.places.places[k]])
        if len(parts) == 2:
            value = hat if at == float(free.home[k]) else at + float(free.origin[k])
            names = [*self.splits.cut(node.name, self.places.numbers[k], value)]
        else:
            less, others = self.splits.cut(node.name, self.places.numbers[k], float(np.nextafter(hat, -np.inf)))
            names = [less, *self.splits.cut(others, self.places.numbers[k], hat)]
        return [(*part, name) for part, name in zip(parts, names, strict=True)]


def _with(values: FloatArray, k: int, value: float) -> FloatArray:
    out = values.copy()
    out[k] = value
    return out
