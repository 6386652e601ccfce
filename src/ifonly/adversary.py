"""The adversary: the point of a ball that hurts most, and the search that goes on until there is none left.

Cutting-set method (Mutapcic and Boyd 2009; Maragno et al. 2024 for counterfactuals): solve with the shifts known so far,
let the adversary look for the worst point of the ball around the answer, demand the outcome under that shift too, and
repeat. Every round is a relaxation, so its bound holds; the last answer is robust, because the adversary's own program
has no point left that flips it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ifonly.criteria import Query
from ifonly.criteria.robustness import Stays, lead
from ifonly.engine import Found
from ifonly.mip import Affine, Convex, FloatArray, Mip
from ifonly.models import Form
from ifonly.nogo import no_go
from ifonly.problem import Statement
from ifonly.schema import Numeric
from ifonly.solvers import Backend, Limits, Status
from ifonly.solvers.tangents import solve
from ifonly.variables import Cells, Variables

__all__ = ["Attack", "Solve", "attack", "settle"]

Solve = Callable[[Statement, float], Found]

MODE = 'nogo'
MOST = 3
CORNER = True
_GRACE = 0.5  # seconds for the proof of an answer that was found at the last moment
_REFINEMENTS = 20
_AT_EDGE = 1e-6


@dataclass(frozen=True, eq=False)
class Attack:
    """What the adversary found: nothing, with proof; or a point of the ball that breaks the demand; or no time.

    Attributes
    ----------
    safe
        Whether no point of the ball breaks the demand, proven.
    point
        A point that does.
    least
        The least lead in the ball, or what is known of it.
    """

    safe: bool
    point: FloatArray | None = None
    least: float = np.inf


def attack(
    demand: Stays, query: Query, u: FloatArray, form: Form, backend: Backend, limits: Limits
) -> Attack:
    """Look for the point of the ball around `u` with the least lead."""
    n_gaps = len(demand.goal.gaps([Affine()] * form.n_outputs, 0.0))
    worst = Attack(True)
    for k in range(n_gaps):
        found = _attack_one(demand, query, u, form, k, backend, limits)
        if not found.safe and (worst.safe or found.least < worst.least):
            worst = found
    return worst


def _attack_one(
    demand: Stays, query: Query, u: FloatArray, form: Form, k: int, backend: Backend, limits: Limits
) -> Attack:
    """Minimise one gap over the ball; a point that only a loose form admits makes the form finer there."""
    for _ in range(_REFINEMENTS):
        mip = Mip()
        x = Variables(mip, demand.ball(query, u), u, form.cuts(), form.raw())
        mip.minimise(demand.goal.gaps(form.embed(mip, x), 0.0)[k])
        if demand.norm == "l2":
            _round(mip, x, demand, u)
        answer = solve(mip.arrays(), backend, replace(limits, cutoff=demand.enough))
        if answer.status is Status.INFEASIBLE:
            return Attack(True)
        if answer.values is None:
            return Attack(False, None, answer.bound)
        if answer.status is Status.OPTIMAL and answer.objective >= demand.enough:
            return Attack(True, None, answer.bound)
        y = x.point(answer.values)
        least = float(lead(demand.goal, demand.goal.read.form(y[None, :]))[0])
        if least < demand.enough:
            return Attack(False, y, least)
        finer = form.refined(y)
        if finer is None:
            return Attack(answer.status is Status.OPTIMAL, None, least)
        form = finer
    return Attack(False)


def _round(mip: Mip, x: Variables, demand: Stays, u: FloatArray) -> None:
    """Demand ``sum_j ((y_j - u_j) / reach_j)^2 <= 1``: by cells where there is no raw value, else by tangents."""
    squares, inner = [Affine()], []
    for j in np.flatnonzero(demand.reach):
        hat, reach = float(u[x.schema.starts[j]]), float(demand.reach[j])
        if x.box.is_fixed(int(j)):
            continue
        if x.is_raw(int(j)):
            inner.append((x.raw(int(j)) - hat) * (1.0 / reach))
        else:
            squares.append(x.cell_table(int(j), ((x.cells(int(j)).nearest(hat) - hat) / reach) ** 2))
    total = Affine.total(squares)
    if not inner:
        mip.row(total, upper=1.0)
        return

    def function(d: FloatArray) -> float:
        return float(d[0] + (d[1:] ** 2).sum() - 1.0)

    def gradient(d: FloatArray) -> FloatArray:
        return np.concatenate([[1.0], 2.0 * d[1:]])

    mip.convex(Convex((total, *inner), function, gradient))


def settle(
    statement: Statement, solve_it: Solve, backend: Backend, limits: Limits
) -> tuple[Found, Statement]:
    """Solve, attack, and demand more until no attack succeeds; return what was found and what was demanded."""
    deadline = time.perf_counter() + limits.seconds
    balls = [d for d in statement.demands if isinstance(d, Stays) and d.reach.any()]
    first = True
    while True:
        found = solve_it(statement, max(deadline - time.perf_counter(), 0.0))
        if found.u is None or not balls:
            return found, statement
        left = limits.within(max(deadline - time.perf_counter(), _GRACE))
        grown, safe = _attacked(statement, found.u, backend, left)
        if grown is None:
            if safe:
                return replace(found, pool=(found.u,)), statement
            return Found(Status.OUT_OF_TIME, bound=found.bound, interrupted=found.interrupted), statement
        statement = grown
        if first and len(balls) == 1:
            first = False
            statement = _lifted(statement, found.u, solve_it, backend, limits, deadline)

LIFTS = 5
def _lifted(statement, u, solve_it, backend, limits, deadline):
    query = statement.query
    demand = next(d for d in statement.demands if isinstance(d, Stays) and d.reach.any())
    form = demand.form(query, statement.form)
    margin = demand.margin
    for _ in range(LIFTS):
        left = max(deadline - time.perf_counter(), 0.0)
        a = attack(demand, query, query.schema.stored(u), form, backend, limits.within(left))
        if a.safe:
            new = replace(demand, known=(*demand.known, u))
            return replace(statement, demands=tuple(new if d is demand else d for d in statement.demands))
        if a.point is None: break
        margin += 1.2 * (demand.enough - a.least)
        found = solve_it(replace(statement, margin=margin), left)
        if found.u is None: break
        u = found.u
    return statement


def _is_ball(demand: object) -> bool:
    return isinstance(demand, Stays) and bool(demand.reach.any())


def _attacked(
    statement: Statement, u: FloatArray, backend: Backend, limits: Limits
) -> tuple[Statement | None, bool]:
    """Return the statement with the shifts that break `u`, or None and whether it is proven that none does."""
    query, safe, demands = statement.query, True, []
    u = query.schema.stored(u)
    for demand in statement.demands:
        new = demand
        if isinstance(demand, Stays) and demand.reach.any():
            form = demand.form(query, statement.form)
            found = attack(demand, query, u, form, backend, limits)
            safe &= found.safe
            if found.point is not None:
                box = no_go(demand, query, statement.costs(), form, u, found.point) if MODE != "shift" else None
                shift = None
                if box is None or MODE != "nogo":
                    shift = _shift(demand, query, u, found.point, form)
                    if MODE == "both" and box is not None:
                        wide = demand.widened(query)
                        for j in np.flatnonzero(shift):
                            if abs(shift[j]) < wide[j]:
                                trial = np.repeat(shift[None], 3, 0); trial[:, j] = [-wide[j], wide[j], 0.0]
                                ls = [demand.leads(query, u[None], t)[0] for t in trial]
                                if min(ls) < demand.enough: shift = trial[int(np.argmin(ls))]
                        corner = np.isin(np.abs(shift), [0.0, *demand.widened(query)]).all()
                        bad = demand.leads(query, u[None, :], shift)[0] < demand.enough
                        if not ((corner or not CORNER) and bad) or len(demand.shifts) > MOST: shift = None
                new = demand.stricter(shift, box)
        demands.append(new)
    if all(a is b for a, b in zip(demands, statement.demands, strict=True)):
        return None, safe
    return replace(statement, demands=tuple(demands)), False


def _shift(demand: Stays, query: Query, u: FloatArray, y: FloatArray, form: Form) -> FloatArray:
    """Return a shift from `u` into the cells of `y` that reaches as far as the ball does.

    The farther it reaches, the more of the other answers that stand too near the same edge it rules out as well.
    """
    schema = query.schema
    off = np.array([y[at] - u[at] for at in schema.starts]) * (demand.reach > 0)
    ball, cuts, raw = demand.ball(query, u), form.cuts(), form.raw()
    low, high = off.copy(), off.copy()
    for j in (int(j) for j in np.flatnonzero(demand.reach) if int(j) not in raw):
        feature, at = schema.features[j], schema.starts[j]
        assert isinstance(feature, Numeric)
        cells = Cells.of(feature, float(ball.lower[j]), float(ball.upper[j]), cuts.get(j, np.empty(0)))
        k = int(cells.index(y[at]))
        low[j] = -demand.reach[j] if k == 0 else cells.low[k] - u[at]
        high[j] = demand.reach[j] if k == cells.cuts.size else cells.high[k] - u[at]
    far = _corner(demand, query, u, low, high) if demand.norm == "linf" else _stretched(demand, query, off, low, high)
    wide = demand.widened(query)
    if demand.norm == "linf":
        return np.where(np.abs(far) >= demand.reach * (1.0 - _AT_EDGE), np.sign(far) * wide, far)
    return np.where(far == 0.0, 0.0, far + np.sign(far) * (wide - demand.reach))


def _corner(demand: Stays, query: Query, u: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the corner of a box of shifts: an edge of the ball where one is met, back to the factual where both are."""
    at = np.array(query.schema.starts)
    back = np.nan_to_num(query.factual[at] - u[at])
    reach, middle = demand.reach, 0.5 * (low + high)
    below, above = low <= -reach, high >= reach
    ends = np.where(below, -reach, np.where(above, reach, middle))
    return np.asarray(np.where(below & above, np.sign(back) * reach, ends))


def _stretched(
    demand: Stays, query: Query, off: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the shift made longer, as far as the cells and the ball allow; what lies on a grid stays."""
    free = np.array([getattr(f, "step", 0.0) is None for f in query.schema.features]) & (off != 0.0)
    share = off / np.where(demand.reach > 0, demand.reach, 1.0)
    spent, growing = float((share[~free] ** 2).sum()), float((share[free] ** 2).sum())
    if growing == 0.0:
        return off
    room = np.where(off > 0, high, low)[free] / off[free]
    factor = min(float(room.min()), float(np.sqrt(max(1.0 - spent, 0.0) / growing)))
    return np.where(free, max(factor, 1.0) * off, off)
