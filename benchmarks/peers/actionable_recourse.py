"""Actionable Recourse, from its description: Ustun, Spangher and Liu (2019), "Actionable recourse in linear classification".

For a linear classifier ``w x >= t``, an integer program picks one value per feature from a grid of feasible ones:

    min  sum_jk c_jk u_jk     s.t.  sum_jk w_j v_jk u_jk >= t,   sum_k u_jk = 1,   u binary

where ``v_jk`` are the values that feature j may take (its own one among them) and ``c_jk`` is the log-percentile shift
``|log((1 - Q_j(v_jk)) / (1 - Q_j(x_j)))|``, Q_j the share of the population below. A frozen feature has its own
value alone. Grids are `size` equally spaced values over the training range, whole numbers where the feature has them;
a category has its levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import block_diag, csr_matrix, vstack

from benchmarks.peers.encoding import Encoding, FloatArray

__all__ = ["Choices", "Linear", "recourse"]


@dataclass(frozen=True, eq=False)
class Linear:
    """``sum of parts + intercept > 0``: for a number its value times `slopes`, for a category the score of its level."""

    slopes: tuple[float, ...]
    scores: tuple[FloatArray, ...]
    intercept: float

    def part(self, j: int, values: FloatArray) -> FloatArray:
        """Return what values of a feature add."""
        table = self.scores[j]
        return np.asarray(table[values.astype(int)] if len(table) else self.slopes[j] * values)


@dataclass(frozen=True, eq=False)
class Choices:
    """Choices of one feature: its possible values and their costs."""

    values: FloatArray
    costs: FloatArray


def choices(j: int, encoding: Encoding, population: FloatArray, now: float, size: int, frozen: bool) -> Choices:
    """Return the grid of a feature with its log-percentile shifts."""
    field = encoding.fields[j]
    if frozen:
        return Choices(np.array([now]), np.zeros(1))
    if field.kind == "category":
        grid = np.arange(len(field.levels), dtype=float)
    else:
        grid = np.linspace(field.low, field.high, size)
        if field.kind == "integer":
            grid = np.unique(np.round(grid))
    grid = np.union1d(grid, [now])
    ordered = np.sort(population[:, j])
    # Halfway through ties, so that neither end has the share 0 or 1, whose logarithm is not finite.
    below = np.searchsorted(ordered, grid, "left") + np.searchsorted(ordered, grid, "right")
    share = np.clip(below / (2.0 * len(ordered)), 0.0, 1.0 - 0.5 / len(ordered))
    own = share[int(np.searchsorted(grid, now))]
    return Choices(grid, np.abs(np.log((1.0 - share) / (1.0 - own))))


def recourse(
    factual: FloatArray,
    encoding: Encoding,
    model: Linear,
    population: FloatArray,
    *,
    frozen: tuple[str, ...] = (),
    size: int = 100,
    margin: float = 1e-6,
    seconds: float = 60.0,
) -> FloatArray | None:
    """Return the cheapest coded row on the grids that the classifier accepts; None when there is none in time."""
    count = len(encoding.fields)
    menus = [
        choices(j, encoding, population, float(factual[j]), size, encoding.fields[j].name in frozen)
        for j in range(count)
    ]
    parts = np.concatenate([model.part(j, menu.values) for j, menu in enumerate(menus)])
    costs = np.concatenate([menu.costs for menu in menus])
    one_each = block_diag([csr_matrix(np.ones((1, len(menu.values)))) for menu in menus])
    rows = vstack([csr_matrix(parts), one_each]).tocsr()
    low = np.array([margin - model.intercept, *np.ones(count)])
    high = np.array([np.inf, *np.ones(count)])
    found = milp(
        costs,
        constraints=LinearConstraint(rows, low, high),
        integrality=np.ones(len(costs)),
        bounds=Bounds(0.0, 1.0),
        options={"time_limit": seconds, "mip_rel_gap": 1e-6},
    )
    if found.x is None:
        return None
    ends = np.cumsum([len(menu.values) for menu in menus])[:-1]
    picked = [int(part.argmax()) for part in np.split(found.x, ends)]
    return np.array([menu.values[k] for menu, k in zip(menus, picked, strict=True)])
