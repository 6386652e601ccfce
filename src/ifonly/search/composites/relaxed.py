"""Branch and bound over inputs and scores, with a linear program in each part: where curves are what keeps bounds apart.

A softmax over all that scores may be is bounded by planes that lie far above it, and splits of inputs narrow scores little.
So scores themselves are split, in halves, for as long as the goal does not hold at the scores of the linear program's point:
planes over half of an interval are four times as close. Where it does hold, what is left between the program and a point are
leaves of which a tree takes shares, numbers between points of their grid, and prices that are paid in part; then inputs are
split so that both sides lose something.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, pairwise

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import CompositeSearch
from ifonly.search.composites.branching import Split, behind_cell, beside_level
from ifonly.search.composites.parts import Part, Parts, View
from ifonly.search.composites.programs import Programs, Solved
from ifonly.search.composites.tables import Tables
from ifonly.search.inputs.nodes import Nodes
from ifonly.search.progress import Progress
from ifonly.tolerances import DUST, FEASIBILITY, TINY

__all__ = ["Relaxed"]

BoolArray = npt.NDArray[np.bool_]
Offer = Callable[[FloatArray, IntArray, View, int], None]


class Relaxed:
    """One branch and bound over parts of a box; `offer` takes numbers and levels of a point, and a row it may miss."""

    def __init__(
        self,
        tables: Tables,
        raw: BoolArray,
        goal: tuple[FloatArray, FloatArray],
        whole: Nodes,
        progress: Progress,
        offer: Offer,
        tuning: CompositeSearch,
    ) -> None:
        self.tables, self.free, self.raw, self.progress, self.offer = tables, tables.free, raw, progress, offer
        self.goal, self.tuning = goal, tuning
        self.parts = Parts(tables, *goal, whole)
        self.open: list[tuple[float, int, Part, View, Solved]] = []
        self.left = np.inf  # the least bound of parts that nothing splits
        self._order, self.looked = count(), 0

    def run(self, deadline: Deadline) -> float:
        """Split parts until none is left within the budget; return a bound of what is left, infinity where nothing is."""
        tuning, progress = self.tuning, self.progress
        root = self.parts.root()
        view = self.parts.view(root, progress.budget)
        if view is None:
            return np.inf
        inner, seconds = self.tables.enclosure.inner, deadline.left()
        self.spread = np.abs(view.rows.lean[0][:, inner]) @ (view.high - view.low)[0, inner] + TINY
        self.programs = Programs(self.tables, self.free, self.raw, view, tuning)
        self._look(root, -np.inf, None, deadline)
        if seconds - deadline.left() > tuning.relaxed_root * seconds and self.open:
            return self.open[0][0]
        look, first = tuning.relaxed_look, self.open[0][0] if self.open else np.inf
        while self.open and not self._closed(self.open[0][0]):
            bound = min(self.open[0][0], self.left)
            if self.looked >= tuning.most_programs or deadline.passed:
                return bound
            if self.looked >= look:
                if bound - first < tuning.least_done * (progress.value - first):
                    return bound
                look *= 2
            bound, _, part, view, solved = heapq.heappop(self.open)
            children = list(self._children(part, view, solved))
            if not children:
                self.left = min(self.left, bound)
            for child in children:
                self._look(child, bound, solved.scores, deadline)
        return np.inf if self._closed(self.left) else self.left

    def _closed(self, bound: float) -> bool:
        best = self.progress.best
        return bound > self.progress.budget or (best is not None and bound >= best.cost)

    def _look(self, part: Part, least: float, at: FloatArray | None, deadline: Deadline) -> None:
        """Bound a part, offer the point of its program, and keep it open if it may hold a better answer."""
        view = self.parts.view(part, self.progress.budget)
        if view is None:
            return
        self.looked += 1
        solved = self.programs.solve(view, None if at is None else self.parts.near(view, at), deadline)
        if isinstance(solved, float):
            if not self._closed(max(least, solved)):
                self.left = min(self.left, max(least, solved))
            return
        least = max(least, solved.bound)
        if self._closed(least):
            return
        if self._missed(solved):
            again = self.programs.solve(view, self.parts.near(view, solved.scores), deadline)
            if isinstance(again, float):
                least = max(least, again)
            else:
                least, solved = max(least, again.bound), again
            if self._closed(least):
                return
        self.offer(*self._point(view, solved), view, int(self._goal(solved.scores).argmin()))
        if not self._closed(least):
            part = replace(part, low=view.nodes.low[0], high=view.nodes.high[0], allowed=view.nodes.allowed[0])
            heapq.heappush(self.open, (least, next(self._order), part, view, solved))

    def _goal(self, scores: FloatArray) -> FloatArray:
        """Return the rows of the goal at some scores of the atoms."""
        enclosure, (rows, constant) = self.tables.enclosure, self.goal
        low, high = enclosure.bounds(scores[None], scores[None])
        return np.asarray(rows @ (0.5 * (low + high)[0, enclosure.out]) + constant)

    def _missed(self, solved: Solved) -> bool:
        """Whether the goal does not hold at the scores of a program's point, by more than splits of inputs care for."""
        return bool((self._goal(solved.scores) < -self.tuning.missed * self.spread).any())

    # -- points --------------------------------------------------------------------------------------------------
    def _point(self, view: View, solved: Solved) -> tuple[FloatArray, IntArray]:
        """Return the raw numbers and the levels of a program's point, moved into the leaves that it takes whole."""
        tables, free = self.tables, self.free
        whole = np.flatnonzero(solved.leaves > 0.5)
        low, high = view.cells[0][0].copy(), view.cells[1][0].copy()
        if whole.size:
            low = np.maximum(low, tables.begin[:, whole].max(axis=1, initial=0))
            high = np.minimum(high, tables.end[:, whole].min(axis=1))
        behind = np.array([int((z > 0.5).sum()) for z in solved.cells], dtype=np.int64)
        clash = low > high
        low, high = np.where(clash, behind, low), np.where(clash, behind, high)
        value = tables.value[tables.first + np.clip(tables.cheapest, low, high)]
        if self.raw.any():
            x = np.clip(np.nan_to_num(solved.raw), tables.low[tables.first + low], tables.high[tables.first + high])
            x = np.clip(x, view.nodes.low[0], view.nodes.high[0])
            wide = view.nodes.high[0] - view.nodes.low[0]
            x = np.where(np.abs(x - free.home) <= DUST * wide, free.home, x)
            value = np.where(self.raw, free.raw(x, free.home), value)
        levels = []
        for a, b in pairwise(np.append(free.first, len(free.owner))):
            held = tables.holds[a:b][:, whole].all(axis=1) & view.nodes.allowed[0, a:b]
            share = np.where(held if held.any() else view.nodes.allowed[0, a:b], solved.levels[a:b], -1.0)
            levels.append(int(a) + int(share.argmax()))
        return value, np.array(levels, dtype=np.int64)

    # -- splits --------------------------------------------------------------------------------------------------
    def _children(self, part: Part, view: View, solved: Solved) -> Iterator[Part]:
        """Yield the parts of a part; none where nothing tells its points apart."""
        goal = self._goal(solved.scores)
        row = int((goal / self.spread).argmin())
        place = self._score(view, row) if self._missed(solved) else None
        split = None if place is not None else self._of_inputs(view, solved)
        if split is None and place is None and goal[row] < 0.0:
            place = self._score(view, row)
        if place is not None:
            middle = 0.5 * float(view.low[0, place] + view.high[0, place])
            most, least = part.most.copy(), part.least.copy()
            most[place] = least[place] = middle
            yield replace(part, most=most)
            yield replace(part, least=least)
        elif split is not None:
            for low, high, allowed in split.children(part.low, part.high, part.allowed):
                yield replace(part, low=low, high=high, allowed=allowed)

    def _score(self, view: View, row: int) -> int | None:
        """Return the score that planes above a row of the goal owe most to; None where each is as good as known."""
        inner = self.tables.enclosure.inner
        wide = (view.high - view.low)[0, inner]
        loose = np.abs(view.rows.lean - view.rows.slopes)[0, row, inner] * wide
        told = wide > FEASIBILITY * np.maximum(np.abs(view.low), np.abs(view.high))[0, inner] + self.tables.room[inner]
        loose = np.where(told, loose, 0.0)
        return int(inner[loose.argmax()]) if loose.max(initial=0.0) > 0.0 else None

    def _of_inputs(self, view: View, solved: Solved) -> Split | None:
        return self._of_leaves(view, solved) or self._of_numbers(view, solved) or self._of_changes(view, solved)

    def _of_leaves(self, view: View, solved: Solved) -> Split | None:
        """Return the split of cells or levels by which both sides lose most of the leaves that are taken in part."""
        tables, free = self.tables, self.free
        part = np.flatnonzero((solved.leaves > FEASIBILITY) & (solved.leaves < 1.0 - FEASIBILITY))
        share, best, out = solved.leaves[part], FEASIBILITY, None
        for k in range(len(tables.size)):
            begin, end = tables.begin[k, part], tables.end[k, part]
            low, high = int(view.cells[0][0, k]), int(view.cells[1][0, k])
            cuts = np.unique(np.concatenate([begin - 1, end]))
            cuts = cuts[(cuts >= low) & (cuts < high)]
            if cuts.size:
                lost = np.minimum((begin > cuts[:, None]) @ share, (end <= cuts[:, None]) @ share)
                if lost.max() > best:
                    best, out = float(lost.max()), (k, int(cuts[lost.argmax()]))
        split = None
        if out is not None:
            split = behind_cell(tables, *out)
        for a, b in pairwise(np.append(free.first, len(free.owner))):
            allowed = view.nodes.allowed[0, a:b]
            if allowed.sum() < 2:
                continue
            holds = tables.holds[a:b][:, part] & allowed[:, None]
            only = (holds & (holds.sum(axis=0) == 1)) @ share
            lost = np.minimum(~holds @ share, only) + np.minimum(solved.levels[a:b], 1.0 - solved.levels[a:b])
            lost = np.where(allowed, lost, 0.0)
            if lost.max() > best:
                best, split = float(lost.max()), beside_level(free, int(a) + int(lost.argmax()))
        return split

    def _of_numbers(self, view: View, solved: Solved) -> Split | None:
        """Return the split of the number whose price is paid least, or that lies between points of its grid."""
        free, low, high = self.free, view.nodes.low[0], view.nodes.high[0]
        x = np.where(self.raw, np.clip(np.nan_to_num(solved.raw), low, high), free.home)
        away = np.abs(x - free.home)
        moved = away > DUST * (high - low)
        unpaid = np.where(self.raw, free.cost(np.where(moved, away, 0.0)) - np.nan_to_num(solved.paid), 0.0)
        step = np.where(free.step > 0.0, free.step, 1.0)
        off = np.abs((x + free.origin) / step - np.rint((x + free.origin) / step)) * step
        off = np.where(self.raw & (free.step > 0.0) & (off > free.room), off, 0.0)
        unpaid = unpaid + off * (free.rate + free.square * away)
        budget = self.progress.budget
        least = FEASIBILITY * (abs(budget) if np.isfinite(budget) else 1.0)
        for k in np.argsort(-unpaid, kind="stable"):
            if unpaid[k] > least:
                parts = self._intervals(int(k), float(low[k]), float(high[k]), float(x[k]), float(off[k]))
                if len(parts) > 1:
                    return Split(int(k), tuple(parts))
        return None

    def _of_changes(self, view: View, solved: Solved) -> Split | None:
        """Return the split of the dearest feature that need not change, where the program's point changes too many."""
        free, nodes = self.free, view.nodes
        if free.most >= free.n_features:
            return None
        x = self._inside(view, solved)
        numbers = np.where(
            (nodes.low[0] <= free.home) & (free.home <= nodes.high[0]), free.cost(np.abs(x - free.home)), 0.0
        )
        away = ~free.level_home & nodes.allowed[0] & (solved.levels > FEASIBILITY)
        for k in np.argsort(-numbers, kind="stable"):
            parts = self._intervals(int(k), float(nodes.low[0, k]), float(nodes.high[0, k]), float(x[k]), 0.0)
            if numbers[k] > 0.0 and len(parts) > 1:
                return Split(int(k), tuple(parts))
        for c in np.unique(free.owner[away]):
            own = free.owner == c
            if (own & free.level_home & nodes.allowed[0]).any():
                return Split(levels=(~own | free.level_home, ~own | ~free.level_home))
        return None

    def _inside(self, view: View, solved: Solved) -> FloatArray:
        """Return the numbers of a program's point, from the origin: raw values, or what is nearest to home in their cells."""
        tables, free = self.tables, self.free
        behind = np.array([int((z > 0.5).sum()) for z in solved.cells], dtype=np.int64)
        at = tables.first + np.clip(behind, view.cells[0][0], view.cells[1][0])
        x = np.where(self.raw, np.nan_to_num(solved.raw), np.clip(free.home, tables.low[at], tables.high[at]))
        return np.asarray(np.clip(x, view.nodes.low[0], view.nodes.high[0]))

    def _intervals(self, k: int, low: float, high: float, x: float, off: float) -> list[tuple[float, float]]:
        """Return intervals of a number that are each smaller than the whole: beside a point off its grid, or at home."""
        free = self.free
        if off > 0.0:
            step, origin, room = float(free.step[k]), float(free.origin[k]), float(free.room[k])
            below = float(np.floor((x + origin) / step)) * step - origin
            parts = [(low, below + room), (below + step - room, high)]
        else:
            parts = [(float(a), float(b)) for a, b in free.split(k, low, high)[0]]
        parts = [(a, b) for a, b in parts if a <= b]
        smaller = all(a > low or b < high for a, b in parts)
        return parts if smaller else []
