"""Demands that keep a further answer apart from an earlier one: by the features it changes, or by a distance.

Another set of features, and a distance, are counted over the features that the model, another demand or a coupled cost
looks at (`looked_at`). A change of any other feature costs something and does nothing, so it does not make an answer
another one: neither the program nor its NumPy twin counts it, and a proof that there is no further answer speaks of
the features looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.criteria.proximity import Proximity
from ifonly.data.schema import Numeric
from ifonly.program.box import Box
from ifonly.program.mip import Affine
from ifonly.question.costs import Costs
from ifonly.question.criterion import Couples, Criterion
from ifonly.question.demand import Demand
from ifonly.question.further import Further
from ifonly.question.guidance import KeepsDistance, UnionOfBoxes
from ifonly.question.program import Program
from ifonly.question.query import Query
from ifonly.question.separation import Separation
from ifonly.question.words import number
from ifonly.tolerances import ANOTHER_ANSWER, LP_ROOM, ROUNDING, STORED_MOVE
from ifonly.tolerances import ON_GRID as _DUST

__all__ = ["Apart", "Distinct", "LeaveOne", "OtherFeatures", "looked_at"]


@dataclass(frozen=True, eq=False)
class Distinct(Further):
    """A demand for another answer; `among` are the features that count."""

    among: frozenset[int] = frozenset()

    def _numbers(self, query: Query) -> frozenset[int]:
        return frozenset(j for j in self.among if isinstance(query.schema.features[j], Numeric))


@dataclass(frozen=True, eq=False)
class OtherFeatures(UnionOfBoxes, Distinct):
    """The set of changed features must not be this one: ``sum_{j in S} (1 - z_j) + sum_{j not in S} z_j >= 1``.

    The sums go over the features that are looked at. A number counts as changed by its raw value, also where no threshold
    of the model notices; without a grid it must move by `ANOTHER_ANSWER` of its training range to be a change that the
    other answer does not make, because a least move other than 0 does not exist there.
    """

    changed: npt.NDArray[np.bool_] = None  # type: ignore[assignment]

    @classmethod
    def than(cls, query: Query, changed: npt.NDArray[np.bool_], among: frozenset[int]) -> OtherFeatures:
        """Return the demand for another set than the given one."""
        return cls(f"change another set of features than {_names(query, changed)}", among=among, changed=changed)

    def raw(self, query: Query) -> frozenset[int]:
        """Return the numbers that are looked at."""
        return self._numbers(query)

    def apply(self, problem: Program) -> None:
        """Exclude this set: one of its features stays, or one outside of it surely moves."""
        counted = sorted(self.among - problem.query.exempt)
        # sum_{j in S} (1 - z_j) + sum_{j not in S} z_j >= 1: another set of changed features than S
        problem.mip.row(Affine.total(self._differs(problem, j) for j in counted), lower=1.0)

    def _differs(self, problem: Program, j: int) -> Affine:
        """Return an expression that is 1 only if feature `j` is changed here and not there, or there and not here."""
        if problem.x.must_stay(j):  # also in a part of the box that a search has cut out
            return Affine(constant=float(self.changed[j]))
        if self.changed[j]:
            return 1.0 - problem.x.changed(j)
        return problem.x.surely_changed(j, _least_move(problem.query, j))

    def pieces(self, query: Query, box: Box) -> list[Box]:
        """Return the parts of the box in which one of these features stays, or another one surely moves, either way."""
        parts: list[Box] = []
        for j in sorted(self.among - query.exempt):
            if self.changed[j]:
                parts.append(box.staying(j, query.factual))
            elif not box.missing[j]:
                parts += box.leaving(j, query.factual, _least_move(query, j))
        return parts

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows change another set."""
        among = sorted(self.among)
        differs = query.counted(U) != self.changed
        for j in self._numbers(query):
            feature, at = query.schema.features[j], query.schema.starts[j]
            if feature.step is None and not self.changed[j]:  # type: ignore[union-attr]
                differs[:, j] &= np.abs(U[:, at] - query.factual[at]) >= STORED_MOVE * _least_move(query, j)
        return np.asarray(differs[:, among].any(axis=1))


@dataclass(frozen=True, eq=False)
class LeaveOne(UnionOfBoxes, Distinct):
    """One of these features must stay as it is: ``sum_{j in S} (1 - z_j) >= 1``; so no answer contains another."""

    changed: npt.NDArray[np.bool_] = None  # type: ignore[assignment]

    @classmethod
    def of(cls, query: Query, changed: npt.NDArray[np.bool_]) -> LeaveOne:
        """Return the demand that one of the given features stays."""
        return cls(f"leave one of {_names(query, changed)} as it is", changed=changed)

    def apply(self, problem: Program) -> None:
        """Let one of the features stay; one that must differ anyway does not count."""
        stays = [
            Affine(constant=1.0) if problem.x.must_stay(j) else 1.0 - problem.x.changed(j)
            for j in map(int, np.flatnonzero(self.changed))
            if problem.x.is_home(j)
        ]
        # sum_{j in S} (1 - z_j) >= 1: a feature of S stays
        problem.mip.row(Affine.total(stays), lower=1.0)

    def pieces(self, query: Query, box: Box) -> list[Box]:
        """Return for each of the features the part of the box in which it stays."""
        return [box.staying(j, query.factual) for j in map(int, np.flatnonzero(self.changed))]

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows leave one of the features as it is."""
        return np.asarray(~query.changed(U)[:, self.changed].all(axis=1))


@dataclass(frozen=True, eq=False)
class Apart(KeepsDistance, Distinct):
    r"""The distance to an earlier answer ``y`` must be at least ``least``, in the l1 metric of the query's proximity.

    ``sum_j r_j t_j + sum_j w_j [another level] >= least`` with ``t_j <= |x_j - y_j|``, which is not convex: with the
    order literal ``b <=> x_j <= y_j`` and ``low <= x_j <= high``

        t_j <= x_j - y_j + 2 (y_j - low) b,    t_j <= y_j - x_j + 2 (high - y_j) (1 - b).

    The sums go over the features that are looked at.
    """

    point: FloatArray = None  # type: ignore[assignment]
    metric: Proximity = None  # type: ignore[assignment]
    least: float = 0.0

    @classmethod
    def from_(cls, point: FloatArray, metric: Proximity, least: float, among: frozenset[int]) -> Apart:
        """Return the demand to keep a distance from one answer."""
        text = f"be at least {number(least)} away from an earlier answer"
        # Between two answers, a number with a percentile or a table counts by its range.
        scale = "range" if metric.scale == "percentile" else metric.scale
        return cls(text, among=among, point=point, metric=Proximity("l1", scale, metric.weights), least=least)

    def _from_point(self, query: Query) -> Query:
        return replace(query, factual=self.point)

    def distance(self, query: Query, U: FloatArray) -> FloatArray:
        """Return the distance of each row to the earlier answer, over the features that are looked at."""
        apart = self._from_point(query)
        return np.asarray(self._costs(query).per_feature(apart, U)[:, sorted(self.among)].sum(axis=1))

    def _costs(self, query: Query) -> Costs:
        costs = self.metric.costs(self._from_point(query))
        assert costs is not None  # the l1 metric is separable
        return costs

    def separation(self, query: Query) -> Separation:
        """Return the earlier answer, and how far from it a row must lie to meet the demand."""
        schema, costs = query.schema, self._costs(query)
        counts = np.zeros(len(schema), dtype=np.bool_)
        counts[sorted(self.among)] = True
        return Separation(self.point, costs.linear * counts, costs.levels * counts[schema.owner], self._enough)

    def cuts(self, query: Query) -> Mapping[int, FloatArray]:
        """Cut every number at the earlier answer, so that a literal says on which side one is."""
        return {j: self.point[[query.schema.starts[j]]] for j in sorted(self.raw(query))}

    def raw(self, query: Query) -> frozenset[int]:
        """Return the numbers that are looked at: within a cell, only the raw value tells how far one is."""
        return frozenset(j for j in self._numbers(query) if not np.isnan(self.point[query.schema.starts[j]]))

    def apply(self, problem: Program) -> None:
        """Demand the distance, and a little more of it from numbers that can be rounded."""
        query, x = problem.query, problem.x
        costs = self._costs(query)
        moving = [j for j in sorted(self.among) if not x.must_stay(j)]
        still = [j for j in sorted(self.among) if x.must_stay(j)]
        home = costs.per_feature(self._from_point(query), query.factual[None, :])[0, still].sum()
        terms, room = [Affine(constant=float(home))], 0.0
        for j in moving:
            feature = query.schema.features[j]
            if not isinstance(feature, Numeric):
                terms.append(x.level_table(j, costs.levels[query.schema.slice(j)]))
            elif costs.linear[j] > 0:
                terms.append(self._number(problem, j) * float(costs.linear[j]))
                room += float(costs.linear[j]) * _lost_in_storing(feature, problem.box, j)
        inside = room + LP_ROOM * max(1.0, self.least) if room else 0.0
        # sum_j w_j |x_j - y_j| + cost of levels >= distance and what storing may lose, by the minorants of `_number`
        problem.mip.row(Affine.total(terms), lower=self._enough + inside)

    def _number(self, problem: Program, j: int) -> Affine:
        """Return an expression that is at most ``|x_j - y_j|``."""
        x, y = problem.x, float(self.point[problem.query.schema.starts[j]])
        low, high = float(problem.box.lower[j]), float(problem.box.upper[j])
        if not x.is_raw(j):
            hat = float(problem.query.factual[problem.query.schema.starts[j]])
            return x.cell_table(j, np.abs(x.cells(j).nearest(hat) - y))
        if low >= y or high <= y:
            return x.raw(j) - y if low >= y else y - x.raw(j)
        below = x.at_most(j, y)
        t = problem.mip.column(0.0, max(high - y, y - low), name=f"{problem.query.schema.names[j]}_apart")
        # t <= x - y, unless x <= y (then the big M of 2 (y - low) frees the row)
        problem.mip.row(t - x.raw(j) - below * (2.0 * (y - low)), upper=-y)
        # t <= y - x, unless x > y (then the big M of 2 (high - y) frees the row)
        problem.mip.row(t + x.raw(j) + below * (2.0 * (high - y)), upper=y + 2.0 * (high - y))
        return t

    def holds(self, query: Query, U: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which rows are far enough away."""
        return np.asarray(self.distance(query, U) >= self._enough)

    @property
    def _enough(self) -> float:
        return self.least - _DUST * max(1.0, self.least)


def _least_move(query: Query, j: int) -> float:
    return ANOTHER_ANSWER * max(float(query.training.range[j]), ROUNDING)


def _names(query: Query, changed: npt.NDArray[np.bool_]) -> str:
    return ", ".join(query.schema.names[j] for j in np.flatnonzero(changed))


def _lost_in_storing(feature: Numeric, box: Box, j: int) -> float:
    """Return by how much storing a number in the dtype of its column can move it; nothing on a grid."""
    if feature.step is not None:
        return 0.0
    kind = feature.stored
    grain = float(np.finfo(kind if kind.kind == "f" else np.float64).eps)
    return 0.5 * grain * max(abs(float(box.lower[j])), abs(float(box.upper[j])))


def looked_at(query: Query, criteria: Sequence[Criterion], demands: Sequence[Demand]) -> frozenset[int]:
    """Return the features that the model, a demand or a coupled cost looks at; all others stay unless a box moves them."""
    seen = frozenset(query.model.read.form.features())
    return seen.union(
        *(d.features(query) for d in demands), *(c.couples(query) for c in criteria if isinstance(c, Couples))
    )
