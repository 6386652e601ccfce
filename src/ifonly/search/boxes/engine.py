"""The boxes engine: branch and bound over boxes; cheap brackets prune, the solver closes what is small enough."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.errors import SolverFailed
from ifonly.models.abilities import has_units
from ifonly.program.box import Box
from ifonly.question.found import Ended, Found
from ifonly.question.guidance import Squeezes
from ifonly.question.problem import Problem, build
from ifonly.question.statement import Statement
from ifonly.search.boxes.affordable import affordable
from ifonly.search.boxes.neighbours import neighbours
from ifonly.search.boxes.programs import solve_problem
from ifonly.search.cells.splitting import Splitting
from ifonly.search.cells.trades import trade
from ifonly.search.engine import separable
from ifonly.search.incumbents import Incumbents
from ifonly.search.progress import Progress
from ifonly.solvers.backend import Limits
from ifonly.solvers.tangents import relaxation
from ifonly.tolerances import REFUTES

__all__ = ["Boxes"]


class _Node(Enum):
    """Verdict of a program on a node, for answers up to a budget."""

    SOLVED = auto()  # its best answer is known
    EMPTY = auto()  # it has none
    IMPROVED = auto()  # a better answer is known; the rest of the node is now so small that it is worth another program
    OPEN = auto()  # unknown, and noted as such


class _Relaxed(NamedTuple):
    """Solution of a program without its integers: a bound, and the values; not tried: no bound and no values."""

    bound: float = -np.inf
    values: FloatArray | None = None


@dataclass(frozen=True)
class Boxes:
    """Engine for every question, with a solver."""

    name: str = "boxes"

    def accepts(self, statement: Statement, box: Box) -> bool:  # noqa: ARG002 - the engine protocol
        """Any statement: all that can be said to a program can be searched."""
        return True

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Return the best point of the box and the bound that is proven for it."""
        return _Search(statement, box, progress).run()


class _Search:
    """One branch and bound over boxes.

    A box is split on a feature whose cheapest change would eat a large part of what the best known answer leaves: either
    it stays, or it changes and little is left for all others. Both parts are far smaller than the whole.
    """

    def __init__(self, statement: Statement, box: Box, progress: Progress) -> None:
        self.statement, self.box, self.progress = statement, box, progress
        self.deadline, self.tuning = progress.deadline, statement.query.tuning.boxes
        self.incumbents = Incumbents.of(statement, box, progress)
        self.reducer = self.incumbents.reducer
        self.stack: list[tuple[Box, float]] = []

    @property
    def budget(self) -> float:
        """The most that a better answer may cost."""
        return self.progress.budget

    def run(self) -> Found:
        """Explore; a solver that fails leaves the rest open, unless nothing is known yet."""
        try:
            self._explore()
        except SolverFailed:
            if self.progress.best is None:
                raise
            self.progress.leave(float(self.reducer.forced(self.box).sum()))
        if self.progress.interrupted and self.stack:  # boxes that nobody looked at
            self.progress.leave(-np.inf)
        return self._tested(self.progress.found())

    def _tested(self, found: Found) -> Found:
        """Put a proof to the test: a neighbour of the optimum that meets all demands for less than the bound refutes it.

        What a solver has proven of this box then counts for nothing: the better point is kept, and the rest is left open.
        """
        if not found.optimal or found.u is None:
            return found
        asked, near = self.statement, neighbours(self.statement, found.u)
        if not len(near):
            return found
        costs = asked.objective(near)
        worth = (costs < (1.0 - REFUTES) * found.bound) & self.reducer.goal.clears(
            asked.form(near), asked.margin, asked.tie
        )
        if not any(self.incumbents.offer(near[k]) for k in np.argsort(costs, kind="stable") if worth[k]):
            return found
        self.progress.leave(float(self.reducer.forced(self.box).sum()))
        return self.progress.found()

    def _explore(self) -> None:
        progress = self.progress
        self.incumbents.open()
        if self.reducer.size(self.box, self.budget) > self.tuning.large:
            trade(self.incumbents)
        progress.tell_best()
        self.stack = [(self.box, -np.inf)]
        while self.stack and not progress.interrupted:
            box, bound = self.stack.pop()
            if self.deadline.passed:
                progress.leave(max(bound, float(self.reducer.forced(box).sum())))
                continue
            box = self.reducer.within(box, self.budget)
            if box.empty() is not None:
                continue
            size = self.reducer.open_leaves(box)
            if size is None:
                continue
            bound = max(bound, float(self.reducer.forced(box).sum()))
            known = (d for d in self.statement.demands if isinstance(d, Squeezes))
            least = max((d.lower_bound(self.statement, box, self.deadline) for d in known), default=-np.inf)
            if np.isfinite(least) and np.isfinite(self.budget):
                self._deepen(box, max(bound, least))
            elif size <= self.statement.query.tuning.incumbents.small or not np.isfinite(self.budget):
                self._solve(box, bound)
            else:
                self.stack += self._parts(box, bound)

    def _parts(self, box: Box, bound: float) -> list[tuple[Box, float]]:
        """Split a large box, or look at it without integers first: nothing may be left of it, or less; else solve it."""
        split = self._split(box)
        if split is not None:
            return [(part, bound) for part in split]
        if not affordable(self.statement, box, self.deadline):
            self._without_program(box, bound)
            return []
        problem = self._build(box, self.budget)
        relaxed = self._relaxed(problem, self.budget)
        if relaxed.bound > self.budget:
            return []
        bound = max(bound, relaxed.bound)
        if relaxed.values is not None and self._rounded(problem, relaxed.values):
            return [(box, bound)]
        return [(box, bound)] if self._finish(problem, self.budget, bound) is _Node.IMPROVED else []

    # -- branching ----------------------------------------------------------------------------------------------
    def _split(self, box: Box) -> list[Box] | None:
        """Return the box in two or three parts, or None when the solver should take it as it is."""
        slack = self.budget - float(self.reducer.forced(box).sum())
        price, j = max(self._cheapest_changes(box), default=(0.0, -1))
        return self.reducer.split(box, j) if price > self.tuning.dear * slack else None

    def _cheapest_changes(self, box: Box) -> list[tuple[float, int]]:
        changes = [(self.reducer.cheapest_change(box, j), j) for j in self.reducer.form.features()]
        return [(price, j) for price, j in changes if np.isfinite(price)]

    # -- solving ------------------------------------------------------------------------------------------------
    def _solve(self, box: Box, bound: float) -> None:
        if np.isfinite(self.budget) and has_units(self.statement.form):
            self._climb(box, bound)
            return
        if self._solve_within(box, self.budget, bound) is _Node.IMPROVED:
            self.stack.append((box, bound))

    def _climb(self, box: Box, bound: float) -> None:
        """Solve a network for small budgets first: fewer of its units are undecided there, and none is dearer than needed.

        A budget without an answer is a bound, and is followed by one that is larger by a small factor.
        """
        budget = self._first_budget(box, bound)
        while not self.progress.interrupted and budget < self.budget:
            said = self._solve_within(self.reducer.within(box, budget), budget, bound)
            if said is _Node.EMPTY:
                bound, budget = max(bound, budget), self.tuning.step * budget
            elif said is _Node.SOLVED or (said is _Node.OPEN and self.deadline.passed):
                return
            elif said is _Node.OPEN:
                break
        if self.progress.interrupted:
            self.progress.leave(bound)
        elif self._solve_within(self.reducer.within(box, self.budget), self.budget, bound) is _Node.IMPROVED:
            self.stack.append((box, bound))

    def _first_budget(self, box: Box, bound: float) -> float:
        """Return the largest of some budgets at which few units are undecided: half of the whole where it is easy."""
        budget = self.tuning.shallow * self.budget
        least = max(bound, self.tuning.least_share * self.budget)
        while np.isfinite(self.tuning.step) and budget > least and affordable(self.statement, box, self.deadline):
            part = self.reducer.within(box, budget)
            if part.empty() is not None or self._build(part, budget).arrays().integer.sum() <= self.tuning.few_units:
                break
            budget /= self.tuning.step
        return budget

    def _deepen(self, box: Box, least: float) -> None:
        """Look for cheap answers first: an answer within a small budget is the best; none proves a higher bound."""
        share = self.tuning.deep
        while not self.progress.interrupted and least < self.budget:
            budget = min(self.budget, least + share * (self.budget - least))
            part = self.reducer.within(box, budget)
            for demand in self.statement.demands:
                if isinstance(demand, Squeezes) and part.empty() is None:
                    part = demand.squeeze(self.statement, part, budget, self.deadline)
            hopeless = part.empty() is not None or self.reducer.open_leaves(part) is None
            said = _Node.EMPTY if hopeless else self._solve_within(part, budget, least)
            if said is _Node.EMPTY:
                least, share = budget, min(1.0, self.tuning.deeper * share)
            elif said is not _Node.IMPROVED:
                return

    def _solve_within(self, box: Box, budget: float, bound: float) -> _Node:
        """Solve a box, in which nothing costs less than `bound`, for answers up to a budget."""
        if box.empty() is not None:
            return _Node.EMPTY
        if not affordable(self.statement, box, self.deadline):
            return self._without_program(box, bound)
        problem = self._build(box, budget)
        relaxed = self._relaxed(problem, budget)
        if relaxed.bound > budget:
            return _Node.EMPTY
        return self._finish(problem, budget, max(bound, relaxed.bound))

    def _without_program(self, box: Box, bound: float) -> _Node:
        """Search a box whose program is too large to be built, or to be solved in the time that is left."""
        question = separable(self.statement)
        if question is not None and self.reducer.brackets is not None and not self.deadline.passed:
            search = Splitting(self.incumbents, question.most, patient=True)
            if search.run(box, self.deadline) is Ended.CLOSED:
                return _Node.EMPTY if self.progress.best is None else _Node.SOLVED
        self.progress.leave(bound, too_large=not self.deadline.passed)
        return _Node.OPEN

    def _build(self, box: Box, budget: float) -> Problem:
        bounded = self.reducer.for_budget(box, budget)
        problem = build(bounded or self.reducer.within_box(box), box)
        if bounded is not None:
            problem.mip.limit_objective(budget)
        return problem

    def _limits(self, budget: float) -> Limits:
        return replace(self.progress.limits, cutoff=budget).within(self.deadline.left())

    def _relaxed(self, problem: Problem, budget: float) -> _Relaxed:
        """Solve without integers, which takes milliseconds and often proves that the budget is too small."""
        if not np.isfinite(budget) or problem.blocks:
            return _Relaxed()
        program = problem.arrays()
        if program.squares or program.convex or not program.integer.any() or program.n_columns < self.tuning.tiny:
            return _Relaxed()
        answer = relaxation(program, self._limits(budget))
        return _Relaxed(answer.bound, answer.values)

    def _rounded(self, problem: Problem, values: FloatArray) -> bool:
        """Round a solution without integers in a few ways, shrink what reaches the goal, and say if that helped."""
        before = self.progress.value
        for shift in (0.0, self.tuning.shift, -self.tuning.shift):
            self.incumbents.shrink(problem.point(values + shift))
        return self.progress.value < before

    def _finish(self, problem: Problem, budget: float, bound: float) -> _Node:
        """Solve a program for answers up to a budget; what stays open is noted."""
        progress = self.progress
        found = solve_problem(problem, progress.backend, self._limits(budget), progress.on_event)
        if found.u is not None:
            self.incumbents.accept(found.u)
        for u in found.pool:  # points met on the way keep their rows to a solver's tolerance only
            self.incumbents.offer(u)
        progress.pool += found.pool
        progress.interrupted |= found.interrupted
        progress.solver = found.solver
        if found.optimal and found.bound <= progress.value:
            progress.close(found.bound)
        if found.ended is Ended.CLOSED:
            # a linear program ends with its optimum even where that is beyond the budget
            return _Node.EMPTY if found.u is None or found.bound > budget else _Node.SOLVED
        if self.budget < budget and not progress.interrupted and not self.deadline.passed:
            return _Node.IMPROVED
        progress.leave(max(bound, found.bound))
        return _Node.OPEN
