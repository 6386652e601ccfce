"""Multiple-choice knapsack by branch and bound: the cheapest items that gain enough, one per feature, at most so many.

Each feature stays, at no cost and no gain, or makes one of its moves: a `Jump` (another level) or a `Slide` (a number, as
far as it takes, for a cost that is linear or has a square). Wanted is

    min sum of costs   such that   sum of gains >= need   and   at most K features move.

Branch and bound with the Lagrangian bound of the one coupling row (Sinha and Zoltners 1979, with the count beside it):

    L(lambda) = lambda * need + sum over features of min(0, cost - lambda * gain), the K least of them,

a concave function of one number whose top is found by intersecting the two tangents around it: exactly where it is made of
lines. A slide with a square is best at ``d = (lambda * rate - fee) / (2 * square)``, held between its ends, or beside it on
its grid. The choice on the right of the top gains enough, so every node also gives an answer: what it gains too much is
taken back where that saves most. Where there are many features, most are seen at the root to stay (`shaving`).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, inf
from typing import NamedTuple

from ifonly.question.found import Ended
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT, KnapsackSearch
from ifonly.search.moves import Curve, Jump, Point, Slide
from ifonly.search.shaving import Prices
from ifonly.search.taking_back import Incumbent
from ifonly.tolerances import OPTIMALITY, ROUNDING, closing_gap
from ifonly.tolerances import ROUNDING as _DUST

__all__ = ["Answer", "Fork", "Jump", "Slide", "cheapest_moves"]

NEVER = Deadline.never()


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


@dataclass(frozen=True)
class _Choice:
    """Items of one feature that are left at a node: some jumps, or a slide between `low` and `high`; `must`: it moves."""

    jumps: tuple[int, ...] = ()
    low: float = 0.0
    high: float = 0.0
    must: bool = False


_STAY = Point(0.0, 0.0, None)
_Moves = Sequence[Point] | Curve


class _Entry(NamedTuple):
    """Entry of a feature in a node: the points that are left to it, and whether it must take one of them."""

    j: int
    must: bool
    points: _Moves


class _Node(NamedTuple):
    """Node: what is left to the features that may move, where that is not all; and the multiplier of the parent's bound."""

    choices: Mapping[int, _Choice]
    table: Sequence[_Entry]
    price: float = inf

    def but(self, choice: _Choice, entry: _Entry, price: float, open_: Collection[int] | None) -> _Node:
        """Return a child in which one feature may do less, and others than some may do nothing (None: all still may)."""
        table = [entry if e.j == entry.j else e for e in self.table if open_ is None or e.must or e.j in open_]
        return _Node({**self.choices, entry.j: choice}, table, price)


class _Picked(NamedTuple):
    """A point per feature of a node's table, its total gain and cost."""

    gain: float
    cost: float
    points: Sequence[Point]


class _Bounded(NamedTuple):
    """A node's bound, where to branch (None when it is settled), and the multiplier that gives the bound."""

    bound: float
    fork: tuple[int, float] | None
    price: float


def cheapest_moves(
    features: Sequence[Sequence[Jump] | Slide],
    need: float,
    most: int | None = None,
    *,
    gap: float = OPTIMALITY,
    cutoff: float = inf,
    deadline: Deadline = NEVER,
    trail: bool = False,
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
    trail
        Whether the tree must cover all features, for a proof that can be replayed.
    tuning
        How many nodes and lines there may be.
    """
    most = len(features) if most is None else most
    search = _Search(features, need, most, gap, cutoff, deadline, tuning, fixes=not trail)
    return search.run() if trail or len(features) < tuning.many else search.shaved()


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
        *,
        fixes: bool = False,
    ) -> None:
        self.features, self.need, self.most = features, need, most
        self.gap, self.deadline, self.tuning, self.fixes = gap, deadline, tuning, fixes
        self.incumbent = Incumbent(features, need, most, cutoff, tuning.most_cuts)
        self.dust = self.incumbent.dust
        self.tree: dict[int, Fork | float | None] = {}

    @property
    def value(self) -> float:
        """Cost of the incumbent, or the cut-off."""
        return self.incumbent.value

    @property
    def budget(self) -> float:
        """Cut-off: a node whose bound is not below it is pruned."""
        return self.value - closing_gap(self.value, self.gap) if self.value < inf else inf

    def run(self) -> Answer:
        """Search all features."""
        return self._run(range(len(self.features)))

    def shaved(self) -> Answer:
        """Search the features that may move in a better answer than those that are found at the root."""
        prices = Prices(self.features, self.need, self.most, self.tuning)
        top = prices.top()
        if top is None:
            return self.run()
        point = self.incumbent.point
        for choice in prices.near(*top):
            self.incumbent.offer({j: point(j, move) for j, move in choice.items()})
        return self._run(prices.may_move(top[0], self.budget).tolist())

    def _run(self, movers: Sequence[int]) -> Answer:
        """Search, least bound first."""
        table = [self._entry(j, self._whole(j)) for j in movers]
        heap: list[tuple[float, int, _Node]] = [(-inf, 0, _Node({}, table))]
        settled, nodes, work = inf, 0, 0
        while heap and heap[0][0] < self.budget:
            too_many = nodes >= self.tuning.most_nodes or work > self.tuning.most_entries
            if too_many or self.deadline.passed:
                ended = Ended.GAVE_UP if too_many else Ended.LIMIT
                return self._answer(ended, min(heap[0][0], settled, self.value))
            _, name, node = heapq.heappop(heap)
            nodes, work = nodes + 1, work + len(node.table)
            bound, fork, price = self._bound(node)
            self.tree[name] = None if bound == inf else price
            if fork is None:
                settled = min(settled, bound)
            elif bound < self.budget:
                j = fork[0]
                choice = node.choices.get(j) or self._whole(j)
                sides = self._split(choice, *fork)
                self.tree[name] = self._noted(j, choice, sides, 2 * nodes)
                open_ = self._open(node.table, price) if self.fixes else None
                for side, part in enumerate(sides):
                    child = node.but(part, self._entry(j, part), price, open_)
                    heapq.heappush(heap, (bound, 2 * nodes + side, child))
        if settled < self.budget - _DUST * abs(self.value):
            # rounding kept a settled node from delivering what its bound promised
            return self._answer(Ended.GAVE_UP, min(settled, self.value))
        self.tree |= {name: node.price for _, name, node in heap}
        return self._answer(Ended.CLOSED, inf if self.incumbent.best is None else min(self.value, self.budget))

    def _answer(self, ended: Ended, bound: float) -> Answer:
        known = self.incumbent
        return Answer(ended, known.best, known.cost(), bound, known.found, self.tree)

    # -- what a feature can do ----------------------------------------------------------------------------------
    def _whole(self, j: int) -> _Choice:
        feature = self.features[j]
        if isinstance(feature, Slide):
            return _Choice(high=feature.reach)
        return _Choice(jumps=tuple(sorted(range(len(feature)), key=lambda i: feature[i].gain)))

    def _entry(self, j: int, choice: _Choice) -> _Entry:
        feature = self.features[j]
        points: _Moves
        if isinstance(feature, Slide) and feature.square > 0.0:
            least = choice.low if choice.must else feature.step or 0.0
            points = Curve(feature, least, choice.high) if choice.must or choice.high > 0 else ()
        elif isinstance(feature, Slide):
            ends = (choice.low, choice.high) if choice.must and choice.low < choice.high else (choice.high,)
            points = [Point(feature.rate * d, feature.cost(d), d) for d in ends if d > 0 or choice.must]
        else:
            points = [Point(feature[i].gain, feature[i].cost, float(i)) for i in choice.jumps]
        return _Entry(j, choice.must, points)

    # -- bounding -----------------------------------------------------------------------------------------------
    def _bound(self, node: _Node) -> _Bounded:
        """Return the node's bound by the top of its Lagrangian; the multiplier of the parent's is near by.

        It comes first: most nodes that can be given up are given up by it alone.
        """
        table, price = node.table, node.price
        middle = self._pick(table, price)
        if middle is None:
            return _Bounded(inf, None, price)
        if price < inf and (top := self._value(middle, price)) >= self.budget:
            return _Bounded(top, None, price)
        around = self._bracket(table, price, middle)
        if around is None:
            return _Bounded(inf, None, price)
        left, right, top, price = around
        if left.gain >= self.need:
            self._offer(table, left)
            return _Bounded(left.cost, None, 0.0)
        for _ in range(self.tuning.most_lines):
            if top >= self.budget:  # what could be offered is no better
                return _Bounded(top, None, price)
            if right.gain <= left.gain:
                break
            slope = (right.cost - left.cost) / (right.gain - left.gain)
            middle = self._pick(table, slope)
            assert middle is not None
            if (value := self._value(middle, slope)) > top:
                top, price = value, slope
            if middle.cost - slope * middle.gain >= left.cost - slope * left.gain - _DUST * abs(top):
                break
            if middle.gain >= self.need:
                right = middle
            else:
                left = middle
        self._offer(table, right)
        self._offer(table, left)
        return _Bounded(top, self._fork(node, left, right), price)

    def _bracket(
        self, table: Sequence[_Entry], price: float, middle: _Picked
    ) -> tuple[_Picked, _Picked, float, float] | None:
        """Return choices that gain too little and enough, with the best bound and its multiplier; None: none gains enough.

        Where all gain enough, both are the one that costs least.
        """
        top, at = (self._value(middle, price), price) if price < inf else (-inf, 0.0)
        enough = middle.gain >= self.need
        if not enough and price == inf and middle.gain < self.need - self.dust:
            return None
        others = (
            [0.0]
            if price == inf
            else [price * f for f in (self.tuning.nearer if enough else (*self.tuning.farther, inf))]
        )
        last = middle
        for other in others:
            picked = self._pick(table, other)
            assert picked is not None
            if other < inf and (value := self._value(picked, other)) > top:
                top, at = value, other
            if (picked.gain >= self.need) != enough:
                return (picked, last, top, at) if enough else (last, picked, top, at)
            last = picked
        if enough:  # at a multiplier of 0
            return last, last, top, at
        # at an infinite one: sums of gains in another order may differ by a little
        return None if last.gain < self.need - self.dust else (middle, last, top, at)

    def _open(self, table: Sequence[_Entry], price: float) -> set[int] | None:
        """Return the features that may move in an answer below the budget, by their reduced costs at a multiplier."""
        picked = self._pick(table, price)
        assert picked is not None
        reduced = {e.j: self._worth(e, price) for e in table if not e.must}
        moved = [e.j for e, p in zip(table, picked.points, strict=True) if not e.must and p.move is not None]
        full = len(moved) + sum(e.must for e in table) >= self.most
        room = max((reduced[j] for j in moved), default=0.0) if full else 0.0
        size = abs(picked.cost) + price * (abs(self.need) + picked.gain) + abs(self.budget)
        limit = self.budget - self._value(picked, price) + room + ROUNDING * size
        return {j for j, worth in reduced.items() if worth <= limit} | set(moved)

    def _worth(self, entry: _Entry, price: float) -> float:
        """Return the reduced cost of a move: that of the best point, or of the shortest way of a slide."""
        feature, points = self.features[entry.j], entry.points
        least = inf
        if isinstance(points, Curve):
            points = points.best(price)
        elif isinstance(feature, Slide) and points:
            way = feature.step or 0.0
            least = feature.cost(way) - price * feature.rate * way
        return min([least, *(point.cost - price * point.gain for point in points)])

    def _offer(self, table: Sequence[_Entry], picked: _Picked) -> None:
        if picked.gain < self.need - 2.0 * self.dust and not self.incumbent.curved:
            return  # it gains too little, and nothing can be made longer
        self.incumbent.offer({e.j: point for e, point in zip(table, picked.points, strict=True)})

    def _value(self, picked: _Picked, price: float) -> float:
        """Return the Lagrangian bound at a price."""
        return picked.cost + price * (self.need - picked.gain)

    def _pick(self, table: Sequence[_Entry], price: float) -> _Picked | None:
        """Return the choice that is best when a unit of gain is paid `price` (infinite: only gains count)."""
        charged, paid = (0.0, 1.0) if price == inf else (1.0, price)
        chosen: list[Point] = []
        moved: list[tuple[float, float, int]] = []
        room = self.most
        for i, (_, must, points) in enumerate(table):
            best, worth = _STAY, inf
            for point in points.best(price) if isinstance(points, Curve) else points:
                value = charged * point[1] - paid * point[0]
                if value < worth or (value == worth and (point[0], -point[1]) > (best[0], -best[1])):
                    best, worth = point, value
            if must:
                room -= 1
            elif worth < 0.0 or (worth == 0.0 and best[0] > 0.0):
                moved.append((worth, -best[0], i))
            else:
                best = _STAY
            chosen.append(best)
        if room < 0:
            return None
        if len(moved) > room:
            moved.sort()
            for _, _, i in moved[room:]:
                chosen[i] = _STAY
        gain = cost = 0.0
        for point in chosen:
            gain += point[0]
            cost += point[1]
        return _Picked(gain, cost, chosen)

    # -- branching ----------------------------------------------------------------------------------------------
    def _fork(self, node: _Node, left: _Picked, right: _Picked) -> tuple[int, float] | None:
        """Return the feature that the two choices differ in most and its share of the way, unless any mix will do."""
        share = (self.need - left.gain) / (right.gain - left.gain) if right.gain > left.gain else 1.0
        best, where = -1.0, None
        for (j, must, _), a, b in zip(node.table, left.points, right.points, strict=True):
            feature = self.features[j]
            if a.move == b.move or (isinstance(feature, Slide) and self._mixes(feature, must)):
                continue
            if abs(a.gain - b.gain) > best:
                best = abs(a.gain - b.gain)
                where = (j, (1.0 - share) * (a.move or 0.0) + share * (b.move or 0.0))
        return where

    def _mixes(self, slide: Slide, must: bool) -> bool:
        """Whether all between two moves of a slide are moves too, and their costs convex: there is nothing to branch on."""
        return slide.step is None and (must or (slide.price == 0.0 and self.most >= len(self.features)))

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
