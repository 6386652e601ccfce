"""Engines without a solver: a linear score (a knapsack) or a single tree, under costs and demands on single features.

When every cost belongs to one feature, and every demand is a part of the box, a count of changes or the goal itself,
then

* a goal that is one linear row is a knapsack over features (see `ifonly.search.knapsack`);
* a single tree is a list of boxes, its leaves; the cheapest point of a box moves each feature no further than it must.

Both are solved to the end, so what comes back is proven optimal, or proven not to be there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.deadline import Deadline
from ifonly.events import Built, OnEvent
from ifonly.models.forms.linear import Linear
from ifonly.models.forms.scan import inside
from ifonly.models.forms.trees import Addition, Trees
from ifonly.program.box import Box
from ifonly.program.mip import Affine
from ifonly.question.abilities import Counts
from ifonly.question.demand import BoxDemand
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.search.knapsack import Answer, Jump, Slide, cheapest_moves
from ifonly.search.reduce import Reducer
from ifonly.solvers.backend import Limits

__all__ = ["Settled", "feature_by_feature", "settle"]


@dataclass(frozen=True, eq=False)
class Settled:
    """Result of a solver-free search: optimal point `u` (None: proven infeasible), its lower bound, earlier incumbents.

    Not `proven`: the cheapest that was known when time ran out.
    """

    u: FloatArray | None = None
    bound: float = np.inf
    met: tuple[FloatArray, ...] = ()
    proven: bool = True


def settle(
    statement: Statement, box: Box, limits: Limits, deadline: Deadline, on_event: OnEvent | None = None
) -> Settled | None:
    """Solve a question that needs no solver, or return None for one that does."""
    single_tree = isinstance(statement.form, Trees) and statement.form.n_trees == 1
    if not single_tree and not isinstance(statement.form, Linear):
        return None
    if box.missing.any() or not box.contains(statement.query.factual[None, :])[0]:
        return None
    goal, most = feature_by_feature(statement)
    if goal is None:
        return None
    tell = on_event or (lambda _: None)
    if single_tree:
        return _leaves(statement, box, goal, most, limits, tell)
    row = _row(statement, box, goal)
    return None if row is None else row.settle(most, limits, deadline, tell)


def feature_by_feature(statement: Statement) -> tuple[Goal | None, int]:
    """Return the goal and how many features may change, if nothing else reaches beyond single features; else no goal."""
    goal, most = None, len(statement.query.schema)
    if statement.exempt() or not statement.separable():
        return None, most
    for demand in statement.demands:
        if isinstance(demand, Goal) and goal is None:
            goal = demand
        elif isinstance(demand, Counts):
            most = min(most, demand.at_most())
        elif not isinstance(demand, BoxDemand):
            return None, most
    return goal, most


# -- one linear row --------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Mover:
    """Knapsack items of one feature: its moves, with their gain for the goal and where they lead."""

    j: int
    moves: tuple[Jump, ...] | Slide
    levels: tuple[int, ...] = ()
    sign: float = 1.0

    def apply(self, u: FloatArray, move: float, box: Box) -> None:
        """Carry a move out."""
        feature, part = box.schema.features[self.j], box.schema.slice(self.j)
        if isinstance(feature, Numeric):
            value = feature.snap(float(u[part][0]) + self.sign * move)
            u[part] = min(max(value, float(box.lower[self.j])), float(box.upper[self.j]))
        else:
            u[part] = 0.0
            u[part.start + self.levels[int(move)]] = 1.0


@dataclass(frozen=True, eq=False)
class _Row:
    """The goal as one row: so much is needed, and these features can gain it."""

    factual: FloatArray
    box: Box
    need: float
    movers: tuple[_Mover, ...]

    def settle(self, most: int, limits: Limits, deadline: Deadline, tell: OnEvent) -> Settled | None:
        """Return the cheapest moves as a point; None when the search gives up."""
        tell(Built(len(self.movers), 1 + (most < len(self.movers))))
        moves = [mover.moves for mover in self.movers]
        found = cheapest_moves(moves, self.need, most, gap=limits.gap, cutoff=limits.cutoff, deadline=deadline)
        if not isinstance(found, Answer):
            return Settled() if found is None else None
        points = tuple(self._point(chosen) for chosen in found.better)
        return Settled(points[-1], found.bound, points[:-1], found.proven)

    def _point(self, moves: Mapping[int, float]) -> FloatArray:
        u = self.factual.copy()
        for i, move in moves.items():
            self.movers[i].apply(u, move, self.box)
        return u


def _row(statement: Statement, box: Box, goal: Goal) -> _Row | None:
    """Return the goal of a linear form as a row, if it is one, and the costs have no squares."""
    form, query = statement.form, statement.query
    assert isinstance(form, Linear)
    if statement.costs().square.any() or goal.is_curved():
        return None
    entries = np.arange(query.schema.width)
    scores = [Affine(entries, w, float(b)) for w, b in zip(form.weights, form.intercept, strict=True)]
    gaps = goal.gaps(scores, statement.margin, statement.tie)
    if len(gaps) != 1:
        return None
    slope = np.zeros(query.schema.width)
    np.add.at(slope, gaps[0].columns, gaps[0].values)
    need = -float(slope @ query.factual + gaps[0].constant)
    movers = (_mover(statement, box, slope, j) for j in sorted(form.features()))
    return _Row(query.factual, box, need, tuple(mover for mover in movers if mover is not None))


def _mover(statement: Statement, box: Box, slope: FloatArray, j: int) -> _Mover | None:
    """Return the moves of a feature that gain something, none of them beaten by another one."""
    query, costs = statement.query, statement.costs()
    feature, part = query.schema.features[j], query.schema.slice(j)
    if isinstance(feature, Numeric):
        rate, hat = float(slope[part][0]), float(query.factual[part][0])
        reach = float(box.upper[j]) - hat if rate > 0 else hat - float(box.lower[j])
        if rate == 0.0 or reach <= 0.0:
            return None
        slide = Slide(abs(rate), float(costs.linear[j]), float(costs.price[j]), reach, feature.step)
        return _Mover(j, slide, sign=1.0 if rate > 0 else -1.0)
    here = int(query.factual[part].argmax())
    price = costs.level_costs(query.schema, j, query.factual)
    gain = slope[part] - slope[part][here]
    jumps: list[Jump] = []
    levels: list[int] = []
    for level in np.lexsort((-gain, price)):
        if box.allowed[part][level] and gain[level] > (jumps[-1].gain if jumps else 0.0):
            jumps.append(Jump(float(gain[level]), float(price[level] - price[here])))
            levels.append(int(level))
    return _Mover(j, tuple(jumps), tuple(levels)) if jumps else None


# -- one tree --------------------------------------------------------------------------------------------------------
def _leaves(statement: Statement, box: Box, goal: Goal, most: int, limits: Limits, tell: OnEvent) -> Settled:
    """Look at every leaf with the wanted outcome: the cheapest value of each feature that it allows."""
    form, query = statement.form, statement.query
    assert isinstance(form, Trees)
    reducer = Reducer(statement)
    add = form.addition or Addition(form.nodes.value, form.base)
    meets = goal.holds_scores(add(form.leaves.node[:, None]))
    if reducer.brackets is not None and (statement.margin > 0.0 or statement.tie > 0.0):
        meets &= (reducer.brackets.values + reducer.brackets.constant >= 0.0).all(axis=1)
    wanted = np.flatnonzero(meets)
    tell(Built(len(wanted), len(form.features())))
    cost, changes = np.zeros(len(wanted)), np.zeros(len(wanted), dtype=np.int64)
    values = {}
    for j, options in reducer.options(box).items():
        allowed = inside(form, j, options.parts, wanted)
        first = allowed.argmax(axis=0)
        home = (options.parts == query.factual[query.schema.slice(j)]).all(axis=1)
        cost += np.where(allowed.any(axis=0), options.costs[first], np.inf)
        changes += ~home[first]
        values[j] = options.parts[first]
    cost[changes > most] = np.inf
    if not np.isfinite(cost).any() or cost.min() > limits.cutoff:
        return Settled()
    best = int(cost.argmin())
    u = query.factual.copy()
    for j, parts in values.items():
        u[query.schema.slice(j)] = parts[best]
    return Settled(u, float(cost[best]))
