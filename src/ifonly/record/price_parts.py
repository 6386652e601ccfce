"""Lagrangian bound of trees at given prices of splits, in whole numbers: which parts, leaves and options it closes.

A split is a tree, a number and a place between two of its cells. It has two prices, neither below 0: each leaf of the tree
that lies below the place pays `below`, and each cell below it receives as much; a leaf above it pays `above`, and each cell
above it receives that. A point that is in a leaf below the place is in a cell below it. So all that the leaves of a point
pay is at most what its cells receive, whatever the prices, and if it costs at most `bound`, its score is at most

    mu bound + sum over trees (value of its leaf - what that pays) + sum over features (receipts of its option - mu cost)

and this at most the same sum with the best open leaf of each tree and the best open option of each feature. Where at most so
many features may change, those that can stay do so but for as many of the largest gains of a change as there is room for. If
the sum stays below the goal, nothing better lies in the part; if it does so with one leaf, or one option, in the place of
the best of its tree, or feature, nothing better lies in that one.

Arithmetic. All terms are multiples of a unit, a power of two that is 2^-52 of the size of the values or less: values are
rounded up to it, costs times `mu` down, `mu` times the bound up (each product is first moved by more than its rounding), and
prices are multiples of it, or are refused. From there on numbers are whole, below 2^63, and nothing is rounded. Prices and
receipts are refused beyond 2^59 units in all, values are at most 2^53 of them in all, and what costs more than a share of
2^60 counts as just that, which is a lower bound of it.

Before prices are looked at, options that no open leaf of some tree allows are taken away, and leaves that no open option
reaches. Then prices of places outside the range of a part, and of trees of which one leaf is open, count as 0. Any prices
would do; these are never better with another one: all open cells receive it, or no open leaf pays it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, frexp, fsum, inf, ldexp

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.question.split_names import SplitNames
from ifonly.question.trail import Prices
from ifonly.record.parts import NotReplayable, Refused
from ifonly.tolerances import PRICED_PRODUCT

__all__ = ["Left", "PriceBound", "PricedTrees"]

BoolArray = npt.NDArray[np.bool_]
_BITS = 52  # of the sum of all values, below which they are rounded
_MOST_PAID, _MOST_COST = 2**59, 2**60  # units, in all
_FINEST, _COARSEST = -900, 900  # exponents of units that floats can be scaled by


@dataclass(frozen=True, eq=False)
class PricedTrees:
    """Tables of a question about trees: its options, feature by feature, and its leaves, tree by tree.

    Attributes
    ----------
    owner, place, first, size
        Of each option: its feature, and its place there; of each feature: its first option, and how many there are.
    cost, home
        Of each option: a lower bound on its cost, and whether it is where the factual is.
    begin, end
        Per number that trees look at: the first and the last place that each leaf allows.
    tree, tree_first
        Of each leaf: its tree; of each tree: its first leaf.
    value, constants
        Upper bounds on what leaves add to the goal, and on what is added anyway.
    most, bound
        How many features may change, and the cost that no answer may be below.
    """

    owner: IntArray
    place: IntArray
    first: IntArray
    size: IntArray
    cost: FloatArray
    home: BoolArray
    begin: Mapping[int, IntArray]
    end: Mapping[int, IntArray]
    tree: IntArray
    tree_first: IntArray
    value: FloatArray
    constants: tuple[float, ...]
    most: int
    bound: float


@dataclass(frozen=True, eq=False)
class Left:
    """Rest of a part at its prices: the options and leaves of better answers, and the prices, which its own parts inherit."""

    options: BoolArray
    alive: BoolArray
    exponent: int
    mu: float
    price: IntArray

    @property
    def n_bytes(self) -> int:
        """The memory that it takes."""
        return self.options.nbytes + self.alive.nbytes + self.price.nbytes


class PriceBound:
    """The bound of one question, at any prices and in any part.

    Parameters
    ----------
    trees
        The tables of the question.
    names
        The splits of its model.
    feature, place
        Of each split: its feature among those of the tables (-1: none), and the last place there that is below its cut.
    """

    def __init__(self, trees: PricedTrees, names: SplitNames, feature: IntArray, place: IntArray) -> None:
        self.trees = trees
        largest = np.maximum.reduceat(np.abs(trees.value), trees.tree_first)
        size = fsum([*largest, *map(abs, trees.constants)])
        if not 0.0 < size < inf:
            raise NotReplayable("its scores are all 0, or no numbers")
        self.exponent = frexp(size)[1] - _BITS  # size <= 2^(exponent + 52)
        if not _FINEST <= self.exponent <= _COARSEST:
            raise NotReplayable("its scores are too large or too small to be priced")
        # What is above 0 is at least one unit, even if its scaling comes to nothing.
        value = np.ceil(np.ldexp(trees.value, -self.exponent)).astype(np.int64)
        self.value = np.where(trees.value > 0.0, np.maximum(value, 1), value)
        scaled = [(c, ceil(ldexp(c, -self.exponent))) for c in trees.constants]
        self.constant = sum(max(units, 1) if c > 0.0 else units for c, units in scaled)
        self._tabulate_splits(names, feature, place)
        self._tabulate_entries()

    def _tabulate_splits(self, names: SplitNames, feature: IntArray, place: IntArray) -> None:
        """Find the tree and the option before each split; splits of features or trees that are not there have neither."""
        trees = self.trees
        ids = trees.tree[trees.tree_first]
        at = np.minimum(np.searchsorted(ids, names.tree), len(ids) - 1)
        used = (ids[at] == names.tree) & (feature >= 0)
        self.n_splits, self.known = len(names.tree), np.flatnonzero(used)
        self.split_tree, self.split_feature = at[self.known], feature[self.known]
        self.split_place = place[self.known]

    def _tabulate_entries(self) -> None:
        """Find, per leaf and number, the splits that it lies below and above of: they are runs of the known ones."""
        trees = self.trees
        wide, n = int(trees.size.max(initial=0)) + 2, len(trees.size)
        group = self.split_tree * n + self.split_feature
        key = group * wide + np.clip(self.split_place, -1, wide - 3) + 1
        if (np.diff(key) < 0).any():
            raise NotReplayable("its splits are in another order")
        which = np.searchsorted(trees.tree_first, np.arange(len(trees.value)), side="right") - 1
        leaves, below, above = [], [], []
        for k in trees.begin:
            begin, end = trees.begin[k], trees.end[k]
            leaf = np.flatnonzero((begin > 0) | (end < trees.size[k] - 1))
            own = which[leaf] * n + k
            first, last = np.searchsorted(group, own, side="left"), np.searchsorted(group, own, side="right")
            leaves.append(leaf)
            # A leaf lies below a split at or behind its last place, and above one before its first place.
            below.append(np.stack([np.searchsorted(key, own * wide + end[leaf] + 1, side="left"), last]))
            above.append(np.stack([first, np.searchsorted(key, own * wide + begin[leaf] + 1, side="left")]))
        self.entry_leaf = np.concatenate([np.empty(0, dtype=np.int64), *leaves])
        none = np.empty((2, 0), dtype=np.int64)
        self.entry_below, self.entry_above = (np.concatenate([none, *runs], axis=1) for runs in (below, above))
        self.which = which

    # -- prices -------------------------------------------------------------------------------------------------
    def changed(self, prices: Prices, before: Left | None) -> tuple[int, float, IntArray]:
        """Return the exponent, the price of the budget and all prices (below, above) after a change, in their unit."""
        if prices.mu > 0.0 and not self.trees.bound < inf:
            raise Refused("it has a price of a budget, and there is no budget")
        if before is not None and before.exponent != prices.exponent:
            raise Refused("its prices are in two units")
        if len(prices.split) and prices.split[-1] >= 2 * self.n_splits:
            raise Refused("it has a price of a split that the model does not have")
        if not self.exponent <= prices.exponent <= self.exponent + _BITS:
            raise Refused("its prices are much smaller or larger than the scores")
        price = np.zeros(2 * self.n_splits, dtype=np.int64) if before is None else before.price.copy()
        price[prices.split] += prices.change
        if (price < 0).any() or int(price.sum()) > _MOST_PAID >> (prices.exponent - self.exponent):
            raise Refused("it has a price below 0, or prices much larger than the scores")
        return prices.exponent, prices.mu, price

    # -- the bound ----------------------------------------------------------------------------------------------
    def left(
        self, options: BoolArray, alive: BoolArray, exponent: int, mu: float, price: IntArray
    ) -> tuple[BoolArray, BoolArray] | None:
        """Return the options and leaves that may hold a better answer, of those of a part; None: there is none."""
        trees, left = self.trees, self._propagated(options, alive)
        if left is None:
            return None
        options, alive = left
        paid, received = self._paid_and_received(options, alive, price, exponent - self.exponent)
        low = np.iinfo(np.int64).min // 4
        worth = np.where(alive, self.value - paid, low)
        tops = np.maximum.reduceat(worth, trees.tree_first)
        gains = _Gains.of(trees, np.where(options, received - self._costs(mu), low), options)
        total = self._budget(mu) + self.constant + int(tops.sum()) + gains.total
        if total < 0:
            return None
        alive = alive & (total - tops[self.which] + worth >= 0)
        options = options & (total + gains.instead >= 0)
        return self._propagated(options, alive)

    def _paid_and_received(
        self, options: BoolArray, alive: BoolArray, price: IntArray, shift: int
    ) -> tuple[IntArray, IntArray]:
        """Return what each leaf pays, and what each option receives."""
        trees = self.trees
        lowest = np.minimum.reduceat(np.where(options, trees.place, len(options)), trees.first)
        highest = np.maximum.reduceat(np.where(options, trees.place, -1), trees.first)
        count = np.add.reduceat(alive.astype(np.int64), trees.tree_first)
        k, place = self.split_feature, self.split_place
        active = (place >= lowest[k]) & (place < highest[k]) & (count[self.split_tree] > 1)
        below = np.where(active, price[2 * self.known], 0) << shift
        above = np.where(active, price[2 * self.known + 1], 0) << shift
        paid = np.zeros(len(alive), dtype=np.int64)
        for prices, runs in ((below, self.entry_below), (above, self.entry_above)):
            sums = np.concatenate(([0], np.cumsum(prices)))
            np.add.at(paid, self.entry_leaf, sums[runs[1]] - sums[runs[0]])
        at = trees.first[k[active]] + place[active]
        table = np.zeros((2, len(options) + 1), dtype=np.int64)
        np.add.at(table[0], at, below[active])
        np.add.at(table[1], at + 1, above[active])
        sums = np.cumsum(table, axis=1)
        last = (trees.first + trees.size - 1)[trees.owner]
        here, before = np.arange(len(options)), trees.first[trees.owner] - 1
        # Below a place, an option receives the prices of all splits from its own place on; above, of those before it.
        from_here = sums[0][last] - np.where(here > 0, sums[0][here - 1], 0)
        up_to_here = sums[1][here] - np.where(before >= 0, sums[1][before], 0)
        return paid, from_here + up_to_here

    def _costs(self, mu: float) -> IntArray:
        """Return `mu` times the cost of each option, rounded down."""
        if mu == 0.0:
            return np.zeros(len(self.trees.cost), dtype=np.int64)
        most = float(_MOST_COST // (len(self.trees.size) + 1))
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(self.trees.cost * mu * (1.0 - PRICED_PRODUCT), -self.exponent)
        return np.asarray(np.floor(np.clip(scaled, 0.0, most)), dtype=np.int64)

    def _budget(self, mu: float) -> int:
        """Return `mu` times the bound, rounded up."""
        if mu == 0.0:
            return 0
        product = max(self.trees.bound, 0.0) * mu * (1.0 + PRICED_PRODUCT)
        if not product < ldexp(float(_MOST_COST), self.exponent):
            raise Refused("the price of its budget is much larger than the scores")
        return ceil(ldexp(product, -self.exponent)) + 1

    def _propagated(self, options: BoolArray, alive: BoolArray) -> tuple[BoolArray, BoolArray] | None:
        """Return the options that some open leaf of each tree allows, and the leaves that these reach; None: no point."""
        trees = self.trees
        options, alive, before = options.copy(), alive.copy(), -1
        while (
            count := int(alive.sum())
        ) != before:  # fewer leaves may allow fewer options, and these reach fewer leaves
            before = count
            if not np.logical_or.reduceat(alive, trees.tree_first).all():
                return None
            for k in trees.begin:
                own = slice(int(trees.first[k]), int(trees.first[k] + trees.size[k]))
                begin = np.minimum.reduceat(np.where(alive, trees.begin[k], trees.size[k]), trees.tree_first).max()
                end = np.maximum.reduceat(np.where(alive, trees.end[k], -1), trees.tree_first).min()
                options[own] &= (trees.place[own] >= begin) & (trees.place[own] <= end)
                places = np.flatnonzero(options[own])
                if not places.size:
                    return None
                alive &= (trees.begin[k] <= places[-1]) & (trees.end[k] >= places[0])
        return (options, alive) if np.logical_or.reduceat(options, trees.first).all() else None


@dataclass(frozen=True, eq=False)
class _Gains:
    """The best options of all features: their worth in all, and how much less it is `instead` with each option for sure."""

    total: int
    instead: IntArray

    @classmethod
    def of(cls, trees: PricedTrees, worth: IntArray, options: BoolArray) -> _Gains:
        """Return them, from the worth of open options."""
        low = np.iinfo(np.int64).min // 4
        at_home = np.maximum.reduceat(np.where(options & trees.home, worth, low), trees.first)
        changed = np.maximum.reduceat(np.where(options & ~trees.home, worth, low), trees.first)
        stays = np.logical_or.reduceat(options & trees.home, trees.first)
        changes = np.logical_or.reduceat(options & ~trees.home, trees.first)
        base = np.where(stays, at_home, changed)
        gain = np.where(stays & changes, np.maximum(changed - base, 0), 0)
        room = max(min(trees.most - int((~stays).sum()), int(stays.sum())), 0)
        order = np.argsort(-np.where(stays, gain, -1), kind="stable")  # features that can stay come first
        taken = np.zeros(len(gain), dtype=np.bool_)
        taken[order[:room]] = True
        sum_taken = int(gain[taken].sum())
        least = int(gain[order[room - 1]]) if room > 0 else 0  # of those taken: what another change takes the place of
        following = int(gain[order[room]]) if room < int(stays.sum()) else 0  # takes the place of one that is not
        if_stays = np.where(taken, following - gain, 0)
        if_changes = np.where(~stays, 0, np.where(taken, -gain, -least))
        own = np.where(trees.home, if_stays[trees.owner], if_changes[trees.owner]) + worth - base[trees.owner]
        return cls(int(base.sum()) + sum_taken, np.where(options, own, low))
