"""Places of the features that a branch and bound over inputs may change, in the schema and in the canonical vector."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray, IntArray
from ifonly.data.schema import Numeric, Schema
from ifonly.program.box import Box
from ifonly.question.statement import Statement
from ifonly.search.engine import Separable
from ifonly.search.inputs.free import Free, told_steps

__all__ = ["Places"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Places:
    """Features that a search may change: numbers and categories of the schema, and where they stand in the canonical vector.

    Attributes
    ----------
    places, entries
        The place of each number, and of each level of a category.
    start
        The canonical vector from which the search begins.
    origin
        The same, from which numbers count, without a level of these categories and with 0 for what is missing.
    size
        The largest absolute value of each entry, in the box, at the start and at the factual.
    """

    schema: Schema
    numbers: tuple[int, ...]
    categories: tuple[int, ...]
    places: IntArray
    entries: IntArray
    start: FloatArray
    origin: FloatArray
    size: FloatArray

    @classmethod
    def of(cls, statement: Statement, box: Box, features: Iterable[int], start: FloatArray) -> Places:
        """Return the features among some that a box leaves open."""
        schema = statement.query.schema
        open_ = [j for j in features if not box.is_fixed(j)]
        numbers = tuple(j for j in open_ if isinstance(schema.features[j], Numeric))
        categories = tuple(j for j in open_ if not isinstance(schema.features[j], Numeric))
        entries = [e for j in categories for e in range(schema.slice(j).start, schema.slice(j).stop)]
        origin = np.nan_to_num(start)
        origin[entries] = 0.0
        points = np.abs(np.nan_to_num(np.stack([start, statement.query.factual])))
        return cls(
            schema,
            numbers,
            categories,
            np.array([schema.starts[j] for j in numbers], dtype=np.int64),
            np.array(entries, dtype=np.int64),
            start,
            origin,
            np.asarray(np.maximum(box.reach(), points.max(axis=0))),
        )

    def allowed(self, box: Box) -> BoolArray:
        """Return which levels a box allows."""
        return np.asarray(box.allowed[self.entries])

    def take(self, u: FloatArray, levels: IntArray) -> None:
        """Put levels, one of each category, into a canonical vector."""
        u[self.entries] = 0.0
        u[self.entries[levels]] = 1.0

    def free(self, statement: Statement, question: Separable) -> Free:
        """Return these features with their costs; what is fixed elsewhere is paid, and counted."""
        query, costs, numbers = statement.query, statement.costs(), list(self.numbers)
        fixed = self.start.copy()
        fixed[self.places], fixed[self.entries] = query.factual[self.places], query.factual[self.entries]
        changed = int(query.changed(fixed[None, :])[0].sum())
        steps = [self.schema.steps[j] or 0.0 for j in numbers]
        sizes = [self.schema.features[j].width for j in self.categories]
        return Free(
            home=query.factual[self.places] - self.origin[self.places],
            origin=self.origin[self.places],
            rate=costs.linear[numbers],
            square=costs.square[numbers],
            price=costs.price[numbers],
            step=told_steps(np.array(steps), self.size[self.places]),
            size=self.size[self.places],
            level_cost=costs.entries(self.schema, query.factual, self.entries),
            first=np.cumsum([0, *sizes[:-1]], dtype=np.int64) if sizes else np.empty(0, dtype=np.int64),
            level_home=query.factual[self.entries] > 0.0,
            elsewhere=float(costs.per_feature(query, fixed[None, :])[0].sum()),
            most=question.most - changed,
        )
