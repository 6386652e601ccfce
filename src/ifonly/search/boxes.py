"""From a statement to a point and a proof: build, reduce, solve. The answer is not verified yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.deadline import Deadline
from ifonly.errors import SolverFailed
from ifonly.events import Built, Incumbent, OnEvent
from ifonly.models.forms.network import Network
from ifonly.program.box import Box
from ifonly.question.demand import Branch, Demand
from ifonly.question.found import Found
from ifonly.question.problem import Problem, build
from ifonly.question.statement import Statement
from ifonly.search.affordable import affordable
from ifonly.search.cells import Splitting
from ifonly.search.direct import Settled, feature_by_feature, settle
from ifonly.search.incumbents import Incumbents
from ifonly.search.reduce import Reducer
from ifonly.solvers.backend import Backend, Capability, Limits, Solution, Status
from ifonly.solvers.branch_and_price import with_blocks
from ifonly.solvers.tangents import relaxation, solve
from ifonly.tolerances import ROUNDING as _BRANCH_DUST
from ifonly.tolerances import ROUNDING as _TIE
from ifonly.tolerances import closing_gap

__all__ = ["find", "run"]


_NO_SOLVER = "no solver needed"


NEVER = Deadline.never()


_SMALL = 400  # open leaves that the solver closes in a few milliseconds


_TINY = 80  # columns of a program that the solver closes as fast as it would without integers


_LARGE = 800  # open leaves that make a better incumbent worth its time


_SHALLOW = 0.5  # share of the budget at which a network is tried first: its units are decided more often there


_DEEP = 0.2  # share of what is open between bound and answer at which a hull is tried first


_DEEPER = 1.5  # by which that share grows when nothing is found


_SHIFTS = (0.0, 0.3, -0.3)  # of what is rounded at one half


_DEAR = 0.34  # share of what is left that makes a feature worth a split


def find(
    statement: Statement,
    backend: Backend,
    limits: Limits,
    on_event: OnEvent | None = None,
    deadline: Deadline = NEVER,
) -> Found:
    """Search for the cheapest point that meets all demands, within the limits and before the deadline."""
    box = statement.box()
    if box.empty() is not None:
        return Found(Status.INFEASIBLE, bound=np.inf)
    deadline = deadline.within(limits.seconds)
    for demand in statement.demands:
        branches = demand.branches(statement, box, deadline)
        if branches is not None:
            return _over_branches(statement, demand, branches, backend, limits, deadline, on_event)
    return _find_in(statement, box, backend, limits, deadline, on_event)


def _over_branches(
    statement: Statement,
    demand: Demand,
    branches: Iterable[Branch],
    backend: Backend,
    limits: Limits,
    deadline: Deadline,
    on_event: OnEvent | None,
) -> Found:
    """Solve alternatives in the order of their bounds until the next bound passes the best answer."""
    best = Found(Status.INFEASIBLE, bound=np.inf)
    value, open_bound = limits.cutoff, np.inf
    for branch in branches:
        if branch.bound > value - _BRANCH_DUST:
            break
        if deadline.passed:
            open_bound = min(open_bound, branch.bound)
            break
        others = tuple(branch.demand if d is demand else d for d in statement.demands)
        part = replace(statement, demands=others)
        try:
            found = _find_in(part, branch.box, backend, replace(limits, cutoff=value), deadline, on_event)
        except SolverFailed:
            if best.u is None:
                raise
            open_bound = min(open_bound, branch.bound)  # what was found before is not lost
            continue
        # The bounds of alternatives are linear programs, even where all that is left of one needs no solver.
        found = replace(found, solver=backend.label if found.solver == _NO_SOLVER else found.solver)
        if found.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            open_bound = min(open_bound, max(found.bound, branch.bound))
        if found.u is not None:
            cost = float(part.objective(found.u[None, :])[0])
            if best.u is None or cost < value:
                best, value = replace(found, bound=min(found.bound, cost)), min(cost, value)
        elif best.u is None and found.status is not Status.INFEASIBLE:
            best = found
        if found.interrupted:
            return replace(best, interrupted=True, bound=min(best.bound, open_bound, branch.bound))
    if open_bound < np.inf:
        status = Status.FEASIBLE if best.u is not None else Status.OUT_OF_TIME
        return replace(best, status=status, bound=min(best.bound, open_bound))
    return best


def _find_in(
    statement: Statement, box: Box, backend: Backend, limits: Limits, deadline: Deadline, on_event: OnEvent | None
) -> Found:
    """Search one box: incumbents, then cost boxes small enough to solve."""
    if box.empty() is not None:
        return Found(Status.INFEASIBLE, bound=np.inf)
    if Capability.YIELDS in backend.capabilities:
        settled = settle(statement, box, limits, deadline, on_event)
        if settled is not None:
            return _settled(statement, settled, on_event)
    return _Search(statement, box, backend, limits, deadline, on_event).run()


def _settled(statement: Statement, settled: Settled, on_event: OnEvent | None) -> Found:
    """Return what was found without a solver."""
    if settled.u is None:
        return Found(Status.INFEASIBLE, bound=np.inf)
    if on_event is not None:
        on_event(Incumbent(float(statement.objective(settled.u[None, :])[0]), settled.bound))
    status = Status.OPTIMAL if settled.proven else Status.FEASIBLE
    return Found(status, settled.u, settled.bound, (*settled.met, settled.u), solver=_NO_SOLVER)


class _Search:
    """Branch and bound over boxes: cheap brackets prune, the solver closes what is small enough.

    A box is split on a feature whose cheapest change would eat a large part of what the best known answer leaves: either
    it stays, or it changes and little is left for all others. Both parts are far smaller than the whole.
    """

    def __init__(
        self,
        statement: Statement,
        box: Box,
        backend: Backend,
        limits: Limits,
        deadline: Deadline,
        on_event: OnEvent | None,
    ) -> None:
        self.statement, self.box, self.backend = statement, box, backend
        self.limits, self.deadline, self.on_event = limits, deadline, on_event
        self.reducer = Reducer(statement)
        self.incumbents = Incumbents(self.reducer, box, deadline)
        self.stack: list[tuple[Box, float]] = []
        self.open_bound = np.inf
        self.closed_bound = np.inf
        self.pool: list[FloatArray] = []
        self.interrupted = False
        self.solver = backend.label

    @property
    def value(self) -> float:
        """What the best known answer costs (or the cut-off that was given)."""
        known = self.incumbents.best
        return self.limits.cutoff if known is None else min(known.cost, self.limits.cutoff)

    @property
    def budget(self) -> float:
        """What a better answer may cost: less than the best known by half the gap that was asked for."""
        if not np.isfinite(self.value):
            return np.inf
        return self.value - closing_gap(self.value, self.limits.gap)

    def run(self) -> Found:
        """Return the best point of the box and the bound that is proven for it."""
        try:
            self._explore()
        except KeyboardInterrupt:  # outside of the solver: what is known so far still counts
            self.interrupted, self.open_bound = True, -np.inf  # nobody knows what the box at hand would have cost
        except SolverFailed:
            if self.incumbents.best is None:
                raise
            self.open_bound = min(self.open_bound, float(self.reducer.forced(self.box).sum()))
        return self._found()

    def _explore(self) -> None:
        self.incumbents.quick()
        if self.reducer.brackets is None or not np.isfinite(self.budget) or self._size(self.box) > _SMALL:
            self.incumbents.rows()
        if self._closed_by_splitting():
            self.solver = _NO_SOLVER
            return
        if self._size(self.box) > _LARGE:
            self.incumbents.thorough()
        if self.incumbents.best is not None:
            self._tell(self.incumbents.best.cost)
        self.stack = [(self.box, -np.inf)]
        while self.stack and not self.interrupted:
            box, bound = self.stack.pop()
            if self.deadline.passed:
                self.open_bound = min(self.open_bound, max(bound, float(self.reducer.forced(box).sum())))
                continue
            box = self.reducer.within(box, self.budget)
            if box.empty() is not None:
                continue
            size = self._open(box)
            if size is None:
                continue
            bound = max(bound, float(self.reducer.forced(box).sum()))
            least = max(demand.lower_bound(self.statement, box, self.deadline) for demand in self.statement.demands)
            if np.isfinite(least) and np.isfinite(self.budget):
                self._deepen(box, max(bound, least))
            elif size <= _SMALL or not np.isfinite(self.budget):
                self._solve(box, bound)
            else:
                self.stack += self._parts(box, bound)

    def _closed_by_splitting(self) -> bool:
        """Try without a solver, where features can be looked at one by one; say whether that closed the question."""
        if Capability.YIELDS not in self.backend.capabilities or self.reducer.brackets is None or self.deadline.passed:
            return False
        goal, most = feature_by_feature(self.statement)
        # A value in place of a missing one has no distance from anything, so cells have no order of cost.
        filled = np.isnan(self.statement.query.factual).any() and not self._misses_all()
        if goal is None or filled:
            return False
        if self.on_event is not None:
            self.on_event(Built(len(self.reducer.brackets.values), len(self.reducer.form.features())))
        closed = Splitting(self.incumbents, lambda: self.budget, most).run(self.box, self.deadline)
        if self.incumbents.best is not None:
            self._tell(self.incumbents.best.cost)
        return closed

    def _misses_all(self) -> bool:
        """Whether every number that the factual lacks stays missing."""
        query = self.statement.query
        return all(self.box.missing[j] for j in query.schema.numeric if np.isnan(query.factual[query.schema.starts[j]]))

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
        return [(box, bound)] if self._finish(problem, self.budget, bound) is Status.FEASIBLE else []

    def _found(self) -> Found:
        known = self.incumbents.best
        unfinished = self.open_bound < np.inf or self.interrupted
        if known is None or known.cost > self.limits.cutoff:
            if not unfinished:
                return Found(Status.INFEASIBLE, bound=np.inf, solver=self.solver)
            status = Status.INTERRUPTED if self.interrupted else Status.OUT_OF_TIME
            return Found(status, bound=self.open_bound, interrupted=self.interrupted)
        proven = min(self.open_bound, self.closed_bound, self.budget)
        nothing = self.interrupted and (bool(self.stack) or self.open_bound == np.inf)  # unseen boxes are left
        bound = -np.inf if nothing else min(proven, known.cost)
        status = Status.FEASIBLE if unfinished else Status.OPTIMAL
        return Found(status, known.u, bound, (*self.pool, known.u), self.interrupted, self.solver)

    def _tell(self, cost: float) -> None:
        if self.on_event is not None:
            self.on_event(Incumbent(cost, -np.inf))

    # -- brackets -----------------------------------------------------------------------------------------------
    def _open(self, box: Box) -> int | None:
        """Return how many leaves are open in a box; None when the trees, each for itself, cannot reach the goal in it."""
        brackets = self.reducer.brackets
        if brackets is None:
            return 0
        alive = brackets.alive(box)
        return brackets.open_leaves(alive) if bool((brackets.most(alive) >= -_TIE).all()) else None

    def _size(self, box: Box) -> int:
        """Return how many leaves are open in the part of a box that the budget leaves."""
        if self.reducer.brackets is None:
            return 0
        box = self.reducer.within(box, self.budget)
        return 0 if box.empty() is not None else self._open(box) or 0

    def _split(self, box: Box) -> list[Box] | None:
        """Return the box in two or three parts, or None when the solver should take it as it is."""
        slack = self.budget - float(self.reducer.forced(box).sum())
        price, j = max(self._cheapest_changes(box), default=(0.0, -1))
        return self.reducer.split(box, j) if price > _DEAR * slack else None

    def _cheapest_changes(self, box: Box) -> list[tuple[float, int]]:
        changes = [(self.reducer.cheapest_change(box, j), j) for j in self.reducer.form.features()]
        return [(price, j) for price, j in changes if np.isfinite(price)]

    # -- solving ------------------------------------------------------------------------------------------------
    def _solve(self, box: Box, bound: float) -> None:
        if self._is_network and np.isfinite(self.budget):
            lower = self.budget * _SHALLOW
            if self._solve_within(self.reducer.within(box, lower), lower, bound) is Status.OPTIMAL:
                return
        if self._solve_within(box, self.budget, bound) is Status.FEASIBLE:
            self.stack.append((box, bound))

    def _deepen(self, box: Box, least: float) -> None:
        """Look for cheap answers first: an answer within a small budget is the best; none proves a higher bound."""
        share = _DEEP
        while not self.interrupted and least < self.budget:
            budget = min(self.budget, least + share * (self.budget - least))
            part = self.reducer.within(box, budget)
            for demand in self.statement.demands:
                part = part if part.empty() is not None else demand.squeeze(self.statement, part, budget, self.deadline)
            hopeless = part.empty() is not None or self._open(part) is None
            ended = Status.INFEASIBLE if hopeless else self._solve_within(part, budget, least)
            if ended is Status.INFEASIBLE:
                least, share = budget, min(1.0, _DEEPER * share)
            elif ended is not Status.FEASIBLE:
                return

    def _solve_within(self, box: Box, budget: float, bound: float) -> Status:
        """Solve a box, in which nothing costs less than `bound`, for answers up to a budget (see `_finish`)."""
        if box.empty() is not None:
            return Status.INFEASIBLE
        if not affordable(self.statement, box, self.deadline):
            return self._without_program(box, bound)
        problem = self._build(box, budget)
        relaxed = self._relaxed(problem, budget)
        if relaxed.bound > budget:
            return Status.INFEASIBLE
        return self._finish(problem, budget, max(bound, relaxed.bound))

    def _without_program(self, box: Box, bound: float) -> Status:
        """Search a box whose program is too large to be built, or to be solved in the time that is left."""
        goal, most = feature_by_feature(self.statement)
        if goal is not None and self.reducer.brackets is not None and not self.deadline.passed:
            search = Splitting(self.incumbents, lambda: self.budget, most, patient=True)
            if search.run(box, self.deadline):
                return Status.INFEASIBLE if self.incumbents.best is None else Status.OPTIMAL
        self.open_bound = min(self.open_bound, bound)
        return Status.OUT_OF_TIME

    def _build(self, box: Box, budget: float) -> Problem:
        bounded = self.reducer.for_budget(box, budget)
        problem = build(bounded or self.reducer.within_box(box), box)
        if bounded is not None:
            problem.mip.limit_objective(budget)
        return problem

    def _relaxed(self, problem: Problem, budget: float) -> Solution:
        """Solve without integers, which takes milliseconds and often proves that the budget is too small."""
        if not np.isfinite(budget) or problem.blocks:
            return Solution(Status.OUT_OF_TIME)
        program = problem.arrays()
        if program.squares or program.convex or not program.integer.any() or program.n_columns < _TINY:
            return Solution(Status.OUT_OF_TIME)
        limits = replace(self.limits, cutoff=budget).within(self.deadline.left())
        return relaxation(program, limits)

    def _rounded(self, problem: Problem, values: FloatArray) -> bool:
        """Round a solution without integers in a few ways, shrink what reaches the goal, and say if that helped."""
        before = self.value
        for shift in _SHIFTS:
            self.incumbents.shrink(problem.point(values + shift))
        return self.value < before

    def _finish(self, problem: Problem, budget: float, bound: float) -> Status:
        """Solve a program for answers up to a budget; what stays open is noted.

        Optimal: the best of the program is known. Feasible: a better answer is known, and the rest of the box is now so
        much smaller that it is worth another program.
        """
        limits = replace(self.limits, cutoff=budget).within(self.deadline.left())
        found = run(problem, self.backend, limits, self.on_event)
        for u in (*found.pool, *(() if found.u is None else (found.u,))):
            self.incumbents.accept(u)
        self.pool += found.pool
        self.interrupted |= found.interrupted
        self.solver = found.solver
        if found.status is Status.OPTIMAL and found.bound <= self.value:
            self.closed_bound = min(self.closed_bound, found.bound)
        if found.status in (Status.OPTIMAL, Status.INFEASIBLE):
            # a linear program ends with its optimum even where that is beyond the budget
            return Status.INFEASIBLE if found.u is None or found.bound > budget else found.status
        if self.budget < budget and not self.interrupted and not self.deadline.passed:
            return Status.FEASIBLE
        self.open_bound = min(self.open_bound, max(bound, found.bound))
        return Status.OUT_OF_TIME

    @property
    def _is_network(self) -> bool:
        return isinstance(self.statement.form, Network)


def run(problem: Problem, backend: Backend, limits: Limits, on_event: OnEvent | None = None) -> Found:
    """Solve a built problem and read the point off the solution."""
    program, backend = with_blocks(problem.mip.arrays(), problem.blocks, backend)
    if on_event is not None:
        on_event(Built(program.n_columns, program.n_rows))

    def on_incumbent(objective: float, bound: float, values: FloatArray) -> None:
        del values
        if on_event is not None:
            on_event(Incumbent(objective, bound))

    answer = solve(program, backend, limits, on_incumbent=on_incumbent)
    if answer.status is Status.FAILED:
        raise SolverFailed(
            f"{backend.label} stopped without an answer and without a proof on a program of {program.n_columns} columns "
            f"and {program.n_rows} rows. Try another solver=, or write the program with explainer.problem(row) and report it."
        )
    if answer.status is Status.OPTIMAL and answer.objective - answer.bound > limits.gap * abs(answer.objective):
        # Beside what the box allows, the answer is too cheap for the solver to tell its digits: a smaller box will.
        answer = replace(answer, status=Status.FEASIBLE)
    u = None if answer.values is None else problem.point(answer.values)
    pool = tuple(problem.point(values) for _, values in reversed(answer.pool))
    return Found(answer.status, u, answer.bound, pool, answer.interrupted, answer.solver or backend.label)
