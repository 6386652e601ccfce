"""Linear balls: a linear score that must keep its lead all over a ball is a knapsack that needs more.

Let the goal be one row ``s @ u >= need`` of a linear score. At the worst point of the ball around ``u`` it falls by

    hurt(u) = max { -s @ d : d a shift of the ball, u + d within the ends of values }.

A number that moves where the row rises only gets room for worse shifts, up to its reach, and never loses more than it
gains. So no number moves the other way, and where the factual's ball is not cut off by an end, the hurt is the same for
all points in question: the dual norm of the slopes. In a box (linf) it is a sum over features, and one whose ball is cut
off gains nothing until it has moved by the rest of its reach: a knapsack item with a larger fixed price. In a Euclidean
ball the hurt lies between those of the cut and of the full ball, and so does the cost; where the two differ by more than
the gap (ends, grids), the cutting-set method goes on from the answer to the full ball.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.criteria.robustness.shifts import best_shift, on_steps
from ifonly.data.schema import Numeric
from ifonly.events import Built
from ifonly.models.abilities import LinearScores
from ifonly.program.box import Box
from ifonly.question.abilities import Counts
from ifonly.question.demand import BoxDemand
from ifonly.question.found import NO_SOLVER, Ended, Found
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Enclosed, Encloses
from ifonly.search.linear.engine import Row, goal_row, movers_of, one_linear_row
from ifonly.search.linear.knapsack import Answer, cheapest_moves
from ifonly.search.progress import Progress
from ifonly.tolerances import HALF_CLOSING, ON_GRID, ROUNDING

__all__ = ["LinearBalls"]


@dataclass(frozen=True)
class LinearBalls:
    """Engine for one linear row that must hold all over a ball."""

    name: str = "linear balls"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether the scores are linear, the goal is one row of them over a ball, and the rest is of single features."""
        ball = _ball_of(statement)
        if ball is None or not statement.starts_in(box) or statement.costs().curves:
            return False
        return one_linear_row(ball.goal) and _hurts(statement, box, ball) is not None

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Return the cheapest moves that withstand the largest hurt, if those for the least one cost no less."""
        ball = _ball_of(statement)
        assert ball is not None
        hurts = _hurts(statement, box, ball)
        assert hurts is not None
        search = _Search(statement, box, ball, hurts, progress)
        progress.tell(Built(len(search.movers), 1 + (search.most < len(search.movers))))
        least = search.moves(hurts.least, withstand=False)
        if least.ended is not Ended.CLOSED:
            return Found(Ended.GAVE_UP)
        if least.moves is None:  # proven: not even the least hurt can be withstood below the cut-off
            return Found.nothing(bound=progress.budget)
        progress.raise_floor(least.bound)
        most = search.moves(hurts.most, withstand=True)
        if most.moves is None:
            return Found(Ended.GAVE_UP)
        u = search.point(most)
        cost = float(statement.objective(u[None, :])[0])
        progress.keep(u, cost)
        progress.tell_best(least.bound)
        if least.bound >= progress.budget:
            return Found(Ended.CLOSED, u, min(least.bound, cost), (u,), NO_SOLVER)
        progress.pool.append(u)  # the cutting-set method attacks it, and keeps it
        return Found(Ended.GAVE_UP)


class _Hurts(NamedTuple):
    """Bounds of what a ball takes from a row at its worst point, for all points that may be answers.

    Attributes
    ----------
    slope
        Per entry: the row.
    short
        By how much the row falls short at the factual.
    least, most
        Bounds of the hurt at the factual, if numbers that are idle move by less than this.
    idle
        Per feature: how far it moves before it gains anything.
    """

    slope: FloatArray
    short: float
    least: float
    most: float
    idle: FloatArray


def _ball_of(statement: Statement) -> Enclosed | None:
    """Return the one ball that is demanded, of the goal itself; None where anything else reaches beyond single features."""
    if not isinstance(statement.form, LinearScores) or not statement.separable() or statement.exempt():
        return None
    ball = None
    for demand in statement.demands:
        own = demand.enclosed() if isinstance(demand, Encloses) else None
        if own is not None:
            if ball is not None or own.goal is not statement.query.goal or own.form is not statement.form:
                return None
            ball = own
        elif not isinstance(demand, Goal | Counts | BoxDemand):
            return None
    return ball


def _hurts(statement: Statement, box: Box, ball: Enclosed) -> _Hurts | None:
    """Return what the ball takes from the row; None where ends or grids leave too much open."""
    query, schema = statement.query, statement.query.schema
    slope, short = goal_row(statement, ball.goal, 0.0, 0.0)
    numbers = np.flatnonzero(ball.reach)
    places = np.asarray(schema.starts)[numbers]
    rate, hat, reach = np.abs(slope[places]), query.factual[places], ball.reach[numbers]
    step = np.array([_step(schema.features[int(j)]) for j in numbers])
    # the row falls towards the lower end where it rises with the number
    rises = slope[places] > 0.0
    here = np.where(rises, hat - ball.limits.lower[numbers], ball.limits.upper[numbers] - hat)
    far = np.where(rises, box.upper[numbers] - hat, hat - box.lower[numbers])
    now = on_steps(np.clip(here, 0.0, reach), step)
    later = on_steps(np.clip(here + np.maximum(far, 0.0), 0.0, reach), step)
    idle = np.zeros(len(schema))
    if ball.norm == "linf":
        off = np.abs(np.rint(here / np.where(step > 0.0, step, 1.0)) * step - here)
        if ((now < later) & (step > 0.0) & (off > ON_GRID * step)).any():
            return None  # the end, or the factual, is on no grid: the first step is not a whole one
        idle[numbers] = reach - now
        total = float(rate @ now)
        return _Hurts(slope, short, (1.0 - ROUNDING) * total, (1.0 + ROUNDING) * total, idle)
    prices = query.tuning.balls.halvings
    zero = np.zeros_like(now)
    most = float(best_shift(rate, zero, later, reach, prices)[0])
    shift = on_steps(best_shift(rate, zero, now, reach, prices)[1], step)
    least = float(rate @ np.minimum(shift, now))
    return _Hurts(slope, short, (1.0 - ROUNDING) * least, (1.0 + ROUNDING) * most, idle)


def _step(feature: object) -> float:
    assert isinstance(feature, Numeric)
    return feature.step or 0.0


class _Search:
    """The knapsack of one ball, for hurts of any size."""

    def __init__(self, statement: Statement, box: Box, ball: Enclosed, hurts: _Hurts, progress: Progress) -> None:
        self.statement, self.ball, self.hurts, self.progress = statement, ball, hurts, progress
        self.movers = movers_of(statement, box, hurts.slope, hurts.idle)
        self.row = Row(statement.query.factual, box, hurts.short, self.movers)
        counts = [d.at_most() for d in statement.demands if isinstance(d, Counts)]
        self.most = min([len(statement.query.schema), *counts])

    def moves(self, hurt: float, *, withstand: bool) -> Answer:
        """Return the cheapest moves that gain what the row falls short by, and a hurt.

        The row needs the lead that is enough in the ball, and a margin at the answer; to withstand, the more of both.
        """
        margin = max(self.statement.margin, self.statement.tie)
        lead = max(self.ball.enough, margin) + hurt if withstand else max(self.ball.enough + hurt, margin)
        progress = self.progress
        return cheapest_moves(
            [mover.moves for mover in self.movers],
            self.hurts.short + lead,
            self.most,
            # two optima that are the same but for rounding close the gap
            gap=HALF_CLOSING * progress.limits.gap,
            cutoff=progress.limits.cutoff,
            deadline=progress.deadline,
            tuning=self.statement.query.tuning.knapsack,
        )

    def point(self, found: Answer) -> FloatArray:
        """Return where moves lead."""
        assert found.moves is not None
        return self.row.point(found.moves)
