"""Reduction of a box by a budget: the values that it leaves each feature, and lower bounds on what must be paid.

Every step is exact. A point that meets all demands and costs `U` is an upper bound; a feature whose change alone would
cost more than what `U` leaves it cannot be changed that far in a better answer, so the box shrinks, and with it the
cells, leaves, levels and units of the program.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.models.abilities import Bounded, Ensemble
from ifonly.models.forms.leaves import CellTable, Leaves
from ifonly.models.forms.propagate import Budget
from ifonly.models.forms.scan import Brackets
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.question.abilities import Counts, Tightens
from ifonly.question.costs import Costs
from ifonly.question.demand import BoxDemand
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.runtime.memo import cached_property
from ifonly.tolerances import DUST as _DUST
from ifonly.tolerances import FLOAT64_ROOM, ROUNDING

__all__ = ["Menu", "Reducer"]


@dataclass(frozen=True, eq=False)
class Menu:
    """Every change of one feature that makes a difference to the trees, feature by feature.

    Attributes
    ----------
    feature
        Which feature changes.
    value
        The raw value of a number, the level of anything else.
    position
        Where trees see it: the position of a number among the cuts, the level of anything else.
    place
        The row of `TreeScan.singles`, numbers before levels.
    cost
        What it costs.
    """

    feature: IntArray
    value: FloatArray
    position: IntArray
    place: IntArray
    cost: FloatArray

    def below(self, cost: float) -> Menu:
        """Return what costs less."""
        return self.where(self.cost < cost)

    def where(self, keep: npt.NDArray[np.bool_]) -> Menu:
        """Return a part of the menu."""
        return Menu(*(getattr(self, f.name)[keep] for f in fields(self)))


class Reducer:
    """Budgets, boxes and brackets of one statement."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.query = statement.query
        self.schema = statement.query.schema
        self.form = statement.form
        self.goal = next(d for d in statement.demands if isinstance(d, Goal))

    # -- costs --------------------------------------------------------------------------------------------------
    @cached_property
    def separable(self) -> Costs:
        """The separable part of the objective."""
        return self.statement.costs()

    @cached_property
    def alone(self) -> Costs:
        """Lower bound on the cost of changing one feature alone: the separable part, plus its share of coupled costs."""
        total = self.separable
        for criterion in self.statement.coupled:
            bound = criterion.coupled_bound(self.query)
            if bound is not None:
                total = total + bound.without(self.schema, self.statement.exempt())
        return total

    def forced(self, box: Box) -> FloatArray:
        """Return the least each feature must cost in a box (0 unless the factual lies outside)."""
        return np.array([self.forced_one(box, j) for j in range(len(self.schema))])

    def forced_one(self, box: Box, j: int) -> float:
        """Return the least feature `j` must cost in a box."""
        if box.missing[j]:
            return 0.0
        if not isinstance(self.schema.features[j], Numeric):
            return float(self._levels[j][box.allowed[self.schema.slice(j)]].min(initial=np.inf))
        hat = self.query.factual[self.schema.starts[j]]
        if box.lower[j] <= hat <= box.upper[j] or np.isnan(hat):
            return 0.0
        nearest = np.clip(hat, box.lower[j], box.upper[j])
        return float(self.separable.numeric(j, nearest - hat))

    @cached_property
    def _levels(self) -> dict[int, FloatArray]:
        """Per categorical feature: the cost of each level."""
        return {
            j: self.separable.level_costs(self.schema, j, self.query.factual)
            for j, feature in enumerate(self.schema.features)
            if not isinstance(feature, Numeric)
        }

    def within(self, box: Box, budget: float) -> Box:
        """Return the part of a box in which every point can cost at most `budget`; it may be empty."""
        if not np.isfinite(budget):
            return box
        forced = self.forced(box)
        slack = budget - float(forced.sum())
        box = box.copy()
        for j, feature in enumerate(self.schema.features):
            if box.missing[j]:
                continue
            left = slack + forced[j] + _DUST * abs(budget)
            if isinstance(feature, Numeric):
                hat = float(self.query.factual[self.schema.starts[j]])
                if not np.isnan(hat):
                    down, up = self._reach(j, left)
                    room = FLOAT64_ROOM * abs(hat)
                    box.narrow(j, hat - down - room, hat + up + room)
            else:
                box.keep_levels(j, self.alone.level_costs(self.schema, j, self.query.factual) <= left)
        for demand in self.statement.demands:
            if isinstance(demand, Tightens):
                demand.tighten(self.query, box)
        return box

    def _reach(self, j: int, budget: float) -> tuple[float, float]:
        """Return how far numeric feature `j` can go down and up for this much (nothing less than 0 is left for staying)."""
        left = budget - self.alone.price[j]
        if left < 0:
            return (0.0, 0.0) if budget >= 0 else (-1.0, -1.0)
        a, b = float(self.alone.square[j]), float(self.alone.linear[j])
        reach = np.inf
        if a or b:
            reach = left / b if a == 0.0 else (-b + np.sqrt(b * b + 4.0 * a * left)) / (2.0 * a)
        ways = self.alone.curves[j].reach(left) if j in self.alone.curves else (np.inf, np.inf)
        down, up = (float(min(reach, way) * (1.0 + ROUNDING)) for way in ways)
        return down, up

    # -- what the trees can reach -------------------------------------------------------------------------------
    @cached_property
    def trees(self) -> Ensemble | None:
        """The form, where it is an ensemble."""
        return self.form if isinstance(self.form, Ensemble) else None

    @cached_property
    def brackets(self) -> Brackets | None:
        """The goal's gaps as functions of tree scores, or None when the form or the goal is of another kind."""
        trees = self.trees
        if trees is None:
            return None
        weights, constant = self.goal.matrix(self.statement.margin, self.statement.tie)
        return Brackets(trees, weights, constant) if len(weights) else None

    def open_leaves(self, box: Box) -> int | None:
        """Return how many leaves are open in a box; None when the trees, each for itself, cannot reach the goal in it."""
        brackets = self.brackets
        if brackets is None:
            return 0
        alive = brackets.alive(box)
        return brackets.open_leaves(alive) if bool((brackets.most(alive) >= -ROUNDING).all()) else None

    def size(self, box: Box, budget: float) -> int:
        """Return how many leaves are open in the part of a box that a budget leaves."""
        if self.brackets is None:
            return 0
        box = self.within(box, budget)
        return 0 if box.empty() is not None else self.open_leaves(box) or 0

    # -- what a box leaves of the model -------------------------------------------------------------------------
    def within_box(self, box: Box) -> Statement:
        """Return the statement with trees that have nothing but what the box leaves open.

        With fewer cuts, cells are larger and a feature stays in its own more often. So this is only for demands that
        never ask for a change.
        """
        if self.trees is None or not self._never_asks_for_change:
            return self.statement
        return replace(self.statement, form=self.trees.within(box))

    @cached_property
    def _never_asks_for_change(self) -> bool:
        demands = self.statement.demands
        return all(isinstance(d, Goal | BoxDemand | Counts) for d in demands)

    def for_budget(self, box: Box, budget: float) -> Statement | None:
        """Return the statement with bounds inside the form that hold within the budget only; None: there are none."""
        form = self.form
        if not np.isfinite(budget) or not isinstance(form, Bounded):
            return None
        rate, minorant = self.separable.levels.copy(), self.separable.minorant
        for j, feature in enumerate(self.schema.features):
            if isinstance(feature, Numeric):
                rate[self.schema.starts[j]] = minorant[j]
        limit = Budget(budget, self.query.factual, rate, self.separable.price, self.query.tuning.forms.tangents)
        tighter = form.for_budget(box, limit)
        return None if tighter is form else replace(self.statement, form=tighter)

    # -- candidate values ---------------------------------------------------------------------------------------
    def menu(self, box: Box) -> Menu:
        """Return the changes of single features that trees can tell apart: a value per cell (the nearest), or a level."""
        assert self.trees is not None
        leaves, factual = self.trees.leaves, self.query.factual
        act = np.zeros(len(self.schema), dtype=np.bool_)
        act[list(leaves.features)] = True
        act[list(self.statement.exempt())] = False
        act &= ~box.missing
        starts = np.asarray(self.schema.starts)
        hat = factual[starts]
        act &= ~(leaves.is_numeric & np.isnan(hat))
        cells = self._cells(leaves)
        j = cells.feature
        low, high = np.maximum(cells.low, box.lower[j]), np.minimum(cells.high, box.upper[j])
        keep = (low <= high) & act[j]
        j, low, high, position = j[keep], low[keep], high[keep], cells.position[keep]
        value = np.clip(hat[j], low, high)
        cost = self.separable.numeric(j, value - hat[j])
        entry = np.flatnonzero(box.allowed & (act & ~leaves.is_numeric)[leaves.entry_feature])
        i = leaves.entry_feature[entry]
        level = entry - starts[i]
        level_cost = self.separable.entries(self.schema, factual, entry)
        return Menu(
            np.concatenate([j, i]),
            np.concatenate([value, level.astype(np.float64)]),
            np.concatenate([position, level]),
            np.concatenate([leaves.offset[j] + position, leaves.n_places + entry]),
            np.concatenate([cost, level_cost]),
        )

    def _cells(self, leaves: Leaves) -> CellTable:
        """Return the cells of the leaves, on the grids of this question."""
        pairs = ((leaves.schema.features[j], self.schema.features[j]) for j in leaves.cuts)
        same = all(own.step == asked.step for own, asked in pairs)  # type: ignore[union-attr]
        return leaves.cells if same else leaves.cells_in(self.schema)

    # -- splitting ----------------------------------------------------------------------------------------------
    @cached_property
    def _home(self) -> dict[int, tuple[float, float]]:
        """Per numeric feature with cuts: the cell of the factual, as (lowest, highest) admissible value."""
        out = {}
        whole = Box.of(self.schema, self.query.factual)
        for j, cuts in self.form.cuts().items():
            hat = float(self.query.factual[self.schema.starts[j]])
            feature = self.schema.features[j]
            assert isinstance(feature, Numeric)
            if not np.isnan(hat):
                cells = Cells.of(feature, float(whole.lower[j]), float(whole.upper[j]), cuts)
                k = int(cells.index(hat))
                out[j] = (float(cells.low[k]), float(cells.high[k]))
        return out

    def _beside(self, box: Box, j: int) -> list[Box]:
        """Return the parts of a box in which feature `j` has left the cell or level of the factual."""
        if box.missing[j]:
            return []
        if not isinstance(self.schema.features[j], Numeric):
            other = box.copy()
            other.keep_levels(j, self.query.factual[self.schema.slice(j)] == 0)
            return [other]
        if j not in self._home:
            return []
        low, high = self._home[j]
        below, above = box.copy(), box.copy()
        step = self.schema.features[j].step  # type: ignore[union-attr]
        below.narrow(j, upper=low - step if step else float(np.nextafter(low, -np.inf)))
        above.narrow(j, lower=high + step if step else float(np.nextafter(high, np.inf)))
        return [part for part in (below, above) if part.lower[j] <= part.upper[j]]

    def cheapest_change(self, box: Box, j: int) -> float:
        """Return the least that a change of feature `j` costs in the box; infinity when it must or cannot change."""
        if box.is_fixed(j) or self.forced_one(box, j) > 0:
            return np.inf
        parts = [part for part in self._beside(box, j) if not _without(part, j)]
        return min((self.forced_one(part, j) for part in parts), default=np.inf)

    def split(self, box: Box, j: int) -> list[Box]:
        """Return the parts "feature `j` stays where it is" and "it changes" (down or up, for a number)."""
        stays = box.copy()
        if isinstance(self.schema.features[j], Numeric):
            stays.narrow(j, *self._home[j])
        else:
            stays.keep_levels(j, self.query.factual[self.schema.slice(j)] > 0)
        return [stays, *(part for part in self._beside(box, j) if not _without(part, j))]


def _without(box: Box, j: int) -> bool:
    """Whether no value of feature `j` is left."""
    if isinstance(box.schema.features[j], Numeric):
        return bool(box.lower[j] > box.upper[j])
    return not box.allowed[box.schema.slice(j)].any()
