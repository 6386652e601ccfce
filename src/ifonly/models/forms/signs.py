"""Branch and bound over inputs and signs of units of rectifier networks, compiled: the cheapest point that keeps rows.

    min cost(x)   such that   row(x + d) >= 0   for all rows of all networks and all shifts d of their balls,

with costs of single features. A node is a box of inputs and a list of splits, each of which keeps an affine function of the
inputs, the sum of a unit, on one side of a value; it is bounded by a small linear program over planes above the rows, each
under one shift (`_signs.c` has the derivation). No proof rests on the solver of that program, only on its multipliers.

It serves the search for robust answers, and the attack on one: there a point of the ball is looked for at which a row is
kept that says that the outcome is lost. It knows no clock: it returns with points to be tried, and after some work.
Without a compiler the searches of `ifonly.search.balls.networks` and `ifonly.criteria.robustness.worst_point` over boxes
serve, in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.models.forms.backward import Layers
from ifonly.models.forms.propagate import Block
from ifonly.runtime.kernels import Said, in_words, is_on
from ifonly.runtime.tuning import SignSearch
from ifonly.tolerances import (
    BEYOND_BUDGET,
    DUST,
    FLOAT64_ROOM,
    KEPT_ROW,
    ROUNDING,
    SAME_MEAN,
    SAME_PLANE,
    SAME_RATIO,
    SMALLEST_PIVOT,
    TINY,
)

__all__ = ["Ball", "Room", "Signs", "kernel_in_use", "knows"]

try:
    from ifonly.models.forms import _signs
except ImportError:  # no compiler when the package was installed
    _built: ModuleType | None = None
else:
    _built = _signs


_TOLERANCES = {  # as `Numbers` of _signs.h calls them
    "rounding": ROUNDING,
    "dust": DUST,
    "float_room": FLOAT64_ROOM,
    "tiny": TINY,
    "smallest_pivot": SMALLEST_PIVOT,
    "same_ratio": SAME_RATIO,
    "kept_row": KEPT_ROW,
    "beyond_budget": BEYOND_BUDGET,
    "same_mean": SAME_MEAN,
    "same_plane": SAME_PLANE,
}


class Room(NamedTuple):
    """Inputs that may be chosen, from an origin: numbers and levels, what they cost, and between which ends.

    Attributes
    ----------
    home, origin
        Per number: the value that costs nothing, from the origin; and the raw value that counts as 0.
    rate, square, price
        Per number: a change by ``d`` costs ``rate |d| + square d^2 + price [d != 0]``.
    step, near
        Per number: the spacing of its grid (0: none), and how far from a point of it a computed value may lie.
    low, high
        Per number: the ends.
    level_cost, level_home, allowed, first
        Per level: its cost, whether it is the one that is there now, whether it may be taken; per category: its first level.
    elsewhere, most
        What other features cost, and how many of these may change.
    axes
        Per number: half-axes of an ellipsoid around home that the point must lie in; empty: there is none.
    slack
        All rows may be missed by ``v - slack / 2`` at a cost of ``v``, up to the slack: less than half of it is spent where
        they are more than kept. 0: they may not be missed.
    """

    home: FloatArray
    origin: FloatArray
    rate: FloatArray
    square: FloatArray
    price: FloatArray
    step: FloatArray
    near: FloatArray
    low: FloatArray
    high: FloatArray
    level_cost: FloatArray
    level_home: npt.NDArray[np.bool_]
    allowed: npt.NDArray[np.bool_]
    first: IntArray
    elsewhere: float
    most: int
    axes: FloatArray
    slack: float = 0.0


class Ball(NamedTuple):
    """Rows of a network that must not be negative anywhere in a ball.

    Attributes
    ----------
    layers
        The rows, over numbers and levels that may be chosen, and further numbers that only the ball moves.
    reach, low, high, step
        Per input: half-axis of the ball (0: not moved), where values end, the spacing of its grid (0: none).
    round
        Whether it is an ellipsoid; else a box.
    passes, asked
        By how much a row may be negative at a point that is offered, and what it is asked for there, if that can be had.
    """

    layers: Layers
    reach: FloatArray
    low: FloatArray
    high: FloatArray
    step: FloatArray
    round: bool
    passes: float
    asked: float = 0.0


def kernel_in_use() -> str:
    """Return the name of the kernel that searches centres of balls of networks: "compiled" or "NumPy"."""
    return in_words(compiled=_compiled())


def knows(networks: Iterable[Sequence[Block]]) -> bool:
    """Whether the kernel is there, and knows all units of networks: rectifiers, leaky or not."""
    return _compiled() and all(blocks and all(_is_convex(b.slope) for b in blocks) for blocks in networks)


def _compiled() -> bool:
    return is_on(_built)


def _is_convex(slope: FloatArray) -> bool:
    return bool(((slope >= 0.0) & (slope <= 1.0)).all())


class Signs:
    """One branch and bound.

    Parameters
    ----------
    room
        What may be chosen, and what it costs.
    balls
        What must be kept.
    most_bytes
        Memory for nodes.
    tuning
        The numbers of the search.

    Attributes
    ----------
    bound
        No point that was not offered, or was refused, costs less.
    looked
        How many nodes were looked at.
    work
        How much work was done: multiplications, about.
    """

    def __init__(self, room: Room, balls: Sequence[Ball], most_bytes: int, tuning: SignSearch) -> None:
        assert _built is not None
        self.bound, self.looked, self.work = room.elsewhere, 0, 0
        self._sizes = len(room.home), len(room.first)
        self._kernel = _built
        self._search = _built.opened(
            _features(room),
            [_network(ball) for ball in balls],
            _TOLERANCES | asdict(tuning),
            [float(ball.passes) for ball in balls],
            [float(ball.asked) for ball in balls],
            [int(ball.round) for ball in balls],
            room.elsewhere,
            room.slack,
            room.most,
            most_bytes,
        )

    def run(self, budget: float, most_work: int) -> Said:
        """Go on among points that cost at most a budget, with so much work."""
        said, bound, self.looked, self.work = self._kernel.run(self._search, budget, most_work)
        # a bound once proven holds, though that of the open nodes may be less: nodes that were closed are not among them
        self.bound = bound if said == Said.CLOSED else max(self.bound, min(bound, budget))
        return Said(said)

    def offered(self) -> tuple[FloatArray, IntArray]:
        """Return the point that is offered: its numbers, and the place of one level per category."""
        numbers, levels = np.empty(self._sizes[0]), np.empty(self._sizes[1], dtype=np.int32)
        self._kernel.offered(self._search, numbers, levels)
        return numbers, levels.astype(np.int64)

    def learned(self, ball: int, shift: FloatArray) -> None:
        """Learn a shift of a ball, one value per input, that broke the point that was offered."""
        self._kernel.learned(self._search, ball, _doubles(shift))


def _features(room: Room) -> list[Any]:
    first = np.append(room.first, len(room.level_cost)).astype(np.int32)
    levels = [_doubles(room.level_cost), room.level_home.astype(np.int8), room.allowed.astype(np.int8)]
    numbers = (room.home, room.origin, room.rate, room.square, room.price, room.step, room.near, room.low, room.high)
    return [*map(_doubles, numbers), *levels, first, _doubles(room.axes)]


def _network(ball: Ball) -> list[Any]:
    """Return a network as tables: its units over all inputs and units, its rows, the ball, where values end, grids."""
    layers = ball.layers
    n_in, n_units = layers.blocks[0].weights.shape[1], layers.n_units
    block = np.cumsum([0, *(len(b.constant) for b in layers.blocks)]).astype(np.int32)
    weights = np.zeros((n_units, n_in + n_units))
    for b, first in zip(layers.blocks, block, strict=False):
        weights[first : first + len(b.constant), : b.weights.shape[1]] = b.weights
    units = [np.concatenate(parts) for parts in zip(*((b.constant, b.slope) for b in layers.blocks), strict=True)]
    rows = (layers.rows, layers.constant, layers.room[-1])
    around = (ball.reach, ball.low, ball.high, ball.step)
    return [block, *map(_doubles, (weights, *units, np.concatenate(layers.room[:-1]), *rows, *around))]


def _doubles(values: FloatArray) -> FloatArray:
    return np.ascontiguousarray(values, dtype=np.float64)
