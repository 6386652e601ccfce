"""Conflicts of infeasible questions: an irreducible infeasible subset of demands, and the least loosening of each.

A deletion filter (Chinneck and Dravnieks 1991): leave out one demand at a time; if the rest is still impossible, it was
not needed for the contradiction. What remains is minimal: drop any one and the others can be met.

Every question of this kind is a search of its own, and all of them share one deadline. When it passes, what is known is
said: the demands not yet found needless are a clash, though perhaps not a minimal one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ifonly.errors import Infeasible, Relaxation
from ifonly.program.box import Box
from ifonly.program.mip import Affine
from ifonly.question.abilities import Loosens, Remains, Shrinks, Verifies, dropped
from ifonly.question.any_class import AnyClassGoal
from ifonly.question.demand import Demand
from ifonly.question.found import Ended, Found
from ifonly.question.goal import ClassGoal, Goal
from ifonly.question.guidance import Branch, Branches, Squeezes
from ifonly.question.outside import Outside
from ifonly.question.problem import Problem
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Search, Sought, Wraps
from ifonly.runtime.deadline import Deadline
from ifonly.search.boxes.affordable import affordable
from ifonly.search.boxes.programs import solve_problem
from ifonly.search.candidates import first_candidate
from ifonly.search.nudge import nudged
from ifonly.solvers.backend import Backend, Limits
from ifonly.tolerances import SCORE_OPERATIONS, SOLVER_ROUNDINGS

__all__ = ["explain_infeasibility"]


@dataclass(eq=False)
class ConflictFinder:
    """Finder of conflicts: decides whether demands are feasible together, by solving without an objective.

    What the model refuses on the way is kept in `refused`, for all questions to come. With `at_the_edge`, what lies on its
    very threshold is asked for as well; the model has the last word on it.
    """

    statement: Statement
    backend: Backend
    limits: Limits
    deadline: Deadline
    refused: list[Outside] = field(default_factory=list)
    at_the_edge: bool = False

    def possible(self, demands: Sequence[Demand]) -> bool | None:
        """Whether the demands can be met together; None when that could not be decided in time."""
        if self.deadline.passed:
            return None
        asked = self._asked(demands)
        # What lies on its very threshold counts if the model confirms it.
        asked = replace(asked, margin=min(asked.margin, 0.0)) if self.at_the_edge else asked
        found = self._confirmed(asked, self._search)
        return False if found.infeasible else None if found.u is None else True

    def _asked(self, demands: Sequence[Demand]) -> Statement:
        """Return the question of some demands, without what a model is known to refuse whose outcome they demand."""
        refused = [d for d in self.refused if any(_minds(other, d) for other in demands)]
        return replace(self.statement, demands=(*demands, *refused), criteria=())

    def _confirmed(self, statement: Statement, search: Search) -> Found:
        """Search until the model itself confirms the point; what it refuses is ruled out, for all questions to come."""
        query, around = self.statement.query, search
        for demand in statement.demands:
            around = demand.wrapped(around, self.backend) if isinstance(demand, Wraps) else around
        widest = max(statement.margin, self.statement.margin)
        while True:
            found = around(statement, self.limits, self._share()).found
            goal = next((d for d in statement.demands if isinstance(d, Goal)), None)
            if found.u is None:
                # A wider margin leaves points out: that there is none beyond it is no proof.
                return Found(Ended.LIMIT) if statement.margin > widest else found
            u = query.schema.stored(found.u)
            form = None
            if goal is None or bool(goal.confirmed(u[None, :])[0]):
                form = statement.refusing(u)
                if form is None:
                    return replace(found, u=u)
            stricter = statement.without(u, form)
            if stricter is None and goal is None:
                return replace(found, u=u)
            if stricter is None and goal is not None:
                noise = goal.rounding(statement.form, statement.whole)
                if statement.margin < noise * SOLVER_ROUNDINGS:
                    # Continuous scores at the very edge, which a solver may overstep: ask for a little more.
                    widening, least = self.statement.query.tuning.answering.widening, noise / SCORE_OPERATIONS
                    margin = least if statement.margin < least else max(noise, statement.margin * widening)
                    statement = replace(statement, margin=margin)
                    continue
                # A little further there may be a point that the model confirms; that there is none is not proven.
                beyond = next(nudged(statement, goal, u), None)
                return Found(Ended.LIMIT) if beyond is None else replace(found, u=beyond)
            assert stricter is not None
            self.refused.extend(d for d in stricter.demands[-1:] if isinstance(d, Outside))
            statement = stricter
            if self.deadline.passed:
                return Found(Ended.LIMIT)

    def _share(self) -> Deadline:
        """Return when one search must end: a hard one leaves time for those that come after it."""
        return self.deadline.within(self.statement.query.tuning.blame.share * self.deadline.left())

    def _search(self, statement: Statement, limits: Limits, deadline: Deadline, loose: Demand | None = None) -> Sought:
        """Look for any point, or for the one that breaks a loose demand least."""
        return Sought(self._any_point(statement, limits, deadline, loose), statement)

    def _any_point(self, statement: Statement, limits: Limits, deadline: Deadline, loose: Demand | None) -> Found:
        box = statement.box()
        if box.empty() is not None:
            return Found.nothing()
        if loose is None:
            known = first_candidate(statement, box) if self._is_seen(statement) else None
            if known is not None:
                return Found(Ended.LIMIT, known)
            for demand in statement.demands:
                branches = demand.branches(statement, box, deadline) if isinstance(demand, Branches) else None
                if branches is not None:
                    return self._any_of(statement, demand, branches, limits, deadline)
        return self._solve(statement, box, limits, deadline, loose)

    @staticmethod
    def _is_seen(statement: Statement) -> bool:
        """Whether the twins of all demands see in no time what they ask for: not a ball around the point, nor a hull."""
        return not any(isinstance(demand, Wraps | Squeezes) for demand in statement.demands)

    def _any_of(
        self, statement: Statement, demand: Demand, branches: Iterable[Branch], limits: Limits, deadline: Deadline
    ) -> Found:
        """Look for any point in one alternative of a demand after the other."""
        for branch in branches:
            demands = tuple(branch.demand if d is demand else d for d in statement.demands)
            found = self._solve(replace(statement, demands=demands), branch.box, limits, deadline)
            if not found.infeasible:
                return found
        return Found.nothing()

    def _solve(
        self, statement: Statement, box: Box, limits: Limits, deadline: Deadline, loose: Demand | None = None
    ) -> Found:
        if box.empty() is not None:
            return Found.nothing()
        if not affordable(statement, box, deadline):
            return Found(Ended.TOO_LARGE)
        problem = _problem_with_raw(statement, box, loose) if isinstance(loose, Loosens) else Problem(statement, box)
        for demand in statement.demands:
            demand.apply(problem)
        excess = loose.excess(problem) if isinstance(loose, Loosens) else None
        problem.mip.minimise(Affine() if excess is None else excess)
        return solve_problem(problem, self.backend, limits.within(deadline.left()))

    def conflict(self, demands: Sequence[Demand]) -> tuple[list[Demand], bool]:
        """Return a subset that is impossible together, and whether it is proven minimal.

        A range over a missing value both asks for a value and says which: it is left out in these two steps, because
        without it the value stays missing, which may be impossible for another reason.
        """
        kept: dict[int, Demand] = dict(enumerate(demands))
        minimal = True
        for i, demand in enumerate(demands):
            stays = demand.loosest(self.statement.query) if isinstance(demand, Remains) else None
            for weaker in (None,) if stays is None else (stays, None):
                rest = {k: d for k, d in kept.items() if k != i} | ({} if weaker is None else {i: weaker})
                possible = self.possible(list(rest.values()))
                minimal &= possible is not None
                if possible is not False:
                    break
                kept = rest
        return [demands[i] for i in sorted(kept)], minimal

    def loosen(self, demand: Demand, others: Sequence[Demand]) -> Relaxation | None:
        """Return the least loosening of one demand that makes all possible, or None if none does."""
        stays = demand.loosest(self.statement.query) if isinstance(demand, Remains) else None
        statement = self._asked(others if stays is None else [*others, stays])
        if isinstance(demand, Shrinks) and demand.shrunk(1.0) is not None and self.possible(others):
            return self._smaller(demand, others)
        if self.deadline.passed:
            return None
        search = partial(self._search, loose=demand)
        found = self._confirmed(statement, search)
        if found.u is None:
            return None
        return demand.loosened(statement.query, found.u) if isinstance(demand, Loosens) else dropped(demand)

    def _smaller(self, demand: Shrinks, others: Sequence[Demand]) -> Relaxation:
        """Return the largest part of its set for which the demand is proven possible, to a few binary digits."""
        least, most = 0.0, 1.0
        for _ in range(self.statement.query.tuning.blame.halvings):
            if self.deadline.passed:
                break
            share = 0.5 * (least + most)
            weaker = demand.shrunk(share)
            least, most = (share, most) if weaker is None or self.possible([*others, weaker]) else (least, share)
        return dropped(demand) if least == 0.0 else demand.shrinking(least)


def _minds(demand: Demand, refused: Outside) -> bool:
    """Whether a demand asks for the outcome of the model that refuses a box."""
    if refused.by is None:
        return isinstance(demand, Goal)
    return isinstance(demand, Verifies) and demand.asks_for(refused.by)


def _problem_with_raw(statement: Statement, box: Box, demand: Loosens) -> Problem:
    problem = Problem(statement, box, extra_raw=demand.excess_raw(statement.query))
    problem.touch(demand.excess_features(statement.query))
    return problem


def explain_infeasibility(
    statement: Statement, backend: Backend, limits: Limits, deadline: Deadline, *, margin: float = 0.0
) -> Infeasible:
    """Return the error that names the clash and the ways out of it, as far as they are known at the deadline.

    A margin is named where the proof is only about points that clear their threshold by it.
    """
    demands = [d for d in statement.demands if not isinstance(d, Outside)]
    refused = [d for d in statement.demands if isinstance(d, Outside)]
    finder = ConflictFinder(statement, backend, limits, deadline, refused, at_the_edge=not margin)
    conflict, minimal = finder.conflict(demands)
    relaxations: list[Relaxation] = []
    for demand in conflict:
        if isinstance(demand, ClassGoal | AnyClassGoal):
            continue  # wanting something else is no way out
        others = [d for d in demands if d is not demand]
        way = finder.loosen(demand, others)
        # Dropping the wish is no way out either.
        if way is None and not isinstance(demand, Goal) and not deadline.passed:
            way = _together(finder, demand, others)
        if way is not None:
            relaxations.append(way)
    words = [d.text for d in conflict]
    text = _message(words, relaxations, minimal, margin)
    return Infeasible(text, words, relaxations, minimal=minimal, margin=margin)


def _together(finder: ConflictFinder, demand: Demand, others: Sequence[Demand]) -> Relaxation | None:
    """Return a loosening of several demands, where one is not enough: together with those of the next conflict."""
    dropped = [demand]
    rest = list(others)
    while not (possible := finder.possible(rest)):
        clash = [] if possible is None else [d for d in finder.conflict(rest)[0] if not isinstance(d, Goal)]
        if not clash:
            return None
        dropped.append(clash[-1])
        rest = [d for d in rest if d is not clash[-1]]
    words = "; ".join(f"drop: {d.text}" for d in dropped)
    return Relaxation(demand.text, words, float(len(dropped)))


def _message(conflict: Sequence[str], relaxations: Sequence[Relaxation], minimal: bool, margin: float) -> str:
    clear = f" that clears its threshold by {margin:.1g}" if margin else ""
    lines = [
        f"No counterfactual exists{clear}: these demands cannot be met together (proven).",
        *(["What lies nearer to it was refused by the model itself, as far as it was tried."] if margin else []),
        *(f"  - {c}" for c in conflict),
    ]
    if not minimal:
        lines.append("(a clash, not shown to be minimal: raise time_limit to learn which of these are needed for it)")
    if relaxations:
        lines += ["Any one of these would make it possible:", *(f"  - {r}" for r in relaxations)]
    return "\n".join(lines)
