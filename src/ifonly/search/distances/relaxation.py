"""Linear relaxation of a covering problem: multipliers of its rows, the bound that they give, and its solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.runtime.tuning_forests import CoveringSearch
from ifonly.search.distances.candidates import Candidates
from ifonly.search.distances.simplex import relaxed
from ifonly.tolerances import ROUNDING, SHORT_SUM

__all__ = ["Relaxation"]


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Solution of the relaxation, and the best bound that multipliers have given so far.

    Attributes
    ----------
    bound, y
        The bound, safe in floating point, and its multipliers.
    value, last
        The value of the program itself, and its own multipliers.
    weights, met
        Of the candidates, and whether these meet all rows.
    ordinary
        Multipliers of an ordinary size: the dearest candidate per the largest amount that one adds to each row.
    """

    bound: float
    y: FloatArray
    value: float
    last: FloatArray
    weights: FloatArray
    met: bool
    ordinary: FloatArray

    @classmethod
    def of(cls, found: Candidates, tuning: CoveringSearch, before: Relaxation | None = None) -> Relaxation:
        """Solve the program; `before` is the solution with fewer candidates."""
        finite = np.isfinite(found.costs)
        reach = np.where(finite, np.abs(found.rows), 0.0)
        top, most = float(found.costs[finite].max(initial=0.0)), reach.max(axis=(1, 2), initial=0.0)
        ordinary = (top or 1.0) / np.where(most > 0.0, most, 1.0)
        least, dear = found.terms.least, tuning.dear * ordinary
        mix = relaxed(found.costs, found.rows, least + _room(found, reach), dear, tuning.steps)
        if not mix.met:  # at the very end of the region rows may just be met
            mix = relaxed(found.costs, found.rows, least, dear, tuning.steps)
        bound, y = found.bound(mix.y), mix.y
        if before is not None and before.bound > bound:
            bound, y = before.bound, before.y
        return cls(bound, y, mix.value, mix.y, mix.weights, mix.met, ordinary)


def _room(found: Candidates, reach: FloatArray) -> FloatArray:
    """Return by how much rows are to clear what they demand, so that a point does in floating point.

    As many numbers as there are rows may take a value between candidates, which is rounded. Counts are whole.
    """
    terms = found.terms
    summed = ROUNDING * (np.abs(terms.least) + reach.max(axis=2, initial=0.0).sum(axis=1)) + SHORT_SUM * terms.size
    far = np.maximum(np.abs(found.region.low), np.abs(found.region.high))
    blurred = ((terms.rate + np.abs(terms.slope)) * far).max(axis=1, initial=0.0)
    return np.where(terms.counts, 0.0, summed + SHORT_SUM * terms.n_rows * blurred)
