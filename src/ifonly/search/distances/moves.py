"""Incumbents at a distance: earlier answers with one more change, of just the distance that is to be kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.question.separation import Separation
from ifonly.question.statement import Statement
from ifonly.tolerances import ROUNDING

__all__ = ["gone_on"]


def gone_on(statement: Statement, box: Box, separations: Sequence[Separation]) -> FloatArray:
    """Return the points of a box, cheapest first, that meet all demands and are such an answer with one more change."""
    query = statement.query
    made = [u for separation in separations for u in _moved(box, separation)]
    if not made:
        return np.empty((0, query.schema.width))
    rows = query.schema.stored(np.array(made))
    rows = rows[box.contains(rows)]
    rows = rows[np.argsort(statement.objective(rows), kind="stable")]
    for demand in sorted(statement.demands, key=lambda d: d.features(query) != frozenset()):
        rows = rows[demand.holds(query, rows)] if len(rows) else rows
    return rows


def _moved(box: Box, separation: Separation) -> list[FloatArray]:
    """Return the point with one number moved by the distance, either way, or one level exchanged for another one."""
    schema, point, out = box.schema, separation.point, []
    for j, feature in enumerate(schema.features):
        part = schema.slice(j)
        if isinstance(feature, Numeric):
            if not separation.rate[j] > 0.0 or np.isnan(point[part][0]):
                continue
            value, far = float(point[part][0]), separation.least / float(separation.rate[j]) * (1.0 + ROUNDING)
            up = feature.at_least(value + far) if feature.step is None else feature.snap_up(value + far)
            down = feature.at_most(value - far) if feature.step is None else feature.snap_down(value - far)
            for at in (float(up), float(down)):
                if box.lower[j] <= at <= box.upper[j]:
                    u = point.copy()
                    u[part] = at
                    out.append(u)
            continue
        for e in np.flatnonzero((separation.levels[part] >= separation.least) & box.allowed[part]):
            u = point.copy()
            u[part] = np.arange(part.stop - part.start) == e
            out.append(u)
    return out
