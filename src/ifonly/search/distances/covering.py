"""Branch and bound of a covering problem in a region: the cheapest point that meets rows which are sums over features.

The relaxation lets features mix their candidates, and its multipliers give a bound that is safe in floating point. Of its
solution all features but as many as there are rows take a single candidate, so it is nearly a point (`solution`); where it is
not one, the region is branched on a mixture. On grids, the points of small regions are listed instead (`enumeration`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.runtime.deadline import Deadline
from ifonly.runtime.tuning_forests import CoveringSearch
from ifonly.search.distances.candidates import Candidates, Region
from ifonly.search.distances.enumeration import Listed, listed
from ifonly.search.distances.relaxation import Relaxation
from ifonly.search.distances.solution import Solution
from ifonly.search.distances.terms import Terms
from ifonly.tolerances import DUST

__all__ = ["Covering"]


@dataclass(frozen=True, eq=False)
class _Node:
    """A region, the multipliers of the one around it, and how many splits led to it."""

    region: Region
    y: FloatArray
    depth: int


@dataclass(frozen=True, eq=False)
class _Visited:
    """A node after it was visited: its bound and multipliers, its children, the least cost of a point that was refused."""

    bound: float
    y: FloatArray
    parts: Sequence[Region]
    refused: float = np.inf


class Covering:
    """Search of regions for points that cost less than the incumbent.

    Parameters
    ----------
    terms
        Costs and rows.
    offer
        Offers a canonical point as incumbent.
    budget
        Returns the most that a better point may cost.

    Attributes
    ----------
    nodes
        How many nodes were looked at, in all regions.
    """

    def __init__(
        self, terms: Terms, offer: Callable[[FloatArray], bool], budget: Callable[[], float], tuning: CoveringSearch
    ) -> None:
        self.terms, self.offer, self.budget, self.tuning = terms, offer, budget, tuning
        self.nodes = 0

    def search(
        self, region: Region, base: FloatArray, constant: float, deadline: Deadline, most_nodes: int | None = None
    ) -> float:
        """Offer the best points of a region; return the least bound of what was left open: infinity, if nothing was.

        `base` has the other features, which cost `constant`.
        """
        number, left = count(), self.tuning.most_nodes if most_nodes is None else most_nodes
        heap = [(-np.inf, next(number), _Node(region, np.zeros(self.terms.n_rows), 0))]
        refused = np.inf
        while heap:
            bound, order, node = heappop(heap)
            if bound > self.budget():
                break
            if left == 0 or deadline.passed:
                return min(bound, refused)
            left -= 1
            self.nodes += 1
            # the more nodes there were, the less often a point is looked for beside them: at each power of 2
            visited = self._visited(node, base, constant, dive=order & (order + 1) == 0)
            if visited is None or visited.bound > self.budget():
                continue
            refused = min(refused, visited.refused)
            for part in visited.parts:
                child = _Node(part, visited.y, node.depth + 1)
                heappush(heap, (max(bound, visited.bound), next(number), child))
        return refused if refused <= self.budget() else np.inf

    def _visited(self, node: _Node, base: FloatArray, constant: float, *, dive: bool) -> _Visited | None:
        """Return what is known of a node after its points were offered; None: it is pruned."""
        tuning, found = self.tuning, Candidates(self.terms, node.region)
        if found.empty or found.bound(node.y) + constant > self.budget():
            return None
        if self.terms.squares and node.y.any():
            found.add_vertices(node.y)
        relaxation = self._refined(found, Relaxation.of(found, tuning), constant, tuning.rough)
        visited = self._branched(found, relaxation, base, constant)
        if (
            visited is not None and not visited.parts and self.terms.squares
        ):  # what is no more branched on must be exact
            relaxation = self._refined(found, relaxation, constant, DUST)
            visited = self._branched(found, relaxation, base, constant)
        if visited is None or visited.bound > self.budget():
            return visited
        if visited.parts and dive:
            self._dive(Solution(found, relaxation).unmixed(), base)
        if node.depth % tuning.list_every == 0 and visited.bound <= self.budget():
            points = listed(found, visited.y, self.budget() - constant, tuning.most_listed, tuning.looked_at)
            if points is not None:
                return _Visited(visited.bound, visited.y, [], self._offer_all(points, base, constant))
        return visited

    def _branched(
        self, found: Candidates, relaxation: Relaxation, base: FloatArray, constant: float
    ) -> _Visited | None:
        """Offer the solution of a relaxation, and return the parts that it is branched into; None: it is pruned."""
        bound, y = relaxation.bound + constant, relaxation.y
        if bound > self.budget() or (not relaxation.met and found.unmeetable(relaxation.last)):
            return None
        solution = Solution(found, relaxation)
        self.offer(solution.point(base))
        parts = solution.parts()
        return _Visited(bound, y, parts, np.inf if parts else bound)

    def _refined(self, found: Candidates, relaxation: Relaxation, constant: float, rough: float) -> Relaxation:
        """Return the relaxation with vertices of squares as candidates, while that may prune, or it is too rough."""
        for _ in range(self.tuning.vertices if self.terms.squares else 0):
            gap, size = relaxation.value - relaxation.bound, abs(relaxation.value)
            if relaxation.bound + constant > self.budget() or gap <= DUST * size:
                break
            if relaxation.value + constant <= self.budget() and gap <= rough * size:
                break
            found.add_vertices(relaxation.last)
            relaxation = Relaxation.of(found, self.tuning, relaxation)
        return relaxation

    def _dive(self, region: Region, base: FloatArray) -> None:
        """Offer the solution in a part in which nothing is mixed any more."""
        found = Candidates(self.terms, region)
        if not found.empty:
            self.offer(Solution(found, Relaxation.of(found, self.tuning)).point(base))

    def _offer_all(self, points: Listed, base: FloatArray, constant: float) -> float:
        """Offer points, cheapest first, until one is taken; return the cost of the first if it was refused."""
        for x, levels, cost in zip(points.x, points.levels, points.cost, strict=True):
            if cost + constant > self.budget():
                break
            u = base.copy()
            u[self.terms.starts] = x
            for j, entry in zip(self.terms.categories, levels, strict=True):
                u[self.terms.schema.slice(int(j))] = 0.0
                u[entry] = 1.0
            if not self.offer(u):
                return float(cost) + constant
        return np.inf
