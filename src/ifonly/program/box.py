"""Box of admissible values: an interval per numeric feature, a set of levels per categorical one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema

__all__ = ["Box"]


@dataclass(frozen=True, eq=False)
class Box:
    """Box of the canonical vector: bounds of numbers, allowed levels. Missing entries of the factual stay missing: fixed.

    Attributes
    ----------
    lower, upper
        Per feature; meaningful for numeric features only, already on the feature's grid.
    allowed
        Per entry of the canonical vector: whether this level may be taken (True for numeric entries).
    missing
        Per feature: whether it is fixed at "missing".
    """

    schema: Schema
    lower: FloatArray
    upper: FloatArray
    allowed: npt.NDArray[np.bool_]
    missing: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, schema: Schema, factual: FloatArray) -> Box:
        """Return the schema's own box, widened where needed so that it includes the factual."""
        n, numeric = len(schema), schema.numeric
        lower, upper = np.zeros(n), np.zeros(n)
        missing = ~np.logical_or.reduceat(factual != 0.0, schema.starts)  # no level at all
        starts, (low, high) = schema.number_starts, schema.ends
        missing[numeric] = np.isnan(factual[starts])
        value = np.where(missing[numeric], low, factual[starts])
        lower[numeric], upper[numeric] = np.minimum(low, value), np.maximum(high, value)
        for j in numeric:
            feature = schema.features[j]
            # 5 * 1e-6 is a float below 5e-6: an end that is meant to lie on the grid must not shut its point of the grid out.
            if isinstance(feature, Numeric) and feature.precision is not None:
                lower[j] = min(lower[j], feature.snap_up(float(lower[j])))
                upper[j] = max(upper[j], feature.snap_down(float(upper[j])))
        return cls(schema, lower, upper, np.ones(schema.width, dtype=np.bool_), missing)

    @property
    def key(self) -> bytes:
        """The bounds as bytes, to tell two boxes of one schema apart at this moment."""
        return b"".join(part.tobytes() for part in (self.lower, self.upper, self.allowed, self.missing))

    def sealed(self) -> Box:
        """Return this box, which nobody can narrow any more: it is shared."""
        for part in (self.lower, self.upper, self.allowed, self.missing):
            part.flags.writeable = False
        return self

    def copy(self) -> Box:
        """Return a box that can be narrowed without touching this one."""
        return Box(self.schema, self.lower.copy(), self.upper.copy(), self.allowed.copy(), self.missing.copy())

    def narrow(self, j: int, lower: float = -np.inf, upper: float = np.inf) -> None:
        """Intersect numeric feature `j` with an interval, rounded inwards to its grid."""
        feature = self.schema.features[j]
        assert isinstance(feature, Numeric)
        if feature.step is not None:
            lower = feature.snap_up(lower) if np.isfinite(lower) else lower
            upper = feature.snap_down(upper) if np.isfinite(upper) else upper
        else:  # what the column cannot hold is no value of the feature
            lower, upper = float(feature.at_least(lower)), float(feature.at_most(upper))
        self.lower[j] = max(self.lower[j], lower)
        self.upper[j] = min(self.upper[j], upper)

    def keep_levels(self, j: int, levels: npt.NDArray[np.bool_]) -> None:
        """Intersect categorical feature `j` with a set of levels, given as a mask."""
        self.allowed[self.schema.slice(j)] &= levels

    def staying(self, j: int, factual: FloatArray) -> Box:
        """Return the part of the box in which feature `j` is what the factual has; empty if that is not in the box."""
        box, part = self.copy(), factual[self.schema.slice(j)]
        if self.missing[j]:
            return box
        if isinstance(self.schema.features[j], Numeric):
            box.lower[j], box.upper[j] = max(box.lower[j], part[0]), min(box.upper[j], part[0])
        else:
            box.keep_levels(j, part > 0)
        return box

    def leaving(self, j: int, factual: FloatArray, least: float) -> list[Box]:
        """Return the parts of the box in which feature `j` is not what the factual has.

        A number without a grid moves by `least` or more, one on a grid by a step or more; `j` is not missing.
        """
        part, feature = factual[self.schema.slice(j)], self.schema.features[j]
        if not isinstance(feature, Numeric):
            other = self.copy()
            other.keep_levels(j, part <= 0)
            return [other]
        hat = float(part[0])
        down, up = (hat - least, hat + least) if feature.step is None else (feature.below(hat), feature.above(hat))
        below, above = self.copy(), self.copy()
        below.narrow(j, upper=down)
        above.narrow(j, lower=up)
        return [below, above]

    def empty(self) -> int | None:
        """Return the first feature with no admissible value left, or None."""
        schema = self.schema
        none = ~np.logical_or.reduceat(self.allowed, schema.starts)
        none[schema.numeric] = self.lower[schema.numeric] > self.upper[schema.numeric]
        where = np.flatnonzero(none & ~self.missing)
        return int(where[0]) if where.size else None

    def contains(self, U: FloatArray, tolerance: float = 0.0) -> npt.NDArray[np.bool_]:
        """Return, per canonical row, whether it lies in the box, up to a share of the size of its ends."""
        schema, numeric = self.schema, self.schema.numeric
        numbers, low, high = U[:, schema.number_starts], self.lower[numeric], self.upper[numeric]
        within = (numbers >= low - tolerance * np.abs(low)) & (numbers <= high + tolerance * np.abs(high))
        inside = np.logical_or.reduceat((U > 0.5) & self.allowed, schema.starts, axis=1)
        inside[:, numeric] = np.where(self.missing[numeric], np.isnan(numbers), within)
        for j in np.flatnonzero(self.missing[schema.categorical]).tolist():
            place = schema.categorical[j]
            inside[:, place] = self.contains_at(place, U)
        return np.asarray(inside.all(axis=1))

    def contains_at(self, j: int, U: FloatArray, tolerance: float = 0.0) -> npt.NDArray[np.bool_]:
        """Return, per canonical row, whether its feature `j` lies in the box, up to a share of the size of its ends."""
        part = U[:, self.schema.slice(j)]
        numeric = isinstance(self.schema.features[j], Numeric)
        if self.missing[j]:
            return np.asarray(np.isnan(part[:, 0]) if numeric else ~part.any(axis=1))
        if numeric:
            low, high = float(self.lower[j]), float(self.upper[j])
            return np.asarray((part[:, 0] >= low - tolerance * abs(low)) & (part[:, 0] <= high + tolerance * abs(high)))
        return np.asarray((part > 0.5) @ self.allowed[self.schema.slice(j)] > 0)

    def is_fixed(self, j: int) -> bool:
        """Whether only one value of feature `j` is left."""
        if self.missing[j]:
            return True
        if isinstance(self.schema.features[j], Numeric):
            return bool(self.lower[j] == self.upper[j])
        return int(self.allowed[self.schema.slice(j)].sum()) == 1

    def is_fixed_at(self, j: int, factual: FloatArray) -> bool:
        """Whether a feature has but one value left, and that is the one of a canonical vector."""
        if self.missing[j]:
            return True
        part = self.schema.slice(j)
        if not self.is_fixed(j):
            return False
        if isinstance(self.schema.features[j], Numeric):
            return bool(self.lower[j] == factual[part][0])
        return bool(factual[part][self.allowed[part]].any())

    def middle(self) -> FloatArray:
        """Return the middle of each number's interval; 0 for levels, and for what is missing or has no end."""
        place = np.zeros(self.schema.width)
        for j, feature in enumerate(self.schema.features):
            if isinstance(feature, Numeric) and not self.missing[j]:
                half = 0.5 * float(self.lower[j]) + 0.5 * float(self.upper[j])
                place[self.schema.starts[j]] = half if np.isfinite(half) else 0.0
        return place

    def reach(self) -> FloatArray:
        """Return the largest absolute value of each canonical entry; a missing feature counts as 0."""
        size = np.zeros(self.schema.width)
        for j, feature in enumerate(self.schema.features):
            if self.missing[j]:
                continue
            if isinstance(feature, Numeric):
                size[self.schema.starts[j]] = max(abs(float(self.lower[j])), abs(float(self.upper[j])))
            else:
                size[self.schema.slice(j)] = self.allowed[self.schema.slice(j)]
        return size
