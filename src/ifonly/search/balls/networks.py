"""Branch and bound over centres of balls, for networks that must keep their outcome all over a ball: no solver needed.

A goal that holds all over the ball around a centre holds at each point of it. In a node, a box of centres, one shift of the
ball is chosen, and the rows of the goal are bounded from above by linear functions of the centre where this shift leads
(`ifonly.search.balls.moved_nodes`); what follows is the search of bare networks (`ifonly.search.inputs.networks`). The shift
is the worst one that is found downhill from the cheapest point of the parent, so in small nodes it is the one that decides.

Points of good nodes, put right by the linear pieces around their worst shifts, are attacked by the exact adversary
(`ifonly.criteria.robustness.worst_point`). What withstands is an incumbent; the shift that breaks another one is kept, and
tried at all further points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.criteria.robustness.worst_point import worst_point
from ifonly.events import Built
from ifonly.models.abilities import Layered
from ifonly.models.forms.backward import EnclosedRows, Planes
from ifonly.models.forms.propagate import Block
from ifonly.models.forms.signs import Room, Signs, knows
from ifonly.program.box import Box
from ifonly.question.abilities import Counts
from ifonly.question.found import Ended, Found
from ifonly.question.goal import Goal
from ifonly.question.statement import Statement
from ifonly.question.wrapping import Enclosed
from ifonly.runtime.kernels import Said
from ifonly.search.balls.cheapest_points import Row, cheapest_point
from ifonly.search.balls.moved_nodes import MovedNodes, Surrounding
from ifonly.search.engine import NO_SOLVER, Separable, over_balls
from ifonly.search.incumbents import Incumbents
from ifonly.search.inputs.best_first import BestFirst
from ifonly.search.inputs.branching import Open
from ifonly.search.inputs.networks import Search
from ifonly.search.inputs.nodes import Nodes, Spent, as_inputs
from ifonly.search.inputs.splits import Splits
from ifonly.search.progress import Progress
from ifonly.tolerances import BEYOND_ROUNDING, DUST

__all__ = ["NetworkBalls"]


@dataclass(frozen=True)
class NetworkBalls:
    """Engine for networks of rectifiers that must keep their outcome all over a ball."""

    name: str = "network balls"

    def accepts(self, statement: Statement, box: Box) -> bool:
        """Whether all that reaches beyond single features is a goal of networks, demanded all over balls.

        Without the kernel, programs of networks with few units are solved sooner, and those of balls in many numbers, which
        boxes divide slowly.
        """
        balls, tuning = _balls_of(statement, box), statement.query.tuning.centres
        if not balls or knows(_blocks(ball) for ball in balls):
            return bool(balls)
        units = max(sum(len(block.constant) for block in _blocks(ball)) for ball in balls)
        numbers = max(int((ball.reach > 0.0).sum()) for ball in balls)
        return units >= tuning.least_units and numbers <= tuning.most_numbers

    def search(self, statement: Statement, box: Box, progress: Progress) -> Found:
        """Search until the box is closed, or the deadline ends it, or closing it would take too long."""
        search = _Search(statement, box, _balls_of(statement, box), Incumbents.of(statement, box, progress))
        if search.is_too_large() or not search.is_ordinary() or progress.deadline.passed:
            return Found(Ended.GAVE_UP)
        progress.tell(Built(search.layers.n_units, search.n_features))
        search.try_rows()
        ended = search.run_signs() if knows(a.layers.blocks for a in search.around) else search.run()
        bound = min(search.bound, search.left_open)
        progress.tell_best(bound)
        if ended is Ended.CLOSED and search.left_open > progress.budget:
            progress.solver = NO_SOLVER
            return progress.found()
        if progress.best is not None and search.deadline.passed:
            progress.leave(bound)
            return progress.found()
        if np.isfinite(bound):  # that nothing is robust at all is left to the solver to say
            progress.raise_floor(bound)
        if progress.best is not None:  # which is robust: the cutting-set method attacks it, and keeps it
            progress.pool.append(progress.best.u)
        return Found(Ended.GAVE_UP)


def _balls_of(statement: Statement, box: Box) -> list[Enclosed]:
    """Return what is demanded of which balls of networks, whose values end where the search does; else none."""
    balls = over_balls(statement, box)
    return balls if all(_is_known(ball, box) for ball in balls) else []


def _blocks(ball: Enclosed) -> tuple[Block, ...]:
    return ball.form.blocks if isinstance(ball.form, Layered) else ()


def _is_known(ball: Enclosed, box: Box) -> bool:
    moved = ball.reach > 0.0
    inside = (box.lower >= ball.limits.lower) & (box.upper <= ball.limits.upper)
    return isinstance(ball.form, Layered) and bool(inside[moved].all()) and not box.missing[moved].any()


@dataclass(frozen=True, eq=False)
class _Centre(Open):
    """An open node of centres, its bound, and the shifts of each ball under which its halves are bounded."""

    bound: float = 0.0
    shifts: tuple[FloatArray, ...] = ()


@dataclass(frozen=True, eq=False)
class _Bounds:
    """Bounds of the costs of nodes, the rows ``slopes @ x + constant >= 0`` that they follow from, and their points."""

    cost: FloatArray
    spent: Spent
    slopes: FloatArray
    constant: FloatArray
    looseness: FloatArray

    def pick(self, which: IntArray) -> _Bounds:
        """Return those of some of the nodes."""
        return _Bounds(
            self.cost[which], self.spent.pick(which), self.slopes[which], self.constant[which], self.looseness[which]
        )

    def better(self, other: _Bounds) -> _Bounds:
        """Return the higher one of two bounds, node by node."""
        return self.put(np.flatnonzero(other.cost > self.cost), other.pick(np.flatnonzero(other.cost > self.cost)))

    def put(self, which: IntArray, others: _Bounds) -> _Bounds:
        """Return these with others in the place of some."""
        spent = Spent(*(_put(a, which, b) for a, b in zip(self.spent, others.spent, strict=True)))
        own = ((getattr(self, name), getattr(others, name)) for name in ("cost", "slopes", "constant", "looseness"))
        cost, slopes, constant, looseness = (_put(a, which, b) for a, b in own)
        return _Bounds(cost, spent, slopes, constant, looseness)


def _put(values: Any, which: IntArray, others: Any) -> Any:
    out = values.copy()
    out[which] = others
    return out


def _mixed(weight: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    w = weight.reshape(-1, *[1] * (first.ndim - 1))
    return np.asarray((1.0 - w) * first + w * second)


class _Search(Search):
    """One branch and bound over centres.

    Attributes
    ----------
    left_open
        The least bound of single points that could not be decided.
    """

    def __init__(self, statement: Statement, box: Box, balls: list[Enclosed], incumbents: Incumbents) -> None:
        schema, query = statement.query.schema, statement.query
        most = min((d.at_most() for d in statement.demands if isinstance(d, Counts)), default=len(schema))
        assert isinstance(query.goal, Goal)
        self.tuning, self.own, self.of_balls = query.tuning.networks, query.tuning.centres, query.tuning.balls
        self.signs = query.tuning.signs
        question = Separable(query.goal, most)
        BestFirst.__init__(self, statement, question, box, incumbents, range(len(schema)), self.own)
        self.splits = Splits(None)
        self.around = [Surrounding(ball, statement, self.places, self.of_balls.ball_prices) for ball in balls]
        self.layers = max((a.layers for a in self.around), key=lambda layers: layers.work)
        self.beyond = BEYOND_ROUNDING * max(float(a.layers.room[-1].max()) for a in self.around)
        self.left_open = np.inf
        self._before = np.array([-np.inf])
        self._shifts = [a.first_shifts(self.own.shifts) for a in self.around]
        self._learned: list[list[FloatArray]] = [[] for _ in self.around]

    # -- the search ----------------------------------------------------------------------------------------------
    def run_signs(self) -> Ended:
        """Search over centres and signs of units, compiled, looking at the deadline and Ctrl-C every few milliseconds."""
        signs = Signs(self._room(), [a.ball() for a in self.around], self.own.kernel_bytes, self.signs)
        while True:
            if self.deadline.passed:
                return Ended.LIMIT
            said = signs.run(self.progress.budget, self.own.kernel_work)
            self.bound, self.looked = signs.bound, signs.looked
            if said is Said.CLOSED:  # but for single points that were refused
                self.left_open, self.bound = min(self.left_open, signs.bound), np.inf
                return Ended.CLOSED
            if said is Said.FULL:
                return Ended.GAVE_UP
            if said is Said.OFFER:
                broken = self._attacked(*signs.offered())
                if broken is not None:
                    signs.learned(*broken)

    def _room(self) -> Room:
        free, whole = self.free, self._whole()
        numbers = (free.home, free.origin, free.rate, free.square, free.price, free.step, free.room)
        levels = (free.level_cost, free.level_home, whole.allowed[0], free.first)
        return Room(*numbers, whole.low[0], whole.high[0], *levels, free.elsewhere, free.most, np.empty(0))

    def _attacked(self, numbers: FloatArray, levels: IntArray) -> tuple[int, FloatArray] | None:
        """Offer a point that no attack breaks; else return the ball and the shift that broke it, if there is one."""
        u = self._point(numbers, levels, numbers)
        before = [len(learned) for learned in self._learned]
        if self._withstands(u):
            self.incumbents.offer(u)
            return None
        broken = (b for b, (learned, n) in enumerate(zip(self._learned, before, strict=True)) if len(learned) > n)
        b = next(broken, None)
        return None if b is None else (b, self.around[b].spread(self._learned[b][0]))

    def _work(self) -> int:
        return super()._work() * len(self.around)

    def _bound_all(self, nodes: Nodes) -> None:
        """Bound nodes under their shifts, offer points of the best of them, and keep those that may hold a better answer."""
        shifts = [s[nodes.name] for s in self._shifts]
        bounds = self._bounds(nodes, shifts)
        best, cost = bounds.spent, np.maximum(bounds.cost, self._before[nodes.name])
        kept = np.flatnonzero((cost <= self.progress.budget) & np.isfinite(cost))
        if not kept.size:
            return
        worth = np.where(best.rate > 0.0, best.rate, 1.0)[:, None]
        score = np.nan_to_num(bounds.looseness / worth) + best.excess
        # where nothing is loose, the feature that can cost most
        score += DUST * np.concatenate([self.free.cost(nodes.high - nodes.low), nodes.more], axis=1)
        best = best.pick(kept)
        worst = [self._worst(b, best.numbers, best.levels, s[kept])[0] for b, s in enumerate(shifts)]
        self._propose(nodes.pick(kept), best, cost[kept], worst)
        further = [
            [a.with_shift(old, new, self.own.same) for old, new in zip(s[kept], w, strict=True)]
            for a, s, w in zip(self.around, shifts, worst, strict=True)
        ]
        for i, k in enumerate(kept):
            along = self._along(nodes, int(k), score[k])
            if along < 0:
                self._decide(nodes, int(k), float(cost[k]))
                continue
            level = int(best.levels[i, along - self.free.n_numbers]) if along >= self.free.n_numbers else -1
            box, own = (nodes.low[k], nodes.high[k], nodes.allowed[k]), tuple(f[i] for f in further)
            self._push(float(cost[k]), _Centre(0, *box, along, level, float(cost[k]), own))

    def _bounds(self, nodes: Nodes, shifts: list[FloatArray]) -> _Bounds:
        """Return the best bounds of nodes under their shifts, one by one and weighed against each other.

        Then further planes are laid through the points that the best ones leave cheapest (Kelley's cutting planes).
        """
        found: _Bounds | None = None
        rows: list[tuple[IntArray, MovedNodes, EnclosedRows]] = []
        for a, own in zip(self.around, shifts, strict=True):
            for slot in range(own.shape[1]):
                there = ~np.isnan(own[:, slot]).any(axis=1)
                which = np.flatnonzero(there if found is None else there & ~(found.cost > self.progress.budget))
                if not which.size:
                    continue
                some = nodes.pick(which)
                moved, enclosed = a.moved(some, own[which, slot])
                rows.append((which, moved, enclosed))
                one = self._hardest(moved, enclosed.planes())
                found = one if found is None else self._weighed(some, found, which, one)
        assert found is not None, "the first shift of a node is always there"
        for _ in range(self.own.planes):
            for which, moved, enclosed in rows:
                if (found.cost[which] <= self.progress.budget).any():
                    x = moved.at(self._inputs(found.spent.pick(which)))
                    one = self._hardest(moved, enclosed.planes_at(x))
                    found = self._weighed(moved.nodes, found, which, one)
        return found

    def _inputs(self, spent: Spent) -> FloatArray:
        """Return points as numbers, followed by levels that are 0 or 1."""
        return as_inputs(spent.numbers, spent.levels, len(self.places.places) + len(self.places.entries))

    def _hardest(self, moved: MovedNodes, planes: Planes) -> _Bounds:
        """Return the bounds of the row that is hardest to reach in each node."""
        nodes = moved.nodes
        slopes, constant = moved.pulled_back(planes.slopes)
        constant = constant + planes.constant
        every, i = range(slopes.shape[1]), np.arange(len(nodes))
        spent = [nodes.cheapest(slopes[:, r], constant[:, r], self.beyond) for r in every]
        row = np.stack([s.cost for s in spent]).argmax(axis=0)
        best = Spent.of_rows(spent, row)
        return self._priced(best, slopes[i, row], constant[i, row], planes.looseness[i, row])

    def _priced(self, spent: Spent, slopes: FloatArray, constant: FloatArray, looseness: FloatArray) -> _Bounds:
        cost = np.where(np.isnan(spent.cost), self.free.elsewhere, spent.cost)  # what is no number bounds nothing
        return _Bounds(cost, spent, slopes, constant, looseness)

    def _weighed(self, some: Nodes, found: _Bounds, which: IntArray, one: _Bounds) -> _Bounds:
        """Return the best bounds by two rows and by weighted sums of them, whose weight is bisected.

        Where both must be at least 0, so must every sum. At the point that it leaves cheapest, the row that is further
        behind deserves more weight.
        """
        first = found.pick(which)
        best = first.better(one)
        # a weight is a compromise: where the rows disagree, a split makes it a better one
        apart = some.extent((one.slopes - first.slopes)[:, None])[:, 0]
        low, high = np.zeros(len(which)), np.ones(len(which))
        for _ in range(self.own.weights):
            w = 0.5 * (low + high)
            slopes, constant, looseness = (
                _mixed(w, x, y)
                for x, y in (
                    (first.slopes, one.slopes),
                    (first.constant, one.constant),
                    (first.looseness, one.looseness),
                )
            )
            looseness = looseness + (w * (1.0 - w))[:, None] * apart
            mixed = self._priced(some.cheapest(slopes, constant, self.beyond), slopes, constant, looseness)
            best = best.better(mixed)
            behind = ((one.slopes - first.slopes) * self._inputs(mixed.spent)).sum(
                axis=1
            ) + one.constant - first.constant < 0.0
            low, high = np.where(behind, w, low), np.where(behind, high, w)
        return found.put(which, best)

    def _children(self, popped: list[Open]) -> Nodes:
        """Return the children of nodes, with the number of their parent as their name."""
        parts: list[Nodes] = []
        for i, node in enumerate(popped):
            halves = super()._children([node])
            parts.append(replace(halves, name=np.full(len(halves), i, dtype=np.int64)))
        centres = [node for node in popped if isinstance(node, _Centre)]
        self._shifts = [np.stack([node.shifts[b] for node in centres]) for b in range(len(self.around))]
        self._before = np.array([node.bound for node in centres])
        low, high, allowed, name = (
            np.concatenate([getattr(p, key) for p in parts]) for key in ("low", "high", "allowed", "name")
        )
        return Nodes(self.free, low, high, allowed, name)

    # -- attacks -------------------------------------------------------------------------------------------------
    def _worst(
        self, b: int, numbers: FloatArray, levels: IntArray, shifts: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return bad shifts of a ball around points and the least rows there, of those that are known and those downhill."""
        a = self.around[b]
        x = a.inputs(numbers, levels)
        first = shifts[:, 0]
        # an empty slot stands for no shift
        known = [
            *np.nan_to_num(shifts.transpose(1, 0, 2)),
            *(np.broadcast_to(s, first.shape) for s in self._learned[b]),
        ]
        return a.worst(x, known, self.of_balls.descents)

    def _withstands(self, u: FloatArray) -> bool | None:
        """Whether a point, as it will be returned, keeps its lead all over all balls; None: that could not be decided."""
        for b, a in enumerate(self.around):
            found = worst_point(a.enclosed, u, self.deadline, self.of_balls, self.signs)
            if found is None or (found.point is None and not found.closed):
                return None
            if found.point is not None:
                shift = a.drawn_in((found.point - u)[[self.places.schema.starts[j] for j in a.numbers]])
                self._learned[b] = [shift, *self._learned[b]]
                return False
        return True

    def _decide(self, nodes: Nodes, k: int, cost: float) -> None:
        """Decide a node of a single point, after which there is nothing left of it."""
        u = self._point(nodes.near[k], self._cheapest_levels(nodes, k), nodes.near[k])
        safe = self._withstands(u)
        if safe is None or (safe and not self.incumbents.offer(u)):
            self.left_open = min(self.left_open, cost)

    # -- incumbents ----------------------------------------------------------------------------------------------
    def _propose(self, nodes: Nodes, best: Spent, cost: FloatArray, shifts: list[FloatArray]) -> None:
        """Offer points of the most promising nodes, put right by the linear pieces around their worst shifts.

        All pieces of a node so far are kept, and the cheapest point that they leave is the next: a cutting-set method
        (Mutapcic and Boyd 2009) on linear pieces. At last one piece is asked for as much more as its point was behind.
        """
        for i in np.argsort(cost, kind="stable")[: self.own.points]:
            numbers, levels, own = best.numbers[[i]], best.levels[[i]], [s[[i]] for s in shifts]
            rows: list[Row] = []
            for lifts in np.repeat([False, True], self.own.polishes):
                pieces, least = [], []
                for b, a in enumerate(self.around):
                    own[b], value = self._worst(b, numbers, levels, own[b][:, None])
                    slopes, constant = a.tangents(a.inputs(numbers, levels), own[b])
                    pieces.append((slopes[0], float(constant[0])))
                    least.append(float(value[0]) + a.enclosed.passes)
                if min(least) >= 0.0:
                    self._try(self._point(numbers[0], levels[0], nodes.near[i]))
                    break
                rows += pieces
                point, seconds = None, self.deadline.left()
                if not lifts and seconds > 0.0:
                    point = cheapest_point(nodes, int(i), levels[0], rows, self.beyond, seconds)
                if point is None:
                    (slope, constant_), one = pieces[int(np.argmin(least))], nodes.pick(np.array([i]))
                    more = one.cheapest(slope[None], np.array([constant_]), self.beyond - min(least))
                    numbers, levels = more.numbers, more.levels
                else:
                    numbers = point[None]

    def _try(self, u: FloatArray) -> bool:
        """Offer a point that is cheaper than what is known, if no attack breaks it; say whether it was taken."""
        cost, best = float(self.statement.objective(u[None, :])[0]), self.progress.best
        if (best is not None and cost >= best.cost) or not self._withstands(u):
            return False
        return self.incumbents.offer(u)

    def try_rows(self) -> None:
        """Try points on the way to training rows of the wanted outcome, and beyond them, as first incumbents."""
        at, taken = self.places, 0
        ways = np.linspace(0.0, self.own.farthest, self.own.on_the_way)[1:, None]
        whole = self._whole()
        for u in self.incumbents.near_rows(self.of_balls.rows):
            if self.progress.deadline.passed or taken == self.of_balls.row_answers:
                return
            numbers = np.clip(ways * (u - at.origin)[at.places], whole.low, whole.high)
            levels = np.array(
                [a + int(u[at.entries[a:b]].argmax()) for a, b in self._categories()], dtype=np.int64
            ) * np.ones((len(ways), 1), dtype=np.int64)
            zeros = [np.zeros((len(ways), 1, len(a.numbers))) for a in self.around]
            least = np.min([self._worst(b, numbers, levels, z)[1] for b, z in enumerate(zeros)], axis=0)
            for i in np.flatnonzero(least >= 0.0)[:1]:
                taken += self._try(self._point(numbers[i], levels[i], self.free.home))
