"""Multiple-choice knapsack by branch and bound: the cheapest items that gain enough, one per feature, at most so many.

Each feature stays, at no cost and no gain, or makes one of its moves: a `Jump` (another level) or a `Slide` (a number, as
far as it takes, for a cost that is linear or has a square). Wanted is

    min sum of costs   such that   sum of gains >= need   and   at most K features move.

Branch and bound with the Lagrangian bound of the one coupling row (Sinha and Zoltners 1979, with the count beside it):

    L(lambda) = lambda * need + sum over features of min(0, cost - lambda * gain), the K least of them,

a concave function of one number. Where it is made of lines, features go along the lower convex hulls of their moves, the
flattest edge of all first, and its top is at the edge that gains what is needed. Where there are squares or a count, it is
looked for by tangents (`multipliers`). The choice on the right of the top gains enough, so every node also gives an answer:
what it gains too much is taken back where that saves most. Where there are many features, most are seen at the root to stay
(`shaving`).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from math import ceil, floor, inf

from ifonly.question.found import Ended
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning import DEFAULT, KnapsackSearch
from ifonly.search.linear.moves import (
    STAY,
    Answer,
    Bounded,
    Choice,
    Curve,
    Edge,
    Entry,
    Fork,
    Jump,
    Node,
    Picked,
    Point,
    Slide,
    Top,
)
from ifonly.search.linear.shaving import Prices
from ifonly.tolerances import CLOSING, OPTIMALITY, ROUNDING, SHORT_SUM
from ifonly.tolerances import ROUNDING as _DUST

__all__ = ["Answer", "Fork", "Jump", "Search", "Slide", "cheapest_moves", "slid"]

NEVER = Deadline.never()


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
    search = Search(known, deadline, tuning, fixes=not trail)
    if known.most < len(features) or any(isinstance(f, Slide) and f.square > 0.0 for f in features):
        from ifonly.search.linear.multipliers import CurvedSearch  # noqa: PLC0415 - loaded where it is needed

        search = CurvedSearch(known, deadline, tuning, fixes=not trail)
    return search.run(range(len(features))) if trail or len(features) < tuning.many else search.shaved()


def slid(slide: Slide, d: float) -> Point:
    """Return gain and cost of a slide by `d`."""
    return Point(slide.rate * d, slide.price + (slide.fee + slide.square * d) * d, d)


def _hull(j: int, base: Point, points: Sequence[Point]) -> list[Edge]:
    """Return the edges of the lower convex hull of some points, from the cheapest one on."""
    left = [p for p in points if p.gain > base.gain]
    if len(left) == 1 and base is STAY:
        return [Edge(left[0].cost / left[0].gain, j, 0, left[0].gain, left[0].cost, left[0])]
    edges: list[Edge] = []
    least = 0.0  # rounding must not turn the order of two edges around
    while left:
        slope, _, to = min([((p.cost - base.cost) / (p.gain - base.gain), -p.gain, p) for p in left])
        least = max(slope, least)
        edges.append(Edge(least, j, len(edges), to.gain - base.gain, to.cost - base.cost, to))
        base, left = to, [p for p in left if p.gain > to.gain]
    return edges


class Search:
    """One branch and bound, of moves whose Lagrangian is made of lines: no count of them, and no squares."""

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
        least_leaf, nodes, work, known = inf, 0, 0, self.known
        while heap and heap[0][0] < known.budget:
            too_many = nodes >= self.tuning.most_nodes or work > self.tuning.most_entries
            if too_many or self.deadline.passed:
                ended = Ended.GAVE_UP if too_many else Ended.LIMIT
                return self._answer(ended, min(heap[0][0], least_leaf, known.value))
            _, name, node = heapq.heappop(heap)
            nodes, work = nodes + 1, work + len(node.table)
            bound, price, top, fork = self._bound(node)
            self.tree[name] = None if bound == inf else price
            if top is None or fork is None:
                least_leaf = min(least_leaf, bound)
            elif bound < known.budget:
                j = fork[0]
                choice = node.choices.get(j) or self._whole(j)
                sides = self._split(choice, *fork)
                self.tree[name] = self._noted(j, choice, sides, 2 * nodes)
                others = self._open(node.table, top) if self.fixes else node.table
                others = [e for e in others if e.j != j]
                for side, part in enumerate(sides):
                    table = [*others, self._entry(j, part)] if part.must else others
                    heapq.heappush(heap, (bound, 2 * nodes + side, Node({**node.choices, j: part}, table, price)))
        if least_leaf < known.budget - _DUST * abs(known.value):
            # rounding kept a leaf from delivering what its bound promised
            return self._answer(Ended.GAVE_UP, min(least_leaf, known.value))
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
        if isinstance(feature, Slide) and feature.square > 0.0 and (choice.must or choice.high > 0.0):
            least = choice.low if choice.must else feature.step or 0.0
            return Entry(j, choice.must, Curve(feature, least, choice.high), STAY)
        if isinstance(feature, Slide):
            ends = (choice.low, choice.high) if choice.must and choice.low < choice.high else (choice.high,)
            points = [slid(feature, d) for d in ends if d > 0 or choice.must]
        else:
            points = [Point(feature[i].gain, feature[i].cost, float(i)) for i in choice.jumps]
        base = min(points, key=lambda p: (p.cost, -p.gain)) if choice.must else STAY
        return Entry(j, choice.must, points, base, _hull(j, base, points))

    # -- bounding -----------------------------------------------------------------------------------------------
    def _bound(self, node: Node) -> Bounded:
        """Return the node's bound by the top of its Lagrangian, offer the choices around it, and say where to branch."""
        top = self.top(node)
        if top is None:
            return Bounded(inf, node.price)
        left, right, _, value, price = top
        if value >= self.known.budget:  # what could be offered is no better
            return Bounded(value, price)
        if left.gain >= self.need:
            self._offer(left)
            return Bounded(left.cost, 0.0)
        self._offer(right)
        self._offer(left)
        return Bounded(value, price, top, self._fork(node, left, right))

    def top(self, node: Node) -> Top | None:
        """Return the top of a node's Lagrangian; None: nothing gains enough.

        Features go along the edges of their hulls, the flattest first, until the next edge gains what is needed.
        """
        points = {e.j: e.base for e in node.table if e.must}
        gain, cost = sum([p.gain for p in points.values()]), sum([p.cost for p in points.values()])
        slope = 0.0
        for edge in sorted([edge for e in node.table for edge in e.edges]):
            if gain >= self.need:
                break
            slope, j, _, more, dearer, to = edge
            if gain + more >= self.need:
                left, right = Picked(gain, cost, points), Picked(gain + more, cost + dearer, {**points, j: to})
                return Top(left, right, left, cost + slope * (self.need - gain), slope)
            gain, cost, points[j] = gain + more, cost + dearer, to
        if gain < self.need - self.dust:
            return None
        # all gain enough at a multiplier of 0, or the sum of all gains is off by a little
        last = Picked(gain, cost, points)
        return Top(last, last, last, cost + slope * max(self.need - gain, 0.0), slope)

    def _open(self, table: Sequence[Entry], top: Top) -> list[Entry]:
        """Return the entries that may move in an answer below the budget, by their reduced costs at a multiplier."""
        picked, price, budget = top.best, top.price, self.known.budget
        reduced = [-inf if e.must else self.worth(e, price) for e in table]
        moves = [e.must or e.j in picked.points for e in table]
        moved = (r for r, moving in zip(reduced, moves, strict=True) if moving and r > -inf)
        room = max(moved, default=0.0) if sum(moves) >= self.most else 0.0
        size = abs(picked.cost) + price * (abs(self.need) + picked.gain) + abs(budget)
        limit = budget - top.value + room + ROUNDING * size
        return [e for e, r, moving in zip(table, reduced, moves, strict=True) if moving or r <= limit]

    def worth(self, entry: Entry, price: float) -> float:
        """Return the reduced cost of a move: that of the best point, or of the shortest way of a slide."""
        feature, points = self.features[entry.j], entry.points
        assert not isinstance(points, Curve)
        if isinstance(feature, Slide) and points:
            points = (slid(feature, feature.step or 0.0), *points)
        return min([point.cost - price * point.gain for point in points], default=inf)

    def _offer(self, picked: Picked) -> None:
        if picked.gain < self.need - 2.0 * self.dust and not self.known.curved:
            return  # it gains too little, and nothing can be made longer
        self.known.offer(picked.points, self.tuning.most_cuts)

    # -- branching ----------------------------------------------------------------------------------------------
    def _fork(self, node: Node, left: Picked, right: Picked) -> tuple[int, float] | None:
        """Return the feature that the two choices differ in most and its share of the way, unless any mix will do."""
        share = (self.need - left.gain) / (right.gain - left.gain) if right.gain > left.gain else 1.0
        best, where = -1.0, None
        for j in sorted({*left.points, *right.points}):
            a, b, feature = left.points.get(j, STAY), right.points.get(j, STAY), self.features[j]
            must = j in node.choices and node.choices[j].must
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
            return Choice(), choice._replace(must=True, low=low)
        if isinstance(feature, Slide):
            assert feature.step is not None
            below = min(
                max(floor(at / feature.step), ceil(choice.low / feature.step)), round(choice.high / feature.step) - 1
            )
            return choice._replace(high=below * feature.step), choice._replace(low=(below + 1) * feature.step)
        half = len(choice.jumps) // 2
        return choice._replace(jumps=choice.jumps[:half]), choice._replace(jumps=choice.jumps[half:])

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
        spare = sum([point.gain for point in points.values()]) - self.need
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
        return slid(feature, move) if isinstance(feature, Slide) else Point(*feature[int(move)], move)
