"""Values of a knapsack over features: its items, which are moves, the nodes of its search, and its result.

They have no methods; what is done with them is in `ifonly.search.linear.knapsack`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from ifonly.question.found import Ended

__all__ = [
    "STAY",
    "Answer",
    "Bounded",
    "Choice",
    "Curve",
    "Edge",
    "Entry",
    "Fork",
    "Jump",
    "Node",
    "Picked",
    "Point",
    "Slide",
    "Top",
]


# -- items -----------------------------------------------------------------------------------------------------------
class Jump(NamedTuple):
    """To another level: gains `gain` and costs `cost`."""

    gain: float
    cost: float


class Slide(NamedTuple):
    """By ``d`` up to `reach`, in whole `step`s if there is one.

    It gains ``rate * d`` and costs ``price + fee * d + square * d^2``.
    """

    rate: float
    fee: float
    price: float
    reach: float
    step: float | None
    square: float = 0.0


class Point(NamedTuple):
    """One end of what a feature can do: its gain and cost there, and the move (None: it stays)."""

    gain: float
    cost: float
    move: float | None


STAY = Point(0.0, 0.0, None)


class Curve(NamedTuple):
    """Points of a slide with a square between `low` and `high`; which of them is best depends on the multiplier."""

    slide: Slide
    low: float
    high: float


# -- nodes -----------------------------------------------------------------------------------------------------------
class Choice(NamedTuple):
    """Items of one feature that are left at a node: some jumps, or a slide between `low` and `high`; `must`: it moves."""

    jumps: tuple[int, ...] = ()
    low: float = 0.0
    high: float = 0.0
    must: bool = False


class Edge(NamedTuple):
    """Edge of the lower convex hull of a feature's points: from a multiplier of `slope` on, its point is `to`.

    It is the `nth` of feature `j`; `gain` and `cost` are the differences to the point before.
    """

    slope: float
    j: int
    nth: int
    gain: float
    cost: float
    to: Point


class Entry(NamedTuple):
    """Entry of a feature in a node: the points that are left to it, and whether it must take one of them.

    At a multiplier of 0 it takes `base`, and then goes along the `edges`; a curve has neither.
    """

    j: int
    must: bool
    points: Sequence[Point] | Curve
    base: Point
    edges: Sequence[Edge] = ()


class Node(NamedTuple):
    """Node: what is left to the features that may move, where that is not all; and the multiplier of the parent's bound."""

    choices: Mapping[int, Choice]
    table: Sequence[Entry]
    price: float = inf


class Picked(NamedTuple):
    """Points of the features of a node that move, their total gain and cost."""

    gain: float
    cost: float
    points: Mapping[int, Point]


class Top(NamedTuple):
    """Top of a node's Lagrangian: its value, its multiplier `price`, and the choice that is `best` at that.

    The choices `left` and `right` of it gain too little and enough.
    """

    left: Picked
    right: Picked
    best: Picked
    value: float
    price: float


class Bounded(NamedTuple):
    """A node's bound, the multiplier that gives it, the top of its Lagrangian, and where to branch (None: it is a leaf)."""

    bound: float
    price: float
    top: Top | None = None
    fork: tuple[int, float] | None = None


class Fork(NamedTuple):
    """Branching of a node on feature `j`, into the nodes `less` and `more`: it stays or moves.

    Given `at`, it slides at most so far or farther, or jumps to a gain of at most so much or more.
    """

    j: int
    at: float | None
    less: int
    more: int


# -- the result ------------------------------------------------------------------------------------------------------
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
    moves: Mapping[int, float] | None = None
    cost: float = inf
    bound: float = -inf
    better: Sequence[dict[int, float]] = ()
    tree: Mapping[int, Fork | float | None] = field(default_factory=dict, compare=False)
