"""The linear engine: a linear score under costs and demands on single features is a knapsack, solved without a solver.

When every cost belongs to one feature, every demand is a part of the box, a count of changes or the goal itself, and the
goal is one linear row, then each feature stays or makes one of its moves, the moves must gain enough, and together cost
least (see `ifonly.search.knapsack`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.events import Built
from ifonly.models.abilities import LinearScores
from ifonly.program.box import Box
from ifonly.program.mip import Affine
from ifonly.question.found import Ended, Found
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.question.trail import Ledger
from ifonly.search.engine import NO_SOLVER, separable
from ifonly.search.knapsack import Fork, cheapest_moves
from ifonly.search.moves import Jump, Slide
from ifonly.search.progress import Progress

__all__ = ["Knapsack"]


@dataclass(frozen=True)
class Knapsack:
    """Engine for one linear row."""

    name: str = "linear"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the scores are linear, the goal is one row of them, and costs and demands are those of single features."""
        if not isinstance(statement.form, LinearScores) or _starts_elsewhere(statement, box):
            return False
        question = separable(statement)
        if question is None or statement.costs().curves or question.goal.is_curved():
            return False
        return len(question.goal.gaps([Affine()] * statement.form.n_outputs, 0.0)) == 1

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Return the cheapest moves as a point; give up where they take too many nodes."""
        question = separable(statement)
        assert question is not None
        row = _row(statement, box, question.goal)
        progress.tell(Built(len(row.movers), 1 + (question.most < len(row.movers))))
        limits = progress.limits
        found = cheapest_moves(
            [mover.moves for mover in row.movers],
            row.need,
            question.most,
            gap=limits.gap,
            cutoff=limits.cutoff,
            deadline=progress.deadline,
            tuning=statement.query.tuning.knapsack,
            trail=progress.ledger is not None,
        )
        if progress.ledger is not None and found.ended is Ended.CLOSED:
            row.note(progress.ledger, found.tree)
        if found.ended is Ended.CLOSED and found.moves is None:
            return Found.nothing()
        if found.moves is None:
            return Found(Ended.GAVE_UP)
        points = tuple(row.point(moves) for moves in found.better)
        if found.ended is Ended.GAVE_UP:
            if all(demand.holds(statement.query, points[-1][None, :])[0] for demand in statement.demands):
                progress.keep(points[-1], float(statement.objective(points[-1][None, :])[0]))
            return Found(Ended.GAVE_UP)
        progress.keep(points[-1], float(statement.objective(points[-1][None, :])[0]))
        progress.tell_best(found.bound)
        return Found(found.ended, points[-1], found.bound, points, NO_SOLVER)


def _starts_elsewhere(statement: Statement, box: Box) -> bool:
    """Whether the factual lacks a value, or lies outside the box: then moves do not begin at it."""
    return bool(box.missing.any()) or not box.contains(statement.query.factual[None, :])[0]


@dataclass(frozen=True, eq=False)
class _Mover:
    """Moves of one feature towards the goal, and where they lead."""

    j: int
    moves: tuple[Jump, ...] | Slide
    levels: tuple[int, ...] = ()
    sign: float = 1.0
    gain: FloatArray = field(default_factory=lambda: np.empty(0))

    def note(self, ledger: Ledger, at: float | None, row: _Row) -> None:
        """Note a fork: the side of staying, or of less, comes first.

        Levels that some move beats go where that move goes, so that they bring no bound down.
        """
        part = row.box.schema.slice(self.j)
        if not isinstance(row.box.schema.features[self.j], Numeric):
            ledger.levels(self.j, self.gain <= (at or 0.0))
        elif at is None:
            ledger.stays(self.j)
        else:
            ledger.cut(self.j, float(row.factual[part][0]) + self.sign * at, second_first=self.sign < 0)

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

    def point(self, moves: Mapping[int, float]) -> FloatArray:
        """Carry moves out, from the factual."""
        u = self.factual.copy()
        for i, move in moves.items():
            self.movers[i].apply(u, move, self.box)
        return u

    def note(self, ledger: Ledger, tree: Mapping[int, Fork | float | None]) -> None:
        """Note the nodes of a closed search in pre-order."""
        stack = [0]
        while stack:
            node = tree[stack.pop()]
            if not isinstance(node, Fork):
                ledger.leaf(node)
                continue
            self.movers[node.j].note(ledger, node.at, self)
            stack += [node.more, node.less]


def _row(statement: Statement, box: Box, goal: Goal) -> _Row:
    """Return the goal of linear scores as one row."""
    query, form = statement.query, statement.form
    scored = cast("LinearScores", form)
    entries = np.arange(query.schema.width)
    scores = [Affine(entries, w, float(b)) for w, b in zip(scored.weights, scored.intercept, strict=True)]
    gaps = goal.gaps(scores, statement.margin, statement.tie)
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
        fee, square, fixed = (float(cost[j]) for cost in (costs.linear, costs.square, costs.price))
        slide = Slide(abs(rate), fee, fixed, reach, feature.step, square)
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
    return _Mover(j, tuple(jumps), tuple(levels), gain=gain) if jumps else None
