"""Parts of a question about trees: ranges of cells and sets of levels, in outward-rounded arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum, inf, isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.models.abilities import Ensemble
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.program.mip import Affine
from ifonly.question.costs import Costs
from ifonly.question.goal import Goal
from ifonly.question.split_names import split_names
from ifonly.question.statement import Statement
from ifonly.question.trail import Prices, Split
from ifonly.record.cell_costs import cell_costs, level_costs
from ifonly.record.parts import Part, Refused
from ifonly.record.price_parts import Left, PriceBound, PricedTrees
from ifonly.tolerances import COST_LEFT_ROUNDINGS, HALF_ULP, LEAST_FLOAT, TWICE

__all__ = ["TreeParts"]

BoolArray = npt.NDArray[np.bool_]


class TreeParts:
    """Parts as ranges of cells and sets of levels.

    Every feature has options: the cells between all cuts of the trees, or its levels. They stand one after the other in
    flat tables, with the feature that owns each, a lower bound on its cost, and whether it is where the factual is.
    The cost of a point is the sum of its features' costs, or the `largest` of them.
    """

    at_once = 1

    def __init__(
        self,
        statement: Statement,
        goal: Goal,
        box: Box,
        most: int,
        bound: float,
        form: Ensemble,
        gaps: list[Affine],
        costs: Costs,
        *,
        largest: bool,
    ) -> None:
        self.goal, self.form, self.box, self.most, self.bound, self.largest = goal, form, box, most, bound, largest
        self.schema, self.factual = statement.query.schema, statement.query.factual
        self.features = [j for j in range(len(self.schema)) if not box.missing[j]]
        self.cells: dict[int, Cells] = {}
        self._tabulate(costs)
        self._tabulate_leaves(form, gaps)
        self.open: BoolArray | None = np.ones(len(self.owner), dtype=np.bool_)
        self._restrict()
        self._bound: PriceBound | None = None  # at prices of splits, once a proof has some

    def _tabulate(self, table: Costs) -> None:
        costs, homes = [], []
        cuts = self.form.cuts()
        for j in self.features:
            feature, part = self.schema.features[j], self.schema.slice(j)
            if isinstance(feature, Numeric):
                lower, upper, hat = float(self.box.lower[j]), float(self.box.upper[j]), float(self.factual[part][0])
                cells = Cells.of(feature, lower, upper, cuts.get(j, np.empty(0)))
                self.cells[j], nearest = cells, cells.nearest(hat)
                costs.append(cell_costs(table, j, nearest, hat))
                homes.append(nearest == hat)
            else:
                costs.append(level_costs(table, self.schema, j, self.factual))
                homes.append(self.factual[part] > 0)
        sizes = [len(c) for c in costs]
        self.first = np.cumsum([0, *sizes])[:-1].astype(np.int64)
        self.size = np.array(sizes, dtype=np.int64)
        self.owner = np.repeat(np.arange(len(sizes)), sizes)
        self.place = np.arange(sum(sizes)) - self.first[self.owner] if sizes else np.empty(0, dtype=np.int64)
        self.cost = np.concatenate(costs) if costs else np.empty(0)
        self.home = np.concatenate(homes) if homes else np.empty(0, dtype=np.bool_)

    def _tabulate_leaves(self, form: Ensemble, gaps: list[Affine]) -> None:
        leaves = form.leaves
        alive = np.ones(len(leaves.node), dtype=np.bool_)
        for j in map(int, np.flatnonzero(self.box.missing)):
            alive &= leaves.when_missing[:, j]
        kept = np.flatnonzero(alive)
        self.node, self.tree = leaves.node[kept], leaves.tree[kept]
        self.tree_first = np.flatnonzero(np.diff(self.tree, prepend=-1)).astype(np.int64)
        self.complete = len(self.tree_first) == form.n_trees
        self.begin: dict[int, IntArray] = {}
        self.end: dict[int, IntArray] = {}
        self.holds: dict[int, BoolArray] = {}
        for k, j in enumerate(self.features):
            if j not in leaves.features:
                continue
            if j in self.cells:
                position = leaves.cuts[j].searchsorted(self.cells[j].high, side="left")
                self.begin[k] = position.searchsorted(leaves.low[kept, j], side="right")
                self.end[k] = position.searchsorted(leaves.high[kept, j], side="right") - 1
            else:
                self.holds[k] = np.ascontiguousarray(leaves.levels.T[self.schema.slice(j)][:, kept])
        values, base = form.leaf_values(self.node), form.base
        self.values = [_upper(values, gap) for gap in gaps]
        self.constants = [(float(np.nextafter(gap.constant, inf)), *_terms(base, gap)) for gap in gaps]

    def _restrict(self) -> None:
        """Keep the options and leaves of points that cost less than the bound; no others matter in any part."""
        self.open = self._left(self._options(self.whole()))
        alive = np.ones(len(self.node), dtype=np.bool_)
        for k in self.begin:
            alive &= self.begin[k] <= self.end[k]
        self.alive = alive
        if self.open is None or not self.complete:
            return
        alive = self._alive(self.open)
        self.node, self.values = self.node[alive], [value[alive] for value in self.values]
        self.begin = {k: ends[alive] for k, ends in self.begin.items()}
        self.end = {k: ends[alive] for k, ends in self.end.items()}
        self.holds = {k: np.ascontiguousarray(holds[:, alive]) for k, holds in self.holds.items()}
        self.tree = self.tree[alive]
        self.tree_first = np.flatnonzero(np.diff(self.tree, prepend=-1)).astype(np.int64)
        self.complete = len(self.tree_first) == self.form.n_trees
        self.alive = np.ones(len(self.node), dtype=np.bool_)

    # -- splits -------------------------------------------------------------------------------------------------
    def whole(self) -> list[Any]:
        """Return ranges of cells, and sets of allowed levels."""
        states: list[Any] = [None] * len(self.schema)
        for j in self.features:
            cells = self.cells.get(j)
            states[j] = self.box.allowed[self.schema.slice(j)].copy() if cells is None else (0, len(cells.low) - 1)
        return states

    def sides(self, state: Any, split: Split) -> tuple[Any, Any]:
        """Return both sides of a split; a cell that is on both sides counts on both."""
        j = split.feature
        if j not in self.cells:
            mask = (
                self.factual[self.schema.slice(j)] > 0 if split.value is None and split.levels is None else split.levels
            )
            if mask is None or len(mask) != len(state):
                raise Refused(f"it splits {self.schema.names[j]!r} as if it were something else")
            return state & mask, state & ~mask
        if split.levels is not None or split.value is None or isnan(split.value):
            raise Refused(f"it splits {self.schema.names[j]!r} as if it were something else")
        cells, (low, high) = self.cells[j], state
        begun = int(np.searchsorted(cells.low, split.value, side="right"))  # cells that begin at or below the value
        ended = int(np.searchsorted(cells.high, split.value, side="right"))  # cells that end there
        return (low, min(high, begun - 1)), (max(low, ended), high)

    # -- one part -----------------------------------------------------------------------------------------------
    def closed(self, parts: Sequence[Part]) -> list[bool]:
        """Whether no better answer lies in each of some parts."""
        return [self._closed(part.states, part.left) for part in parts]

    def _closed(self, states: list[Any], left: Left | None) -> bool:
        options = self._better(states, left)
        if options is None:
            return True
        alive = self._alive(options) if left is None else self._alive(options) & left.alive
        if self._out_of_reach(alive):
            return True
        if left is None:
            return False
        return self._priced().left(options, alive, left.exponent, left.mu, left.price) is None

    def _better(self, states: list[Any], left: Left | None) -> BoolArray | None:
        """Return the options of better answers in a part, of those that prices left around it; None: no point."""
        if self.open is None:
            return None
        options = self._options(states) & self.open
        return self._left(options if left is None else options & left.options)

    # -- prices of splits ---------------------------------------------------------------------------------------
    def priced(self, states: list[Any], left: Left | None, prices: Prices) -> Left:
        """Return what is left of a part at some prices, which are changes of those around it."""
        bound = self._priced()
        exponent, mu, price = bound.changed(prices, left)
        options, rest = self._better(states, left), None
        if options is not None:
            alive = self._alive(options) if left is None else self._alive(options) & left.alive
            rest = bound.left(options, alive, exponent, mu, price)
        if rest is None:
            rest = np.zeros(len(self.owner), dtype=np.bool_), np.zeros(len(self.node), dtype=np.bool_)
        return Left(*rest, exponent, mu, price)

    def _priced(self) -> PriceBound:
        """Return the bound at prices of splits, of which there is none for some questions."""
        if self._bound is None:
            if self.largest or len(self.values) != 1 or not self.begin or not self.complete:
                raise Refused("it has prices of splits, which close nothing in a question of this kind")
            names, leaves = split_names(self.form.leaves), self.form.leaves
            feature, place = np.full(len(names.tree), -1), np.full(len(names.tree), -1)
            for k in self.begin:
                own = np.flatnonzero(names.feature == self.features[k])
                position = leaves.cuts[self.features[k]].searchsorted(self.cells[self.features[k]].high, side="left")
                feature[own], place[own] = k, position.searchsorted(names.place[own], side="right") - 1
            flat = (self.owner, self.place, self.first, self.size, self.cost, self.home, self.begin, self.end)
            own_leaves = (self.tree, self.tree_first, self.values[0], self.constants[0])
            self._bound = PriceBound(PricedTrees(*flat, *own_leaves, self.most, self.bound), names, feature, place)
        return self._bound

    def _options(self, states: list[Any]) -> BoolArray:
        low, high = np.zeros(len(self.features), dtype=np.int64), self.size - 1
        levels = []
        for k, j in enumerate(self.features):
            if j in self.cells:
                low[k], high[k] = states[j]
            else:
                levels.append((k, states[j]))
        options: BoolArray = (self.place >= low[self.owner]) & (self.place <= high[self.owner])
        for k, allowed in levels:
            options[self.first[k] : self.first[k] + self.size[k]] &= allowed
        return options

    def _left(self, options: BoolArray) -> BoolArray | None:
        """Return the options of points that change few enough features and cost less than the bound; None: no point."""
        if not self.features:
            return options if self.bound > 0.0 else None
        for _ in range(2):  # fewer options may force more changes, and more changes leave fewer options
            some = np.logical_or.reduceat(options, self.first)
            must = ~np.logical_or.reduceat(options & self.home, self.first)
            if not some.all() or int(must.sum()) > self.most:
                return None
            if int(must.sum()) == self.most:
                options = options & (must[self.owner] | self.home)
            if self.largest:
                options = options & (self.cost < self.bound)
                continue
            least = np.minimum.reduceat(np.where(options, self.cost, inf), self.first)
            if self.bound == inf:
                continue
            if fsum([*least, -self.bound]) >= 0.0:
                return None
            error = COST_LEFT_ROUNDINGS * HALF_ULP * (self.bound + self.cost)
            options = options & (self.cost - least[self.owner] <= self.bound - fsum(least) + error)
        return options if np.logical_or.reduceat(options, self.first).all() else None

    def _out_of_reach(self, alive: BoolArray) -> bool:
        """Whether the best leaves left do not suffice, or the only ones left are refused by the model's own sum."""
        if not self.complete:
            return False
        for value, constant in zip(self.values, self.constants, strict=True):
            tops = np.maximum.reduceat(np.where(alive, value, -inf), self.tree_first)
            if fsum([*tops, *constant]) < 0.0:
                return True
        count = np.add.reduceat(alive.astype(np.int64), self.tree_first)
        if not (count == 1).all():
            return False
        scores = self.form.added(self.node[alive][None, :])
        return not bool(self.goal.holds_scores(scores)[0])

    def _alive(self, options: BoolArray) -> BoolArray:
        """Return the leaves that some option of each feature reaches."""
        alive = self.alive.copy()
        for k, begin in self.begin.items():
            left = np.flatnonzero(options[self.first[k] : self.first[k] + self.size[k]])
            if len(left) < self.size[k]:
                alive &= (begin <= left[-1]) & (self.end[k] >= left[0])
        for k, holds in self.holds.items():
            alive &= holds[options[self.first[k] : self.first[k] + self.size[k]]].any(axis=0)
        return alive


def _upper(values: FloatArray, gap: Affine) -> FloatArray:
    """Return upper bounds on what leaves add to a gap; exact where the gap is one score, or its negative."""
    picked = values[:, gap.columns] * gap.values
    total = picked.sum(axis=1)
    if len(gap.columns) == 1 and abs(float(gap.values[0])) == 1.0:
        return np.asarray(total)
    room = TWICE * (len(gap.columns) + 1) * (HALF_ULP * np.abs(picked).sum(axis=1) + LEAST_FLOAT)
    return np.asarray(np.nextafter(total + room, inf))


def _terms(base: FloatArray, gap: Affine) -> Iterator[float]:
    """Yield upper bounds on what the base scores add to a gap."""
    for column, weight in zip(gap.columns, gap.values, strict=True):
        yield float(np.nextafter(float(base[column]) * float(weight), inf))
