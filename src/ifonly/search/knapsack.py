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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, floor, inf

from ifonly.question.found import Ended
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT, KnapsackSearch
from ifonly.search.moves import Answer, Bounded, Choice, Curve, Entry, Fork, Jump, Node, Picked, Point, Slide
from ifonly.search.shaving import Prices
from ifonly.tolerances import CLOSING, OPTIMALITY, ROUNDING, SHORT_SUM
from ifonly.tolerances import ROUNDING as _DUST

__all__ = ["Answer", "Fork", "Jump", "Slide", "cheapest_moves"]

NEVER = Deadline.never()
_STAY = Point(0.0, 0.0, None)


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
    known = _Incumbent(features, need, len(features) if most is None else most, cutoff, CLOSING * gap)
    search = _Search(known, deadline, tuning, fixes=not trail)
    return search.run(range(len(features))) if trail or len(features) < tuning.many else search.shaved()


def _slid(slide: Slide, d: float) -> Point:
    """Return gain and cost of a slide by `d`."""
    return Point(slide.rate * d, slide.price + (slide.fee + slide.square * d) * d, d)


def _best(curve: Curve, price: float) -> tuple[Point, ...]:
    """Return the point of a curve that is best when a unit of gain is paid `price`, or on a grid the two beside it."""
    slide, low, high = curve
    at = high if price == inf else (price * slide.rate - slide.fee) / (2.0 * slide.square)
    ends: tuple[float, ...] = (min(max(at, low), high),)
    if slide.step is not None and low < at < high:
        below = floor(at / slide.step)
        ends = (max(below * slide.step, low), min((below + 1) * slide.step, high))
    return tuple(_slid(slide, d) for d in ends)


class _Search:
    """One branch and bound."""

    def __init__(self, known: _Incumbent, deadline: Deadline, tuning: KnapsackSearch, *, fixes: bool) -> None:
        self.known, self.deadline, self.tuning, self.fixes = known, deadline, tuning, fixes
        self.features, self.need, self.most, self.dust = known.features, known.need, known.most, known.dust
        self.tree: dict[int, Fork | float | None] = {}

    def shaved(self) -> Answer:
        """Search the features that may move in a better answer than those that are found at the root."""
        prices = Prices(self.features, self.need, self.most, self.tuning)
        top = prices.top()
        if top is None:
            return self.run(range(len(self.features)))
        for choice in prices.near(*top):
            self.known.offer({j: self.known.point(j, move) for j, move in choice.items()}, self.tuning.most_cuts)
        return self.run(prices.may_move(top[0], self.known.budget).tolist())

    def run(self, movers: Sequence[int]) -> Answer:
        """Search some features, least bound first; the others stay."""
        table = [self._entry(j, self._whole(j)) for j in movers]
        heap: list[tuple[float, int, Node]] = [(-inf, 0, Node({}, table))]
        settled, nodes, work, known = inf, 0, 0, self.known
        while heap and heap[0][0] < known.budget:
            too_many = nodes >= self.tuning.most_nodes or work > self.tuning.most_entries
            if too_many or self.deadline.passed:
                ended = Ended.GAVE_UP if too_many else Ended.LIMIT
                return self._answer(ended, min(heap[0][0], settled, known.value))
            _, name, node = heapq.heappop(heap)
            nodes, work = nodes + 1, work + len(node.table)
            bound, fork, price = self._bound(node)
            self.tree[name] = None if bound == inf else price
            if fork is None:
                settled = min(settled, bound)
            elif bound < known.budget:
                j = fork[0]
                choice = node.choices.get(j) or self._whole(j)
                sides = self._split(choice, *fork)
                self.tree[name] = self._noted(j, choice, sides, 2 * nodes)
                open_ = self._open(node.table, price) if self.fixes else node.table
                for side, part in enumerate(sides):
                    own = self._entry(j, part)
                    child = Node({**node.choices, j: part}, [own if e.j == j else e for e in open_], price)
                    heapq.heappush(heap, (bound, 2 * nodes + side, child))
        if settled < known.budget - _DUST * abs(known.value):
            # rounding kept a settled node from delivering what its bound promised
            return self._answer(Ended.GAVE_UP, min(settled, known.value))
        self.tree |= {name: node.price for _, name, node in heap}
        return self._answer(Ended.CLOSED, inf if known.best is None else min(known.value, known.budget))

    def _answer(self, ended: Ended, bound: float) -> Answer:
        known = self.known
        cost = inf if known.best is None else known.value
        return Answer(ended, known.best, cost, bound, known.found, self.tree)

    # -- what a feature can do ----------------------------------------------------------------------------------
    def _whole(self, j: int) -> Choice:
        feature = self.features[j]
        if isinstance(feature, Slide):
            return Choice(high=feature.reach)
        return Choice(jumps=tuple(sorted(range(len(feature)), key=lambda i: feature[i].gain)))

    def _entry(self, j: int, choice: Choice) -> Entry:
        feature = self.features[j]
        points: Sequence[Point] | Curve
        if isinstance(feature, Slide) and feature.square > 0.0:
            least = choice.low if choice.must else feature.step or 0.0
            points = Curve(feature, least, choice.high) if choice.must or choice.high > 0 else ()
        elif isinstance(feature, Slide):
            ends = (choice.low, choice.high) if choice.must and choice.low < choice.high else (choice.high,)
            points = [_slid(feature, d) for d in ends if d > 0 or choice.must]
        else:
            points = [Point(feature[i].gain, feature[i].cost, float(i)) for i in choice.jumps]
        return Entry(j, choice.must, points)

    # -- bounding -----------------------------------------------------------------------------------------------
    def _bound(self, node: Node) -> Bounded:
        """Return the node's bound by the top of its Lagrangian; the multiplier of the parent's is near by.

        It comes first: most nodes that can be given up are given up by it alone.
        """
        table, price = node.table, node.price
        middle = self._pick(table, price)
        if middle is None:
            return Bounded(inf, None, price)
        if price < inf and (top := self._value(middle, price)) >= self.known.budget:
            return Bounded(top, None, price)
        around = self._bracket(table, price, middle)
        if around is None:
            return Bounded(inf, None, price)
        left, right, top, price = around
        if left.gain >= self.need:
            self._offer(table, left)
            return Bounded(left.cost, None, 0.0)
        for _ in range(self.tuning.most_lines):
            if top >= self.known.budget:  # what could be offered is no better
                return Bounded(top, None, price)
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
        return Bounded(top, self._fork(node, left, right), price)

    def _bracket(
        self, table: Sequence[Entry], price: float, middle: Picked
    ) -> tuple[Picked, Picked, float, float] | None:
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

    def _open(self, table: Sequence[Entry], price: float) -> list[Entry]:
        """Return the entries that may move in an answer below the budget, by their reduced costs at a multiplier."""
        picked, budget = self._pick(table, price), self.known.budget
        assert picked is not None
        reduced = [-inf if e.must else self._worth(e, price) for e in table]
        moves = [e.must or p.move is not None for e, p in zip(table, picked.points, strict=True)]
        moved = (r for r, moving in zip(reduced, moves, strict=True) if moving and r > -inf)
        room = max(moved, default=0.0) if sum(moves) >= self.most else 0.0
        size = abs(picked.cost) + price * (abs(self.need) + picked.gain) + abs(budget)
        limit = budget - self._value(picked, price) + room + ROUNDING * size
        return [e for e, r, moving in zip(table, reduced, moves, strict=True) if moving or r <= limit]

    def _worth(self, entry: Entry, price: float) -> float:
        """Return the reduced cost of a move: that of the best point, or of the shortest way of a slide."""
        feature, points = self.features[entry.j], entry.points
        if isinstance(points, Curve):
            points = _best(points, price)
        elif isinstance(feature, Slide) and points:
            points = (_slid(feature, feature.step or 0.0), *points)
        return min((point.cost - price * point.gain for point in points), default=inf)

    def _offer(self, table: Sequence[Entry], picked: Picked) -> None:
        if picked.gain < self.need - 2.0 * self.dust and not self.known.curved:
            return  # it gains too little, and nothing can be made longer
        self.known.offer({e.j: p for e, p in zip(table, picked.points, strict=True)}, self.tuning.most_cuts)

    def _value(self, picked: Picked, price: float) -> float:
        """Return the Lagrangian bound at a price."""
        return picked.cost + price * (self.need - picked.gain)

    def _pick(self, table: Sequence[Entry], price: float) -> Picked | None:
        """Return the choice that is best when a unit of gain is paid `price` (infinite: only gains count)."""
        charged, paid = (0.0, 1.0) if price == inf else (1.0, price)
        chosen: list[Point] = []
        moved: list[tuple[float, float, int]] = []
        room = self.most
        for i, (_, must, points) in enumerate(table):
            best, worth = _STAY, inf
            for point in _best(points, price) if isinstance(points, Curve) else points:
                gain, cost, _ = point
                value = charged * cost - paid * gain
                if value < worth or (value == worth and (gain, -cost) > (best[0], -best[1])):
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
        return Picked(gain, cost, chosen)

    # -- branching ----------------------------------------------------------------------------------------------
    def _fork(self, node: Node, left: Picked, right: Picked) -> tuple[int, float] | None:
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

    def _split(self, choice: Choice, j: int, at: float) -> tuple[Choice, Choice]:
        """Return two smaller choices of a feature: it stays or moves; if it must move: little or far."""
        feature = self.features[j]
        if not choice.must:
            low = (feature.step or 0.0) if isinstance(feature, Slide) else 0.0
            return Choice(), replace(choice, must=True, low=low)
        if isinstance(feature, Slide):
            assert feature.step is not None
            below = min(
                max(floor(at / feature.step), ceil(choice.low / feature.step)), round(choice.high / feature.step) - 1
            )
            return replace(choice, high=below * feature.step), replace(choice, low=(below + 1) * feature.step)
        half = len(choice.jumps) // 2
        return replace(choice, jumps=choice.jumps[:half]), replace(choice, jumps=choice.jumps[half:])

    def _noted(self, j: int, choice: Choice, sides: tuple[Choice, Choice], name: int) -> Fork:
        feature = self.features[j]
        at = None
        if choice.must:
            between = 0.5 * (sides[0].high + sides[1].low)
            at = between if isinstance(feature, Slide) else feature[sides[0].jumps[-1]].gain
        return Fork(j, at, name, name + 1)


class _Incumbent:
    """The cheapest moves so far: choices are shortened by what they gain too much, and count if they gain enough.

    Attributes
    ----------
    value, budget
        Cost of the incumbent, or the cut-off; and what is left of it without the share `closing`, which ends the search: a
        node whose bound is not below the budget is pruned.
    best, found
        Its moves (None: there is none), and all incumbents, each cheaper than the one before.
    dust
        By how much a sum of gains may be off.
    """

    def __init__(
        self, features: Sequence[Sequence[Jump] | Slide], need: float, most: int, cutoff: float, closing: float
    ) -> None:
        self.features, self.need, self.most, self.closing = features, need, most, closing
        self.value, self.budget = cutoff, self._below(cutoff)
        # Sums of gains are off by a few units in the last place of what they are made of, and by no more.
        largest = (
            f.rate * f.reach if isinstance(f, Slide) else max((i.gain for i in f), default=0.0) for f in features
        )
        self.dust = SHORT_SUM * (abs(need) + sum(largest))
        self.curved = any(isinstance(f, Slide) and f.square > 0.0 and f.step is None for f in features)
        self.best: dict[int, float] | None = None
        self.found: list[dict[int, float]] = []

    def _below(self, value: float) -> float:
        return value - self.closing * abs(value) if value < inf else inf

    def offer(self, points: Mapping[int, Point], rounds: int) -> None:
        """Keep what a choice amounts to, with and without leaving out what it gains too much, if it is the cheapest."""
        moves = {j: point.move for j, point in points.items() if point.move is not None}
        spare = sum([points[j].gain for j in moves]) - self.need
        if spare < -self.dust and not self.curved:  # nothing can be made longer
            return
        self._keep(self._taken_back(dict(moves), spare, rounds))
        if spare <= 0.0:
            return
        count = len(moves)
        for _, j in sorted((-points[j].cost, j) for j in moves):
            if points[j].gain <= spare:
                spare -= points[j].gain
                del moves[j]
        if len(moves) < count:
            self._keep(self._taken_back(moves, spare, rounds))

    def _taken_back(self, moves: dict[int, float], spare: float, rounds: int) -> dict[int, float]:
        """Shorten slides by what is gained too much, the dearest gain first; those with a square and no grid together.

        Together: a multiplier that is less by ``m`` makes each of these shorter by ``m * rate / (2 * square)``; what is
        gained too little is made up for in the same way.
        """
        slides, curved = [], []
        for j, d in moves.items():
            feature = self.features[j]
            if isinstance(feature, Slide) and feature.square > 0.0 and feature.step is None:
                curved.append((j, feature, feature.rate / (2.0 * feature.square)))
            elif isinstance(feature, Slide):
                slides.append(((feature.fee + 2.0 * feature.square * d) / feature.rate, j))
        for _ in range(rounds):
            free = [c for c in curved if (moves[c[0]] > 0.0 if spare > 0.0 else moves[c[0]] < c[1].reach)]
            if not free or 0.0 <= spare <= self.dust:
                break
            less = spare / sum(slide.rate * per for _, slide, per in free)
            for j, slide, per in free:
                back = max(min(less * per, moves[j]), moves[j] - slide.reach)
                spare -= back * slide.rate
                moves[j] -= back
        for _, j in sorted(slides, reverse=True):
            spare = self._shorter(moves, j, spare)
        return moves

    def _shorter(self, moves: dict[int, float], j: int, spare: float) -> float:
        """Shorten one slide as far as there is something to spare, and return what is left of that."""
        feature = self.features[j]
        assert isinstance(feature, Slide)
        back = spare / feature.rate
        if feature.step is not None:
            back = floor(back / feature.step) * feature.step
        back = min(back, moves[j] - (feature.step or 0.0))
        if back > 0.0:
            spare -= back * feature.rate
            moves[j] -= back
        return spare

    def _keep(self, moves: dict[int, float]) -> None:
        if len(moves) > self.most:
            return
        points = [self.point(j, move) for j, move in moves.items()]
        cost = sum([point.cost for point in points])
        if cost < self.value and sum([point.gain for point in points]) >= self.need - self.dust:
            self.value, self.budget, self.best = cost, self._below(cost), moves
            self.found.append(moves)

    def point(self, j: int, move: float) -> Point:
        """Return gain and cost of a move."""
        feature = self.features[j]
        return _slid(feature, move) if isinstance(feature, Slide) else Point(*feature[int(move)], move)
