"""Multiple-choice knapsack by branch and bound: the cheapest items that gain enough, one per feature, at most so many.

Each feature stays, at no cost and no gain, or makes one of its moves: a `Jump` (another level) or a `Slide` (a number, as
far as it takes). Wanted is

    min sum of costs   such that   sum of gains >= need   and   at most K features move.

Branch and bound with the Lagrangian bound of the one coupling row (Sinha and Zoltners 1979, with the count beside it):

    L(lambda) = lambda * need + sum over features of min(0, cost - lambda * gain), the K least of them,

a concave function of one number whose top is found exactly by intersecting the two lines around it. The choice on the
right of the top gains enough, so every node also gives an answer: what it gains too much is taken back where that saves
most.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, inf
from typing import NamedTuple

from ifonly.question.found import Ended
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT, KnapsackSearch
from ifonly.tolerances import OPTIMALITY, SHORT_SUM, closing_gap
from ifonly.tolerances import ROUNDING as _DUST

__all__ = ["Answer", "Fork", "Jump", "Slide", "cheapest_moves"]

NEVER = Deadline.never()


class Jump(NamedTuple):
    """To another level: gains `gain` and costs `cost`."""

    gain: float
    cost: float


class Slide(NamedTuple):
    """By ``d`` up to `reach`, in whole `step`s if there is one: gains ``rate * d``, costs ``price + fee * d``."""

    rate: float
    fee: float
    price: float
    reach: float
    step: float | None


class Fork(NamedTuple):
    """Branching of a node on feature `j`, into the nodes `less` and `more`: it stays or moves.

    Given `at`, it slides at most so far or farther, or jumps to a gain of at most so much or more.
    """

    j: int
    at: float | None
    less: int
    more: int


@dataclass(frozen=True)
class Answer:
    """Result of a branch and bound: how it `ended`, the best moves, their cost and the bound that is proven.

    Attributes
    ----------
    ended
        Closed, at the time limit, or given up: too many nodes.
    moves
        The best known: per feature that moves, by position, which of its jumps or how far it slides; None: none known,
        which is a proof that none gains enough below the cut-off if the search is closed.
    cost, bound
        What they cost, and the least that any cost.
    better
        All incumbents, each cheaper than the one before.
    tree
        The nodes of a closed search: forks, and for each leaf the multiplier of its bound (None: it cannot gain enough, or
        too many features must move). The root is 0.
    """

    ended: Ended
    moves: dict[int, float] | None = None
    cost: float = inf
    bound: float = -inf
    better: Sequence[dict[int, float]] = ()
    tree: Mapping[int, Fork | float | None] = field(default_factory=dict, compare=False)


class _Point(NamedTuple):
    """One end of what a feature can do: its gain and cost there, and the move (None: it stays)."""

    gain: float
    cost: float
    move: float | None


@dataclass(frozen=True)
class _Choice:
    """Items of one feature that are left at a node: some jumps, or a slide between `low` and `high`; `must`: it moves."""

    jumps: tuple[int, ...] = ()
    low: float = 0.0
    high: float = 0.0
    must: bool = False


_STAY = _Point(0.0, 0.0, None)
_Entry = tuple[bool, Sequence[_Point]]


class _Node(NamedTuple):
    """Node: the choices left to each feature, the points that they amount to, and the multiplier of the parent's bound."""

    choices: tuple[_Choice, ...]
    table: tuple[_Entry, ...]
    price: float = inf

    def but(self, j: int, choice: _Choice, entry: _Entry, price: float) -> _Node:
        """Return a child in which one feature may do less."""
        choices, table = list(self.choices), list(self.table)
        choices[j], table[j] = choice, entry
        return _Node(tuple(choices), tuple(table), price)


class _Picked(NamedTuple):
    """A point per feature, its total gain and cost."""

    gain: float
    cost: float
    points: Sequence[_Point]


def cheapest_moves(
    features: Sequence[Sequence[Jump] | Slide],
    need: float,
    most: int | None = None,
    *,
    gap: float = OPTIMALITY,
    cutoff: float = inf,
    deadline: Deadline = NEVER,
    tuning: KnapsackSearch = DEFAULT.knapsack,
) -> Answer:
    """Return the cheapest moves below the cut-off that gain enough, as far as they are known when the search ends.

    Parameters
    ----------
    features
        Per feature: its jumps, or its slide. Costs and gains are not negative.
    need
        What must be gained.
    most
        How many features may move.
    gap
        Relative gap to be closed (see `ifonly.tolerances`).
    cutoff
        Answers that cost more are of no interest.
    deadline
        When to give up.
    tuning
        How many nodes and lines there may be.
    """
    return _Search(features, need, len(features) if most is None else most, gap, cutoff, deadline, tuning).run()


def _largest_gain(feature: Sequence[Jump] | Slide) -> float:
    if isinstance(feature, Slide):
        return feature.rate * feature.reach
    return max((jump.gain for jump in feature), default=0.0)


class _Search:
    """One branch and bound."""

    def __init__(
        self,
        features: Sequence[Sequence[Jump] | Slide],
        need: float,
        most: int,
        gap: float,
        cutoff: float,
        deadline: Deadline,
        tuning: KnapsackSearch,
    ) -> None:
        self.features, self.need, self.most = features, need, most
        self.gap, self.deadline, self.tuning = gap, deadline, tuning
        self.value = cutoff
        # Sums of gains are off by a few units in the last place of what they are made of, and by no more.
        self.dust = SHORT_SUM * (abs(need) + sum(_largest_gain(feature) for feature in features))
        self.best: dict[int, float] | None = None
        self.found: list[dict[int, float]] = []
        self.tree: dict[int, Fork | float | None] = {}

    @property
    def budget(self) -> float:
        """Cut-off: a node whose bound is not below it is pruned."""
        return self.value - closing_gap(self.value, self.gap) if self.value < inf else inf

    def run(self) -> Answer:
        """Search, least bound first."""
        choices = tuple(self._whole(feature) for feature in self.features)
        heap = [(-inf, 0, _Node(choices, tuple(self._entry(j, choice) for j, choice in enumerate(choices))))]
        settled, nodes = inf, 0
        while heap and heap[0][0] < self.budget:
            if nodes >= self.tuning.most_nodes or self.deadline.passed:
                ended = Ended.GAVE_UP if nodes >= self.tuning.most_nodes else Ended.LIMIT
                return self._answer(ended, min(heap[0][0], settled, self.value))
            _, name, node = heapq.heappop(heap)
            nodes += 1
            bound, fork, price = self._bound(node)
            self.tree[name] = None if bound == inf else price
            if fork is None:
                settled = min(settled, bound)
            elif bound < self.budget:
                j = fork[0]
                sides = self._split(node.choices[j], *fork)
                self.tree[name] = self._noted(j, node.choices[j], sides, 2 * nodes)
                for side, choice in enumerate(sides):
                    child = node.but(j, choice, self._entry(j, choice), price)
                    heapq.heappush(heap, (bound, 2 * nodes + side, child))
        if settled < self.budget - _DUST * max(1.0, abs(self.value)):
            # rounding kept a settled node from delivering what its bound promised
            return self._answer(Ended.GAVE_UP, min(settled, self.value))
        self.tree |= {name: node.price for _, name, node in heap}
        return self._answer(Ended.CLOSED, inf if self.best is None else min(self.value, self.budget))

    def _answer(self, ended: Ended, bound: float) -> Answer:
        cost = inf if self.best is None else self.value
        return Answer(ended, self.best, cost, bound, self.found, self.tree)

    # -- what a feature can do ----------------------------------------------------------------------------------
    @staticmethod
    def _whole(feature: Sequence[Jump] | Slide) -> _Choice:
        if isinstance(feature, Slide):
            return _Choice(high=feature.reach)
        return _Choice(jumps=tuple(sorted(range(len(feature)), key=lambda i: feature[i].gain)))

    def _entry(self, j: int, choice: _Choice) -> _Entry:
        feature = self.features[j]
        if isinstance(feature, Slide):
            ends = (choice.low, choice.high) if choice.must and choice.low < choice.high else (choice.high,)
            points = [
                _Point(feature.rate * d, feature.price + feature.fee * d, d) for d in ends if d > 0 or choice.must
            ]
        else:
            points = [_Point(feature[i].gain, feature[i].cost, float(i)) for i in choice.jumps]
        return choice.must, points

    # -- bounding -----------------------------------------------------------------------------------------------
    def _bound(self, node: _Node) -> tuple[float, tuple[int, float] | None, float]:
        """Return the node's bound, where to branch (None when it is settled), and the price that gives the bound.

        The parent's price comes first: most nodes that can be given up are given up by it alone.
        """
        table, price = node.table, node.price
        middle = self._pick(table, price)
        if middle is None:
            return inf, None, price
        if price < inf and (top := self._value(middle, price)) >= self.budget:
            return top, None, price
        right = middle if price == inf else self._pick(table, inf)
        left = self._pick(table, 0.0)
        assert left is not None
        assert right is not None
        if right.gain < self.need - self.dust:
            return inf, None, price
        if left.gain >= self.need:
            self._offer(left)
            return left.cost, None, 0.0
        top, price = left.cost, 0.0
        for _ in range(self.tuning.most_lines):
            if right.gain <= left.gain:
                break
            slope = (right.cost - left.cost) / (right.gain - left.gain)
            middle = self._pick(table, slope)
            assert middle is not None
            if (value := self._value(middle, slope)) > top:
                top, price = value, slope
            if middle.cost - slope * middle.gain >= left.cost - slope * left.gain - _DUST * max(1.0, abs(top)):
                break
            if middle.gain >= self.need:
                right = middle
            else:
                left = middle
        self._offer(right)
        return top, self._fork(node.choices, left, right), price

    def _value(self, picked: _Picked, price: float) -> float:
        """Return the Lagrangian bound at a price."""
        return picked.cost + price * (self.need - picked.gain)

    def _pick(self, table: Sequence[_Entry], price: float) -> _Picked | None:
        """Return the choice that is best when a unit of gain is paid `price` (infinite: only gains count)."""
        charged, paid = (0.0, 1.0) if price == inf else (1.0, price)
        chosen: list[_Point] = []
        moved: list[tuple[float, float, int]] = []
        room = self.most
        for j, (must, points) in enumerate(table):
            best, worth = _STAY, inf
            for point in points:
                value = charged * point[1] - paid * point[0]
                if value < worth or (value == worth and (point[0], -point[1]) > (best[0], -best[1])):
                    best, worth = point, value
            if must:
                room -= 1
            elif worth < 0.0 or (worth == 0.0 and best[0] > 0.0):
                moved.append((worth, -best[0], j))
            else:
                best = _STAY
            chosen.append(best)
        if room < 0:
            return None
        if len(moved) > room:
            moved.sort()
            for _, _, j in moved[room:]:
                chosen[j] = _STAY
        gain = cost = 0.0
        for point in chosen:
            gain += point[0]
            cost += point[1]
        return _Picked(gain, cost, chosen)

    # -- branching ----------------------------------------------------------------------------------------------
    def _fork(self, choices: Sequence[_Choice], left: _Picked, right: _Picked) -> tuple[int, float] | None:
        """Return the feature that the two choices differ in most and its share of the way, unless any mix will do."""
        share = (self.need - left.gain) / (right.gain - left.gain) if right.gain > left.gain else 1.0
        best, where = -1.0, None
        for j, (a, b) in enumerate(zip(left.points, right.points, strict=True)):
            feature, choice = self.features[j], choices[j]
            if a.move == b.move or (choice.must and isinstance(feature, Slide) and feature.step is None):
                continue
            if abs(a.gain - b.gain) > best:
                best = abs(a.gain - b.gain)
                where = (j, (1.0 - share) * (a.move or 0.0) + share * (b.move or 0.0))
        return where

    def _split(self, choice: _Choice, j: int, at: float) -> tuple[_Choice, _Choice]:
        """Return two smaller choices of a feature: it stays or moves; if it must move: little or far."""
        feature = self.features[j]
        if not choice.must:
            low = (feature.step or 0.0) if isinstance(feature, Slide) else 0.0
            return _Choice(), replace(choice, must=True, low=low)
        if isinstance(feature, Slide):
            assert feature.step is not None
            below = min(
                max(floor(at / feature.step), ceil(choice.low / feature.step)), round(choice.high / feature.step) - 1
            )
            return replace(choice, high=below * feature.step), replace(choice, low=(below + 1) * feature.step)
        half = len(choice.jumps) // 2
        return replace(choice, jumps=choice.jumps[:half]), replace(choice, jumps=choice.jumps[half:])

    def _noted(self, j: int, choice: _Choice, sides: tuple[_Choice, _Choice], name: int) -> Fork:
        feature = self.features[j]
        at = None
        if choice.must:
            between = 0.5 * (sides[0].high + sides[1].low)
            at = between if isinstance(feature, Slide) else feature[sides[0].jumps[-1]].gain
        return Fork(j, at, name, name + 1)

    # -- answers ------------------------------------------------------------------------------------------------
    def _offer(self, picked: _Picked) -> None:
        """Keep what a choice amounts to, with and without leaving out what it gains too much, if it is the cheapest."""
        moves = {j: point.move for j, point in enumerate(picked.points) if point.move is not None}
        spare = picked.gain - self.need
        self._keep(self._taken_back(dict(moves), spare))
        for _, j in sorted((-picked.points[j].cost, j) for j in moves):
            if picked.points[j].gain <= spare:
                spare -= picked.points[j].gain
                del moves[j]
        self._keep(self._taken_back(moves, spare))

    def _taken_back(self, moves: dict[int, float], spare: float) -> dict[int, float]:
        """Shorten slides by what is gained too much, the dearest gain first."""
        slides = [(f.fee / f.rate, j) for j in moves if isinstance(f := self.features[j], Slide)]
        for _, j in sorted(slides, reverse=True):
            feature = self.features[j]
            assert isinstance(feature, Slide)
            back = spare / feature.rate
            if feature.step is not None:
                back = floor(back / feature.step) * feature.step
            back = min(back, moves[j] - (feature.step or 0.0))
            if back > 0.0:
                spare -= back * feature.rate
                moves[j] -= back
        return moves

    def _keep(self, moves: dict[int, float]) -> None:
        cost = sum(self._cost(j, move) for j, move in moves.items())
        if cost < self.value:
            self.value, self.best = cost, moves
            self.found.append(moves)

    def _cost(self, j: int, move: float) -> float:
        feature = self.features[j]
        if isinstance(feature, Slide):
            return feature.price + feature.fee * move
        return feature[int(move)].cost
