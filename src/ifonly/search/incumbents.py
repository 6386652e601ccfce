"""Incumbents before any proof: scans of single features, and rows of the wanted outcome shrunk to the factual.

A point counts only if it meets every demand; what is found here bounds the optimum from above.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.models.abilities import LinearScores
from ifonly.models.forms.scan import Brackets, TreeScan
from ifonly.program.box import Box
from ifonly.question.abilities import Counts
from ifonly.question.found import Found
from ifonly.question.guidance import Proposes
from ifonly.question.statement import Statement
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.memo import cached_property
from ifonly.search.progress import Known, Progress
from ifonly.search.reduce import Menu, Reducer
from ifonly.solvers.backend import Limits
from ifonly.tolerances import DUST as _DUST
from ifonly.tolerances import ROUNDING as _TIE

__all__ = ["Incumbents", "from_rows", "reached"]


class Incumbents:
    """Primal heuristics: they offer cheap points of a box that meet all demands to a `Progress`, until its deadline."""

    def __init__(self, reducer: Reducer, box: Box, progress: Progress | None = None) -> None:
        self.reducer, self.progress = reducer, Progress() if progress is None else progress
        self.deadline = self.progress.deadline
        self.statement = reducer.statement
        self.query = reducer.query
        self.schema = reducer.schema
        self.box = box
        self.start = self._start()
        self.tuning = self.query.tuning.incumbents
        self.pairs_left = self.tuning.most_pairs
        self._opened = False

    @classmethod
    def of(cls, statement: Statement, box: Box, progress: Progress) -> Incumbents:
        """Return the heuristics of a search, with all that an earlier engine of it has tabulated."""
        return progress.once(cls, lambda: cls(Reducer(statement), box, progress))

    @property
    def best(self) -> Known | None:
        """The incumbent."""
        return self.progress.best

    # -- entry points -------------------------------------------------------------------------------------------
    def open(self) -> None:
        """Look for a first incumbent, once for all engines of a search; at rows only where the question is not small."""
        if self._opened:
            return
        self._opened = True
        self.quick()
        budget = self.progress.budget
        if self.reducer.brackets is None or budget == np.inf or self.reducer.size(self.box, budget) > self.tuning.small:
            self.rows()
            self.climb()

    def climb(self) -> Known | None:
        """Carry out one change after the other that lifts the scores most: where few may change, or nothing is known yet."""
        brackets = self.reducer.brackets
        if brackets is None or (self.best is not None and self.most >= len(self.schema)):
            return self.best
        self._climb(brackets)
        return self.best

    def climb_from_each(self) -> Known | None:
        """Climb from the best change of one feature after the other until there is an incumbent.

        Where few may change, it matters which one is the first.
        """
        brackets = self.reducer.brackets
        if brackets is None or self.best is not None:
            return self.best
        gaps = _singles(TreeScan(brackets, self.start))[self.menu.place].min(axis=1)
        order = np.argsort(-gaps, kind="stable")
        order = order[~self.stays[order]]
        for place in np.sort(np.unique(self.menu.feature[order], return_index=True)[1]):
            if self.deadline.passed or self._climb(brackets, int(order[place])):
                break
        return self.progress.best

    @cached_property
    def most(self) -> int:
        """Number of features that may change."""
        return min((d.at_most() for d in self.statement.demands if isinstance(d, Counts)), default=len(self.schema))

    def _climb(self, brackets: Brackets, first: int | None = None) -> bool:
        """Climb, shrink what that leads to, and offer it; say if it is taken."""
        u = self._climbed(brackets, self.most, first)
        return u is not None and self.offer(self.shrunk(u, TreeScan(brackets, u)))

    def quick(self) -> Known | None:
        """Look at what the demands propose, and at changes of single features."""
        for u in self._proposed():
            self.offer(u)
        # where the form does not know, every offer is a call of the model
        if self.deadline.passed and (self.best is not None or not self.query.model.by_form):
            return self.best
        brackets = self.reducer.brackets
        if brackets is None:
            self.offer(self.start)
            return self.best
        scan = TreeScan(brackets, self.start)
        if reached(scan.here()):
            self.offer(self.start)
        single = self._single_change(scan)
        if single is not None:
            self.offer(single)
        return self.best

    def rows(self, most: int = 4) -> Known | None:
        """Take training rows of the wanted outcome and shrink them towards the factual."""
        brackets = self.reducer.brackets
        if brackets is None:
            enough = self.best is not None and isinstance(self.reducer.form, LinearScores)
            for u in self.near_rows(0 if enough else most):  # a linear program needs no second opinion
                self.offer(self.pulled(u))
            return self.best
        for u in self.near_rows(most):
            self.offer(self.shrunk(u, TreeScan(brackets, u)))
        return self.best

    def shrink(self, u: FloatArray) -> None:
        """Shrink a point that has the wanted outcome towards the factual."""
        brackets = self.reducer.brackets
        if brackets is not None:
            scan = TreeScan(brackets, u)
            if reached(scan.here()):
                self.offer(self.shrunk(u, scan))

    def offer(self, u: FloatArray) -> bool:
        """Keep a point, its consequences drawn, if it meets all demands and is cheaper than what is known; say if so."""
        u = self.statement.with_consequences((self.schema.stored(u) if self._is_rounded else u)[None, :])[0]
        cost = float(self.statement.objective(u[None, :])[0])
        if (self.best is not None and cost >= self.best.cost) or not self._meets_all(u):
            return False
        return self.progress.keep(u, cost)

    def ask(self, U: FloatArray) -> None:
        """Put points within rounding of their threshold to the model itself, and keep the cheapest that it confirms.

        For points that a search closes one by one: the model adds in another order than the form, and has the last word.
        """
        costs = self.statement.objective(U)
        met = self.box.contains(U) & (costs < (np.inf if self.best is None else self.best.cost))
        for demand in self.statement.demands:
            met &= demand is self.reducer.goal or demand.holds(self.query, U)
        met &= self.reducer.goal.clears(self.statement.form(U), self.statement.margin - self.rounding)
        U, costs = U[met], costs[met]
        said = self.reducer.goal.confirmed(U) if len(U) else np.zeros(0, dtype=np.bool_)
        for u, cost in zip(U[said], costs[said], strict=True):
            self.progress.keep(u, float(cost))

    def accept(self, u: FloatArray) -> None:
        """Keep a point of the solver's, which meets all demands by construction, if it is cheaper.

        The model may refuse it all the same; the incumbent that it replaces, which has been tested, is then as good.
        """
        before = self.progress.best
        if self.progress.keep(u, float(self.statement.objective(u[None, :])[0])) and before is not None:
            self.progress.pool.append(before.u)

    def _meets_all(self, u: FloatArray) -> bool:
        row = u[None, :]
        inside = bool(self.box.contains(row)[0])
        return inside and all(bool(d.holds(self.query, row)[0]) for d in self.statement.demands) and self._clears(row)

    def _clears(self, row: FloatArray) -> bool:
        """Whether a point clears the margin as the program would: one that the model refused is not met again.

        Where the model itself has just confirmed it, no margin is needed.
        """
        margin, goal = self.statement.margin, self.reducer.goal
        return margin <= 0.0 or not self.query.model.by_form or bool(goal.clears(self.statement.form(row), margin)[0])

    @cached_property
    def rounding(self) -> float:
        """The rounding of the gaps of the goal, in the arithmetic of the model."""
        return self.reducer.goal.rounding(self.statement.form, self.box)

    @cached_property
    def _is_rounded(self) -> bool:
        """Whether some column holds fewer digits than a program computes with, or than the training rows may have."""
        numbers = [f for f in self.schema.features if isinstance(f, Numeric)]
        if any(f.step is not None and f.decimals is not None for f in numbers):
            return True
        return any(f.step is None and f.stored != np.float64 for f in numbers)

    # -- starting points ----------------------------------------------------------------------------------------
    def _start(self) -> FloatArray:
        """Return the factual, moved into the box where it lies outside."""
        return self.inside(self.box, self.query.factual)

    def inside(self, box: Box, u: FloatArray) -> FloatArray:
        """Return a point moved into a box: numbers to the nearest end, levels to the cheapest one, coupled costs included."""
        u = u.copy()
        for j, feature in enumerate(self.schema.features):
            part = self.schema.slice(j)
            if box.missing[j]:
                continue
            if isinstance(feature, Numeric):
                u[part] = box.lower[j] if np.isnan(u[part][0]) else np.clip(u[part], box.lower[j], box.upper[j])
            elif not u[part][box.allowed[part]].any() and box.allowed[part].any():
                levels = np.flatnonzero(box.allowed[part])
                table = self.reducer.alone.level_costs(self.schema, j, self.query.factual)
                u[part] = np.eye(feature.width)[levels[np.argmin(table[levels])]]
        return u

    def _ends(self, j: int) -> tuple[float, float]:
        return float(self.box.lower[j]), float(self.box.upper[j])

    def _proposed(self) -> Iterator[FloatArray]:
        for demand in self.statement.demands:
            if isinstance(demand, Proposes):
                yield from demand.candidates(self.statement, self.box, self.deadline)

    def near_rows(self, most: int) -> list[FloatArray]:
        """Return training rows with the wanted outcome, moved into the box, the cheapest few."""
        training, goal = self.query.training, self.reducer.goal
        good = training.sample[goal.holds_scores(training.sample_scores)]
        if not len(good) or not most or self.deadline.passed:
            return []
        rows = self._into_box(good)
        nearest = np.argsort(self.statement.objective(rows), kind="stable")[: 4 * most]
        rows = rows[nearest]
        return list(rows[goal.holds(self.query, rows)][:most])

    def _into_box(self, rows: FloatArray) -> FloatArray:
        rows = rows.copy()
        looked_at = self.reducer.form.features()
        for j, feature in enumerate(self.schema.features):
            part = self.schema.slice(j)
            if self.box.missing[j] or j not in looked_at:
                rows[:, part] = self.start[part]
            elif isinstance(feature, Numeric):
                rows[:, part] = np.clip(rows[:, part], *self._ends(j))
            else:
                outside = ~((rows[:, part] > 0.5) & self.box.allowed[part]).any(axis=1)
                rows[outside, part] = self.start[part]
        return rows

    # -- any form -----------------------------------------------------------------------------------------------
    def pulled(self, u: FloatArray) -> FloatArray:
        """Restore features one by one, dearest first, then pull the numeric rest towards the factual."""
        goal = self.reducer.goal
        u = u.copy()
        costs = self.reducer.separable.per_feature(self.query, u[None, :])[0]
        for j in np.argsort(-costs, kind="stable"):
            if self.deadline.passed:
                return u
            part = self.schema.slice(int(j))
            trial = u.copy()
            trial[part] = self.start[part]
            if bool(goal.holds(self.query, trial[None, :])[0]):
                u = trial
        numeric = [self.schema.starts[j] for j in self.schema.numeric]
        steps = np.linspace(0.0, 1.0, self.query.tuning.incumbents.pulls + 1)[:-1]
        trials = np.repeat(u[None, :], len(steps), axis=0)
        trials[:, numeric] -= steps[:, None] * (u - self.start)[numeric]
        trials = self.schema.stored(trials)
        held = np.flatnonzero(goal.holds(self.query, trials))
        return trials[held[-1]] if held.size else u

    # -- trees --------------------------------------------------------------------------------------------------
    @cached_property
    def menu(self) -> Menu:
        """Every change of one feature."""
        return self.reducer.menu(self.box)

    @cached_property
    def stays(self) -> npt.NDArray[np.bool_]:
        """Whether an entry of the menu leaves its feature as it is at the start."""
        menu = self.menu
        number = np.array([isinstance(feature, Numeric) for feature in self.schema.features])[menu.feature]
        at = np.asarray(self.schema.starts)[menu.feature] + np.where(number, 0, menu.value).astype(np.int64)
        return np.asarray(self.start[at] == np.where(number, menu.value, 1.0))

    def _single_change(self, scan: TreeScan) -> FloatArray | None:
        """Return the cheapest change of one feature that gives the wanted outcome."""
        valid = reached(_singles(scan)[self.menu.place])
        if not valid.any():
            return None
        u = self.start.copy()
        self.carry_out(u, int(np.where(valid, self.menu.cost, np.inf).argmin()))
        return u

    def costs(self, u: FloatArray) -> FloatArray:
        """Return what each feature of a point costs by itself."""
        return np.asarray(self.reducer.separable.per_feature(self.query, u[None, :])[0])

    def carry_out(self, u: FloatArray, option: int) -> None:
        """Carry out an entry of the menu."""
        j, value = int(self.menu.feature[option]), self.menu.value[option]
        part = self.schema.slice(j)
        u[part] = value if isinstance(self.schema.features[j], Numeric) else np.arange(part.stop - part.start) == value

    def shrunk(self, u: FloatArray, scan: TreeScan) -> FloatArray:
        """Move feature by feature to the cheapest value that keeps the outcome, the largest gain first."""
        menu, u = self.menu, u.copy()
        now = self.costs(u)
        while True:
            cheaper = np.flatnonzero(menu.cost < now[menu.feature] - _DUST)
            if cheaper.size:
                cheaper = cheaper[reached(_singles(scan)[menu.place[cheaper]])]
            if not cheaper.size or self.deadline.passed:
                return u
            best = int(cheaper[np.argmax(now[menu.feature[cheaper]] - menu.cost[cheaper])])
            j = int(menu.feature[best])
            self.carry_out(u, best)
            scan.move(j, int(menu.position[best]))
            now[j] = menu.cost[best]

    def _climbed(self, brackets: Brackets, most: int, first: int | None) -> FloatArray | None:
        """Return a point with at most so many changes that reaches the goal; when they are used up, they are exchanged.

        `first`: the entry of the menu to begin with.
        """
        u, scan, changed = self.start.copy(), TreeScan(brackets, self.start), list[int]()
        if first is not None and most > 0:
            changed.append(int(self.menu.feature[first]))
            self.carry_out(u, first)
            scan.move(changed[0], int(self.menu.position[first]))
        level = float(scan.here().min())
        if changed and level >= -_TIE:
            return u
        while not self.deadline.passed:
            best = self._lifts(scan, changed, most)
            dropped = -1
            if len(changed) >= most and (best is None or best[0] <= level + _DUST):
                best = None
                for j in changed:  # one of them home again, and another one in its place
                    self._place(scan, self.start, j)
                    other = self._lifts(scan, [i for i in changed if i != j], most)
                    self._place(scan, u, j)
                    if other is not None and other[0] > (level + _DUST if best is None else best[0]):
                        best, dropped = other, j
            if best is None or best[0] <= level + _DUST:
                return None
            if dropped >= 0:
                self._place(scan, self.start, dropped)
                part = self.schema.slice(dropped)
                u[part] = self.start[part]
                changed.remove(dropped)
            level, option = best
            j = int(self.menu.feature[option])
            self.carry_out(u, option)
            scan.move(j, int(self.menu.position[option]))
            if j not in changed:
                changed.append(j)
            if level >= -_TIE:
                return u
        return None

    def _lifts(self, scan: TreeScan, changed: list[int], most: int) -> tuple[float, int] | None:
        """Return the entry of the menu after which the least gap is largest (the cheapest that reaches the goal), and it."""
        gaps = _singles(scan)[self.menu.place].min(axis=1)
        if len(changed) >= most:
            gaps = np.where(np.isin(self.menu.feature, changed), gaps, -np.inf)
        if not gaps.size:
            return None
        reached = gaps >= -_TIE
        best = int(np.where(reached, self.menu.cost, np.inf).argmin()) if reached.any() else int(gaps.argmax())
        return float(gaps[best]), best

    def _place(self, scan: TreeScan, u: FloatArray, j: int) -> None:
        """Give a feature of a scan the value that it has in a point."""
        scan.move(j, scan.leaves.position(j, u[self.schema.slice(j)]))


def from_rows(statement: Statement, limits: Limits, deadline: Deadline) -> Found:
    """Return an incumbent that has been tested, from training rows of the wanted outcome; no bound is known."""
    progress = Progress(limits=limits, deadline=deadline)
    Incumbents.of(statement, statement.box(), progress).rows()
    progress.leave(-np.inf)
    return progress.found()


def reached(gaps: FloatArray) -> npt.NDArray[np.bool_]:
    """Return whether all gaps of a goal are met, by their last axis; within rounding of 0 they are."""
    return np.asarray((gaps >= -_TIE).all(axis=-1))


def _singles(scan: TreeScan) -> FloatArray:
    return np.concatenate(scan.singles())
