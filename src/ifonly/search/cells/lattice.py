"""Lattice of scores: sums of leaves that are added up exactly lie on a grid, so what beats a tie beats it by a step.

Leaves of forests that were grown far are mostly pure: they add 0 or 1, and sums of such leaves are whole numbers, in floats
too. Where the threshold is a point of this grid (half of the trees) and a tie is lost, a bound that knows of rounding alone
cannot tell ties from wins, and regions that tie are divided to their last cell. With ``B`` the sum of the best leaves of a
part, and ``d_t`` by how much the best leaf of tree ``t`` that is off the grid falls short of its best one,

    a sum with some leaf off the grid is at most ``B - min_t d_t``, and one without is a point of the grid up to ``B``.

So a part holds no answer if ``B`` stays below the next point beyond the threshold and ``B - min_t d_t`` below the goal. The
same is true of leaves less what they pay for prices of splits (`split_prices`), with their Lagrangian bound for ``B``.

This is the twin of `is_missed` in `_kernel_parts.h`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.abilities import SumsLeaves
from ifonly.models.forms.scan import Brackets
from ifonly.question.goal import Goal
from ifonly.tolerances import LATTICE_STEP, ON_GRID

__all__ = ["Lattice"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Lattice:
    """Grid of the sums of leaves, for one goal.

    Attributes
    ----------
    holds
        Per leaf: whether it is on the grid.
    need
        Half a step below the least point of the grid that reaches the goal.
    """

    holds: BoolArray
    need: float

    @classmethod
    def of(cls, goal: Goal, brackets: Brackets, node: IntArray, room: float, noise: float = 0.0) -> Lattice | None:
        """Return the lattice of some leaves; None where there is none, or it says no more than the goal does.

        `room` is by how much sums may be off in the arithmetic of the search, `noise` by how much scores in the model's own.
        """
        trees = brackets.trees
        if not isinstance(trees, SumsLeaves) or len(brackets.G) != 1 or not np.isin(brackets.G, (-1.0, 0.0, 1.0)).all():
            return None
        sums, weights = trees.sums, brackets.G[0]
        exact, values = trees.adds_exactly_at(node), sums.value[node] @ weights
        low, unit = _two_most_common(values[exact])
        if not unit / sums.over > LATTICE_STEP * room:
            return None
        count = _least_count(goal, float(weights @ sums.base) + trees.n_trees * low, unit, sums.over, noise)
        if count is None:
            return None
        holds = exact & (np.rint((values - low) / unit) * unit == values - low)
        return cls(holds, (trees.n_trees * low + (count - 0.5) * unit) / sums.over)

    def is_missed(self, value: float, behind: float, need: float, rounding: float = 0.0) -> bool:
        """Whether no sum reaches the goal, where all are at most `value`, and those off the grid `behind` less at most."""
        return value < self.need - rounding and value - behind < need - rounding

    def behind(self, tops: FloatArray, worth: FloatArray, leaves: IntArray) -> float:
        """Return the least that a leaf off the grid falls short of the best one of its tree; `tops`: those, leaf by leaf."""
        off = ~self.holds[leaves]
        return float((tops[off] - worth[off]).min(initial=np.inf))


def _least_count(goal: Goal, first: float, unit: float, over: float, noise: float) -> int | None:
    """Return the least count of steps at which the exact sum ``(first + count unit) / over`` reaches the one row of a goal.

    None: where one of these sums is a tie that is not lost, which is no more than the row itself says, or so near to the
    threshold that the rounding of the model decides, as where a probability in float32 is turned into a score in float64.
    """
    weights, constant = goal.matrix()
    count = (-float(constant[0]) * over - first) / unit
    tie = round(count)
    away = abs(count - tie)
    if away > 0.0 and ON_GRID < noise * over / unit >= away:
        return None
    if away > ON_GRID:
        return int(np.ceil(count))
    if goal.ties_are_ours():
        return None
    if weights.shape[1] == 1:  # such a score may be a float away from the threshold, on either side
        score = (first + tie * unit) / over * float(weights[0, 0])
        return None if bool(goal.holds_scores(np.array([[score]]))[0]) else tie + 1
    return tie + 1


def _two_most_common(values: FloatArray) -> tuple[float, float]:
    """Return the lower of the two values that most leaves have, and how far they are apart; 0: there is one at most."""
    distinct, count = np.unique(values, return_counts=True)
    if len(distinct) < 2:
        return 0.0, 0.0
    low, high = np.sort(distinct[np.argsort(-count, kind="stable")[:2]]).tolist()
    return low, high - low
