"""Canonical rows to compare two functions on: all over the schema's box, and where a form has its thresholds."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema
from ifonly.program.box import Box

__all__ = ["at_thresholds", "random_rows", "with_holes"]


def random_rows(box: Box, n: int, rng: np.random.Generator) -> FloatArray:
    """Return rows all over a box, on the grids of its features; what is missing in the box is missing in them."""
    schema = box.schema
    U = np.zeros((n, schema.width))
    for j, feature in enumerate(schema.features):
        if isinstance(feature, Numeric):
            drawn = rng.uniform(box.lower[j], box.upper[j], n)
            snapped = np.array([feature.snap(float(v)) for v in drawn]) if feature.step is not None else drawn
            U[:, schema.starts[j]] = np.nan if box.missing[j] else np.clip(snapped, box.lower[j], box.upper[j])
        elif not box.missing[j]:
            levels = np.flatnonzero(box.allowed[schema.slice(j)])
            U[:, schema.slice(j)] = np.eye(feature.width)[rng.choice(levels, n)]
    return schema.stored(U)


def at_thresholds(
    box: Box, cuts: Mapping[int, FloatArray], rows: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """Return rows with one feature, or several, on a threshold or on the float (or grid point) next to it."""
    places = [(j, value) for j, at in cuts.items() for value in _beside(box, j, np.asarray(at, dtype=np.float64))]
    if not places:
        return np.empty((0, box.schema.width))
    U = rows[rng.integers(len(rows), size=n)].copy()
    order = np.concatenate([rng.permutation(len(places)) for _ in range(-(-n // len(places)))])[:n]
    for i, first in enumerate(order):
        more = rng.integers(len(places), size=int(rng.integers(4)))
        for j, value in (places[k] for k in (*more, first)):
            U[i, box.schema.starts[j]] = value
    return box.schema.stored(U)


def _beside(box: Box, j: int, cuts: FloatArray) -> FloatArray:
    """Return the thresholds of a numeric feature and their neighbours, as its column can store them."""
    feature = box.schema.features[j]
    assert isinstance(feature, Numeric)
    if feature.step is not None:
        on = np.array([feature.snap(float(c)) for c in cuts])
        near = np.concatenate([on, on - feature.step, on + feature.step])
    else:
        floating = isinstance(feature.dtype, np.dtype) and feature.dtype.kind == "f"
        on = cuts.astype(feature.dtype if floating else np.float64)
        near = np.concatenate([on, np.nextafter(on, on.dtype.type(-np.inf)), np.nextafter(on, on.dtype.type(np.inf))])
    near = np.unique(near.astype(np.float64))
    return np.asarray(near[(near >= box.lower[j]) & (near <= box.upper[j])])


def with_holes(schema: Schema, U: FloatArray, features: Collection[int], rng: np.random.Generator) -> FloatArray:
    """Return the rows with one or two of these features missing in each."""
    U, known = U.copy(), sorted(features)
    for row in U:
        for j in rng.choice(known, size=min(len(known), int(rng.integers(1, 3))), replace=False):
            row[schema.slice(int(j))] = np.nan if isinstance(schema.features[int(j)], Numeric) else 0.0
    return U
