"""Branch and price: mixed-integer programs with blocks of columns, exact without ever writing all columns down.

Every node of the tree is a linear relaxation solved by column generation (see `ifonly.solvers.priced_lp`), so its bound
holds for all columns, and a column that only matters deep in the tree is found there (Barnhart et al. 1998). Branching
is on the integer columns of the program, by pseudo-costs (Benichou et al. 1971); the search plunges, and returns to the
node with the least bound.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.program.mip import MipArrays
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT, ColumnGeneration
from ifonly.solvers.backend import Backend, Capability, IncumbentHook, Limits, Solution, Status
from ifonly.solvers.priced_lp import Block, PricedProgram, Relaxed, expanded
from ifonly.tolerances import INTEGRALITY, LEAST_GAIN, closing_gap

__all__ = ["Pricing", "with_blocks"]


def with_blocks(
    program: MipArrays, blocks: Sequence[Block], backend: Backend, tuning: ColumnGeneration = DEFAULT.columns
) -> tuple[MipArrays, Backend]:
    """Return what solves a program with blocks: all columns written down while they are few, else branch and price."""
    if not blocks:
        return program, backend
    if sum(block.size for block in blocks) <= tuning.written_down:
        return expanded(program, blocks), backend
    linear = not program.squares and not program.convex
    return program, Pricing(tuple(blocks), backend, may_stop=linear)


@dataclass(frozen=True)
class Pricing:
    """A backend that solves programs whose blocks stay unwritten; linear relaxations go to HiGHS.

    Attributes
    ----------
    blocks
        The blocks.
    inner
        The backend that was asked for.
    may_stop
        Whether to stop early, as `Status.FEASIBLE`, when a much better answer makes a smaller program worth building.
        Not where tangents stand for a convex piece: an answer there is none of the true program yet.
    """

    blocks: tuple[Block, ...]
    inner: Backend
    may_stop: bool = True
    name: str = "pricing"
    label: str = "HiGHS"
    capabilities: frozenset[Capability] = frozenset({Capability.INCUMBENT_EVENTS, Capability.PROVES})

    def available(self) -> bool:
        """HiGHS is always there."""
        return True

    def version(self) -> str:
        """Return the version of the solver behind."""
        return self.inner.version()

    def solve(self, program: MipArrays, limits: Limits, on_incumbent: IncumbentHook | None = None) -> Solution:
        """Solve by branch and price."""
        return _Tree(program, self.blocks, limits, on_incumbent, may_stop=self.may_stop).run()


@dataclass(order=True)
class _Node:
    """Bounds of the integer columns, and how it came to be: which column was branched on, how far, from what bound."""

    bound: float
    order: int
    lower: FloatArray = field(compare=False)
    upper: FloatArray = field(compare=False)
    column: int = field(default=-1, compare=False)
    up: bool = field(default=False, compare=False)
    distance: float = field(default=1.0, compare=False)


class _Tree:
    """One branch-and-price search."""

    def __init__(
        self,
        program: MipArrays,
        blocks: Sequence[Block],
        limits: Limits,
        on_incumbent: IncumbentHook | None,
        *,
        may_stop: bool = True,
    ) -> None:
        self.may_stop = may_stop
        self.program, self.limits, self.on_incumbent = program, limits, on_incumbent
        self.deadline = Deadline.after(limits.seconds)
        self.relaxation = PricedProgram(program, blocks, limits.tuning.columns)
        self.whole = np.flatnonzero(program.integer).astype(np.int32)
        self.gains = _Gains(len(self.whole))
        self.heap: list[_Node] = []
        self.best: FloatArray | None = None
        self.value = limits.cutoff
        self.pool: list[tuple[float, FloatArray]] = []
        self.nodes = 0
        self.root = -np.inf
        self.open_bound = np.inf

    @property
    def cutoff(self) -> float:
        """Cut-off: a node whose bound is not below it is pruned."""
        if not np.isfinite(self.value):
            return np.inf
        return self.value - closing_gap(self.value, self.limits.gap)

    def run(self) -> Solution:
        """Search until no node is left, the time is up, or a smaller program is worth building."""
        lower, upper = self.program.lower[self.whole].copy(), self.program.upper[self.whole].copy()
        lower, upper = np.ceil(lower - INTEGRALITY), np.floor(upper + INTEGRALITY)
        plunge: _Node | None = _Node(-np.inf, 0, lower, upper)
        interrupted = False
        try:
            while plunge is not None or self.heap:
                node = heapq.heappop(self.heap) if plunge is None else plunge
                if self.deadline.passed or self._worth_rebuilding():
                    self.open_bound = min(self.open_bound, node.bound)
                    break
                plunge = None if node.bound >= self.cutoff else self._visit(node)
        except KeyboardInterrupt:
            interrupted = True
        return self._solution(interrupted)

    def _worth_rebuilding(self) -> bool:
        """Whether the answer improved so much that the caller can build a far smaller program."""
        first = self.limits.cutoff - self.root
        if not self.may_stop or self.best is None or not np.isfinite(first) or self._bound() >= self.cutoff:
            return False
        return self.value - self.root <= self.limits.tuning.columns.smaller * first

    def _bound(self) -> float:
        return min((node.bound for node in self.heap), default=np.inf)

    def _solution(self, interrupted: bool) -> Solution:
        bound = min(self.open_bound, self._bound())
        unfinished = bound < self.cutoff or interrupted
        pool = tuple(self.pool)
        if self.best is None:
            if not unfinished:
                return Solution(Status.INFEASIBLE, bound=np.inf)
            status = Status.INTERRUPTED if interrupted else Status.OUT_OF_TIME
            return Solution(status, bound=bound, interrupted=interrupted)
        if interrupted:
            return Solution(Status.FEASIBLE, self.best, self.value, min(bound, self.root), pool, interrupted=True)
        status = Status.FEASIBLE if unfinished else Status.OPTIMAL
        return Solution(status, self.best, self.value, min(bound, self.cutoff, self.value), pool)

    # -- one node -----------------------------------------------------------------------------------------------
    def _visit(self, node: _Node) -> _Node | None:
        """Bound a node; keep its answer, drop it, or branch: the child to go on with is returned, the other kept."""
        self.nodes += 1
        self.relaxation.set_bounds(self.whole, node.lower, node.upper)
        found = self.relaxation.solve(self.cutoff, self.deadline)
        if self.nodes == 1:
            self.root = found.bound
        self.gains.learn(node, found.bound)
        if found.bound >= self.cutoff:
            return None
        if found.values is None:
            self.open_bound = min(self.open_bound, max(found.bound, node.bound))
            return None
        values = found.values[self.whole]
        off = np.abs(values - np.round(values))
        if len(off) and off.max() > INTEGRALITY:
            return self._branch(node, self.gains.choose(values, off), values, found.bound)
        if self._closed_at_integers(np.round(values), found):
            return None
        if self.deadline.passed:
            self.open_bound = min(self.open_bound, found.bound)
            return None
        free = np.flatnonzero(node.lower < node.upper)
        return self._branch(node, int(free[np.argmax(off[free])]), values, found.bound) if free.size else None

    def _closed_at_integers(self, whole: FloatArray, found: Relaxed) -> bool:
        """Fix the integers at exactly what they are and take the best of the rest: no dust times a big number.

        Says whether that costs what the relaxation promised; if not, the node is not closed by it.
        """
        assert found.values is not None
        values = found.values
        if len(whole):
            self.relaxation.set_bounds(self.whole, whole, whole)
            exact = self.relaxation.solve(deadline=self.deadline)
            if exact.values is None:
                return False
            values = exact.values.copy()
            values[self.whole] = whole
        value = float(self.program.cost @ values + self.program.offset)
        if self.best is None or value < self.value:
            self.best, self.value = values, min(value, self.value)
            self.pool.append((value, values))
            if self.on_incumbent is not None:
                self.on_incumbent(value, min(self._bound(), found.bound), values)
        return value <= found.bound + closing_gap(value, self.limits.gap)

    def _branch(self, node: _Node, k: int, values: FloatArray, bound: float) -> _Node:
        floor = min(float(np.floor(values[k])), float(node.upper[k]) - 1.0)
        part = float(values[k]) - floor
        down = replace(node, bound=bound, column=k, up=False, distance=part, upper=node.upper.copy())
        up = replace(node, bound=bound, column=k, up=True, distance=1.0 - part, lower=node.lower.copy())
        down.upper[k], up.lower[k] = floor, floor + 1.0
        down.order, up.order = 2 * self.nodes, 2 * self.nodes + 1
        first, second = (down, up) if part < 0.5 else (up, down)
        heapq.heappush(self.heap, second)
        return first


class _Gains:
    """Pseudo-costs: how much the bound rose per unit when a column was rounded down or up."""

    def __init__(self, n: int) -> None:
        self.total = np.zeros((2, n))
        self.count = np.zeros((2, n))

    def learn(self, node: _Node, bound: float) -> None:
        """Note what a branching brought."""
        if node.column < 0 or not np.isfinite(bound) or not np.isfinite(node.bound):
            return
        gain = max(bound - node.bound, 0.0) / max(node.distance, LEAST_GAIN)
        self.total[int(node.up), node.column] += gain
        self.count[int(node.up), node.column] += 1.0

    def choose(self, values: FloatArray, off: FloatArray) -> int:
        """Return the fractional column whose two children promise the largest product of gains."""
        at = np.flatnonzero(off > INTEGRALITY)
        part = values[at] - np.floor(values[at])
        down, up = (self._estimate(side, at) for side in (0, 1))
        score = np.maximum(down * part, LEAST_GAIN) * np.maximum(up * (1.0 - part), LEAST_GAIN)
        return int(at[np.argmax(score)])

    def _estimate(self, side: int, at: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatArray:
        total, count = self.total[side], self.count[side]
        known = count > 0
        mean = float((total[known] / count[known]).mean()) if known.any() else 1.0
        return np.where(count[at] > 0, total[at] / np.maximum(count[at], 1.0), mean)
