"""No-goods from a flipping point: the same shift is ruled out everywhere, and a whole box of answers where trees allow it.

Where the scores are constant on cells, a point that flips stands for its whole cell, and for every larger box in which no
leaf of any tree can lift the score over its threshold. If ``R`` is such a box, no answer may lie in ``R`` widened by the
ball: some feature has to leave it. That is one row over order literals, without a copy of the model.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.criteria.robustness.keeps_lead import KeepsLead
from ifonly.data.schema import Numeric
from ifonly.models.abilities import Ensemble
from ifonly.models.forms.scan import Brackets
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.question.costs import Costs
from ifonly.question.query import Query
from ifonly.tolerances import DUST as _DUST
from ifonly.tolerances import FEASIBILITY as _AT_EDGE
from ifonly.tolerances import ROUNDING as _CHEAP

__all__ = ["far_shift", "no_go"]

BoolArray = npt.NDArray[np.bool_]


def far_shift(demand: KeepsLead, query: Query, costs: Costs, u: FloatArray, y: FloatArray) -> FloatArray:
    """Return a shift that breaks `u` as the one to `y` does, and reaches as far as the ball.

    The farther it reaches, the more of the other answers that stand too near the same edge it rules out as well.
    """
    starts = np.array(query.schema.starts)
    off = np.where(demand.reach > 0, y[starts] - u[starts], 0.0)
    low, high = _same_cells(demand, u, y, off)
    wide = demand.widened()
    if demand.norm == "l2":
        far = _on_grids(demand, _stretched(demand, _Prices(demand, query, costs, u), off, low, high))
        return np.where(far == 0.0, 0.0, far + np.sign(far) * (wide - demand.reach))
    back = np.sign(np.nan_to_num(query.factual[starts] - u[starts]))
    below, above = low <= -demand.reach, high >= demand.reach
    far = np.where(below & above, back * wide, np.where(below, -wide, np.where(above, wide, 0.5 * (low + high))))
    far = np.where(np.abs(far) >= demand.reach * (1.0 - _AT_EDGE), np.sign(far) * wide, far)
    return _to_corners(demand, u, _on_grids(demand, far), wide)


def _on_grids(demand: KeepsLead, shift: FloatArray) -> FloatArray:
    """Return a shift in whole steps of the grids: anything else leads to values that no one can have."""
    features = demand.limits.schema.features
    return np.array(
        [f.snap(float(s)) if isinstance(f, Numeric) and s else s for f, s in zip(features, shift, strict=True)]
    )


def _same_cells(demand: KeepsLead, u: FloatArray, y: FloatArray, off: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and greatest shift of each feature that stays in the cell of `y`, within the ball."""
    ball, cuts, raw = demand.ball(u), demand.form.cuts(), demand.form.raw()
    schema = demand.limits.schema
    low, high = off.copy(), off.copy()
    for j in map(int, np.flatnonzero(demand.reach)):
        if j in raw:
            continue
        feature, at = schema.features[j], schema.starts[j]
        assert isinstance(feature, Numeric)
        cells = Cells.of(feature, float(ball.lower[j]), float(ball.upper[j]), cuts.get(j, np.empty(0)))
        k = int(cells.index(y[at]))
        low[j] = -demand.reach[j] if k == 0 else cells.low[k] - u[at]
        high[j] = demand.reach[j] if k == cells.cuts.size else cells.high[k] - u[at]
    return low, high


def _to_corners(demand: KeepsLead, u: FloatArray, shift: FloatArray, wide: FloatArray) -> FloatArray:
    """Move each entry to an end of its reach, or to none, while `u` stays broken: such shifts share their cuts."""
    for j in np.flatnonzero((shift != 0.0) & (np.abs(shift) < wide)):
        trials = [np.where(np.arange(len(shift)) == j, end, shift) for end in (-wide[j], wide[j], 0.0)]
        leads = [float(demand.leads(u[None, :], trial)[0]) for trial in trials]
        if min(leads) < demand.enough:
            shift = trials[int(np.argmin(leads))]
    return shift


def _stretched(demand: KeepsLead, prices: _Prices, off: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the shift made longer, as far as the cells and the ball allow; what lies on a grid stays."""
    continuous = [isinstance(f, Numeric) and f.step is None for f in demand.limits.schema.features]
    free = np.array(continuous) & (off != 0.0)
    safe = np.where(off != 0.0, off, 1.0)
    share = np.abs(off) / np.where(demand.reach > 0, demand.reach, 1.0)
    factor = np.where(off != 0.0, prices.on_sphere(share, free) / np.where(off != 0.0, share, 1.0), 1.0)
    room = np.where(off > 0, high, low) / safe
    return np.where(free, np.maximum(np.minimum(factor, room), 1.0) * off, off)


class _Prices:
    """Prices of a feature to an answer: of moving on by one reach, and of changing it at all."""

    def __init__(self, demand: KeepsLead, query: Query, costs: Costs, u: FloatArray) -> None:
        self.halvings = query.tuning.balls.halvings
        starts = np.array(query.schema.starts)
        moves = np.nan_to_num(np.abs(u[starts] - query.factual[starts]))
        self.rate = np.maximum(demand.reach * (costs.linear + 2.0 * costs.square * moves), _CHEAP)
        self.begin = np.where(moves > 0, 0.0, costs.price)
        steps = np.array([step or 0.0 for step in query.schema.steps])
        self.step = np.where(demand.reach > 0, steps / np.where(demand.reach > 0, demand.reach, 1.0), 0.0)

    def on_sphere(self, share: FloatArray, free: BoolArray) -> FloatArray:
        """Return shares of the radius of length 1, grown so that moving on costs the same by every free feature.

        By a feature on a grid one moves on in whole steps; what that leaves of the radius goes to the others.
        """
        share = self._grow(share, free)
        return self._grow(share, free & (self.step == 0.0))

    def _grow(self, share: FloatArray, free: BoolArray) -> FloatArray:
        if not free.any():
            return share
        low, high = 0.0, float((self.begin + self.rate)[free].max())
        for _ in range(self.halvings):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if (self._grown(share, free, middle) ** 2).sum() <= 1.0 else (low, middle)
        return self._grown(share, free, low)

    def _grown(self, share: FloatArray, free: BoolArray, paid: float) -> FloatArray:
        more = np.maximum(paid - self.begin, 0.0) / self.rate
        steps = np.where(self.step > 0, self.step, 1.0)
        more = np.where(self.step > 0, np.floor(more / steps) * steps, more)
        return np.asarray(share + np.where(free, more, 0.0))


def no_go(demand: KeepsLead, query: Query, costs: Costs, u: FloatArray, y: FloatArray) -> Box | None:
    """Return a box of answers that `y`'s part of the ball rules out, `u` among them; None if there is no such box."""
    if demand.form.raw():
        return None
    region = _Region(demand, query, costs, y)
    if isinstance(demand.form, Ensemble):
        region.grow(demand.form)
    return _widened(demand, _Prices(demand, query, costs, u), region.box, u)


def _widened(demand: KeepsLead, prices: _Prices, region: Box, u: FloatArray) -> Box:
    """Return the box of all points from which the ball, or a box inside it, reaches the region."""
    limits = demand.limits
    reach = demand.widened()
    if demand.norm == "l2":
        at = u[np.array(limits.schema.starts)]
        near = np.maximum(np.maximum(region.lower - at, at - region.upper), 0.0)
        share = np.where(demand.reach > 0, near / np.where(demand.reach > 0, demand.reach, 1.0), 0.0)
        reach = reach * prices.on_sphere(share, share > 0)
    box = region.copy()
    for j in map(int, np.flatnonzero(reach)):
        box.lower[j] = max(region.lower[j] - reach[j], limits.lower[j])
        box.upper[j] = min(region.upper[j] + reach[j], limits.upper[j])
        # `u` itself is ruled out; the dust of a root must not leave it outside.
        value = float(u[limits.schema.starts[j]])
        dust = _DUST * max(abs(value), float(reach[j]))
        if box.lower[j] - dust <= value <= box.upper[j] + dust:
            box.lower[j], box.upper[j] = min(box.lower[j], value), max(box.upper[j], value)
    return box


class _Region:
    """A box of cells and levels that grows."""

    def __init__(self, demand: KeepsLead, query: Query, costs: Costs, y: FloatArray) -> None:
        self.demand, self.query, self.schema, self.costs = demand, query, query.schema, costs
        self.box, form = demand.limits.copy(), demand.form
        self.cells: dict[int, Cells] = {}
        for j in sorted(form.features()):
            feature, part = self.schema.features[j], y[self.schema.slice(j)]
            if not isinstance(feature, Numeric):
                self.box.missing[j] = not part.any()
                self.box.keep_levels(j, part > 0.5)
                continue
            self.box.missing[j] = bool(np.isnan(part[0]))
            if not self.box.missing[j]:
                cuts = form.cuts().get(j, np.empty(0))
                self.cells[j] = Cells.of(feature, float(self.box.lower[j]), float(self.box.upper[j]), cuts)
                k = int(self.cells[j].index(part[0]))
                self.box.lower[j], self.box.upper[j] = self.cells[j].low[k], self.cells[j].high[k]

    def grow(self, form: Ensemble) -> None:
        """Add cells and levels, always where an answer could leave the box most cheaply, while all of it flips."""
        tops = _Tops(self.demand, form, self.box)
        wide = self.demand.widened()
        ways = [(self._price(j, way, wide), j, way) for j, way in self._ways(form)]
        heapq.heapify(ways)
        while ways:
            _, j, way = heapq.heappop(ways)
            larger = self._larger(j, way)
            if larger is None or not tops.extend(larger, j):
                continue
            self.box = larger
            if isinstance(self.schema.features[j], Numeric):
                heapq.heappush(ways, (self._price(j, way, wide), j, way))

    def _ways(self, form: Ensemble) -> list[tuple[int, int]]:
        """Return (feature, side) for numbers and (feature, level) for categories."""
        out = [(j, side) for j in self.cells for side in (0, 1)]
        for j in sorted(form.features()):
            if not isinstance(self.schema.features[j], Numeric) and not self.box.missing[j]:
                out += [(j, int(level)) for level in np.flatnonzero(~self.box.allowed[self.schema.slice(j)])]
        return out

    def _price(self, j: int, way: int, wide: FloatArray) -> float:
        """Return what an answer pays to leave the box this way."""
        if not isinstance(self.schema.features[j], Numeric):
            return float(self.costs.level_costs(self.schema, j, self.query.factual)[way])
        hat = float(self.query.factual[self.schema.starts[j]])
        beyond = self.box.upper[j] + wide[j] - hat if way else hat - (self.box.lower[j] - wide[j])
        return float(self.costs.numeric(j, np.array([beyond if way else -beyond]))[0]) if beyond > 0 else beyond

    def _larger(self, j: int, way: int) -> Box | None:
        """Return the box with one more cell or level, or None at the end of the feature."""
        box = self.box.copy()
        if not isinstance(self.schema.features[j], Numeric):
            box.allowed[self.schema.starts[j] + way] = True
            return box
        cells = self.cells[j]
        k = int(cells.index(box.upper[j] if way else box.lower[j])) + (1 if way else -1)
        if not 0 <= k <= cells.cuts.size:
            return None
        if way:
            box.upper[j] = cells.high[k]
        else:
            box.lower[j] = cells.low[k]
        return box


class _Tops:
    """The largest value of one gap over a growing box, every tree for itself, kept up to date leaf by leaf."""

    def __init__(self, demand: KeepsLead, form: Ensemble, box: Box) -> None:
        brackets = Brackets(form, *demand.goal.matrix())
        alive = brackets.alive(box)
        k = int(np.argmin(brackets.most(alive)))
        self.form, self.leaves, self.most = form, form.leaves, demand.enough
        self.values, self.constant = brackets.values[:, k], float(brackets.constant[k])
        self.outside = {j: self._outside(box, j) for j in form.features()}
        self.count = np.sum(list(self.outside.values()), axis=0)
        self.top = np.full(form.n_trees, -np.inf)
        np.maximum.at(self.top, self.leaves.tree[alive], self.values[alive])

    def extend(self, box: Box, j: int) -> bool:
        """Take over a box that is larger in feature `j`, unless the gap could then reach what is enough."""
        outside = self._outside(box, j)
        opened = np.flatnonzero(self.outside[j] & ~outside)
        new = opened[self.count[opened] == 1]
        top = self.top.copy()
        np.maximum.at(top, self.leaves.tree[new], self.values[new])
        if float(top.sum()) + self.constant >= self.most:
            return False
        self.top, self.outside[j] = top, outside
        self.count[opened] -= 1
        return True

    def _outside(self, box: Box, j: int) -> BoolArray:
        """Return the leaves that feature `j` keeps out of the box."""
        leaves, form = self.leaves, self.form
        if box.missing[j]:
            return ~leaves.when_missing[:, j]
        if not isinstance(form.schema.features[j], Numeric):
            part = form.schema.slice(j)
            return np.asarray(~(leaves.levels[:, part] & box.allowed[part]).any(axis=1))
        first, last = np.searchsorted(form.cuts()[j], [box.lower[j], box.upper[j]], side="left")
        return np.asarray((leaves.low[:, j] >= last) | (leaves.high[:, j] < first))
