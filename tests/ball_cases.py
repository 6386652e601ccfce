"""Enumeration of all balls on a grid of whole numbers, by the model's own probabilities: the oracle of robust answers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

from ifonly.criteria.robustness.keeps_lead import KeepsLead

__all__ = ["enumerated", "leads"]


def leads(model: Any, rows: np.ndarray, names: list[str]) -> np.ndarray:
    """The lead of class 1 in scores, by the model's own probabilities."""
    p = model.predict_proba(pd.DataFrame(rows, columns=names))
    p = np.maximum(p, 1e-300)
    return np.log(p[:, 1]) - np.log(np.delete(p, 1, axis=1)).max(axis=1)


def enumerated(X: pd.DataFrame, model: Any, statement: Any, slack: float) -> float:
    """The least cost of a point of the grid whose whole ball has class 1 by more than `slack`; infinity: there is none."""
    (ball,) = (d for d in statement.demands if isinstance(d, KeepsLead))
    axes = [np.arange(X[name].min(), X[name].max() + 1) for name in X]
    grid = np.array(list(itertools.product(*axes)), dtype=float)
    fine = (leads(model, grid, list(X)) > slack).reshape([len(axis) for axis in axes])
    shifts = list(itertools.product(*(range(-int(r), int(r) + 1) for r in np.floor(ball.reach + 1e-9))))
    if ball.norm == "l2":
        shifts = [
            s for s in shifts if sum((v / r) ** 2 for v, r in zip(s, ball.reach, strict=True) if v) <= 1.0 + 1e-12
        ]
    costs = statement.costs().per_feature(statement.query, grid).sum(axis=1)
    moved = (grid != statement.query.factual).sum(axis=1)
    most = min((d.at_most() for d in statement.demands if hasattr(d, "at_most")), default=len(axes))
    best = np.inf
    for at, cost, n in zip(itertools.product(*(range(len(a)) for a in axes)), costs, moved, strict=True):
        if n > most or cost >= best:
            continue
        around = (tuple(i + s for i, s in zip(at, shift, strict=True)) for shift in shifts)
        if all(fine[p] for p in around if all(0 <= i < len(a) for i, a in zip(p, axes, strict=True))):
            best = float(cost)
    return best
