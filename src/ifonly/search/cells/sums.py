"""Sums of leaves, one of each tree, and what a goal needs of them: the bound of a part without prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.forms.leaves import Leaves
from ifonly.models.forms.scan import Brackets
from ifonly.question.goal import Goal
from ifonly.search.cells.lattice import Lattice
from ifonly.tolerances import ROUNDING

__all__ = ["Sums"]


@dataclass(frozen=True, eq=False)
class Sums:
    """Values of the leaves that a box leaves open, and the sums by which the goal is reached.

    Attributes
    ----------
    values
        Of leaves, one column per goal.
    tree
        Tree of each leaf.
    need
        Sum that the best leaves must reach, per goal.
    sure
        Sum from which on leaves reach a goal for certain, where whole parts are offered; None: points are.
    lattice
        Grid of the sums, where that says more than the goal.
    """

    values: FloatArray
    tree: IntArray
    need: FloatArray
    sure: FloatArray | None = None
    lattice: Lattice | None = None

    @classmethod
    def of(
        cls, brackets: Brackets, leaves: Leaves, goal: Goal, *, parts: bool, keeps: bool, noise: float = 0.0
    ) -> Sums:
        """Return the sums of some leaves; `parts`: whole ones are offered; `keeps`: as a proof, which knows no lattice."""
        values = brackets.values_of(leaves)
        largest = np.abs(values).max(axis=0) * brackets.trees.n_trees
        room = ROUNDING * np.maximum(1.0, np.maximum(largest, np.abs(brackets.constant)))
        need, sure = -brackets.constant - room, -brackets.constant + room
        if parts:
            return cls(values, leaves.tree, need, sure)
        lattice = None if keeps else Lattice.of(goal, brackets, leaves.node, float(room.max()), noise)
        return cls(values, leaves.tree, need, None, lattice)

    def best(self, leaves: IntArray) -> IntArray | None:
        """Return the best leaf of each tree; None when even these do not reach the goal together."""
        tree = self.tree[leaves]
        first = np.concatenate(([0], np.flatnonzero(tree[1:] != tree[:-1]) + 1))
        count = np.diff(first, append=len(leaves))
        if len(self.need) == 1:  # leaves of a tree come in the order of their values
            best = leaves[first]
            return None if self._is_missed(leaves, best, count) else best
        values = self.values[leaves]
        tops = np.maximum.reduceat(values, first, axis=0)
        spare = tops.sum(axis=0) - self.need
        if (spare < 0.0).any():
            return None
        g = int(spare.argmin())
        hits = np.flatnonzero(values[:, g] == np.repeat(tops[:, g], count))
        return np.asarray(leaves[hits[np.diff(tree[hits], prepend=-1) != 0]])

    def _is_missed(self, leaves: IntArray, best: IntArray, count: IntArray) -> bool:
        """Whether the best leaves of all trees, of so many each, do not reach the one goal together."""
        tops = self.values[best, 0]
        total, need = float(tops.sum()), float(self.need[0])
        if total < need or self.lattice is None or total >= self.lattice.need:
            return total < need
        behind = self.lattice.behind(np.repeat(tops, count), self.values[leaves, 0], leaves)
        return self.lattice.is_missed(total, behind, need)

    def surely_reach(self, leaves: IntArray) -> bool:
        """Whether even the worst leaves of all trees reach the goal together, for certain."""
        first = np.flatnonzero(np.diff(self.tree[leaves], prepend=-1))
        return self.sure is not None and bool(
            (np.minimum.reduceat(self.values[leaves], first, axis=0).sum(axis=0) >= self.sure).all()
        )
