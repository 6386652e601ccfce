"""Tolerances: how close the cost of an answer must be to its bound, in one place.

Costs are not negative, and a gap is relative to the cost of the answer: ``(objective - bound) / |objective|``. Relative
to nothing, a gap means nothing, so costs below `LEAST_COST` are treated as if they were that large. Then two costs that
differ by less than ``OPTIMALITY * LEAST_COST = 1e-12`` count as equal, which is the dust of a sum of floats and no more.
"""

from __future__ import annotations

from math import inf, isnan

__all__ = ["EDGE", "LEAST_COST", "OPTIMALITY", "ROUNDING", "allowed_gap", "closing_gap", "relative_gap"]

OPTIMALITY = 1e-6  # relative gap up to which an answer is called proven optimal
EDGE = 1e-12  # share of an end of an interval by which a value may lie beyond it: decimal numbers are not exact
ROUNDING = 1e-12  # share of the sum of absolute terms by which a linear row may be off: sums are not exact
LEAST_COST = 1e-6  # cost below which gaps are no longer relative to the cost


def relative_gap(objective: float, bound: float) -> float:
    """Return the gap ``(objective - bound) / |objective|``; 0 at or above the bound, infinite without one.

    An objective of 0 has no gap: no cost is negative. From a gap of 1 on, the bound says no more than that.
    """
    if objective == 0.0 or objective <= bound:
        return 0.0
    gap = (objective - bound) / abs(objective)
    return inf if isnan(gap) else gap


def allowed_gap(objective: float, gap: float = OPTIMALITY) -> float:
    """Return the absolute difference between objective and bound that a relative gap allows."""
    return gap * max(abs(objective), LEAST_COST)


def closing_gap(value: float, gap: float) -> float:
    """Return how far below the incumbent a search may stop looking: half of what the relative gap allows.

    A search that proves that nothing costs less than ``value - closing_gap(value, gap)`` has closed the gap. The other
    half is for what follows it: the answer is stored in the dtypes of the data, and its cost measured again.
    """
    return 0.5 * allowed_gap(value, gap)
