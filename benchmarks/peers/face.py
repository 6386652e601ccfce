"""FACE, from its description: Poyiadzi et al. (2020), "FACE: feasible and actionable counterfactual explanations".

The training rows are the nodes of a graph, with an edge between a row and its k nearest ones where the conditions
allow it, here: where the frozen features are equal. An edge weighs ``-log(p((x_i + x_j) / 2)) d(x_i, x_j)``, p a kernel
density. Targets are rows to which the model gives the wanted class (with at least the confidence t_p) and that have at
least the density t_d. The answer is the target at the end of the shortest path from the factual.

The density is measured in units in which its greatest value at a row is 1/e, so that no edge weighs less than its length.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

from benchmarks.peers.encoding import FloatArray

__all__ = ["Graph", "Path"]

Path = tuple[int, ...]
_SAMPLE = 1000
_BLOCK = 2000


class Graph:
    """The graph of the rows that the conditions allow, to be asked about many factuals.

    Parameters
    ----------
    points
        Scaled rows.
    targets
        Which of them have the wanted class.
    neighbours
        k of the graph; a factual, too, is connected with its k nearest rows.
    bandwidth
        Of the Gaussian kernel; by Scott's rule when not given.
    least_density
        t_d, as a share of the greatest density.
    """

    def __init__(
        self,
        points: FloatArray,
        targets: npt.NDArray[np.bool_],
        *,
        neighbours: int = 20,
        bandwidth: float | None = None,
        least_density: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.points = points
        self.density = Density(points, bandwidth, seed)
        self.neighbours = neighbours
        self.targets = targets & (self.density(points) >= least_density)
        i, j = _nearest(points, points, min(neighbours + 1, len(points)))
        kept = i != j
        self.i, self.j = i[kept], j[kept]
        self.weights = self._weigh(points[self.i], points[self.j])

    def _weigh(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the weights of edges; equal rows are no distance apart, but a weight of 0 would be no edge."""
        middle = self.density((a + b) / 2.0)
        price = 1.0 - np.log(np.maximum(middle, 1e-300))
        return np.maximum(price * np.linalg.norm(a - b, axis=1), 1e-12)

    def shortest(self, factual: FloatArray) -> Path | None:
        """Return the rows along the shortest path to a target, the target last; None when none is reached."""
        n = len(self.points)
        if not n or not self.targets.any():
            return None
        _, near = _nearest(factual[None, :], self.points, min(self.neighbours, n))
        start = np.full(len(near), n)
        own = self._weigh(np.tile(factual, (len(near), 1)), self.points[near])
        rows, columns = np.concatenate([self.i, start]), np.concatenate([self.j, near])
        edges = coo_matrix((np.concatenate([self.weights, own]), (rows, columns)), shape=(n + 1, n + 1)).tocsr()
        length, before = dijkstra(edges, directed=False, indices=n, return_predecessors=True)
        ends = np.where(self.targets, length[:-1], np.inf)
        best = int(ends.argmin())
        if not np.isfinite(ends[best]):
            return None
        path = [best]
        while before[path[-1]] != n:
            path.append(int(before[path[-1]]))
        return tuple(reversed(path))


def _nearest(rows: FloatArray, points: FloatArray, count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return pairs of each row and the `count` nearest points."""
    found = [np.zeros((0, count), dtype=np.intp)]
    squares = (points**2).sum(axis=1)
    for block in np.array_split(rows, max(1, len(rows) // _BLOCK)):
        distance = squares - 2.0 * block @ points.T
        found.append(np.argpartition(distance, count - 1, axis=1)[:, :count])
    other = np.concatenate(found)
    return np.repeat(np.arange(len(rows)), count), other.ravel()


class Density:
    """A Gaussian kernel density as a share of its greatest value at a row, on a sample when there are many rows."""

    def __init__(self, points: FloatArray, bandwidth: float | None, seed: int) -> None:
        n, d = points.shape
        spread = float(points.std(axis=0).mean()) if n > 1 else 1.0
        self.width = bandwidth or max(spread * n ** (-1.0 / (d + 4)), 1e-3)
        few = n <= _SAMPLE
        self.centres = points if few else np.random.default_rng(seed).permutation(points)[:_SAMPLE]
        self.most = float(self._raw(self.centres).max()) if n else 1.0

    def _raw(self, at: FloatArray) -> FloatArray:
        squares = (at**2).sum(axis=1)[:, None] + (self.centres**2).sum(axis=1) - 2.0 * at @ self.centres.T
        return np.asarray(np.exp(-np.maximum(squares, 0.0) / (2.0 * self.width**2)).sum(axis=1))

    def __call__(self, at: FloatArray) -> FloatArray:
        parts = [self._raw(part) for part in np.array_split(at, max(1, len(at) // 5000))]
        return np.minimum(np.concatenate(parts) / self.most, 1.0)
