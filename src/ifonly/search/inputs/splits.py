"""Tree of splits that a branch and bound makes in whatever order, written as a trail (`ifonly.question.trail`) at its end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ifonly.question.trail import Ledger

__all__ = ["Splits"]

BoolArray = npt.NDArray[np.bool_]
_Split = tuple[int, float | BoolArray, int, int]


class Splits:
    """Binary tree of splits, by the numbers of its nodes; the whole is node 0. Without a ledger nothing is kept.

    A node that was not split is a part.
    """

    def __init__(self, ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._splits: dict[int, _Split] = {}
        self._n = 1

    def cut(self, node: int, j: int, value: float) -> tuple[int, int]:
        """Divide a node by a number, at most `value` or more, and return both sides."""
        return self._divide(node, j, value)

    def levels(self, node: int, j: int, mask: BoolArray) -> tuple[int, int]:
        """Divide a node by a category, one of these levels or another, and return both sides."""
        return self._divide(node, j, mask)

    def _divide(self, node: int, j: int, by: float | BoolArray) -> tuple[int, int]:
        if self._ledger is None:
            return 0, 0
        sides = self._n, self._n + 1
        self._n += 2
        self._splits[node] = j, by, *sides
        return sides

    def write(self) -> None:
        """Write the tree in pre-order."""
        ledger = self._ledger
        if ledger is None:
            return
        stack = [0]
        while stack:
            node = stack.pop()
            split = self._splits.get(node)
            if split is None:
                ledger.leaf()
                continue
            j, by, first, second = split
            if isinstance(by, float):
                ledger.cut(j, by)
            else:
                ledger.levels(j, by)
            stack += [second, first]
