"""Demands of actionability, the atoms: each is said to the optimiser, checked by NumPy, and loosened by the least amount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric
from ifonly.errors import Relaxation
from ifonly.program.box import Box
from ifonly.program.mip import Affine
from ifonly.question.abilities import Loosens
from ifonly.question.demand import BoxDemand, Demand
from ifonly.question.guidance import UnionOfBoxes
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.words import number
from ifonly.tolerances import EDGE, ROUNDING

__all__ = ["Between", "Direction", "Frozen", "Imply", "LevelSet", "LinearDemand"]


@dataclass(frozen=True, eq=False)
class _OnFeature(BoxDemand, Loosens):
    """A demand on one feature: a part of its box."""

    feature: int

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows have this feature in its part of the box; the others are no concern of this demand."""
        box = Box.of(query.schema, query.factual)
        self.narrow(query, box)
        return box.contains_at(self.feature, U, EDGE)

    def _is_missing(self, query: Query) -> bool:
        """Whether the factual has no value of this feature."""
        part = query.factual[query.schema.slice(self.feature)]
        numeric = isinstance(query.schema.features[self.feature], Numeric)
        return bool(np.isnan(part[0])) if numeric else not part.any()

    def excess_raw(self, query: Query) -> frozenset[int]:
        """Measuring how far a numeric feature leaves its interval needs its raw value."""
        numeric = isinstance(query.schema.features[self.feature], Numeric)
        return frozenset({self.feature}) if numeric else frozenset()

    def excess_features(self, query: Query) -> frozenset[int]:
        """Freed of the demand, the feature may move although nothing else asks for it."""
        del query
        return frozenset({self.feature})

    def _interval(self, query: Query) -> tuple[float, float]:
        box = Box.of(query.schema, query.factual)
        self.narrow(query, box)
        return float(box.lower[self.feature]), float(box.upper[self.feature])

    def excess(self, problem: Program) -> Affine | None:
        """Return the distance of the feature from the demanded part (a level outside counts 1)."""
        query, x, j = problem.query, problem.x, self.feature
        box = Box.of(query.schema, query.factual)
        self.narrow(query, box)
        if not isinstance(query.schema.features[j], Numeric):
            outside = ~box.allowed[query.schema.slice(j)]
            return x.level_table(j, outside.astype(np.float64))
        low, high = float(box.lower[j]), float(box.upper[j])
        over = problem.mip.column(0.0, max(0.0, float(problem.box.upper[j]) - min(low, high)), name="over")
        under = problem.mip.column(0.0, max(0.0, max(low, high) - float(problem.box.lower[j])), name="under")
        # x_j <= high + over, which the objective keeps small
        problem.mip.row(x.raw(j) - over, upper=high)
        # x_j >= low - under, which the objective keeps small, too
        problem.mip.row(x.raw(j) + under, lower=low)
        return over + under

    def _found(self, query: Query, u: FloatArray) -> str:
        value = query.schema.level_values(self.feature, u)
        if not isinstance(value, float):
            return str(value)
        return number(value, "up" if value > self._interval(query)[1] else "down")

    def _amount(self, query: Query, u: FloatArray) -> float:
        if not isinstance(query.schema.features[self.feature], Numeric):
            return 1.0
        low, high = self._interval(query)
        value = float(u[query.schema.starts[self.feature]])
        return max(low - value, value - high, 0.0)


@dataclass(frozen=True, eq=False)
class Frozen(_OnFeature):
    """``x_j = xhat_j``; what is missing stays missing, so no value is left for a range or a list of levels to ask for."""

    def narrow(self, query: Query, box: Box) -> None:
        """Shrink the box to what the demand leaves."""
        j, part = self.feature, query.factual[query.schema.slice(self.feature)]
        if not isinstance(query.schema.features[j], Numeric):
            box.keep_levels(j, part > 0)
        elif np.isnan(part[0]):
            box.lower[j], box.upper[j] = np.nextafter(max(box.lower[j], box.upper[j]), np.inf), box.lower[j]
        else:
            box.lower[j], box.upper[j] = max(box.lower[j], part[0]), min(box.upper[j], part[0])

    def excess(self, problem: Program) -> Affine | None:
        """Return the distance the feature has moved; from nothing to a value there is no distance."""
        return None if self._is_missing(problem.query) else super().excess(problem)

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Name the loosening that lets the row through."""
        name = query.schema.names[self.feature]
        change = f"unfreeze {name} (it would become {self._found(query, u)})"
        return Relaxation(self.text, change, 1.0 if self._is_missing(query) else self._amount(query, u))


@dataclass(frozen=True, eq=False)
class Direction(_OnFeature):
    """``x_j >= xhat_j`` (sign 1) or ``x_j <= xhat_j`` (sign -1); levels in their order. From nothing, every way is open."""

    sign: int

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows go the right way."""
        return np.ones(len(U), dtype=np.bool_) if self._is_missing(query) else super().holds(query, U)

    def narrow(self, query: Query, box: Box) -> None:
        """Shrink the box to what the demand leaves."""
        part = query.factual[query.schema.slice(self.feature)]
        if isinstance(query.schema.features[self.feature], Numeric):
            if np.isnan(part[0]):
                return
            if self.sign > 0:
                box.lower[self.feature] = max(box.lower[self.feature], part[0])
            else:
                box.upper[self.feature] = min(box.upper[self.feature], part[0])
        elif part.any():
            order = np.arange(part.size) * self.sign
            box.keep_levels(self.feature, order >= order[int(part.argmax())])

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Name the loosening that lets the row through."""
        name, other = query.schema.names[self.feature], "decrease" if self.sign > 0 else "increase"
        change = f"let {name} {other} to {self._found(query, u)}"
        return Relaxation(self.text, change, self._amount(query, u))


@dataclass(frozen=True, eq=False)
class Between(_OnFeature):
    """``low <= x_j <= high``, as a range or as a largest step from the factual."""

    low: float
    high: float
    kind: str

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows lie within; a step from nothing has no size."""
        free = self.kind == "max_step" and self._is_missing(query)
        return np.ones(len(U), dtype=np.bool_) if free else super().holds(query, U)

    def loosest(self, query: Query) -> Demand | None:
        """Return the range that is open on both sides, where the factual has no value: some value must be there."""
        open_ = replace(self, low=-np.inf, high=np.inf)
        return open_ if self.kind == "range" and self._is_missing(query) else None

    def narrow(self, query: Query, box: Box) -> None:
        """Shrink the box to what the demand leaves."""
        del query
        if self.kind == "range":
            box.missing[self.feature] = False  # a range gives a missing feature a value
        if not (np.isnan(self.low) or np.isnan(self.high)):
            box.narrow(self.feature, self.low, self.high)

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Name the loosening that lets the row through."""
        name = query.schema.names[self.feature]
        value = float(u[query.schema.starts[self.feature]])
        amount = self._amount(query, u)
        if self.kind == "max_step":
            hat = float(query.factual[query.schema.starts[self.feature]])
            change = f"max_step of {name} {number((self.high - self.low) / 2)} -> {number(abs(value - hat), 'up')}"
            return Relaxation(self.text, change, amount)
        low = number(value, "down") if value < self.low else _end(self.low)
        high = number(value, "up") if value > self.high else _end(self.high)
        wider = f"({low}, {high})"
        return Relaxation(self.text, f"range of {name} ({_end(self.low)}, {_end(self.high)}) -> {wider}", amount)


def _end(value: float) -> str:
    """Print an end of a range to the last digit: what is read off a way out must be a way out."""
    return repr(float(value)).removesuffix(".0") if np.isfinite(value) else "None"


@dataclass(frozen=True, eq=False)
class LevelSet(_OnFeature):
    """The level of a categorical feature lies in a set."""

    levels: npt.NDArray[np.bool_]

    def loosest(self, query: Query) -> Demand | None:
        """Return the demand for any level, where the factual has none."""
        return replace(self, levels=np.ones_like(self.levels)) if self._is_missing(query) else None

    def narrow(self, query: Query, box: Box) -> None:
        """Shrink the box to what the demand leaves."""
        del query
        box.missing[self.feature] = False  # naming levels gives a missing feature a value
        box.keep_levels(self.feature, self.levels)

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Name the loosening that lets the row through."""
        name = query.schema.names[self.feature]
        return Relaxation(self.text, f"also allow {name} to be {self._found(query, u)}", 1.0)


@dataclass(frozen=True, eq=False)
class LinearDemand(Loosens, Demand):
    """``low <= weights @ u <= high``."""

    weights: FloatArray
    low: float
    high: float

    def raw(self, query: Query) -> frozenset[int]:
        """Return the numeric features the row couples."""
        return frozenset(
            j
            for j, f in enumerate(query.schema.features)
            if isinstance(f, Numeric) and self.weights[query.schema.starts[j]]
        )

    def features(self, query: Query) -> frozenset[int]:
        """Return the features that the row weighs."""
        return frozenset(j for j in range(len(query.schema)) if self.weights[query.schema.slice(j)].any())

    def apply(self, problem: Program) -> None:
        """Add the demand's rows to the program."""
        # low <= w'u <= high
        problem.mip.row(problem.x.affine(self.weights), self.low, self.high)

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows meet it; a missing value counts as 0, as in the program, and one without a weight not at all."""
        del query
        U = np.nan_to_num(U)
        value = U @ self.weights
        room = ROUNDING * (np.abs(U) @ np.abs(self.weights))
        return np.asarray((value >= self.low - room) & (value <= self.high + room))

    def excess(self, problem: Program) -> Affine:
        """Return by how much the demand is broken."""
        expression = problem.x.affine(self.weights)
        least, most = problem.mip.bounds(expression)
        over = problem.mip.column(0.0, max(0.0, most - self.high) if np.isfinite(self.high) else 0.0, name="over")
        under = problem.mip.column(0.0, max(0.0, self.low - least) if np.isfinite(self.low) else 0.0, name="under")
        # w'u <= high + over
        problem.mip.row(expression - over, upper=self.high)
        # w'u >= low - under
        problem.mip.row(expression + under, lower=self.low)
        return over + under

    def loosened(self, query: Query, u: FloatArray) -> Relaxation:
        """Name the loosening that lets the row through."""
        del query
        value = float(np.nan_to_num(u) @ self.weights)
        if value > self.high:
            return Relaxation(self.text, f"at_most {number(self.high)} -> {number(value, 'up')}", value - self.high)
        return Relaxation(self.text, f"at_least {number(self.low)} -> {number(value, 'down')}", self.low - value)


@dataclass(frozen=True, eq=False)
class Imply(UnionOfBoxes, Demand):
    """All conditions of `if_` together imply each condition of `then`: ``sum_i a_i - (n - 1) <= b``."""

    @dataclass(frozen=True, eq=False)
    class Condition:
        """A feature in an interval or in a set of levels."""

        feature: int
        low: float = -np.inf
        high: float = np.inf
        levels: npt.NDArray[np.bool_] | None = None

        def cuts(self) -> FloatArray:
            """The thresholds ``x <= high`` and ``x <= just below low``."""
            ends = [self.high] if np.isfinite(self.high) else []
            return np.array([*ends, *([np.nextafter(self.low, -np.inf)] if np.isfinite(self.low) else [])])

        def literal(self, problem: Program) -> Affine:
            """Return its 0/1 expression."""
            x, j = problem.x, self.feature
            if self.levels is not None:
                return x.level_in(j, self.levels)
            top = x.at_most(j, self.high) if np.isfinite(self.high) else Affine(constant=1.0)
            below = x.at_most(j, float(np.nextafter(self.low, -np.inf))) if np.isfinite(self.low) else Affine()
            return top - below

        def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
            """Say which rows meet it."""
            part = U[:, query.schema.slice(self.feature)]
            if self.levels is not None:
                return np.asarray((part > 0.5) @ self.levels.astype(float) > 0.5)
            return np.asarray((part[:, 0] >= self.low) & (part[:, 0] <= self.high))

        def inside(self, query: Query, box: Box) -> list[Box]:
            """Return the part of a box in which it holds; a missing value never meets it."""
            if box.missing[self.feature]:
                return []
            return [self._with_levels(box, self.levels) if self.levels is not None else self._within(query, box)]

        def outside(self, query: Query, box: Box) -> list[Box]:
            """Return the parts of a box in which it does not hold."""
            feature = box.schema.features[self.feature]
            if box.missing[self.feature]:
                return [box]
            if not isinstance(feature, Numeric):
                return [] if self.levels is None else [self._with_levels(box, ~self.levels)]
            below = replace(self, low=-np.inf, high=feature.below(self.low))
            above = replace(self, low=feature.above(self.high), high=np.inf)
            return [c._within(query, box) for c in (below, above) if c.low < np.inf and c.high > -np.inf]

        def _with_levels(self, box: Box, levels: npt.NDArray[np.bool_]) -> Box:
            box = box.copy()
            box.keep_levels(self.feature, levels)
            return box

        def _within(self, query: Query, box: Box) -> Box:
            """Return the part of a box within the interval; the factual's own value counts also where it is off the grid."""
            part, j, hat = box.copy(), self.feature, float(query.factual[query.schema.starts[self.feature]])
            part.narrow(j, self.low, self.high)
            if self.low <= hat <= self.high and box.lower[j] <= hat <= box.upper[j]:
                part.lower[j], part.upper[j] = min(part.lower[j], hat), max(part.upper[j], hat)
            return part

    if_: tuple[Condition, ...]
    then: tuple[Condition, ...]

    def cuts(self, query: Query) -> Mapping[int, FloatArray]:
        """Return the thresholds of all conditions."""
        out: dict[int, FloatArray] = {}
        for c in (*self.if_, *self.then):
            if isinstance(query.schema.features[c.feature], Numeric):
                out[c.feature] = np.concatenate([out.get(c.feature, np.empty(0)), c.cuts()])
        return out

    def features(self, query: Query) -> frozenset[int]:
        """Return the features that its conditions name."""
        del query
        return frozenset(c.feature for c in (*self.if_, *self.then))

    def apply(self, problem: Program) -> None:
        """Add the demand's rows to the program."""
        together = Affine.total(c.literal(problem) for c in self.if_) - float(len(self.if_) - 1)
        for c in self.then:
            # then >= sum of the ifs - (number of ifs - 1): 1 where all of them hold
            problem.mip.row(c.literal(problem) - together, lower=0.0)

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows meet it."""
        given = np.logical_and.reduce([c.holds(query, U) for c in self.if_])
        follows = np.logical_and.reduce([c.holds(query, U) for c in self.then])
        return np.asarray(~given | follows)

    def pieces(self, query: Query, box: Box) -> list[Box]:
        """Return the parts in which a condition of `if_` fails, and the one in which all of `then` hold."""
        parts, met = [part for c in self.if_ for part in c.outside(query, box)], [box]
        for c in self.then:
            met = [part for old in met for part in c.inside(query, old)]
        return parts + met
