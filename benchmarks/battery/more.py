"""Wishes and costs that came later: any of several classes, only some features, percentiles and tables of costs.

They are drawn by a generator of their own, for questions from number `LATER` on, so that the questions before, whose numbers
reports have named, stay what they were.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.battery.demands import frozen
from benchmarks.battery.truth import Cost, Want
from ifonly import Actionability, Proximity, Target

if TYPE_CHECKING:
    from benchmarks.battery.ask import Question

__all__ = ["LATER", "with_more"]

LATER = 1_200_000
_NOT_SEVERAL = ("robust", "manifold")  # kinds that keep one outcome, or the rows of one label


def with_more(rng: np.random.Generator, q: Question) -> Question:
    """Return the question, with another wish, other costs or fewer features, or as it is."""
    if rng.random() < 0.5:
        q = _several_classes(rng, q)
    if rng.random() < 0.5:
        q = _other_costs(rng, q)
    return _only(rng, q) if rng.random() < 0.25 else q


def _several_classes(rng: np.random.Generator, q: Question) -> Question:
    if q.want.kind != "class" or q.world.n_classes < 3 or q.kind in _NOT_SEVERAL:
        return q
    now = q.world.model.predict(q.factual)[0]
    others = [c.item() if hasattr(c, "item") else c for c in q.world.model.classes_ if c not in (now, q.want.label)]
    if not others:
        return q
    labels = (q.want.label, others[int(rng.integers(len(others)))])
    target: Any = list(labels) if rng.random() < 0.5 else Target(any_of=labels)
    return replace(q, want=Want("any", labels), target=target)


def _other_costs(rng: np.random.Generator, q: Question) -> Question:
    """Replace the distance: percentiles of all numbers, or tables of some features."""
    norm = "l1" if rng.random() < 0.6 else "linf"
    old = q.cost
    if rng.random() < 0.5:
        near = Proximity(norm, scale="percentile", weights=old.weights)  # type: ignore[arg-type]
        return replace(q, cost=replace(old, norm=norm, scale="percentile"), criteria=(near, *q.criteria[1:]))
    if q.kind == "units":  # a table is in the unit of its column
        return q
    tables = {c.name: _table(rng, old, c) for c in q.data.columns if rng.random() < 0.5}
    near = Proximity(norm, scale=old.scale, weights=old.weights, tables=tables)  # type: ignore[arg-type]
    return replace(q, cost=replace(old, norm=norm, tables=tables), criteria=(near, *q.criteria[1:]))


def _table(rng: np.random.Generator, cost: Cost, c: Any) -> dict[Any, float]:
    if not c.numeric:
        return {v: round(float(rng.uniform(0.0, 2.0)), 2) for v in c.values if rng.random() < 0.7} or {c.values[0]: 0.5}
    x = cost.data.X[c.name].to_numpy(dtype=np.float64)
    width = float(np.nanmax(x) - np.nanmin(x))
    out: dict[Any, float] = {}
    for sign in (1.0, -1.0) if rng.random() < 0.6 else (1.0,):
        n = int(rng.integers(1, 4))
        changes = np.sort(rng.uniform(0.05, 0.9, n)) * width
        costs = np.sort(rng.choice([0.0, 0.2, 0.5, 1.0, 2.0], n))
        out |= {float(sign * d): float(v) for d, v in zip(changes, costs, strict=True)}
    return out


def _only(rng: np.random.Generator, q: Question) -> Question:
    names = [c.name for c in q.data.columns]
    may = [n for n in names if rng.random() < 0.6]
    if not may:
        return q
    own = tuple(frozen(c, q.factual) for c in q.data.columns if c.name not in may)
    return replace(q, criteria=(*q.criteria, Actionability(only=may)), demands=(*q.demands, *own))
