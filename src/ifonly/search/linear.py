"""The linear engine: a linear score under costs and demands on single features is a knapsack, solved without a solver.

When every cost belongs to one feature, every demand is a part of the box, a count of changes or the goal itself, and the
goal is one linear row, then each feature stays or makes one of its moves, the moves must gain enough, and together cost
least (see `ifonly.search.knapsack`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

__all__ = ["Knapsack", "Mover", "goal_row", "jumps_of", "one_linear_row", "starts_elsewhere"]

_NO_GAIN = np.empty(0)


@dataclass(frozen=True)
class Knapsack:
    """Engine for one linear row."""

    name: str = "linear"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the scores are linear, the goal is one row of them, and costs and demands are those of single features."""
        question = separable(statement) if isinstance(statement.form, LinearScores) else None
        if question is None or starts_elsewhere(statement, box) or statement.costs().curves:
            return False
        return one_linear_row(statement, question.goal)

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
            return Found.nothing(bound=progress.budget)
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


def one_linear_row(statement: Statement, goal: Goal) -> bool:
    """Whether a goal is one linear row of the scores."""
    return not goal.is_curved() and len(goal.gaps([Affine()] * statement.form.n_outputs, 0.0)) == 1


def starts_elsewhere(statement: Statement, box: Box) -> bool:
    """Whether the factual lacks a value, or lies outside the box: then moves do not begin at it."""
    return bool(box.missing.any()) or not box.contains(statement.query.factual[None, :])[0]


@dataclass(frozen=True, eq=False)
class Mover:
    """Moves of one feature towards the goal, and where they lead."""

    j: int
    moves: tuple[Jump, ...] | Slide
    levels: tuple[int, ...] = ()
    sign: float = 1.0
    gain: FloatArray = field(default_factory=lambda: _NO_GAIN)

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
    movers: tuple[Mover, ...]

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


def goal_row(statement: Statement, goal: Goal) -> tuple[FloatArray, float]:
    """Return a goal that is one linear row as ``slope @ (u - factual) >= need``."""
    query, scored = statement.query, cast("LinearScores", statement.form)
    entries = np.arange(query.schema.width)
    scores = [Affine(entries, w, float(b)) for w, b in zip(scored.weights, scored.intercept, strict=True)]
    (gap,) = goal.gaps(scores, statement.margin, statement.tie)
    slope = np.zeros(query.schema.width)
    np.add.at(slope, gap.columns, gap.values)
    return slope, -float(slope @ query.factual + gap.constant)


def _row(statement: Statement, box: Box, goal: Goal) -> _Row:
    """Return the goal of linear scores as one row, and the features that can gain something in it."""
    slope, need = goal_row(statement, goal)
    movers = {**_slides(statement, box, slope), **jumps_of(statement, box, slope)}
    return _Row(statement.query.factual, box, need, tuple(movers[j] for j in sorted(movers)))


def _slides(statement: Statement, box: Box, slope: FloatArray) -> dict[int, Mover]:
    """Return the moves of the numbers that gain something."""
    schema, costs, looked_at = statement.query.schema, statement.costs(), statement.form.features()
    numbers = np.array([j for j in schema.numeric if j in looked_at], dtype=np.int64)
    places = np.asarray(schema.starts)[numbers]
    rate, hat = slope[places], statement.query.factual[places]
    reach = np.where(rate > 0.0, box.upper[numbers] - hat, hat - box.lower[numbers])
    some = (rate != 0.0) & (reach > 0.0)
    columns = (numbers, np.abs(rate), costs.linear[numbers], costs.price[numbers], reach, costs.square[numbers])
    movers = {}
    for j, gain, fee, fixed, far, square, up in zip(*(c[some].tolist() for c in (*columns, rate > 0.0)), strict=True):
        feature = schema.features[j]
        assert isinstance(feature, Numeric)
        movers[j] = Mover(j, Slide(gain, fee, fixed, far, feature.step, square), sign=1.0 if up else -1.0)
    return movers


def jumps_of(statement: Statement, box: Box, slope: FloatArray) -> dict[int, Mover]:
    """Return the moves of the categories that gain something, none of them beaten by another one.

    In plain lists: a category has a handful of levels, for which arrays take longer.
    """
    schema, factual, looked_at = statement.query.schema, statement.query.factual, statement.form.features()
    chosen = [j for j in schema.categorical if j in looked_at]
    if not chosen:
        return {}
    costs = statement.costs().entries(schema, factual, slice(None)).tolist()
    columns = (slope.tolist(), costs, box.allowed.tolist(), factual.tolist())
    movers = {j: _jump(j, *(column[schema.slice(j)] for column in columns)) for j in chosen}
    return {j: mover for j, mover in movers.items() if mover is not None}


def _jump(
    j: int, slope: Sequence[float], price: Sequence[float], allowed: Sequence[bool], own: Sequence[float]
) -> Mover | None:
    here = own.index(max(own))
    gain = [value - slope[here] for value in slope]
    jumps: list[Jump] = []
    levels: list[int] = []
    for level in sorted(range(len(gain)), key=lambda k: (price[k], -gain[k])):
        if allowed[level] and gain[level] > (jumps[-1].gain if jumps else 0.0):
            jumps.append(Jump(gain[level], price[level] - price[here]))
            levels.append(level)
    return Mover(j, tuple(jumps), tuple(levels), gain=np.array(gain)) if jumps else None
