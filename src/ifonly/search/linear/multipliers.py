"""Multipliers of a knapsack with squares or a count: the top of its Lagrangian is found by intersecting tangents.

With squares the Lagrangian (see `ifonly.search.linear.knapsack`) is no sum of lines, and with a count the K best features at
one multiplier are not those at another. It is concave all the same: a tangent on either side of its top gives a multiplier
between them, and where the function is made of lines around the top they meet in it. A slide with a square is best at
``d = (lambda * rate - fee) / (2 * square)``, held between its ends, or beside it on its grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, inf

from ifonly.search.linear.knapsack import Search, slid
from ifonly.search.linear.moves import STAY, Curve, Entry, Node, Picked, Point, Top
from ifonly.tolerances import ROUNDING as _DUST

__all__ = ["CurvedSearch"]


class CurvedSearch(Search):
    """Branch and bound of moves with squares, or of which only so many may be made."""

    def worth(self, entry: Entry, price: float) -> float:
        """Return the reduced cost of a move: that of the best point, or of the shortest way of a slide."""
        if not isinstance(entry.points, Curve):
            return super().worth(entry, price)
        return min(point.cost - price * point.gain for point in _best(entry.points, price))

    def top(self, node: Node) -> Top | None:
        """Return the top of a node's Lagrangian, as far as the budget asks for it; None: no choice gains enough.

        The multiplier of the parent's is near by. It comes first: most nodes that can be given up are given up by it alone.
        """
        table, at = node.table, node.price
        if sum(entry.must for entry in table) > self.most:
            return None
        best = self._pick(table, at)
        if at < inf and (value := self._value(best, at)) >= self.known.budget:
            return Top(best, best, best, value, at)
        around = self._bracket(table, at, best)
        if around is None:
            return None
        left, right, best, value, at = around
        if left.gain >= self.need:
            return around
        for _ in range(self.tuning.most_lines):
            if value >= self.known.budget or right.gain <= left.gain:
                break
            slope = (right.cost - left.cost) / (right.gain - left.gain)
            middle = self._pick(table, slope)
            if (other := self._value(middle, slope)) > value:
                best, value, at = middle, other, slope
            if middle.cost - slope * middle.gain >= left.cost - slope * left.gain - _DUST * abs(value):
                break
            if middle.gain >= self.need:
                right = middle
            else:
                left = middle
        return Top(left, right, best, value, at)

    def _bracket(self, table: Sequence[Entry], price: float, middle: Picked) -> Top | None:
        """Return choices that gain too little and enough, with the best bound and its multiplier; None: none gains enough.

        Where all gain enough, both are the one that costs least.
        """
        best, top, at = (middle, self._value(middle, price), price) if price < inf else (middle, -inf, 0.0)
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
            if other < inf and (value := self._value(picked, other)) > top:
                best, top, at = picked, value, other
            if (picked.gain >= self.need) != enough:
                return Top(picked, last, best, top, at) if enough else Top(last, picked, best, top, at)
            last = picked
        if enough:  # at a multiplier of 0
            return Top(last, last, best, top, at)
        # at an infinite one: sums of gains in another order may differ by a little
        return None if last.gain < self.need - self.dust else Top(middle, last, best, top, at)

    def _value(self, picked: Picked, price: float) -> float:
        """Return the Lagrangian bound at a price."""
        return picked.cost + price * (self.need - picked.gain)

    def _pick(self, table: Sequence[Entry], price: float) -> Picked:
        """Return the choice that is best when a unit of gain is paid `price` (infinite: only gains count)."""
        charged, paid = (0.0, 1.0) if price == inf else (1.0, price)
        chosen: list[Point] = []
        moved: list[tuple[float, float, int]] = []
        room = self.most
        for i, entry in enumerate(table):
            best, worth, points = STAY, inf, entry.points
            for point in _best(points, price) if isinstance(points, Curve) else points:
                value = charged * point[1] - paid * point[0]
                if value < worth or (value == worth and (point[0], -point[1]) > (best[0], -best[1])):
                    best, worth = point, value
            if entry.must:
                room -= 1
            elif worth < 0.0 or (worth == 0.0 and best[0] > 0.0):
                moved.append((worth, -best[0], i))
            else:
                best = STAY
            chosen.append(best)
        if len(moved) > room:
            moved.sort()
            for _, _, i in moved[room:]:
                chosen[i] = STAY
        points_of = {entry.j: point for entry, point in zip(table, chosen, strict=True) if point is not STAY}
        gains, costs = [p.gain for p in points_of.values()], [p.cost for p in points_of.values()]
        return Picked(sum(gains), sum(costs), points_of)


def _best(curve: Curve, price: float) -> tuple[Point, ...]:
    """Return the point of a curve that is best when a unit of gain is paid `price`, or on a grid the two beside it."""
    slide, low, high = curve
    at = high if price == inf else (price * slide.rate - slide.fee) / (2.0 * slide.square)
    ends: tuple[float, ...] = (min(max(at, low), high),)
    if slide.step is not None and low < at < high:
        below = floor(at / slide.step)
        ends = (max(below * slide.step, low), min((below + 1) * slide.step, high))
    return tuple(slid(slide, d) for d in ends)
