"""Cheapest points of nodes that meet several linear rows at once: small linear programs, for incumbents alone.

One row is a knapsack (`ifonly.search.inputs.nodes`). Where an answer must hold under several shifts, the cheapest point is as
a rule one at which two or more rows are met exactly. No proof rests on these programs: what they say is a point to try.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ifonly.arrays import FloatArray, IntArray
from ifonly.program.mip import Affine, Mip
from ifonly.search.inputs.nodes import Nodes
from ifonly.solvers.backend import Limits
from ifonly.solvers.linear import solve_linear

__all__ = ["Row", "cheapest_point"]

Row = tuple[FloatArray, float]


def cheapest_point(
    nodes: Nodes, i: int, levels: IntArray, rows: Sequence[Row], beyond: float, seconds: float
) -> FloatArray | None:
    """Return the numbers of the cheapest point of node ``i``, with these levels, where all rows are `beyond` 0; None: none.

    Costs are the lines below them that start at the cheapest value of each number.
    """
    near, low, high = nodes.near[i], nodes.low[i], nodes.high[i]
    mip, n = Mip(), len(near)
    up = [mip.column(0.0, float(high[k] - near[k])) for k in range(n)]
    down = [mip.column(0.0, float(near[k] - low[k])) for k in range(n)]
    for slopes, constant in rows:
        fixed = float(slopes[:n] @ near + slopes[n:][levels].sum() + constant)
        terms = [(up[k] - down[k]) * float(slopes[k]) for k in range(n)]
        # each row is met: slopes @ x + constant is beyond 0
        mip.row(Affine.total(terms), lower=beyond - fixed)
    mip.minimise(Affine.total([(up[k] + down[k]) * float(nodes.onward[i, k]) for k in range(n)]))
    answer = solve_linear(mip.arrays(), Limits(seconds), exact=True)
    if answer.values is None:
        return None
    ups, downs = (np.array([column.value(answer.values) for column in some]) for some in (up, down))
    return np.asarray(np.clip(near + ups - downs, low, high))
