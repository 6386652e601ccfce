"""The measures of one instance, from the numbers alone: the paper's seven, and what it did not measure.

With k answers and d features, of which d_cat are categories:

- validity: the share of answers that the model itself puts in the wanted class; 0 without an answer;
- categorical proximity: ``1 - mismatches / (k d_cat)``;
- continuous proximity: minus the mean l1 distance over the numbers, in raw units;
- sparsity: ``1 - changed / (k d)``;
- the three diversities: the means over pairs of answers of mismatches per category, l1 distance, and differing
  features per feature.

Rows are coded: one entry per feature, a number or the position of a level, NaN for a level that does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from benchmarks.peers.encoding import Encoding, FloatArray

__all__ = ["DIVERSITY", "PROXIMITY", "QUALITY", "WHOLE", "Real", "faults", "paper_measures"]

PROXIMITY = ("validity", "cat_proximity", "cont_proximity", "sparsity")
DIVERSITY = ("cat_diversity", "cont_diversity", "sparsity_diversity")
QUALITY = ("immutable", "integer", "category", "outside", "hull_distance", "row_distance")
WHOLE = 1e-6
_ROOM = 1e-9
_ROUNDS = 1000
_DUST = 1e-10

BoolArray = npt.NDArray[np.bool_]


def paper_measures(
    factual: FloatArray, answers: FloatArray, categorical: BoolArray, valid: BoolArray
) -> dict[str, float]:
    """Return the seven measures; NaN where one has no meaning."""
    if not len(answers):
        return {"validity": 0.0, **dict.fromkeys((*PROXIMITY[1:], *DIVERSITY), np.nan)}
    from_factual = [_apart(factual, answer, categorical) for answer in answers]
    between = [_apart(a, b, categorical) for a, b in combinations(answers, 2)]
    mismatches, distance, changed = np.mean(from_factual, axis=0)
    apart = np.mean(between, axis=0) if between else np.full(3, np.nan)
    return {
        "validity": float(np.mean(valid)),
        "cat_proximity": float(1.0 - mismatches),
        "cont_proximity": float(0.0 - distance),
        "sparsity": float(1.0 - changed),
        **dict(zip(DIVERSITY, map(float, apart), strict=True)),
    }


def _apart(a: FloatArray, b: FloatArray, categorical: BoolArray) -> tuple[float, float, float]:
    """Return the share of categories that differ, the l1 distance of the numbers, and the share of features that differ."""
    differs = ~(a == b)
    mismatches = float(differs[categorical].mean()) if categorical.any() else np.nan
    return mismatches, float(np.abs(a - b)[~categorical].sum()), float(differs.mean())


def faults(factual: FloatArray, answers: FloatArray, encoding: Encoding, frozen: tuple[str, ...]) -> dict[str, float]:
    """Return the shares of answers that change a frozen feature, break an integer or a category, or leave the ranges."""
    if not len(answers):
        return dict.fromkeys(("immutable", "integer", "category", "outside"), np.nan)
    moved = ~(answers == factual)
    fixed = np.array([f.name in frozen for f in encoding.fields])
    whole = np.array([f.kind == "integer" for f in encoding.fields])
    category = np.array([f.kind == "category" for f in encoding.fields])
    low = np.array([-np.inf if f.kind == "category" else f.low for f in encoding.fields])
    high = np.array([np.inf if f.kind == "category" else f.high for f in encoding.fields])
    room = _ROOM * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    room[~np.isfinite(room)] = 0.0
    rough = np.abs(answers - np.round(answers)) > WHOLE
    beyond = (answers < low - room) | (answers > high + room)
    return {
        "immutable": float((moved & fixed).any(axis=1).mean()),
        "integer": float((moved & whole & rough).any(axis=1).mean()),
        "category": float((category & (np.isnan(answers) | rough)).any(axis=1).mean()),
        "outside": float((moved & beyond).any(axis=1).mean()),
    }


@dataclass(frozen=True, eq=False)
class Real:
    """Real rows of the wanted class, in units of the features' ranges; a category has half a unit per level column.

    So a switch of a category has the l1 length 1, as a whole range has.
    """

    points: FloatArray
    scale: FloatArray
    encoding: Encoding

    @classmethod
    def of(cls, matrix: FloatArray, encoding: Encoding) -> Real:
        """Return the rows of a matrix."""
        scale = np.ones(encoding.width)
        for field in encoding.fields:
            scale[list(field.columns)] = 2.0 if field.kind == "category" else field.span
        return cls(np.unique(matrix / scale, axis=0), scale, encoding)

    def row_distance(self, answer: FloatArray) -> float:
        """Return the l1 distance to the nearest row."""
        return float(np.abs(self.points - self._scaled(answer)).sum(axis=1).min())

    def hull_distance(self, answer: FloatArray) -> float:
        """Return the Euclidean distance to the convex hull, by the algorithm of Wolfe (1976)."""
        return least_norm(self.points - self._scaled(answer))

    def _scaled(self, answer: FloatArray) -> FloatArray:
        return self.encoding.matrix(np.nan_to_num(answer)[None, :])[0] / self.scale


def least_norm(points: FloatArray) -> float:
    """Return the least norm in the convex hull of points.

    A few points carry the nearest point of the hull. The point farthest against the present one joins them, the
    affine hull's nearest point is taken, and points whose weight would turn negative leave, until none joins.
    """
    chosen = [int((points**2).sum(axis=1).argmin())]
    weights = np.ones(1)
    for _ in range(_ROUNDS):
        x = weights @ points[chosen]
        reach = points @ x
        new = int(reach.argmin())
        if reach[new] > x @ x - _DUST * max(1.0, float(x @ x)) or new in chosen:
            break
        chosen, weights = _minor(points, [*chosen, new], np.append(weights, 0.0))
    return float(np.linalg.norm(weights @ points[chosen]))


def _minor(points: FloatArray, chosen: list[int], weights: FloatArray) -> tuple[list[int], FloatArray]:
    while True:
        part = points[chosen]
        n = len(chosen)
        system = np.block([[np.zeros((1, 1)), np.ones((1, n))], [np.ones((n, 1)), part @ part.T]])
        target = np.linalg.lstsq(system, np.append(1.0, np.zeros(n)), rcond=None)[0][1:]
        if (target > _DUST).all():
            return chosen, target
        falling = target <= _DUST
        steps = weights[falling] / np.maximum(weights[falling] - target[falling], _DUST)
        weights = weights + float(min(1.0, steps.min())) * (target - weights)
        kept = weights > _DUST
        if kept.all():
            kept[int(weights.argmin())] = False
        chosen = [c for c, keep in zip(chosen, kept, strict=True) if keep]
        weights = weights[kept] / weights[kept].sum()
