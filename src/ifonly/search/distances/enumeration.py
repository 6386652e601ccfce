"""Enumeration of a covering problem on grids: all choices but one feature's, which then goes just as far as it must.

On whole numbers the relaxation leaves a small difference that no branching closes quickly: many choices cost the same but
for the last step, and which of them comes nearest to the rows is a matter of divisibility. Where a region holds few choices
within the budget they are listed, feature by feature; a choice is dropped as soon as its Lagrangian is beyond the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric
from ifonly.program.cells import grid_floor
from ifonly.search.distances.candidates import Candidates
from ifonly.tolerances import ROUNDING, SHORT_SUM

__all__ = ["Listed", "listed"]


@dataclass(frozen=True, eq=False)
class Listed:
    """Points of a region that meet all rows but for rounding and are within the budget, cheapest first, and their costs."""

    x: FloatArray
    levels: IntArray
    cost: FloatArray


@dataclass(frozen=True, eq=False)
class _Options:
    """Values of one feature: what they cost and what they add to the rows, shapes (values,) and (rows, values)."""

    value: FloatArray
    cost: FloatArray
    rows: FloatArray


def listed(found: Candidates, y: FloatArray, budget: float, most: int, times: int) -> Listed | None:
    """Return all points of a region within a budget; None where they are too many, or a number has no grid.

    At most `most` points, and `times` as many that are looked at on the way.
    """
    terms, n = found.terms, len(found.terms.numbers)
    wide = [_count(found, k) for k in range(n)]
    last = int(np.argmax(wide)) if n else -1
    if np.inf in wide or (n > 1 and sorted(wide)[-2] > most):
        return None
    options = {k: _of_number(found, k) for k in range(n) if k != last}
    options |= {n + c: _of_category(found, c) for c in range(len(terms.categories))}
    worth = {f: option.cost - y @ option.rows for f, option in options.items()}
    least = float(found.least(y)[last]) if n else 0.0
    size = sum(float(np.abs(o.cost).max() + y @ np.abs(o.rows).max(axis=1)) for o in options.values())
    if n:
        held = np.where(np.isfinite(found.costs[last]), found.rows[:, last], 0.0)
        size += abs(least) + float(y @ np.abs(held).max(axis=1))
    size += float(y @ np.abs(terms.least)) + abs(budget)
    left = (
        budget
        + ROUNDING * size
        + SHORT_SUM * float(y @ terms.size)
        - float(y @ terms.least)
        - least
        - sum(float(w.min()) for w in worth.values())
    )
    if left < 0.0:
        return Listed(np.empty((0, n)), np.empty((0, len(terms.categories)), dtype=np.int64), np.empty(0))
    order = sorted(options, key=lambda f: len(options[f].cost))
    chosen, over = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
    for f in order:
        extra = worth[f] - worth[f].min()
        keep = np.flatnonzero(extra <= left)
        if len(over) * len(keep) > times * most:
            return None
        total = over[:, None] + extra[keep]
        at, own = np.nonzero(total <= left)
        if len(at) > most:
            return None
        chosen, over = np.concatenate([chosen[at], keep[own][:, None]], axis=1), total[at, own]
    return _finished(found, options, order, chosen, last, budget)


def _count(found: Candidates, k: int) -> float:
    """Return how many values a number has in the region."""
    feature = found.terms.schema.features[int(found.terms.numbers[k])]
    assert isinstance(feature, Numeric)
    wide = float(found.region.high[k] - found.region.low[k])
    return 1.0 if wide == 0.0 else np.inf if feature.step is None else 1.0 + round(wide / feature.step)


def _of_number(found: Candidates, k: int) -> _Options:
    terms, region = found.terms, found.region
    feature = terms.schema.features[int(terms.numbers[k])]
    assert isinstance(feature, Numeric)
    low, step = float(region.low[k]), feature.step or 0.0
    x = np.array([feature.snap(low + i * step) for i in range(int(_count(found, k)))] if step else [low])
    x[0], x[-1] = low, region.high[k]
    which = np.array([k])
    home = x == terms.hat[k]
    cost = np.where(home, 0.0, terms.moved_cost(x[None], which)[0])
    rows = np.where(home, terms.home_rows[:, [k]], terms.moved_rows(x[None], which)[:, 0])
    return _Options(x, cost, rows)


def _of_category(found: Candidates, c: int) -> _Options:
    terms, n = found.terms, len(found.terms.numbers)
    allowed = np.flatnonzero(np.isfinite(found.costs[n + c]))
    return _Options(
        terms.entry[c, allowed].astype(np.float64), found.costs[n + c, allowed], found.rows[:, n + c, allowed]
    )


def _finished(
    found: Candidates, options: dict[int, _Options], order: list[int], chosen: IntArray, last: int, budget: float
) -> Listed:
    """Return the choices with the cheapest value of the last number with which they meet all rows."""
    terms, n = found.terms, len(found.terms.numbers)
    x, levels = np.zeros((len(chosen), n)), np.zeros((len(chosen), len(terms.categories)), dtype=np.int64)
    cost, rows = np.zeros(len(chosen)), np.zeros((terms.n_rows, len(chosen)))
    size = np.abs(terms.least)
    for at, f in enumerate(order):
        own, option = chosen[:, at], options[f]
        cost, rows = cost + option.cost[own], rows + option.rows[:, own]
        size = size + np.abs(option.rows).max(axis=1)
        if f < n:
            x[:, f] = option.value[own]
        else:
            levels[:, f - n] = option.value[own].astype(np.int64)
    need = terms.least[:, None] - rows
    met = (need <= (ROUNDING * size + SHORT_SUM * terms.size)[:, None]).all(axis=0)
    if last >= 0:
        x[:, last], paid = _just_far_enough(found, last, need, size)
        cost, met = cost + paid, np.isfinite(paid)
    met &= cost <= budget + ROUNDING * abs(budget)
    by = np.flatnonzero(met)[np.argsort(cost[met], kind="stable")]
    return Listed(x[by], levels[by], cost[by])


def _just_far_enough(found: Candidates, k: int, need: FloatArray, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the cheapest values of a number that add what each choice needs, and their costs; infinity: none does.

    Costs rise from the factual value on, so such a value is that one, or the nearest end, or one at which a row is just met.
    """
    terms, region = found.terms, found.region
    low, high, hat = float(region.low[k]), float(region.high[k]), float(terms.hat[k])
    x = np.where(low == high, low, _where_just_met(found, k, need, size))
    x = np.where((x >= low) & (x <= high), x, np.nan)
    home = x == hat
    which = np.array([k])
    flat = np.nan_to_num(x).reshape(1, -1)
    cost = np.where(home, 0.0, terms.moved_cost(flat, which)[0].reshape(x.shape))
    rows = terms.moved_rows(flat, which)[:, 0].reshape(terms.n_rows, *x.shape)
    rows = np.where(home[None], terms.home_rows[:, k][:, None, None], rows)
    room = ROUNDING * (size + np.abs(rows).max(axis=(1, 2), initial=0.0)) + SHORT_SUM * terms.size
    met = (rows >= need[:, None, :] - room[:, None, None]).all(axis=0) & ~np.isnan(x)
    cost = np.where(met, cost, np.inf)
    best = cost.argmin(axis=0)
    every = np.arange(x.shape[1])
    return x[best, every], cost[best, every]


def _where_just_met(found: Candidates, k: int, need: FloatArray, size: FloatArray) -> FloatArray:
    """Return values of a number on its grid, shape (values, choices): on both sides of all at which a row is just met."""
    terms, region = found.terms, found.region
    feature = terms.schema.features[int(terms.numbers[k])]
    assert isinstance(feature, Numeric)
    low, high, hat, step = float(region.low[k]), float(region.high[k]), float(terms.hat[k]), feature.step or 0.0
    near = []
    for i in range(terms.n_rows):
        rate, slope = terms.rate[i, k], terms.slope[i, k]
        wanted = need[i] - terms.change[i] + ROUNDING * size[i] + SHORT_SUM * terms.size[i]
        if rate > 0.0:
            near += [terms.at[i, k] + wanted / rate, terms.at[i, k] - wanted / rate]
        elif slope != 0.0:
            near.append(hat + wanted / slope)
    below = grid_floor(feature, np.clip(np.array(near).reshape(-1, need.shape[1]), low - step, high + step))
    above = grid_floor(feature, below + 1.5 * step)
    # a change of one step, where a change is all that it takes
    own = np.array([low, high, hat, *((feature.below(hat), feature.above(hat)) if low <= hat <= high else ())])
    return np.concatenate([below, above, np.repeat(own[:, None], need.shape[1], axis=1)])
