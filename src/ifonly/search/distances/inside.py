"""Parts of a forest's grid in which the goal is reached: each is a covering problem of its own."""

from __future__ import annotations

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.program.box import Box
from ifonly.runtime.deadline import Deadline
from ifonly.search.cells.cost_tables import CellCosts
from ifonly.search.cells.grids import Grid, Part
from ifonly.search.distances.candidates import Region
from ifonly.search.distances.covering import Covering
from ifonly.search.distances.surrogates import going_on, tables
from ifonly.search.distances.terms import Terms
from ifonly.search.reduce import Reducer

__all__ = ["Parts", "region_of"]


class Parts:
    """Search of such parts, and the surrogates of the distances.

    Attributes
    ----------
    open_bound
        The least bound of what was left open in some part of the grid at hand; infinity: nothing was.
    """

    def __init__(self, reducer: Reducer, terms: Terms, covering: Covering, separations: int) -> None:
        self.reducer, self.terms, self.covering, self.separations = reducer, terms, covering, separations
        self.open_bound = np.inf
        self._seen: set[bytes] = set()

    def surrogates(self, grid: Grid, box: Box) -> tuple[CellCosts, ...]:
        """Return one table per distance; a new grid is searched from its beginning, with cells of its own."""
        self.open_bound, self._seen = np.inf, set()
        region, tuning = region_of(self.terms, box), self.covering.tuning
        own = [going_on(self.terms, region, i, tuning.dear, tuning.steps) for i in range(self.separations)]
        used = np.array([y for y in own if y.any()]).reshape(-1, self.terms.n_rows)
        return tables(self.terms, grid, box, self.reducer, used)

    def search(self, grid: Grid, box: Box, part: Part, start: FloatArray, deadline: Deadline) -> bool:
        """Offer the best points of a part; say whether one of them became the incumbent.

        What was searched once holds nothing better later: the budget only falls.
        """
        key = b"".join(array.tobytes() for array in (part.low, part.high, part.allowed))
        if key in self._seen:
            return False
        self._seen.add(key)
        before = self.covering.budget()
        costs = self.reducer.separable.per_feature(self.reducer.query, start[None, :])[0]
        costs[np.concatenate([self.terms.numbers, self.terms.categories])] = 0.0
        left = self.covering.search(self._region(grid, box, part), start, float(costs.sum()), deadline)
        self.open_bound = min(self.open_bound, left)
        return self.covering.budget() < before

    def _region(self, grid: Grid, box: Box, part: Part) -> Region:
        region = region_of(self.terms, box)
        low, high = box.lower.copy(), box.upper.copy()
        low[grid.numbers], high[grid.numbers] = grid.lowest[grid.first + part.low], grid.highest[grid.first + part.high]
        allowed = region.allowed.copy()
        allowed[grid.entries] = part.allowed
        return Region(low[self.terms.numbers], high[self.terms.numbers], allowed)


def region_of(terms: Terms, box: Box) -> Region:
    """Return a box as a region of the features that count."""
    return Region(box.lower[terms.numbers], box.upper[terms.numbers], box.allowed)
