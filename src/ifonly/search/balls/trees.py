"""Branch and bound over centres of balls, for trees that must keep their outcome all over a ball: no solver needed.

Where a sum of trees stays below what is enough in a whole box of cells, no ball around an answer may touch that box: it is
a no-good. A node is a box of centres, and its cheapest centre is looked at. A no-good that its ball touches bounds the node
by what it costs to get away from it; otherwise an adversary looks for a flipping cell in the ball, which is grown into a
new no-good, always where it is cheapest to get away from it. A cheapest centre that withstands closes its node. So what is
searched is which features carry an answer out of a few hundred boxes, not where all the leaves meet.

The search is compiled (`_balls.c`). Without a compiler robust questions go to the solver, by the cutting-set method.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from types import ModuleType

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.events import Built
from ifonly.models.abilities import Ensemble
from ifonly.program.box import Box
from ifonly.question.abilities import Counts
from ifonly.question.found import Ended, Found
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Enclosed
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.kernels import Said, is_on
from ifonly.search.balls.tables import MOST_LEVELS, BallTables, kind_of
from ifonly.search.engine import NO_SOLVER, over_balls
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from ifonly.tolerances import DUST, ON_GRID, ROUNDING, SQUARED_GAP, TINY

__all__ = ["Balls"]

try:
    from ifonly.search.balls import _balls
except ImportError:  # no compiler when the package was installed
    _built: ModuleType | None = None
else:
    _built = _balls


# as `Numbers` of _balls.h calls them
_TOLERANCES = {"dust": DUST, "rounding": ROUNDING, "squared_gap": SQUARED_GAP, "on_grid": ON_GRID, "tiny": TINY}


def _compiled() -> bool:
    return is_on(_built)


@dataclass(frozen=True)
class Balls:
    """Engine for trees that must keep their outcome all over a ball."""

    name: str = "balls"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether all that reaches beyond single features is a goal of trees, demanded all over balls."""
        return _compiled() and bool(_balls_of(statement, box))

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Search until the box is closed, or the deadline or the memory ends it."""
        balls = _balls_of(statement, box)
        incumbents = Incumbents.of(statement, box, progress)
        tables = BallTables(statement, box, balls, incumbents.start)
        progress.tell(
            Built(sum(len(row.leaves.node) for row in tables.rows), len(tables.numbers) + len(tables.categories))
        )
        search = _Search(statement, tables, incumbents, progress)
        search.try_rows()
        if any(ball.norm == "l2" for ball in balls):
            _around(statement, box, balls, incumbents, progress)
        ended = search.run()
        progress.tell_best(search.bound)
        if ended is Ended.GAVE_UP:
            if np.isfinite(search.bound):  # that nothing is robust at all is left to the solver to say
                progress.raise_floor(search.bound)
            return Found(Ended.GAVE_UP)
        if ended is not Ended.CLOSED:
            progress.leave(search.bound)
            return progress.found()
        progress.solver = NO_SOLVER
        return progress.found()


def _around(statement: Statement, box: Box, balls: list[Enclosed], incumbents: Incumbents, progress: Progress) -> None:
    """Look for incumbents in the boxes around l2 balls, searched faster: what is robust there is robust in the ball."""
    boxes = [ball._replace(norm="linf") for ball in balls]
    tables = BallTables(statement, box, boxes, incumbents.start)
    tuning = statement.query.tuning.balls
    deadline = progress.deadline.within(tuning.around * progress.deadline.left())
    _Search(statement, tables, incumbents, progress, bounds=False).run(deadline, tuning.around_runs)


def _balls_of(statement: Statement, box: Box) -> list[Enclosed]:
    """Return what is demanded of which balls; none where the kernel does not know a form, or cannot keep a value."""
    balls = over_balls(statement, box)
    known = all(isinstance(ball.form, Ensemble) for ball in balls)
    return balls if known and _kept_well(statement, box) else []


def _kept_well(statement: Statement, box: Box) -> bool:
    """Whether the kernel can keep all values: numbers in double or single precision or on grids, not too many levels."""
    schema, factual = statement.query.schema, statement.query.factual
    for j, feature in enumerate(schema.features):
        if not isinstance(feature, Numeric):
            if feature.width > MOST_LEVELS:
                return False
        elif kind_of(feature) is None or not (np.isfinite(box.lower[j]) and np.isfinite(box.upper[j])):
            return False
        elif feature.step is not None and not box.missing[j]:
            ends = np.abs([box.lower[j], box.upper[j], factual[schema.starts[j]]]).max() / feature.step
            if not ends < 2.0**52:
                return False
    return True


class _Search:
    """One robust search by the compiled kernel.

    Attributes
    ----------
    bound
        The least bound of the nodes that are open.
    bounds
        Whether it searches the balls that are asked for, so that its bounds hold; else it only finds incumbents.
    """

    def __init__(
        self,
        statement: Statement,
        tables: BallTables,
        incumbents: Incumbents,
        progress: Progress,
        *,
        bounds: bool = True,
    ) -> None:
        assert _built is not None
        self.statement, self.tables, self.incumbents, self.progress = statement, tables, incumbents, progress
        self.bounds = bounds
        self.tuning = statement.query.tuning.balls
        most = min(
            (d.at_most() for d in statement.demands if isinstance(d, Counts)), default=len(statement.query.schema)
        )
        elsewhere, changed = tables.elsewhere()
        self.bound = elsewhere
        tuning = self.tuning
        limits = (int(most) - changed, tuning.looks, tuning.kernel_work, tuning.kernel_bytes)
        numbers = _TOLERANCES | asdict(statement.query.tuning.no_goods)
        self._kernel = _built
        self._search = _built.opened(tables.features(), tables.constraints(), numbers, elsewhere, *limits)

    def run(self, deadline: Deadline | None = None, most_runs: float = np.inf) -> Ended:
        """Go on until nothing is left, looking at the deadline and Ctrl-C every few milliseconds."""
        progress, met, runs = self.progress, False, 0
        deadline = progress.deadline if deadline is None else deadline
        while True:
            if deadline.passed or runs >= most_runs:
                return Ended.LIMIT
            runs += 1
            said, bound, _, _ = self._kernel.run(self._search, progress.budget, int(met), self.tuning.kernel_work)
            if said == Said.CLOSED and bound > progress.budget:
                self.bound = progress.budget
                return Ended.CLOSED
            self.bound = max(self.bound, bound)
            if said == Said.CLOSED:  # but for nodes that are too small to be split, or whose point was refused
                return Ended.GAVE_UP
            if said == Said.FULL:
                return Ended.GAVE_UP
            if said == Said.OFFER:
                met = self._offer()

    def try_rows(self) -> None:
        """Try training rows of the wanted outcome as first incumbents, the cheapest ones first."""
        taken = 0
        for u in self.incumbents.near_rows(self.tuning.rows):
            if self.progress.deadline.passed or taken == self.tuning.row_answers:
                return
            if self._kernel.tried(self._search, self.progress.budget, *self._as_numbers(u)):
                taken += self._offer()

    def _offer(self) -> bool:
        """Offer the kernel's point as incumbent; say whether it was taken."""
        tables, schema = self.tables, self.tables.schema
        x, level = np.empty(len(tables.numbers)), np.empty(len(tables.categories), dtype=np.int32)
        bound, closes = self._kernel.offered(self._search, x, level)
        u = tables.start.copy()
        for j, value in zip(tables.numbers, x, strict=True):
            u[schema.starts[j]] = float(tables.units.back(j, value))
        for j, e in zip(tables.categories, level, strict=True):
            u[schema.slice(j)] = 0.0
            u[schema.starts[j] + int(e)] = 1.0
        taken = self.incumbents.offer(u)
        if taken:
            self.progress.tell_best()
        if taken and closes and self.bounds:
            self.progress.close(bound)
        return taken

    def _as_numbers(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        tables, schema = self.tables, self.tables.schema
        x = np.array([float(tables.units.of(j, u[schema.starts[j]])) for j in tables.numbers])
        levels = [int(u[schema.slice(j)].argmax()) for j in tables.categories]
        return x, np.array(levels, dtype=np.int32)
