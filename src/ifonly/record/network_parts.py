"""Parts of a question about a network of rectifiers: intervals and sets of levels, bounded in floats with a derived error."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from ifonly.arrays import IntArray
from ifonly.data.schema import Numeric
from ifonly.models.abilities import Layered
from ifonly.program.box import Box
from ifonly.program.cells import Cells, grid_floor
from ifonly.program.mip import Affine
from ifonly.question.costs import Costs
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.question.trail import Split
from ifonly.record.network_bounds import Boxes, Layer, Prices, bounds_of_rows
from ifonly.record.parts import NotReplayable, Part, Refused
from ifonly.runtime.deadline import Deadline
from ifonly.tolerances import ORDINARY

__all__ = ["NetworkParts"]

BoolArray = npt.NDArray[np.bool_]
_NOTHING = inf, -inf  # an interval without a number


class NetworkParts:
    """Parts as intervals of numbers and sets of levels, many looked at together.

    A part is closed if it is empty, if more features must change in it than may, if its least costs add up to the bound, if a
    row of the goal is out of reach in it (`ifonly.record.network_bounds`), or if it is a single row that the model refuses.
    """

    def __init__(
        self,
        statement: Statement,
        goal: Goal,
        box: Box,
        most: int,
        bound: float,
        form: Layered,
        gaps: Sequence[Affine],
        costs: Costs,
        deadline: Deadline,
    ) -> None:
        self.goal, self.box, self.bound, self.deadline = goal, box, bound, deadline
        self.tuning = statement.query.tuning.checking
        self.schema, self.factual = statement.query.schema, statement.query.factual
        present = [j for j in range(len(self.schema)) if not box.missing[j]]
        self.numbers = [j for j in present if isinstance(self.schema.features[j], Numeric)]
        self.categories = [j for j in present if j not in self.numbers]
        self.places: IntArray = np.array([self.schema.starts[j] for j in self.numbers], dtype=np.int64)
        levels = [np.arange(self.schema.slice(j).start, self.schema.slice(j).stop) for j in self.categories]
        self.entries: IntArray = np.concatenate([*levels, np.empty(0)]).astype(np.int64)
        self.prices = self._prices(costs, most)
        self.layers = self._layers(form, gaps)
        largest = max(2 * len(layer.constant) for layer in self.layers) * (len(self.places) + len(self.entries) + 1)
        self.at_once = max(1, min(self.tuning.parts_at_once, self.tuning.entries_at_once // largest))

    def _prices(self, costs: Costs, most: int) -> Prices:
        steps = [self.schema.steps[j] or 0.0 for j in self.numbers]
        sizes = [self.schema.features[j].width for j in self.categories]
        hat = self.factual[self.places]
        out = Prices(
            hat=hat,
            rate=costs.linear[self.numbers],
            square=costs.square[self.numbers],
            price=costs.price[self.numbers],
            step=np.array(steps),
            level=costs.entries(self.schema, self.factual, self.entries),
            home=self.factual[self.entries] > 0.0,
            first=np.cumsum([0, *sizes])[:-1].astype(np.int64),
            owner=np.repeat(np.arange(len(sizes)), sizes),
            most=most,
        )
        for some in (out.rate, out.square, out.price, out.level):
            if not ((some == 0.0) | ((some > ORDINARY[0]) & (some < ORDINARY[1]))).all():
                raise NotReplayable("a cost is too large, too small or no number")
        return out

    def _layers(self, form: Layered, gaps: Sequence[Affine]) -> tuple[Layer, ...]:
        """Return the units and the rows of the goal over numbers and levels; what is missing counts as 0."""
        width = self.schema.width
        rows = np.zeros((len(gaps), form.n_outputs))
        for row, gap in zip(rows, gaps, strict=True):
            np.add.at(row, gap.columns, gap.values)
        constant = rows @ form.constant + np.array([gap.constant for gap in gaps])
        sums = [(block.weights, block.constant, block.slope) for block in form.blocks]
        sums.append((rows @ form.weights, constant, np.ones(len(gaps))))
        free = np.concatenate([self.places, self.entries])
        ends = np.stack([self.box.lower[self.numbers], self.box.upper[self.numbers], self.prices.hat])
        size = np.concatenate([np.abs(ends).max(axis=0, initial=0.0), np.ones(len(self.entries))])
        kept = [(np.concatenate([w[:, free], w[:, width:]], axis=1), c, s) for w, c, s in sums]
        layers = Layer.all_of(kept, size)
        if not (size < ORDINARY[1]).all() or not all((layer.size < ORDINARY[1]).all() for layer in layers):
            raise NotReplayable("its numbers are too large to be multiplied")
        return layers

    # -- splits -------------------------------------------------------------------------------------------------
    def whole(self) -> list[Any]:
        """Return intervals, and sets of allowed levels."""
        states: list[Any] = [None] * len(self.schema)
        for j in self.numbers:
            states[j] = float(self.box.lower[j]), float(self.box.upper[j])
        for j in self.categories:
            states[j] = self.box.allowed[self.schema.slice(j)].copy()
        return states

    def sides(self, state: Any, split: Split) -> tuple[Any, Any]:
        """Return both sides of a split."""
        j, feature = split.feature, self.schema.features[split.feature]
        if not isinstance(feature, Numeric):
            if split.levels is None or len(split.levels) != len(state):
                raise Refused(f"it splits {self.schema.names[j]!r} as if it were something else")
            return state & split.levels, state & ~split.levels
        if split.value is None or not isfinite(split.value):
            raise Refused(f"it splits {self.schema.names[j]!r} as if it were something else")
        (low, high), value, hat = state, split.value, float(self.factual[self.schema.starts[j]])
        if value >= high or value < low:
            return (state, _NOTHING) if value >= high else (_NOTHING, state)
        if feature.step is None:
            until, since = float(feature.at_most(value)), float(feature.at_least(np.nextafter(value, inf)))
        else:
            until = float(grid_floor(feature, np.array([value]))[0])
            since = float(Cells.of(feature, value, inf, np.array([value])).low[-1])
        # what the factual has is on one side or the other, even where the dtype or the grid does not hold it
        until, since = (max(until, hat), since) if hat <= value else (until, min(since, hat))
        return (low, min(high, until)), (max(low, since), high)

    # -- parts --------------------------------------------------------------------------------------------------
    def closed(self, parts: Sequence[Part]) -> list[bool]:
        """Whether no better answer lies in each of some parts; those after the first open one are not all looked at."""
        out = [True] * len(parts)
        for i in self._open(parts).which.tolist():
            if not self._closed_in_halves(parts[i]):
                out[i] = False
                break
        return out

    def _closed_in_halves(self, part: Part) -> bool:
        """Whether a part is closed when it is halved, and halved again where need be.

        The search has closed it with the budget that it had by then, and with other lines around units: mostly looser ones.
        """
        pending, looked = [part], 0
        while pending:
            states = pending.pop().states
            left = self._open([Part(states, None)])
            if not len(left):
                continue
            split, looked = self._middle(left), looked + 1
            if split is None or looked > self.tuning.most_halved:
                return False
            for side in self.sides(states[split.feature], split):
                pending += [Part([*states[: split.feature], side, *states[split.feature + 1 :]], None)]
            if self.deadline.passed:
                raise NotReplayable("the time was over")
        return True

    def _middle(self, left: Boxes) -> Split | None:
        """Return the split in the middle of the widest number, as a share of its range, or of an open category."""
        whole = self.box.upper[self.numbers] - self.box.lower[self.numbers]
        wide = (left.high - left.low)[0] / np.where(whole > 0.0, whole, 1.0)
        if wide.max(initial=0.0) < 0.5:
            for k, j in enumerate(self.categories):
                allowed = left.allowed[0, self.prices.owner == k]
                if allowed.sum() > 1:
                    return Split(j, levels=np.arange(len(allowed)) == allowed.argmax())
        if not wide.any():
            return None
        k = int(wide.argmax())
        return Split(self.numbers[k], value=float(0.5 * left.low[0, k] + 0.5 * left.high[0, k]))

    def _open(self, parts: Sequence[Part]) -> Boxes:
        """Return the parts that are not closed, with what is left of each."""
        left = self._boxes(parts).left(self.bound)
        if len(left):
            below: BoolArray = (
                bounds_of_rows(self.layers, left, self.bound) < 0.0
            )  # a bound that is no number closes nothing
            left = left.pick(np.flatnonzero(~below.any(axis=1)))
        return left.pick(~self._refused(left)) if len(left) else left

    def _boxes(self, parts: Sequence[Part]) -> Boxes:
        ends = np.array([[part.states[j] for j in self.numbers] for part in parts]).reshape(len(parts), -1, 2)
        masks = [np.concatenate([self.prices.home[:0], *(part.states[j] for j in self.categories)]) for part in parts]
        return Boxes(self.prices, ends[:, :, 0], ends[:, :, 1], np.array(masks), np.arange(len(parts)))

    def _refused(self, boxes: Boxes) -> BoolArray:
        """Return the parts of a single row that the model itself refuses."""
        single, refused = boxes.single(), np.zeros(len(boxes), dtype=np.bool_)
        if single.any():
            rows = np.repeat(self.factual[None, :], int(single.sum()), axis=0)
            rows[:, self.places], rows[:, self.entries] = boxes.low[single], boxes.allowed[single]
            refused[single] = ~self.goal.confirmed(rows)
        return refused
