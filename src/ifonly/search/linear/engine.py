"""The linear engine: a linear score under costs and demands on single features is a knapsack, solved without a solver.

When every cost belongs to one feature, every demand is a part of the box, a count of changes or the goal itself, and the
goal is one linear row, then each feature stays or makes one of its moves, the moves must gain enough, and together cost
least (see `ifonly.search.linear.knapsack`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.events import Built
from ifonly.models.abilities import LinearScores
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.question.trail import Ledger
from ifonly.search.engine import NO_SOLVER
from ifonly.search.linear.knapsack import Fork, cheapest_moves
from ifonly.search.linear.moves import Jump, Slide
from ifonly.search.progress import Progress

__all__ = ["Knapsack", "Mover", "Row", "goal_row", "jumps_of", "movers_of", "one_linear_row"]


@dataclass(frozen=True)
class Knapsack:
    """Engine for one linear row."""

    name: str = "linear"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the scores are linear, the goal is one row of them, and costs and demands are those of single features."""
        found = statement.on_single_features
        if found is None or not statement.separable() or not isinstance(statement.form, LinearScores):
            return False
        if not statement.starts_in(box) or statement.costs().curves:
            return False
        return one_linear_row(cast("Goal", found.goal))

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Return the cheapest moves as a point; give up where they take too many nodes."""
        question = statement.on_single_features
        assert question is not None
        row = _row(statement, box, cast("Goal", question.goal))
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
        if found.moves is None:
            closed = found.ended is Ended.CLOSED
            return Found.nothing(bound=progress.budget) if closed else Found(Ended.GAVE_UP)
        points = tuple(row.point(moves) for moves in found.better)
        if found.ended is Ended.GAVE_UP:
            if all(demand.holds(statement.query, points[-1][None, :])[0] for demand in statement.demands):
                progress.keep(points[-1], float(statement.objective(points[-1][None, :])[0]))
            return Found(Ended.GAVE_UP)
        progress.keep(points[-1], found.cost)
        progress.tell_best(found.bound)
        return Found(found.ended, points[-1], found.bound, points, NO_SOLVER)


def one_linear_row(goal: Goal) -> bool:
    """Whether a goal is one linear row of the scores."""
    return not goal.is_curved() and len(goal.rows()) == 1


class Mover(NamedTuple):
    """Moves of one feature towards the goal, and where they lead: up or down by `sign`, or to `levels`.

    `gain` is what each level of a category gains, for the proof; a slide begins once the feature has gone `idle`.
    """

    j: int
    moves: tuple[Jump, ...] | Slide
    levels: tuple[int, ...] = ()
    sign: float = 1.0
    gain: Sequence[float] = ()
    idle: float = 0.0

    def note(self, ledger: Ledger, at: float | None, row: Row) -> None:
        """Note a fork: the side of staying, or of less, comes first.

        Levels that some move beats go where that move goes, so that they bring no bound down.
        """
        if self.levels:
            ledger.levels(self.j, np.asarray(self.gain) <= (at or 0.0))
        elif at is None:
            ledger.stays(self.j)
        else:
            hat = float(row.factual[row.box.schema.starts[self.j]])
            ledger.cut(self.j, hat + self.sign * (self.idle + at), second_first=self.sign < 0)

    def apply(self, u: FloatArray, move: float, box: Box) -> None:
        """Carry a move out."""
        feature, part = box.schema.features[self.j], box.schema.slice(self.j)
        if isinstance(feature, Numeric):
            value = float(u[part.start]) + self.sign * (self.idle + move)
            value = value if feature.precision is None else float(round(value, feature.precision))
            u[part.start] = min(max(value, float(box.lower[self.j])), float(box.upper[self.j]))
        else:
            u[part] = 0.0
            u[part.start + self.levels[int(move)]] = 1.0


@dataclass(frozen=True, eq=False)
class Row:
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


def goal_row(
    statement: Statement, goal: Goal, margin: float | None = None, tie: float | None = None
) -> tuple[FloatArray, float]:
    """Return a goal that is one linear row as ``slope @ (u - factual) >= need``, with the statement's margin or another."""
    scored = cast("LinearScores", statement.form)
    (row,) = goal.rows(statement.margin if margin is None else margin, statement.tie if tie is None else tie)
    slope = row.values @ scored.weights[row.columns]
    constant = float(row.values @ scored.intercept[row.columns]) + row.constant - row.least
    return slope, -float(slope @ statement.query.factual + constant)


def _row(statement: Statement, box: Box, goal: Goal) -> Row:
    """Return the goal of linear scores as one row, and the features that can gain something in it."""
    slope, need = goal_row(statement, goal)
    return Row(statement.query.factual, box, need, movers_of(statement, box, slope))


def movers_of(statement: Statement, box: Box, slope: FloatArray, idle: FloatArray | None = None) -> tuple[Mover, ...]:
    """Return the moves of all features that gain something; numbers gain once they have gone `idle`."""
    movers = {**_slides(statement, box, slope, idle), **jumps_of(statement, box, slope)}
    return tuple(movers[j] for j in sorted(movers))


def _slides(statement: Statement, box: Box, slope: FloatArray, idle: FloatArray | None) -> dict[int, Mover]:
    """Return the moves of the numbers that gain something: what they cost until then is part of their price."""
    schema, costs = statement.query.schema, statement.costs()
    numbers, places = np.array(schema.numeric, dtype=np.intp), schema.number_starts
    rate, hat = slope[places], statement.query.factual[places]
    off = np.zeros(len(numbers)) if idle is None else idle[numbers]
    reach = np.where(rate > 0.0, box.upper[numbers] - hat, hat - box.lower[numbers]) - off
    some = (rate != 0.0) & (reach > 0.0)
    numbers, rate = numbers[some], rate[some]
    off, linear, square = off[some], costs.linear[numbers], costs.square[numbers]
    # the cost of a move by idle + d, as a function of d
    fee, fixed = linear + 2.0 * square * off, costs.price[numbers] + (linear + square * off) * off
    columns = (part.tolist() for part in (numbers, rate, fee, fixed, reach[some], square, off))
    return {
        j: Mover(
            j, Slide(abs(gain), dear, once, far, schema.steps[j], curved), sign=1.0 if gain > 0.0 else -1.0, idle=before
        )
        for j, gain, dear, once, far, curved, before in zip(*columns, strict=True)
    }


def jumps_of(statement: Statement, box: Box, slope: FloatArray) -> dict[int, Mover]:
    """Return the moves of the categories that gain something, none of them beaten by another one.

    In plain lists: a category has a handful of levels, for which arrays take longer.
    """
    schema, factual = statement.query.schema, statement.query.factual
    best, own = np.maximum.reduceat(slope, schema.starts), np.add.reduceat(slope * factual, schema.starts)
    chosen = [
        j for j, gains in zip(schema.categorical, (best > own)[schema.categorical].tolist(), strict=True) if gains
    ]
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
    better = [level for level, gains in enumerate(gain) if gains > 0.0 and allowed[level]]
    for level in sorted(better, key=lambda k: (price[k], -gain[k])):
        if not jumps or gain[level] > jumps[-1].gain:
            jumps.append(Jump(gain[level], price[level] - price[here]))
            levels.append(level)
    return Mover(j, tuple(jumps), tuple(levels), gain=gain) if jumps else None
