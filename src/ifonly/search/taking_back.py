"""Incumbents of a knapsack: choices that gain enough, shortened by what they gain too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, inf

from ifonly.search.moves import Jump, Point, Slide
from ifonly.tolerances import SHORT_SUM

__all__ = ["Incumbent"]


def _largest_gain(feature: Sequence[Jump] | Slide) -> float:
    if isinstance(feature, Slide):
        return feature.rate * feature.reach
    return max((jump.gain for jump in feature), default=0.0)


class Incumbent:
    """The cheapest moves so far: what is offered is improved first, and counts if it gains enough.

    Attributes
    ----------
    value
        Cost of the incumbent, or the cut-off.
    best
        Its moves; None: there is none.
    found
        All incumbents, each cheaper than the one before.
    dust
        By how much a sum of gains may be off.
    """

    def __init__(
        self, features: Sequence[Sequence[Jump] | Slide], need: float, most: int, cutoff: float, rounds: int
    ) -> None:
        self.features, self.need, self.most, self.value = features, need, most, cutoff
        self.rounds = rounds
        # Sums of gains are off by a few units in the last place of what they are made of, and by no more.
        self.dust = SHORT_SUM * (abs(need) + sum(_largest_gain(feature) for feature in features))
        self.curved = any(isinstance(f, Slide) and f.square > 0.0 and f.step is None for f in features)
        self.best: dict[int, float] | None = None
        self.found: list[dict[int, float]] = []

    def offer(self, points: Mapping[int, Point]) -> None:
        """Keep what a choice amounts to, with and without leaving out what it gains too much, if it is the cheapest."""
        moves = {j: point.move for j, point in points.items() if point.move is not None}
        spare = sum(points[j].gain for j in moves) - self.need
        if spare < -self.dust and not self.curved:  # nothing can be made longer
            return
        self._keep(self._taken_back(dict(moves), spare))
        if spare <= 0.0:
            return
        count = len(moves)
        for _, j in sorted((-points[j].cost, j) for j in moves):
            if points[j].gain <= spare:
                spare -= points[j].gain
                del moves[j]
        if len(moves) < count:
            self._keep(self._taken_back(moves, spare))

    def _taken_back(self, moves: dict[int, float], spare: float) -> dict[int, float]:
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
        for _ in range(self.rounds):
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
        cost = sum([self._cost(j, move) for j, move in moves.items()])
        if not cost < self.value:
            return
        gain = sum(self.point(j, move).gain for j, move in moves.items())
        if gain >= self.need - self.dust:
            self.value, self.best = cost, moves
            self.found.append(moves)

    def _cost(self, j: int, move: float) -> float:
        feature = self.features[j]
        return feature.cost(move) if isinstance(feature, Slide) else feature[int(move)].cost

    def point(self, j: int, move: float) -> Point:
        """Return gain and cost of a move."""
        feature = self.features[j]
        if isinstance(feature, Slide):
            return Point(feature.rate * move, feature.cost(move), move)
        jump = feature[int(move)]
        return Point(jump.gain, jump.cost, move)

    def cost(self) -> float:
        """Return the cost of the best moves; infinite: there are none."""
        return inf if self.best is None else self.value
