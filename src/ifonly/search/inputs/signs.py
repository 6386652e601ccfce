"""Branch and bound over signs of units, compiled, for questions whose features many small changes may share the cost of.

A box of many continuous numbers has to be halved along many of them before the signs of units are decided in it. Where a
node also keeps the sum of a unit on one side of a value, few splits are enough however many the numbers are: the search for
robust answers does that (`ifonly.models.forms.signs`), and with a ball of no radius it answers the plain question.

It is not replayed, so it does not serve where a proof is kept, nor where a change has a price of its own, or few features may
change: its programs are linear. With categories and numbers of few values boxes are small soon: there they come first, and
it goes on with what they leave.
"""

from __future__ import annotations

import numpy as np

from ifonly.models.forms.backward import Layers
from ifonly.models.forms.signs import Ball, Room, Signs, knows
from ifonly.question.found import Ended
from ifonly.runtime.kernels import Said
from ifonly.runtime.tuning import PlainSigns
from ifonly.search.inputs.branching import Open, OverInputs
from ifonly.tolerances import ASKED_OF_ROUNDING, OFFERED_OF_ROUNDING

__all__ = ["BySigns", "room_of"]


def room_of(search: OverInputs[Open]) -> Room:
    """Return what a search may change, as the kernel takes it."""
    free, whole = search.free, search.whole()
    numbers = (free.home, free.origin, free.rate, free.square, free.price, free.step, free.room)
    levels = (free.level_cost, free.level_home, whole.allowed[0], free.first)
    return Room(*numbers, whole.low[0], whole.high[0], *levels, free.elsewhere, free.most, np.empty(0))


class BySigns:
    """One branch and bound over inputs and signs, beside one over inputs that it shares incumbents with.

    Attributes
    ----------
    bound
        No point costs less that is better than the incumbent.
    """

    def __init__(self, search: OverInputs[Open], layers: Layers, tuning: PlainSigns) -> None:
        numbers = search.statement.query.tuning.signs
        self.search, self.progress, self.tuning = search, search.progress, tuning
        self.bound, self._refused, self._look = search.free.elsewhere, 0, tuning.first_look
        self._first: float | None = None
        still = np.zeros(len(search.places.places) + len(search.places.entries))
        room = float(layers.room[-1].max())
        # a bound is off by no more than the room: a single point that misses a row by more is closed
        shape = (still, still - np.inf, still + np.inf, still, False)
        ball = Ball(layers, *shape, OFFERED_OF_ROUNDING * room, ASKED_OF_ROUNDING * room)
        self._signs: Signs | None = Signs(room_of(search), [ball], tuning.kernel_bytes, numbers)

    @staticmethod
    def takes(search: OverInputs[Open], layers: Layers, tuning: PlainSigns) -> bool:
        """Whether the kernel is there, knows the units, and costs grow evenly in a question of which no proof is kept.

        Its programs are linear: prices, squares and numbers of changes are seen in small boxes only.
        """
        free, inputs = search.free, len(search.places.places) + len(search.places.entries)
        even = not (free.price > 0.0).any() and not (free.square > 0.0).any() and free.most >= free.n_features
        return even and search.progress.ledger is None and inputs <= tuning.most_inputs and knows([layers.blocks])

    def comes_first(self) -> bool:
        """Whether boxes are worse: there are many numbers of many values, and most features are such."""
        free, whole = self.search.free, self.search.whole()
        many = int((whole.high[0] - whole.low[0] >= self.tuning.many_values * free.step).sum())
        return many >= max(self.tuning.least_many, self.tuning.least_share * free.n_features)

    def run(self, most_work: int) -> Ended:
        """Go on with so much work; it is given up for good where it comes to nothing."""
        signs, until = self._signs, most_work + (0 if self._signs is None else self._signs.work)
        while signs is not None and not self.search.deadline.passed and signs.work < until:
            said = signs.run(self.progress.budget, self.tuning.kernel_work)
            self.bound = max(self.bound, min(signs.bound, self.progress.budget))
            best = self.progress.best
            if said is Said.CLOSED and (signs.bound == np.inf or signs.bound > self.progress.budget):
                return Ended.CLOSED
            if best is not None and self.bound >= best.cost:  # 0 has no gap
                return Ended.CLOSED
            if said is Said.OFFER:
                numbers, levels = signs.offered()
                u = self.search.point(numbers, levels, numbers)
                self._refused = 0 if self.search.incumbents.offer(u) else self._refused + 1
            if said in (Said.CLOSED, Said.FULL) or self._is_stuck(signs):
                self._signs = signs = None  # single points that were refused, no memory, or no progress: boxes go on
        return Ended.GAVE_UP

    def _is_stuck(self, signs: Signs) -> bool:
        """Whether too little was done for the work, or all that is left is refused."""
        if self._first is None:
            self._first = self.bound
        if self._refused >= self.tuning.most_refused:
            return True
        if signs.work < self._look:
            return False
        self._look = 2 * signs.work
        return bool(self.bound - self._first < self.tuning.least_done * (self.progress.value - self._first))
