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
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from benchmarks.peers.encoding import FloatArray

__all__ = ["Path", "shortest"]

Path = tuple[int, ...]
_SAMPLE = 1000


def shortest(
    factual: FloatArray,
    points: FloatArray,
    targets: npt.NDArray[np.bool_],
    *,
    neighbours: int = 20,
    bandwidth: float | None = None,
    least_density: float = 0.0,
    seed: int = 0,
) -> Path | None:
    """Return the rows along the shortest path from the factual to a target, the target last; None when none is reached.

    Parameters
    ----------
    factual
        A scaled row.
    points
        The scaled rows that the conditions allow.
    targets
        Which of them have the wanted class.
    neighbours
        k of the graph.
    bandwidth
        Of the Gaussian kernel; by Scott's rule when not given.
    least_density
        t_d, as a share of the greatest density.
    """
    nodes = np.vstack([points, factual])
    density = _Density(points, bandwidth, seed)
    graph = _graph(nodes, min(neighbours, len(points)), density)
    length, before = dijkstra(graph, directed=False, indices=len(points), return_predecessors=True)
    allowed = targets & (density(points) >= least_density)
    ends = np.where(allowed, length[:-1], np.inf)
    best = int(ends.argmin()) if len(ends) else 0
    if not len(ends) or not np.isfinite(ends[best]):
        return None
    path = [best]
    while before[path[-1]] != len(points):
        path.append(int(before[path[-1]]))
    return tuple(reversed(path))


class _Density:
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


def _graph(nodes: FloatArray, neighbours: int, density: _Density) -> csr_matrix:
    """Return the weights of the edges between each node and its nearest ones."""
    distance, other = cKDTree(nodes).query(nodes, k=neighbours + 1)
    i = np.repeat(np.arange(len(nodes)), neighbours + 1)
    j, d = other.ravel(), distance.ravel()
    kept = (j != i) & (j < len(nodes))
    i, j, d = i[kept], j[kept], d[kept]
    middle = density((nodes[i] + nodes[j]) / 2.0)
    # Equal rows are no distance apart, but a weight of 0 would be no edge.
    weights = np.maximum((1.0 - np.log(np.maximum(middle, 1e-300))) * d, 1e-12)
    n = len(nodes)
    # Both directions of an edge have the same weight; the larger of two equal entries is that entry.
    return coo_matrix((weights, (i, j)), shape=(n, n)).tocsr()
